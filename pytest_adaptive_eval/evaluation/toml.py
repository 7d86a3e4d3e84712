"""Evaluations and gates in TOML files, which need no Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.evaluation import EvalSpec
from pytest_adaptive_eval.evaluation.gates import GateSpec, read_gate
from pytest_adaptive_eval.evaluation.studies import STUDIES
from pytest_adaptive_eval.evaluation.study import StudyKind, StudySpec
from pytest_adaptive_eval.evaluation.tables import BankTable, MarkerTable, RunTable
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.registry import lacking
from pytest_adaptive_eval.typed_tables import located, read_table, refuse_keys, suggestion


@dataclass(frozen=True, slots=True)
class TomlEval:
    """One ``[[eval]]`` of a TOML file, with its gates.

    Args:
        model: Text that names the subject or candidate.
        line: Line of its header, from 1.
    """

    spec: EvalSpec | StudySpec
    model: str | None
    gates: tuple[GateSpec, ...] = field(default=())
    line: int = 0
    model_options: Mapping[str, Any] = field(default_factory=dict)


class TomlFile(NamedTuple):
    """Content of a TOML file.

    Args:
        required: Names of gates without whose results nothing is promoted.
    """

    evaluations: list[TomlEval]
    required: list[str]


def read_toml(path: Path, studies: Mapping[str, Callable[[], StudyKind]] = STUDIES) -> TomlFile:
    """Read ``adaptive-eval.toml`` or ``*.eval.toml``.

    Args:
        studies: Loaders of study kinds by name.

    Raises:
        ConfigError: The file is no TOML, has unknown keys or values of a wrong type, two evaluations of one name, or
            none.
    """
    text, data = _parsed(path)
    if unknown := sorted(set(data) - {"eval", "run"}):
        raise ConfigError(f"{path}: unknown table {unknown[0]!r}; evaluations stand under [[eval]]")
    required = _required(data["run"], path) if "run" in data else []
    tables = data.get("eval")
    if tables is None and required:
        return TomlFile([], required)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{path}: no evaluation; write [[eval]] (in double brackets) with a bank")
    eval_lines, gate_lines = (iter(_header_lines(text, header)) for header in ("[[eval]]", "[[eval.gate]]"))
    evaluations: list[TomlEval] = []
    for table in tables:
        evaluation = _evaluation(table, path, next(eval_lines, 0), gate_lines, studies)
        name = evaluation.spec.name
        if any(other.spec.name == name for other in evaluations):
            raise ConfigError(f"{path}:{evaluation.line}: two evaluations have the name {name!r}; rename one")
        evaluations.append(evaluation)
    return TomlFile(evaluations, required)


def _parsed(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a TOML file and its data."""
    import tomllib  # only where there is a file to read: it takes as long to load as a small bank

    try:
        text = read_regular(path).decode("utf-8-sig").replace("\r\n", "\n")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}; check the path and the rights") from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, or of a number with thousands of digits
        raise ConfigError(f"{path}: not readable as TOML: {error}; correct the file") from None


def _header_lines(text: str, header: str) -> list[int]:
    """Return the lines of a table's headers, which the parser does not report."""
    lines = enumerate(text.splitlines(), 1)
    return [number for number, line in lines if line.split("#")[0].replace(" ", "").strip() == header]


def _required(data: Any, path: Path) -> list[str]:
    """Return the names of required gates in the table ``[run]``."""
    example = 'write [run] and required = ["test_gate"]'
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: run is {data!r:.80}, expected one table: {example}")
    names = read_table(RunTable, data, f"{path}: [run]").required
    if not all(map(str.strip, names)):
        raise ConfigError(f"{path}: [run] required is {names!r:.80}, expected names of gates: {example}")
    return names


def _evaluation(
    data: dict[str, Any],
    path: Path,
    line: int,
    gate_lines: Iterator[int],
    studies: Mapping[str, Callable[[], StudyKind]],
) -> TomlEval:
    """Return one evaluation with its gates, whose lines follow in `gate_lines`."""
    where = f"{path}:{line}"
    with located(where):
        kind = data.get("kind", "ladder" if "task" in data else "bank")
        kinds = ("bank", "ladder", *studies)
        if kind not in kinds:
            raise ConfigError(f"kind {kind!r} is not known; {suggestion(str(kind), kinds)}{lacking()}")
        spec: EvalSpec | StudySpec
        if kind in studies:
            spec = StudySpec(data, where, path.parent, studies[kind]())
        else:
            spec = _bank_spec(data, where, path.parent, kind)
        if any(character in spec.name for character in "[]") or "::" in spec.name or not spec.name.strip():
            raise ConfigError(
                f"name {spec.name!r} cannot name a test: leave out square brackets and two colons in a row"
            )
        if "model" not in data:
            refuse_keys(data, ("model_options",), "goes with a model, and there is none")
    metrics = spec.kind.metrics if isinstance(spec, StudySpec) else None
    gates = []
    for gate in data.get("gate", []):
        gate_line = next(gate_lines, line)
        gates.append(GateSpec(read_gate(gate, f"{path}:{gate_line}", metrics), gate_line))
    if len({gate.name for gate in gates}) < len(gates):
        raise ConfigError(f"{where}: two gates of {spec.name!r} are the same: remove one")
    return TomlEval(spec, data.get("model"), tuple(gates), line, data.get("model_options", {}))


def _bank_spec(data: Mapping[str, Any], where: str, base: Path, kind: str) -> EvalSpec:
    read_table(BankTable, {key: value for key, value in data.items() if key != "gate"}, where)
    if (kind == "ladder") != ("task" in data):
        raise ConfigError('kind = "ladder" goes with a task, and kind = "bank" with a bank: correct the kind')
    return EvalSpec({key: data[key] for key in data if key in MarkerTable.__struct_fields__}, where, base)
