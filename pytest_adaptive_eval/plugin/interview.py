"""An interview as pytest items: one placeholder that is collected, and questions made on the fly.

Collecting a bank costs one item whatever its size.  When the placeholder's turn
comes it asks its session for questions, runs each through pytest's own protocol
as an ordinary parametrized test, and then lets pytest run the placeholder, which
fails if the interview is void.  Questions and placeholder have the same parent,
so that module- and session-scoped fixtures (the model) are set up once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from pytest_adaptive_eval.config import Evaluation
from pytest_adaptive_eval.core.gates import ERROR_SHARE, ERRORS_IN_A_ROW, SessionResult
from pytest_adaptive_eval.core.item import Item, Response, Status
from pytest_adaptive_eval.core.record import Administration, InterviewRecord, plain
from pytest_adaptive_eval.core.selection import Proposal
from pytest_adaptive_eval.core.session import Session
from pytest_adaptive_eval.core.stopping import StopReason
from pytest_adaptive_eval.errors import AdaptiveEvalError, Unscored
from pytest_adaptive_eval.models.base import Subject, SubjectIdentity
from pytest_adaptive_eval.store.journal import Journal, answer_key, interview_key

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.run import AdaptiveEval

__all__ = ["PLACEHOLDER", "PROPERTY", "AskedItem", "Interview", "Question", "is_placeholder", "question"]

#: Value of the parameter ``item`` at collection.
PLACEHOLDER = object()
#: How the placeholder's id begins; a bank's name follows.
PARAMETER = "aeval:"
#: Property by which reports of questions are known.
PROPERTY = "adaptive_eval"


def is_placeholder(node: object) -> bool:
    """Whether pytest collected `node` from a function of ours."""
    return (
        isinstance(node, pytest.Function)
        and getattr(node, "callspec", None) is not None
        and (node.callspec.params.get("item") is PLACEHOLDER)
    )


class AskedItem:
    """What a test gets as ``item``: the bank's item, and a way to score it.

    Attributes of `pytest_adaptive_eval.core.item.Item` are read through.
    """

    def __init__(self, item: Item) -> None:
        self.item = item
        self.given: float | None = None
        self.text = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.item, name)

    def __repr__(self) -> str:
        return f"<item {self.item.id}>"

    def grade(self, text: str) -> float:
        """Score of an answer in [0, 1] by the item's own grader; the answer is kept for the record."""
        self.text = str(text)
        return self.item.grade(self.text)

    def score(self, value: float) -> None:
        """Set the score, in [0, 1], instead of right or wrong."""
        number = float(value)
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"item.score({value!r}): a score lies in [0, 1]")
        self.given = number


def question(template: pytest.Function, item: Item) -> Question:
    """The test of one item, made from the placeholder or a function like it."""
    asked = AskedItem(item)
    spec = template.callspec
    ids = [item.id if part.startswith(PARAMETER) else part for part in spec._idlist]
    made = Question.from_parent(
        template.parent,
        name=f"{template.originalname}[{'-'.join(ids)}]",
        # no public name makes a callspec or tells a function's fixtures; both have held since pytest 8.0
        callspec=dataclasses.replace(spec, params={**spec.params, "item": asked}, _idlist=ids),
        fixtureinfo=template._fixtureinfo,
        originalname=template.originalname,
    )
    for mark in template.own_markers:  # marks added late, by hooks
        if mark not in made.own_markers and mark is not getattr(template, "untimed", None):
            made.own_markers.append(mark)
            made.keywords[mark.name] = mark
    made.asked = asked
    return cast(Question, made)


class Question(pytest.Function):
    """One administered question; a failed assertion is a wrong answer and passes."""

    asked: AskedItem
    #: The interview and the record of this administration; None when the question is run alone.
    interview: Interview | None = None
    entry: Administration | None = None
    response: Response | None = None
    fault = ""

    def runtest(self) -> None:
        """Run the test, or take the answer that the journal already has."""
        if self.interview is None or self.entry is None:
            super().runtest()
            if self.asked.given is not None and self.asked.given < 1:
                raise AssertionError(f"score {self.asked.given:g} of 1")
            return
        start = time.perf_counter()
        try:
            self.response = self.interview.recall(self)
            if self.response is None:
                self.response = self._answer()
                self.interview.remember(self, self.response)
        finally:
            self.entry.seconds = time.perf_counter() - start
            self._properties()

    def _answer(self) -> Response:
        try:
            super().runtest()
        except AssertionError:
            return Response(Status.OK, 0.0, self.asked.text)
        except Unscored as fault:
            status = Status(fault.status)
            response = Response(status, None, fault.text or self.asked.text, fault.detail)
            if status.infrastructure:
                self.response = response
                raise
            return response
        except pytest.fail.Exception as fault:
            if str(fault.msg).startswith("Timeout"):  # pytest-timeout's signal method
                self.response = Response(Status.TIMEOUT, None, self.asked.text, str(fault.msg))
            raise
        given = 1.0 if self.asked.given is None else self.asked.given
        return Response(Status.OK, given, self.asked.text)

    def _properties(self) -> None:
        entry, response = cast(Administration, self.entry), self.response
        status = response.status.value if response else Status.ERROR.value
        score = response.score if response else None
        self.user_properties.append((PROPERTY, "unscored" if score is None else f"{score:g}"))
        for name in ("position", "propensity", "predicted"):
            value = getattr(entry, name)
            if value is not None:
                self.user_properties.append((name, f"{value:.6g}"))
        self.user_properties.append(("status", status))


