"""Choose the item response model of a bank by held-out loss over families of subjects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.quality import losses, predicted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import folds
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.ties import first_smallest

#: Models to choose from, the simplest first.
CANDIDATES = ("1pl", "2pl-shrunk", "2pl", "mirt")
#: With fewer families nothing is chosen.
FEWEST_FAMILIES = 10
#: Several dimensions must be better by so many nats per response: below, estimates of the accuracy came out no better
#: on four public matrices, while steps take longer and the ability is no single number.
DIMENSIONS_MARGIN = 0.02
#: Number of folds of families, and their seed.
FOLDS, SEED = 5, 20240603


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Result of the choice.

    Args:
        losses: Held-out negative log-likelihood by model, in nats per response.
        errors: Standard error over families of each model's loss less the smallest of one dimension.
    """

    model: str
    losses: dict[str, float]
    errors: dict[str, float]
    families: int

    @property
    def sentence(self) -> str:
        """The choice, the losses and the margin."""
        best = _best(self.losses)
        each = ", ".join(
            f"{model} {loss:.4f}"
            + (f" ({loss - self.losses[best]:+.4f} +- {self.errors[model]:.4f})" if model != best else "")
            for model, loss in self.losses.items()
        )
        return (
            f"model {self.model}, the simplest within a standard error of the smallest held-out loss over "
            f"{self.families} families: {each}; mirt has to be {DIMENSIONS_MARGIN:g} better; --model overrides"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the choice as JSON values for the calibration report."""
        rounded = ({model: round(value, 5) for model, value in part.items()} for part in (self.losses, self.errors))
        return {"model": self.model, **dict(zip(("losses", "errors"), rounded, strict=True)), "families": self.families}


def choose_model(responses: Responses, recipe: Recipe, progress: Tell | None = None) -> ModelChoice:
    """Fit each of `CANDIDATES` without a fifth of the families, and predict half of their answers from the others.

    The simplest model is chosen whose loss is within a standard error, over families, of the smallest. A family weighs
    as in the fit.

    Args:
        responses: Of at least two families; see `FEWEST_FAMILIES`.
    """
    say = progress or (lambda _: None)
    scores, (S, n) = responses.scores, responses.scores.shape
    observed = ~np.isnan(scores)
    weights = np.ones(S) if responses.weights is None else responses.weights
    fold = folds(responses.families, FOLDS, np.random.default_rng(SEED))
    half = np.random.default_rng(SEED).random(n) < 0.5
    sums = {model: np.zeros(S) for model in CANDIDATES}
    for f in range(fold.max() + 1):
        tested = fold == f
        learn = responses.of(np.flatnonzero(~tested))
        models_by_key: dict[Any, Any] = {}
        for model in CANDIDATES:
            say(f"choosing the model: {model}, fold {f + 1} of {fold.max() + 1}")
            fit = recipe.with_model(model).fit_completely(learn.scores, learn.weights, models_by_key)
            for hidden in (half, ~half):
                p = predicted(np.where(hidden, np.nan, scores[tested]), fit)
                asked = observed[tested] & hidden
                sums[model][tested] += np.where(asked, losses(np.nan_to_num(scores[tested]), p), 0.0).sum(axis=1)
    total = float((weights[:, None] * observed).sum())
    means = {model: float((weights * loss).sum()) / total for model, loss in sums.items()}
    best = _best(means)
    _, of = np.unique(responses.families, return_inverse=True)
    counts = np.bincount(of, weights * observed.sum(axis=1))
    errors = {}
    for model, loss in sums.items():
        # the error of a ratio of sums over families
        residual = np.bincount(of, weights * (loss - sums[best])) - (means[model] - means[best]) * counts
        errors[model] = float(np.sqrt((residual**2).sum())) / total
    return ModelChoice(_simplest(means, errors), means, errors, len(counts))


def _best(means: dict[str, float]) -> str:
    """Return the model of one dimension with the smallest loss."""
    candidates = [model for model in means if model != "mirt"]
    return candidates[int(first_smallest([means[model] for model in candidates]))]


def _simplest(means: dict[str, float], errors: dict[str, float]) -> str:
    """Return the first model within a standard error of the smallest loss; ``mirt`` only by its margin."""
    best = means[_best(means)]
    if best - means["mirt"] > max(DIMENSIONS_MARGIN, 2.0 * errors["mirt"]):
        return "mirt"
    return next(model for model, loss in means.items() if loss - best <= errors[model])
