"""Items with the grader `code` whose calls have another form are refused by name, before any program is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.banks.code import Call, calls_of_item, check_code_items
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item

GOOD = {"arguments": "[1, 2]", "expected": "3"}


def item(calls: Any, function: Any = "add") -> Item:
    return Item("sum", "Write add(a, b).", grader="code", meta={"function": function, "calls": calls})


def test_calls_are_read() -> None:
    calls = calls_of_item(item([GOOD, {"arguments": "[.1, .2]", "expected": ".3", "tolerance": 1e-9}]))
    assert calls == [Call([1, 2], 3, None), Call([0.1, 0.2], 0.3, 1e-9)]


@pytest.mark.parametrize(
    "call",
    [
        {"args": [1, 2], "expected": 3},
        {"arguments": [1, 2], "expected": "3"},
        {"arguments": "[1, 2]", "expected": 3},
        {"arguments": "(1, 2)", "expected": "3"},
        {"arguments": "1, 2 +", "expected": "3"},
        {"arguments": "[a]", "expected": "3"},
        {"arguments": "[1, 2]", "expected": "3", "tolerance": "small"},
        {"arguments": "[1, 2]"},
        "add(1, 2) == 3",
        None,
    ],
)
def test_a_call_of_another_form_is_refused_with_the_form_that_is_expected(call: Any) -> None:
    with pytest.raises(BankError, match=r"item 'sum': meta\.calls\[1\] is .*expected .*a list of arguments"):
        check_code_items([Item("other", "?", "a"), item([GOOD, call])])


@pytest.mark.parametrize(
    ("calls", "function"), [([], "add"), (None, "add"), ("x", "add"), ([GOOD], None), ([GOOD], "a b")]
)
def test_an_item_without_calls_or_a_function_is_refused(calls: Any, function: Any) -> None:
    with pytest.raises(BankError, match=r"item 'sum': .* needs meta\.function, .* and meta\.calls"):
        check_code_items([item(calls, function)])


def test_a_bank_is_refused_when_its_item_is_read(tmp_path: Path) -> None:
    path = tmp_path / "code.jsonl"
    rows = [{"id": "a", "prompt": "Write f.", "grader": "code", "meta": {"function": "f", "calls": [{"in": 1}]}}]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(BankError, match=r"item 'a': meta\.calls\[0\]"):
        list(read_bank(path).items)
