"""Evaluations and gates in TOML files, which need no Python, and the JSON Schema of these files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.api_keys import hide_addresses
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.lines import Lines, at_key, read_lines
from pytest_adaptive_eval.evaluation.spec import EvalSpec, Loaders, evaluation_kinds
from pytest_adaptive_eval.evaluation.tables import GateTable, RunTable
from pytest_adaptive_eval.gates.condition import KINDS, RANKS, Condition, registered_metric
from pytest_adaptive_eval.gone import refuse_gone_setting
from pytest_adaptive_eval.inputs import read_regular, reading
from pytest_adaptive_eval.registry import lacking
from pytest_adaptive_eval.typed_tables import json_schema, located, read_table, refuse_keys, suggestion

DEFAULT_METRIC = "accuracy"  #: Metric of gates on interviews that name none.


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One ``[[eval.gate]]``, with the lines of its keys."""

    condition: Condition
    lines: Lines = field(default_factory=Lines, compare=False)

    @property
    def name(self) -> str:
        """Name of the gate's test."""
        return self.condition.label


def read_gate(data: Any, where: str, metrics: tuple[str, ...] | None) -> Condition:
    """Return the condition of one gate, from a TOML file or a mark.

    Args:
        where: File and line, or the test with the mark.
        metrics: Metrics of the evaluation, see `EvaluationKind`.

    Raises:
        ConfigError: Names the place, and a correct gate.
    """
    with located(where):
        if not isinstance(data, dict):
            raise ConfigError("a gate is written [[eval.gate]] with metric and at_least")
        table = read_table(GateTable, data, where)
        kind = _only_kind(data, interview=metrics is None)
        if metrics is None:
            refuse_keys(data, ("subject",), "is for several subjects, and an interview has one: remove it")
            metric = table.metric or DEFAULT_METRIC
        else:
            refuse_keys(data, ("method",), "is for interviews: remove it")
            metric = _named_metric(table.metric or metrics[0], kind, metrics)
        return Condition(metric, kind, **_target(data, kind), **_options(data))


def gate_keys(condition: Condition) -> dict[str, Any]:
    """Return the keys of a gate with their values, as `read_gate` reads them."""
    keys = condition.to_json()
    kind = keys.pop("kind")
    value = keys.pop("value", 0.0)
    name = keys.pop("name", "")
    if keys["metric"] == DEFAULT_METRIC:
        del keys["metric"]
    written = {"not_worse_than": {kind: name, "margin": value}, "above": {kind: name}}
    return {**written.get(kind, {kind: int(value) if kind == "rank_within" else value}), **keys}


def _named_metric(name: str, kind: str, metrics: tuple[str, ...]) -> str:
    """Return the quantity among `metrics` that a gate's metric names."""
    measure = registered_metric(name)
    if measure:
        metric = measure.among(metrics)
    else:
        metric = name
    if measure is None or metric not in metrics:
        raise ConfigError(f"metric {metric!r} is not known; use {', '.join(metrics)} or rank")
    if kind not in measure.kinds:
        raise ConfigError(f"{measure.name} has no {kind}; use {', '.join(measure.kinds)}")
    return metric


def _only_kind(data: Mapping[str, Any], *, interview: bool) -> str:
    """Return the kind of a gate's only condition; refuse options that do not apply to it."""
    written = [kind for kind in KINDS if kind in data]
    if len(written) != 1:
        raise ConfigError(
            f"a gate has one condition of {', '.join(KINDS)}; found {' and '.join(written) or 'none'}: write "
            "at_least = 0.6"
        )
    by_rank = written[0] in RANKS and not interview
    other, right = ("confidence", "probability") if by_rank else ("probability", "confidence")
    refuse_keys(data, (other,), f"does not go with {written[0]} here: write {right}")
    return written[0]


