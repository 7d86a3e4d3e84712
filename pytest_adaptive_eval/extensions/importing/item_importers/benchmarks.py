"""Presets of published benchmarks, which ``presets.toml`` declares."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.sources import of_files, open_source
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import Table, read_table, replaced

_DECLARED = tomllib.loads((Path(__file__).parent.parent / "presets.toml").read_text("utf-8"))


class PresetTable(Table, frozen=True):
    """A published benchmark, in ``presets.toml`` or in a package of one's own.

    Args:
        forms: Mappings, or their names, for each form in which it is published; the first that fits a file is used.
        files: Files of a folder that count.
        ask: How the benchmark is usually asked: ``generation`` or ``likelihood``.
        few_shot: Where its examples for the prompt are published, such as the split ``dev``; empty if it has none.
        labels_beside: Whether the answers are in ``SPLIT-labels.lst`` beside ``SPLIT.jsonl``.
    """

    forms: list[str | dict[str, Any]]
    summary: str = ""
    files: str = ""
    ask: str = "generation"
    few_shot: str = ""
    labels_beside: bool = False


def preset(name: str, data: Mapping[str, Any], where: str = "presets.toml") -> Importer:
    """Return the preset of a table with the keys of `PresetTable`; `where` begins errors."""
    about = read_table(PresetTable, data, f"{where}: {name}")
    tables = []
    for form in about.forms:
        tables.append(_DECLARED["forms"][form] if isinstance(form, str) else form)
    mappings = []
    for table in tables:
        mappings.append(read_table(ItemMapping, table, f"{where}: {name}"))

    def opened(source: str, settings: ImportSettings) -> list[Dataset]:
        if about.labels_beside and not (settings.labels or settings.split):
            settings = replaced(settings, labels=_labels_beside(Path(source)))
        opened = open_source(source, settings, about.files)
        fitting: dict[int, list[str]] = {}
        for file in opened.files:
            numbers = (n for n, mapping in enumerate(mappings) if _fits(of_files(opened, mapping, [file])))
            fitting.setdefault(next(numbers, -1), []).append(file)
        others = ", ".join(fitting.pop(-1, []))
        if not fitting:
            raise DatasetError(
                f"{source}: its fields are not the ones that {name} is published with; leave --preset out, or name "
                "the fields"
            )
        facts = {**opened.facts, "ask": about.ask, "few_shot": about.few_shot}
        notes = (f"left out: {others:.200}: the fields are not the ones of {name}",) if others else ()
        opened = replace(opened, name=name, facts=facts, notes=(*opened.notes, *notes))
        return [of_files(opened, mappings[number], files) for number, files in fitting.items()]

    return Importer(name, about.summary or name, opened)


def _labels_beside(source: Path) -> str:
    """Return the file ``SPLIT-labels.lst`` beside ``SPLIT.jsonl``; empty if there is none."""
    if source.is_dir():
        folder, split = (source, "valid")
    else:
        folder, split = (source.parent, source.name.partition(".")[0])
    path = folder / f"{split}-labels.lst"
    if path.is_file():
        return str(path)
    return ""


def _fits(dataset: Dataset) -> bool:
    """Return whether the question, chat and choices of a mapping have values in one of the first records."""
    mapping = dataset.mapping
    try:
        records = list(islice(dataset.records(50), 50))
    except DatasetError:
        return False
    accepted = () if mapping.choices else mapping.accepted[:1]
    texts = (mapping.question, mapping.messages, *mapping.choices[:1], mapping.answer, *accepted)
    parsed = []
    for text in texts:
        if text and "$label" not in text:
            parsed.append(parse_expression(text))
    for value in parsed:
        if not any(value(record.data, record.names) is not None for record in records):
            return False
    return True


REGISTERED = tuple(preset(name, about) for name, about in _DECLARED["presets"].items())
