"""Embeddings of items, which define distances between questions."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pytest_adaptive_eval.errors import BankError, ConfigError, ResponsesError
from pytest_adaptive_eval.inference.clusters import residual_factors
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.interviewer.encoders.reading import unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.models.images import image_hash
from pytest_adaptive_eval.outputs import replacing
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.types import Floats


@runtime_checkable
class Embedder(Protocol):
    """Map from the items of a bank to the unit sphere."""

    @property
    def name(self) -> str:
        """Name for reports and records, unique for each map."""

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings in the bank's order, shape (n, d), each row of Euclidean length 1."""


class FactorsEmbedder:
    """Embedder by factors of responses or parameters, which needs no encoder.

    Args:
        responses: Responses of calibration subjects to all of the bank's items: items with similar responses are near.
            Without them the embedding is discrimination and intercept, each standardised over the bank, and 1.
        count: Number of factors of the responses, minus the effects of item and subject, which would dominate
            otherwise.
    """

    def __init__(self, responses: Responses | None = None, *, count: int = 8) -> None:
        self._responses = responses
        self._count = count

    @property
    def name(self) -> str:
        """``parameter factors``, or ``response factors`` with a hash of the responses."""
        if self._responses is None:
            return "parameter factors"
        scores = np.ascontiguousarray(self._responses.scores)
        digest = hashlib.sha256(scores.tobytes()).hexdigest()[:8]
        return f"response factors ({len(self._responses.subjects)} subjects, {self._count} factors, {digest})"

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings, shape (n, d); raise ResponsesError or BankError without responses and parameters."""
        if self._responses is not None:
            columns = {name: column for column, name in enumerate(self._responses.items)}
            lacking = [name for name in bank.ids if name not in columns]
            if lacking:
                raise ResponsesError(
                    f"{self._responses.source}: no responses to item {lacking[0]!r} of bank {bank.name!r}, nor to "
                    f"{len(lacking) - 1} more; embed by parameters, or give the responses that calibrated the bank"
                )
            scores = self._responses.scores[:, [columns[name] for name in bank.ids]]
            factors = residual_factors(scores, self._count)
            unanswered = 1.0 - np.linalg.norm(factors, axis=1)  # items without responses have a separate axis
            return unit_rows(np.column_stack([factors, unanswered]), self.name)
        if not bank.calibrated:
            raise BankError(
                f"bank {bank.name!r} has no parameters, and no responses were given: calibrate it, or embed by an "
                "encoder"
            )
        parameters = np.column_stack([bank.discrimination, bank.intercept])
        spread = parameters.std(axis=0)
        standard = (parameters - parameters.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
        # without the 1 a Rasch bank would have only two directions
        return unit_rows(np.column_stack([standard, np.ones(len(bank))]), self.name)


class CategoryEmbedder:
    """Embedder with one axis per category of the bank."""

    name = "categories"

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings, shape (n, number of categories)."""
        names = list(bank.categories) or [""] * len(bank)
        axes = {name: axis for axis, name in enumerate(dict.fromkeys(names))}
        return np.eye(len(axes), dtype=np.float32)[[axes[name] for name in names]]


def load_embedder(
    spec: str,
    *,
    part: str = "text",
    device: str = "auto",
    batch_size: int = 32,
    responses: Responses | None = None,
    cache: Path | None = None,
    note: Tell | None = None,
) -> Embedder:
    """Return the embedder that `spec` names.

    Args:
        spec: ``factors``, ``categories``, or an encoder: a folder with an open_clip model, a sentence encoder or
            another text model. Nothing is downloaded.
        part: Input of open_clip; other encoders read texts.
        device: ``auto`` takes CUDA if available.
        cache: Folder for embeddings and hashes of files.
        note: Called with a sentence if cached embeddings had to be replaced.

    Raises:
        ConfigError: `spec` or a setting is out of range, or a package is missing.
        CheckpointError: The model is missing or unusable.
    """
    if spec == "factors":
        return FactorsEmbedder(responses)
    if spec == "categories":
        return CategoryEmbedder()
    is_clip = _is_clip(spec)
    if not is_clip and part != "text":
        raise ConfigError(
            f"encoder {spec!r} reads texts, and part is {part!r}: leave it out, or name an open_clip model, which "
            "reads pictures too"
        )
    settings: dict[str, Any] = {"device": device, "batch_size": batch_size, "cache": cache}
    encoder: Encoder
    try:
        if is_clip:
            from pytest_adaptive_eval.interviewer.encoders.openclip import OpenClipEmbedder

            encoder = OpenClipEmbedder.load(spec, part=part, **settings)
        else:
            from pytest_adaptive_eval.interviewer.encoders.sentences import SentenceFolderEmbedder

            encoder = SentenceFolderEmbedder.load(spec, **settings)
    except ImportError as error:
        raise ConfigError(f"encoder {spec!r} needs a package ({error}); install pytest-adaptive-eval[clip]") from error
    if cache is None:
        return encoder
    return CachedEmbedder(encoder, cache, note)


