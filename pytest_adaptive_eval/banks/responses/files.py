"""What the readers share: bounded reading, choosing among names, and collecting scores."""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pytest_adaptive_eval.checks import unique_keys
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular, open_text, read_regular
from pytest_adaptive_eval.items.responses import Responses

__all__ = [
    "LIMIT",
    "Collected",
    "choose",
    "files_of",
    "head",
    "json_lines",
    "lines",
    "load_file",
    "load_json",
    "named",
    "score",
]

#: Bytes or characters that are read of one file or archive member, decompressed: what a few hundred bytes of an
#: archive can claim to be must not fill the memory.
LIMIT = 2**31

#: Characters of a line; a hundred thousand items take about 2 million.
_LINE = 64_000_000

#: Folders below the one named; the tools' own layouts have three.
_DEPTH = 5


def lines(path: Path) -> Iterator[str]:
    """Lines of a text file or of a gzipped one, with their ends and without a byte-order mark.

    Raises
    ------
    ResponsesError
        Not UTF-8, a broken archive, or larger than the limits.
    """
    number = size = 0
    with open_text(path) as stream:
        try:
            while line := stream.readline(_LINE):
                number += 1
                size += len(line)
                if len(line) == _LINE or size > LIMIT:
                    raise ResponsesError(
                        f"{path}, line {number}: more than {_LINE} characters in a line or {LIMIT} in all; split the "
                        "file"
                    )
                yield line
        except UnicodeDecodeError as error:
            raise ResponsesError(
                f"{path}, after line {number}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
            ) from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ResponsesError(
                f"{path}, after line {number}: the archive is broken ({error}); copy it anew"
            ) from None


def head(path: Path, size: int = 65_536) -> str:
    """Give the beginning of a file, for recognising it."""
    with open_regular(path) as file:
        return file.read(size).decode("utf-8-sig", "replace")


def load_json(text: str | bytes, where: str) -> Any:
    """Parse JSON; NaN and Infinity are let through, since the tools write them."""
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise ResponsesError(f"{where}: not JSON ({error}); copy or write the file anew") from None


def load_file(path: Path) -> Any:
    """Parse a JSON file of a bounded size."""
    if (size := path.stat().st_size) > LIMIT:
        raise ResponsesError(f"{path}: {size} bytes, at most {LIMIT} are read; split the file")
    return load_json(read_regular(path), str(path))


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of a JSON lines file, with the place that messages name."""
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        data = load_json(line, where)
        if not isinstance(data, dict):
            raise ResponsesError(f"{where}: found {type(data).__name__}, expected one JSON object a line")
        yield where, data


def files_of(folder: Path) -> list[Path]:
    """Files in a folder and a few levels below it, sorted by path; links are followed, each folder once."""
    found: list[Path] = []
    seen: set[str] = set()
    for base, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(base)) in seen or len(Path(base).relative_to(folder).parts) > _DEPTH:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        # What Excel and macOS leave beside open files has the same suffix and other content.
        found += [Path(base) / name for name in names if not name.startswith(("~$", "._"))]
    return sorted(path for path in found if path.is_file())


def score(value: Any, where: str) -> float:
    """One score as a number, NaN for none.

    Raises
    ------
    ResponsesError
        Anything else than a number in [0, 1], a truth value, None or NaN.
    """
    if value is None:
        return math.nan
    if isinstance(value, int | float) and (0 <= value <= 1 or math.isnan(value)):
        return float(value)
    raise ResponsesError(
        f"{where}: found {value!r:.80}, expected a score in [0, 1], true, false, or null where missing"
    )


def named(value: Any, what: str, where: str) -> str:
    """An id as text; whole numbers are ids too.

    Raises
    ------
    ResponsesError
        There is none.
    """
    if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value).strip()):
        return text
    raise ResponsesError(f"{where}: {what} is {value!r:.80}, expected a text or a whole number")


def choose(flag: str, found: Collection[str], wanted: str | None, where: str) -> str:
    """The one name to use among several: never a guess.

    Parameters
    ----------
    flag : str
        The parameter that chooses, as messages call it.
    found : collection of str
    wanted : str or None
        One name, or several with commas: the first that is among `found`, so that
        tasks which call it differently can be read together.
    where : str

    Raises
    ------
    ResponsesError
        Several and none wanted, or none of those wanted.
    """
    if wanted is None:
        if len(found) == 1:
            return next(iter(found))
        problem = "and which one counts must be said"
    else:
        for name in wanted.split(","):
            if name.strip() in found:
                return name.strip()
        problem = f"and {flag} is {wanted!r}"
    names = sorted(found)
    raise ResponsesError(
        f"{where}: found {', '.join(map(repr, names[:12]))}{', ..' if len(names) > 12 else ''} {problem}; give {flag} "
        f"one of them, or several with commas, of which the first that is there counts"
    )


class Collected:
    """Scores gathered one by one; several of one subject on one item count as their mean.

    Parameters
    ----------
    source : str
        For messages.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._items: dict[str, int] = {}
        self._scores: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, subject: str, item: str, score: float) -> None:
        """Take one score; NaN says that the item was there and has none."""
        positions, scores = self._scores.setdefault(subject, (array("q"), array("d")))
        positions.append(self._items.setdefault(item, len(self._items)))
        scores.append(score)

    def responses(self) -> Responses:
        """All of them, subjects and items in the order of their first score."""
        n = len(self._items)
        table = np.full((len(self._scores), n), np.nan)
        for row, (positions, scores) in zip(table, self._scores.values(), strict=True):
            where, values = np.array(positions, dtype=np.int64), np.array(scores)
            scored = ~np.isnan(values)
            counts = np.bincount(where[scored], minlength=n)
            sums = np.bincount(where[scored], weights=values[scored], minlength=n)
            # A mean of thirds may come out as 1 + 2e-16.
            row[counts > 0] = np.minimum(sums[counts > 0] / counts[counts > 0], 1.0)
        return Responses(tuple(self._scores), tuple(self._items), table, source=self._source)
