"""Hashes of files, kept between runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.inputs import open_regular, read_regular
from pytest_adaptive_eval.outputs import replacing


def stamp_of(path: Path) -> list[int]:
    """Return size, times in nanoseconds and inode of a file. At least one differs after its content changed."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


class FileHashes:
    """Hashes of files by their stamps, stored in a JSON file.

    The file only saves time. A damaged or unwritable one is ignored.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.entries: dict[str, Any] = {}
        self.changed = False
        if self.path is not None:
            with contextlib.suppress(OSError, ValueError, RecursionError):
                stored = json.loads(read_regular(self.path))
                if isinstance(stored, dict):
                    self.entries = stored
                else:
                    self.entries = {}

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file, reading it only if its size, times or inode changed."""
        sys.audit("open", os.fspath(path), "rb", os.O_RDONLY)  # a stored hash stands for reading the file
        path = path.resolve()
        stamp = stamp_of(path)
        entry = self.entries.get(str(path))
        if isinstance(entry, dict) and entry.get("stamp") == stamp:
            stored = str(entry.get("sha256"))
        else:
            stored = ""
        if re.fullmatch("[0-9a-f]{64}", stored):
            return stored
        with open_regular(path, pointer=True) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        self.entries[str(path)] = {"stamp": stamp, "sha256": digest}
        self.changed = True
        return digest

    def save(self) -> None:
        """Write the hashes, if any is new."""
        if self.path is not None and self.changed:
            with contextlib.suppress(OSError), replacing(self.path) as file:
                file.write(json.dumps(self.entries, indent=0).encode())
