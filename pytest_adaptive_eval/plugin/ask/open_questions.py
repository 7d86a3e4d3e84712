"""The open questions of one interview: what was drawn, what was sent, and what may be sent next.

Nothing here knows pytest, models, threads or clocks.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.records.run_record import Administration

LEAST = 2  #: Questions that are asked ahead in any case.
SHARE = 0.25  #: Share of the questions in prospect that are asked ahead of a model that takes more at any time.


class QuestionState(enum.Enum):
    """State of a question."""

    DRAWN = "drawn"
    SENT = "sent"
    ARRIVED = "arrived"
    JUDGED = "judged"  # a judge has graded its answer
    TOLD = "told"  # its test has run
    ABANDONED = "abandoned"


#: States that may follow each state.  A question goes back to DRAWN where its call failed as a whole.
NEXT_STATES = {
    QuestionState.DRAWN: (QuestionState.SENT, QuestionState.ARRIVED, QuestionState.TOLD, QuestionState.ABANDONED),
    QuestionState.SENT: (QuestionState.ARRIVED, QuestionState.DRAWN, QuestionState.TOLD, QuestionState.ABANDONED),
    QuestionState.ARRIVED: (QuestionState.JUDGED, QuestionState.TOLD, QuestionState.ABANDONED),
    QuestionState.JUDGED: (QuestionState.TOLD, QuestionState.ABANDONED),
    QuestionState.TOLD: (),
    QuestionState.ABANDONED: (),
}


def _nothing() -> None:
    """Do nothing: a call that has ended cannot be broken off."""


@dataclass(eq=False, slots=True)
class OpenQuestion:
    """A question that an interview has drawn.

    Args:
        index: Of the item in its bank.
        sample: Number of the administration of the item, from 0.

    Attributes:
        key, shared_key: Keys of its answer in the journal and among runs, once the request is known; the second is
            empty where other runs ask for themselves.
        score: Score that its test will find, in [0, 1], for the forecast; NaN while it is unknown.
        began: Time at which its call began, in seconds; None without one in this run.
        kept: Whether its completion was written, or could not be.
        cancel: Breaks off its call.
        judgments: Replies of the judge to come.
    """

    index: int
    sample: int
    item: Item
    administration: Administration
    key: str = ""
    shared_key: str = ""
    state: QuestionState = QuestionState.DRAWN
    completion: Completion | None = None
    score: float = math.nan
    began: float | None = None
    kept: bool = False
    cancel: Callable[[], object] = _nothing
    judgments: Sequence[Future[Any]] = field(default=())

    @property
    def has_answer(self) -> bool:
        """Whether its answer is there, and its test has not run."""
        return self.state in (QuestionState.ARRIVED, QuestionState.JUDGED)

    def move(self, state: QuestionState) -> None:
        """Set the state; raise ValueError for one that cannot follow the present one."""
        if state not in NEXT_STATES[self.state]:
            raise ValueError(f"a question that is {self.state.value} cannot become {state.value}")
        self.state = state


class OpenQuestions:
    """The questions of an interview whose scores the session does not know, in the order of their draws.

    Attributes:
        begun: Number of questions that have had a call or a stored answer, including questions whose tests have run.
        waiting: Number of questions with an open call.
    """

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, int], OpenQuestion] = {}
        self.begun = self.waiting = 0

    def __iter__(self) -> Iterator[OpenQuestion]:
        return iter(self._by_place.values())

    def find(self, index: int, sample: int) -> OpenQuestion | None:
        """Return the open question of an item and a sample; None where it was not drawn, or its test has run."""
        return self._by_place.get((index, sample))

    def add(self, question: OpenQuestion) -> None:
        """Add a question that was drawn after all others."""
        self._by_place[question.index, question.sample] = question

    def send(self, question: OpenQuestion, now: float) -> None:
        """Note that a call of a question begins, at a time in seconds."""
        question.move(QuestionState.SENT)
        question.began = now
        self.begun += 1
        self.waiting += 1

    def arrive(self, question: OpenQuestion, completion: Completion) -> None:
        """Keep the completion of a question, from its call or from an earlier run."""
        was_sent = question.state is QuestionState.SENT
        question.move(QuestionState.ARRIVED)
        question.completion, question.cancel = completion, _nothing
        if was_sent:
            self.waiting -= 1
        else:
            self.begun += 1

    def tell(self, question: OpenQuestion) -> None:
        """Note that the test of a question has run.  Its score stays known until the session has all of its batch."""
        if question.state is QuestionState.SENT:  # it was not awaited
            question.cancel()
            self.waiting -= 1
        question.move(QuestionState.TOLD)

    def forget_told(self) -> None:
        """Remove the questions whose tests have run, once the session knows their scores."""
        scored = [position for position, question in self._by_place.items() if question.state is QuestionState.TOLD]
        for position in scored:
            del self._by_place[position]

    def abandon(self) -> int:
        """Break off all calls; return the number of calls of this run whose answers no test has used."""
        unneeded = 0
        for question in self:
            if question.state is QuestionState.TOLD:
                continue
            if question.began is not None and question.state is not QuestionState.DRAWN:
                unneeded += 1
            question.cancel()
            question.move(QuestionState.ABANDONED)
        self._by_place.clear()
        self.waiting = 0
        return unneeded

    def reopen(self) -> None:
        """Count only open questions as begun: a new session draws those before them again."""
        self.begun = sum(question.state is not QuestionState.DRAWN for question in self)

    def fail(self) -> None:
        """Expect no answer to the open calls: their questions may be asked again."""
        for question in self:
            if question.state is QuestionState.SENT:
                question.move(QuestionState.DRAWN)
        self.begun -= self.waiting
        self.waiting = 0

    def next_to_send(self, capacity: int, limit: int) -> list[OpenQuestion]:
        """Return the first drawn questions without a call.

        Args:
            capacity: Most questions to return.
            limit: Most questions of the interview that may have begun, see `Prospect`.
        """
        count = max(0, min(capacity, limit - self.begun))
        drawn = (question for question in self if question.state is QuestionState.DRAWN)
        return list(itertools.islice(drawn, count))


@dataclass
class Prospect:
    """Limit on the questions of an interview that may have begun, by the forecast of how many its verdict needs.

    The forecast is made again after each score, after `LEAST` further answers, and at the limit.
    """

    _limit: int = 0
    _scored: int = -1
    _answered: int = 0

    def limit(
        self, *, scored: int, begun: int, waiting: int, share: float, least: int, forecast: Callable[[], int]
    ) -> int:
        """Return the number of questions that may have begun.

        Args:
            scored: Number of scores that the session knows.
            begun, waiting: Numbers of questions that have begun, and that wait for an answer.
            share: Share of the questions in prospect that may be asked ahead.
            least: Questions that are asked ahead in any case.
            forecast: Returns the number of questions that the verdict is expected to need.
        """
        answered = begun - waiting
        if scored == self._scored and answered < self._answered + LEAST and begun < self._limit:
            return self._limit
        needed = forecast()
        ahead = max(least, math.ceil(share * (needed - answered)))
        self._limit = min(answered + ahead, needed + least)  # one slow answer does not make more necessary
        self._scored, self._answered = scored, answered
        return self._limit


def known_scores(questions: Sequence[OpenQuestion | None]) -> list[float]:
    """Return the scores of questions up to the last known one; others are NaN."""
    scores = []
    for question in questions:
        scores.append(math.nan if question is None else question.score)
    while scores and math.isnan(scores[-1]):
        scores.pop()
    return scores


class TestFinding:
    """Findings on a test, from its answers.

    Attributes:
        methods: Methods of the item by which the test has judged an answer: ``grade``, ``score``.
        asks_item: Whether the test asked for an answer to its item as it is, and for nothing else; None if unknown.
        grades_answer: Whether the test gave made-up answers to ``item.grade`` as they are, and all real ones so far.
        random: Whether the test drew from the generators of `random` or `numpy.random`, as for a part of its prompt.
    """

    __test__ = False

    def __init__(self) -> None:
        self.methods: set[str] = set()
        self.asks_item: bool | None = None
        self.grades_answer = False
        self.random = False
