"""Read a bank: a folder with parameters, or a plain JSONL of items.

Items are made on access, so a bank may be large. A bank folder ``NAME.bank/`` holds ``bank.json`` (metadata),
``params.npz`` (ids, parameters and the offset of each item's line), ``items.jsonl`` (texts) and ``images/``;
``formats.npz`` and ``predictor.npz`` hold the arrays of what some banks have besides. Nothing in it is executed: npz
files are read without pickle, and a grader's code runs only if the user lists its module.
"""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
import mmap
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.hashes import file_hash, hashes_of
from pytest_adaptive_eval.banks.items import NO_TASKS, parse_item
from pytest_adaptive_eval.banks.plain import PlainReader, PlainRow
from pytest_adaptive_eval.banks.ready import missing_bank, read_ready, ready_name
from pytest_adaptive_eval.banks.rows import suffix_of
from pytest_adaptive_eval.errors import BankError, EstimationError
from pytest_adaptive_eval.inference.conformal import Conformal
from pytest_adaptive_eval.inputs import files_of_pytest, open_regular, read_regular, reading
from pytest_adaptive_eval.irt.prediction import Design, Predictor
from pytest_adaptive_eval.items.bank import Computed, ItemBank, scale_id
from pytest_adaptive_eval.items.item import Grader, Item
from pytest_adaptive_eval.types import Ints

if TYPE_CHECKING:
    from pytest_adaptive_eval.irt.multimodal import FormatScale

SCHEMA_VERSION = 1


def _edited(path: Path, mismatch: str) -> BankError:
    return BankError(f"{path}: {mismatch}: the texts were edited after calibration; write the bank again")


#: Names of the graders, and the tasks, that a bank may use.
_Trusted = tuple[Sequence[str], Mapping[str, Grader]]
#: Endings of files that hold no items in lines.
_TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".xlsx")
#: Number of items of a file that are kept after they are parsed: interviews side by side read each more than once.
KEPT_ITEMS = 256

#: A letter or underscore that is written as an escape, as in a name that a search for its text would miss.
_ESCAPED = rb"\\u00(?:5[fF]|6[1-9a-fA-F]|7[0-9aA])"


class _LazyItems(Computed):
    """Items of a JSONL file, parsed on access.

    Args:
        offsets: Where each item's line begins.
        lines: Line number of each item; by default they follow each other.
        text: Returns the file's content. It is called on access.
    """

    def __init__(
        self,
        path: Path,
        ids: Sequence[str],
        offsets: Ints,
        trusted: _Trusted,
        text: Callable[[], bytes | mmap.mmap],
        *,
        lines: Sequence[int] | None = None,
    ) -> None:
        self._path = path
        self._ids = ids
        self._offsets = offsets
        self._trusted = trusted
        self._text = text
        self._lines: Sequence[int] = range(1, len(ids) + 1)
        if lines is not None:
            self._lines = lines
        self._root = str(path.parent)
        super().__init__(len(ids), functools.lru_cache(KEPT_ITEMS)(self._parse))

    def _parse(self, i: int) -> Item:
        text = self._text()
        start = int(self._offsets[i])
        number = self._lines[i]
        line = text[start : text.find(b"\n", start) + 1 or None]  # the last one may have no end
        item = parse_item(line, f"{self._path}:{number}", self._root, *self._trusted)
        if item.id != self._ids[i]:
            raise _edited(self._path, f"line {number} has item {item.id!r}, expected {self._ids[i]!r} as in params.npz")
        return item

    def places_naming(self, names: Iterable[str]) -> Iterator[int]:
        """Yield the places of items whose line has one of these texts, in order; see `items.item.items_naming`."""
        text = self._text()
        quoted = [re.escape(json.dumps(name).encode()) for name in names]
        pattern = b"|".join([*quoted, _ESCAPED] if text.find(b"\\u00") >= 0 else quoted)
        starts = (match.start() for match in re.finditer(pattern, text))
        positions = (int(np.searchsorted(self._offsets, start, side="right")) - 1 for start in starts)
        return (position for position, _ in itertools.groupby(positions))


def _text_of(path: Path, expected: str) -> mmap.mmap:
    """Return the text of a bank folder's file, after the check of its hash."""
    with reading(path, BankError):
        if (actual_hash := file_hash(path)) != expected:
            raise _edited(path, f"its hash is {actual_hash}, bank.json says {expected}")
        with open_regular(path, follow=False) as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Ids(Sequence[str]):
    """Item ids in one byte array, which needs a tenth of the memory of strings."""

    def __init__(self, array: NDArray[np.bytes_]) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [v.decode() for v in self._array[i].tolist()]
        return bytes(self._array[i]).decode()

    def __iter__(self) -> Iterator[str]:
        return (v.decode() for v in self._array.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.bytes_]:
        return self._array


