"""OpenAI evals: samples with the class of their evaluation in the registry's yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import (
    Dataset,
    Importer,
    ImportSettings,
    foreign_code,
    tool_package,
)
from pytest_adaptive_eval.extensions.importing.sources import of_files, open_source
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.mappings import ItemMapping

#: Grader of each class of evaluation; the text after the colon of the class.  ``Match`` compares beginnings, which a
#: grader that reads the stated answer stands for.
_GRADERS = {"Match": "exact", "Includes": "contains", "FuzzyMatch": "f1", "JsonMatch": "json"}
_YAML_LIMIT = 1_000_000


def _evaluations(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, file of samples and class of each evaluation in the yaml of a folder."""
    yaml = tool_package("yaml", str(folder), "pyyaml")
    for path in sorted(folder.rglob("*.yaml")):
        with foreign_code(f"{path}: not yaml"):
            data = yaml.safe_load(read_regular(path)[:_YAML_LIMIT])
        for name, about in data.items() if isinstance(data, dict) else ():
            arguments = None
            if isinstance(about, dict):
                arguments = about.get("args")
            if isinstance(arguments, Mapping) and "samples_jsonl" in arguments:
                yield str(name), str(arguments["samples_jsonl"]), str(about.get("class", "")).rpartition(":")[2]


def open_evals(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open a folder of samples and yaml, with a data set for each evaluation whose samples are there.

    Raises:
        DatasetError: No yaml names a file of samples in the folder.
    """
    folder = Path(source)
    names: dict[tuple[str, str], str] = {}
    for name, samples, kind in _evaluations(folder):
        names.setdefault((samples, kind), name)
    datasets = []
    notes = []
    for (samples, kind), name in names.items():
        if (folder / samples).is_file():
            path = folder / samples
        else:
            path = folder / f"{samples}.gz"
        if not path.is_file() or ".." in path.parts or kind not in _GRADERS:
            notes.append(f"left out: {name}: no samples {samples}, or no grader stands for its class {kind}")
        else:
            mapping = ItemMapping(messages="input", accepted=("ideal",), grader=_GRADERS[kind], category=("$folder",))
            opened = open_source(str(path), settings)
            datasets.append(replace(of_files(opened, mapping, opened.files), name="evals"))
    if not datasets:
        listed = "; ".join(notes[:4])
        raise DatasetError(f"{folder}: no yaml names samples in it whose class is {', '.join(_GRADERS)}; {listed}")
    facts = {**datasets[0].facts, "source": folder.name}
    return [replace(datasets[0], notes=tuple(notes), facts=facts), *datasets[1:]]


REGISTERED = (Importer("openai-evals", "OpenAI evals: a folder of samples and the registry's yaml", open_evals),)
