"""Models of providers without an OpenAI-compatible address, by the package litellm."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.models.kinds.providers import LiteLLMSettings
from pytest_adaptive_eval.typed_tables import read_options


class LiteLLMModel(CallableModel):
    """A chat model that litellm asks, created by `load`."""

    @classmethod
    def load(cls, name: str, **options: Any) -> Self:
        """Prepare the calls of a model; keys come from the environment variables that litellm reads.

        Args:
            name: As litellm names it, such as ``vertex_ai/gemini-3-flash``.
            **options: See `LiteLLMSettings`.

        Raises:
            ConfigError: A setting is out of its range, or litellm knows no provider of this name.
            ImportError: The package litellm is not installed.
        """
        settings = read_options(LiteLLMSettings, options, f"'litellm:{name}'")
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches a file
        litellm: Any = importlib.import_module("litellm")
        litellm.suppress_debug_info = True  # else it prints advice
        try:
            litellm.get_llm_provider(name)
        except Exception as error:
            raise ConfigError(f"model 'litellm:{name}': {error!s:.300}") from error
        decoding = {"max_tokens": settings.max_tokens, "temperature": float(settings.temperature)}
        arguments = {"model": name, "timeout": settings.timeout, **decoding, **(settings.extra or {})}
        ask = partial(_ask, litellm.completion, arguments)
        model = cls(ask, name, checkpoint=settings.revision, messages=True, concurrency=settings.concurrency)
        model.identity = replace(model.identity, decoding={**decoding, "extra": settings.extra or {}})
        return model


def _ask(completion: Any, arguments: Mapping[str, Any], messages: list[dict[str, str]]) -> Any:
    """Return the completion of a chat; litellm tries again after HTTP 429 and 500."""
    return completion(messages=messages, num_retries=3, drop_params=True, **arguments)
