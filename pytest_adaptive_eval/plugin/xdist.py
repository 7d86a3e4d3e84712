"""Distribution of a run to workers of pytest-xdist.

An interview is one item to xdist and stays on one worker. Gates come after their interviews in the order of collection,
and the ``load`` scheduler sends items in that order to workers that run theirs first in, first out. So a gate may
simply wait for its results: the first waiting gate's interviews were all sent before it, and no worker ahead of it
waits. Other schedulers reorder, which would let two gates wait for each other; ``load`` is therefore always used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling

from pytest_adaptive_eval.plugin.notices import told_lines

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.state import RunState


class Distribution:
    """Hooks of xdist's controller."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self._lines: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a new worker the folder in which results are exchanged."""
        node.workerinput["adaptive_eval_exchange"] = self.state.exchange.make()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return the scheduler `load`, regardless of ``--dist``."""
        return LoadScheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Print the expected results of gates."""
        reporter = self.state.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and not self._lines:
            self._lines = self.state.exchange.lines()
            if self._lines and self.state.config.get_terminal_writer().width_of_current_line:
                reporter.line("")  # pytest does not know that xdist's count of workers is an open line
            for line in [part for sentence in self._lines for part in told_lines(self.state.config, sentence)]:
                reporter.ensure_newline()
                reporter.write_line(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self) -> None:
        """Stop workers that wait for results of a worker that died."""
        self.state.exchange.break_off()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Stop workers that wait if a worker died between two items."""
        if error:
            self.state.exchange.break_off()
