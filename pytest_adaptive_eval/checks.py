"""Checks of single settings, with the sentence on a wrong value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of a JSON text's pairs, as the ``object_pairs_hook`` of `json.loads`.

    Raises:
        ValueError: Duplicate key; JSON readers would use the last value.
    """
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in data if keys.count(key) > 1)!r:.80}")
    return data


def check_count(name: str, number: object, least: int = 1) -> None:
    """Raise a ConfigError unless a value is a whole number of at least `least`.

    Args:
        name: Name of the setting, with its place where there may be several.

    Raises:
        ConfigError: Names the setting.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ConfigError(f"{name} is {number!r}, expected a whole number of at least {least}")


def check_faults(faults: Iterable[str], where: str = "", error: type[AdaptiveEvalError] = ConfigError) -> None:
    """Raise an error at the first fault, if there is one.

    Args:
        faults: Sentences on what is wrong, what is expected and what to do. A generator's later checks do not run
            after a fault.
        where: Place that the sentence begins with.
        error: Class of the error.
    """
    for fault in faults:
        raise error(f"{where}: {fault}" if where else fault)
