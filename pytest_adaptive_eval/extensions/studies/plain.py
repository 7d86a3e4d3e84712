"""Conversion of results to plain JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return a value as JSON data: arrays and tuples as lists, dataclasses as mappings, NaN and infinity as None."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if is_dataclass(value):
        return fields_json(value)
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fields_json(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON data."""
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
