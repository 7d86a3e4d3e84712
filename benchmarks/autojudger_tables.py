"""AutoJudger's experiments on real response matrices: its paper's tables and figures, as far as the data allow.

``run`` interviews and keeps what it finds in ``--out``, a file of JSON lines; what is there already is not done again,
so that a run can be stopped, gone on with and done in parts (``--benchmark``, ``--split``, ``--only``). ``show`` prints
the tables from that file, with the paper's rows beside ours. ``table4``, ``table7``, ``table8``, ``table14``,
``figure4``, ``figure6`` and ``groups`` (ranks within the paper's four groups by size) do what is missing for that table
or figure of the paper, and print it.

Splits: ``paper``, the paper's 60 / 17 models, by five runs of different seeds; ``random``, 20 draws of 60 / 17 of those
77 models with near-duplicates on one side.

There are no texts or images for these matrices, so that no encoder can be used: ``residual_factors`` of the calibration
models' responses stand in for embeddings, and vectors drawn at random for a control that knows nothing. The interviewer
is the one without a model. Neither are there annotated difficulties, so figure 4 is of the fixture banks, whose items
have levels. No row is without visual: no interviewer at hand sees pictures.

The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from backtests import BENCHMARKS, DATA, FOLDER, TRAIN, draw, fixture_runs, models, read
from interview_metrics import relative_cost, spread
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.parameters import read_parameters
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import FixedForm
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.extensions.backtests.backtest import Split, splits
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS
from pytest_adaptive_eval.inference.clusters import clusters, residual_factors, response_factors
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.closeness import difficulty_distance, semantic_distance
from pytest_adaptive_eval.interviewer.embeddings import FactorsEmbedder
from pytest_adaptive_eval.interviewer.encoders.reading import flops_of
from pytest_adaptive_eval.interviewer.first import by_difficulty
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]
SHARES = (1, 2, 3, 4, 5)
RUNS, SPLITS = 5, 20
#: The model whose course figure 6 shows.
SHOWN = "MiniCPM-V-2"
#: Groups of models in the paper's appendix D.2, by parameters below so many billions; proprietary ones are in the last.
SIZES = {"below 5B": 5.0, "below 9B": 9.0, "below 16B": 16.0, "16B and more, proprietary": float("inf")}
#: TFLOPs of the paper's table 4 and appendix H: an answer by each subject, a choice, and the first summary.
SUBJECTS = {"3B": 6.04, "7B": 13.85, "72B": 139.97}
CHOICE, SUMMARY = 23.25, 21.52
#: Rows of the paper that the data do not allow, and why.
ABSENT = {
    "stratified": "the matrices have no categories",
    "w/o visual": "the matrices have no pictures, and the interviewer by code would not look at any",
    "annotated": "the matrices have no annotated difficulties; figure4 has those of the fixture banks",
}


@dataclass(frozen=True)
class Row:
    """A way to interview: the bank, how to make the policy from (train, points, seed), and what ranks."""

    model: str
    make: Callable[[Array, Array, int], Policy]
    score: str = "ability"
    embedded: str = "residual"  # by what embeddings


def one_form(train: Array, points: Array, seed: int) -> Policy:  # noqa: ARG001
    """Uniform draws, one for all models, as the paper's random sampling is."""
    return Policy(FixedForm(tuple(np.random.default_rng(seed).permutation(train.shape[1]).tolist())), 0.0)


def judger(model: str = "1pl", score: str = "ability", embedded: str = "residual", **settings: Any) -> Row:
    """A row of AutoJudger's."""

    def make(train: Array, points: Array, seed: int) -> Policy:
        return Policy(AutoJudger(points, responses=train, seed=seed, **settings), 0.0)

    return Row(model, make, score, embedded)


def classical(name: str, model: str | None = None) -> Row:
    """A policy of ``adaptive-eval backtest``."""
    contender = CONTENDERS[name]
    made = contender.policy
    assert isinstance(made, Policy)
    return Row(model or {"bank": "2pl"}.get(contender.model, contender.model), lambda *_: made, contender.estimate)


