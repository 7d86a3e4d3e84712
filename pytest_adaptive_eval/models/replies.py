"""Store of model replies by request, with which interrupted studies continue and runs share answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion, Usage


class ReplyStore:
    """Replies of this and earlier runs.

    Args:
        texts: Stored replies, as JSON, by `pytest_adaptive_eval.models.requests.request_key`.

    Attributes:
        recalled: Requests that the store answered.
    """

    def __init__(self, texts: MutableMapping[str, str]) -> None:
        self._texts = texts
        self.recalled = 0

    def recall(self, key: str, count: int = 1) -> tuple[list[Completion], Usage] | None:
        """Return the `count` replies to a request, and their cost; None if they are missing or unreadable."""
        text = self._texts.get(key)
        if text is None:
            return None
        try:
            data = json.loads(text)
            # earlier versions stored the one reply of a panel without a list
            rows = data["result"] if "result" in data else [[data["text"], data["status"], None, ""]]
            replies = [_completion(*row) for row in rows]
            usage = Usage(**data["usage"])
        except (ValueError, TypeError, KeyError):
            return None
        if len(replies) != count or not all(map(_well_typed, replies)):
            return None
        self.recalled += 1
        return replies, usage

    def keep(self, key: str, replies: list[Completion], usage: Usage) -> None:
        """Store the replies to a request, unless one failed by a fault of the run."""
        if not any(reply.status.infrastructure for reply in replies):
            rows = [_row(reply) for reply in replies]
            self._texts[key] = json.dumps({"result": rows, "usage": usage.to_json()})


def _row(reply: Completion) -> Sequence[Any]:
    row = [reply.text, reply.status.value, reply.score, reply.detail]
    return [*row, dict(reply.likelihood)] if reply.likelihood else row


def _completion(
    text: str, status: str, score: float | None, detail: str, likelihood: Mapping[str, Any] | None = None
) -> Completion:
    if not isinstance(text, str):
        raise TypeError(f"the text of a reply is {type(text).__name__}")
    return Completion(text, Status(status), score, detail, likelihood or {})


def _well_typed(reply: Completion) -> bool:
    return (
        isinstance(reply.likelihood, Mapping)
        and isinstance(reply.detail, str)
        and (reply.score is None or isinstance(reply.score, float | int))
    )
