"""How hard a question is, as an interview sees it: by the bank's calibration, by annotation, or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import View
from pytest_adaptive_eval.interviewer.retrieval import proximity
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

__all__ = ["WORDS", "Annotated", "Calibrated", "Difficulty", "Scale", "Sight", "annotated_difficulty", "scale_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Difficulty = Literal["irt", "annotated", "none"]

#: Words that annotate difficulties, at equal distances.
WORDS = {"very easy": -2.0, "easy": -1.0, "medium": 0.0, "middle": 0.0, "hard": 1.0, "very hard": 2.0}


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What S subjects' answers so far say of the items.

    Parameters
    ----------
    ability : array of shape (S,), or None
        In logits, on the scale of the difficulties; None where there is no such one number.
    probability : array, shape (S, n)
    proximity : array, shape (S, n)
        In [0, 1], see `retrieval.proximity`.
    """

    ability: Array | None
    probability: Array
    proximity: Array


class Scale(Protocol):
    """Difficulties, and abilities beside them."""

    difficulty: Array

    def see(self, view: View) -> Sight:
        """How the items stand to the abilities."""

    def told(self, items: Ints, scores: Array) -> None:
        """Hear scores (S, k), NaN where there is none."""


class Calibrated:
    """The bank's own difficulties and the session's abilities.

    Parameters
    ----------
    bank : ItemBank
        A calibrated one.
    """

    def __init__(self, bank: ItemBank) -> None:
        self._bank = bank
        #: Shape (n,), NaN where an item has none.
        self.difficulty = bank.difficulty

    def see(self, view: View) -> Sight:
        """By the bank; with several dimensions there is no one ability to show."""
        bank = self._bank
        p = bank.probability(view.theta)
        near = proximity(bank, irt.logits(view.theta, bank.discrimination, bank.intercept))
        return Sight(view.theta[:, 0] if bank.dimensions == 1 else None, p, near)

    def told(self, items: Ints, scores: Array) -> None:
        """Nothing to do: the session estimates."""


class Annotated:
    """Annotated difficulties, made to have mean 0 and standard deviation 1, and abilities by Rasch beside them.

    Parameters
    ----------
    difficulty : array, shape (n,)
        As annotated, NaN where there is nothing: such an item counts as an average one.
    subjects : int
    """

    def __init__(self, difficulty: Array, subjects: int) -> None:
        spread = float(np.nanstd(difficulty)) or 1.0
        #: Shape (n,), NaN where an item has none.
        self.difficulty: Array = (difficulty - np.nanmean(difficulty)) / spread
        self._b = np.nan_to_num(self.difficulty)
        self._estimator = MAP()
        self._estimate = self._estimator.prior(subjects, 1)
        self._items = np.empty((subjects, 0), dtype=np.int64)
        self._scores = np.empty((subjects, 0))

    def see(self, view: View) -> Sight:  # noqa: ARG002
        """By the annotations; the session's own abilities are on another scale."""
        theta = self._estimate.theta
        z = theta - self._b
        ones = np.ones((len(self._b), 1))
        return Sight(theta[:, 0], irt.probability(theta, ones, -self._b), 1.0 / (1.0 + np.abs(z)))

    def told(self, items: Ints, scores: Array) -> None:
        """Estimate anew."""
        self._items = np.hstack([self._items, items])
        self._scores = np.hstack([self._scores, scores])
        ones = np.ones((*self._items.shape, 1))
        self._estimate = self._estimator.estimate(self._scores, ones, -self._b[self._items], None, self._estimate)


def annotated_difficulty(item: Item) -> float:
    """``meta.difficulty``, a number or a word such as ``hard``, else ``meta.level``; NaN where neither can be read."""
    for value in (item.meta.get("difficulty"), item.meta.get("level")):
        number = _number(value)
        if math.isfinite(number):
            return number
    return math.nan


def _number(value: Any) -> float:
    if isinstance(value, str) and value.strip().casefold() in WORDS:
        return WORDS[value.strip().casefold()]
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def scale_of(kind: Difficulty, bank: ItemBank, subjects: int) -> tuple[Scale | None, str]:
    """The scale, or None and why there is none."""
    if kind == "none":
        return None, "difficulties are not used"
    if kind == "irt":
        return (Calibrated(bank), "") if bank.calibrated else (None, "the bank is not calibrated")
    found = np.array([annotated_difficulty(item) for item in bank.items])
    if not len(found) or np.isnan(found).all():
        return None, "no item has an annotated difficulty"
    return Annotated(found, subjects), ""
