"""Icons in colour, drawn with arithmetic that every platform rounds alike."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from pytest_adaptive_eval.tasks.family import Picture
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Corners of shapes that are polygons, from -100 to 100, to the right and down.
_CORNERS: Mapping[str, Sequence[tuple[int, int]]] = MappingProxyType(
    {
        "square": ((-82, -82), (82, -82), (82, 82), (-82, 82)),
        "triangle": ((0, -92), (98, 80), (-98, 80)),
        "diamond": ((0, -100), (66, 0), (0, 100), (-66, 0)),
        "star": (
            (0, -100), (25, -34), (95, -31), (40, 13), (59, 81), (0, 42), (-59, 81), (-40, 13), (-95, -31), (-25, -34),
        ),
        "cross": (
            (-32, -95), (32, -95), (32, -32), (95, -32), (95, 32), (32, 32), (32, 95), (-32, 95), (-32, 32), (-95, 32),
            (-95, -32), (-32, -32),
        ),
        "arrow": ((-98, -30), (8, -30), (8, -80), (98, 0), (8, 80), (8, 30), (-98, 30)),
        "hourglass": ((-78, -95), (78, -95), (14, 0), (78, 95), (-78, 95), (-14, 0)),
    }
)  # fmt: skip
#: Shapes of an icon.
SHAPES = ("circle", "square", "triangle", "diamond", "star", "heart", "cross", "moon", "arrow", "hourglass")
#: Fills of an icon: all of the shape, its outline alone, or stripes inside the outline.
FILLS = ("solid", "hollow", "striped")
#: Colours of an icon, in red, green and blue.
COLOURS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "red": (220, 30, 30),
        "orange": (255, 150, 0),
        "green": (20, 150, 50),
        "blue": (30, 80, 220),
        "purple": (165, 40, 205),
        "black": (20, 20, 20),
    }
)
WHITE, LINE = 255, 200
#: Samples along the side of an icon, at least, unless each pixel has `_MOST_SAMPLES` along its own.
_SAMPLES, _MOST_SAMPLES = 192, 4


@dataclass(frozen=True, slots=True)
class Icon:
    """Kind of an icon."""

    shape: str
    fill: str
    colour: str

    def __str__(self) -> str:
        return f"{self.fill} {self.colour} {self.shape}"

    @classmethod
    def drawn(cls, rng: random.Random) -> Icon:
        """Return one of the kinds, each as likely as the others."""
        return cls(rng.choice(SHAPES), rng.choice(FILLS), rng.choice(list(COLOURS)))


def plural_of(word: str) -> str:
    """Return the plural of a description that ends with a shape."""
    return word + ("es" if word.endswith("s") else "s")


def _inside(corners: Sequence[tuple[int, int]], x: Array, y: Array) -> Bools:
    """Return which points have an odd number of the polygon's sides to their right."""
    inside = np.zeros(x.shape, dtype=bool)
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        is_beside = (y1 > y) != (y2 > y)  # never for a horizontal side, whose height of 0 must not be divided by
        crossing = (x2 - x1) * (y - y1) / ((y2 - y1) or 1) + x1
        inside ^= is_beside & (x < crossing)
    return inside


def _solid(shape: str, size: int) -> Bools:
    """Return the mask of a shape, shape (size, size)."""
    line = (2.0 * np.arange(size) + 1 - size) * 100 / size
    x, y = np.meshgrid(line, line)
    if shape in _CORNERS:
        return _inside(_CORNERS[shape], x, y)
    if shape == "heart":  # the curve (x^2 + y^2 - 1)^3 = x^2 y^3, with y upwards
        x = x / 82
        y = (8 - y) / 82
        rest = x * x + y * y - 1
        return np.asarray(rest * rest * rest <= x * x * y * y * y)
    disc = x * x + y * y <= 96 * 96
    if shape == "moon":
        disc &= (x - 58) * (x - 58) + y * y > 78 * 78
    return np.asarray(disc)


def _shrunk(mask: Bools, steps: int) -> Bools:
    """Return a mask without what is nearer than about `steps` to its edge."""
    for step in range(steps):
        framed = np.pad(mask, 1)
        beside = framed[1:-1, :-2] & framed[1:-1, 2:]
        above_and_below = framed[:-2, 1:-1] & framed[2:, 1:-1]
        mask = beside & above_and_below & mask
        if step % 2:  # squares and diamonds in turn shrink by an octagon
            upper_corners = framed[:-2, :-2] & framed[:-2, 2:]
            lower_corners = framed[2:, :-2] & framed[2:, 2:]
            mask = mask & upper_corners & lower_corners
    return mask


@functools.lru_cache(maxsize=512)
def _coverage(shape: str, fill: str, size: int) -> Ints:
    """Return the share of each pixel that a shape covers, shape (size, size), from 0 to 255."""
    samples = max(1, min(_MOST_SAMPLES, math.ceil(_SAMPLES / size)))
    side = size * samples
    mask = _solid(shape, side)
    if fill == "hollow":
        mask = mask & ~_shrunk(mask, max(1, side // 11))
    if fill == "striped":
        outline = mask & ~_shrunk(mask, max(1, side // 16))
        stripe = max(1, side // 10)
        rows, columns = np.indices(mask.shape)
        mask = outline | mask & ((rows + columns) // stripe % 2 == 0)
    counted = mask.reshape(size, samples, size, samples).sum(axis=(1, 3), dtype=np.int64)
    return np.asarray(counted * 255 // samples**2)


def noise(rng: random.Random, *shape: int) -> Ints:
    """Return noise of mean 0 and standard deviation 256, almost normal, of a shape.

    It is the sum of twelve uniform bytes. Unlike a normal variate it needs no logarithm, which platforms round
    differently.
    """
    parts = np.frombuffer(rng.randbytes(12 * math.prod(shape)), dtype=np.uint8).reshape(*shape, 12)
    return np.asarray(parts.sum(axis=-1, dtype=np.int64) - 1530)


def blank(pixels: int) -> Picture:
    """Return a white picture in colour, shape (pixels, pixels, 3)."""
    return np.full((pixels, pixels, 3), WHITE, dtype=np.uint8)


def draw_icon(picture: Picture, icon: Icon, y: int, x: int, size: int) -> None:
    """Draw an icon of `size` pixels into a picture in colour, with its upper left corner at (y, x)."""
    part = picture[y : y + size, x : x + size]
    cover = _coverage(icon.shape, icon.fill, size)[:, :, None]
    part[:] = (part * (255 - cover) + np.array(COLOURS[icon.colour]) * cover + 127) // 255


def board(icons: Iterable[Icon], n: int, pixels: int, share: int = 76) -> Picture:
    """Draw icons row by row, `n` a row, into a square picture with lines between the cells.

    Args:
        icons: As many as there are cells.
        share: Side of an icon, in percent of its cell's.
    """
    picture = blank(pixels)
    edges = [i * (pixels - 1) // n for i in range(n + 1)]
    for edge in edges:
        picture[edge, :] = picture[:, edge] = LINE
    size = pixels // n * share // 100
    centred = []
    for start, end in pairwise(edges):
        centred.append(start + (end - start - size) // 2 + 1)
    for i, icon in enumerate(icons):
        row, column = divmod(i, n)
        draw_icon(picture, icon, centred[row], centred[column], size)
    return picture