def _target(data: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return value and name of a condition; refuse a baseline without a margin, and the reverse."""
    if (kind == "not_worse_than") != ("margin" in data):
        raise ConfigError("not_worse_than and margin go together: margin = 0.02 allows a loss of 2 points")
    if kind == "not_worse_than":
        margin = data["margin"]
        return {"value": margin if isinstance(margin, str) else float(margin), "name": data[kind]}
    return {"name" if kind == "above" else "value": data[kind]}


def _options(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the written options; others use the condition's defaults."""
    numbers = {}
    for name in ("confidence", "probability", "within", "cap"):
        if name in data:
            numbers[name] = float(data[name])
    return numbers | {name: data[name] for name in ("on_inconclusive", "method", "subject") if name in data}


@dataclass(frozen=True, slots=True)
class TomlEval:
    """One ``[[eval]]`` of a TOML file, with its gates."""

    spec: EvalSpec
    gates: tuple[GateSpec, ...] = ()


class TomlFile(NamedTuple):
    """Content of a TOML file."""

    evaluations: list[TomlEval]
    required: list[str]


def read_toml(path: Path, kinds: Loaders | None = None) -> TomlFile:
    """Read ``adaptive-eval.toml`` or ``*.eval.toml``.

    Raises:
        ConfigError: The file is not TOML, has unknown keys or values of a wrong type, two evaluations of one name, or
            none.
    """
    text, data = parse_toml(path)
    if unknown := sorted(set(data) - {"eval", "run"}):
        where = f"{path}:{read_lines(text).at(unknown[0], '1').line}"
        refuse_gone_setting(unknown[0], where)
        raise ConfigError(
            f"{where}: unknown table {unknown[0]!r}; write evaluations as [[eval]], and a gate below its evaluation as "
            "[[eval.gate]]"
        )
    if "run" in data:
        required = _required(data["run"], path)
    else:
        required = []
    tables = data.get("eval")
    if tables is None and required:
        return TomlFile([], required)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{path}: no evaluation; write [[eval]] (in double brackets) with a bank")
    lines = read_lines(text)
    evaluations: list[TomlEval] = []
    for number, table in enumerate(tables, 1):
        evaluation = _evaluation(table, path, lines.at("eval", str(number)), kinds or evaluation_kinds())
        name = evaluation.spec.name
        if any(other.spec.name == name for other in evaluations):
            raise ConfigError(f"{evaluation.spec.where}: two evaluations have the name {name!r}; rename one")
        evaluations.append(evaluation)
    return TomlFile(evaluations, required)


def parse_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a TOML file, and its tables.

    Raises:
        ConfigError: The file cannot be read, or is not TOML.
    """
    import tomllib  # only where there is a file to read: it takes as long to load as a small bank

    with reading(path, ConfigError):
        content = read_regular(path)
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        hide_addresses(text)
        return text, tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, or of a number with thousands of digits
        raise ConfigError(f"{path}: not readable as TOML: {error}; correct the file") from None


def _check_name(name: str) -> None:
    if not name.strip() or any(mark in name for mark in ("[", "]", "::")):
        raise ConfigError(
            f"name {name!r} cannot name a test: leave out square brackets and two colons in a row, as in "
            'name = "knowledge"'
        )


def _required(data: Any, path: Path) -> list[str]:
    example = 'write [run] and required = ["test_gate"]'
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: run is {data!r:.80}, expected one table: {example}")
    names = read_table(RunTable, data, f"{path}: [run]").required
    if not all(map(str.strip, names)):
        raise ConfigError(f"{path}: [run] required is {names!r:.80}, expected names of gates: {example}")
    return names


def _evaluation(data: dict[str, Any], path: Path, lines: Lines, kinds: Loaders) -> TomlEval:
    """Return one evaluation with its gates."""
    where = f"{path}:{lines.line}"
    with at_key(where, lines), located(where):
        kind = data.get("kind", "ladder" if "task" in data else "bank")
        if kind not in kinds:
            raise ConfigError(f"kind {kind!r} is not known; {suggestion(str(kind), [*kinds])}{lacking()}")
        spec = EvalSpec(data, where, path.parent, kinds[kind](), lines)
        _check_name(spec.name)
        if "model" not in data:
            refuse_keys(data, ("model_options",), "needs a model: write model = ...")
    gates = []
    for number, gate in enumerate(data.get("gate", []), 1):
        of_gate = lines.at("gate", str(number))
        with at_key(gate_place := f"{path}:{of_gate.line}", of_gate):
            gates.append(GateSpec(read_gate(gate, gate_place, spec.kind.metrics), of_gate))
    if len({gate.name for gate in gates}) < len(gates):
        raise ConfigError(f"{where}: two gates of {spec.name!r} are the same: remove one")
    return TomlEval(spec, tuple(gates))


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of evaluations."""
    (run, *evaluations), definitions = json_schema(
        [RunTable, *dict.fromkeys(load().table for load in evaluation_kinds().values())]
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Adaptive evaluations",
        "type": "object",
        "properties": {
            "eval": {"type": "array", "items": {"anyOf": evaluations}},
            "run": run,
        },
        "additionalProperties": False,
        "$defs": definitions,
    }