def read_bank(path: str | Path, *, graders: Sequence[str] = (), tasks: Mapping[str, Grader] = NO_TASKS) -> ItemBank:
    """Read a bank from ``NAME.bank/`` or from a JSONL file of items, or a ready one by ``ready:NAME``.

    Args:
        graders: Modules whose functions may grade (``python:module:function``).
        tasks: Grader by task family, for items whose grader is ``task``. Without it, such items can be read but not
            graded.

    Returns:
        Uncalibrated when `path` is a JSONL file. Its rows are checked now, and its items are made on access.

    Raises:
        BankError: The bank is missing, malformed, edited, or of a newer version.
    """
    path = Path(path)
    if name := ready_name(path):
        return read_ready(name).bank()
    with reading(path, BankError):
        if path.is_dir():
            return _read_folder(path, (graders, tasks))
        if os.path.lexists(path):
            return _read_jsonl(path, (graders, tasks))
    raise BankError(missing_bank([str(path)]))


def _read_jsonl(path: Path, trusted: _Trusted) -> ItemBank:
    """Check every row of a file, whose items are made on access from the text as it was."""
    text = read_regular(path)
    if text.lstrip()[:1] == b"[" or suffix_of(path) in _TABLES:
        raise BankError(
            f"{path} is a table or a list; expected a bank folder, or an item in each line: make a bank of it by "
            f"`adaptive-eval import {path} -o {path.stem}.bank`"
        )
    plain = PlainReader()
    name = str(path)
    root = str(path.parent)
    ids = []
    offsets = []
    lines = []
    categories = []
    digest = hashlib.sha256()
    offset = 0
    textless = False
    for number, line in enumerate(io.BytesIO(text), 1):
        if not line.isspace():
            row: PlainRow | Item
            if (read := plain.read(line)) is not None:
                row, hashed = read
            else:
                row = parse_item(line, f"{name}:{number}", root, *trusted)
                hashed = hashes_of(row)
                textless = textless or row.meta.get("textless") is True
            digest.update(hashed.encode())
            ids.append(row.id)
            offsets.append(offset)
            lines.append(number)
            categories.append(sys.intern(row.category[0]) if row.category else "")
        offset += len(line)
    if not ids:
        raise BankError(f"{path}: no items; one JSON object a line is expected, with id, prompt and answer")
    _check_unique(path, ids, lines)
    starts = np.array(offsets, dtype=np.int64)
    short_ids = _Ids(np.array([item.encode() for item in ids], dtype="S"))
    return ItemBank.uncalibrated(
        path.name.removesuffix(".jsonl").removesuffix(".items"),
        _LazyItems(path, short_ids, starts, trusted, lambda: text, lines=lines),
        ids=short_ids,
        content_hash=digest.hexdigest()[:16],
        categories=categories,
        report=MappingProxyType({"textless": True} if textless else {}),
    )


