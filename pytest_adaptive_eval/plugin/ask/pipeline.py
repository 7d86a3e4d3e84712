"""The calls of a run: a model is kept busy with the next questions of its interviews.

Tests run in pytest's order, one after the other, and each waits for the answer to its own question. Meanwhile the model
answers the questions that the session has drawn ahead, refilled one by one up to the calls that it takes at once. An
answer reaches the session in the order of the draws, whatever the order of arrival, so no verdict favours quick
answers, and no result depends on what was asked ahead. How far ahead is asked follows the forecast of the questions
that the verdict needs. Where that leaves room, the first questions of later interviews of the same model are asked;
their completions go to their journals, as after a killed run, and each interview finds them there.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.models.base import Completion, Model, Usage
from pytest_adaptive_eval.plugin.ask.answers import Answers
from pytest_adaptive_eval.plugin.ask.call_sizes import CallSizes
from pytest_adaptive_eval.plugin.ask.open_questions import LEAST, SHARE, OpenQuestion, QuestionState

#: Seconds between two looks for an answer that a certain verdict does not need.
POLL = 0.01


#: Later interviews by node id, each with a function that opens it; it returns None where it cannot be asked ahead.
Followers = Iterator[tuple[str, Callable[[], Answers | None]]]


class Asked(NamedTuple):
    """A question of a call, with the answers of its interview."""

    answers: Answers
    question: OpenQuestion


class Lead:
    """The interview whose tests run, and the calls of its subject.

    Args:
        ahead: Interviews that were asked ahead and whose tests have not begun, by node id; None for ones that cannot
            be.
        followers: Later interviews of the same subject that may be asked ahead, in their order.
        sizes: Times of the subject's calls, where it does not wait apart.
    """

    def __init__(
        self, answers: Answers, subject: Model, ahead: dict[str, Answers | None], followers: Followers, sizes: CallSizes
    ) -> None:
        self.answers = answers
        self.subject = subject
        self.sizes = sizes
        self._ahead, self._rest = ahead, followers
        self._followers: list[Answers] = []

    @property
    def interviews(self) -> list[Answers]:
        """The interview, and all others of its subject that were asked ahead."""
        return [self.answers, *(other for other in self._ahead.values() if other and other.subject is self.subject)]

    @property
    def busy(self) -> int:
        """Number of open calls."""
        return sum(answers.questions.waiting for answers in self.interviews)

    @property
    def room(self) -> int:
        """Number of further questions that the subject takes now."""
        return self.subject.shared_batch - self.busy

    def further(self, capacity: int, share: float) -> list[Asked]:
        """Return the next questions of later interviews, up to `capacity`; the interviews come in their order."""
        requests: list[Asked] = []
        for follower in itertools.chain(self._followers, self._look_on()):
            if len(requests) >= capacity:
                break
            follower.go_on()
            ahead = follower.next_ahead(capacity - len(requests), share=share)
            for question in ahead:
                requests.append(Asked(follower, question))
        return requests

    def _look_on(self) -> Iterator[Answers]:
        """Yield the interviews that were not looked at yet, and add each to the followers."""
        for nodeid, make in self._rest:
            if nodeid not in self._ahead:
                self._ahead[nodeid] = make()
            follower = self._ahead[nodeid]
            if follower is not None and follower.subject is self.subject:
                self._followers.append(follower)
                yield follower


class Pipeline:
    """Calls of one run, of all its subjects."""

    def __init__(self) -> None:
        self._lead: Lead | None = None
        self._ahead: dict[str, Answers | None] = {}  #: See `Lead`.
        self._sizes: list[tuple[Model, CallSizes]] = []

    def lead(self, answers: Answers, subject: Model, followers: Followers) -> None:
        """Have the calls of the run go to an interview whose tests run now, and to its followers."""
        self._lead = Lead(answers, subject, self._ahead, followers, self._sizes_of(subject))

    def _sizes_of(self, subject: Model) -> CallSizes:
        for model, sizes in self._sizes:
            if model is subject:
                return sizes
        self._sizes.append((subject, CallSizes()))
        return self._sizes[-1][1]

    def answer(self, answers: Answers, questions: Sequence[OpenQuestion]) -> None:
        """Have questions of an interview answered, up to the answer to the first one.

        Following ones are begun as well, and questions that the session has drawn ahead.
        """
        lead = self._led_by(answers)
        answers.draw_ahead()
        first = questions[0]
        is_stored = first.state is QuestionState.DRAWN and answers.restore(first)
        if not (is_stored or first.has_answer):
            self._wait(lead, questions)
        self._fill(lead, [])
        while any(not judgment.done() for judgment in first.judgments):  # each wakes the subject
            self._take(lead, wait=True)
            self._fill(lead, [])
        if first.judgments:
            first.move(QuestionState.JUDGED)

    def needs(self, answers: Answers, questions: Sequence[OpenQuestion]) -> bool:
        """Wait for the answer to the first question; return False where the verdict is certain without it."""
        lead = self._led_by(answers)
        first = questions[0]
        answers.draw_ahead()
        if first.has_answer:
            return True
        if first.state is QuestionState.DRAWN and answers.restore(first):
            return True
        return self._wait(lead, questions, unless_settled=True)

    def _led_by(self, answers: Answers) -> Lead:
        assert self._lead is not None
        assert self._lead.answers is answers
        return self._lead

    def _wait(self, lead: Lead, questions: Sequence[OpenQuestion], *, unless_settled: bool = False) -> bool:
        """Wait until the answer to the first question is there, or until the verdict is certain without it.

        An answer that will probably come soon is awaited even then, see `Answers.comes_soon`.
        """
        answers = lead.answers
        first = questions[0]
        while not first.has_answer:
            if unless_settled and answers.session.settled(answers.scores()):
                if first.state is not QuestionState.SENT or not answers.comes_soon():
                    return False
                self._take(lead, wait=False)
                clock.sleep(POLL)
                continue
            self._fill(lead, self._awaited(lead, questions))
            if not first.has_answer:
                self._take(lead, wait=True)
        return True

    def _awaited(self, lead: Lead, questions: Sequence[OpenQuestion]) -> list[OpenQuestion]:
        """Return the first questions that a call may begin for now: drawn ones without a stored answer."""
        answers = lead.answers
        if lead.subject.waits_apart:
            most = max(1, lead.room)
        elif answers.asks_ahead and lead.subject.shared_batch:
            most = 1
        else:
            most = len(questions)
        drawn = []
        for question in questions[:most]:
            if question.state is QuestionState.DRAWN:
                drawn.append(question)
        return [question for question in drawn if not answers.restore(question)]

    def is_busy(self, answers: Answers) -> bool:
        """Return whether calls are open while the tests of an interview run."""
        lead = self._lead
        return lead is not None and lead.answers is answers and lead.subject.waits_apart and lead.busy > 0

    def advance(self, answers: Answers) -> None:
        """Take answers that came while a test of an interview ran, and begin further questions."""
        lead = self._led_by(answers)
        with contextlib.suppress(Exception):  # a fault that lasts is that of the tests too
            self._take(lead, wait=False)
            self._fill(lead, [])

    def finish(self, answers: Answers) -> int:
        """Break off what is asked ahead of an interview that has ended; return the number of calls it did not need."""
        lead = self._lead
        if lead is not None and lead.answers is answers:
            with contextlib.suppress(Exception):  # what came so far is kept
                self._take(lead, wait=False)
        return answers.questions.abandon()

    def _fill(self, lead: Lead, awaited: Sequence[OpenQuestion]) -> None:
        """Begin calls for the wanted questions, for the leader's next ones, and for its followers' if there is room."""
        answers = lead.answers
        subject = lead.subject
        if subject.gathers:
            self._gather(lead, awaited)
            return
        if not subject.waits_apart:
            if awaited:
                self._call(lead, awaited)
            return
        requests = self._with_next(answers, awaited, lead.room, SHARE)
        if any(question.item.likelihood is not None for _, question in requests):  # their prompts begin alike
            self._begin(lead, requests)
            return
        requests += lead.further(lead.room - len(requests), SHARE)
        for request in requests:
            self._begin(lead, [request])

    def _gather(self, lead: Lead, awaited: Sequence[OpenQuestion]) -> None:
        """Begin the next call of a subject that answers many questions by one call, if it takes one now."""
        answers = lead.answers
        expected = max(answers.session.remaining(answers.scores()) * answers.evaluation.samples, len(awaited))
        size = lead.subject.call_size(expected)
        if size == 0:
            return
        requests = self._with_next(answers, awaited[:size], size, 1.0, least=size)
        requests += lead.further(size - len(requests), 1.0)
        if requests:
            answers.call_sizes[len(requests)] += 1
        self._begin(lead, requests)

    @staticmethod
    def _with_next(
        answers: Answers, awaited: Sequence[OpenQuestion], size: int, share: float, *, least: int = LEAST
    ) -> list[Asked]:
        """Return the awaited questions, and the next ones of their interview up to `size` in all.

        Args:
            share, least: See `Answers.next_ahead`.
        """
        requests = [Asked(answers, question) for question in awaited]
        for question in answers.next_ahead(size, share=share, least=least):
            if len(requests) >= size:
                break
            if question not in awaited:  # those have no call yet, and so may come as next ones again
                requests.append(Asked(answers, question))
        return requests

    def _call(self, lead: Lead, awaited: Sequence[OpenQuestion]) -> None:
        """Make one call of a subject that a test waits for, with what is likely to be needed."""
        answers, subject = lead.answers, lead.subject
        policy = answers.evaluation.policy
        if "batch" in answers.evaluation.written:
            size = min(policy.batch, subject.shared_batch)
        else:
            expected = answers.session.remaining() * answers.evaluation.samples
            first = max(policy.batch, math.ceil(SHARE * expected))
            size = lead.sizes.best(subject.shared_batch, first=first, least=policy.batch)
        # all that the verdict is likely to need, since the subject takes no further question before it has answered
        requests = self._with_next(answers, awaited, size, 1.0)
        if all(question.item.likelihood is None for _, question in requests):  # else prompts begin alike
            requests += lead.further(size - len(requests), 1.0)
        begun = clock.elapsed()
        self._begin(lead, requests)
        lead.sizes.note(len(requests), clock.elapsed() - begun)
        answers.call_sizes[len(requests)] += 1

    def _begin(self, lead: Lead, requests: Sequence[Asked]) -> None:
        """Begin a call for some questions."""
        if not requests:
            return
        subject = lead.subject
        before = lead.subject.usage
        timed_seconds = 0.0
        costs: dict[Answers, Usage] = {}

        def keep(index: int, completion: Completion) -> bool:
            answers, question = requests[index]
            return answers.keep(question, completion)

        def arrived(index: int, completion: Completion) -> None:
            nonlocal timed_seconds
            answers, question = requests[index]
            if question.state is not QuestionState.SENT:  # it came while its interview ended
                return
            timed_seconds += completion.cost.seconds
            costs[answers] = costs.get(answers, Usage()) + completion.cost
            answers.arrived(question, completion)
            self._charge(answers, completion.cost)

        now = clock.elapsed()
        for answers, question in requests:
            answers.questions.send(question, now)
        try:
            draws = [(question.item, question.sample) for _, question in requests]
            interviews = [answers.interview for answers, _ in requests]
            cancel = subject.begin(draws, arrived, keep, interviews)
        except BaseException:
            self._fail(lead)
            raise
        finally:  # the time that a call took for all its answers
            call = subject.usage - before
            for answers, cost in costs.items():
                share = cost.tokens / max(call.tokens, 1)
                self._charge(answers, Usage(seconds=max(call.seconds - timed_seconds, 0.0) * share))
        for _, question in requests:
            if question.state is QuestionState.SENT:
                question.cancel = cancel

    def _take(self, lead: Lead, *, wait: bool) -> None:
        try:
            lead.subject.take_arrived(wait=wait)
        except Exception:
            self._fail(lead)
            raise

    @staticmethod
    def _fail(lead: Lead) -> None:
        """Expect no answer to the questions that are open."""
        for answers in lead.interviews:
            answers.questions.fail()

    def _charge(self, answers: Answers, cost: Usage) -> None:
        """Count a cost of an interview whose tests do not run yet, which is not the leader's."""
        lead = self._lead
        if lead is not None and answers is not lead.answers:
            answers.spent += cost
            lead.answers.usage_before += cost

    def hand_over(self, nodeid: str, path: Path, answers: Answers) -> None:
        """Let an interview that begins go on with the questions and the open journal of what was asked ahead of it.

        Args:
            path: The journal of the interview.
        """
        ahead = self._ahead.pop(nodeid, None)
        if ahead is None:
            return
        ahead.session.close()
        if ahead.journal is None or ahead.journal.path != path:  # it would ask another subject
            ahead.questions.abandon()
            ahead.close()
            return
        answers.adopt(ahead)

    def close(self) -> None:
        """Keep the answers that have come, and close the journals of interviews that did not begin."""
        if self._lead is not None:
            with contextlib.suppress(Exception):  # what is lost is asked again
                self._lead.subject.take_arrived(wait=False)
        while self._ahead:
            _, answers = self._ahead.popitem()
            if answers is not None:
                answers.session.close()
                answers.close()


#: Key of the run's calls in ``config.stash``.
PIPELINE: pytest.StashKey[Pipeline] = pytest.StashKey()
