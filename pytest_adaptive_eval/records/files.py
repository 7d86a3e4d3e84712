"""Durable files and private folders for answers: create, lock, write and sync."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from pathlib import Path

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.outputs import sync_folder

#: Sync the content without its time of change, which halves the cost.
sync = getattr(os, "fdatasync", os.fsync)
#: Links are not followed and devices not waited for, because others may write to the folder.
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: Error numbers of a lock that another process holds.
_LOCKED_ELSEWHERE = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}


def lock(descriptor: int) -> bool:
    """Lock a file that is open for writing, without waiting.

    Returns:
        False when another process holds the lock.

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

    Args:
        folder: The run folder; it and its folders ``journal`` and ``runs`` are made when missing.

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
