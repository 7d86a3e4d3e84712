"""Token counts of replies as providers and gateways publish them; no answer rests on them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.endpoint.chat import read_reply
from pytest_adaptive_eval.models.endpoint.outcome import Delivery
from pytest_adaptive_eval.models.endpoint.token_usage import TokenCounts, read_counts

#: Usage by provider, and what it says: tokens of the prompt, of the reply with its reasoning, and of the reasoning.
PUBLISHED: dict[str, tuple[Any, tuple[int | None, int | None, int | None]]] = {
    "OpenAI": (
        {
            "prompt_tokens": 19,
            "completion_tokens": 10,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "accepted_prediction_tokens": 0},
        },
        (19, 10, 0),
    ),
    "OpenAI, reasoning": (
        {
            "prompt_tokens": 32,
            "completion_tokens": 1140,
            "total_tokens": 1172,
            "completion_tokens_details": {"reasoning_tokens": 1024},
        },
        (32, 1140, 1024),
    ),
    "OpenAI, responses": (
        {
            "input_tokens": 36,
            "output_tokens": 87,
            "total_tokens": 123,
            "output_tokens_details": {"reasoning_tokens": 64},
        },
        (36, 87, 64),
    ),
    "xAI, reasoning apart": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 2,
            "total_tokens": 78,
            "completion_tokens_details": {"reasoning_tokens": 64},
        },
        (12, 66, 64),
    ),
    "xAI, much text": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 100,
            "total_tokens": 176,
            "completion_tokens_details": {"reasoning_tokens": 64},
        },
        (12, 164, 64),
    ),
    "Gemini, compatible": ({"prompt_tokens": 6, "completion_tokens": 9, "total_tokens": 415}, (6, 409, 400)),
    "Gemini, as it counts": (
        {"promptTokenCount": 6, "candidatesTokenCount": 9, "thoughtsTokenCount": 400, "totalTokenCount": 415},
        (6, 409, 400),
    ),
    "Anthropic": (
        {"input_tokens": 2095, "output_tokens": 503, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        (2095, 503, None),
    ),
    "DeepSeek": (
        {
            "prompt_tokens": 16,
            "completion_tokens": 30,
            "total_tokens": 46,
            "prompt_cache_hit_tokens": 0,
            "prompt_cache_miss_tokens": 16,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        (16, 30, 20),
    ),
    "Mistral": ({"prompt_tokens": 16, "completion_tokens": 34, "total_tokens": 50}, (16, 34, None)),
    "Groq": (
        {
            "queue_time": 0.02,
            "prompt_tokens": 18,
            "prompt_time": 0.0007,
            "completion_tokens": 556,
            "completion_time": 0.46,
            "total_tokens": 574,
            "total_time": 0.46,
        },
        (18, 556, None),
    ),
    "vLLM": (
        {"prompt_tokens": 7, "total_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": None},
        (7, 5, None),
    ),
    "llama.cpp": ({"completion_tokens": 5, "prompt_tokens": 7, "total_tokens": 12}, (7, 5, None)),
    "OpenRouter": (
        {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12, "cost": 0.00014, "is_byok": False},
        (7, 5, None),
    ),
    "LiteLLM, none of the reply": (
        {"prompt_tokens": 7, "completion_tokens": None, "total_tokens": 7, "completion_tokens_details": None},
        (7, None, None),
    ),
    "LitServe": ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (0, 0, None)),
    "none": (None, (None, None, None)),
    "empty": ({}, (None, None, None)),
    "floats": ({"prompt_tokens": 7.0, "completion_tokens": 5.0}, (7, 5, None)),
}
ODD: dict[str, tuple[Any, str]] = {
    "a text": ("many", "the usage is 'many'"),
    "a list": ([1], "the usage is '[1]'"),
    "negative": ({"prompt_tokens": -1}, "prompt_tokens as '-1'"),
    "a fraction": ({"completion_tokens": 1.5}, "completion_tokens as '1.5'"),
    "true": ({"completion_tokens": True}, "completion_tokens as 'True'"),
    "huge": ({"completion_tokens": 10**30}, "completion_tokens as '1"),
    "words": ({"completion_tokens": "five"}, "completion_tokens as 'five'"),
    "not a number": ({"completion_tokens": float("nan")}, "completion_tokens as 'nan'"),
    "endless": ({"completion_tokens": float("inf")}, "completion_tokens as 'inf'"),
}


@pytest.mark.parametrize("provider", PUBLISHED)
def test_published_counts_are_read(provider: str) -> None:
    usage, (prompt, completion, reasoning) = PUBLISHED[provider]
    assert read_counts(usage) == TokenCounts(prompt, completion, reasoning)


@pytest.mark.parametrize("form", ODD)
def test_what_is_no_count_is_noted_and_counts_nothing(form: str) -> None:
    usage, note = ODD[form]
    counts = read_counts(usage)
    assert (counts.prompt, counts.completion, counts.reasoning) == (None, None, None)
    assert note in counts.odd


def reply(**changes: Any) -> dict[str, Any]:
    """A reply to a chat."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Paris"}}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **changes}


@pytest.mark.parametrize(
    ("payload", "note"),
    [
        *((reply(usage=usage), "") for usage, _ in PUBLISHED.values()),
        *((reply(usage=usage), note) for usage, note in ODD.values()),
        (reply(object=""), ""),
        (reply(object=None), ""),
        (reply(object=1), "object is '1', expected 'chat.completion'"),
        (reply(object="chat.completion.chunk"), "object is 'chat.completion.chunk'"),
        *(
            (reply(choices=[{"message": {"role": role, "content": "Paris"}}]), note)
            for role, note in ((None, ""), ("", ""), ("model", "role is 'model', expected 'assistant'"))
        ),
        (reply(choices=[{"message": {"content": "Paris", "reasoning": {"effort": "low"}}}]), ""),
        (reply(choices=[{"message": {"content": "Paris", "reasoning_content": None, "tool_calls": []}}]), ""),
    ],
)
def test_nothing_beside_the_answer_refuses_a_reply(payload: dict[str, Any], note: str) -> None:
    completion = read_reply(Delivery(Status.OK, payload, code=200))
    assert (completion.text, completion.status) == ("Paris", Status.OK)
    assert note in completion.detail
    assert bool(completion.detail) == bool(note)


@pytest.mark.parametrize(
    "payload",
    [
        reply(choices=[]),
        reply(choices="Paris"),
        reply(choices=[{"message": "Paris"}]),
        reply(choices=[{"message": {"content": 7}}]),
        reply(error={"message": "no memory"}),
        reply(choices=[{"finish_reason": "abort", "message": {"content": "Par"}}]),
    ],
)
def test_what_the_answer_rests_on_refuses_a_reply(payload: dict[str, Any]) -> None:
    assert read_reply(Delivery(Status.OK, payload, code=200)).status is Status.ERROR
