"""Distortions hide more with every level, by the arithmetic that they are named after."""

from __future__ import annotations

import hashlib
import io
import itertools
import random

import numpy as np
import pytest

from pytest_adaptive_eval.tasks.distortions import DISTORTIONS, LEVELS, Distortion
from pytest_adaptive_eval.tasks.drawing import COLOURS, Icon, blank, board
from pytest_adaptive_eval.tasks.family import Picture

ICONS = [Icon.drawn(random.Random(n)) for n in range(25)]
CLEAN = board(ICONS, 5, 448, 36)


@pytest.fixture(params=DISTORTIONS.values(), ids=list(DISTORTIONS))
def distortion(request: pytest.FixtureRequest) -> Distortion:
    found: Distortion = request.param
    return found


#: SHA-256 (first 16 digits) of a picture at all levels.  A change here changes every item of the family.
GOLDEN = {
    "noise": "c1cd1a45fd15eb4a",
    "blur": "b165b7bacd126dda",
    "jpeg": "a8dcac83427dcde8",
    "low_resolution": "4effeafde3cea164",
    "occlusion": "9617c737091b307d",
    "contrast": "2560d1f76eac6556",
}


def frozen(distortion: Distortion) -> str:
    total = hashlib.sha256()
    for level in range(1, LEVELS + 1):
        total.update(distortion(random.Random(level), CLEAN, level).tobytes())
    return total.hexdigest()[:16]


@pytest.mark.slow
def test_golden() -> None:
    assert {name: frozen(distortion) for name, distortion in DISTORTIONS.items()} == GOLDEN


def distance(a: Picture, b: Picture) -> float:
    return float(abs(a.astype(int) - b.astype(int)).mean())


@pytest.mark.fast_rows(3)
def test_each_level_has_less_in_common_with_the_picture(distortion: Distortion) -> None:
    assert distortion(random.Random(1), CLEAN, 1) is CLEAN
    levels = [distortion(random.Random(1), CLEAN, level) for level in range(1, LEVELS + 1)]
    kept = [float(np.corrcoef(picture.ravel(), CLEAN.ravel())[0, 1]) for picture in levels]
    assert all(before > after for before, after in itertools.pairwise(kept))


def test_a_distortion_is_drawn_from_its_seed(distortion: Distortion) -> None:
    first = distortion(random.Random(1), CLEAN, 6)
    assert np.array_equal(first, distortion(random.Random(1), CLEAN, 6))
    assert first.dtype == np.uint8


@pytest.mark.parametrize("shape", [(448, 300), (75, 448), (9, 7), (1, 448)])
def test_pictures_of_any_shape_keep_it(distortion: Distortion, shape: tuple[int, int]) -> None:
    assert distortion(random.Random(1), CLEAN[: shape[0], : shape[1]], LEVELS).shape == (*shape, 3)


@pytest.mark.slow
def test_a_larger_picture_is_hidden_as_much() -> None:
    large = board(ICONS, 5, 896, 36)
    for name, distortion in DISTORTIONS.items():
        near = distance(distortion(random.Random(2), CLEAN, 7), CLEAN)
        far = distance(distortion(random.Random(2), large, 7), large)
        # The blocks of JPEG are of 8 pixels, whatever the size.
        assert far == pytest.approx(near, rel=0.6 if name == "jpeg" else 0.1)


def test_noise_has_the_deviation_that_it_says() -> None:
    grey = np.full((448, 448, 3), 128, dtype=np.uint8)
    noisy = DISTORTIONS["noise"](random.Random(3), grey, 2)
    assert float(noisy.std()) == pytest.approx(40, rel=0.02)
    assert np.array_equal(noisy[::2, ::2], noisy[1::2, 1::2])  # a grain is 2 pixels wide
    assert abs(np.corrcoef(noisy[::2, ::2, 0].ravel(), noisy[::2, ::2, 1].ravel())[0, 1]) < 0.02


