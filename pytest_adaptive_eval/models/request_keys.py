"""Keys of answers: an answer belongs to who was asked and to the request that was sent."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Message, Model, SubjectIdentity, picture_hash

_encode = json.JSONEncoder(sort_keys=True).encode  # `json.dumps` would make an encoder for each call


def identity_key(model: object, identity: SubjectIdentity) -> list[str]:
    """Return whose answers these are: two models with equal keys give the same answers to equal requests.

    A hash of the files and the decoding identify a model, whatever its folder is called.  A value that a person wrote,
    such as ``v1``, or that a server states, identifies it together with its name and its kind.
    """
    whose = [identity.checkpoint, identity.decoding_hash]
    if identity.hashes_files:
        return whose
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    return [identity.name, kind, *whose]


def request_key(*parts: Any) -> str:
    """Return the hash of JSON data."""
    return hashlib.sha256(_encode(parts).encode()).hexdigest()


def draw_number(*position: Any) -> int:
    """Return the number of a draw from the position of its request, in [0, 2**32): equal requests are drawn apart."""
    return int(request_key(*position)[:8], 16)


def completion_key(model: Model, item: Item, draw: object = 0, identity: SubjectIdentity | None = None) -> str:
    """Return the key of an answer: who is asked, this package's version, the request as it is sent, and the draw.

    Other versions of this package may read answers otherwise.  How an answer is graded is not part of the key.

    Args:
        identity: Identity of the model where it is asked in a form that its own does not state.
    """
    asked = model.identity if identity is None else identity
    sent = hashlib.sha256(model.request(item)).hexdigest()
    later_turns = list(item.turns)  # the request is that of the first turn
    precision = asked.environment.get("dtype")
    return request_key(*identity_key(model, asked), precision, __version__, sent, later_turns, draw)


def chat_key(model: Model, identity: SubjectIdentity, messages: Sequence[Message], *request: Any) -> str:
    """Return the hash of a chat and of what else is asked for; pictures count by their content."""
    chat = []
    for message in messages:
        pictures = []
        for name in message.images:
            pictures.append(picture_hash(str(Path(message.root, name))))
        chat.append([message.role, message.text, pictures])
    return request_key(*identity_key(model, identity), __version__, chat, *request)


def may_share(model: Model, item: Item) -> bool:
    """Return whether runs may share the answer to an item; pictures without a file are asked in every run."""
    return not model.no_reuse and all(map(os.path.isfile, item.image_paths))
