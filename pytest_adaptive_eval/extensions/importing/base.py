"""Declaration of an item importer, what it is given and what it returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import AdaptiveEvalError, DatasetError
from pytest_adaptive_eval.extensions.importing.undecided import Undecided, reason_kind
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.mappings import ItemMapping, split_list
from pytest_adaptive_eval.typed_tables import read_table, replaced

#: Places of refused records that are listed for each reason.
_SHOWN = 3


class ImportSettings(ItemMapping, frozen=True):
    """Settings of ``import``: the mapping of fields, and what is read.

    Args:
        ignore: Fields that the questions do not need.
        files: Files of a folder that count, such as '*_test.csv'.
        paths: Further files of the data set, or folders.
        split: Split that counts (of a preset, the first of test, validation, dev and train).
        labels: Second file with the answers, or $label: a line each, or by id.
        labels_by: Id in the second file, such as rule_id (the id of the item).
        image_root: Folder that image paths are relative to.
        source: Where the data come from, for the record (the name of the data).
        licence: Licence of the data, for the record (read from files beside them).
    """

    ignore: tuple[str, ...] = ()
    files: str = ""
    paths: tuple[str, ...] = ()
    split: str = ""
    labels: str = ""
    labels_by: str = ""
    image_root: str = ""
    source: str = ""
    licence: str = ""


_DEFAULTS = ImportSettings()


@dataclass(frozen=True, slots=True)
class Dataset:
    """Records that one mapping reads.

    Args:
        name: Begin of ids of records without one.
        read: Return a new iterator over the records for a mapping, or over the first ones of each file.
        bases: Folders in which images are looked up, the nearest first; nothing outside the last is read.
        facts: Source, licence and hashes of the files, as JSON data.
        files: Names of the files, where a data set has several mappings.
    """

    name: str
    read: Callable[[ItemMapping, int | None], Iterator[TableRecord]]
    mapping: ItemMapping
    settings: ImportSettings
    bases: tuple[Path, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def records(self, limit: int | None = None) -> Iterator[TableRecord]:
        """Yield all records, or the first ones of each file."""
        return self.read(self.mapping, limit)


@dataclass(slots=True)
class Imported(AbstractContextManager["Imported"]):
    """Result of an import; use it as a context, which removes the copies of images at its end.

    Args:
        parts: Names of the files that each mapping read (none where it read all), with the mapping.
        facts: Source, licence, hashes of the files and the mapping, for the bank's report.
        proposed: Whether the mapping follows from names, and a person has to confirm it.
        unused: Fields that no question uses; first the ones that questions may need.
        undecided: Errors of refused records that settings can decide, by their reasons.
    """

    store: ImageStore
    proposed: bool
    facts: dict[str, Any]
    items: list[Item] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parts: list[tuple[tuple[str, ...], ItemMapping]] = field(default_factory=list)
    unused: list[Any] = field(default_factory=list)
    undecided: dict[str, Undecided] = field(default_factory=dict)

    def refuse(self, where: str, error: AdaptiveEvalError) -> None:
        """Leave a record out."""
        reason = re.sub(r"\A.*?: item '[^']*'(?:: | )", "", str(error))
        self.refused.append((where, reason))
        if isinstance(error, Undecided):
            self.undecided[reason] = error

    def problem(self, reason: str) -> str:
        """Return a reason without advice, which may not fit all of the data."""
        error = self.undecided.get(reason)
        if error:
            return error.problem
        return reason

    @property
    def read(self) -> int:
        """Number of records that were read and not left out by the mapping."""
        return len(self.items) + len(self.refused)

    def reasons(self) -> list[tuple[int, str, str]]:
        """Return how many records were refused for each kind of reason, an example of it, and the first places."""
        kinds: dict[str, list[tuple[str, str]]] = {}
        for where, reason in self.refused:
            kinds.setdefault(reason_kind(self.problem(reason)), []).append((where, reason))
        rows = []
        for entries in sorted(kinds.values(), key=len, reverse=True):
            first, *others = (where for where, _ in entries[:_SHOWN])
            file = first.partition(", ")[0]
            first_places = "".join([first, *(where.removeprefix(file) for where in others)])
            if len(entries) > _SHOWN:
                more = f" and {len(entries) - _SHOWN} more"
            else:
                more = ""
            rows.append((len(entries), entries[0][1], first_places + more))
        return rows

    def refusals(self) -> str:
        """Return how many records were refused, the commonest reason and what to do; needs a refused record."""
        count, reason, first_places = self.reasons()[0]
        return (
            f"{len(self.refused)} of {self.read} records are refused, {count} because {reason} ({first_places}): "
            "change the mapping, or go on without them by --partial"
        )

    def __exit__(self, *_: object) -> None:
        self.store.close()


@dataclass(frozen=True, slots=True)
class Importer:
    """One published benchmark, or one tool whose data sets are read.

    Args:
        name: Value of ``--preset``; of a tool also the begin of a source, as in ``hf:OWNER/NAME``.
        open: Open a source by the user's settings, as a data set for each mapping. Raises `DatasetError`.
        by_source: Whether the source names a data set of a tool, instead of a file or folder.
        proposes: Whether its mapping is completed by the names of fields and confirmed by a person.
    """

    name: str
    summary: str
    open: Callable[[str, ImportSettings], Sequence[Dataset]]
    by_source: bool = False
    proposes: bool = False


def applied(settings: ImportSettings, texts: Mapping[str, Any]) -> ImportSettings:
    """Return settings with values as the command line gives them, where a text may hold several expressions.

    Raises:
        ConfigError: Names the setting and its value.
    """
    data = {}
    for name, value in texts.items():
        several = name == "missing" or isinstance(getattr(_DEFAULTS, name), tuple)
        if several and isinstance(value, str):
            data[name] = split_list(value)
        else:
            data[name] = value
    read = read_table(ImportSettings, data, "--set", strict=False)
    return replaced(settings, **{name: getattr(read, name) for name in data})


def merged(defaults: ItemMapping, settings: ItemMapping) -> ItemMapping:
    """Return a mapping with the user's fields in place of its own."""
    return replaced(defaults, **{name: getattr(settings, name) for name in settings.given()})


