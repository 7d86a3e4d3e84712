"""Embeddings by open_clip, from weights that are on this machine: nothing is ever fetched."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.deadline import within
from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.interviewer.encoders.reading import missing, pictures_of, text_of, unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.subjects.checkpoint.folder import CheckpointInfo, preflight_open_clip
from pytest_adaptive_eval.subjects.checkpoint.loading import LOAD_SECONDS, check_torchvision, pick_device
from pytest_adaptive_eval.subjects.checkpoint.weights import open_clip_weights, read_object

__all__ = ["CONFIG", "OpenClipEmbedder", "Part"]

Array = NDArray[np.float32]
Part = Literal["text", "image", "mean", "concat"]

#: What makes a folder one of open_clip's.
CONFIG = "open_clip_config.json"
LOCAL, HUB = "local-dir:", "hf-hub:"

#: Settings of a tokenizer that say how text is cleaned; any other could make the loader fetch or run something.
_CLEANING = frozenset({"clean", "strip_sep_token", "language", "reduction_mask_type", "additional_special_tokens"})


class OpenClipEmbedder:
    """Texts and pictures in one space; made by `load`.

    Parameters
    ----------
    model : torch.nn.Module
        With ``encode_text`` and ``encode_image``, in evaluation mode.
    look : callable
        From a picture to a tensor.
    read : callable
        From texts to tokens; what is longer than the model reads is cut.
    name, key : str
        For people; and what the embeddings depend on besides the bank.
    part : {"text", "image", "mean", "concat"}
        What of an item is read.  ``mean``, of both directions, takes the one
        part of an item that has no other.  Several pictures count as their mean.
    batch_size : int
    """

    def __init__(
        self,
        model: Any,
        look: Callable[[Any], torch.Tensor],
        read: Callable[[list[str]], torch.Tensor],
        *,
        name: str,
        key: str,
        part: str,
        batch_size: int,
    ) -> None:
        self._model, self._look, self._read = model, look, read
        self._device = next(model.parameters()).device
        self.name, self.key = name, key
        self._part = part
        self._batch_size = batch_size

    @classmethod
    def load(
        cls,
        spec: str,
        *,
        part: str = "mean",
        device: str = "auto",
        batch_size: int = 64,
        cache: Path | None = None,
    ) -> OpenClipEmbedder:
        """Load a model that is at hand.

        Parameters
        ----------
        spec : str
            A folder, with or without ``local-dir:``; or, in the local hub cache, ``hf-hub:ORGANISATION/NAME``, or
            open_clip's own ``ARCHITECTURE/TAG`` such as ``ViT-B-32/laion2b_s34b_b79k``.
        part : {"text", "image", "mean", "concat"}
        device : str
            ``auto`` takes CUDA where there is one.
        batch_size : int
            Texts or pictures at once.
        cache : Path, optional
            Folder in which file hashes are kept between runs.

        Raises
        ------
        CheckpointError
            The weights are not at hand, unsafe, incomplete or do not fit.
        ConfigError
            open_clip is not installed, torchvision does not fit torch, or a setting is not one of these.
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
        found = _find(spec, open_clip, cache)
        model, look = _build(found, open_clip)
        read = within(LOAD_SECONDS, lambda: _tokenizer(found), f"loading the tokenizer of {found.info.folder}")
        return cls(
            model.to(pick_device(device)),
            look,
            read,
            name=f"open_clip {found.info.name} ({part}, {found.info.hash[:8]})",
            key=f"open_clip {open_clip.__version__} {found.info.hash} {part}",
            part=part,
            batch_size=batch_size,
        )

    def embed(self, bank: ItemBank) -> Array:
        """Embeddings, shape (n, d), or (n, 2 d) of texts and pictures with ``concat``.

        Raises
        ------
        BankError
            An item lacks the part that is read, or a picture cannot be opened.
        """
        texts: dict[int, str] = {}
        shown: list[int] = []
        lacking: list[Item] = []
        for place, item in enumerate(bank.items):
            text = text_of(item)
            if text and self._part != "image":
                texts[place] = text
            if item.images and self._part != "text":
                shown.append(place)
            parts = (place in texts) + bool(shown and shown[-1] == place)
            if parts < (2 if self._part == "concat" else 1):
                lacking.append(item)
        if lacking:
            what = {"text": "text", "image": "image", "mean": "text and no image", "concat": "text or no image"}
            raise missing(lacking, what[self._part], "Embed by another part, or by factors")
        if not shown:
            return self._texts(texts, len(bank))
        if not texts:
            return self._pictures(bank.items, shown)
        words, views = self._texts(texts, len(bank)), self._pictures(bank.items, shown)
        if self._part == "concat":
            return unit_rows(np.concatenate([words, views], axis=1), self.name)
        return unit_rows(words + views, self.name)

    def _texts(self, texts: dict[int, str], n: int) -> Array:
        """Directions of texts, zeros where there is none; equal texts are read once."""
        distinct = list(dict.fromkeys(texts.values()))
        rows: list[Array] = []
        for first in range(0, len(distinct), self._batch_size):
            tokens = self._read(distinct[first : first + self._batch_size]).to(self._device)
            rows.append(self._encoded(self._model.encode_text, tokens))
        directions = unit_rows(np.concatenate(rows), self.name)
        at = {text: row for row, text in enumerate(distinct)}
        out = np.zeros((n, directions.shape[1]), dtype=np.float32)
        for place, text in texts.items():
            out[place] = directions[at[text]]
        return out

    def _pictures(self, items: Sequence[Item], shown: Sequence[int]) -> Array:
        """Directions of the items' pictures, zeros where there is none."""
        out: Array | None = None
        for first in range(0, len(shown), self._batch_size):
            places = shown[first : first + self._batch_size]
            views = [[self._look(picture) for picture in pictures_of(items[place])] for place in places]
            whole = torch.stack([view for some in views for view in some])
            rows = unit_rows(self._encoded(self._model.encode_image, whole.to(self._device)), self.name)
            if out is None:
                out = np.zeros((len(items), rows.shape[1]), dtype=np.float32)
            starts = np.cumsum([0, *map(len, views[:-1])])
            out[places] = unit_rows(np.add.reduceat(rows, starts, axis=0), self.name)
        assert out is not None  # there is a picture at least
        return out

    def _encoded(self, encode: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor) -> Array:
        with torch.inference_mode():
            return np.asarray(encode(inputs).float().cpu().numpy(), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the parts of a model are."""

    info: CheckpointInfo
    model: dict[str, Any]
    preprocess: dict[str, Any]
    spec: str


def _find(spec: str, library: Any, cache: Path | None) -> _Found:
    """Look a model up on this machine."""
    if spec.startswith(LOCAL) or (not spec.startswith(HUB) and Path(spec).expanduser().is_dir()):
        folder = Path(spec.removeprefix(LOCAL)).expanduser()
        if not (folder / CONFIG).exists():
            raise CheckpointError(
                f"{folder} has no {CONFIG}, so it is no folder of an open_clip model; pass its folder"
            )
        return _described(preflight_open_clip(folder, cache=cache), spec)
    if spec.startswith(HUB):
        info = preflight_open_clip(_cached(spec.removeprefix(HUB), spec), cache=cache)
        if CONFIG not in info.files:
            raise CheckpointError(
                f"the hub cache holds {info.name} without its {CONFIG}; fetch it whole with "
                f"`hf download {info.name} --local-dir DIR`, and name {LOCAL}DIR"
            )
        return _described(info, spec)
    architecture, _, tag = spec.partition("/")
    model = library.get_model_config(architecture)
    if model is None or not tag:
        raise ConfigError(
            f"encoder {spec!r} is not known: expected a folder ({LOCAL}DIR), {HUB}ORGANISATION/NAME, or an "
            "architecture of open_clip with a tag, such as ViT-B-32/laion2b_s34b_b79k"
        )
    about = library.get_pretrained_cfg(architecture, tag)
    home = str(about.get("hf_hub", "")).rstrip("/")
    if not home or home.count("/") != 1:  # of a third part, the name of a file of another kind
        raise CheckpointError(
            f"encoder {spec!r}: its weights are not to be had as safetensors under that name; save the model into a "
            f"folder where you trust it, with `open_clip.push_to_hf_hub.save_for_hf`, and name {LOCAL}DIR"
        )
    if about.get("quick_gelu"):
        model["quick_gelu"] = True
    return _Found(preflight_open_clip(_cached(home, spec), cache=cache), model, dict(about), spec)


def _described(info: CheckpointInfo, spec: str) -> _Found:
    """A model whose folder says what it is."""
    about = read_object(info.folder / CONFIG)
    model, preprocess = about.get("model_cfg"), about.get("preprocess_cfg") or {}
    if not isinstance(model, dict) or not isinstance(preprocess, dict):
        raise CheckpointError(f"{info.folder / CONFIG} has no `model_cfg`; save the model again")
    return _Found(info, model, preprocess, spec)


def _cached(repository: str, spec: str) -> Path:
    """The folder of a repository in the local hub cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE) / ("models--" + repository.replace("/", "--"))
    if "\\" in repository or ".." in repository or not (folder / "snapshots").is_dir():
        raise CheckpointError(
            f"encoder {spec!r}: its weights are not on this machine, and nothing is downloaded here; fetch them once "
            f"with `hf download {repository}`, or with `--local-dir DIR` and name {LOCAL}DIR"
        )
    return folder


