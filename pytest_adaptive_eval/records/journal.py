"""The journal: a file of all answers of one interview, each written before the next question.

A line is ``crc32 json``: eight hexadecimal digits, a space, ASCII JSON, a line feed. Lines are written one at a time.
So a crash can damage only the last one, which is removed when the journal is opened again. Any other damage is refused,
because answers would be lost without notice.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.outputs import sync_folder

SCHEMA = 1  #: Schema of the entries, a part of the keys of interviews.

sync = getattr(os, "fdatasync", os.fsync)  #: Sync the content without its time of change, which halves the cost.
#: Links are not followed and devices not waited for, because others may write to the folder.
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCKED_ELSEWHERE = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}  #: Error numbers of a lock that another process holds.


def lock(descriptor: int) -> bool:
    """Lock a file that is open for writing, without waiting.

    Raises:
        OSError: The file system cannot lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCKED_ELSEWHERE:
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    """Release the lock of a file, also for a forked child that has the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def make_private(folder: Path) -> None:
    """Make a folder that version control ignores; leave an existing one as it is."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    (folder / ".gitignore").write_text("*\n", encoding="ascii")


def probe(folder: Path) -> None:
    """Try each operation of the journal before the first model call.

    Raises:
        JournalError: A folder cannot be made, or a file in it not be written, locked or synced.
    """
    for tried in (folder, folder / "journal", folder / "runs"):
        step = "make the folder"
        path = tried / f".probe-{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            make_private(folder / "journal")
            (folder / "runs").mkdir(exist_ok=True)
            step = "make a file in it"
            descriptor = os.open(path, OPEN_FLAGS | os.O_EXCL, 0o600)
            try:
                step = "lock a file in it"
                lock(descriptor)
                step = "write to it"
                write_all(descriptor, bytes(4096))
                step = "sync to the disk"
                sync(descriptor)
                sync_folder(tried)
            finally:
                os.close(descriptor)
                path.unlink()
        except OSError as error:
            raise JournalError(
                f"{tried}: cannot {step}: {error.strerror or error}; answers could not be kept. Free space, set the "
                "rights, or choose another folder with --adaptive-eval-dir"
            ) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, in one call unless the system takes less."""
    remaining = memoryview(data)
    while remaining:  # a second call happens on a nearly full disk, and raises the system's error
        remaining = remaining[os.write(descriptor, remaining) :]


#: Least seconds between two syncs to the disk.  A sync takes milliseconds, which matters only for answers faster than
#: any model's.
SYNC_EVERY = 0.05

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: Start of a line.  Within a line a brace follows a space only in texts, where quotes have backslashes.
_START = re.compile(rb'[0-9a-f]{8} \{"key":')
_FRESH = "or begin anew with --adaptive-eval-fresh, which forgets the answers of this interview"
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_sorted = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True).encode


#: Key of the seed of the random states, the only entry that is no answer.
SEED = "seed"


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(_sorted(parts).encode("ascii")).hexdigest()[:24]


def interview_key(
    *,
    name: str,
    bank: str,
    scale: str,
    policy: Mapping[str, Any],
    seed: int,
    subject: Sequence[str],
    schema: int = SCHEMA,
) -> str:
    """Return the key of an interview; a run with the same key resumes it.

    Args:
        subject: Whose answers these are, see `models.reuse.identity_key`.
    """
    return _digest([name, bank, scale, dict(policy), seed, *subject, schema])


class Journal:
    """Answers of one interview on disk; a context manager.

    Args:
        fresh: Delete earlier answers. A subject without a checkpoint hash needs this, since they may be another
            model's.

    Attributes:
        repaired: Bytes of a half-written last record that opening cut off.
        earlier: Keys of the answers that were there when it was opened.

    Raises:
        JournalError: Another process writes this journal, a record is damaged, or the file cannot be opened, locked or
            repaired.

    Examples:
        >>> with Journal(path) as journal:                            # doctest: +SKIP
        ...     if (answer := journal.get(key)) is None:
        ...         journal.append(key, answer := ask())
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        self.repaired = 0
        self._records: dict[str, str] = {}
        self._end = 0
        self._synced = -SYNC_EVERY
        self._broken = ""
        self._fd = -1
        with ExitStack() as closing:
            closing.callback(self.close)
            try:
                self._open(fresh)
            except OSError as error:
                raise JournalError(
                    f"{path}: cannot open the journal: {error.strerror or error}. Mend the file or its folder, or "
                    "choose another folder with --adaptive-eval-dir"
                ) from error
            closing.pop_all()  # it stays open
        self.earlier = frozenset(self._records)

    def _open(self, fresh: bool) -> None:
        path = self.path
        make_private(path.parent)
        self._fd = os.open(path, OPEN_FLAGS, 0o666)
        fault = ""
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            fault = "not a regular file: remove it"
        elif not lock(self._fd):
            fault = (
                "another process is writing this journal, which one interview of one run may do: wait for that run to "
                "end, end it, or choose another folder with --adaptive-eval-dir"
            )
        if fault:
            raise JournalError(f"{path}: {fault}")
        if fresh:
            os.ftruncate(self._fd, 0)
        self._load()
        sync_folder(path.parent)

    def _load(self) -> None:
        """Read all lines, and remove a torn last one."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self._fd), "rb") as file:
            for number, line in enumerate(file, 1):
                record = _parse(line)
                if record is None:
                    rest = line + file.read()
                    if _START.search(rest, 1):
                        raise JournalError(
                            f"{self.path}, line {number}: the record is damaged and others follow it, so this is not "
                            f"the trace of a crash: restore the file, {_FRESH}"
                        )
                    self.repaired = len(rest)
                    break
                self._records[record[0]] = record[1]
                self._end += len(line)
        if self.repaired:
            os.ftruncate(self._fd, self._end)
            sync(self._fd)

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the last data stored under `key` as a new dict, None without any."""
        text = self._records.get(key)
        if text is None:
            return None
        data: dict[str, Any] = json.loads(text)["data"]
        return data

    def append(self, key: str, data: Mapping[str, Any], *, durable: bool = True) -> None:
        """Store an answer.

        It is in the file afterwards, and survives any end of the process. It is also on the disk, and survives the end
        of the machine, unless another was synced less than `SYNC_EVERY` ago.

        Args:
            key: Hash of everything that the answer depends on.
            data: JSON data; texts may hold lone surrogates, numbers must be finite.
            durable: False leaves the sync to the next answer that needs one, or to `close`.

        Raises:
            JournalError: The data are not JSON (nothing was written), or the disk is full or fails: the journal then
                ends with its last whole line, and every further append raises.
        """
        if self._broken:
            raise JournalError(self._broken)
        try:
            text = _encode({"key": key, "data": dict(data)})
        except (TypeError, ValueError, RecursionError) as error:
            raise JournalError(
                f"{self.path}: the answer {key} cannot be kept, because it is no JSON data: {error}; give texts, "
                "finite numbers, lists and dicts"
            ) from error
        payload = text.encode("ascii")
        line = b"%08x %s\n" % (zlib.crc32(payload), payload)
        try:
            write_all(self._fd, line)
            if durable and clock.elapsed() - self._synced >= SYNC_EVERY:
                sync(self._fd)
                self._synced = clock.elapsed()
            self._end += len(line)
        except OSError as error:
            fault = "disk full" if error.errno in _FULL else "cannot write"
            safe = len(self._records) - (SEED in self._records)
            self._broken = (
                f"{self.path}: {fault} ({error.strerror or error}): {safe} answers are safe and the next run resumes "
                "after them. Free space, check the disk, or choose another folder with --adaptive-eval-dir"
            )
            self._cut()
            raise JournalError(self._broken) from error
        except BaseException:  # interrupted: no part of the line may stay
            self._cut()
            raise
        self._records[key] = text

    def _cut(self) -> None:
        try:
            os.ftruncate(self._fd, self._end)
            sync(self._fd)
        except OSError:
            # opening the journal again removes the rest of the line
            self._broken = self._broken or f"{self.path}: cannot cut off a half-written record: run again"

    def close(self) -> None:
        """Close and unlock the file; closing twice does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                sync(fd)
                unlock(fd)
            except OSError:
                pass  # the record has the answers too, and closing ends the lock
            finally:
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _parse(line: bytes) -> tuple[str, str] | None:
    """Return key and JSON text of a whole line, None for a damaged one."""
    if line[8:9] != b" " or not line.endswith(b"\n"):
        return None
    payload = line[9:-1]
    if line[:8] != b"%08x" % zlib.crc32(payload):
        return None
    try:
        text = payload.decode("ascii")
        record = json.loads(text)
        key, data = record["key"], record["data"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return (key, text) if isinstance(key, str) and isinstance(data, dict) else None
