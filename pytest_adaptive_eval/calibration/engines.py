"""One door to both engines: responses in, calibrated parameters out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.variational import Model, fit_map
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import counted

__all__ = ["DIMENSIONS", "ENGINES", "Calibration", "Engine", "Recipe", "read_parameters"]

Array = NDArray[np.float64]
Engine = Literal["map", "svi"]

#: Engines by the name used in settings.
ENGINES: tuple[Engine, ...] = ("map", "svi")
#: Dimensions of a ``mirt`` bank unless told otherwise, or one less than there are subjects; more than the data bear
#: shrink away.
DIMENSIONS = 4


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
        Engine, iterations, seed and what else the report tells.
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
        """A bank without texts."""
        return ItemBank(name, ids, (), self.discrimination, self.intercept, self.guess, model=self.model)

    def among(self, fitted: NDArray[np.bool_]) -> Calibration:
        """The items at their places among others, shape (n,), which take the mean of the parameters."""

        def place(values: Array, other: Any) -> Array:
            out = np.empty((len(fitted), *values.shape[1:]))
            out[:] = other
            out[fitted] = values
            return out

        return replace(
            self,
            discrimination=place(self.discrimination, self.discrimination.mean(axis=0)),
            intercept=place(self.intercept, self.intercept.mean()),
            guess=place(self.guess, self.guess.mean()),
            difficulty_sd=place(self.difficulty_sd, np.nan),
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to calibrate; calling it does.

    Parameters
    ----------
    model : {"1pl", "2pl", "3pl", "mirt"}
    dimensions : int, optional
        Of ``mirt``; see `DIMENSIONS` when omitted.
    engine : {"map", "svi"}
        ``svi`` has no ``mirt``.
    seed : int
        Of ``svi``; ``map`` draws nothing.
    device : str, optional
        A torch device such as ``cuda``.
    limit : int, optional
        Largest number of iterations, or of steps; the engine's own when omitted.
    """

    model: Model = "2pl"
    dimensions: int | None = None
    engine: Engine = "map"
    seed: int = 0
    device: str | None = None
    limit: int | None = None

    def __call__(self, scores: Array, progress: Callable[[int, float], None] | None = None) -> Calibration:
        """Calibrate from scores (S, n), NaN where missing.

        An item that none of these subjects answered, as may happen in a part of
        sparse responses, takes the mean of the others' parameters.
        """
        answered = np.asarray(~np.isnan(scores).all(axis=0))
        if not answered.all():
            return self(scores[:, answered], progress).among(answered)
        if self.engine == "svi":
            return self._svi(scores, progress)
        D = self.dimensions
        if self.model == "mirt" and D is None:
            D = max(1, min(DIMENSIONS, len(scores) - 1))
        more: dict[str, Any] = {} if self.limit is None else {"limit": self.limit}
        fit = fit_map(scores, model=self.model, dimensions=D, device=self.device, progress=progress, **more)
        slope = np.sqrt((fit.discrimination**2).sum(axis=1))
        return Calibration(
            self.model,
            fit.discrimination,
            fit.intercept,
            fit.guess,
            np.sqrt(fit.covariance[:, -1, -1]) / np.maximum(slope, 0.1),
            fit.converged,
            fit.interrupted,
            {
                "engine": "map",
                "dimensions": fit.discrimination.shape[1],
                "iterations": fit.iterations,
                "change": float(f"{fit.change:.3g}"),
                "gradient": float(f"{fit.gradient:.3g}"),
            },
        )

    def finished(self, scores: Array) -> Calibration:
        """Calibrate as by a call, but let Ctrl-C end more than the fit: of half a fit nothing follows.

        Raises
        ------
        KeyboardInterrupt
            The fit was interrupted.
        """
        fit = self(scores)
        if fit.interrupted:
            raise KeyboardInterrupt
        return fit

    def _svi(self, scores: Array, progress: Callable[[int, float], None] | None) -> Calibration:
        from pytest_adaptive_eval.calibration.svi import SVISettings, fit_svi

        if self.model == "mirt":
            raise ConfigError(
                "the engine svi fits the models 1pl (as AutoJudger), 2pl and 3pl, and not mirt: choose one of them, or "
                "the engine map"
            )
        more: dict[str, Any] = {} if self.limit is None else {"steps": self.limit}
        if self.device is not None:
            more["device"] = self.device
        settings = SVISettings(**more)
        fit = fit_svi(scores, model=self.model, settings=settings, seed=self.seed, progress=progress)
        return Calibration(
            self.model,
            fit.discrimination[:, None],
            fit.intercept,
            fit.guess,
            fit.difficulty_sd,
            fit.converged,
            fit.interrupted,
            {"engine": "svi", "dimensions": 1, "iterations": fit.steps, "seed": self.seed},
        )


