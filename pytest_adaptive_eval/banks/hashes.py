"""Hashes of a bank's files, items and images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.item import Item


def file_hash(path: Path) -> str:
    """Return the first 16 hex digits of a file's SHA-256, read in pieces."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def content_hash(items: Iterable[Item]) -> str:
    """Return a hash over items and images in order, equal for a JSONL file and the folder written from it."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(hashes_of(item).encode())
    return digest.hexdigest()[:16]


def hashes_of(item: Item) -> str:
    """Return the content hashes of an item and of its images."""
    hashes = [item.content_hash]
    for name, path in zip(item.images, item.image_paths, strict=True):
        try:
            hashes.append(file_hash(Path(path)))
        except OSError as error:
            raise BankError(
                f"item {item.id!r}: its image {name!r} cannot be read ({error}): restore it, or correct its path, "
                "which begins at the folder of the bank"
            ) from None
    return "".join(hashes)
