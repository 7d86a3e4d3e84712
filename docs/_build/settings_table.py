"""Write reference/settings.md and adaptive-eval.schema.json from the declared settings: ``python docs/_build/settings_table.py``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.evaluation.toml import file_schema
from pytest_adaptive_eval.evaluation.tables import (
    EvalTable,
    GateTable,
    InterviewTable,
    JudgeTable,
    PriceTable,
    RunTable,
)
from pytest_adaptive_eval.extensions.harness.settings import HarnessSettings
from pytest_adaptive_eval.extensions.studies.network.declare import NetworkTable, NodeTable, SupervisorTable
from pytest_adaptive_eval.extensions.studies.network.kind import NetworkStudyTable
from pytest_adaptive_eval.extensions.studies.several import MemberTable
from pytest_adaptive_eval.extensions.studies.peers.kind import PanelTable, PeersTable
from pytest_adaptive_eval.plugin.run_settings import add_options
from pytest_adaptive_eval.typed_tables import Table, describe

FOLDER = Path(__file__).parents[1]
TABLES: tuple[type[Table], ...] = (
    EvalTable,
    GateTable,
    InterviewTable,
    JudgeTable,
    PriceTable,
    PeersTable,
    PanelTable,
    NetworkStudyTable,
    NetworkTable,
    NodeTable,
    SupervisorTable,
    MemberTable,
    HarnessSettings,
    RunTable,
)
#: Headings within the keys of an evaluation, each before its first key.
HEADINGS = {
    "max_tokens": "How items are asked and graded",
    "formats": "Which items of a bank",
    "levels": "Generated tasks",
    "policy": "How questions are drawn, and when the interview ends",
    "price": "What it may cost",
}
KEYS = "| key | values | default | meaning |\n| --- | --- | --- | --- |"
HEAD = """\
# Settings

This page is written by `python docs/_build/settings_table.py` from the declarations that files and markers are checked by.

`adaptive-eval init --schema adaptive-eval.schema.json` writes the JSON Schema of a TOML file.  With the first line
`#:schema adaptive-eval.schema.json`, a path relative to the file, editors complete and check its keys.

Flags come before ini settings, and those before what a marker or a TOML file says.
"""


class Recorder:
    """A stand-in for pytest's parser, which records the ini settings and flags of the plugin."""

    def __init__(self) -> None:
        self.settings: list[tuple[str, str]] = []
        self.flags: list[tuple[str, str]] = []

    def getgroup(self, *_names: str) -> Recorder:
        """Return this recorder in place of a group of flags."""
        return self

    def addoption(self, name: str, **options: Any) -> None:
        """Record a flag."""
        self.flags.append((f"{name}={options['metavar']}" if "metavar" in options else name, options["help"]))

    def addini(self, name: str, text: str, **_options: Any) -> None:
        """Record an ini setting."""
        self.settings.append((name, text))


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return text.replace("|", "\\|").replace("%%", "%")


def sections() -> Iterator[str]:
    """Yield the parts of the page."""
    yield HEAD
    for table in TABLES:
        title = (inspect.getdoc(table) or "").partition("\n")[0].rstrip(".").replace("``", "`")
        yield f"## {title}\n\n{KEYS}"
        for name, values, default, meaning in describe(table):
            if table is EvalTable and name in HEADINGS:
                yield f"\n### {HEADINGS[name]}\n\n{KEYS}"
            written = (
                "" if default is None or isinstance(default, Table) or default in ([], {}, "") else json.dumps(default)
            )
            yield cell(f"| `{name}` | {values} | {written} | {meaning} |".replace("|", "\0")).replace("\0", "|")
        yield ""
    add_options(recorder := Recorder(), list_kinds=True)  # type: ignore[arg-type]
    for title, kind, entries in (
        ("Ini settings of pytest", "setting", recorder.settings),
        ("Flags of pytest", "flag", recorder.flags),
    ):
        yield f"## {title}\n\n| {kind} | meaning |\n| --- | --- |"
        yield from (f"| `{cell(name)}` | {cell(meaning)} |" for name, meaning in entries)
        yield ""


def settings_page() -> str:
    """Return the page of all settings."""
    return "\n".join(sections()).rstrip() + "\n"


def schema_text() -> str:
    """Return the JSON Schema of files of evaluations."""
    return json.dumps(file_schema(), indent=1) + "\n"


if __name__ == "__main__":
    (FOLDER / "reference" / "settings.md").write_text(settings_page(), encoding="utf-8")
    (FOLDER / "adaptive-eval.schema.json").write_text(schema_text(), encoding="utf-8")
