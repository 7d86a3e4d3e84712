"""Levels on the scale of a calibrated bank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.bank import task_bank
from pytest_adaptive_eval.tasks.difficulty import level_parameters

BANKS = Path(__file__).resolve().parents[2] / "fixtures" / "banks"


def bank(levels: dict[int, list[tuple[float, float]]], **more: object) -> ItemBank:
    """Items (slope, difficulty) by level."""
    rows = [(f"addition-{level}-{n}", a, -a * b) for level, items in levels.items() for n, (a, b) in enumerate(items)]
    rows.append(("counting-1-0", 2.0, 9.0))
    return ItemBank("b", [r[0] for r in rows], (), [r[1] for r in rows], [r[2] for r in rows], **more)  # type: ignore[arg-type]


def test_alike_items_give_their_own_parameters() -> None:
    found = level_parameters(bank({1: [(1.5, -1.0)] * 3, 2: [(1.5, 0.0)] * 2, 3: [(0.8, 1.2)] * 4}), "addition", 3)
    assert found == pytest.approx(np.array([[1.5, 1.5], [1.5, 0.0], [0.8, -0.96]]), abs=1e-6)


def test_difficulty_never_falls_and_goes_on() -> None:
    levels = {1: [(1.0, -1.0)], 2: [(1.0, 0.5)], 3: [(1.0, 0.1)], 5: [(1.0, 2.3)]}
    found = level_parameters(bank(levels), "addition", 8)
    b = -found[:, 1] / found[:, 0]
    assert b[:3] == pytest.approx([-1.0, 0.3, 0.3], abs=1e-6)
    assert b[3] == pytest.approx((b[2] + b[4]) / 2)
    assert b[4] == pytest.approx(2.3, abs=1e-6)
    assert (np.diff(b[4:]) > 0.3).all()
    assert np.diff(b[4:]) == pytest.approx(np.diff(b[4:])[0])
    late = level_parameters(bank({3: [(1.0, 0.0)], 4: [(1.0, 1.0)]}), "addition", 4)
    assert -late[:, 1] / late[:, 0] == pytest.approx([-2.0, -1.0, 0.0, 1.0], abs=1e-6)
    flat = level_parameters(bank({1: [(1.0, 1.0)], 2: [(1.0, 0.0)]}), "addition", 4)
    assert -flat[:, 1] / flat[:, 0] == pytest.approx([0.5] * 4, abs=1e-6)


@pytest.mark.parametrize(("kind", "family"), [("text", "counting"), ("text", "post_order"), ("vision", "noise")])
def test_levels_predict_the_mean_of_their_items(kind: str, family: str) -> None:
    path = BANKS / f"{kind}.bank"
    if not path.exists():
        pytest.skip(f"needs {path.name}, which a source distribution lacks: test in a clone")
    known = read_bank(path)
    levels = 5
    found = level_parameters(known, family, levels)
    for level, (a, d) in enumerate(found, 1):
        items = [n for n, name in enumerate(known.ids) if name.startswith(f"{family}-{level}-")]
        for theta in (-1.0, 0.0, 1.0, 2.0):
            mean = expit(known.discrimination[items, 0] * theta + known.intercept[items]).mean()
            assert expit(a * theta + d) == pytest.approx(mean, abs=0.12)


def test_a_task_becomes_a_calibrated_bank() -> None:
    known = read_bank(BANKS / "text.bank")
    made = task_bank(
        FAMILIES["addition"], queries=4, levels=3, difficulty=level_parameters(known, "addition", 3), scale=known.scale
    )
    assert made.calibrated
    assert made.scale == known.scale
    assert (np.diff(made.difficulty) >= -1e-12).all()


def test_banks_that_tell_nothing_of_levels() -> None:
    one = bank({1: [(1.0, 0.0)], 2: [(1.0, 1.0)]})
    with pytest.raises(BankError, match="has items of 1 levels of the task 'counting'"):
        level_parameters(one, "counting", 3)
    with pytest.raises(BankError, match="has items of 0 levels of the task 'grid'"):
        level_parameters(one, "grid", 3)
    for wrong in (
        bank({1: [(1.0, 0.0)], 2: [(1.0, 1.0)]}, calibrated=False),
        ItemBank("b", ["addition-1-0"], (), np.ones((1, 2)), np.zeros(1)),
    ):
        with pytest.raises(BankError, match="one that is calibrated in one dimension is needed"):
            level_parameters(wrong, "addition", 3)