_PARAMETERS = {
    "difficulty": ("difficulty", "b", "loc_diff"),
    "discrimination": ("discrimination", "a"),
    "guess": ("guess", "guessing", "c"),
    "difficulty_sd": ("difficulty_sd", "difficulty_std", "scale_diff"),
}
#: Bytes that are read of a file of parameters, unpacked.
_LARGEST = 1 << 30
_IDS = ("id", "item", "item_id", "model_sha")


def read_parameters(path: Path, items: Sequence[str]) -> Calibration:
    """Published parameters, to be checked on responses: a JSONL with an id and a difficulty an item.

    Raises
    ------
    ResponsesError
        Not such a file, a value that is no finite number, or an item without parameters.
    """
    import zlib

    found: dict[str, dict[str, float]] = {}
    number = 0
    rows: list[tuple[int, Any]] = []
    try:
        with open_text(path) as file:
            for number, line in enumerate(file.read(_LARGEST).split("\n"), 1):
                if line.strip():
                    rows.append((number, json.loads(line)))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        where = f"{path}, line {number}" if number else str(path)
        raise ResponsesError(f"{where}: not a readable JSONL of parameters: {error}") from None
    for number, row in rows:
        name = next((str(row[key]) for key in _IDS if key in row), None) if isinstance(row, dict) else None
        values = {
            ours: float(row[key])
            for ours, keys in _PARAMETERS.items()
            for key in reversed(keys)  # so that the first name counts where there are two
            if name is not None and isinstance(row.get(key), int | float)
        }
        if name is None or "difficulty" not in values:
            raise ResponsesError(
                f"{path}, line {number}: expected an object with id (or {', '.join(_IDS[1:])}) and difficulty (or "
                f"{', '.join(_PARAMETERS['difficulty'][1:])}), a number"
            )
        if name in found:
            raise ResponsesError(f"{path}, line {number}: the item {name!r} stands twice; keep one line of it")
        if wrong := [k for k, v in values.items() if not math.isfinite(v) or (k == "guess" and not 0 <= v < 1)]:
            expected = "a number in [0, 1)" if wrong[0] == "guess" else "a finite number"
            raise ResponsesError(
                f"{path}, line {number}: the item {name!r} has {wrong[0]} {values[wrong[0]]}, expected {expected}"
            )
        found[name] = values
    if lacking := [item for item in items if item not in found]:
        raise ResponsesError(
            f"{path}: no parameters for {len(lacking)} of {counted(len(items), 'item')}, the first {lacking[0]!r}; "
            "give a line for each item of the responses"
        )
    column = {
        name: np.array([found[item].get(name, default) for item in items])
        for name, default in (("difficulty", 0.0), ("discrimination", 1.0), ("guess", 0.0), ("difficulty_sd", np.nan))
    }
    a = column["discrimination"]
    model = "3pl" if column["guess"].any() else "1pl" if np.ptp(a) == 0 else "2pl"
    d = -a * column["difficulty"]
    return Calibration(
        model,
        a[:, None],
        d,
        column["guess"],
        column["difficulty_sd"],
        True,
        False,
        {"engine": "given", "file": path.name},
    )