def test_occlusion_covers_the_share_that_it_says() -> None:
    covered = DISTORTIONS["occlusion"](random.Random(4), blank(448), 6)
    assert float((covered == 128).mean()) == pytest.approx(0.7, abs=0.002)


def test_low_resolution_has_so_many_samples() -> None:
    coarse = DISTORTIONS["low_resolution"](random.Random(5), CLEAN, 2)
    assert np.array_equal(coarse, coarse[::4, ::4].repeat(4, axis=0).repeat(4, axis=1))
    assert distance(coarse[::4, ::4], CLEAN.reshape(112, 4, 112, 4, 3).mean(axis=(1, 3)).astype(np.uint8)) < 0.5


def test_contrast_is_the_share_that_it_says() -> None:
    pale = DISTORTIONS["contrast"](random.Random(6), blank(448), 3)
    assert float(pale.mean()) == pytest.approx(128 + 127 * 0.25, abs=0.5)


def test_blur_spreads_as_three_box_filters_do() -> None:
    bar = np.full((448, 448, 3), 100, dtype=np.uint8)
    bar[200:248] = 200
    rows = DISTORTIONS["blur"](random.Random(7), bar, 7).astype(float).mean(axis=(1, 2))[140:308] - 100
    places = np.arange(140, 308)
    centre = (rows * places).sum() / rows.sum()
    deviation = ((rows * (places - centre) ** 2).sum() / rows.sum()) ** 0.5
    assert centre == pytest.approx(223.5, abs=0.3)
    box = ((48**2 - 1) / 12 + 3 * (37**2 - 1) / 12) ** 0.5  # the bar, and boxes of 2 * 18 + 1 pixels
    assert deviation == pytest.approx(box, rel=0.03)


@pytest.mark.parametrize(("level", "quality"), [(2, 25), (3, 10), (4, 5)])
def test_jpeg_is_what_a_codec_gives(level: int, quality: int) -> None:
    image = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    tables = [[min(q * 50 // quality, 255) for q in table] for table in _tables(image)]
    image.fromarray(CLEAN).save(stream, "JPEG", qtables=tables, subsampling="4:2:0")
    with image.open(stream) as decoded:
        theirs = np.array(decoded.convert("RGB"))
    ours = DISTORTIONS["jpeg"](random.Random(8), CLEAN, level)
    # Decoders smooth the colour between its samples, and ours repeats them; baseline tables end at 255.
    assert distance(ours, theirs) < 0.35 * distance(theirs, CLEAN)


def _tables(image: object) -> list[list[int]]:
    """The tables that a codec uses at quality 50, where they are those of the standard."""
    stream = io.BytesIO()
    image.fromarray(CLEAN).save(stream, "JPEG", quality=50)  # type: ignore[attr-defined]  # pillow's module
    with image.open(stream) as written:  # type: ignore[attr-defined]
        return [list(written.quantization[n]) for n in (0, 1)]


def test_kinds_of_icons_differ_at_a_glance() -> None:
    kinds = {(shape, fill, colour) for icon in (Icon.drawn(random.Random(n)) for n in range(4000))
             for shape, fill, colour in [(icon.shape, icon.fill, icon.colour)]}  # fmt: skip
    assert len(kinds) == 180
    drawn = {kind: board([Icon(*kind)], 1, 40, 80).astype(int) for kind in sorted(kinds) if kind[2] in ("red", "blue")}
    names = list(drawn)
    stack = np.stack([drawn[name].ravel() for name in names])
    for n, row in enumerate(stack):
        apart = (abs(stack[n + 1 :] - row).reshape(len(names) - n - 1, 1600, 3).max(axis=2) > 100).sum(axis=1)
        assert (apart >= 40).all(), (names[n], [names[n + 1 + i] for i in np.nonzero(apart < 40)[0]])
    assert len(COLOURS) == 6
