"""Accuracies of a bank's recorded subjects, as thresholds of gates.

A subject is within the first k if its accuracy is at least that of the k-th best recorded subject. Where scores of a
subject are missing, its accuracy lies in a range, and so does that of the k-th best: between the k-th highest of the
least accuracies and the k-th highest of the most. A PASS needs the upper end and a FAIL the lower one, so both hold for
any missing scores.
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import number

MOST_MISSING = 0.05  #: Largest share of the items that a subject may lack as a threshold.


class ReferenceThreshold(NamedTuple):
    """Required accuracy, that of a recorded subject; `low` and `high` differ where scores of subjects are missing."""

    low: float
    high: float
    subject: str

    def claim(self, size: int, confidence: float) -> Claim:
        """Return the claim that the accuracy over `size` items is at least this one."""
        middle = (self.high + self.low) / 2.0
        half = (self.high - self.low) / 2.0
        return Claim(middle * size, confidence, slack=half * size)

    @property
    def requirement(self) -> str:
        """Requirement as shown in verdicts, such as ``>= .612``."""
        if self.low == self.high:
            return f">= {number(self.high)}"
        return f">= {number(self.low)} to {number(self.high)}"


def place_threshold(bank: ItemBank, k: int) -> ReferenceThreshold:
    """Return the accuracy of the `k`-th best recorded subject.

    Raises:
        ConfigError: The bank knows no accuracies, or fewer than `k`, or this subject lacks too many items.
    """
    _check_known(bank)
    count = len(bank.accuracies)
    if k > count:
        raise ConfigError(
            f"rank_within({k}) holds for every model: the bank {bank.name!r} has {count} reference subjects, so ask "
            "for a rank of at most that"
        )
    ranges = bank.accuracy_ranges
    by_least = sorted(range(count), key=lambda n: -ranges[n][0])
    by_most = sorted(range(count), key=lambda n: -ranges[n][1])
    for n in (by_least[k - 1], by_most[k - 1]):
        _check_complete(bank, n)
    subject = bank.subjects[by_most[k - 1]]
    return _checked(bank, ReferenceThreshold(ranges[by_least[k - 1]][0], ranges[by_most[k - 1]][1], subject))


def named_threshold(bank: ItemBank, name: str) -> ReferenceThreshold:
    """Return the accuracy of a recorded subject.

    Raises:
        ConfigError: The bank knows no accuracies, or none of this subject, or it lacks too many items.
    """
    _check_known(bank)
    if name not in bank.subjects:
        names = ", ".join(bank.subjects)
        raise ConfigError(f"the bank {bank.name!r} has no reference subject {name!r}; known are {names}")
    index = bank.subjects.index(name)
    _check_complete(bank, index)
    return _checked(bank, ReferenceThreshold(*bank.accuracy_ranges[index], name))


def _check_known(bank: ItemBank) -> None:
    if not bank.accuracies:
        raise ConfigError(
            f"the bank {bank.name!r} has no reference subjects to rank among: calibrate it again, from responses "
            "of several subjects"
        )


def _check_complete(bank: ItemBank, index: int) -> None:
    low, high = bank.accuracy_ranges[index]
    if high - low > MOST_MISSING + 1e-9:
        raise ConfigError(
            f"{bank.subjects[index]!r} has no score on {high - low:.1%} of the bank {bank.name!r}, and a "
            f"subject that lacks more than {MOST_MISSING:.0%} is not a threshold: record its other answers and "
            "calibrate again, or write at_least"
        )


def _checked(bank: ItemBank, threshold: ReferenceThreshold) -> ReferenceThreshold:
    """Return a threshold that some accuracy can miss; refuse another."""
    if threshold.high * len(bank) < 0.5:
        raise ConfigError(
            f"the accuracy of {threshold.subject!r} is {number(threshold.high)}, which every model reaches: name a "
            "better one"
        )
    return threshold
