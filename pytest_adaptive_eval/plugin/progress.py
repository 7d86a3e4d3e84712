"""Show progress: a line on a terminal that leaves no trace, and questions in the number of tests of other reporters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.text import clean_terminal, columns, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.exchange import ResultExchange

EVERY, CONFIDENCE = 0.1, 0.95  #: Seconds between two drawings, and confidence of each bound of the interval.
NAME, STEP = 30, 60  #: Columns of an interview's name, and of the name and the step of another evaluation.


class LiveRow:
    """The row of a terminal below the line that pytest is writing.

    What is shown is noted before it is written, since Ctrl-C mostly arrives while the terminal writes.
    """

    def __init__(self, writer: Any) -> None:
        self._writer, self._is_drawn = writer, False

    @property
    def room(self) -> int:
        """Columns of the row."""
        return int(self._writer.fullwidth) - 1

    def draw(self, text: str) -> None:
        """Show a text in place of the one before."""
        below = "" if self._is_drawn else "\n"
        self._is_drawn = True
        self._writer.write_raw(f"{below}\r\x1b[2K{clean_terminal(text, self.room)}", flush=True)

    def erase(self) -> None:
        """Remove the text, and return to the end of the line above."""
        if self._is_drawn:
            column = self._writer.width_of_current_line
            if column:
                forward = f"\x1b[{column}C"
            else:
                forward = ""
            self._is_drawn = False
            self._writer.write_raw(f"\r\x1b[2K\x1b[A{forward}", flush=True)


_ROW: pytest.StashKey[LiveRow] = pytest.StashKey()  #: Key of the run's row in ``config.stash``.


def live_row(config: pytest.Config) -> LiveRow | None:
    """Return the run's row; None where this process writes to no terminal, or is not the only one that writes."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    # other reporters draw lines of their own
    if reporter is None or not reporter.isatty or type(reporter).__module__ != "_pytest.terminal":
        return None
    logs = config.pluginmanager.hasplugin("logging") and (config.getoption("log_cli_level") or config.getini("log_cli"))
    shows = any(config.getoption(name, False) for name in ("setupshow", "usepdb", "trace"))
    if logs or shows or config.getoption("capture", "fd") == "no" or hasattr(config, "workerinput"):
        return None
    return config.stash.setdefault(_ROW, LiveRow(config.get_terminal_writer()))


def shows_live(config: pytest.Config) -> bool:
    """Return whether interviews have a live line in this process, in place of a sign for each answer.

    Logs, workers of xdist, runs with ``-v`` or ``-q``, and runs in which others write to the terminal, have none.
    """
    distributed = config.getoption("numprocesses", None) or config.getoption("dist", "no") not in ("no", None)
    return config.get_verbosity() == 0 and not distributed and live_row(config) is not None


class Progress:
    """The present step of an evaluation, on a live line that is drawn over, else on at most so many `lines`."""

    def __init__(self, config: pytest.Config, name: str, lines: int = 0) -> None:
        quiet = config.get_verbosity() < 0 or hasattr(config, "workerinput")
        if quiet:
            self._row = None
        else:
            self._row = live_row(config)
        self._reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        self._name = name
        self._lines = 0 if quiet else lines
        self._last = ""

    def __call__(self, done: int, whole: int, doing: str) -> None:
        """Show a step in words, with the number of finished steps and that of all."""
        line = f"adaptive-eval: {clean_terminal(self._name, STEP)}: {clean_terminal(doing, STEP)}"
        if self._row is not None:
            self._row.draw(line)
        elif self._lines and line != self._last:
            self._last = line
            if (done - 1) % max(1, math.ceil(whole / self._lines)) == 0 or done == whole:
                self._reporter.ensure_newline()
                self._reporter.write_line(line)

    def end(self) -> None:
        """Erase the line."""
        if self._row is not None:
            self._row.erase()


