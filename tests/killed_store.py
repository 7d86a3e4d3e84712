"""A store of completions whose run is killed."""

from __future__ import annotations

from typing import Any

from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.store import CompletionStore


class KilledStore(CompletionStore):
    """A store in memory that raises KeyboardInterrupt in place of storing, once `left` completions are stored.

    Attributes:
        stored: Texts and statuses of the completions by key.
    """

    def __init__(self, left: float) -> None:
        super().__init__()
        self.left, self.stored = left, dict[str, Any]()

    def store(self, key: str, completion: Completion, item: str = "", shared_key: str = "") -> None:
        """Store a completion, or end the run."""
        if completion.status.infrastructure:
            return
        if self.left <= 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.stored[key] = completion.text, completion.status
        super().store(key, completion, item, shared_key)
