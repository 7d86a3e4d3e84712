"""The three roles of a network, and what they send each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.subjects.agent import Message, Reply
from pytest_adaptive_eval.subjects.base import Completion, SubjectIdentity, Usage
from pytest_adaptive_eval.subjects.foreign import clean, one_line

__all__ = ["Dialogue", "Directive", "Exchange", "Interviewee", "Interviewer", "Review", "Supervisor"]

#: Characters of a question and of an answer that a record keeps.
KEPT_CHARACTERS = 600
#: Exchanges of an earlier node that a later one is told, and characters of each question and answer.
TOLD, TOLD_CHARACTERS = 4, 160


class Interviewee(Protocol):
    """Answers questions: any `pytest_adaptive_eval.subjects.base.Subject`."""

    @property
    def identity(self) -> SubjectIdentity:
        """Who it is."""

    @property
    def usage(self) -> Usage:
        """What its answers cost so far."""

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """One completion an item, in order."""


class Interviewer(Protocol):
    """Writes questions: any `pytest_adaptive_eval.subjects.agent.Agent`."""

    @property
    def identity(self) -> SubjectIdentity:
        """Who it is."""

    def ask(
        self, messages: Sequence[Message], *, max_tokens: int = 512, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Reply to a chat."""


class Supervisor(Interviewer, Protocol):
    """Reviews questions and dialogues: any agent."""


@dataclass(frozen=True, slots=True)
class Directive:
    """Supervisor to interviewer: write that question again.

    Parameters
    ----------
    kind : str
        ``format``, ``level``, ``repeat``, ``silent``, ``filter`` or ``review``.
    why : str
    """

    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Review:
    """What a supervisor thinks of a question or of a whole exchange; of no account for any score.

    Parameters
    ----------
    subject : {"question", "exchange"}
    item : str
        Id of the item.
    fault : bool or None
        By the yes-or-no scheme: whether there is one.  None where the scale was asked for, or nothing was read.
    rating : int or None
        By the scale, 1 to 5, of which 5 is the best.
    """

    subject: Literal["question", "exchange"]
    item: str
    fault: bool | None = None
    rating: int | None = None

    @property
    def refused(self) -> bool:
        """Whether a question is to be written again: there is a fault, or the rating is 1 or 2."""
        return self.fault is True or (self.rating is not None and self.rating <= 2)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer.

    Parameters
    ----------
    item : str
    level : int
    source : {"code", "written", "rephrased", "fallback"}
        Who made the question: code from the start, the interviewer, or code since the interviewer could not.
    question, answer : str
        Cleaned and shortened.
    status : str
    score : float or None
        By code.
    """

    item: str
    level: int
    source: str
    question: str
    answer: str
    status: str
    score: float | None

    @classmethod
    def of(cls, item: Item, level: int, source: str, done: Completion, score: float | None) -> Exchange:
        """With texts cleaned."""
        prompt = item.prompt or "\n".join(str(message.get("content", "")) for message in item.messages)
        texts = (clean(prompt, KEPT_CHARACTERS), clean(done.text, KEPT_CHARACTERS))
        return cls(item.id, level, source, *texts, done.status.value, score)

    def without_texts(self, why: str) -> Exchange:
        """As it is told where a content filter flagged it."""
        return Exchange(self.item, self.level, self.source, f"[{why}]", f"[{why}]", self.status, self.score)

    @property
    def told(self) -> str:
        """One line for another model."""
        verdict = "no answer" if self.score is None else f"score {self.score:g}"
        question, answer = (one_line(text, TOLD_CHARACTERS) for text in (self.question, self.answer))
        shown = answer if self.status == Status.OK else self.status
        return f"level {self.level}: {question} -> {shown} ({verdict})"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What a node passes on: its record and its last exchanges.

    Parameters
    ----------
    node, task : str
    area : float
    last_level : int
    exchanges : tuple of Exchange
    """

    node: str
    task: str
    area: float
    last_level: int
    exchanges: tuple[Exchange, ...]

    @property
    def told(self) -> str:
        """Some lines for another model, of a bounded length."""
        head = f"{one_line(self.node)} ({one_line(self.task)}): area {self.area:.2f}, last level {self.last_level}"
        return "\n".join([head, *(one.told for one in self.exchanges[-TOLD:])])
