"""Servers that refuse what providers refuse, by their public documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fake_server import JsonServer, completion, failure

from pytest_adaptive_eval.models.kinds.providers import PROVIDERS

#: Fields that each provider documents, of those that we send.
COMMON = {"model", "messages", "stream", "max_tokens", "temperature", "top_p"}
PENALTIES = {"presence_penalty", "frequency_penalty", "seed"}
KEY = "a-key-of-a-test"


def unrecognized(names: list[str]) -> dict[str, Any]:
    """OpenAI and Azure name one field at a time."""
    return failure(f"Unrecognized request argument supplied: {names[0]}")


def unsupported(names: list[str]) -> dict[str, Any]:
    """Groq names one field at a time."""
    return failure(f"property '{names[0]}' is unsupported")


def extra_forbidden(names: list[str]) -> dict[str, Any]:
    """Mistral and others whose bodies pydantic checks."""
    kind = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
    return {"detail": [{**kind, "loc": ["body", name]} for name in names]}


def unknown_name(names: list[str]) -> dict[str, Any]:
    """Gemini."""
    lines = "\n".join(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in names)
    return {"error": {"code": 400, "message": lines, "status": "INVALID_ARGUMENT"}}


class Dialect(SimpleNamespace):
    """What a provider takes, how it refuses, and the name it answers by."""

    fields: set[str]
    refuse: Callable[[list[str]], dict[str, Any]] | None
    code: int
    answers_as: str


def dialect(
    *more: str, refuse: Callable[[list[str]], dict[str, Any]] | None = None, code: int = 400, answers_as: str = "m"
) -> Dialect:
    return Dialect(fields=COMMON | set(more), refuse=refuse, code=code, answers_as=answers_as)


DIALECTS = {
    "anthropic": dialect(answers_as="m-20250929"),
    "azure": dialect(*PENALTIES, refuse=unrecognized, answers_as="m-2025-08-07"),
    "bedrock": dialect(*PENALTIES, refuse=extra_forbidden),
    "gemini": dialect(*PENALTIES, refuse=unknown_name),
    "groq": dialect(*PENALTIES, refuse=unsupported),
    "mistral": dialect("presence_penalty", "frequency_penalty", refuse=extra_forbidden, code=422),
    "ollama": dialect(*PENALTIES),
    "openai": dialect(*PENALTIES, "max_completion_tokens", refuse=unrecognized, answers_as="m-2025-08-07"),
    "openrouter": dialect(*PENALTIES, "top_k", "min_p", "repetition_penalty"),
    "together": dialect(*PENALTIES, "top_k", "min_p", "repetition_penalty"),
}


def imitation(name: str) -> Callable[[Any, Mapping[str, str]], tuple[dict[str, Any], int]]:
    """A provider's replies: the key is checked, then the fields; the answer is right for nine items of ten."""
    described, key = DIALECTS[name], PROVIDERS[name].key_env

    def answer(body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        if key and headers.get("Authorization") != f"Bearer {KEY}":
            return failure("Incorrect API key provided"), 401
        if name == "openai" and "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            return failure(text), 400
        refused = sorted(set(body) - described.fields)
        if refused and described.refuse is not None:
            return described.refuse(refused), described.code
        text = body["messages"][-1]["content"]
        return completion(described.answers_as, "wrong" if text.endswith("3") else "right"), 200

    return answer


@contextmanager
def served_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a provider's address be that of a server of this process, and its key in the environment."""
    with JsonServer(["m"], imitation(name)) as server:
        monkeypatch.setitem(PROVIDERS, name, PROVIDERS[name]._replace(address=server.url))
        if PROVIDERS[name].key_env:
            monkeypatch.setenv(PROVIDERS[name].key_env, KEY)
        yield
