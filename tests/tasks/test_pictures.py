"""What the small pictures show is what the questions say."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.tasks import FAMILIES, Picture
from pytest_adaptive_eval.tasks.pictures import SHAPES, icon, save_png

SMALL = {name: FAMILIES[name].at_pixels(48) for name in ("grid", "caption", "noise")}


def read(picture: Picture, n: int) -> list[list[str]]:
    """The shapes on a board, told apart by comparing each cell with every icon."""
    step = 8
    board = []
    for row, column in itertools.product(range(n), repeat=2):
        cell = picture[row * step + 1 : (row + 1) * step - 1, column * step + 1 : (column + 1) * step - 1] > 128
        board.append(next(shape for shape in SHAPES if (icon(shape, step - 2) == cell).all()))
    return [board[i : i + n] for i in range(0, n * n, n)]


@given(st.integers(1, 6), st.integers(0, 10**9))
def test_grid(level: int, seed: int) -> None:
    question = SMALL["grid"].question(level, seed)
    board = read(SMALL["grid"].picture(level, seed), level)
    shapes = Counter(itertools.chain.from_iterable(board))
    if match := re.fullmatch(r"How many cells show ([a-z]+)\?", question.prompt):
        assert question.answer == str(shapes[match[1]])
    else:
        assert question.prompt == "Which shape is in one cell only?"
        assert [shape for shape, count in shapes.items() if count == 1] == [question.answer]


@given(st.integers(1, 6), st.integers(0, 10**9))
def test_caption(level: int, seed: int) -> None:
    question = SMALL["caption"].question(level, seed)
    board = read(SMALL["caption"].picture(level, seed), level)
    match = re.fullmatch(r"Row (\d) holds (.*)\. Which shape is in row (\d), column (\d)\?", question.prompt)
    assert match
    assert match[1] == match[3]
    assert board[int(match[1]) - 1] == match[2].split(", ")
    assert question.answer == match[2].split(", ")[int(match[4]) - 1]


@pytest.mark.parametrize("seed", range(20))
def test_a_noiseless_picture_shows_the_answer(seed: int) -> None:
    family = SMALL["noise"]
    rows, columns = np.nonzero(family.picture(1, seed) > 128)
    top, left = rows.max() - 23, columns.min()
    shown = family.picture(1, seed)[top : top + 24, left : left + 24] > 128
    assert (shown == icon(family.question(1, seed).answer, 24)).all()


@pytest.mark.parametrize("level", range(1, 5))
def test_noise_has_the_spread_it_says(level: int) -> None:
    # Only the dark half is looked at through the median of what clipping at 0 leaves untouched.
    pictures = np.stack([SMALL["noise"].picture(level, seed) for seed in range(30)])
    above = float((pictures[:, :4, :4] > 40 + 50).mean())
    expected = {1: 0.0, 2: 0.16, 3: 0.31, 4: 0.37}[level]
    assert above == pytest.approx(expected, abs=0.06)


def test_icons_differ() -> None:
    for size in (6, 7, 10, 14, 22, 24, 46):
        for a, b in itertools.combinations(SHAPES, 2):
            assert (icon(a, size) != icon(b, size)).sum() >= 4


def test_a_png_gives_the_picture_back(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = SMALL["noise"].picture(5, 1)
    save_png(picture, tmp_path / "a.png")
    with image.open(tmp_path / "a.png") as read_back:
        assert (np.array(read_back) == picture).all()
