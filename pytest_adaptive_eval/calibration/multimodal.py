"""Fits of M2-IRT and M3-IRT to responses in formats, by mini-batch gradient descent in torch.

The model and its one convention of signs are in `irt.multimodal`. Every part of ability, discrimination and
difficulty is ``q expit(x)`` of a free number x, so it lies in (0, q) without clamping. The free numbers have
normal priors, of learned mean and fixed spread: with about two dozen subjects the likelihood alone drives half the
parts to a bound, and little else separates abilities in several parts. A share of the responses is held out: their loss
decides when to stop and which state to restore, and their ROC-AUC chooses q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.calibration.multimodal_errors import item_covariance, with_item_errors
from pytest_adaptive_eval.irt.multimodal import (
    AT_BOUND,
    Abilities,
    Form,
    Modalities,
    MultimodalItems,
    Population,
    estimate_abilities,
)
from pytest_adaptive_eval.types import Array, Bools

#: Upper bounds q to try.
BOUNDS = (2.0, 4.0, 8.0, 16.0)
#: Starting values of a discrimination and of an ability part, as far as a small q allows.
START = 0.6
#: Correlation of two estimated abilities, given a whole bank, above which the bank does not separate them.
LARGEST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class Training:
    """Settings of a fit.

    Args:
        rate: Of Adam. At 0.1 the held-out loss of the two public matrices settles within 180 to 760 steps, at 0.01 it
            takes 1500 to 5400 and ends .000 to .001 nats lower.
        steps: Largest number of steps for one q.
        block: Items in a mini-batch, in all their formats; each epoch draws the blocks again.
        every, patience: Steps between evaluations of the held-out loss, and evaluations without improvement that end
            the fit.
        item_spread, ability_spread: Standard deviation of the priors of ``logit(x / q)``; infinite without a prior.
    """

    rate: float = 0.1
    steps: int = 1000
    block: int = 512
    every: int = 20
    patience: int = 5
    held_out: float = 0.1
    item_spread: float = 1.0
    ability_spread: float = 1.0


#: Settings of a single fit that decisions depend on.
UNTIL_SETTLED = Training(rate=0.01, steps=10_000)
#: Settings of the M3-IRT paper: the likelihood alone (equation 8), by Adam at a rate of .01.
PAPER = replace(UNTIL_SETTLED, item_spread=math.inf, ability_spread=math.inf)
#: Largest standard deviation of a prior in the errors of a fit, which are infinite without a prior.
WIDEST = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Identifiability:
    """Identifiability of the parts by the responses.

    Args:
        at_bound: Shape (K,). Share of the ``ability``, ``discrimination`` and ``difficulty`` parts within a hundredth
            of 0 or q.
        condition: Largest over smallest eigenvalue of the information about one subject's abilities, at the middle of
            the population, from the whole bank in all formats, without prior. Infinite if a direction has no
            information.
        reliability: Shape (K,). Share of the abilities' variance over subjects that is not error of estimation, given
            the items.
        confused: Parts whose estimates correlate by more than LARGEST_CORRELATION in absolute value, given the whole
            bank: only their sum is identified.
    """

    at_bound: Mapping[str, Array]
    condition: float
    reliability: Array
    confused: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class MultimodalFit:
    """Fitted items and abilities, with the course of the fit.

    Args:
        abilities: Abilities of the calibration subjects, most probable given the items; covariances allow for the
            items' errors.
        covariance: Shape (n, 2 K, 2 K). Covariance of the items' free numbers, see `multimodal_errors.item_covariance`.
        auc, loss: ROC-AUC and loss of the held-out responses, at the chosen q; `loss` in nats per response.
        tried: ROC-AUC of the held-out responses by q.
        steps: Steps to the restored state.
        history: Held-out losses at the chosen q, see `Training.every`.
        converged: Whether the held-out loss stopped falling within the permitted steps.
    """

    items: MultimodalItems
    abilities: Abilities
    population: Population
    covariance: Array
    auc: float
    loss: float
    tried: Mapping[float, float]
    steps: int
    history: tuple[float, ...] = field(default=())
    converged: bool = True

    def probability(self) -> Array:
        """Return the probabilities of right answers of the calibration subjects, shape (S, n, F)."""
        return self.items.probability(self.abilities.theta)

    def identifiability(self) -> Identifiability:
        """Return the identifiability of the parts by the responses."""
        items = self.items
        population = self.population
        parts = items.modalities.parts
        share = {
            "ability": self.abilities.theta,
            "discrimination": items.discrimination,
            "difficulty": items.difficulty,
        }
        near = {}
        for name, x in share.items():
            near[name] = ((x < AT_BOUND * items.bound) | (x > (1 - AT_BOUND) * items.bound)).mean(axis=0)
        p = items.probability(population.theta[None])[0]
        slopes = items.slopes.reshape(-1, len(parts))
        weighted = slopes * (p * (1.0 - p)).reshape(-1, 1)
        information = weighted.T @ slopes
        values = np.linalg.eigvalsh(information)
        if values[0] > 1e-12 * values[-1]:
            condition = float(values[-1] / values[0])
        else:
            condition = float("inf")
        covariance = np.linalg.inv(information + population.precision())
        sd = np.sqrt(covariance.diagonal())
        correlation = covariance / np.outer(sd, sd)
        error = self.abilities.covariance.diagonal(axis1=1, axis2=2).mean(axis=0)
        reliability = 1.0 - error / (error + self.abilities.theta.var(axis=0))
        confused = []
        for i, j in combinations(range(len(parts)), 2):
            if abs(correlation[i, j]) > LARGEST_CORRELATION:
                confused.append((parts[i], parts[j]))
        return Identifiability(near, condition, reliability, tuple(confused))


def roc_auc(right: ArrayLike, score: ArrayLike) -> float:
    """Return the area under the ROC curve: P(a right answer has a higher score than a wrong one), ties half.

    NaN if all answers are alike; a fractional answer counts as right from one half.
    """
    from scipy.stats import mannwhitneyu

    positive = np.ravel(right) >= 0.5
    scores = np.ravel(score)
    ones = scores[positive]
    zeros = scores[~positive]
    if not len(ones) or not len(zeros):
        return float("nan")
    return float(mannwhitneyu(ones, zeros, method="asymptotic").statistic / (len(ones) * len(zeros)))


def fit_multimodal(
    scores: ArrayLike,
    *,
    modalities: Modalities | None = None,
    form: Form = "m2",
    bounds: Sequence[float] = BOUNDS,
    training: Training | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[float, int, float], None] | None = None,
) -> MultimodalFit:
    """Fit items and subjects, with q chosen by the ROC-AUC of held-out responses.

    Args:
        scores: Shape (S, n, F). In [0, 1], NaN where missing, but not for a whole subject, item or format; formats in
            the order of `modalities`.
        modalities: Image and text when omitted.
        bounds: Values of q to try; the first of equal AUC wins.
        seed: Seed of the held-out responses, the starting values and the mini-batches. The same seed gives the same fit
            on one machine.
        progress: Called with q, the step and the held-out loss.
    """
    modalities = modalities or Modalities()
    training = training or Training()
    array = np.asarray(scores, dtype=np.float64)
    rng = np.random.default_rng(seed)
    observed = ~np.isnan(array)
    held_out = observed & (rng.random(array.shape) < training.held_out)
    trained = observed & ~held_out
    if not held_out.any():  # too few to hold any out: the loss on all of them decides when to stop
        held_out = trained = observed
    best: tuple[float, _Result, float] | None = None
    tried = {}
    for bound in bounds:
        descent = _Descent(array, trained, held_out, modalities, form, float(bound), training, seed, device)
        result = descent.run(progress)
        tried[float(bound)] = result.auc
        if best is None or result.auc > best[0] + 1e-6:
            best = (result.auc, result, float(bound))
    assert best is not None
    _, result, bound = best
    items = MultimodalItems(modalities, form, bound, result.discrimination, result.difficulty)
    parts = len(modalities.parts)
    prior = Population(result.centre, np.eye(parts) * min(training.ability_spread, WIDEST) ** 2, bound)
    flat = items.slopes.reshape(-1, parts), items.intercepts.ravel()
    abilities = estimate_abilities(array.reshape(len(array), -1), *flat, prior, start=result.theta)
    population = Population.of(abilities.theta, bound)
    covariance = item_covariance(items, abilities.theta, observed, min(training.item_spread, WIDEST))
    abilities = with_item_errors(abilities, items, covariance, observed)
    return MultimodalFit(
        items,
        abilities,
        population,
        covariance,
        result.auc,
        result.loss,
        tried,
        result.steps,
        result.history,
        result.converged,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    discrimination: Array
    difficulty: Array
    theta: Array
    centre: Array
    auc: float
    loss: float
    steps: int
    history: tuple[float, ...]
    converged: bool


class _Descent:
    """Adam on the free numbers of one q, with an explicit gradient: three passes where autograd takes ten."""

    def __init__(
        self,
        scores: Array,
        trained: Bools,
        held_out: Bools,
        modalities: Modalities,
        form: Form,
        bound: float,
        training: Training,
        seed: int,
        device: str,
    ) -> None:
        import torch

        self.torch = torch
        self.form = form
        self.q = bound
        self.training = training
        self.generator = torch.Generator().manual_seed(seed)

        def make(values: Any) -> Any:
            return torch.tensor(np.ascontiguousarray(values), dtype=torch.float32, device=device)

        # items first, so that a block of items is contiguous
        self.score = make(np.nan_to_num(scores).transpose(1, 2, 0))
        self.trained = make(trained.transpose(1, 2, 0))
        self.count = float(trained.sum())
        positions = np.flatnonzero(held_out.transpose(1, 2, 0).ravel())
        self.held_out = torch.as_tensor(positions, device=device)
        self.truth = self.score.reshape(-1)[self.held_out]
        self.design = make(modalities.design)
        self.signed = make(modalities.design * modalities.signs)
        a, b, theta = self._start(scores, trained, modalities)
        noise = 0.05 * torch.randn(a.shape, generator=self.generator).to(device)
        self.a = make(a) + noise
        self.b = make(b)
        self.theta = make(theta)
        # learned means of the priors, in rows: discrimination, difficulty, ability
        self.mean = torch.stack([self.a.mean(0), self.b.mean(0), self.theta.mean(0)])
        self.free = [self.a, self.b, self.theta, self.mean]
        self.optimiser = torch.optim.Adam(self.free, lr=training.rate)

    def _start(self, scores: Array, trained: Bools, modalities: Modalities) -> tuple[Array, Array, Array]:
        """Return free numbers from the log-odds of the mean scores of each item and subject in each format."""
        q = self.q
        first = min(START, 0.3 * q)
        parts = np.linalg.pinv(modalities.design)
        training_scores = np.where(trained, scores, np.nan)

        def level(axis: int) -> Array:
            right = np.nansum(training_scores, axis=axis)
            all_ = trained.sum(axis=axis)
            mean = right.sum(axis=0) / np.maximum(all_.sum(axis=0), 1)
            p = (right + 2.0 * mean) / (all_ + 2.0)
            return np.asarray(np.log((p + 0.01) / (1.01 - p)))

        by_item = level(0)
        by_subject = level(1)
        ability = first + 0.5 * (by_subject - by_subject.mean(axis=0)) @ parts.T
        reached = modalities.design @ np.full(parts.shape[0], first)
        if self.form == "m2":
            slope = modalities.design.sum(axis=1) * first
        else:
            slope = np.ones(len(modalities.design))
            reached = reached * first
        difficulty = (reached - by_item / slope) @ parts.T * modalities.signs

        def free(x: Array) -> Array:
            share = np.clip(x / q, 0.03, 0.97)
            return np.asarray(np.log(share / (1.0 - share)))

        n = scores.shape[1]
        return free(np.full((n, len(modalities.parts)), first)), free(difficulty), free(ability)

    def _pairs(self, a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
        """Return slopes (m F, K), intercepts (m, F), and discrimination and difficulty (m, F) of each format."""
        whole = a @ self.design.T
        lowered = b @ self.signed.T
        if self.form == "m2":
            slopes = whole[:, :, None] * self.design
            intercepts = -whole * lowered
        else:
            slopes = a[:, None, :] * self.design
            intercepts = -lowered
        return slopes.reshape(-1, a.shape[1]), intercepts, whole, lowered

    def _descend(self, block: Any) -> None:
        """Take one step on the responses to a block of items."""
        torch = self.torch
        q = self.q
        training = self.training
        shares = [torch.sigmoid(x) for x in (self.a[block], self.b[block], self.theta)]
        a, b, theta = (q * share for share in shares)
        slopes, intercepts, whole, lowered = self._pairs(a, b)
        m, formats = intercepts.shape
        p = torch.addmm(intercepts.reshape(-1, 1), slopes, theta.T).sigmoid_()
        residual = p.sub_(self.score[block].reshape(p.shape)).mul_(self.trained[block].reshape(p.shape))
        scale = len(self.a) / m / self.count
        by_slope = (residual @ theta).reshape(m, formats, -1)
        by_intercept = residual.sum(1).reshape(m, formats)
        by_theta = residual.T @ slopes
        if self.form == "m2":
            by_whole = (by_slope * self.design).sum(-1) - by_intercept * lowered
            by_a = by_whole @ self.design
            by_b = -(by_intercept * whole) @ self.signed
        else:
            by_a = (by_slope * self.design).sum(1)
            by_b = -by_intercept @ self.signed
        gradients = [torch.zeros_like(x) for x in self.free]
        for k, (gradient, share) in enumerate(zip((by_a, by_b, by_theta), shares, strict=True)):
            # every block updates abilities, and one block per epoch updates an item
            if k == 2:
                updated: Any = slice(None)
                spread = training.ability_spread
                weight = 1.0 / self.count
            else:
                updated = block
                spread = training.item_spread
                weight = scale
            prior_gradient = (self.free[k][updated] - self.mean[k]) / spread**2
            total = gradient * (q * share * (1.0 - share)) * scale + prior_gradient * weight
            gradients[k][updated] = total
            gradients[3][k] = -prior_gradient.sum(0) * weight
        for x, gradient in zip(self.free, gradients, strict=True):
            x.grad = gradient
        self.optimiser.step()

    def _held_out(self) -> tuple[float, Any]:
        """Return the loss of the held-out responses in nats, and their logits."""
        torch = self.torch
        a, b, theta = (self.q * torch.sigmoid(x) for x in self.free[:3])
        slopes, intercepts, _, _ = self._pairs(a, b)
        logits = torch.addmm(intercepts.reshape(-1, 1), slopes, theta.T)
        z = logits.reshape(-1)[self.held_out]
        loss = (torch.nn.functional.softplus(z) - self.truth * z).mean()
        return float(loss), z

    def _blocks(self) -> Iterator[Any]:
        """Yield blocks of items without end, each pass over the items in a new order."""
        while True:
            order: Any = self.torch.randperm(len(self.a), generator=self.generator).to(self.a.device)
            yield from order.split(self.training.block)

    def run(self, progress: Callable[[float, int, float], None] | None) -> _Result:
        """Descend until the held-out loss no longer falls, and restore the best state."""
        torch = self.torch
        training = self.training
        least = float("inf")
        at = 0
        worse = 0
        history = list[float]()
        state = [x.clone() for x in self.free]
        for step, block in enumerate(islice(self._blocks(), training.steps), 1):
            self._descend(block)
            if step % training.every and step != training.steps:
                continue
            loss, _ = self._held_out()
            history.append(loss)
            if progress is not None:
                progress(self.q, step, loss)
            worse += 1
            if loss < least - 1e-5:
                least = loss
                at = step
                worse = 0
                state = [x.clone() for x in self.free]
            if worse >= training.patience:
                break
        for x, best in zip(self.free, state, strict=True):
            x.copy_(best)
        loss, z = self._held_out()
        a, b, theta = ((self.q * torch.sigmoid(x.double())).cpu().numpy() for x in self.free[:3])
        centre = self.mean[2].double().cpu().numpy()
        auc = roc_auc(self.truth.cpu().numpy(), z.cpu().numpy())
        return _Result(a, b, theta, centre, auc, loss, at, tuple(history), worse >= training.patience)
