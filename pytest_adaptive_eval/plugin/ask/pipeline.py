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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.models.base import Completion, Model, Usage
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
from pytest_adaptive_eval.plugin.ask.call_sizes import CallSizes
from pytest_adaptive_eval.plugin.ask.question import Draw, QuestionTest
from pytest_adaptive_eval.plugin.notices import captured
from pytest_adaptive_eval.plugin.state import EvaluationTest

_CONDITIONAL_MARKS = ("skip", "skipif", "xfail")  #: Marks by which questions may not run, or run otherwise.
#: Longest wait, in seconds, for answers that a certain verdict does not need, and the time between two looks.
PATIENCE, POLL = 2.0, 0.01
SHARE, LEAST = 0.25, 2  #: Share of the questions in prospect that are asked ahead, and how many are in any case.


class Pipeline:
    """Calls of one run, of all its subjects; with `shares`, questions of later interviews fill them."""

    def __init__(self, *, shares: bool) -> None:
        self._shares = shares
        #: Interviews with questions asked ahead by node id, and node ids of those that cannot have any.
        self._ahead: dict[str, PendingInterview] = {}
        self._refused: set[str] = set()
        #: Number of questions that calls have begun and that have no answer yet, by the id of the subject.
        self._open: Counter[int] = Counter()
        #: Times of the calls of subjects that do not wait apart, by the id of the subject.
        self._sizes: dict[int, CallSizes] = {}
        #: The interview whose tests run, and those that may follow it: asked ahead, and not looked at yet.
        self._leader: AskingLoop | None = None
        self._followers: list[PendingInterview] = []
        self._rest: Iterator[PendingInterview] = iter(())

    def answer(self, loop: AskingLoop, subject: Model, questions: Sequence[QuestionTest]) -> None:
        """Have questions of an interview answered, so the first one's test finds its completion.

        Following ones are begun as well, and questions that the session has drawn ahead.
        """
        leading, key = self._lead(loop, subject), loop.recorder.key(questions[0])
        leading.draw_ahead()
        if key in leading.arrived or not loop.recorder.restore(questions[0]):
            self._wait(loop, subject, questions)
            loop.recorder.restore(questions[0], leading.arrived[key])
        self._fill(subject, [])
        while any(not judgment.done() for judgment in leading.judgments.get(key, ())):  # each wakes the subject
            self._take(subject, wait=True)
            self._fill(subject, [])
        leading.arrived.pop(key, None)  # not before: what is drawn is looked at meanwhile, and this one is no news
        leading.judgments.pop(key, None)

    def needs(self, loop: AskingLoop, subject: Model, questions: Sequence[QuestionTest]) -> bool:
        """Wait for the answer to the first question; return False where the verdict is certain without it."""
        self._lead(loop, subject).draw_ahead()
        stored = loop.recorder.lookup(questions[0], loop.recorder.request(questions[0]))
        return stored is not None or self._wait(loop, subject, questions, unless_settled=True)

    def _wait(
        self, loop: AskingLoop, subject: Model, questions: Sequence[QuestionTest], *, unless_settled: bool = False
    ) -> bool:
        """Wait until the answer to the first question is there, or until the verdict is certain without it.

        An answer that will probably come soon is awaited even then, see `PATIENCE`.
        """
        leading, key = self._lead(loop, subject), loop.recorder.key(questions[0])
        while key not in leading.arrived:
            if unless_settled and loop.session.settled(leading.scores()):
                if key not in leading.begun or not leading.comes_soon():
                    return False
                self._take(subject, wait=False)
                clock.sleep(POLL)
                continue
            self._fill(subject, leading.expect(questions[: self._room(loop, subject, len(questions))]))
            if key not in leading.arrived:
                self._take(subject, wait=True)
        return True

    def advance(self, loop: AskingLoop) -> None:
        """Take answers that came while a test of an interview ran, and begin further questions."""
        subject = loop.respondent.subject
        if loop is self._leader and self._open[id(subject)]:
            with captured(loop.node), contextlib.suppress(Exception):  # a fault that lasts is that of the tests too
                self._take(subject, wait=False)
                self._fill(subject, [])

    def finish(self, loop: AskingLoop) -> int:
        """Break off what is asked ahead of an interview that has ended; return the number of calls it did not need."""
        leading = self._ahead.get(loop.nodeid)
        if leading is None or leading.loop is not loop:
            return 0
        subject = loop.respondent.subject
        with contextlib.suppress(Exception):  # what came so far is kept
            self._take(subject, wait=False)
        unneeded = len(leading.begun) + len(leading.arrived)
        for cancel in leading.begun.values():
            cancel()
        self._open[id(subject)] -= len(leading.begun)
        leading.begun.clear()
        del self._ahead[loop.nodeid]
        return unneeded

    def _lead(self, loop: AskingLoop, subject: Model) -> PendingInterview:
        """Return what is asked ahead of the interview whose tests run, and find the interviews that may follow it."""
        if loop is not self._leader:
            self._leader = loop
            self._ahead.setdefault(loop.nodeid, PendingInterview(loop)).loop = loop
            items = loop.node.session.items if self._shares and subject.shared_batch else []
            later = items[items.index(loop.node) + 1 :] if loop.node in items else []
            joined = (self._join(loop, node) for node in later if isinstance(node, EvaluationTest))
            self._followers, self._rest = [], (follower for follower in joined if follower is not None)
        return self._ahead[loop.nodeid]

    def _room(self, loop: AskingLoop, subject: Model, questions: int) -> int:
        """Return how many of the `questions` that the session knows of are asked for now."""
        if subject.waits_apart:
            return max(1, subject.shared_batch - self._open[id(subject)])
        return 1 if loop.asks_ahead and subject.shared_batch else questions

    def _fill(self, subject: Model, awaited: Sequence[Draw]) -> None:
        """Begin calls for the wanted questions, for the leader's next ones, and for its followers' if there is room."""
        assert self._leader is not None
        leading = self._ahead[self._leader.nodeid]
        if not subject.waits_apart:
            self._call(subject, leading, awaited)
            return
        busy = self._open[id(subject)]
        ahead = leading.take(subject.shared_batch - busy - len(awaited), whole_prospect=False)
        requests = [(leading, draw) for draw in [*awaited, *ahead]]
        alike = any(draw.asked.item.likelihood is not None for _, draw in requests)  # their prompts begin alike
        if not alike:
            requests += self._of_followers(subject.shared_batch - busy - len(requests), whole_prospect=False)
        for group in [requests] if alike else [[request] for request in requests]:
            self._begin(subject, group)

    def _call(self, subject: Model, leading: PendingInterview, awaited: Sequence[Draw]) -> None:
        """Make one call of a subject that a test waits for, with what is likely to be needed."""
        if not awaited:
            return
        evaluation = leading.loop.evaluation
        sizes, batch = self._sizes.setdefault(id(subject), CallSizes()), evaluation.policy.batch
        if "batch" in evaluation.written:
            size = min(batch, subject.shared_batch)
        else:
            expected = leading.loop.session.remaining() * evaluation.samples
            first = max(batch, math.ceil(SHARE * expected))
            size = sizes.best(subject.shared_batch, first=first, least=batch)
        ahead = leading.take(size - len(awaited), whole_prospect=True)
        requests = [(leading, draw) for draw in [*awaited, *ahead]]
        if all(draw.asked.item.likelihood is None for _, draw in requests):  # else prompts begin alike
            requests += self._of_followers(size - len(requests), whole_prospect=True)
        begun = clock.elapsed()
        self._begin(subject, requests)
        sizes.note(len(requests), clock.elapsed() - begun)
        leading.loop.call_sizes[len(requests)] += 1

    def _of_followers(self, capacity: int, *, whole_prospect: bool) -> list[tuple[PendingInterview, Draw]]:
        """Return the next questions of later interviews, up to `capacity`; the interviews come in their order."""
        requests: list[tuple[PendingInterview, Draw]] = []
        for follower in itertools.chain(self._followers, self._further_followers()):
            if len(requests) >= capacity:
                break
            follower.go_on()
            ahead = follower.take(capacity - len(requests), whole_prospect=whole_prospect)
            requests += [(follower, draw) for draw in ahead]
        return requests

    def _further_followers(self) -> Iterator[PendingInterview]:
        """Yield the interviews that were not looked at yet, and add each to the followers."""
        for follower in self._rest:
            self._followers.append(follower)
            yield follower

    def _begin(self, subject: Model, requests: Sequence[tuple[PendingInterview, Draw]]) -> None:
        """Begin a call for some questions."""
        self._open[id(subject)] += len(requests)
        before, timed_seconds = subject.usage, 0.0
        costs: dict[PendingInterview, Usage] = {}

        def arrived(index: int, completion: Completion) -> None:
            nonlocal timed_seconds
            ahead, draw = requests[index]
            if ahead.loop.recorder.key(draw) not in ahead.begun:  # it came while its interview ended
                return
            self._open[id(subject)] -= 1
            timed_seconds += completion.cost.seconds
            ahead.keep(draw, completion)
            costs[ahead] = costs.get(ahead, Usage()) + completion.cost
            self._charge(ahead, completion.cost)

        keys = [(ahead, ahead.loop.recorder.key(draw)) for ahead, draw in requests]
        for ahead, key in keys:
            ahead.begun[key] = _nothing
            ahead.began[key] = clock.elapsed()
        try:
            cancel = subject.begin([(draw.asked.item, draw.asked.sample) for _, draw in requests], arrived)
        except BaseException:
            self._abandon(subject)
            raise
        finally:  # the time that a call took for all its answers
            call = subject.usage - before
            for ahead, cost in costs.items():
                share = cost.tokens / max(call.tokens, 1)
                self._charge(ahead, Usage(seconds=max(call.seconds - timed_seconds, 0.0) * share))
        for ahead, key in keys:
            if key in ahead.begun:
                ahead.begun[key] = cancel

    def _take(self, subject: Model, *, wait: bool) -> None:
        try:
            subject.take_arrived(wait=wait)
        except Exception:
            self._abandon(subject)
            raise

    def _abandon(self, subject: Model) -> None:
        """Expect no answer to the questions that are open."""
        del self._open[id(subject)]
        for ahead in self._ahead.values():
            if ahead.loop.respondent.subject is subject:
                ahead.begun.clear()

    def _charge(self, ahead: PendingInterview, cost: Usage) -> None:
        """Count a cost of an interview whose tests do not run yet, which is not the leader's."""
        if self._leader is not None and ahead.loop is not self._leader:
            ahead.spent += cost
            self._leader.respondent.usage += cost

    def hand_over(self, nodeid: str, path: Path) -> tuple[CompletionStore | None, Usage]:
        """Return the open journal at `path` of an interview that begins, if any, and what its answers cost so far."""
        ahead = self._ahead.get(nodeid)
        if ahead is None:
            return None, Usage()
        ahead.loop.session.close()
        journal = ahead.loop.recorder.journal
        if journal is None or journal.path != path:  # its tests ran before, or ask another subject
            ahead.loop.recorder.close()
            del self._ahead[nodeid]
            return None, Usage()
        return journal, ahead.spent

    def close(self) -> None:
        """Keep the answers that have come, and close the journals of interviews that did not begin."""
        for ahead in self._ahead.values():
            with contextlib.suppress(Exception):  # what is lost is asked again
                ahead.loop.respondent.subject.take_arrived(wait=False)
        while self._ahead:
            _, ahead = self._ahead.popitem()
            ahead.loop.session.close()
            ahead.loop.recorder.close()

    def _join(self, loop: AskingLoop, node: Any) -> PendingInterview | None:
        """Return the interview of a node, if it can be asked ahead by the leader's subject."""
        if not node.evaluation.most_questions or node.nodeid in self._refused:
            return None
        if any(other.result is None for other in node.state.needs.get(node, ())):
            return None
        if not _asks_alike(loop.node, node):
            return None
        if node.nodeid not in self._ahead:
            if (follower := _follower(loop, node)) is None:
                self._refused.add(node.nodeid)
                return None
            self._ahead[node.nodeid] = PendingInterview(follower)
        ahead = self._ahead[node.nodeid]
        return ahead if ahead.loop.respondent.subject is loop.respondent.subject else None


