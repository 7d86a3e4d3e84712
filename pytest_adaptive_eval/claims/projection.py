"""Expected accuracy over the whole bank, from the administered items."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from pytest_adaptive_eval.inference.interval import ABILITY_BOUND, Interval
from pytest_adaptive_eval.irt.estimation import Estimate
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints


def expected_accuracy(bank: ItemBank, theta: Array) -> Array:
    """Return the test characteristic curve: the mean predicted score over the bank at theta (S, D), shape (S,)."""
    return np.asarray(bank.probability(theta).mean(axis=1))


def accuracy_at(bank: ItemBank, ability: float) -> float:
    """Return the expected accuracy at a general ability.

    It is the first dimension; the others are at the calibration subjects' mean, 0.
    """
    theta = np.zeros((1, bank.dimensions))
    theta[0, 0] = ability
    return float(expected_accuracy(bank, theta)[0])


def ability_at(bank: ItemBank, accuracy: float, bound: float = ABILITY_BOUND) -> float:
    """Return the general ability in logits at which the bank's expected accuracy is `accuracy`, within +-`bound`.

    Return the nearer bound for an accuracy outside the range of the test characteristic curve. The curve is inverted by
    bisection, since importing an optimiser costs as much as an interview.
    """
    low = -bound
    high = bound
    if accuracy_at(bank, low) >= accuracy:
        return low
    if accuracy_at(bank, high) <= accuracy:
        return high
    while high - low > 1e-6:
        middle = (low + high) / 2
        if accuracy_at(bank, middle) < accuracy:
            low, high = middle, high
        else:
            low, high = low, middle
    return (low + high) / 2


def project(bank: ItemBank, estimate: Estimate, items: Ints, scores: Array, counts: Ints) -> tuple[Array, Array]:
    """Return the p-IRT projection of every subject (Maia Polo et al. 2024), and its standard error.

    Administered items count with their scores, all others with their predicted scores.

    Args:
        estimate: Abilities of S subjects, with their covariance.
        items: Shape (S, t). Positions in the bank of the administered items, in order.
        scores: Shape (S, t). In [0, 1]; NaN marks a missing score.
        counts: Shape (S,). How many of a subject's administrations count, from the first.

    Returns:
        Shape (S,). The error joins the errors of the ability and of the answers to unadministered items, and assumes
        that the bank's model is right.
    """
    p = bank.probability(estimate.theta)
    n = p.shape[1]
    asked = np.arange(items.shape[1]) < counts[:, None]
    scored = asked & ~np.isnan(scores)
    rest = np.ones(p.shape, dtype=bool)
    rows = np.nonzero(scored)[0]
    rest[rows, items[scored]] = False
    observed = np.where(scored, scores, 0.0).sum(axis=1)
    accuracy = (observed + np.where(rest, p, 0.0).sum(axis=1)) / n
    w = np.where(rest, p * (1.0 - p), 0.0)
    c = bank.asymptote
    if c is None:
        steepness = w
    else:
        steepness = np.where(rest, (p - c) * (1.0 - p) / (1.0 - c), 0.0)
    slope = steepness @ bank.discrimination
    variance = (slope[:, None] @ estimate.covariance @ slope[:, :, None])[:, 0, 0] + w.sum(axis=1)
    return accuracy, np.sqrt(variance) / n


def model_based(accuracy: float, standard_error: float, confidence: float = 0.95) -> Interval:
    """Return a projection, see `project`, with the interval under the bank's model.

    Reports show it; no gate uses it, since it assumes that the bank is right. On real benchmarks, nominal 95 %
    intervals covered between 24 and 90 %.
    """
    half = NormalDist().inv_cdf(confidence) * standard_error
    return Interval(accuracy, max(0.0, accuracy - half), min(1.0, accuracy + half), confidence, "model-based")
