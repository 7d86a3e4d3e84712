"""The page of a history: seconds, seconds of CPU and bytes for many runs, as `adaptive-eval report --index` makes it.

``python benchmarks/history_page.py 10000`` writes so many records of three evaluations (30 answers each) into a new
folder, and makes their page twice: first without an index of the history, then with it.  Two of the evaluations drop
for a while.  ``--keep FOLDER`` writes runs and page into that folder, which must be new, and leaves them there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.parts import BankRecord
from pytest_adaptive_eval.records.run_files import write_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, GateRecord, RunRecord

#: Level and required accuracy of each evaluation, and the share of runs between which it is lower by .15.
EVALUATIONS = {
    "arithmetic": (0.78, 0.7, (0.45, 0.6)),
    "reading": (0.66, 0.6, (0.85, 1.0)),
    "pictures": (0.55, 0.4, None),
}
QUESTIONS, BANK, ERROR = 30, 400, 0.03
START = datetime(2031, 1, 1, tzinfo=UTC)


def evaluation(name: str, run: int, share: float, rng: np.random.Generator) -> tuple[EvaluationRecord, GateRecord]:
    """One evaluation of a run at a share of the history, and its gate."""
    level, required, drop = EVALUATIONS[name]
    if drop is not None and drop[0] <= share < drop[1]:
        level -= 0.15
    value = float(np.clip(rng.normal(level, ERROR), 0.01, 0.99))
    interval = Interval(value, max(value - 2 * ERROR, 0.0), min(value + 2 * ERROR, 1.0), 0.95, "design-based")
    scores = rng.random(QUESTIONS) < value
    items = rng.choice(BANK, QUESTIONS, replace=False)
    answers = [
        Administration(n, f"{name}-{items[n - 1]}", "0" * 16, score=float(score), text="an answer of a few words")
        for n, score in enumerate(scores, 1)
    ]
    record = EvaluationRecord(
        name=name,
        nodeid=f"adaptive-eval.toml::{name}[aeval:{name}]",
        subject=SubjectIdentity(f"step-{100 * run}", f"{run:064x}"),
        asked=QUESTIONS,
        size=BANK,
        scored=QUESTIONS,
        bank=BankRecord(name=name, content_hash=f"{name:0<16}", size=BANK),
        stop="DECISION",
        stop_sentence="every gate is decided",
        accuracy=interval,
        accuracy_error=ERROR,
        administrations=answers,
        statuses={"ok": QUESTIONS},
    )
    outcome = Outcome.INCONCLUSIVE
    if interval.low >= required:
        outcome = Outcome.PASS
    elif interval.high < required:
        outcome = Outcome.FAIL
    condition = Condition("accuracy", "at_least", required)
    verdict = Verdict(
        outcome, "accuracy", condition.requirement, interval, asked=QUESTIONS, size=BANK, condition=condition.to_json()
    )
    gate = f"{name}-{condition.label}"
    return record, GateRecord(gate, f"adaptive-eval.toml::{gate}", name, verdict, "adaptive-eval.toml", 7)


def write_runs(folder: Path, runs: int) -> None:
    """Write the records of so many runs, six hours apart."""
    rng = np.random.default_rng(7)
    for run in range(runs):
        started = START + timedelta(hours=6 * run)
        record = RunRecord(f"{started:%Y%m%dT%H%M%S000Z}-{run:08x}", started.isoformat(), 60.0, exit_status=0)
        for name in EVALUATIONS:
            measured, gate = evaluation(name, run, run / runs, rng)
            record.evaluations.append(measured)
            record.gates.append(gate)
        record.exit_status = int(any(gate.outcome is not Outcome.PASS for gate in record.gates))
        write_run(folder, record)


def measure(folder: Path, runs: int) -> None:
    """Write the runs and their page, and print seconds and bytes."""
    history, pages = folder / ".adaptive-eval", folder / "pages"
    write_runs(history, runs)
    for state in ("without an index", "with an index"):
        start, before = time.perf_counter(), os.times()
        command = ["adaptive-eval", "report", "--from", str(history), "--index", str(pages)]
        subprocess.run(command, check=True, capture_output=True)
        seconds, after = time.perf_counter() - start, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        size = (pages / "index.html").stat().st_size
        print(f"{runs} runs, {state}: {seconds:.1f} s, {cpu:.1f} s of CPU, {size / 1e6:.2f} MB")


def main() -> None:
    """Measure in a temporary folder, or in one that is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=10_000)
    parser.add_argument("--keep", metavar="FOLDER", type=Path)
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True)
        measure(options.keep, options.runs)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.runs)


if __name__ == "__main__":
    main()
