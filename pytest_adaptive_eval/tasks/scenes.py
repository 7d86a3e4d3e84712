"""Task families about pictures of coloured icons, for vision models of any size."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.tasks.drawing import SHAPES, Icon, blank, board, draw_icon, plural_of
from pytest_adaptive_eval.tasks.family import SMALL_PIXELS, Picture, Question, TaskFamily
from pytest_adaptive_eval.tasks.pictures import SMALL

#: Side of the pictures where nothing else is set, and the largest one.
PIXELS, LARGEST_PIXELS = 448, 2048
_SMALL = {family.name: family for family in SMALL}

#: Draws a question of a level, with a picture of that side.
Draw = Callable[[random.Random, int, int], Question]


def sized_family(
    name: str, knob: str, levels: int, guess_floor: float, draw: Draw, grader: str, pixels: int = PIXELS
) -> TaskFamily:
    """Return a family whose pictures have a side of `PIXELS` to `LARGEST_PIXELS`, or its small form; or ConfigError."""
    sized = partial(sized_family, name, knob, levels, guess_floor, draw, grader)
    if pixels == SMALL_PIXELS and name in _SMALL:
        return replace(_SMALL[name], sized=sized)
    if not PIXELS <= pixels <= LARGEST_PIXELS:
        small = f", or {SMALL_PIXELS}" if name in _SMALL else ""
        raise ConfigError(
            f"size is {pixels}: pictures of the task {name!r} have {PIXELS} to {LARGEST_PIXELS} pixels a side{small}"
        )
    return TaskFamily(
        name,
        knob,
        levels,
        guess_floor,
        lambda rng, level: draw(rng, level, pixels),
        grader,
        pictorial=True,
        pixels=pixels,
        sized=sized,
    )


def choice_question(
    rng: random.Random,
    prompt: str,
    answer: str,
    options: Sequence[str],
    render: Callable[[], Picture],
) -> Question:
    """Return a question with its options below the prompt, in random order."""
    choices = tuple(rng.sample(options, len(options)))
    listed = "\n".join(f"{chr(ord('A') + n)}. {choice}" for n, choice in enumerate(choices))
    return Question(f"{prompt}\n{listed}\nEnd with `Answer: <letter>`.", answer, render, choices=choices)


def _count_question(prompt: str, count: int, render: Callable[[], Picture]) -> Question:
    return Question(f"{prompt} End with `Answer: <number>`.", str(count), render)


def _counted(rng: random.Random, total: int, most: int) -> tuple[str, int, list[Icon]]:
    """Return what is counted, how often it is there, and all icons in random order.

    What is counted is described by its shape with its fill, its colour, or both. Most of the other icons share some of
    these properties. The count is drawn uniformly from 0 to `most`, so no constant answer is right often.
    """
    count = rng.randint(0, most)
    names = rng.choice((("fill", "shape"), ("colour", "shape"), ("fill", "colour", "shape")))
    counted = Icon.drawn(rng)

    def sharing(shared: Sequence[str]) -> Icon:
        return replace(Icon.drawn(rng), **{name: getattr(counted, name) for name in shared})

    icons = [sharing(names) for _ in range(count)]
    while len(icons) < total:
        shared = rng.sample(names, rng.randrange(len(names)))
        icon = sharing(shared)
        if any(getattr(icon, name) != getattr(counted, name) for name in names):
            icons.append(icon)
    rng.shuffle(icons)
    words = [getattr(counted, name) for name in names]
    return " ".join(words), count, icons


_FILLS_TOLD = "An icon is solid, hollow (its outline alone) or striped."


def _grid(rng: random.Random, level: int, pixels: int) -> Question:
    n = level + 2
    words, count, icons = _counted(rng, n * n, n * n // 2 + 4)
    prompt = f"The picture shows a grid of {n} rows and {n} columns of icons. {_FILLS_TOLD}"
    prompt += f" How many {plural_of(words)} are in the grid?"
    return _count_question(prompt, count, lambda: board(icons, n, pixels))


def _scattered(icons: Sequence[Icon], positions: Sequence[tuple[int, int, int, int]], n: int, pixels: int) -> Picture:
    """Draw icons into cells of an invisible grid."""
    picture = blank(pixels)
    cell = pixels // n
    for icon, (number, share, down, right) in zip(icons, positions, strict=True):
        size = cell * share // 100
        free = cell - size
        row, column = divmod(number, n)
        draw_icon(picture, icon, row * cell + free * down // 100, column * cell + free * right // 100, size)
    return picture


def _icons(rng: random.Random, level: int, pixels: int) -> Question:
    total = 6 + 4 * level
    words, count, icons = _counted(rng, total, total // 2 + 3)
    n = math.isqrt(total + total // 3) + 1
    cells = rng.sample(range(n * n), total)
    positions = []
    for cell in cells:
        positions.append((cell, rng.choice((65, 77, 90)), rng.randint(0, 100), rng.randint(0, 100)))
    prompt = f"The picture shows scattered icons. {_FILLS_TOLD} How many {plural_of(words)} are there?"
    return _count_question(prompt, count, lambda: _scattered(icons, positions, n, pixels))


def _caption(rng: random.Random, level: int, pixels: int) -> Question:
    n = level + 1
    icons = [Icon.drawn(rng) for _ in range(n * n)]
    wrong = rng.randrange(n * n)
    captions = [str(icon) for icon in icons]
    false = rng.choice([shape for shape in SHAPES if shape != icons[wrong].shape])
    captions[wrong] = str(replace(icons[wrong], shape=false))
    rows = []
    for i in range(n):
        row = ", ".join(captions[i * n : (i + 1) * n])
        rows.append(f"Row {i + 1}: {row}.")
    text = "\n".join(rows)
    prompt = (
        f"This text describes the picture, row by row from the top, and each row from the left:\n{text}\n{_FILLS_TOLD} "
        "The text gives a wrong shape to exactly one icon. Which shape does the picture show there?"
    )
    return choice_question(rng, prompt, icons[wrong].shape, SHAPES, lambda: board(icons, n, pixels))


def _after(rng: random.Random, level: int, pixels: int) -> Question:
    order = rng.sample(SHAPES, len(SHAPES))
    start = rng.randrange(len(order))
    # Whole rounds are left out, since they lead back to the shape in the picture.
    steps = rng.choice([steps for steps in (2 * level - 1, 2 * level) if steps % len(order)])
    icon = replace(Icon.drawn(rng), shape=order[start])
    y = rng.randint(0, 100)
    x = rng.randint(0, 100)
    prompt = (
        f"Take these shapes in this order, with the first again after the last: {', '.join(order)}. Start at the shape "
        f"in the picture and go {steps} step{'s' * (steps > 1)} further. Which shape is it?"
    )
    answer = order[(start + steps) % len(order)]
    return choice_question(rng, prompt, answer, SHAPES, lambda: _scattered([icon], [(0, 45, y, x)], 1, pixels))


#: Directions by name: rows down, columns right.
_DIRECTIONS = {"right": (0, 1), "left": (0, -1), "up": (-1, 0), "down": (1, 0)}


def _moved(rng: random.Random, cell: tuple[int, int], last: str, n: int) -> tuple[str, int, tuple[int, int]]:
    """Return a direction across the last one, the number of cells to go, and the cell that they lead to."""
    row, column = cell
    steps_to_edge = {"up": row, "down": n - 1 - row, "left": column, "right": n - 1 - column}
    directions = []
    for name, (rows, _) in _DIRECTIONS.items():
        is_across = not last or bool(rows) != bool(_DIRECTIONS[last][0])
        if is_across and steps_to_edge[name]:
            directions.append(name)
    direction = rng.choice(directions)
    cells = rng.randint(1, min(3, steps_to_edge[direction]))
    rows, columns = _DIRECTIONS[direction]
    return direction, cells, (row + rows * cells, column + columns * cells)


def _relation(rng: random.Random, level: int, pixels: int) -> Question:
    n = 6
    start = end = (rng.randrange(n), rng.randrange(n))
    first = Icon.drawn(rng)
    icons = []
    for row in range(n):
        for column in range(n):
            if (row, column) == start:
                icons.append(first)
            else:
                icons.append(_unlike(rng, first))
    moves = []
    direction = ""
    for _ in range(level):
        direction, cells, end = _moved(rng, end, direction, n)
        moves.append(f"{cells} {direction}")
    prompt = (
        f"The picture shows a grid of icons. {_FILLS_TOLD} Find the only {first}. From its cell go "
        f"{', then '.join(moves)} (in cells). Which shape is in the cell where you end?"
    )
    answer = icons[end[0] * n + end[1]].shape
    return choice_question(rng, prompt, answer, SHAPES, lambda: board(icons, n, pixels))


def _unlike(rng: random.Random, icon: Icon) -> Icon:
    """Return an icon that differs from another in colour or shape."""
    while True:
        other = Icon.drawn(rng)
        if (other.shape, other.colour) != (icon.shape, icon.colour):
            return other


FAMILIES = (
    sized_family("grid", "rows and columns of the grid, level + 2", 7, 0.12, _grid, "numeric"),
    sized_family("caption", "rows and columns of a grid that the prompt names, level + 1", 6, 0.1, _caption, "choice"),
    sized_family("after", "steps from the shape shown to the one wanted, 2 * level or one less", 10, 0.1, _after,
                 "choice"),
    sized_family("icons", "scattered icons, 6 + 4 * level", 12, 0.12, _icons, "numeric"),
    sized_family("relation", "moves from the icon named to the one wanted", 10, 0.1, _relation, "choice"),
)  # fmt: skip
