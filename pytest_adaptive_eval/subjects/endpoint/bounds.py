"""Tell answers to whole prompts, and whole answers, from those that a server cut without a word."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_adaptive_eval.errors import AdaptiveEvalWarning
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.subjects.agent import Reply

__all__ = ["Bounds", "context_length"]

#: Where lists of models tell the tokens of prompt and answer together: vLLM and SGLang, OpenRouter, LM Studio.
_LENGTHS = ("max_model_len", "context_length", "loaded_context_length")
#: Where llama.cpp tells them: as it runs now, else as the model was trained.
_LLAMA_LENGTHS = ("n_ctx", "n_ctx_train")


def context_length(told: Mapping[str, Any] | None) -> int:
    """Return how many tokens prompt and answer may have together, by a model's entry in a server's list; 0 if unknown.

    Parameters
    ----------
    told : mapping or None
    """
    entry = told or {}
    meta = entry.get("meta")
    places = [(entry, name) for name in _LENGTHS]
    places += [(meta, name) for name in _LLAMA_LENGTHS if isinstance(meta, Mapping)]
    found = [place[name] for place, name in places if isinstance(place.get(name), int) and place[name] > 0]
    return int(found[0]) if found else 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server was seen to do at the ends of its context and of an answer.

    Parameters
    ----------
    context : int
        Tokens of prompt and answer together; 0 where the server does not tell.
    reports_caps : bool
        Whether a reply that reached its cap said so.
    """

    context: int
    reports_caps: bool

    def check(self, reply: Reply, max_tokens: int) -> Reply:
        """Return the reply, with another status where its prompt or its text was cut though it says ``stop``."""
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
        """Warn where cut answers cannot be told, by the reply to a question whose cap was one token."""
        if reply.status is Status.OK and not self.reports_caps and not reply.usage.completion_tokens:
            warnings.warn(
                AdaptiveEvalWarning(
                    "the server neither says when it cuts an answer nor counts its tokens, so that a cut answer counts "
                    "as complete: give max_tokens so high that no answer reaches it"
                ),
                stacklevel=2,
            )
