"""Readers of the logs of tools that ``logs.toml`` declares."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pytest_adaptive_eval.banks.responses.readers.mapped import LogTable, reader_of
from pytest_adaptive_eval.typed_tables import read_table

_DECLARED = tomllib.loads((Path(__file__).parent.parent / "logs.toml").read_text("utf-8"))
REGISTERED = tuple(
    reader_of(name, read_table(LogTable, about, f"logs.toml: {name}")) for name, about in _DECLARED.items()
)
