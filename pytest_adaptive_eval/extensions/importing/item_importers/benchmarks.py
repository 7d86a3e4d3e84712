"""Presets of published benchmarks, declared in ``presets.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.extensions.importing.base import Importer
from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset
from pytest_adaptive_eval.typed_tables import read_table

_DECLARED = tomllib.loads((Path(__file__).parent.parent / "presets.toml").read_text("utf-8"))


def _labels_beside(source: Path) -> Path | None:
    """Return the file ``SPLIT-labels.lst`` beside ``SPLIT.jsonl``."""
    folder, split = (source, "valid") if source.is_dir() else (source.parent, source.name.partition(".")[0])
    path = folder / f"{split}-labels.lst"
    return path if path.is_file() else None


def _preset(name: str, summary: str, forms: list[Any], *, labels_beside: bool = False, **about: str) -> Importer:
    tables = [_DECLARED["forms"][form] if isinstance(form, str) else form for form in forms]
    mappings = [read_table(ItemMapping, table, f"presets.toml: {name}") for table in tables]
    return preset(name, summary, *mappings, labels=_labels_beside if labels_beside else None, **about)


REGISTERED = tuple(_preset(name, **about) for name, about in _DECLARED["presets"].items())
