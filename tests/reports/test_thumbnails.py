"""Thumbnails: small, decoded, from the bank's folder only, and never an exception."""

from __future__ import annotations

import base64
import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.reports.questions import THUMBNAIL, Thumbnail, thumbnail

image = pytest.importorskip("PIL.Image")


def save(path: Path, size: tuple[int, int], mode: str = "RGB", **options: object) -> Path:
    """A picture of noise."""
    rng = np.random.default_rng(size[0])
    bands = len(mode)
    data = rng.integers(0, 256, (size[1], size[0], bands), dtype=np.uint8)
    image.fromarray(data.squeeze()).save(path, **options)
    return path


def decoded(made: Thumbnail) -> tuple[bytes, Any]:
    head, _, data = made.source.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    raw = base64.b64decode(data, validate=True)
    return raw, image.open(io.BytesIO(raw), formats=("PNG", "JPEG"))


def png(width: int, height: int, more: bytes = b"") -> bytes:
    """A PNG that claims a size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 10)), (b"tEXt", more), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


@pytest.mark.parametrize(
    ("name", "size", "mode"),
    [
        ("a.png", (1200, 300), "RGB"),
        ("a.png", (640, 480), "RGBA"),
        ("a.png", (400, 400), "L"),
        ("a.jpg", (3000, 2000), "RGB"),
        ("a.webp", (500, 700), "RGB"),
    ],
)
def test_a_large_picture_becomes_small(tmp_path: Path, name: str, size: tuple[int, int], mode: str) -> None:
    save(tmp_path / name, size, mode)
    made = thumbnail(name, str(tmp_path))
    raw, opened = decoded(made)
    assert len(raw) <= THUMBNAIL
    assert opened.size == (made.width, made.height)
    assert made.width / made.height == pytest.approx(size[0] / size[1], rel=0.05)
    assert max(opened.size) >= 48
    assert not made.sentence


def test_a_small_drawing_keeps_its_pixels(tmp_path: Path) -> None:
    save(tmp_path / "a.png", (48, 48), "L")
    made = thumbnail("a.png", str(tmp_path))
    _, opened = decoded(made)
    assert opened.format == "PNG"
    assert (np.asarray(opened) == np.asarray(image.open(tmp_path / "a.png"))).all()


def test_nothing_but_pixels_is_passed_on(tmp_path: Path) -> None:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Comment", "SECRET")
    save(tmp_path / "a.png", (40, 40), "L", pnginfo=info)
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes() + b"<script>SECRET</script>")
    raw, _ = decoded(thumbnail("a.png", str(tmp_path)))
    assert b"SECRET" not in raw


def test_transparency_is_shown_on_white(tmp_path: Path) -> None:
    image.new("RGBA", (30, 30), (0, 0, 0, 0)).save(tmp_path / "a.png")
    _, opened = decoded(thumbnail("a.png", str(tmp_path)))
    assert (np.asarray(opened) == 255).all()


@pytest.mark.parametrize("limit", [5_000, 1_500])
def test_the_limit_is_kept(tmp_path: Path, limit: int) -> None:
    save(tmp_path / "a.png", (900, 900))
    raw, _ = decoded(thumbnail("a.png", str(tmp_path), limit))
    assert len(raw) <= limit


def test_too_many_pixels_are_refused_before_decoding(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(20_000, 20_000))
    assert thumbnail("a.png", str(tmp_path)).sentence == "it has more than 20 megapixels"
    (tmp_path / "a.png").write_bytes(png(5_000, 4_001))
    assert thumbnail("a.png", str(tmp_path)).sentence == "it has more than 20 megapixels"


@pytest.mark.parametrize("name", ["../a.png", "/etc/passwd", "link.png", "folder/a.png", "x/../../a.png"])
def test_nothing_outside_of_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "bank"
    inside.mkdir()
    save(tmp_path / "a.png", (30, 30))
    (inside / "link.png").symlink_to(tmp_path / "a.png")
    (inside / "folder").symlink_to(tmp_path)
    made = thumbnail(name, str(inside))
    assert not made.source
    assert made.sentence in ("its file lies outside of the bank's folder", "its file is missing")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("gone.png", None, "its file is missing"),
        ("a.png", b"", "it cannot be read (UnidentifiedImageError)"),
        ("a.png", b"GIF89a\x01\x00\x01\x00", "it cannot be read (UnidentifiedImageError)"),
        ("a.png", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "it cannot be read (UnidentifiedImageError)"),
        ("a\0b.png", None, "it cannot be read (ValueError)"),
        (".", None, "its file is not an image of a sensible size"),
    ],
)
def test_what_is_no_picture_is_said(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert thumbnail(name, str(tmp_path)) == Thumbnail(sentence=sentence)


@given(data=st.binary(max_size=200), cut=st.integers(0, 300))
def test_no_file_raises(tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int) -> None:
    folder = tmp_path_factory.mktemp("pictures")
    whole = png(16, 16, data)
    (folder / "a.png").write_bytes(whole[:cut] + data + whole[cut:])
    made = thumbnail("a.png", str(folder))
    assert bool(made.source) != bool(made.sentence)


def test_a_thumbnail_needs_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "small.png", (20, 10), "L")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert thumbnail("small.png", str(tmp_path)) == Thumbnail(sentence="a smaller copy of it needs Pillow")