class PendingInterview:
    """An interview with the open items of its session, which are asked before their tests run.

    Attributes:
        loop: That of the tests; before they run, one that runs none, see `AskingLoop.follow`.
        begun: Ways to break off the calls whose answers are to come, by the keys of the questions.
        arrived: Completions by key, until their tests need them.
        judgments: Replies of the judge to come by key, while a subject that waits apart answers further questions.
        spent: Cost of the answers of an interview whose tests do not run yet.
        began: Times at which calls began, by key.
    """

    def __init__(self, loop: AskingLoop) -> None:
        self.loop = loop
        self.begun: dict[str, Callable[[], object]] = {}
        self.arrived: dict[str, Completion] = {}
        self.judgments: dict[str, Sequence[Future[Any]]] = {}
        self.spent = Usage()
        self.began: dict[str, float] = {}
        self._slowest = 0.0  #: Longest time, in seconds, that an answer took.
        self._settled: float | None = None  #: Time at which the verdict became certain.
        self._queue: dict[str, Draw] = {}  #: Drawn questions without an answer that no call has begun.
        #: Items of the session that were looked at, questions with a call or an answer, and how many may have one.
        self._seen = self._sent = self._limit = 0
        #: Numbers of scores told and of answers at the latest forecast, and scores of open items by item.
        self._then = -1, 0
        self._scores: dict[str, float] = {}

    def expect(self, questions: Sequence[QuestionTest]) -> list[Draw]:
        """Return the awaited questions for which no call has begun."""
        awaited = []
        recorder = self.loop.recorder
        for question in questions:
            key = recorder.key(question)
            if not recorder.restore(question) and key not in self.begun and key not in self.arrived:
                self._queue.pop(key, None)
                self.begun[key] = _nothing
                awaited.append(Draw(question.asked, question.administration, question.request))
        self._sent += len(awaited)
        return awaited

    def draw_ahead(self) -> None:
        """Draw further questions.

        It is done once before each question and so at the same points of an interview, however fast answers come.
        """
        if self.loop.asks_ahead and self.loop.respondent.subject.shared_batch:
            with contextlib.suppress(Exception):  # code of a user, such as a selector, which fails when its turn comes
                self.loop.session.draw_ahead()

    def go_on(self) -> None:
        """Go through an interview whose tests do not run yet, as far as the scores of its answers are known.

        Its own session will draw the same questions when its tests run, and find their answers in its journal.
        """
        loop = self.loop
        while loop.evaluation.samples == 1 and not loop.session.finished:
            try:
                proposal = loop.session.ask(loop.together)
            except Exception:  # code of a user, such as a selector, which fails when its turn comes
                return
            assert proposal is not None  # the session has not finished
            self.draw_ahead()
            ids = [loop.evaluation.bank.ids[item] for item in proposal.items[0].tolist()]
            if any(item not in self._scores for item in ids):
                return
            loop.tell([self._scores[item] for item in ids])

    def take(self, capacity: int, *, whole_prospect: bool) -> list[Draw]:
        """Return the next questions without an answer, up to `capacity`.

        Args:
            whole_prospect: Whether all that the verdict is likely to need may be asked, and not a part of it, as of a
                model that takes no further question before it has answered these.
        """
        if capacity <= 0 or not self.loop.asks_ahead or self.loop.session.finished:
            return []
        try:
            most = self._most(1.0 if whole_prospect else SHARE)
        except Exception:  # code of a user, such as a selector, which fails when its turn comes
            return []
        taken = list(itertools.islice(self._queue, max(0, min(capacity, most - self._sent))))
        self._sent += len(taken)
        return [self._queue.pop(key) for key in taken]

    def _most(self, share: float) -> int:
        """Return the number of questions that may have a call or an answer now, of those in prospect a `share`."""
        session, samples = self.loop.session, self.loop.evaluation.samples
        recorder = self.loop.recorder
        drawn = itertools.product(session.drawn_items[self._seen :].tolist(), range(samples))
        first = self._seen * samples + 1 - len(recorder.administrations)
        for offset, (item, sample) in enumerate(drawn, first):
            draw = self.loop.draw(item, sample, offset)
            key = recorder.key(draw)
            if key in self.begun or key in self.arrived:
                continue
            stored = recorder.lookup(draw, recorder.request(draw))
            if stored is None:
                self._queue[key] = draw
            else:  # an interrupted run may not have graded it
                self._sent += 1
                self._note_score(draw, stored)
                self._judge(draw, stored)
        self._seen = session.drawn
        answered = self._sent - len(self.begun)
        if not session.adapts_length:
            return session.budget * samples
        told, then = self._then
        if told != session.asked or answered >= then + LEAST or self._sent >= self._limit:
            needed = (session.asked + session.remaining(self.scores())) * samples
            prospect = max(LEAST, math.ceil(share * (needed - answered)))
            self._limit = min(answered + prospect, needed + LEAST)  # one slow answer does not make more necessary
            self._then = session.asked, answered
        return self._limit

    def scores(self) -> list[float]:
        """Return the scores of the open items up to the last known one; others are NaN."""
        session, ids = self.loop.session, self.loop.evaluation.bank.ids
        ahead = [self._scores.get(ids[item], math.nan) for item in session.drawn_items[session.asked :].tolist()]
        while ahead and math.isnan(ahead[-1]):
            ahead.pop()
        return ahead

    def comes_soon(self) -> bool:
        """Whether no answer took longer than `PATIENCE`, and a certain verdict has not waited that long."""
        if self._settled is None:
            self._settled = clock.elapsed()
        return max(self._slowest, clock.elapsed() - self._settled) < PATIENCE

    def keep(self, draw: Draw, completion: Completion) -> None:
        """Write a completion to the journal; what cannot be kept, or is a fault of the run, is left to the tests."""
        key = self.loop.recorder.key(draw)
        del self.begun[key]
        self._slowest = max(self._slowest, clock.elapsed() - self.began.pop(key))
        self.arrived[key] = completion
        self._note_score(draw, completion)
        with contextlib.suppress(AdaptiveEvalError):
            self.loop.recorder.store(draw, self.loop.recorder.request(draw), completion)
        self._judge(draw, completion)

    def _note_score(self, draw: Draw, completion: Completion) -> None:
        """Keep the score that the test of a question will find, for the forecast, where grading is quick."""
        item = draw.asked.item
        if self.loop.asks_items and item.custom is None and not draw.asked.sample:
            score = completion.response(item).score
            self._scores[item.id] = math.nan if score is None else score

    def _judge(self, draw: Draw, completion: Completion) -> None:
        """Have the judge of the evaluation, if there is one, begin to grade an answer as its test will."""
        loop, text_alone = self.loop, completion.score is None and not completion.unread
        place = draw.administration.position - len(loop.recorder.administrations)
        if (judge := loop.evaluation.judge) is None or not (loop.grades_answers and text_alone and place > 0):
            return
        judgments, subject = judge.begin(draw.asked.item, completion.text, place), loop.respondent.subject
        if subject.waits_apart:
            self.judgments[loop.recorder.key(draw)] = judgments
            for judgment in judgments:
                judgment.add_done_callback(lambda _: subject.wake())


