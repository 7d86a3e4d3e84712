"""Grading functions of users, with a time limit, and items that only a judge grades."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.deadline import Overdue, within
from pytest_adaptive_eval.errors import BankError, ConfigError, Unscored
from pytest_adaptive_eval.items.item import Item, Status

#: Grader of items that only a judge grades.
JUDGE = "judge"

#: Time limit of a user's grading function, in seconds, unless its attribute ``timeout`` is another number.
FUNCTION_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class LimitedGrader:
    """A user's grading function, called in another thread with a time limit.

    Args:
        function: Takes the item and the text, and returns a score in [0, 1]. Its attribute ``timeout`` is the time
            limit in seconds, `FUNCTION_SECONDS` by default. Its attribute ``deterministic`` is False if its scores of
            one text can differ.
    """

    function: Callable[[Item, str], Any]

    @property
    def deterministic(self) -> bool:
        """Whether a text always gets the same score."""
        return getattr(self.function, "deterministic", True) is not False

    def __call__(self, item: Item, text: str) -> Any:
        """Grade a text."""
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
                "grader, not a wrong answer. Fix the function, or set its attribute timeout to more seconds",
                text,
            ) from None


def needs_judge(item: Item, _: str) -> float:
    """Refuse to grade an item whose grader is `JUDGE` without one. Always raises ConfigError."""
    raise ConfigError(
        f"item {item.id!r} is graded by a judge, and the evaluation names none: write judge = {{ model = "
        '"http://HOST:PORT/v1#MODEL" }'
    )
