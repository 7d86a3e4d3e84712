"""Answers that must fit a JSON Schema."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

pytest.importorskip("jsonschema", reason="schemas need jsonschema (extra schema)")

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, Unscored
from pytest_adaptive_eval.items.item import Item

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def item(schema: Any) -> Item:
    return parse_item(json.dumps({"id": "q", "prompt": "?", "answer": schema, "grader": "schema"}), "line 1")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"name": "Ada", "age": 36}', 1),
        ('Here it is:\n```json\n{"name": "Ada"}\n```', 1),
        ('<think>{"name": 1}</think>{"name": "Ada"}', 1),
        ('{"name": "Ada"} or rather {"name": 1}', 0),
        ('{"name": "Ada", "age": -1}', 0),
        ('{"name": "Ada", "born": 1815}', 0),
        ('{"age": 36}', 0),
        ('["Ada"]', 0),
        ('{"name": "Ada"', 0),
        ("Ada", 0),
    ],
)
def test_an_answer_fits_the_schema(text: str, score: float) -> None:
    assert item(PERSON).grade(text) == score


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ("no schema", "is not a JSON Schema"),
        (7, "is not a JSON Schema: it is not an object"),
        ({"type": "objekt"}, "is not a JSON Schema: 'objekt' is not valid"),
        ({"$ref": "http://127.0.0.1:9/schema"}, "is not a JSON Schema"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, fault: str) -> None:
    with pytest.raises(BankError, match=fault):
        item(schema)


def test_a_schema_that_accepts_anything_is_lenient() -> None:
    with pytest.raises(BankError, match="accepts any object and list"):
        item({"description": "anything"})


@pytest.mark.slow
def test_a_pattern_that_does_not_end_is_no_wrong_answer() -> None:
    slow = item({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}, "required": ["a"]})
    begun = time.monotonic()
    with pytest.raises(Unscored, match="a fault of the schema"):
        slow.grade(json.dumps({"a": "a" * 60 + "b"}))
    assert time.monotonic() - begun < 30
