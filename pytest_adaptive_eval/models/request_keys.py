"""Hashes of requests: an answer may take the place of another one where all that it depends on is equal."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.items.item import Item, canonical_json
from pytest_adaptive_eval.models.base import Message, Model, SubjectIdentity

#: Fields of an item that are not asked.  The grader's name says how likelihoods are read, which has a field of its own.
_UNASKED = ("id", "answer", "grader", "category", "formats", "images", "likelihood")

_encode = json.JSONEncoder(sort_keys=True).encode  # `json.dumps` would make an encoder for each call


class Request(NamedTuple):
    """A request for an item, with its key within its interview, and its key among runs, see `CompletionStore`."""

    item: Item
    key: str
    shared_key: str = ""


def identity_key(model: object, identity: SubjectIdentity) -> list[str]:
    """Return whose replies these are: name, kind, checkpoint hash and decoding.

    The hash may be a value that a user wrote, such as ``v1``, so it does not identify a model by itself.
    """
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    return [identity.name, kind, identity.checkpoint, identity.decoding_hash]


def request_key(*parts: Any) -> str:
    """Return the hash of a request: the model's identity, the prompt, and the position among equal ones, as JSON."""
    return hashlib.sha256(_encode(parts).encode()).hexdigest()


def draw_number(*position: Any) -> int:
    """Return the number of a draw from the position of its request, in [0, 2**32): equal requests are drawn apart."""
    return int(request_key(*position)[:8], 16)


def completion_key(model: Model, item: Item, draw: int = 0) -> str:
    """Return the hash of all that an answer depends on: the model, its decoding, the request, and the draw.

    It covers what is asked, not how answers are graded.
    """
    identity, cap = model.identity, model.cap
    tokens = cap.of(item) if cap is not None and item.likelihood is None else None
    capped = replace(identity, decoding={**identity.decoding, "max_tokens": tokens})
    data = {name: value for name, value in item.to_json().items() if name not in _UNASKED}
    data["meta"] = {name: value for name, value in item.meta.items() if name != "sample"}
    data["images"] = list(map(_picture_hash, item.image_paths))
    data["likelihood"] = None if item.likelihood is None else item.likelihood.to_json()
    precision = identity.environment.get("dtype")
    return request_key(*identity_key(model, capped), precision, canonical_json(data), draw)


def chat_key(model: Model, identity: SubjectIdentity, messages: Sequence[Message], *request: Any) -> str:
    """Return the hash of a chat and of what else is asked for; pictures count by their content."""
    chat = []
    for message in messages:
        pictures = [_picture_hash(str(Path(message.root, name))) for name in message.images]
        chat.append([message.role, message.text, pictures])
    return request_key(*identity_key(model, identity), chat, *request)


def shared_key(model: Model, key: str) -> str:
    """Return the key of a request among runs; empty where every run asks, see `Model.no_reuse`.

    Other versions may build prompts or read answers otherwise.
    """
    return "" if model.no_reuse else request_key(key, __version__)


def shared_item_key(model: Model, item: Item) -> str:
    """Return the key of an item's answer among runs; empty where every run asks, as for pictures without a file."""
    return shared_key(model, completion_key(model, item)) if all(map(os.path.isfile, item.image_paths)) else ""


def _picture_hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # the subject says what is wrong
        return ""
