"""Completions of earlier requests in a SQLite file, in place of asking a model again."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, JournalError, UsageError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.outputs import make_private

APPLICATION_ID = 0x41455641  #: Marks a SQLite file as such a store.
SCHEMA_VERSION = 4  #: Version of the tables; a store of another one is refused.
#: Seconds to wait for another process: one that uses an exclusive file, and one that writes a shared file.
OPEN_SECONDS, BUSY_SECONDS = 0.5, 30.0
#: Least seconds between two syncs to the disk.  A sync takes milliseconds, which matters only for answers faster than
#: any model's.
SYNC_EVERY = 0.05

_TABLES = (
    "CREATE TABLE completions (key TEXT PRIMARY KEY, item TEXT, reply TEXT, checksum INTEGER) WITHOUT ROWID",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE requests (key TEXT PRIMARY KEY, request TEXT) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (
    "another process is writing this journal, which one interview of one run may do: wait for that run to end, end it, "
    "or choose another folder with --adaptive-eval-dir"
)
#: What to do about a file that cannot be read or written: that of one interview, and a shared one.
_MEND_OWN = (
    "free space, set the rights, restore the file, choose another folder with --adaptive-eval-dir, or begin again with "
    "--adaptive-eval-fresh, which forgets the answers of this interview"
)
_MEND_SHARED = "name another file with --adaptive-eval-reuse=FILE; to delete a store loses no result"
#: Types of file systems that several machines share, where SQLite's write-ahead log is not safe.
_NETWORK = (
    *("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p", "fuse", "afs", "pvfs", "orangefs"),
)


class CompletionStore(contextlib.AbstractContextManager["CompletionStore"]):
    """Completions by key in a SQLite file or in memory; several threads may use them.

    A stored completion survives any end of the process.  It also survives the end of the machine, unless another one
    was synced to the disk less than `SYNC_EVERY` before.  Keys are hashes of all that an answer depends on, see
    `models.request_keys`.

    Args:
        path: Made when missing, with its folder; in memory if omitted.
        shared: Store of other runs.  It answers where this one cannot, for requests with a key among runs.
        exclusive: Whether the file belongs to one interview: no other process may open it, and a failed write raises.
            Else several processes may use it, and answers that cannot be written are left out.
        fresh: Delete earlier completions, and a damaged file.

    Attributes:
        fault: Why completions were not written; empty if all were.

    Raises:
        JournalError: An exclusive file is in use, is damaged, or cannot be opened.
        ConfigError: A shared file is damaged, is something else, or cannot be opened.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        shared: CompletionStore | None = None,
        exclusive: bool = True,
        fresh: bool = False,
    ) -> None:
        if path is None:
            self.path = Path(":memory:")
        else:
            self.path = path
        self.shared, self.fault = shared, ""
        self._exclusive = exclusive
        self._keys: set[str] = set()  #: Keys in an exclusive file: most requests are new, and need no search then.
        self._earlier: set[str] = set()
        self._synced = -SYNC_EVERY
        self._lock = threading.Lock()
        with self._reporting():
            if exclusive:
                make_private(self.path.parent)
                if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
                    raise JournalError(f"{path}: not a regular file: remove it")
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._open(fresh=fresh)
            except sqlite3.DatabaseError as error:
                if not fresh or _code(error) not in _DAMAGED:
                    raise
                remove_store(self.path)
                self._open(fresh=False)

    def lookup(self, key: str, shared_key: str = "") -> Completion | None:
        """Return the completion of a request, or None.

        Args:
            shared_key: Key among runs; empty where answers of other runs may not be used.

        Raises:
            JournalError: The exclusive file is damaged.
            ConfigError: The shared file is damaged.
        """
        if not self._exclusive or key in self._keys:
            with self._lock, self._reporting():
                row = self._execute("SELECT item, reply, checksum FROM completions WHERE key = ?", key).fetchone()
            if row is not None:
                return self._decoded(*row)
        if self.shared is None or not shared_key:
            return None
        completion = self.shared.lookup(shared_key)
        if completion is not None:
            completion = replace(completion, reused=True, cost=Usage())
            self.store(key, completion)
        return completion

    def store(self, key: str, completion: Completion, item: str = "", shared_key: str = "") -> None:
        """Store a completion, unless a fault of the infrastructure ended it.

        Args:
            item: Id for messages.
            shared_key: See `lookup`.  Other runs do not get a score alone, since they may grade otherwise.

        Raises:
            JournalError: The exclusive file cannot be written, now or before.
        """
        if completion.status.infrastructure:
            return
        with self._lock:
            if not self.fault:
                self._write(key, completion, item)
            if self.fault and self._exclusive:
                raise JournalError(self.fault)
        gradable = completion.score is None or completion.likelihood or completion.own_score
        if self.shared is not None and shared_key and gradable and not completion.reused:
            self.shared.store(shared_key, completion, item)

    def keep_requests(self, requests: Mapping[str, str]) -> None:
        """Store requests as they were sent, by key; a fault of the file loses them and nothing else."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?)", requests.items())
            self._execute("COMMIT")

    def find_requests(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the stored requests among `keys`, as they were sent, by their keys in records."""
        query = "SELECT key, request FROM requests WHERE key = ?"
        with self._lock, self._reporting():
            return dict(row for key in keys for row in self._execute(query, key))

    def is_earlier(self, key: str) -> bool:
        """Return whether a completion was there when the exclusive file was opened."""
        return key in self._earlier

    def fact(self, name: str) -> str:
        """Return a fact that a run has kept; empty where none did."""
        with self._lock, self._reporting():
            row = self._execute("SELECT value FROM facts WHERE name = ?", name).fetchone()
        if row is None:
            return ""
        return str(row[0])

    def keep_fact(self, name: str, value: str, *, again: bool = False) -> None:
        """Keep a fact; one that is there stays as the run that began the file kept it, unless it is kept `again`."""
        action = "REPLACE" if again else "IGNORE"
        with self._lock, self._reporting():
            self._execute(f"INSERT OR {action} INTO facts VALUES (?, ?)", name, value)

    def __len__(self) -> int:
        with self._lock, self._reporting():
            return int(self._execute("SELECT count(*) FROM completions").fetchone()[0])

    def close(self) -> None:
        """Write everything to the disk and close the file; closing twice does nothing."""
        with self._lock:
            self._connection.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def _open(self, *, fresh: bool) -> None:
        """Lock the file, check that it is a store of this version, or make it one if it is empty."""
        # answers arrive in the thread of a server's connections, while that of the run waits
        self._connection = sqlite3.connect(
            self.path,
            timeout=OPEN_SECONDS if self._exclusive else BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        with contextlib.ExitStack() as closing:
            closing.callback(self.close)
            if self._exclusive:  # without shared memory the log is safe on network file systems too
                self._execute("PRAGMA locking_mode = EXCLUSIVE")
                self._execute("PRAGMA journal_mode = WAL")
            if not self._is_store():
                if not self._exclusive and not _is_on_network(self.path):
                    self._execute("PRAGMA journal_mode = WAL")
                self._execute("BEGIN IMMEDIATE")
                for statement in () if self._is_store() else _TABLES:  # another process may have been first
                    self._execute(statement)
                self._execute("COMMIT")
            self._execute("PRAGMA synchronous = NORMAL")
            if fresh:
                self._execute("DELETE FROM completions")
                self._execute("DELETE FROM facts")
            if self._exclusive:
                self._keys = {key for (key,) in self._execute("SELECT key FROM completions")}
            self._earlier = set(self._keys)
            closing.pop_all()  # it stays open
        weakref.finalize(self, self._connection.close).atexit = False

    def _is_store(self) -> bool:
        """Return whether the file is a store of this version, False if it is empty."""
        # first, since another process may make the store meanwhile: its tables and its numbers appear together
        tables = self._execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        pragmas = ("application_id", "user_version")
        application, version = (self._execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas)
        if (application, version) == (APPLICATION_ID, SCHEMA_VERSION):
            return True
        if application or tables:
            raise self._refusal(f"a database of something else, expected a store of schema {SCHEMA_VERSION}")
        return False

    def _write(self, key: str, completion: Completion, item: str) -> None:
        """Write a completion, or set the fault."""
        if completion.likelihood:  # the score follows from it
            completion = replace(completion, score=None)
        syncs = self._exclusive and clock.elapsed() - self._synced >= SYNC_EVERY
        try:
            reply = json.dumps(msgspec.to_builtins(completion, enc_hook=float))
            if syncs:
                self._execute("PRAGMA synchronous = FULL")
            row = key, item, reply, zlib.crc32(reply.encode())
            self._execute("INSERT OR REPLACE INTO completions VALUES (?, ?, ?, ?)", *row)
            self._keys.add(key)
            self._earlier.discard(key)
            if syncs:
                self._execute("PRAGMA synchronous = NORMAL")
                self._synced = clock.elapsed()
        except (sqlite3.Error, TypeError, ValueError) as error:
            self.fault = str(self._refusal(f"cannot store the answer to {item!r} ({error}), and no later one"))

    def _decoded(self, item: str, reply: str, checksum: int) -> Completion | None:
        try:
            if zlib.crc32(reply.encode()) != checksum:
                raise ValueError("its checksum differs")
            return msgspec.convert(json.loads(reply), Completion)
        except (msgspec.MsgspecError, ValueError, AttributeError) as error:
            if not self._exclusive:  # it is asked for again
                return None
            raise self._refusal(f"the answer to {item!r} cannot be read ({error})") from None

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        """Raise one sentence in place of an error of SQLite or of the system."""
        try:
            yield
        except (OSError, sqlite3.Error, UnicodeError) as error:
            if self._exclusive and _code(error) == sqlite3.SQLITE_BUSY:
                raise JournalError(f"{self.path}: {_LOCKED}") from None
            raise self._refusal(f"the store of answers cannot be used ({error})") from error

    def _refusal(self, fault: str) -> UsageError:
        if self._exclusive:
            return JournalError(f"{self.path}: {fault}: {_MEND_OWN}")
        return ConfigError(f"{self.path}: {fault}: {_MEND_SHARED}")


def is_of_earlier_version(path: Path) -> bool:
    """Return whether a file is a store of an earlier version, by the ``user_version`` in the header of its format."""
    with path.open("rb") as file:
        header = file.read(64)
    # 0 has a new store whose tables are still in its log
    return 0 < int.from_bytes(header[60:], "big") < SCHEMA_VERSION


def remove_store(path: Path) -> None:
    """Delete the file of a store that is closed, with its log, which a killed process leaves."""
    for name in (path, Path(f"{path}-wal")):
        name.unlink(missing_ok=True)


def scored(item: Item, completion: Completion | None) -> Completion | None:
    """Return an answer with its score if it is one by log-likelihoods; None if they do not fit the item."""
    if completion is None or item.likelihood is None or not completion.likelihood:
        return completion
    facts = completion.likelihood
    try:
        result = item.likelihood_result([*facts["log_likelihoods"], *facts.get("unconditional", ())])
    except (AdaptiveEvalError, LookupError, TypeError, ValueError):
        return None
    return replace(completion, text=result.text, status=Status.OK, score=result.score, likelihood=result.facts)


def _code(error: Exception) -> int:
    """Return SQLite's primary result code of an error, 0 for another one."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_on_network(path: Path) -> bool:
    """Return whether a path lies on a file system that other machines may share, if Linux says so."""
    try:
        mounts = []
        for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
            mounts.append(line.split()[1:3])
    except OSError:
        return False
    folder = path.parent.resolve()
    kinds = []
    for point, kind in mounts:
        if folder.is_relative_to(point):
            kinds.append((len(point), kind))
    return max(kinds, default=(0, ""))[1].startswith(_NETWORK)
