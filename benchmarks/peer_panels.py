"""Simulated panels of judges: how well each rule of `peers` ranks them, and whether its intervals hold.

``python benchmarks/peer_panels.py`` draws 200 panels for each kind: 12 models of true quality N(0, .3), all of which
judge all, with biases of their own (sd .3) and noise of sd .7, in 40 rounds; scores are rounded to 1 to 5. Three of the
models are bad judges: one gives always 4, one gives itself always 5, and one is a liar. A ``fixed`` liar knows the
order, and gives the worst contestant 5 and the best 1, in every round; a ``mirror`` finds what an honest judge would,
s, and tells 6 - s. In a ``ring`` the bad judges give fives to one another and themselves, and are honest otherwise. The
other kinds change one thing.

Printed are means over panels of Spearman's correlation with the true qualities: of the oracle (the mean score by the
honest judges, self-scores included), of mode ``reliability`` and of mode ``paper``; the share of panels where
reliability is above, and not below, paper, and where the oracle is above it; the share of the 95 % intervals that hold
the truth (qualities against their panel's mean); which planted judges are flagged (liar as reversed, constant,
self-favouring; a ring as partial) and in how many panels an honest one is, of any kind; by how many standard errors the
bad judges move the contestant that they move most, against a fit without their scores, and in how many panels more than
5; and milliseconds a fit. ``--only NAME`` runs kinds whose name holds NAME.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.extensions.studies.peers.reliability import fit_reliability
from pytest_adaptive_eval.extensions.studies.peers.scoring import paper_scores
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """A kind of panel: standard deviations, the share of missing scores, counts, and how many panels at most."""

    name: str
    models: int = 12
    rounds: int = 40
    liar: str = "fixed"
    quality: float = 0.3
    noise: float = 0.7
    bias: float = 0.3
    answers: float = 0.0
    likings: float = 0.0
    scales: float = 0.0
    missing: float = 0.0
    bad: int = 3
    most: int = 10**6
    rounded: bool = True


MAIN = Kind("fixed liar")
KINDS = (
    MAIN,
    replace(MAIN, name="mirror liar", liar="mirror"),
    replace(MAIN, name="ring of three", liar="ring"),
    replace(MAIN, name="ring of four", liar="ring", bad=4),
    replace(MAIN, name="ring of five", liar="ring", bad=5),
    replace(MAIN, name="no bad judge", liar=""),
    replace(MAIN, name="answers vary (sd .3)", answers=0.3),
    replace(MAIN, name="lasting likings (sd .2)", likings=0.2),
    replace(MAIN, name="scales vary (sd of log .3)", scales=0.3),
    replace(MAIN, name="all three", answers=0.3, likings=0.2, scales=0.3),
    replace(MAIN, name="10 % missing", missing=0.1),
    replace(MAIN, name="10 rounds", rounds=10),
    replace(MAIN, name="8 models", models=8),
    replace(MAIN, name="4 models, no bad judge", models=4, liar=""),
    replace(MAIN, name="33 models, 400 rounds", models=33, rounds=400, missing=0.02, most=6),
    replace(MAIN, name="the same, not rounded", models=33, rounds=400, missing=0.02, most=6, rounded=False),
)


def draw(kind: Kind, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.int64]]:
    """True qualities, judgments, and the bad judges: liar, constant, self-favouring."""
    n = kind.models
    truth = rng.normal(0.0, kind.quality, n)
    bad = rng.permutation(n)[: kind.bad] if kind.liar else np.zeros(0, int)
    answers = truth + rng.normal(0.0, kind.answers, (kind.rounds, n))
    levels, scales = 3.5 + rng.normal(0.0, kind.bias, n), np.exp(rng.normal(0.0, kind.scales, n))
    scores = levels[:, None] + scales[:, None] * answers[:, None, :] + rng.normal(0.0, kind.likings, (n, n))
    scores += rng.normal(0.0, kind.noise, scores.shape)
    if kind.liar == "ring":
        scores[:, bad[:, None], bad] = 5.0
    elif kind.liar:
        liar, constant, own = bad
        order = np.argsort(np.argsort(truth))
        scores[:, liar] = 5.0 - 4.0 * order / (n - 1) if kind.liar == "fixed" else 6.0 - scores[:, liar]
        scores[:, constant] = 4.0
        scores[:, own, own] = 5.0
    if kind.rounded:
        scores = np.clip(np.rint(scores), 1.0, 5.0)
    scores[rng.random(scores.shape) < kind.missing] = np.nan
    return truth, scores, bad


def show(kind: Kind, panels: int) -> None:
    """One line."""
    panels = min(panels, kind.most)
    found, covered, moved, flagged, false, spent = [], [], [], np.zeros(kind.bad), 0, 0.0
    for panel in range(panels):
        truth, scores, bad = draw(kind, np.random.default_rng([panel, 1]))
        honest = np.setdiff1d(np.arange(kind.models), bad)
        started = time.perf_counter()
        fit = fit_reliability(scores)
        spent += time.perf_counter() - started
        rules = np.nanmean(scores[:, honest], axis=(0, 1)), fit.qualities, paper_scores(scores).scores
        found.append([rank_correlation(rule, truth) for rule in rules])
        off = fit.qualities - fit.qualities.mean() - (truth - truth.mean())
        covered.append(np.mean(np.abs(off) <= 1.959964 * fit.errors))
        if len(bad):
            silenced = scores.copy()
            silenced[:, bad] = np.nan
            other = fit_reliability(silenced)
            change = fit.qualities - fit.qualities.mean() - other.qualities + other.qualities.mean()
            moved.append(np.abs(change / other.errors).max())
        words = [fit.flags.words(i) for i in range(kind.models)]
        sought = ("partial",) * kind.bad if kind.liar == "ring" else FLAGS
        flagged += [name in words[i] for i, name in zip(bad, sought, strict=True)] if len(bad) else np.zeros(kind.bad)
        false += any(words[i] for i in honest)
    oracle, ours, paper = np.array(found).T
    high = oracle >= 0.97
    parts = [
        f"{kind.name:26}",
        f"oracle {oracle.mean():.3f}  reliability {ours.mean():.3f}  paper {paper.mean():.3f}",
        f"above paper {np.mean(ours > paper):.3f}, not below {np.mean(ours >= paper):.3f}",
        f"oracle above {np.mean(oracle > paper):.3f}",
        f"{high.sum()} panels with oracle >= .97: {ours[high].mean() if high.any() else np.nan:.3f}",
        f"cover {np.mean(covered):.3f}",
        f"flagged {' '.join(f'{share:.2f}' for share in flagged / panels)}, honest {false / panels:.3f}",
        f"moved {np.mean(moved or 0.0):.2f}, more than 5 in {np.mean(np.array(moved) > 5) if moved else 0.0:.3f}",
        f"{1000 * spent / panels:.0f} ms",
    ]
    print("; ".join(parts), flush=True)


FLAGS = ("reversed", "constant", "self-favouring")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panels", type=int, default=200)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for kind in KINDS:
        if arguments.only in kind.name:
            show(kind, arguments.panels)


if __name__ == "__main__":
    main()
