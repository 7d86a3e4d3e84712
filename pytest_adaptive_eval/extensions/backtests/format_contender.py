"""Declaration of a contender of backtests in formats, and the fold that it is given.

A fold has one subject left out of the fits. For each budget, a contender returns the pairs of item and format
administered to that subject, one call each, and its estimates. The number of a pair is ``item * F + format``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.calibration.multimodal import MultimodalFit, Training, fit_multimodal
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality
from pytest_adaptive_eval.irt.multimodal import Form, Modalities
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Fits by the likelihood alone: priors so wide that they say nothing.
PLAIN = Training(rate=0.01, item_spread=10.0, ability_spread=10.0)


@dataclass(slots=True)
class FormatInterviewResult:
    """An interview at one budget.

    Args:
        pairs: Shape (calls,).
        every, fullest: Estimates of the mean over all formats, and in the fullest, from the subject's own answers; NaN
            for none.
    """

    pairs: Ints
    every: float
    fullest: float


@dataclass(frozen=True, slots=True)
class FitEnd:
    """How a fit ended.

    Args:
        bound: Upper bound q of the parts.
        at_edge: Whether that is the smallest or the largest q that was tried.
    """

    settled: bool
    bound: float | None = None
    at_edge: bool = False

    @classmethod
    def of(cls, fit: Any) -> FitEnd:
        """Return the end of a fit, in formats or not."""
        if not isinstance(fit, MultimodalFit):
            return cls(fit.converged)
        bound = fit.items.bound
        return cls(fit.converged, bound, bound in (min(fit.tried), max(fit.tried)))


@dataclass(eq=False)
class Fold:
    """One subject left out, and fits to the others, each made once.

    Args:
        scores: Shape (S, n, F). Scores of all subjects that are fitted or interviewed.
        target: Row of the subject left out.
        budgets: Calls, by the text of the setting.
        kin: Rows of subjects of its family, which are left out of the fits too.
        limit: Largest number of iterations of each fit, or of steps for one q; their own when omitted.
    """

    scores: Array
    modalities: Modalities
    target: int
    budgets: Mapping[str, int]
    seed: int = 0
    kin: Sequence[int] = ()
    limit: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    ends: dict[str, FitEnd] = field(default_factory=dict)

    def __post_init__(self) -> None:
        train = np.delete(self.scores, [self.target, *self.kin], axis=0)
        # items that nobody else answered cannot be fitted, and are not administered
        self.items = np.flatnonzero(~np.isnan(train).all(axis=(0, 2)))
        self.train = train[:, self.items]
        #: Scores of the subject left out, by pair.
        self.target_scores = self.scores[self.target][self.items].ravel()
        #: Scores of the other subjects, by pair.
        self.train_pairs = self.train.reshape(len(self.train), -1)
        #: Pairs that some of the others answered: a model with a pair for an item can be fitted to these.
        self.answered_pairs = np.flatnonzero(~np.isnan(self.train_pairs).all(axis=0))
        self.formats = self.scores.shape[2]
        self._fits: dict[str, Any] = {}

    def multimodal_fit(self, form: Form, *, likelihood: bool = False) -> Any:
        """Return the fit of items in formats to the other subjects; `likelihood` leaves the priors out."""
        name, training = (f"{form}-likelihood", PLAIN) if likelihood else (form, Training())
        if self.limit is not None:
            training = replace(training, steps=self.limit)
        return self._once(
            name,
            lambda: fit_multimodal(
                self.train, modalities=self.modalities, form=form, training=training, seed=self.seed
            ),
        )

    def quality(self) -> Any:
        """Return the quality of the items by the responses of the other subjects."""
        return self._once("quality", lambda: item_quality(self.train, self.modalities, seed=self.seed))

    def pair_fit(self, model: str) -> Any:
        """Return a fit of a model with a pair for an item to the other subjects."""
        limit = 100 if self.limit is None else self.limit
        return self._once(model, lambda: fit_map(self.train_pairs[:, self.answered_pairs], model=model, limit=limit))

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._fits:
            start = time.process_time()
            fit = self._fits[name] = make()
            self.seconds[name] = time.process_time() - start
            if hasattr(fit, "converged"):
                self.ends[name] = FitEnd.of(fit)
        return self._fits[name]

    def means(self, order: Callable[[int], Ints]) -> dict[str, FormatInterviewResult]:
        """Return mean scores over pairs that are chosen before the interview."""
        results = {}
        for name, budget in self.budgets.items():
            pairs = order(min(budget, self.target_scores.size))
            scores = self.target_scores[pairs]
            results[name] = FormatInterviewResult(pairs, mean_score(scores), mean_score(scores[self.in_fullest(pairs)]))
        return results

    def in_fullest(self, pairs: Ints) -> Bools:
        """Return whether each pair is in the fullest format."""
        return np.asarray(pairs % self.formats == self.modalities.fullest)

    def pairs_of_all(self, pairs: Ints) -> Ints:
        """Return the same pairs among all items, including items that nobody answered."""
        return np.asarray(self.items[pairs // self.formats] * self.formats + pairs % self.formats)


def mean_score(scores: Array, weights: Array | None = None) -> float:
    """Return the mean of the scores that are not missing; NaN if there are none."""
    scored = ~np.isnan(scores)
    if not scored.any():
        return float("nan")
    return float(np.average(scores[scored], weights=None if weights is None else weights[scored]))


@dataclass(frozen=True, slots=True)
class FormatContender:
    """A way to choose pairs.

    Args:
        name: Value of ``--policy``.
        interview: Takes a fold and returns a result for each budget.
        drawn: Whether it draws at random, and is repeated.
        uniform: Whether it draws all pairs alike: the reference for calls spent on low-quality items.
        tested: Whether it is tested against each contender that is not, the comparators.
    """

    name: str
    summary: str
    interview: Callable[[Fold], dict[str, FormatInterviewResult]]
    drawn: bool = False
    uniform: bool = False
    tested: bool = False
