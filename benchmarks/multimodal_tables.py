"""M2-IRT and M3-IRT on the public MMMU and MathVista responses in four formats, beside every baseline at equal calls.

``ranking``: each of 24 models is left out once; items are fitted to the other 23, and the budget is a share of all
(item, format) pairs, one call a pair.  Two protocols.  *together*: raw means of all 24 models on the pairs that the
left-out model was asked, as the M3-IRT paper's code does, one rho a left-out model; the other 23 chose those items, so
that it flatters every calibrated method.  *alone*: each model is judged by its own interview only, and rho is that of
the 24 estimates.  Two truths, both over the original items alone: the mean over four formats (the released code's)
and the full format.  gamma is the share of calls spent on low-quality twins.

``auc``: ROC-AUC of unseen responses of IRT, M2 and M3 as low-quality twins are mixed in.  ``sparse``: fits to a tenth
of the responses.  ``parts``: how originals and twins differ in fitted parts, Mann-Whitney and Wasserstein.

``python benchmarks/multimodal_tables.py ranking --data mmmu --out mmmu.json``

Items are shuffled first, as ties must not favour the originals.  The files are looked for in ``ADAPTIVE_EVAL_DATA``
(default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, wasserstein_distance, wilcoxon

from pytest_adaptive_eval.calibration import fit_map
from pytest_adaptive_eval.calibration.multimodal import MultimodalFit, fit_multimodal, roc_auc
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality
from pytest_adaptive_eval.core import irt
from pytest_adaptive_eval.core.clusters import clusters
from pytest_adaptive_eval.core.estimation import MAP
from pytest_adaptive_eval.core.multimodal import Information
from pytest_adaptive_eval.core.multimodal_selection import FormatInterview
from pytest_adaptive_eval.core.ranking import rank_correlation

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDER = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[2] / "shared" / "data")) / "m3irt"
#: Formats as `Modalities` orders them, by the prefix of a column.
PREFIXES = {"": 0, "<no_question>": 1, "<no_image>": 2, "<no_info>": 3}
SHARES = (5, 10, 30, 50)
RANDOM = 10
DEFAULT = "M3 adaptive"


@dataclass(frozen=True)
class Data:
    """Responses (S, n, F) of named models, and which items are low-quality twins."""

    models: list[str]
    scores: Array
    twin: NDArray[np.bool_]


def read(data: str, seed: int = 0) -> Data:
    tables = []
    for kind in ("normal", "shuffled"):
        with gzip.open(FOLDER / f"{kind}_{data}.csv.gz", "rt", encoding="utf-8-sig", newline="") as file:
            head, *rows = csv.reader(file)
        tables.append((head[1:], {row[0]: np.array(row[1:], dtype=np.float64) for row in rows}))
    models = sorted(tables[0][1])
    assert models == sorted(tables[1][1]), "the two files tell of different models"
    place: dict[tuple[str, bool], int] = {}
    cells = []
    for twin, (head, rows) in enumerate(tables):
        for c, column in enumerate(head):
            prefix = re.match(r"(<\w+>)?", column).group()  # type: ignore[union-attr]
            item = place.setdefault((column[len(prefix) :], bool(twin)), len(place))
            cells.append((item, PREFIXES[prefix], [rows[model][c] for model in models]))
    scores = np.full((len(models), len(place), 4), np.nan)
    for item, form, column in cells:
        scores[:, item, form] = column
    order = np.random.default_rng(seed).permutation(len(place))
    return Data(models, scores[:, order], np.array([twin for _, twin in place])[order])


# --- what each method asks the left-out model, and what it makes of the answers ---------------------------------------


@dataclass
class Asked:
    """Pairs asked at each share, and estimates of both truths by the model's own answers."""

    pairs: Ints
    four: float
    full: float


Method = Callable[["Fold"], dict[int, Asked]]


@dataclass
class Fold:
    """One left-out model."""

    data: Data
    target: int
    seed: int

    def __post_init__(self) -> None:
        self.train = np.delete(self.data.scores, self.target, axis=0)
        self.own = self.data.scores[self.target].ravel()
        self.formats = self.data.scores.shape[2]
        self.budgets = {share: int(share / 100 * self.own.size + 0.5) for share in SHARES}
        self.flat = self.train.reshape(len(self.train), -1)
        self.fits: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}

    def fit(self, name: str) -> Any:
        """A fit to the other models, made once."""
        if name not in self.fits:
            start = time.process_time()
            if name in ("m2", "m3"):
                self.fits[name] = fit_multimodal(self.train, form=name, seed=self.seed)  # type: ignore[arg-type]
            elif name == "quality":
                self.fits[name] = item_quality(self.train, seed=self.seed)
            else:
                self.fits[name] = fit_map(self.flat, model=name, limit=100)  # type: ignore[arg-type]
            self.seconds[name] = time.process_time() - start
        return self.fits[name]

    def means(self, order: Callable[[int], Ints]) -> dict[int, Asked]:
        """Raw means over forms that are drawn before the interview; the full format's where it was asked."""
        out = {}
        for share, budget in self.budgets.items():
            pairs = order(budget)
            full = pairs[pairs % self.formats == 0]
            out[share] = Asked(pairs, self.own[pairs].mean(), self.own[full].mean() if len(full) else np.nan)
        return out


