"""Data sets of the Hugging Face hub, by the package ``datasets``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.banks.rows import class_name, without_nan
from pytest_adaptive_eval.extensions.importing.base import (
    Dataset,
    Importer,
    ImportSettings,
    foreign_code,
    tool_dataset,
    tool_package,
)
from pytest_adaptive_eval.mappings import ItemMapping


def open_hub(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open ``OWNER/NAME``, ``OWNER/NAME:CONFIGURATION`` or ``OWNER/NAME:CONFIGURATION:SPLIT`` (split ``test``).

    Raises:
        DatasetError: ``datasets`` is not installed, or the data set cannot be loaded.
    """
    name, configuration, split, *_ = [*source.split(":"), "", ""]
    datasets = tool_package("datasets", f"hf:{name}", "'pytest-adaptive-eval[datasets]'")
    advice = (
        ". Without a network, download its files elsewhere and give their folder; name configuration and split as "
        "hf:OWNER/NAME:CONFIGURATION:SPLIT"
    )
    with foreign_code(f"hf:{name}: it cannot be loaded", advice):
        loaded = datasets.load_dataset(name, configuration or None, split=settings.split or split or "test")
    for column, feature in loaded.features.items():
        if isinstance(feature, datasets.Image):  # as bytes
            loaded = loaded.cast_column(column, datasets.Image(decode=False))
    classes = {}
    for key, each in loaded.features.items():
        if hasattr(each, "names"):
            classes[key] = list(map(str, each.names))

    def read(row: Mapping[str, Any]) -> Any:
        return without_nan({key: class_name(row[key], classes[key]) if key in classes else row[key] for key in row})

    licence = str(loaded.info.license or "")
    files = {"fingerprint": str(loaded._fingerprint)}
    last = name.rpartition("/")[2]
    return tool_dataset(f"hf:{source}", last, loaded, read, ItemMapping(), settings, licence=licence, files=files)


REGISTERED = (
    Importer(
        "hf",
        "a data set of the hub: hf:OWNER/NAME:CONFIGURATION:SPLIT, with the extra datasets",
        open_hub,
        by_source=True,
        proposes=True,
    ),
)
