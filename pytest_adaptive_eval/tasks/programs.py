"""Small programs composed of control-flow blocks: told in words, written as source, and run without either.

A program turns a list ``values`` and a number ``k`` into a number.  Each block
is a ``for``, a ``while`` or an ``if``, alone or inside a loop, and adds one to
the cyclomatic complexity.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

__all__ = ["Action", "Arguments", "Block", "Condition", "Program", "complexity", "draw_arguments", "grow"]

#: What a program is called with: the list and the number.
Arguments = tuple[list[int], int]

#: Results stay below this, and loops short.
LARGEST = 1_000_000
#: So many different results there must be over the arguments, so that no constant is often right.
RESULTS = 5


@dataclass(frozen=True, slots=True)
class Action:
    """A change of the total by a number x, which is a loop's variable or stands in the source."""

    words: str
    source: str
    apply: Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class Condition:
    """A question about a number x."""

    words: str
    source: str
    holds: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Block:
    """One step of a program.

    Parameters
    ----------
    kind : str
        ``for`` (over the list), ``count`` (from 1 to k), ``if`` or ``while``.
    actions : tuple of (Condition or None, Action)
        Of a loop over numbers: what is done with each, some of it on a
        condition.  Of ``if``: what is done where its condition holds, and where
        it does not.  Of ``while``: what is done again and again.
    """

    kind: str
    actions: tuple[tuple[Condition | None, Action], ...]

    def run(self, total: int, values: Sequence[int], k: int, seen: set[tuple[int, bool]]) -> int:
        """The total afterwards; `seen` takes up which way each condition went."""
        if self.kind in ("for", "count"):
            for x in values if self.kind == "for" else range(1, k + 1):
                for i, (condition, action) in enumerate(self.actions):
                    held = condition is None or condition.holds(x)
                    seen.add((i, held))
                    if held:
                        total = action.apply(total, x)
            return total
        condition = self.actions[0][0]
        assert condition is not None
        if self.kind == "if":
            held = condition.holds(total)
            seen.add((0, held))
            return self.actions[0 if held else 1][1].apply(total, 0)
        while condition.holds(total):
            seen.add((0, True))
            total = self.actions[0][1].apply(total, 0)
        seen.add((0, False))
        return total

    def lines(self) -> list[str]:
        """Its source, indented for the body of a function."""
        if self.kind in ("if", "while"):
            condition = self.actions[0][0]
            assert condition is not None
            out = [f"{self.kind} {condition.source.format(x='total')}:", f"    {self.actions[0][1].source}"]
            if self.kind == "if":
                out += ["else:", f"    {self.actions[1][1].source}"]
        else:
            x = "value" if self.kind == "for" else "i"
            out = ["for value in values:" if self.kind == "for" else "for i in range(1, k + 1):"]
            for condition, action in self.actions:
                if condition is not None:
                    out.append(f"    if {condition.source.format(x=x)}:")
                out.append("    " * (1 if condition is None else 2) + action.source.format(x=x))
        return ["    " + line for line in out]

    def words(self) -> str:
        """What it does, in a sentence."""
        first, action = self.actions[0]
        if self.kind in ("if", "while"):
            assert first is not None
            does, when = action.words, first.words.format(x="the total")
            if self.kind == "while":
                return f"As long as {when}, {does}."
            return f"If {when}, {does}; otherwise {self.actions[1][1].words}."
        x = "the value" if self.kind == "for" else "i"
        parts = [
            (f"if {condition.words.format(x=x)}, " if condition else "") + action.words.format(x=x)
            for condition, action in self.actions
        ]
        each = "value of the list, from the first to the last"
        if self.kind == "count":
            each = "whole number i from 1 up to and with k, which is none if k is 0"
        return f"For each {each}: {'; then '.join(parts)}."


@dataclass(frozen=True, slots=True)
class Program:
    """Blocks one after the other.

    Parameters
    ----------
    start : int
        The total is at first k plus this.
    blocks : tuple of Block
    """

    start: int
    blocks: tuple[Block, ...] = ()

    def run(self, arguments: Arguments) -> tuple[int, set[tuple[int, int, bool]]]:
        """The result, and which way each condition went by block and place."""
        values, k = arguments
        total = k + self.start
        ways: set[tuple[int, int, bool]] = set()
        for i, block in enumerate(self.blocks):
            seen: set[tuple[int, bool]] = set()
            total = block.run(total, values, k, seen)
            if abs(total) > LARGEST:
                return LARGEST + 1, ways
            ways |= {(i, *way) for way in seen}
        return total, ways

    def source(self) -> str:
        """The program as Python."""
        lines = ["def solve(values, k):", f"    total = k + {self.start}"]
        for block in self.blocks:
            lines += block.lines()
        return "\n".join([*lines, "    return total", ""])

    def words(self) -> str:
        """What the function does, as numbered steps."""
        steps = "\n".join(f"{i}. {block.words()}" for i, block in enumerate(self.blocks, 1))
        return (
            "solve(values, k) gets a list of whole numbers and a whole number, and returns a whole number. It begins "
            f"with a total of k plus {self.start}, does the following steps in order, and returns the total:\n{steps}\n"
            "Remainders are those of Python's operator %."
        )


