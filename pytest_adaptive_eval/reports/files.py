"""Reports as files: whole or not there."""

from __future__ import annotations

import secrets
from pathlib import Path

from pytest_adaptive_eval.errors import UsageError

__all__ = ["write_whole"]


def write_whole(path: Path, data: bytes, what: str) -> None:
    """Write a file, replacing what is there in one step.

    Parameters
    ----------
    path : Path
        Missing folders are made.
    data : bytes
    what : str
        The file's content, for messages.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    try:
        if not path.name or (path.exists() and not path.is_file()):
            raise UsageError(f"{path} is not a regular file, and {what} would replace it: choose another path")
        path = path.resolve()  # a link stays, what it points to is replaced
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot write {what}: {error.strerror or error}. Free space, set the rights, or choose another "
            "path"
        ) from error
