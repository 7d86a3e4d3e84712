"""Warnings of this package's loggers on the terminal at once, where a run waits for something."""

from __future__ import annotations

import logging

import pytest

from pytest_adaptive_eval.core.record import plain

__all__ = ["show_log_warnings"]


class _Terminal(logging.Handler):
    """Writes each record as a line of its own, past pytest's capturing."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(logging.WARNING)
        self._config = config

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None:  # on a worker of xdist
            return
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=False)
        try:
            reporter.ensure_newline()
            reporter.write_line(f"adaptive-eval: {plain(record.getMessage())}")
        finally:
            if capture is not None:
                capture.resume_global_capture()


def show_log_warnings(config: pytest.Config) -> None:
    """Show them until the run ends."""
    logger, handler = logging.getLogger("pytest_adaptive_eval"), _Terminal(config)
    logger.addHandler(handler)
    config.add_cleanup(lambda: logger.removeHandler(handler))
