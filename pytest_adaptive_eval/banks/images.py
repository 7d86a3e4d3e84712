"""Images of data sets: found beside the data or within it, checked by their first bytes, and copied."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.inputs import read_regular

#: Bytes of one image, and characters from which a text may be one in base64.
_LARGEST, _ENCODED = 32 << 20, 200
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")


class ImageStore:
    """Images of one import, each once, in the folder ``images`` of a staging folder.

    Args:
        target: Staging folder; None for a temporary one, which is made for the first image and removed with the store.
        bases: Folders in which paths are looked up, the nearest first. Nothing outside the last one, and no link, is
            read.
    """

    def __init__(self, target: Path | None, bases: Sequence[Path]) -> None:
        self._target = target
        self._bases = [base.resolve() for base in bases]
        self._stored: dict[str, str] = {}
        self._remove: Callable[[], object] = lambda: None

    @property
    def target(self) -> Path:
        """The staging folder."""
        if self._target is None:
            self._target = Path(tempfile.mkdtemp(prefix="adaptive-eval-images-"))
            self._remove = weakref.finalize(self, shutil.rmtree, self._target, ignore_errors=True)
        return self._target

    def close(self) -> None:
        """Remove the temporary folder."""
        self._remove()

    def add(self, value: Any) -> str:
        """Copy an image and return its name in the bank.

        Raises:
            DatasetError: It is missing, outside the data set, a link, an address, too large, or no PNG, JPEG or WEBP.
        """
        if isinstance(value, Mapping):
            value = value.get("bytes") or value.get("path") or value.get("url")
        if isinstance(value, bytes):
            return self._store(value, "the image")
        if not isinstance(value, str) or not value:
            raise DatasetError(f"an image is {value!r:.60}, expected a path, bytes or base64")
        if value in self._stored:
            return self._stored[value]
        if value.startswith("data:image/"):
            name = self._store(_decoded(value.partition(",")[2]), "the image")
        elif "://" in value[:12]:
            raise DatasetError(f"image {value!r:.80} is a URL and is not fetched; save the image next to the data")
        elif len(value) >= _ENCODED and _BASE64.fullmatch(value[:400]):
            name = self._store(_decoded(value), "the image")
        else:
            name = self._store(self._read(value), f"the image {value!r:.80}")
        if len(value) < 1000:
            self._stored[value] = name
        return name

    def _read(self, path: str) -> bytes:
        """Return the bytes of an image beside the data: leading folders of the path may be missing here."""
        parts = []
        for part in PurePosixPath(path.replace("\\", "/")).parts:
            if part not in ("/", "."):
                parts.append(part)
        if ".." in parts or "\0" in path:
            raise DatasetError(f"the image {path!r:.80} lies outside the data set; copy it beside the data")
        for base in self._bases:
            for start in range(len(parts)):
                for folder in ((), ("images",), ("image",)):
                    file = base.joinpath(*folder, *parts[start:])
                    if file.is_symlink() or not file.is_file() or not file.resolve().is_relative_to(self._bases[-1]):
                        continue
                    if file.stat().st_size > _LARGEST:
                        raise DatasetError(f"the image {path!r:.80} has more than {_LARGEST} bytes; scale it down")
                    return read_regular(file, follow=False)
        raise DatasetError(f"no image {path!r:.80} beside the data; give --set image_root=FOLDER")

    def _store(self, data: bytes, label: str) -> str:
        starts = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg"}
        suffix = next((end for start, end in starts.items() if data.startswith(start)), "")
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            suffix = ".webp"
        if not suffix or len(data) > _LARGEST:
            raise DatasetError(
                f"{label} has {len(data)} bytes and begins with {data[:8]!r}, expected PNG, JPEG or WEBP"
            )
        name = f"images/{hashlib.sha256(data).hexdigest()[:16]}{suffix}"
        file = self.target / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return name


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError) as error:
        raise DatasetError(f"an image is not base64 ({error})") from None
