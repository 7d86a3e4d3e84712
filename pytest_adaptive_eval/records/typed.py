"""Whether data read from a file has the types that a dataclass says."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

__all__ = ["mistyped"]


def mistyped(value: Any, where: str = "") -> str | None:
    """What is wrong in a dataclass's fields, the first that has another type than its annotation; None if none has.

    Lists, mappings and dataclasses are looked into.  A whole number is a float as well, and a truth value is no number.

    Parameters
    ----------
    value : dataclass
    where : str
        What stands before a field's name.
    """
    for name, kind in _kinds(value.__class__):
        part = getattr(value, name)
        if _check(kind)(part):
            continue
        inside = part if isinstance(part, list) else [part]
        for place, one in enumerate(inside):
            at = f"{where}{name}[{place}]" if isinstance(part, list) else f"{where}{name}"
            if is_dataclass(one) and (found := mistyped(one, f"{at}.")):
                return found
        return f"{where}{name} is {part!r:.80}, expected {kind.__name__ if isinstance(kind, type) else kind}"
    return None


@functools.cache
def _kinds(kind: Any) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind)]


@functools.cache
def _check(kind: Any) -> Callable[[Any], bool]:
    """Whether a value is of the kind."""
    parts, origin = get_args(kind), get_origin(kind)
    if kind is Any:
        return lambda _: True
    if origin in (Union, types.UnionType):
        some = [_check(part) for part in parts]
        return lambda value: any(check(value) for check in some)
    if origin is list:
        each = _check(parts[0])
        return lambda value: isinstance(value, list) and all(map(each, value))
    if origin is dict:
        each = _check(parts[1])
        return lambda value: isinstance(value, dict) and all(map(each, value.values()))
    if isinstance(kind, type) and is_dataclass(kind):
        checks = [(name, _check(part)) for name, part in _kinds(kind)]
        return lambda value: isinstance(value, kind) and all(check(getattr(value, name)) for name, check in checks)
    if kind is float:
        return lambda value: isinstance(value, float | int) and not isinstance(value, bool)
    if kind is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)
