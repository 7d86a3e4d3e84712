"""Answers read from coloured pictures, pixel by pixel, and from what the questions say."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np

from pytest_adaptive_eval.tasks import Picture, TaskFamily, distortions
from pytest_adaptive_eval.tasks.drawing import COLOURS, FILLS, SHAPES, Icon, blank, draw_icon

TOLD = r"An icon is solid, hollow \(its outline alone\) or striped\."
OPTIONS = r"\n(?:[A-J]\. \w+\n){10}End with `Answer: <letter>`\."


def parts(pattern: str, prompt: str) -> tuple[str, ...]:
    """The groups of a pattern that is all of the prompt."""
    match = re.fullmatch(pattern, prompt, re.DOTALL)
    assert match, prompt
    return tuple(match.groups())


@functools.cache
def drawn(icon: Icon, size: int) -> Picture:
    """The icon alone, without the white around it."""
    picture = blank(size)
    draw_icon(picture, icon, 0, 0, size)
    return cropped(picture)


def cropped(picture: Picture) -> Picture:
    """The part of a picture that is not white or a line between cells."""
    rows, columns = np.nonzero((picture.min(axis=2) < 200) | (np.ptp(picture, axis=2) > 0))
    return picture[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def recognised(cell: Picture, sizes: tuple[int, ...]) -> Icon:
    """The only kind of icon that is drawn just so."""
    seen = cropped(cell)
    dark = seen.reshape(-1, 3)[seen.reshape(-1, 3).sum(axis=1, dtype=int).argmin()].tolist()
    colour = next(name for name, rgb in COLOURS.items() if list(rgb) == dark)
    kinds = [
        icon
        for icon in (Icon(shape, fill, colour) for shape, fill in itertools.product(SHAPES, FILLS))
        if any(np.array_equal(drawn(icon, size), seen) for size in sizes)
    ]
    (icon,) = kinds
    return icon


def _cells(picture: Picture, n: int, edges: list[int]) -> Iterator[Picture]:
    for row, column in itertools.product(range(n), repeat=2):
        yield picture[edges[row] + 1 : edges[row + 1], edges[column] + 1 : edges[column + 1]]


def read_board(picture: Picture, n: int, share: int = 76) -> list[Icon]:
    """The icons of a board with lines, row by row."""
    pixels = len(picture)
    edges = [i * (pixels - 1) // n for i in range(n + 1)]
    return [recognised(cell, (pixels // n * share // 100,)) for cell in _cells(picture, n, edges)]


def read_scattered(picture: Picture, n: int, shares: tuple[int, ...]) -> list[Icon]:
    """The icons of a picture without lines, which lie in the cells of a grid."""
    cell = len(picture) // n
    blocks = (picture[y : y + cell, x : x + cell] for y, x in itertools.product(range(0, cell * n, cell), repeat=2))
    sizes = tuple(cell * share // 100 for share in shares)
    return [recognised(block, sizes) for block in blocks if block.min() < 255]


def count(icons: list[Icon], words: str) -> str:
    """How many icons have all the properties that are named in the plural."""
    wanted = set(words.removesuffix("es" if words.endswith("sses") else "s").split())
    return str(sum(wanted <= {icon.shape, icon.fill, icon.colour} for icon in icons))


def grid(prompt: str, picture: Picture, level: int) -> str:
    n, _, words = parts(
        rf"The picture shows a grid of (\d+) rows and (\d+) columns of icons\. {TOLD} How many (.*) are in the grid\? "
        "End with `Answer: <number>`.",
        prompt,
    )
    assert int(n) == level + 2
    return count(read_board(picture, int(n)), words)


def icons(prompt: str, picture: Picture, level: int) -> str:
    (words,) = parts(
        rf"The picture shows scattered icons\. {TOLD} How many (.*) are there\? End with `Answer: <number>`.", prompt
    )
    total = 6 + 4 * level
    found = read_scattered(picture, math.isqrt(total + total // 3) + 1, (65, 77, 90))
    assert len(found) == total
    return count(found, words)


def caption(prompt: str, picture: Picture, level: int) -> str:
    (rows,) = parts(
        rf"This text describes the picture.*from the left:\n(.*)\n{TOLD} The text gives a wrong .* there\?{OPTIONS}",
        prompt,
    )
    told = ", ".join(re.findall(r"Row \d+: (.*)\.", rows)).split(", ")
    shown = read_board(picture, level + 1)
    ((wrong, icon),) = [(text, icon) for text, icon in zip(told, shown, strict=True) if text != str(icon)]
    assert wrong.split()[:2] == str(icon).split()[:2]
    return icon.shape


def after(prompt: str, picture: Picture, level: int) -> str:
    order, steps = parts(rf"Take these shapes .* last: (.*)\. Start at .* go (\d+) steps? .* it\?{OPTIONS}", prompt)
    assert int(steps) in (2 * level - 1, 2 * level)
    (icon,) = read_scattered(picture, 1, (45,))
    shapes = order.split(", ")
    return shapes[(shapes.index(icon.shape) + int(steps)) % len(shapes)]


def relation(prompt: str, picture: Picture, level: int) -> str:
    first, moves = parts(rf".* {TOLD} Find the only (.*)\. From its cell go (.*) \(in .* you end\?{OPTIONS}", prompt)
    board = read_board(picture, 6)
    (start,) = [n for n, icon in enumerate(board) if str(icon) == first]
    row, column = divmod(start, 6)
    assert moves.count("then") == level - 1
    for move in moves.split(", then "):
        cells, way = move.split()
        row += {"up": -1, "down": 1}.get(way, 0) * int(cells)
        column += {"left": -1, "right": 1}.get(way, 0) * int(cells)
    return board[row * 6 + column].shape


def undistorted(family: TaskFamily, level: int, seed: int) -> Picture:
    """The picture of a question about distortions, as it was before."""
    clean = {name: lambda rng, picture, level: picture for name in distortions.DISTORTIONS}
    with mock.patch.object(distortions, "DISTORTIONS", clean):
        return family.picture(level, seed)


def damaged(prompt: str, picture: Picture, level: int) -> str:
    """The shape that is asked for, in the picture without its distortion."""
    n, row, column = parts(
        rf"The picture shows (\d) rows of \1 icons, and may be damaged\. Which shape is in row (\d), column (\d)\?"
        rf"{OPTIONS}",
        prompt,
    )
    board = read_board(picture, int(n), {"3": 40, "5": 28}[n])
    return board[(int(row) - 1) * int(n) + int(column) - 1].shape


SOLVERS: dict[str, Callable[[str, Picture, int], str]] = {
    "grid": grid,
    "icons": icons,
    "caption": caption,
    "after": after,
    "relation": relation,
    **dict.fromkeys(distortions.DISTORTIONS, damaged),
}
