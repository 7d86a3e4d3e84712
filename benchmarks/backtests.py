"""Ranking, and the truth of intervals, on real response matrices.

``python benchmarks/backtests.py paper`` runs the split of the AutoJudger paper once: AutoJudger's IRT baseline with the
released difficulties and with our converged Rasch bank, and every policy of ``adaptive-eval backtest``.

``python benchmarks/backtests.py splits`` draws splits of 60 calibration and 17 test models, duplicates on one side, and
prints the mean ranking accuracy of the default policy and bank model, and of uniform draws. ``--pool others`` draws
from all models but the paper's 17 test models, which is where the defaults were chosen; ``--pool paper`` from the
paper's 77. ``--train 1000`` calibrates on all models of the pool that are not tested, and ``--train oracle`` on the
tested ones as well as 60 others: what no bank of others can reach.

``python benchmarks/backtests.py intervals`` adds the intervals: coverage, in each fifth of the subjects too, and width
over that of as many uniform draws. ``--shift`` calibrates on the weakest 70 % of a random 77 and interviews the rest.

``python benchmarks/backtests.py texts --encoder NAME --splits 40`` places the items of the fixtures' training runs by
an encoder. ``--bank vision`` and ``cross`` have pictures, of which ``--part`` embeds what it says.

The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.responses import in_formats, read_format_responses, read_responses
from pytest_adaptive_eval.calibration.families import effective_weights, grouped
from pytest_adaptive_eval.calibration.parameters import read_parameters
from pytest_adaptive_eval.calibration.quality import assess
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.extensions.backtests.backtest import Backtest, BacktestCell, Split, backtest, evaluate, splits
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS, Contender
from pytest_adaptive_eval.extensions.papers.published import TEST, TRAIN
from pytest_adaptive_eval.extensions.papers.published import draw as draw_split
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.interviewer.embeddings import load_embedder
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
FOLDER = DATA / "autojudger"
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
BENCHMARKS = {"AI2D": "AI2D_TEST", "MMMU": "MMMU_DEV_VAL"}
BUDGETS = ("1%", "2%", "5%")


def models(which: str) -> list[str]:
    """The paper's models of a split."""
    names: list[str] = json.loads((FOLDER / f"{which}_models.json").read_text())
    return names


def read(benchmark: str, pool: str) -> Responses:
    """Responses of all models, of the paper's, or of all but its test models; duplicates in one family."""
    found = grouped(read_responses(FOLDER / f"{BENCHMARKS[benchmark]}.csv.gz", orientation="items-by-subjects"))
    test, paper = set(models("test")), set(models("test") + models("train"))
    kept = {"all": set(found.subjects), "paper": paper, "others": set(found.subjects) - test}[pool]
    return found.of([s for s, name in enumerate(found.subjects) if name in kept])


def draw(responses: Responses, seed: int, train: int, shift: bool) -> Split:
    """One split of `train` and 17 at most; with a shift, the strongest 30 % of those are the test."""
    chosen = draw_split(responses, seed, train, TEST)
    if not shift:
        return chosen
    both = np.concatenate([chosen.train, chosen.test])
    order = both[np.argsort(np.nanmean(responses.scores[both], axis=1))]
    cut = round(0.7 * len(order))
    return Split(order[:cut], order[cut:])


def fifths(cell: BacktestCell, method: str) -> list[float]:
    """The coverage in each fifth of the subjects by accuracy."""
    truth, inside = np.array(cell.truth), cell.covers(method)
    fifth = np.searchsorted(np.quantile(truth, [0.2, 0.4, 0.6, 0.8]), truth, side="right")
    return [float(inside[fifth == f].mean()) for f in range(5) if (fifth == f).any()]


