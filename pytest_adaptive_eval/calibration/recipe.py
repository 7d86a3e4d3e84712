"""Calibration of items by any registered engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration, FitEngine, FitSettings, Progress
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.types import Array

#: Engines by the name used in settings.
ENGINES: Mapping[str, FitEngine] = registered(
    "pytest_adaptive_eval.calibration.engines", "adaptive_eval.fit_engines", FitEngine
)
#: Item response models that an engine fits, by the name used in settings.
MODELS = tuple(dict.fromkeys(model for engine in ENGINES.values() for model in engine.models))


@dataclass(frozen=True, slots=True)
class Recipe(FitSettings):
    """Settings of a calibration by one of `ENGINES`; a call calibrates."""

    def check_model(self) -> None:
        """Refuse a model that the engine does not fit."""
        models = ENGINES[self.engine].models
        if self.model not in models:
            others = []
            for name, engine in ENGINES.items():
                if self.model in engine.models:
                    others.append(name)
            raise ConfigError(
                f"engine {self.engine} fits {', '.join(models[:-1])} and {models[-1]}, not {self.model}: choose one "
                f"of them, or engine {' or '.join(others)}"
            )

    def with_model(self, model: str) -> Recipe:
        """Return the recipe of another model, with the default engine if this one does not fit it."""
        if model == self.model:
            return self
        engine = self.engine
        if model not in ENGINES[engine].models:
            engine = Recipe().engine
        return replace(self, model=model, dimensions=None, engine=engine)

    def __call__(
        self,
        scores: Array,
        progress: Progress | None = None,
        weights: Array | None = None,
        shared_fits: dict[Any, Any] | None = None,
    ) -> Calibration:
        """Calibrate from scores (S, n), NaN where missing, and optional weights of the subjects, shape (S,).

        An item that none of these subjects answered, as may happen in a part of sparse responses, gets the mean of the
        others' parameters. `shared_fits` is a dict that recipes of other models share for equal scores and weights, see
        `FitEngine`.
        """
        answered = np.asarray(~np.isnan(scores).all(axis=0))
        if not answered.all():
            return self(scores[:, answered], progress, weights, shared_fits).expand(answered)
        self.check_model()
        engine = ENGINES[self.engine]
        options: dict[str, Any] = {}
        if engine.weighted and weights is not None:
            options["weights"] = weights
        if engine.shares and shared_fits is not None:
            options["shared_fits"] = shared_fits
        return engine.fit(scores, self, progress, **options)

    def fit_completely(
        self, scores: Array, weights: Array | None = None, shared_fits: dict[Any, Any] | None = None
    ) -> Calibration:
        """Calibrate, and let Ctrl-C end more than the fit, since half a fit has no use here; see `__call__`.

        Raises:
            KeyboardInterrupt: The fit was interrupted.
        """
        fit = self(scores, weights=weights, shared_fits=shared_fits)
        if fit.interrupted:
            raise KeyboardInterrupt
        return fit


@dataclass(frozen=True, slots=True)
class PartFits:
    """Calibrations from some of the subjects of one set of responses, each of them made once.

    Designs are chosen and conformal tables are made in the same folds.
    """

    recipe: Recipe
    _made: dict[tuple[str, ...], Calibration] = field(default_factory=dict)

    def __call__(self, part: Responses) -> Calibration:
        """Return the calibration from these subjects; see `Recipe.fit_completely`."""
        if part.subjects not in self._made:
            self._made[part.subjects] = self.recipe.fit_completely(part.scores, part.weights)
        return self._made[part.subjects]
