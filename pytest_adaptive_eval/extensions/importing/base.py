"""Declaration of an item importer, what it is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.rows import TableRecord, within
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import replaced


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Choices of the user.

    Args:
        mapping: Fields that the user named; the others are an importer's own, or guessed.
        labels_by: Expression of the id in the second file; that of the item when empty.
        partial: Whether a data set counts if more than half of its records are refused.
    """

    mapping: ItemMapping = field(default_factory=ItemMapping)
    files: str = ""
    labels: Path | None = None
    labels_by: str = ""
    image_root: Path | None = None
    split: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """Records of one form: an opened data set, or its files with the same fields.

    Args:
        name: Begin of ids of records without one.
        records: Return a new iterator over the records, or over the first ones of each file.
        bases: Folders in which images are looked up, the nearest first; nothing outside the last is read.
        folder: Folder of the files, in which others may hold what the records refer to.
        facts: Source, licence and hashes of the files, as JSON data.
        files: Names of the files, where a data set has several forms.
    """

    name: str
    records: Callable[[int | None], Iterator[TableRecord]]
    mapping: ItemMapping
    bases: tuple[Path, ...] = ()
    folder: Path | None = None
    labels: Path | None = None
    labels_by: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def at_rows(self, rows: str) -> Dataset:
        """Return the data set with the records at a place within each of its records."""

        def records(limit: int | None = None) -> Iterator[TableRecord]:
            return chain.from_iterable(within(record, rows) for record in self.records(limit))

        return replace(self, records=records, mapping=replaced(self.mapping, rows=rows))

    def without(self, reason: Callable[[TableRecord], str]) -> Dataset:
        """Return the data set with the records refused for which there is a reason."""

        def records(limit: int | None = None) -> Iterator[TableRecord]:
            for record in self.records(limit):
                why = reason(record)
                yield record._replace(names={**record.names, "refused": why}) if why else record

        return replace(self, records=records)


@dataclass(frozen=True, slots=True)
class Importer:
    """One published benchmark, or one tool whose data sets are read.

    Args:
        name: Value of ``--preset``; of a tool also the begin of a source, as in ``hf:OWNER/NAME``.
        open: Open a source by the user's settings, as a data set for each form of its files. Raises `DatasetError`.
        ask: How the benchmark is usually asked: ``generation`` or ``likelihood``.
        few_shot: Where its examples for the prompt are published, such as the split ``dev``; empty if it has none.
        by_source: Whether the source names a data set of a tool, instead of a file or folder.
    """

    name: str
    summary: str
    open: Callable[[str, ImportSettings], Sequence[Dataset]]
    ask: str = "generation"
    few_shot: str = ""
    by_source: bool = False
