"""Result of one node: its ladder, counters, costs and dialogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.guessing import guessed_levels
from pytest_adaptive_eval.ladder.result import Ladder, last_above
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.models.judging import clean, one_line
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.types import Array

#: Characters of a question and of an answer in the record.
RECORDED_CHARACTERS = 600
#: Exchanges that a node passes on, and characters of each question and answer in them.
PASSED_EXCHANGES, PASSED_CHARACTERS = 4, 160


@dataclass(frozen=True, slots=True)
class Directive:
    """Order to an interviewer to write a question again.

    Args:
        kind: ``format``, ``level``, ``repeat``, ``silent``, ``filter`` or ``review``.
    """

    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Review:
    """Review of a question or of an exchange, which affects no score.

    Args:
        fault: Answer in the scheme ``yes-no``; None in the other scheme, or if the reply was unreadable.
        rating: Answer in the scheme ``scale``, from 1 to 5 (best); None likewise.
    """

    subject: Literal["question", "exchange"]
    item: str
    fault: bool | None = None
    rating: int | None = None

    @property
    def refused(self) -> bool:
        """Whether a question must be written again: there is a fault, or the rating is 1 or 2."""
        return self.fault is True or (self.rating is not None and self.rating <= 2)

    @property
    def unread(self) -> bool:
        """Whether the supervisor's reply was unreadable."""
        return self.fault is None and self.rating is None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Question and answer.

    Args:
        source: Source of the question; ``fallback`` is code in place of an interviewer that failed.
    """

    item: str
    level: int
    source: str
    question: str
    answer: str
    status: str
    score: float | None

    @classmethod
    def of(cls, item: Item, level: int, source: str, completion: Completion, score: float | None) -> Exchange:
        """Create from an administered item, with cleaned texts."""
        messages = [str(message.get("content", "")) for message in item.messages]
        question = clean(item.prompt or "\n".join(messages), RECORDED_CHARACTERS)
        answer = clean(completion.text, RECORDED_CHARACTERS)
        return cls(item.id, level, source, question, answer, completion.status.value, score)

    @property
    def summary(self) -> str:
        """One line for another model."""
        if self.score is None:
            verdict = "no answer"
        else:
            verdict = f"score {self.score:g}"
        question = one_line(self.question, PASSED_CHARACTERS)
        outcome = one_line(self.answer, PASSED_CHARACTERS) or self.status
        return f"level {self.level}: {question} -> {outcome} ({verdict})"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Summary that a node passes on."""

    node: str
    task: str
    area: float
    last_level: int
    exchanges: tuple[Exchange, ...]
    injected: str = ""

    @property
    def summary(self) -> str:
        """Few lines for another model, of limited length."""
        head = f"{one_line(self.node)} ({one_line(self.task)}): area {self.area:.2f}, last level {self.last_level}"
        lines = [head]
        for exchange in self.exchanges[-PASSED_EXCHANGES:]:
            lines.append(exchange.summary)
        if self.injected:
            lines.append(self.injected)
        return "\n".join(lines)


#: Counters of a node, with their meanings.
COUNTERS: Mapping[str, str] = {
    "attempts": "requests for a question to an interviewer, repetitions included",
    "format": "attempts that code could not parse",
    "level": "attempts of another level",
    "repeat": "attempts that repeated an earlier question",
    "silent": "attempts without a usable reply: failed, truncated, refused or empty",
    "review": "attempts that the supervisor refused",
    "unreviewed": "attempts that came after the supervisor was given up",
    "directives": "orders to write a question again",
    "fallbacks": "questions by code in place of an interviewer that failed",
    "given_up": "1 if the interviewer was given up; code set the other questions",
    "supervisor_given_up": "1 if the supervisor was given up, and code set the rest of the questions",
    "claims": "answers that an interviewer gave with its question",
    "wrong_claims": "claims that code found wrong",
    "reviews": "requests for a review to the supervisor",
    "unread": "reviews whose reply was unreadable",
    "answers": "answers by the interviewee",
    "unscored": "answers without a score",
    "faults": "answers without a score by a fault of the run",
    "empty": "answers that were empty",
    "refused": "questions that the interviewee refused",
    "truncated": "answers that were truncated",
}
#: Errors of an interviewer, and those of them that MACEval counts: format violations and redundant questions.
ERRORS = ("format", "level", "repeat", "silent")
PAPER_ERRORS = ("format", "repeat")


