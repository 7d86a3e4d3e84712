"""Graders with a time limit: patterns of banks and functions of users."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.deadline import Overdue, within
from pytest_adaptive_eval.errors import BankError, Unscored
from pytest_adaptive_eval.items.item import GRADERS, Grader, Item, Status

__all__ = ["BUILT_IN", "LimitedGrader", "accepts_any_text", "check_pattern", "grade_pattern"]

#: Time limit of one pattern on one answer, in seconds.  Patterns that end take milliseconds on the longest answer.
PATTERN_SECONDS = 2.0
#: Time limit of a user's grading function, in seconds, unless its attribute ``timeout`` is another number.
FUNCTION_SECONDS = 15.0
#: Limit of the atoms in a pattern with its counted repetitions expanded, which `regex` does in memory.
_ATOMS = 100_000

#: Wrong answers to nearly every item, without a common form.  The long one detects patterns that take quadratic
#: time, and patterns that limit the length of an answer.
_WRONG = ("No.", "I do not know", "qwxz jkv", "qwxz jkv\n" * 300)

#: Parts of a pattern that the two engines read differently, or that affect the number of atoms.
_PART = re.compile(
    r"(?P<kept>\\N\{[^}]*\}|\\.|\(\?\#[^)]*\))|\[(?P<set>\^?\]?(?:\\.|[^\]\\])*)\]"
    r"|\{(?:(?P<least>\d+)(?:,\d*)?|,\d*)\}|(?P<brace>\{)|(?P<open>\()|(?P<close>\))|.",
    re.DOTALL,
)


def _translated(pattern: str) -> str:
    """Return a pattern of `re` in the form that `regex` reads in the same way.

    `regex` takes ``{e}`` for approximate matching and ``[[:`` for a named class; for `re` both are plain characters.

    Raises
    ------
    ValueError
        The pattern has more than `_ATOMS` atoms with its counted repetitions expanded.
    """
    translated: list[str] = []
    counts, last = [0], 0  # atoms of each open group, and of the latest atom or group
    for part in _PART.finditer(pattern):
        text = part[0]
        if part["open"]:
            counts.append(0)
            last = 0
        elif part["close"] and len(counts) > 1:
            last = counts.pop()
            counts[-1] += last
        elif text[0] == "{" and not part["brace"]:
            more = last * (max(int(part["least"] or 1), 1) - 1)
            last += more
            counts[-1] += more
        else:
            if part["brace"]:
                text = r"\{"
            elif part["set"] is not None:
                text = "[" + re.sub(r"(\\.)|\[", lambda match: match[1] or r"\[", part["set"], flags=re.DOTALL) + "]"
            last = 1
            counts[-1] += 1
        if max(counts) > _ATOMS:
            raise ValueError(f"its repetitions stand for more than {_ATOMS} characters")
        translated.append(text)
    return "".join(translated)


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import regex  # here, since nothing else of a run needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forms whose meaning may change
        re.compile(pattern)  # raises for an invalid pattern
        return regex.compile(_translated(pattern), regex.VERSION0)


def _matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a text; may raise TimeoutError."""
    return _compiled(pattern).search(text, timeout=PATTERN_SECONDS) is not None


def grade_pattern(item: Item, text: str) -> float:
    """Return 1 if the item's answer, a regular expression, matches anywhere in the text.

    Raises
    ------
    BankError
        The answer is not a regular expression.
    Unscored
        The search did not end within `PATTERN_SECONDS`.
    """
    try:
        return float(_matches(item.answer, text))
    except TimeoutError:
        raise Unscored(
            Status.ERROR.value,
            f"item {item.id!r}: the search for its pattern {item.answer!r:.80} did not end within "
            f"{PATTERN_SECONDS:g} s of processor time: a fault of the bank, no wrong answer. Write the pattern without "
            "repetitions inside of repetitions",
            text,
            lasting=True,
        ) from None
    except (re.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise BankError(
            f"item {item.id!r}: the answer {item.answer!r:.80} is no regular expression ({error})"
        ) from None


def check_pattern(pattern: str) -> str:
    """Return the fault of a regular expression, empty if there is none."""
    try:
        _compiled(pattern)
    except RecursionError:
        return "its groups are nested too deep"
    except (re.error, ValueError, OverflowError, MemoryError) as error:
        return str(error)
    return ""


def accepts_any_text(pattern: str) -> str:
    """Return the reason why a pattern accepts wrong answers, empty if it may reject them.

    Raises
    ------
    TimeoutError
        The search in an example text did not end.
    """
    if _matches(pattern, ""):
        return "matches the empty text"
    matches = [_matches(pattern, text) for text in _WRONG]  # in each text, to detect patterns that do not end
    if all(matches):
        return "matches any text"
    return ""


@dataclass(frozen=True, slots=True)
class LimitedGrader:
    """A user's grading function, called in another thread with a time limit.

    Parameters
    ----------
    function : callable
        Takes the item and the text, and returns a score in [0, 1].  Its attribute ``timeout`` is the time limit in
        seconds, `FUNCTION_SECONDS` by default.  Its attribute ``deterministic`` is False if its scores of one text can
        differ.
    """

    function: Callable[[Item, str], Any]

    @property
    def deterministic(self) -> bool:
        """Whether a text always gets the same score."""
        return getattr(self.function, "deterministic", True) is not False

    def __call__(self, item: Item, text: str) -> Any:
        """Grade a text.

        Raises
        ------
        BankError
            The attribute ``timeout`` is not a number above 0.
        Unscored
            The function did not return in time.
        """
        seconds = getattr(self.function, "timeout", FUNCTION_SECONDS)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.0 < seconds <= 86_400:
            raise BankError(
                f"item {item.id!r}: timeout of the grader {item.grader!r} is {seconds!r:.80}, expected seconds, a "
                "number above 0 and at most 86400"
            )
        try:
            return within(float(seconds), lambda: self.function(item, text), f"the grader {item.grader!r}")
        except Overdue:
            raise Unscored(
                Status.ERROR.value,
                f"item {item.id!r}: its grader {item.grader!r} did not return within {seconds:g} s: a fault of the "
                "grader, no wrong answer. Mend the function, or set its attribute timeout to more seconds",
                text,
                lasting=True,
            ) from None


#: Graders that an item can name without a trusted module.
BUILT_IN: Mapping[str, Grader] = MappingProxyType({**GRADERS, "regex": grade_pattern})
