"""Choose tokens greedily, or sample them independently of other rows in a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
import transformers

#: The library's own type hints are partial.
hf: Any = transformers


def end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that end an answer: the tokenizer's, and those of the checkpoint's generation settings."""
    listed = model.generation_config.eos_token_id
    ids = {tokenizer.eos_token_id, *(listed if isinstance(listed, (list, tuple)) else [listed])}
    return tuple(sorted(int(token) for token in ids if token is not None))


def own_generation_config(ends: Sequence[int], pad: int, max_new_tokens: int) -> Any:
    """Return generation settings that take only the end tokens from the checkpoint.

    Its own settings may sample, suppress tokens or never stop.
    """
    return hf.GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=max_new_tokens,
        eos_token_id=list(ends) or None,
        pad_token_id=pad,
        use_cache=True,
    )


class Chooser:
    """A logits processor that detects non-finite logits, and samples.

    Sampling adds Gumbel noise to ``logits / temperature``, whose maximum is then a draw from the softmax (Gumbel 1954).
    Each row has a generator seeded by its prompt, so that an answer does not depend on the rest of its batch.

    Args:
        prompts: Prompt of each row.
        temperature: 0 is greedy.
        samples: Index of the draw of each row, for repeated administrations.
        top_p: Share of the probability that sampling is limited to: the likeliest tokens that together have it.
    """

    def __init__(
        self, prompts: Sequence[str], *, temperature: float, seed: int, samples: Sequence[int], top_p: float = 1.0
    ) -> None:
        self.temperature, self.top_p = temperature, top_p
        self.generators = [
            torch.Generator().manual_seed(_seed(seed, sample, prompt))
            for prompt, sample in zip(prompts, samples, strict=True)
        ]
        self._faults: list[torch.Tensor] = []

    def __call__(self, _: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """Return scores, shape (rows, vocabulary), whose maximum is the next token."""
        # the maximum shows NaN and infinity; a single -inf only forbids a token
        self._faults.append(~torch.isfinite(scores.amax(dim=-1)))
        chosen: torch.Tensor = torch.nan_to_num(scores)
        if self.temperature:
            noise = torch.stack([_gumbel(generator, scores.shape[-1]) for generator in self.generators])
            chosen = _nucleus(chosen / self.temperature, self.top_p) + noise.to(scores.device, scores.dtype)
        return chosen

    def faults(self) -> list[int | None]:
        """Return, for each row, the first step with non-finite logits, or None."""
        rows = torch.stack(self._faults, dim=1).tolist() if self._faults else []
        return [row.index(True) if True in row else None for row in rows]


def _nucleus(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Return logits, shape (rows, vocabulary), that are -inf outside the likeliest tokens of a probability `top_p`."""
    if top_p >= 1.0:
        return logits
    ordered, tokens = logits.sort(dim=-1, descending=True)
    shares = ordered.float().softmax(dim=-1)
    outside = shares.cumsum(dim=-1) - shares >= top_p  # the token that reaches the share is inside
    return logits.masked_fill(outside.scatter(-1, tokens, outside), float("-inf"))


def _gumbel(generator: torch.Generator, size: int) -> torch.Tensor:
    uniform = torch.rand(size, generator=generator, dtype=torch.float64).clamp_min(1e-300)
    return -torch.log(-torch.log(uniform))


def _seed(seed: int, sample: int, prompt: str) -> int:
    text = f"{seed} {sample} {prompt}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1