@dataclass(frozen=True, slots=True)
class PanelMember:
    """Interviewee of a panel, with its scores over all questions of the node.

    Args:
        accuracies: Accuracy before the debate and after each cycle; None without a score.
        mended, spoiled: Questions that were wrong at first and right in the end, and the reverse.
    """

    name: str
    accuracies: tuple[float | None, ...]
    mended: int
    spoiled: int

    @classmethod
    def of(cls, name: str, scores: Array) -> PanelMember:
        """Create from scores by question and cycle, shape (Q, C), NaN where missing."""
        scored = ~np.isnan(scores)
        means = []
        for cycle, has_score in zip(scores.T, scored.T, strict=True):
            mean = None
            if has_score.any():
                mean = float(cycle[has_score].mean())
            means.append(mean)
        first = scores[:, 0]
        last = scores[:, -1]
        return cls(name, tuple(means), int((first < last).sum()), int((first > last).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class NodeResult:
    """Result of one node.

    Args:
        stop_at, weight, opens_at: The weight is a share of the sum over all nodes.
        scores: Scores by level from 1 over all rounds; NaN where missing.
        rounds: First and last level of each round.
        messages: Dialogues of earlier nodes that its interviewer read.
        guess: Expected score of a guess by level; empty if the node was not run.
        usage: Usage by role: ``interviewee``, ``panel``, ``interviewer``, ``supervisor``.
        exchanges: The first ones of each level, up to a limit.
        panel: The interviewee first, the plurality of all answers last; empty without a panel.
    """

    name: str
    task: str
    knob: str
    group: str
    kind: str
    levels: int
    queries: int
    stop_at: float
    weight: float
    opens_at: float
    after: tuple[str, ...]
    interviewer: str
    questions: str
    opened: bool = False
    scores: tuple[Array, ...] = ()
    rounds: tuple[tuple[int, int], ...] = ()
    messages: int = 0
    guess: tuple[float, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()
    reviews: tuple[Review, ...] = ()
    panel: tuple[PanelMember, ...] = ()

    @property
    def ladder(self) -> Ladder | None:
        """Ladder of the node; None if it was not run."""
        if not self.opened:
            return None
        alike = 1
        if any(self.guess):
            alike = max(guessed_levels(self.scores, self.guess), 1)
        return Ladder(self.scores, self.levels, stop_at=self.stop_at, alike=alike)

    @property
    def area(self) -> float:
        """Area under the accuracies (ACC-AUC); NaN if the node was not run."""
        if self.ladder:
            return self.ladder.area
        return float("nan")

    @property
    def last_level(self) -> int:
        """Last level with an accuracy above `stop_at`."""
        if self.ladder:
            return self.ladder.last_level
        return 0

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Return the area with its bounds; None if the node was not run."""
        if self.ladder:
            return self.ladder.interval(confidence)
        return None

    def last(self, confidence: float = 0.95) -> Interval | None:
        """Return the last level with an accuracy above `stop_at`, with its bounds; None if the node was not run."""
        if self.ladder:
            return last_above(self.ladder, self.stop_at, confidence)
        return None

    @property
    def guess_area(self) -> float:
        """Area of a guesser at the levels that were asked."""
        return float(sum(self.guess[: len(self.scores)]))

    @property
    def error_rate(self) -> float:
        """Share of an interviewer's attempts with one of `ERRORS`; NaN without attempts."""
        attempts = self.counts.get("attempts", 0)
        if attempts:
            return self.errors / attempts
        return float("nan")

    @property
    def paper_error_rate(self) -> float:
        """Share of the questions that an interviewer wrote with a fault that MACEval counts; NaN without questions."""
        written = self.counts.get("attempts", 0) - self.counts.get("silent", 0)
        faults = sum(self.counts.get(name, 0) for name in PAPER_ERRORS)
        if written:
            return faults / written
        return float("nan")

    @property
    def errors(self) -> int:
        """Number of an interviewer's attempts with one of `ERRORS`."""
        return sum(self.counts.get(name, 0) for name in ERRORS)

    @property
    def dialogue(self) -> Dialogue:
        """Summary for later nodes."""
        area = self.area
        if np.isnan(area):
            area = 0.0
        return Dialogue(self.name, self.task, area, self.last_level, self.exchanges)

    def to_json(self, confidence: float = 0.95) -> dict[str, Any]:
        """Return plain JSON data, which `NetworkResult.from_json` reads as a part of its own."""
        data: dict[str, Any] = plain(self)
        return data | {
            "area": plain(self.interval(confidence)),
            "last_level": plain(self.last(confidence)),
            "last": self.last_level,
            "guess_area": self.guess_area,
            "error_rate": plain(self.error_rate),
            "paper_error_rate": plain(self.paper_error_rate),
        }
