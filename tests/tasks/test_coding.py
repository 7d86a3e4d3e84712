"""Programs as items: what they are, how they grow, how answers are read and judged."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.task_truth import complexity
from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.extensions.sandbox import Run
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.coding import GAP, by_calls, program_in
from tests.tasks.solvers import InProcess, mended, ran

seeds = st.integers(0, 10**9)
GENERATION, REPAIR = FAMILIES["code_generation"], FAMILIES["code_repair"]


@settings(max_examples=25)
@given(st.integers(1, 20), seeds)
def test_the_level_is_the_measured_complexity(level: int, seed: int) -> None:
    source = GENERATION.question(level, seed).answer
    assert complexity(source) == level + 1
    radon = pytest.importorskip("radon.complexity")
    assert radon.cc_visit(source)[0].complexity == level + 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1", 1),
        ("return 1 if a else 2", 2),
        ("return [x for x in a if x if not x]", 4),
        ("if a and b or c:\n  return 1\nelif b:\n  return 2", 5),
        ("for x in a:\n  pass\nelse:\n  pass", 3),
        ("while a:\n  try:\n    a()\n  except ValueError:\n    pass\n  assert a", 4),
    ],
)
def test_complexity(body: str, expected: int) -> None:
    source = "def f(a, b, c):\n  " + body.replace("\n", "\n  ")
    assert complexity(source) == expected
    try:
        from radon.complexity import cc_visit
    except ImportError:
        return
    assert cc_visit(source)[0].complexity == expected


@settings(max_examples=10)
@given(st.integers(2, 19), seeds)
def test_a_program_grows_by_a_block_a_level(level: int, seed: int) -> None:
    shorter, longer = (GENERATION.question(n, seed).answer.splitlines() for n in (level, level + 1))
    kept = iter(longer)
    assert all(line in kept for line in shorter)  # in order: nothing goes, and what comes is one block
    assert 1 <= len(longer) - len(shorter) <= 4
    assert GENERATION.question(level, seed).prompt != GENERATION.question(level + 1, seed).prompt


@settings(max_examples=15)
@given(st.sampled_from([GENERATION, REPAIR]), st.integers(1, 9), seeds)
def test_the_reference_passes_and_constants_do_not(family: Any, level: int, seed: int) -> None:
    question = family.question(level, seed)
    runner = InProcess()
    assert question.judge(question.answer, runner).score == 1.0
    for constant in ("return 0", "return k", "return sum(values) if 0 else 1", "return True", "return '7'", "pass"):
        mark = question.judge(f"def solve(values, k):\n    {constant}\n", runner)
        assert mark.score == 0.0
        assert mark.why
    other = family.question(level, seed + 1)
    assert question.judge(other.answer, runner).score == 0.0


@given(st.integers(1, 9), seeds)
def test_a_program_to_be_repaired_is_broken(level: int, seed: int) -> None:
    question = REPAIR.question(level, seed)
    shown = question.prompt.split("```python\n")[1].split("\n```")[0]
    assert ("hidden" in question.prompt) == (GAP in shown)
    assert ("deleted" in question.prompt) != (GAP in shown)
    with pytest.raises(SyntaxError):
        ast.parse(shown)
    assert question.judge is not None
    assert question.judge(shown, InProcess()).score == 0.0
    source, lines = question.answer.splitlines(), shown.splitlines()
    blocks = ast.parse(question.answer).body[0].body[1:-1]  # type: ignore[attr-defined]  # a function
    steps = re.findall(r"^\d+\. (.*)\.$", question.prompt, re.MULTILINE)
    untold = [block for block, step in zip(blocks, steps, strict=True) if step == "This step is in the code alone"]
    assert len(untold) == min(level // 2, len(steps) - 1)
    whole = set()
    for block in untold:
        place = slice(block.lineno - 1, block.end_lineno)
        assert mended(lines[place]) == source[place]
        assert lines[place] != source[place]
        whole |= set(range(place.start, place.stop))

    def letters(lines: list[str]) -> int:
        told = "".join(line for i, line in enumerate(lines) if i and i not in whole)
        return len("".join(told.replace(GAP, "").split()))

    assert letters(lines) / letters(source) == pytest.approx(1 - level / 10, abs=0.25)


CODE = "def solve(values, k):\n    return k\n"


@pytest.mark.parametrize(
    "text",
    [
        CODE,
        f"```python\n{CODE}```",
        f"Sure!\n\n```py\n{CODE}```\nIt returns k.\n```\nsolve([], 1)\n```",
        f"```\n{CODE}```\nOnce more:\n```\n{CODE}```",
        f"Here it is:\n\n{CODE}\nThis returns k.",
        f"```python\n{CODE}",  # cut off before the fence was closed
        f"  ```python\n{CODE}  ```",
        json.dumps({"plan": "I return k.", "code": CODE}),
        json.dumps({"answer": f"Here it is:\n```python\n{CODE}```"}, indent=1),
    ],
)
def test_the_program_of_an_answer(text: str) -> None:
    code, why = program_in(text)
    assert why == ""
    assert code.strip() == CODE.strip()


def test_helpers_and_imports_belong_to_the_program() -> None:
    text = "import math\n\ndef half(k):\n    return k / 2\n\n" + CODE + "\nDone."
    assert program_in(text)[0] == "import math\n\ndef half(k):\n    return k / 2\n\n" + CODE


def test_answers_without_one_program_are_refused() -> None:
    for text, why in (
        ("", "no program that defines solve in ''"),
        ("def other(values, k):\n    return 1", "no program that defines solve"),
        (f"```\n{CODE}```\n```\n{CODE.replace('return k', 'return 1')}```", "2 different programs that define solve"),
    ):
        code, said = program_in(text)
        assert code == ""
        assert said.startswith(why)


class Fixed:
    """Gives what it is told to."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.seen: list[Any] = []

    def call(self, code: str, function: str, arguments: Sequence[Sequence[Any]]) -> Run:
        self.seen = [code, function, arguments]
        return self.run