def tool_package(name: str, source: str, install: str = "") -> Any:
    """Import the package of a tool.

    Raises:
        DatasetError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        package = install or name.partition(".")[0].replace("_", "-")
        raise DatasetError(f"{source}: the package {package} is needed; pip install {package}") from None


@contextmanager
def foreign_code(problem: str, advice: str = "") -> Iterator[None]:
    """Turn any error of a tool, its network or a user's code in a block into a refusal."""
    try:
        yield
    except DatasetError:
        raise
    except Exception as error:  # of code that is not this project's
        first_line = (str(error).splitlines() or [""])[0]
        raise DatasetError(f"{problem} ({type(error).__name__}: {first_line:.200}){advice}") from None


def tool_dataset(
    source: str,
    name: str,
    entries: Iterable[Any],
    read: Callable[[Any], Mapping[str, Any]],
    mapping: ItemMapping,
    settings: ImportSettings,
    **facts: Any,
) -> list[Dataset]:
    """Return the data set of a tool.

    Args:
        entries: Its rows, which are read again for each pass.
        read: Return the fields of an entry. Raises `DatasetError` for one that is left out.
    """

    def records(_: ItemMapping, limit: int | None) -> Iterator[TableRecord]:
        for number, entry in enumerate(islice(entries, limit), 1):
            names: dict[str, Any] = {"line": number, "key": "", "file": name, "set": name}
            data: Mapping[str, Any] = {}
            try:
                data = read(entry)
            except DatasetError as error:
                names["refused"] = str(error)
            yield TableRecord(f"{source}, row {number}", data, names)

    about = {"source": source, "licence": "", "files": {}, **facts}
    bases: tuple[Path, ...] = ()
    if settings.image_root:
        bases = (Path(settings.image_root),)
    return [Dataset(name, records, merged(mapping, settings), settings, bases, about)]
