"""Log-likelihoods of given tokens after a prompt, with what several texts share read once."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pytest_adaptive_eval.models.checkpoint.generation import Generator, padded

#: Fewest tokens that all prompts of a call share for them to be read apart.
SHARED_TOKENS = 16
#: Texts that are read together for each row of a batch: only their own logits are kept, which take the most memory.
TEXT_ROWS = 4

#: Log-likelihoods of the texts of each group.
_Rated = list[list[float]]


@dataclass(frozen=True, slots=True)
class TokenGroup:
    """Texts that may follow the same tokens.

    Args:
        head: Tokens before each text; at least one.
        texts: Tokens of each text; at least one.
    """

    head: tuple[int, ...]
    texts: tuple[tuple[int, ...], ...]


class PrefixCache:
    """The model's cache of one prefix, whose shared part later calls reuse."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._cache: Any = None

    def forget(self) -> None:
        """Release the memory."""
        self._tokens = []
        self._cache = None

    def hold(self, generator: Generator, tokens: Sequence[int]) -> int:
        """Make the cache hold exactly these tokens, reusing its prefix, and return the number of tokens read."""
        reused = common_prefix(self._tokens, tokens)
        if reused < len(self._tokens):
            if self._cache is not None and _can_shrink(self._cache) and reused:
                self._cache.crop(reused - len(self._tokens))
            else:
                self.forget()
                reused = 0
        if reused < len(tokens):
            inputs = {"input_ids": torch.tensor([list(tokens[reused:])], device=generator.loaded.model.device)}
            _, self._cache = _forward(generator, inputs, self._cache, 1)
        self._tokens = list(tokens)
        return len(tokens) - reused

    def copy(self) -> Any:
        """Return a copy of the cache, which a model may extend; None if no tokens are held."""
        return copy.deepcopy(self._cache)

    @property
    def room(self) -> float:
        """Number of tokens from which on the cache loses some."""
        return _room_of(self._cache)

    def rows(self, count: int) -> Any:
        """Return a copy of the cache for each of `count` rows; None if this kind of cache has no such copies."""
        if not _can_shrink(self._cache):
            return None
        copied = self.copy()
        copied.batch_repeat_interleave(count)
        return copied


