"""Recovery of planted abilities and planted cross-modal items by M2-IRT and M3-IRT, and of nominal intervals.

``python benchmarks/multimodal_recovery.py`` simulates 100 subjects on 1000 items in four formats, half of the items
*cross-modal* (only image and text together lower their difficulty much) and half shortcuts (one modality alone does),
fits, and prints for every seed and at the end: ROC-AUC of finding the cross-modal items by their fitted gain; the
coverage of nominal 95 % intervals of the four abilities, each in standard deviations of the population, as where a
scale begins and its unit cannot be told (`benchmarks.multimodal_marginal`); and the correlation of those abilities with
the planted ones. An ability at a bound counts as a miss. ``--grid`` tries all bounds q in place of the planted one.
"""

from __future__ import annotations

import argparse
import os
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.multimodal_marginal import standing
from pytest_adaptive_eval.calibration.multimodal import BOUNDS, fit_multimodal, roc_auc
from pytest_adaptive_eval.irt.multimodal import Form, Modalities, MultimodalItems

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
BOUND = 4.0


def simulate(form: Form, subjects: int, items: int, seed: int) -> tuple[Array, MultimodalItems, Mask, Array]:
    """Abilities, items, which are cross-modal, and responses."""
    rng = np.random.default_rng(seed)

    def within(middle: float | Array, spread: float, *shape: int) -> Array:
        return BOUND / (1.0 + np.exp(-(middle + spread * rng.normal(size=shape))))

    theta = within(-1.2, 0.8, subjects, 4)
    a = within(-2.2 if form == "m2" else -1.2, 0.5, items, 4)
    helps = -0.2 if form == "m2" else 0.4
    b = np.c_[within(2.0 if form == "m2" else 2.2, 0.7, items), within(-3.0, 0.6, items, 3)]
    cross = rng.random(items) < 0.5
    one = np.where(rng.random(items) < 0.5, 1, 2)
    place = np.arange(items)
    b[:, 3] = within(np.where(cross, helps, -3.0), 0.4, items)
    b[place, one] = np.where(cross, b[place, one], within(helps, 0.4, items))
    planted = MultimodalItems(Modalities(), form, BOUND, a, b)
    p = planted.probability(theta)
    return theta, planted, cross, (rng.random(p.shape) < p).astype(np.float64)


def main() -> None:
    """Simulate, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--subjects", type=int, default=100)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--form", choices=("m2", "m3"))
    parser.add_argument("--grid", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for form in (options.form,) if options.form else ("m2", "m3"):
        coverage, found, best, seconds, bounds, ended = [], [], [], [], [], []
        for seed in range(options.seeds):
            theta, planted, cross, scores = simulate(form, options.subjects, options.items, seed)
            start = time.process_time()
            fit = fit_multimodal(scores, form=form, bounds=BOUNDS if options.grid else (BOUND,), seed=seed)
            middle = time.process_time()
            found_abilities = standing(scores, fit.items, fit.abilities.theta)
            seconds.append((middle - start, time.process_time() - middle))
            truth = (theta - theta.mean(axis=0)) / theta.std(axis=0)
            low, high = found_abilities.interval(0.95)
            coverage.append(((low <= truth) & (truth <= high) & ~found_abilities.at_bound).mean(axis=0))
            found.append(roc_auc(cross, fit.items.cross_gain(fit.abilities.theta)))
            best.append(roc_auc(cross, planted.cross_gain(theta)))
            bounds.append(found_abilities.at_bound.mean())
            ended.append(found_abilities.converged)
            r = [np.corrcoef(found_abilities.value[:, k], theta[:, k])[0, 1] for k in range(4)]
            print(
                f"{form} seed {seed}: coverage {coverage[-1].round(3).tolist()}, "
                f"correlation {np.round(r, 3).tolist()}, AUC {found[-1]:.3f} (planted parameters {best[-1]:.3f})",
                flush=True,
            )
        parts = " / ".join(f"{c:.3f}" for c in np.mean(coverage, axis=0))
        print(
            f"{form}, {options.seeds} seeds: coverage of base / image / text / cross {parts}, "
            f"all {np.mean(coverage):.3f}; AUC of cross-modal items {np.mean(found):.3f}, least {min(found):.3f} "
            f"(planted parameters {np.mean(best):.3f}); abilities at a bound {np.mean(bounds):.4f}; "
            f"{np.mean(seconds, axis=0)[0]:.1f} s of CPU a fit, {np.mean(seconds, axis=0)[1]:.1f} for the abilities' "
            f"intervals; {sum(ended)} of {options.seeds} searches ended by themselves"
        )


if __name__ == "__main__":
    main()