class Interview(pytest.Function):
    """The placeholder of one subject and one bank."""

    evaluation: Evaluation
    state: AdaptiveEval
    record: InterviewRecord | None = None
    result: SessionResult | None = None
    #: Keeps pytest-timeout from taking the whole interview for one test; not for the questions.
    untimed: pytest.Mark | None = None

    @property
    def aliases(self) -> set[str]:
        """Names by which a gate may ask for this interview."""
        return {self.evaluation.name, self.evaluation.bank.name, self.nodeid}

    def administer(self) -> None:
        """Ask questions until the session ends."""
        evaluation = self.evaluation
        self._session = Session(evaluation.bank, evaluation.policy, seed=evaluation.stream)
        self._identity = SubjectIdentity("")
        self._journal: Journal | None = None
        self._bound = False
        self._answers: list[Administration] = []
        self._statuses: Counter[str] = Counter()
        self._error = ""
        start = time.monotonic()
        try:
            while not self._error and (proposal := self._session.ask()) is not None:
                scores = [response.score for response in self._batch(proposal)]
                if len(scores) < proposal.items.shape[1]:
                    break  # cut off within a batch
                self._session.tell(np.array([[np.nan if s is None else s for s in scores]], dtype=float))
                after = plain(self._session.estimate.theta[0]) if evaluation.bank.calibrated else None
                for entry in self._answers[-len(scores) :]:
                    entry.theta_after = after
            if not self._session.finished:
                self._session.end(StopReason.ERRORS if self._error else StopReason.INTERRUPTED)
                self._error = self._error or "the run was interrupted before the interview ended"
        finally:
            if self._journal is not None:
                self._journal.close()
        self._finish(time.monotonic() - start)

    def _batch(self, proposal: Proposal) -> Iterator[Response]:
        """Run the questions of one proposal, up to the end of the batch or of the interview."""
        bank = self.evaluation.bank
        before = plain(self._session.estimate.theta[0]) if bank.calibrated else None
        questions: list[Question] = []
        for j, i in enumerate(proposal.items[0].tolist()):
            try:
                item = bank.items[i]
            except AdaptiveEvalError as error:
                self._error = str(error)
                return
            made = question(self, item)
            made.interview = self
            made.entry = Administration(
                position=len(self._answers) + len(questions) + 1,
                item=item.id,
                item_hash=item.content_hash,
                format=item.formats[0],
                propensity=plain(float(proposal.propensities[0, j])),
                predicted=plain(float(proposal.predictions[0, j])) if bank.calibrated else None,
                rest=plain(float(proposal.rest[0, j])),
                variance=plain(float(proposal.variance[0, j])),
                theta_before=before,
                category=list(item.category),
                reason=self._reason(),
            )
            questions.append(made)
        self._pending = questions
        for made in questions:
            with self.state.in_place_of(self, made):
                self.ihook.pytest_runtest_protocol(item=made, nextitem=self)
            yield self._take(made)
            self._check_errors()
            if self._error or self.session.shouldstop or self.session.shouldfail:
                return

    def _reason(self) -> str:
        policy = self.evaluation.policy
        if policy.selector.mode == "top" and policy.floor == 0:
            return f"highest {policy.selector.name.removeprefix('maximum-')}"
        if policy.selector.name == "random":
            return "drawn uniformly"
        return f"drawn by {policy.selector.name}, {policy.floor:.0%} uniformly"

    def _take(self, made: Question) -> Response:
        response = made.response or Response(Status.ERROR, detail=made.fault or "the test did not run")
        entry = cast(Administration, made.entry)
        entry.status, entry.score = response.status.value, response.score
        entry.text, entry.detail = plain(response.text), plain(response.detail or made.fault)
        self._answers.append(entry)
        self._statuses[response.status.value] += 1
        return response

    def _check_errors(self) -> None:
        bad = [Status(entry.status).infrastructure for entry in self._answers]
        if len(bad) >= ERRORS_IN_A_ROW and all(bad[-ERRORS_IN_A_ROW:]):
            what = f"{ERRORS_IN_A_ROW} answers in a row could not be had"
        elif sum(bad) > ERROR_SHARE * self.evaluation.budget:
            what = f"{sum(bad)} answers could not be had, more than {ERROR_SHARE:.0%} of the budget"
        else:
            return
        last = next(entry for entry in reversed(self._answers) if Status(entry.status).infrastructure)
        self._error = f"{what}; the last: {' '.join(last.detail.split())[:200] or last.status}"

    def bind(self, funcargs: dict[str, Any]) -> None:
        """Learn who answers, once the first question's fixtures are set up, and open the journal."""
        self._bound = True
        subject = next((v for v in funcargs.values() if isinstance(v, Subject)), None) or funcargs.get("model")
        identity = getattr(subject, "identity", None)
        self._subject = subject
        if isinstance(identity, SubjectIdentity):
            self._identity = identity
        elif subject is not None:
            self._identity = SubjectIdentity(getattr(subject, "__name__", type(subject).__name__))
        if not self._identity.checkpoint:
            return  # without knowing who answers, an answer may not outlive the run
        evaluation = self.evaluation
        key = interview_key(
            name=f"{self.nodeid} {evaluation.name}",
            bank=evaluation.bank.content_hash,
            scale=evaluation.bank.scale,
            policy={**evaluation.policy.to_json(), "budget": evaluation.budget},
            seed=evaluation.stream,
            checkpoint=self._identity.checkpoint,
            decoding=self._identity.decoding_hash,
        )
        path = self.state.folder / "journal" / f"{key}.jsonl"
        if self.state.settings.fresh:
            path.unlink(missing_ok=True)
        self._journal = Journal(path)

    def _key(self, made: Question) -> str:
        item = made.asked.item
        entry = cast(Administration, made.entry)
        prompt = json.dumps([item.prompt, [dict(m) for m in item.messages], item.images], sort_keys=True)
        return answer_key(
            item_hash=entry.item_hash,
            format=entry.format,
            sample=entry.sample,
            prompt_hash=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16],
            checkpoint=self._identity.checkpoint,
            decoding=self._identity.decoding_hash,
        )

    def recall(self, made: Question) -> Response | None:
        """The answer that an earlier, killed run of this interview left, if any."""
        if not self._bound:
            self.bind(made.funcargs)
        known = self._journal.get(self._key(made)) if self._journal else None
        if known is not None:
            cast(Administration, made.entry).resumed = True
            return Response(Status(known["status"]), known["score"], known["text"], known["detail"])
        self._prefetch(made)
        return None

    def _prefetch(self, made: Question) -> None:
        """Have the whole batch answered in one call, when its first unanswered question comes."""
        if len(self._pending) > 1 and isinstance(self._subject, Subject):
            rest = self._pending[self._pending.index(made) :]
            known = self._journal
            self._subject.prefetch([q.asked.item for q in rest if known is None or known.get(self._key(q)) is None])
            self._pending = [made]

    def remember(self, made: Question, response: Response) -> None:
        """Write an answer to the journal, unless it is a fault of the run."""
        if self._journal is not None and not response.status.infrastructure:
            self._journal.append(
                self._key(made),
                {
                    "item": made.asked.item.id,
                    "status": response.status.value,
                    "score": response.score,
                    "text": plain(response.text),
                    "detail": plain(response.detail),
                },
            )

    def _finish(self, seconds: float) -> None:
        evaluation, bank, session = self.evaluation, self.evaluation.bank, self._session
        calibrated_on = self._identity.name in bank.subjects
        notes = list(evaluation.notes)
        if calibrated_on:
            notes.append(f"{self._identity.name} is one of the subjects that calibrated the bank")
        self.result = SessionResult.of(
            evaluation.name, session, statuses=self._statuses, error=self._error, notes=notes
        )
        interval, model = self.result.interval(), self.result.model
        self.record = InterviewRecord(
            name=evaluation.name,
            nodeid=self.nodeid,
            subject=self._identity.to_json(),
            bank={
                "name": bank.name,
                "content_hash": bank.content_hash,
                "scale": bank.scale,
                "size": len(bank),
                "calibrated": bank.calibrated,
                "model": bank.model,
                "trusted": bank.report.get("trusted") is not False,
                "calibration_subject": calibrated_on,
            },
            policy={**evaluation.policy.to_json(), "seed": evaluation.seed, "stream": str(evaluation.stream)},
            asked=len(self._answers),
            scored=self._statuses[Status.OK.value],
            size=len(bank),
            statuses=dict(self._statuses),
            stop=session.stop[0].name if session.stop[0] else "",
            stop_sentence=session.stop[0].value if session.stop[0] else "",
            theta=self.result.theta,
            standard_error=self.result.standard_error,
            accuracy=interval.to_json() if interval else None,
            accuracy_model=model.to_json() if model else None,
            seconds=round(seconds, 3),
            error=self._error,
            administrations=self._answers,
        )
        if self._journal is not None:
            self.record.extra["journal"] = self._journal.path.name

    def runtest(self) -> None:
        """Fail when the interview is void; wrong answers never fail it."""
        if self.record is None:
            pytest.fail("the interview did not take place", pytrace=False)
        for name in ("asked", "scored", "size", "stop_sentence"):
            self.user_properties.append((name, str(getattr(self.record, name))))
        if self.record.error:
            pytest.fail(f"ERROR {self.record.name}: {self.record.error}", pytrace=False)
