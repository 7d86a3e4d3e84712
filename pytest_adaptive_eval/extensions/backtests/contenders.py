"""Contenders of backtests: ways to interview and to estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pytest_adaptive_eval.cat.policy import A2_JUDGER, AUTOJUDGER_PAPER, PAPERS, POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import (
    FixedForm,
    Information,
    MaximumInformation,
    NearestDifficulty,
    Random,
    Spread,
    Stratified,
    Variance,
)
from pytest_adaptive_eval.inference.clusters import clusters, residual_factors, response_factors
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.irt.estimation import PseudoItems
from pytest_adaptive_eval.types import Array

_UNIFORM = Policy(Random(), 0.0)
#: Makes a policy from the scores (S, n) of the calibration subjects, embeddings (n, E) of the items or None, the budget
#: in items, and a seed.
PolicyMaker = Callable[[Array, Array | None, int, int], Policy]


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to interview and to estimate.

    Args:
        name: Value of ``--policy``.
        model: Item response model of the bank, ``bank`` for that of ``--model``, or ``none``.
        policy: A maker makes one for every split and budget.
    """

    name: str
    model: str
    policy: Policy | PolicyMaker
    estimate: Literal["projection", "mean", "ability"]
    summary: str


@dataclass(frozen=True, slots=True)
class AutoJudgerMaker:
    """Maker of AutoJudger policies from calibration subjects.

    Args:
        settings: Settings of `AutoJudger`, besides embeddings, responses and seed.
        policy: Estimator and all else of the policy; its selector is replaced.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    policy: Policy = _UNIFORM

    def __call__(self, train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG002
        """Return the policy; without embeddings, the responses of `train` place the items."""
        if embeddings is None:
            points = residual_factors(train)
        else:
            points = embeddings
        return replace(self.policy, selector=AutoJudger(points, responses=train, seed=seed, **self.settings))


def _cluster_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    if embeddings is None:
        points = response_factors(train)
    else:
        points = embeddings
    chosen = clusters(points, count, seed).items
    others = np.setdiff1d(np.arange(len(points)), chosen)[: count - len(chosen)]
    return Policy(FixedForm((*chosen.tolist(), *others.tolist())), 0.0)


def _mean(name: str, policy: Policy | PolicyMaker, summary: str) -> Contender:
    return Contender(name, "none", policy, "mean", f"{summary}, mean score")


def _projected(name: str, model: str, policy: Policy, summary: str) -> Contender:
    return Contender(name, model, policy, "projection", summary)


def _by_ability(name: str, policy: Policy | PolicyMaker, summary: str) -> Contender:
    return Contender(name, "1pl", policy, "ability", f"Rasch; {summary}")


_MOST_INFORMATION = Policy(MaximumInformation(), 0.0)
_NEAREST = Policy(NearestDifficulty(), 0.0, estimator=PseudoItems())

#: Contenders by name.
CONTENDERS: Mapping[str, Contender] = {
    contender.name: contender
    for contender in (
        _projected("estimate", "bank", POLICIES["estimate"], "the policy estimate, on the model of --model"),
        _projected("decide", "bank", replace(POLICIES["decide"], batch=1), "the policy decide, on the same model"),
        _mean("random", _UNIFORM, "uniform draws"),
        _projected("random-projected", "bank", _UNIFORM, "uniform draws, projected by the model of --model"),
        _mean("stratified", Policy(Stratified(), 0.0), "equal numbers a category"),
        _mean("cluster", _cluster_form, "one item per cluster of response patterns"),
        _projected("form", "bank", POLICIES["form"], "the policy form: the same items for everybody"),
        _by_ability("nearest-difficulty", _NEAREST, "difficulty nearest to the ability (as in AutoJudger)"),
        _projected("maximum-information", "2pl", _MOST_INFORMATION, "2PL, most information"),
        _projected("d-optimal", "mirt", _MOST_INFORMATION, "MIRT, D-optimal"),
        _projected("information", "2pl", Policy(Information(), 0.25), "2PL, drawn by information, floor .25"),
        _projected("spread", "2pl", Policy(Spread(), 0.5), "2PL, drawn by predicted spread, floor .5"),
        _projected("variance", "mirt", Policy(Variance(), 0.0), "MIRT, what most lowers the projection's variance"),
        _by_ability("autojudger", AutoJudgerMaker(), "the best of the 5 farthest questions, by code"),
        _by_ability(AUTOJUDGER_PAPER, AutoJudgerMaker(policy=PAPERS[AUTOJUDGER_PAPER]), "the same, without a prior"),
        _by_ability(
            A2_JUDGER,
            AutoJudgerMaker({"profile": True}, PAPERS[A2_JUDGER]),
            "the same with a wide prior, of the least certain category",
        ),
    )
}
