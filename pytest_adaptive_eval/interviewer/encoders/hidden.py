"""Embeddings by the pooled hidden states of a generative model."""

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
from pytest_adaptive_eval.models.checkpoint.generation import Generator, Prompt
from pytest_adaptive_eval.models.checkpoint.placement import Placement


class HiddenStatesEmbedder:
    """Encoder by the mean of the last hidden states over the tokens of a prompt, including image tokens.

    Prompts are those of a subject. A text model ignores images.
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

        Raises:
            CheckpointError: The folder is missing, unsafe, incomplete or does not load in full.
            ConfigError: A setting is out of range.
        """
        check_count("batch_size", batch_size)
        generator = Generator.load(folder, Placement(device, dtype), temperature=0.0, seed=0, cache=cache)
        return cls(generator, batch_size=batch_size)

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Return embeddings, shape (n, d).

        Raises:
            BankError: An item is empty or too long, or has an unreadable picture.
        """
        prompts = [self._prompt(item) for item in bank.items]
        if lacking := [item for item, (_, prompt) in zip(bank.items, prompts, strict=True) if prompt is None]:
            raise missing(lacking, "text", "Embed by another encoder, or by factors")
        # a batch has texts of one length and needs no padding, so embeddings do not depend on the rest of the batch
        order = sorted((length, prompt.group, position) for position, (length, prompt) in enumerate(prompts) if prompt)
        rows: dict[int, NDArray[np.float32]] = {}
        while order:
            batch = [position for *group, position in order[: self._batch_size] if tuple(group) == order[0][:2]]
            order = order[len(batch) :]
            rows.update(zip(batch, self._pooled([p for n in batch if (p := prompts[n][1])]), strict=True))
        return unit_rows(np.stack([rows[position] for position in range(len(prompts))]), self.name)

    def _prompt(self, item: Item) -> tuple[int, Prompt | None]:
        """Return the number of tokens of an item's text, and its prompt; None for an empty item."""
        prompter = self._generator.prompter
        if prompter.image_token is None:
            item = replace(item, images=())
        if not item.images and not text_of(item):
            return 0, None
        text = prompter.text(item)
        special = prompter.adds_special_tokens(text)
        length = len(prompter.tokenizer(text, add_special_tokens=special)["input_ids"])
        self._generator.remaining_tokens(f"item {item.id!r}", length)
        return length, Prompt(f"item {item.id!r}", text, special, 1, tuple((name, item.root) for name in item.images))

    def _pooled(self, batch: list[Prompt]) -> NDArray[np.float32]:
        inputs = self._generator.encode(batch)
        model = self._generator.loaded.model.base_model  # without the head, whose logits are not needed
        with torch.inference_mode():
            states = model(**inputs, use_cache=False, return_dict=True).last_hidden_state.float()
        mask = inputs["attention_mask"].to(states.dtype).unsqueeze(-1)
        pooled = (states * mask).sum(1) / mask.sum(1)
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)
