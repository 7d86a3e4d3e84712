"""Images of a bank are untrusted files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.models import images
from pytest_adaptive_eval.models.images import open_image

Image: Any = pytest.importorskip("PIL.Image", reason="images need pillow (extra hf)")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shapes.bank"
    (folder / "images").mkdir(parents=True)
    return folder


def picture(path: Path, mode: str = "RGB", size: tuple[int, int] = (8, 6), **options: Any) -> Path:
    Image.new(mode, size, 1).save(path, **options)
    return path


def refused(name: str, root: Path | str, *words: str) -> None:
    with pytest.raises(BankError) as caught:
        open_image(name, str(root))
    for word in (name[:80], *words):
        assert repr(word)[1:-1] in str(caught.value)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp"])
def test_the_three_formats(root: Path, name: str) -> None:
    picture(root / "images" / name)
    opened = open_image(f"images/{name}", str(root))
    assert (opened.mode, opened.size) == ("RGB", (8, 6))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "I;16"])
def test_every_mode_becomes_rgb(root: Path, mode: str) -> None:
    picture(root / "a.png", mode)
    assert open_image("a.png", str(root)).mode == "RGB"


def test_a_photograph_is_turned_upright(root: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture(root / "a.jpg", exif=exif)
    assert open_image("a.jpg", str(root)).size == (6, 8)


@pytest.mark.parametrize("format", ["GIF", "BMP", "TIFF", "PPM"])
def test_other_formats_are_refused_whatever_their_name(root: Path, format: str) -> None:
    picture(root / "a.png", format=format)
    refused("a.png", root, "PNG, JPEG, WEBP")


@pytest.mark.parametrize("content", [b"", b"%!PS-Adobe-3.0 EPSF-3.0", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"])
def test_what_is_no_image_is_refused(root: Path, content: bytes) -> None:
    (root / "a.png").write_bytes(content)
    refused("a.png", root)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp"])
def test_a_truncated_image_is_refused(root: Path, name: str) -> None:
    import random

    whole = Image.frombytes("RGB", (64, 64), random.Random(0).randbytes(64 * 64 * 3))
    whole.save(root / name)
    (root / name).write_bytes((root / name).read_bytes()[:-2000])
    refused(name, root, "cannot be read")


def test_size_is_checked_before_decoding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(root / "a.png", "1", (5001, 4000))
    refused("a.png", root, "5001 x 4000", "20 megapixels")
    monkeypatch.setattr(images, "MAX_PIXELS", 5001 * 4000)
    assert open_image("a.png", str(root)).size == (5001, 4000)


@pytest.mark.parametrize("pixels", [100, 10])
def test_a_decompression_bomb_is_refused_without_a_warning(
    root: Path, monkeypatch: pytest.MonkeyPatch, pixels: int
) -> None:
    picture(root / "a.png", "1", (12, 11))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pixels)
    monkeypatch.setattr(images, "MAX_PIXELS", 100)
    refused("a.png", root)


@pytest.mark.parametrize("name", ["../a.png", "images/../../a.png", "images\\a.png", "", "a\0.png"])
def test_names_that_lead_out_are_refused(root: Path, name: str) -> None:
    picture(root.parent / "a.png")
    refused(name, root, "leads out")


def test_an_absolute_name_is_refused_in_a_bank(root: Path) -> None:
    path = picture(root / "a.png")
    refused(str(path), root, "leads out")
    assert open_image(str(path), "").size == (8, 6)


@pytest.mark.parametrize("name", ["https://example.org/a.png", "file:///etc/passwd", "data:image/png;base64,AAAA"])
@pytest.mark.parametrize("rooted", [True, False])
def test_urls_are_refused(root: Path, name: str, rooted: bool) -> None:
    refused(name, root if rooted else "", "URL")


def test_links_are_refused_at_every_step(root: Path) -> None:
    target = picture(root / "images" / "a.png")
    (root / "link.png").symlink_to(target)
    (root / "folder").symlink_to(root / "images")
    refused("link.png", root, "symbolic link")
    refused("folder/a.png", root, "symbolic link")
    refused(str(root / "link.png"), "", "symbolic link")


def test_the_bank_itself_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    picture(root / "a.png")
    (tmp_path / "current").symlink_to(root)
    assert open_image("a.png", str(tmp_path / "current")).size == (8, 6)


def test_folders_missing_files_and_pipes_are_refused(root: Path) -> None:
    refused("images", root, "not a file")
    refused("gone.png", root, "not in the folder")
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "pipe.png")
        refused("pipe.png", root, "not a file")
