"""Embeddings from the inside of a model that writes: its last hidden states, pooled."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.interviewer.encoders.reading import missing, text_of, unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.subjects.checkpoint.generation import Generator, Prompt

__all__ = ["HiddenStatesEmbedder"]


class HiddenStatesEmbedder:
    """Mean of the last layer's hidden states over the tokens of a prompt, those of its images included.

    Items are read as a subject would read them; a model of texts alone leaves images out.

    Parameters
    ----------
    generator : Generator
    batch_size : int
    """

    def __init__(self, generator: Generator, *, batch_size: int) -> None:
        self._generator = generator
        self._batch_size = batch_size
        info = generator.info
        self.name = f"hidden states {info.name} ({info.hash[:8]})"
        self.key = f"hidden states {info.hash} {generator.prompter.style} {generator.loaded.dtype}"

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int = 16,
        cache: Path | None = None,
    ) -> HiddenStatesEmbedder:
        """Examine and load a checkpoint, text or image-and-text.

        Raises
        ------
        CheckpointError
            The folder is missing, unsafe, incomplete or does not load in full.
        ConfigError
            A setting is not known here.
        """
        check_count("batch_size", batch_size)
        generator = Generator.load(folder, device=device, dtype=dtype, max_tokens=1, cache=cache)
        return cls(generator, batch_size=batch_size)

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Embeddings, shape (n, d).

        Raises
        ------
        BankError
            An item has nothing to read, is too long, or has a picture that cannot be opened.
        """
        prompts = [self._prompt(item) for item in bank.items]
        if lacking := [item for item, (_, prompt) in zip(bank.items, prompts, strict=True) if prompt is None]:
            raise missing(lacking, "text", "Embed by another encoder, or by factors")
        # Texts of one length go together: nothing is padded, so that no embedding depends on its neighbours.
        order = sorted((length, prompt.group, place) for place, (length, prompt) in enumerate(prompts) if prompt)
        out: list[tuple[int, NDArray[np.float32]]] = []
        while order:
            batch = [place for *group, place in order[: self._batch_size] if tuple(group) == order[0][:2]]
            order = order[len(batch) :]
            out += zip(batch, self._pooled([prompt for place in batch if (prompt := prompts[place][1])]), strict=True)
        return unit_rows(np.stack([row for _, row in sorted(out, key=lambda pair: pair[0])]), self.name)

    def _prompt(self, item: Item) -> tuple[int, Prompt | None]:
        """What the model reads, and how many tokens its text has."""
        prompter = self._generator.prompter
        if prompter.image_token is None:
            item = replace(item, images=())
        if not item.images and not text_of(item):
            return 0, None
        text = prompter.text(item)
        special = prompter.adds_special_tokens(text)
        length = len(prompter.tokenizer(text, add_special_tokens=special)["input_ids"])
        self._generator.room(f"item {item.id!r}", length)
        return length, Prompt(f"item {item.id!r}", text, special, 1, tuple((name, item.root) for name in item.images))

    def _pooled(self, batch: list[Prompt]) -> NDArray[np.float32]:
        inputs = self._generator.encode(batch)
        model = self._generator.loaded.model.base_model  # without the head, whose logits nobody reads
        with torch.inference_mode():
            states = model(**inputs, use_cache=False, return_dict=True).last_hidden_state.float()
        seen = inputs["attention_mask"].to(states.dtype).unsqueeze(-1)
        pooled = (states * seen).sum(1) / seen.sum(1)
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)
