"""Values of a record as the types that a table or another tool's schema promises, whatever the record holds."""

from __future__ import annotations

import json
import math
from typing import Any

from pytest_adaptive_eval.records.run_record import plain

__all__ = ["as_count", "as_number", "as_numbers", "as_text", "as_texts"]


def as_text(value: Any) -> str:
    """Valid Unicode: a text as it is, None as nothing, other values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str(plain(value))
    try:
        return json.dumps(plain(value), ensure_ascii=False)
    except (ValueError, RecursionError):  # a number of thousands of digits, a list within itself
        return type(value).__name__


def as_number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_count(value: Any) -> int | None:
    """A whole number that any reader can hold exactly; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def as_numbers(value: Any) -> list[float | None] | None:
    """The numbers of a list; None where there is no list."""
    return [as_number(v) for v in value] if isinstance(value, list | tuple) else None


def as_texts(value: Any) -> list[str]:
    """The texts of a list; empty where there is no list."""
    return [as_text(v) for v in value] if isinstance(value, list | tuple) else []
