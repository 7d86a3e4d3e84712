"""Classification by ability: whether a subject lies above or below a cut score, item by item.

Everything here assumes that the bank's model holds for the subject: its answers are independent given its ability, with
the bank's predicted scores. The error rates are therefore only as good as the bank. The tests in `inference` assume
random draws alone. A gate should use them where they can decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints

#: Half-width of the indifference region in logits: a quarter of the calibration subjects' standard deviation.  The
#: literature uses .1 to .3; half the width needs up to four times the items.
INDIFFERENCE = 0.25

#: Growth factor of the grid of abilities on each side of the cut for `glr` and `mixture`: distances from the region's
#: opposite end, up to `FARTHEST` logits.  Where a ratio reaches its bound b, the curvature of the log-likelihood is
#: 2 b / distance^2.  The grid therefore misses the maximum by at most b (0.1 / 2)^2, a quarter of a percent of b.
GROWTH = 1.1
FARTHEST = 4.0


@dataclass(frozen=True, slots=True)
class Classification:
    """Classification of S subjects.

    Args:
        side: Shape (S,). 1 above the cut, -1 below it, 0 undecided.
        at: Shape (S,). Number of administrations at the decision; all of them for an undecided subject.
    """

    side: Ints
    at: Ints


def wald_bounds(confidence: float = 0.95) -> tuple[float, float]:
    """Return the bounds of the log likelihood ratio, log(b / (1 - a)) and log((1 - b) / a), a = b = 1 - confidence.

    Wald (1945). Each error is at most ``a / (1 - a)``, and the two together at most 2a. They are smaller in practice,
    since the ratio jumps past its bound.
    """
    upper = math.log(confidence / (1.0 - confidence))
    return -upper, upper


def likelihood_ratio(
    scores: Array,
    A: Array,
    d: Array,
    c: Array | None,
    cut: float,
    *,
    indifference: float = INDIFFERENCE,
    method: Literal["sprt", "glr", "mixture"] = "sprt",
) -> Array:
    """Return the running log likelihood ratio of general ability above the cut to below it, shape (S, t).

    Items may be chosen by the answers so far, since the choice cancels in a ratio.

    ``sprt``: the sequential probability ratio test (Wald 1945; Reckase 1983; Eggen 1999), ``log L(cut + indifference) -
    log L(cut - indifference)``. In one dimension the expected ratio does not grow at any ability up to the region's
    lower end, for any choice of items. The error rates of `wald_bounds` therefore hold for all these abilities, and
    likewise above the region. Within the region no error rate holds.

    ``glr``: the generalised ratio (Thompson 2009; Bartroff, Finkelman & Lai 2008), with the most likely ability on each
    side, at or beyond the region's ends, in place of the ends. A subject far from the cut is classified sooner. Wald's
    bounds do not hold for it, since it takes the best of many ratios. In simulations at the region's ends it erred
    about twice as often as they state. Bartroff and others simulate bounds for each test.

    ``mixture``: the likelihood of the side that leads, averaged over its abilities (Wald 1945; Robbins 1970) with half
    of the weight at the region's end, against the most likely ability of the other side. It decides sooner than
    ``sprt`` far from the cut, and the bounds hold as they do for ``sprt``. The ratio is 0 while neither side leads.

    With D > 1 the cut is on the first dimension. The others are integrated out under their standard normal calibration
    distribution, by Laplace's method. The error rates then hold on average over subjects of that general ability, not
    for each profile. With the others fixed at the mean, 0, an item of another dimension would count as evidence on this
    one.

    Scores in (0, 1) have the log likelihood ``r log p + (1 - r) log(1 - p)``. If p is their mean, the bounds hold for
    them too, since the ratio is convex in r.

    Args:
        scores: Shape (S, t). In [0, 1], in the order of the administrations. NaN marks a missing score, which adds
            nothing; it must not depend on the score that the answer would have had.
        A: Shape (S, t, D).
        d: Shape (S, t).
        c: Shape (S, t). Parameters of the administered items, see `ItemBank`.
        cut: Cut score, in logits on the bank's scale.
        indifference: Half-width, in logits, of the region about the cut where either answer is accepted.
    """
    run = _running if A.shape[-1] == 1 else _running_marginal
    width = 2.0 * indifference
    if method == "sprt":
        upper, lower = run(np.array([cut + indifference, cut - indifference]), scores, A, d, c)
        return np.asarray(upper - lower)
    steps = max(1, math.ceil(math.log(FARTHEST / width) / math.log(GROWTH)))
    distances: Array = width * np.power(GROWTH, np.arange(steps + 1.0))
    above = run(cut - indifference + distances, scores, A, d, c)
    below = run(cut + indifference - distances, scores, A, d, c)
    best_above = above.max(axis=0)
    best_below = below.max(axis=0)
    if method == "glr":
        return np.asarray(best_above - best_below)
    # never both above 0
    lead = _averaged(above) - best_below
    lag = _averaged(below) - best_above
    return np.asarray(np.maximum(lead, 0.0) - np.maximum(lag, 0.0))


def _averaged(heights: Array) -> Array:
    """Return the log of the mean likelihood over G abilities, from shape (G, S, t) to (S, t).

    The first ability has half of the weight.
    """
    weights = np.full(len(heights), 0.5 / (len(heights) - 1))
    weights[0] = 0.5
    top = heights.max(axis=0)
    return np.asarray(top + np.log(np.tensordot(weights, np.exp(heights - top), axes=1)))


def _running(points: Array, scores: Array, A: Array, d: Array, c: Array | None) -> Array:
    """Return the log-likelihood of the answers so far at abilities (G,) in one dimension, shape (G, S, t)."""
    z = A[..., 0] * points[:, None, None] + d
    # `log_likelihood` sums over a row, and the sum is needed after each answer: one answer per row
    rows = [np.broadcast_to(x, z.shape).reshape(-1, 1) for x in (scores, 0.0 if c is None else c)]
    answer_terms = irt.log_likelihood(rows[0], z.reshape(-1, 1), None if c is None else rows[1])
    return np.asarray(answer_terms.reshape(z.shape).cumsum(axis=-1))


def _running_marginal(points: Array, scores: Array, A: Array, d: Array, c: Array | None) -> Array:
    """Return the log-likelihood at general abilities (G,) with the other dimensions integrated out, shape (G, S, t)."""
    times, (subjects, t) = len(points), scores.shape
    # the estimator's rows are all pairs of an ability and a subject
    d = (d + A[..., 0] * points[:, None, None]).reshape(times * subjects, t)
    scores = np.tile(scores, (times, 1))
    others = np.tile(A[..., 1:], (times, 1, 1))
    if c is None:
        c = None
    else:
        c = np.tile(c, (times, 1))
    estimator = MAP()
    modes = estimator.prior(len(scores), others.shape[-1])
    out = np.empty(scores.shape)
    for k in range(1, t + 1):
        guess = None if c is None else c[:, :k]
        modes = estimator.estimate(scores[:, :k], others[:, :k], d[:, :k], guess, modes)
        z = irt.logits(modes.theta, others[:, :k], d[:, :k])
        height = irt.log_likelihood(scores[:, :k], z, guess) - 0.5 * (modes.theta**2).sum(axis=1)
        out[:, k - 1] = height + 0.5 * np.linalg.slogdet(modes.covariance)[1]
    return out.reshape(times, subjects, t)


def classify(ratio: Array, confidence: float = 0.95) -> Classification:
    """Return the side of the cut where each subject's ratio first crosses one of `wald_bounds`.

    Args:
        ratio: Shape (S, t). See `likelihood_ratio`.
        confidence: One less either error, in (0.5, 1).

    Raises:
        ValueError: The confidence is not in (0.5, 1).
    """
    lower, upper = wald_bounds(confidence)
    crossed = (ratio >= upper) | (ratio <= lower)
    decided = crossed.any(axis=1)
    if ratio.shape[1]:
        first = crossed.argmax(axis=1)
    else:
        first = np.zeros(len(ratio), dtype=np.int64)
    side = np.zeros(len(ratio), dtype=np.int64)
    rows = np.flatnonzero(decided)
    side[rows] = np.where(ratio[rows, first[rows]] > 0, 1, -1)
    return Classification(side, np.where(decided, first + 1, ratio.shape[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A cut score on a bank's general ability, tested by the ``mixture`` ratio with errors of 1 - confidence."""

    bank: ItemBank
    cut: float
    confidence: float = 0.95

    def classify(self, log: DesignLog) -> Classification:
        """Classify the subjects of a log, whose arrays have shape (S, t)."""
        bank, items = self.bank, log.items
        c = None if bank.asymptote is None else bank.asymptote[items]
        ratio = likelihood_ratio(
            log.scores, bank.discrimination[items], bank.intercept[items], c, self.cut, method="mixture"
        )
        return classify(ratio, self.confidence)