class Rater:
    """Log-likelihoods of texts by a loaded text model.

    The tokens that all heads of a call share are read once, and so is the rest of each head. Texts are read after a
    copy of the cache. Where the model's cache has lost tokens, as of recurrent states and of texts beyond a sliding
    window, each text is read with its whole head.

    Args:
        batch_size: Rows of one call of the model.
    """

    def __init__(self, generator: Generator, batch_size: int) -> None:
        self._generator = generator
        self._batch_size = batch_size
        self._prefix = PrefixCache()
        self._last_head: tuple[int, ...] = ()
        #: Number of tokens of a row from which on the model's cache loses some.
        self._free_tokens = math.inf
        #: Number of tokens read so far.
        self.read = 0

    def rate(self, groups: Sequence[TokenGroup]) -> _Rated:
        """Return the log-likelihood of each text of each group, in nats; NaN where the model gives none."""
        shared = self._shared(groups)
        order = sorted(range(len(groups)), key=lambda n: (len(groups[n].head), groups[n].head))
        rated: _Rated = [[] for _ in groups]
        with torch.inference_mode():
            for start in range(0, len(order), self._batch_size):
                positions = order[start : start + self._batch_size]
                batch = [groups[n] for n in positions]
                for position, values in zip(positions, self._rate_batch(batch, shared), strict=True):
                    rated[position] = values
        return rated

    def last(self, inputs: Mapping[str, Any], count: int) -> torch.Tensor:
        """Return the last `count` logits of one prepared row, shape (count, V)."""
        logits: torch.Tensor = _forward(self._generator, inputs, None, count)[0][0]
        return logits

    def _shared(self, groups: Sequence[TokenGroup]) -> int:
        """Return the number of tokens that all heads share; 0 if too few to be read apart."""
        heads = [group.head for group in groups]
        first = heads[0]
        others = heads[1:] or [self._last_head]
        self._last_head = heads[-1]
        count = min(map(len, heads)) - 1  # the last token of a head predicts the texts
        for head in others:
            count = common_prefix(first[:count], head)
        if count >= SHARED_TOKENS:
            return count
        return 0

    def _rate_batch(self, batch: Sequence[TokenGroup], shared: int) -> _Rated:
        width = max(len(group.head) for group in batch) + max(len(text) for group in batch for text in group.texts)
        if width < self._free_tokens:
            past = None
            if shared:
                self.read += self._prefix.hold(self._generator, batch[0].head[:shared])
                past = self._prefix.rows(len(batch))
            if not shared or past is not None:
                firsts, mask, cache = self._read_heads(batch, shared, past)
                if width < (free_tokens := _room_of(cache)):
                    return self._read_texts(batch, firsts, mask, cache)
                self._free_tokens = free_tokens
            else:
                self._free_tokens = self._prefix.room
        return self._read_whole(batch)

    def _read_heads(
        self, batch: Sequence[TokenGroup], shared: int, past: Any
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Return the log-probabilities after each head, shape (B, V), and the cache with its mask, shape (B, T)."""
        rows = [group.head[shared:] for group in batch]
        self.read += sum(map(len, rows))
        width = max(map(len, rows))
        tokens, mask = padded(rows, width, on_left=True)
        positions = (mask.cumsum(1) - 1).clamp(min=0) + shared
        mask = torch.cat([mask.new_ones(len(rows), shared), mask], dim=1)
        logits, cache = _forward(self._generator, self._inputs(tokens, mask, positions), past, 1)
        return torch.log_softmax(logits[:, -1].float(), dim=-1), mask, cache

    def _read_texts(self, batch: Sequence[TokenGroup], firsts: torch.Tensor, heads: torch.Tensor, cache: Any) -> _Rated:
        """Return the log-likelihood of each text of each head.

        Args:
            firsts: Shape (heads, vocabulary). Log-probabilities of the first token after each head.
            heads: Shape (heads, tokens). Mask of the heads' tokens in `cache`.
        """
        rated = [[float(firsts[n, text[0]]) for text in group.texts] for n, group in enumerate(batch)]
        rows = [(n, k) for n, group in enumerate(batch) for k, text in enumerate(group.texts) if len(text) > 1]
        rows.sort(key=lambda row: len(batch[row[0]].texts[row[1]]))
        most = TEXT_ROWS * self._batch_size
        for start in range(0, len(rows), most):
            part = rows[start : start + most]
            owners = torch.tensor([n for n, _ in part])
            texts = [batch[n].texts[k] for n, k in part]
            self.read += sum(len(text) - 1 for text in texts)
            if start + most < len(rows):
                past = copy.deepcopy(cache)
            else:
                past = cache
            past.batch_select_indices(owners.to(firsts.device))
            tokens, mask = padded([text[:-1] for text in texts], max(map(len, texts)) - 1)
            before = heads[owners]
            positions = before.sum(1, keepdim=True) + torch.arange(tokens.shape[1])[None]
            mask = torch.cat([before, mask], dim=1)
            logits, _ = _forward(self._generator, self._inputs(tokens, mask, positions), past, tokens.shape[1])
            for (n, k), row, text in zip(part, logits, texts, strict=True):
                rated[n][k] += log_likelihood(row[: len(text) - 1], text[1:])
        return rated

    def _read_whole(self, batch: Sequence[TokenGroup]) -> _Rated:
        """Return log-likelihoods of texts that are each read with their head, padded on the right."""
        pairs = [(n, group.head + text[:-1], text) for n, group in enumerate(batch) for text in group.texts]
        rated: _Rated = [[] for _ in batch]
        for start in range(0, len(pairs), self._batch_size):
            part = pairs[start : start + self._batch_size]
            self.read += sum(len(row) for _, row, _ in part)
            tokens, mask = padded([row for _, row, _ in part], max(len(row) for _, row, _ in part))
            logits, _ = _forward(self._generator, self._inputs(tokens, mask, None), None, 0)
            for (n, row, text), scores in zip(part, logits, strict=True):
                rated[n].append(log_likelihood(scores[len(row) - len(text) : len(row)], text))
        return rated

    def _inputs(self, tokens: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor | None) -> dict[str, Any]:
        """Return inputs on the model's device, with positions if the model takes them."""
        device = self._generator.loaded.model.device
        inputs = {"input_ids": tokens.to(device), "attention_mask": mask.to(device)}
        if positions is not None and self._generator.takes_positions:
            inputs["position_ids"] = positions.to(device)
        return inputs


def _forward(generator: Generator, inputs: Mapping[str, Any], cache: Any, count: int) -> tuple[Any, Any]:
    """Return the last `count` logits of each row (all if 0), and the cache that the model extended."""
    arguments = {**inputs, **last_logits(generator, count)}
    if cache is not None:
        arguments[generator.cache_name] = cache
    with torch.inference_mode():
        output = generator.loaded.model(use_cache=True, **arguments)
    logits = output.logits
    return (logits[:, -count:] if count else logits), output.get(generator.cache_name)


def log_likelihood(logits: torch.Tensor, tokens: Sequence[int]) -> float:
    """Return the summed log-probability of tokens, in nats, from the logits before each of them, shape (T, V)."""
    words = torch.log_softmax(logits.float(), dim=-1)
    chosen = words.gather(1, torch.tensor(list(tokens), device=words.device)[:, None])
    return float(chosen.sum())


def with_tokens(inputs: Mapping[str, Any], tokens: Sequence[int]) -> dict[str, Any]:
    """Return the inputs of one prompt with text tokens added at its end, as prompts with pictures require."""
    shape = inputs["input_ids"].shape
    more = torch.tensor([list(tokens)], dtype=torch.long, device=inputs["input_ids"].device)
    added = {"input_ids": more, "attention_mask": torch.ones_like(more)}
    extended = dict(inputs)
    for name, tensor in inputs.items():
        if torch.is_tensor(tensor) and tensor.shape == shape:  # one number per token, such as its type: 0 is text
            extended[name] = torch.cat([tensor, added.get(name, torch.zeros_like(more)).to(tensor.dtype)], dim=1)
    return extended


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common prefix of two lists."""
    return next(
        (index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def last_logits(generator: Generator, count: int) -> dict[str, int]:
    """Return the argument that limits logits to the last tokens, if the model supports it."""
    if generator.can_keep_logits:
        return {"logits_to_keep": count}
    return {}


def _room_of(cache: Any) -> float:
    """Return the number of tokens from which on a cache loses some: 0 for recurrent states, infinity without any."""
    rooms = []
    for layer in getattr(cache, "layers", ()):
        if type(layer).__name__ == "DynamicSlidingWindowLayer":
            windowed = layer.sliding_window
        else:
            windowed = 0
        rooms.append(math.inf if type(layer).__name__ == "DynamicLayer" else windowed)
    return float(min(rooms, default=0))


def _can_shrink(cache: Any) -> bool:
    """Return whether tokens can be removed from a cache, which has lost none."""
    free_bytes = _room_of(cache)
    return free_bytes > 0 and cache.get_seq_length() < free_bytes
