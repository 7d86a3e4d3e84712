"""Embeddings by the pooled hidden states of a generative model, or of a sentence encoder without its package."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.interviewer.encoders.reading import missing, text_of, unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.checkpoint.folder import CheckpointInfo, preflight
from pytest_adaptive_eval.models.checkpoint.generation import Generator, Prompt
from pytest_adaptive_eval.models.checkpoint.loading import Loaded, load_checkpoint
from pytest_adaptive_eval.models.checkpoint.placement import Placement
from pytest_adaptive_eval.models.checkpoint.weights import read_object


class HiddenStatesEmbedder:
    """Encoder by the mean of the last hidden states over the tokens of a prompt, including image tokens.

    Prompts have the form that a subject gets. A text model ignores images.
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
        batch_size: int = 16,
        cache: Path | None = None,
        **placement: Any,
    ) -> HiddenStatesEmbedder:
        """Examine and load a checkpoint, text or image-and-text; `placement` and errors are as of `load_checkpoint`.

        Raises:
            CheckpointError: The folder is missing, unsafe, incomplete or does not load in full.
            ConfigError: A setting is out of range.
        """
        check_count("batch_size", batch_size)
        generator = Generator.load(folder, Placement(**placement), temperature=0.0, seed=0, cache=cache)
        return cls(generator, batch_size=batch_size)

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Return embeddings, shape (n, d); raise BankError if an item is empty, too long or unreadable."""
        prompts: list[Prompt] = []
        lacking: list[Item] = []
        by_shape: dict[tuple[Any, ...], list[int]] = {}
        for item in bank.items:
            length, prompt = self._prompt(item)
            if prompt is None:
                lacking.append(item)
                continue
            by_shape.setdefault((length, prompt.group), []).append(len(prompts))
            prompts.append(prompt)
        if lacking:
            raise missing(lacking, "text", "Embed by another encoder, or by factors")
        rows: dict[int, NDArray[np.float32]] = {}
        # a batch has texts of one length and needs no padding, so embeddings do not depend on the rest of the batch
        for positions in by_shape.values():
            for start in range(0, len(positions), self._batch_size):
                batch = positions[start : start + self._batch_size]
                rows.update(zip(batch, self._pooled([prompts[n] for n in batch]), strict=True))
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


Pooling = Literal["mean", "cls", "max", "lasttoken"]

#: File that identifies a folder of sentence-transformers.
MODULES = "modules.json"

#: Default number of tokens that are read of a text.
TOKENS = 512


class SentenceFolderEmbedder:
    """Text encoder with pooled token vectors, created by `load`.

    Args:
        tokens: Limit, beyond which texts are truncated.
    """

    def __init__(
        self, info: CheckpointInfo, loaded: Loaded, *, pooling: Pooling, tokens: int, lower: bool, batch_size: int
    ) -> None:
        self._loaded = loaded
        self._pooling: Pooling = pooling
        self._tokens, self._lower, self._batch_size = tokens, lower, batch_size
        loaded.tokenizer.padding_side = "right"  # positions count from the left
        self.name = f"sentence encoder {info.name} ({pooling}, {info.hash[:8]})"
        self.key = f"sentence encoder {info.hash} {pooling} {tokens} {lower} {loaded.dtype}"

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        batch_size: int = 64,
        cache: Path | None = None,
        **placement: Any,
    ) -> SentenceFolderEmbedder:
        """Examine and load an encoder with ``modules.json``, or a bare transformers encoder with mean pooling.

        Raises:
            CheckpointError: As `load_checkpoint`, or for unsupported modules.
        """
        check_count("batch_size", batch_size)
        root = Path(folder).expanduser()
        inner, pooling = _modules(root)
        settings = read_object(path) if (path := inner / "sentence_bert_config.json").is_file() else {}
        info = preflight(inner, cache=cache)
        if info.kind != "text":
            raise CheckpointError(
                f"{root} is an encoder of images too, expected one of texts; use it through open_clip"
            )
        loaded = load_checkpoint(info, Placement(**placement), writes=False)
        limits = [settings.get("max_seq_length"), loaded.tokenizer.model_max_length, _window(loaded.model)]
        usable = [limit for limit in limits if type(limit) is int and 0 < limit < 10**6]
        return cls(
            info,
            loaded,
            pooling=pooling,
            tokens=min(usable, default=TOKENS),
            lower=settings.get("do_lower_case") is True,
            batch_size=batch_size,
        )

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Return embeddings, shape (n, d); raise BankError if an item has no text."""
        items = list(bank.items)
        texts = [text_of(item) for item in items]
        if lacking := [item for item, text in zip(items, texts, strict=True) if not text.strip()]:
            raise missing(lacking, "text", "Embed by another encoder, or by factors")
        if self._lower:
            texts = [text.lower() for text in texts]
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        batches = [order[first : first + self._batch_size] for first in range(0, len(order), self._batch_size)]
        rows = np.concatenate([self._pooled([texts[position] for position in batch]) for batch in batches])
        return unit_rows(rows[np.argsort(order)], self.name)

    def _pooled(self, texts: list[str]) -> NDArray[np.float32]:
        model = self._loaded.model
        inputs = self._loaded.tokenizer(
            texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt"
        ).to(model.device)
        inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            states = model(**inputs, return_dict=True).last_hidden_state.float()
        mask = inputs["attention_mask"].unsqueeze(-1)
        if self._pooling == "cls":
            pooled = states[:, 0]
        elif self._pooling == "max":
            pooled = states.masked_fill(mask == 0, -torch.inf).amax(1)
        elif self._pooling == "lasttoken":
            pooled = states[torch.arange(len(states)), mask[:, :, 0].sum(1) - 1]
        else:
            pooled = (states * mask).sum(1) / mask.sum(1)
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)


