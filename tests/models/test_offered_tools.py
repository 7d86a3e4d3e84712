"""Tools are offered to servers and by chat templates; a call is an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion, failure

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.calling import CallableModel

TOOLS = ({"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},)
KEY = json.dumps({"name": "now", "arguments": {}})
ITEM = Item("q", "What time is it?", KEY, "calls", tools=TOOLS)


def test_a_server_gets_the_tools_and_its_call_is_the_answer() -> None:
    offered: list[Any] = []

    def answer(body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        offered.append(body.get("tools"))
        reply = completion("m", "")
        call = {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        if "time" in body["messages"][-1]["content"]:
            reply["choices"][0] |= {"finish_reason": "tool_calls"}
            reply["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
        else:
            reply["choices"][0]["message"]["content"] = "Hi."
        return reply, 200

    with JsonServer(["m"], answer) as server:
        model = load_model(f"{server.url}#m")
        called, uncalled, unoffered = model.answer(
            [ITEM, Item("h", "Hello", "[]", "calls", tools=TOOLS), Item("t", "time")]
        )
        model.close()
    assert (called.status, ITEM.grade(called.text)) == (Status.OK, 1.0)
    assert uncalled.text == "Hi."
    assert (unoffered.status, "none was offered" in unoffered.detail) == (Status.ERROR, True)
    assert offered[-3:].count(list(TOOLS)) == 2
    assert None in offered[-3:]


@pytest.mark.parametrize(
    "template", ["{{ messages[-1]['content'] }} {{ tools | tojson }}", "{{ messages[-1]['content'] }}"]
)
def test_a_chat_template_shows_the_tools_or_the_item_is_an_error(
    checkpoints: Any, tmp_path: Path, template: str
) -> None:
    pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")
    folder = checkpoints.copy("qwen3", tmp_path)
    (folder / "chat_template.jinja").write_text(template)
    model = load_model(str(folder), device="cpu", max_tokens=2)
    (answer,) = model.answer([ITEM])
    if "tools" in template:
        assert '"name": "now"' in model._prompter.text(ITEM)  # type: ignore[attr-defined]
        assert not answer.status.infrastructure
    else:
        assert "the checkpoint's chat template shows none" in answer.detail


def test_a_callable_has_no_place_for_tools() -> None:
    with pytest.raises(ConfigError, match="item 'q' has tools, and the callable 'f' takes texts"):
        CallableModel(str, "f").prepare([ITEM])


@pytest.mark.parametrize("takes", [True, False])
def test_a_server_gets_the_schema_of_an_answer_if_it_takes_one(takes: bool) -> None:
    sent: list[Any] = []

    def answer(body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        sent.append(body.get("response_format"))
        if sent[-1] and not takes:
            return failure("response_format is not supported"), 400
        return completion("m", '{"a": 1}'), 200

    schema = {"type": "object", "required": ["a"]}
    items = [Item(f"q{n}", "?", json.dumps(schema), "schema") for n in range(2)]
    with JsonServer(["m"], answer) as server:
        model = load_model(f"{server.url}#m")
        model.prepare(items)
        model.prepare(items)
        given = model.answer(items)
        model.close()
    assert [item.grade(completion.text) for item, completion in zip(items, given, strict=True)] == [1, 1]
    described = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    assert sent[1] == described  # asked once
    assert sent[2:] == ([described] * 2 if takes else [None] * 2)
