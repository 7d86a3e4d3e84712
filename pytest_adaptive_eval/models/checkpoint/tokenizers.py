"""Load a checkpoint's configuration and tokenizer, and render its chat template, without torch.

The worker does this first, since such files can take for ever: a million added tokens, or ``{{ 9**(9**9) }}``.
"""

from __future__ import annotations

import functools
import os
import string
from typing import Any

import transformers
from transformers import AutoConfig, AutoTokenizer

#: The library's own type hints are partial.
hf: Any = transformers

#: Settings that fetch nothing and run no code of the checkpoint.
LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def load_tokenizer(folder: str | os.PathLike[str]) -> Any:
    """Return the tokenizer of a checkpoint; it pads on the left and has a padding token."""
    tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        # padding is masked, so any token will do
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    return tokenizer


_loaded = functools.lru_cache(maxsize=4)(load_tokenizer)


def check_config(folder: str) -> None:
    """Load the configuration; runs in the worker."""
    AutoConfig.from_pretrained(folder, **LOCAL)


def check_tokenizer(folder: str) -> None:
    """Load the tokenizer, and encode and decode every printable character; runs in the worker."""
    tokenizer = _loaded(folder)
    tokenizer.decode(tokenizer(string.printable)["input_ids"])


def render(folder: str, messages: list[dict[str, Any]], template: str, tools: list[dict[str, Any]] | None) -> str:
    """Return a conversation rendered by a chat template, up to the beginning of the answer; runs in the worker."""
    return str(
        _loaded(folder).apply_chat_template(
            messages, tools=tools, chat_template=template, tokenize=False, add_generation_prompt=True
        )
    )