def draw_arguments(rng: random.Random, number: int) -> list[Arguments]:
    """So many arguments, the empty list and a k of 0 among them."""
    first: list[Arguments] = [([], rng.randrange(1, 10)), ([rng.randrange(60)], 0)]
    return first + [
        ([rng.randrange(60) for _ in range(rng.randrange(2, 9))], rng.randrange(10)) for _ in range(number - 2)
    ]


def _action(rng: random.Random) -> Action:
    """What a loop does with its variable."""
    a, b, m = rng.randrange(2, 7), rng.randrange(3, 50), rng.choice((101, 211, 307, 503, 701, 997))
    return rng.choice(
        (
            Action(f"add {a} times {{x}} to the total", f"total += {a} * {{x}}", lambda total, x: total + a * x),
            Action(f"subtract {a} times {{x}} from the total", f"total -= {a} * {{x}}", lambda total, x: total - a * x),
            Action(
                f"add the distance between {{x}} and {b} to the total",
                f"total += abs({{x}} - {b})",
                lambda total, x: total + abs(x - b),
            ),
            Action(
                f"make the total the remainder of {a} times the total plus {{x}} when divided by {m}",
                f"total = ({a} * total + {{x}}) % {m}",
                lambda total, x: (a * total + x) % m,
            ),
        )
    )


def _change(rng: random.Random) -> Action:
    """What is done to the total alone."""
    a, b = rng.randrange(2, 6), rng.randrange(3, 80)
    return rng.choice(
        (
            Action(f"add {b} to the total", f"total += {b}", lambda total, _: total + b),
            Action(f"subtract {b} from the total", f"total -= {b}", lambda total, _: total - b),
            Action(f"multiply the total by {a}", f"total *= {a}", lambda total, _: total * a),
        )
    )


def _condition(rng: random.Random, low: int, high: int) -> Condition:
    a, b = rng.randrange(2, 6), rng.randrange(low, high)
    r = rng.randrange(a)
    return rng.choice(
        (
            Condition(f"{{x}} is above {b}", f"{{x}} > {b}", lambda x: x > b),
            Condition(f"{{x}} is below {b}", f"{{x}} < {b}", lambda x: x < b),
            Condition(
                f"{{x}} leaves the remainder {r} when divided by {a}", f"{{x}} % {a} == {r}", lambda x: x % a == r
            ),
        )
    )


def _while(rng: random.Random) -> Block:
    b, d = rng.randrange(40, 300), rng.randrange(23, 90)
    actions = (
        Action(f"subtract {d} from the total", f"total -= {d}", lambda total, _: total - d),
        Action("halve the total, rounding down", "total //= 2", lambda total, _: total // 2),
    )
    above = Condition(f"{{x}} is above {b}", f"{{x}} > {b}", lambda x: x > b)
    return Block("while", ((above, rng.choice(actions)),))


def _longer(rng: random.Random, program: Program) -> tuple[Program, int, int]:
    """The program with one block or condition more, and where that stands."""
    blocks = program.blocks
    loops = [i for i, block in enumerate(blocks) if block.kind in ("for", "count") and len(block.actions) < 4]
    kind = rng.choice(("for", "count", "if", "while", "inner", "inner")[: 6 if loops else 4])
    if kind == "inner":
        i = loops[-1]
        high = 60 if blocks[i].kind == "for" else 10
        more = replace(blocks[i], actions=(*blocks[i].actions, (_condition(rng, 2, high), _action(rng))))
        return replace(program, blocks=(*blocks[:i], more, *blocks[i + 1 :])), i, len(more.actions) - 1
    if kind == "while":
        block = _while(rng)
    elif kind == "if":
        block = Block("if", ((_condition(rng, 5, 400), _change(rng)), (None, _change(rng))))
    else:
        block = Block(kind, ((None, _action(rng)),))
    return replace(program, blocks=(*blocks, block)), len(blocks), 0


def grow(rng: random.Random, blocks: int, arguments: Sequence[Arguments]) -> tuple[Program, list[int]]:
    """A program of so many blocks and its results; with the same numbers, the beginning of any longer one.

    Every block matters: it changes at least two of the results, and its
    condition holds on some arguments and not on others.
    """
    program = Program(rng.randrange(1, 30))
    results = [program.run(each)[0] for each in arguments]
    for _ in range(blocks):
        while True:
            longer, block, place = _longer(rng, program)
            ran = [longer.run(each) for each in arguments]
            after = [result for result, _ in ran]
            ways = set().union(*(seen for _, seen in ran))
            conditional = longer.blocks[block].actions[place][0] is not None
            if (
                max(map(abs, after)) <= LARGEST
                and sum(a != b for a, b in zip(after, results, strict=True)) >= 2
                and len(set(after)) >= RESULTS
                and (not conditional or {(block, place, True), (block, place, False)} <= ways)
            ):
                break
        program, results = longer, after
    return program, results


def complexity(source: str) -> int:
    """Cyclomatic complexity (McCabe 1976) of the one function that `source` defines.

    One, and one more for every branch, loop, exception handler, assertion,
    further operand of ``and`` and ``or``, and loop or condition of a comprehension.
    """
    count = 1
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If() | ast.IfExp() | ast.ExceptHandler() | ast.Assert():
                count += 1
            case ast.For() | ast.While() | ast.AsyncFor():
                count += 1 + bool(node.orelse)
            case ast.BoolOp():
                count += len(node.values) - 1
            case ast.comprehension():
                count += 1 + len(node.ifs)
    return count