ROWS: Mapping[str, Row] = {
    "random": classical("random"),
    "random, one form": Row("none", one_form, "mean"),
    "cluster": Row("none", lambda *_: Policy(FixedForm(()), 0.0), "mean"),
    "IRT": classical("nearest-difficulty"),
    "IRT, released difficulties": classical("nearest-difficulty", "released"),
    "estimate": classical("estimate"),
    "maximum-information": classical("maximum-information"),
    "variance": classical("variance"),
    "AutoJudger": judger(),
    "w/o agent": judger(agent=False),
    "w/o memory": judger(memory=False),
    "w/o difficulty": judger("none", "mean", difficulty="none"),
    "optimal difficulty": judger(retrieval="nearest-difficulty"),
    "random retrieval": judger(retrieval="random"),
    "7 candidates": judger(candidates=7),
    "10 candidates": judger(candidates=10),
    "first by difficulty": judger(first="difficulty"),
    "first at random": judger(first="random"),
    "no first items": judger(first="none"),
    "AutoJudger, projected": judger(score="projection"),
    "2PL": judger("2pl", "projection"),
    "3PL": judger("3pl", "projection"),
    "AutoJudger, control": judger(embedded="control"),
    "2PL, control": judger("2pl", "projection", "control"),
    "AutoJudger, plain factors": judger(embedded="plain"),
    "2PL, plain factors": judger("2pl", "projection", "plain"),
    "AutoJudger, parameters": judger(embedded="parameters"),
    "2PL, parameters": judger("2pl", "projection", "parameters"),
    "simplest": judger(),
    "annotated": judger("annotated"),
}
#: Rows of figure 4.
DIFFICULTIES = ("AutoJudger", "annotated", "w/o difficulty")


def at_random(n: int, seed: int) -> Array:
    """Unit vectors that know nothing, as many dimensions as CLIP ViT-B/32 has."""
    found = np.random.default_rng(seed).normal(size=(n, 512))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def embeddings(row: Row, train: Array, bank: ItemBank, seed: int) -> NDArray[Any]:
    """Of the items, by what the row says."""
    if row.embedded == "control":
        return at_random(len(bank), seed)
    if row.embedded == "parameters":
        return FactorsEmbedder().embed(bank)
    if row.embedded == "plain":
        found = response_factors(train)
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9))
    return residual_factors(train)


def scores_of(session: Session, row: Row, count: int) -> Array:
    """What ranks the subjects after `count` questions."""
    given, graded = session.answers
    items, scores = given[:, :count], graded[:, :count]
    if row.score == "mean":
        return np.asarray(np.nanmean(scores, axis=1))
    theta = session.trace[:, count - 1]
    if row.score == "ability":
        return np.asarray(theta[:, 0])
    bank = session.bank
    p = bank.probability(theta)
    np.put_along_axis(p, items, scores, axis=1)
    return np.asarray(p.mean(axis=1))


def interviews(row: Row, name: str, bank: ItemBank, train: Array, points: Array, test: Array, seed: int) -> Session:
    """All subjects' interviews of 5 % of the bank."""
    policy = replace(row.make(train, points, seed), budget="5%")
    if name == "simplest":  # what the weakest is asked is asked of all
        weakest = int(np.nanmean(test, axis=1).argmin())
        order = replay(bank, policy, test[[weakest]], seed=seed).answers[0][0]
        policy = replace(policy, selector=FixedForm(tuple(order.tolist())))
    return replay(bank, policy, test, seed=[1000 * seed + s for s in range(len(test))])


def measured(name: str, banks: Callable[[str], ItemBank], train: Array, test: Array, seed: int) -> dict[str, Any]:
    """One row on one split."""
    row, n = ROWS[name], test.shape[1]
    truth = np.nanmean(test, axis=1)
    points = embeddings(row, train, banks(row.model), seed)
    counts = [resolve_budget(f"{share}%", n) for share in SHARES]
    start = time.perf_counter()
    if name == "cluster":
        chosen = [clusters(response_factors(train), count, seed).items for count in counts]
        found = [test[:, items].mean(axis=1) for items in chosen]
        asked = np.tile(chosen[-1], (len(test), 1))
        out: dict[str, Any] = {}
    else:
        session = interviews(row, name, banks(row.model), train, points, test, seed)
        found, asked = [scores_of(session, row, count) for count in counts], session.answers[0]
        out = course(session) if row.model == "1pl" else {}
    top = truth >= np.median(truth)
    return {
        "half": [ranking_accuracy(x, truth) for x in found],
        "autojudger": [ranking_accuracy(x, truth, ties="autojudger") for x in found],
        "top": [ranking_accuracy(x[top], truth[top], ties="autojudger") for x in found],
        "scores": found[-1].tolist(),
        "truth": truth.tolist(),
        "distance": float(np.mean([semantic_distance(points[items]) for items in asked])),
        "seconds": round(time.perf_counter() - start, 2),
        **out,
    }


