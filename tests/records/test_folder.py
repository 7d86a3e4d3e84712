"""The run folder is tried before the first model call."""

from __future__ import annotations

import errno
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.records.folder import probe


def test_the_probe_leaves_nothing_but_folders(tmp_path: Path) -> None:
    for _ in range(2):
        probe(tmp_path / "a" / "b")
        assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
            "a",
            "a/b",
            "a/b/journal",
            "a/b/journal/.gitignore",
            "a/b/runs",
        ]


@pytest.mark.parametrize("place", ["", "runs", "journal"])
def test_a_file_in_the_way_of_a_folder_is_one_sentence(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "folder"
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text("in the way")
    with pytest.raises(JournalError, match=r"cannot be (written|used).*--adaptive-eval-dir"):
        probe(folder)


def test_a_disk_that_does_not_sync_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(JournalError, match=r"cannot be written: Input/output error.*--adaptive-eval-dir"):
        probe(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unlockable(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if "BEGIN" in sql:
                raise sqlite3.OperationalError("locking protocol")
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Unlockable))
    with pytest.raises(JournalError, match=r"cannot be used \(locking protocol\).*--adaptive-eval-dir"):
        probe(tmp_path)
