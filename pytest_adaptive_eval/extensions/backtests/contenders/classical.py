"""Register the named policies, selectors on fitted banks, and test forms made from calibration responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.calibration.subsets import evolved, item_total
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
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
from pytest_adaptive_eval.extensions.backtests.contender import Contender, Need, PolicyMaker
from pytest_adaptive_eval.inference.clusters import clusters, response_factors
from pytest_adaptive_eval.irt.estimation import PseudoItems
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Array


def _form(order: Sequence[int]) -> Policy:
    return Policy(FixedForm(tuple(order)), 0.0)


def _cluster_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    points = response_factors(train) if embeddings is None else embeddings
    chosen = clusters(points, count, seed).items
    others = np.setdiff1d(np.arange(len(points)), chosen)[: count - len(chosen)]
    return _form([*chosen.tolist(), *others.tolist()])


def _item_total_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    return _form(tie_ranks(-item_total(train)).argsort(kind="stable")[:count].tolist())


def _evolved_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    return _form(evolved(train, count, np.random.default_rng(seed)).tolist())


def _mean(name: str, policy: Policy | PolicyMaker, summary: str, needs: Need) -> Contender:
    return Contender(name, "none", policy, "mean", f"{summary}, mean score", needs=needs)


def _projected(name: str, model: str, policy: Policy, summary: str, needs: Need = None) -> Contender:
    return Contender(name, model, policy, "projection", summary, needs=needs)


def _nearest(suffix: str, estimator: PseudoItems, summary: str, *, variant: bool = False) -> Contender:
    policy = Policy(NearestDifficulty(), 0.0, estimator=estimator)
    name = f"nearest-difficulty{suffix}"
    return Contender(name, "1pl", policy, "ability", summary, needs="one dimension", variant=variant)


_UNIFORM = Policy(Random(), 0.0)
_MOST_INFORMATION = Policy(MaximumInformation(), 0.0)
_ONE_BY_ONE = replace(POLICIES["decide"], batch=1)
_BISECTION = PseudoItems(count=0, name="bisection")

REGISTERED = (
    _projected("estimate", "bank", POLICIES["estimate"], "the policy estimate, on the model of --model"),
    _projected("decide", "bank", _ONE_BY_ONE, "the policy decide, one by one, on the same model"),
    Contender("random", "none", _UNIFORM, "mean", "uniform draws, mean score"),
    _projected("random-projected", "bank", _UNIFORM, "uniform draws, projected by the model of --model"),
    _mean("stratified", Policy(Stratified(), 0.0), "equal numbers a category", "categories"),
    _mean("cluster", _cluster_form, "an item a cluster of response patterns", "responses"),
    _mean("item-total", _item_total_form, "items that go with the total", "responses"),
    _mean("flasheval", _evolved_form, "evolutionary search (FlashEval)", "responses"),
    _projected("form", "bank", POLICIES["form"], "the policy form: the same items for everybody", "form"),
    _nearest("", PseudoItems(), "Rasch, difficulty nearest to ability (as in AutoJudger)"),
    _nearest("-bisection", _BISECTION, "the same without a prior (as in its code)", variant=True),
    _projected("maximum-information", "2pl", _MOST_INFORMATION, "2PL, most information"),
    _projected("d-optimal", "mirt", _MOST_INFORMATION, "MIRT, D-optimal"),
    _projected("information", "2pl", Policy(Information(), 0.25), "2PL, drawn by information, floor .25"),
    _projected("spread", "2pl", Policy(Spread(), 0.5), "2PL, drawn by predicted spread, floor .5"),
    _projected("variance", "mirt", Policy(Variance(), 0.0), "MIRT, what most lowers the projection's variance"),
)
