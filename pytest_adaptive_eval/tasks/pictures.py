"""Small grey pictures of task families, which code draws in whole numbers: the form for tiny models."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.tasks.answers import by_choice, by_number
from pytest_adaptive_eval.tasks.drawing import noise
from pytest_adaptive_eval.tasks.family import Picture, Question, TaskFamily
from pytest_adaptive_eval.types import Bools

#: Shapes of an icon.
SHAPES = ("square", "frame", "disc", "ring", "diamond", "plus", "cross", "triangle")

SIDE = 48
CELL = 8
#: Pixels of a cell in grids whose shapes a general model must be able to see.
ICON_CELL = 32
DARK, BRIGHT = 40, 220


def icon(shape: str, size: int) -> Bools:
    """Return the mask of a shape, shape (size, size).

    Coordinates are doubled, which puts the centre at 0 in whole numbers.
    """
    y, x = np.mgrid[1 - size : size : 2, 1 - size : size : 2]
    ax = abs(x)
    ay = abs(y)
    stroke = max(1, size // 6) * 2
    masks: dict[str, Bools] = {
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


def _canvas(side: int = SIDE) -> Picture:
    return np.full((side, side), DARK, dtype=np.uint8)


def _draw_icon(picture: Picture, shape: str, y: int, x: int, size: int) -> None:
    picture[y : y + size, x : x + size][icon(shape, size)] = BRIGHT


def _board(cells: list[str], n: int, side: int = SIDE, cell: int = CELL, margin: int = 1) -> Picture:
    """Draw shapes row by row, `n` a row, into a square picture."""
    picture = _canvas(side)
    for i, shape in enumerate(cells):
        row, column = divmod(i, n)
        _draw_icon(picture, shape, row * cell + margin, column * cell + margin, cell - 2 * margin)
    return picture


def _grid(rng: random.Random, level: int) -> Question:
    cells = level * level
    target, *others = rng.sample(SHAPES, 3)
    if level > 1 and rng.randrange(2):
        # The count is drawn uniformly: no constant answer is right more than one time in five.
        count = rng.randrange(min(cells, 9) + 1)
        board = [target] * count + [rng.choice(others) for _ in range(cells - count)]
        ask = f"How many cells show {target}?"
        answer = str(count)
        judge = by_number(answer)
    else:
        # Two of each other shape if there is room: the answer is the only shape in a single cell.
        if level > 2:
            fill = others * 2
        else:
            fill = others[:1] * 3
        board = [target, *fill[: cells - 1], *(rng.choice(others) for _ in range(cells - 5))]
        ask = "Which shape is in one cell only?"
        answer = target
        judge = by_choice(answer, SHAPES)
    rng.shuffle(board)
    return Question(ask, answer, lambda: _board(board, level), judge)


def _caption(rng: random.Random, level: int) -> Question:
    cells = [rng.choice(SHAPES) for _ in range(level * level)]
    row = rng.randrange(level)
    column = rng.randrange(level)
    line = cells[row * level : (row + 1) * level]
    prompt = f"Row {row + 1} holds {', '.join(line)}. Which shape is in row {row + 1}, column {column + 1}?"
    return Question(prompt, line[column], lambda: _board(cells, level), by_choice(line[column], SHAPES))


def _in_noise(rng: random.Random, shape: str, sigma: int) -> Picture:
    """Draw a shape at a random position, with noise over the whole picture."""
    size = 24
    y = rng.randrange(SIDE - size + 1)
    x = rng.randrange(SIDE - size + 1)
    picture = _canvas()
    _draw_icon(picture, shape, y, x, size)
    return np.asarray(np.clip(picture + noise(rng, SIDE, SIDE) * sigma // 256, 0, 255), dtype=np.uint8)


def _noise(rng: random.Random, level: int) -> Question:
    shape = rng.choice(SHAPES)
    sigma = 50 * (level - 1)
    judge = by_choice(shape, SHAPES)
    return Question("Which shape is in the noise?", shape, lambda: _in_noise(rng, shape, sigma), judge)


def _after(rng: random.Random, level: int) -> Question:
    start = rng.randrange(len(SHAPES))
    steps = rng.randint(1, level)
    target = SHAPES[(start + steps) % len(SHAPES)]
    prompt = (
        f"In the order {', '.join(SHAPES)}, and round again: which shape comes {steps} after the one in the picture?"
    )
    return Question(prompt, target, lambda: _in_noise(rng, SHAPES[start], 50), by_choice(target, SHAPES))


def _icons(rng: random.Random, level: int) -> Question:
    n = level + 1
    target, *others = rng.sample(SHAPES, 4)
    # The count is drawn uniformly, as in a small grid.
    count = rng.randrange(min(n * n, 12) + 1)
    board = [target] * count + [rng.choice(others) for _ in range(n * n - count)]
    rng.shuffle(board)
    return Question(
        f"How many {target} icons are in the picture? End with the number.",
        str(count),
        lambda: _board(board, n, ICON_CELL * n, ICON_CELL, 2),
    )


def save_png(picture: Picture, path: Path) -> None:
    """Write a picture as a PNG file; raise ConfigError if pillow is missing, or the file cannot be written."""
    try:
        from PIL import Image
    except ImportError:
        raise ConfigError("tasks with pictures need pillow, which is not installed: pip install pillow") from None
    stream = io.BytesIO()
    # The search for the smallest file takes .3 s for a noisy picture in colour, and spares little.
    Image.fromarray(picture).save(stream, format="PNG", optimize=picture.ndim == 2)
    # In one step, since another process may look for the same file.
    write_whole(path, [stream.getvalue()], "a picture", ConfigError)


#: Families with pictures of `SMALL_PIXELS`; those of `icons` grow with the grid.
SMALL = (
    TaskFamily("grid", "rows and columns of the grid", 6, 0.13, _grid, "exact", pictorial=True),
    TaskFamily(
        "caption", "rows and columns of a grid that the prompt names", 6, 0.13, _caption, "exact", pictorial=True
    ),
    TaskFamily("after", "most steps from the shape shown to the one wanted", 7, 0.13, _after, "exact", pictorial=True),
    TaskFamily("noise", "noise of standard deviation 50 * (level - 1)", 20, 0.13, _noise, "exact", pictorial=True),
    TaskFamily("icons", "rows and columns of the grid, level + 1", 11, 0.21, _icons, "numeric", pictorial=True),
)
