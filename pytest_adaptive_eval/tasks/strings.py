"""Task family of parsing: finding a field of a record among more and more others."""

from __future__ import annotations

import random

from pytest_adaptive_eval.tasks.answers import by_pattern
from pytest_adaptive_eval.tasks.family import Question, TaskFamily

__all__ = ["FAMILIES", "FIELD"]

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
DIGITS = "23456789"
#: A field is a letter, a digit and a letter, which prose does not contain by chance.
FIELD = r"\b[A-Z][0-9][A-Z]\b"


def _ordinal(n: int) -> str:
    return f"{n}{'th' if n % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _draw_fields(rng: random.Random, count: int) -> list[str]:
    codes = rng.sample(range(len(LETTERS) * len(DIGITS) * len(LETTERS)), count)
    return [
        LETTERS[code % 24] + DIGITS[code // 24 % len(DIGITS)] + LETTERS[code // (24 * len(DIGITS))] for code in codes
    ]


def _draw_record(rng: random.Random, fields: list[str], inner: str, outer: str) -> str:
    """Join fields to groups of two to five, so that counting fields and counting groups give different answers."""
    record, remaining = fields[0], rng.randrange(2, 6)
    for field in fields[1:]:
        remaining -= 1
        record += (inner if remaining else outer) + field
        remaining = remaining or rng.randrange(2, 6)
    return record


def _parsing(rng: random.Random, level: int) -> Question:
    count = 4 * level + 2
    fields = _draw_fields(rng, count)
    inner, outer = rng.sample("-:/+", 2)
    record = _draw_record(rng, fields, inner, outer)
    groups = [group.split(inner) for group in record.split(outer)]
    position, mentioned = rng.randrange(1, count), ""
    kind = rng.randrange(4)
    if kind == 0:
        target, answer = f"the {_ordinal(position)} field from the left", fields[position - 1]
    elif kind == 1:
        target, answer = f"the {_ordinal(position)} field from the right", fields[-position]
    elif kind == 2:
        mentioned, answer = fields[position - 1], fields[position]
        target = f"the field right after {mentioned}"
    else:
        g = rng.randrange(len(groups))
        i = rng.randrange(len(groups[g]))
        target, answer = f"the {_ordinal(i + 1)} field of the {_ordinal(g + 1)} group", groups[g][i]
    prompt = (
        f"A record consists of groups separated by {outer!r}; a group consists of fields separated by {inner!r}. Which "
        f"is {target} in this record?\n{record}"
    )
    return Question(prompt, answer, judge=by_pattern(answer, FIELD, mentioned))


FAMILIES = (
    TaskFamily("parsing", "length of the record, 16 * level + 7 characters", 25, 0.01, _parsing,
               form="End with `Answer: <field>`."),
)  # fmt: skip