ARGUMENTS = [([1, 2], 3), ([], 0)]


@pytest.mark.parametrize(
    ("run", "score", "why"),
    [
        (ran([3, 0]), 1.0, ""),
        (ran([3, 1]), 0.0, "solve([], 0) gave '1', 0 was expected"),
        (ran([3, False]), 0.0, "solve([], 0) gave 'False', 0 was expected"),
        (ran([3.0, 0]), 0.0, "solve([1, 2], 3) gave '3.0', 3 was expected"),
        (ran(["3", 0]), 0.0, "solve([1, 2], 3) gave \"'3'\", 3 was expected"),
        (ran([None, 0]), 0.0, "solve([1, 2], 3) gave 'None', 3 was expected"),
        (ran(status=Status.TIMEOUT), 0.0, "the program did not end in time"),
        (ran(status=Status.ERROR, detail="NameError"), 0.0, "the program failed: 'NameError'"),
    ],
)
def test_what_the_program_gave(run: Run, score: float, why: str) -> None:
    runner = Fixed(run)
    mark = by_calls(ARGUMENTS, [3, 0])(CODE, runner)
    assert (mark.score, mark.why) == (score, why)
    assert runner.seen == [CODE, "solve", [[[1, 2], 3], [[], 0]]]


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (ran(status=Status.SANDBOX_ERROR, detail="gone"), Status.SANDBOX_ERROR),
        (ran(status=Status.NOT_RUN, detail="no"), Status.NOT_RUN),
        (ran([3]), Status.SANDBOX_ERROR),
        (ran([3, 0, 0]), Status.SANDBOX_ERROR),
    ],
)
def test_a_fault_of_the_place_is_no_score(run: Run, status: Status) -> None:
    with pytest.raises(Unscored) as caught:
        by_calls(ARGUMENTS, [3, 0])(CODE, Fixed(run))
    assert caught.value.status == status.value
    assert caught.value.text == CODE
