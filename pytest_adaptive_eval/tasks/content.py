"""Questions that models write: code parses their content, and makes the question and its answer from it.

A model writes a question of a family in its own words, such as ``What is 12 + 34?``. Only the content, here the two
numbers, is read. An answer that the model gives with it is at most compared with the correct one.
"""

from __future__ import annotations

import random
import re
from types import MappingProxyType

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import GRADED_CHARACTERS, Item
from pytest_adaptive_eval.tasks.family import Content, TaskFamily

#: Characters of a written question that are read.
READ_CHARACTERS = 4000


class Malformed(ValueError):
    """A written question that cannot be used.

    Args:
        kind: Whether the content cannot be parsed, or is of another level.
        why: Reason, for the model that wrote it.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def only_match(pattern: re.Pattern[str], text: str, label: str) -> tuple[str, ...]:
    """Return the groups of the pattern's only distinct match; raise `Malformed` if there is none or more than one."""
    matches = list(dict.fromkeys(match.groups() for match in pattern.finditer(text)))
    if len(matches) != 1:
        raise Malformed("format", f"{'more than one' if matches else 'no'} {label} was found")
    return matches[0]


def check_level(matches: bool, demand: str) -> None:
    """Raise `Malformed` unless a question matches the demand of its level."""
    if not matches:
        raise Malformed("level", f"it does not hold to this: {demand}")


def plural(level: int) -> str:
    """Return the plural ending of that many things."""
    return "s" * (level > 1)


def content_of(family: TaskFamily) -> Content:
    """Return how models write questions of a family; raise ConfigError if they cannot."""
    if family.content is None:
        raise ConfigError(
            f"questions of {family.name!r} cannot be written by a model, since no code parses them; name a task whose "
            "questions can, see docs/reference/networks.md"
        )
    return family.content


def written_item(family: TaskFamily, level: int, name: str, text: str) -> Item:
    """Return the question that a model wrote, in the family's words and with the answer by its code.

    Args:
        name: Unique among the items of the level; it also seeds what code draws.
        text: Text that the model wrote.

    Raises:
        Malformed: The text cannot be used.
        ConfigError: Models cannot write questions of that family.
    """
    identity = f"{family.name}-{level}-{name}"
    text = re.sub(r"[ \t]+", " ", text[:READ_CHARACTERS].replace("**", ""))
    question = family.with_form(content_of(family).read(text, level, random.Random(identity)))
    judge = question.judge
    return Item(
        id=identity,
        prompt=question.prompt,
        answer=question.answer,
        grader=family.grader,
        category=(family.name,),
        meta=MappingProxyType({"level": level}),
        custom=None if judge is None else lambda _, answer: judge(answer[:GRADED_CHARACTERS], None).score,
    )
