"""Ready banks of public benchmarks: their recipe, and what drifted parameters cost.

``python benchmarks/ready_banks.py NAME ... --write`` fits each bank to published results and writes its file. Without
``--write`` it compares the file with what it would write. ``--drift`` calibrates on a part of the subjects and gates
the others: the newer half by date where the source has dates, and else, or with ``--by family``, a third of the
families (for agents the scaffolds). It prints questions to a correct verdict with a bank and by uniform draws without
one, 10 and 5 points away, and the share of wrong verdicts of both sides with the truth at the threshold.

The results are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``); those of ZeroEval in the git
directory ``--zeroeval``, and their answers are graded by this package's graders.
"""

from __future__ import annotations

import argparse
import ast
import csv
import functools
import gzip
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from gate_decisions import DECIDE, UNIFORM, abilities, decided, needed
from interval_coverage import DATA, NAMES, bank_of
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.ready import FOLDER
from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

Array = NDArray[np.float64]
DIGITS = 3  #: Decimals of parameters, abilities and accuracies.
AWAY = (0.10, 0.05)
AGENTS = "dariakryvosheieva/agent-psychometrics 62851ff8"
JUDGER = "IMNearth/AutoJudger adbae655, model_performance"
ZEROEVAL = "WildEval/ZeroEval 8c1485ed, result_dirs"


class Results(NamedTuple):
    """Names of subjects and items, and scores of shape (subjects, items)."""

    subjects: list[str]
    items: list[str]
    scores: Array


class Benchmark(NamedTuple):
    """A public benchmark.

    Args:
        read: Reads its results.
        date: Returns a subject's date, empty if unknown; the family of a subject, such as its scaffold.
    """

    title: str
    source: str
    licence: str
    newest: str
    ids: str
    read: Callable[[], Results]
    date: Callable[[str], str]
    family: Callable[[str], str]


