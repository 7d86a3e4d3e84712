"""Preset of IFEval: instructions on the form of an answer, which code checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import open_files
from pytest_adaptive_eval.extensions.importing.records import Record
from pytest_adaptive_eval.items.reading.instructions import fault

_MAPPING = ItemMapping(
    id="key", question="prompt", answer="named", grader="instructions", instruction="", meta=("instructions",)
)


def _with_instructions(record: Record) -> Record:
    try:
        instructions = [
            {"id": name, **{argument: value for argument, value in arguments.items() if value is not None}}
            for name, arguments in zip(record.data["instruction_id_list"], record.data["kwargs"], strict=True)
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        reason = "it lacks instruction_id_list, or kwargs with an object for each instruction"
        return record._replace(names={**record.names, "refused": reason})
    if why := next((why for instruction in instructions if (why := fault(instruction["id"], instruction))), ""):
        return record._replace(names={**record.names, "refused": why})
    named = ", ".join(instruction["id"] for instruction in instructions)
    return record._replace(data={**record.data, "instructions": instructions, "named": named})


def _opened(source: str, settings: ImportSettings) -> list[Dataset]:
    def with_instructions(dataset: Dataset) -> Dataset:
        def records(limit: int | None = None) -> Iterator[Record]:
            return map(_with_instructions, dataset.records(limit))

        return replace(dataset, records=records)

    return [with_instructions(dataset) for dataset in open_files(source, settings, "", _MAPPING, "ifeval")]


REGISTERED = (Importer("ifeval", "IFEval: all instructions of a prompt have to be obeyed", _opened),)
