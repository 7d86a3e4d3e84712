"""Grader of a regular expression, with a time limit."""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from typing import Any

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.deadline import Overdue
from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning

#: Time limit of one pattern on one answer, in seconds.  Patterns that end take milliseconds on the longest answer.
PATTERN_SECONDS = 2.0
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
    """Return a pattern of `re` in the form that `regex` reads in the same way."""
    translated = []
    # atoms of each open group, and of the latest atom or group
    counts = [0]
    last = 0
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
    """Return a compiled pattern; raise ValueError if that takes too long.

    The worker compiles it first: sets of all letters take seconds, and thousands hours.
    """
    with contextlib.suppress(worker.Raised):  # the same error follows here
        try:
            name = f"{__name__}:{compile_pattern.__name__}"
            worker.call(name, pattern, seconds=PATTERN_SECONDS, description="compiling the pattern")
        except Overdue as error:
            raise ValueError(str(error)) from None
    return _compile(pattern)


def compile_pattern(pattern: str) -> None:
    """Compile a pattern and drop it; runs in the worker."""
    _compile(pattern)


def _compile(pattern: str) -> Any:
    import regex  # here, since nothing else of a run needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forms whose meaning may change
        re.compile(pattern)  # raises for an invalid pattern
        return regex.compile(_translated(pattern), regex.VERSION0)


def _matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a text; may raise TimeoutError."""
    return _compiled(pattern).search(text, timeout=PATTERN_SECONDS) is not None


def matches_in_time(pattern: str, text: str) -> bool:
    """Return whether a pattern matches in a text; raise TimeoutError after `PATTERN_SECONDS`, or ValueError."""
    try:
        return _matches(pattern, text)
    except TimeoutError:
        raise TimeoutError(
            f"the search for its pattern {pattern!r:.80} did not end within {PATTERN_SECONDS:g} s of processor time: a "
            "fault of the bank, no wrong answer. Write the pattern without repetitions inside of repetitions"
        ) from None
    except (re.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"the answer {pattern!r:.80} is not a regular expression ({error})") from None


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
    """Return why a pattern accepts wrong answers, or nothing; raise TimeoutError for an endless search."""
    if _matches(pattern, ""):
        return "matches the empty text"
    matches = [_matches(pattern, text) for text in _WRONG]  # in each text, to detect patterns that do not end
    if all(matches):
        return "matches any text"
    return ""


def _pattern(question: Asked, text: str) -> float:
    """Return 1 if an accepted answer, a regular expression, matches anywhere in the text."""
    text = without_reasoning(text)
    return float(any(matches_in_time(answer, text) for answer in question.answers))


REGISTERED = (
    GraderKind(
        "regex",
        "a regular expression matches anywhere in the text",
        _pattern,
        check=lambda _, answer: f"is not a regular expression ({why})" if (why := check_pattern(answer)) else "",
        leniency=lambda _, answer: Leniency(problem) if (problem := accepts_any_text(answer)) else None,
    ),
)
