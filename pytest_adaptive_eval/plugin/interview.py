"""An interview as pytest items: one placeholder that is collected, and questions made on the fly.

Collecting a bank costs one item whatever its size.  When the placeholder's turn
comes it asks its session for questions, runs each through pytest's own protocol
as an ordinary parametrized test, and then lets pytest run the placeholder, which
fails if the interview is void.  Questions and placeholder have the same parent,
so that module- and session-scoped fixtures (the model) are set up once.
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason, repeats
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.config import Evaluation
from pytest_adaptive_eval.errors import AdaptiveEvalError, BaselineError, ConfigError, JournalError, UsageError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.misfit import with_misfit_note
from pytest_adaptive_eval.gates.planning import outlook_sentence
from pytest_adaptive_eval.gates.result import UNREADABLE_SHARE, SessionResult
from pytest_adaptive_eval.inference.design import Proposal
from pytest_adaptive_eval.inference.noise import item_score
from pytest_adaptive_eval.items.item import Response, Status, length_note
from pytest_adaptive_eval.plugin.completions import prefetch
from pytest_adaptive_eval.plugin.decoding import DecodingCheck
from pytest_adaptive_eval.plugin.fingerprint import source_hash
from pytest_adaptive_eval.plugin.model_fixture import check_scope, who_answers
from pytest_adaptive_eval.plugin.question import Once, Question, question
from pytest_adaptive_eval.plugin.randomness import GeneratorStates
from pytest_adaptive_eval.plugin.recording import costs_of, journaled, noise_notes, recorded, too_many_errors
from pytest_adaptive_eval.records.baseline import BaselineFile
from pytest_adaptive_eval.records.journal import Journal, answer_key, interview_key
from pytest_adaptive_eval.records.run_record import Administration, InterviewRecord, noise_of, plain
from pytest_adaptive_eval.subjects.base import Subject, SubjectIdentity, Usage

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.state import RunState

__all__ = ["Interview"]

#: What is recorded of a draw, and the columns of a `Proposal` that hold it.
_DRAWN = {
    "propensity": "propensities",
    "predicted": "predictions",
    **{name: name for name in ("rest", "variance", "down", "up")},
}
#: Of the seed by which items are drawn that are asked again.
_AGAIN = 1
_sorted = json.JSONEncoder(sort_keys=True).encode


class Interview(Once):
    """The placeholder of one subject and one bank."""

    evaluation: Evaluation
    state: RunState
    #: What the gates of this run will ask for, as far as it could be read from them.
    planned: list[Condition]
    #: Gates of which that could not be read.
    unplanned: list[str]
    #: What paired gates compare with, by the name that they use.
    sources: dict[str, Interview | BaselineFile]
    #: Baselines that are not there yet, and why.
    absent: dict[str, str]
    record: InterviewRecord | None = None
    result: SessionResult | None = None
    _error, _usage = "", False
    _journal: Journal | None = None
    _identity = SubjectIdentity("")
    _compared: dict[str, BaselineFile] | None = None
    _varies: DecodingCheck | None = None
    #: Why the user's own marks or fixtures skip this interview.
    skipped = ""
    #: How often another plugin ran a question again, which asked nothing.
    reruns = 0
    #: Random state that its questions share.
    generators: GeneratorStates
    #: Keeps pytest-timeout from the placeholder, which tears the model down; not from the questions.
    untimed: pytest.Mark | None = None

    @property
    def aliases(self) -> set[str]:
        """Names by which a gate may ask for this interview."""
        return {self.evaluation.name, self.evaluation.bank.name, self.nodeid}

    def _baselines(self) -> dict[str, BaselineFile]:
        """Return the baselines by name, including other interviews of this run."""
        if self._compared is None:
            self._compared = {name: self._baseline(name, source) for name, source in self.sources.items()}
        return self._compared

    def _baseline(self, name: str, source: Interview | BaselineFile) -> BaselineFile:
        if isinstance(source, BaselineFile):
            return source
        _, result = self.state.lookup(source.nodeid)
        assert isinstance(result, SessionResult)
        if result.fault:
            raise BaselineError(f"the baseline {name!r} gave no answers to compare with: {result.fault}")
        scores = np.full(len(result.bank), np.nan)
        scores[result.log.items] = result.log.scores
        subject = result.subject
        twins = result.bank.content_hash != self.evaluation.bank.content_hash
        baseline = Baseline(
            subject.get("name") or name, scores, result.log, climbed=result.climb is not None, twins=twins
        )
        # two tests of one run stand side by side, and are never the same: what they ask is for the reader to compare
        return BaselineFile(baseline, f"evaluation {name!r}", subject.get("decoding", ""))

    def plan(self) -> dict[str, Any]:
        """Return what a result needs from the gates: keyword arguments of `SessionResult.of`."""
        return {
            "planned": tuple(self.planned),
            "family": self.state.family,
            "baselines": {name: file.baseline for name, file in self._baselines().items()},
            "absent": self.absent,
        }

    def outlook(self, condition: Condition) -> str:
        """Return a sentence on a gate's expected result with the budget."""
        evaluation = self.evaluation
        source = self.sources.get(condition.name)
        baseline = source.baseline if isinstance(source, BaselineFile) else None
        policy, budget = evaluation.policy, evaluation.budget
        return outlook_sentence(condition, evaluation.bank, policy, budget, evaluation.name, baseline)

    def setup(self) -> None:
        """Do nothing: fixtures belong to the questions, and some of them would read the placeholder."""

    def give_up(self, sentence: str, *, usage: bool = False, fault: StopReason = StopReason.GIVEN_UP) -> None:
        """End the interview as void; the first reason stands."""
        if not self._error:
            self._error, self._usage, self._fault = sentence, usage, fault if self._bound else StopReason.UNASKED

    def administer(self) -> None:
        """Ask questions until the session ends."""
        evaluation = self.evaluation
        self._hook = self.ihook
        self._identity = SubjectIdentity("")
        self._bound, self._decoding, self._error, self._usage = False, "", "", False
        self._answers_by = "model"
        self.reruns, self.generators = 0, GeneratorStates(f"{self.nodeid} {evaluation.stream}")
        self._subject: Any = None
        self._spent = Usage()
        self._answers: list[Administration] = []
        self._statuses: Counter[str] = Counter()
        self._chances: list[float] = []
        self._texts = self._unreadable = 0
        start = time.monotonic()
        try:
            self._session = self._open()
        except AdaptiveEvalError as error:
            self._session = Session(evaluation.bank, evaluation.policy, seed=evaluation.stream)
            self.give_up(str(error), usage=isinstance(error, UsageError))
        try:
            self._ask()
            self._ask_again()
        except AdaptiveEvalError as error:
            self.give_up(str(error), usage=isinstance(error, UsageError))
        finally:
            if self._journal is not None:
                self._journal.close()
        with closing(self._session):
            if self.config.getoption("setuponly", False):
                return
            if not self._session.finished:
                self._session.end(self._fault if self._error else StopReason.INTERRUPTED)
                self.give_up("the run was interrupted before the interview ended")
            self._finish(time.monotonic() - start)

    def _open(self) -> Session:
        """Create the session, with the gate conditions that could be read."""
        evaluation, bank = self.evaluation, self.evaluation.bank
        baselines: dict[str, Baseline] = self.plan()["baselines"]
        claims = [claim for c in self.planned if c.by_draws for claim in c.claims(bank, baselines)]
        cuts = [cut for c in self.planned for cut in c.measure.cuts(c, bank)]
        stops = not self.unplanned and not self.absent and not any(c.whole for c in self.planned)
        drawn = [b for b in baselines.values() if not b.climbed]
        complete = [b for b in drawn if b.complete]
        partial = [b for b in drawn if not b.complete]
        if len(partial) > 1 or (partial and complete):
            raise BaselineError(
                f"{evaluation.name}: several baselines, of which {partial[0].name!r} answered some items only, cannot "
                "be followed at once: record it on the whole bank, or compare in evaluations of their own"
            )
        return Session(
            bank,
            evaluation.policy,
            seed=evaluation.stream,
            claims=claims if stops else (),
            family=self.state.family,
            cuts=cuts if stops else (),
            baseline=next(iter([*complete, *partial]), None),
            decodings=0 if evaluation.repeat is None else evaluation.decodings,  # None: `bind` learns who answers
        )

    @property
    def _over(self) -> bool:
        """Whether no further question may be asked, whatever the session wants."""
        return bool(self._error or self.session.shouldstop or self.session.shouldfail)

    def _ask(self) -> None:
        while not self._over and (proposal := self._session.ask()) is not None:
            first = len(self._answers)
            scores = self._scores(proposal)
            if self.config.getoption("setuponly", False):
                break  # nothing is asked at all
            self._session.tell(np.array([[np.nan if s is None else s for s in scores]], dtype=float))
            after = self._ability
            for entry in self._answers[first:]:
                entry.theta_after = after

    def _ask_again(self) -> None:
        """Administer some items once more, drawn uniformly, to measure decoding noise."""
        if self._varies is not None:
            self.evaluation = self._varies.again(self.evaluation, self._answers)
        evaluation = self.evaluation
        items = self._session.log().items
        count = repeats(evaluation.repeat, len(items)) if self._session.finished else 0
        rng = np.random.default_rng((evaluation.stream, _AGAIN))
        drawn = rng.choice(items, count, replace=False).tolist() if count else []
        while drawn and not self._over:
            batch = enumerate(drawn[: evaluation.policy.batch], 1)
            del drawn[: len(self._run_all([self._question(i, offset, evaluation.samples) for offset, i in batch]))]
        if drawn:
            self.give_up("the run was interrupted before the items were asked again that measure the noise of decoding")

    @property
    def _ability(self) -> list[float] | None:
        """As it is estimated now; None on an uncalibrated bank."""
        return plain(self._session.estimate.theta[0].tolist()) if self.evaluation.bank.calibrated else None

    def _scores(self, proposal: Proposal) -> list[float | None]:
        """Return item scores of one proposal, up to the end of the batch or of the interview."""
        bank, samples = self.evaluation.bank, self.evaluation.samples
        before, items = self._ability, proposal.items[0]
        columns = {name: plain(getattr(proposal, column)[0].tolist()) for name, column in _DRAWN.items()}
        if bank.calibrated and bank.dimensions == 1:
            columns["difficulty"] = plain(bank.difficulty_of(items).tolist())
        questions: list[Question] = []
        for row, i in enumerate(items.tolist()):
            details = {name: column[row] for name, column in columns.items()}
            details |= {"theta_before": before, "reason": self._session.reason(i)}
            for sample in range(samples):
                questions.append(self._question(i, len(questions) + 1, sample, **details))
        response_scores = [response.score for response in self._run_all(questions)]
        response_scores += [None] * (-len(response_scores) % samples)  # of an item in whose midst the interview ended
        return [item_score(response_scores[n : n + samples]) for n in range(0, len(response_scores), samples)]

    def _question(self, index: int, offset: int, sample: int, **details: Any) -> Question:
        """The test of one item of the bank, the next but `place` - 1; without what is `known` of a draw, a repeat."""
        item = self.evaluation.bank.items[index]
        test = question(self, item, sample)
        test.interview, test.ihook = self, self._hook
        test.entry = Administration(
            position=len(self._answers) + offset,
            item=item.id,
            item_hash=item.content_hash,
            format=item.formats[0],
            sample=sample,
            category=list(item.category),
            **(details or {"reason": "asked again, to measure the noise of decoding", "theta_before": self._ability}),
        )
        return test

    def _run_all(self, questions: list[Question]) -> list[Response]:
        """Run questions that are answered together, up to the last or to the end of the interview."""
        self._pending = questions
        responses = []
        for test in questions:
            self._run(test)
            responses.append(response := self._take(test))
            test.keywords = {}  # pytest's refer back to the test, which would stay until the collector finds it
            if response.status.infrastructure:
                self._check_errors()
            if self._over:
                break
        return responses

    def _run(self, test: Question) -> None:
        """Run a question in pytest's own protocol."""
        # on a worker it stands where its interview does meanwhile: xdist checks reports against that list
        items = self.session.items
        at = next((n for n, item in enumerate(items) if item is self), None) if self.state.worker else None
        if at is not None:
            items[at] = test
        try:
            self._hook.pytest_runtest_protocol(item=test, nextitem=self)
        finally:
            if at is not None:
                items[at] = self

    def _take(self, test: Question) -> Response:
        response = test.response or Response(Status.ERROR, detail=test.fault or "the test did not run")
        entry = cast(Administration, test.entry)
        storable = test.lasting or not response.status.infrastructure
        if self._journal is not None and storable and not entry.resumed:
            try:
                asked = test.asked
                self._journal.append(self._key(test), {**journaled(asked.item, response), "graded": asked.graded})
            except JournalError as error:  # an answer that could not be kept does not count
                response = Response(Status.ERROR, None, response.text, str(error))
                self.give_up(str(error), usage=True)
        entry.status, entry.score = response.status.value, response.score
        entry.text = plain(response.text)
        entry.detail = plain(response.detail or test.fault or length_note(response.text))
        self._answers.append(entry)
        item = test.asked.item
        if not entry.sample:
            self._chances.append(1.0 / len(item.choices) if len(item.choices) > 1 else np.nan)
        if response.status is Status.OK and (response.text or test.asked.read):
            self._texts += 1
            self._unreadable += not item.readable(response.text)
        self._statuses[response.status.value] += 1
        return response

    def _check_errors(self) -> None:
        if sentence := too_many_errors(self._answers, self.evaluation.questions):
            self.give_up(sentence, fault=StopReason.ERRORS)

    def bind(self, funcargs: dict[str, Any]) -> None:
        """Identify the subject once the first question's fixtures are set up, and open the journal."""
        self._bound = True
        name, subject, identity = who_answers(funcargs)
        self._answers_by = name
        self._subject = subject
        self._spent = subject.usage if isinstance(subject, Subject) else Usage()
        if isinstance(subject, Subject):
            check_scope(self, name, self.evaluation.name)
            subject.prepare(self.evaluation.bank.items)
            if self.evaluation.repeat is not None and self.evaluation.decodings and not subject.varies:
                raise ConfigError(
                    f"{self.evaluation.name}: samples and repeat ask an item anew, and {name!r} has one recorded "
                    "answer to it: remove samples and repeat, or ask a model"
                )
        self._decoding = identity.decoding_hash  # refused before it is taken up, where it is none
        self._identity = identity
        for file in self._baselines().values():
            file.check(decoding=self._decoding, prompt=self._code)
        if self.evaluation.allows_for_noise and getattr(subject, "varies", True):
            self._varies = DecodingCheck(self.state.folder, self.evaluation, identity, self._code)
        self.evaluation = self.evaluation.for_subject(samples=bool(self._varies and self._varies.reason))
        self._session.decodings = self.evaluation.decodings
        if not self._identity.checkpoint:
            return  # without knowing who answers, an answer may not outlive the run
        evaluation = self.evaluation
        key = interview_key(
            name=f"{self.nodeid} {evaluation.name} {self._code}",
            bank=evaluation.bank.content_hash,
            scale=evaluation.bank.scale,
            policy={
                **evaluation.policy.to_json(),
                "budget": evaluation.budget,
                "samples": evaluation.samples,
                "repeat": str(evaluation.repeat),
            },
            seed=evaluation.stream,
            checkpoint=self._identity.checkpoint,
            decoding=self._decoding,
        )
        self._journal = Journal(self.state.folder / "journal" / f"{key}.jsonl", fresh=self.state.settings.fresh)

    @functools.cached_property
    def _code(self) -> str:
        return source_hash(self, self.config.rootpath, self.state.settings.graders, self._answers_by)

    def _key(self, test: Question) -> str:
        if not test.key:
            item = test.asked.item
            entry = cast(Administration, test.entry)
            prompt = item.prompt
            if item.messages or item.images:
                prompt = _sorted([prompt, [dict(m) for m in item.messages], item.images])
            test.key = answer_key(
                item_hash=entry.item_hash,
                format=entry.format,
                sample=entry.sample,
                prompt_hash=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16],
                checkpoint=self._identity.checkpoint,
                decoding=self._decoding,
            )
        return test.key

    def recall(self, test: Question) -> Response | None:
        """Return the answer that an interrupted run of this interview left, if any."""
        if not self._bound:
            self.bind(test.funcargs)
        stored = self._journal.get(self._key(test)) if self._journal else None
        if stored is not None:
            cast(Administration, test.entry).resumed = True
            return test.regraded(stored, cast(Journal, self._journal).path)
        self._prefetch(test)
        return None

    def _prefetch(self, test: Question) -> None:
        """Have the whole batch answered in one call, when its first unanswered question comes."""
        if len(self._pending) > 1 and isinstance(self._subject, Subject):
            rest = self._pending[self._pending.index(test) :]
            prefetch(self._subject, rest, self._journal, self._key)
            self._pending = [test]

    def _finish(self, seconds: float) -> None:
        evaluation, bank, session = self.evaluation, self.evaluation.bank, self._session
        notes = list(evaluation.notes)
        if self._identity.name in bank.subjects:
            notes.append(f"{self._identity.name} is one of the subjects that calibrated the bank")
        if self.unplanned and session.policy.stop == "decision":
            notes.append(
                f"the whole budget was asked, since what {self.unplanned[0]} asks for is not written as plain values"
            )
        if self.absent and session.policy.stop != "level":
            notes.append("the whole budget was asked, so that the run's record can serve as a baseline")
        files = [file for file in self.sources.values() if isinstance(file, BaselineFile)]
        notes += filter(None, (file.age(datetime.now(UTC)) for file in files))
        if self.reruns:
            notes.append(
                f"another plugin ran questions again, {self.reruns} times in all: each was asked once, and its first "
                "result counts"
            )
        noise = noise_of(self._answers, evaluation.samples, len(bank)) if evaluation.decodings else None
        notes += noise_notes(noise, self._identity, self._answers) if noise else []
        notes += self._varies.notes(noise, whole=len(session.log()) == len(bank)) if self._varies else []
        chance = float(np.mean(self._chances)) if self._chances else np.nan
        if self._texts and self._unreadable > UNREADABLE_SHARE * self._texts:
            self.give_up(
                f"{self._unreadable} of {self._texts} answers hold no answer at all (no letter, choice or number): "
                "check the prompt and the chat template, since the score would say nothing about the checkpoint"
            )
            if self._journal is not None:  # such answers are not worth going on from
                self._journal.path.unlink(missing_ok=True)
        try:
            plan = self.plan()
            notes += self._compared_with_itself()
        except AdaptiveEvalError:  # said already
            plan = {}
        result = SessionResult.of(
            evaluation.name,
            session,
            statuses=self._statuses,
            noise=noise.allowed if noise else None,
            error=self._error,
            chance=None if np.isnan(chance) else chance,
            notes=tuple(notes),
            subject={
                "name": self._identity.name,
                "checkpoint": self._identity.checkpoint,
                "decoding": self._decoding,
                "prompt": self._code,
            },
            **plan,
        )
        self.result = with_misfit_note(result)
        self.record = recorded(
            evaluation,
            self.nodeid,
            self.config.rootpath,
            self._identity,
            self.result,
            self._answers,
            conditions=self.planned,
            baselines=self._compared or {},
            noise=noise,
            seconds=seconds,
        )
        if code := self._code:
            self.record.extra["prompt"] = code
        self.record.interviewer = plain(session.account) or None
        if isinstance(self._subject, Subject):
            self.record.costs = costs_of(self._subject.usage - self._spent, self.record)
        if self._journal is not None:
            self.record.extra["journal"] = self._journal.path.name
        if self._usage:
            self.record.extra["usage_error"] = True

    def _compared_with_itself(self) -> list[str]:
        """Return notes on baselines of this run that are the candidate's own checkpoint."""
        results = {n: self.state.lookup(s.nodeid)[1] for n, s in self.sources.items() if isinstance(s, Interview)}
        checkpoint = self._identity.checkpoint
        return [
            f"the baseline {name!r} is the same checkpoint, {self._identity.name}"
            for name, result in results.items()
            if isinstance(result, SessionResult) and checkpoint and result.subject.get("checkpoint") == checkpoint
        ]

    def runtest(self) -> None:
        """Fail when the interview is void; wrong answers never fail it."""
        if self.skipped:
            pytest.skip(self.skipped)
        if self.record is None:
            pytest.fail("the interview did not take place", pytrace=False)
        for name in ("asked", "scored", "size", "stop_sentence"):
            self.user_properties.append((name, str(getattr(self.record, name))))
        if self.record.error:
            pytest.fail(f"ERROR {self.record.name}: {self.record.error}", pytrace=False)
