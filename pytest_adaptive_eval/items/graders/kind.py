"""Kinds of graders, and their registry."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pytest_adaptive_eval.registry import registered

#: Characters of an answer below which it stands in most texts by chance.
_SHORTEST = 2


class Asked(Protocol):
    """Part of an item that a grader sees, see `pytest_adaptive_eval.items.item.Item`."""

    @property
    def id(self) -> str:
        """Id of the item."""

    @property
    def prompt(self) -> str:
        """Text that the subject reads."""

    @property
    def answers(self) -> tuple[str, ...]:
        """Accepted answers."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Alternatives of a multiple-choice item."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tools that the subject may call."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Further data."""


class Leniency(NamedTuple):
    """Reason why wrong answers would count as right."""

    problem: str
    fix: str = "correct it"


@dataclass(frozen=True, slots=True)
class GraderKind:
    """A kind of grader.

    Args:
        help: When an answer is right, in a few words.
        grade: ``grade(question, text)`` returns the score of an answer, in [0, 1]. With several accepted answers it is
            that of the best. It raises ValueError for an item that it cannot grade, TimeoutError if it did not end for
            another reason than the text, and `WorkerFault`; these are not wrong answers.
        check: ``check(question, answer)`` returns why one accepted answer cannot be graded, to follow "the answer ...";
            empty if it can.
        leniency: ``leniency(question, answer)`` returns why wrong answers match an accepted one, or None.
        readable: ``readable(question, text)`` returns whether a text has the form of an answer.
        within: For a grader that compares whole texts: kinds that find the same answer within a text.
    """

    name: str
    help: str
    grade: Callable[[Asked, str], float]
    check: Callable[[Asked, str], str] = lambda _question, _answer: ""
    leniency: Callable[[Asked, str], Leniency | None] = lambda _question, _answer: None
    readable: Callable[[Asked, str], bool] = lambda _question, text: bool(text.strip())
    within: tuple[str, ...] = ()


def finding_kind(question: Asked, grader: str, text: str) -> str:
    """Return the grader that finds an accepted answer within a text that the named one rejects; else empty."""
    kinds = grader_kinds()
    for name in kinds[grader].within if grader in kinds else ():
        kind = kinds[name]
        fits = all(len(answer) >= _SHORTEST and not kind.check(question, answer) for answer in question.answers)
        if fits and kind.grade(question, text) == 1.0:
            return name
    return ""


@functools.cache
def grader_kinds() -> Mapping[str, GraderKind]:
    """Return the registered kinds by name, of plugins too; raise ConfigError if one cannot be loaded."""
    return registered("pytest_adaptive_eval.items.graders.kinds", "adaptive_eval.graders", GraderKind)
