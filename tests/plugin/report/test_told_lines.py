"""Long lines are broken between words on terminals, and stay whole in logs."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_log_keeps_them_whole(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    project.tests(EVAL.format(budget="budget=30"))
    told = [line for line in project.run().outlines if line.startswith("adaptive-eval: toy: ")]
    assert len(told) == 1
    assert told[0].endswith(("expected", "questions")) or "WARNING" in told[0]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_width_breaks_them_between_words(project: Any, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    project.ini("adaptive_eval_details = false")
    project.tests(EVAL.format(budget="budget=8"))
    lines = project.run().outlines
    start = next(n for n, line in enumerate(lines) if line.startswith("adaptive-eval: toy: "))
    assert lines[start + 1].startswith("    ")
    summary = next(n for n, line in enumerate(lines) if "adaptive evaluation" in line)
    header = next(n for n, line in enumerate(lines) if line.startswith("adaptive-eval: model"))
    told = [*lines[header : header + 2], *lines[start : start + 3], *lines[summary : summary + 3]]
    assert max(map(len, told)) <= width


EVAL = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", {budget})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
