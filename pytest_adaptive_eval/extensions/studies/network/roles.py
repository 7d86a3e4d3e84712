"""Messages between interviewees, interviewers and supervisors of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.judging import clean, one_line

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
        item: Id of the item.
        fault: Answer in the scheme ``yes-no``; None in the other scheme, or if the reply was unreadable.
        rating: Answer in the scheme ``scale``, from 1 to 5, of which 5 is best; None likewise.
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
        question, answer: Cleaned and shortened.
        score: Score by code.
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
        prompt = item.prompt or "\n".join(str(message.get("content", "")) for message in item.messages)
        texts = (clean(prompt, RECORDED_CHARACTERS), clean(completion.text, RECORDED_CHARACTERS))
        return cls(item.id, level, source, *texts, completion.status.value, score)

    def without_texts(self, why: str) -> Exchange:
        """Return a copy whose texts are replaced by the reason why a content filter flagged them."""
        return Exchange(self.item, self.level, self.source, f"[{why}]", f"[{why}]", self.status, self.score)

    @property
    def summary(self) -> str:
        """One line for another model."""
        verdict = "no answer" if self.score is None else f"score {self.score:g}"
        question, answer = (one_line(text, PASSED_CHARACTERS) for text in (self.question, self.answer))
        outcome = answer or self.status
        return f"level {self.level}: {question} -> {outcome} ({verdict})"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Summary that a node passes on.

    Args:
        injected: Meaningless text added to the summary.
    """

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
        lines = [head, *(exchange.summary for exchange in self.exchanges[-PASSED_EXCHANGES:]), self.injected]
        return "\n".join(filter(None, lines))
