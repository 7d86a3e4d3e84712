"""Tools and expected calls as the Berkeley Function Calling Leaderboard publishes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.banks.tool_forms import expected_calls, offered_tools
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item

FUNCTION = {
    "name": "area.rectangle",
    "description": "Area of a rectangle.",
    "parameters": {
        "type": "dict",
        "properties": {
            "sides": {"type": "tuple", "items": {"type": "float"}},
            "unit": {"type": "string"},
            "count": {"type": "integer"},
            "note": {"type": "any"},
            "frame": {"type": "dict", "properties": {"width": {"type": "integer"}}},
        },
        "required": ["sides"],
    },
}
ANSWER = [
    {"area.rectangle": {"sides": [[2.0, 3.0]], "unit": ["cm", ""], "count": ["", 1], "frame": ["", {"width": [1, ""]}]}}
]


def test_types_and_names_become_those_of_tools() -> None:
    (tool,) = offered_tools([FUNCTION])
    function = tool["function"]
    assert function["name"] == "area_rectangle"
    assert function["parameters"]["type"] == "object"
    properties = function["parameters"]["properties"]
    assert properties["sides"] == {"type": "array", "items": {"type": "number"}}
    assert properties["note"] == {}
    assert properties["frame"] == {"type": "object", "properties": {"width": {"type": "integer"}}}
    assert offered_tools([tool]) == [tool]


@pytest.mark.parametrize("functions", [["f"], [{"description": "x"}]])
def test_a_function_without_a_name_is_refused(functions: Any) -> None:
    with pytest.raises(BankError, match="expected an object with a name"):
        offered_tools(functions)


def test_types_of_other_languages_and_other_answers_are_refused() -> None:
    with pytest.raises(BankError, match="the type 'HashMap', which is none of a JSON Schema"):
        offered_tools([{"name": "f", "parameters": {"type": "dict", "properties": {"a": {"type": "HashMap"}}}}])
    with pytest.raises(BankError, match="not a list of"):
        expected_calls("f(1)", [FUNCTION])


@pytest.mark.parametrize(
    ("arguments", "score"),
    [
        ({"sides": [2, 3]}, 1),
        ({"sides": [2, 3], "unit": "CM", "count": 1, "frame": {"width": 1}}, 1),
        ({"sides": [2, 3], "frame": {}}, 1),
        ({"sides": [3, 2]}, 0),
        ({"sides": [2, 3], "count": 1.0}, 0),
        ({"sides": [2, 3], "count": "1"}, 0),
        ({"sides": [2, 3], "frame": {"width": 2}}, 0),
        ({"sides": [2, 3], "frame": {"height": 1}}, 0),
        ({"sides": [2, 3], "note": "x"}, 0),
        ({"unit": "cm"}, 0),
    ],
)
def test_answers_are_graded_as_by_its_checker(arguments: dict[str, Any], score: float) -> None:
    tools = tuple(offered_tools([FUNCTION]))
    item = Item("q", "?", expected_calls(ANSWER, [FUNCTION]), "calls", tools=tools, meta={"arguments": "folded"})
    assert item.grade(json.dumps({"name": "area_rectangle", "arguments": arguments})) == score


def test_the_presets_read_published_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat = [[{"role": "user", "content": "How large is a rectangle of 2 by 3?"}]]
    for name in ("simple_0", "irrelevance_0"):
        row = {"id": name, "question": chat, "function": [FUNCTION]}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "answers.jsonl").write_text(json.dumps({"id": "simple_0", "ground_truth": ANSWER}) + "\n")
    labels = ["--labels", str(tmp_path / "answers.jsonl")]
    for name, preset, more in (("simple_0", "bfcl", labels), ("irrelevance_0", "bfcl-irrelevance", [])):
        bank = tmp_path / f"{name}.bank"
        command = ["import", str(tmp_path / f"{name}.jsonl"), "--preset", preset, *more, "-o", str(bank), "--yes"]
        assert main(command) == 0, capsys.readouterr().out
        item = parse_item((bank / "items.jsonl").read_text(), "line 1")
        assert (item.prompt, item.grader) == (chat[0][0]["content"], "calls")
        assert item.grade("area_rectangle(sides=[2, 3])") == (name == "simple_0")
        assert item.grade("I cannot say.") == (name == "irrelevance_0")
