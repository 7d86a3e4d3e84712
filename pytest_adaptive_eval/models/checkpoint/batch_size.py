"""Size of a checkpoint's batches where the user sets none: as many questions as the memory of its GPUs holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_adaptive_eval.models.checkpoint.placement import free_bytes

#: Questions of a batch on a processor, which larger batches keep no busier.
ON_PROCESSOR = 16
#: Most questions of a batch that is found.
MOST = 256
#: Tokens that the prompt of a question is assumed to have.
PROMPT_TOKENS = 1024
#: Share of the free memory that a batch may take; the rest is for what is not counted here.
SHARE = 0.8


def find_batch_size(model: Any, devices: Sequence[str], answer_tokens: int) -> int:
    """Return how many questions the free memory holds beside the loaded weights, at most `MOST`.

    Where it holds fewer, since prompts are longer or pictures large, the batch is halved when the memory is spent.

    Args:
        devices: Devices that hold the model's layers, about as many each.
        answer_tokens: Cap on the tokens of an answer.
    """
    free = [free_bytes(device) if device.startswith("cuda") else None for device in devices]
    known = [count for count in free if count is not None]
    if len(known) < len(devices):
        return ON_PROCESSOR
    available = SHARE * len(known) * min(known)
    return max(1, min(MOST, int(available / _question_bytes(model, answer_tokens))))


def _question_bytes(model: Any, answer_tokens: int) -> int:
    """Return the bytes of one row: keys and values of all tokens, a layer's work on the prompt, and the logits."""
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "max_position_embeddings", None) or PROMPT_TOKENS + answer_tokens
    tokens = min(PROMPT_TOKENS + answer_tokens, window)
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    keys_and_values = 2 * config.num_hidden_layers * (getattr(config, "num_key_value_heads", None) or heads) * width
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    number = int(model.dtype.itemsize)
    each = tokens * keys_and_values + min(tokens, PROMPT_TOKENS) * 3 * inner
    return int(number * each + 3 * 4 * config.vocab_size)
