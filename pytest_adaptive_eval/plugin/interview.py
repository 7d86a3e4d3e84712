"""An interview as pytest items: one placeholder that is collected, and questions made on the fly.

Collecting a bank costs one item whatever its size. When the placeholder's turn comes it asks its session for questions,
runs each through pytest's own protocol as an ordinary parametrized test, and then lets pytest run the placeholder,
which fails if the interview is void. Questions and placeholder have the same parent, so module- and session-scoped
fixtures (the model) are set up once.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError
from pytest_adaptive_eval.evaluation import ComparablePlan, Evaluation, StudyPlan
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.gates.result import SessionResult, StudyResult
from pytest_adaptive_eval.plugin.asking import AskingLoop
from pytest_adaptive_eval.plugin.finish import finish
from pytest_adaptive_eval.plugin.gates import GatePlan
from pytest_adaptive_eval.plugin.progress import live_row
from pytest_adaptive_eval.plugin.recording import STUDY_NOTE
from pytest_adaptive_eval.plugin.state import EvaluationNode, sets_up_only
from pytest_adaptive_eval.records.parts import Costs, QuantityRecord, SubjectRecord, converted, plain
from pytest_adaptive_eval.records.run_record import InterviewRecord, StudyRecord
from pytest_adaptive_eval.text import clean_terminal, clean_xml, number


class Interview(EvaluationNode):
    """The placeholder of one subject and one bank."""

    noun = "interview"
    evaluation: Evaluation
    gate_plan: GatePlan
    record: InterviewRecord | None = None
    result: SessionResult | None = None
    shared_name = ""  #: Name before it was renamed, see `state.name_apart`.
    skipped = ""  #: Why the user's own marks or fixtures skip this interview.

    @property
    def aliases(self) -> set[str]:
        """Names by which a gate may ask for this interview."""
        return super().aliases | {self.evaluation.bank.name, self.shared_name or self.nodeid}

    def rename(self, name: str) -> None:
        """Give the evaluation another name; its draws stay as under the old one."""
        self.shared_name = self.evaluation.name
        self.gate_plan.evaluation = self.evaluation = replace(self.evaluation, name=name)

    def administer(self) -> None:
        """Ask questions until the session ends."""
        start = clock.elapsed()
        loop = AskingLoop(self, self.gate_plan)
        with closing(loop.session):
            loop.run()
            self.skipped = loop.skipped
            if not sets_up_only(self.config):
                self.result, self.record = finish(loop, clock.elapsed() - start)

    def restore(self, data: dict[str, Any]) -> None:
        """Set the result from the JSON data of the process that ran the interview."""
        self.result = SessionResult.from_json(data, self.evaluation.bank, **self.gate_plan.result_arguments())

    def runtest(self) -> None:
        """Fail when the interview is void, or failed items that must pass with no gate to say so.

        Wrong answers to other items never fail it.
        """
        if self.skipped:
            pytest.skip(self.skipped)
        if self.record is None:
            pytest.fail("the interview did not take place", pytrace=False)
        for name in ("asked", "scored", "size", "stop_sentence"):
            self.user_properties.append((name, str(getattr(self.record, name))))
        if self.record.error:
            pytest.fail(f"ERROR {self.record.name}: {self.record.error}", pytrace=False)
        answers = self.result.must_pass if self.result is not None else ()
        if not self.gate_plan.judged and any(answer.failed for answer in answers):
            pytest.fail(f"FAIL {self.record.name}: {must_pass_sentence(answers)}; no gate judges it", pytrace=False)


LINES = 10  #: Lines of progress on a terminal that cannot rewrite one.


class Study(EvaluationNode):
    """A study, and its result."""

    noun = "study"
    evaluation: StudyPlan
    kind = ""
    record: StudyRecord | None = None
    result: StudyResult | None = None
    fault: Exception | None = None  #: An error that is not of this package, such as in a grader of the user's.

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        #: Baselines by the name that gates use: another study of this run, or a recorded one.
        self.sources: dict[str, EvaluationNode | StudyResult] = {}
        self.missing: dict[str, str] = {}  #: Reasons why baselines do not exist yet, by name.

    def _with_run(self, result: StudyResult) -> StudyResult:
        """Return a result with what gates need of the run: the number of claims, and the baselines."""
        baselines = {}
        for name, source in self.sources.items():
            study_result = self.state.lookup(source.nodeid)[1] if isinstance(source, EvaluationNode) else source
            assert isinstance(study_result, StudyResult)
            baselines[name] = study_result
        return replace(result, family=self.state.family, baselines=baselines, no_baselines=dict(self.missing))

    def administer(self) -> None:
        """Run the study, with the stored replies of an earlier run."""
        if sets_up_only(self.config):
            return
        plan, state = self.evaluation, self.state
        from pytest_adaptive_eval.models.reuse import Completions
        from pytest_adaptive_eval.records.journal import Journal, interview_key

        key = interview_key(
            name=f"{self.nodeid} {plan.name}",
            bank=self.kind,
            scale="",
            policy=plan.to_json(),
            seed=0,  # the plan has the seed
            checkpoint="",  # the key of each reply has a hash of its model
            decoding="",
        )
        path = state.folder / "journal" / f"{key}.jsonl"
        begun, usage = clock.elapsed(), False
        progress = _Progress(self)
        try:
            with Journal(path, fresh=state.settings.fresh) as journal:
                result = plan.hold(Completions(journal, state.answers), progress)
        except AdaptiveEvalError as error:
            result, usage = replace(plan.void(str(error)), broken=True), isinstance(error, UsageError)
        except Exception as error:  # it voids this study only
            self.fault, result = error, replace(plan.void(f"{type(error).__name__}: {error}"), broken=True)
        finally:
            progress.end()
        self.result = self._with_run(result)
        self.record = StudyRecord(
            name=plan.name,
            nodeid=self.nodeid,
            kind=self.kind,
            candidate=result.candidate,
            members=converted(list[SubjectRecord], plain(result.members)),
            metrics=converted(dict[str, list[QuantityRecord]], plain(result.findings())),
            asked=result.asked,
            size=result.size,
            unit=result.unit,
            account=plain(result.account),
            costs=converted(Costs, plain(result.costs)),
            seconds=round(clock.elapsed() - begun, 3),
            error=plain(result.error),
            notes=plain([*result.notes, *([STUDY_NOTE] if state.answers is not None else [])]),
            population=plan.population if isinstance(plan, ComparablePlan) else "",
            opinion="judgments" in result.account,
            journal="" if result.broken else path.name,
            usage_error=usage,
        )

    def restore(self, data: dict[str, Any]) -> None:
        """Set the result from the JSON data of the process that held the study."""
        self.result = self._with_run(self.evaluation.restore(data))

    def runtest(self) -> None:
        """Fail when the study is void."""
        if self.record is None:
            pytest.fail("the study did not take place", pytrace=False)
        record = self.record
        for name, value in record.facts().items():
            if value is not None:
                text = number(value) if isinstance(value, float) else str(value)
                self.user_properties.append((name, clean_xml(text, 200)))
        if self.fault is not None:
            raise self.fault
        if record.error:
            pytest.fail(f"ERROR {record.name}: {record.error}", pytrace=False)


class _Progress:
    """Progress of a study on the terminal: one line that is drawn over, or a few lines where that is not possible."""

    def __init__(self, study: Study) -> None:
        self._name = clean_terminal(study.evaluation.name, 60)
        config = study.config
        quiet = study.state.worker or config.get_verbosity() < 0
        self._reporter: Any = None if quiet else config.pluginmanager.getplugin("terminalreporter")
        self._row = None if quiet else live_row(config)
        self._last = ""

    def __call__(self, done: int, whole: int, doing: str) -> None:
        line = f"adaptive-eval: {self._name}: {clean_terminal(doing, 60)}"
        if self._reporter is None or line == self._last:
            return
        if self._row is not None:
            self._row.draw(line)
        elif (done - 1) % max(1, math.ceil(whole / LINES)) == 0 or done == whole:
            self._reporter.ensure_newline()
            self._reporter.write_line(line)
        self._last = line

    def end(self) -> None:
        if self._row is not None:
            self._row.erase()
