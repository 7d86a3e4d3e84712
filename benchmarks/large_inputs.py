"""CPU time and memory of the commands on large inputs: responses, banks, histories and records.

Run one part, or all, as ``python benchmarks/large_inputs.py [PART ...]``:

- ``calibrate``: banks with conformal tables from 60 x 3 127 and 1 989 x 493 responses, or from other ``--shapes``;
- ``backtest``: 12 000 items, 4 policies, 5 budgets, 20 splits of 60 subjects;
- ``bank``: `pytest --adaptive-eval` with 100 questions of banks of 10 000 to 1 000 000 items, asked of a function and
  of a server, and of the same items as plain JSONL files;
- ``history``: the verbs `history` and `drift` over 100 to 10 000 runs;
- ``record``: the report of a run with 1 000 to 100 000 answers;
- ``import``: a published file of 200 000 records, proposed and written, with choices and with free answers.

Responses are simulated from a 2PL model. Every command is a process of its own, whose CPU seconds and largest resident
memory the system tells. With ``--before FOLDER``, a checkout of an earlier state, its ``calibrate`` and ``backtest``
take turns with those of this one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.parts import converted
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord

ROOT = Path(__file__).parents[1]
COMMAND = "import sys; from pytest_adaptive_eval.cli.command import main; sys.exit(main())"
SERVED = """
[[eval]]
name = "large"
bank = "large.bank"
model = "{url}#fixed"
budget = 100
"""
RUN = """
import pytest

@pytest.fixture(scope="module")
def model():
    return lambda prompt: "7"

@pytest.mark.adaptive_eval(bank="{bank}", budget=100)
def test_large(item, model):
    assert item.grade(model(item.prompt))
"""


def measure(command: Sequence[str], folder: Path, code: Path = ROOT) -> tuple[float, float]:
    """CPU seconds and largest memory in MiB of a command, which must succeed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(code)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n{(folder / 'output').read_text()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def show(what: str, measured: tuple[float, float]) -> None:
    """Print a line."""
    print(f"{what}: {measured[0]:.1f} s of CPU, {measured[1]:.0f} MiB", flush=True)


def write_responses(path: Path, subjects: int, items: int) -> None:
    """Simulate answers by a 2PL model."""
    rng = np.random.default_rng(0)
    slope, intercept = rng.lognormal(0.0, 0.3, items), rng.normal(0.5, 1.3, items)
    chance = 1.0 / (1.0 + np.exp(-(slope * rng.normal(size=(subjects, 1)) + intercept)))
    right = (rng.random(chance.shape) < chance).astype(int)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["subject", *(f"q{i}" for i in range(items))])
        table.writerows([f"m{s}", *row.tolist()] for s, row in enumerate(right))


def calibrate(folder: Path, states: dict[str, Path], options: argparse.Namespace) -> None:
    """Calibrate banks with conformal tables."""
    for shape in options.shapes:
        subjects, items = map(int, shape.split("x"))
        write_responses(folder / "responses.csv", subjects, items)
        for state, code in states.items():
            arguments = ["calibrate", "responses.csv", "-o", "fitted.bank", "--replace"]
            found = measure([sys.executable, "-c", COMMAND, *arguments], folder, code)
            show(f"calibrate, {subjects} x {items}, {state}", found)


def backtest(folder: Path, states: dict[str, Path], options: argparse.Namespace) -> None:
    """Backtest four policies at five budgets."""
    write_responses(folder / "responses.csv", 60, 12_000)
    policies = "estimate,random,maximum-information,decide"
    for state, code in states.items():
        arguments = ["backtest", "responses.csv", "--policy", policies, "--budget", "1%,2%,5%,10%,15%", "--jobs", "1"]
        arguments += ["--splits", str(options.splits)]
        found = measure([sys.executable, "-c", COMMAND, *arguments], folder, code)
        show(f"backtest, {options.splits} splits, {state}", found)


