"""Metrics of gates: each file is named after its metric and defines ``METRIC``.

A new file is known at once to TOML files, results, `adaptive-eval plan`, reports and the table in
``docs/reference/gates.md``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

REGISTERED: dict[str, Any] = {}  #: Metrics of other packages, by name.


@cache
def _file_names() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(__path__))


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, sorted, without loading them."""
    return tuple(sorted(_file_names() | set(REGISTERED)))


def load_metric(name: str) -> Any:
    """Return the `gates.condition.Metric` of a name, without a component.  Raise KeyError if there is none."""
    if name in _file_names():
        return import_module(f"{__name__}.{name}").METRIC
    return REGISTERED[name]