class QuestionProgress(Progress):
    """The live line of one interview, with its most questions; its budget leaves out repeated questions."""

    def __init__(self, config: pytest.Config, name: str, budget: int, questions: int) -> None:
        super().__init__(config, clean_terminal(name, NAME, keep_end=True))
        if not shows_live(config):
            self._row = None
        self._budget, self._questions = budget, questions
        self._begun = clock.elapsed()
        self._drawn = 0.0
        self._asked = 0
        self._estimate = ""

    @property
    def is_shown(self) -> bool:
        """Whether there is a line to draw."""
        return self._row is not None

    def estimate(self, session: Session) -> None:
        """Take the estimate of a session and its interval, if the draws give one."""
        if self._row is None or not session.asked:
            return
        try:
            interval = interval_of_draws(session.log(), CONFIDENCE)
        except EstimationError:  # the items were not drawn
            return
        self._estimate = f", {number(interval.estimate, 2)} {interval.bounds_in_words(2)}"
        self._draw(self._row)

    def count(self, asked: int) -> None:
        """Take the number of questions asked so far."""
        self._asked = asked
        if self._row is not None and clock.elapsed() - self._drawn >= EVERY:
            self._draw(self._row)

    def _draw(self, row: LiveRow) -> None:
        self._drawn = clock.elapsed()
        most = self._budget if self._asked <= self._budget else self._questions
        count = f"{self._asked} of {most}"
        remaining_time = ""
        if self._asked:
            seconds = (self._drawn - self._begun) / self._asked * max(most - self._asked, 0)
            remaining_time = f", at most {_duration(seconds)} left"
        estimated = f"{count}{self._estimate}"
        forms = (
            f"{self._name}: question {estimated}{remaining_time}",
            f"{self._name}: {estimated}{remaining_time}",
            f"{self._name}: {estimated}",
            f"{self._name}: {count}",
        )
        row.draw(next((form for form in forms if columns(form) <= row.room), count))


def _duration(seconds: float) -> str:
    """Return ``0:07`` or ``1:02:03``."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{whole % 60:02d}"
    return f"{minutes}:{whole % 60:02d}"


class ProgressHooks:
    """Hooks of the process that shows progress, which add the questions to the collected tests.

    An interview counts with its budget until it is over, and then with the questions that were asked.
    """

    def __init__(self, config: pytest.Config, exchange: ResultExchange) -> None:
        self._config, self._exchange = config, exchange
        self._session: pytest.Session | None = None
        #: Number of collected tests; None where pytest or xdist has counted them since.
        self._collected: int | None = None
        self._questions: dict[str, int] = {}  #: Number of questions by the interview's node id.
        #: Node ids that TeamCity's count of collected tests has; None where its reporter is not in use.
        self._counted_by_teamcity: set[str] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, which has pytest's own number."""
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Read the count of collected tests again, since xdist sets it after this hook for each worker."""
        self._collected = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Count the questions before the first test is shown, and each question to TeamCity when it begins."""
        self._update()
        if self._counted_by_teamcity is None and not self._config.pluginmanager.hasplugin("dsession"):
            self._config.pluginmanager.unregister(self)  # only xdist sets the count again
        elif self._counted_by_teamcity is not None and nodeid not in self._counted_by_teamcity:
            self._counted_by_teamcity.add(nodeid)
            self._teamcity.testCount(1)  # its count is a sum

    def end(self, interview: str, asked: int) -> None:
        """Count an interview that is over with the questions that were asked."""
        self._questions[interview] = asked
        self._update(changed=True)

    def _update(self, changed: bool = False) -> None:
        session = self._session
        if session is None or (self._collected is not None and not changed):
            return
        if self._collected is None:
            self._collected = session.testscollected
            for planned in self._exchange.planned():
                self._questions.setdefault(planned.nodeid, planned.budget)
            if session.items and self._teamcity is not None:  # under xdist it has no count of the collected tests
                self._counted_by_teamcity = {item.nodeid for item in session.items}
        if shows_live(self._config):
            questions = 0
        else:
            questions = sum(self._questions.values())
        session.testscollected = self._collected + questions
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if hasattr(reporter, "tests_count"):  # of pytest-sugar and pytest-progress
            reporter.tests_count = session.testscollected

    @property
    def _teamcity(self) -> Any:
        """The writer of messages to TeamCity and PyCharm (teamcity-messages); None where it is not in use."""
        return getattr(getattr(self._config, "_teamcityReporting", None), "teamcity", None)