def bank(folder: Path) -> None:
    """Run interviews on calibrated banks of rising size."""
    (folder / "test_large.py").write_text(RUN.format(bank="large.bank"))
    (folder / "test_plain.py").write_text(RUN.format(bank="large.jsonl"))
    command = [sys.executable, str(ROOT / "benchmarks" / "endpoint_throughput.py"), "--serve", "--milliseconds", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            (folder / "large.eval.toml").write_text(SERVED.format(url=url))
            run_on_banks(folder)
        finally:
            server.terminate()


def run_on_banks(folder: Path) -> None:
    """Run the two interviews of a folder on one bank after the other."""
    for size in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(size)
        items = [Item(f"q{i}", prompt=f"What is the remainder of {i} by 10?", answer=str(i % 10)) for i in range(size)]
        slope, intercept = rng.lognormal(0.0, 0.3, size), rng.normal(size=size)
        write_bank(folder / "large.bank", items, discrimination=slope, intercept=intercept, replace=True)
        shutil.copyfile(folder / "large.bank" / "items.jsonl", folder / "large.jsonl")
        del items
        run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval"]
        on_disk = sum(path.stat().st_size for path in (folder / "large.bank").iterdir()) / 2**20
        models = {
            "test_large.py": "a function",
            "large.eval.toml": "a server",
            "test_plain.py": "a function, from JSONL",
        }
        for file, model in models.items():
            what = f"100 questions of {size} items ({on_disk:.0f} MiB on disk) to {model}"
            show(what, measure([*run, file], folder))


def recorded(run: int, answers: int, rng: np.random.Generator) -> RunRecord:
    """Make the record of an interview by uniform draws."""
    size = 2 * answers
    right: NDArray[np.bool_] = rng.random(answers) < 0.7
    asked = [
        Administration(
            position=k + 1,
            item=f"q{k}",
            item_hash=f"{k:016x}",
            format="text",
            propensity=1.0 / (size - k),
            predicted=0.5,
            rest=(size - k) / 2,
            variance=(size - k) ** 2 / 4,
            theta_before=[1.0],
            theta_after=[1.0],
            score=float(right[k]),
            text=f"The answer to the question number {k} is {k % 10}.",
            reason="drawn uniformly",
        )
        for k in range(answers)
    ]
    accuracy = float(right.mean())
    interval = {"estimate": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.05, "confidence": 0.975}
    interview = converted(
        EvaluationRecord,
        {
            "name": "large",
            "nodeid": "large.eval.toml::large",
            "subject": {"name": f"step-{run:05}"},
            "bank": {"name": "large", "content_hash": "c", "scale": "s", "size": size, "calibrated": False},
            "policy": {"selector": "random", "estimator": "map"},
            "asked": answers,
            "scored": answers,
            "size": size,
            "statuses": {"ok": answers},
            "stop": "BUDGET",
            "stop_sentence": "the budget is spent",
            "theta": [1.0],
            "standard_error": [0.05],
            "accuracy": {**interval, "method": "design-based"},
            "accuracy_model": None,
            "administrations": asked,
        },
    )
    day = np.datetime64("2031-01-01T00:00:00") + np.timedelta64(run, "h")
    return RunRecord(f"run-{run:05}", f"{day}Z", exit_status=0, evaluations=[interview])


def write_record(path: Path, record: RunRecord) -> None:
    """Write a record as a run does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record.to_json()))


def history(folder: Path) -> None:
    """List runs and watch for a drop; the first call makes the index."""
    rng, done = np.random.default_rng(0), 0
    for runs in (100, 1_000, 10_000):
        for run in range(done, runs):
            write_record(folder / "runs-folder" / "runs" / f"run-{run:05}.json", recorded(run, 40, rng))
        done = runs
        for arguments in (["history", "--last", "10"], ["history", "--last", "10"], ["history", "--drift"]):
            command = [sys.executable, "-c", COMMAND, *arguments, "--from", "runs-folder"]
            show(f"{' '.join(arguments)} over {runs} runs", measure(command, folder))


def record(folder: Path) -> None:
    """Report one run."""
    for answers in (1_000, 10_000, 100_000):
        path = folder / "large.json"
        write_record(path, recorded(0, answers, np.random.default_rng(0)))
        command = [sys.executable, "-c", COMMAND, "report", "large.json", "--html", "page.html"]
        megabytes = path.stat().st_size / 2**20
        show(f"report of {answers} answers (record of {megabytes:.0f} MiB)", measure(command, folder))


def import_files(folder: Path) -> None:
    """Propose and write a bank of 200 000 records, of which a quarter each has one kind of answer or choices alone."""
    rng = np.random.default_rng(0)
    words = ("lamp", "river", "stone", "guard", "hall", "wind", "copper", "field", "bread", "storm", "candle")

    def some(count: int) -> str:
        return " ".join(words[k] for k in rng.integers(len(words), size=count))

    def choices(n: int) -> dict[str, object]:
        options = [f"{some(2)} {k}" for k in range(4)]
        return {"id": n, "question": f"What fits {n}, {some(2)}?", "choices": options, "answer": int(rng.integers(4))}

    def answers(n: int) -> dict[str, object]:
        answer = (str(n * 7), f"the {some(2)}", f"$\\frac{{{n + 1}}}{{{n + 3}}}$", f"{some(2)} of {some(1)}")[n % 4]
        return {"id": n, "passage": some(60), "question": f"Who carries the {some(1)} {n}?", "answer": answer}

    for row in (choices, answers):
        place = folder / row.__name__
        place.mkdir()
        with (place / "large.jsonl").open("w") as file:
            for n in range(200_000):
                file.write(json.dumps(row(n)) + "\n")
        command = [sys.executable, "-c", COMMAND, "import", "large.jsonl", "-o", "large.bank", "--yes"]
        show(f"import of 200 000 records with {row.__name__}", measure(command, place))


def main() -> None:
    """Measure the parts that were named."""
    compared = {"calibrate": calibrate, "backtest": backtest}
    alone = {"bank": bank, "history": history, "record": record, "import": import_files}
    parts = [*compared, *alone]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)} (all)")
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="checkout of an earlier state")
    parser.add_argument("--splits", type=int, default=20, help="of the backtest (20)")
    parser.add_argument("--shapes", nargs="+", default=["60x3127", "1989x493"], metavar="SxN", help="of calibrate")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"{min(unknown)}: known parts are {', '.join(parts)}")
    states = {**({"before": options.before.resolve()} if options.before else {}), "now": ROOT}
    for name in options.parts or parts:
        with tempfile.TemporaryDirectory() as folder:
            if name in compared:
                compared[name](Path(folder), states, options)
            else:
                alone[name](Path(folder))


if __name__ == "__main__":
    main()
