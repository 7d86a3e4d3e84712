"""Data that may be read in several ways, and settings that say which is right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_adaptive_eval.errors import DatasetError

#: Parts of a reason that differ between records: quoted values, which may be cut, lists and numbers.
_VALUES = re.compile(r"'(?:\\.|[^'\\])*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|\[.*\]|\{.*\Z|\d+")
#: Reason of a record that has no answer, which says nothing against those with one.
NO_ANSWER = "no answer"


class Advice(NamedTuple):
    """One way to decide what is open.

    Args:
        settings: Values of ``--set`` by key.
        meaning: When it is the right way, such as "where each entry is right".
    """

    settings: Mapping[str, str]
    meaning: str = ""

    def __str__(self) -> str:
        return f"{as_options(self.settings)} {self.meaning}".strip()


def as_options(settings: Mapping[str, str]) -> str:
    """Return settings as options of the command line, quoted for a shell."""
    return " ".join(f"--set {_quoted(key, value)}" for key, value in settings.items())


def _quoted(key: str, value: str) -> str:
    """Return a setting for a shell; in double quotes where the value has single ones."""
    if "'" in value and not re.search(r"[\"$`\\!]", value):
        return f'{key}="{value}"'
    return shlex.quote(f"{key}={value}")


def sentence(problem: str, advice: Sequence[Advice]) -> str:
    """Return a problem with the ways to decide it."""
    if not advice:
        return problem
    return f"{problem}: give {', or '.join(map(str, advice))}"


def reason_kind(reason: str) -> str:
    """Return a reason without the values in it."""
    return _VALUES.sub("..", reason)


class Undecided(DatasetError):
    """Data that may be read in several ways.

    Args:
        problem: What is not certain, with the value found.
        advice: Ways to decide it, the most frequent first.
        even: Whether nothing speaks for one of them.
    """

    def __init__(self, problem: str, *advice: Advice, even: bool = False) -> None:
        super().__init__(sentence(problem, advice))
        self.problem, self.advice, self.even = problem, advice, even
