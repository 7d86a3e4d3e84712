"""Sizes of pictures: small ones as they always were, others by a setting, and none that a task does not have."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.bank import task_bank
from pytest_adaptive_eval.tasks.difficulty import level_parameters
from tests.tasks.picture_solvers import read_board

GRID = FAMILIES["grid"]
BANKS = Path(__file__).resolve().parents[2] / "fixtures" / "banks"


def test_a_larger_picture_shows_the_same_question() -> None:
    large = GRID.at_pixels(900)
    assert large.question(2, 5).prompt == GRID.question(2, 5).prompt
    assert large.picture(2, 5).shape == (900, 900, 3)
    assert read_board(large.picture(2, 5), 4) == read_board(GRID.picture(2, 5), 4)


def test_items_of_two_sizes_differ_in_hash_and_file() -> None:
    small, usual, large = (GRID.at_pixels(n).item(2, 5) for n in (48, 448, 900))
    assert [item.images for item in (small, usual, large)] == [
        ("grid-2-5.png",),
        ("grid-2-5.448.png",),
        ("grid-2-5.900.png",),
    ]
    assert "pixels" not in small.meta
    assert (usual.meta["pixels"], large.meta["pixels"]) == (448, 900)
    assert len({item.content_hash for item in (small, usual, large)}) == 3


def test_a_size_can_be_set_again() -> None:
    small = GRID.at_pixels(900).at_pixels(48)
    assert small.item(1, 1).to_json() == GRID.at_pixels(48).item(1, 1).to_json()
    assert small.at_pixels(448).item(1, 1).to_json() == GRID.item(1, 1).to_json()


@pytest.mark.parametrize(
    ("task", "pixels", "message"),
    [
        ("grid", 47, "size is 47: pictures of the task 'grid' have 448 to 2048 pixels a side, or 48"),
        ("grid", 2049, "size is 2049: .* 448 to 2048 pixels a side, or 48"),
        ("blur", 48, "size is 48: pictures of the task 'blur' have 448 to 2048 pixels a side$"),
        ("addition", 448, "size is 448, and the task 'addition' has no pictures of a set size: remove it"),
    ],
)
def test_a_size_that_a_task_lacks_is_refused(task: str, pixels: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FAMILIES[task].at_pixels(pixels)
    with pytest.raises(ConfigError, match=message):
        task_bank(FAMILIES[task], queries=1, pixels=pixels)


def test_the_small_form_of_a_task_is_that_of_its_pictures_or_its_prompts() -> None:
    assert GRID.of_size("small").item(1, 1).to_json() == GRID.of_size(48).item(1, 1).to_json()
    assert FAMILIES["addition"].of_size("small").form == ""
    with pytest.raises(ConfigError, match="size is 48: pictures of the task 'blur'"):
        FAMILIES["blur"].of_size("small")


def test_an_item_is_marked_in_the_size_that_it_has() -> None:
    for pixels in (48, 448, 900):
        item = GRID.at_pixels(pixels).item(3, 4)
        assert GRID.verify(item, item.answer).score == 1.0
        assert GRID.at_pixels(48).verify(item, item.answer).score == 1.0
    with pytest.raises(BankError, match=r"item 'grid-3-4': meta\.pixels is 'many', expected a whole number"):
        GRID.verify(Item("grid-3-4", meta={"pixels": "many"}), "1")
    with pytest.raises(BankError, match="item 'grid-3-4': size is 7"):
        GRID.verify(Item("grid-3-4", meta={"pixels": 7}), "1")


def test_a_bank_of_a_task_says_which_size_it_has_unless_it_is_small(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    small = task_bank(GRID, queries=2, levels=2, pixels=48, pictures=tmp_path)
    usual = task_bank(GRID, queries=2, levels=2, pictures=tmp_path)
    assert small.report["task"] == {"levels": 2, "queries": 2, "seed": 0}
    assert usual.report["task"] == {"levels": 2, "queries": 2, "seed": 0, "pixels": 448}
    assert small.content_hash != usual.content_hash
    for bank, shape in ((small, (48, 48)), (usual, (448, 448, 3))):
        with image.open(bank.items[3].image_paths[0]) as drawn:
            assert np.array(drawn).shape == shape
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid-2-1.448.png", "grid-2-1.png"]


def test_difficulties_come_from_pictures_of_the_same_size() -> None:
    bank = read_bank(BANKS / "vision.bank")
    small = GRID.at_pixels(48)
    assert (level_parameters(bank, "grid", 6, same_form=small.has_form) == level_parameters(bank, "grid", 6)).all()
    with pytest.raises(BankError, match="has items of 0 levels of the task 'grid'"):
        level_parameters(bank, "grid", 6, same_form=GRID.has_form)


def test_a_runner_is_kept_in_another_size() -> None:
    runner = object()
    mine = dataclasses.replace(GRID, runner=runner)  # type: ignore[arg-type]  # it is not called
    assert mine.at_pixels(48).runner is runner