def course(session: Session) -> dict[str, Any]:
    """How near difficulties are to abilities past the first questions, and what the interview says of itself."""
    difficulty = session.bank.difficulty[session.answers[0]]
    gap = difficulty_distance(difficulty[:, 10:], session.trace[:, 9:-1, 0])
    return {"gap": gap, "widened": session.account.get("widened", 0)}


def split_of(benchmark: str, kind: str, number: int) -> tuple[Responses, Split]:
    """A split's responses and sides."""
    if kind == "random":
        responses = read(benchmark, "paper")
        return responses, draw(responses, number, TRAIN, False)
    responses = read(benchmark, "all")
    place = {name: s for s, name in enumerate(responses.subjects)}
    return responses, Split(*(np.array([place[m] for m in models(which)]) for which in ("train", "test")))


def bank_maker(
    benchmark: str, responses: Responses, train: Array, levels: Array | None = None
) -> Callable[[str], ItemBank]:
    """Banks by model, each calibrated once; ``annotated`` has the levels as difficulties."""
    made: dict[str, ItemBank] = {}

    def bank(model: str) -> ItemBank:
        if model not in made:
            if model == "none":
                zeros = np.zeros(len(responses.items))
                made[model] = ItemBank("b", responses.items, (), zeros, zeros, calibrated=False)
            elif model == "released":
                path = FOLDER / f"{BENCHMARKS[benchmark]}_released_difficulty.jsonl.gz"
                made[model] = read_parameters(path, responses.items).bank("b", responses.items)
            elif model == "annotated":
                assert levels is not None
                made[model] = ItemBank("b", responses.items, (), np.ones(len(levels)), -levels)
            else:
                made[model] = Recipe(model)(train).bank("b", responses.items)
        return made[model]

    return bank


def one(task: tuple[str, str, int, tuple[str, ...]]) -> list[dict[str, Any]]:
    """Some rows on one split."""
    benchmark, kind, number, names = task
    responses, split = split_of(benchmark, kind, number)
    train, test = responses.scores[split.train], responses.scores[split.test]
    banks = bank_maker(benchmark, responses, train)
    key = {"benchmark": benchmark, "split": kind, "number": number}
    key["subjects"] = [responses.subjects[s] for s in split.test]
    return [{**key, "row": name, **measured(name, banks, train, test, number)} for name in names]


def first_items(benchmark: str) -> Iterator[dict[str, Any]]:
    """Table 7: how the first ten questions alone rank the calibration models, 50 trials each."""
    responses, split = split_of(benchmark, "paper", 0)
    train = responses.scores[split.train]
    truth, n = train.mean(axis=1), train.shape[1]
    b = Recipe("1pl")(train).bank("b", responses.items).difficulty
    rng = np.random.default_rng(0)
    ways: dict[str, Callable[[int], NDArray[np.int64]]] = {
        "residual factors": lambda t: clusters(residual_factors(train), 10, t).items,
        "response factors": lambda t: clusters(response_factors(train), 10, t).items,
        "random vectors": lambda t: clusters(at_random(n, t), 10, t).items,
        "IRT": lambda _: by_difficulty(b, 10),
        "random": lambda _: rng.choice(n, 10, replace=False),
    }
    for way, make in ways.items():
        found = [ranking_accuracy(train[:, make(trial)].mean(axis=1), truth) for trial in range(50)]
        key = {"benchmark": benchmark, "split": "first", "number": 0, "row": way}
        yield {**key, "mean": float(np.mean(found)), "best": float(max(found))}


