"""Ask interviews of one subject side by side: the next batches of several are answered in one call.

Tests run in pytest's order, one interview after the other. When an interview needs answers, the call is filled with the
next questions of interviews whose tests come later. Their completions go to their journals, as those of a killed run
do, and each interview finds them there when its turn comes. A server answers on while tests run, and then the next
questions of the interview itself are asked ahead of its tests as well.

A session of its own, with the seed and the scores of the real one, finds what such an interview will ask. So no result
depends on what was asked ahead, and nothing is asked that the interview would not ask, unless the run or the
interview's own tests end it early.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.cat.selectors import Random
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion, Subject, Usage
from pytest_adaptive_eval.plugin.asking import AskingLoop
from pytest_adaptive_eval.plugin.question import Draw, Question
from pytest_adaptive_eval.plugin.state import EvaluationNode
from pytest_adaptive_eval.plugin.tomlfile import restore_parameters
from pytest_adaptive_eval.records.journal import Journal

_CONDITIONAL_MARKS = ("skip", "skipif", "xfail")  #: Marks by which questions may not run, or run otherwise.


class SideBySide:
    """Interviews of one run that share the calls of their subjects; with `shares`, others' questions fill them."""

    def __init__(self, *, shares: bool) -> None:
        self._shares = shares
        #: Interviews that are asked ahead, by node id, and node ids of those that cannot be.
        self._waiting: dict[str, _Waiting] = {}
        self._refused: set[str] = set()
        #: Number of questions that calls have begun and that have no answer yet, by the id of the subject.
        self._open: Counter[int] = Counter()
        #: The interview whose tests run, those that join it, and the rest of them, not looked at yet.
        self._leader: AskingLoop | None = None
        self._joined: list[_Waiting] = []
        self._rest: Iterator[_Waiting] = iter(())
        #: Answers to the leader by their keys in the journal, until its tests need them.
        self._arrived: dict[str, Completion] = {}

    def prefetch(self, loop: AskingLoop, subject: Subject, questions: Sequence[Question]) -> None:
        """Have questions of an interview answered, and those of waiting interviews as far as the batch has room.

        Where the subject waits apart, later questions of the interview itself are begun as well.
        """
        if loop is not self._leader:
            self._lead(loop, subject)
        key, leading = loop.recorder.key, self._leading
        missing = {key(question): question for question in loop.recorder.unanswered(subject, questions)}
        begun = self._arrived.keys() | (leading.begun if leading is not None else set())
        fresh = [question for name, question in missing.items() if name not in begun]
        alone = any(question.asked.item.likelihood is not None for question in fresh)  # these share how prompts begin
        if missing or subject.waits_apart:
            self._begin(loop, subject, fresh, alone=alone)
        while missing.keys() - self._arrived.keys():
            self._take(subject, wait=True)
            self._begin(loop, subject, [])
        for name, question in missing.items():
            subject.restore(question.asked.item, question.asked.sample, self._arrived[name])
        for question in questions:
            self._arrived.pop(key(question), None)

    def advance(self, loop: AskingLoop) -> None:
        """Take answers that came while a test of an interview ran, and begin further questions."""
        subject = loop.respondent.subject
        if loop is self._leader and self._open[id(subject)]:
            with contextlib.suppress(Exception):  # a fault that lasts is that of the tests too
                self._take(subject, wait=False)
                self._begin(loop, subject, [])

    def _lead(self, loop: AskingLoop, subject: Subject) -> None:
        """Note that the tests of another interview run, and find those that join it."""
        before, self._leader = self._leader, loop
        self._joined, self._arrived = [], {}
        if before is not None and before.nodeid != loop.nodeid:
            self._drop(before.nodeid)
        own = self._waiting.get(loop.nodeid)
        if own is not None and not (subject.waits_apart and own.loop.recorder.journal is loop.recorder.journal):
            self._drop(loop.nodeid)  # nothing is asked ahead of its tests, or the tests run again
        if subject.waits_apart and (own := self._join(loop, loop.node)) is not None:
            own.leads = True
            self._joined.append(own)
        items = loop.node.session.items if self._shares else []
        later = items[items.index(loop.node) + 1 :] if loop.node in items else []
        joined = (self._join(loop, node) for node in later if isinstance(node, EvaluationNode))
        self._rest = (waiting for waiting in joined if waiting is not None)

    def _drop(self, nodeid: str) -> None:
        if (waiting := self._waiting.pop(nodeid, None)) is not None:
            waiting.loop.session.close()

    def _begin(self, loop: AskingLoop, subject: Subject, questions: Sequence[Question], *, alone: bool = False) -> None:
        """Begin a call for questions of the leader, and for others if there is room; none if there are no questions."""
        leading = self._leading
        requests: list[tuple[_Waiting | None, Question | Draw]] = [(leading, question) for question in questions]
        if leading is not None:
            leading.begin(questions)
        if not alone:
            most = subject.shared_batch
            most += most // 2 if subject.waits_apart else 0  # of which some follow others at once
            requests += self._ahead(most, most - self._open[id(subject)] - len(questions))
        if not requests:
            return
        self._open[id(subject)] += len(requests)
        before, timed_seconds = subject.usage, 0.0
        costs: dict[_Waiting, Usage] = {}

        def arrived(index: int, completion: Completion) -> None:
            nonlocal timed_seconds
            waiting, question = requests[index]
            self._open[id(subject)] -= 1
            timed_seconds += completion.cost.seconds
            if waiting is None or waiting is self._leading:
                self._arrived[loop.recorder.key(question)] = completion
            if waiting is None:
                loop.recorder.keep_completion(question, completion)
                return
            waiting.keep(question, completion)
            costs[waiting] = costs.get(waiting, Usage()) + completion.cost
            self._charge(waiting, completion.cost)

        try:
            subject.begin([(question.asked.item, question.asked.sample) for _, question in requests], arrived)
        except BaseException:
            self._abandon(subject)
            raise
        finally:  # the time that a call took for all its answers
            call = subject.usage - before
            for waiting, cost in costs.items():
                share = _tokens(cost) / max(_tokens(call), 1)
                self._charge(waiting, Usage(seconds=max(call.seconds - timed_seconds, 0.0) * share))

    def _take(self, subject: Subject, *, wait: bool) -> None:
        try:
            subject.take_arrived(wait=wait)
        except Exception:
            self._abandon(subject)
            raise

    def _abandon(self, subject: Subject) -> None:
        """Expect no answer to the questions that are open, and begin no others of their interviews."""
        del self._open[id(subject)]
        for waiting in self._waiting.values():
            if waiting.loop.respondent.subject is subject and waiting.begun:
                waiting.begun, waiting.ended = set(), True

    def _charge(self, waiting: _Waiting, cost: Usage) -> None:
        """Count a cost of a waiting interview, which is not the leader's."""
        if self._leader is not None and waiting is not self._leading:
            waiting.spent += cost
            self._leader.respondent.usage += cost

    @property
    def _leading(self) -> _Waiting | None:
        return None if self._leader is None else self._waiting.get(self._leader.nodeid)

    def _ahead(self, most: int, limit: int) -> list[tuple[_Waiting | None, Question | Draw]]:
        """Return up to `limit` questions of interviews that together fill `most`; those asked least come first."""
        requests: list[tuple[_Waiting | None, Question | Draw]] = []
        if limit <= 0:
            return requests
        self._joined = [waiting for waiting in self._joined if not waiting.ended]
        while sum(waiting.loop.evaluation.policy.batch for waiting in self._joined) <= most:
            if (further := next(self._rest, None)) is None:
                break
            self._joined.append(further)
        leading = self._leading
        for waiting in sorted(self._joined, key=lambda w: -1 if w is leading else w.loop.session.asked):
            requests += [(waiting, question) for question in waiting.take(limit - len(requests))]
        return requests

    def hand_over(self, nodeid: str, path: Path) -> tuple[Journal | None, Usage]:
        """Return the open journal at `path` of an interview that begins, if any, and what its answers cost so far."""
        waiting = self._waiting.get(nodeid)
        if waiting is None:
            return None, Usage()
        journal = waiting.loop.recorder.journal
        if waiting.leads or journal is None or journal.path != path:  # its tests ran before, or ask another subject
            waiting.loop.recorder.close()
            self._drop(nodeid)
            return None, Usage()
        waiting.leads = True
        return journal, waiting.spent

    def close(self) -> None:
        """Keep the answers that have come, and close the journals of interviews that did not begin."""
        for waiting in self._waiting.values():
            with contextlib.suppress(Exception):  # what is lost is asked again
                waiting.loop.respondent.subject.take_arrived(wait=False)
        while self._waiting:
            _, waiting = self._waiting.popitem()
            waiting.loop.session.close()
            waiting.loop.recorder.close()

    def _join(self, loop: AskingLoop, node: Any) -> _Waiting | None:
        """Return the interview of a node, if it can be asked ahead by the leader's subject."""
        if node.noun != "interview" or node.nodeid in self._refused:
            return None
        restore_parameters(node)
        sources = node.gate_plan.sources.values()
        if any(isinstance(source, EvaluationNode) and source.result is None for source in sources):
            return None
        if not _asks_alike(loop.node, node):
            return None
        if node.nodeid not in self._waiting:
            if (follower := _follower(loop, node)) is None:
                self._refused.add(node.nodeid)
                return None
            self._waiting[node.nodeid] = _Waiting(follower)
        waiting = self._waiting[node.nodeid]
        return waiting if waiting.loop.respondent.subject is loop.respondent.subject else None


