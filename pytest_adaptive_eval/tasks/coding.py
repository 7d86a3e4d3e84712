"""Code generation by cyclomatic complexity and code repair by the share that is missing, judged by hidden calls."""

from __future__ import annotations

import random
import re
import reprlib
from collections.abc import Sequence
from typing import Any

from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.tasks.answers import shortened
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.programs import Arguments, draw_arguments, grow

__all__ = ["CODE_GENERATION", "CODE_REPAIR", "by_calls", "program_in"]

FUNCTION = "solve"
HIDDEN = 12
#: Blocks of a program to be repaired.
REPAIRED_BLOCKS = 6
GAP = "____"
_FENCED = re.compile(r"^[ \t]*```[ \t]*\w*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_DEFINED = re.compile(rf"^def[ \t]+{FUNCTION}\b", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[-+*/%=<>]=|//=|//|[^\w\s]")
#: A line that lacks just one of these, or has a gap for it, is never valid Python.
NEEDED = ("for", "in", "if", "while", "else", "+", "-", "*", "%", "==", ">", "<", "+=", "-=", "*=", "//=", ":")


def program_in(text: str) -> tuple[str, str]:
    """The one program of an answer, or an empty one and why.

    It stands between fences, or is the whole answer from the first line that is
    code to the end of the function.
    """
    fenced = list(dict.fromkeys(code for code in _FENCED.findall(text) if _DEFINED.search(code)))
    if len(fenced) > 1:
        return "", f"{len(fenced)} different programs that define {FUNCTION}"
    if fenced:
        return fenced[0], ""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("```")]
    first = next((i for i, line in enumerate(lines) if re.match(r"(?:def|import|from|class)\s+\w", line)), len(lines))
    last = first
    for i in range(first, len(lines)):
        if re.match(r"(?:def|import|from|class|@)\b", lines[i]) or lines[i][:1] in (" ", "\t", "#", "@", ""):
            last = i + 1
        else:
            break
    code = "\n".join(lines[first:last]).rstrip() + "\n"
    if not _DEFINED.search(code):
        return "", f"no program that defines {FUNCTION} in {shortened(text)}"
    return code, ""


class _Shown(reprlib.Repr):
    """Values of foreign code as a sentence shows them: short, and whole numbers of any size."""

    def repr_int(self, x: int, level: int) -> str:
        """Return the digits, or the size where Python writes no digits."""
        return f"a number of {x.bit_length()} bits" if x.bit_length() > 1000 else super().repr_int(x, level)


def _same(a: Any, b: Any) -> bool:
    """Equal and of the same type: True is not 1."""
    return type(a) is type(b) and bool(a == b)


def by_calls(arguments: Sequence[Arguments], expected: Sequence[int]) -> Judge:
    """Right where the program gives every expected result.

    Raises
    ------
    Unscored
        By the judge, where nothing can run the program.
    """

    def judge(text: str, runner: Runner | None) -> Mark:
        code, why = program_in(text)
        if why:
            return Mark(0.0, why)
        if runner is None:
            raise Unscored(Status.NOT_RUN.value, "the answer is a program, and there is no sandbox to run it in", text)
        run = runner.call(code, FUNCTION, [list(each) for each in arguments])
        if run.status is Status.TIMEOUT:
            return Mark(0.0, "the program did not end in time")
        if run.status is Status.ERROR:
            return Mark(0.0, f"the program failed: {shortened(run.detail, 200)}")
        if run.status is not Status.OK:
            raise Unscored(run.status.value, run.detail, text)
        if len(run.outputs) != len(arguments):
            raise Unscored(Status.SANDBOX_ERROR.value, f"{len(run.outputs)} results of {len(arguments)} calls", text)
        for each, wanted, got in zip(arguments, expected, run.outputs, strict=True):
            if not _same(got, wanted):
                call = f"{FUNCTION}({each[0]}, {each[1]})"
                return Mark(0.0, f"{call} gave {shortened(_Shown().repr(got))}, {wanted} was expected")
        return Mark(1.0)

    return judge


def _drawn(rng: random.Random, blocks: int) -> tuple[str, str, Judge]:
    """What a function is to do, its source, and the judge of other sources."""
    # The arguments come first, so that the programs of all levels of a seed share them and begin alike.
    arguments = draw_arguments(rng, HIDDEN)
    shown = draw_arguments(rng, 3)[-1]
    program, results = grow(rng, blocks, arguments)
    example = f"For example, {FUNCTION}({shown[0]}, {shown[1]}) returns {program.run(shown)[0]}."
    return f"{program.words()}\n{example}", program.source(), by_calls(arguments, results)


def _generation(rng: random.Random, level: int) -> Question:
    words, source, judge = _drawn(rng, level)
    return Question(f"Write this function in Python, without importing anything.\n\n{words}", source, judge=judge)


def _with_gaps(rng: random.Random, source: str, level: int, gap: str) -> str:
    """The source without a tenth of its tokens a level, so that it is no valid Python.

    The first line stays.  One line lacks nothing but a token that it needs.
    """
    lines = source.splitlines()
    places = [(i, match) for i in range(1, len(lines)) for match in _TOKEN.finditer(lines[i])]
    broken = rng.choice([(i, match) for i, match in places if match[0] in NEEDED])
    others = [place for place in places if place[0] != broken[0]]
    wanted = max(1, len(places) * level // 10)
    missing = [broken, *rng.sample(others, min(wanted - 1, len(others)))]
    missing.sort(key=lambda place: (place[0], place[1].start()), reverse=True)
    for i, match in missing:
        before, after = lines[i][: match.start()], lines[i][match.end() :]
        apart = " " if gap and before[-1:].isalnum() else ""
        lines[i] = f"{before}{apart}{gap}{after}"
    return "\n".join(line.rstrip() for line in lines)


def _repair(rng: random.Random, level: int) -> Question:
    words, source, judge = _drawn(rng, REPAIRED_BLOCKS)
    masked = rng.randrange(2) == 1
    shown = _with_gaps(rng, source, level, GAP if masked else "")
    what = f"each {GAP} stands for a hidden part of it" if masked else "parts of it were deleted"
    prompt = (
        f"This Python function is broken: {what}. Write the whole function, repaired.\n\n```python\n{shown}\n```\n\n"
        f"What it is to do: {words}"
    )
    return Question(prompt, source, judge=judge)


CODE_GENERATION = TaskFamily(
    "code_generation", "cyclomatic complexity less one", 20, 0.01, _generation, max_tokens=2048, growing=True
)
CODE_REPAIR = TaskFamily("code_repair", "share of tokens missing, 10 % * level", 9, 0.01, _repair, max_tokens=2048)
