"""Gates of TOML files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.tables import GateTable, StudyGateTable
from pytest_adaptive_eval.gates.condition import KINDS, STUDY_KINDS, Condition, registered_metric
from pytest_adaptive_eval.typed_tables import located, read_table, refuse_keys


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One ``[[eval.gate]]``.

    Args:
        line: Line in the file, from 1.
    """

    condition: Condition
    line: int = 0

    @property
    def name(self) -> str:
        """Name of the gate's test."""
        return self.condition.label


def read_gate(data: Any, where: str, metrics: tuple[str, ...] | None) -> Condition:
    """Return the condition of one gate.

    Args:
        data: The gate as it was written.
        where: File and line, for errors.
        metrics: Metrics of a study, whose first metric ``rank`` refers to; None for a bank or a task.

    Raises:
        ConfigError: Names file and line, and a correct gate.
    """
    with located(where):
        if not isinstance(data, dict):
            raise ConfigError("a gate is written [[eval.gate]] with metric and at_least")
        return _bank_condition(data, where) if metrics is None else _study_condition(data, where, metrics)


def _bank_condition(data: Mapping[str, Any], where: str) -> Condition:
    table = read_table(GateTable, data, where)
    kind = _only_kind(data, KINDS)
    options = _options(data, ("on_inconclusive", "method"))
    return Condition(table.metric, kind, **_target(data, kind), **options)


def _study_condition(data: Mapping[str, Any], where: str, metrics: tuple[str, ...]) -> Condition:
    table = read_table(StudyGateTable, data, where)
    kind = _only_kind(data, STUDY_KINDS)
    measure = registered_metric(table.metric or metrics[0])
    metric = measure.study_metric(metrics) if measure else table.metric
    if measure is None or metric not in metrics:
        raise ConfigError(f"metric {metric!r} is not known; use {', '.join(metrics)} or rank")
    if kind not in measure.kinds:
        raise ConfigError(f"{measure.name} has no {kind}; use {', '.join(measure.kinds)}")
    return Condition(metric, kind, **_target(data, kind), **_options(data, ("subject", "on_inconclusive")))


def _only_kind(data: Mapping[str, Any], kinds: Iterable[str]) -> str:
    """Return the kind of a gate's only condition; refuse options that do not apply to it."""
    written = [kind for kind in kinds if kind in data]
    if len(written) != 1:
        raise ConfigError(
            f"a gate has one condition of {', '.join(kinds)}; found {' and '.join(written) or 'none'}: write "
            "at_least = 0.6"
        )
    if written[0] in ("at_least", "not_worse_than"):
        refuse_keys(data, ("probability",), f"does not go with {written[0]}; it goes with rank_within and above")
    else:
        refuse_keys(data, ("confidence",), f"does not go with {written[0]}; it goes with at_least and not_worse_than")
    return written[0]


def _target(data: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return value and name of a condition; refuse a baseline without a margin, and the reverse."""
    if (kind == "not_worse_than") != ("margin" in data):
        raise ConfigError("not_worse_than and margin go together: margin = 0.02 allows a loss of 2 points")
    if kind == "not_worse_than":
        return {"value": float(data["margin"]), "name": data[kind]}
    return {"name" if kind == "above" else "value": data[kind]}


def _options(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the options that were written; those that are not use the condition's defaults."""
    numbers = {name: float(data[name]) for name in ("confidence", "probability") if name in data}
    return numbers | {name: data[name] for name in names if name in data}
