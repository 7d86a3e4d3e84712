"""Questions that a marker gives in code: they become a bank file in the run folder, and are read as any bank."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.images import ImageStore
from pytest_adaptive_eval.errors import ConfigError, DatasetError, UsageError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.outputs import replacing

_ID_DIGITS = 12  #: Hex digits of an id that follows from a question.


def write_items(source: Any, path: Path, base: Path) -> Path:
    """Write the questions of a marker's `items` as a bank, into a folder named by their content.

    Args:
        source: A list of `Item` or of dictionaries with an item's fields, or a function that returns one.
        path: File name of the bank, in the folder of all such banks.
        base: Folder that names of images in dictionaries are relative to.

    Raises:
        ConfigError: `source` is something else, or a question is not JSON data.
    """
    if callable(source):
        source = _called(source)
    if isinstance(source, str | Mapping) or not isinstance(source, Sequence):
        raise ConfigError(
            f"items is {type(source).__name__}, expected a list of Item or of dictionaries, or a function that returns "
            "one; for a file of questions write bank="
        )
    if not source:
        raise ConfigError("items is empty: give at least one question")
    questions = [_fields(item, index) for index, item in enumerate(source)]
    folder = path.parent / hashlib.sha256(_encoded(questions)).hexdigest()[:_ID_DIGITS]
    try:
        for item, question in zip(source, questions, strict=True):
            if question.get("images"):
                root = getattr(item, "root", "") or base
                store = ImageStore(folder, [Path(root)])
                question["images"] = [store.add(image) for image in question["images"]]
        with replacing(folder / path.name) as file:
            file.write(_encoded(questions))
    except DatasetError as error:
        raise ConfigError(f"items: {error}") from None
    except OSError as error:
        raise ConfigError(
            f"{folder}: the questions cannot be written ({error}); name another --adaptive-eval-dir"
        ) from None
    return folder / path.name


def _called(function: Any) -> Any:
    """Return what a function of the user returns."""
    name = getattr(function, "__name__", repr(function))
    try:
        return function()
    except UsageError:
        raise
    except Exception as error:
        raise ConfigError(f"items: {name}() raised {type(error).__name__}: {error}") from error


def _fields(item: Any, index: int) -> dict[str, Any]:
    """Return the fields of a question; one without an id is named by its prompt and answer."""
    if isinstance(item, Item):
        return item.to_json()
    if not isinstance(item, Mapping):
        raise ConfigError(f"items[{index}] is {item!r:.80}, expected an Item, or a dictionary with prompt and answer")
    try:
        data: dict[str, Any] = json.loads(json.dumps(dict(item), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"items[{index}] is not JSON data ({error}): give texts, numbers, lists and dictionaries"
        ) from None
    if not data.get("id"):
        question = [data.get(name) for name in ("prompt", "messages", "images", "choices", "turns", "answer")]
        data["id"] = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:_ID_DIGITS]
    return data


def _encoded(questions: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(question, sort_keys=True) + "\n" for question in questions).encode()