def _check_unique(path: Path, ids: Sequence[str], lines: Sequence[int]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(item_id for item_id, count in Counter(ids).items() if count > 1)
        earlier, number = [line for item_id, line in zip(ids, lines, strict=True) if item_id == twice][:2]
        raise BankError(f"{path}:{number}: the item id {twice!r} is already in line {earlier}; ids must be unique")


def is_bank(path: Path) -> bool:
    """Return whether `path` is a bank folder, intact or damaged."""
    return (path / "bank.json").is_file()


def _read_folder(path: Path, trusted: _Trusted) -> ItemBank:
    for name in ("bank.json", "params.npz", "items.jsonl"):
        try:
            open_regular(path / name, follow=False).close()
        except FileNotFoundError:
            raise BankError(
                f"{path}: {name} is missing; a bank folder holds bank.json, params.npz and items.jsonl"
            ) from None
    if strange := files_of_pytest(path):
        raise BankError(
            f"{path / strange[0]} would be run by pytest and does not belong in a bank; inspect and remove it"
        )
    about = _read_about(path)
    columns = _read_columns(path / "params.npz")
    ids = _Ids(columns["ids"])
    texts = path / "items.jsonl"
    if (size := texts.stat().st_size) != about.items_bytes:
        raise _edited(texts, f"it has {size} bytes, bank.json says {about.items_bytes}")
    codes = columns["category"]
    in_range = (codes >= 0) & (codes < len(about.categories))
    text = functools.cache(lambda: _text_of(texts, about.items_hash))
    try:
        further: dict[str, Any] = {
            "conformal": MappingProxyType({row["policy"]: Conformal.from_json(row) for row in about.conformal}),
            "in_formats": about.in_formats and _in_formats(path, about.in_formats, len(ids)),
            "predictor": about.predictor and _predictor(path, about.predictor),
        }
    except (KeyError, TypeError, ValueError, EstimationError) as error:
        raise BankError(f"{path}: malformed calibration ({error!r}); calibrate the bank again") from None
    bank = ItemBank(
        name=path.name.removesuffix(".bank"),
        ids=ids,
        items=_LazyItems(texts, ids, columns["offset"], trusted, text),
        discrimination=columns["discrimination"],
        intercept=columns["intercept"],
        guess=columns["guess"],
        calibrated=about.model != "none",
        model=about.model,
        scale=about.scale,
        content_hash=about.content_hash,
        categories=list(map([*about.categories, ""].__getitem__, np.where(in_range, codes, -1).tolist())),
        subjects=about.subjects,
        accuracies=about.accuracies,
        accuracy_ranges=about.accuracy_ranges,
        report=MappingProxyType(about.report),
        **further,
    )
    if bank.calibrated:
        scale = scale_id(bank.discrimination, bank.intercept, bank.guess)
    else:
        scale = ""
    if scale != bank.scale:
        raise BankError(
            f"{path / 'params.npz'}: the parameters' scale is {scale}, bank.json says {bank.scale}: the two files are "
            "not of one fit; write the bank again"
        )
    return bank


class _About(msgspec.Struct):
    """Content of bank.json; a bank need not have accuracies.

    Args:
        accuracies: Of the calibration subjects.
        accuracy_ranges: Their least and largest accuracies; empty where no score is missing.
    """

    model: str = ""
    scale: str = ""
    content_hash: str = ""
    items_hash: str = ""
    items_bytes: int = 0
    categories: list[str] = []
    subjects: tuple[str, ...] = ()
    accuracies: tuple[float, ...] = ()
    accuracy_ranges: tuple[tuple[float, float], ...] = ()
    report: dict[str, Any] = {}
    conformal: list[dict[str, Any]] = []
    in_formats: dict[str, Any] | None = None
    predictor: dict[str, Any] | None = None


def _read_about(path: Path) -> _About:
    """Return the content of bank.json."""
    file = path / "bank.json"
    try:
        about = json.loads(read_regular(file, follow=False))
        version = None
        if isinstance(about, dict):
            version = about.get("schema_version")
        if version == SCHEMA_VERSION:
            return msgspec.convert(about, _About)
    except (ValueError, RecursionError) as error:  # of msgspec too
        raise BankError(f"{file}: not the JSON of a bank: {error}; write the bank again") from None
    raise BankError(
        f"{file}: schema_version is {version!r}, this version reads {SCHEMA_VERSION}; write the bank again or upgrade "
        "the package"
    )


def _predictor(path: Path, about: Mapping[str, Any]) -> Predictor:
    """Read a predictor: arrays from predictor.npz, designs and hash from bank.json."""
    file = path / "predictor.npz"
    columns = _arrays(file)
    designs = tuple(Design.from_json(row) for row in about["designs"])
    arrays = (columns["residuals"].astype(float), columns["level"].astype(float), columns["order"].astype(np.int64))
    predictor = Predictor(*arrays, designs)
    if predictor.hash != about.get("hash"):
        raise BankError(
            f"{file}: the predictor's hash is {predictor.hash}, bank.json says {about.get('hash')}: the two files are "
            "not of one calibration; calibrate the bank again"
        )
    return predictor


def _in_formats(path: Path, about: Mapping[str, Any], size: int) -> FormatScale:
    """Read the parameters of items in formats: numbers from formats.npz, names and settings from bank.json."""
    from pytest_adaptive_eval.irt.multimodal import FormatScale, Modalities, MultimodalItems, Population

    columns = _arrays(path / "formats.npz")
    modalities = Modalities(tuple(about["modalities"]), tuple(about["formats"]))
    parameters = (columns["discrimination"], columns["difficulty"])
    items = MultimodalItems(modalities, about["form"], float(about["bound"]), *parameters)
    population = Population(columns["mean"], columns["covariance"], items.bound)
    scale = FormatScale(items, population, columns["standings"], MappingProxyType(about.get("report", {})))
    if len(items) != size or scale.unit.shape != columns["standings"].shape[1:]:
        raise ValueError(f"{len(items)} items of {size}, standings of shape {columns['standings'].shape}")
    return scale


_COLUMNS = {"ids": "S", "discrimination": "f", "intercept": "f", "guess": "f", "category": "i", "offset": "i"}


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # Opened here, because numpy does not close a file that is not an archive.
        with open_regular(path, follow=False) as stream, np.load(stream, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
            if others := [name for name, value in columns.items() if not isinstance(value, np.ndarray)]:
                raise ValueError(f"{others[0]!r:.80} is not an array")
            return columns
    except OSError:
        raise
    except Exception as error:  # zip, its decompressors and numpy have errors of their own
        raise BankError(f"{path}: not a readable npz of plain arrays ({error}); write the bank again") from None


def _read_columns(path: Path) -> dict[str, NDArray[Any]]:
    columns = _arrays(path)
    for name, kind in _COLUMNS.items():
        if name not in columns or columns[name].dtype.kind != kind or not columns[name].ndim:
            raise BankError(f"{path}: the column {name!r} is missing or not of kind {kind!r}; write the bank again")
        if len(columns[name]) != len(columns["ids"]):
            raise BankError(f"{path}: {len(columns[name])} values of {name} for {len(columns['ids'])} ids")
    return columns
