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
        mapping: Fields that the user named; the others are an importer's own, or proposed.
        labels_by: Expression of the id in the second file; that of the item when empty.
        ignore: Fields that the questions do not need.
        paths: Further files, read with the first one.
    """

    mapping: ItemMapping = field(default_factory=ItemMapping)
    files: str = ""
    labels: Path | None = None
    labels_by: str = ""
    image_root: Path | None = None
    split: str = ""
    ignore: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """Records that one mapping reads.

    Args:
        name: Begin of ids of records without one.
        records: Return a new iterator over the records, or over the first ones of each file.
        bases: Folders in which images are looked up, the nearest first; nothing outside the last is read.
        facts: Source, licence and hashes of the files, as JSON data.
        files: Names of the files, where a data set has several mappings.
    """

    name: str
    records: Callable[[int | None], Iterator[TableRecord]]
    mapping: ItemMapping
    bases: tuple[Path, ...] = ()
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


@dataclass(frozen=True, slots=True)
class Importer:
    """One published benchmark, or one tool whose data sets are read.

    Args:
        name: Value of ``--preset``; of a tool also the begin of a source, as in ``hf:OWNER/NAME``.
        open: Open a source by the user's settings, as a data set for each mapping. Raises `DatasetError`.
        ask: How the benchmark is usually asked: ``generation`` or ``likelihood``.
        few_shot: Where its examples for the prompt are published, such as the split ``dev``; empty if it has none.
        by_source: Whether the source names a data set of a tool, instead of a file or folder.
        proposes: Whether its mapping is completed by the names of fields and confirmed by a person.
    """

    name: str
    summary: str
    open: Callable[[str, ImportSettings], Sequence[Dataset]]
    ask: str = "generation"
    few_shot: str = ""
    by_source: bool = False
    proposes: bool = False
