"""Item response models and their mean-field guide in Pyro, for the engine ``svi``.

Pyro and torch are imported by the functions that use them, because both are extras.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pytest_adaptive_eval.types import Array, Ints

#: Mean and logarithm of the standard deviation of each latent variable's variational Gaussian.
Parameters = dict[str, tuple[Array, Array]]
#: Responses times draws of one evaluation outside the steps: arrays of 4 MiB.
AT_ONCE = 1 << 19


@contextmanager
def random_numbers(device: str, seed: int) -> Iterator[None]:
    """Seed the random numbers, and restore the generators afterwards."""
    import torch

    cuda = torch.device(device).type == "cuda"
    devices = range(0)
    if cuda:
        devices = range(torch.cuda.device_count())
    with torch.random.fork_rng(devices=devices):
        if cuda:
            torch.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield


class MeanField:
    """Item response model and guide of independent Gaussians, as a Pyro program.

    Args:
        scores: Shape (S, n). NaN where missing.
        latents: Names among ``theta`` (S,), ``b``, ``log_a`` and ``logit_c`` (n,).
        priors, start: Mean and standard deviation of each latent variable's prior, and of its Gaussian at the start.
        evaluations: Responses times draws from which the ELBO is estimated.
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
        self.latents = latents
        self.priors = priors
        self.start = start
        #: Latent variables that are fixed for now; a fixed ``logit_c`` means no guessing.
        self.fixed: frozenset[str] = frozenset()
        self.subjects, self.items = scores.shape
        rows, columns = np.nonzero(~np.isnan(scores))
        self.subject = torch.as_tensor(rows, device=self.device)
        self.item = torch.as_tensor(columns, device=self.device)
        self.score = torch.as_tensor(scores[rows, columns], device=self.device)
        loss = TraceMeanField_ELBO(num_particles=particles, vectorize_particles=True, max_plate_nesting=1)
        self.svi = SVI(self.model, self.guide, Adam(dict(adam)), loss=loss)
        draws = -(-evaluations // len(rows))
        together = min(draws, max(1, AT_ONCE // len(rows)))
        self.rounds = -(-draws // together)
        self.evaluation = TraceMeanField_ELBO(num_particles=together, vectorize_particles=True, max_plate_nesting=1)

    def plates(self) -> dict[str, Any]:
        """Return the plates: subjects are independent, and so are items."""
        import pyro

        items = pyro.plate("items", self.items, device=self.device)
        subjects = pyro.plate("subjects", self.subjects, device=self.device)
        return {name: subjects if name == "theta" else items for name in self.latents}

    def model(self, batch: Any) -> None:
        """Sample the priors and the likelihood of a batch, scaled to all responses."""
        import pyro
        import torch
        from pyro import distributions as dist
        from torch.nn.functional import logsigmoid

        drawn = {}
        for name, plate in self.plates().items():
            with plate:
                mean, sd = (torch.tensor(x, dtype=torch.float64, device=self.device) for x in self.priors[name])
                drawn[name] = pyro.sample(name, dist.Normal(mean, sd))
        subject = self.subject
        item = self.item
        score = self.score
        if batch is not None:
            subject = subject[batch]
            item = item[batch]
            score = score[batch]
        with pyro.plate("responses", len(self.score), subsample=batch, device=self.device):
            z = drawn["theta"].index_select(-1, subject) - drawn["b"].index_select(-1, item)
            if "log_a" in drawn:
                z = drawn["log_a"].exp().index_select(-1, item) * z
            if "logit_c" in drawn and "logit_c" not in self.fixed:
                # the logit of c + (1 - c) expit(z) is log((c + e^z) / (1 - c))
                logit_c = drawn["logit_c"].index_select(-1, item)
                z = torch.logaddexp(logsigmoid(logit_c), z) - logsigmoid(-logit_c)
            pyro.sample("score", dist.Bernoulli(logits=z, validate_args=False), obs=score)  # fractions are allowed

    def guide(self, batch: Any) -> None:  # noqa: ARG002 - Pyro gives model and guide the same arguments
        """Sample each latent variable from its own Gaussian."""
        import pyro
        from pyro import distributions as dist

        for name, plate in self.plates().items():
            mean, log_sd = self.gaussian(name)
            with plate:
                pyro.sample(name, dist.Normal(mean, log_sd.exp()))

    def gaussian(self, name: str) -> tuple[Any, Any]:
        """Return mean and log sd of a latent variable, from Pyro's store."""
        import pyro
        import torch

        size = (self.subjects if name == "theta" else self.items,)
        start_mean, start_sd = self.start[name]

        def parameter(moment: str, start: float) -> Any:
            first = torch.full(size, start, dtype=torch.float64, device=self.device)
            return pyro.param(f"{name}_{moment}", first)

        mean = parameter("mean", start_mean)
        log_sd = parameter("log_sd", math.log(start_sd))
        if name in self.fixed:
            return (mean.detach(), log_sd.detach())
        return (mean, log_sd)

    def parameters(self) -> Parameters:
        """Return a copy of the present parameters that are not fixed."""
        parameters = {}
        for name in self.latents:
            if name not in self.fixed:
                mean, log_sd = self.gaussian(name)
                parameters[name] = (mean.detach().cpu().numpy().copy(), log_sd.detach().cpu().numpy().copy())
        return parameters

    def step(self, batch: Ints | None) -> None:
        """Take one step of Adam."""
        import torch

        positions = None
        if batch is not None:
            positions = torch.as_tensor(batch, device=self.device)
        self.svi.step(positions)

    def elbo(self, parameters: Parameters, seed: int) -> float:
        """Return the ELBO of given parameters over all responses, always with the same draws."""
        import pyro
        import torch

        substituted = {}
        for name, both in parameters.items():
            for moment, x in zip(("mean", "log_sd"), both, strict=True):
                substituted[f"{name}_{moment}"] = torch.as_tensor(x, device=self.device)
        with torch.no_grad(), random_numbers(self.device.type, seed):
            guide = pyro.poutine.substitute(self.guide, data=substituted)
            losses = []
            for _ in range(self.rounds):
                losses.append(self.evaluation.loss(self.model, guide, None))
        return -float(np.mean(losses))
