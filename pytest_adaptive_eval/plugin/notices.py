"""Lines on the terminal: warnings of this package's loggers, shown at once, lines broken between words, no others."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_adaptive_eval.plugin.progress import live_row
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.text import wrap

_SPEAKER = "gw0"  #: The worker of xdist that writes to the terminal: each checks the models before the first question.


class _Terminal(logging.Handler):
    """Handler that writes each record as a line, past pytest's capturing."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(logging.WARNING)
        self._config = config
        self._worker = getattr(config, "workerinput", {}).get("workerid")

    def emit(self, record: logging.LogRecord) -> None:
        line = f"adaptive-eval: {plain(record.getMessage())}"
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if self._worker not in (None, _SPEAKER) or (self._worker is None and reporter is None):
            return
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=False)
        try:
            if self._worker is None:
                if (row := live_row(self._config)) is not None:
                    row.erase()
                reporter.ensure_newline()
                reporter.write_line(line)
            elif sys.__stderr__ is not None:  # a worker's reporter writes to nowhere, and its errors to the terminal
                sys.__stderr__.write(f"\n{line}\n")
                sys.__stderr__.flush()
        finally:
            if capture is not None:
                capture.resume_global_capture()


def show_log_warnings(config: pytest.Config) -> None:
    """Show warnings of this package's loggers until the run ends."""
    logger = logging.getLogger("pytest_adaptive_eval")
    handler = _Terminal(config)
    logger.addHandler(handler)
    config.add_cleanup(lambda: logger.removeHandler(handler))


@contextlib.contextmanager
def captured(node: pytest.Item) -> Iterator[None]:
    """Capture what is written between the tests of an interview, such as by a model's library, for its report."""
    manager = node.config.pluginmanager.getplugin("capturemanager")
    if manager is None:
        yield
        return
    manager.resume_global_capture()
    try:
        yield
    finally:
        manager.suspend_global_capture()
        for name, text in zip(("stdout", "stderr"), manager.read_global_capture(), strict=True):
            if text:
                node.add_report_section("call", name, text)


#: Columns of the terminal, which is not known while a test's output is captured.
WIDTH = pytest.StashKey[int]()


def told_lines(config: pytest.Config, line: str) -> list[str]:
    """Return a line as a terminal shows it; logs, and the workers of xdist, keep it whole.

    A width that is set by ``COLUMNS`` counts as a terminal's.
    """
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if not (getattr(reporter, "isatty", False) or "COLUMNS" in os.environ) or hasattr(config, "workerinput"):
        return [line]
    return wrap(line, config.stash[WIDTH], "    ", "")
