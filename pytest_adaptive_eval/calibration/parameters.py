"""Read published item parameters, one JSON object per line."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.text import counted

#: Other keys of a parameter; the first one present counts.
_ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("item", "item_id", "model_sha"),
        "difficulty": ("b",),
        "discrimination": ("a",),
        "guess": ("c",),
        "difficulty_sd": ("difficulty_std",),
    }
)
#: Upper limit of characters read from a file of parameters, decompressed.
_SIZE_LIMIT = 1 << 30


class _Parameters(msgspec.Struct):
    """Parameters of one item; a standard deviation is NaN if unknown."""

    id: str | int
    difficulty: float
    discrimination: float = 1.0
    guess: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    difficulty_sd: float = float("nan")


def read_parameters(path: Path, items: Sequence[str]) -> Calibration:
    """Read published parameters, to be checked on responses.

    Raises:
        ResponsesError: Not such a file, or an item without parameters.
    """
    by_item = {}
    where = str(path)
    try:
        with open_text(path) as file:
            lines = file.read(_SIZE_LIMIT).split("\n")
        for number, line in enumerate(lines, 1):
            where = f"{path}, line {number}"
            if line.strip():
                data = msgspec.json.decode(line, type=dict[str, Any])
                row = msgspec.convert(_by_name(data), _Parameters)
                item_id = str(row.id)
                if item_id in by_item:
                    raise ValueError(f"a second line of the item {row.id!r}")
                by_item[item_id] = row
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise ResponsesError(
            f"{where}: not a readable JSONL of parameters: {error}; expected objects with id and difficulty, and "
            "discrimination, guess and difficulty_sd where there are any"
        ) from None
    absent = [item for item in items if item not in by_item]
    if absent:
        raise ResponsesError(
            f"{path}: no parameters for {len(absent)} of {counted(len(items), 'item')}, the first {absent[0]!r}; "
            "give a line for each item of the responses"
        )
    return _calibration(path.name, [by_item[item] for item in items])


def _by_name(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a row by their own names; null is an absent one."""
    values = {}
    for name, others in _ALIASES.items():
        for key in (name, *others):
            if row.get(key) is not None:
                values[name] = row[key]
                break
    return values


def _calibration(file: str, rows: Sequence[_Parameters]) -> Calibration:
    """Return the parameters of items in their order."""
    slopes = np.array([row.discrimination for row in rows])
    intercept = -slopes * np.array([row.difficulty for row in rows])
    guess = np.array([row.guess for row in rows])
    sd = np.array([row.difficulty_sd for row in rows])
    if guess.any():
        model = "3pl"
    elif np.ptp(slopes) == 0:
        model = "1pl"
    else:
        model = "2pl"
    about = {"engine": "given", "file": file}
    return Calibration(model, slopes[:, None], intercept, guess, sd, converged=True, about=about)
