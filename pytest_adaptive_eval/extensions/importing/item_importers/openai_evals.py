"""OpenAI evals: samples with the class of their evaluation in the registry's yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.sources import open_source
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.mappings import ItemMapping

#: Grader of each class of evaluation; the text after the colon of the class.  ``Match`` compares beginnings, which a
#: grader that reads the stated answer stands for.
_GRADERS = {"Match": "exact", "Includes": "contains", "FuzzyMatch": "f1", "JsonMatch": "json"}


def _evaluations(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        import yaml
    except ImportError:
        raise DatasetError(f"{folder}: pyyaml is needed to read its yaml; pip install pyyaml") from None
    for path in sorted(folder.rglob("*.yaml")):
        try:
            data = yaml.safe_load(read_regular(path)[:1_000_000])
        except (yaml.YAMLError, RecursionError) as error:
            raise DatasetError(f"{path}: not yaml ({str(error).splitlines()[0]:.100})") from None
        for name, about in data.items() if isinstance(data, dict) else ():
            if isinstance(about, dict) and isinstance(about.get("args"), dict) and "samples_jsonl" in about["args"]:
                yield str(name), about


def open_evals(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open a folder of samples and yaml, with a data set for each evaluation whose samples are there.

    Raises:
        DatasetError: No yaml names a file of samples in the folder.
    """
    folder = Path(source)
    if not folder.is_dir():
        raise DatasetError(f"{folder} is no folder; give the one that holds the samples and their yaml")
    datasets: list[Dataset] = []
    notes: list[str] = []
    files: dict[str, str] = {}
    opened: set[tuple[str, str]] = set()
    for name, about in _evaluations(folder):
        samples = str(about["args"]["samples_jsonl"])
        kind = str(about.get("class", "")).rpartition(":")[2]
        path = next((folder / f"{samples}{end}" for end in ("", ".gz") if (folder / f"{samples}{end}").is_file()), None)
        if (samples, kind) in opened:
            continue
        opened.add((samples, kind))
        if path is None or ".." in Path(samples).parts:
            notes.append(f"left out: {name}: its samples {samples} are not here")
        elif kind not in _GRADERS:
            notes.append(f"left out: {name}: class {kind}, which no grader stands for; a model grades, or code")
        else:
            mapping = ItemMapping(messages="input", accepted=("ideal",), grader=_GRADERS[kind], category=("$folder",))
            dataset = open_source(str(path), settings).dataset(mapping)
            files |= dict(dataset.facts["files"])
            datasets.append(replace(dataset, files=(f"{name} ({samples})",), name="evals"))
    if not datasets:
        raise DatasetError(
            f"{folder}: no yaml names samples in it whose class is {', '.join(_GRADERS)}; {'; '.join(notes[:4])}"
        )
    facts = {**datasets[0].facts, "source": folder.name, "files": files}
    return [replace(datasets[0], notes=tuple(notes), facts=facts), *datasets[1:]]


REGISTERED = (Importer("openai-evals", "OpenAI evals: a folder of samples and the registry's yaml", open_evals),)