class _Waiting:
    """An interview with the questions that it will ask next, before its tests run.

    Args:
        loop: Identified by `AskingLoop.follow`, with a journal. It runs no test.

    Attributes:
        begun: Keys in the journal of the questions that a call has begun and that have no answer yet.
        ended: Whether the next question is not known, or there is none.
    """

    def __init__(self, loop: AskingLoop) -> None:
        self.loop = loop
        self.spent = Usage()
        self.begun: set[str] = set()
        self.ended = self.leads = False
        #: Questions of the open batch; what the journal has of them, by key; those to begin.
        self._batch: list[Draw] = []
        self._stored: dict[str, Mapping[str, Any] | Completion | None] = {}
        self._rest: list[Draw] = []
        policy, session = loop.evaluation.policy, loop.session
        #: Whether scores change neither the draws nor their number.
        self._uniform = isinstance(policy.selector, Random) and not (session.adapts_length or session.assistance)

    def take(self, limit: int) -> list[Draw]:
        """Begin the next questions without an answer, at most `limit` and up to the end of a batch, and return them."""
        while not (self.ended or self.begun or self._rest):
            try:
                self._open_batch()
            except Exception:  # code of a user, such as a selector or a grader, which fails when its turn comes
                self.ended = True
        taken, self._rest = self._rest[:limit], self._rest[limit:]
        self.begun |= set(map(self.loop.recorder.key, taken))
        return taken

    def begin(self, questions: Sequence[Question]) -> None:
        """Note that a call has begun questions, of whatever batch."""
        keys = set(map(self.loop.recorder.key, questions))
        self.begun |= keys
        self._rest = [question for question in self._rest if self.loop.recorder.key(question) not in keys]

    def _open_batch(self) -> None:
        """Tell the session the scores of the open batch, and open the next one."""
        session, recorder = self.loop.session, self.loop.recorder
        if self._batch:
            scores = [self._score(question) for question in self._batch]
            self.loop.tell(self.loop.item_scores(scores))
            self._batch = []
        if (proposal := session.ask()) is None:
            self.ended = True
            return
        self._batch = self.loop.draws(proposal)
        self._stored = {recorder.key(question): recorder.stored(question) for question in self._batch}
        together = self.loop.asks_items or len(self._batch) > 1
        if together and all(question.asked.item.likelihood is None for question in self._batch):
            self._rest = [question for question in self._batch if self._stored[recorder.key(question)] is None]
        else:
            self.ended = True

    def keep(self, question: Question | Draw, completion: Completion) -> None:
        """Write a completion to the journal; what cannot be kept, or is a fault of the run, is left to the tests."""
        key = self.loop.recorder.key(question)
        self.begun.discard(key)
        if key in self._stored:
            self._stored[key] = completion
        try:
            self.loop.recorder.keep_completion(question, completion, durable=self.leads)
        except AdaptiveEvalError:
            self.ended = True
        if completion.status.infrastructure:
            self.ended = True

    def _score(self, question: Draw) -> float | None:
        """Return the score that the test of a question will give, None for a missing one or where none matters."""
        stored, item = self._stored[self.loop.recorder.key(question)], question.asked.item
        if isinstance(stored, Mapping):
            if Status(stored["status"]).infrastructure:  # the interview counts its faults
                raise _UnknownScoreError
            return float(stored["score"]) if stored["score"] is not None else None
        if stored is None or not (self.loop.asks_items and getattr(item.custom, "deterministic", True)):
            if self._uniform:
                return None
            raise _UnknownScoreError
        response = stored.response(item, self.loop.unanswered)
        if response.status.infrastructure:
            raise _UnknownScoreError
        return response.score


