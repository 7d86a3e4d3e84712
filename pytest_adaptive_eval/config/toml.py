"""Evaluations and gates in TOML files, which need no Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.checks import check_keys
from pytest_adaptive_eval.config.evaluation import EVAL_KEYS, EvalSpec
from pytest_adaptive_eval.config.studies import STUDIES
from pytest_adaptive_eval.config.study import StudyKind, StudySpec, study_gate
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import KINDS, Condition
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.studies.result import StudyCondition

__all__ = ["GateSpec", "TomlEval", "TomlFile", "read_toml"]

_NUMBER = (int, float)
_TOML_KEYS = {**EVAL_KEYS, "kind": (str,), "model": (str,), "model_options": (dict,), "gate": (list,)}
_GATE_KEYS: Mapping[str, tuple[type, ...]] = {
    "metric": (str,),
    "at_least": _NUMBER,
    "not_worse_than": (str,),
    "margin": _NUMBER,
    "rank_within": (int,),
    "above": (str,),
    "confidence": _NUMBER,
    "probability": _NUMBER,
    "on_inconclusive": (str,),
    "method": (str,),
}


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One ``[[eval.gate]]``.

    Parameters
    ----------
    condition : Condition or StudyCondition
    line : int
        In the file, from 1.
    """

    condition: Condition | StudyCondition
    line: int = 0

    @property
    def name(self) -> str:
        """As the test is called."""
        return self.condition.label


@dataclass(frozen=True, slots=True)
class TomlEval:
    """One ``[[eval]]`` of a TOML file, with its gates."""

    spec: EvalSpec | StudySpec
    model: str | None
    gates: tuple[GateSpec, ...] = field(default=())
    line: int = 0
    model_options: Mapping[str, Any] = field(default_factory=dict)


def _lines(text: str) -> list[tuple[str, int]]:
    """Return the headers ``[[eval]]`` and ``[[eval.gate]]`` with their lines, which the parser does not report."""
    headers = []
    for number, line in enumerate(text.splitlines(), 1):
        head = line.split("#")[0].replace(" ", "").strip()
        if head in ("[[eval]]", "[[eval.gate]]"):
            headers.append((head, number))
    return headers


class TomlFile(NamedTuple):
    """What a TOML file holds.

    Parameters
    ----------
    evaluations : list of TomlEval
    required : list of str
        Names of gates without whose results nothing is promoted.
    """

    evaluations: list[TomlEval]
    required: list[str]


def read_toml(path: Path, studies: Mapping[str, Callable[[], StudyKind]] = STUDIES) -> TomlFile:
    """Read ``adaptive-eval.toml`` or ``*.eval.toml``.

    Parameters
    ----------
    path : Path
    studies : mapping of str to callable
        Loaders of study kinds by name.

    Raises
    ------
    ConfigError
        Not TOML, unknown keys, wrong types, two evaluations of one name, or none.
    """
    import tomllib  # only where there is a file to read: it takes as long to load as a small bank

    try:
        text = read_regular(path).decode("utf-8-sig").replace("\r\n", "\n")
        data = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}; check the path and the rights") from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, or of a number with thousands of digits
        raise ConfigError(f"{path}: not readable as TOML: {error}; mend the file") from None
    if unknown := sorted(set(data) - {"eval", "run"}):
        raise ConfigError(f"{path}: unknown table {unknown[0]!r}; evaluations stand under [[eval]]")
    required = _required(data["run"], path) if "run" in data else []
    tables = data.get("eval")
    if tables is None and required:
        return TomlFile([], required)
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise ConfigError(f"{path}: no evaluation; write [[eval]] (in double brackets) with a bank")
    heads = _lines(text)
    eval_lines = [line for head, line in heads if head == "[[eval]]"]
    gate_lines = iter([line for head, line in heads if head == "[[eval.gate]]"])
    out: list[TomlEval] = []
    for number, table in enumerate(tables):
        line = eval_lines[number] if number < len(eval_lines) else 0
        where = f"{path}:{line}"
        kind = table.get("kind", "ladder" if "task" in table else "bank")
        if kind not in (kinds := ("bank", "ladder", *studies)):
            raise ConfigError(f"{where}: kind {kind!r} is not known; use {', '.join(map(repr, kinds))}")
        spec: EvalSpec | StudySpec
        if kind in studies:
            spec = StudySpec(table, where, path.parent, studies[kind]())
        else:
            check_keys(table, _TOML_KEYS, where)
            if (kind == "ladder") != ("task" in table):
                raise ConfigError(f'{where}: kind = "ladder" goes with a task, and kind = "bank" with a bank')
            spec = EvalSpec({k: v for k, v in table.items() if k in EVAL_KEYS}, where, path.parent)
        gates = tuple(_gate(gate, path, next(gate_lines, line), spec) for gate in table.get("gate", []))
        if any(character in spec.name for character in "[]") or "::" in spec.name or not spec.name.strip():
            raise ConfigError(
                f"{where}: name {spec.name!r} cannot name a test: leave out square brackets and two colons in a row"
            )
        if any(other.spec.name == spec.name for other in out):
            raise ConfigError(f"{where}: two evaluations of the name {spec.name!r}; give one a name of its own")
        names = [gate.name for gate in gates]
        if len(set(names)) < len(names):
            raise ConfigError(f"{where}: two gates of {spec.name!r} are the same")
        if "model_options" in table and "model" not in table:
            raise ConfigError(f"{where}: model_options goes with a model, and there is none")
        out.append(TomlEval(spec, table.get("model"), gates, line, table.get("model_options", {})))
    return TomlFile(out, required)


def _required(table: Any, path: Path) -> list[str]:
    """Return the names of required gates in the table ``[run]``."""
    example = 'write [run] and required = ["test_gate"]'
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: run is {table!r:.80}, expected one table: {example}")
    if unknown := sorted(set(table) - {"required"}):
        raise ConfigError(f"{path}: [run] has an unknown key {unknown[0]!r}, expected required: {example}")
    names = table.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ConfigError(f"{path}: [run] required is {names!r:.80}, expected a list of names of gates: {example}")
    return names


def _gate(data: Any, path: Path, line: int, spec: EvalSpec | StudySpec) -> GateSpec:
    where = f"{path}:{line}"
    if isinstance(spec, StudySpec):
        return GateSpec(study_gate(data, where, spec.kind.metrics), line)
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: a gate is written [[eval.gate]] with metric and at_least")
    check_keys(data, _GATE_KEYS, where)
    kinds = [kind for kind in KINDS if kind in data]
    if len(kinds) != 1:
        written = " and ".join(kinds) or "none"
        raise ConfigError(
            f"{where}: a gate has one condition of {', '.join(KINDS)}; found {written}: write at_least = 0.6"
        )
    (kind,) = kinds
    if (kind == "not_worse_than") != ("margin" in data):
        raise ConfigError(f"{where}: not_worse_than and margin go together: margin = 0.02 allows a loss of 2 points")
    more: dict[str, Any] = {k: data[k] for k in ("on_inconclusive", "method") if k in data}
    for name, kinds_of in (("confidence", ("at_least", "not_worse_than")), ("probability", ("rank_within", "above"))):
        if name in data:
            if kind not in kinds_of:
                raise ConfigError(f"{where}: {name} does not go with {kind}; it goes with {' and '.join(kinds_of)}")
            more[name] = float(data[name])
    if kind == "not_worse_than":
        more |= {"value": float(data["margin"]), "name": data[kind]}
    else:
        more["name" if kind == "above" else "value"] = data[kind]
    try:
        return GateSpec(Condition(data.get("metric", "accuracy"), kind, **more), line)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
