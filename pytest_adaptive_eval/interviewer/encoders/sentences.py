"""Embeddings of texts by the pooled states of a sentence encoder or of another text model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.inputs import StrPath, read_regular
from pytest_adaptive_eval.interviewer.encoders.reading import flops_of, missing, text_of, unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.checkpoint.folder import CheckpointInfo, preflight
from pytest_adaptive_eval.models.checkpoint.loading import Loaded, load_checkpoint
from pytest_adaptive_eval.models.checkpoint.placement import Placement
from pytest_adaptive_eval.models.checkpoint.weights import read_object
from pytest_adaptive_eval.types import Floats

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
        self._tokens = tokens
        self._lower = lower
        self._batch_size = batch_size
        self.flops = 0.0
        loaded.tokenizer.padding_side = "right"  # positions count from the left
        self.name = f"sentence encoder {info.name} ({pooling}, {info.hash[:8]})"
        self.key = f"sentence encoder {info.hash} {pooling} {tokens} {lower} {loaded.dtype}"

    @classmethod
    def load(
        cls,
        folder: StrPath,
        *,
        batch_size: int = 64,
        cache: Path | None = None,
        **placement: Any,
    ) -> SentenceFolderEmbedder:
        """Examine and load an encoder with ``modules.json``, or another text model by the mean of its last states.

        Raises:
            CheckpointError: As `load_checkpoint`, or for unsupported modules.
        """
        check_count("batch_size", batch_size)
        root = Path(folder).expanduser()
        inner, pooling = _modules(root)
        path = inner / "sentence_bert_config.json"
        if path.is_file():
            settings = read_object(path)
        else:
            settings = {}
        info = preflight(inner, cache=cache)
        if info.kind != "text":
            raise CheckpointError(
                f"{root} is a model of images too, expected one of texts, or a folder with open_clip_config.json"
            )
        loaded = load_checkpoint(info, Placement(**placement), writes=False)
        limits = [settings.get("max_seq_length"), loaded.tokenizer.model_max_length, _window(loaded.model)]
        usable = []
        for limit in limits:
            if type(limit) is int and 0 < limit < 10**6:
                usable.append(limit)
        return cls(
            info,
            loaded,
            pooling=pooling,
            tokens=min(usable, default=TOKENS),
            lower=settings.get("do_lower_case") is True,
            batch_size=batch_size,
        )

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings, shape (n, d); raise BankError if an item has no text."""
        items = list(bank.items)
        texts = [text_of(item) for item in items]
        if lacking := [item for item, text in zip(items, texts, strict=True) if not text.strip()]:
            raise missing(lacking, "text", "Embed by another encoder, or by factors")
        if self._lower:
            texts = [text.lower() for text in texts]
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        batches = []
        for first in range(0, len(order), self._batch_size):
            batches.append(order[first : first + self._batch_size])
        rows = np.concatenate([self._pooled([texts[position] for position in batch]) for batch in batches])
        return unit_rows(rows[np.argsort(order)], self.name)

    def _pooled(self, texts: list[str]) -> Floats:
        model = self._loaded.model
        inputs = self._loaded.tokenizer(
            texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt"
        ).to(model.device)
        inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        first = {name: rows[:1] for name, rows in inputs.items()}
        with torch.inference_mode():
            self.flops += len(texts) * flops_of(lambda: model(**first))
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
    if "roberta" in str(model.config.model_type):
        reserved = model.config.pad_token_id + 1
    else:
        reserved = 0
    if isinstance(limit, int):
        return limit - int(reserved)
    return None


def _modules(root: Path) -> tuple[Path, Pooling]:
    """Return the folder of the transformer and the pooling of its tokens, by ``modules.json``."""
    path = root / MODULES
    if not path.is_file():
        return root, "mean"
    try:
        listed = json.loads(read_regular(path))
        modules = []
        for module in listed:
            modules.append((str(module["type"]).rpartition(".")[2], str(module["path"])))
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
    chosen = []
    for key, on in settings.items():
        if key.startswith("pooling_mode_") and on:
            chosen.append(key.removeprefix("pooling_mode_"))
    names = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
    modes: list[Any] = [names.get(mode, mode) for mode in chosen] or [settings.get("pooling_mode")]
    if modes[1:] == [] and modes[0] in get_args(Pooling):
        mode: Pooling = modes[0]
        return mode
    raise CheckpointError(f"{path} pools by {modes!r:.80}, expected one of mean, cls, max and lasttoken")