def _window(model: Any) -> int | None:
    """Return the number of positions for tokens; RoBERTa reserves a few."""
    limit = getattr(model.config, "max_position_embeddings", None)
    reserved = model.config.pad_token_id + 1 if "roberta" in str(model.config.model_type) else 0
    return limit - reserved if isinstance(limit, int) else None


def _modules(root: Path) -> tuple[Path, Pooling]:
    """Return the folder of the transformer and the pooling of its tokens, by ``modules.json``."""
    path = root / MODULES
    if not path.is_file():
        return root, "mean"
    try:
        listed = json.loads(read_regular(path))
        modules = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in listed]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise CheckpointError(
            f"{path} is not a list of modules with type and path ({error!r}); save it again"
        ) from error
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer"], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise CheckpointError(
            f"{path} lists {', '.join(kinds)[:200]}; expected Transformer, Pooling and perhaps Normalize: use another "
            "encoder"
        )
    folders = [_inside(root, name) for _, name in modules]
    return folders[0], _pooling(folders[1] / "config.json") if len(folders) > 1 else "mean"


def _inside(root: Path, name: str) -> Path:
    """Return a direct subfolder of the root, or the root; refuse links and other folders."""
    folder = root / name
    if (name and not re.fullmatch(r"[\w-]+", name)) or folder.is_symlink():
        raise CheckpointError(f"{root / MODULES} names the folder {name!r:.80}, expected a plain one inside {root}")
    return folder


def _pooling(path: Path) -> Pooling:
    if not path.is_file() or path.is_symlink():
        raise CheckpointError(f"{path} is missing, which says how tokens are pooled; save the encoder again")
    settings = read_object(path)
    chosen = [
        key.removeprefix("pooling_mode_") for key, on in settings.items() if key.startswith("pooling_mode_") and on
    ]
    names = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
    modes: list[Any] = [names.get(mode, mode) for mode in chosen] or [settings.get("pooling_mode")]
    if modes[1:] == [] and modes[0] in get_args(Pooling):
        mode: Pooling = modes[0]
        return mode
    raise CheckpointError(f"{path} pools by {modes!r:.80}, expected one of mean, cls, max and lasttoken")
