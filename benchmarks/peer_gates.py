"""Gates on peer assessments, simulated: how often they pass or fail what they must not.

``python benchmarks/peer_gates.py`` draws panels of honest judges: qualities of sd .3, answers that vary by .3 about
them, tasks of which some get better scores (sd .3), judges with biases of sd .3 and noise of sd .7; scores are rounded
to 1 to 5. The first model is the candidate. Printed are, of gates at 95 %:

- false PASS and false FAIL of ``score.at_least`` with the threshold right at what the panel gives the candidate on
  average over all tasks that there could be, and in brackets what both would be if the tasks drawn were all there are;
- false PASS of ``score.above`` against a second model of the very same quality, and of ``score.rank_within(k)`` for a
  candidate that shares rank k with the next one, k half of the panel.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.extensions.studies.peers.reliability import fit_reliability
from pytest_adaptive_eval.gates.quantities import Measured

Array = NDArray[np.float64]
SIZES = ((3, 3), (3, 10), (3, 40), (4, 5), (5, 10), (8, 5), (8, 10), (8, 40), (12, 40))


def draw(n: int, rounds: int, equal: int, rng: np.random.Generator) -> tuple[float, Array]:
    """What the candidate gets on average, and judgments; model `equal`, in order of quality, is as good as it."""
    quality = np.sort(rng.normal(0.0, 0.3, n))[::-1]
    quality[equal] = quality[equal - 1]
    order = np.concatenate([[equal - 1, equal], np.delete(np.arange(n), [equal - 1, equal])])
    quality = quality[order]  # the candidate first, then its equal
    levels = 3.5 + rng.normal(0.0, 0.3, n)
    answers = quality + rng.normal(0.0, 0.3, (rounds, n))
    scores = levels[:, None] + rng.normal(0.0, 0.3, rounds)[:, None, None] + answers[:, None, :]
    scores = scores + rng.normal(0.0, 0.7, scores.shape)
    return float(levels.mean() + quality[0]), np.clip(np.rint(scores), 1.0, 5.0)


def show(n: int, rounds: int, panels: int) -> None:
    """One line."""
    found = []
    k = max(n // 2, 1)
    for panel in range(panels):
        truth, scores = draw(n, rounds, k, np.random.default_rng([panel, n, rounds]))
        fit = fit_reliability(scores)
        if not np.isfinite(fit.qualities).all():
            continue
        both = [Measured(fit.qualities, fit.covariance + error**2) for error in (fit.level_error, 0.0)]
        bounds = [one.interval(0) for one in both]
        found.append(
            [
                *(side for one in bounds for side in (one.low > truth, one.high < truth)),
                both[0].above(0, 1) >= 0.95,
                both[0].ranks(0)[0].probabilities[:k].sum() >= 0.95,
            ]
        )
    rates = np.mean(found, axis=0)
    print(
        f"{n:2} models, {rounds:2} rounds: at_least {rates[0]:.3f} / {rates[1]:.3f} ({rates[2]:.3f} / {rates[3]:.3f}), "
        f"above {rates[4]:.3f}, rank_within {rates[5]:.3f}; {len(found)} panels",
        flush=True,
    )


def main() -> None:
    """Every size, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", type=int, default=500)
    for n, rounds in SIZES:
        show(n, rounds, parser.parse_args().panels)


if __name__ == "__main__":
    main()
