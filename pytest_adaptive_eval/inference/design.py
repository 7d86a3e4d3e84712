"""Log of an interview's random draws, the input of every interval and test that gates use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from pytest_adaptive_eval.types import Array, Ints

GATE_FLOOR = 0.1  #: Least share of uniform draws with which a selector that is not uniform may feed a gate.
#: Quantities logged for each draw, see `Proposal`.
DESIGN = ("propensities", "predictions", "rest", "variance", "down", "up")
_SCALARS = (
    "size",
    "noise",
    "low",
    "high",
    "take_all",
    "horizon",
    "earlier",
    "fixed",
    "awaited",
    "answers",
    "paths",
)  #: Fields of a `DesignLog` that are no columns.


@dataclass(frozen=True, slots=True)
class DesignLog:
    """Administrations in order, of one subject or, along leading axes, of several.

    All arrays have shape (..., t); `scores` is NaN where there is none. See
    `pytest_adaptive_eval.inference.design.Proposal` for the rest. `noise` is the variance of a score over decodings, on
    average over the draws: a number, or an array along the leading axes; 0 if it is not measured; scores then count as
    the subject's expected ones. `low` and `high` are the limits of a score, numbers or arrays like `scores`. `take_all`
    is the number of first items that were asked with probability 1, whatever the draws: a take-all stratum. Their
    scores are known parts of the bank's sum and say nothing about other items, so bets and intervals rest on the draws
    after them. `horizon` is the number of administrations planned before the first one, at which some bets aim; 0 for
    none. `earlier` has the smaller horizons, ascending, of earlier runs of the same interview: until each, the bets aim
    at it, as they did then. `fixed` says that the interview ends at its horizon whatever the answers, and is judged
    there alone. `awaited` is the number of draws before the first one whose answer was not awaited, None if all were:
    estimates rest on these, since slow answers differ from quick ones. `answers` has further values of the answers by
    name, such as ``seconds``, in arrays of shape (..., t, n) for n answers per item, NaN where missing. `paths` holds
    the wealth that
    `inference.betting` found on earlier draws of the interview, where it starts from; no result depends on it.
    """

    items: Ints
    scores: Array
    propensities: Array
    predictions: Array
    rest: Array
    variance: Array
    down: Array
    up: Array
    size: int
    noise: float | Array = 0.0
    low: float | Array = 0.0
    high: float | Array = 1.0
    take_all: int = 0
    horizon: int = 0
    earlier: tuple[int, ...] = ()
    fixed: bool = False
    awaited: int | None = None
    answers: Mapping[str, Array] = field(default_factory=dict)
    paths: dict[tuple[float, ...], Array] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the arrays."""
        return tuple(column.name for column in fields(cls) if column.name not in _SCALARS)

    def __len__(self) -> int:
        return int(self.scores.shape[-1])

    def __getitem__(self, index: Any) -> DesignLog:
        """Return the same index or slice of every array."""
        ends = {}
        for name in ("low", "high"):
            if isinstance(end := getattr(self, name), np.ndarray):
                ends[name] = end[index]
        answers = {name: values[index] for name, values in self.answers.items()}
        part = replace(self, **{name: getattr(self, name)[index] for name in self.columns()}, **ends, answers=answers)
        return replace(part, take_all=min(self.take_all, len(part)))

    @property
    def draws(self) -> DesignLog:
        """The draws after the first `take_all` items, from a bank without these."""
        k = self.take_all
        if not k:
            return self
        arrays = [*self.columns(), *(name for name in ("low", "high") if isinstance(getattr(self, name), np.ndarray))]
        columns: dict[str, Any] = {name: getattr(self, name)[..., k:] for name in arrays}
        columns["answers"] = {name: values[..., k:, :] for name, values in self.answers.items()}
        return replace(self, **columns, size=self.size - k, take_all=0, horizon=max(self.horizon - k, 0), earlier=())

    @property
    def estimated(self) -> DesignLog:
        """The draws that give estimates, see `awaited`."""
        if self.awaited:
            return replace(self[: self.awaited], awaited=None)
        return self

    @property
    def horizons(self) -> tuple[int, ...]:
        """All horizons, ascending."""
        return (*self.earlier, self.horizon)

    @property
    def uniform(self) -> bool:
        """Whether all draws were uniform; NaN propensities are not."""
        draws = self.draws
        return bool(np.allclose(draws.propensities * (draws.size - np.arange(len(draws))), 1.0, rtol=1e-9))

    @property
    def before(self) -> Array:
        """Sum of the scores before each draw, shape (..., t)."""
        return np.asarray(self.scores.cumsum(axis=-1) - self.scores)

    @property
    def totals(self) -> Array:
        """Unbiased one-draw estimates of the bank's sum of scores, shape (..., t)."""
        return np.asarray(self.before + self.rest + (self.scores - self.predictions) / self.propensities)

    @property
    def decoding_sd(self) -> Any:
        """Standard deviation of the sum of the scores over decodings, see `noise`."""
        return np.sqrt(len(self) * np.asarray(self.noise))

    def with_missing_as(self, score: float) -> DesignLog:
        """Return the log with every missing score replaced; 0 and 1 give the limits of the missing scores."""
        value = self.low + score * (self.high - self.low)
        return replace(self, scores=np.where(np.isnan(self.scores), value, self.scores))


