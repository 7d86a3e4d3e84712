"""Which replies of a server count as answers, and which likelihoods are trusted, without a connection."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import choice, completion

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.endpoint.chat import first_token, read_reply
from pytest_adaptive_eval.models.endpoint.outcome import Delivery


def read(payload: dict[str, Any]) -> Completion:
    return read_reply(Delivery(Status.OK, payload, code=200))


def token(
    listed: dict[str, float], *, own: str = "yes", figure: float | None = None, content: str | None = None
) -> dict[str, Any]:
    """A reply of one token, with the probabilities of the likeliest tokens in its place."""
    made = completion(own if content is None else content)
    entries = [{"token": name, "logprob": math.log(p)} for name, p in listed.items()]
    logprob = math.log(listed.get(own, 0.1) if figure is None else figure)
    made["choices"][0]["logprobs"] = {"content": [{"token": own, "logprob": logprob, "top_logprobs": entries}]}
    return made


def probabilities(payload: dict[str, Any], status: Status = Status.OK) -> dict[str, float] | None:
    table = first_token(Delivery(status, payload, code=200))
    return None if table is None else {name: math.exp(figure) for name, figure in table.items()}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (token({"yes": 0.6, "no": 0.3}), {"yes": 0.6, "no": 0.3}),
        (token({"yes": 0.6, "no": 0.4005}), {"yes": 0.6, "no": 0.4005}),
        (token({"no": 0.6, "maybe": 0.3}), {"no": 0.6, "maybe": 0.3}),
        (token({"yes": 0.6, "no": 0.3}, figure=0.6005), {"yes": 0.6, "no": 0.3}),
        (token({"yes": 0.6, "no": 0.3}, content=""), {"yes": 0.6, "no": 0.3}),
        (token({"yes": 0.6, "no": 0.3}, content=" yes\n"), {"yes": 0.6, "no": 0.3}),
        (token({"yes": 0.5, " yes": 0.2, "no": 0.1}), {"yes": 0.7, "no": 0.1}),
    ],
    ids=["plain", "rounded", "own token not listed", "own figure rounded", "no content", "white space", "added up"],
)
def test_likelihoods_of_first_tokens_are_read(reply: dict[str, Any], expected: dict[str, float]) -> None:
    assert probabilities(reply) == pytest.approx(expected)


def test_one_of_two_figures_of_the_own_token_has_to_agree() -> None:
    reply = token({"yes": 0.5, "no": 0.2})
    (first,) = reply["choices"][0]["logprobs"]["content"]
    first["top_logprobs"].append({"token": "yes", "logprob": math.log(0.1)})
    assert probabilities(reply) == pytest.approx({"yes": 0.6, "no": 0.2})
    first["logprob"] = math.log(0.3)
    assert probabilities(reply) is None


@pytest.mark.parametrize(
    "reply",
    [
        token({"yes": 0.9, "no": 0.2}),
        token({"yes": 0.9}),
        token({"yes": 0.6, "no": 0.3}, figure=0.5),
        token({"yes": 0.6, "no": 0.3}, content="perhaps"),
        completion("yes"),
    ],
    ids=["more than 1 in all", "one token", "two figures for one token", "another content", "none"],
)
def test_likelihoods_that_contradict_themselves_are_not_trusted(reply: dict[str, Any]) -> None:
    assert probabilities(reply) is None


def test_likelihoods_of_a_request_that_failed_are_not_read() -> None:
    assert probabilities(token({"yes": 0.6, "no": 0.3}), Status.ERROR) is None


@pytest.mark.parametrize(
    ("message", "finish"),
    [
        ({"content": "blue", "tool_calls": [{"id": "1"}]}, "stop"),
        ({"content": "blue", "function_call": {"name": "f"}}, "stop"),
        ({"content": "blue"}, "tool_calls"),
        ({"content": "blue"}, "function_call"),
    ],
)
def test_a_tool_call_is_no_answer_where_none_was_offered(message: dict[str, Any], finish: str) -> None:
    payload = choice(message=message, finish_reason=finish)
    reply = read(payload)
    assert reply.status is Status.ERROR
    assert reply.detail.endswith("the model called a tool, and none was offered")
    offered = read_reply(Delivery(Status.OK, payload, code=200), tools=True)
    assert (offered.status, offered.text.partition("\n")[0]) == (Status.OK, "blue")


@pytest.mark.parametrize(
    ("content", "text", "thinking"),
    [
        ([{"type": "text", "text": "blue"}], "blue", ""),
        ([{"type": "output_text", "text": "bl"}, {"type": "text", "text": "ue"}], "blue", ""),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "red?"}]}, {"type": "text", "text": "a"}],
            "a",
            "red?",
        ),
        ([{"type": "thinking", "thinking": "red?", "signature": "x"}, {"type": "text", "text": "a"}], "a", "red?"),
        ([{"type": "reasoning", "text": "red?"}, {"type": "text", "text": "a"}], "a", "red?"),
        ([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "a"}], "a", ""),
        ([{"type": "text", "text": {"value": "a", "annotations": []}}], "a", ""),
        ([{"text": "a"}], "a", ""),
        (["bl", "ue"], "blue", ""),
        ({"type": "text", "text": "a"}, "a", ""),
    ],
)
def test_a_content_in_parts_is_read(content: Any, text: str, thinking: str) -> None:
    reply = read(choice(message={"role": "assistant", "content": content}))
    assert (reply.status, reply.text, reply.reasoning) == (Status.OK, text, thinking)


def test_parts_that_are_not_text_are_noted_beside_a_text() -> None:
    reply = read(choice(message={"content": [{"type": "image_url"}, {"type": "text", "text": "blue"}]}))
    assert (reply.status, reply.text) == (Status.OK, "blue")
    assert "a part of the content is of type 'image_url'" in reply.detail


def test_a_refusal_in_parts_is_a_refusal() -> None:
    reply = read(choice(message={"content": [{"type": "refusal", "refusal": "I may not."}]}))
    assert (reply.status, reply.detail) == (Status.REFUSED, "the model refused: 'I may not.'")


@pytest.mark.parametrize("content", [[{"type": "image_url"}], {"type": "image_url"}, [None], 7])
def test_a_content_of_other_parts_is_no_answer(content: Any) -> None:
    assert read(choice(message={"role": "assistant", "content": content})).status is Status.ERROR
    assert probabilities(choice(message={"role": "assistant", "content": content})) is None


@pytest.mark.parametrize(
    ("finish", "status"),
    [
        *((word, Status.OK) for word in ("stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence")),
        *((word, Status.OK) for word in ("", None, "another word")),
        *((word, Status.TRUNCATED) for word in ("length", "MAX_TOKENS", "MAX_OUTPUT_TOKENS", "token_limit")),
        ("FINISH_REASON_MAX_TOKENS", Status.TRUNCATED),
        *((word, Status.REFUSED) for word in ("content_filter", "SAFETY", "FINISH_REASON_SAFETY", "refusal")),
        *((word, Status.ERROR) for word in ("error", "abort", 1)),
    ],
)
def test_an_answer_ends_in_the_words_of_several_servers(finish: Any, status: Status) -> None:
    assert read(choice(finish_reason=finish)).status is status


def test_an_unknown_end_is_kept_as_the_detail() -> None:
    assert read(choice(finish_reason="another word")).detail == "finish_reason is 'another word', taken as 'stop'"
    assert read(choice(finish_reason="abort")).detail.endswith("'abort': the server did not finish the answer")


def test_an_unknown_end_without_an_answer_is_not_an_empty_answer() -> None:
    reply = read(choice(message={"content": ""}, finish_reason="another word"))
    assert reply.status is Status.ERROR
    assert reply.detail.endswith("finish_reason is 'another word', and there is no answer")


def test_an_error_in_a_choice_is_told() -> None:
    reply = read(choice(finish_reason="error", error={"code": 502, "message": "Upstream error"}))
    assert (reply.status, "'Upstream error'" in reply.detail) == (Status.ERROR, True)


@pytest.mark.parametrize(
    ("error", "said"),
    [({"message": "no memory"}, "'no memory'"), ("no memory", "'no memory'"), ({"code": 7}, "'no message'")],
)
def test_an_error_that_comes_as_a_success_is_told(error: Any, said: str) -> None:
    reply = read(completion("blue") | {"error": error})
    assert reply.status is Status.ERROR
    assert reply.detail.endswith(f"an error came as a success: {said}")


@pytest.mark.parametrize(
    ("usage", "said"),
    [({"completion_tokens": 9}, "not finished after 9 tokens"), (None, "not finished after all its tokens")],
)
def test_a_cut_answer_tells_its_tokens_where_they_are_counted(usage: Any, said: str) -> None:
    reply = read(completion("bl", "length", usage=usage))
    assert (reply.status, reply.detail) == (Status.TRUNCATED, said)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ('{"city": "Paris", "days": 2}', {"city": "Paris", "days": 2}),
        ({"city": "Paris"}, {"city": "Paris"}),
        ("{}", {}),
        ('"text"', '"text"'),
        ('{"city": ', '{"city": '),
        ('{"n": 1e999}', '{"n": 1e999}'),
        ("[" * 100_000, "[" * 100_000),
        (None, None),
    ],
)
def test_the_arguments_of_a_call_are_written_as_an_object_where_they_are_one(arguments: Any, written: Any) -> None:
    calls = [{"id": "1", "function": {"name": "f", "arguments": arguments}}]
    reply = read_reply(Delivery(Status.OK, completion(None, "tool_calls", tool_calls=calls)), tools=True)
    text = reply.text.strip().removeprefix("<tool_call>").removesuffix("</tool_call>")
    assert json.loads(text) == {"name": "f", "arguments": written}
