"""Person fit: agreement of one subject's answers with the bank's model.

A subject that guesses, that was trained on some of the items, or whose answers were graded with the wrong key also gets
an estimated ability. Its log-likelihood at that ability is then lower than the model predicts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pytest_adaptive_eval.types import Array, Bools, Ints

LEVEL = 0.01  #: One-sided level of `PersonFit.flag`: one fitting subject in a hundred is flagged.

#: Variance of the statistic, in squared logits, below which fit is not measurable: rounding of the projection alone
#: leaves 1e-25 if every item has the same predicted score.
LEAST_VARIANCE = 1e-9

#: Slopes of predictions that replace a model's for strange subjects, and the prior log-odds of the model's predictions
#: against each.  Equal predictions have even odds: of guessing and near-perfect subjects a model says nothing.
SLOPES, DOUBTS = (0.5, 0.25, 0.0, -0.8), (2.0, 2.0, 0.0, 2.0)
SUREST = 0.01  #: Least distance of such predictions from 0 and 1.


@dataclass(frozen=True, slots=True)
class PersonFit:
    """Fit of S subjects; low values are misfit.

    Args:
        statistic: Shape (S,). lz*, of mean 0 and variance 1 under the model; NaN where not measurable.
        skewness: Shape (S,). Third standardised moment of the statistic under the model; NaN where not measurable.
        scored: Shape (S,). Number of answers with a score.
    """

    statistic: Array
    skewness: Array
    scored: Ints

    @property
    def normal(self) -> Array:
        """Statistic without its skewness, shape (S,), standard normal under the model further into the tail.

        It is Pearson's type III distribution of that skewness (Molenaar & Hoijtink 1990), made normal by the cube root
        (Wilson & Hilferty 1931).
        """
        g = np.where(np.abs(self.skewness) < 1e-4, 1e-4, self.skewness)
        return np.asarray(6.0 / g * (np.cbrt(1.0 + 0.5 * g * self.statistic) - 1.0) + g / 6.0)

    @property
    def p_value(self) -> Array:
        """Probability, under the model, of a fit as low as this, shape (S,); NaN where not measurable."""
        return np.array([0.5 * math.erfc(-z / math.sqrt(2.0)) for z in self.normal.tolist()])

    def flag(self, level: float = LEVEL) -> Bools:
        """Return whether each subject's fit is too low at the one-sided `level`, shape (S,).

        A flag means that the ability is not reliable, without a cause. With few answers, the absence of a flag means
        little.
        """
        return np.asarray(self.normal < NormalDist().inv_cdf(level))


def lz_star(scores: Array, p: Array, A: Array, c: Array | None = None) -> PersonFit:
    """Return the standardised log-likelihood at an estimated ability, lz* (Snijders 2001).

    lz (Drasgow, Levine & Williams 1985) is the log-likelihood less its mean,
    ``sum w (r - p)`` with ``w = log(p / (1 - p))``, in units of its standard
    deviation.  At an estimated ability it is too near to 0, as the estimate has
    fitted part of the answers.  Snijders takes out of the weights what the
    estimate can fit: with the slope of the log-likelihood by ability,
    ``sum u (r - p)`` with ``u = A (p - c) / (p (1 - c))``, ::

        v = w - u B,    B = (sum p(1-p) u u')^-1 sum p(1-p) u w
        lz* = sum v (r - p) / sqrt(sum p(1-p) v^2)

    which is his formula written as a projection: u is his r_i and B his c_n, and the term r_0 of the prior is the value
    of ``-sum u (r - p)`` at a MAP (Magis, Raiche & Beland 2012), so it is omitted. As the derivative of the
    numerator by ability has mean 0, every estimate whose error falls as 1 / sqrt(t) may be used, MAP and EAP among them
    (Sinharay 2016); with more dimensions the projection is on the slopes by all of them.

    Adaptive choice moves the mean of lz* up, by about half of one over the denominator and dimension where every item
    is aimed at the estimate, as each answer then steers which items follow (van Krimpen-Stoop & Meijer 1999 saw it
    too). It is on the safe side: fitting subjects are flagged less often than the level says, and misfit needs more
    answers to show. In simulated interviews of subjects about 0 and about 2 logits over 600 items that fit, 40 to 120
    asked, the mean was 0.0 to 0.2 under the policy ``decide``, with 0.2 to 1.2 % flagged at 1 %, and 0.1 to 0.7 under
    ``estimate``, with 0.0 to 0.9 % flagged; the most in three dimensions. At -4 logits on items that can be guessed 2 %
    were flagged after 40 answers.

    Scores in (0, 1) count by ``r log p + (1 - r) log(1 - p)``. p(1-p) is the largest variance that they can have, so
    the test then flags too seldom, never too often.

    Args:
        scores: Shape (S, t). In [0, 1], NaN = unscored, which counts nothing.
        p: Shape (S, t). Probability of a right answer to each at the subject's final estimate, see `irt.probability`.
        A: Shape (S, t, D). Slopes of the items asked.
        c: Shape (S, t). Their guess floors; None means none.
    """
    # an answer predicted with certainty has no variance, and its weight would be infinite
    scored = ~np.isnan(scores)
    inside = np.clip(p, 1e-12, 1.0 - 1e-12)
    variance = np.where(scored, inside * (1.0 - inside), 0.0)
    residual = np.where(scored, scores - inside, 0.0)
    w = np.log(inside) - np.log1p(-inside)
    if c is None:
        u = A
    else:
        u = A * ((inside - c) / (inside * (1.0 - c)))[..., None]
    weighted = (variance[..., None] * u).swapaxes(1, 2)
    # the pseudo-inverse, as the answers may leave a dimension undetermined
    fitted = np.linalg.pinv(weighted @ u, rcond=1e-10, hermitian=True) @ (weighted @ w[..., None])
    v = w - (u @ fitted)[..., 0]
    spread = (variance * v**2).sum(axis=1)
    spread = np.where(spread > LEAST_VARIANCE, spread, np.nan)
    third = (variance * (1.0 - 2.0 * inside) * v**3).sum(axis=1)
    return PersonFit((v * residual).sum(axis=1) / np.sqrt(spread), third / spread**1.5, scored.sum(axis=1))


def refitted(predictions: Array, items: Ints, scores: Array) -> Array:
    """Return predicted scores that fit strange subjects too: shrunk to the mean, or reversed, where the answers say so.

    Candidates are the model's predictions p, and ``mean + b (p - centre)`` for each b of `SLOPES`, with the mean score
    and the mean prediction of the answers, both with half a right and half a wrong answer added (Krichevsky and
    Trofimov 1981). They are mixed by likelihood. None is nearer to 0 or 1 than p or `SUREST`.

    Args:
        predictions: Shape (S, n). Predicted scores p by the model.
        items, scores: Shape (S, t). Administered items, and their scores, NaN if missing.
    """
    scored = ~np.isnan(scores)
    asked = np.take_along_axis(predictions, items, axis=1)
    right = np.where(scored, scores, 0.0)
    count = scored.sum(axis=1, keepdims=True) + 1.0  # with half a right and half a wrong answer added
    mean = (right.sum(axis=1, keepdims=True) + 0.5) / count
    centre = (np.where(scored, asked, 0.0).sum(axis=1, keepdims=True) + 0.5) / count
    slopes = np.array([1.0, *SLOPES])[:, None, None]
    doubts = np.array([0.0, *DOUBTS])[:, None, None]
    constants = np.where(slopes == 1.0, 0.0, mean - slopes * centre)
    p = np.clip(constants + slopes * asked, SUREST, 1.0 - SUREST)
    terms = np.where(scored, right * np.log(p) + (1.0 - right) * np.log1p(-p), 0.0)
    likelihoods = terms.sum(axis=2, keepdims=True) - doubts
    weights = np.exp(likelihoods - likelihoods.max(axis=0))
    weights /= weights.sum(axis=0)
    mixed = (weights * constants).sum(axis=0) + (weights * slopes).sum(axis=0) * predictions
    return np.asarray(np.clip(mixed, np.minimum(predictions, SUREST), np.maximum(predictions, 1.0 - SUREST)))
