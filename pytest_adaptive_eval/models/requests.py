"""Hashes of requests to models, by which replies are stored."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pytest_adaptive_eval.models.base import SubjectIdentity


def identity_key(identity: SubjectIdentity) -> list[str]:
    """Return the parts of a model's identity on which its replies depend."""
    return [identity.name, identity.checkpoint, identity.decoding_hash]


def request_key(*parts: Any) -> str:
    """Return the hash of a request.

    Args:
        *parts: JSON values: the model's identity, the whole prompt, and the position of the request among others, since
            two equal requests may need two replies.
    """
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def draw_number(*position: Any) -> int:
    """Return the number of a draw from the position of its request, in [0, 2**32): equal requests are drawn apart."""
    return int(request_key(*position)[:8], 16)
