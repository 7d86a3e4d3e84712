"""Distortions of pictures in ten strengths, and task families that ask what can still be seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from pytest_adaptive_eval.tasks.drawing import SHAPES, Icon, board, noise
from pytest_adaptive_eval.tasks.family import Picture, Question
from pytest_adaptive_eval.tasks.scenes import PIXELS, choice_question, sized_family
from pytest_adaptive_eval.types import Ints

#: Strengths of every distortion; the first leaves a picture as it is.
LEVELS = 10
#: Grains of noise along the longer side of a picture.  They are larger than a pixel, so that a model that makes its
#: pictures smaller does not average them away.
_GRAINS = 224
#: Tiles along the longer side, of which `_occlude` covers some.
_TILES = 28
#: Standard deviation of the noise over blurred and pale pictures, in grey levels.  Without it arithmetic could undo
#: what hides the picture from an eye.
_SENSOR_NOISE = 6


@dataclass(frozen=True, slots=True)
class Distortion:
    """Distortion of pictures in colour, in `LEVELS` strengths.

    Args:
        strengths: One per level, the first without effect.
        distort: ``distort(rng, picture, strength)`` returns the distorted picture, of the same shape.
    """

    knob: str
    strengths: tuple[int, ...]
    distort: Callable[[random.Random, Picture, int], Picture]

    def __call__(self, rng: random.Random, picture: Picture, level: int) -> Picture:
        """Return a picture distorted at a level, from 1 (not at all) to `LEVELS`."""
        if level == 1:
            return picture
        return self.distort(rng, picture, self.strengths[level - 1])


def _rounded(values: Ints) -> Picture:
    return np.asarray(np.clip(values, 0, 255), dtype=np.uint8)


def _stretched(coarse: Ints, height: int, width: int) -> Ints:
    """Return an array, shape (h, w, ...), enlarged to (height, width, ...) by repeating its entries."""
    coarse_height, coarse_width = coarse.shape[:2]
    rows = np.arange(height) * coarse_height // height
    columns = np.arange(width) * coarse_width // width
    return np.asarray(coarse[rows[:, None], columns])


def _divided(picture: Picture, parts: int) -> tuple[int, int]:
    """Return into how many rows and columns a picture is divided, with at most `parts` along its longer side."""
    height, width = picture.shape[:2]
    longer = max(height, width)
    parts = min(parts, longer)
    return max(1, height * parts // longer), max(1, width * parts // longer)


def _noise(rng: random.Random, picture: Picture, deviation: int) -> Picture:
    coarse = (noise(rng, *_divided(picture, _GRAINS), 3) * deviation + 128) // 256
    return _rounded(picture + _stretched(coarse, *picture.shape[:2]))


def _boxed(values: Ints, radius: int, axis: int) -> Ints:
    """Return the means of 2 * radius + 1 neighbours along an axis; the edge is repeated."""
    width = 2 * radius + 1
    padding = [(0, 0)] * values.ndim
    padding[axis] = (radius + 1, radius)
    total = np.cumsum(np.pad(values, padding, mode="edge"), axis=axis)
    n = values.shape[axis]
    upper = np.take(total, range(width, width + n), axis=axis)
    lower = np.take(total, range(n), axis=axis)
    return np.asarray((upper - lower + radius) // width)


def _blur(rng: random.Random, picture: Picture, radius: int) -> Picture:
    """Blur by three box filters, nearly a Gaussian; the radius of each is for pictures of `PIXELS`."""
    values = picture.astype(np.int64)
    for axis in (0, 1) * 3:
        values = _boxed(values, max(1, radius * max(picture.shape) // PIXELS), axis)
    return _noise(rng, _rounded(values), _SENSOR_NOISE)


def _pale(rng: random.Random, picture: Picture, permille: int) -> Picture:
    """Reduce differences from middle grey to a share."""
    differences = picture.astype(np.int64) - 128
    pale = 128 + (differences * permille + 500) // 1000
    return _noise(rng, _rounded(pale), _SENSOR_NOISE)


def _coarse(_: random.Random, picture: Picture, samples: int) -> Picture:
    """Average blocks, `samples` of them along the longer side."""
    rows, columns = _divided(picture, samples)
    values = picture.astype(np.int64)
    for axis, parts in enumerate((rows, columns)):
        edges = np.arange(parts + 1) * values.shape[axis] // parts
        shape = [1, 1, 1]
        shape[axis] = -1
        values = np.add.reduceat(values, edges[:-1], axis=axis) // np.diff(edges).reshape(shape)
    return _rounded(_stretched(values, *picture.shape[:2]))


def _occlude(rng: random.Random, picture: Picture, percent: int) -> Picture:
    """Cover a share of the tiles with grey."""
    rows, columns = _divided(picture, _TILES)
    n = rows * columns
    covered = np.zeros(n, dtype=np.int64)
    covered[rng.sample(range(n), n * percent // 100)] = 1
    tiles = _stretched(covered.reshape(rows, columns), *picture.shape[:2])
    return np.where(tiles[:, :, None] == 1, np.uint8(128), picture)


#: Quantisation tables of ITU-T T.81, annex K: luminance and chrominance.
_LUMINANCE = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
_CHROMINANCE = np.full((8, 8), 99)
_CHROMINANCE[:4, :4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]]
#: Cosine transform of 8 values, times 4096 and rounded, so that all that follows is in whole numbers.
_COSINES = np.rint(
    4096 * np.sqrt(np.where(np.arange(8) == 0, 1 / 8, 1 / 4))[:, None]
    * np.cos(np.pi * np.outer(np.arange(8), 2 * np.arange(8) + 1) / 16)
).astype(np.int64)  # fmt: skip


def _quantised(plane: Ints, table: Ints) -> Ints:
    """Return a plane, shape (height, width), after quantising the cosine transform of its blocks of 8 x 8."""
    height, width = plane.shape
    padded = np.pad(plane - 128, ((0, -height % 8), (0, -width % 8)), mode="edge")
    rows, columns = (n // 8 for n in padded.shape)
    blocks = padded.reshape(rows, 8, columns, 8).swapaxes(1, 2)
    unit = table << 24
    coefficients = (2 * (_COSINES @ blocks @ _COSINES.T) + unit) // (2 * unit) * table
    restored = (_COSINES.T @ coefficients @ _COSINES + (1 << 23)) >> 24
    return np.asarray(restored.swapaxes(1, 2).reshape(padded.shape)[:height, :width] + 128)


def _jpeg(_: random.Random, picture: Picture, percent: int) -> Picture:
    """Lose what JPEG loses with its tables scaled to a percentage, with colour at half the resolution."""
    of_luminance = np.clip((_LUMINANCE * percent + 50) // 100, 1, 32767)
    of_chrominance = np.clip((_CHROMINANCE * percent + 50) // 100, 1, 32767)
    red, green, blue = np.moveaxis(picture.astype(np.int64), 2, 0)
    luminance = (299 * red + 587 * green + 114 * blue + 500) // 1000
    y = _quantised(luminance, of_luminance)
    chrominances = []
    for plane in ((blue - luminance) * 564 // 1000 + 128, (red - luminance) * 713 // 1000 + 128):
        coarse = _quantised(_halved(plane), of_chrominance)
        chrominances.append(_stretched(coarse, *luminance.shape) - 128)
    cb, cr = chrominances
    red = y + 1402 * cr // 1000
    green = y - (344 * cb + 714 * cr) // 1000
    blue = y + 1772 * cb // 1000
    return _rounded(np.stack([red, green, blue], axis=2))


def _halved(plane: Ints) -> Ints:
    """Return the means of blocks of 2 x 2; the edge is repeated."""
    padded = np.pad(plane, [(0, n % 2) for n in plane.shape], mode="edge")
    left = padded[::2, ::2] + padded[1::2, ::2]
    right = padded[::2, 1::2] + padded[1::2, 1::2]
    return np.asarray((left + right + 2) // 4)


#: Distortions by name, each with its strengths by level.
DISTORTIONS: Mapping[str, Distortion] = MappingProxyType(
    {
        "noise": Distortion(
            "noise of growing standard deviation, 0 to 1000 grey levels",
            (0, 40, 60, 90, 140, 200, 300, 450, 680, 1000),
            _noise,
        ),
        "blur": Distortion("blur of growing radius", (0, 2, 4, 7, 10, 14, 18, 24, 30, 38), _blur),
        "jpeg": Distortion(
            "JPEG with quantisation tables times 2 to 100 (quality 25 to below 1)",
            (0, 200, 500, 1000, 1700, 2500, 3500, 5000, 7000, 10_000),
            _jpeg,
        ),
        "low_resolution": Distortion(
            "fewer and fewer samples along the side, 112 to 12", (448, 112, 80, 56, 44, 36, 28, 22, 16, 12), _coarse
        ),
        "occlusion": Distortion(
            "share of the picture that is covered, 20 % to 97 %", (0, 20, 35, 50, 60, 70, 80, 88, 93, 97), _occlude
        ),
        "contrast": Distortion("contrast falling to 0.8 %", (1000, 500, 250, 125, 64, 45, 32, 22, 13, 8), _pale),
    }
)

#: Rows and columns of the board that is distorted, and an icon's share of its cell in percent.  JPEG spares icons that
#: are much larger than its blocks.
_BOARD, _BOARDS = (3, 40), MappingProxyType({"jpeg": (5, 28)})


def _draw(name: str, rng: random.Random, level: int, pixels: int) -> Question:
    n, share = _BOARDS.get(name, _BOARD)
    icons = [Icon.drawn(rng) for _ in range(n * n)]
    row = rng.randrange(n)
    column = rng.randrange(n)
    prompt = (
        f"The picture shows {n} rows of {n} icons, and may be damaged. Which shape is in row {row + 1}, column "
        f"{column + 1}?"
    )
    seed = rng.getrandbits(64)

    def render() -> Picture:
        return DISTORTIONS[name](random.Random(seed), board(icons, n, pixels, share), level)

    return choice_question(rng, prompt, icons[row * n + column].shape, SHAPES, render)


FAMILIES = tuple(
    sized_family(name, distortion.knob, LEVELS, 0.1, partial(_draw, name), "choice")
    for name, distortion in DISTORTIONS.items()
)
