"""Count questions in the number of tests that pytest and other reporters show progress against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval.plugin.live_line import shows_live

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.exchange import Exchange


class Progress:
    """Hooks of the process that shows progress, which add the questions to the collected tests.

    An interview counts with its budget until it is over, and then with the questions that were asked.

    Args:
        exchange: Holds the budgets.
    """

    def __init__(self, config: pytest.Config, exchange: Exchange) -> None:
        self._config, self._exchange = config, exchange
        self._session: pytest.Session | None = None
        #: Number of collected tests; None where pytest or xdist has counted them since.
        self._collected: int | None = None
        #: Number of questions by the interview's node id.
        self._questions: dict[str, int] = {}
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
        if self._counted_by_teamcity is not None and nodeid not in self._counted_by_teamcity:
            self._counted_by_teamcity.add(nodeid)
            self._teamcity.testCount(1)  # its count is a sum

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self) -> None:
        """Update the count where a new worker of xdist has collected while others report."""
        self._update()

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
        shown = 0 if shows_live(self._config) else sum(self._questions.values())
        session.testscollected = self._collected + shown
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if hasattr(reporter, "tests_count"):  # of pytest-sugar and pytest-progress
            reporter.tests_count = session.testscollected

    @property
    def _teamcity(self) -> Any:
        """The writer of messages to TeamCity and PyCharm (teamcity-messages); None where it is not in use."""
        return getattr(getattr(self._config, "_teamcityReporting", None), "teamcity", None)
