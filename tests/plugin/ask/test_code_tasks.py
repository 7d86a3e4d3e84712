"""Answers that are code run in the sandbox, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox import Sandbox

SOLVERS = Path(__file__).resolve().parents[2] / "tasks"
CONFTEST = """
import sys
import pytest
sys.path.insert(0, {path!r})
from solvers import SOLVERS
from pytest_adaptive_eval import SubjectIdentity

class Coder:
    identity = SubjectIdentity("coder")
    n = 0

    def generate(self, prompt):
        Coder.n += 1
        right = SOLVERS["code_generation"](prompt)
        return {answer}

@pytest.fixture(scope="module")
def model():
    return Coder()
"""
TEST = """
import pytest

@pytest.mark.adaptive_eval(task="code_generation", queries=3, levels=2)
def test_code(item, model):
    assert item.grade(model.generate(item.prompt))
"""


def scores(lab: Any) -> list[float | None]:
    (interview,) = lab.record["interviews"]
    return [a["score"] for a in interview["administrations"]]


@pytest.fixture
def sandbox() -> Sandbox:
    try:
        return Sandbox.open()
    except SandboxUnavailable as error:
        pytest.skip(f"no sandbox here: {error}")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("right", [1.0] * 6),
        ("'def solve(values, k):\\n    return 0'", [0.0] * 3),
        ("'def solve(values, k):\\n    import os\\n    os._exit(0)'", [0.0] * 3),
        ("right if Coder.n % 2 else 'no program at all'", [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
    ],
)
def test_code_is_graded_by_what_it_returns(lab: Any, sandbox: Sandbox, answer: str, expected: list[float]) -> None:
    lab.pytester.makeconftest(CONFTEST.format(path=str(SOLVERS), answer=answer))
    lab.tests(TEST)
    assert lab.run().ret == 0
    assert scores(lab) == expected


def test_without_a_sandbox_nothing_is_run(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: Any) -> Sandbox:
        raise SandboxUnavailable("code from a model cannot be locked up here: install bubblewrap")

    monkeypatch.setattr(Sandbox, "open", none)
    trace = lab.path / "ran"
    answer = repr(f"def solve(values, k):\n    open({str(trace)!r}, 'w')\n    return 0")
    lab.pytester.makeconftest(CONFTEST.format(path=str(SOLVERS), answer=answer))
    lab.tests(TEST)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "install bubblewrap" in " ".join(result.stdout.str().split())
    assert not trace.exists()
    assert lab.run("--adaptive-eval-unsafe-code=I-accept").ret == 0
    assert trace.exists()