def of_oracle(responses: Responses, split: Split, recipe: Recipe, names: list[str], seed: int) -> Backtest:
    """Interviews by a bank that is calibrated on the tested subjects too."""
    bank = recipe(responses.scores[np.concatenate([split.train, split.test])]).bank("oracle", responses.items)
    scores, counts = responses.scores[split.test], {budget: resolve_budget(budget, len(bank)) for budget in BUDGETS}
    seeds = [seed + zlib.crc32(responses.subjects[s].encode()) for s in split.test]
    result = Backtest(len(bank), counts, {}, 1)
    for name in names:
        contender = CONTENDERS[name]
        assert isinstance(contender.policy, Policy)
        for budget in BUDGETS:
            session = replay(bank, replace(contender.policy, budget=budget), scores, seed=seeds)
            truth = np.nanmean(scores, axis=1)
            result.cells[name, budget] = evaluate(session, contender, truth, result.confidence, False, None)
    return result


def one(task: tuple[str, str, int, str, bool, bool]) -> Backtest:
    """One split."""
    benchmark, pool, seed, train, intervals, shift = task
    responses, oracle, recipe = read(benchmark, pool), train == "oracle", Recipe()
    split = draw(responses, seed, TRAIN if oracle else int(train), shift)
    if oracle:
        return of_oracle(responses, split, recipe, ["estimate", "maximum-information", "decide", "random"], seed)
    names = ["estimate", "maximum-information", "variance", "decide", "random"]
    if intervals:
        names = ["estimate", "random"]
    contenders = [CONTENDERS[name] for name in names]
    return backtest(responses, split, contenders, BUDGETS, recipe=recipe, seed=seed, intervals=intervals)


def run(options: argparse.Namespace) -> None:
    """The random splits."""
    intervals = options.command == "intervals"
    for benchmark in options.benchmark:
        start = time.perf_counter()
        settings = (options.train, intervals, options.shift)
        tasks = [(benchmark, options.pool, seed, *settings) for seed in range(options.splits)]
        total: Backtest | None = None
        with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
            for part in pool.map(one, tasks):
                if total is None:
                    total = part
                else:
                    total.merge(part)
        assert total is not None
        kind = "weakest 70 % / strongest 30 %" if options.shift else f"{options.train} / {TEST}"
        print(
            f"{benchmark}, pool {options.pool}, {total.splits} splits {kind}, model {Recipe().model}, "
            f"{time.perf_counter() - start:.0f} s"
        )
        for (name, budget), cell in total.cells.items():
            ranking = np.array(cell.ranking)
            deviation = ranking.std(ddof=1) / len(ranking) ** 0.5
            print(
                f"  {name:20} {budget:>3} ranking {ranking.mean():.2f} +- {deviation:.2f}  "
                f"error {np.mean(cell.error):.4f}",
                end="",
            )
            for method in cell.intervals:
                least, coverage = min(fifths(cell, method)), cell.covers(method).mean()
                print(
                    f"  {method} {coverage:.3f} (least fifth {least:.3f}) at {cell.width(method):.2f}x",
                    end="",
                )
            print()
        gap = np.array(total.cells["estimate", "1%"].ranking) - np.array(total.cells["random", "5%"].ranking)
        print(
            f"  estimate at 1% less uniform at 5%: {gap.mean():+.2f} +- {gap.std(ddof=1) / len(gap) ** 0.5:.2f}",
            flush=True,
        )


