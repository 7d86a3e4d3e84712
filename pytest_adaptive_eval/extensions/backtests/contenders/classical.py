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
from pytest_adaptive_eval.extensions.backtests.contender import Contender
from pytest_adaptive_eval.inference.clusters import clusters, response_factors
from pytest_adaptive_eval.irt.estimation import PseudoItems
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Array


def _form(order: Sequence[int]) -> Policy:
    return Policy(FixedForm(tuple(order)), 0.0)


def _cluster_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    """Make a form of the items nearest to the centres of `count` clusters (k-means)."""
    points = response_factors(train) if embeddings is None else embeddings
    chosen = clusters(points, count, seed).items
    others = np.setdiff1d(np.arange(len(points)), chosen)[: count - len(chosen)]
    return _form([*chosen.tolist(), *others.tolist()])


def _item_total_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    """Make a form of the items that correlate most with the subjects' means."""
    return _form(tie_ranks(-item_total(train)).argsort(kind="stable")[:count].tolist())


def _evolved_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    """Make a form by FlashEval's evolutionary search."""
    return _form(evolved(train, count, np.random.default_rng(seed)).tolist())


_UNIFORM = Policy(Random(), 0.0)
_MOST_INFORMATION = Policy(MaximumInformation(), 0.0)

REGISTERED = (
    Contender("estimate", "bank", POLICIES["estimate"], "projection", "the policy estimate, on the model of --model"),
    Contender(
        "decide",
        "bank",
        replace(POLICIES["decide"], batch=1),
        "projection",
        "the policy decide, one by one, on the same model",
    ),
    Contender("random", "none", _UNIFORM, "mean", "uniform draws, mean score"),
    Contender("random-projected", "bank", _UNIFORM, "projection", "uniform draws, projected by the model of --model"),
    Contender(
        "stratified",
        "none",
        Policy(Stratified(), 0.0),
        "mean",
        "equal numbers a category, mean score",
        needs="categories",
    ),
    Contender(
        "cluster",
        "none",
        _cluster_form,
        "mean",
        "an item a cluster of response patterns, mean score",
        needs="responses",
    ),
    Contender(
        "item-total", "none", _item_total_form, "mean", "items that go with the total, mean score", needs="responses"
    ),
    Contender(
        "flasheval", "none", _evolved_form, "mean", "evolutionary search (FlashEval), mean score", needs="responses"
    ),
    Contender(
        "form", "bank", POLICIES["form"], "projection", "the policy form: the same items for everybody", needs="form"
    ),
    Contender(
        "nearest-difficulty",
        "1pl",
        Policy(NearestDifficulty(), 0.0, estimator=PseudoItems()),
        "ability",
        "Rasch, difficulty nearest to ability (as in AutoJudger)",
        needs="one dimension",
    ),
    Contender(
        "nearest-difficulty-bisection",
        "1pl",
        Policy(NearestDifficulty(), 0.0, estimator=PseudoItems(count=0, name="bisection")),
        "ability",
        "the same without a prior (as in its code)",
        needs="one dimension",
        variant=True,
    ),
    Contender("maximum-information", "2pl", _MOST_INFORMATION, "projection", "2PL, most information"),
    Contender("d-optimal", "mirt", _MOST_INFORMATION, "projection", "MIRT, D-optimal"),
    Contender("information", "2pl", Policy(Information(), 0.25), "projection", "2PL, drawn by information, floor .25"),
    Contender("spread", "2pl", Policy(Spread(), 0.5), "projection", "2PL, drawn by predicted spread, floor .5"),
    Contender(
        "variance", "mirt", Policy(Variance(), 0.0), "projection", "MIRT, what most lowers the projection's variance"
    ),
)
