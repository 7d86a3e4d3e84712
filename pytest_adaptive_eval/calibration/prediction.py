"""Predict scores from the responses' own covariance, and estimate accuracies by that and by uniform draws.

A subject's scores are ``mu + Z' a + e``: mu are the weighted item means, and a ~ N(0, I).  The rows of Z are the
centred scores of the calibration subjects times the roots of their weights, a shift of the subject's own, and a slope
along the item means.  Item noise e has variance ``noise * max(mu (1 - mu), FLOOR)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.families import family_weights
from pytest_adaptive_eval.calibration.replay import folds
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["Assisted", "Predictor", "Setting", "choose_setting", "fit_assisted"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Smallest variance of a score.
FLOOR = 0.02
#: Values to choose from: item noise, standard deviation of the shift, that of the slope in units of the shift's, and
#: weight of the difference estimator.
NOISES, SHIFTS, SLOPES = (0.5, 1.0, 2.0, 4.0), (0.05, 0.2), (0.0, 1.0)
DESIGN_WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
#: Folds of families by which the setting is chosen.
FOLDS = 4


@dataclass(frozen=True, slots=True)
class Setting:
    """Constants of a `Predictor`, and the weight of the difference estimator; see `choose_setting`."""

    noise: float = 1.0
    shift: float = 0.05
    slope: float = 0.0
    design_weight: float = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Predictor of unadministered scores.

    Parameters
    ----------
    mean : array, shape (n,)
    loadings : array, shape (m, n)
        Z of the module's description.
    noise : array, shape (n,)
        Variance of each item's own part.
    """

    mean: Array
    loadings: Array
    noise: Array

    @classmethod
    def fit(cls, scores: Array, weights: Array, setting: Setting) -> Predictor:
        """Return the predictor of scores (S, n), NaN where missing, with weights (S,) of the subjects."""
        w = weights / weights.sum()
        observed = ~np.isnan(scores)
        known = np.maximum((w[:, None] * observed).sum(axis=0), 1e-12)
        mean = (w[:, None] * np.nan_to_num(scores)).sum(axis=0) / known
        centred = np.where(observed, scores - mean, 0.0) * np.sqrt(w)[:, None]
        level = (mean - mean.mean()) / max(float(mean.std()), 1e-9)
        own = setting.shift * np.stack([np.ones_like(mean), setting.slope * level])
        noise = setting.noise * np.maximum(mean * (1.0 - mean), FLOOR)
        return cls(mean, np.concatenate([centred, own]), noise)

    def form(self, count: int) -> Ints:
        """Return `count` items, each of which most lowers the variance of the bank's mean score."""
        Z, n = self.loadings, len(self.mean)
        spread = self.noise + (Z**2).sum(axis=0)  # variance of each score
        shared = Z.T @ Z.mean(axis=1) + self.noise / n  # covariance with the bank's mean
        inverse = np.eye(len(Z))
        order = np.empty(count, dtype=np.int64)
        free = np.ones(n, dtype=bool)
        for k in range(count):
            item = int(np.where(free, shared**2 / spread, -1.0).argmax())
            order[k], free[item] = item, False
            direction, total = inverse @ Z[:, item], spread[item]
            along = Z.T @ direction
            inverse -= np.outer(direction, direction) / total
            shared = shared - along * (shared[item] / total)
            spread = np.maximum(spread - along**2 / total, self.noise)
        return order

    def predict(self, items: Ints, scores: Array) -> Array:
        """Return predicted scores (n,) of one subject from the scores of `items`, both of shape (k,), without NaN."""
        if not len(items):
            return self.mean
        Z = self.loadings[:, items]
        rest = scores - self.mean[items]
        if len(items) < len(Z):
            a = Z @ np.linalg.solve(Z.T @ Z + np.diag(self.noise[items]), rest)
        else:
            scaled = Z / self.noise[items]
            a = np.linalg.solve(np.eye(len(Z)) + scaled @ Z.T, scaled @ rest)
        return np.clip(self.mean + self.loadings.T @ a, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Assisted:
    """Estimator of accuracies from a fixed form and uniform draws from the other items.

    Parameters
    ----------
    predictor : Predictor
    form : array of int
        Items that every subject gets first.
    design_weight : float
        Weight, in [0, 1], of the difference estimator: predictions from the form alone, corrected by the mean error of
        the uniform draws, which is unbiased however wrong the predictions are.
    """

    predictor: Predictor
    form: Ints
    design_weight: float

    def draw(self, count: int, rng: np.random.Generator) -> Ints:
        """Return the items of one interview: the form, then uniform draws."""
        rest = np.setdiff1d(np.arange(len(self.predictor.mean)), self.form)
        return np.concatenate([self.form, rng.permutation(rest)[: count - len(self.form)]])

    def parts(self, items: Ints, scores: Array) -> tuple[float, float]:
        """Return one subject's estimate by the model and by the difference, from an interview of `draw`.

        Missing scores, NaN, are left out; without uniform draws both are the model's.
        """
        n = len(self.predictor.mean)
        scored = ~np.isnan(scores)
        uniform = scored & (np.arange(len(items)) >= len(self.form))
        by_model = self.predictor.predict(items[scored], scores[scored])
        by_model[items[scored]] = scores[scored]
        model = float(by_model.mean())
        if not uniform.any():
            return model, model
        first = scored & ~uniform
        by_form = self.predictor.predict(items[first], scores[first]).copy()
        correction = float((scores[uniform] - by_form[items[uniform]]).mean())
        by_form[items[first]] = scores[first]
        outside = n - int(first.sum())
        return model, float(by_form.mean()) + correction * outside / n

    def estimate(self, items: Ints, scores: Array) -> float:
        """Return one subject's estimated accuracy over the bank, in [0, 1]."""
        model, design = self.parts(items, scores)
        return float(np.clip(model + self.design_weight * (design - model), 0.0, 1.0))


def _grid() -> Iterator[Setting]:
    for noise, shift, slope in product(NOISES, SHIFTS, SLOPES):
        yield Setting(noise, shift, slope)


def choose_setting(responses: Responses, count: int, formed: int, seed: int = 0) -> Setting:
    """Return the setting with the smallest error of the accuracy in interviews of `count` items.

    The families of a fold are interviewed by a predictor of the others; each weighs as one subject.

    Parameters
    ----------
    responses : Responses
    count : int
        Items of an interview.
    formed : int
        How many of them are the form.
    seed : int
        Seed of the folds and draws.
    """
    scores, weights = responses.scores, family_weights(responses.families)
    fold = folds(responses.families, min(FOLDS, len(set(responses.families))), np.random.default_rng(seed))
    truth = np.nanmean(scores, axis=1)
    errors: dict[Setting, float] = {}
    for setting in _grid():
        parts = np.empty((len(scores), 2))
        for f in range(fold.max() + 1):
            learn = fold != f
            predictor = Predictor.fit(scores[learn], weights[learn], setting)
            assisted = Assisted(predictor, predictor.form(formed), 0.0)
            for s in np.flatnonzero(~learn):
                items = assisted.draw(count, np.random.default_rng([seed, int(s)]))
                parts[s] = assisted.parts(items, scores[s, items])
        for weight in DESIGN_WEIGHTS:
            error = np.abs(parts[:, 0] + weight * (parts[:, 1] - parts[:, 0]) - truth)
            chosen = Setting(setting.noise, setting.shift, setting.slope, weight)
            errors[chosen] = float(np.average(error, weights=weights))
    return min(errors, key=lambda setting: errors[setting])


def fit_assisted(responses: Responses, count: int, share: float = 0.5, seed: int = 0) -> Assisted:
    """Return the estimator for interviews of `count` items, a `share` of them the form.

    Parameters
    ----------
    responses : Responses
    count : int
    share : float
        Share of the form, in [0, 1]; with 1 all subjects get the same items, and nothing corrects the predictions.
    seed : int
    """
    formed = round(share * count)
    setting = choose_setting(responses, count, formed, seed)
    predictor = Predictor.fit(responses.scores, family_weights(responses.families), setting)
    return Assisted(predictor, predictor.form(formed), setting.design_weight)
