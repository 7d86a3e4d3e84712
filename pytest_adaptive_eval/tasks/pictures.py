"""Task families that are asked about a picture, drawn by code in whole numbers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.tasks.answers import by_choice, by_number
from pytest_adaptive_eval.tasks.family import Picture, Question, TaskFamily

__all__ = ["AFTER", "CAPTION", "GRID", "ICONS", "NOISE", "SHAPES", "icon", "save_png"]

#: The shapes an icon can have.
SHAPES = ("square", "frame", "disc", "ring", "diamond", "plus", "cross", "triangle")

SIDE = 48
CELL = 8
#: Cells of the larger grids, drawn so that a general model sees the shapes.
ICON_CELL = 32
DARK, BRIGHT = 40, 220


def icon(shape: str, size: int) -> NDArray[np.bool_]:
    """Mask of a shape, shape (size, size).

    Only whole numbers are used: coordinates are doubled to put the centre at 0.
    """
    y, x = np.mgrid[1 - size : size : 2, 1 - size : size : 2]
    ax, ay = abs(x), abs(y)
    stroke = max(1, size // 6) * 2
    masks: dict[str, NDArray[np.bool_]] = {
        "square": ax < size,
        "frame": np.maximum(ax, ay) > size - 1 - stroke,
        "disc": x * x + y * y <= size * size,
        "ring": (x * x + y * y <= size * size) & (x * x + y * y > (size - stroke) ** 2),
        "diamond": ax + ay <= size,
        "plus": np.minimum(ax, ay) < stroke,
        "cross": abs(ax - ay) < stroke,
        "triangle": 2 * ax <= y + size,
    }
    return masks[shape]


def _canvas() -> Picture:
    return np.full((SIDE, SIDE), DARK, dtype=np.uint8)


def _board(cells: list[str], n: int) -> Picture:
    picture, size = _canvas(), CELL - 2
    for i, shape in enumerate(cells):
        top, left = (i // n) * CELL + 1, (i % n) * CELL + 1
        picture[top : top + size, left : left + size][icon(shape, size)] = BRIGHT
    return picture


def _grid(rng: random.Random, level: int) -> Question:
    cells = level * level
    wanted, *others = rng.sample(SHAPES, 3)
    if level > 1 and rng.randrange(2):
        # The count is drawn evenly, so that no single answer is right more than one time in five.
        count = rng.randrange(min(cells, 9) + 1)
        board = [wanted] * count + [rng.choice(others) for _ in range(cells - count)]
        question = Question(
            f"How many cells show {wanted}?", str(count), lambda: _board(board, level), by_number(str(count))
        )
    else:
        # Two of each other shape where there is room: the answer is the only shape in a single cell.
        fill = others * 2 if level > 2 else others[:1] * 3
        board = [wanted, *fill[: cells - 1], *(rng.choice(others) for _ in range(cells - 5))]
        ask = "Which shape is in one cell only?"
        question = Question(ask, wanted, lambda: _board(board, level), by_choice(wanted, SHAPES))
    rng.shuffle(board)
    return question


def _caption(rng: random.Random, level: int) -> Question:
    cells = [rng.choice(SHAPES) for _ in range(level * level)]
    row, column = rng.randrange(level), rng.randrange(level)
    line = cells[row * level : (row + 1) * level]
    prompt = f"Row {row + 1} holds {', '.join(line)}. Which shape is in row {row + 1}, column {column + 1}?"
    return Question(prompt, line[column], lambda: _board(cells, level), by_choice(line[column], SHAPES))


def _in_noise(rng: random.Random, shape: str, sigma: int) -> Picture:
    """A shape somewhere in a picture, and noise over all of it."""
    size = 24
    top, left = rng.randrange(SIDE - size + 1), rng.randrange(SIDE - size + 1)
    picture = _canvas()
    picture[top : top + size, left : left + size][icon(shape, size)] = BRIGHT
    # The sum of twelve even bytes has standard deviation 256 and is all but normal; unlike a normal
    # variate it needs no logarithm, so that no two platforms can round it differently.
    parts = np.frombuffer(rng.randbytes(12 * SIDE * SIDE), dtype=np.uint8).reshape(SIDE, SIDE, 12)
    noise = (parts.sum(axis=2, dtype=np.int64) - 1530) * sigma // 256
    return np.asarray(np.clip(picture + noise, 0, 255), dtype=np.uint8)


def _noise(rng: random.Random, level: int) -> Question:
    shape = rng.choice(SHAPES)
    return Question(
        "Which shape is in the noise?", shape, lambda: _in_noise(rng, shape, 50 * (level - 1)), by_choice(shape, SHAPES)
    )


def _after(rng: random.Random, level: int) -> Question:
    shown, steps = rng.randrange(len(SHAPES)), rng.randint(1, level)
    wanted = SHAPES[(shown + steps) % len(SHAPES)]
    prompt = (
        f"In the order {', '.join(SHAPES)}, and round again: which shape comes {steps} after the one in the picture?"
    )
    return Question(prompt, wanted, lambda: _in_noise(rng, SHAPES[shown], 50), by_choice(wanted, SHAPES))


def _icons(rng: random.Random, level: int) -> Question:
    n = level + 1
    wanted, *others = rng.sample(SHAPES, 4)
    # The count is drawn evenly, as in a small grid.
    count = rng.randrange(min(n * n, 12) + 1)
    board = [wanted] * count + [rng.choice(others) for _ in range(n * n - count)]
    rng.shuffle(board)

    def render() -> Picture:
        picture = np.full((ICON_CELL * n, ICON_CELL * n), DARK, dtype=np.uint8)
        size = ICON_CELL - 4
        for i, shape in enumerate(board):
            top, left = (i // n) * ICON_CELL + 2, (i % n) * ICON_CELL + 2
            picture[top : top + size, left : left + size][icon(shape, size)] = BRIGHT
        return picture

    return Question(f"How many {wanted} icons are in the picture? End with the number.", str(count), render)


def save_png(picture: Picture, path: Path) -> None:
    """Write a picture as a PNG file (needs Pillow)."""
    from PIL import Image

    Image.fromarray(picture).save(path, format="PNG", optimize=True)


GRID = TaskFamily("grid", "rows and columns of the grid", 6, 0.13, _grid, "exact", pictorial=True)
CAPTION = TaskFamily(
    "caption", "rows and columns of a grid that the prompt tells", 6, 0.13, _caption, "exact", pictorial=True
)
AFTER = TaskFamily(
    "after", "most steps from the shape shown to the one wanted", 7, 0.13, _after, "exact", pictorial=True
)
NOISE = TaskFamily("noise", "noise of standard deviation 50 * (level - 1)", 20, 0.13, _noise, "exact", pictorial=True)
ICONS = TaskFamily(
    "icons", "rows and columns of the grid, level + 1", 11, 0.21, _icons, "numeric", pictorial=True, max_tokens=512
)
