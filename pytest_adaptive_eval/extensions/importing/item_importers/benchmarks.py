"""Presets of published benchmarks: those of ``presets.toml``, and those whose records are changed by code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.code import CODE, calls_of_tests
from pytest_adaptive_eval.banks.rows import Record
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.opening import open_files, preset, with_records
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.items.reading.instructions import fault
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import read_table

_DECLARED = tomllib.loads((Path(__file__).parent.parent / "presets.toml").read_text("utf-8"))
_KEYS = ("summary", "forms", "files", "ask", "few_shot", "labels_beside")


def _labels_beside(source: Path) -> Path | None:
    """Return the file ``SPLIT-labels.lst`` beside ``SPLIT.jsonl``."""
    folder, split = (source, "valid") if source.is_dir() else (source.parent, source.name.partition(".")[0])
    path = folder / f"{split}-labels.lst"
    return path if path.is_file() else None


def _preset(name: str, about: Mapping[str, Any], where: str = "presets.toml") -> Importer:
    tables = [_DECLARED["forms"][form] if isinstance(form, str) else form for form in about["forms"]]
    mappings = [read_table(ItemMapping, table, f"{where}: {name}") for table in tables]
    texts = {key: about[key] for key in ("files", "ask", "few_shot") if key in about}
    labels = _labels_beside if about.get("labels_beside") else None
    return preset(name, about.get("summary", name), *mappings, labels=labels, **texts)


def read_preset(path: Path) -> Importer:
    """Return the preset of a TOML file, which has the keys of one in ``presets.toml``.

    Raises:
        ConfigError: It is no TOML, or has no forms.
    """
    try:
        about = tomllib.loads(read_regular(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path}: not a readable TOML file ({error}); write forms = [{{question = 'field'}}]"
        ) from None
    forms = about.get("forms")
    if not isinstance(forms, list) or not forms or not about.keys() <= set(_KEYS):
        raise ConfigError(f"{path}: expected forms, a list of mappings, and of {', '.join(_KEYS)} no other keys")
    return _preset(path.stem, about, str(path))


#: Mapping of benchmarks of programs, graded by calls in the sandbox.
_PROGRAMS = ItemMapping(
    id="task_id",
    question="question",
    grader=CODE,
    meta=("function", "calls", "start"),
    instruction="",
    category=("$set",),
)
#: Fields of the task, which stands in the question.
_TASKS = ("text", "prompt")


def _humaneval(data: Mapping[str, Any]) -> dict[str, Any]:
    function = str(data["entry_point"])
    question = (
        f"Complete this Python function. Give the whole function in a code block.\n\n```python\n{data['prompt']}```"
    )
    calls, start = calls_of_tests(str(data["test"]), function), str(data["prompt"])
    return {"question": question, "function": function, "calls": calls, "start": start}


def _mbpp(data: Mapping[str, Any]) -> dict[str, Any]:
    tests = [str(test) for test in data["test_list"]]
    if data.get("test_setup_code"):
        raise BankError("its tests need code of their own, which the sandbox does not allow")
    called = re.search(r"assert\s+(?:not\s+)?(?:\w+\.isclose\(|abs\()?(\w+)\(", tests[0])
    function = called[1] if called else ""
    task = str(data.get("text", data.get("prompt", "")))
    question = f"{task} Give the function in a code block. It has to pass this test:\n\n{tests[0]}"
    calls = calls_of_tests("\n".join(tests), function)
    return {"question": question, "function": function, "calls": calls, "start": ""}


def _with_calls(read: Callable[[Mapping[str, Any]], dict[str, Any]], record: Record) -> Record:
    rest = {name: value for name, value in record.data.items() if name not in _TASKS}
    try:
        return record._replace(data={**rest, **read(record.data)})
    except BankError as error:
        return record._replace(data=rest, names={**record.names, "refused": str(error)})
    except (KeyError, TypeError, IndexError) as error:
        return record._replace(data=rest, names={**record.names, "refused": f"it lacks {error}"})


#: Mapping of instructions on the form of an answer, which code checks.
_INSTRUCTIONS = ItemMapping(
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


def _changed(
    name: str,
    summary: str,
    mapping: ItemMapping,
    change: Callable[[Record], Record],
    files: str = "",
    few_shot: str = "",
) -> Importer:
    """Return a preset whose records `change` makes fit its mapping."""

    def opened(source: str, settings: ImportSettings) -> list[Dataset]:
        return [with_records(each, change) for each in open_files(source, settings, files, mapping, name)]

    return Importer(name, summary, opened, few_shot=few_shot)


_CALLS = "its assertions are calls in the sandbox"
REGISTERED = (
    *(_preset(name, about) for name, about in _DECLARED["presets"].items()),
    _changed("humaneval", f"HumanEval: {_CALLS}", _PROGRAMS, partial(_with_calls, _humaneval), "HumanEval.jsonl*"),
    _changed(
        "mbpp", f"MBPP, whole or sanitized: {_CALLS}", _PROGRAMS, partial(_with_calls, _mbpp), "mbpp.jsonl*", "prompt"
    ),
    _changed("ifeval", "IFEval: all instructions of a prompt have to be obeyed", _INSTRUCTIONS, _with_instructions),
)
