"""On-disk cache of embeddings, with one file per bank and encoder."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.images import image_hash
from pytest_adaptive_eval.outputs import replacing


class Encoder(Protocol):
    """Embedder whose results are worth caching."""

    name: str
    #: All on which its embeddings depend besides the bank: weights, input, precision.
    key: str

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Return embeddings in the bank's order, shape (n, d), each row of Euclidean length 1."""


class CachedEmbedder:
    """Encoder that runs once per content of a bank.

    Args:
        folder: Created if missing. The cache only saves time: a failure to write is ignored, and a damaged file is
            replaced.
        note: Called with a sentence if a file was damaged.
    """

    def __init__(self, encoder: Encoder, folder: Path, note: Callable[[str], None] | None = None) -> None:
        self._encoder, self._folder, self._note = encoder, folder, note
        self.name = encoder.name

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
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


def _read(path: Path, items: int) -> NDArray[np.float32]:
    # numpy does not close a file that is not an archive
    with open_regular(path) as stream, np.load(stream, allow_pickle=False) as file:
        rows = file["embeddings"]
    if rows.dtype != np.float32 or rows.ndim != 2 or len(rows) != items:
        raise ValueError(f"it holds {rows.dtype} of shape {rows.shape} for {items} items")
    if not np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3):  # also refuses NaN and infinity
        raise ValueError("it holds rows that are not of length 1")
    return np.asarray(rows, dtype=np.float32)
