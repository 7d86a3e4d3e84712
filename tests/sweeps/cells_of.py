"""Files of a small sweep, and cells that never ran."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_adaptive_eval.extensions.sweeps.cells import Cell, CellEnd, EvaluationFile, SweptModel

EVALUATION = """
[[eval]]
bank = "toy.jsonl"
budget = 20
stop = "budget"

[[eval.gate]]
at_least = {least}
"""
SWEEP = """
checkpoints = ["replay:answers/step-*.jsonl"]
evaluations = ["*.eval.toml"]
retries = 1
"""
#: A test that tells of each question by the process that asked it, and takes its time.
SLOW = """
import os, time
from pathlib import Path
import pytest

LOG = Path(__file__).parent / "asked.txt"

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=20, stop="budget", batch=1)
def test_slow(item, model):
    with LOG.open("a") as file:
        file.write(f"{os.getpid()} {item.item.id}\\n")
    time.sleep(0.05)
    item.score(model.score(item))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def write_answers(path: Path, right: int) -> None:
    """Record answers of which so many of ten are right."""
    path.parent.mkdir(exist_ok=True)
    rows = [{"id": f"q{n}", "text": "yes" if n % 10 < right else "no"} for n in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def cell(checkpoint: str = "step-9", evaluation: str = "easy", seed: int = 0) -> Cell:
    """Return a cell of files that are not there."""
    where = EvaluationFile(evaluation, f"{evaluation}.eval.toml", Path(f"{evaluation}.eval.toml"))
    return Cell(SweptModel(checkpoint, f"replay:{checkpoint}.jsonl", Path(checkpoint)), where, seed)


def end_of(where: Cell, outcome: str = "PASS", estimate: float | None = 0.5, reason: str = "") -> CellEnd:
    """Return the end of a cell with one gate and one interview."""
    interview = {"name": where.evaluation.name, "measure": "ability", "estimate": estimate, "error": 0.1, "asked": 7}
    gate = {"name": "g", "evaluation": where.evaluation.name, "outcome": outcome, "sentence": f"{outcome} because"}
    status = 0 if outcome == "PASS" else 1
    return CellEnd(where.key, "f", status, reason, seconds=2.0, gates=[gate], interviews=[interview])
