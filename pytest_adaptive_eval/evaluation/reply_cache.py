"""On-disk cache of model replies, keyed by request hash."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.journal import Journal


class ReplyCache(MutableMapping[str, str]):
    """Replies by key, each on disk in the journal at `path` before it is used; never listed or deleted."""

    def __init__(self, path: Path, fresh: bool, field: str = "decision") -> None:
        self.path = path
        self._fresh, self._field = fresh, field
        self._journal: Journal | None = None

    def _open(self) -> Journal:
        if self._journal is None:
            from pytest_adaptive_eval.records.journal import Journal

            self._journal = Journal(self.path, fresh=self._fresh)
            self._fresh = False
        return self._journal

    def __getitem__(self, key: str) -> str:
        entry = self._open().get(key)
        if entry is None:
            raise KeyError(key)
        return str(entry[self._field])

    def __setitem__(self, key: str, value: str) -> None:
        self._open().append(key, {self._field: value})

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"{key}: the cache of replies only grows; no reply is deleted")

    def __iter__(self) -> Iterator[str]:
        raise TypeError("replies are looked up, not listed")

    def __len__(self) -> int:
        return len(self._open())

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None
