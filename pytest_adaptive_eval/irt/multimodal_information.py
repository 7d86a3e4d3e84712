"""Which item to ask next, in which format: one subject's interview with a bank of items in formats.

A call asks one item in one format, so that a budget is a number of *pairs* of an
item and a format; pair ``item * F + format``.  Two rules rate pairs, Fisher
information about the ability in the format (M2) and cumulative D-optimality by
rank-one updates (M3), and each can rate single pairs or items in all their
formats together.  An item's `worth` multiplies its rating: 0 leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.multimodal import Abilities, Information, MultimodalItems, Population, estimate_abilities

__all__ = ["FormatInterview", "Rule"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Rule = Literal["fisher", "d-optimal"]


@dataclass(eq=False)
class FormatInterview:
    """An interview in formats: `ask`, then `tell`, as often as calls are left.

    Parameters
    ----------
    items : MultimodalItems
    population : Population
        The prior of the subject's abilities.
    rule : {"fisher", "d-optimal"}, optional
        The form's own when omitted: ``fisher`` for M2, ``d-optimal`` for M3.
    whole : bool
        Whether an item is always asked in all its formats, and rated so.
    adaptive : bool
        Whether abilities are estimated anew after every `tell`.  When not, all
        pairs are rated at the middle of the population: one form for every subject.
    worth : array_like, shape (n,), optional
        At least 0; ones when omitted.

    Raises
    ------
    ValueError
        A negative worth, or one of another length.
    """

    items: MultimodalItems
    population: Population
    rule: Rule | None = None
    whole: bool = False
    adaptive: bool = True
    worth: ArrayLike | None = None

    def __post_init__(self) -> None:
        n, formats, parts = self.items.slopes.shape
        worth = np.ones(n) if self.worth is None else np.asarray(self.worth, dtype=np.float64)
        if worth.shape != (n,) or not (worth >= 0).all():
            raise ValueError(f"worth has shape {worth.shape}, expected {n} numbers of at least 0, one an item")
        self.rule = self.rule or ("fisher" if self.items.form == "m2" else "d-optimal")
        # items that may be asked, and what of them does not change
        self._places = np.flatnonzero(worth > 0)
        self._worth = worth[self._places]
        self._slopes, self._intercepts = self.items.slopes[self._places], self.items.intercepts[self._places]
        self._squared = self._slopes[:, :, 0] ** 2 if self.items.form == "m2" else (self._slopes**2).sum(axis=-1)
        self._open = np.ones((len(self._places), formats), dtype=bool)
        self._pairs: list[int] = []
        self._scores: list[float] = []
        self._asked: list[int] = []  # pairs among the items that may be asked
        self._information = Information.start(self.population.precision())
        self._theta = self.population.theta
        self._abilities: Abilities | None = None
        self._flat = self._slopes.reshape(-1, parts), self._intercepts.ravel()
        self._rate()

    @property
    def pairs(self) -> Ints:
        """Pairs asked so far, in order."""
        return np.array(self._pairs, dtype=np.int64)

    @property
    def calls(self) -> int:
        """Calls made."""
        return len(self._pairs)

    @property
    def log_determinant(self) -> float:
        """Of the cumulative information, the prior's included."""
        return self._information.log_determinant

    @property
    def abilities(self) -> Abilities:
        """Estimated from the answers told so far."""
        if self._abilities is None:
            asked = self._asked[: len(self._scores)]
            own = self._flat[0][asked], self._flat[1][asked]
            self._abilities = estimate_abilities([self._scores], *own, self.population, start=self._theta[None])
        return self._abilities

    def _rate(self) -> None:
        """Chances of right answers at the present abilities."""
        p = irt.probability(self._theta[None], *self._flat)[0]
        self._weights = irt.weight(p).reshape(self._open.shape)

    def ask(self, calls: int | None = None) -> Ints:
        """The next pairs: one, or all open formats of one item when `whole`.

        At most `calls`; none when no pair is left.
        """
        if not self.whole:
            if self.rule == "fisher":
                value = self._weights * self._squared
            else:
                value = self._information.gain(self._weights, self._slopes)
            value = np.where(self._open, value * self._worth[:, None], -1.0)
            best = int(value.argmax())
            chosen = np.array([best] if self._open.ravel()[best] else [], dtype=np.int64)
        else:
            left = np.where(self._open, self._weights, 0.0)
            if self.rule == "fisher":
                rated = (left * self._squared).sum(axis=1)
            else:
                rated = self._information.joint_gain(left, self._slopes)
            item = int(np.where(self._open.any(axis=1), rated * self._worth, -1.0).argmax())
            chosen = item * self._open.shape[1] + np.flatnonzero(self._open[item])
        chosen = chosen[:calls]
        self._open.ravel()[chosen] = False
        self._asked += chosen.tolist()
        formats = self._open.shape[1]
        pairs = self._places[chosen // formats] * formats + chosen % formats
        self._pairs += pairs.tolist()
        self._information.add(self._weights.ravel()[chosen], self._flat[0][chosen])
        return np.asarray(pairs, dtype=np.int64)

    def tell(self, scores: ArrayLike) -> None:
        """Hear the scores of the pairs asked last, NaN where there is none."""
        self._scores += np.asarray(scores, dtype=np.float64).ravel().tolist()
        if len(self._scores) != len(self._pairs):
            raise ValueError(f"{len(self._scores)} scores for {len(self._pairs)} pairs asked; one a pair is needed")
        self._abilities = None
        if self.adaptive:
            self._theta = self.abilities.theta[0]
            self._rate()
