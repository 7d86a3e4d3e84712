"""Small programs of control-flow blocks: described in words, written as source, and run without either.

A program turns a list ``values`` and a number ``k`` into a number. Each block is a ``for``, a ``while`` or an ``if``,
alone or inside a loop, and adds one to the cyclomatic complexity.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

#: Arguments of a program: the list and the number.
Arguments = tuple[list[int], int]
#: Outcomes of a block's conditions: the condition's position in the block, and whether it held.
Outcomes = set[tuple[int, bool]]

#: Limit on results.
LARGEST = 1_000_000
#: Fewest different results over the arguments, so that no constant is often right.
RESULTS = 5
#: Most steps of a loop.
STEPS = 4


@dataclass(frozen=True, slots=True)
class Action:
    """Change of the total by a number x, which is a loop's variable or a constant of the source."""

    words: str
    source: str
    apply: Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class LoopCondition:
    """Test of a number x."""

    words: str
    source: str
    holds: Callable[[int], bool]


class Block(Protocol):
    """Step of a program."""

    def run(self, total: int, arguments: Arguments, outcomes: Outcomes, /) -> int:
        """Return the new total, and add how the conditions turned out to `outcomes`."""

    def source_lines(self) -> list[str]:
        """Return the lines of the block's Python source; its first line is not indented."""

    def words(self) -> str:
        """Describe the block in a sentence."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Loop over the list, or over the numbers from 1 to k; some steps have a condition."""

    over_list: bool
    steps: tuple[tuple[LoopCondition | None, Action], ...]

    def run(self, total: int, arguments: Arguments, outcomes: Outcomes, /) -> int:
        """Return the new total, and add how the conditions turned out to `outcomes`."""
        values, k = arguments
        numbers: Sequence[int] = values
        if not self.over_list:
            numbers = range(1, k + 1)
        for x in numbers:
            for i, (condition, action) in enumerate(self.steps):
                holds = condition is None or condition.holds(x)
                outcomes.add((i, holds))
                if holds:
                    total = action.apply(total, x)
        return total

    def source_lines(self) -> list[str]:
        """Return the lines of the block's Python source; its first line is not indented."""
        x = "value"
        numbers = "values"
        if not self.over_list:
            x = "i"
            numbers = "range(1, k + 1)"
        lines = [f"for {x} in {numbers}:"]
        for condition, action in self.steps:
            indent = "    "
            if condition is not None:
                lines.append(f"{indent}if {condition.source.format(x=x)}:")
                indent *= 2
            lines.append(indent + action.source.format(x=x))
        return lines

    def words(self) -> str:
        """Describe the block in a sentence."""
        x = "the value"
        numbers = "value of the list, from the first to the last"
        if not self.over_list:
            x = "i"
            numbers = "whole number i from 1 up to and with k, which is none if k is 0"
        steps = []
        for condition, action in self.steps:
            step = action.words.format(x=x)
            if condition:
                step = f"if {condition.words.format(x=x)}, {step}"
            steps.append(step)
        return f"For each {numbers}: {'; then '.join(steps)}."


@dataclass(frozen=True, slots=True)
class Branch:
    """Action that depends on a condition on the total."""

    condition: LoopCondition
    action: Action
    alternative: Action

    def run(self, total: int, _: Arguments, outcomes: Outcomes, /) -> int:
        """Return the new total, and add how the condition turned out to `outcomes`."""
        holds = self.condition.holds(total)
        outcomes.add((0, holds))
        if holds:
            return self.action.apply(total, 0)
        return self.alternative.apply(total, 0)

    def source_lines(self) -> list[str]:
        """Return the lines of the block's Python source; its first line is not indented."""
        head = f"if {self.condition.source.format(x='total')}:"
        return [head, f"    {self.action.source}", "else:", f"    {self.alternative.source}"]

    def words(self) -> str:
        """Describe the block in a sentence."""
        condition = self.condition.words.format(x="the total")
        return f"If {condition}, {self.action.words}; otherwise {self.alternative.words}."


