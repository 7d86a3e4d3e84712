"""Write the record and the reports of a run, and keep them in agreement with its exit status."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.plugin.state import RunState
from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.registry import service

#: Written files that state the exit status, besides the page.
_RECORDS = ("record", "record copy", "new baseline")


class RunFiles:
    """Files of one run.

    Args:
        complaints: Gets a sentence for each file that could not be written.

    Attributes:
        paths: Written files, by name.
    """

    def __init__(self, state: RunState, run: RunRecord, started: datetime, complaints: list[str]) -> None:
        self.state, self._run, self._started, self._complaints = state, run, started, complaints
        self.paths: dict[str, Path] = {}

    @property
    def _records(self) -> list[InterviewRecord | StudyRecord]:
        return [*self._run.interviews, *self._run.studies]

    def write(self, *, passed: bool) -> None:
        """Write all files of the run, the new baseline only if the run passed."""
        # imported at the end of the run, so that collecting stays cheap
        import platform

        from pytest_adaptive_eval import __version__
        from pytest_adaptive_eval.records.runs import new_run_id, write_record

        run, settings = self._run, self.state.settings
        python = platform.python_version()
        run.versions = {"python": python, "pytest": pytest.__version__, "pytest-adaptive-eval": __version__}
        run.run = new_run_id(self._started, os.urandom(4))
        run.warn()
        run.warnings += self._earlier_tries()
        self._put("record", self.state.folder / "runs" / f"{run.run}.json", self._write_run)
        self._put("JUnit report", settings.junit, self._write_gate_report)
        self._put("page", settings.html, self._write_page)
        self._put("new baseline", self._new_baseline() if passed else None, lambda path: write_record(path, run))
        self._put("record copy", settings.record, lambda path: write_record(path, run))

    def rewrite(self) -> None:
        """Write again all that states the exit status; a file that cannot be written is removed."""
        from pytest_adaptive_eval.records.runs import write_record

        for name, path in self.paths.items():
            try:
                if name in _RECORDS:
                    write_record(path, self._run)
                elif name == "page":
                    self._write_page(path)
            except Exception:  # no file may state a status of 0
                path.unlink(missing_ok=True)

    def _earlier_tries(self) -> list[str]:
        """Return a sentence for each gate that passed after other tries; none where the history cannot be read."""
        from pytest_adaptive_eval.records.history import History
        from pytest_adaptive_eval.records.tries import earlier_tries

        if not (self.state.folder / "runs").is_dir():
            return []
        with suppress(AdaptiveEvalError, OSError):
            return earlier_tries(self._run, History(self.state.folder).runs)
        return []

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

    def _write_run(self, _: Path) -> None:
        from pytest_adaptive_eval.records.runs import write_run

        if self._run.studies:
            from pytest_adaptive_eval.records.history import History

            service("agree_with_truth", "studies")(self._run, History(self.state.folder).runs)
        write_run(self.state.folder, self._run)

    def _write_gate_report(self, path: Path) -> None:
        from pytest_adaptive_eval.reports.junit import write_gate_report

        write_gate_report(self._run, path)

    def _write_page(self, path: Path) -> None:
        from pytest_adaptive_eval.evaluation import recorded_banks
        from pytest_adaptive_eval.records.history import History
        from pytest_adaptive_eval.reports.page import write_page

        banks = recorded_banks(self._run, [self.state.config.rootpath], graders=self.state.settings.graders)
        series = History(self.state.folder).series(until=self._run.started)
        write_page(self._run, path, banks=banks, series=series)

    def _new_baseline(self) -> Path | None:
        """Return the path of the baseline to record, or None."""
        settings, run = self.state.settings, self._run
        if settings.missing_baseline != "record" or settings.baseline is None:
            return None
        notices = [gate for gate in run.gates if gate.verdict.get("notice")]
        outcomes = {gate.verdict.get("outcome") for gate in run.gates if gate not in notices}
        if not notices or outcomes & {Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE}:
            return None
        if any(record.error for record in self._records):
            return None
        path = self.state.config.invocation_params.dir / settings.baseline
        if path.exists():
            self._complaints.append(f"{path} has no baseline for every gate, and is not overwritten: remove it first")
            return None
        return path

    def remove_journals(self) -> None:
        """Delete the journals of the run, except those of void interviews, which a later run continues."""
        for record in self._records:
            # a study names its journal once no later run needs it
            if (isinstance(record, StudyRecord) or not record.error) and (name := record.extra.get("journal")):
                with suppress(OSError):
                    (self.state.folder / "journal" / name).unlink(missing_ok=True)

    def has_journals(self) -> bool:
        """Return whether a journal holds answers of this run, from which a later run continues."""
        since = self._started.timestamp()
        try:
            file_stats = [path.stat() for path in (self.state.folder / "journal").glob("*.jsonl")]
        except OSError:  # another run removed one meanwhile
            return False
        return any(file_stat.st_size and file_stat.st_mtime >= since for file_stat in file_stats)