def mathvista() -> Iterator[dict[str, Any]]:
    """Table 14: each of 24 models interviewed with a bank of the 23 others, at 5 % of the 1000 questions."""
    with gzip.open(DATA / "m3irt" / "normal_mathvista.csv.gz", "rt", encoding="utf-8-sig", newline="") as file:
        head, *lines = csv.reader(file)
    columns = [i for i, name in enumerate(head) if i and not name.startswith("<")]  # asked with image and text
    scores = np.array([[float(line[i]) for i in columns] for line in lines])
    truth = scores.mean(axis=1)
    for name in ("random", "cluster", "IRT", "estimate", "AutoJudger", "2PL", "AutoJudger, control", "2PL, control"):
        row = ROWS[name]
        for run in range(RUNS):
            found = []
            for s in range(len(scores)):
                train, test = np.delete(scores, s, axis=0), scores[[s]]
                responses = Responses(tuple(map(str, range(len(train)))), tuple(head[i] for i in columns), train)
                if name == "cluster":
                    found.append(float(test[0, clusters(response_factors(train), 50, run).items].mean()))
                    continue
                bank = bank_maker("", responses, train)(row.model)
                points = embeddings(row, train, bank, run)
                # abilities of 24 fits are on 24 scales: all are ranked by projected accuracy
                by = row if row.score == "mean" else replace(row, score="projection")
                session = interviews(row, name, bank, train, points, test, 100 * run + s)
                found.append(float(scores_of(session, by, session.asked)[0]))
            value = ranking_accuracy(found, truth)
            yield {"benchmark": "MathVista", "split": "leave one out", "number": run, "row": name, "half": [value]}


def figure4(kind: str) -> Iterator[dict[str, Any]]:
    """Difficulties by IRT, by the levels at which the items were made, and none, on the fixtures' training runs."""
    responses, bank = fixture_runs(kind)
    level = np.array([item.meta["level"] for item in bank.items], dtype=np.float64)
    levels = (level - level.mean()) / level.std()
    for number, split in enumerate(splits(responses, SPLITS, test=round(len(responses.subjects) / 5), seed=0)):
        train, test = responses.scores[split.train], responses.scores[split.test]
        banks = bank_maker("", responses, train, levels)
        for name in DIFFICULTIES:
            key = {"benchmark": kind, "split": "figure 4", "number": number, "row": name}
            yield {**key, **measured(name, banks, train, test, number)}


def figure6() -> Iterator[dict[str, Any]]:
    """The course of one interview: ability, and the mean difficulty of the 20 nearest questions."""
    responses, split = split_of("MMMU", "paper", 0)
    train = responses.scores[split.train]
    place = responses.subjects.index(SHOWN)
    bank = bank_maker("MMMU", responses, train)("1pl")
    policy = ROWS["AutoJudger"].make(train, residual_factors(train), 0)
    session = replay(bank, replace(policy, budget="5%"), responses.scores[[place]], seed=0)
    b = bank.difficulty[session.answers[0][0]]
    smooth = [float(b[max(0, t - 10) : t + 10].mean()) for t in range(len(b))]
    yield {
        **{"benchmark": "MMMU", "split": "figure 6", "number": 0, "row": SHOWN},
        "ability": [round(x, 2) for x in session.trace[0, :, 0].tolist()],
        "smoothed": [round(x, 2) for x in smooth],
    }


def present(path: Path) -> list[dict[str, Any]]:
    """What was found so far, each once."""
    lines = path.read_text().splitlines() if path.is_file() else []
    found = [json.loads(line) for line in lines]
    return list({(one["benchmark"], one["split"], one["number"], one["row"]): one for one in found}.values())


def run(options: argparse.Namespace, only: Sequence[str]) -> None:
    """Do what is missing for the tables of splits."""
    done = {(one["benchmark"], one["split"], one["number"], one["row"]) for one in present(options.out)}
    numbers = range(options.count or (RUNS if options.split == "paper" else SPLITS))
    tasks = []
    for benchmark in options.benchmark:
        for number in numbers:
            wanted = [name for name in only if (benchmark, options.split, number, name) not in done]
            if wanted:
                tasks.append((benchmark, options.split, number, tuple(wanted)))
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for found in pool.map(one, tasks):
            keep(options, found)