@dataclass(frozen=True, slots=True)
class While:
    """Action that is repeated as long as a condition on the total holds."""

    condition: LoopCondition
    action: Action

    def run(self, total: int, _: Arguments, outcomes: Outcomes, /) -> int:
        """Return the new total, and add how the condition turned out to `outcomes`."""
        while self.condition.holds(total):
            outcomes.add((0, True))
            total = self.action.apply(total, 0)
        outcomes.add((0, False))
        return total

    def source_lines(self) -> list[str]:
        """Return the lines of the block's Python source; its first line is not indented."""
        return [f"while {self.condition.source.format(x='total')}:", f"    {self.action.source}"]

    def words(self) -> str:
        """Describe the block in a sentence."""
        return f"As long as {self.condition.words.format(x='the total')}, {self.action.words}."


@dataclass(frozen=True, slots=True)
class Program:
    """Sequence of blocks.

    Args:
        start: The total begins at k plus this.
    """

    start: int
    blocks: tuple[Block, ...] = ()

    def run(self, arguments: Arguments) -> tuple[int, set[tuple[int, int, bool]]]:
        """Return the result, and the outcomes of conditions by block and position."""
        total = arguments[1] + self.start
        all_outcomes: set[tuple[int, int, bool]] = set()
        for i, block in enumerate(self.blocks):
            outcomes: Outcomes = set()
            total = block.run(total, arguments, outcomes)
            if abs(total) > LARGEST:
                return LARGEST + 1, all_outcomes
            all_outcomes |= {(i, *outcome) for outcome in outcomes}
        return total, all_outcomes

    def source(self) -> str:
        """Return the program as Python."""
        body = [f"total = k + {self.start}"]
        for block in self.blocks:
            body += block.source_lines()
        body.append("return total")
        indented = [f"    {line}" for line in body]
        return "\n".join(["def solve(values, k):", *indented, ""])

    def words(self, untold: Collection[int] = ()) -> str:
        """Describe the function in numbered steps, leaving out the steps at positions `untold`."""
        lines = []
        for i, block in enumerate(self.blocks):
            if i in untold:
                words = "This step is in the code alone."
            else:
                words = block.words()
            lines.append(f"{i + 1}. {words}")
        steps = "\n".join(lines)
        return (
            "solve(values, k) gets a list of whole numbers and a whole number, and returns a whole number. It begins "
            f"with a total of k plus {self.start}, does the following steps in order, and returns the total:\n{steps}\n"
            "Remainders are those of Python's operator %."
        )


def draw_arguments(rng: random.Random, number: int) -> list[Arguments]:
    """Draw `number` arguments, including the empty list and a k of 0."""
    arguments: list[Arguments] = [([], rng.randrange(1, 10)), ([rng.randrange(60)], 0)]
    while len(arguments) < number:
        values = [rng.randrange(60) for _ in range(rng.randrange(2, 9))]
        arguments.append((values, rng.randrange(10)))
    return arguments


def _loop_action(rng: random.Random) -> Action:
    """Draw an action that uses the variable of a loop."""
    a = rng.randrange(2, 7)
    b = rng.randrange(3, 50)
    m = rng.choice((101, 211, 307, 503, 701, 997))
    addition = Action(f"add {a} times {{x}} to the total", f"total += {a} * {{x}}", lambda total, x: total + a * x)
    subtraction = Action(
        f"subtract {a} times {{x}} from the total", f"total -= {a} * {{x}}", lambda total, x: total - a * x
    )
    distance = Action(
        f"add the distance between {{x}} and {b} to the total",
        f"total += abs({{x}} - {b})",
        lambda total, x: total + abs(x - b),
    )
    remainder = Action(
        f"make the total the remainder of {a} times the total plus {{x}} when divided by {m}",
        f"total = ({a} * total + {{x}}) % {m}",
        lambda total, x: (a * total + x) % m,
    )
    return rng.choice((addition, subtraction, distance, remainder))


