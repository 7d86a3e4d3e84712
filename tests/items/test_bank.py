"""Banks: what they refuse, and that they cannot be changed."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.bank import ItemBank, scale_id
from pytest_adaptive_eval.items.item import Item

IDS = ("x", "y", "z")
ITEMS = tuple(Item(i) for i in IDS)


def make(ids=IDS, a=(1.0, 2.0, 0.5), d=(0.0, 1.0, -1.0), c=(), items=ITEMS) -> ItemBank:
    return ItemBank("b", ids, items, np.asarray(a), np.asarray(d), np.asarray(c))


def test_shapes_and_defaults() -> None:
    bank = make()
    assert (len(bank), bank.dimensions) == (3, 1)
    assert bank.discrimination.shape == (3, 1)
    assert bank.guess.tolist() == [0, 0, 0]
    assert make(a=np.ones((3, 4))).dimensions == 4
    assert bank.calibrated


def test_arrays_are_copies_that_cannot_be_written() -> None:
    d = np.array([0.0, 1.0, -1.0])
    bank = make(d=d)
    d[0] = 9.0
    assert bank.intercept[0] == 0.0
    for array in (bank.discrimination, bank.intercept, bank.guess):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": (), "items": (), "a": (), "d": ()}, "no items"),
        ({"ids": ("x", "y", "x")}, "duplicate item id 'x'"),
        ({"a": (1.0, -np.inf, 1.0)}, "'y' has discrimination .*expected finite; 1 of 3"),
        ({"a": (1.0, np.nan, np.inf)}, "'y' has discrimination .*2 of 3"),
        ({"d": (0.0, 0.0, np.inf)}, "'z' has intercept"),
        ({"c": (0.0, 1.0, 0.0)}, "'y' has guess"),
        ({"c": (-0.1, 0.0, 0.0)}, "'x' has guess"),
        ({"a": (1.0, 1.0)}, "2 values of discrimination for 3 items"),
        ({"d": (1.0, 1.0, 1.0, 1.0)}, "4 values of intercept for 3 items"),
        ({"c": (0.1,)}, "1 values of guess for 3 items"),
    ],
)
def test_refused_banks(change: dict[str, object], message: str) -> None:
    with pytest.raises(BankError, match=message):
        make(**change)


@pytest.mark.parametrize(
    ("accuracies", "message"),
    [
        ((0.5,), "expected 2 accuracies or none, got 1"),
        ((0.5, 0.5, 0.5), "expected 2 accuracies or none, got 3"),
        ((0.5, 1.001), "'v' has accuracy 1.001"),
        ((-0.1, 0.5), "'u' has accuracy -0.1"),
        ((np.nan, 0.5), "'u' has accuracy nan"),
    ],
)
def test_refused_accuracies(accuracies: tuple[float, ...], message: str) -> None:
    def bank(accuracies: tuple[float, ...]) -> ItemBank:
        return ItemBank("b", IDS, ITEMS, np.ones(3), np.zeros(3), subjects=("u", "v"), accuracies=accuracies)

    assert bank(()).accuracies == ()
    assert bank((0.0, 1.0)).accuracies == (0.0, 1.0)
    with pytest.raises(BankError, match=message):
        bank(accuracies)


def test_difficulty() -> None:
    np.testing.assert_allclose(make(a=(1.0, 2.0, 0.0)).difficulty, [0.0, -0.5, np.nan])
    np.testing.assert_allclose(make(a=(1.0, -2.0, -0.5)).difficulty, [0.0, 0.5, -2.0])  # where the chance is one half
    np.testing.assert_allclose(make(a=[[3.0, 4.0]] * 3).difficulty, [0.0, -0.2, 0.2])


def test_index() -> None:
    assert make().index("z") == 2
    with pytest.raises(BankError, match="no item 'w'"):
        make().index("w")


def test_uncalibrated() -> None:
    bank = ItemBank.uncalibrated("u", ITEMS, categories=("p", "q", "q"))
    assert not bank.calibrated
    assert (list(bank.ids), bank.model, bank.scale) == (list(IDS), "none", "")
    assert bank.categories == ("p", "q", "q")
    assert not bank.discrimination.any()


def test_scale_id_tells_fits_apart_on_every_machine() -> None:
    one = scale_id([[1.0]], [0.0], [0.0])
    assert one == scale_id(np.ones((1, 1), dtype=">f8"), [0], [0])
    assert one == "725c4777db328932"  # in every record: a change voids them all
    assert len({one, scale_id([[1.0]], [1e-12], [0.0]), scale_id([[1.0]], [0.0], [0.1])}) == 3
