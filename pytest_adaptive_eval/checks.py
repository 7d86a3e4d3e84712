"""Checks of single settings, with the sentence on a wrong value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
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


def check_decoding(temperature: object, seed: object, top_p: object = 1.0) -> None:
    """Raise a ConfigError unless the temperature is at least 0, the seed a whole number and top_p in (0, 1].

    Raises:
        ConfigError: Names the setting.
    """
    check_faults(_decoding_faults(temperature, seed, top_p))


def _decoding_faults(temperature: object, seed: object, top_p: object) -> Iterator[str]:
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not (number and 0.0 <= temperature < math.inf):  # type: ignore[operator]
        yield f"temperature is {temperature!r}, expected a number of at least 0; 0 is greedy"
    if isinstance(seed, bool) or not isinstance(seed, int):
        yield f"seed is {seed!r}, expected a whole number"
    if isinstance(top_p, bool) or not isinstance(top_p, int | float) or not 0.0 < top_p <= 1.0:
        yield f"top_p is {top_p!r}, expected a share above 0 and at most 1"