def keep(options: argparse.Namespace, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows to the file as they come."""
    for row in rows:
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["benchmark"], row["split"], row["number"], row["row"], flush=True)


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
    """First questions."""
    for benchmark in options.benchmark:
        if not rows_of(options, benchmark, "first"):
            keep(options, first_items(benchmark))
    for benchmark in options.benchmark:
        for one in rows_of(options, benchmark, "first"):
            print(f"first ten, mean (best of 50), {benchmark}, {one['row']}: {one['mean']:.1f} ({one['best']:.1f})")


def table8(options: argparse.Namespace) -> None:
    """The better half of the tested models, by questions of their own and by those of the weakest."""
    run(options, ["AutoJudger", "simplest"])
    for benchmark, name in product(options.benchmark, ("AutoJudger", "simplest")):
        tops = [one["top"] for one in rows_of(options, benchmark, options.split) if one["row"] == name]
        means = " / ".join(f"{value:.1f}" for value in np.mean(tops, axis=0))
        shares = " / ".join(map(str, SHARES))
        label = "simplest" if name == "simplest" else "personalised"
        print(f"better half, {benchmark}, {options.split} split, {label}, {shares} %: {means}")


def table14(options: argparse.Namespace) -> None:
    """MathVista."""
    if not rows_of(options, "MathVista", "leave one out"):
        keep(options, mathvista())
    found = rows_of(options, "MathVista", "leave one out")
    for name in dict.fromkeys(one["row"] for one in found):
        values = [one["half"][0] for one in found if one["row"] == name]
        print(f"MathVista, leave one out, 5 %: {name} {np.mean(values):.2f}±{spread(values):.2f}")


def show_difficulties(options: argparse.Namespace) -> None:
    """Figure 4."""
    for kind in ("text", "vision", "cross"):
        if not rows_of(options, kind, "figure 4"):
            keep(options, figure4(kind))
        for name in DIFFICULTIES:
            found = [one["half"] for one in rows_of(options, kind, "figure 4") if one["row"] == name]
            error = np.std(found, axis=0, ddof=1) / len(found) ** 0.5
            shown = " / ".join(f"{x:.1f}±{e:.1f}" for x, e in zip(np.mean(found, axis=0), error, strict=True))
            print(f"figure 4, fixtures' bank {kind}, {name}, 1 / 2 / 3 / 4 / 5 %: {shown}")


def groups(options: argparse.Namespace) -> None:
    """Ranks within the paper's groups of models by size."""
    names = ("AutoJudger", "estimate", "random", "IRT")
    run(options, names)
    group = size_groups()
    for g, label in enumerate(SIZES):
        sides = [sum(group[model] == g for model in models(which)) for which in ("train", "test")]
        print(f"{label}: {sides[0]} models calibrate and {sides[1]} are tested in the paper's split")
    for benchmark, name in product(options.benchmark, names):
        found = [one for one in rows_of(options, benchmark, options.split) if one["row"] == name]
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


def within(found: Sequence[Mapping[str, Any]], group: Mapping[str, int], chosen: int) -> float:
    """Mean ranking accuracy among the tested models of a group, over the splits that test two of them."""
    values = []
    for one in found:
        member = np.array([group[subject] == chosen for subject in one["subjects"]])
        if member.sum() > 1:
            values.append(ranking_accuracy(np.array(one["scores"])[member], np.array(one["truth"])[member]))
    return float(np.mean(values))


def show_course(options: argparse.Namespace) -> None:
    """Figure 6."""
    if not rows_of(options, "MMMU", "figure 6"):
        keep(options, figure6())
    for one in rows_of(options, "MMMU", "figure 6"):
        print(f"figure 6, {one['row']}: after questions, ability, mean difficulty of the 20 nearest")
        for t in (1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50):
            print(f"  {t:3} {one['ability'][t - 1]:6.2f} {one['smoothed'][t - 1]:6.2f}")


def rows_of(options: argparse.Namespace, benchmark: str, kind: str) -> list[dict[str, Any]]:
    """What was found of one benchmark and split."""
    return [one for one in present(options.out) if (one["benchmark"], one["split"]) == (benchmark, kind)]


PAPER = {  # at 5 %, its table 1, the mean and 1.96 SD over five runs; MMT-Bench and SEED-Bench are not at hand
    "random, one form": ("93.82±3.71", "81.47±6.28"),
    "cluster": ("93.53±3.80", "78.97±11.62"),
    "stratified": ("93.97±3.08", "84.26±6.22"),
    "IRT": ("89.71", "82.35"),
    "AutoJudger": ("94.85±0.00", "87.94±0.71"),
    "w/o agent": ("92.28", "82.87"),
    "w/o visual": ("94.85", "87.50"),
    "w/o memory": ("94.12", "89.71"),
    "w/o difficulty": ("94.85", "86.76"),
    "optimal difficulty": ("95.59", "83.09"),
    "random retrieval": ("91.18", "83.82"),
    "7 candidates": ("94.85", "83.82"),
    "10 candidates": ("91.91", "85.29"),
    "2PL": ("", "84.56"),
    "3PL": ("", "86.03"),
}


def show(options: argparse.Namespace) -> None:
    """Print the tables."""
    found = present(options.out)
    for kind, ties in (("paper", "autojudger"), ("paper", "half"), ("random", "half")):
        for benchmark in options.benchmark:
            rows = [one for one in found if (one["benchmark"], one["split"]) == (benchmark, kind)]
            if rows:
                table(rows, benchmark, kind, ties)


def table(rows: list[dict[str, Any]], benchmark: str, kind: str, ties: str) -> None:
    """Ranking accuracy by share, with distances; the spread over runs, or the standard error over splits."""
    which = 0 if benchmark == "AI2D" else 1
    what = "1.96 SD over runs" if kind == "paper" else "standard error over splits"
    print(f"\n{benchmark}, {kind} split, ties {ties}; with {what}")
    print("| | " + " | ".join(f"{share} %" for share in SHARES) + " | top half | distance | gap | paper, 5 % |")
    print("| --- " * (len(SHARES) + 5) + "|")
    for name in dict.fromkeys(one["row"] for one in rows):
        own = [one for one in rows if one["row"] == name]
        values = np.array([one[ties] for one in own])
        scale = 1.0 if kind == "paper" else 1.96 * len(own) ** 0.5
        shown = [f"{column.mean():.2f}±{spread(column.tolist()) / scale:.2f}" for column in values.T]
        gap = np.mean([one["gap"] for one in own]) if "gap" in own[0] else float("nan")
        more = [f"{np.mean([one['top'][-1] for one in own]):.2f}", f"{np.mean([one['distance'] for one in own]):.3f}"]
        more += ["" if np.isnan(gap) else f"{gap:.2f}", PAPER.get(name, ("", ""))[which]]
        print(f"| {name} | " + " | ".join(shown + more) + f" | n={len(own)}")
    last = {name: [one[ties][-1] for one in rows if one["row"] == name] for name in ("estimate", "AutoJudger")}
    if kind == "random" and len(last["estimate"]) == len(last["AutoJudger"]) > 1:
        gap = np.subtract(last["estimate"], last["AutoJudger"])
        print(f"estimate less AutoJudger at 5 %: {gap.mean():.1f}±{gap.std(ddof=1) / len(gap) ** 0.5:.1f}")
    for name, why in ABSENT.items():
        print(f"| {name} | {why} | {PAPER.get(name, ('', ''))[which]} |")


COMMANDS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "table4": table4,
    "table7": table7,
    "table8": table8,
    "table14": table14,
    "figure4": show_difficulties,
    "figure6": show_course,
    "groups": groups,
}


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "show", *COMMANDS))
    parser.add_argument("--out", type=Path, default=Path("autojudger-tables.jsonl"))
    parser.add_argument("--benchmark", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--split", choices=("paper", "random"), default="paper")
    parser.add_argument("--only", nargs="+", choices=[*ROWS, *ABSENT], help="some rows")
    parser.add_argument("--count", type=int, help="runs or splits")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for name in set(options.only or ()) & set(ABSENT):
        parser.error(f"--only {name}: {ABSENT[name]}")
    if not FOLDER.is_dir():
        print(f"skipped: no response matrices at {FOLDER}; ADAPTIVE_EVAL_DATA names their folder")
        return
    if options.command == "run":
        run(options, options.only or [name for name in ROWS if name not in ABSENT])
    else:
        COMMANDS.get(options.command, show)(options)


if __name__ == "__main__":
    main()
