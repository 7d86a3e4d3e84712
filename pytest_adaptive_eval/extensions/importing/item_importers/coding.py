"""Presets of benchmarks of programs, graded by calls in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_adaptive_eval.banks.code import CODE, calls_of_tests
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import open_files, with_records
from pytest_adaptive_eval.extensions.importing.records import Record

_FIELDS = ("function", "calls", "start")
#: Fields of the task, which stands in the question.
_TASKS = ("text", "prompt")


def _humaneval(data: Mapping[str, Any]) -> dict[str, Any]:
    function = str(data["entry_point"])
    question = (
        f"Complete this Python function. Give the whole function in a code block.\n\n```python\n{data['prompt']}```"
    )
    return {
        "question": question,
        "function": function,
        "calls": calls_of_tests(str(data["test"]), function),
        "start": str(data["prompt"]),
    }


def _mbpp(data: Mapping[str, Any]) -> dict[str, Any]:
    tests = [str(test) for test in data["test_list"]]
    if data.get("test_setup_code"):
        raise BankError("its tests need code of their own, which the sandbox does not allow")
    called = re.search(r"assert\s+(?:not\s+)?(?:\w+\.isclose\(|abs\()?(\w+)\(", tests[0])
    function = called[1] if called else ""
    task = str(data.get("text", data.get("prompt", "")))
    return {
        "question": f"{task} Give the function in a code block. It has to pass this test:\n\n{tests[0]}",
        "function": function,
        "calls": calls_of_tests("\n".join(tests), function),
        "start": "",
    }


def _programs(
    name: str, summary: str, read: Callable[[Mapping[str, Any]], dict[str, Any]], files: str, where: str = ""
) -> Importer:
    mapping = ItemMapping(
        id="task_id", question="question", grader=CODE, meta=_FIELDS, instruction="", category=("$set",), where=where
    )

    def with_calls(record: Record) -> Record:
        rest = {name: value for name, value in record.data.items() if name not in _TASKS}
        try:
            return record._replace(data={**rest, **read(record.data)})
        except BankError as error:
            return record._replace(data=rest, names={**record.names, "refused": str(error)})
        except (KeyError, TypeError, IndexError) as error:
            return record._replace(data=rest, names={**record.names, "refused": f"it lacks {error}"})

    def opened(source: str, settings: ImportSettings) -> list[Dataset]:
        return [with_records(each, with_calls) for each in open_files(source, settings, files, mapping, name)]

    return Importer(name, summary, opened, few_shot="prompt" if name == "mbpp" else "")


REGISTERED = (
    _programs("humaneval", "HumanEval: its assertions are calls in the sandbox", _humaneval, "HumanEval.jsonl*"),
    _programs("mbpp", "MBPP, whole or sanitized: its assertions are calls in the sandbox", _mbpp, "mbpp.jsonl*"),
)