def ours(form: str, adaptive: bool, whole: bool) -> Method:
    def interview(fold: Fold) -> dict[int, Asked]:
        fit, quality = fold.fit(form), fold.fit("quality")
        better = quality.value >= np.median(quality.value)
        out = {}
        for share, budget in fold.budgets.items():
            worth = quality.worth(-(-budget // fold.formats))
            talk = FormatInterview(fit.items, fit.population, whole=whole, adaptive=adaptive, worth=worth)
            while talk.calls < budget:
                asked: list[int] = []
                while len(asked) < max(4, talk.calls // 25) and talk.calls < budget:
                    asked += talk.ask(budget - talk.calls).tolist()
                talk.tell(fold.own[asked])
            p = fit.items.probability(talk.abilities.theta)[0, better]
            out[share] = Asked(talk.pairs, p.mean(), p[:, 0].mean())
        return out

    return interview


def plain(model: str) -> Method:
    """IRT or MIRT with a pair for an item: most information, D-optimal in more dimensions."""

    def interview(fold: Fold) -> dict[int, Asked]:
        fit = fold.fit(model)
        A, d = fit.discrimination, fit.intercept
        estimator, D = MAP(), A.shape[1]
        state, told = estimator.prior(1, D), 0
        information = Information.start(np.eye(D))
        pairs: list[int] = []
        left = np.ones(len(d), dtype=bool)
        out = {}
        while len(pairs) < max(fold.budgets.values()):
            w = irt.weight(irt.probability(state.theta, A, d))[0]
            limit = next(b for b in fold.budgets.values() if b > len(pairs))
            for _ in range(max(4, told // 25)):
                best = int(np.where(left, information.gain(w, A), -1.0).argmax())
                left[best] = False
                information.add(w[[best]], A[[best]])
                pairs.append(best)
                if len(pairs) == limit:
                    break
            told = len(pairs)
            state = estimator.estimate(fold.own[None, pairs], A[None, pairs], d[None, pairs], None, state)
            for share, budget in fold.budgets.items():
                if budget == told:
                    p = irt.probability(state.theta, A, d)[0]
                    out[share] = Asked(np.array(pairs), p.mean(), p[:: fold.formats].mean())
        return out

    return interview


def random(fold: Fold) -> dict[int, Asked]:
    rng = np.random.default_rng([fold.seed, fold.target])
    return fold.means(lambda budget: rng.choice(fold.own.size, budget, replace=False))


def item_total(fold: Fold) -> dict[int, Asked]:
    around = fold.flat - fold.flat.mean(axis=0)
    total = fold.flat.mean(axis=1) - fold.flat.mean()
    spread = np.sqrt((around**2).sum(axis=0) * (total**2).sum())
    value = np.where(spread > 0, total @ around / np.where(spread > 0, spread, 1.0), -1.0)
    return fold.means(lambda budget: np.argsort(-value, kind="stable")[:budget])


def anchors(fold: Fold) -> dict[int, Asked]:
    """Pairs near the centres of clusters of MIRT parameters, weighted by their clusters' sizes (tinyBenchmarks)."""
    fit = fold.fit("mirt")
    points = np.c_[fit.discrimination, fit.intercept]
    out = {}
    for share, budget in fold.budgets.items():
        found = clusters(points, min(budget, 350), fold.seed)
        sizes = np.bincount(found.label)
        centre = np.array([points[found.label == k].mean(axis=0) for k in range(len(sizes))])
        away = ((points - centre[found.label]) ** 2).sum(axis=1)
        order = np.argsort(away)
        turn = np.empty(len(order), dtype=np.int64)  # how many of its cluster are nearer
        for k in range(len(sizes)):
            mine = order[found.label[order] == k]
            turn[mine] = np.arange(len(mine))
        pairs = np.lexsort((away, turn))[:budget]
        asked = np.bincount(found.label[pairs], minlength=len(sizes))
        weight = (sizes / np.maximum(asked, 1))[found.label[pairs]]
        mean = float(weight @ fold.own[pairs] / weight.sum())
        full = pairs % fold.formats == 0
        own = float(weight[full] @ fold.own[pairs[full]] / weight[full].sum()) if full.any() else np.nan
        out[share] = Asked(pairs, mean, own)
    return out


def flash(fold: Fold, population: int = 60, generations: int = 15, elite: int = 12) -> dict[int, Asked]:
    """FlashEval's search: subsets that rank the calibration models as the whole bank does breed the next ones."""
    rng = np.random.default_rng([fold.seed, fold.target, 1])
    truth = fold.flat.mean(axis=1)

    def fitness(subset: Ints) -> float:
        return rank_correlation(fold.flat[:, subset].mean(axis=1), truth)

    def search(budget: int) -> Ints:
        n = fold.flat.shape[1]
        subsets = [rng.choice(n, budget, replace=False) for _ in range(population)]
        best, height = subsets[0], -2.0
        for _ in range(generations):
            values = np.array([fitness(s) for s in subsets])
            order = np.argsort(-values)[:elite]
            if values[order[0]] > height:
                best, height = subsets[order[0]], values[order[0]]
            # items are drawn by how often the best subsets have them, with a little of everything mixed in
            often = np.bincount(np.concatenate([subsets[k] for k in order]), minlength=n) + 0.02 * elite * budget / n
            chance = np.log(often)
            subsets = [best] + [np.argsort(-(chance + rng.gumbel(size=n)))[:budget] for _ in range(population - 1)]
        return best

    return fold.means(search)


METHODS: dict[str, Method] = {
    "random": random,
    "IRT": plain("2pl"),
    "MIRT": plain("mirt"),
    "anchors": anchors,
    "FlashEval": flash,
    "item-total": item_total,
    "M2 static": ours("m2", False, True),
    "M2 adaptive": ours("m2", True, True),
    "M3 static": ours("m3", False, True),
    "M3 adaptive": ours("m3", True, True),
    "M2 static, single pairs": ours("m2", False, False),
    "M3 static, single pairs": ours("m3", False, False),
}


def ranking(data: Data, targets: int, out: Path | None) -> None:
    start = time.process_time()
    clean = data.scores[:, ~data.twin]
    truths = {"four": clean.mean(axis=(1, 2)), "full": clean[:, :, 0].mean(axis=1)}
    rows: dict[str, dict[int, list[dict[str, float]]]] = {name: {s: [] for s in SHARES} for name in METHODS}
    flat = data.scores.reshape(len(data.models), -1)
    seconds: dict[str, list[float]] = {}
    for target in range(targets):
        fold = Fold(data, target, 0)
        for name, method in METHODS.items():
            for repeat in range(RANDOM if name == "random" else 1):
                fold.seed = repeat
                for share, asked in method(fold).items():
                    assert len(set(asked.pairs.tolist())) == fold.budgets[share], (name, share, len(asked.pairs))
                    means = flat[:, asked.pairs].mean(axis=1)
                    row = {f"together_{k}": rank_correlation(means, truth) for k, truth in truths.items()}
                    row |= {"gamma": float(data.twin[asked.pairs // fold.formats].mean()), "calls": len(asked.pairs)}
                    rows[name][share].append(row | {"four": asked.four, "full": asked.full, "repeat": repeat})
            fold.seed = 0
        for name, value in fold.seconds.items():
            seconds.setdefault(name, []).append(value)
        print(f"# {data.models[target]}: {time.process_time() - start:.0f} s of CPU so far", flush=True)
    report(rows, {k: v[:targets] for k, v in truths.items()})
    print("CPU seconds a fit:", {k: f"{np.mean(v):.1f} (largest {max(v):.1f})" for k, v in seconds.items()})
    print(f"CPU seconds in all: {time.process_time() - start:.0f}")
    if out is not None:
        out.write_text(json.dumps({name: {str(s): r for s, r in by.items()} for name, by in rows.items()}))


def _by_target(values: list[float], targets: int) -> Array:
    """Means over repeats, one a left-out model."""
    return np.array(values).reshape(targets, -1).mean(axis=1)


def report(rows: dict[str, dict[int, list[dict[str, float]]]], truths: dict[str, Array]) -> None:
    for share in SHARES:
        calls = rows["random"][share][0]["calls"]
        print(f"\n{share} % = {calls:.0f} calls   together: four   full  | alone: four  full | gamma   x random's")
        chance = np.mean([r["gamma"] for r in rows["random"][share]])
        for name, by in rows.items():
            rho = {}
            for truth, values in truths.items():
                found = []
                for repeat in sorted({r["repeat"] for r in by[share]}):
                    mine = [r[truth] for r in by[share] if r["repeat"] == repeat]
                    found.append(rank_correlation(mine, values) if not np.isnan(mine).any() else np.nan)
                rho[truth] = np.mean(found)
            f = {k: np.array([r[k] for r in by[share]]) for k in ("together_four", "together_full", "gamma")}
            print(
                f"{name:24s} {f['together_four'].mean():.3f} ± {f['together_four'].std():.3f}  "
                f"{f['together_full'].mean():.3f} | {rho['four']:.3f}  {rho['full']:.3f} | "
                f"{f['gamma'].mean():.4f} ± {f['gamma'].std():.4f}  {f['gamma'].mean() / chance:.3f}"
            )
        for other in ("random", "FlashEval", "anchors"):
            said = []
            for key, side in (("together_four", "greater"), ("together_full", "greater"), ("gamma", "less")):
                mine, theirs = (
                    np.array(
                        [
                            np.mean(chunk)
                            for chunk in np.array_split([r[key] for r in rows[n][share]], len(truths["four"]))
                        ]
                    )
                    for n in (DEFAULT, other)
                )
                if (mine == theirs).all():
                    continue
                test = wilcoxon(mine, theirs, alternative=side)
                said.append(f"{key} W {test.statistic:.0f} p {test.pvalue:.2g}")
            print(f"  Wilcoxon, one-sided, {DEFAULT} against {other}: " + ", ".join(said))


def auc(data: Data, repeats: int) -> None:
    originals, twins = np.flatnonzero(~data.twin), np.flatnonzero(data.twin)
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
            p = fit_map(train.reshape(len(train), -1), model="2pl", limit=100).probability().reshape(scores.shape)
            found["IRT"].append(roc_auc(scores[unseen], p[unseen]))
        line = "  ".join(f"{name} {np.mean(v):.4f} ± {np.std(v):.4f}" for name, v in found.items())
        print(f"{percent:2d} % low-quality: {line}", flush=True)


def sparse(data: Data, share: float) -> None:
    clean = data.scores[:, ~data.twin]
    truth = clean.mean(axis=(1, 2))
    flat = data.scores.reshape(len(data.models), -1)
    for form in ("m2", "m3"):
        rho, gamma, alone, converged, losses, seconds = [], [], [], [], [], []
        for target in range(len(data.models)):
            rng = np.random.default_rng(target)
            train = np.delete(data.scores, target, axis=0)
            some = rng.random(train.shape) < share
            some[rng.integers(len(train), size=train.shape[1]), np.arange(train.shape[1]), 0] = True
            train = np.where(some, train, np.nan)
            start = time.process_time()
            fit: MultimodalFit = fit_multimodal(train, form=form, bounds=(8.0,))  # type: ignore[arg-type]
            seconds.append(time.process_time() - start)
            quality = item_quality(train)
            budget = int(0.05 * flat.shape[1] + 0.5)
            talk = FormatInterview(fit.items, fit.population, whole=True, worth=quality.worth(-(-budget // 4)))
            while talk.calls < budget:
                talk.tell(data.scores[target].ravel()[talk.ask(budget - talk.calls)])
            rho.append(rank_correlation(flat[:, talk.pairs].mean(axis=1), truth))
            gamma.append(data.twin[talk.pairs // 4].mean())
            alone.append(fit.items.probability(talk.abilities.theta).mean())
            converged.append(fit.converged)
            losses.append((fit.history[0], fit.loss))
        first, last = np.mean(losses, axis=0)
        print(
            f"{form}: {np.mean(converged):.0%} converged, held-out loss {first:.3f} -> {last:.3f}, "
            f"{np.mean(seconds):.1f} s of CPU; "
            f"5 %: rho together {np.mean(rho):.3f} ± {np.std(rho):.3f}, alone {rank_correlation(alone, truth):.3f}, "
            f"gamma {np.mean(gamma):.3f}",
            flush=True,
        )


def parts(data: Data) -> None:
    quality = item_quality(data.scores)
    print(f"genuine by quality: {quality.genuine.sum()} items, of which twins {data.twin[quality.genuine].mean():.3f}")
    for form in ("m2", "m3"):
        fit = fit_multimodal(data.scores, form=form)  # type: ignore[arg-type]
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
            original, twin = values[~data.twin], values[data.twin]
            test = mannwhitneyu(original, twin)
            print(
                f"  {name:22s} originals {original.mean():.3f} twins {twin.mean():.3f}  "
                f"Mann-Whitney U {test.statistic:.0f} p {test.pvalue:.2g}  "
                f"Wasserstein {wasserstein_distance(original, twin):.3f}  AUC {roc_auc(~data.twin, values):.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ranking", "auc", "sparse", "parts"))
    parser.add_argument("--data", choices=("mmmu", "mathvista"), required=True)
    parser.add_argument("--targets", type=int, default=24, help="models to leave out, the first so many")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.1, help="of the responses that sparse fits see")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = read(options.data)
    if options.what == "ranking":
        ranking(data, options.targets, options.out)
    elif options.what == "auc":
        auc(data, options.repeats)
    elif options.what == "sparse":
        sparse(data, options.share)
    else:
        parts(data)


if __name__ == "__main__":
    main()
