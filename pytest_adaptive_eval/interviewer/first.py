"""First questions of an interview, before anything is known about the subject."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.ties import first_largest, tie_ranks
from pytest_adaptive_eval.types import Array, Ints

FirstItems = Literal["cluster", "difficulty", "random", "none"]

#: Most points for k-means; of a larger bank it uses a random sample of this size.
POINTS = 10_000


def by_cluster(
    points: NDArray[Any], count: int, *, restarts: int = 50, responses: Array | None = None, seed: int = 0
) -> Ints:
    """Return the items nearest to the centres of `count` clusters, by the best of many restarts.

    As in AutoJudger, the best restart has the items whose mean score ranks the subjects of `responses` most like their
    mean over all items. Without responses it has the tightest clusters. Ties go to the earlier restart.

    Args:
        points: Shape (n, d).
        count: At most n.
        responses: Shape (S, n). Scores of calibration subjects; NaN where missing.
        seed: Two seeds share no restart, as long as there are at most a thousand.

    Returns:
        Shape (count,). Filled up with the first items of the bank if points coincide.
    """
    sample = np.arange(len(points))
    if len(points) > POINTS:
        sample = np.sort(np.random.default_rng(seed).choice(sample, POINTS, replace=False))
    sampled_points = np.asarray(points[sample], dtype=np.float64)
    clusterings = [clusters(sampled_points, count, 1000 * seed + restart) for restart in range(restarts)]
    if responses is None:
        ratings = [-clustering.inertia for clustering in clusterings]
        scale = float(np.square(sampled_points).sum())
    else:
        accuracy = np.nanmean(responses, axis=1)
        ratings = []
        for clustering in clusterings:
            ratings.append(_ranking_accuracy(responses[:, sample[clustering.items]], accuracy))
        scale = 100.0
    best_restart = int(first_largest(ratings, scale))
    best = sample[clusterings[best_restart].items]
    rest = np.setdiff1d(np.arange(len(points)), best)[: count - len(best)]
    return np.concatenate([best, rest])


def _ranking_accuracy(scores: Array, accuracy: Array) -> float:
    """Return the ranking accuracy of the mean scores; a subject without scores counts as average."""
    counts = (~np.isnan(scores)).sum(axis=1)
    mean = np.where(counts > 0, np.nansum(scores, axis=1) / np.maximum(counts, 1), np.nanmean(accuracy))
    if np.ptp(accuracy) > 0:
        return ranking_accuracy(mean, accuracy)
    return 0.0


def responses_to(bank: ItemBank, responses: Responses, setting: str) -> Responses:
    """Return the responses to the items of a bank, in its order, by subjects that answered any.

    Raises:
        ConfigError: An item has no responses; the message begins with `setting`.
    """
    columns = {item: column for column, item in enumerate(responses.items)}
    lacking = [item for item in bank.ids if item not in columns]
    if lacking:
        raise ConfigError(
            f"{setting}: no responses to {len(lacking)} of the {len(bank)} items of the bank {bank.name!r}, such as "
            f"{lacking[0]!r}; give the responses that it was calibrated from"
        )
    scores = responses.scores[:, [columns[item] for item in bank.ids]]
    answered = np.flatnonzero(~np.isnan(scores).all(axis=1)).tolist()
    subjects = tuple(responses.subjects[s] for s in answered)
    return Responses(subjects, tuple(bank.ids), scores[answered], source=responses.source)


def by_difficulty(difficulty: Array, count: int) -> Ints:
    """Return the items at the middles of `count` equal parts of all items by difficulty, shape (count,).

    The easiest item is first. Items without a difficulty (NaN) are last.
    """
    order = tie_ranks(difficulty).argsort(kind="stable")
    size = max(count, int((~np.isnan(difficulty)).sum()))
    middles = (np.arange(count) + 0.5) * size / count
    return np.asarray(order[middles.astype(np.int64)])
