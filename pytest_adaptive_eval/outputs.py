"""Write output files atomically: under another name in the same folder, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk, which lets a new or renamed file survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Make a folder that version control ignores; leave an existing one as it is."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    (folder / ".gitignore").write_text("*\n", encoding="ascii")


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` in one step at the end of the block, and is removed if the block raises.

    Args:
        path: Missing folders are made. The target of a symbolic link is replaced, and the link stays.
        durable: Sync the file and its folder to the disk.

    Yields:
        For writing bytes; its name has the suffix of `path`.

    Raises:
        OSError: The file cannot be written, or `path` is a folder, a device, a pipe or a socket.
    """
    try:
        path = path.resolve()
    except RuntimeError as error:  # a symbolic link to itself, before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path)) from error
    if path.exists() and not path.is_file():  # a renamed file would take the place of a device or a pipe
        raise OSError(errno.EINVAL, "it is not a regular file, and would be replaced", os.fspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        with staged.open("xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
    if durable:
        sync_folder(path.parent)


def write_whole(
    path: Path,
    pieces: Iterable[bytes],
    content: str,
    error_class: type[AdaptiveEvalError] = UsageError,
    *,
    durable: bool = False,
) -> None:
    """Write a file that a user named, replacing an earlier one in one step.

    Args:
        path: Missing folders are made.
        pieces: The content, in order.
        content: Name of the content for messages, such as ``the page``.
        error_class: Class of the exception.
        durable: See `replacing`.

    Raises:
        AdaptiveEvalError: The path is not a regular file, or cannot be written.
    """
    try:
        if not path.name or (path.exists() and not path.is_file()):
            raise error_class(f"{path} is not a regular file, and {content} would replace it: choose another path")
        with replacing(path, durable=durable) as file:
            file.writelines(pieces)
    except OSError as error:
        raise error_class(
            f"{path}: cannot write {content}: {error.strerror or error}. Free space, set the rights, or choose "
            "another path"
        ) from error
