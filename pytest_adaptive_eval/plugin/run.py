"""The plugin proper: what happens in a run with ``--adaptive-eval``."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import time
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import pytest_adaptive_eval
from pytest_adaptive_eval.config import EvalSpec, Settings
from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.core.gates import SessionResult, Verdict
from pytest_adaptive_eval.core.record import GateRecord, InterviewRecord, RunRecord, plain
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, UsageError
from pytest_adaptive_eval.plugin import fixtures
from pytest_adaptive_eval.plugin import gates as gate_rules
from pytest_adaptive_eval.plugin.entry import MARKER, is_eval_file
from pytest_adaptive_eval.plugin.exchange import Exchange
from pytest_adaptive_eval.plugin.fixtures import STATE
from pytest_adaptive_eval.plugin.interview import (
    PARAMETER,
    PLACEHOLDER,
    PROPERTY,
    Interview,
    Question,
    is_placeholder,
    question,
)
from pytest_adaptive_eval.plugin.tomlfile import EvalFile
from pytest_adaptive_eval.reports.junit import write_gate_report
from pytest_adaptive_eval.reports.terminal import summary_lines, verdict_lines, write_lines
from pytest_adaptive_eval.store.files import probe
from pytest_adaptive_eval.store.runs import new_run_id, write_record, write_run

__all__ = ["AdaptiveEval", "activate"]

#: Attribute of a report that carries records to the controller.
ATTACHED = "adaptive_eval"
#: Fixture scopes that outlive a question.
WIDE_SCOPES = ("session", "package", "module", "class")


def settings_of(config: pytest.Config) -> Settings:
    """Flags before ini settings."""

    def text(name: str) -> str | None:
        value = config.getoption(f"adaptive_eval_{name}")
        return value if value is not None else config.getini(f"adaptive_eval_{name}")

    seed = text("seed")
    try:
        number = None if seed is None else int(seed)
    except ValueError:
        raise ConfigError(f"adaptive_eval_seed is {seed!r}, expected a whole number") from None
    if number is not None and number < 0:
        raise ConfigError(f"the seed is {number}, expected a whole number of at least 0")

    def path(name: str) -> Path | None:
        value = config.getoption(f"adaptive_eval_{name}")
        return None if value is None else config.invocation_params.dir / value

    return Settings(
        root=config.rootpath,
        folder=(config.rootpath / (text("dir") or ".adaptive-eval")),
        model=text("model"),
        budget=text("budget"),
        seed=number,
        fresh=bool(config.getoption("adaptive_eval_fresh")),
        record=path("record"),
        junit=path("junit"),
        graders=tuple(config.getini("adaptive_eval_graders")),
    )


def activate(config: pytest.Config) -> None:
    """Register the plugin for this run."""
    try:
        state = AdaptiveEval(config, settings_of(config))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[STATE] = state
    config.pluginmanager.register(state, "adaptive-eval-run")
    config.pluginmanager.register(fixtures, "adaptive-eval-fixtures")
    if config.pluginmanager.hasplugin("xdist"):
        from pytest_adaptive_eval.plugin.xdist import Distribution

        config.pluginmanager.register(Distribution(state), "adaptive-eval-xdist")


class AdaptiveEval:
    """State and hooks of one pytest process; on xdist, the controller has one and each worker its own."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config, self.settings, self.folder = config, settings, settings.folder
        self.worker = hasattr(config, "workerinput")
        #: Every interview that collection met, selected or not.
        self.interviews: list[Interview] = []
        self.mistakes: list[str] = []
        self.wants: dict[pytest.Item, list[Interview]] = {}
        self.exchange = Exchange(getattr(config, "workerinput", {}).get("adaptive_eval_exchange"))
        now = datetime.now(UTC)
        self.run = RunRecord(
            new_run_id(now, os.urandom(4)),
            now.isoformat(timespec="seconds"),
            versions={
                "python": platform.python_version(),
                "pytest": pytest.__version__,
                "pytest-adaptive-eval": pytest_adaptive_eval.__version__,
            },
        )
        self._clock = time.monotonic()
        self._banks: dict[Path, ItemBank] = {}
        self._verdicts: list[tuple[str, Verdict]] = []
        self._written: dict[str, Path] = {}
        self._complaints: list[str] = []
        #: Node ids of gates that must report, of interviews likewise.
        self._expected: set[str] = set()
        self._reported: set[str] = set()
        self._faulty: dict[str, str] = {}

    # -- results ----------------------------------------------------------------------------------

    def lookup(self, name: str) -> SessionResult:
        """The result that a gate asks for by name."""
        interview = gate_rules.resolve(name, self.interviews)
        if interview.result is None:
            data = self.exchange.result(interview.nodeid)
            interview.result = SessionResult.from_json(data, interview.evaluation.bank) if data else None
        if interview.result is None:
            raise ConfigError(f"adaptive_eval[{name!r}]: the interview {interview.nodeid} gave no result in this run")
        return interview.result

    def note(self, nodeid: str, name: str, verdict: Verdict) -> Verdict:
        """Keep a verdict for the record, as other plugins leave it."""
        final: Verdict = (
            self.config.hook.pytest_adaptive_eval_verdict(verdict=verdict, nodeid=nodeid, config=self.config) or verdict
        )
        self._verdicts.append((name, final))
        return final

    # -- collection -------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """One line, only when active."""
        model = self.settings.model or "from the fixture or the TOML file"
        seed = "" if self.settings.seed is None else f", seed {self.settings.seed}"
        folder = self.folder
        with contextlib.suppress(ValueError):
            folder = folder.relative_to(self.config.rootpath)
        return [f"adaptive-eval: model {model}{seed}, journal and records in {folder}"]

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect TOML evaluations."""
        if not is_eval_file(file_path):
            return None
        file = EvalFile.from_parent(parent, path=file_path)
        file.state = self
        return file

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give a marked function its one placeholder."""
        mark = metafunc.definition.get_closest_marker(MARKER)
        if mark is None:
            return
        where = self._where(metafunc.definition)
        try:
            spec = self._spec(metafunc.definition, mark, where)
        except UsageError as error:
            self.mistakes.append(str(error))
            metafunc.parametrize("item", [], ids=[]) if "item" in metafunc.fixturenames else None
            return
        metafunc.parametrize("item", [PLACEHOLDER], ids=[spec.parameter_id])

    def _where(self, node: pytest.Item) -> str:
        declared: str | None = getattr(getattr(node, "obj", None), "adaptive_eval_where", None)
        path, line, name = node.reportinfo()
        return declared or f"{path}:{(line or 0) + 1}: {name}"

    def _spec(self, node: pytest.Item, mark: pytest.Mark, where: str) -> EvalSpec:
        data = dict(mark.kwargs)
        if len(mark.args) > 1 or (mark.args and "bank" in data):
            raise ConfigError(f"{where}: the marker {MARKER} takes one bank and keywords, got {mark.args!r}")
        if mark.args:
            data["bank"] = mark.args[0]
        if isinstance(data.get("bank"), os.PathLike):
            data["bank"] = os.fspath(data["bank"])
        spec = EvalSpec(data, where, node.path.parent)
        if "item" not in getattr(node, "fixturenames", ()):
            raise ConfigError(f"{where}: the test takes no argument `item`, which is the question it asks; add it")
        if getattr(node, "cls", None) is not None and hasattr(node.cls, "setUp"):
            raise ConfigError(f"{where}: a unittest class cannot ask adaptively; use a plain function or class")
        xfail = node.get_closest_marker("xfail")
        if xfail is not None and xfail.kwargs.get("strict"):
            raise ConfigError(f"{where}: a strict xfail means nothing on an interview; remove it")
        return spec

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Make an interview of each placeholder, and questions of those named on the command line."""
        made = yield
        if not isinstance(made, list):
            return made
        out: list[pytest.Item | pytest.Collector] = []
        for node in made:
            if not is_placeholder(node):
                out.append(node)
                continue
            try:
                interview = self._interview(node)
                out.append(interview)
                out.extend(self._named(interview))
            except UsageError as error:
                self.mistakes.append(str(error))
        return out

    def _interview(self, node: pytest.Function) -> Interview:
        mark = node.get_closest_marker(MARKER)
        assert mark is not None
        where = self._where(node)
        spec = self._spec(node, mark, where)
        evaluation = spec.build(
            self.settings,
            read=self._bank,
            selector=lambda name: self.config.hook.pytest_adaptive_eval_selector(name=name, config=self.config),
        )
        definitions = node._fixtureinfo.name2fixturedefs.get("model", ())
        if definitions and definitions[-1].func is fixtures.model_function and self.settings.model is None:
            raise ConfigError(f"{where}: {fixtures.NO_MODEL}")
        if definitions and definitions[-1].scope not in WIDE_SCOPES:
            raise ConfigError(
                f"{where}: the fixture `model` has scope {definitions[-1].scope!r} and would load the model for every "
                'question: write @pytest.fixture(scope="module") or a wider one'
            )
        interview: Interview = Interview.from_parent(
            node.parent,
            name=node.name,
            callspec=node.callspec,
            fixtureinfo=node._fixtureinfo,
            originalname=node.originalname,
        )
        interview.evaluation, interview.state = evaluation, self
        if self.config.pluginmanager.hasplugin("timeout"):
            interview.add_marker(pytest.mark.timeout(0), append=False)
            interview.untimed = interview.own_markers[0]
        self.interviews.append(interview)
        return interview

    def _bank(self, path: Path) -> ItemBank:
        path = path.resolve()
        if path not in self._banks:
            bank = self.config.hook.pytest_adaptive_eval_items(path=path, config=self.config)
            if bank is None:
                from pytest_adaptive_eval.banks.reader import read_bank

                bank = read_bank(path, graders=self.settings.graders)
            self._banks[path] = bank
        return self._banks[path]

    def _named(self, interview: Interview) -> list[Question]:
        """Questions that the command line names, such as ``file::test[item-id]``."""
        bank = interview.evaluation.bank
        before, placeholder, after = re.split(
            rf"({re.escape(PARAMETER)}[^\[\]]*?)(?=-|$)", interview.callspec.id, maxsplit=1
        )
        pattern = rf"::{re.escape(interview.originalname)}\[{re.escape(before)}([^\[\]]+){re.escape(after)}\]$"
        found = [match.group(1) for arg in self.config.args if (match := re.search(pattern, arg))]
        return [question(interview, bank.items[bank.index(i)]) for i in found if i != placeholder]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Report mistakes; put each gate after its interviews, and those back that a selection dropped."""
        self._stop_on_mistakes()
        yield
        try:
            self.wants = {item: gate_rules.needed(item, self.interviews) for item in items if gate_rules.is_gate(item)}
        except ConfigError as error:
            self.mistakes.append(str(error))
        self._stop_on_mistakes()
        items[:] = gate_rules.order(items, self.wants)
        self._expected = {i.nodeid for i in items if isinstance(i, Interview) or i in self.wants}
        self.exchange.plan(sorted(self._expected))
        if self._expected and not self.config.option.collectonly:
            try:
                probe(self.folder)
            except UsageError as error:
                raise pytest.UsageError(str(error)) from None

    def _stop_on_mistakes(self) -> None:
        if self.mistakes:
            raise pytest.UsageError("\n".join(dict.fromkeys(self.mistakes)))

    # -- running ----------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Count the questions to come, so that progress is true."""
        session.testscollected += sum(i.evaluation.budget for i in session.items if isinstance(i, Interview))
        return (yield)

    @contextlib.contextmanager
    def in_place_of(self, interview: Interview, made: Question) -> Iterator[None]:
        """Let a question stand where its interview does: xdist checks reports against that list."""
        items = interview.session.items
        at = next((n for n, item in enumerate(items) if item is interview), None) if self.worker else None
        if at is not None:
            items[at] = made
        try:
            yield
        finally:
            if at is not None:
                items[at] = interview

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Hold the interview, then let pytest run its placeholder."""
        if isinstance(item, Interview):
            item.administer()
            if item.result is not None:
                self.exchange.publish(item.nodeid, item.result.to_json())
        elif item in self.wants and self.worker:
            self.exchange.wait([i.nodeid for i in self.wants[item] if i.result is None])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Carry records to whoever keeps them, and nothing that cannot travel."""
        report = yield
        if isinstance(item, Question) and item.interview is not None and not report.passed and not item.fault:
            item.fault = _crash_line(report)
        attached: dict[str, Any] = {}
        final = report.when == "call" or (report.when == "setup" and not report.passed)
        if isinstance(item, Interview) and final and item.record is not None:
            attached["interview"] = item.record.to_json()
        if item in self.wants and report.when in ("setup", "call"):
            taken, self._verdicts = self._verdicts, []
            path, line, _ = item.reportinfo()
            parent = item.parent
            if isinstance(parent, EvalFile):
                line = parent.lines.get(item.name, 1) - 1
            attached["gates"] = [
                GateRecord(item.name, item.nodeid, name, verdict.to_json(), _relative(path), (line or 0) + 1).to_json()
                for name, verdict in taken
            ]
            if final:
                attached["judged"] = report.outcome
        if attached:
            setattr(report, ATTACHED, attached)
        report.user_properties = [(plain(str(k)), plain(v)) for k, v in report.user_properties]
        report.sections = plain(report.sections) and [(plain(a), plain(b)) for a, b in report.sections]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep records as reports come in, on the controller or without xdist."""
        if self.worker:
            return
        attached = getattr(report, ATTACHED, None) or {}
        if "interview" in attached:
            self.run.interviews.append(InterviewRecord.from_json(attached["interview"]))
            self._reported.add(report.nodeid)
        for gate in attached.get("gates", ()):
            self.run.gates.append(GateRecord.from_json(gate))
        if "judged" in attached:
            self._reported.add(report.nodeid)
        if report.failed and any(name == PROPERTY for name, _ in report.user_properties):
            self._faulty[report.nodeid] = re.sub(r"\[[^\[\]]*\]$", "", report.nodeid)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Show answers as + and -, apart from tests that pass and fail."""
        score = next((value for name, value in report.user_properties if name == PROPERTY), None)
        if score is None or not report.passed:
            return None
        if report.when != "call":
            return "", "", ""
        if score == "unscored":
            return "", "?", ("UNSCORED", {"yellow": True})
        if float(score) in (0.0, 1.0):
            right = float(score) == 1.0
            return ("", "+", ("RIGHT", {"green": True})) if right else ("", "-", ("WRONG", {"blue": True}))
        return "", "~", (f"SCORE {score}", {"green": True})

    # -- the end ----------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Write the record and the reports; a run that cannot account for itself does not pass."""
        yield
        if self.worker or self.config.option.collectonly:
            return
        self._expected = self._expected or set(self.exchange.planned())
        if not self._expected:
            return
        status = int(getattr(session, "exitstatus", exitstatus))
        if missing := sorted(self._expected - self._reported):
            self._complaints.append(f"no result from {', '.join(missing)}")
            if status == 0:
                session.exitstatus = status = int(pytest.ExitCode.TESTS_FAILED)
        self.run.seconds = round(time.monotonic() - self._clock, 3)
        self.run.exit_status = status
        self.run.interviews.sort(key=lambda i: i.nodeid)
        try:
            self._write()
        except (AdaptiveEvalError, OSError) as error:
            self._complaints.append(f"the record could not be written: {error}")
            if status == 0:
                session.exitstatus = int(pytest.ExitCode.TESTS_FAILED)
        self._remember_failures()
        self.exchange.close()

    def _write(self) -> None:
        self._written["record"] = write_run(self.folder, self.run)
        if self.settings.record is not None:
            write_record(self.settings.record, self.run)
            self._written["record copy"] = self.settings.record
        if self.settings.junit is not None:
            write_gate_report(self.run, self.settings.junit)
            self._written["JUnit report"] = self.settings.junit
        self.config.hook.pytest_adaptive_eval_report(record=self.run.to_json(), config=self.config)
        for interview in self.run.interviews:  # the record has it all now; a void interview may go on later
            if not interview.error and (name := interview.extra.get("journal")):
                (self.folder / "journal" / name).unlink(missing_ok=True)

    def _remember_failures(self) -> None:
        """Let ``--lf`` find interviews: failed questions are not collected, and gates need theirs."""
        cache = getattr(self.config, "cache", None)
        failed = cache.get("cache/lastfailed", {}) if cache is not None else {}
        if not failed or self.config.getoption("collectonly"):
            return
        by_function = {re.sub(r"\[[^\[\]]*\]$", "", i.nodeid): i.nodeid for i in self.run.interviews}
        for nodeid, function in self._faulty.items():
            if failed.pop(nodeid, None) and function in by_function:
                failed[by_function[function]] = True
        names = {i.name: i.nodeid for i in self.run.interviews}
        for gate in self.run.gates:
            if gate.nodeid in failed and gate.interview in names:
                failed[names[gate.interview]] = True
        cache.set("cache/lastfailed", failed)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table of interviews and verdicts."""
        if self.worker or not (self.run.interviews or self.run.gates or self._complaints):
            return
        writer = terminalreporter
        width = writer._tw.fullwidth
        if self.config.get_verbosity() < 0:
            write_lines(verdict_lines(self.run, width), writer)
        else:
            writer.write_sep("=", "adaptive evaluation")
            shown = {name: _relative(path) for name, path in self._written.items()}
            write_lines(summary_lines(self.run, width, written=shown), writer)
        for complaint in self._complaints:
            writer.write_line(f"adaptive-eval: {complaint}", red=True, bold=True)

    def pytest_unconfigure(self) -> None:
        """Leave nothing behind."""
        if not self.worker:
            self.exchange.close()


def _crash_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = getattr(crash, "message", None) or str(report.longrepr or "")
    return plain(next((line for line in text.splitlines() if line.strip()), report.outcome))  # type: ignore[no-any-return]


def _relative(path: os.PathLike[str] | str) -> str:
    try:
        return Path(path).resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
