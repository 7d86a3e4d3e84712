"""Read published item parameters, as Fluid Benchmarking, py-irt, girth, mirt and AutoJudger write them."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.checks import unique_keys
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.tables import read_rows
from pytest_adaptive_eval.text import counted

#: Keys of each parameter in lower case; the first one present counts.
_PARAMETERS = MappingProxyType(
    {
        "difficulty": ("difficulty", "b", "loc_diff", "diff"),
        "discrimination": ("discrimination", "a", "disc", "slope"),
        "intercept": ("d", "intercept"),
        "guess": ("guess", "guessing", "c", "g"),
        "upper": ("u", "upper"),
        "difficulty_sd": ("difficulty_sd", "difficulty_std", "scale_diff"),
    }
)
_IDS = ("id", "item", "item_id", "model_sha", "question_id", "instance_id", "", "rownames", "unnamed: 0", "index")
#: Slopes of mirt, of which there is one for each dimension.
_SLOPE = re.compile(r"a[1-9]\d?")
#: Arrays of py-irt by parameter.
_PYIRT = MappingProxyType({"diff": "difficulty", "disc": "discrimination", "lambdas": "guess"})
#: Upper limit of characters read from a file of parameters, decompressed.
_SIZE_LIMIT = 1 << 30


def read_parameters(path: Path, items: Sequence[str], note: Callable[[str], object] = lambda _: None) -> Calibration:
    """Read published parameters, to be checked on responses.

    JSON lines, JSON or CSV with an id and a difficulty of each item; with an intercept and slopes in its place, as mirt
    writes them; or ``best_parameters.json`` of py-irt.

    Args:
        note: Called with a sentence where rows without ids are taken in the order of the items.

    Raises:
        ResponsesError: Not such a file, a value that is not a finite number, or an item without parameters.
    """
    parameters: dict[str, dict[str, float]] = {}
    unnamed: list[dict[str, float]] = []
    for where, row in _rows(path):
        name, values = _parse_row(row, where)
        if name is None:
            unnamed.append(values)
            continue
        if name in parameters:
            raise ResponsesError(f"{where}: duplicate item {name!r}; keep one line of it")
        parameters[name] = values
    if unnamed:
        if parameters or len(unnamed) != len(items):
            raise ResponsesError(
                f"{path}: {len(unnamed)} rows without an id, for {counted(len(items), 'item')}; expected an object "
                f"with id (or {', '.join(filter(None, _IDS[1:]))}) and difficulty in each row"
            )
        note(f"{path.name}: rows without ids, taken in the order of the items of the responses")
        parameters = dict(zip(items, unnamed, strict=True))
    if absent := [item for item in items if item not in parameters]:
        raise ResponsesError(
            f"{path}: no parameters for {len(absent)} of {counted(len(items), 'item')}, the first {absent[0]!r}; "
            "give a line for each item of the responses"
        )
    return _calibration(path, [parameters[item] for item in items])


def _calibration(path: Path, rows: Sequence[Mapping[str, float]]) -> Calibration:
    """Return the parameters of items in their order."""

    def column(name: str, default: float) -> Any:
        return np.array([row.get(name, default) for row in rows])

    slopes = sorted({name for row in rows for name in row if _SLOPE.fullmatch(name)}, key=lambda name: int(name[1:]))
    A = np.column_stack([column(name, 0.0) for name in slopes or ("discrimination",)])
    if not slopes:
        A = column("discrimination", 1.0)[:, None]
    guess, by_intercept = column("guess", 0.0), "intercept" in rows[0]
    intercept = column("intercept", math.nan) if by_intercept else -A[:, 0] * column("difficulty", math.nan)
    if np.isnan(intercept).any() or (len(slopes) > 1 and not by_intercept):
        raise ResponsesError(f"{path}: some rows have a difficulty and others an intercept d; write all in one way")
    model = "mirt" if A.shape[1] > 1 else "3pl" if guess.any() else "1pl" if np.ptp(A) == 0 else "2pl"
    sd = column("difficulty_sd", math.nan)
    return Calibration(model, A, intercept, guess, sd, converged=True, about={"engine": "given", "file": path.name})


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield place and parameters of each row of a file."""
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".csv"):
        try:
            lines = list(read_rows(path))
        except OSError as error:
            raise ResponsesError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None
        header = [cell.strip() for cell in lines[0][1]] if lines else []
        for number, cells in lines[1:]:
            yield f"{path}, line {number}", dict(zip(header, map(_cell, cells), strict=False))
    elif name.endswith(".json"):
        yield from _json_rows(path)
    else:
        for number, row in _read_json_lines(path):
            yield f"{path}, line {number}", row


