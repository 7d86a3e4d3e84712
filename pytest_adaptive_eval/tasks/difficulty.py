"""Difficulties of a task's levels, on the ability scale of a calibrated bank."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.result import pooled
from pytest_adaptive_eval.types import Array

#: Abilities over which the items of a level are averaged, and their weights in the bank's population.
ABILITIES = np.linspace(-4.0, 4.0, 161)
POPULATION = np.exp(-(ABILITIES**2) / 2.0)
#: Lower limit of a level's slope.
LEAST_SLOPE = 0.1


def level_parameters(
    bank: ItemBank, family: str, levels: int, *, same_form: Callable[[Item], bool] | None = None
) -> Array:
    """Return slope and intercept of each level of a task family, from the family's items in a calibrated bank.

    One curve approximates the mean of a level's items. Difficulty never falls from level to level. Levels without items
    are interpolated between their neighbours, or extrapolated with the mean rise.

    Args:
        bank: One-dimensional, with items whose ids are ``task-level-seed``. Guess floors are ignored.
        same_form: Whether an item of the family has the form that is asked, such as a picture of the same size; all
            have when omitted.

    Returns:
        Shape (levels, 2). Slope a and intercept d of ``expit(a * theta + d)``, for `task_bank`.

    Raises:
        BankError: The bank is not calibrated, has more dimensions, or fewer than two levels of the family.
    """
    if not bank.calibrated or bank.dimensions != 1:
        raise BankError(f"bank {bank.name!r} gives no difficulties: one that is calibrated in one dimension is needed")
    by_level: dict[int, list[int]] = {}
    for n, name in enumerate(bank.ids):
        match = re.fullmatch(rf"{re.escape(family)}-([0-9]{{1,4}})-[0-9]+", name)
        if match and (same_form is None or same_form(bank.items[n])):
            by_level.setdefault(int(match[1]), []).append(n)
    if len(by_level) < 2:
        form = "" if same_form is None else " in the form that is asked (setting size)"
        raise BankError(
            f"bank {bank.name!r} has items of {len(by_level)} levels of the task {family!r}{form}: calibrate one with "
            "items of several levels"
        )
    by_level = dict(sorted(by_level.items()))
    fitted_levels = np.array(list(by_level))
    curves = np.array([_mean_curve(bank, items) for items in by_level.values()])
    weights = np.array([len(items) for items in by_level.values()], dtype=float)
    difficulty = np.empty(len(fitted_levels))
    for block, value in pooled(curves[:, 1] / curves[:, 0], weights):  # -b never rises
        difficulty[block] = -value
    all_levels = np.arange(1, levels + 1)
    b = np.interp(all_levels, fitted_levels, difficulty)
    slope, _ = np.polyfit(fitted_levels, difficulty, 1, w=np.sqrt(weights))
    rise = max(float(slope), 0.0)
    below = np.minimum(all_levels - fitted_levels[0], 0)
    above = np.maximum(all_levels - fitted_levels[-1], 0)
    b += rise * (below + above)
    a = np.exp(np.interp(all_levels, fitted_levels, np.log(curves[:, 0])))
    return np.stack([a, -a * b], axis=1)


def _mean_curve(bank: ItemBank, items: list[int]) -> tuple[float, float]:
    """Return slope and intercept of the logistic curve nearest to the mean of the items' curves."""
    logits = ABILITIES[:, None] * bank.discrimination[items, 0] + bank.intercept[items]
    mean = (1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))).mean(axis=1)
    mean = np.clip(mean, 1e-9, 1.0 - 1e-9)
    weights = np.sqrt(POPULATION * mean * (1.0 - mean))
    slope, intercept = np.polyfit(ABILITIES, np.log(mean / (1.0 - mean)), 1, w=weights)
    return max(float(slope), LEAST_SLOPE), float(intercept)
