"""Open input files: regular files only, without waiting for a writer.

A path in a bank, a setting or a folder may lead to a named pipe, a device or a socket. Opening a pipe waits for its
writer, and a device may never end. All readers of this package open their files here.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

#: A path as users give it.
StrPath = str | os.PathLike[str]
ANSWERS_FILE = "answers.sqlite"  #: File in the folder of a run for answers that runs share.
DRIFT_ACTIONS = ("warn", "fail")  #: Actions of a run where a level fell below that of earlier runs.
#: A path that becomes a pipe between the check and the opening is then refused instead of waited for.
_NOT_WAITING = getattr(os, "O_NONBLOCK", 0)
_NOT_FOLLOWING = getattr(os, "O_NOFOLLOW", 0)

#: Files that pytest runs or takes settings from.
_OF_PYTEST = re.compile(r"conftest\.py|__init__\.py|test_.*\.py|.*_test\.py|\.?pytest\.(ini|toml)|tox\.ini")

#: Begin of a Git LFS pointer, and what to do about one.
_POINTER = b"version https://git-lfs.github.com/spec/"
_IS_POINTER = "it is a Git LFS pointer in place of the file, expected its content: fetch it with git lfs pull"

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}


@contextlib.contextmanager
def reading(path: StrPath, error_class: type[Exception]) -> Iterator[None]:
    """Raise an error of a class in place of OSError, with the file that the OSError names, or this one."""
    try:
        yield
    except OSError as error:
        path_of_error = error.filename or os.fspath(path)
        raise error_class(
            f"{path_of_error}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from error


def open_regular(path: StrPath, *, follow: bool = True, pointer: bool = False) -> io.BufferedReader:
    """Open a regular file for reading bytes.

    Args:
        follow: Whether `path` may be a symbolic link to a regular file.
        pointer: Whether it may be a Git LFS pointer.

    Raises:
        OSError: The file is missing, cannot be read, or is something else: a folder, a named pipe, a socket, a
            device, a Git LFS pointer, or a symbolic link that may not be followed.
    """

    def opener(name: str, flags: int) -> int:
        descriptor = os.open(name, flags | _NOT_WAITING | (0 if follow else _NOT_FOLLOWING))
        try:
            _check_regular(os.fstat(descriptor).st_mode, path)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    try:
        # Opening a device can have effects of its own, so the kind is looked up before.
        _check_regular(Path(path).stat(follow_symlinks=follow).st_mode, path)
        file = open(path, "rb", opener=opener)  # noqa: SIM115 -- the caller closes it
        try:
            begin = file.peek(len(_POINTER))  # what cannot be read is an error of opening, which has the path
            if begin.startswith(_POINTER) and not pointer:
                raise OSError(errno.EINVAL, _IS_POINTER)
        except OSError as error:
            file.close()
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        return file
    except ValueError as error:  # a NUL or a lone surrogate in the path
        raise OSError(errno.EINVAL, f"no file can have such a path ({error})", os.fspath(path)) from error


def read_regular(path: StrPath, *, follow: bool = True) -> bytes:
    """Return the bytes of a regular file; parameters and errors as of `open_regular`."""
    with open_regular(path, follow=follow) as file:
        return file.read()


def unpacked(raw: io.BufferedReader, path: StrPath) -> contextlib.AbstractContextManager[Any]:
    """Return the bytes of an open file, decompressed where its name or its first bytes say that it is gzipped."""
    packed = os.fspath(path).lower().endswith(".gz") or raw.peek(2)[:2] == b"\x1f\x8b"
    if packed:
        return gzip.GzipFile(fileobj=raw)
    return contextlib.nullcontext(raw)


@contextlib.contextmanager
def open_text(path: StrPath) -> Iterator[TextIO]:
    """Open a regular file as UTF-8 text, decompressed where its name or its first bytes say that it is gzipped.

    Line ends are kept, and a byte-order mark is left out.

    Raises:
        OSError: As `open_regular`.
    """
    with (
        open_regular(path) as raw,
        unpacked(raw, path) as data,
        io.TextIOWrapper(data, encoding="utf-8-sig", newline="") as text,
    ):
        yield text


def find_input(path: StrPath, folders: Iterable[Path]) -> Path | None:
    """Return `path` in the first of the folders where something of that name is, else None."""
    # Path.exists raises where a name is too long or a folder may not be searched.
    return next((folder / path for folder in folders if os.path.exists(folder / path)), None)  # noqa: PTH110


def files_of_pytest(folder: StrPath) -> list[str]:
    """Return the names of files in a folder that pytest would run or take settings from; empty if it is unreadable."""
    try:
        return sorted(path.name for path in Path(folder).iterdir() if _OF_PYTEST.fullmatch(path.name))
    except (OSError, ValueError):
        return []


def _check_regular(mode: int, path: StrPath) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise OSError(errno.EINVAL, f"it is {kind}, expected a regular file", os.fspath(path))
