"""From levels to difficulties: generated questions on the ability scale of a calibrated bank."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.result import pooled

__all__ = ["level_parameters"]

Array = NDArray[np.float64]

#: Abilities over which a level's items are summed up, and by how much each counts: the bank's population.
ABILITIES = np.linspace(-4.0, 4.0, 161)
POPULATION = np.exp(-(ABILITIES**2) / 2.0)
#: No level tells abilities apart worse than this.
LEAST_SLOPE = 0.1


def level_parameters(bank: ItemBank, family: str, levels: int) -> Array:
    """Slope and intercept of each level of a task family, by the family's items in a calibrated bank.

    The items of a level are summed up by the one curve that is nearest to their
    mean.  Difficulty never falls from level to level; levels without items lie on
    a straight line between their neighbours, or go on as the known ones rise.

    Parameters
    ----------
    bank : ItemBank
        One-dimensional, with items whose ids are ``task-level-seed``; guess floors are left as they are.
    family : str
        The task family's name.
    levels : int
        How many to give.

    Returns
    -------
    array, shape (levels, 2)
        Slope a and intercept d of ``expit(a * theta + d)``, for `task_bank`.

    Raises
    ------
    BankError
        The bank is not calibrated, has more dimensions, or fewer than two levels of the family.
    """
    if not bank.calibrated or bank.dimensions != 1:
        raise BankError(f"bank {bank.name!r} gives no difficulties: one that is calibrated in one dimension is needed")
    by_level: dict[int, list[int]] = {}
    for n, name in enumerate(bank.ids):
        if found := re.fullmatch(rf"{re.escape(family)}-([0-9]{{1,4}})-[0-9]+", name):
            by_level.setdefault(int(found[1]), []).append(n)
    if len(by_level) < 2:
        raise BankError(
            f"bank {bank.name!r} has items of {len(by_level)} levels of the task {family!r}: calibrate one with items "
            "of several levels"
        )
    known = np.array(sorted(by_level))
    fitted = np.array([_summed_up(bank, by_level[level]) for level in known.tolist()])
    weights = np.array([len(by_level[level]) for level in known.tolist()], dtype=float)
    difficulty = np.empty(len(known))
    for where, value in pooled(fitted[:, 1] / fitted[:, 0], weights):  # -b never rises
        difficulty[where] = -value
    wanted = np.arange(1, levels + 1)
    b = np.interp(wanted, known, difficulty)
    rise = max(float(np.polyfit(known, difficulty, 1, w=np.sqrt(weights))[0]), 0.0)
    b += rise * (np.minimum(wanted - known[0], 0) + np.maximum(wanted - known[-1], 0))
    a = np.exp(np.interp(wanted, known, np.log(fitted[:, 0])))
    return np.stack([a, -a * b], axis=1)


def _summed_up(bank: ItemBank, items: list[int]) -> tuple[float, float]:
    """Slope and intercept of the logistic curve nearest to the mean of several.

    Least squares on the scale of the log odds, weighted by the population and by
    how much a probability tells there.
    """
    logits = ABILITIES[:, None] * bank.discrimination[items, 0] + bank.intercept[items]
    mean = (1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))).mean(axis=1)
    mean = np.clip(mean, 1e-9, 1.0 - 1e-9)
    slope, intercept = np.polyfit(
        ABILITIES, np.log(mean / (1.0 - mean)), 1, w=np.sqrt(POPULATION * mean * (1.0 - mean))
    )
    return max(float(slope), LEAST_SLOPE), float(intercept)
