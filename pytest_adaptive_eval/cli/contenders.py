"""The policies that ``adaptive-eval backtest`` compares: the classical ones, and AutoJudger with its switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_adaptive_eval.calibration.backtest import CONTENDERS, Contender
from pytest_adaptive_eval.cat.session import Policy
from pytest_adaptive_eval.inference.clusters import residual_factors
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.embeddings import FactorsEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ALL", "AUTOJUDGER", "Interviewed", "autojudger_text"]


@dataclass(frozen=True, slots=True)
class Interviewed:
    """Makes an AutoJudger policy from calibration subjects; see `calibration.backtest.Maker`.

    Parameters
    ----------
    settings : mapping
        Of `AutoJudger`, besides embeddings, responses and seed.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG002
        """The policy; items lie by their embeddings, by how the calibration subjects answered, or by the bank."""
        stand_in = residual_factors(train) if len(train) else FactorsEmbedder()
        points = stand_in if embeddings is None else embeddings
        responses = train if len(train) else None
        return Policy(AutoJudger(points, responses=responses, seed=seed, **self.settings), 0.0)


def _variant(
    name: str,
    says: str,
    model: Literal["none", "1pl", "2pl", "3pl"] = "1pl",
    estimate: Literal["projection", "mean", "ability"] = "ability",
    **settings: Any,
) -> Contender:
    return Contender(f"autojudger{name}", model, Interviewed(settings), estimate, says)


#: AutoJudger as in its paper, without a model as interviewer, and with one switch changed each.
AUTOJUDGER: Mapping[str, Contender] = {
    contender.name: contender
    for contender in (
        _variant("", "Rasch; the best of the 5 farthest questions, by code"),
        _variant("-no-agent", "nobody picks", agent=False),
        _variant("-no-memory", "the interviewer remembers nothing", memory=False),
        _variant("-no-difficulty", "nobody knows difficulties, mean score", "none", "mean", difficulty="none"),
        _variant("-nearest", "candidates of the nearest difficulty", retrieval="nearest-difficulty"),
        _variant("-random", "candidates drawn in the window", retrieval="random"),
        _variant("-7", "of 7 candidates", candidates=7),
        _variant("-10", "of 10 candidates", candidates=10),
        _variant("-first-difficulty", "first questions by difficulty", first="difficulty"),
        _variant("-first-random", "first questions drawn", first="random"),
        _variant("-first-none", "no first questions", first="none"),
        _variant("-2pl", "a 2PL bank, ranked by its projection", "2pl", "projection"),
        _variant("-3pl", "a 3PL bank, ranked by its projection", "3pl", "projection"),
    )
}
#: Everything by name.
ALL: Mapping[str, Contender] = {**CONTENDERS, **AUTOJUDGER}


def autojudger_text() -> str:
    """The switches, for help."""
    first, *others = AUTOJUDGER
    lines = [f"  {first:20} {AUTOJUDGER[first].says}", "and AutoJudger with one switch changed:"]
    return "\n".join(lines + [f"  {name:28} {AUTOJUDGER[name].says}" for name in others])
