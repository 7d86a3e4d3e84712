"""Embeddings that are kept between runs, one file a bank and encoder."""

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
from pytest_adaptive_eval.outputs import replacing
from pytest_adaptive_eval.subjects.images import image_hash

__all__ = ["CachedEmbedder", "Encoder"]


class Encoder(Protocol):
    """An embedder whose work is worth keeping."""

    name: str
    #: Everything that its embeddings depend on besides the bank: weights, input, precision.
    key: str

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Embeddings, shape (n, d), in the bank's order, each row of Euclidean length 1."""


class CachedEmbedder:
    """An encoder that is asked once for each content of a bank.

    Parameters
    ----------
    encoder : Encoder
    folder : Path
        Made when missing.  The cache only saves time: one that cannot be
        written is as good as none, and a file that is damaged is made again.
    note : callable, optional
        Is told in a sentence when a file was damaged.
    """

    def __init__(self, encoder: Encoder, folder: Path, note: Callable[[str], None] | None = None) -> None:
        self._encoder, self._folder, self._note = encoder, folder, note
        self.name = encoder.name

    def embed(self, bank: ItemBank) -> NDArray[np.float32]:
        """Embeddings, shape (n, d), from the cache where it has them."""
        path = self._folder / f"embeddings-{_content(bank, self._encoder.key)}.npz"
        if path.exists():
            try:
                return _read(path, len(bank))
            except Exception as error:  # zip, its decompressors and numpy have errors of their own
                if self._note is not None:
                    self._note(f"{path} is damaged ({error}): its embeddings are made again")
        made = self._encoder.embed(bank)
        with contextlib.suppress(OSError), replacing(path) as file:
            np.savez(file, embeddings=made)
        return made


def _content(bank: ItemBank, key: str) -> str:
    """Hash of all that is read: the items in their order, their pictures, and the encoder."""
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
    # Opened here, since numpy leaves a file open that is no archive.
    with open_regular(path) as stream, np.load(stream, allow_pickle=False) as file:
        found = file["embeddings"]
    if found.dtype != np.float32 or found.ndim != 2 or len(found) != items:
        raise ValueError(f"it holds {found.dtype} of shape {found.shape} for {items} items")
    if not np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-3):  # so is what is not finite
        raise ValueError("it holds rows that are not of length 1")
    return np.asarray(found, dtype=np.float32)
