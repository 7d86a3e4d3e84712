"""Import a published data set: find its records, map their fields, and return items with what was refused and why."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Imported, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.check import MOST_CHECKED
from pytest_adaptive_eval.extensions.importing.items import build_items
from pytest_adaptive_eval.extensions.importing.proposal import (
    APART,
    SAMPLE,
    UNLABELLED,
    is_complete,
    nested_rows,
    propose,
    unused_fields,
)
from pytest_adaptive_eval.extensions.importing.reading import Draft, RecordReader
from pytest_adaptive_eval.extensions.importing.sources import open_source, read_labels
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.typed_tables import find_named, replaced

#: Presets and loaders of tools by name.
IMPORTERS: Mapping[str, Importer] = registered(None, "adaptive_eval.item_importers", Importer)
#: Files and folders of any other data set.
_GENERAL = Importer(
    "general",
    "any data set",
    lambda source, settings: [open_source(source, settings, first=False)],
    proposes=True,
)
#: Characters of all questions of a data set, which are kept in memory, and of the records that are looked at.
_TEXT_LIMIT, _SAMPLE_LIMIT = 96_000_000, 48_000_000
#: Items whose graders are checked where few records are read to try settings.
_CHECKED_IN_TRIALS = 200
#: Where records are in lines, a list, an object or lists in an object.
_PLACES = ("", "[*].", "*.", "*.[*].")


def import_items(
    source: str,
    settings: ImportSettings | None = None,
    importer: str = "",
    limit: int | None = None,
    *,
    proposes: bool = False,
) -> Imported:
    """Read a published data set.

    Args:
        source: A file, a folder, or a data set of a tool, such as ``hf:OWNER/NAME``.
        importer: Name of a preset. Without it, and without a mapping of question and answer,
            the mapping is proposed from the names of fields.
        proposes: Whether a mapping of question and answer is completed from names too.
        limit: About how many records are read, the first of each file; all where it is None.

    Raises:
        ConfigError: An unknown preset, or a malformed expression.
        DatasetError: The data set cannot be read; the message names the option to give.
    """
    settings = settings or ImportSettings()
    tool, mark, rest = source.partition(":")
    reader = IMPORTERS.get(tool, _GENERAL)
    if importer:
        reader = find_named("the preset", importer, IMPORTERS)
    elif mark and reader.by_source:
        source = rest
    else:
        reader = _GENERAL
    datasets = reader.open(source, settings)
    hashes = {name: hashed for dataset in datasets for name, hashed in dataset.facts["files"].items()}
    facts = {**datasets[0].facts, "files": hashes, "importer": importer or "general"}
    proposed = reader.proposes and (proposes or not is_complete(settings))
    imported = Imported(ImageStore(None, datasets[0].bases), proposed, facts)
    for dataset in datasets:
        imported.notes += dataset.notes
    _read(imported, datasets, settings, limit)
    return imported


def _read(imported: Imported, datasets: Sequence[Dataset], settings: ImportSettings, limit: int | None) -> None:
    """Read the records of each mapping, and build the items of all."""
    groups: list[tuple[list[Draft], ItemMapping]] = []
    for dataset in datasets:
        mapping = _whole_mapping(imported, dataset, settings)
        imported.parts.append((dataset.files if len(datasets) > 1 else (), mapping))
        number = sum(len(drafts) for drafts, _ in groups) + len(imported.refused)
        drafts = _drafts(replace(dataset, mapping=mapping), number, imported, limit)
        groups.append((drafts, mapping))
    build_items(groups, imported, datasets[0].name, _CHECKED_IN_TRIALS if limit else MOST_CHECKED)
    # line 2 comes before line 10
    imported.refused.sort(
        key=lambda entry: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry[0])]
    )
    imported.facts["mappings"] = [mapping.given() for _, mapping in imported.parts]


def _whole_mapping(imported: Imported, dataset: Dataset, settings: ImportSettings) -> ItemMapping:
    """Return a mapping with what the names of fields say, and add the fields that a proposal leaves out."""
    if not imported.proposed:
        return propose(_sample(dataset), dataset.mapping, APART)
    mapping, sample = _nested(dataset, _sample(dataset))
    labelled = settings.labels and not settings.labels_by
    mapping = propose(sample, mapping, UNLABELLED if labelled else (), settings.ignore)
    imported.unused += unused_fields(sample, mapping, (*settings.ignore, settings.labels_by))
    return mapping


def _nested(dataset: Dataset, sample: list[TableRecord]) -> tuple[ItemMapping, list[TableRecord]]:
    """Return the mapping at the records that have questions, and its first ones."""
    given = dataset.mapping
    if given.rows or given.question or given.messages:
        rows = ""
    else:
        rows = nested_rows(sample)
    for prefix in _PLACES if rows else ():
        mapping = replaced(given, rows=f"{prefix}{rows}")
        with contextlib.suppress(DatasetError):
            return mapping, _sample(replace(dataset, mapping=mapping))
    return given, sample


def _sample(dataset: Dataset) -> list[TableRecord]:
    """Return the first records of each file of a data set."""
    sample = []
    size = 0
    for record in islice(dataset.records(SAMPLE), 2 * SAMPLE):
        sample.append(record)
        size += _size_of(record.data.values())
        if size > _SAMPLE_LIMIT:
            break
    if not sample:
        source = dataset.facts.get("source", dataset.name)
        raise DatasetError(f"{source}: no records; expected one record for each question")
    return sample


def _size_of(cells: Iterable[Any]) -> int:
    """Return the number of characters and bytes in values."""
    return sum(len(cell) if isinstance(cell, str | bytes) else len(repr(cell)) for cell in cells)


def check_refused(imported: Imported, source: str) -> None:
    """Refuse an import if more than half of its records are refused, as by a wrong mapping.

    Raises:
        DatasetError: Names the commonest reason.
    """
    if len(imported.refused) * 2 > imported.read:
        raise DatasetError(f"{source}: {imported.refusals()}")


def _drafts(dataset: Dataset, start: int, imported: Imported, limit: int | None) -> list[Draft]:
    """Return the drafts of all records, with stored images, and add place and reason of others to those refused."""
    file = dataset.settings.labels
    if file:
        labels = read_labels(Path(file))
    else:
        labels = ()
    reader = RecordReader(dataset.mapping, labels, dataset.settings.labels_by)
    drafts = []
    count = size = 0
    for count, record in enumerate(dataset.records(limit), 1):
        try:
            draft = reader.read(record, count - 1)
            if draft is None:
                continue
            draft.images = list(map(imported.store.add, draft.images))
        except (BankError, DatasetError) as error:
            imported.refuse(record.where, error)
            continue
        draft.number += start
        drafts.append(draft)
        size += _size_of([draft.question, draft.answer, *draft.choices.texts, *draft.meta.values()])
        if size > _TEXT_LIMIT:
            raise DatasetError(f"{record.where}: more than {_TEXT_LIMIT} characters of questions; split the file")
    is_by_line = not isinstance(labels, Mapping) and labels and limit is None
    if is_by_line and len(labels) != count:
        raise DatasetError(f"{file}: {len(labels)} labels for {count} records; expected one each")
    return drafts
