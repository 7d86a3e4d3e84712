"""Counts of the answers of one interview, and what they say about its model and its items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pytest_adaptive_eval.faults import FaultLimit
from pytest_adaptive_eval.gates.result import UNREADABLE_SHARE
from pytest_adaptive_eval.items.graders.kind import finding_kind
from pytest_adaptive_eval.items.graders.kinds.words import folded
from pytest_adaptive_eval.items.item import Item, Response, Status
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.truth import truth_of
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.records.run_record import Administration

FEWEST, SHARE = 20, 0.95  #: Answers from which on a constant one is named, and its share of them.
LABELS, QUESTIONS_PER_LABEL = 3, 10  #: Labels of a bank at most that one guesses, and questions for each of them.
_SHOWN = 60  #: Characters of an answer that is named.


class ConstantAnswers:
    """Counts of expected and given answers, from which a constant subject and a guessing one are known.

    Texts are counted as they are, and folded once the interview is over.
    """

    def __init__(self) -> None:
        self._keys: Counter[tuple[str, tuple[str, ...]]] = Counter()  #: By grader and accepted answers.
        self._texts: Counter[str] = Counter()
        self._choices: list[float] = []

    def expect(self, item: Item) -> None:
        """Count the expected answer of a question."""
        self._choices.append(1.0 / len(item.choices) if len(item.choices) > 1 else np.nan)
        self._keys[item.grader, item.answers] += 1

    def add(self, text: str) -> None:
        """Count an answer."""
        self._texts[text[: 2 * _SHOWN]] += 1

    def _expected(self) -> Counter[str]:
        """Return the number of questions by what is expected."""
        expected: Counter[str] = Counter()
        for (grader, answers), count in self._keys.items():
            label = None
            if grader == "yesno" and answers:
                label = truth_of(answers[0])
            expected[label or " | ".join(map(folded, answers))] += count
        return expected

    def _counts(self) -> Counter[str]:
        """Return the number of answers by their text."""
        counts: Counter[str] = Counter()
        for text, count in self._texts.items():
            counts[folded(text).strip(" .*`\"'")] += count
        return counts

    @property
    def guessing(self) -> float | None:
        """Expected score of random choices, or of the best constant answer where few labels are all that is expected.

        None where neither is known.
        """
        if not self._choices:
            return None
        if not np.isnan(self._choices).any():
            return float(np.mean(self._choices))
        expected = self._expected()
        count = expected.total()
        if not 1 < len(expected) <= LABELS or count < QUESTIONS_PER_LABEL * len(expected):
            return None
        return max(expected.values()) / count

    def note(self) -> str:
        """Return a sentence if nearly all answers are the same, though others are expected; else empty."""
        counts = self._counts()
        count = counts.total()
        if counts:
            text, most = counts.most_common(1)[0]
        else:
            text, most = "", 0
        if count < FEWEST or most < SHARE * count or not text or len(self._expected()) < 2:
            return ""
        return f"{most} of {count} answers are `{text[:_SHOWN]}`: the subject gives the same answer to every question"


FEWEST_WRONG = 3  #: Fewest wrong answers for a note that the expected answer stands in them.


class Answered(NamedTuple):
    """A response to an item.

    Args:
        first: Whether the item was not asked before.
        read: Whether the item's grader got a text, even an empty one.
    """

    item: Item
    response: Response
    first: bool = True
    read: bool = False


class AnswerCounts:
    """Counts of the answers of one interview, once it is over.

    Attributes:
        statuses: Number of responses by status.
    """

    def __init__(self, answers: Iterable[Answered]) -> None:
        self.statuses: Counter[str] = Counter()
        self.constant = ConstantAnswers()
        self._texts = self._unreadable = self._wrong = 0
        self._finding: Counter[str] = Counter()
        for answer in answers:
            self._add(*answer)

    def _add(self, item: Item, response: Response, first: bool, read: bool) -> None:
        self.statuses[response.status.value] += 1
        if first:
            self.constant.expect(item)
        if response.score is None or not (response.text or read):
            return
        self.constant.add(response.text)
        if not read:
            return  # a test that asserts on the text reads it in its own way
        self._texts += 1
        if response.status is not Status.OK:
            return
        self._unreadable += not (item.readable(response.text) or abstains(response.text))
        if response.score == 0.0:
            self._wrong += 1
            self._finding[finding_kind(item, item.grader, response.text)] += 1

    def truncation_warning(self, cap: object) -> str:
        """Return a warning where many answers were truncated, else empty; `cap` is the one that held, if known."""
        return truncation_warning(self.statuses[Status.TRUNCATED.value], self.statuses.total(), cap)

    def unread_answers(self) -> str:
        """Return a sentence if the expected answer is in most wrong answers; else empty."""
        graders = {name: count for name, count in self._finding.most_common() if name}
        count = sum(graders.values())
        if self._wrong < FEWEST_WRONG or 2 * count <= self._wrong:
            return ""
        return (
            f"the expected answer is in {count} of {self._wrong} wrong answers: use grader "
            f"{' or '.join(sorted(graders))}"
        )

    def too_many_unreadable(self) -> str:
        """Return a sentence if most answers do not have the form of an answer; else empty."""
        if self._unreadable <= UNREADABLE_SHARE * self._texts:
            return ""
        return (
            f"{self._unreadable} of {self._texts} answers hold no answer at all (no letter, choice or number): "
            "check the prompt and the chat template, since the score would say nothing about the checkpoint"
        )


def too_many_errors(administrations: Sequence[Administration], budget: int, *, asked_twice: bool = False) -> str:
    """Return why failed answers end the interview, see `FaultLimit`; empty if they do not."""
    limit = FaultLimit(budget, asked_twice=asked_twice)
    reason = ""
    for entry in administrations:
        fault = entry.detail.strip() or entry.status
        reason = limit.add(fault if Status(entry.status).fault else None)
    return reason
