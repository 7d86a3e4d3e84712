"""M2-IRT and M3-IRT on the public MMMU and MathVista responses in four formats, beside the study's rankings.

``adaptive-eval study m3irt`` has the rankings. ``sparse``, the paper's figures 19 and 20: the same by fits to a tenth
of the responses, with .30 of the items of low quality, as in the paper. ``auc``, its figure 6: ROC-AUC of unseen
responses of IRT, M2 and M3 as low-quality twins are mixed in. ``parts``: how originals and twins differ in fitted
parts, Mann-Whitney and Wasserstein. ``cross``: what the responses ask of the part of both modalities, and where fits
with and without priors put it.

The files are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration import fit_map
from pytest_adaptive_eval.calibration.multimodal import (
    PAPER,
    UNTIL_SETTLED,
    MultimodalFit,
    Training,
    fit_multimodal,
    roc_auc,
)
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality
from pytest_adaptive_eval.calibration.scale import separation
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.cli.formats import read_formats
from pytest_adaptive_eval.extensions.papers.format_backtests import with_low_quality
from pytest_adaptive_eval.extensions.papers.verbs.m3irt import SHARE
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview
from pytest_adaptive_eval.items.responses import FormatResponses

Bools = NDArray[np.bool_]

FOLDER = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[2] / "shared" / "data")) / "m3irt"
BUDGETS = ("5%", "10%", "30%", "50%")


def read(data: str, share: float | None) -> tuple[FormatResponses, Bools]:
    """Responses to originals and twins, shuffled, and which are twins; all twins without a share."""
    normal, shuffled = (FOLDER / f"{kind}_{data}.csv.gz" for kind in ("normal", "shuffled"))
    responses, low = read_formats([normal], [shuffled], (), None)
    return with_low_quality(responses, low, low.mean() if share is None else share)


def auc(data: FormatResponses, twin: Bools, repeats: int) -> None:
    originals, twins = np.flatnonzero(~twin), np.flatnonzero(twin)
    for percent in (0, 10, 20, 30, 40, 50):
        found: dict[str, list[float]] = {"IRT": [], "M2": [], "M3": []}
        for repeat in range(repeats):
            rng = np.random.default_rng([percent, repeat])
            count = min(len(twins), round(len(originals) * percent / (100 - percent)))
            items = np.concatenate([originals, rng.choice(twins, count, replace=False)])
            scores = data.scores[:, items]
            unseen = rng.random(scores.shape) < 0.1
            train = np.where(unseen, np.nan, scores)
            for name, form in (("M2", "m2"), ("M3", "m3")):
                p = fit_multimodal(train, form=form, bounds=(8.0,), seed=repeat).probability()  # type: ignore[arg-type]
                found[name].append(roc_auc(scores[unseen], p[unseen]))
            p = fit_map(train.reshape(len(train), -1), model="2pl").probability().reshape(scores.shape)
            found["IRT"].append(roc_auc(scores[unseen], p[unseen]))
        line = "  ".join(f"{name} {np.mean(v):.4f} ± {np.std(v):.4f}" for name, v in found.items())
        print(f"{percent:2d} % low-quality: {line}", flush=True)


def sparse(data: FormatResponses, twin: Bools, share: float, targets: int, budgets: list[str]) -> None:
    truth = data.scores[:, ~twin].mean(axis=(1, 2))
    flat = data.scores.reshape(len(data.subjects), -1)
    sizes = {budget: resolve_budget(budget, flat.shape[1]) for budget in budgets}
    for form in ("m2", "m3"):
        converged, losses, seconds = [], [], []
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for target in range(min(targets, len(data.subjects))):
            rng = np.random.default_rng(target)
            train = np.delete(data.scores, target, axis=0)
            some = rng.random(train.shape) < share
            some[rng.integers(len(train), size=train.shape[1]), np.arange(train.shape[1]), 0] = True
            train = np.where(some, train, np.nan)
            start = time.process_time()
            fit: MultimodalFit = fit_multimodal(train, form=form, bounds=(8.0,))
            seconds.append(time.process_time() - start)
            worth = item_quality(train).worth(-(-round(0.05 * flat.shape[1]) // 4))
            for name, only in ((form, None), (f"{form}+worth", worth)):
                talk = FormatInterview(fit.items, fit.population, whole=True, worth=only)
                for budget, calls in sizes.items():
                    while talk.calls < calls:
                        talk.tell(data.scores[target].ravel()[talk.ask(calls - talk.calls)])
                    rho = rank_correlation(flat[:, talk.pairs].mean(axis=1), truth)
                    found.setdefault((name, budget), []).append((rho, float(twin[talk.pairs // 4].mean())))
            converged.append(fit.converged)
            losses.append((fit.history[0], fit.loss))
        first, last = np.mean(losses, axis=0)
        settled = f"{np.mean(converged):.0%} converged, held-out loss {first:.3f} -> {last:.3f}"
        print(f"{form}: {settled}, {np.mean(seconds):.1f} s of CPU", flush=True)
        for (name, budget), pairs in found.items():
            (rho, gamma), spread = np.mean(pairs, axis=0), np.std(pairs, axis=0)
            line = f"{name:9} {budget:>4}: rho together {rho:.3f} ± {spread[0]:.3f}, "
            print(line + f"gamma {gamma:.3f} ± {spread[1]:.3f}", flush=True)


def parts(data: FormatResponses, twin: Bools) -> None:
    quality = item_quality(data.scores)
    print(f"genuine by quality: {quality.genuine.sum()} items, of which twins {twin[quality.genuine].mean():.3f}")
    for form in ("m2", "m3"):
        fit = fit_multimodal(data.scores, form=form)
        known = fit.identifiability()
        print(f"\n{form}: q {fit.items.bound:g}, AUC by q { ({q: round(v, 4) for q, v in fit.tried.items()}) }")
        print("share at a bound:", {k: v.round(2).tolist() for k, v in known.at_bound.items()})
        print(
            f"condition {known.condition:.0f}, reliability {known.reliability.round(2).tolist()}, "
            f"confused {known.confused}"
        )
        columns = {
            f"{kind} {part}": values[:, k]
            for kind, values in (("difficulty", fit.items.difficulty), ("discrimination", fit.items.discrimination))
            for k, part in enumerate(fit.items.modalities.parts)
        }
        columns["information"] = fit.items.information(fit.population.theta[None])[0].sum(axis=1)
        columns["cross gain"] = fit.items.cross_gain(fit.abilities.theta)
        columns["quality gain"] = quality.gain
        for name, values in columns.items():
            found = separation(values, twin)
            print(
                f"  {name:22s} originals {found.original:.3f} twins {found.low:.3f}  Mann-Whitney U {found.u:.0f} "
                f"p {found.p:.2g}  Wasserstein {found.wasserstein:.3f}  AUC {found.auc:.3f}"
            )


def cross(data: FormatResponses, twin: Bools) -> None:
    """Print the interaction of image and text in log-odds, and the part of both in fits of several kinds."""
    assert data.modalities.formats == ("image+text", "image", "text", "none")
    interaction = np.array([1.0, -1.0, -1.0, 1.0])  # what both give beyond the sum of what each gives
    for name, rows in (("originals", ~twin), ("twins", twin)):
        right = data.scores[:, rows].mean(axis=1)
        log_odds = np.log((right + 0.005) / (1.005 - right)) @ interaction
        print(
            f"{name}: right by format {right.mean(axis=0).round(3).tolist()}, interaction in log-odds "
            f"{log_odds.mean():+.3f}, above 0 for {np.mean(log_odds > 0):.2f} of the subjects",
            flush=True,
        )
    kinds = {
        "1000 steps at 0.01": Training(rate=0.01),
        "until settled": UNTIL_SETTLED,
        "items' priors 3 times as wide": replace(UNTIL_SETTLED, item_spread=3.0),
        "likelihood alone": PAPER,
    }
    for form in ("m2", "m3"):
        for name, training in kinds.items():
            fit = fit_multimodal(data.scores, form=form, bounds=(4.0, 16.0), training=training)
            at_bound = {kind: shares[3].round(2) for kind, shares in fit.identifiability().at_bound.items()}
            gain = separation(fit.items.cross_gain(fit.abilities.theta), twin).auc
            difficulty = separation(fit.items.difficulty[:, 3], twin).auc
            print(
                f"{form} {name}: q {fit.items.bound:g}, held-out AUC {fit.auc:.3f}; cross at a bound: ability "
                f"{at_bound['ability']}, difficulty {at_bound['difficulty']}; AUC of originals against twins: cross "
                f"difficulty {difficulty:.3f}, gain {gain:.3f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("auc", "sparse", "parts", "cross"))
    parser.add_argument("--data", choices=("mmmu", "mathvista"), required=True)
    parser.add_argument("--targets", type=int, default=24, help="models to leave out, the first so many")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.1, help="of the responses that sparse fits see")
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS), help="of sparse, rising")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, twin = read(options.data, SHARE if options.what == "sparse" else None)
    if options.what == "auc":
        auc(data, twin, options.repeats)
    elif options.what == "sparse":
        sparse(data, twin, options.share, options.targets, options.budgets)
    elif options.what == "parts":
        parts(data, twin)
    else:
        cross(data, twin)


if __name__ == "__main__":
    main()
