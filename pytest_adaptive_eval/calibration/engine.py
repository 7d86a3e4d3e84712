"""Declaration of a fit engine, and the parameters that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Bools


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Parameters of n items: p = c + (1 - c) expit(A . theta + d).

    Args:
        discrimination: Shape (n, D).
        intercept, guess: Shape (n,).
        difficulty_sd: Shape (n,). Posterior standard deviation of the difficulty b, in logits; NaN where unknown.
        about: Engine, iterations, seed and other facts for the report.
    """

    model: str
    discrimination: Array
    intercept: Array
    guess: Array
    difficulty_sd: Array
    converged: bool
    interrupted: bool = False
    about: dict[str, Any] = field(default_factory=dict)

    def bank(self, name: str, ids: Sequence[str]) -> ItemBank:
        """Return a bank without texts."""
        return ItemBank(name, ids, (), self.discrimination, self.intercept, self.guess, model=self.model)

    def expand(self, fitted: Bools) -> Calibration:
        """Return the parameters of all items, shape (n,) of `fitted`; items not fitted get the mean parameters."""

        def expand_array(values: Array, other: Any) -> Array:
            out = np.empty((len(fitted), *values.shape[1:]))
            out[:] = other
            out[fitted] = values
            return out

        return replace(
            self,
            discrimination=expand_array(self.discrimination, self.discrimination.mean(axis=0)),
            intercept=expand_array(self.intercept, self.intercept.mean()),
            guess=expand_array(self.guess, self.guess.mean()),
            difficulty_sd=expand_array(self.difficulty_sd, np.nan),
        )


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Settings of a fit.

    Args:
        dimensions: Number of ability dimensions, for ``mirt``; the engine's own when omitted.
        seed: Seed of engines that draw.
        limit: Largest number of iterations, or of steps; the engine's own when omitted.
    """

    model: str = "2pl"
    dimensions: int | None = None
    engine: str = "map"
    seed: int = 0
    device: str | None = None
    limit: int | None = None


#: Called with the iteration and the change, or another measure of convergence.
Progress = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class FitEngine:
    """One way to fit item parameters.

    Args:
        name: Value of ``engine``.
        summary: One clause for help.
        fit: Fit the items to scores (S, n), NaN where missing.
        slow: Whether a fit takes so long that checks of a bank repeat it only once.
        weighted: Whether `fit` takes the subjects' weights, shape (S,), as ``weights``; without, every subject counts
            fully.
        shares: Whether `fit` takes, as ``shared_fits``, a dict of its fits for other models of the same scores, weights
            and settings, and adds to it.
        measure: Name of the number that `fit` reports with each iteration.
    """

    name: str
    summary: str
    models: tuple[str, ...]
    fit: Callable[..., Calibration]
    slow: bool = False
    weighted: bool = False
    shares: bool = False
    measure: str = "largest change"
