"""Write items without parameters: a JSONL file, with their images in its folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pytest_adaptive_eval.banks.reader import file_hash, read_bank
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item


def write_items(path: str | Path, items: Sequence[Item]) -> ItemBank:
    """Write a JSONL file of items, and copy images that its folder lacks.

    Args:
        path: Ends with ``.jsonl`` and does not exist.

    Returns:
        The bank, read from the new file.

    Raises:
        BankError: The path exists or has another suffix, an image is missing or would replace a file, or an item is
            malformed.
    """
    path = Path(path)
    if path.suffix != ".jsonl":
        raise BankError(f"{path}: items are written as JSON lines; name a file that ends with .jsonl")
    if path.exists():
        raise BankError(f"{path} exists; choose another name")
    copies: dict[Path, str] = {}
    for item in items:
        for name, source in zip(item.images, item.image_paths, strict=True):
            target = path.parent / name
            try:
                if copies.setdefault(target, source) != source or (
                    target.exists() and file_hash(target) != file_hash(Path(source))
                ):
                    raise BankError(
                        f"item {item.id!r}: its image {name!r} would replace another file, {target}; write the items "
                        "to a folder of their own"
                    )
            except OSError as error:
                raise BankError(f"item {item.id!r}: its image {name!r} cannot be read: {error}") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}")
    try:
        for target, source in copies.items():
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        staged.write_text(
            "".join(json.dumps(item.to_json(), ensure_ascii=True) + "\n" for item in items), encoding="ascii"
        )
        read_bank(staged)
        staged.rename(path)
    finally:
        staged.unlink(missing_ok=True)
    return read_bank(path)