def _is_clip(spec: str) -> bool:
    """Return whether open_clip loads a folder, as it does by default: its loader names the expected files."""
    folder = Path(spec).expanduser()
    if spec.startswith("local-dir:") or (folder / "open_clip_config.json").is_file():
        return True
    return not any((folder / name).is_file() for name in ("modules.json", "config.json"))


def best_embedder(
    bank: ItemBank,
    *,
    encoder: str = "",
    responses: Responses | None = None,
    cache: Path | None = None,
    note: Tell | None = None,
    **options: Any,
) -> tuple[Embedder, str]:
    """Return the best available embedder, and a sentence with the reason.

    Args:
        encoder: See `load_embedder`; empty if none is configured.
        responses: Responses that calibrated the bank, if available.
        cache, note, **options: See `load_embedder`.

    Raises:
        ConfigError, CheckpointError: The configured encoder is unusable.
    """
    if encoder:
        embedder = load_embedder(encoder, cache=cache, note=note, responses=responses, **options)
        return embedder, f"embeddings: {embedder.name}, as configured"
    if responses is not None and set(bank.ids) <= set(responses.items):
        embedder = FactorsEmbedder(responses)
        return embedder, f"embeddings: {embedder.name}, since no encoder is configured and recorded responses exist"
    if bank.calibrated:
        embedder = FactorsEmbedder()
        return embedder, f"embeddings: {embedder.name} of the bank, since no encoder is configured"
    reason = "embeddings: categories alone, since no encoder is configured and the bank is not calibrated"
    return CategoryEmbedder(), reason


class Encoder(Protocol):
    """Embedder whose results are worth caching."""

    name: str
    #: All on which its embeddings depend besides the bank: weights, input, precision.
    key: str
    #: Floating-point operations so far.
    flops: float

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings in the bank's order, shape (n, d), each row of Euclidean length 1."""


class CachedEmbedder:
    """Encoder that runs once per content of a bank.

    Args:
        folder: Created if missing. The cache only saves time: a failure to write is ignored, and a damaged file is
            replaced.
        note: Called with a sentence if a file was damaged.
    """

    def __init__(self, encoder: Encoder, folder: Path, note: Tell | None = None) -> None:
        self._encoder = encoder
        self._folder = folder
        self._note = note
        self.name = encoder.name

    @property
    def flops(self) -> float:
        """Floating-point operations so far, 0 of embeddings from the cache."""
        return self._encoder.flops

    def embed(self, bank: ItemBank) -> Floats:
        """Return embeddings, shape (n, d), from the cache if available."""
        path = self._folder / f"embeddings-{_content(bank, self._encoder.key)}.npz"
        if path.exists():
            try:
                return _read(path, len(bank))
            except Exception as error:  # zip, its decompressors and numpy raise various errors
                if self._note is not None:
                    self._note(f"{path} is damaged ({error}): its embeddings are made again")
        embeddings = self._encoder.embed(bank)
        with contextlib.suppress(OSError), replacing(path) as file:
            np.savez(file, embeddings=embeddings)
        return embeddings


def _content(bank: ItemBank, key: str) -> str:
    """Return the hash of the encoder, and of the items in their order with their pictures."""
    digest = hashlib.sha256(key.encode())
    for item in bank.items:
        digest.update(item.content_hash.encode())
        for name in item.images:
            try:
                digest.update(image_hash(name, item.root).encode())
            except BankError as error:
                raise BankError(f"item {item.id!r}: {error}") from error
    return digest.hexdigest()[:32]


def _read(path: Path, items: int) -> Floats:
    # numpy does not close a file that is not an archive
    with open_regular(path) as stream, np.load(stream, allow_pickle=False) as file:
        rows = file["embeddings"]
    if rows.dtype != np.float32 or rows.ndim != 2 or len(rows) != items:
        raise ValueError(f"it holds {rows.dtype} of shape {rows.shape} for {items} items")
    if not np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3):  # also refuses NaN and infinity
        raise ValueError("it holds rows that are not of length 1")
    return np.asarray(rows, dtype=np.float32)
