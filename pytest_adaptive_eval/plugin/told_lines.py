"""Long lines of a run, broken between words where a terminal would break them anywhere."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pytest_adaptive_eval.text import wrap


def told_lines(config: pytest.Config, line: str) -> list[str]:
    """Return a line as a terminal shows it; logs, and the workers of xdist, keep it whole.

    A width that is set by ``COLUMNS`` counts as a terminal's.
    """
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if not (getattr(reporter, "isatty", False) or "COLUMNS" in os.environ) or hasattr(config, "workerinput"):
        return [line]
    return wrap(line, config.get_terminal_writer().fullwidth, "    ", "")