def _cell(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a JSON file: a list, columns, rows by item, or the arrays of py-irt."""
    try:
        with open_text(path) as file:
            data = json.loads(file.read(_SIZE_LIMIT), object_pairs_hook=unique_keys)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise ResponsesError(f"{path}: not readable JSON of parameters: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("item_ids"), dict):
        data = _pyirt_rows(path, data)
    if isinstance(data, dict) and all(isinstance(value, list) for value in data.values()):
        lengths = {len(value) for value in data.values()}
        if len(lengths) != 1:
            raise ResponsesError(f"{path}: its columns have {sorted(lengths)!s:.80} values, expected equally many")
        data = [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]
    if isinstance(data, dict):
        data = [{"id": name, **row} for name, row in data.items() if isinstance(row, dict)]
    if not isinstance(data, list) or not data:
        raise ResponsesError(f"{path}: expected a list of parameters, columns, or an object by item")
    for number, row in enumerate(data, 1):
        yield f"{path}, record {number}", row


def _pyirt_rows(path: Path, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the arrays that py-irt writes."""
    model = str(data.get("irt_model", ""))
    if model.startswith(("4", "four", "multidim")):
        raise ResponsesError(f"{path}: the model {model!r:.40} of py-irt has no counterpart; fit 1pl, 2pl or 3pl")
    arrays = {key: data[key] for key in _PYIRT if isinstance(data.get(key), list)}
    if not model.startswith(("3", "three")):
        arrays.pop("lambdas", None)
    rows = []
    for index, name in data["item_ids"].items():
        row: dict[str, Any] = {"id": name}
        for key, values in arrays.items():
            value = values[int(index)] if str(index).isdecimal() and int(index) < len(values) else None
            row[_PYIRT[key]] = value[0] if isinstance(value, list) and len(value) == 1 else value
        rows.append(row)
    return rows


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


def _parse_row(row: Any, where: str) -> tuple[str | None, dict[str, float]]:
    """Return the item's id, None without one, and the parameters of one row."""
    cells = {str(key).strip().lower(): value for key, value in row.items()} if isinstance(row, dict) else {}
    name = next((_as_id(cells[key]) for key in _IDS if cells.get(key) is not None), None)
    values = {
        parameter: float(cells[key])
        for parameter, keys in _PARAMETERS.items()
        for key in reversed(keys)  # so that the first name counts where there are two
        if isinstance(cells.get(key), int | float)
    }
    values |= {key: float(x) for key, x in cells.items() if _SLOPE.fullmatch(key) and type(x) in (int, float)}
    if "difficulty" not in values and not ("intercept" in values and any(map(_SLOPE.fullmatch, values))):
        raise ResponsesError(
            f"{where}: expected an object with id (or {', '.join(filter(None, _IDS[1:]))}) and difficulty (or "
            f"{', '.join(_PARAMETERS['difficulty'][1:])}), a number; or with d and a1, as mirt writes them"
        )
    if "difficulty" in values:
        values.pop("intercept", None)
    for parameter, value in values.items():
        in_range = 0 <= value < 1 if parameter == "guess" else math.isfinite(value)
        if not in_range:
            expected = "a number in [0, 1)" if parameter == "guess" else "a finite number"
            raise ResponsesError(f"{where}: the item {name!r} has {parameter} {value}, expected {expected}")
    if values.pop("upper", 1.0) < 1.0:
        raise ResponsesError(f"{where}: the item {name!r} has an upper asymptote below 1, which no model here has")
    return name, values


def _as_id(value: Any) -> str:
    """Return an id as text; a whole number of a table has no point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
