"""Task family of parsing: finding fields of a record among more and more others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_adaptive_eval.tasks.answers import by_sequence
from pytest_adaptive_eval.tasks.family import Question, TaskFamily

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
DIGITS = "23456789"
#: A field is a letter, a digit and a letter, which prose does not contain by chance.
FIELD = r"\b[A-Z][0-9][A-Z]\b"


def _ordinal(n: int) -> str:
    if n % 100 in (11, 12, 13):
        return f"{n}th"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _draw_fields(rng: random.Random, count: int) -> list[str]:
    codes = rng.sample(range(len(LETTERS) * len(DIGITS) * len(LETTERS)), count)
    fields = []
    for code in codes:
        rest, first = divmod(code, len(LETTERS))
        last, digit = divmod(rest, len(DIGITS))
        fields.append(LETTERS[first] + DIGITS[digit] + LETTERS[last])
    return fields


def _draw_record(rng: random.Random, fields: list[str], inner: str, outer: str) -> str:
    """Join fields to groups of two to five; counting fields and counting groups then give different answers."""
    record = fields[0]
    remaining = rng.randrange(2, 6)
    for field in fields[1:]:
        remaining -= 1
        if remaining:
            record += inner + field
        else:
            record += outer + field
            remaining = rng.randrange(2, 6)
    return record


@dataclass(frozen=True, slots=True)
class _Target:
    """Requested field: its description, its text, and the field that is mentioned, if any."""

    words: str
    field: str
    mentioned: str = ""


def _target(rng: random.Random, fields: Sequence[str], groups: Sequence[Sequence[str]]) -> _Target:
    position = rng.randrange(1, len(fields))
    kind = rng.randrange(4)
    if kind == 0:
        return _Target(f"the {_ordinal(position)} field from the left", fields[position - 1])
    if kind == 1:
        return _Target(f"the {_ordinal(position)} field from the right", fields[-position])
    if kind == 2:
        mentioned = fields[position - 1]
        return _Target(f"the field right after {mentioned}", fields[position], mentioned)
    g = rng.randrange(len(groups))
    group = groups[g]
    i = rng.randrange(len(group))
    return _Target(f"the {_ordinal(i + 1)} field of the {_ordinal(g + 1)} group", group[i])


def _targets(
    rng: random.Random, count: int, fields: Sequence[str], groups: Sequence[Sequence[str]]
) -> Sequence[_Target]:
    """Draw targets with different fields, without mentions of another target's field."""
    while True:
        targets = [_target(rng, fields, groups) for _ in range(count)]
        answers = {target.field for target in targets}
        if len(answers) == count and answers.isdisjoint(target.mentioned for target in targets):
            return targets


def _parsing(rng: random.Random, level: int) -> Question:
    fields = _draw_fields(rng, 4 * level + 2)
    inner, outer = rng.sample("-:/+", 2)
    record = _draw_record(rng, fields, inner, outer)
    groups = [group.split(inner) for group in record.split(outer)]
    targets = _targets(rng, 1 + (level - 1) // 4, fields, groups)
    *first, last = [target.words for target in targets]
    if first:
        which = f"Which are, in this order, {', '.join(first)} and {last}"
    else:
        which = f"Which is {last}"
    prompt = (
        f"A record consists of groups separated by {outer!r}; a group consists of fields separated by {inner!r}. "
        f"{which} in this record?\n{record}"
    )
    answer = ", ".join(target.field for target in targets)
    mentioned = {target.mentioned for target in targets}
    return Question(prompt, answer, judge=by_sequence(answer, FIELD, len(targets), mentioned))


FAMILIES = (
    TaskFamily(
        "parsing", "length of the record, 16 * level + 7 characters, and 1 to 7 fields asked for", 25, 0.01, _parsing,
        form="End with `Answer: <fields>`.",
    ),
)  # fmt: skip
