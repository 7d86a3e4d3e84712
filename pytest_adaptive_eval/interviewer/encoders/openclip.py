"""Embeddings by open_clip, from local weights; nothing is downloaded."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.interviewer.encoders.reading import flops_of, missing, pictures_of, text_of, unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.checkpoint.folder import CheckpointInfo, preflight_open_clip
from pytest_adaptive_eval.models.checkpoint.loading import check_finite, check_tokenizer, check_torchvision, pick_device
from pytest_adaptive_eval.models.checkpoint.weights import open_clip_weights, read_object
from pytest_adaptive_eval.types import Floats

Part = Literal["text", "image", "mean", "concat"]

#: File that identifies a folder of open_clip.
CONFIG = "open_clip_config.json"
LOCAL = "local-dir:"

#: Settings of a tokenizer for cleaning text; others could make the loader download or run something.
_CLEANING = frozenset({"clean", "strip_sep_token", "language", "reduction_mask_type", "additional_special_tokens"})


class OpenClipEmbedder:
    """Encoder of texts and pictures in one space, created by `load`.

    Args:
        model: Model with ``encode_text`` and ``encode_image``, in evaluation mode.
        tokenize: Converts texts to tokens, truncated to the limit of the model.
        name, key: Name for reports; and all on which the embeddings depend besides the bank.
        part: Input of an item. ``mean`` is the mean of both directions, or the only one of an item without the other
            part. Several pictures count as their mean.
    """

    def __init__(
        self,
        model: Any,
        transform: Callable[[Any], torch.Tensor],
        tokenize: Callable[[list[str]], torch.Tensor],
        *,
        name: str,
        key: str,
        part: str,
        batch_size: int,
    ) -> None:
        self._model = model
        self._transform = transform
        self._tokenize = tokenize
        self._device = next(model.parameters()).device
        self.name = name
        self.key = key
        self._part = part
        self._batch_size = batch_size
        self.flops = 0.0

    @classmethod
    def load(
        cls, spec: str, *, part: str = "text", device: str = "auto", batch_size: int = 64, cache: Path | None = None
    ) -> OpenClipEmbedder:
        """Load a local model.

        Args:
            spec: A folder, with or without ``local-dir:``.
            device: ``auto`` takes CUDA if available.
            cache: Folder for hashes of files.

        Raises:
            CheckpointError: The weights are missing, unsafe, incomplete or do not fit.
            ConfigError: open_clip is not installed, torchvision does not fit torch, or a setting is out of range.
        """
        if part not in get_args(Part):
            raise ConfigError(f"embedding input {part!r} is not known; use {', '.join(get_args(Part))}")
        check_count("batch_size", batch_size)
        check_torchvision()
        try:
            import open_clip
        except ImportError as error:
            raise ConfigError(
                f"the encoder {spec!r} needs open_clip ({error}); install pytest-adaptive-eval[clip]"
            ) from error
        source = _find(spec, cache)
        model, transform = _build(source, open_clip)
        tokenize = _tokenizer(source)
        return cls(
            model.to(pick_device(device)),
            transform,
            tokenize,
            name=f"open_clip {source.info.name} ({part}, {source.info.hash[:8]})",
            key=f"open_clip {open_clip.__version__} {source.info.hash} {part}",
            part=part,
            batch_size=batch_size,
        )

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings, shape (n, d), or (n, 2 d) with ``concat``; raise BankError if an item lacks the input."""
        texts, pictured = self._read(bank.items)
        if self._part == "concat":
            complete = set(texts) & set(pictured)
        else:
            complete = set(texts) | set(pictured)
        lacking = [item for n, item in enumerate(bank.items) if n not in complete]
        if lacking:
            parts = {"text": "text", "image": "image", "mean": "text and no image", "concat": "text or no image"}
            raise missing(lacking, parts[self._part], "Embed by another part, or by factors")
        if not pictured:
            return self._texts(texts, len(bank))
        if not texts:
            return self._pictures(bank.items, pictured)
        of_texts = self._texts(texts, len(bank))
        of_pictures = self._pictures(bank.items, pictured)
        if self._part == "concat":
            return unit_rows(np.concatenate([of_texts, of_pictures], axis=1), self.name)
        return unit_rows(of_texts + of_pictures, self.name)

    def _read(self, items: Sequence[Item]) -> tuple[dict[int, str], list[int]]:
        """Return the texts to be encoded by the item's place, and the places of items with pictures to be encoded."""
        texts = {}
        pictured = []
        for n, item in enumerate(items):
            text = text_of(item)
            if text and self._part != "image":
                texts[n] = text
            if item.images and self._part != "text":
                pictured.append(n)
        return texts, pictured

    def _texts(self, texts: dict[int, str], n: int) -> Floats:
        """Return directions of texts, shape (n, d), 0 without a text; equal texts are encoded once."""
        distinct = list(dict.fromkeys(texts.values()))
        rows = []
        for first in range(0, len(distinct), self._batch_size):
            tokens = self._tokenize(distinct[first : first + self._batch_size]).to(self._device)
            rows.append(self._encoded(self._model.encode_text, tokens))
        directions = unit_rows(np.concatenate(rows), self.name)
        row_of = {text: row for row, text in enumerate(distinct)}
        out = np.zeros((n, directions.shape[1]), dtype=np.float32)
        out[list(texts)] = directions[[row_of[text] for text in texts.values()]]
        return out

    def _pictures(self, items: Sequence[Item], pictured: Sequence[int]) -> Floats:
        """Return directions of the items' pictures, shape (n, d), 0 without a picture."""
        batches = []
        for first in range(0, len(pictured), self._batch_size):
            batch = pictured[first : first + self._batch_size]
            starts = []
            tensors: list[torch.Tensor] = []
            for n in batch:
                starts.append(len(tensors))
                tensors += map(self._transform, pictures_of(items[n]))
            inputs = torch.stack(tensors).to(self._device)
            rows = unit_rows(self._encoded(self._model.encode_image, inputs), self.name)
            batches.append(unit_rows(np.add.reduceat(rows, starts, axis=0), self.name))
        directions = np.concatenate(batches)
        out = np.zeros((len(items), directions.shape[1]), dtype=np.float32)
        out[pictured] = directions
        return out

    def _encoded(self, encode: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor) -> Floats:
        with torch.inference_mode():
            # one row is counted: under the counter the others would differ in their last digits
            self.flops += len(inputs) * flops_of(lambda: encode(inputs[:1]))
            return np.asarray(encode(inputs).float().cpu().numpy(), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class _Source:
    """Local files and settings of a model."""

    info: CheckpointInfo
    model: dict[str, Any]
    preprocess: dict[str, Any]
    spec: str


def _find(spec: str, cache: Path | None) -> _Source:
    """Return the files and settings of a model on this machine."""
    folder = Path(spec.removeprefix(LOCAL)).expanduser()
    info = preflight_open_clip(folder, cache=cache)
    if CONFIG not in info.files:
        raise CheckpointError(
            f"{folder} has no {CONFIG}; expected the folder of an open_clip model, as "
            "`hf download ORGANISATION/NAME --local-dir DIR` fetches it"
        )
    settings = read_object(info.folder / CONFIG)
    model = settings.get("model_cfg")
    preprocess = settings.get("preprocess_cfg") or {}
    if not isinstance(model, dict) or not isinstance(preprocess, dict):
        raise CheckpointError(f"{info.folder / CONFIG} has no `model_cfg`; save the model again")
    return _Source(info, model, preprocess, spec)


def _build(source: _Source, library: Any) -> tuple[Any, Any]:
    """Return the model with all its weights, and the transform of pictures to its input."""
    folder = source.info.folder
    settings = _model_settings(source)
    plain = not settings.pop("custom_text", False)
    if "multimodal_cfg" in settings:
        kind = library.CoCa
    elif plain:
        kind = library.CLIP
    else:
        kind = library.CustomTextCLIP
    weights = open_clip_weights(folder)[0]
    transforms = library.transform
    try:
        model = kind(**settings)
        _check_shapes(weights, model)
        library.load_checkpoint(model, str(weights), strict=True)
        size = {**source.preprocess, "size": model.visual.image_size}
        with_defaults = transforms.merge_preprocess_dict(transforms.PreprocessCfg(), size)
        transform = transforms.image_transform_v2(transforms.PreprocessCfg(**with_defaults), is_train=False)
    except Exception as error:
        raise CheckpointError(
            f"{folder}: the open_clip model cannot be loaded ({type(error).__name__}: {str(error)[:400]}); its "
            "settings and its weights do not belong together, or need another release of open_clip"
        ) from error
    check_finite(source.info, model)
    return model.float().eval(), transform


def _model_settings(source: _Source) -> dict[str, Any]:
    """Return the settings of the model; refuse settings that would load files from elsewhere."""
    path = source.info.folder / CONFIG
    settings = copy.deepcopy(source.model)
    towers = [settings.get(tower) for tower in ("text_cfg", "vision_cfg")]
    if not all(isinstance(tower, dict) for tower in towers):
        raise CheckpointError(f"{path} has no `text_cfg` or no `vision_cfg`; save the model again")
    image_tower = str(settings["vision_cfg"].get("timm_model_name") or "")
    if settings["text_cfg"].get("hf_model_name") or set(":/") & set(image_tower):
        raise CheckpointError(f"encoder {source.spec!r} takes a tower from elsewhere; use another model")
    settings["vision_cfg"]["timm_model_pretrained"] = False
    return settings


def _check_shapes(weights: Path, model: Any) -> None:
    """Refuse tensors of another size, since open_clip would interpolate positions."""
    from safetensors import safe_open

    expected = model.state_dict()
    with safe_open(weights, "pt") as file:
        for name in file.keys():  # noqa: SIM118 - it is no mapping
            if name not in expected:
                continue
            shape = file.get_slice(name).get_shape()
            if math.prod(shape) != expected[name].numel():
                raise CheckpointError(
                    f"{weights}: tensor {name!r} has shape {shape}, and the settings say {list(expected[name].shape)}; "
                    "they do not belong together"
                )


def _tokenizer(source: _Source) -> Callable[[list[str]], torch.Tensor]:
    """Return the tokenizer of open_clip or of the folder."""
    from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH, HFTokenizer, SimpleTokenizer

    text = source.model["text_cfg"]
    options = dict(text.get("tokenizer_kwargs") or {})
    unknown = sorted(set(options) - _CLEANING)
    if unknown:
        raise CheckpointError(
            f"encoder {source.spec!r} has tokenizer settings that are not known: {', '.join(unknown)}"
        )
    length = text.get("context_length") or DEFAULT_CONTEXT_LENGTH
    tokenizer: Any
    if not text.get("hf_tokenizer_name"):
        tokenizer = SimpleTokenizer(context_length=length, **options)
        return lambda texts: tokenizer(texts)
    folder = source.info.folder
    if not any(name.startswith("tokenizer") for name in source.info.files):
        raise CheckpointError(
            f"{folder} has no tokenizer, expected tokenizer.json and tokenizer_config.json; fetch or save the model "
            "whole"
        )
    check_tokenizer(source.info)
    try:
        tokenizer = HFTokenizer(
            str(folder),
            context_length=length,
            tokenizer_mode=text.get("tokenizer_mode"),
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the tokenizers library is not an Exception
        raise CheckpointError(
            f"{folder}: its tokenizer cannot be loaded ({type(error).__name__}: {str(error)[:400]}); save the "
            "tokenizer into the folder with `tokenizer.save_pretrained(dir)`"
        ) from error
    return lambda texts: tokenizer(texts)