def _build(found: _Found, library: Any) -> tuple[Any, Any]:
    """The model with its weights, every one of them, and what makes a picture ready for it."""
    folder = found.info.folder
    settings = copy.deepcopy(found.model)
    for tower in ("text_cfg", "vision_cfg"):
        if not isinstance(settings.get(tower), dict):
            raise CheckpointError(f"{folder / CONFIG} has no `{tower}`; save the model again")
    if settings["text_cfg"].get("hf_model_name"):
        raise CheckpointError(f"encoder {found.spec!r} takes its text tower from another repository; use another model")
    if any(sign in str(settings["vision_cfg"].get("timm_model_name") or "") for sign in ":/"):
        raise CheckpointError(f"encoder {found.spec!r} takes its image tower from elsewhere; use another model")
    settings["vision_cfg"]["timm_model_pretrained"] = False
    plain = not settings.pop("custom_text", False)
    kind = library.CoCa if "multimodal_cfg" in settings else library.CLIP if plain else library.CustomTextCLIP
    weights, transform = open_clip_weights(folder)[0], library.transform
    try:
        model = kind(**settings)
        _fitting(weights, model)
        library.load_checkpoint(model, str(weights), strict=True)
        size = {**found.preprocess, "size": model.visual.image_size}
        with_defaults = transform.merge_preprocess_dict(transform.PreprocessCfg(), size)
        look = transform.image_transform_v2(transform.PreprocessCfg(**with_defaults), is_train=False)
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"{folder}: the open_clip model cannot be loaded ({type(error).__name__}: {str(error)[:400]}); its "
            "settings and its weights do not belong together, or need another release of open_clip"
        ) from error
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{folder}: tensor {name!r} holds values that are not finite; the file is damaged")
    return model.float().eval(), look


