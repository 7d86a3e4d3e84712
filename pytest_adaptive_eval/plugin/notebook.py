"""Interviews from a script or a notebook: a run of pytest on one evaluation, whose result is a value."""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.base import Model
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.records.run_record import GateRecord, RunRecord

#: Exit codes of a run that has a record: all gates passed, or some did not.
_DECIDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
#: Of the plugins that are installed, this one is loaded, and no warnings and caches are shown and kept.
_PLUGINS = ("-p", "adaptive_eval", "-p", "no:cacheprovider", "-p", "no:warnings")


@dataclass(frozen=True, slots=True, repr=False)
class Interviewed:
    """Result of an interview from a notebook or a script.

    Args:
        terminal: Lines of the run.
        page: Report as HTML; empty without the extra `html`.
    """

    record: RunRecord
    terminal: str
    page: str

    @property
    def gates(self) -> list[GateRecord]:
        """The gates with their verdicts."""
        return self.record.gates

    @property
    def passed(self) -> bool:
        """Whether there is a gate, and all passed."""
        return self.record.exit_status == pytest.ExitCode.OK and bool(self.gates)

    def __repr__(self) -> str:
        """Return the sentence of each verdict; without a gate, the lines of the run."""
        sentences = [gate.verdict.sentence for gate in self.gates if gate.verdict is not None]
        return "\n".join(sentences) or self.terminal

    def _repr_html_(self) -> str:
        if not self.page:
            return f"<pre>{html.escape(self.terminal)}</pre>"
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width:100%;height:40em;border:0"></iframe>'


#: Models of scripts, for the fixture of `CONFTEST`.
GIVEN: dict[str, Model] = {}
#: A model that a script has loaded stays open for its next interview.
CONFTEST = """
import pytest

from pytest_adaptive_eval.plugin.notebook import GIVEN


@pytest.fixture(scope="session")
def model():
    return GIVEN[{name!r}]
"""


def interview(
    bank: str | Path,
    model: str | Model | Callable[[str], Any],
    gates: Iterable[Mapping[str, Any]] | Mapping[str, Any] = (),
    *,
    folder: str | Path = ".adaptive-eval",
    **settings: Any,
) -> Interviewed:
    """Interview a model on a bank, and judge it by gates, as ``pytest --adaptive-eval`` does.

    Args:
        bank: Path of a bank or of questions.
        model: Model by its name, as ``--adaptive-eval-model`` takes it, a `Model`, or a function of the prompt, which
            is asked again each time.
        gates: Settings of each gate, or of the only one, as in ``[[eval.gate]]``.
        folder: Folder of records and journals.
        **settings: Further settings, as in ``[[eval]]``.

    Raises:
        ConfigError: A setting is wrong, or the model cannot be asked.
    """
    table = {"bank": str(Path(bank).resolve()), **({"model": model} if isinstance(model, str) else {}), **settings}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        project = Path(name)
        if not isinstance(model, str):
            if isinstance(model, Model):
                GIVEN[name] = model
            else:
                GIVEN[name] = CallableModel(model, _name_of(model))
            stack.callback(GIVEN.pop, name)
            (project / "conftest.py").write_text(CONFTEST.format(name=name), "utf-8")
        lines = ["[[eval]]", *_lines(table)]
        for gate in [gates] if isinstance(gates, Mapping) else gates:
            lines += ["[[eval.gate]]", *_lines(gate)]
        try:
            (project / "interview.eval.toml").write_text("\n".join(lines) + "\n", "utf-8")
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise ConfigError(f"a setting holds {half!r}, half of a character, expected text: remove it") from None
        (project / "pytest.ini").write_text("[pytest]\n", "utf-8")
        record = project / "record.json"
        page = project / "report.html"
        arguments = [
            name,
            "-q",
            "--no-header",
            "--rootdir",
            name,
            "-c",
            str(project / "pytest.ini"),
            *_PLUGINS,
            "--adaptive-eval",
        ]
        arguments += [f"--adaptive-eval-dir={Path(folder).resolve()}", f"--adaptive-eval-record={record}"]
        if importlib.util.find_spec("jinja2") is not None:
            arguments += [f"--adaptive-eval-html={page}"]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = pytest.main(arguments)
        if code not in _DECIDED or not record.is_file():
            raise ConfigError(_error_of(output.getvalue()))
        data = RunRecord.from_json(json.loads(record.read_text("utf-8")))
        # its files are gone
        lines = []
        for line in output.getvalue().splitlines():
            if project.name not in line:
                lines.append(line)
        return Interviewed(data, "\n".join(lines).strip(), page.read_text("utf-8") if page.is_file() else "")


def _error_of(output: str) -> str:
    """Return the lines that say why a run has no result, without the place of its file, which is gone."""
    message = output.rpartition("ERROR: ")[2].strip() or output.strip()
    return re.sub(r"\S*interview\.eval\.toml:\d+: ", "", message)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_toml(name)} = {_toml(value)}" for name, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """Write a value of JSON in TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(_lines(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # texts are escaped alike, but for characters beyond the basic plane, and for the control character 127
    return json.dumps(value, ensure_ascii=False, default=_plain).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    """Return a path, or a number or an array of numpy, as JSON has it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    kind = type(value).__name__
    raise ConfigError(f"a setting is {value!r:.80}, a {kind}, expected a text, number, truth value, list or mapping")
