"""Import a published data set: find its records, map their fields, and return items with what was refused and why."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.build import build_items, file_of
from pytest_adaptive_eval.extensions.importing.drafts import Draft, Drafter
from pytest_adaptive_eval.extensions.importing.guess import (
    SAMPLE,
    guess_mapping,
    nested_rows,
    unaskable,
    unused_fields,
)
from pytest_adaptive_eval.extensions.importing.opening import check_references, label_files, open_files, read_labels
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.typed_tables import find_named, replaced

#: Presets and loaders of tools by name.
IMPORTERS: Mapping[str, Importer] = registered(None, "adaptive_eval.item_importers", Importer)


#: Characters of all questions of a data set, which are kept in memory, and of the records of a guess.
_TEXT_LIMIT, _SAMPLE_LIMIT = 96_000_000, 48_000_000
#: Places of refused records that are listed for each reason.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """The records of one form, and how they were read.

    Args:
        files: Names of the files; empty if all files have the same form.
        given, mapping: What the user and the importer named, and all of it with what was guessed.
        reasons: Why each field was guessed that was not given.
    """

    files: tuple[str, ...]
    given: ItemMapping
    mapping: ItemMapping
    reasons: Mapping[str, str]


@dataclass(slots=True)
class Imported:
    """Result of an import; use it as a context, which removes the copies of images at its end.

    Args:
        facts: Source, licence, hashes of the files and the mapping, for the bank's report.
        unused: Fields that the questions may need, and that a guessed mapping does not use.
    """

    items: list[Item]
    refused: list[tuple[str, str]]
    notes: list[str]
    parts: list[DatasetPart]
    facts: dict[str, Any]
    unused: list[str]
    folder: Path

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
        importer: Name of a preset, or a TOML file with one; empty for the general mapping, and for a tool's.

    Raises:
        ConfigError: An unknown preset, or a malformed expression.
        DatasetError: The data set cannot be read, or its fields are not understood; the message names the option to
            give.
    """
    settings = settings or ImportSettings()
    prefix, mark, rest = source.partition(":")
    if importer:
        if importer.endswith(".toml"):
            from pytest_adaptive_eval.extensions.importing.item_importers.benchmarks import read_preset

            datasets = read_preset(Path(importer)).open(source, settings)
        else:
            datasets = find_named("the preset", importer, IMPORTERS).open(source, settings)
    elif mark and prefix in IMPORTERS and IMPORTERS[prefix].by_source:
        datasets = IMPORTERS[prefix].open(rest, settings)
    else:
        datasets = open_files(source, settings)
    folder = Path(tempfile.mkdtemp(prefix="adaptive-eval-import-"))
    try:
        imported = _imported(datasets, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    imported.facts |= {"importer": importer or "general", "mappings": [part.mapping.given() for part in imported.parts]}
    return imported


def _imported(datasets: Sequence[Dataset], folder: Path) -> Imported:
    """Import each form of a data set; a form that is not understood is left out where another is."""
    notes = [note for dataset in datasets for note in dataset.notes]
    parts: list[DatasetPart] = []
    groups: list[tuple[list[Draft], ItemMapping]] = []
    refused: list[tuple[str, str]] = []
    unused: list[str] = []
    number = 0
    store = ImageStore(folder, list(datasets[0].bases) or [folder])
    for dataset in datasets:
        try:
            dataset, mapping, reasons, unread = _mapped(dataset, several=len(datasets) > 1)
            guessed = "answer" in reasons or (dataset.labels is not None and not mapping.answer)
            drafts, without = _drafts(dataset, mapping, number, store, guessed=guessed)
        except DatasetError as error:
            if len(datasets) == 1:
                raise
            notes.append(f"left out: {', '.join(dataset.files[:4])}: {error}")
            continue
        number += len(drafts) + len(without)
        parts.append(DatasetPart(dataset.files, dataset.mapping, mapping, reasons))
        unused += unread
        groups.append((drafts, mapping))
        refused += without
    if not parts:
        raise DatasetError("; ".join(notes[-3:]))
    built = build_items(groups, str(folder), datasets[0].name)
    # line 2 comes before line 10
    refused = sorted(
        refused + built.refused,
        key=lambda entry: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry[0])],
    )
    first: dict[str, str] = {}
    for where, reason in refused:
        first.setdefault(file_of(where), reason)
    empty = [f"no item from {file}: {reason}" for file, reason in first.items() if file not in built.files]
    notes += [*built.notes, *empty]
    facts = dict(datasets[0].facts)
    return Imported(built.items, refused, notes, parts, facts, list(dict.fromkeys(unused)), folder)


def _mapped(dataset: Dataset, several: bool) -> tuple[Dataset, ItemMapping, Mapping[str, str], list[str]]:
    """Return one form with its whole mapping, the reasons of guesses, and fields that questions may need and lack.

    Files are categories where there are several forms and no other category. Questions may be in a list within each
    record.
    """
    sample = _sample(dataset)
    given = dataset.mapping
    rows = "" if given.rows or given.question or given.messages else nested_rows(sample)
    if rows and not any(isinstance(record.data.get(key), str) for record in sample for key in ("question", "prompt")):
        dataset = dataset.at_rows(rows)
        sample = _sample(dataset)
    try:
        guess = guess_mapping(sample, dataset.mapping, labelled=dataset.labels is not None and not dataset.labels_by)
    except DatasetError as error:
        beside = "" if dataset.labels or "no answer" not in str(error) else label_files(dataset.folder)
        raise DatasetError(f"{error}{beside}") from None
    mapping, reasons = guess.mapping, dict(guess.reasons)
    if rows := dataset.mapping.rows[: 0 if given.rows else None]:
        reasons["rows"] = "each record has a list of questions"
    unread: list[str] = []
    if not (given.question or given.messages):
        unread = unused_fields(sample, mapping)
        if not mapping.images and (reason := unaskable(sample)):
            dataset = dataset.without(reason)
        if dataset.labels is None and dataset.folder is not None:
            check_references(sample, mapping, dataset.folder)
    if several and not mapping.category:
        mapping = replaced(mapping, category=("$set",))
    return dataset, mapping, reasons, unread


def _sample(dataset: Dataset) -> list[TableRecord]:
    """Return the first records of each file of a form."""
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
    dataset: Dataset, mapping: ItemMapping, start: int, store: ImageStore, *, guessed: bool
) -> tuple[list[Draft], list[tuple[str, str]]]:
    """Return the drafts of all records, with stored images, and place and reason for records without one."""
    labels = read_labels(dataset.labels) if dataset.labels is not None else ()
    drafter = Drafter(mapping, labels, dataset.labels_by, guessed=guessed)
    drafts: list[Draft] = []
    refused: list[tuple[str, str]] = []
    count = size = 0
    for record in dataset.records(None):
        count += 1
        try:
            draft = drafter.draft(record, count - 1)
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
