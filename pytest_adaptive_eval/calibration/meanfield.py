"""Item response models and their mean-field guide in Pyro; what drives them is `svi`.

Pyro and torch are imported by the functions that use them, as both are extras.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MeanField", "Parameters", "random_numbers"]

Array = NDArray[np.float64]

#: Mean and logarithm of the standard deviation of each latent variable's variational Gaussian.
Parameters = dict[str, tuple[Array, Array]]
#: Responses times draws of one evaluation outside the steps: arrays of 4 MiB.
AT_ONCE = 1 << 19


@contextmanager
def random_numbers(device: str, seed: int) -> Iterator[None]:
    """Random numbers from a seed, and the generators given back as they were."""
    import torch

    cuda = torch.device(device).type == "cuda"
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if cuda else []):
        if cuda:
            torch.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield


class MeanField:
    """An item response model and a guide of independent Gaussians, as a Pyro program.

    Parameters
    ----------
    scores : array, shape (S, n)
        NaN where missing.
    latents : sequence of str
        Of ``theta`` (S,), and ``b``, ``log_a`` and ``logit_c`` (n,).
    priors, start : mapping of str to tuple of float
        Mean and standard deviation of each latent variable's prior, and of its Gaussian at first.
    adam : mapping
        Arguments of torch's Adam.
    particles : int
        Draws a step.
    evaluations : int
        Responses times draws from which the ELBO is estimated.
    device : str
    """

    def __init__(
        self,
        scores: Array,
        latents: Sequence[str],
        priors: Mapping[str, tuple[float, float]],
        start: Mapping[str, tuple[float, float]],
        *,
        adam: Mapping[str, Any],
        particles: int,
        evaluations: int,
        device: str,
    ) -> None:
        import torch
        from pyro.infer import SVI, TraceMeanField_ELBO
        from pyro.optim import Adam

        self.device = torch.device(device)
        self.latents, self.priors, self.start = latents, priors, start
        #: Latent variables that stay as they are for the time being; a held ``logit_c`` stands for no guessing.
        self.held: frozenset[str] = frozenset()
        self.subjects, self.items = scores.shape
        rows, columns = np.nonzero(~np.isnan(scores))
        self.subject, self.item, self.score = (
            torch.as_tensor(x, device=self.device) for x in (rows, columns, scores[rows, columns])
        )
        loss = TraceMeanField_ELBO(num_particles=particles, vectorize_particles=True, max_plate_nesting=1)
        self.svi = SVI(self.model, self.guide, Adam(dict(adam)), loss=loss)
        draws = -(-evaluations // len(rows))
        together = min(draws, max(1, AT_ONCE // len(rows)))
        self.rounds = -(-draws // together)
        self.evaluation = TraceMeanField_ELBO(num_particles=together, vectorize_particles=True, max_plate_nesting=1)

    def plates(self) -> dict[str, Any]:
        """Independence of the subjects, and of the items."""
        import pyro

        items = pyro.plate("items", self.items, device=self.device)
        subjects = pyro.plate("subjects", self.subjects, device=self.device)
        return {name: subjects if name == "theta" else items for name in self.latents}

    def model(self, batch: Any) -> None:
        """The priors, and the likelihood of a batch as if it were all responses."""
        import pyro
        import torch
        from pyro import distributions as dist
        from torch.nn.functional import logsigmoid

        drawn = {}
        for name, plate in self.plates().items():
            with plate:
                mean, sd = (torch.tensor(x, dtype=torch.float64, device=self.device) for x in self.priors[name])
                drawn[name] = pyro.sample(name, dist.Normal(mean, sd))
        with pyro.plate("responses", len(self.score), subsample=batch, device=self.device):
            subject, item, score = (x if batch is None else x[batch] for x in (self.subject, self.item, self.score))
            z = drawn["theta"].index_select(-1, subject) - drawn["b"].index_select(-1, item)
            if "log_a" in drawn:
                z = drawn["log_a"].exp().index_select(-1, item) * z
            if "logit_c" in drawn and "logit_c" not in self.held:
                # the logit of c + (1 - c) expit(z) is log((c + e^z) / (1 - c))
                logit_c = drawn["logit_c"].index_select(-1, item)
                z = torch.logaddexp(logsigmoid(logit_c), z) - logsigmoid(-logit_c)
            pyro.sample("score", dist.Bernoulli(logits=z, validate_args=False), obs=score)  # fractions are welcome

    def guide(self, batch: Any) -> None:  # noqa: ARG002 - Pyro gives model and guide the same arguments
        """A Gaussian of its own for every latent variable."""
        import pyro
        from pyro import distributions as dist

        for name, plate in self.plates().items():
            mean, log_sd = self.gaussian(name)
            with plate:
                pyro.sample(name, dist.Normal(mean, log_sd.exp()))

    def gaussian(self, name: str) -> tuple[Any, Any]:
        """Mean and log sd of a latent variable, from Pyro's store."""
        import pyro
        import torch

        size = (self.subjects if name == "theta" else self.items,)
        start = {"mean": self.start[name][0], "log_sd": math.log(self.start[name][1])}
        found = (
            pyro.param(f"{name}_{what}", torch.full(size, x, dtype=torch.float64, device=self.device))
            for what, x in start.items()
        )
        mean, log_sd = found
        return (mean.detach(), log_sd.detach()) if name in self.held else (mean, log_sd)

    def parameters(self) -> Parameters:
        """A copy of the present parameters, but of what is held."""
        free = [name for name in self.latents if name not in self.held]
        return {name: tuple(x.detach().cpu().numpy().copy() for x in self.gaussian(name)) for name in free}

    def step(self, batch: NDArray[np.int64] | None) -> None:
        """One step of Adam."""
        import torch

        self.svi.step(None if batch is None else torch.as_tensor(batch, device=self.device))

    def elbo(self, parameters: Parameters, seed: int) -> float:
        """The ELBO of some parameters over all responses, always with the same draws."""
        import pyro
        import torch

        fixed = {
            f"{name}_{what}": torch.as_tensor(x, device=self.device)
            for name, both in parameters.items()
            for what, x in zip(("mean", "log_sd"), both, strict=True)
        }
        with torch.no_grad(), random_numbers(self.device.type, seed):
            guide = pyro.poutine.substitute(self.guide, data=fixed)
            losses = [self.evaluation.loss(self.model, guide, None) for _ in range(self.rounds)]
        return -float(np.mean(losses))
