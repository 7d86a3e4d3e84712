"""Files and folders that answers can be trusted to: made, locked, written and synced, or refused at once."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from pathlib import Path

from pytest_adaptive_eval.errors import JournalError

__all__ = ["OPEN_FLAGS", "lock", "make_private", "probe", "sync", "sync_folder", "unlock", "write_all"]

#: The data reach the disk; the time of change need not, and leaving it out halves the cost.
sync = getattr(os, "fdatasync", os.fsync)
#: Links are not followed and devices not waited for: the path lies in a checkout that others write to.
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT", "O_CLOEXEC"):
    OPEN_FLAGS |= getattr(os, _name, 0)
#: What the systems say when another process holds the lock.
_HELD = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}

if sys.platform == "win32":
    import msvcrt

    #: Windows locks keep others from reading too, so the locked byte lies behind any content.
    _FAR = 2**62

    def _acquire(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def unlock(fd: int) -> None:
        """Give the lock back."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock(fd: int) -> None:
        """Give the lock back, for a forked child that still has the file open too."""
        fcntl.flock(fd, fcntl.LOCK_UN)


def lock(fd: int) -> bool:
    """Lock an open file without waiting; moves its position on Windows.

    Parameters
    ----------
    fd : int
        Open for writing.

    Returns
    -------
    bool
        False when another process holds the lock.

    Raises
    ------
    OSError
        The file system cannot lock.
    """
    try:
        _acquire(fd)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk, so that a new or renamed file survives a power cut."""
    if sys.platform != "win32":  # folders cannot be opened there
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def make_private(folder: Path) -> None:
    """Make a folder that version control shall not see; an existing one is left as it is."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    (folder / ".gitignore").write_text("*\n", encoding="ascii")


def probe(folder: Path) -> None:
    """Try everything the journal will need, before the first model call.

    Parameters
    ----------
    folder : Path
        The run folder; it and its folders ``journal`` and ``runs`` are made when missing.

    Raises
    ------
    JournalError
        A folder cannot be made, or a file in it not be written, locked or synced.
    """
    for place in (folder, folder / "journal", folder / "runs"):
        step = "make the folder"
        path = place / f".probe-{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            make_private(folder / "journal")
            (folder / "runs").mkdir(exist_ok=True)
            step = "make a file in it"
            fd = os.open(path, OPEN_FLAGS | os.O_EXCL, 0o600)
            try:
                step = "lock a file in it"
                lock(fd)
                step = "write to it"
                write_all(fd, bytes(4096))
                step = "sync to the disk"
                sync(fd)
                sync_folder(place)
            finally:
                os.close(fd)
                path.unlink()
        except OSError as error:
            raise JournalError(
                f"{place}: cannot {step}: {error.strerror or error}; answers could not be kept. Free space, set the "
                "rights, or choose another folder with --adaptive-eval-dir"
            ) from error


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, in one call unless the system takes less."""
    left = memoryview(data)
    while left:  # a second turn only when the disk is nearly full, to hear so from the system
        left = left[os.write(fd, left) :]
