"""What a subject scores that says the same to every question."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pytest_adaptive_eval.items.graders.kinds.words import folded
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.reading.truth import truth_of

#: Answers from which on a constant one is named, and its share of them.
FEWEST, SHARE = 20, 0.95
#: Labels of a bank at most that one guesses, and questions for each of them.
LABELS, QUESTIONS_PER_LABEL = 3, 10
#: Characters of an answer that is named.
_SHOWN = 60


class ConstantAnswers:
    """Counts of expected and given answers, from which a constant subject and a guessing one are known."""

    def __init__(self) -> None:
        self._expected: Counter[str] = Counter()
        self._given: Counter[str] = Counter()
        self._choices: list[float] = []

    def expect(self, item: Item) -> None:
        """Count the expected answer of a question."""
        self._choices.append(1.0 / len(item.choices) if len(item.choices) > 1 else np.nan)
        label = truth_of(item.answer) if item.grader == "yesno" else None
        self._expected[label or " | ".join(map(folded, item.answers))] += 1

    def add(self, text: str) -> None:
        """Count an answer."""
        self._given[folded(text[: 2 * _SHOWN]).strip(" .*`\"'")] += 1

    @property
    def guessing(self) -> float | None:
        """Expected score of random choices, or of the best constant answer where few labels are all that is expected.

        None where neither is known.
        """
        if not self._choices:
            return None
        if not np.isnan(self._choices).any():
            return float(np.mean(self._choices))
        count = self._expected.total()
        if not 1 < len(self._expected) <= LABELS or count < QUESTIONS_PER_LABEL * len(self._expected):
            return None
        return max(self._expected.values()) / count

    def note(self) -> str:
        """Return a sentence if nearly all answers are the same, though others are expected; else empty."""
        count = self._given.total()
        text, most = self._given.most_common(1)[0] if self._given else ("", 0)
        if count < FEWEST or most < SHARE * count or not text or len(self._expected) < 2:
            return ""
        return f"{most} of {count} answers are `{text[:_SHOWN]}`: the subject says the same to every question"
