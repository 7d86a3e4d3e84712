"""Task families of code generation and code repair, whose programs hidden calls judge."""

from __future__ import annotations

import json
import random
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain, dropwhile, takewhile

from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.tasks.answers import shortened
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.programs import Arguments, Program, draw_arguments, grow

FUNCTION = "solve"
#: Hidden calls of a program.
HIDDEN = 12
#: Blocks of a program to be repaired, besides one per level.
REPAIRED_BLOCKS = 4
GAP = "____"
_FENCED = re.compile(r"^[ \t]*```[ \t]*\w*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_DEFINED = re.compile(rf"^def[ \t]+{FUNCTION}\b", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[-+*/%=<>]=|//=|//|[^\w\s]")
#: A line without exactly one of these, or with a gap for it, is never valid Python.
NEEDED = ("for", "in", "if", "while", "else", "+", "-", "*", "%", "==", ">", "<", "+=", "-=", "*=", "//=", ":")
#: Of these, what a reader of the line can put back without a description.
RECOVERABLE = ("for", "in", "else", ":")
#: Number of a line, and the match of a token in it.
_LineToken = tuple[int, re.Match[str]]


def program_in(text: str) -> tuple[str, str]:
    """Return the only program of an answer and ``""``, or ``""`` and the reason why there is none.

    The program is between fences, or reaches from the first line of code to the end of the function. It may be in a
    JSON string.
    """
    text = next(filter(_DEFINED.search, (text, *_strings_of_json(text))), text)
    fenced = list(dict.fromkeys(filter(_DEFINED.search, _FENCED.findall(text))))
    if len(fenced) > 1:
        return "", f"{len(fenced)} different programs that define {FUNCTION}"
    if fenced:
        return fenced[0], ""
    unfenced = [line for line in text.splitlines() if not line.lstrip().startswith("```")]
    lines = dropwhile(lambda line: not re.match(r"(?:def|import|from|class)\s+\w", line), unfenced)
    code = "\n".join(takewhile(_continues_code, lines)).rstrip() + "\n"
    if not _DEFINED.search(code):
        return "", f"no program that defines {FUNCTION} in {shortened(text)}"
    return code, ""


def _strings_of_json(text: str) -> Iterator[str]:
    for literal in _STRING.findall(text):
        with suppress(ValueError):
            yield json.loads(literal, strict=False)


def _continues_code(line: str) -> bool:
    return bool(re.match(r"(?:def|import|from|class|@)\b", line)) or line[:1] in (" ", "\t", "#", "@", "")


class _ShortRepr(reprlib.Repr):
    """Short representation of values of foreign code, also of whole numbers of any size."""

    def repr_int(self, x: int, level: int) -> str:
        """Return the digits, or the size of a number for which Python refuses to write digits."""
        if x.bit_length() > 1000:
            return f"a number of {x.bit_length()} bits"
        return super().repr_int(x, level)


def by_calls(arguments: Sequence[Arguments], expected: Sequence[int]) -> Judge:
    """Return a judge of programs that give every expected result; it raises `Unscored` if nothing can run them."""

    def judge(text: str, runner: Runner | None) -> Mark:
        code, why = program_in(text)
        if why:
            return Mark(0.0, why)
        if runner is None:
            raise Unscored(Status.NOT_RUN.value, "the answer is a program, and no sandbox is available", text)
        run = runner.call(code, FUNCTION, [list(each) for each in arguments])
        if run.status is Status.TIMEOUT:
            return Mark(0.0, "the program did not end in time")
        if run.status is Status.ERROR:
            return Mark(0.0, f"the program failed: {shortened(run.detail, 200)}")
        if run.status is not Status.OK:
            raise Unscored(run.status.value, run.detail, text)
        if len(run.outputs) != len(arguments):
            raise Unscored(Status.SANDBOX_ERROR.value, f"{len(run.outputs)} results of {len(arguments)} calls", text)
        for (values, k), result, output in zip(arguments, expected, run.outputs, strict=True):
            if type(output) is not type(result) or output != result:  # True is not 1
                output_text = shortened(_ShortRepr().repr(output))
                return Mark(0.0, f"{FUNCTION}({values}, {k}) gave {output_text}, {result} was expected")
        return Mark(1.0)

    return judge


