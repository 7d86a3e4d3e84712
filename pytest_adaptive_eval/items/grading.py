"""Graders that might not end, each with a time limit: patterns of banks and functions of users."""

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
#: Atoms that a pattern may have with its counted repetitions written out, which `regex` does in memory.
_ATOMS = 100_000

#: Wrong answers to nearly every question, which have no form in common.  The long one ends patterns that take
#: quadratic time, and fails those that limit an answer's length.
_WRONG = ("No.", "I do not know", "qwxz jkv", "qwxz jkv\n" * 300)

#: A pattern's parts that the two engines may read differently, or that count its atoms.
_PART = re.compile(
    r"(?P<kept>\\N\{[^}]*\}|\\.|\(\?\#[^)]*\))|\[(?P<set>\^?\]?(?:\\.|[^\]\\])*)\]"
    r"|\{(?:(?P<least>\d+)(?:,\d*)?|,\d*)\}|(?P<brace>\{)|(?P<open>\()|(?P<close>\))|.",
    re.DOTALL,
)


def _translated(pattern: str) -> str:
    """Return a pattern of `re` as `regex` must be given it to read it in the same way.

    `regex` takes ``{e}`` for approximate matching and ``[[:`` for a named class; for `re` both are plain characters.

    Raises
    ------
    ValueError
        Written out, its counted repetitions have more than `_ATOMS` atoms.
    """
    out: list[str] = []
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
                text = "[" + re.sub(r"(\\.)|\[", lambda found: found[1] or r"\[", part["set"], flags=re.DOTALL) + "]"
            last = 1
            counts[-1] += 1
        if max(counts) > _ATOMS:
            raise ValueError(f"its repetitions stand for more than {_ATOMS} characters")
        out.append(text)
    return "".join(out)


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import regex  # here, since nothing else of a run needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about forms that may mean something else one day
        re.compile(pattern)  # which decides what is a pattern
        return regex.compile(_translated(pattern), regex.VERSION0)


def _found(pattern: str, text: str) -> bool:
    """Whether a pattern matches somewhere in a text; raises TimeoutError."""
    return _compiled(pattern).search(text, timeout=PATTERN_SECONDS) is not None


def grade_pattern(item: Item, text: str) -> float:
    """Score 1 where the item's answer, a regular expression, matches somewhere in the text.

    Raises
    ------
    BankError
        It is no regular expression.
    Unscored
        The search did not end within `PATTERN_SECONDS`.
    """
    try:
        return float(_found(item.answer, text))
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
    """Return what is wrong with a regular expression, empty if nothing is."""
    try:
        _compiled(pattern)
    except RecursionError:
        return "its groups are nested too deep"
    except (re.error, ValueError, OverflowError, MemoryError) as error:
        return str(error)
    return ""


def accepts_any_text(pattern: str) -> str:
    """Return why a pattern tells no right answer from a wrong one, empty if it may.

    Raises
    ------
    TimeoutError
        The search in some plain text did not end.
    """
    if _found(pattern, ""):
        return "matches the empty text"
    found = [_found(pattern, text) for text in _WRONG]  # in each, to learn of patterns that do not end
    if all(found):
        return "matches any text"
    return ""


@dataclass(frozen=True, slots=True)
class LimitedGrader:
    """A user's grading function, called in a thread of its own with a time limit.

    Parameters
    ----------
    function : callable
        Takes the item and the text, returns a score in [0, 1].  Its attribute ``timeout`` is its time limit in
        seconds, `FUNCTION_SECONDS` without one.  Its attribute ``deterministic`` is False where it may grade one text
        in two ways.
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
            The attribute ``timeout`` is no number above 0.
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


#: Every grader that an item can name without trusting a module.
BUILT_IN: Mapping[str, Grader] = MappingProxyType({**GRADERS, "regex": grade_pattern})
