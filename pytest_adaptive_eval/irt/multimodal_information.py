"""Adaptive interview of one subject over a bank of items in formats.

A call administers one item in one format, so a budget is a number of *pairs* of an item and a format; pair ``item * F +
format``. Two rules rate pairs, Fisher information about the ability in the format (M2) and cumulative D-optimality by
rank-one updates (M3), and each can rate single pairs or items in all their formats together. An item's `worth`
multiplies its rating; 0 excludes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.multimodal import (
    Abilities,
    CumulativeInformation,
    MultimodalItems,
    Population,
    estimate_abilities,
)
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Ints

Rule = Literal["fisher", "d-optimal"]


@dataclass(eq=False)
class FormatInterview:
    """Interview in formats: `ask`, then `tell`, repeatedly.

    Args:
        population: Prior of the subject's abilities.
        rule: Default of the form when omitted: ``fisher`` for M2, ``d-optimal`` for M3.
        whole: Whether an item is administered and rated in all its formats together.
        adaptive: Whether abilities are estimated after every `tell`. Otherwise all pairs are rated at the middle of the
            population: one test form for every subject.
        worth: Shape (n,). At least 0; ones when omitted.

    Raises:
        ValueError: A negative worth, or one of another length.
    """

    items: MultimodalItems
    population: Population
    rule: Rule | None = None
    whole: bool = False
    adaptive: bool = True
    worth: ArrayLike | None = None

    def __post_init__(self) -> None:
        n, formats, parts = self.items.slopes.shape
        if self.worth is None:
            worth = np.ones(n)
        else:
            worth = np.asarray(self.worth, dtype=np.float64)
        self.rule = self.rule or ("fisher" if self.items.form == "m2" else "d-optimal")
        # eligible items, and their constants
        self._eligible = np.flatnonzero(worth > 0)
        self._worth = worth[self._eligible]
        self._slopes = self.items.slopes[self._eligible]
        self._intercepts = self.items.intercepts[self._eligible]
        if self.items.form == "m2":
            self._squared = self._slopes[:, :, 0] ** 2
        else:
            self._squared = (self._slopes**2).sum(axis=-1)
        self._open = np.ones((len(self._eligible), formats), dtype=bool)
        self._pairs: list[int] = []
        self._scores: list[float] = []
        self._asked: list[int] = []  # pairs among the eligible items
        self._information = CumulativeInformation.start(self.population.precision())
        self._theta = self.population.theta
        self._abilities: Abilities | None = None
        self._flat = self._slopes.reshape(-1, parts), self._intercepts.ravel()
        self._rate()

    @property
    def pairs(self) -> Ints:
        """Administered pairs, in order."""
        return np.array(self._pairs, dtype=np.int64)

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self._pairs)

    @property
    def log_determinant(self) -> float:
        """Log-determinant of the cumulative information, the prior's included."""
        return self._information.log_determinant

    @property
    def abilities(self) -> Abilities:
        """Abilities estimated from the scores so far."""
        if self._abilities is None:
            asked = self._asked[: len(self._scores)]
            slopes = self._flat[0][asked]
            intercepts = self._flat[1][asked]
            start = self._theta[None]
            self._abilities = estimate_abilities([self._scores], slopes, intercepts, self.population, start=start)
        return self._abilities

    def _rate(self) -> None:
        """Update the item weights at the present abilities."""
        p = irt.probability(self._theta[None], *self._flat)[0]
        self._weights = irt.weight(p).reshape(self._open.shape)

    def ask(self, calls: int | None = None) -> Ints:
        """Return the next pairs: one, or all remaining formats of one item if `whole`.

        At most `calls`; none if no pair remains.
        """
        if not self.whole:
            if self.rule == "fisher":
                value = self._weights * self._squared
            else:
                value = self._information.gain(self._weights, self._slopes)
            value = np.where(self._open, value * self._worth[:, None], -1.0)
            best = int(first_largest(value.ravel()))
            chosen = np.array([best] if self._open.ravel()[best] else [], dtype=np.int64)
        else:
            weights = np.where(self._open, self._weights, 0.0)
            if self.rule == "fisher":
                rated = (weights * self._squared).sum(axis=1)
            else:
                rated = self._information.joint_gain(weights, self._slopes)
            item = int(first_largest(np.where(self._open.any(axis=1), rated * self._worth, -1.0)))
            chosen = item * self._open.shape[1] + np.flatnonzero(self._open[item])
        chosen = chosen[:calls]
        self._open.ravel()[chosen] = False
        self._asked += chosen.tolist()
        formats = self._open.shape[1]
        pairs = self._eligible[chosen // formats] * formats + chosen % formats
        self._pairs += pairs.tolist()
        self._information.add(self._weights.ravel()[chosen], self._flat[0][chosen])
        return np.asarray(pairs, dtype=np.int64)

    def tell(self, scores: ArrayLike) -> None:
        """Record the scores of the last pairs, NaN where missing."""
        self._scores += np.asarray(scores, dtype=np.float64).ravel().tolist()
        self._abilities = None
        if self.adaptive:
            self._theta = self.abilities.theta[0]
            self._rate()
