"""Tables and figures of the AutoJudger paper beside its Table 1, on real response matrices.

``adaptive-eval study autojudger`` has Table 1 and its variants. ``table4``, ``table7``, ``table8``, ``table14``,
``figure4``, ``figure6`` and ``groups`` (ranks within the paper's four groups by size) print that table or figure.
``table8`` and ``groups`` interview as the study does, and share its file ``--out``.

Splits: ``paper``, the paper's 60 / 17 models, by five runs of different seeds; ``random``, 20 draws of 60 / 17 of those
77 models with near-duplicates on one side.

There are no annotated difficulties, so figure 4 is of the fixture banks, whose items have levels.

The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from backtests import BENCHMARKS, DATA, FOLDER, fixture_runs, models, read
from interview_metrics import relative_cost
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.extensions.backtests.backtest import splits
from pytest_adaptive_eval.extensions.papers.judger import (
    ROWS,
    SHARES,
    Banks,
    embeddings,
    interviews,
    measured,
    random_points,
    ratings,
)
from pytest_adaptive_eval.extensions.papers.judger_results import Benchmark, Result, results_of, spread
from pytest_adaptive_eval.extensions.papers.published import PaperSplit
from pytest_adaptive_eval.inference.clusters import clusters, residual_factors, response_factors
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.interviewer.encoders.reading import flops_of
from pytest_adaptive_eval.interviewer.first import by_difficulty
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]
RUNS, SPLITS = 5, 20
#: The model whose course figure 6 shows.
SHOWN = "MiniCPM-V-2"
#: Groups of models in the paper's appendix D.2, by parameters below so many billions; proprietary ones are in the last.
SIZES = {"below 5B": 5.0, "below 9B": 9.0, "below 16B": 16.0, "16B and more, proprietary": float("inf")}
#: TFLOPs of the paper's table 4 and appendix H: an answer by each subject, a choice, and the first summary.
SUBJECTS = {"3B": 6.04, "7B": 13.85, "72B": 139.97}
CHOICE, SUMMARY = 23.25, 21.52
#: Rows of figure 4, by the source of the difficulties; those by level take the bank of the levels.
DIFFICULTIES = {"1pl": "autojudger", "annotated": "autojudger", "none": "without-difficulty"}


def benchmark_of(name: str, kind: str) -> Benchmark:
    """A published benchmark, as the study reads it."""
    responses = read(name, "all")
    path = FOLDER / f"{BENCHMARKS[name]}.csv.gz"
    return Benchmark(BENCHMARKS[name], responses, PaperSplit.beside(path), kind == "random")


def sides(name: str) -> tuple[Responses, Array, Array]:
    """The responses of a benchmark, and the scores of both sides of the paper's split."""
    responses, split = benchmark_of(name, "paper").split(0)
    return responses, responses.scores[split.train], responses.scores[split.test]


def table4(_: argparse.Namespace) -> None:
    """Costs at 4 % relative to asking everything, by appendix H, with what its encoder really computes."""
    import open_clip
    import torch

    model = open_clip.create_model("ViT-B-32")  # by its size; weights do not matter
    with torch.inference_mode():
        text = flops_of(lambda: model.encode_text(torch.zeros(1, 77, dtype=torch.long))) / 1e12
        picture = flops_of(lambda: model.encode_image(torch.zeros(1, 3, 224, 224))) / 1e12
    print(f"CLIP ViT-B/32: {1e3 * text:.2f} GFLOPs for a text of 77 tokens, {1e3 * picture:.2f} for a picture")
    print("relative cost by alpha (1 + step / model); without the interviewer's model; of the embeddings of all texts;")
    print("and the whole R(alpha), with embeddings, first summary and ten first questions, for MMT-Bench and MMMU:")
    for name, answer in SUBJECTS.items():
        costs = [relative_cost(0.04, answer, step) for step in (CHOICE, 0.0)]
        for items in (3127, 1050):
            first = items * text + SUMMARY
            costs.append(relative_cost(0.04, answer, CHOICE, first=first, firsts=10, items=items))
        simple, by_code, *whole = [f"{cost:.3f}" for cost in costs]
        print(f"  {name}: {simple}; {by_code}; {text / answer:.5f}; {' / '.join(whole)}")


