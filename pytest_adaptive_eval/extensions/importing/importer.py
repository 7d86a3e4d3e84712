"""Import a published data set: find its records, map their fields, and return items with what was refused and why."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.items import build_items, file_of
from pytest_adaptive_eval.extensions.importing.proposal import (
    SAMPLE,
    Unused,
    is_complete,
    named_apart,
    nested_rows,
    propose,
    unused_fields,
)
from pytest_adaptive_eval.extensions.importing.reading import Draft, RecordReader
from pytest_adaptive_eval.extensions.importing.sources import open_source, read_labels
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.typed_tables import find_named

#: Presets and loaders of tools by name.
IMPORTERS: Mapping[str, Importer] = registered(None, "adaptive_eval.item_importers", Importer)


#: Characters of all questions of a data set, which are kept in memory, and of the records that are looked at.
_TEXT_LIMIT, _SAMPLE_LIMIT = 96_000_000, 48_000_000
#: Places of refused records that are listed for each reason.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """The records that one mapping read; `files` is empty if it read all."""

    files: tuple[str, ...]
    mapping: ItemMapping


@dataclass(slots=True)
class Imported:
    """Result of an import; use it as a context, which removes the copies of images at its end.

    Args:
        facts: Source, licence, hashes of the files and the mapping, for the bank's report.
        proposed: Whether the mapping follows from names, and a person has to confirm it.
        unused: Fields that no question uses; first the ones that questions may need.
    """

    items: list[Item]
    refused: list[tuple[str, str]]
    notes: list[str]
    parts: list[DatasetPart]
    facts: dict[str, Any]
    folder: Path
    proposed: bool = False
    unused: list[Unused] = field(default_factory=list)

    @property
    def read(self) -> int:
        """Number of records that were read and not left out by the mapping."""
        return len(self.items) + len(self.refused)

    def reasons(self) -> list[tuple[int, str, str]]:
        """Return how many records were refused for each kind of reason, an example of it, and the first places."""
        kinds: dict[str, list[tuple[str, str]]] = {}
        for where, reason in self.refused:
            kinds.setdefault(re.sub(r"'[^']*'|\[.*\]|\d+", "..", reason), []).append((where, reason))
        rows = []
        for entries in sorted(kinds.values(), key=len, reverse=True):
            first, *others = (where for where, _ in entries[:_SHOWN])
            shown = "".join([first, *(where.removeprefix(file_of(first)) for where in others)])
            more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
            rows.append((len(entries), entries[0][1], shown + more))
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def import_items(source: str, settings: ImportSettings | None = None, importer: str = "") -> Imported:
    """Read a published data set.

    Args:
        source: A file, a folder, or a data set of a tool, such as ``hf:OWNER/NAME``.
        importer: Name of a preset, or a TOML file with one. Without it, and without a mapping of question and answer,
            the mapping is proposed from the names of fields.

    Raises:
        ConfigError: An unknown preset, or a malformed expression.
        DatasetError: The data set cannot be read; the message names the option to give.
    """
    settings = settings or ImportSettings()
    prefix, mark, rest = source.partition(":")
    proposed = False
    if importer:
        datasets = _preset(importer).open(source, settings)
    elif mark and prefix in IMPORTERS and IMPORTERS[prefix].by_source:
        datasets = IMPORTERS[prefix].open(rest, settings)
        proposed = IMPORTERS[prefix].proposes and not is_complete(settings.mapping)
    else:
        datasets = [open_source(source, settings, first=False).dataset(ItemMapping())]
        proposed = not is_complete(settings.mapping)
    folder = Path(tempfile.mkdtemp(prefix="adaptive-eval-import-"))
    try:
        imported = _imported(datasets, folder, settings, proposed=proposed)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    imported.facts |= {"importer": importer or "general", "mappings": [part.mapping.given() for part in imported.parts]}
    return imported


def _preset(name: str) -> Importer:
    if not name.endswith(".toml"):
        return find_named("the preset", name, IMPORTERS)
    from pytest_adaptive_eval.extensions.importing.item_importers.benchmarks import read_preset

    return read_preset(Path(name))


def _imported(datasets: Sequence[Dataset], folder: Path, settings: ImportSettings, *, proposed: bool) -> Imported:
    """Import the records of each mapping."""
    notes = [note for dataset in datasets for note in dataset.notes]
    parts: list[DatasetPart] = []
    groups: list[tuple[list[Draft], ItemMapping]] = []
    refused: list[tuple[str, str]] = []
    unused: list[Unused] = []
    store = ImageStore(folder, list(datasets[0].bases) or [folder])
    for dataset in datasets:
        if proposed:
            dataset, mapping, left_out = _proposed(dataset, settings)
            unused += left_out
        else:
            mapping = named_apart(_sample(dataset), dataset.mapping)
        number = sum(len(drafts) for drafts, _ in groups) + len(refused)
        drafts, without = _drafts(dataset, mapping, number, store)
        parts.append(DatasetPart(dataset.files, mapping))
        groups.append((drafts, mapping))
        refused += without
    built = build_items(groups, str(folder), datasets[0].name)
    # line 2 comes before line 10
    refused = sorted(
        refused + built.refused,
        key=lambda entry: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry[0])],
    )
    notes += built.notes
    return Imported(built.items, refused, notes, parts, dict(datasets[0].facts), folder, proposed, unused)


def _proposed(dataset: Dataset, settings: ImportSettings) -> tuple[Dataset, ItemMapping, list[Unused]]:
    """Return a data set at the records that have questions, its whole mapping, and fields that no question uses."""
    given, sample = dataset.mapping, _sample(dataset)
    rows = "" if given.rows or given.question or given.messages else nested_rows(sample)
    if rows:
        dataset = dataset.at_rows(rows)
        sample = _sample(dataset)
    labelled = dataset.labels is not None and not dataset.labels_by
    mapping = propose(sample, dataset.mapping, labelled=labelled)
    return dataset, mapping, unused_fields(sample, mapping, settings.ignore)


def _sample(dataset: Dataset) -> list[TableRecord]:
    """Return the first records of each file of a data set."""
    sample: list[TableRecord] = []
    size = 0
    for record in islice(dataset.records(SAMPLE), 2 * SAMPLE):
        sample.append(record)
        size += _size_of(record.data)
        if size > _SAMPLE_LIMIT:
            break
    if not sample:
        raise DatasetError(
            f"{dataset.facts.get('source', dataset.name)}: no records; expected one record for each question"
        )
    return sample


def _size_of(value: Any, depth: int = 4) -> int:
    """Return the number of characters and bytes in a value."""
    if isinstance(value, str | bytes):
        return len(value)
    if depth and isinstance(value, Mapping):
        return sum(_size_of(entry, depth - 1) for entry in value.values())
    if depth and isinstance(value, list | tuple):
        return sum(_size_of(entry, depth - 1) for entry in value)
    return 8


def check_refused(imported: Imported, source: str) -> None:
    """Refuse an import if more than half of its records are refused, as by a wrong mapping.

    Raises:
        DatasetError: Names the commonest reasons.
    """
    if len(imported.refused) * 2 <= imported.read:
        return
    listed = "; ".join(f"{count}: {reason}" for count, reason, _ in imported.reasons()[:3])
    raise DatasetError(
        f"{source}: {len(imported.refused)} of {imported.read} records are refused ({listed}); the first is "
        f"{imported.refused[0][0]}. Correct the mapping, or keep the others with --partial"
    )


def _drafts(
    dataset: Dataset, mapping: ItemMapping, start: int, store: ImageStore
) -> tuple[list[Draft], list[tuple[str, str]]]:
    """Return the drafts of all records, with stored images, and place and reason for records without one."""
    labels = read_labels(dataset.labels) if dataset.labels is not None else ()
    reader = RecordReader(mapping, labels, dataset.labels_by)
    drafts: list[Draft] = []
    refused: list[tuple[str, str]] = []
    count = size = 0
    for record in dataset.records(None):
        count += 1
        try:
            draft = reader.read(record, count - 1)
            if draft is not None:
                draft.images = [store.add(image) for image in draft.images]
        except (BankError, DatasetError) as error:
            refused.append((record.where, str(error)))
            continue
        if draft is not None:
            draft.number += start
            drafts.append(draft)
            size += _size_of([draft.question, draft.messages, list(draft.choices.texts), draft.answer, draft.meta])
            if size > _TEXT_LIMIT:
                raise DatasetError(f"{record.where}: more than {_TEXT_LIMIT} characters of questions; split the file")
    if dataset.labels is not None and not isinstance(labels, Mapping) and len(labels) != count:
        raise DatasetError(f"{dataset.labels}: {len(labels)} labels for {count} records; expected one each")
    return drafts, refused
