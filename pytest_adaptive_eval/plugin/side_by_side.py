"""Ask interviews of one subject side by side: the next batches of several are answered in one call.

Tests run in pytest's order, one interview after the other.  When an interview needs answers, the call is filled with
the next questions of interviews whose tests come later.  Their completions go to their journals, as those of a killed
run do, and each interview finds them there when its turn comes.

A session of its own, with the seed and the scores of the real one, finds what such an interview will ask.  So no result
depends on what was asked ahead, and nothing is asked that the interview would not ask, unless the run or the
interview's own tests end it early.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.cat.selectors import Random
from pytest_adaptive_eval.errors import AdaptiveEvalError, Unscored
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.plugin.asking import AskingLoop
from pytest_adaptive_eval.plugin.gate_parameters import restore_parameters
from pytest_adaptive_eval.plugin.question import Question
from pytest_adaptive_eval.plugin.state import EvaluationNode
from pytest_adaptive_eval.records.journal import Journal
from pytest_adaptive_eval.subjects.base import Completion, Subject, Usage

__all__ = ["SideBySide"]

#: Marks by which questions may not run, or run otherwise.
_CONDITIONAL_MARKS = ("skip", "skipif", "xfail")


class SideBySide:
    """Interviews of one run that share the calls of their subjects."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        #: Node ids of interviews that cannot be asked ahead.
        self._refused: set[str] = set()

    def prefetch(self, loop: AskingLoop, subject: Subject, questions: Sequence[Question]) -> None:
        """Have questions of an interview answered, and those of waiting interviews as far as the batch has room."""
        own = loop.recorder.unanswered(subject, questions)
        if not own:
            return
        requests: list[tuple[_Waiting | None, Question]] = [(None, question) for question in own]
        if all(question.asked.item.likelihood is None for question in own):  # these share what their prompts begin with
            companions = self._companions(loop)
            while (room := subject.shared_batch - len(requests)) > 0 and (waiting := next(companions, None)):
                requests += [(waiting, question) for question in waiting.unanswered()[:room]]
        self._ask(loop, subject, requests)

    def _ask(self, loop: AskingLoop, subject: Subject, requests: Sequence[tuple[_Waiting | None, Question]]) -> None:
        """Have questions answered in one call, and give each answer and its cost to its interview."""
        before = subject.usage
        costs: dict[_Waiting, Usage] = {}

        def arrived(index: int, completion: Completion) -> None:
            waiting, question = requests[index]
            if waiting is None:
                loop.recorder.keep_completion(question, completion)
            else:
                costs[waiting] = costs.get(waiting, Usage()) + completion.cost
                waiting.keep(question, completion)

        try:
            completions = subject.answer_draws([(q.asked.item, q.asked.sample) for _, q in requests], arrived)
        finally:
            call = subject.usage - before
            for waiting, cost in costs.items():
                cost += Usage(seconds=call.seconds * _tokens(cost) / max(_tokens(call), 1))
                waiting.spent += cost
                loop.respondent.usage += cost
        for (owner, question), completion in zip(requests, completions, strict=True):
            if owner is None:
                subject.restore(question.asked.item, question.asked.sample, completion)

    def hand_over(self, nodeid: str, path: Path) -> tuple[Journal | None, Usage]:
        """Return the open journal at `path` of an interview that begins, if any, and what its answers cost so far."""
        waiting = self._waiting.pop(nodeid, None)
        if waiting is None:
            return None, Usage()
        journal = waiting.loop.recorder.journal
        waiting.loop.session.close()
        if journal is not None and journal.path != path:  # the subject is another one than was expected
            journal.close()
            return None, Usage()
        return journal, waiting.spent

    def close(self) -> None:
        """Close the journals of interviews that did not begin."""
        while self._waiting:
            _, waiting = self._waiting.popitem()
            waiting.loop.session.close()
            waiting.loop.recorder.close()

    def _companions(self, loop: AskingLoop) -> Iterator[_Waiting]:
        """Yield the interviews after this one that ask the same subject, in the order of the run."""
        items = loop.node.session.items
        for node in items[items.index(loop.node) + 1 :] if loop.node in items else ():
            if not isinstance(node, EvaluationNode) or node.noun != "interview" or node.nodeid in self._refused:
                continue
            restore_parameters(node)
            if not _asks_alike(loop.node, node) or _needs_results(node):
                continue
            if node.nodeid not in self._waiting:
                if (follower := _follower(loop, node)) is None:
                    self._refused.add(node.nodeid)
                    continue
                self._waiting[node.nodeid] = _Waiting(follower)
            waiting = self._waiting[node.nodeid]
            if waiting.loop.respondent.subject is loop.respondent.subject:
                yield waiting


