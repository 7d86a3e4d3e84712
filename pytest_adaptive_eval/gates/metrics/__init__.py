"""Metrics of gates: each file is named after its metric and defines ``METRIC``.

A metric whose name holds a number has another file name, see `_NUMBERED`, and that of one number is its component.

A new file is known at once to TOML files, results, `adaptive-eval plan`, reports and the table in
``docs/reference/gates.md``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

REGISTERED: dict[str, Any] = {}  #: Metrics of other packages, by name.
_NUMBERED = {"pass^": "pass_all", "pass@": "pass_any"}  #: Files of metrics by the start of their names.


@cache
def _file_names() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(__path__))


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, sorted, without loading them."""
    named = _file_names() - {*_NUMBERED.values()}
    return tuple(sorted(named | {f"{start}k" for start in _NUMBERED} | set(REGISTERED)))


def load_metric(name: str) -> Any:
    """Return the `gates.condition.Metric` of a name, without a component.  Raise KeyError if there is none."""
    numbered = re.fullmatch(r"(pass[\^@])(k|\d{1,4})", name)
    if numbered:
        metric = import_module(f"{__name__}.{_NUMBERED[numbered[1]]}").METRIC
        return metric.component(numbered[2])
    if name in _file_names():
        return import_module(f"{__name__}.{name}").METRIC
    return REGISTERED[name]


def recorded_metric(name: str) -> Any:
    """Return the metric of a field that tests record."""
    return import_module("pytest_adaptive_eval.gates.measured").Measured(
        name, f"values of {name} that tests record", ""
    )