def _drawn(rng: random.Random, blocks: int) -> tuple[Program, str, Judge]:
    """Draw a program, and return it with an example of a call and the judge of other programs."""
    # The arguments are drawn first: the programs of all levels of a seed share them and begin alike.
    arguments = draw_arguments(rng, HIDDEN)
    values, k = draw_arguments(rng, 3)[-1]
    program, results = grow(rng, blocks, arguments)
    example = f"For example, {FUNCTION}({values}, {k}) returns {program.run((values, k))[0]}."
    return program, example, by_calls(arguments, results)


def _generation(rng: random.Random, level: int) -> Question:
    program, example, judge = _drawn(rng, level)
    prompt = f"Write this function in Python, without importing anything.\n\n{program.words()}\n{example}"
    return Question(prompt, program.source(), judge=judge)


def _tokens(lines: Sequence[str], numbers: Iterable[int]) -> list[_LineToken]:
    """Return the tokens of the lines with these numbers, in order."""
    tokens = []
    for i in numbers:
        for match in _TOKEN.finditer(lines[i]):
            tokens.append((i, match))
    return tokens


def _among(tokens: Iterable[_LineToken], texts: Collection[str]) -> list[_LineToken]:
    return [token for token in tokens if token[1][0] in texts]


def _missing_tokens(
    rng: random.Random, lines: Sequence[str], program: Program, level: int, untold: Collection[int]
) -> list[_LineToken]:
    """Draw the tokens that a source lacks, in which one line of each untold step lacks one."""
    lengths = [len(block.source_lines()) for block in program.blocks]
    starts = list(accumulate(lengths, initial=2))
    lines_of_untold = [range(starts[step], starts[step + 1]) for step in untold]
    hidden = set(chain.from_iterable(lines_of_untold))
    shown = [i for i in range(1, len(lines)) if i not in hidden]
    shown_tokens = _tokens(lines, shown)
    needed = rng.choice(_among(shown_tokens, NEEDED))
    others = [token for token in shown_tokens if token[0] != needed[0]]
    count = max(1, len(shown_tokens) * level // 10) - 1
    missing = [needed, *rng.sample(others, min(count, len(others)))]
    for numbers in lines_of_untold:
        recoverable = _among(_tokens(lines, numbers), RECOVERABLE)
        missing.append(rng.choice(recoverable))
    return missing


def _with_gaps(rng: random.Random, program: Program, level: int, untold: Collection[int], gap: str) -> str:
    """Return the source without a tenth of its tokens per level, one of `NEEDED` alone on its line."""
    lines = program.source().splitlines()
    missing = _missing_tokens(rng, lines, program, level, untold)
    missing.sort(key=lambda token: (token[0], token[1].start()), reverse=True)
    for i, match in missing:
        before = lines[i][: match.start()]
        after = lines[i][match.end() :]
        if gap and before[-1:].isalnum():
            before += " "
        lines[i] = f"{before}{gap}{after}"
    return "\n".join(line.rstrip() for line in lines)


def _repair(rng: random.Random, level: int) -> Question:
    program, example, judge = _drawn(rng, REPAIRED_BLOCKS + level)
    masked = rng.randrange(2) == 1
    steps = range(len(program.blocks))
    untold = sorted(rng.sample(steps, min(level // 2, len(steps) - 1)))
    gap = ""
    damage = "parts of it were deleted"
    if masked:
        gap = GAP
        damage = f"each {GAP} stands for a hidden part of it"
    broken = _with_gaps(rng, program, level, untold, gap)
    prompt = (
        f"This Python function is broken: {damage}. Write the whole function, repaired.\n\n```python\n{broken}\n```\n\n"
        f"What it is to do: {program.words(untold)}\n{example}"
    )
    return Question(prompt, program.source(), judge=judge)


_FORM = "Answer with one block of Python code that holds the whole function."
FAMILIES = (
    TaskFamily("code_generation", "cyclomatic complexity less one", 20, 0.01, _generation, growing=True, form=_FORM),
    TaskFamily("code_repair", "share of tokens missing, 10 % * level, and hidden steps", 9, 0.01, _repair, form=_FORM),
)
