"""Record a run as reports come in: what the terminal shows, the files at the end, and the exit status."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError, JournalError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.models.store import CompletionStore, remove_store
from pytest_adaptive_eval.plugin.names import ATTACHED, CHANGE_PROPERTY, PROPERTY
from pytest_adaptive_eval.plugin.progress import shows_live
from pytest_adaptive_eval.plugin.report.outputs import clear_outputs, outputs
from pytest_adaptive_eval.plugin.state import sets_up_only
from pytest_adaptive_eval.records.pairs import all_pairs
from pytest_adaptive_eval.records.run_record import REQUIRED, EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.text import clean_xml, guard, relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.exchange import Selection
    from pytest_adaptive_eval.plugin.progress import ProgressHooks
    from pytest_adaptive_eval.plugin.state import RunState
    from pytest_adaptive_eval.records.history import History

_RECORDS = ("record", "record copy", "new baseline")  #: Written files that state the exit status, besides the page.


class RunFiles:
    """Files of one run; `complaints` gets a sentence for each one that could not be written."""

    def __init__(self, state: RunState, run: RunRecord, started: datetime, complaints: list[str]) -> None:
        self.state = state
        self._run = run
        self._started = started
        self._complaints = complaints
        self.paths: dict[str, Path] = {}

    def write(self, *, passed: bool) -> None:
        """Write all files of the run, the new baseline only if the run passed."""
        # imported at the end of the run, so that collecting stays cheap
        import platform

        from pytest_adaptive_eval import __version__
        from pytest_adaptive_eval.records.run_files import write_record, write_run

        run = self._run
        settings = self.state.settings
        python = platform.python_version()
        run.versions = {"python": python, "pytest": pytest.__version__, "pytest-adaptive-eval": __version__}
        self._name_run()
        run.warn()
        try:
            self._look_back()
        except Exception as error:  # no file of an earlier run may stop this one from writing its record
            run.warnings.append(f"earlier runs cannot be read: {error}")
        path = self.state.folder / "runs" / f"{run.run}.json"
        self._put("record", path, lambda _: write_run(self.state.folder, run))
        self._put("JUnit report", settings.junit, self._write_gate_report)
        self._put("page", settings.html, self._write_page)
        self._put("new baseline", self._new_baseline() if passed else None, lambda path: write_record(path, run))
        self._put("record copy", settings.record, lambda path: write_record(path, run))

    def earlier(self) -> History | None:
        """Return the runs before this one, which has an id from here on; None if there are none."""
        self._name_run()
        return self.state.history

    def _name_run(self) -> None:
        from pytest_adaptive_eval.records.run_files import new_run_id

        self._run.run = self._run.run or new_run_id(self._started, os.urandom(4))

    def rewrite(self) -> None:
        """Write again all that states the exit status; a file that cannot be written is removed."""
        from pytest_adaptive_eval.records.run_files import write_record

        for name, path in self.paths.items():
            try:
                if name in _RECORDS:
                    write_record(path, self._run)
                elif name == "page":
                    self._write_page(path)
            except Exception:  # no file may state a status of 0
                path.unlink(missing_ok=True)

    def _put(self, name: str, path: Path | None, write: Callable[[Path], object]) -> None:
        """Write one file; a failure does not stop the others."""
        if path is None:
            return
        try:
            write(path)
        except (AdaptiveEvalError, OSError) as error:
            self._complaints.append(f"the {name} could not be written: {error}")
        except Exception as error:  # such as of a damaged record of another run
            self._complaints.append(f"the {name} could not be written: {type(error).__name__}: {error}")
        else:
            self.paths[name] = path

    def _look_back(self) -> None:
        """Add what earlier runs say of this one: other tries of its gates, and what panels can be compared with."""
        from pytest_adaptive_eval.records.history import earlier_tries

        run = self._run
        history = self.state.history
        if history is None:
            return
        run.warnings += [*earlier_tries(run, history.runs), *history.unread_notes()]
        if any(evaluation.opinion for evaluation in run.evaluations):
            service("agree_with_truth", "studies")(run, history.runs)

    def _write_gate_report(self, path: Path) -> None:
        from pytest_adaptive_eval.reports.junit import write_gate_report

        write_gate_report(self._run, path)

    def _write_page(self, path: Path) -> None:
        from pytest_adaptive_eval.evaluation import recorded_banks
        from pytest_adaptive_eval.records.history import History
        from pytest_adaptive_eval.reports.page import write_page

        banks = recorded_banks(self._run, [self.state.config.rootpath], graders=self.state.settings.graders)
        history = self.state.history or History(self.state.folder)
        history.add(self._run)
        series = history.series_of(self._run)
        store = self.state.answers
        if store is None:
            requests = {}
        else:
            requests = store.find_requests(self._run.sent_keys)
        write_page(self._run, path, banks=banks, series=series, requests=requests)

    def _new_baseline(self) -> Path | None:
        settings = self.state.settings
        run = self._run
        if settings.missing_baseline != "record" or settings.baseline is None:
            return None
        notices = [gate for gate in run.gates if gate.verdict.notice]
        outcomes = {gate.outcome for gate in run.gates if gate not in notices}
        if outcomes & {Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE}:
            return None
        if not run.evaluations or any(evaluation.error for evaluation in run.evaluations):
            return None
        path = self.state.config.invocation_params.dir / settings.baseline
        if path.exists() and notices:
            self._complaints.append(f"{path} has no baseline for every gate, and is not overwritten: remove it first")
        if path.exists():
            return None
        return path

    def remove_journals(self) -> None:
        """Delete the journals that no later run goes on from."""
        has_error = any(gate.outcome is Outcome.ERROR for gate in self._run.gates)
        for record in self._run.evaluations:
            is_void_interview = bool(record.bank and record.error)
            # a gate whose own body failed has judged nothing, and the next run has the answers for it
            is_unjudged = has_error and not record.error
            # others than interviews name their journal once no later run needs it
            if record.journal and not (is_void_interview or is_unjudged):
                with suppress(OSError):
                    remove_store(self.state.folder / "journal" / record.journal)

    def has_journals(self) -> bool:
        """Return whether a journal holds answers of this run, from which a later run continues."""
        since = self._started.timestamp()
        with suppress(OSError):  # another run may remove a file meanwhile
            paths = []
            for path in (self.state.folder / "journal").glob("*.sqlite*"):
                if path.stat().st_mtime >= since:
                    paths.append(path)
            return any(map(_holds_answers, {path.with_suffix(".sqlite") for path in paths}))
        return False


def _holds_answers(journal: Path) -> bool:
    try:
        with CompletionStore(journal) as store:
            return bool(len(store))
    except JournalError:  # another run uses it
        return False


#: Category, letter and word of the scores that questions have most often; pytest shows others as a share.
_SCORE_WORDS: dict[object, tuple[str, str, tuple[str, dict[str, bool]]]] = {
    "1": ("", "+", ("RIGHT", {"green": True})),
    "0": ("", "-", ("WRONG", {"blue": True})),
    "unscored": ("", "?", ("UNSCORED", {"yellow": True})),
}
#: Complaint on a run in which no gate passed and one lacked its baseline, and what to do.
_NOTHING_TO_COMPARE = "no gate gave PASS, and one had no baseline to compare with, so nothing is promoted"
_KEPT = "the record of this run is kept as the baseline, and the next run is compared with it"
_TO_KEEP = (
    "--adaptive-eval-missing-baseline=record with --adaptive-eval-baseline=FILE.json keeps the record of a first run "
    "that does not fail as its baseline"
)
#: Note on a run whose only JUnit report is pytest's own.
_JUNIT_NOTE = (
    "--junitxml: each test case has properties, which the schema of Jenkins' xUnit plugin refuses; give Jenkins and "
    "GitLab the report of --adaptive-eval-junit=FILE, and --junitxml to readers of properties"
)
_OK, _FAILED = int(pytest.ExitCode.OK), int(pytest.ExitCode.TESTS_FAILED)


class RunRecorder:
    """Hooks of the process that writes the record: the controller of xdist, or the one process there is."""

    def __init__(self, state: RunState, progress: ProgressHooks) -> None:
        self.state, self.config = state, state.config
        self._progress = progress
        started = clock.now()
        self.run = RunRecord("", started.isoformat(timespec="milliseconds"))  # named when it is written
        self._clock = clock.elapsed()
        self._session: pytest.Session | None = None
        self._reported: set[str] = set()
        self._skipped: set[str] = set()
        self._failed = self._replayed = False
        self._expected_to_fail: set[str] = set()  #: Gates with the mark xfail, by node id.
        self._changes: dict[str, str] = {}  #: Changes of evaluations since the last run, by node id.
        self._failed_questions: dict[str, str] = {}  #: Interviews of failed questions, by the question's node id.
        self._complaints: list[str] = []
        self._files = RunFiles(state, self.run, started, self._complaints)
        self._has_answers = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remove reports of an earlier run, before anything can go wrong."""
        self._session = session
        if not self.config.option.collectonly:
            clear_outputs(outputs(self.state.settings))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep records as reports come in."""
        if report.skipped:
            self._skipped.add(report.nodeid)
        self._failed |= report.failed
        if attached := getattr(report, ATTACHED, None):
            self._keep(report, attached)
        if change := self._changes.get(report.nodeid):
            report.user_properties.append((CHANGE_PROPERTY, change))

    def _keep(self, report: pytest.TestReport, attached: dict[str, Any]) -> None:
        """Keep the records that a report carries."""
        self._failed |= attached["failed"]
        if "question_of" in attached:
            self._replayed |= not attached["question_of"]
            if report.failed and attached["question_of"]:
                self._failed_questions[report.nodeid] = attached["question_of"]
        elif report.nodeid not in self._reported:  # another plugin may run it again, which changes nothing
            self._reported.add(report.nodeid)
            if record := attached.get("evaluation"):
                if isinstance(record, EvaluationRecord):
                    evaluation = record
                else:
                    evaluation = EvaluationRecord.from_json(record)
                self.run.evaluations.append(evaluation)
                self._note_change(evaluation, report.nodeid)
                self._progress.end(report.nodeid, len(evaluation.administrations))
            gates = [GateRecord.from_json(gate) for gate in attached.get("gates", ())]
            self.run.gates += gates
            if gates and hasattr(report, "wasxfail"):
                self._expected_to_fail.add(report.nodeid)

    def _note_change(self, evaluation: EvaluationRecord, nodeid: str) -> None:
        """Note how an evaluation changed since the last run."""
        from pytest_adaptive_eval.records.trend import note_change

        with suppress(Exception):  # `RunFiles.write` says which earlier runs cannot be read
            note_change(self.run, evaluation, self._files.earlier())
        self._changes[nodeid] = clean_xml(evaluation.drift.change, 200)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Report each watched evaluation as a test of its own, after all others."""
        result = yield
        from pytest_adaptive_eval.plugin.report.drift import drift_reports
        from pytest_adaptive_eval.records.trend import watch_run

        try:
            watch_run(self.run, self._files.earlier(), self.state.settings.drift)
        except AdaptiveEvalError as error:
            self._complaints.append(f"earlier runs cannot be compared with: {error}")
        for evaluation in self.run.evaluations:
            session.testscollected += bool(evaluation.drift.state)
            for report in drift_reports(evaluation):
                self._failed_questions[report.nodeid] = evaluation.nodeid
                self.config.hook.pytest_runtest_logreport(report=report)
        return result

    @functools.cached_property
    def _shows_live(self) -> bool:
        """Whether a live line stands for the signs of single answers."""
        return shows_live(self.config)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Show answers as + and -, unlike tests that pass and fail."""
        if report.when != "call" or not report.passed:
            return None
        for name, score in getattr(report, "user_properties", ()):
            if name == PROPERTY:
                if self._shows_live:
                    return "", "", ""
                return _SCORE_WORDS.get(score) or ("", "~", (f"SCORE {score}", {"green": True}))
        return None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Write the record and the reports, also where another plugin ends the session with an exit status of its own.

        A run that cannot account for itself does not pass.
        """
        self.state.exchange.break_off()
        ended: BaseException | None = None  # `pytest_unconfigure` settles an exit status of 0
        try:
            yield
        except (pytest.exit.Exception, SystemExit) as error:
            ended = error
        self._close(session, exitstatus)
        self._has_answers = self._files.has_journals()
        if ended is not None:
            raise ended

    def _close(self, session: pytest.Session, exitstatus: int) -> None:
        """Record the run if it evaluated something, and fail it if it should have."""
        exchange = self.state.exchange
        planned = [entry.nodeid for entry in exchange.planned()]
        selection = exchange.selection()
        status = int(getattr(session, "exitstatus", exitstatus))
        if selection.required:
            self.run.required = {name: list(nodeids) for name, nodeids in selection.required.items()}
        evaluates = bool(planned or self.run.absent_required)
        administered = not (self.config.option.collectonly or sets_up_only(self.config))
        if administered and not evaluates and status == _OK:
            self._fail_without_evaluation(session, exitstatus)
        # any other status without a report: a mistake of the user, or an error of the collection
        finished = (0, 1, 5) if selection.required else (0,)
        if administered and evaluates and (self._reported or status in finished):
            self._finish(session, status, planned, selection)
        exchange.close()

    def _finish(self, session: pytest.Session, status: int, planned: Sequence[str], selection: Selection) -> None:
        """Settle the exit status, write the files, and report failures to the cache."""
        run = self.run
        missing = [nodeid for nodeid in planned if nodeid not in self._reported]
        run.missing = missing
        run.deselected = list(selection.deselected)
        run.shard = selection.shard
        status = self._status_of_tests(session, status, missing)
        passed = status == _OK and not run.absent_required
        run.exit_status = self._status_of_gates(status)
        run.only_baselines_missing = bool(passed and run.gates) and all(gate.verdict.notice for gate in run.gates)
        run.seconds = round(clock.elapsed() - self._clock, 3)
        self._fail_without_required(selection)
        positions = {nodeid: n for n, nodeid in enumerate(planned)}
        run.gates.sort(key=lambda gate: positions.get(gate.nodeid, -1))
        run.evaluations.sort(key=lambda entry: positions.get(entry.nodeid, -1))
        run.evaluations = [*run.interviews, *run.others]
        run.differences = all_pairs(entry for entry in run.interviews if entry.group)
        self._write(session, passed=passed, complete=not missing)
        self._remember_failures()

    def _status_of_tests(self, session: pytest.Session, status: int, missing: Sequence[str]) -> int:
        """Return the exit status, which is not 0 where a test failed or gave no result."""
        if missing:
            if not (session.shouldfail or session.shouldstop or status == pytest.ExitCode.INTERRUPTED):
                skipped = " (skipped: leave out by -k or -m what is not to count)" if self._skipped & {*missing} else ""
                self._complaints.append(f"no result from {', '.join(missing)}{skipped}")
            status = status or _FAILED
        if status == _OK and (self._failed or session.testsfailed):  # such as by pytest.exit
            self._complaints.append("tests failed, so the run does not end with the exit status 0 that was set")
            status = _FAILED
        if status == _OK:
            complaints = self._complaints_of_gates()
            self._complaints += complaints
            status = _FAILED if complaints else status
        if status == pytest.ExitCode.NO_TESTS_COLLECTED and self.run.absent_required:
            status = _OK  # `_fail_without_required` names the cause
        return status

    def _complaints_of_gates(self) -> list[str]:
        """Return why gates do not let the run pass, whatever hooks and marks made of their reports."""
        complaints = [
            f"{nodeid}: the mark xfail takes no effect on a gate, and a gate that has it promotes nothing: remove it"
            for nodeid in sorted(self._expected_to_fail)
        ]
        for gate in self.run.gates:
            if not gate.holds and gate.nodeid not in self._expected_to_fail:
                complaints.append(
                    f"{gate.nodeid}: the verdict is {gate.outcome.value}, and a plugin or a hook changed the report of "
                    "the gate, so the run does not end with the exit status 0 that was set"
                )
        return complaints

    def _status_of_gates(self, status: int) -> int:
        """Return the exit status, which is not 0 where no gate passed, and 4 where a mistake voided an evaluation."""
        if self._lacks_baseline:
            status = status or _FAILED
        if status == _FAILED and any(evaluation.usage_error for evaluation in self.run.evaluations):
            return int(pytest.ExitCode.USAGE_ERROR)
        return status

    @property
    def _lacks_baseline(self) -> bool:
        """Whether a gate lacked its baseline, and no other gate passed."""
        passed = any(gate.outcome is Outcome.PASS for gate in self.run.gates)
        return any(gate.verdict.notice for gate in self.run.gates) and not passed

    def _write(self, session: pytest.Session, *, passed: bool, complete: bool) -> None:
        run = self.run
        complaints_before = len(self._complaints)
        status = run.exit_status or 0
        self._files.write(passed=passed)
        if self._lacks_baseline:
            wrote_baseline = "new baseline" in self._files.paths
            self._complaints.append(f"{_NOTHING_TO_COMPARE}: {_KEPT if wrote_baseline else _TO_KEEP}")
        hook = self.config.hook.pytest_adaptive_eval_report
        if hook.get_hookimpls():  # the record as JSON is a copy of every answer
            try:
                hook(record=run.to_json(), config=self.config)
            except Exception as error:  # a plugin's fault must not hide the run's results
                self._complaints.append(f"a plugin's report failed: {type(error).__name__}: {error}")
        if complete and "record" in self._files.paths:
            self._files.remove_journals()
        if self._complaints:
            status = status or _FAILED
        if len(self._complaints) > complaints_before and run.only_required_gates_absent:
            run.only_required_gates_absent = False
            run.exit_status = None  # the records have to be written again without this field
        session.exitstatus = status
        self._agree_on_exit()

    def _fail_without_required(self, selection: Selection) -> None:
        """Fail a run in which required gates gave no result, and name them."""
        if not (absent := self.run.absent_required):
            return
        self.run.fail_without_required()
        descriptions = []
        for name in absent:
            similar_names = selection.near.get(name)
            suffix = "" if selection.required[name] else " (no gate of this name was collected)"
            descriptions.append(
                f"{name}{suffix}" + (f"; did you mean {' or '.join(similar_names)}?" if similar_names else "")
            )
        self._complaints.append(f"{REQUIRED}: {', '.join(descriptions)}")

    def _fail_without_evaluation(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run with the flag that had no evaluation, or no test at all.  A selection of other tests may pass."""
        options = self.config.option
        chosen = options.keyword or options.markexpr or self.state.exchange.selection().chosen or self._replayed
        if "--adaptive-eval" not in self.config.invocation_params.args:
            return
        if not chosen:
            self._complaints.append(
                "no evaluation was found, so nothing was judged: a marker adaptive_eval, or the file "
                "adaptive-eval.toml in a folder that is collected, makes one; leave --adaptive-eval out where there is "
                "none"
            )
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        elif exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # such as with pytest-custom-exit-code
            self._complaints.append("no test was selected, so the run does not end with the exit status 0")
            session.exitstatus = exitstatus

    def _agree_on_exit(self) -> None:
        """Make the written files and the session state the same exit status: a record that says 0 promotes."""
        status = int(getattr(self._session, "exitstatus", 0))
        if status == self.run.exit_status:
            return
        if status == _OK and self.run.exit_status is not None and self._session is not None:
            self._session.exitstatus = self.run.exit_status  # a run that failed is not made one that passed
            return
        self.run.exit_status = status
        self._files.rewrite()

    def pytest_unconfigure(self) -> None:
        """Make the record agree with the exit status once more, and say why a run failed whose tests all passed.

        Other plugins may change the status at the very end. The reasons follow pytest's last line, which counts tests
        alone and may read ``2 passed``.
        """
        self._agree_on_exit()
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            for complaint in self._complaints:
                reporter.write_line(guard(f"adaptive-eval: {complaint}"), red=True, bold=True)

    def _remember_failures(self) -> None:
        """Add the interviews of failed questions to the cache of ``--lf``, since questions are not collected."""
        cache = getattr(self.config, "cache", None)
        if cache is None or not (failed := cache.get("cache/lastfailed", {})):
            return
        for question, interview in self._failed_questions.items():
            if failed.pop(question, None):
                failed[interview] = True
        for planned in self.state.exchange.planned():
            if planned.nodeid in failed:
                failed.update(dict.fromkeys(planned.needs, True))
        cache.set("cache/lastfailed", failed)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table of interviews and verdicts."""
        run = self.run
        if not (run.evaluations or run.gates or self._has_answers):
            return
        from pytest_adaptive_eval.reports.terminal import summary_lines, verdict_lines, warning_lines, write_lines
        from pytest_adaptive_eval.text import wrap

        writer = terminalreporter
        width = self.config.get_terminal_writer().fullwidth
        if self.config.get_verbosity() < 0:
            write_lines([*verdict_lines(run, width), *warning_lines(run, width)], writer.write)
        else:
            writer.write_sep("=", "adaptive evaluation")
            base = self.config.invocation_params.dir
            written_paths = {}
            for name, path in self._files.paths.items():
                written_paths[name] = relative(path, base)
            details = self.config.get_verbosity() > 0 or bool(self.config.getini("adaptive_eval_details"))
            evaluations = [node.evaluation for node in self.state.evaluations]
            if os.environ.get("CI") and not details:
                evaluations = []  # its logs may be public, and questions are not
            banks = {}
            for evaluation in evaluations:
                if bank := evaluation.question_bank:
                    banks[evaluation.name] = bank
            lines = summary_lines(run, width, written=written_paths, details=details, banks=banks)
            write_lines(lines, writer.write)
            if getattr(self.config.option, "xmlpath", None) and self.state.settings.junit is None:
                write_lines([((line, {}),) for line in wrap(_JUNIT_NOTE, max(width, 40), "  ")], writer.write)
        if self._has_answers:
            writer.write_line(
                "adaptive-eval: answers are kept: the same command goes on from them (--adaptive-eval-fresh asks again)"
            )
