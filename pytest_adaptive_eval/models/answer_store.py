"""A file of replies by request hash that many processes read and write at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from pytest_adaptive_eval.errors import ConfigError

#: Marks a SQLite file as such a store.
APPLICATION_ID = 0x41455641
#: Version of the table; a store of another one is refused.
SCHEMA_VERSION = 1
#: Seconds to wait for another process that writes.
BUSY_SECONDS = 30.0

_OTHER = "name another file with --adaptive-eval-reuse=FILE"
#: Types of file systems that several machines share, where SQLite's write-ahead log is not safe.
_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "glusterfs",
    "9p",
    "fuse",
    "afs",
    "pvfs",
    "orangefs",
)


class AnswerStore(MutableMapping[str, str]):
    """Replies by key in a SQLite file; they are looked up and stored, never listed or deleted.

    The first reply under a key stays. A reply that cannot be written is left out, and `fault` says why.

    Args:
        path: Made when missing, with its folder.

    Attributes:
        fault: Why replies were not written; empty if all were.

    Raises:
        ConfigError: The file cannot be opened, is damaged or is no store of this version.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.fault = path, ""
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, expected a file for the answers: {_OTHER}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # replies arrive in the thread of a server's connections, while that of the run waits
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{path}: the store of answers cannot be opened: {error}; {_OTHER}") from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise self._unreadable(error) from None
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Check that the file is a store of this version, or make it one if it is empty."""
        if not self._is_store():
            self._connection.execute(f"PRAGMA journal_mode = {'DELETE' if _is_shared(self.path) else 'WAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            if not self._is_store():  # another process may have been first
                self._connection.execute(
                    "CREATE TABLE replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
                )
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._connection.execute("COMMIT")
        # a reply that a failing machine loses is asked for once more
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("SELECT key, reply FROM replies LIMIT 1").fetchall()

    def _is_store(self) -> bool:
        """Return whether the file is a store of this version, False if it is empty.

        Raises:
            ConfigError: It is something else.
        """
        # first, since another process may make the store meanwhile: its table and its numbers appear together
        tables = self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        application, version = self._number("application_id"), self._number("user_version")
        if application == APPLICATION_ID and version == SCHEMA_VERSION:
            return True
        if application == APPLICATION_ID:
            raise ConfigError(
                f"{self.path}: the store of answers has schema {version}, this version reads {SCHEMA_VERSION}: {_OTHER}"
            )
        if application or tables:
            raise ConfigError(f"{self.path}: a database of something else, expected a store of answers: {_OTHER}")
        return False

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _unreadable(self, error: sqlite3.Error) -> ConfigError:
        return ConfigError(
            f"{self.path}: no store of answers, or a damaged one ({error}): {_OTHER}, or delete it, which loses no "
            "result"
        )

    def __getitem__(self, key: str) -> str:
        try:
            row = self._connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unreadable(error) from None
        if row is None:
            raise KeyError(key)
        return str(row[0])

    def __setitem__(self, key: str, value: str) -> None:
        if self.fault:
            return
        try:
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:  # the run has the answer, and its journal keeps it
            self.fault = f"{self.path}: further answers are not stored there ({error})"

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"{key}: replies are never deleted")

    def __iter__(self) -> Iterator[str]:
        raise TypeError("replies are looked up, not listed")

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _is_shared(path: Path) -> bool:
    """Return whether a path lies on a file system that other machines may share, as far as Linux tells."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return False
    folder = path.parent.resolve()
    points = [(Path(fields[1]), fields[2]) for fields in mounts if len(fields) > 2]
    types = [(len(point.parts), kind) for point, kind in points if folder.is_relative_to(point)]
    return bool(types) and max(types)[1].startswith(_NETWORK)
