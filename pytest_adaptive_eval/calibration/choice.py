"""Choose the item response model of a bank by held-out families of subjects.

Models of one dimension are compared by their loss. One of several dimensions often has a smaller loss, and yet no
better estimates after few questions. So it must also do better what `estimate` is asked for: families that are left out
are interviewed, and the errors of their accuracies and ranks are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.quality import losses, predicted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import folds, replay_each
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.ties import first_smallest
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Models to choose from, the simplest first.
CANDIDATES = ("1pl", "2pl-shrunk", "2pl", "mirt")
#: With fewer families nothing is chosen.
FEWEST_FAMILIES = 10
#: Several dimensions whose loss is smaller by so many nats per response are taken unless their interviews err more,
#: and otherwise only if they err less: steps take longer, and the ability is not a single number.
DIMENSIONS_MARGIN = 0.02
#: Standard errors by which the loss of several dimensions must be smaller.
BEYOND_CHANCE = 2.0
#: Several dimensions are no longer fitted once they miss that by so many standard errors.
HOPELESS = 1.0
#: Shares of the bank that interviews ask, and the fewest questions.
ASKED, FEWEST_ASKED = ("1%", "5%"), 8
#: Most families of a fold that are interviewed.
INTERVIEWED = 40
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
        gain: Share by which interviews of ``mirt`` err less than interviews of the best model of one dimension; NaN
            where its loss alone rules it out.
        gain_error: Standard error of `gain` over families.
    """

    model: str
    losses: dict[str, float]
    errors: dict[str, float]
    families: int
    mirt_families: int
    gain: float = math.nan
    gain_error: float = math.nan

    @property
    def of_one_dimension(self) -> str:
        """The simplest model of one dimension within a standard error of their smallest loss."""
        return _simplest(self.losses, self.errors)

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
        if math.isnan(self.gain):
            interviews = f"mirt{tested} is not better by two standard errors"
        else:
            interviews = (
                f"asked {' and '.join(ASKED)} of the items, left-out families have accuracies and ranks whose errors "
                f"are {self.gain:.1%} +- {self.gain_error:.1%} smaller by mirt"
            )
        return (
            f"model {self.model}; held-out loss over {self.families} families: {', '.join(each)}; {interviews}; "
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
            **({} if math.isnan(self.gain) else {"gain": round(self.gain, 4), "gain_error": round(self.gain_error, 4)}),
        }


def choose_model(responses: Responses, recipe: Recipe, progress: Tell | None = None) -> ModelChoice:
    """Fit each of `CANDIDATES` without a fifth of the families, and predict half of their answers from the others.

    The simplest model of one dimension is chosen whose loss is within a standard error, over families, of the smallest.
    One of several dimensions takes its place if its loss is smaller by two standard errors, and its interviews of
    left-out families err less by one; see `DIMENSIONS_MARGIN`. A family weighs as in the fit.

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
    fits: list[dict[str, Calibration]] = []
    for f in range(fold.max() + 1):
        tested = fold == f
        learn = responses.of(np.flatnonzero(~tested))
        models_by_key: dict[Any, Any] = {}
        fits.append({})
        for model in models:
            say(f"choosing the model: {model}, fold {f + 1} of {fold.max() + 1}")
            fit = recipe.with_model(model).fit_completely(learn.scores, learn.weights, models_by_key)
            fits[f][model] = fit
            for hidden in (half, ~half):
                p = predicted(np.where(hidden, np.nan, scores[tested]), fit)
                asked = observed[tested] & hidden
                each = np.where(asked, losses(np.nan_to_num(scores[tested]), p), 0.0)
                losses_of.sums[model][tested] += each.sum(axis=1)
        if f and "mirt" in models:
            of_mirt = losses_of.of(fold <= f)
            means, errors = of_mirt.compared(_best(of_mirt.means))
            if _gain_of_mirt(means) < (BEYOND_CHANCE - HOPELESS) * errors["mirt"]:
                models.remove("mirt")
    best = _best(losses_of.means)
    means, errors = losses_of.compared(best)
    means_there, errors_there = of_mirt.compared(best)
    means["mirt"] = means[best] + means_there["mirt"] - means_there[best]
    errors["mirt"] = errors_there["mirt"]
    families = len(set(responses.families))
    mirt_families = len(set(of_mirt.families))
    choice = ModelChoice(_simplest(means, errors), means, errors, families, mirt_families)
    if "mirt" not in models or _gain_of_mirt(means) <= BEYOND_CHANCE * errors["mirt"]:
        return choice
    say("choosing the model: interviews of left-out families")
    gain, gain_error = _gain_of_interviews(responses, fold, fits, choice.model)
    choice = replace(choice, gain=gain, gain_error=gain_error)
    if gain > _least_gain(_gain_of_mirt(means), gain_error):
        return replace(choice, model="mirt")
    return choice


def _least_gain(loss: float, gain_error: float) -> float:
    """Return the gain of its interviews above which ``mirt`` is chosen, if its loss is smaller by `loss`."""
    if loss <= DIMENSIONS_MARGIN:
        return gain_error
    return -gain_error


def _gain_of_interviews(
    responses: Responses, fold: Ints, fits: Sequence[Mapping[str, Calibration]], model: str
) -> tuple[float, float]:
    """Return the share by which interviews of ``mirt`` err less than interviews of `model`, and its standard error.

    Errors of the accuracy and of its rank among the others count, at each share of `ASKED`. Each is divided by its mean
    for `model`, and all weigh the same. A family has one interview, by the policy `estimate` without a predictor.

    Args:
        fold: Shape (S,). Fold of each subject.
        fits: By model, of the subjects outside of each fold.
    """
    n = len(responses.items)
    counts = sorted({min(n, max(FEWEST_ASKED, resolve_budget(share, n))) for share in ASKED})
    policies = [replace(POLICIES["estimate"], assisted=False, budget=count) for count in counts]
    _, first = np.unique(list(responses.families), return_index=True)
    rng = np.random.default_rng(SEED)
    asked = [rng.permutation(first[fold[first] == f])[:INTERVIEWED] for f in range(len(fits))]
    truth = np.nanmean(responses.scores, axis=1)[np.concatenate(asked)]
    errors = {}
    for name in (model, "mirt"):
        parts = []
        for rows, fit in zip(asked, fits, strict=True):
            bank = fit[name].bank("bank", responses.items)
            sessions = replay_each(bank, policies, responses.scores[rows], seed=rows.tolist(), designed=False)
            parts.append(np.stack([session.projection()[0] for session in sessions]))
        accuracies = np.concatenate(parts, axis=1)
        errors[name] = np.concatenate([np.abs(accuracies - truth), _misplaced(accuracies, truth)])
    scale = np.maximum(errors[model].mean(axis=1, keepdims=True), 1e-12)
    gains = ((errors[model] - errors["mirt"]) / scale).mean(axis=0)
    return float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains))


def _misplaced(accuracies: Array, truth: Array) -> Array:
    """Return the share of other subjects that each estimate is on the wrong side of, ties as half, shape (b, S)."""
    order = np.sign(truth[:, None] - truth)
    estimated = np.sign(accuracies[:, :, None] - accuracies[:, None, :])
    pairs = np.maximum(np.abs(order).sum(axis=1), 1.0)
    return np.asarray((np.abs(order) - order * estimated).sum(axis=2) / (2.0 * pairs))


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
    """Return the first model of one dimension within a standard error of their smallest loss."""
    best = means[_best(means)]
    return next(model for model, loss in means.items() if loss - best <= errors[model])
