"""Declaration of a fit engine, and the parameters that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["Calibration", "FitEngine", "FitFunction"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Parameters of n items: p = c + (1 - c) expit(A . theta + d).

    Parameters
    ----------
    model : str
    discrimination : array, shape (n, D)
    intercept, guess : array, shape (n,)
    difficulty_sd : array, shape (n,)
        Posterior standard deviation of the difficulty b, in logits; NaN where unknown.
    converged, interrupted : bool
    about : mapping
        Engine, iterations, seed and other facts for the report.
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

    def expand(self, fitted: NDArray[np.bool_]) -> Calibration:
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


class FitFunction(Protocol):
    """Fit of item parameters to scores."""

    def __call__(
        self,
        scores: Array,
        *,
        model: str,
        dimensions: int | None,
        seed: int,
        device: str | None,
        limit: int | None,
        progress: Callable[[int, float], None] | None,
    ) -> Calibration:
        """Fit the items; parameters as of `Recipe`, scores (S, n) with NaN where missing."""


@dataclass(frozen=True, slots=True)
class FitEngine:
    """One way to fit item parameters.

    Parameters
    ----------
    name : str
        Value of ``engine`` and ``--engine``.
    summary : str
        One clause for help.
    models : tuple of str
        Models that the engine fits.
    fit : FitFunction
    slow : bool
        Whether a fit takes so long that checks of a bank repeat it only once.
    """

    name: str
    summary: str
    models: tuple[str, ...]
    fit: FitFunction
    slow: bool = False
