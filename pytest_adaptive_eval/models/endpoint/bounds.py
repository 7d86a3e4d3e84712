"""Detect prompts and answers that a server cut without saying so."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_adaptive_eval.errors import AdaptiveEvalWarning
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Reply

#: Fields of a model's entry with the context length: vLLM and SGLang, OpenRouter, LM Studio.
_LENGTHS = ("max_model_len", "context_length", "loaded_context_length")
#: Fields of llama.cpp with the context length: as it runs, else as the model was trained.
_LLAMA_LENGTHS = ("n_ctx", "n_ctx_train")


def context_length(entry: Mapping[str, Any] | None) -> int:
    """Return the limit of prompt and answer tokens together, from a server's entry for a model; 0 if unknown."""
    fields = entry or {}
    meta = fields.get("meta")
    candidates = [fields.get(name) for name in _LENGTHS]
    candidates += [meta.get(name) for name in _LLAMA_LENGTHS if isinstance(meta, Mapping)]
    return next((int(length) for length in candidates if isinstance(length, int) and length > 0), 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Observed behaviour of a server at the end of its context and of an answer.

    Args:
        context: Limit of prompt and answer tokens together; 0 if unknown.
        reports_caps: Whether a reply that reached its cap had the finish reason ``length``.
    """

    context: int
    reports_caps: bool

    def check(self, reply: Reply, max_tokens: int) -> Reply:
        """Return the reply, with another status if its prompt or text was cut although it says ``stop``."""
        if reply.status is not Status.OK:
            return reply
        prompt, answer = reply.usage.prompt_tokens, reply.usage.completion_tokens
        if self.context and prompt + answer > self.context + 1:  # some count the token that ends an answer
            detail = (
                f"prompt and answer have {prompt} + {answer} tokens, and the server's context has {self.context}: it "
                "ran over, or cut the prompt; raise its context, or shorten the prompt"
            )
            return replace(reply, status=Status.ERROR, detail=detail)
        if self.context and prompt and prompt + max_tokens == self.context:
            detail = (
                f"the prompt has {prompt} tokens, which with the cap of {max_tokens} fill the server's context of "
                f"{self.context} exactly: it was cut to fit; raise the context, or shorten the prompt"
            )
            return replace(reply, status=Status.ERROR, detail=detail)
        if not self.reports_caps and answer >= max_tokens:
            detail = (
                f"the answer has {answer} tokens, its cap is {max_tokens}, and this server does not say when it cuts "
                "an answer"
            )
            return replace(reply, status=Status.TRUNCATED, detail=detail)
        return reply

    def warn_if_blind(self, reply: Reply) -> None:
        """Warn if cut answers cannot be detected, given the reply to a request with a cap of one token."""
        if reply.status is Status.OK and not self.reports_caps and not reply.usage.completion_tokens:
            warnings.warn(
                AdaptiveEvalWarning(
                    "the server neither says when it cuts an answer nor counts its tokens, so that a cut answer counts "
                    "as complete: give max_tokens so high that no answer reaches it"
                ),
                stacklevel=2,
            )