def paper(options: argparse.Namespace) -> None:
    """The paper's split, once."""
    for benchmark in options.benchmark:
        responses = read(benchmark, "all")
        place = {name: s for s, name in enumerate(responses.subjects)}
        split = Split(np.array([place[m] for m in models("train")]), np.array([place[m] for m in models("test")]))
        train, scores = responses.scores[split.train], responses.scores[split.test]
        weights = effective_weights(replace(responses.of(split.train), weights=None))  # as in `backtest`
        truth = scores.mean(axis=1)
        released = read_parameters(FOLDER / f"{BENCHMARKS[benchmark]}_released_difficulty.jsonl.gz", responses.items)
        print(f"{benchmark}: the released difficulties")
        for sentence in assess(train, released, None, responses.items).problems:
            print(f"  REFUSED: {sentence}")
        nearest: Contender = CONTENDERS["nearest-difficulty"]
        assert isinstance(nearest.policy, Policy)
        for label, fitted in (("released", released), ("converged Rasch", Recipe("1pl")(train, weights=weights))):
            session = replay(fitted.bank("b", responses.items), replace(nearest.policy, budget="5%"), scores, seed=0)
            theta = session.estimate.theta[:, 0]
            theirs = ranking_accuracy(theta, truth, ties="autojudger")
            print(
                f"  nearest difficulty, {label:15} 5% of items: {theirs:.2f} as "
                f"the authors count ties, {ranking_accuracy(theta, truth):.2f} with ties as half"
            )
        start = time.perf_counter()
        classical = [contender for contender in CONTENDERS.values() if contender.name != "autojudger"]
        found = backtest(responses, split, classical, ["1%", "5%"], recipe=Recipe())
        for (name, budget), cell in found.cells.items():
            print(f"  {name:20} {budget:>3} ranking {cell.ranking[0]:.2f} error {cell.error[0]:.4f}")
        print(f"  {time.perf_counter() - start:.0f} s, calibration included", flush=True)
        banks = {m: Recipe(m)(train, weights=weights) for m in ("1pl", "2pl", "mirt")}
        start = time.perf_counter()
        for contender in classical:
            if isinstance(contender.policy, Policy):
                model = {"bank": "2pl", "none": "2pl"}.get(contender.model, contender.model)
                replay(banks[model].bank("b", responses.items), replace(contender.policy, budget="5%"), scores, seed=0)
        print(f"  all selectors, 17 models, 5% of items: {time.perf_counter() - start:.1f} s", flush=True)


def fixture_runs(kind: str) -> tuple[Responses, ItemBank]:
    """The fixtures' training runs on a bank, in its fullest format, and the bank's items in the same order."""
    path = FIXTURES / "responses" / f"{kind}.csv.gz"
    found = grouped(read_format_responses([path]).whole if in_formats(path) else read_responses(path))
    by_id = {item.id: item for item in read_bank(FIXTURES / "banks" / f"{kind}.bank").items}
    return found, ItemBank.uncalibrated(kind, [by_id[name] for name in found.items])


def texts(options: argparse.Namespace) -> None:
    """Splits of the fixtures' training runs by `autojudger` and `cluster`, with the items placed by an encoder."""
    responses, bank = fixture_runs(options.bank)
    embeddings = None
    if options.encoder:
        embeddings = load_embedder(options.encoder, part=options.part).embed(bank).astype(np.float64)
    contenders = [CONTENDERS[name] for name in ("autojudger", "cluster")]
    total = Backtest(len(responses.items), {}, {})
    test = round(len(responses.subjects) / 5)
    for seed, split in enumerate(splits(responses, options.splits, test=test, seed=0)):
        recipe = Recipe("1pl")
        total.merge(
            backtest(responses, split, contenders, ["2%", "5%"], recipe=recipe, seed=seed, embeddings=embeddings)
        )
    for (name, budget), cell in total.cells.items():
        ranking = np.array(cell.ranking)
        print(f"  {name:20} {budget:>3} {ranking.mean():.1f} +- {ranking.std(ddof=1) / len(ranking) ** 0.5:.1f}")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("paper", "splits", "intervals", "texts"))
    parser.add_argument("--benchmark", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--pool", choices=("others", "paper", "all"), default="others")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--train", default=str(TRAIN), help="models to calibrate on, or oracle")
    parser.add_argument("--shift", action="store_true")
    parser.add_argument("--bank", choices=("text", "vision", "cross"), default="text", help="of the fixtures")
    parser.add_argument("--encoder", help="of its texts and pictures; responses place the items when omitted")
    parser.add_argument("--part", default="text", help="what open_clip embeds: text, image, mean or concat")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.command == "paper":
        paper(options)
    elif options.command == "texts":
        texts(options)
    else:
        run(options)


if __name__ == "__main__":
    main()
