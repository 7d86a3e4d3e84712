"""Gates on peer assessments, simulated: how often they pass or fail what they must not.

``python -m benchmarks.peer_gates`` draws panels of judges: qualities of sd .3, answers that vary by .3 about them,
tasks of which some get better scores (sd .3), judges with biases of sd .3 and noise of sd .7; scores are rounded to 1
to 5. The first model is the candidate. Of gates at 95 %, the shares of PASS and FAIL are printed

- of ``score.at_least`` with the threshold right at what the trusted judges give the candidate on average over all tasks
  that there could be,
- of ``score.rank_within(k)`` for a candidate that shares rank k with the next one, and of ``score.above`` the next one;
  k is half of the panel, or ``--within``.

In brackets are the shares by normal quantiles, and by the share of joint draws in which the rank holds. Behind them are
the shares of PASS and FAIL away from the threshold, likewise: of ``at_least`` with thresholds .3 lower and higher, and
of ``rank_within`` for candidates that are .3 better and worse. They come from a quarter of the panels.

In one half of the rows all judges are honest. In the others the last model is a bad judge, as named: ``constant`` gives
4 always, ``mirror`` 6 less what an honest judge gives, and ``friend`` gives the next one a point more. ``--equals`` has
the candidate share its quality with k others, not with one.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pytest_adaptive_eval.extensions.studies.peers.reliability import Reliability, fit_reliability
from pytest_adaptive_eval.gates.quantities import Measured
from pytest_adaptive_eval.inference.ranks import joint_ranks

Array = NDArray[np.float64]
AWAY, CONFIDENCE = 0.3, 0.95
QUALITY, ANSWERS, TASKS, BIASES, NOISE = 0.3, 0.3, 0.3, 0.3, 0.7


@dataclass(frozen=True)
class Panel:
    """A drawn panel: qualities, the candidate first and its equal next, and what the judgments are made of."""

    quality: Array
    levels: Array
    rest: Array
    bad: str

    @classmethod
    def drawn(cls, n: int, rounds: int, k: int, equals: int, bad: str, rng: np.random.Generator) -> Panel:
        """Draw a panel whose candidate shares rank `k` with the next ones, `equals` models in all."""
        quality = np.sort(rng.normal(0.0, QUALITY, n))[::-1]
        first = k + 1 - equals
        quality[first : k + 1] = quality[first]
        quality = np.concatenate([quality[[k - 1, k]], np.delete(quality, [k - 1, k])])
        levels = 3.5 + rng.normal(0.0, BIASES, n)
        rest = rng.normal(0.0, TASKS, rounds)[:, None, None] + rng.normal(0.0, ANSWERS, (rounds, 1, n))
        return cls(quality, levels, rest + rng.normal(0.0, NOISE, (rounds, n, n)), bad)

    def judgments(self, more: float = 0.0) -> Array:
        """Judgments, if the candidate is better by so much."""
        quality = self.quality.copy()
        quality[0] += more
        scores = quality + self.levels[:, None] + self.rest
        scores[:, -1, 1] += float(self.bad == "friend")
        scores = np.clip(np.rint(scores), 1.0, 5.0)
        if self.bad == "constant":
            scores[:, -1] = 4.0
        if self.bad == "mirror":
            scores[:, -1] = 6.0 - scores[:, -1]
        return np.asarray(scores)

    def average(self, trusted: NDArray[np.bool_]) -> float:
        """What these judges give the candidate on average."""
        spread = (ANSWERS**2 + TASKS**2 + NOISE**2) ** 0.5
        means = self.levels + self.quality[0]
        given = 5.0 - ndtr((np.arange(1.5, 5.0)[:, None] - means) / spread).sum(axis=0)
        given[-1] = {"constant": 4.0, "mirror": 6.0 - given[-1]}.get(self.bad, given[-1])
        return float(given[trusted].mean())


def at_least(fit: Reliability, truth: float) -> list[list[bool]]:
    """Whether bounds pass and fail a candidate, by Student's and by normal quantiles."""
    error = float(fit.covariance[0, 0] + fit.level_error**2) ** 0.5
    bounds, quality = measured(fit).interval(0, CONFIDENCE), float(fit.qualities[0])
    half = NormalDist().inv_cdf(CONFIDENCE) * error
    return [[bounds.low >= truth, bounds.high < truth], [quality - half >= truth, quality + half < truth]]


def rank_within(fit: Reliability, k: int) -> list[list[bool]]:
    """Whether ranks pass and fail a candidate, by comparisons and by draws."""
    found = measured(fit)
    share = float(joint_ranks(fit.qualities, fit.covariance)[0].probabilities[:k].sum())
    by_pairs = [found.within(0, k) >= CONFIDENCE, found.beyond(0, k) >= CONFIDENCE]
    return [by_pairs, [share >= CONFIDENCE, share <= 1.0 - CONFIDENCE]]


def measured(fit: Reliability) -> Measured:
    """The score as gates see it."""
    covariance = fit.covariance + fit.level_error**2
    return Measured(fit.qualities, covariance, freedom=fit.freedom, value_freedom=fit.value_freedom)


def show(n: int, rounds: int, panels: int, bad: str, equal: bool, k: int) -> None:
    """One line."""
    at, ranks, above, away, ranks_away = [], [], [], [], []
    for panel in range(panels):
        drawn = Panel.drawn(n, rounds, k, k + 1 if equal else 2, bad, np.random.default_rng([panel, n, rounds]))
        fit = fit_reliability(drawn.judgments())
        if not np.isfinite(fit.qualities).all():
            continue
        truth = drawn.average(~fit.flags.silent & (fit.scales > 0))
        at.append(at_least(fit, truth))
        ranks.append(rank_within(fit, k))
        above.append(measured(fit).above(0, 1) >= CONFIDENCE)
        if panel % 4 == 0:
            lower, higher = (np.array(at_least(fit, truth + change)) for change in (-AWAY, AWAY))
            away.append(np.column_stack([lower[:, 0], higher[:, 1]]))
            better, worse = (np.array(rank_within(fit_reliability(drawn.judgments(c)), k)) for c in (AWAY, -AWAY))
            ranks_away.append(np.column_stack([better[:, 0], worse[:, 1]]))
    print(
        f"{n:2} models, {rounds:2} rounds, {bad or 'honest'}: at_least {words(at)}, {words(away)} away; rank_within "
        f"{words(ranks)}, {words(ranks_away)} away; above {np.mean(above):.3f}; {len(at)} panels",
        flush=True,
    )


def words(found: list[list[list[bool]]] | list[NDArray[np.bool_]]) -> str:
    """Shares of PASS and FAIL, with the other rule's in brackets."""
    rule, other = (f"{passed:.3f} / {failed:.3f}" for passed, failed in np.mean(found, axis=0))
    return f"{rule} ({other})"


def main() -> None:
    """Every size, or the ones that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", type=int, default=1000)
    parser.add_argument("--models", type=int, nargs="+", default=[3, 8, 12, 20])
    parser.add_argument("--rounds", type=int, nargs="+", default=[5, 10, 40])
    parser.add_argument("--judges", nargs="+", default=["honest", "constant", "mirror", "friend"])
    parser.add_argument("--equals", action="store_true")
    parser.add_argument("--within", type=int, default=0)
    options = parser.parse_args()
    for judges, n, rounds in product(options.judges, options.models, options.rounds):
        bad = "" if judges == "honest" else judges
        show(n, rounds, options.panels, bad, options.equals, options.within or n // 2)


if __name__ == "__main__":
    main()
