"""Open files and folders of data sets, by a mapping that a preset declares or that is guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.banks.licences import licence_of
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.records import Record, read_records, set_of
from pytest_adaptive_eval.extensions.importing.sources import chosen_files, file_hashes
from pytest_adaptive_eval.typed_tables import replaced

#: Levels above a file in which its images may lie.
_ABOVE = 2


def merged(defaults: ItemMapping, settings: ItemMapping) -> ItemMapping:
    """Return a mapping with the user's fields in place of its own."""
    return replaced(defaults, **{name: getattr(settings, name) for name in settings.given()})


def preset(
    name: str,
    summary: str,
    *variants: ItemMapping,
    files: str = "",
    labels: Callable[[Path], Path | None] | None = None,
    ask: str = "generation",
    few_shot: str = "",
) -> Importer:
    """Return the importer of a published benchmark.

    Args:
        *variants: One for each form in which the benchmark is published; the first that fits the first records is used.
            Fields that it leaves out are guessed.
        files: Glob of the files that count.
        labels: Return the second file with the answers, given the source.
    """
    about = {"ask": ask, "few_shot": few_shot}

    def opened(source: str, settings: ImportSettings) -> list[Dataset]:
        second = settings.labels or (labels(Path(source)) if labels and not settings.split else None)
        datasets: list[Dataset] = []
        notes: list[str] = []
        for number, plain in enumerate(open_files(source, settings, files, variants[0] if variants else None, name)):
            forms = [open_files(source, settings, files, variant, name)[number] for variant in variants] or [plain]
            fitting = next((form for form in forms if _fits(form)), None)
            if fitting is None:
                notes.append(f"left out: {', '.join(plain.files[:4])}: its fields are none of those of {name}")
                continue
            datasets.append(replace(fitting, labels=second, facts={**fitting.facts, **about}))
        if not datasets:
            raise DatasetError(
                f"{source}: its fields are none of those that {name} is published with; leave --preset out, or name "
                "the fields"
            )
        return [replace(datasets[0], notes=(*datasets[0].notes, *notes)), *datasets[1:]]

    return Importer(name, summary, opened, ask, few_shot)


def _fits(dataset: Dataset) -> bool:
    """Return whether the question, chat and choices of a mapping have values in one of the first records."""
    mapping = dataset.mapping
    try:
        records = list(islice(dataset.records(50), 50))
    except DatasetError:
        return False
    accepted = () if mapping.choices else mapping.accepted[:1]
    expressions = [
        text for text in (mapping.question, mapping.messages, *mapping.choices[:1], mapping.answer, *accepted) if text
    ]
    parsed = [parse_expression(text) for text in expressions if not text.startswith("$label")]
    return all(any(value(record.data, record.names) is not None for record in records) for value in parsed)


def open_files(
    source: str, settings: ImportSettings, files: str = "", mapping: ItemMapping | None = None, name: str = ""
) -> list[Dataset]:
    """Open a file, or the files of a folder that count: a data set for each form.

    Args:
        files: Glob of an importer, where the user gives none.
        name: Begin of ids; the file's name when omitted.

    Raises:
        DatasetError: There is no file.
    """
    path = Path(source)
    whole_split = "" if settings.split or not path.is_dir() else files
    chosen, others = chosen_files(path, settings.files or whole_split, settings.split)
    whole = merged(mapping or ItemMapping(), settings.mapping)
    facts: dict[str, Any] = {"source": path.name, "licence": licence_of(path), "files": file_hashes(chosen, path)}
    left_out = f"{len(others)} data files are left out: {', '.join(file.name for file in others[:6])}"
    forms = _forms(chosen, whole) if len(chosen) > 1 else [chosen]
    names = [tuple(file.relative_to(path).as_posix() for file in form) if len(forms) > 1 else () for form in forms]

    folder = path if path.is_dir() else path.absolute().parent
    bases = (folder, *[*folder.absolute().parents][:_ABOVE])
    if settings.image_root is not None:
        bases = (settings.image_root,)

    def records(form: Sequence[Path], limit: int | None = None) -> Iterator[Record]:
        share = None if limit is None else max(2, limit // len(form))
        return chain.from_iterable(islice(read_records(file, whole.rows, whole.header), share) for file in form)

    return [
        Dataset(
            name or (path.name if path.is_dir() else set_of(path)),
            partial(records, form),
            whole,
            bases,
            settings.labels,
            facts,
            (left_out,) if others and not number else (),
            names[number],
        )
        for number, form in enumerate(forms)
    ]


def _forms(files: Sequence[Path], mapping: ItemMapping) -> list[list[Path]]:
    """Return the files in groups of those whose first records share most of their fields."""
    groups: list[tuple[set[str], list[Path]]] = []
    for file in files:
        try:
            first = next(read_records(file, mapping.rows, mapping.header)).data
            # the same names may hold a text and a chat
            kinds = {name: type(value) if isinstance(value, list | dict) else None for name, value in first.items()}
            fields = {f"{name}:{kind}" for name, kind in kinds.items()}
        except (DatasetError, StopIteration):
            fields = {str(file)}  # alone, so that the error is told of it
        for shared, group in groups:
            if len(shared & fields) * 2 > len(shared | fields):
                group.append(file)
                break
        else:
            groups.append((fields, [file]))
    return [group for _, group in groups]
