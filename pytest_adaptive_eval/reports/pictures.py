"""Small copies of a bank's images for a page, as data URLs."""

from __future__ import annotations

import base64
import io
import stat
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.inputs import read_regular

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

MAX_PIXELS = 20_000_000  #: Decoded, this many pixels take 60 MB.
THUMBNAIL = 5_000  #: Bytes of a thumbnail.
_FILE = 50_000_000  #: Files larger than this are not opened.
#: Longest side in pixels, and qualities as JPEG, tried in this order.
_SIDES, _QUALITIES = (224, 192, 160, 128, 96, 64, 48, 32), (80, 65, 50)
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """Image as a data URL with its size in pixels, or the reason why there is none."""

    source: str = ""
    width: int = 0
    height: int = 0
    sentence: str = ""


_TOO_LARGE = Thumbnail(sentence=f"it has more than {MAX_PIXELS // 10**6} megapixels")


def thumbnail(name: str, root: str, limit: int = THUMBNAIL) -> Thumbnail:
    """Return an image of a bank in at most `limit` bytes, without raising.

    Args:
        name: The image file, relative to `root`.
        root: The bank's folder; files outside of it and symbolic links are not opened.
    """
    try:
        return _thumbnail(name, root, limit)
    except FileNotFoundError:
        return Thumbnail(sentence="its file is missing")
    except Exception as error:  # decoders raise any class, and a report does not depend on a picture
        return Thumbnail(sentence=f"it cannot be read ({type(error).__name__})")


def _thumbnail(name: str, root: str, limit: int) -> Thumbnail:
    base = Path(root).resolve()
    path = base / name
    if not path.is_relative_to(base) or path.resolve(strict=True) != path:
        return Thumbnail(sentence="its file lies outside of the bank's folder")
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > _FILE:
        return Thumbnail(sentence="its file is no image of a sensible size")
    data = read_regular(path, follow=False)
    try:
        from PIL import Image
    except ImportError:
        return _undecoded(data, limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit here is below Pillow's
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as image:
                return _smaller(image, limit) if image.width * image.height <= MAX_PIXELS else _TOO_LARGE
    except Image.DecompressionBombError:
        return _TOO_LARGE


def _smaller(image: ImageFile, limit: int) -> Thumbnail:
    """Return a smaller copy that is decoded and encoded again, so that it holds only pixels."""
    from PIL import Image, ImageOps

    image.draft("RGB", (2 * _SIDES[0], 2 * _SIDES[0]))  # a JPEG is decoded at a fraction of its size
    whole = ImageOps.exif_transpose(image)
    if "A" in whole.getbands() or "transparency" in whole.info:
        layer = whole.convert("RGBA")
        whole = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    whole = whole.convert("L" if whole.mode in ("1", "L", "I;16") else "RGB")
    if max(whole.size) <= _SIDES[0]:  # a drawing keeps its pixels
        out = io.BytesIO()
        whole.save(out, "PNG", optimize=True)
        if out.tell() <= limit:
            return _encoded(out.getvalue(), "png", *whole.size)
    for side in _SIDES:
        whole.thumbnail((side, side))
        for quality in _QUALITIES:
            out = io.BytesIO()
            whole.save(out, "JPEG", quality=quality, optimize=True)
            if out.tell() <= limit:
                return _encoded(out.getvalue(), "jpeg", *whole.size)
    return Thumbnail(sentence="it does not fit into a thumbnail")


def _undecoded(data: bytes, limit: int) -> Thumbnail:
    """Return a small PNG as it is, with the size in its header."""
    if not data.startswith(_PNG) or data[12:16] != b"IHDR" or len(data) > limit:
        return Thumbnail(sentence="a smaller copy of it needs Pillow")
    width, height = struct.unpack(">II", data[16:24])
    if width * height > MAX_PIXELS:
        return _TOO_LARGE
    return _encoded(data, "png", width, height)


def _encoded(data: bytes, form: str, width: int, height: int) -> Thumbnail:
    return Thumbnail(f"data:image/{form};base64,{base64.b64encode(data).decode()}", width, height)
