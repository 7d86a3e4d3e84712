"""Choose the item response model of a bank by held-out loss over families of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from pytest_adaptive_eval.calibration.quality import losses, predicted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import folds
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.ties import first_smallest
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Models to choose from, the simplest first.
CANDIDATES = ("1pl", "2pl-shrunk", "2pl", "mirt")
#: With fewer families nothing is chosen.
FEWEST_FAMILIES = 10
#: Several dimensions must be better by so many nats per response: below, estimates of the accuracy came out no better
#: on four public matrices, while steps take longer and the ability is no single number.
DIMENSIONS_MARGIN = 0.02
#: Several dimensions are no longer fitted once they are worse than the margin by so many standard errors.
HOPELESS = 3.0
#: Number of folds of families, and their seed.
FOLDS, SEED = 5, 20240603


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Result of the choice.

    Args:
        losses: Held-out negative log-likelihood by model, in nats per response. That of ``mirt`` is the smallest of one
            dimension, less what it is better by where it was fitted.
        errors: Standard error over families of each model's loss less the smallest of one dimension.
        mirt_families: Number of families on which ``mirt`` was tested: fewer where it could not be chosen any more.
    """

    model: str
    losses: dict[str, float]
    errors: dict[str, float]
    families: int
    mirt_families: int

    @property
    def sentence(self) -> str:
        """The choice, the losses and the margin."""
        best = _best(self.losses)
        each = []
        for model, loss in self.losses.items():
            text = f"{model} {loss:.4f}"
            if model != best:
                text += f" ({loss - self.losses[best]:+.4f} +- {self.errors[model]:.4f})"
            each.append(text)
        tested = ""
        if self.mirt_families != self.families:
            tested = f", tested on {self.mirt_families} families,"
        return (
            f"model {self.model}, the simplest within a standard error of the smallest held-out loss over "
            f"{self.families} families: {', '.join(each)}; mirt{tested} has to be {DIMENSIONS_MARGIN:g} better; "
            "--model overrides"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the choice as JSON values for the calibration report."""
        return {
            "model": self.model,
            "losses": {model: round(loss, 5) for model, loss in self.losses.items()},
            "errors": {model: round(error, 5) for model, error in self.errors.items()},
            "families": self.families,
            "mirt_families": self.mirt_families,
        }


def choose_model(responses: Responses, recipe: Recipe, progress: Tell | None = None) -> ModelChoice:
    """Fit each of `CANDIDATES` without a fifth of the families, and predict half of their answers from the others.

    The simplest model is chosen whose loss is within a standard error, over families, of the smallest. A family weighs
    as in the fit.

    Args:
        responses: Of at least two families; see `FEWEST_FAMILIES`.
    """
    say = progress or (lambda _: None)
    scores = responses.scores
    S, n = scores.shape
    observed = ~np.isnan(scores)
    weights = responses.weights
    if weights is None:
        weights = np.ones(S)
    fold = folds(responses.families, FOLDS, np.random.default_rng(SEED))
    half = np.random.default_rng(SEED).random(n) < 0.5
    sums = {model: np.zeros(S) for model in CANDIDATES}
    losses_of = _Losses(sums, weights, observed.sum(axis=1), responses.families)
    models = list(CANDIDATES)
    of_mirt = losses_of
    for f in range(fold.max() + 1):
        tested = fold == f
        learn = responses.of(np.flatnonzero(~tested))
        models_by_key: dict[Any, Any] = {}
        for model in models:
            say(f"choosing the model: {model}, fold {f + 1} of {fold.max() + 1}")
            fit = recipe.with_model(model).fit_completely(learn.scores, learn.weights, models_by_key)
            for hidden in (half, ~half):
                p = predicted(np.where(hidden, np.nan, scores[tested]), fit)
                asked = observed[tested] & hidden
                each = np.where(asked, losses(np.nan_to_num(scores[tested]), p), 0.0)
                losses_of.sums[model][tested] += each.sum(axis=1)
        if f and "mirt" in models:
            of_mirt = losses_of.of(fold <= f)
            means, errors = of_mirt.compared(_best(of_mirt.means))
            if _gain_of_mirt(means) + HOPELESS * errors["mirt"] < DIMENSIONS_MARGIN:
                models.remove("mirt")
    best = _best(losses_of.means)
    means, errors = losses_of.compared(best)
    means_there, errors_there = of_mirt.compared(best)
    means["mirt"] = means[best] + means_there["mirt"] - means_there[best]
    errors["mirt"] = errors_there["mirt"]
    families = len(set(responses.families))
    mirt_families = len(set(of_mirt.families))
    return ModelChoice(_simplest(means, errors), means, errors, families, mirt_families)


class _Losses(NamedTuple):
    """Held-out losses of subjects.

    Args:
        sums: Shape (S,). Sum of the losses of each subject, by model.
        weights, counts: Shape (S,). Weight of each subject, and number of its responses.
    """

    sums: dict[str, Array]
    weights: Array
    counts: Ints
    families: Sequence[str]

    def of(self, rows: Bools) -> _Losses:
        """Return the losses of some subjects."""
        sums = {model: loss[rows] for model, loss in self.sums.items()}
        return _Losses(sums, self.weights[rows], self.counts[rows], list(compress(self.families, rows)))

    @property
    def means(self) -> dict[str, float]:
        """Loss per response, by model."""
        total = float((self.weights * self.counts).sum())
        return {model: float((self.weights * loss).sum()) / total for model, loss in self.sums.items()}

    def compared(self, best: str) -> tuple[dict[str, float], dict[str, float]]:
        """Return the means, and the standard errors over families of their differences from that of one model."""
        total = float((self.weights * self.counts).sum())
        means = self.means
        _, of = np.unique(list(self.families), return_inverse=True)
        counts = np.bincount(of, self.weights * self.counts)
        errors = {}
        for model, loss in self.sums.items():
            # the error of a ratio of sums over families
            gaps = np.bincount(of, self.weights * (loss - self.sums[best]))
            residual = gaps - (means[model] - means[best]) * counts
            errors[model] = float(np.sqrt((residual**2).sum())) / total
        return means, errors


def _best(means: dict[str, float]) -> str:
    """Return the model of one dimension with the smallest loss."""
    candidates = [model for model in means if model != "mirt"]
    best = first_smallest([means[model] for model in candidates])
    return candidates[int(best)]


def _gain_of_mirt(means: dict[str, float]) -> float:
    """Return by how much several dimensions are better than the best model of one."""
    return means[_best(means)] - means["mirt"]


def _simplest(means: dict[str, float], errors: dict[str, float]) -> str:
    """Return the first model within a standard error of the smallest loss; ``mirt`` only by its margin."""
    if _gain_of_mirt(means) > max(DIMENSIONS_MARGIN, 2.0 * errors["mirt"]):
        return "mirt"
    best = means[_best(means)]
    return next(model for model, loss in means.items() if loss - best <= errors[model])
