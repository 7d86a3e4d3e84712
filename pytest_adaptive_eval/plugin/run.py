"""The plugin proper: what happens in a run with ``--adaptive-eval``."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from pytest_adaptive_eval.config import Settings
from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.study_result import StudyResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.plugin import gates as gate_rules
from pytest_adaptive_eval.plugin.exchange import Exchange
from pytest_adaptive_eval.plugin.gate_parameters import restore_parameters
from pytest_adaptive_eval.plugin.interview import Interview
from pytest_adaptive_eval.plugin.names import ATTACHED
from pytest_adaptive_eval.plugin.question import DETAILS, PROPERTY, Question, crash_line
from pytest_adaptive_eval.plugin.study import Study
from pytest_adaptive_eval.records.run_record import GateRecord
from pytest_adaptive_eval.text import clean_terminal, clean_xml, guard, relative

__all__ = ["AdaptiveEval"]

#: Names of properties that need no cleaning.
KNOWN = frozenset((PROPERTY, *DETAILS))
#: Whose reports may quote a model.
OURS = (Question, Interview, Study)


class AdaptiveEval:
    """State and hooks of one pytest process; on xdist, the controller has one and each worker its own."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config, self.settings, self.folder = config, settings, settings.folder
        self.worker = hasattr(config, "workerinput")
        #: Every interview that collection met, selected or not.
        self.interviews: list[Interview] = []
        #: And every study.
        self.studies: list[Study] = []
        #: What each gate waits for, and the interviews of baselines that interviews wait for.
        self.wants: dict[pytest.Item, list[gate_rules.Held]] = {}
        #: Number of conditions that draws decide, in all gates of the run, and of thresholds of studies.
        self.family = 0
        self.exchange = Exchange(getattr(config, "workerinput", {}).get("adaptive_eval_exchange"))
        #: Verdicts that each gate has asked for, with whom they judge, and as the gate got them.
        self._verdicts: dict[str, list[tuple[str, Verdict, gate_rules.Judged]]] = {}
        #: Gates that took a metric.
        self._expected: set[str] = set()
        #: Records of the gates that were judged, by node id.
        self._gates: dict[str, list[GateRecord]] = {}
        #: With what each gate ended, None where it passed: a gate is judged once.
        self._ended: dict[str, BaseException | None] = {}
        #: Node id of the test whose body runs now: reports made meanwhile are those of its subtests.
        self._calling = ""
        #: Tests that have run, and are being torn down.
        self._over: set[str] = set()
        #: Process and thread of the collection, the only ones in which interviews and gates are run.
        self._collector_ids = (os.getpid(), threading.get_ident())
        #: Node ids of the interviews, studies and gates that have begun.
        self._begun: set[str] = set()
        #: Why an interview, a study or a gate that another plugin runs is refused.
        self._refused: dict[str, str] = {}

    @property
    def held(self) -> list[gate_rules.Held]:
        """Everything that gates may judge."""
        return [*self.interviews, *self.studies]

    def owns(self, item: pytest.Item) -> bool:
        """Return whether a test is a question, an interview, a study or a gate."""
        return isinstance(item, OURS) or item in self.wants

    def lookup(self, name: str) -> tuple[gate_rules.Held, SessionResult | StudyResult]:
        """Return the interview or study that a gate names, and its result."""
        source = gate_rules.resolve(name, self.held)
        data = self.exchange.result(source.nodeid) if source.result is None else None
        if data and isinstance(source, Study):
            source.result = source.evaluation.restore(data)
        elif data and isinstance(source, Interview):
            source.result = SessionResult.from_json(data, source.evaluation.bank, **source.plan())
        if source.result is None:
            kind = "study" if isinstance(source, Study) else "interview"
            raise ConfigError(f"adaptive_eval[{name!r}]: the {kind} {source.nodeid} gave no result in this run")
        if isinstance(source.result, StudyResult):
            return source, replace(source.result, family=self.family)
        return source, source.result

    def expect(self, gate: pytest.Item) -> None:
        """Record that a gate took a metric, for which it must ask for a verdict."""
        self._expected.add(gate.nodeid)

    def note(self, gate: pytest.Item, interview: gate_rules.Held, verdict: Verdict) -> Verdict:
        """Keep a verdict for the record, as other plugins leave it."""
        if gate.nodeid in self._over:
            raise ConfigError(f"{gate.nodeid}: a verdict was asked for after the test was over; ask for it in the test")
        changed = self.config.hook.pytest_adaptive_eval_verdict(verdict=verdict, nodeid=gate.nodeid, config=self.config)
        if changed is not None and not isinstance(changed, Verdict):
            raise ConfigError(f"a plugin made {changed!r} of a verdict; pytest_adaptive_eval_verdict gives a Verdict")
        final = verdict if changed is None else changed
        if final.allowed and not final.notice and final.on_inconclusive == "warn":
            gate.warn(AdaptiveEvalWarning(final.sentence))
        judged = gate_rules.Judged.of(final)
        self._verdicts.setdefault(gate.nodeid, []).append((self._name(interview), final, judged))
        return judged

    def _name(self, interview: gate_rules.Held) -> str:
        """Return an evaluation's name, or its node id if several have that name."""
        name = interview.evaluation.name
        return name if sum(i.evaluation.name == name for i in self.held) == 1 else interview.nodeid

    def pytest_report_header(self) -> list[str]:
        """Return one line, only in an active run."""
        model = clean_terminal(_without_secrets(self.settings.model) or "from the fixture or the TOML file")
        seed = "" if self.settings.seed is None else f", seed {self.settings.seed}"
        folder = relative(self.folder, self.config.rootpath)
        return [f"adaptive-eval: model {model}{seed}, journal and records in {folder}"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for other workers' results and hold the interview; then the placeholder or the gate is run.

        This wrapper is registered after those of plugins that time tests (pytest-timeout, faulthandler), so that it is
        outside them: neither waiting nor a whole interview is one test to them.  pytest's own wrapper, which records
        warnings, is `tryfirst` and stays outside this one.
        """
        restore_parameters(item)
        if isinstance(item, Question) or not self.owns(item):
            return (yield)
        if item.nodeid in self._begun:
            self._refused[item.nodeid] = "for a second time"
        self._begun.add(item.nodeid)
        if not self._refusal(item):
            if item in self.wants and self.worker:
                self.exchange.wait([i.nodeid for i in self.wants[item] if i.result is None])
            if isinstance(item, Interview | Study):
                item.administer()
                if item.result is not None and self.worker:
                    self.exchange.publish(item.nodeid, item.result.to_json())
        return (yield)

    def _refusal(self, item: pytest.Item) -> str:
        """Return why a test may not run now: another plugin repeats it, or runs it elsewhere; empty if it may."""
        pid, thread = self._collector_ids
        elsewhere = "process" if os.getpid() != pid else "thread" if threading.get_ident() != thread else ""
        how = f"in another {elsewhere}" if elsewhere else self._refused.get(item.nodeid, "")
        if not how:
            return ""
        return (
            f"{item.nodeid}: another plugin runs this test {how}; interviews and gates are run once, in the process "
            "and thread that collected them: leave that plugin out of a run with --adaptive-eval"
        )

    def check_place(self, item: pytest.Item) -> None:
        """Refuse to run a question, an interview or a gate a second time, or in another process or thread.

        Raises
        ------
        ConfigError
            Another plugin does that.
        """
        if refusal := self._refusal(item):
            raise ConfigError(refusal)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail what `check_place` refuses."""
        if self.owns(item):
            self.check_place(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """Judge a gate once.  If another plugin runs it again, it ends as it did the first time."""
        if pyfuncitem.nodeid not in self._ended:
            return None
        if (fault := self._ended[pyfuncitem.nodeid]) is not None:
            raise fault
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a gate that passed without asking whether its verdicts hold, and remember how it ended."""
        __tracebackhide__ = True
        self._expected.discard(item.nodeid)
        self._calling = item.nodeid
        try:
            yield
            __tracebackhide__ = False
            self._check_asked(item)
        except BaseException as error:
            if item in self.wants or item.nodeid in self._verdicts:
                self._ended.setdefault(item.nodeid, error)
            raise
        finally:
            self._calling = ""
        if item in self.wants or item.nodeid in self._verdicts:
            self._ended.setdefault(item.nodeid, None)

    def _check_asked(self, item: pytest.Item) -> None:
        if item.nodeid in self._ended:
            return
        if item.nodeid not in self._verdicts:
            if item.nodeid in self._expected:
                pytest.fail("the test took a metric and asked for no verdict: call .at_least(...) of it", pytrace=False)
            if item in self.wants and gate_rules.seeks_verdict(item):
                todo = "a gate that is not to judge is left out by -k or -m"
                pytest.fail(f"the test asked for none of the verdicts that its source has: {todo}", pytrace=False)
        for _, verdict, judged in self._verdicts.get(item.nodeid, ()) if self._verdicts else ():
            if not verdict and not judged.told:
                todo = "write `assert` before it, or read its outcome where it need not hold"
                pytest.fail(f"{verdict.sentence}; the test did not ask whether this holds: {todo}", pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach records to reports, for the process that writes the run's record."""
        report = yield
        error = call.excinfo.value if call.excinfo else None
        of_subtest = item.nodeid == self._calling
        if isinstance(item, Question) and of_subtest:
            item.note_subtest(report, error)
        elif isinstance(item, Question):
            if not report.passed:
                item.note(report, error)
            if report.when == "call":
                item.contradict(report, error)
        if attached := {} if of_subtest else self._attached(item, report):
            # a plugin may turn a report that failed into one that passed
            setattr(report, ATTACHED, {**attached, "failed": error is not None and not report.skipped})
        if not of_subtest:
            (self._over.add if report.when == "call" else self._over.discard)(item.nodeid)
        if report.user_properties and not KNOWN.issuperset([name for name, _ in report.user_properties]):
            report.user_properties = [(clean_xml(str(name)), value) for name, value in report.user_properties]
        if self.owns(item):
            _guard(report)
        return report

    def _attached(self, item: pytest.Item, report: pytest.TestReport) -> dict[str, Any]:
        """Return the data that a report carries to the process that writes the run's record."""
        if isinstance(item, Question):
            reported = item.interview is None or not report.passed
            return {"question_of": item.interview.nodeid if item.interview else ""} if reported else {}
        if report.when != "call" and (report.when != "setup" or report.passed):
            return {}
        if isinstance(item, Interview) and item.record is not None:
            # plain data where it travels between processes
            return {"interview": item.record.to_json() if self.worker else item.record}
        if isinstance(item, Study) and item.record is not None:
            return {"study": item.record.to_json() if self.worker else item.record}
        if item.nodeid in self._gates or item.nodeid in self._verdicts or (item in self.wants and not report.skipped):
            # a gate that was skipped before it asked has no result, which the account tells
            if item.nodeid not in self._gates:
                self._gates[item.nodeid] = self._judged(item, report)
            return {"gates": [gate.to_json() for gate in self._gates[item.nodeid]]}
        return {}

    def _judged(self, item: pytest.Item, report: pytest.TestReport) -> list[GateRecord]:
        """Return a gate's records: one per verdict, and one more if it failed for another reason."""
        taken = self._verdicts.pop(item.nodeid, [])
        verdicts = [(name, verdict.to_json()) for name, verdict, _ in taken]
        if report.failed and all(verdict for _, verdict, _ in taken):
            sentence = f"{Outcome.ERROR.value} {crash_line(report)}"
            interviews = self.wants.get(item, [])
            name = self._name(interviews[0]) if len(interviews) == 1 else ""
            verdicts.append(
                (name, {"outcome": Outcome.ERROR.value, "interval": None, "notes": [], "sentence": sentence})
            )
        where = relative(item.reportinfo()[0], self.config.rootpath)
        line = (item.location[1] or 0) + 1
        return [GateRecord(item.name, item.nodeid, name, verdict, where, line) for name, verdict in verdicts]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        """Leave nothing in a report that cannot travel: xdist would lose it, and the run with it."""
        return _portable((yield))

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Escape CI commands in a warning, which may quote a model."""
        if isinstance(warning_message.message, Warning):
            args = warning_message.message.args
            warning_message.message.args = _guarded(_portable(args) if self.worker else args)


def _without_secrets(model: str | None) -> str:
    """Return a model's spec without the secrets that an address may hold."""
    scheme, sign, rest = (model or "").partition("://")
    host, _, name = rest.partition("#")
    host = host.partition("?")[0].rpartition("@")[2]
    return f"{scheme}{sign}{host}{'#' * bool(name)}{name}"


def _guard(report: pytest.TestReport) -> None:
    """Escape CI commands in all text of a report: faults, answers and captured output."""
    if report.longrepr is not None:
        report.longrepr = _guarded(report.longrepr)
    if report.sections:
        report.sections = [(name, guard(text, "| ")) for name, text in report.sections]
    if hasattr(report, "wasxfail"):
        report.wasxfail = _guarded(report.wasxfail)


def _guarded(value: Any) -> Any:
    """Escape CI commands in a text, or in all texts of an object, such as pytest's error representations."""
    if isinstance(value, str):
        return guard(value)
    if isinstance(value, list | tuple):
        return type(value)(map(_guarded, value))
    if hasattr(value, "toterminal"):
        for name, part in vars(value).items():
            setattr(value, name, _guarded(part))
    return value


def _portable(value: Any) -> Any:
    """Convert `value` to data that every channel between processes can carry."""
    if isinstance(value, str):
        return str.__str__(value) if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | bytes):
        return value
    for kind in (int, float):  # of a subclass, such as an enum's or numpy's, only the number can travel
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, dict):
        return {_portable(k): _portable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_portable, value)) if type(value) in (list, tuple) else [_portable(v) for v in value]
    return _portable(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
