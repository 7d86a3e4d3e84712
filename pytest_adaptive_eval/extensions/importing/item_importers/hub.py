"""Data sets of the Hugging Face hub, by the package ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pytest_adaptive_eval.banks.rows import TableRecord, class_name, without_nan
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings


def _loaded(name: str, configuration: str, split: str) -> Any:
    """Return a data set of the hub with its images as bytes."""
    try:
        import datasets
    except ImportError:
        raise DatasetError(
            f"hf:{name}: the package datasets is needed; pip install 'pytest-adaptive-eval[datasets]', or download "
            "the files and give their folder"
        ) from None
    try:
        loaded = datasets.load_dataset(name, configuration or None, split=split or "test")
    except Exception as error:  # of the network, the hub, and the formats
        first_line = (str(error).splitlines() or [""])[0]
        raise DatasetError(
            f"hf:{name}: it cannot be loaded ({type(error).__name__}: {first_line:.200}). "
            "Without a network, download its files elsewhere and give their folder; name configuration and split as "
            "hf:OWNER/NAME:CONFIGURATION:SPLIT"
        ) from None
    for column, feature in loaded.features.items():
        if isinstance(feature, datasets.Image):
            loaded = loaded.cast_column(column, datasets.Image(decode=False))
    return loaded


def open_hub(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open ``OWNER/NAME``, ``OWNER/NAME:CONFIGURATION`` or ``OWNER/NAME:CONFIGURATION:SPLIT`` (split ``test``).

    Raises:
        DatasetError: ``datasets`` is not installed, or the data set cannot be loaded.
    """
    name, configuration, split, *_ = [*source.split(":"), "", ""]
    loaded = _loaded(name, configuration, settings.split or split)
    names = {
        column: list(map(str, feature.names))
        for column, feature in loaded.features.items()
        if hasattr(feature, "names")
    }

    def records(limit: int | None = None) -> Iterator[TableRecord]:
        for number, row in enumerate(islice(loaded, limit), 1):
            data = {key: class_name(value, names[key]) if key in names else value for key, value in row.items()}
            yield TableRecord(
                f"hf:{name}, row {number}", without_nan(data), {"line": number, "key": "", "file": name, "set": name}
            )

    facts = {
        "source": f"hf:{source}",
        "licence": str(loaded.info.license or ""),
        "files": {"fingerprint": str(loaded._fingerprint)},
    }
    return [Dataset(name.rpartition("/")[2], records, settings.mapping, (), settings.labels, settings.labels_by, facts)]


REGISTERED = (
    Importer(
        "hf",
        "a data set of the hub: hf:OWNER/NAME:CONFIGURATION:SPLIT, with the extra datasets",
        open_hub,
        by_source=True,
        proposes=True,
    ),
)