def table7(options: argparse.Namespace) -> None:
    """How the first ten questions alone rank the calibration models, 50 trials each."""
    for benchmark in options.benchmark:
        responses, train, _test = sides(benchmark)
        truth, n = train.mean(axis=1), train.shape[1]
        b = Recipe("1pl")(train).bank("b", responses.items).difficulty
        rng = np.random.default_rng(0)
        ways: dict[str, Callable[[int], NDArray[np.int64]]] = {
            "residual factors": lambda t: clusters(residual_factors(train), 10, t).items,  # noqa: B023
            "response factors": lambda t: clusters(response_factors(train), 10, t).items,  # noqa: B023
            "random vectors": lambda t: clusters(random_points(n, t), 10, t).items,  # noqa: B023
            "IRT": lambda _: by_difficulty(b, 10),  # noqa: B023
            "random": lambda _: rng.choice(n, 10, replace=False),  # noqa: B023
        }
        for way, make in ways.items():
            found = [ranking_accuracy(train[:, make(trial)].mean(axis=1), truth) for trial in range(50)]
            print(f"first ten, mean (best of 50), {benchmark}, {way}: {np.mean(found):.1f} ({max(found):.1f})")


def study(options: argparse.Namespace, benchmark: str, rows: Sequence[str]) -> list[Result]:
    """Results of the study, which the file keeps."""
    count = options.count or (RUNS if options.split == "paper" else SPLITS)
    place = benchmark_of(benchmark, options.split)
    return results_of(place, rows, count, options.out, options.jobs, lambda text: print(text, flush=True))


def table8(options: argparse.Namespace) -> None:
    """The better half of the tested models, by questions of their own and by those of the weakest."""
    labels = {"autojudger": "personalised", "simplest": "simplest"}
    for benchmark in options.benchmark:
        found = study(options, benchmark, list(labels))
        for name, label in labels.items():
            tops = [one["top"] for one in found if one["row"] == name]
            means = " / ".join(f"{value:.1f}" for value in np.mean(tops, axis=0))
            shares = " / ".join(map(str, SHARES))
            print(f"better half, {benchmark}, {options.split} split, {label}, {shares} %: {means}")


def table14(_: argparse.Namespace) -> None:
    """MathVista: each of 24 models interviewed with a bank of the 23 others, at 5 % of the 1000 questions."""
    with gzip.open(DATA / "m3irt" / "normal_mathvista.csv.gz", "rt", encoding="utf-8-sig", newline="") as file:
        head, *lines = csv.reader(file)
    columns = [i for i, name in enumerate(head) if i and not name.startswith("<")]  # asked with image and text
    items = [head[i] for i in columns]
    scores = np.array([[float(line[i]) for i in columns] for line in lines])
    truth = scores.mean(axis=1)
    for name in ("random", "cluster", "nearest-difficulty", "estimate", "autojudger", "2pl", "control", "2pl-control"):
        row = ROWS[name]
        # abilities of 24 fits are on 24 scales: all are ranked by projected accuracy
        by = row
        if row.contender.estimate == "ability":
            by = replace(row, contender=replace(row.contender, estimate="projection"))
        values = []
        for run in range(RUNS):
            found = []
            for s in range(len(scores)):
                banks = Banks(items, np.delete(scores, s, axis=0))
                points = embeddings(row, banks, run)
                seed = run if row.per_budget else 100 * run + s
                (session,) = interviews(row, banks, points, scores[[s]], seed, [50])
                found.append(float(ratings(session, by, 50)[0]))
            values.append(ranking_accuracy(found, truth))
        print(f"MathVista, leave one out, 5 %: {name} {np.mean(values):.2f}±{spread(values):.2f}", flush=True)


