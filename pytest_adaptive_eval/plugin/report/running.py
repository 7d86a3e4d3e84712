"""Run the evaluation of a test, by questions that are tests of their own or by calls of the evaluation itself."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError
from pytest_adaptive_eval.evaluation import Evaluation, Interview
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.plugin.ask.answers import SHARED_NOTE
from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
from pytest_adaptive_eval.plugin.progress import Progress
from pytest_adaptive_eval.plugin.report.finish import finish
from pytest_adaptive_eval.plugin.state import EvaluationTest, sets_up_only
from pytest_adaptive_eval.records.parts import Costs, QuantityRecord, converted, plain
from pytest_adaptive_eval.records.run_record import EvaluationRecord

LINES = 10  #: Lines of progress on a terminal that cannot rewrite one.


class EvaluationRunner:
    """Runs the evaluation of a test, and sets the test's result and record."""

    def __init__(self, test: EvaluationTest) -> None:
        self._test = test

    def ask(self, interview: Interview) -> None:
        """Ask the questions of an interview until its session ends."""
        test = self._test
        start = clock.elapsed()
        loop = AskingLoop(test, interview)
        with closing(loop.session):
            loop.run()
            test.skipped = loop.skipped
            if not sets_up_only(test.config):
                test.result, test.record = finish(loop, clock.elapsed() - start)

    def hold(self, evaluation: Evaluation) -> None:
        """Let an evaluation call its models, with the stored replies of an earlier run."""
        from pytest_adaptive_eval.models.request_keys import request_key
        from pytest_adaptive_eval.models.store import CompletionStore

        test = self._test
        state = self._test.state
        start = clock.elapsed()
        usage = False
        if sets_up_only(test.config):
            return
        progress = Progress(test.config, evaluation.name, LINES)
        path = state.journal_path(request_key(test.nodeid, evaluation.name, evaluation.kind, evaluation.to_json()))
        try:
            with CompletionStore(path, shared=state.answers, fresh=state.settings.fresh) as journal:
                result = evaluation.hold(journal, progress)
        except Exception as error:  # it voids this evaluation only
            reason = str(error)
            usage = isinstance(error, UsageError)
            if not isinstance(error, AdaptiveEvalError):
                test.fault = error
                reason = f"{type(error).__name__}: {error}"
            result = replace(evaluation.void(reason), broken=True)
        finally:
            progress.end()
        test.set_result(result)
        test.record = record = _record(test.nodeid, evaluation, result)
        record.seconds = round(clock.elapsed() - start, 3)
        record.usage_error = usage
        record.notes += [SHARED_NOTE] if state.settings.names_reuse else []
        record.journal = "" if result.broken else path.name


def _record(nodeid: str, evaluation: Evaluation, result: Result) -> EvaluationRecord:
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
        notes=plain(result.notes),
        warnings=plain(result.warnings),
    )
