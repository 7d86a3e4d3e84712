"""Models of providers without an OpenAI-compatible address, by the package litellm."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

from pytest_adaptive_eval.checks import check_count, check_decoding
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.calling import CallableModel


class LiteLLMModel(CallableModel):
    """A chat model that litellm asks, created by `load`."""

    @classmethod
    def load(
        cls,
        name: str,
        *,
        revision: str = "",
        max_tokens: int = 1024,
        temperature: float = 0.0,
        concurrency: int = 8,
        timeout: float = 120.0,
        extra: Mapping[str, Any] | None = None,
    ) -> Self:
        """Prepare the calls of a model; keys come from the environment variables that litellm reads.

        Args:
            name: As litellm names it, such as ``vertex_ai/gemini-3-flash``.
            revision: Your own name for the weights; without it no answer is kept for a later run.
            max_tokens: Cap on the tokens of an answer.
            temperature: 0 is greedy.
            concurrency: Requests at once.
            timeout: Seconds for an answer.
            extra: Further arguments of ``litellm.completion``.

        Raises:
            ConfigError: A setting is out of its range, or litellm knows no provider of this name.
            ImportError: The package litellm is not installed.
        """
        check_count("max_tokens", max_tokens)
        check_decoding(temperature, 0, 1.0)
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches a file
        litellm: Any = importlib.import_module("litellm")
        try:
            litellm.get_llm_provider(name)
        except Exception as error:
            raise ConfigError(f"model 'litellm:{name}': {error!s:.300}") from error
        decoding: dict[str, Any] = {"max_tokens": max_tokens, "temperature": float(temperature)}
        ask = partial(_ask, litellm.completion, model=name, timeout=timeout, **decoding, **(extra or {}))
        model = cls(ask, name, checkpoint=revision, messages=True, concurrency=concurrency)
        model.identity = replace(model.identity, decoding={**decoding, "extra": dict(extra or {})})
        return model


def _ask(completion: Any, messages: list[dict[str, str]], **arguments: Any) -> Any:
    """Return the completion of a chat; litellm tries again after HTTP 429 and 500."""
    return completion(messages=messages, num_retries=3, drop_params=True, **arguments)
