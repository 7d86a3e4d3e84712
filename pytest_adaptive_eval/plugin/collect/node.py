"""The test of an evaluation of any kind: it runs the evaluation, and fails if that is void.

An interview costs one collected item whatever its bank's size. When its turn comes it asks its session for questions,
runs each through pytest's own protocol as an ordinary parametrized test, and then lets pytest run this test. Questions
and test have the same parent, so module- and session-scoped fixtures (the model) are set up once.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError
from pytest_adaptive_eval.evaluation import Evaluation, GatePlan, Interview
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.plugin.ask.answer_recorder import SHARED_NOTE
from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
from pytest_adaptive_eval.plugin.progress import Progress
from pytest_adaptive_eval.plugin.report.finish import finish
from pytest_adaptive_eval.plugin.state import EvaluationNode, RunState, sets_up_only
from pytest_adaptive_eval.records.parts import Costs, QuantityRecord, converted, plain
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.text import clean_xml, number

LINES = 10  #: Lines of progress on a terminal that cannot rewrite one.


class EvaluationTest(EvaluationNode):
    """The test of one evaluation, and its result."""

    skipped = ""  #: Why the user's own marks or fixtures skip this interview.
    fault: Exception | None = None  #: An error that is not of this package, such as in a grader of the user's.

    def plan(self, evaluation: Evaluation, state: RunState) -> None:
        """Set the evaluation, and add the test to the run's."""
        self.evaluation, self.gate_plan = evaluation, GatePlan()
        self.register(state)

    def administer(self) -> None:
        """Run the evaluation in the way of its kind."""
        self.evaluation.administer(self)

    def ask(self, interview: Interview) -> None:
        """Ask the questions of an interview until its session ends."""
        start, loop = clock.elapsed(), AskingLoop(self, interview)
        with closing(loop.session):
            loop.run()
            self.skipped = loop.skipped
            if not sets_up_only(self.config):
                self.result, self.record = finish(loop, clock.elapsed() - start)

    def hold(self, evaluation: Evaluation) -> None:
        """Let an evaluation call its models, with the stored replies of an earlier run."""
        from pytest_adaptive_eval.models.request_keys import request_key
        from pytest_adaptive_eval.models.store import CompletionStore

        if sets_up_only(self.config):
            return
        start, state, usage = clock.elapsed(), self.state, False
        progress = Progress(self.config, evaluation.name, LINES)
        path = state.journal_path(request_key(self.nodeid, evaluation.name, evaluation.kind, evaluation.to_json()))
        try:
            with CompletionStore(path, shared=state.answers, fresh=state.settings.fresh) as journal:
                result = evaluation.hold(journal, progress)
        except Exception as error:  # it voids this evaluation only
            reason, usage = str(error), isinstance(error, UsageError)
            if not isinstance(error, AdaptiveEvalError):
                self.fault, reason = error, f"{type(error).__name__}: {error}"
            result = replace(evaluation.void(reason), broken=True)
        finally:
            progress.end()
        self.set_result(result)
        notes = [*result.notes, *([SHARED_NOTE] if state.answers is not None else [])]
        seconds = round(clock.elapsed() - start, 3)
        self.record = _record(self.nodeid, evaluation, result, notes=plain(notes), seconds=seconds, usage_error=usage)
        self.record.journal = "" if result.broken else path.name

    def runtest(self) -> None:
        """Fail when the evaluation is void, or failed items that must pass with no gate to say so.

        Wrong answers to other items never fail it.
        """
        if self.skipped:
            pytest.skip(self.skipped)
        if self.record is None:
            pytest.fail("the evaluation did not take place", pytrace=False)
        for name, value in self.record.facts().items():
            if value is not None:
                text = number(value) if isinstance(value, float) else str(value)
                self.user_properties.append((name, clean_xml(text, 200)))
        if self.fault is not None:
            raise self.fault
        if self.record.error:
            pytest.fail(f"ERROR {self.record.name}: {self.record.error}", pytrace=False)
        answers = self.result.must_pass if self.result is not None else ()
        if not self.gate_plan.judged and any(answer.failed for answer in answers):
            pytest.fail(f"FAIL {self.record.name}: {must_pass_sentence(answers)}; no gate judges it", pytrace=False)


def _record(nodeid: str, evaluation: Evaluation, result: Result, **facts: Any) -> EvaluationRecord:
    """Return the record of an evaluation that called its models itself."""
    candidate = SubjectIdentity(result.candidate)
    return EvaluationRecord(
        name=evaluation.name,
        nodeid=nodeid,
        kind=evaluation.kind,
        subject=next((member for member in result.members if member.name == result.candidate), candidate),
        members=list(result.members),
        metrics=converted(dict[str, list[QuantityRecord]], plain(result.findings())),
        asked=result.asked,
        size=result.size,
        unit=result.unit,
        account=plain(result.account),
        costs=result.costs or Costs(),
        error=plain(result.error),
        population=evaluation.population,
        opinion="judgments" in result.account,
        **facts,
    )
