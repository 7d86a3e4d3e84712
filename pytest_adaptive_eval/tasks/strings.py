"""Parsing of strings: which field stands where, among more and more others."""

from __future__ import annotations

import random

from pytest_adaptive_eval.tasks.answers import by_pattern
from pytest_adaptive_eval.tasks.family import Question, TaskFamily

__all__ = ["PARSING"]

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
DIGITS = "23456789"
#: A field is a letter, a digit and a letter: nothing that prose holds by chance.
FIELD = r"\b[A-Z][0-9][A-Z]\b"


def _ordinal(n: int) -> str:
    return f"{n}{'th' if n % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _parsing(rng: random.Random, level: int) -> Question:
    count = 4 * level + 2
    codes = rng.sample(range(len(LETTERS) * len(DIGITS) * len(LETTERS)), count)
    fields = [
        LETTERS[code % 24] + DIGITS[code // 24 % len(DIGITS)] + LETTERS[code // (24 * len(DIGITS))] for code in codes
    ]
    inner, outer = rng.sample("-:/+", 2)
    # Groups of two to five fields, so that counting fields and counting groups differ.
    marks = []
    left = rng.randrange(2, 6)
    for _ in range(count - 1):
        left -= 1
        marks.append(outer if left == 0 else inner)
        left = left or rng.randrange(2, 6)
    text = fields[0] + "".join(mark + field for mark, field in zip(marks, fields[1:], strict=True))
    groups = [group.split(inner) for group in text.split(outer)]
    at, given = rng.randrange(1, count), ""
    kind = rng.randrange(4)
    if kind == 0:
        ask, answer = f"the {_ordinal(at)} field from the left", fields[at - 1]
    elif kind == 1:
        ask, answer = f"the {_ordinal(at)} field from the right", fields[-at]
    elif kind == 2:
        given, answer = fields[at - 1], fields[at]
        ask = f"the field right after {given}"
    else:
        g = rng.randrange(len(groups))
        i = rng.randrange(len(groups[g]))
        ask, answer = f"the {_ordinal(i + 1)} field of the {_ordinal(g + 1)} group", groups[g][i]
    prompt = (
        f"A record consists of groups separated by {outer!r}; a group consists of fields separated by {inner!r}. Which "
        f"is {ask} in this record?\n{text}\nEnd with the answer in a line of its own."
    )
    return Question(prompt, answer, judge=by_pattern(answer, FIELD, given))


PARSING = TaskFamily("parsing", "length of the record, 16 * level + 7 characters", 25, 0.01, _parsing, max_tokens=1024)