def figure4(_: argparse.Namespace) -> None:
    """Difficulties by IRT, by the levels at which the items were made, and none, on the fixtures' training runs."""
    for kind in ("text", "vision", "cross"):
        responses, bank = fixture_runs(kind)
        level = np.array([item.meta["level"] for item in bank.items], dtype=np.float64)
        levels = (level - level.mean()) / level.std()
        found: dict[str, list[list[float]]] = {model: [] for model in DIFFICULTIES}
        for number, split in enumerate(splits(responses, SPLITS, test=round(len(responses.subjects) / 5), seed=0)):
            train, test = responses.scores[split.train], responses.scores[split.test]
            banks = Banks(responses.items, train)
            by_level = Banks(responses.items, train)
            by_level.set("1pl", ItemBank("b", responses.items, (), np.ones(len(levels)), -levels))
            for model, row in DIFFICULTIES.items():
                made = by_level if model == "annotated" else banks
                found[model].append(measured(row, made, test, number)["half"])
        for model, values in found.items():
            error = np.std(values, axis=0, ddof=1) / len(values) ** 0.5
            shown = " / ".join(f"{x:.1f}±{e:.1f}" for x, e in zip(np.mean(values, axis=0), error, strict=True))
            print(f"figure 4, fixtures' bank {kind}, {model}, 1 / 2 / 3 / 4 / 5 %: {shown}", flush=True)


def figure6(_: argparse.Namespace) -> None:
    """The course of one interview: ability, and the mean difficulty of the 20 nearest questions."""
    responses, train, _test = sides("MMMU")
    banks = Banks(responses.items, train)
    row = ROWS["autojudger"]
    scores = responses.scores[[responses.subjects.index(SHOWN)]]
    budget = resolve_budget("5%", len(responses.items))
    (session,) = interviews(row, banks, residual_factors(train), scores, 0, [budget])
    b = session.bank.difficulty[session.answers[0][0]]
    print(f"figure 6, {SHOWN}: after questions, ability, mean difficulty of the 20 nearest")
    for t in (1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50):
        smooth = b[max(0, t - 11) : t + 9].mean()
        print(f"  {t:3} {session.trace[0, t - 1, 0]:6.2f} {smooth:6.2f}")


def groups(options: argparse.Namespace) -> None:
    """Ranks within the paper's groups of models by size."""
    names = ("autojudger", "estimate", "random", "nearest-difficulty")
    group = size_groups()
    for g, label in enumerate(SIZES):
        counts = [sum(group[model] == g for model in models(which)) for which in ("train", "test")]
        print(f"{label}: {counts[0]} models calibrate and {counts[1]} are tested in the paper's split")
    for benchmark in options.benchmark:
        results = study(options, benchmark, names)
        for name in names:
            found = [one for one in results if one["row"] == name]
            shown = " / ".join(f"{within(found, group, g):.1f}" for g in range(len(SIZES)))
            print(f"within groups, {benchmark}, {options.split} split, 5 %, {name}: {shown}")


def size_groups() -> dict[str, int]:
    """Place in `SIZES` of each of the paper's models."""
    with (FOLDER / "model_information.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    limits = list(SIZES.values())
    billions = {"B": 1.0, "M": 1e-3}
    found = {}
    for row in rows:
        size = float(row["params"]) * billions[row["unit"]] if row["params"] else np.inf
        found[row["models"]] = min(int(np.searchsorted(limits, size, side="right")), len(limits) - 1)
    return found


def within(found: Sequence[Result], group: Mapping[str, int], chosen: int) -> float:
    """Mean ranking accuracy among the tested models of a group, over the splits that test two of them."""
    values = []
    for one in found:
        member = np.array([group[subject] == chosen for subject in one["subjects"]])
        if member.sum() > 1:
            values.append(ranking_accuracy(np.array(one["scores"])[member], np.array(one["truth"])[member]))
    return float(np.mean(values))


COMMANDS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "table4": table4,
    "table7": table7,
    "table8": table8,
    "table14": table14,
    "figure4": figure4,
    "figure6": figure6,
    "groups": groups,
}


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--out", type=Path, help="of table8 and groups: the file of the study")
    parser.add_argument("--benchmark", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--split", choices=("paper", "random"), default="paper")
    parser.add_argument("--count", type=int, help="runs or splits")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if not FOLDER.is_dir():
        print(f"skipped: no response matrices at {FOLDER}; ADAPTIVE_EVAL_DATA names their folder")
        return
    COMMANDS[options.command](options)


if __name__ == "__main__":
    main()
