"""The account of a run: records as reports come in, what the terminal shows, files at the end, the exit status.

Only the controller of xdist keeps it, or the one process there is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.plugin.names import ATTACHED, PROPERTY
from pytest_adaptive_eval.plugin.outputs import clear_outputs, outputs
from pytest_adaptive_eval.records.run_record import ONLY_REQUIRED, GateRecord, InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.text import relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.exchange import Selection
    from pytest_adaptive_eval.plugin.progress import Progress
    from pytest_adaptive_eval.plugin.state import RunState

__all__ = ["Account"]

#: What is written of a run that says how it ended.
RECORDS = ("record", "record copy", "new baseline")
#: How scores of questions are shown, as they stand in reports; others as a share.
SHOWN: dict[object, tuple[str, str, tuple[str, dict[str, bool]]]] = {
    "1": ("", "+", ("RIGHT", {"green": True})),
    "0": ("", "-", ("WRONG", {"blue": True})),
    "unscored": ("", "?", ("UNSCORED", {"yellow": True})),
}


class Account:
    """Hooks of the process that writes the record.

    Parameters
    ----------
    state : RunState
    progress : Progress
        Is told how many questions an interview asked.
    """

    def __init__(self, state: RunState, progress: Progress) -> None:
        self.state, self.config, self.settings = state, state.config, state.settings
        self._progress = progress
        self._started = datetime.now(UTC)
        self.run = RunRecord(
            "",  # named when it is written
            self._started.isoformat(timespec="milliseconds"),
        )
        self._clock = time.monotonic()
        self._session: pytest.Session | None = None
        self._reported: set[str] = set()
        self._skipped: set[str] = set()
        self._failed = self._replayed = False
        #: Interviews of the questions that failed.
        self._faulty: dict[str, str] = {}
        self._written: dict[str, Path] = {}
        self._complaints: list[str] = []
        self._has_answers = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take reports of an earlier run out of the way, before anything can go wrong."""
        self._session = session
        if not self.config.option.collectonly:
            clear_outputs(outputs(self.settings))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep records as reports come in."""
        if report.skipped:
            self._skipped.add(report.nodeid)
        self._failed |= report.failed
        attached: dict[str, Any] | None = getattr(report, ATTACHED, None)
        if not attached:
            return
        self._failed |= attached["failed"]
        if "question_of" in attached:
            self._replayed |= not attached["question_of"]
            if report.failed and attached["question_of"]:
                self._faulty[report.nodeid] = attached["question_of"]
        elif report.nodeid not in self._reported:  # another plugin may run it again, which changes nothing
            self._reported.add(report.nodeid)
            self._keep(attached, report.nodeid)

    def _keep(self, attached: dict[str, Any], nodeid: str) -> None:
        """Take the records of an interview, a study or a gate into the run's."""
        if record := attached.get("interview"):
            interview = record if isinstance(record, InterviewRecord) else InterviewRecord.from_json(record)
            self.run.interviews.append(interview)
            self._progress.end(nodeid, len(interview.administrations))
        if study := attached.get("study"):
            self.run.studies.append(study if isinstance(study, StudyRecord) else StudyRecord.from_json(study))
        self.run.gates += [GateRecord.from_json(gate) for gate in attached.get("gates", ())]

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Show answers as + and -, apart from tests that pass and fail."""
        if report.when != "call" or not report.passed:
            return None
        for name, score in getattr(report, "user_properties", ()):
            if name == PROPERTY:
                return SHOWN.get(score) or ("", "~", (f"SCORE {score}", {"green": True}))
        return None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Write the record and the reports; a run that cannot account for itself does not pass."""
        self.state.exchange.break_off()
        yield
        self._close(session, exitstatus)
        self._has_answers = self._keeps_answers()

    def _close(self, session: pytest.Session, exitstatus: int) -> None:
        planned = self.state.exchange.planned()
        status = int(getattr(session, "exitstatus", exitstatus))
        selection = self.state.exchange.selection()
        # a mistake, or collection failed; where nothing but other tests was selected, required gates are missed
        nothing = not self._reported and status not in ((0, 1, 5) if selection.required else (0,))
        none_ran = self.config.option.collectonly or self.config.getoption("setuponly", False)
        if required := dict(selection.required):
            self.run.extra["required"] = required
        absent = self.run.absent_required
        if not planned and not none_ran and not absent and status == pytest.ExitCode.OK:
            self._found_nothing(session, exitstatus)
        if nothing or none_ran or not (planned or absent):
            self.state.exchange.close()
            return
        place = {entry.nodeid: n for n, entry in enumerate(planned)}
        missing = [nodeid for nodeid in place if nodeid not in self._reported]
        if missing:
            self.run.extra["missing"] = missing
            if not (session.shouldfail or session.shouldstop or status == pytest.ExitCode.INTERRUPTED):
                skipped = " (skipped: leave out by -k or -m what is not to count)" if self._skipped & {*missing} else ""
                self._complaints.append(f"no result from {', '.join(missing)}{skipped}")
            status = status or int(pytest.ExitCode.TESTS_FAILED)
        if selection.deselected:
            self.run.extra["deselected"] = list(selection.deselected)
        if selection.shard:
            self.run.extra["shard"] = selection.shard
        if status == pytest.ExitCode.OK and (self._failed or session.testsfailed):  # such as by pytest.exit
            self._complaints.append("tests failed, so that the run does not end with the exit status 0 that was set")
            status = int(pytest.ExitCode.TESTS_FAILED)
        if absent and status == pytest.ExitCode.NO_TESTS_COLLECTED:  # which would not tell what is wrong
            status = int(pytest.ExitCode.OK)
        sound = status == pytest.ExitCode.OK and not absent
        outcomes = [gate.verdict.get("outcome") for gate in self.run.gates]
        if any(gate.verdict.get("notice") for gate in self.run.gates) and Outcome.PASS not in outcomes:
            self._complaints.append("no gate gave PASS, and a gate without a baseline promotes nothing")
            status = status or int(pytest.ExitCode.TESTS_FAILED)
        if status == pytest.ExitCode.TESTS_FAILED and any(one.extra.get("usage_error") for one in self._records):
            status = int(pytest.ExitCode.USAGE_ERROR)  # nothing was measured: there is something to mend first
        self.run.seconds = round(time.monotonic() - self._clock, 3)
        self.run.exit_status = status
        self._fail_without_required(selection)
        status, told = self.run.exit_status, len(self._complaints)
        self.run.interviews.sort(key=lambda interview: place.get(interview.nodeid, -1))
        self.run.studies.sort(key=lambda study: place.get(study.nodeid, -1))
        self.run.gates.sort(key=lambda gate: place.get(gate.nodeid, -1))
        self._write(sound)
        self._call_reporters()
        if not missing and "record" in self._written:
            self._forget_answers()
        if self._complaints:
            status = status or int(pytest.ExitCode.TESTS_FAILED)
        if len(self._complaints) > told and self.run.extra.pop(ONLY_REQUIRED, None):
            self.run.exit_status = None  # it is written again, without what is no longer true
        session.exitstatus = status
        self._agree_on_exit()
        self._remember_failures()
        self.state.exchange.close()

    def _fail_without_required(self, selection: Selection) -> None:
        """Fail a run in which required gates gave no result, and name them."""
        if not (absent := self.run.absent_required):
            return
        self.run.fail_without_required()
        descriptions = []
        for name in absent:
            near = selection.near.get(name)
            suffix = "" if selection.required[name] else " (no gate of this name was collected)"
            descriptions.append(f"{name}{suffix}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
        self._complaints.append(
            f"required gates gave no result, so that nothing is promoted: {', '.join(descriptions)}"
        )

    def _found_nothing(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run that was to evaluate and had no evaluation, or no test at all.

        A selection of other tests may pass.
        """
        options = self.config.option
        chosen = options.keyword or options.markexpr or self.state.exchange.selection().chosen or self._replayed
        if "--adaptive-eval" not in self.config.invocation_params.args:
            return
        if chosen:
            if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # such as with pytest-custom-exit-code
                self._complaints.append("no test was selected, so that the run does not end with the exit status 0")
                session.exitstatus = exitstatus
            return
        self._complaints.append(
            "no evaluation was found, so nothing was judged: a marker adaptive_eval, or the file adaptive-eval.toml in "
            "a folder that is collected, makes one; leave --adaptive-eval out where there is none"
        )
        session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _agree_on_exit(self) -> None:
        """Have what was written say how the run ends: a record that says 0 promotes."""
        status = int(getattr(self._session, "exitstatus", 0))
        if status == self.run.exit_status:
            return
        if status == pytest.ExitCode.OK and self.run.exit_status is not None and self._session is not None:
            self._session.exitstatus = self.run.exit_status  # a run that failed is not made one that passed
            return
        from pytest_adaptive_eval.records.runs import write_record

        self.run.exit_status = status
        for name, path in self._written.items():
            try:
                if name in RECORDS:
                    write_record(path, self.run)
                elif name == "page":
                    self._write_page(path)
            except Exception:  # nothing is left that might say 0
                path.unlink(missing_ok=True)

    def pytest_unconfigure(self) -> None:
        """Make the record agree with the exit status once more: other plugins may change it at the very end."""
        self._agree_on_exit()

    @property
    def _records(self) -> list[InterviewRecord | StudyRecord]:
        return [*self.run.interviews, *self.run.studies]

    def _write(self, sound: bool) -> None:
        # what only the end needs is loaded at the end: collecting stays cheap
        import platform

        from pytest_adaptive_eval import __version__
        from pytest_adaptive_eval.records.runs import new_run_id, write_record, write_run

        python = platform.python_version()
        self.run.versions = {"python": python, "pytest": pytest.__version__, "pytest-adaptive-eval": __version__}
        self.run.run = new_run_id(self._started, os.urandom(4))
        self.run.warn()
        settings = self.settings

        def own_record(_: Path) -> None:
            if self.run.studies:
                from pytest_adaptive_eval.config.truth import agree_with_truth
                from pytest_adaptive_eval.records.history import History

                agree_with_truth(self.run, History(self.state.folder).runs)
            write_run(self.state.folder, self.run)

        def record(path: Path) -> None:
            write_record(path, self.run)

        def gates(path: Path) -> None:
            from pytest_adaptive_eval.reports.junit import write_gate_report

            write_gate_report(self.run, path)

        self._put("record", self.state.folder / "runs" / f"{self.run.run}.json", own_record)
        self._put("record copy", settings.record, record)
        self._put("new baseline", self._new_baseline() if sound else None, record)
        self._put("JUnit report", settings.junit, gates)
        self._put("page", settings.html, self._write_page)

    def _put(self, name: str, path: Path | None, write: Callable[[Path], object]) -> None:
        """Write one of the files; one that cannot be written costs none of the others."""
        if path is None:
            return
        try:
            write(path)
        except (AdaptiveEvalError, OSError) as error:
            self._complaints.append(f"the {name} could not be written: {error}")
        except Exception as error:  # such as of a record of another run that is damaged in a way nobody thought of
            self._complaints.append(f"the {name} could not be written: {type(error).__name__}: {error}")
        else:
            self._written[name] = path

    def _write_page(self, path: Path) -> None:
        from pytest_adaptive_eval.config import recorded_banks
        from pytest_adaptive_eval.records.history import History
        from pytest_adaptive_eval.reports.page import write_page

        banks = recorded_banks(self.run, [self.config.rootpath], graders=self.settings.graders)
        series = History(self.state.folder).series(until=self.run.started)
        write_page(self.run, path, banks=banks, series=series)

    def _new_baseline(self) -> Path | None:
        """Return the path of the baseline to record, or None.  The run has not failed."""
        settings = self.settings
        if settings.missing_baseline != "record" or settings.baseline is None:
            return None
        bad = {Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE}
        if not any(gate.verdict.get("notice") for gate in self.run.gates) or any(
            gate.verdict.get("outcome") in bad and not gate.verdict.get("notice") for gate in self.run.gates
        ):
            return None
        if any(record.error for record in self._records):
            return None
        path = self.config.invocation_params.dir / settings.baseline
        if path.exists():
            self._complaints.append(f"{path} has no baseline for every gate, and is not overwritten: remove it first")
            return None
        return path

    def _call_reporters(self) -> None:
        hook = self.config.hook.pytest_adaptive_eval_report
        if not hook.get_hookimpls():
            return  # the record as JSON is a copy of every answer
        try:
            hook(record=self.run.to_json(), config=self.config)
        except Exception as error:  # a plugin's fault must not hide what the run found
            self._complaints.append(f"a plugin's report failed: {type(error).__name__}: {error}")

    def _forget_answers(self) -> None:
        """Delete the journals of a finished run, except those of void interviews, which a later run continues."""
        for record in self._records:
            over = not record.error or isinstance(
                record, StudyRecord
            )  # which names its journal when it is of no more use
            if over and (name := record.extra.get("journal")):
                with suppress(OSError):
                    (self.state.folder / "journal" / name).unlink(missing_ok=True)

    def _keeps_answers(self) -> bool:
        """Return whether a journal holds answers of this run, from which a later run continues."""
        since = self._started.timestamp()
        try:
            file_stats = [path.stat() for path in (self.state.folder / "journal").glob("*.jsonl")]
        except OSError:  # another run forgot its own
            return False
        return any(file_stat.st_size and file_stat.st_mtime >= since for file_stat in file_stats)

    def _remember_failures(self) -> None:
        """Tell the cache of ``--lf`` the interviews of failed questions, since questions are not collected."""
        cache = getattr(self.config, "cache", None)
        if cache is None or not (failed := cache.get("cache/lastfailed", {})):
            return
        for question, interview in self._faulty.items():
            if failed.pop(question, None):
                failed[interview] = True
        for planned in self.state.exchange.planned():
            if planned.nodeid in failed:
                failed.update(dict.fromkeys(planned.needs, True))
        cache.set("cache/lastfailed", failed)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table of interviews and verdicts."""
        if not (self.run.interviews or self.run.studies or self.run.gates or self._complaints or self._has_answers):
            return
        from pytest_adaptive_eval.reports.terminal import summary_lines, verdict_lines, write_lines
        from pytest_adaptive_eval.text import guard

        writer, width = terminalreporter, self.config.get_terminal_writer().fullwidth
        if self.config.get_verbosity() < 0:
            write_lines(verdict_lines(self.run, width), writer.write)
        else:
            writer.write_sep("=", "adaptive evaluation")
            base = self.config.invocation_params.dir
            written_paths = {name: relative(path, base) for name, path in self._written.items()}
            write_lines(summary_lines(self.run, width, written=written_paths), writer.write)
        for complaint in self._complaints:
            writer.write_line(guard(f"adaptive-eval: {complaint}"), red=True, bold=True)
        if self._has_answers:
            writer.write_line(
                "adaptive-eval: answers are kept: the same command goes on from them (--adaptive-eval-fresh asks anew)"
            )