def _nothing() -> None:
    """Do nothing: a call that has ended cannot be broken off."""


def _asks_alike(first: Any, second: Any) -> bool:
    """Return whether the questions of two interviews get the same fixtures and cap, and nothing else ends them."""
    one, other = first.evaluation, second.evaluation
    if other.judge is not None or other.interviewer is not None or other.lead or other.spending.limited:
        return False
    if one.max_tokens != other.max_tokens:
        return False
    if any(mark.name in _CONDITIONAL_MARKS for mark in second.iter_markers()):
        return False
    if len(first.ids) > 1 or len(second.ids) > 1 or first.own_model is not second.own_model:
        return False
    definitions = _definitions(first)
    if definitions != _definitions(second):
        return False
    return first.parent is second.parent or all(entry.scope == "session" for entry in definitions.values())


def _definitions(node: Any) -> dict[str, Any]:
    """Return the fixtures of an interview's test by name."""
    info = node._fixtureinfo
    names = {*info.names_closure} & {*info.name2fixturedefs} - {"item"}
    return {name: info.name2fixturedefs[name][-1] for name in names}


def _follower(leader: AskingLoop, node: Any) -> AskingLoop | None:
    """Return the loop of an interview that asks what the leader asks; None where it cannot, or has no journal."""
    loop = AskingLoop(node, node.evaluation)
    try:
        if loop.fault is None:
            loop.follow(leader)
    except Exception:  # it fails when its turn comes
        if node is not leader.node:
            loop.recorder.close()
        return None
    return loop if loop.fault is None and loop.recorder.journal is not None else None
