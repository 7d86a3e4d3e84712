"""The harnesses of this package, from ``harnesses.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pytest_adaptive_eval.extensions.harness.row import Harness
from pytest_adaptive_eval.typed_tables import read_table

_FILE = Path(__file__).with_suffix(".toml")
_TABLES = tomllib.loads(_FILE.read_text(encoding="utf-8"))
REGISTERED = tuple(read_table(Harness, {"name": name, **row}, f"{_FILE.name}: {name}") for name, row in _TABLES.items())
