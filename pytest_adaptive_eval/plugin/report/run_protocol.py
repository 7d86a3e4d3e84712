"""Run evaluations and gates within pytest's own protocol, and attach records to its reports."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator
from typing import Any

import pytest

from pytest_adaptive_eval.plugin.ask.question import QuestionTest
from pytest_adaptive_eval.plugin.names import ATTACHED, DETAILS, PROPERTY
from pytest_adaptive_eval.plugin.notices import told_lines
from pytest_adaptive_eval.plugin.progress import shows_live
from pytest_adaptive_eval.plugin.report.running import EvaluationRunner
from pytest_adaptive_eval.plugin.report.verdicts import VerdictLog
from pytest_adaptive_eval.plugin.state import EvaluationTest, RunState, UnrepeatableTest, sets_up_only
from pytest_adaptive_eval.text import clean_terminal, clean_xml, guard, relative, shown_address


def _owns(state: RunState, item: pytest.Item) -> bool:
    """Return whether a test is a question, an evaluation or a gate."""
    return isinstance(item, UnrepeatableTest) or item in state.needs


class RunHooks:
    """Hooks that run evaluations before their own tests, and refuse what must not run again."""

    def __init__(self, state: RunState, verdicts: VerdictLog) -> None:
        self.state, self._verdicts = state, verdicts

    def pytest_report_header(self) -> list[str]:
        """Return what the run asks and where it writes, broken between words, only in an active run."""
        settings = self.state.settings
        root = self.state.config.rootpath
        named = [f"{name}={shown_address(model)}" for name, model in settings.models.items()]
        whole = shown_address(settings.model or "")
        model = clean_terminal(", ".join(filter(None, [whole, *named])) or "from the fixture or the TOML file")
        if settings.seed is None:
            seed = ""
        else:
            seed = f", seed {settings.seed}"
        text = f"adaptive-eval: model {model}{seed}, journal and records in {relative(settings.folder, root)}"
        signs = self.state.config.get_verbosity() == 0 and not shows_live(self.state.config)
        legend = ["adaptive-eval: + right, - wrong, ~ partly right, ? unscored"] if signs else []
        return [line for sentence in (text, *legend) for line in told_lines(self.state.config, sentence)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for other workers' results and hold the interview; then the placeholder or the gate is run.

        This wrapper is registered after those from plugins that time tests (pytest-timeout, faulthandler), so it is
        outside them: neither waiting nor a whole interview is one test to them. pytest's own wrapper, which records
        warnings, is `tryfirst` and stays outside this one.
        """
        state = self.state
        is_ours = not isinstance(item, QuestionTest) and _owns(state, item)
        if is_ours and state.places.begin(item.nodeid):
            if state.worker and not sets_up_only(state.config):
                state.exchange.wait([node.nodeid for node in state.needs.get(item, ()) if node.result is None])
            if isinstance(item, EvaluationTest):
                with self._verdicts.absent():
                    item.evaluation.administer(EvaluationRunner(item))
                if item.result is not None and state.worker:
                    state.exchange.publish(item.nodeid, item.result.to_json())
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Keep the exit status of the run where another plugin ends the process with 0."""
        try:
            return (yield)
        except SystemExit as error:
            if error.code:
                raise
            raise pytest.exit.Exception("a plugin ended the session by sys.exit") from error

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        """Keep the exit status of the run where another plugin ends the process with 0."""
        try:
            return (yield)
        except SystemExit as error:
            if error.code:
                raise
            return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Check that the test of a question that passed refuses other answers, while its fixtures are set up."""
        if not isinstance(item, QuestionTest) or item.asks_items:  # a file's questions have no test of a user
            return
        if item.interview is not None:
            item.interview.check_passed(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test that runs a second time or elsewhere."""
        if isinstance(item, QuestionTest) or _owns(self.state, item):
            self.state.places.check(item.nodeid)


class OwnProtocol:
    """Runs questions, evaluations and gates by pytest's own protocol.

    Plugins for flaky tests implement the hook of the protocol to run a failed test again.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run one of our items before any other plugin does."""
        if isinstance(item, QuestionTest):
            is_ours = item.interview is not None
        else:
            is_ours = _owns(self._state, item)
        if not is_ours:
            return None
        return self._state.config.pluginmanager.getplugin("runner").pytest_runtest_protocol(item, nextitem)


_CLEAN_PROPERTIES = frozenset((PROPERTY, *DETAILS))  #: Names of properties that need no cleaning.


class ReportHooks:
    """Hooks of the process that runs a test, for the process that writes the run's record."""

    def __init__(self, state: RunState, verdicts: VerdictLog) -> None:
        self.state, self._verdicts = state, verdicts

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach records to reports."""
        report = yield
        error = call.excinfo.value if call.excinfo else None
        if isinstance(item, QuestionTest):
            of_subtest = item.running
            if report.when == "call" or not report.passed:
                item.take_report(report, error, of_subtest=of_subtest)
            is_ours = True
        else:
            of_subtest = self._verdicts.running == item.nodeid
            if not of_subtest:
                self._note_end(item, report)
            is_ours = _owns(self.state, item)
        if not of_subtest and (attached := self._attached(item, report)):
            # a plugin may turn a report that failed into one that passed
            setattr(report, ATTACHED, {**attached, "failed": error is not None and not report.skipped})
        for name, _ in report.user_properties:
            if name not in _CLEAN_PROPERTIES:
                report.user_properties = [(clean_xml(str(name)), value) for name, value in report.user_properties]
                break
        if is_ours:
            _guard(report)
        return report

    def _note_end(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Note that a test is over, which may ask for no more verdicts, or that it has been torn down."""
        if report.when == "call":
            self._verdicts.over.add(item.nodeid)
        else:
            self._verdicts.over.discard(item.nodeid)

    def _attached(self, item: pytest.Item, report: pytest.TestReport) -> dict[str, Any]:
        """Return the data that a report carries to the process that writes the run's record."""
        if isinstance(item, QuestionTest):
            if item.interview is None:
                return {"question_of": ""}
            if report.passed:
                return {}
            return {"question_of": item.interview.nodeid}
        if report.when != "call" and (report.when != "setup" or report.passed):
            return {}
        if isinstance(item, EvaluationTest) and item.record is not None:
            # plain data where it travels between processes
            return {"evaluation": item.record.to_json() if self.state.worker else item.record}
        gates = self._verdicts.records(item, report)
        if gates is None:
            return {}
        return {"gates": [gate.to_json() for gate in gates]}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        """Leave nothing in a report that cannot travel: xdist would lose it, and the run with it."""
        return _portable((yield))

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Escape CI commands in a warning, which may quote a model."""
        if isinstance(warning_message.message, Warning):
            args = warning_message.message.args
            warning_message.message.args = _guarded(_portable(args) if self.state.worker else args)


def _guard(report: pytest.TestReport) -> None:
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
        if value.isascii():
            return str.__str__(value)
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | bytes):
        return value
    for kind in (int, float):  # of a subclass, such as an enum's or numpy's, only the number can travel
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, dict):
        return {_portable(k): _portable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        if type(value) in (list, tuple):
            return type(value)(map(_portable, value))
        return [_portable(v) for v in value]
    return _portable(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