class _Waiting:
    """An interview whose tests come later, with the questions that it will ask next.

    Parameters
    ----------
    loop : AskingLoop
        Identified by `AskingLoop.follow`, with a journal.  It runs no test.

    Attributes
    ----------
    spent : Usage
        Cost of the answers so far.
    """

    def __init__(self, loop: AskingLoop) -> None:
        self.loop = loop
        self.spent = Usage()
        self._batch: list[Question] = []
        self._ended = False
        policy, session = loop.evaluation.policy, loop.session
        #: Whether scores change neither the draws nor their number.
        self._uniform = isinstance(policy.selector, Random) and not (session.adapts_length or session.assistance)

    def unanswered(self) -> list[Question]:
        """Return the next questions without an answer, up to the end of a batch; none where the next is not known."""
        missing: list[Question] = []
        while not (self._ended or missing):
            try:
                missing = self._next()
            except Exception:  # code of a user, such as a selector or a grader, which fails when its turn comes
                self._ended = True
        return missing

    def _next(self) -> list[Question]:
        """Return the questions of the open batch without an answer; if there are none, tell the session its scores."""
        session, recorder = self.loop.session, self.loop.recorder
        if not self._batch:
            if (proposal := session.ask()) is None:
                self._ended = True
                return []
            self._batch = self.loop.questions(proposal)
            if not self._can_ask():
                self._ended = True
                return []
        missing = [question for question in self._batch if recorder.stored(question) is None]
        if not missing:
            scores = [self._score(question) for question in self._batch]
            self.loop.tell(self.loop.item_scores(scores))
            self._batch = []
        return missing

    def keep(self, question: Question, completion: Completion) -> None:
        """Write a completion to the journal.  What cannot be kept, or is a fault of the run, is left to the tests."""
        try:
            self.loop.recorder.keep_completion(question, completion)
        except AdaptiveEvalError:
            self._ended = True
        if completion.status.infrastructure:
            self._ended = True

    def _can_ask(self) -> bool:
        """Whether the tests of the batch will ask the items themselves, for texts."""
        together = self.loop.asks_items or len(self._batch) > 1
        return together and all(question.asked.item.likelihood is None for question in self._batch)

    def _score(self, question: Question) -> float | None:
        """Return the score that the test of a question will give, None for a missing one or where none matters.

        Raises
        ------
        _UnknownScoreError
            The user's code, a grader that may differ, or a fault of the run decides.
        """
        stored, item = self.loop.recorder.stored(question), question.asked.item
        if isinstance(stored, Mapping):
            if Status(stored["status"]).infrastructure:  # the interview counts its faults
                raise _UnknownScoreError
            return float(stored["score"]) if stored["score"] is not None else None
        if stored is None or not (self.loop.asks_items and getattr(item.custom, "deterministic", True)):
            if self._uniform:
                return None
            raise _UnknownScoreError
        if stored.status is not Status.OK or stored.score is not None:
            return stored.score if stored.status is Status.OK else None
        try:
            return float(item.grade(stored.text))
        except Unscored as fault:
            if Status(fault.status).infrastructure:
                raise
            return None


class _UnknownScoreError(Exception):
    """The score of an answer is not known before its test has run."""


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _needs_results(node: Any) -> bool:
    """Return whether an interview has a baseline in this run that gave no result yet."""
    sources = node.gate_plan.sources.values()
    return any(isinstance(source, EvaluationNode) and source.result is None for source in sources)


def _asks_alike(first: Any, second: Any) -> bool:
    """Return whether the questions of two interviews get the same fixtures and the same cap.

    Code must grade the second and choose its questions.  No mark may keep them from running, and no cost end them.
    """
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
        loop.recorder.close()
        return None
    return loop if loop.fault is None and loop.recorder.journal is not None else None
