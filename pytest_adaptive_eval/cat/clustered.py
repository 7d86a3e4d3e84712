"""Test form of items from the middles of clusters, made for a bank and a number of items."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Array, Ints

CLUSTERS = 200  #: Largest number of clusters: k-means of more is slow, and many would have one member.
SAMPLE = 10_000  #: Most items for k-means; of a larger bank, the first items come from a random sample of this size.
ABILITIES = 32  #: Abilities, drawn from the prior, at which predicted scores are compared.
SEED = 0  #: Seed of the sample, the abilities and k-means.


@lru_cache(maxsize=8)
def cluster_order(bank: ItemBank, count: int) -> Ints:
    """Return all items: the middles of `count` clusters first, those of large clusters before others, shape (n,).

    Args:
        bank: Calibrated.
        count: At least 1. With more than `CLUSTERS`, second items of clusters follow the first ones.
    """
    n = len(bank)
    sample = np.arange(n)
    if n > SAMPLE:
        sample = np.sort(np.random.default_rng(SEED).choice(n, SAMPLE, replace=False))
    points = _coordinates(bank, sample)
    label = clusters(points, min(count, CLUSTERS), SEED).label
    sizes = np.bincount(label)
    centres = np.stack([np.bincount(label, column) / sizes for column in points.T], axis=1)
    distance = ((points - centres[label]) ** 2).sum(axis=1)
    distance = tie_ranks(distance, float(np.square(points).sum(axis=1).max()))
    order = np.lexsort((distance, label))
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(sample), dtype=np.int64)  # number of nearer members of the cluster
    rank[order] = np.arange(len(sample)) - starts[label[order]]
    first = sample[np.lexsort((distance, -sizes[label], rank))]
    found: Ints = np.concatenate([first, np.setdiff1d(np.arange(n), first)])
    found.flags.writeable = False
    return found


def _coordinates(bank: ItemBank, items: Ints) -> Array:
    """Return coordinates whose squared distance is that of two items' scores, on average over subjects, without noise.

    They are the predicted scores at abilities of the prior, and the residuals of the calibration subjects where the
    bank's predictor has them.
    """
    theta = np.random.default_rng(SEED).standard_normal((ABILITIES, bank.dimensions))
    c = None if bank.asymptote is None else bank.asymptote[items]
    points = irt.probability(theta, bank.discrimination[items], bank.intercept[items], c).T / math.sqrt(ABILITIES)
    if bank.predictor is None:
        return np.ascontiguousarray(points)
    return np.concatenate([points, bank.predictor.residuals[:, items].T], axis=1)
