"""Stopping rules of interviews, and budgets."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim, decide, further_draws
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt.estimation import Estimate


class StopReason(enum.Enum):
    """Reason for the end of an interview; each value is the sentence that reports contain."""

    BUDGET = "the budget is spent"
    COST = "the budget in tokens or money is spent"
    BASELINE = "the baseline holds answers to no more items"
    EXHAUSTED = "every item of the bank was asked"
    DECISION = "every gate is decided"
    MUST_PASS = "an item that must pass was answered wrong"
    LEVEL = "a level was failed"
    PASSED = "every level was passed"
    GUESSING = "the answers at the last levels are not distinguishable from guessing"
    WIDTH = "the interval of the area reached its target width"
    PRECISION = "the standard error reached its target"
    ERRORS = "too many answers failed"
    UNASKED = "nothing could be asked"
    GIVEN_UP = "it ended by an error"
    INTERRUPTED = "the run was interrupted"


class SessionProgress(NamedTuple):
    """State of S interviews after the same number of items, as rules see it.

    Args:
        logs: Returns the draws, arrays of shape (S, asked); most rules do not need them.
    """

    asked: int
    estimate: Estimate
    logs: Callable[[], DesignLog]


@runtime_checkable
class StoppingRule(Protocol):
    """Rule that ends interviews, for many subjects at once."""

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the reason to stop per subject, None to go on."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Stop after `count` administrations, scored or not."""

    count: int

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the reason to stop per subject, see `StoppingRule`."""
        return [StopReason.BUDGET if progress.asked >= self.count else None] * len(progress.estimate.theta)


@dataclass(frozen=True, slots=True)
class StandardError:
    """Stop when every dimension's standard error is at most `target` logits."""

    target: float

    def __post_init__(self) -> None:
        if not self.target > 0:
            raise ConfigError(f"the standard error is {self.target!r}, expected a number of logits above 0")

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the reason to stop per subject, see `StoppingRule`."""
        reached = np.asarray((progress.estimate.standard_error <= self.target).all(axis=1))
        return [StopReason.PRECISION if progress.asked > 0 and r else None for r in reached]


@dataclass(frozen=True, slots=True)
class Decision:
    """Stop when every gate is decided: see `betting.decide`.

    Args:
        family: Number of claims for which denials are corrected, including claims of other interviews.
    """

    claims: tuple[Claim, ...]
    family: int = 0

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the reason to stop per subject, see `StoppingRule`."""
        log = progress.logs()
        decided = (decide(log, self.claims, self.family).outcome != 0).all(axis=-1)
        return [StopReason.DECISION if d else None for d in decided]

    def remaining(self, log: DesignLog, expected: float) -> int:
        """Return how many further draws of one subject are expected until all claims are decided, at least 1.

        Args:
            expected: Draws that a decision is expected to need before any.
        """
        return max(further_draws(log, claim, expected) for claim in self.claims)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stop when the first of several rules stops."""

    rules: tuple[StoppingRule, ...]

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the reason to stop per subject, see `StoppingRule`."""
        columns = [rule.check(progress) for rule in self.rules]
        return [next((reason for reason in row if reason), None) for row in zip(*columns, strict=True)]


_SHARE, _COUNT = re.compile(r"(\d{1,18})(?:\.(\d{1,18}))?\s*%"), re.compile(r"\d{1,18}")


def resolve_budget(budget: int | str, items: int) -> int:
    """Return the number of administrations that a budget allows on a bank of `items`.

    An int (or a string of digits) is a count; ``"5%"`` is a share of the bank, rounded half up and at least 1.

    Raises:
        ConfigError: A float, a share outside (0, 100], or a count outside 1 ... `items`.
    """
    if isinstance(budget, str) and (match := _SHARE.fullmatch(budget.strip())):
        decimals = match[2] or ""
        # in whole numbers, so that half an item is rounded exactly
        share = int(match[1] + decimals)
        whole = int("100" + "0" * len(decimals))
        if not 0 < share <= whole:
            raise ConfigError(f"budget is {budget!r:.80}, expected a share above 0% and at most 100%")
        return max(1, (2 * share * items + whole) // (2 * whole))
    if isinstance(budget, str) and _COUNT.fullmatch(budget.strip()):
        budget = int(budget)
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise ConfigError(f'budget {budget!r:.80}: write a count such as 50 or a share in quotes such as "15%"')
    if not 1 <= budget <= items:
        raise ConfigError(f"budget {budget}: the bank has {items} items, so a count lies in 1 ... {items}")
    return budget


#: Default share of the administered items that is repeated, and the least number of items.
DEFAULT_REPEAT, FEWEST_REPEATS = "10%", 10


def repeats(repeat: int | str | None, asked: int) -> int:
    """Return the number of the `asked` items that are administered again.

    Args:
        repeat: A count, at most all, or a share such as ``"10%"``; None for a tenth, at least `FEWEST_REPEATS`.

    Raises:
        ConfigError: It is neither.
    """
    if repeat is None:
        return min(max(repeats(DEFAULT_REPEAT, asked), FEWEST_REPEATS), asked)
    text = str(repeat).strip()
    if _COUNT.fullmatch(text) and not isinstance(repeat, bool):
        return min(int(text), asked)
    try:
        if asked:
            return resolve_budget(text, asked)
        return 0
    except ConfigError:
        raise ConfigError(
            f"repeat is {repeat!r:.80}, expected a count such as 20, or a share of the items asked in quotes such as "
            '"10%"'
        ) from None
