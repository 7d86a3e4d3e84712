"""Fixtures for sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cells_of import EVALUATION, SWEEP, write_answers


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two checkpoints on one file of evaluations; the command runs in the folder."""
    monkeypatch.chdir(tmp_path)
    items = [{"id": f"q{n}", "prompt": f"question {n}", "answer": "yes"} for n in range(40)]
    (tmp_path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (tmp_path / "easy.eval.toml").write_text(EVALUATION.format(least=0.4))
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for step, right in ((9, 1), (10, 10)):
        write_answers(tmp_path / "answers" / f"step-{step}.jsonl", right)
    return tmp_path