def _constant_action(rng: random.Random) -> Action:
    """Draw an action that uses the total alone."""
    a = rng.randrange(2, 6)
    b = rng.randrange(3, 80)
    addition = Action(f"add {b} to the total", f"total += {b}", lambda total, _: total + b)
    subtraction = Action(f"subtract {b} from the total", f"total -= {b}", lambda total, _: total - b)
    product = Action(f"multiply the total by {a}", f"total *= {a}", lambda total, _: total * a)
    return rng.choice((addition, subtraction, product))


def _above(b: int) -> LoopCondition:
    return LoopCondition(f"{{x}} is above {b}", f"{{x}} > {b}", lambda x: x > b)


def _condition(rng: random.Random, low: int, high: int) -> LoopCondition:
    a = rng.randrange(2, 6)
    b = rng.randrange(low, high)
    r = rng.randrange(a)
    below = LoopCondition(f"{{x}} is below {b}", f"{{x}} < {b}", lambda x: x < b)
    remainder = LoopCondition(
        f"{{x}} leaves the remainder {r} when divided by {a}", f"{{x}} % {a} == {r}", lambda x: x % a == r
    )
    return rng.choice((_above(b), below, remainder))


def _extended(rng: random.Random, program: Program) -> tuple[Program, tuple[int, int] | None]:
    """Return the program with one more block or conditional step, and the position of its condition, if any."""
    blocks = program.blocks
    loops = [(i, block) for i, block in enumerate(blocks) if isinstance(block, Loop) and len(block.steps) < STEPS]
    kinds = ["for", "count", "if", "while"]
    if loops:
        kinds += ["inner", "inner"]
    kind = rng.choice(kinds)
    if kind == "inner":
        i, loop = loops[-1]
        largest = 60 if loop.over_list else 10
        step = (_condition(rng, 2, largest), _loop_action(rng))
        longer = replace(loop, steps=(*loop.steps, step))
        return replace(program, blocks=(*blocks[:i], longer, *blocks[i + 1 :])), (i, len(loop.steps))
    block: Block
    condition: tuple[int, int] | None = (len(blocks), 0)
    if kind == "while":
        b = rng.randrange(40, 300)
        d = rng.randrange(23, 90)
        subtraction = Action(f"subtract {d} from the total", f"total -= {d}", lambda total, _: total - d)
        halving = Action("halve the total, rounding down", "total //= 2", lambda total, _: total // 2)
        block = While(_above(b), rng.choice((subtraction, halving)))
    elif kind == "if":
        block = Branch(_condition(rng, 5, 400), _constant_action(rng), _constant_action(rng))
    else:
        block = Loop(kind == "for", ((None, _loop_action(rng)),))
        condition = None
    return replace(program, blocks=(*blocks, block)), condition


def _extend(
    rng: random.Random, program: Program, results: Sequence[int], arguments: Sequence[Arguments]
) -> tuple[Program, list[int]]:
    """Draw extensions of a program until one matters, and return it with its results."""
    while True:
        longer, condition = _extended(rng, program)
        new_results = []
        outcomes: set[tuple[int, int, bool]] = set()
        for each in arguments:
            result, outcomes_of_run = longer.run(each)
            new_results.append(result)
            outcomes |= outcomes_of_run
        changed = sum(a != b for a, b in zip(new_results, results, strict=True))
        bounded = max(map(abs, new_results)) <= LARGEST
        tested = condition is None or {(*condition, True), (*condition, False)} <= outcomes
        if bounded and tested and changed >= 2 and len(set(new_results)) >= RESULTS:
            return longer, new_results


def grow(rng: random.Random, blocks: int, arguments: Sequence[Arguments]) -> tuple[Program, list[int]]:
    """Draw a program of `blocks` blocks, and return it with its results.

    With the same random numbers a longer program begins with the shorter one. Every block matters: it changes at least
    two of the results, and its condition holds for some arguments and fails for others.
    """
    program = Program(rng.randrange(1, 30))
    results = [program.run(each)[0] for each in arguments]
    for _ in range(blocks):
        program, results = _extend(rng, program, results, arguments)
    return program, results
