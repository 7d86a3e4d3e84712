"""Calls of tools, by names and arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer", "default": 1},
                    "unit": {"type": "string"},
                },
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
PARIS = {"name": "weather", "arguments": {"city": "Paris", "days": 2}}
NOW = {"name": "now", "arguments": {}}


def item(answer: Any, **meta: Any) -> Item:
    line = {"id": "q", "prompt": "?", "tools": TOOLS, "answer": answer, "grader": "calls", "meta": meta}
    return parse_item(json.dumps(line), "line 1")


def marked(*calls: Any) -> str:
    return "".join(f"\n<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def paris(**arguments: Any) -> dict[str, Any]:
    return {"name": "weather", "arguments": arguments}


@pytest.mark.parametrize(
    ("answer", "text", "score"),
    [
        (PARIS, marked(PARIS), 1),
        (PARIS, json.dumps(PARIS), 1),
        (PARIS, json.dumps([PARIS]), 1),
        (PARIS, "I look.\n" + marked(PARIS), 1),
        (PARIS, "<think>" + json.dumps(NOW) + "</think>" + marked(PARIS), 1),
        (PARIS, "```json\n" + json.dumps(PARIS) + "\n```", 1),
        (PARIS, 'weather(city="Paris", days=2)', 1),
        (PARIS, '[weather(city="Paris", days=2)]', 1),
        (PARIS, json.dumps({"name": "weather", "parameters": PARIS["arguments"]}), 1),
        (PARIS, json.dumps({"function": {"name": "weather", "arguments": json.dumps(PARIS["arguments"])}}), 1),
        (PARIS, marked(paris(city="Paris", days=2.0)), 1),
        (PARIS, marked(paris(days=2, city="Paris")), 1),
        (PARIS, marked(paris(city="paris", days=2)), 0),  # case counts
        (PARIS, marked(paris(city="Paris", days="2")), 0),  # a text is no number
        (PARIS, marked(paris(city="Paris", days=True)), 0),
        (PARIS, marked(paris(city="Paris")), 0),  # the default is another
        (PARIS, marked(paris(city="Paris", days=2, unit="C")), 0),
        (PARIS, marked(PARIS, PARIS), 0),
        (PARIS, marked({"name": "Weather", "arguments": PARIS["arguments"]}), 0),
        (PARIS, marked(PARIS)[:-20], 0),  # cut
        (PARIS, 'weather("Paris", 2)', 1),
        (PARIS, 'weather(2, "Paris")', 0),
        (PARIS, 'weather("Paris", 2, "C", 1)', 0),
        (PARIS, "The weather is fine.", 0),
        (paris(city="Paris"), marked(paris(city="Paris", days=1)), 1),  # the default
        (paris(city="Paris", days=1), marked(paris(city="Paris")), 1),
        ([PARIS, NOW], marked(NOW, PARIS), 1),
        ([PARIS, NOW], "[now(), weather(days=2, city='Paris')]", 1),
        ([PARIS, NOW], marked(PARIS), 0),
        ([PARIS, NOW], marked(PARIS, PARIS), 0),
        ([], "None of my tools can do that.", 1),
        ([], marked(NOW), 0),
        ([], "[]", 1),
    ],
)
def test_a_call_is_right(answer: Any, text: str, score: float) -> None:
    assert item(answer).grade(text) == score


def test_accepted_values_and_optional_arguments() -> None:
    key = {"name": "weather", "any_of": {"city": ["Paris", "Lutetia"], "unit": ["C", "celsius"]}, "optional": ["unit"]}
    asked = item(key)

    def grade(**arguments: Any) -> float:
        return asked.grade(marked(paris(**arguments)))

    assert grade(city="Lutetia") == grade(city="Paris", unit="C") == 1
    assert grade(city="Rome") == grade(city="Paris", unit="K") == grade(unit="C") == 0
    assert item(key, arguments="folded").grade(marked(paris(city="PAR-IS", unit="Celsius"))) == 1


def test_each_expected_call_needs_one_of_its_own() -> None:
    """The first call fits both keys, the second one alone: the order does not matter."""
    wide = {"name": "weather", "any_of": {"city": ["Paris", "Rome"]}}
    keys = [wide, paris(city="Paris")]
    for calls in ((paris(city="Paris"), paris(city="Rome")), (paris(city="Rome"), paris(city="Paris"))):
        assert item(keys).grade(marked(*calls)) == 1
    assert item(keys).grade(marked(paris(city="Rome"), paris(city="Rome"))) == 0


@given(st.dictionaries(st.sampled_from(["city", "unit"]), st.text(max_size=5)), st.integers(-5, 5))
def test_a_call_equals_itself_and_no_other(arguments: dict[str, str], days: int) -> None:
    call = paris(**arguments, days=days)
    assert item(call).grade(marked(call)) == 1
    assert item(call).grade(marked(paris(**arguments, days=days + 1))) == 0


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("Paris", "is not a call; write"),
        ({"name": "wether", "arguments": {}}, "calls 'wether', and the tools of the item are weather, now"),
        (paris(town="Paris"), "gives 'weather' the argument 'town', which its parameters do not list"),
    ],
)
def test_a_key_that_no_call_can_meet_is_refused(answer: Any, fault: str) -> None:
    with pytest.raises(BankError, match=fault):
        item(answer)


def test_a_tool_has_a_name_and_turns_exclude_tools() -> None:
    with pytest.raises(BankError, match=r"tool .*, expected"):
        parse_item('{"id": "q", "prompt": "?", "tools": [{"name": "f"}], "answer": [], "grader": "calls"}', "line 1")
    line = {"id": "q", "prompt": "?", "tools": TOOLS, "turns": ["and?"], "answer": [], "grader": "calls"}
    with pytest.raises(BankError, match="turns and tools exclude each other"):
        parse_item(json.dumps(line), "line 1")


def test_an_item_with_tools_names_its_grader() -> None:
    line = {"id": "q", "prompt": "?", "tools": TOOLS, "answer": PARIS}
    with pytest.raises(BankError, match='tools and no grader; write "grader": "calls"'):
        parse_item(json.dumps(line), "line 1")
    assert parse_item(json.dumps({**line, "answer": "no call", "grader": "exact"}), "line 1").grade("no call") == 1


def test_tools_are_part_of_the_content() -> None:
    one, other = item(NOW), item(PARIS)
    assert one.to_json()["tools"] == TOOLS
    assert parse_item(json.dumps(one.to_json()), "line 1").content_hash == one.content_hash != other.content_hash


CITY = '{"name": "weather", "arguments": {"city": "Ulm"}}'


@pytest.mark.parametrize(
    "form",
    [
        CITY,
        f"<tool_call>{CITY}</tool_call>",
        f"<tools>{CITY}</tools>",
        '<|python_tag|>{"name": "weather", "parameters": {"city": "Ulm"}}',
        '<|python_tag|>weather.call(city="Ulm")',
        f"[TOOL_CALLS][{CITY}]",
        '[TOOL_CALLS]weather[ARGS]{"city": "Ulm"}',
        '<function=weather>{"city": "Ulm"}</function>',
        "<function=weather>\n<parameter=city>\nUlm\n</parameter>\n</function>",
        f"functools[{CITY}]",
        f'{{"tool_calls": [{CITY}]}}',
        '{"function_call": {"name": "weather", "arguments": "{\\"city\\": \\"Ulm\\"}"}}',
        'weather("Ulm")',
        f"I look it up:\n```json\n{CITY}\n```",
        '<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{"city": "Ulm"}\n```<｜tool▁call▁end｜>',
        'Action: weather\nAction Input: {"city": "Ulm"}',
        "{'name': 'weather', 'arguments': {'city': 'Ulm',}}",
    ],
)
def test_calls_in_the_notations_of_templates(form: str) -> None:
    assert item(paris(city="Ulm")).grade(form) == 1
    assert item(paris(city="Ulm")).grade(form.replace("Ulm", "Bonn")) == 0
    assert item([]).grade(form) == 0
