"""Embeddings of items: what makes two questions near or far, and which kind of them is at hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError, ConfigError, ResponsesError
from pytest_adaptive_eval.inference.clusters import residual_factors
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.interviewer.embedding_cache import CachedEmbedder, Encoder
from pytest_adaptive_eval.interviewer.encoders.reading import unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["CategoryEmbedder", "Embedder", "FactorsEmbedder", "best_embedder", "load_embedder"]


@runtime_checkable
class Embedder(Protocol):
    """Gives each item of a bank a place on the unit sphere."""

    @property
    def name(self) -> str:
        """For people and for the record; two that embed differently have different names."""

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Embeddings, shape (n, d), in the bank's order, each row of Euclidean length 1."""


class FactorsEmbedder:
    """The bank's own factors, which need no encoder: items lie together that subjects answered alike.

    Parameters
    ----------
    responses : Responses, optional
        Of known subjects, to all of the bank's items.  Without them an item
        lies where its parameters are: discrimination and intercept, each
        standardised over the bank, and 1.
    count : int
        Factors of the responses less what item and subject explain: plain ones set apart what tells nobody apart.
    """

    def __init__(self, responses: Responses | None = None, *, count: int = 8) -> None:
        self._responses, self._count = responses, count

    @property
    def name(self) -> str:
        """``parameter factors``, or ``response factors`` with a hash of the responses."""
        if self._responses is None:
            return "parameter factors"
        known = hashlib.sha256(np.ascontiguousarray(self._responses.scores).tobytes()).hexdigest()[:8]
        return f"response factors ({len(self._responses.subjects)} subjects, {self._count} factors, {known})"

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Embeddings, shape (n, d).

        Raises
        ------
        ResponsesError
            An item of the bank has no responses.
        BankError
            There are no responses, and the bank has no parameters.
        """
        if self._responses is not None:
            at = {name: column for column, name in enumerate(self._responses.items)}
            if lacking := [name for name in bank.ids if name not in at]:
                raise ResponsesError(
                    f"{self._responses.source}: no responses to item {lacking[0]!r} of bank {bank.name!r}, nor to "
                    f"{len(lacking) - 1} more; embed by parameters, or give the responses that calibrated the bank"
                )
            scores = self._responses.scores[:, [at[name] for name in bank.ids]]
            found = residual_factors(scores, self._count)
            unknown = 1.0 - np.linalg.norm(found, axis=1)  # an item that nobody answered has an axis of its own
            return unit_rows(np.column_stack([found, unknown]), self.name)
        if not bank.calibrated:
            raise BankError(
                f"bank {bank.name!r} has no parameters, and no responses were given: calibrate it, or embed by an "
                "encoder"
            )
        columns = np.column_stack([bank.discrimination, bank.intercept])
        spread = columns.std(axis=0)
        standard = (columns - columns.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
        # The 1 keeps the directions of one-sided differences apart: without it a Rasch bank would have two places.
        return unit_rows(np.column_stack([standard, np.ones(len(bank))]), self.name)


class CategoryEmbedder:
    """One axis for each of the bank's categories, which every bank has, if only one."""

    name = "categories"

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Embeddings, shape (n, number of categories)."""
        names = list(bank.categories) or [""] * len(bank)
        at = {name: axis for axis, name in enumerate(dict.fromkeys(names))}
        out = np.zeros((len(bank), len(at)), dtype=np.float32)
        out[np.arange(len(bank)), [at[name] for name in names]] = 1.0
        return out


def load_embedder(
    spec: str,
    *,
    part: str = "mean",
    device: str = "auto",
    batch_size: int = 32,
    responses: Responses | None = None,
    cache: Path | None = None,
    note: Callable[[str], None] | None = None,
) -> Embedder:
    """Make the embedder that `spec` names.

    Parameters
    ----------
    spec : str
        ``factors``, ``categories``, or an encoder: a folder of an open_clip
        model, of a sentence encoder, or of a model that writes, told apart by
        what is in it; ``hf-hub:ORGANISATION/NAME`` or ``ARCHITECTURE/TAG`` of
        open_clip, from the local hub cache.  Nothing is downloaded.
    part : {"mean", "text", "image", "concat"}
        What of an item open_clip reads; other encoders read what they can.
    device : str
        ``auto`` takes CUDA where there is one.
    batch_size : int
        Items that an encoder reads at once.
    responses : Responses, optional
        For ``factors``.
    cache : Path, optional
        Folder in which embeddings, and hashes of files, are kept between runs.
    note : callable, optional
        Is told in a sentence when cached embeddings had to be made again.

    Raises
    ------
    ConfigError
        `spec` or a setting is not known, or what it needs is not installed.
    CheckpointError
        The model is not at hand, or cannot be used.
    """
    if spec == "factors":
        return FactorsEmbedder(responses)
    if spec == "categories":
        return CategoryEmbedder()
    kind = _kind(spec)
    if kind != "open_clip" and part != "mean":
        raise ConfigError(f"encoder {spec!r} is none of open_clip, and cannot choose its input {part!r}; leave it out")
    settings: dict[str, Any] = {"device": device, "batch_size": batch_size, "cache": cache}
    encoder: Encoder
    try:
        if kind == "hidden":
            from pytest_adaptive_eval.interviewer.encoders.hidden import HiddenStatesEmbedder

            encoder = HiddenStatesEmbedder.load(spec, **settings)
        elif kind == "sentences":
            from pytest_adaptive_eval.interviewer.encoders.sentences import SentenceFolderEmbedder

            encoder = SentenceFolderEmbedder.load(spec, **settings)
        else:
            from pytest_adaptive_eval.interviewer.encoders.openclip import OpenClipEmbedder

            encoder = OpenClipEmbedder.load(spec, part=part, **settings)
    except ImportError as error:
        raise ConfigError(f"encoder {spec!r} needs a package ({error}); install pytest-adaptive-eval[clip]") from error
    return encoder if cache is None else CachedEmbedder(encoder, cache, note)


def _kind(spec: str) -> str:
    """Which encoder it is, by what its folder holds; ``open_clip`` for everything else, which says what it expects."""
    folder = Path(spec).expanduser()
    if spec.startswith(("local-dir:", "hf-hub:")) or (folder / "open_clip_config.json").is_file():
        return "open_clip"
    if (folder / "modules.json").is_file():
        return "sentences"
    if not (folder / "config.json").is_file():
        return "open_clip"
    try:
        architectures = json.loads(read_regular(folder / "config.json"))["architectures"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return "hidden"  # whose loader says what is wrong with the folder
    return "hidden" if any("For" in name for name in map(str, architectures or ["For"])) else "sentences"


def best_embedder(
    bank: ItemBank,
    *,
    encoder: str = "",
    responses: Responses | None = None,
    cache: Path | None = None,
    note: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Embedder, str]:
    """The best embeddings at hand, and a sentence that says which and why.

    Parameters
    ----------
    bank : ItemBank
    encoder : str
        As `load_embedder` takes it; empty where none is configured.
    responses : Responses, optional
        That calibrated the bank, where they are at hand.
    cache, note, **options
        As in `load_embedder`.

    Raises
    ------
    ConfigError, CheckpointError
        The encoder that is configured cannot be used.
    """
    if encoder:
        made = load_embedder(encoder, cache=cache, note=note, responses=responses, **options)
        return made, f"embeddings: {made.name}, as configured"
    if responses is not None and set(bank.ids) <= set(responses.items):
        made = FactorsEmbedder(responses)
        return made, f"embeddings: {made.name}, since no encoder is configured and recorded responses are at hand"
    if bank.calibrated:
        made = FactorsEmbedder()
        return made, f"embeddings: {made.name} of the bank, since no encoder is configured"
    return (
        CategoryEmbedder(),
        "embeddings: categories alone, since no encoder is configured and the bank is not calibrated",
    )