def matrix(name: str) -> Results:
    """Read one of the response matrices."""
    with gzip.open(DATA / "matrices" / name / "matrix.csv.gz", "rt", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    return Results([row[0] for row in rows], head[1:], np.array([row[1:] for row in rows], float))


def autojudger(name: str) -> Results:
    """Read results of VLMEvalKit, items x models."""
    with gzip.open(DATA / "autojudger" / NAMES[name], "rt", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    return Results(head[1:], [row[0] for row in rows], np.array([row[1:] for row in rows], float).T)


@functools.cache
def published() -> dict[str, str]:
    """Date of publication of models, as ``2024-11``."""
    with (DATA / "autojudger" / "model_information.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    dates = {}
    for row in rows:
        year, _, month = row["publish_date"].partition(".")
        dates[row["models"]] = f"{year}-{int(month or 1):02}"
    return dates


def zeroeval(folder: str, accepts: Callable[[str, str], float]) -> Results:
    """Read answers of ZeroEval's models and grade them."""
    place = os.environ.get("ZEROEVAL", "")
    if not place:
        sys.exit("--zeroeval names the git directory of WildEval/ZeroEval")
    listed = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD", f"result_dirs/{folder}/"],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    by_model: dict[str, dict[str, float]] = {}
    for file in listed:
        if not file.endswith(".json"):
            continue
        shown = subprocess.run(["git", "show", f"HEAD:{file}"], cwd=place, capture_output=True, check=False)
        if shown.returncode:
            print(f"left out: {file} is not in this copy", flush=True)
            continue
        scores = {}
        for row in json.loads(shown.stdout):
            scores[f"{row['id']}"] = accepts(stated(row["output"][0]), str(row["answer"]).removeprefix("# "))
        by_model[Path(file).stem] = scores
    longest: dict[str, float] = {}
    for scores in by_model.values():
        if len(scores) > len(longest):
            longest = scores
    items = sorted(longest, key=lambda name: int(re.sub(r"\D", "", name.rpartition("#")[2])))
    whole = [model for model, scores in by_model.items() if scores.keys() == longest.keys()]
    return Results(whole, items, np.array([[by_model[model][item] for item in items] for model in whole]))


def stated(output: str) -> str:
    """Return the answer in a model's JSON, also where it is cut or not quite JSON; the text itself without one."""
    found = re.findall(r'"answer"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^,}\n]+))', output)
    if not found:
        return output[-200:]
    text: str = found[-1][0] or found[-1][1]
    return text.replace('\\"', '"').replace("\\\\", "\\").strip()


def same_literal(answer: str, key: str) -> float:
    """Return whether two Python literals are equal."""
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            return float(ast.literal_eval(answer) == ast.literal_eval(key))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return float(answer.strip("'\"") == key.strip("'\""))


def graded_by(grader: str) -> Callable[[str, str], float]:
    """Return a function that grades an answer by its key."""
    return lambda answer, key: Item("q", "?", key, grader=grader).grade(answer)


def scaffold(name: str) -> str:
    """Return the agent of a submission such as ``20241022_tools_claude-3-5-sonnet``."""
    return re.split(r"[_\-. ]", re.sub(r"^\d{8}_", "", name).lower())[0]


def submitted(name: str) -> str:
    """Return the date that begins a submission's name."""
    return f"{name[:4]}-{name[4:6]}-{name[6:8]}" if name[:8].isdecimal() else ""


def maker(name: str) -> str:
    """Return the first word of a model's name."""
    return re.split(r"[_\-. \d]", name.lower())[0] or name.lower()


def undated(_: str) -> str:
    """Return no date."""
    return ""


BENCHMARKS: dict[str, Benchmark] = {
    "swe-bench-verified": Benchmark(
        *("SWE-bench Verified", f"{AGENTS}, data/swebench_verified/responses.jsonl", "MIT", "2025-12-15"),
        *("instance_id", lambda: matrix("swebench_verified"), submitted, scaffold),
    ),
    "terminal-bench-2": Benchmark(
        *("Terminal-Bench 2.0", f"{AGENTS}, data/terminalbench/responses_raw.jsonl", "MIT", "2026-02-19"),
        *("task name", lambda: matrix("terminalbench2_mean"), undated, scaffold),
    ),
    "ai2d": Benchmark(
        *("AI2D, test", JUDGER, "Apache-2.0", "2024-12"),
        *("index of VLMEvalKit", lambda: autojudger("AI2D"), lambda name: published().get(name, ""), maker),
    ),
    "mmmu-val": Benchmark(
        *("MMMU, dev and val", JUDGER, "Apache-2.0", "2024-12"),
        *("index of VLMEvalKit", lambda: autojudger("MMMU"), lambda name: published().get(name, ""), maker),
    ),
    "cruxeval-output": Benchmark(
        *("CRUXEval, outputs", f"{ZEROEVAL}/crux", "Apache-2.0", "2024-12"),
        *("id of ZeroEval", lambda: zeroeval("crux", same_literal), undated, maker),
    ),
    "math-l5": Benchmark(
        *("MATH, level 5", f"{ZEROEVAL}/math-l5", "Apache-2.0", "2024-12"),
        *("id of ZeroEval", lambda: zeroeval("math-l5", graded_by("math")), undated, maker),
    ),
    "gsm8k": Benchmark(
        *("GSM8K, test", f"{ZEROEVAL}/gsm", "Apache-2.0", "2024-12"),
        *("id of ZeroEval", lambda: zeroeval("gsm", graded_by("numeric")), undated, maker),
    ),
}


def weights(benchmark: Benchmark, subjects: Sequence[str]) -> Array:
    """Return the weight of each subject, shape (S,): the root of its family's size, shared by the family.

    Whole weight for each of thirty variants of one agent would fit the bank to that agent.
    """
    families = [benchmark.family(name) for name in subjects]
    return np.array([families.count(family) ** -0.5 for family in families])


def rounded(values: Array) -> list[float]:
    """Return numbers with few decimals."""
    return [round(float(value), DIGITS) for value in values]


def split(benchmark: Benchmark, results: Results, by: str) -> tuple[NDArray[np.bool_], str]:
    """Return which subjects calibrate, and how the others differ."""
    dates = np.array([benchmark.date(name) for name in results.subjects])
    known = dates != ""
    if by == "date" and known.sum() > len(dates) / 3:
        newer = dates > np.sort(dates[known])[known.sum() // 2]
        first = np.sort(dates[newer])[0]
        return known & ~newer, f"{int(newer.sum())} newer subjects, from {first} on"
    families = np.array([benchmark.family(name) for name in results.subjects])
    held = np.random.default_rng(0).permutation(sorted(set(families)))[::3]
    out = np.isin(families, held)
    return ~out, f"{int(out.sum())} subjects of {len(held)} other families"


def drift(benchmark: Benchmark, results: Results, seeds: int, errors: int, by: str) -> tuple[int, int]:
    """Print questions and wrong verdicts of subjects that did not calibrate; return the medians at ten points."""
    calibrating, which = split(benchmark, results, by)
    out = ~calibrating
    if by == "date":
        out &= np.array([benchmark.date(name) != "" or "other families" in which for name in results.subjects])
    names = [name for name, used in zip(results.subjects, calibrating, strict=True) if used]
    bank = bank_of(fit_map(results.scores[calibrating], model="2pl", weights=weights(benchmark, names)))
    held = results.scores[out]
    n = len(results.items)
    plain = ItemBank("b", bank.ids, (), np.zeros((n, 1)), np.zeros(n), calibrated=False)
    print(f"{benchmark.title}: {int(calibrating.sum())} subjects calibrate, {which}", flush=True)
    medians: list[int] = []
    for margin in AWAY:
        ours = needed(bank, DECIDE, held, margin, seeds, None)
        uniform = needed(plain, UNIFORM, held, margin, seeds, None)
        error = ours.std() / len(ours) ** 0.5 / uniform.mean()
        medians += [int(np.median(ours)), int(np.median(uniform))]
        ratio = f"{ours.mean() / uniform.mean():.2f} +- {error:.2f}"
        of_medians = f"median {medians[-2]} of {n} questions (uniform {medians[-1]})"
        print(f"  {100 * margin:2.0f} points: {of_medians}, ratio of the means {ratio}", flush=True)
    if errors:
        rates = list(wrong_verdicts(bank, held, errors))
        bound = 0.05 + 2 * (0.05 * 0.95 / (errors * len(held))) ** 0.5
        print(
            f"  wrong PASS {rates[0]:.3f}, wrong FAIL {rates[1]:.3f} at the threshold, at most {bound:.3f}", flush=True
        )
    return medians[0], medians[1]


def wrong_verdicts(bank: ItemBank, held: Array, seeds: int) -> Iterator[float]:
    """Yield the share of wrong verdicts for either side, with the truth at the threshold."""
    for side in (1, -1):
        wrong = []
        for s, row in enumerate(held):
            total = np.floor(row.sum()) + 1.0 if side > 0 else row.sum()
            rows = np.repeat(row[None], seeds, axis=0)
            found = decided(bank, DECIDE, rows, "100%", 2 * s + (side > 0), Claim(total))
            wrong.append(float((found.outcome[:, 0] == side).mean()))
        yield float(np.mean(wrong))


def recipe(name: str, seeds: int) -> dict[str, object]:
    """Return the content of a bank's file."""
    benchmark = BENCHMARKS[name]
    results = benchmark.read()
    fitted = fit_map(results.scores, model="2pl", weights=weights(benchmark, results.subjects))
    questions, uniform = drift(benchmark, results, seeds, 0, "family")
    slopes, intercepts = rounded(fitted.discrimination[:, 0]), rounded(fitted.intercept)
    thetas = rounded(abilities(bank_of(fitted), results.scores)[:, 0])
    subjects = []
    for subject, accuracy, theta in zip(results.subjects, rounded(results.scores.mean(axis=1)), thetas, strict=True):
        subjects.append([subject, benchmark.family(subject), accuracy, theta])
    return {
        "name": name,
        "title": benchmark.title,
        "source": benchmark.source,
        "licence": benchmark.licence,
        "newest": benchmark.newest,
        "ids": benchmark.ids,
        "questions": questions,
        "uniform": uniform,
        "model": "2pl",
        "subjects": subjects,
        "items": {item: [a, d] for item, a, d in zip(results.items, slopes, intercepts, strict=True)},
    }


def encoded(content: dict[str, object]) -> str:
    """Return the text of a file, an item and a subject per line."""
    text = json.dumps(content, ensure_ascii=False)
    return re.sub(r'\], (?=[\["])', "],\n", text) + "\n"


def main() -> None:
    """Write, compare or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], help="all by default")
    parser.add_argument("--write", action="store_true", help="write the files")
    parser.add_argument("--drift", action="store_true", help="print the table of subjects left out")
    parser.add_argument("--by", choices=("date", "family"), default="date", help="how the table leaves out")
    parser.add_argument("--seeds", type=int, default=3, help="interviews of a subject and side")
    parser.add_argument("--errors", type=int, default=20, help="interviews of a subject and side at the threshold")
    parser.add_argument("--zeroeval", default="", help="git directory of WildEval/ZeroEval")
    options = parser.parse_args()
    if options.zeroeval:
        os.environ["ZEROEVAL"] = options.zeroeval
    for name in options.names or BENCHMARKS:
        if options.drift:
            drift(BENCHMARKS[name], BENCHMARKS[name].read(), options.seeds, options.errors, options.by)
            continue
        text = encoded(recipe(name, options.seeds))
        file = FOLDER / f"{name}.json"
        if options.write:
            file.write_text(text, encoding="utf-8")
        same = file.is_file() and file.read_text(encoding="utf-8") == text
        print(f"{file.name}: {len(text)} bytes, {'equal' if same else 'DIFFERENT'}", flush=True)


if __name__ == "__main__":
    main()
