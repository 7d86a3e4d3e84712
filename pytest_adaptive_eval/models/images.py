"""Open images of items, which are untrusted."""

from __future__ import annotations

import contextlib
import hashlib
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.item import Item, canonical_json, hash_of_content

if TYPE_CHECKING:
    from PIL.Image import Image

#: Upper limit of pixels; decoded, they take 60 MB.
MAX_PIXELS = 20_000_000

FORMATS = ("PNG", "JPEG", "WEBP")
_ASKED = frozenset({"prompt", "messages", "turns", "choices", "tools"})  #: Fields of an item that a subject reads.


def open_image(path: str, root: str) -> Image:
    """Decode an image of a bank to RGB.

    Args:
        path: Relative to `root`. Without a root it comes from the test's own code and is absolute or relative to the
            working directory.
        root: The bank's folder; no part of `path` below it may be a symbolic link.

    Returns:
        Mode RGB, upright, decoded in full.

    Raises:
        BankError: The file is outside the folder, is not a PNG, JPEG or WEBP, has more than 20 megapixels, or is
            damaged.
    """
    from PIL import ImageOps

    with _opened(path, root) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


@contextlib.contextmanager
def _opened(path: str, root: str) -> Iterator[Image]:
    """Open an image and read its header only, until it is decoded."""
    from PIL import Image

    file = _locate(path, root)
    try:
        # Pillow only warns at a larger size
        with open_regular(file, follow=False) as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(stream, formats=FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise BankError(
                        f"image {path!r} has {image.width} x {image.height} pixels, expected at most "
                        f"{MAX_PIXELS // 10**6} megapixels; scale it down"
                    )
                yield image
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise BankError(
            f"image {path!r} cannot be read as {', '.join(FORMATS)}: {error}; save it in one of these formats"
        ) from error


def image_hash(path: str, root: str) -> str:
    """Return the SHA-256 of an image file; parameters as of `open_image`. Raises BankError if it cannot be read."""
    file = _locate(path, root)
    try:
        with open_regular(file, follow=False) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BankError(f"image {path!r} cannot be read: {error}; fix its permissions") from error


def question_hash(item: Item) -> str:
    """Return the first 16 hex digits of SHA-256 over what an item asks: texts, choices, tools and content of pictures.

    Its bank's form counts, without system text, template and examples of an evaluation.
    """
    plain = item.plain or item
    asked = {}
    for name, value in plain.to_json().items():
        if name in _ASKED:
            asked[name] = value
    pictures: list[str] = []
    for path in plain.images:
        try:
            pictures.append(image_hash(path, plain.root))
        except BankError:  # it is not there, and whoever reads it says so
            pictures.append("")
    return hash_of_content(canonical_json([asked, pictures]).encode("ascii"))


def _locate(path: str, root: str) -> Path:
    """Return the regular file at `path`, without following links below `root`."""
    check_faults(_path_faults(path, root), f"image {path[:80]!r}", BankError)
    file = Path(root)
    for part in PurePosixPath(path).parts if root else (path,):
        file /= part
        try:
            mode = file.lstat().st_mode
        except (OSError, ValueError) as error:
            raise BankError(f"image {path!r} is not in the folder {root or '.'!r} ({error}); put it there") from error
        if stat.S_ISLNK(mode):
            break
    if not stat.S_ISREG(mode):
        raise BankError(f"image {path!r}: {file} is a symbolic link, or not a file; put the image file itself there")
    return file


def _path_faults(path: str, root: str) -> Iterator[str]:
    parts = PurePosixPath(path)
    if "://" in path or path.startswith("data:"):
        yield "a URL, expected a file in the bank's folder; save it there"
    absolute = bool(root) and parts.is_absolute()
    if not path or set(path) & set("\0\\") or ".." in parts.parts or absolute:
        yield f"it leads out of the bank's folder {root!r}; use a relative path without '..'"
