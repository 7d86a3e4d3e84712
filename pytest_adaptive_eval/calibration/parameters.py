"""Read published item parameters."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.text import counted

__all__ = ["read_parameters"]

#: Keys of each parameter; the first one present counts.
_PARAMETERS = {
    "difficulty": ("difficulty", "b", "loc_diff"),
    "discrimination": ("discrimination", "a"),
    "guess": ("guess", "guessing", "c"),
    "difficulty_sd": ("difficulty_sd", "difficulty_std", "scale_diff"),
}
_DEFAULTS = {"difficulty": 0.0, "discrimination": 1.0, "guess": 0.0, "difficulty_sd": math.nan}
_IDS = ("id", "item", "item_id", "model_sha")
#: Upper limit of characters read from a file of parameters, decompressed.
_SIZE_LIMIT = 1 << 30


def read_parameters(path: Path, items: Sequence[str]) -> Calibration:
    """Read published parameters, to be checked on responses: a JSONL with an id and a difficulty per item.

    Raises
    ------
    ResponsesError
        Not such a file, a value that is no finite number, or an item without parameters.
    """
    parameters: dict[str, dict[str, float]] = {}
    for number, row in _read_json_lines(path):
        where = f"{path}, line {number}"
        name, values = _parse_row(row, where)
        if name in parameters:
            raise ResponsesError(f"{where}: the item {name!r} stands twice; keep one line of it")
        parameters[name] = values
    if absent := [item for item in items if item not in parameters]:
        raise ResponsesError(
            f"{path}: no parameters for {len(absent)} of {counted(len(items), 'item')}, the first {absent[0]!r}; "
            "give a line for each item of the responses"
        )
    column = {
        name: np.array([parameters[item].get(name, default) for item in items]) for name, default in _DEFAULTS.items()
    }
    slope = column["discrimination"]
    model = "3pl" if column["guess"].any() else "1pl" if np.ptp(slope) == 0 else "2pl"
    return Calibration(
        model,
        slope[:, None],
        -slope * column["difficulty"],
        column["guess"],
        column["difficulty_sd"],
        converged=True,
        about={"engine": "given", "file": path.name},
    )


def _read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each line that is not empty."""
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(file.read(_SIZE_LIMIT).split("\n"), 1):
                if line.strip():
                    yield number, json.loads(line)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        where = f"{path}, line {number}" if number else str(path)
        raise ResponsesError(f"{where}: not a readable JSONL of parameters: {error}") from None


def _parse_row(row: Any, where: str) -> tuple[str, dict[str, float]]:
    """Return the item's id and the parameters of one line."""
    cells = row if isinstance(row, dict) else {}
    name = next((str(cells[key]) for key in _IDS if key in cells), None)
    values = {
        parameter: float(cells[key])
        for parameter, keys in _PARAMETERS.items()
        for key in reversed(keys)  # so that the first name counts where there are two
        if isinstance(cells.get(key), int | float)
    }
    if name is None or "difficulty" not in values:
        raise ResponsesError(
            f"{where}: expected an object with id (or {', '.join(_IDS[1:])}) and difficulty (or "
            f"{', '.join(_PARAMETERS['difficulty'][1:])}), a number"
        )
    for parameter, value in values.items():
        in_range = 0 <= value < 1 if parameter == "guess" else math.isfinite(value)
        if not in_range:
            expected = "a number in [0, 1)" if parameter == "guess" else "a finite number"
            raise ResponsesError(f"{where}: the item {name!r} has {parameter} {value}, expected {expected}")
    return name, values