class _UnknownScoreError(Exception):
    """The score of an answer is not known before its test has run."""


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _asks_alike(first: Any, second: Any) -> bool:
    """Return whether the questions of two interviews get the same fixtures and cap, and nothing else ends them."""
    one, other = first.evaluation, second.evaluation
    if other.judge is not None or other.interviewer is not None or other.lead or other.spending.limited:
        return False
    if one.max_tokens != other.max_tokens:
        return False
    if any(mark.name in _CONDITIONAL_MARKS for mark in second.iter_markers()):
        return False
    if first.callspec.params.keys() | second.callspec.params.keys() != {"item"}:
        return False
    definitions = [
        {name: info.name2fixturedefs[name][-1] for name in {*info.names_closure} & {*info.name2fixturedefs} - {"item"}}
        for info in (first._fixtureinfo, second._fixtureinfo)
    ]
    if definitions[0] != definitions[1]:
        return False
    return first.parent is second.parent or all(entry.scope == "session" for entry in definitions[0].values())


def _follower(leader: AskingLoop, node: Any) -> AskingLoop | None:
    """Return the loop of an interview that asks what the leader asks; None where it cannot, or has no journal."""
    loop = AskingLoop(node, node.gate_plan)
    try:
        if loop.fault is None:
            loop.follow(leader)
    except Exception:  # it fails when its turn comes
        if node is not leader.node:
            loop.recorder.close()
        return None
    return loop if loop.fault is None and loop.recorder.journal is not None else None
