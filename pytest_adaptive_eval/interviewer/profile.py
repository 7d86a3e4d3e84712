"""Abilities by category of one interview, and the category that the next question comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.irt.profile import Profile
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Array, Bools


@dataclass(frozen=True, slots=True, eq=False)
class DimensionProfile:
    """Abilities of a subject by category.

    Args:
        names: Categories, G of them.
        membership: Shape (n, G). The shares of the categories in each item, rows of sum 1.
        estimate: Abilities in the order of `names`.
    """

    names: tuple[str, ...]
    membership: Array
    estimate: Profile

    @property
    def abilities(self) -> dict[str, tuple[float, float]]:
        """Ability and standard error by category, in logits."""
        estimate = self.estimate
        pairs = zip(estimate.ability.tolist(), estimate.standard_error.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))

    @property
    def deviation(self) -> Array:
        """Shape (n,). Deviation of each item's ability from the whole one, in logits."""
        return np.asarray(self.membership @ (self.estimate.ability - self.estimate.whole))

    def least_certain(self, inside: Bools) -> Bools:
        """Return which items are of the category with the largest standard error among items `inside`, shape (n,)."""
        present = self.membership[inside].any(axis=0)
        errors = np.where(present, self.estimate.standard_error, -1.0)
        return np.asarray(self.membership[:, first_largest(errors)] > 0)

    def name_of(self, item: int) -> str:
        """Return the least certain category of an item."""
        errors = np.where(self.membership[item] > 0, self.estimate.standard_error, -1.0)
        return self.names[int(first_largest(errors))]
