"""Difficulties and abilities of an interview, by the bank's calibration or by annotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from pytest_adaptive_eval.cat.selection import View
from pytest_adaptive_eval.interviewer.retrieval import proximity
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.types import Array, Ints

Difficulty = Literal["irt", "annotated", "none"]

#: Difficulties of annotations in words, at equal distances.
WORDS = {"very easy": -2.0, "easy": -1.0, "medium": 0.0, "middle": 0.0, "hard": 1.0, "very hard": 2.0}


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Relation of the items to the abilities of S subjects.

    Args:
        ability: Shape (S,). Abilities on the scale of the difficulties, in logits; None for several dimensions.
        probability: Shape (S, n).
        proximity: Shape (S, n). See `retrieval.proximity`, in [0, 1].
    """

    ability: Array | None
    probability: Array
    proximity: Array


class Scale(Protocol):
    """Difficulties of items, with abilities on the same scale."""

    difficulty: Array

    def relate(self, view: View) -> Sight:
        """Return the relation of the items to the current abilities."""

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Update abilities after items and scores (S, k), NaN where missing."""


class Calibrated:
    """Difficulties of a calibrated bank and abilities of the session."""

    def __init__(self, bank: ItemBank) -> None:
        self._bank = bank
        #: Shape (n,); NaN where missing.
        self.difficulty = bank.difficulty

    def relate(self, view: View) -> Sight:
        """Return the relation of the items to the current abilities."""
        bank = self._bank
        p = bank.probability(view.theta)
        near = proximity(bank, irt.logits(view.theta, bank.discrimination, bank.intercept))
        return Sight(view.theta[:, 0] if bank.dimensions == 1 else None, p, near)

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Do nothing: the session estimates the abilities."""


class AnnotatedScale:
    """Annotated difficulties, standardised to mean 0 and standard deviation 1, and abilities by the Rasch model.

    Args:
        difficulty: Shape (n,). Annotations; NaN where missing, which counts as average.
    """

    def __init__(self, difficulty: Array, subjects: int) -> None:
        spread = float(np.nanstd(difficulty)) or 1.0
        #: Shape (n,); NaN where missing.
        self.difficulty: Array = (difficulty - np.nanmean(difficulty)) / spread
        self._b = np.nan_to_num(self.difficulty)
        self._estimator = MAP()
        self._estimate = self._estimator.prior(subjects, 1)
        self._items = np.empty((subjects, 0), dtype=np.int64)
        self._scores = np.empty((subjects, 0))

    def relate(self, view: View) -> Sight:  # noqa: ARG002
        """Return the relation of the items to abilities by the annotations, not to the session's abilities."""
        theta = self._estimate.theta
        z = theta - self._b
        ones = np.ones((len(self._b), 1))
        return Sight(theta[:, 0], irt.probability(theta, ones, -self._b), 1.0 / (1.0 + np.abs(z)))

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Update abilities after items and scores (S, k), NaN where missing."""
        self._items = np.hstack([self._items, items])
        self._scores = np.hstack([self._scores, scores])
        ones = np.ones((*self._items.shape, 1))
        self._estimate = self._estimator.estimate(self._scores, ones, -self._b[self._items], None, self._estimate)


def annotated_difficulty(item: Item) -> float:
    """Return ``meta.difficulty``, a number or a word such as ``hard``, else ``meta.level``; NaN without either."""
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
    """Return the scale and ``""``, or None and the reason why there is none."""
    if kind == "none":
        return None, "difficulties are not used"
    if kind == "irt":
        return (Calibrated(bank), "") if bank.calibrated else (None, "the bank is not calibrated")
    difficulty = np.array([annotated_difficulty(item) for item in bank.items])
    if not len(difficulty) or np.isnan(difficulty).all():
        return None, "no item has an annotated difficulty"
    return AnnotatedScale(difficulty, subjects), ""