def uniform_draws(scores: Array, size: int, chosen: int = 0) -> DesignLog:
    """Return a planned number of uniform draws without replacement, with the mean score so far as prediction.

    The mean and the variance have one right and one wrong answer added.

    Args:
        scores: Shape (t,). In [0, 1], in the order of the draws; NaN marks a missing score.
        size: Items in the bank.
        chosen: Number of first items that were not drawn, however they were chosen.
    """
    t = len(scores)
    undrawn = np.maximum(size - np.arange(t, dtype=np.float64), 1.0)
    return DesignLog(
        items=np.arange(t),
        scores=scores,
        propensities=1.0 / undrawn,
        **predicted_by_mean(scores, undrawn, undrawn),
        size=size,
        take_all=chosen,
        horizon=t,
        fixed=True,
    )


def predicted_by_mean(scores: Array, undrawn: Array, reach: Array) -> dict[str, Any]:
    """Return the columns of a `DesignLog` by which the mean score so far predicts every item.

    The mean and the variance have one right and one wrong answer added.

    Args:
        scores: Shape (..., t). In [0, 1]; NaN marks a missing score.
        undrawn: Shape (t,). Items left at each draw, the drawn one included.
        reach: Shape (..., t). Upper bound of 1 / propensity over these.
    """
    before = np.arange(scores.shape[-1], dtype=np.float64)
    filled = np.where(np.isnan(scores), 0.5, scores)
    mean = (filled.cumsum(axis=-1) - filled + 1.0) / (before + 2.0)
    squares = ((filled**2).cumsum(axis=-1) - filled**2 + 1.0) / (before + 2.0)
    return {
        "predictions": mean,
        "rest": mean * undrawn,
        "variance": (squares - mean**2) * undrawn**2,
        "down": mean * reach,
        "up": (1.0 - mean) * reach,
    }


@dataclass(frozen=True, slots=True)
class Proposal:
    """The next k items of S subjects, with what a design-based estimate needs.

    Args:
        items: Shape (S, k).
        design: Shape (6, S, k). `DESIGN`, in this order:

            propensities
                Probability of the item at its own draw, given all draws before; NaN, as
                all but `predictions`, if the selector is deterministic.
            predictions
                Predicted score of the item, fixed before the batch was drawn.
            rest
                Sum of the predictions over the items not yet drawn, this one included.
            variance
                Model-based variance of that draw's weighted residual (score -
                prediction) / propensity, in squared items: the sum of p(1-p)/q over
                the items not yet drawn.  It weights draws; validity does not depend on it.
            down, up
                Largest prediction / propensity, and (1 - prediction) / propensity, of
                an item not yet drawn before the batch, in items: no draw can lower or
                raise the estimate of the total by more, which limits the stakes of bets.
    """

    items: Ints
    design: Array

    @property
    def propensities(self) -> Array:
        """Probability of each item at its own draw, shape (S, k)."""
        return np.asarray(self.design[0])

    @property
    def predictions(self) -> Array:
        """Predicted scores, shape (S, k)."""
        return np.asarray(self.design[1])

    @property
    def rest(self) -> Array:
        """Sum of the predictions over the items not yet drawn, shape (S, k)."""
        return np.asarray(self.design[2])

    @property
    def variance(self) -> Array:
        """Model-based variance of each draw, in squared items, shape (S, k)."""
        return np.asarray(self.design[3])

    @property
    def down(self) -> Array:
        """Largest possible decrease of the estimated total by a draw, in items, shape (S, k)."""
        return np.asarray(self.design[4])

    @property
    def up(self) -> Array:
        """Largest possible increase of the estimated total by a draw, in items, shape (S, k)."""
        return np.asarray(self.design[5])

    @classmethod
    def join(cls, parts: Sequence[Proposal]) -> Proposal:
        """Return one proposal for the subjects of several, in order."""
        return cls(np.concatenate([part.items for part in parts]), np.concatenate([p.design for p in parts], axis=1))

    def __getitem__(self, first: slice) -> Proposal:
        """Return a slice of the k draws."""
        return Proposal(self.items[:, first], self.design[:, :, first])