def _fitting(weights: Path, model: Any) -> None:
    """Refuse tensors of another size; open_clip would stretch positions to fit."""
    from safetensors import safe_open

    own = model.state_dict()
    with safe_open(weights, "pt") as file:
        for name in file.keys():  # noqa: SIM118 - it is no mapping
            if name in own and math.prod(shape := file.get_slice(name).get_shape()) != own[name].numel():
                raise CheckpointError(
                    f"{weights}: tensor {name!r} has shape {shape}, and the settings say {list(own[name].shape)}; they "
                    "do not belong together"
                )


def _tokenizer(found: _Found) -> Callable[[list[str]], torch.Tensor]:
    """What makes tokens of texts: open_clip's own, or that of the folder."""
    from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH, HFTokenizer, SimpleTokenizer

    text = found.model["text_cfg"]
    options = dict(text.get("tokenizer_kwargs") or {})
    if unknown := sorted(set(options) - _CLEANING):
        raise CheckpointError(f"encoder {found.spec!r} has tokenizer settings that are not known: {', '.join(unknown)}")
    length = text.get("context_length") or DEFAULT_CONTEXT_LENGTH
    made: Any
    if not text.get("hf_tokenizer_name"):
        made = SimpleTokenizer(context_length=length, **options)
        return lambda texts: made(texts)
    source = found.info.folder
    if not any(name.startswith("tokenizer") for name in found.info.files):
        raise CheckpointError(
            f"{source} has no tokenizer, expected tokenizer.json and tokenizer_config.json; fetch or save the model "
            "whole"
        )
    try:
        made = HFTokenizer(
            str(source),
            context_length=length,
            tokenizer_mode=text.get("tokenizer_mode"),
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in the tokenizers library is no Exception
        raise CheckpointError(
            f"{source}: its tokenizer cannot be loaded ({type(error).__name__}: {str(error)[:400]}); save the "
            "tokenizer into the folder with `tokenizer.save_pretrained(dir)`"
        ) from error
    return lambda texts: made(texts)
