"""Texts that models said, by a hash of what they were asked, in a journal that is opened when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.journal import Journal

__all__ = ["KeptTexts"]


class KeptTexts(MutableMapping[str, str]):
    """Texts by key, each on disk before it is used; texts are looked up and kept, never listed or dropped.

    Parameters
    ----------
    path : Path
        Of the journal.
    fresh : bool
        Forget what is there.
    field : str
        What a text is called in the journal.
    """

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
        raise TypeError(f"{key}: what was said is kept")

    def __iter__(self) -> Iterator[str]:
        raise TypeError("texts are looked up, not listed")

    def __len__(self) -> int:
        return len(self._open())

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None
