"""Tests for judges that are constant, reverse the order, or favour themselves or some others.

A judge whose scale is surely below half of the panel's is reversed if its scale is surely below 0, else constant.

Each judge's scores are regressed on the qualities of the answers. Standard errors come from its own residuals,
clustered by contestant, so lasting likings do not count as evidence. All tests of one kind on a panel share one level:
of panels of honest judges, at most one in twenty has a flag of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.types import Array, Bools

#: Level of all tests of one kind on a panel.
LEVEL = 0.05
#: A judge is constant if the upper bound of its scale is below this share of the panel's.
SHARE = 0.5
#: Variance of rounding to a whole number, the lower limit of residual variances.
ROUNDING = 1.0 / 12.0


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """Evidence against each judge.

    Args:
        slopes, slope_bounds: Shape (n,). Points per point of the panel's median judge, below 0 if the judge reverses
            the order, and its upper bound; NaN with too few scores.
        excess: Shape (n,). Mean points by which a judge scores itself above others of the same quality; NaN without
            scores of itself, or with too few of others.
        p_values: Shape (n,). One-sided p-values of the excess; NaN likewise.
        partiality: Shape (n,). Variance of a judge's lasting likings and noise, divided by its value with the likings
            of the median judge.
        constant, reversed, self_favouring, partial: Shape (n,). A judge is constant or reversed, not both. Partial
            judges have far stronger likings than the others, as in a group whose members favour each other.
    """

    slopes: Array
    slope_bounds: Array
    excess: Array
    p_values: Array
    partiality: Array
    constant: Bools
    reversed: Bools
    self_favouring: Bools
    partial: Bools

    @property
    def silent(self) -> Bools:
        """Judges whose scores must not count: constant or reversed."""
        return np.asarray(self.constant | self.reversed)

    def words(self, judge: int) -> tuple[str, ...]:
        """Return the names of one judge's flags."""
        by_name = {
            "constant": self.constant,
            "reversed": self.reversed,
            "self-favouring": self.self_favouring,
            "partial": self.partial,
        }
        return tuple(name for name, flagged in by_name.items() if flagged[judge])


def flags(y: Array, m: Array, scores: Array, x: Array, self_scores: Array, errors: Array) -> Flags:
    """Test every judge.

    Args:
        y: Shape (T, n, n). Scores by judge and contestant minus the mean of their row; 0 where missing and on the
            diagonal.
        m: Shape (T, n, n). 1 for a present score, else 0.
        scores: Shape (T, n, n). Original scores; 0 where missing.
        x: Shape (T, n). Quality of each answer.
        self_scores: Shape (T, n). Each judge's score of itself; NaN where missing.
        errors: Shape (n,). Standard errors of the contestants' qualities.
    """
    from scipy.special import fdtrc, stdtr, stdtrit

    n = y.shape[1]
    count = m.sum(axis=2)
    share = m / np.maximum(count, 1.0)[..., None]
    middle = (share * x[:, None, :]).sum(axis=2)  # mean quality of the answers in a row, (T, n)
    deviation = m * (x[:, None, :] - middle[..., None])
    squares = (deviation**2).sum(axis=(0, 2))
    contestants = m.any(axis=0).sum(axis=1)
    freedom = np.maximum(contestants - 2, 0)
    able = (freedom > 0) & (squares > 1e-9)
    safe = np.where(able, squares, 1.0)
    slope = np.where(able, (deviation * y).sum(axis=(0, 2)) / safe, np.nan)

    rest = y - np.nan_to_num(slope)[:, None] * deviation
    clusters = ((deviation * rest).sum(axis=0) ** 2).sum(axis=1) * contestants / np.maximum(freedom, 1)
    error = np.sqrt(np.maximum(clusters / safe, ROUNDING) / safe)
    quantile = stdtrit(np.maximum(freedom, 1), 1.0 - LEVEL / n)
    unit = 1.0
    if able.any():
        unit = float(np.median(slope[able]))
    if unit <= 0:
        unit = 1.0
    slopes = slope / unit
    bound = np.where(able, (slope + quantile * error) / unit, np.nan)
    # of a judge whose scale is surely too small, one test without correction tells a reversed from a constant one
    silent = np.nan_to_num(bound, nan=np.inf) < SHARE
    backwards = silent & (np.nan_to_num(slope + stdtrit(np.maximum(freedom, 1), 1.0 - LEVEL) * error) < 0.0)

    times = m.sum(axis=0)  # judge by contestant
    means = rest.sum(axis=0) / np.maximum(times, 1.0)
    rounds = np.isfinite(self_scores) & (count > 0)
    asked = np.maximum(rounds.sum(axis=0), 1)
    expected = (share * scores).sum(axis=2) + np.nan_to_num(slope) * (x - middle)
    excess = np.where(rounds, np.nan_to_num(self_scores) - expected, 0.0).sum(axis=0) / asked
    strength = (means**2).sum(axis=1) / np.maximum(freedom, 1)
    likings = np.maximum(strength, ROUNDING / asked)
    spread = np.sqrt(likings * (1.0 + 1.0 / np.maximum(contestants, 1)) + (np.nan_to_num(slope) * errors) ** 2)
    judged = able & rounds.any(axis=0)
    p_values = np.where(judged, stdtr(np.maximum(freedom, 1), -excess / spread), np.nan)

    within = (rest**2).sum(axis=(0, 2)) - (times * means**2).sum(axis=1)
    freedom_within = times.sum(axis=1) - (count > 0).sum(axis=0) - contestants
    noise = np.maximum(within / np.maximum(freedom_within, 1), ROUNDING) / np.maximum(times.sum(axis=1) / n, 1.0)
    usual = 0.0
    if able.any():
        usual = max(float(np.median((strength - noise)[able])), 0.0)
    partiality = np.where(able & (freedom_within > 0), strength / (noise + usual), np.nan)
    partial = fdtrc(np.maximum(freedom, 1), np.maximum(freedom * (n - 1) / 2, 1), np.nan_to_num(partiality)) < LEVEL / n
    return Flags(
        slopes,
        bound,
        np.where(judged, excess, np.nan),
        p_values,
        partiality,
        silent & ~backwards,
        backwards,
        np.nan_to_num(p_values, nan=1.0) < LEVEL / n,
        partial,
    )
