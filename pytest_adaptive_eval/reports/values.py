"""Values of a record as the types that a table or another tool's schema promises, whatever the record holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.records.run_record import plain

#: Largest number on an axis.
_PLOTTABLE = 1e12


def as_text(value: Any) -> str:
    """Return valid Unicode: a text as it is, None as an empty text, other values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str(plain(value))
    try:
        return json.dumps(plain(value), ensure_ascii=False)
    except (ValueError, RecursionError):  # a number of thousands of digits, a list within itself
        return type(value).__name__


def as_number(value: Any) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def plottable(value: Any) -> float | None:
    """Return a finite number that an axis can hold, None for anything else."""
    number = as_number(value)
    return number if number is not None and abs(number) < _PLOTTABLE else None


def as_count(value: Any) -> int | None:
    """Return a whole number that any reader can hold exactly, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def as_numbers(value: Any) -> list[float | None] | None:
    """Return the numbers of a list, None where there is no list."""
    return [as_number(entry) for entry in value] if isinstance(value, list | tuple) else None


def as_texts(value: Any) -> list[str]:
    """Return the texts of a list, an empty list where there is none."""
    return [as_text(entry) for entry in value] if isinstance(value, list | tuple) else []


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}
