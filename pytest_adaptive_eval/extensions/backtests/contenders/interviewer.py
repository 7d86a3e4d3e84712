"""Register AutoJudger as in its paper, without a model as interviewer, and with one setting changed each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.extensions.backtests.contender import Contender
from pytest_adaptive_eval.inference.clusters import residual_factors
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.embeddings import FactorsEmbedder
from pytest_adaptive_eval.types import Array


@dataclass(frozen=True, slots=True)
class AutoJudgerMaker:
    """Maker of AutoJudger policies from calibration subjects.

    Args:
        settings: Settings of `AutoJudger`, besides embeddings, responses and seed.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG002
        """Return the policy; without embeddings, items are placed by the responses of `train`, or by the bank."""
        factors = residual_factors(train) if len(train) else FactorsEmbedder()
        points = factors if embeddings is None else embeddings
        responses = train if len(train) else None
        return Policy(AutoJudger(points, responses=responses, seed=seed, **self.settings), 0.0)


def _variant(
    suffix: str,
    summary: str,
    model: str = "1pl",
    estimate: Literal["projection", "mean", "ability"] = "ability",
    **settings: Any,
) -> Contender:
    return Contender(f"autojudger-{suffix}", model, AutoJudgerMaker(settings), estimate, summary, variant=True)


REGISTERED = (
    Contender(
        "autojudger", "1pl", AutoJudgerMaker(), "ability", "Rasch; the best of the 5 farthest questions, by code"
    ),
    _variant("no-agent", "nobody picks", agent=False),
    _variant("no-memory", "the interviewer remembers nothing", memory=False),
    _variant("no-difficulty", "nobody knows difficulties, mean score", "none", "mean", difficulty="none"),
    _variant("nearest", "candidates of the nearest difficulty", retrieval="nearest-difficulty"),
    _variant("random", "candidates drawn in the window", retrieval="random"),
    _variant("7", "of 7 candidates", candidates=7),
    _variant("10", "of 10 candidates", candidates=10),
    _variant("first-difficulty", "first questions by difficulty", first="difficulty"),
    _variant("first-random", "first questions drawn", first="random"),
    _variant("first-none", "no first questions", first="none"),
    _variant("2pl", "a 2PL bank, ranked by its projection", "2pl", "projection"),
    _variant("3pl", "a 3PL bank, ranked by its projection", "3pl", "projection"),
)
