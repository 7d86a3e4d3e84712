"""Errors of the items of a multimodal fit, and their part in the errors of abilities.

Intervals that treat the items as exact are too short: with a hundred subjects the
errors of the items' parts, which affect all subjects alike, are as large as the errors of
the answers.  An item's parts have the posterior covariance C_i of their free
numbers, ``logit(x / q)``, to the first order.  Abilities estimated with these items have,
in place of V, the covariance ::

    V + V (sum_i B_i C_i B_i') V

where B_i is the expected cross-derivative of the log-likelihood of the answers to item i by the abilities and by the
item's free numbers.

This holds for new subjects.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.multimodal import Abilities, MultimodalItems
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Array, Bools

#: Largest number of derivatives computed for a block of items.
BLOCK = 4_000_000


def _blocks(items: MultimodalItems, subjects: int) -> list[slice]:
    """Return slices of the items whose derivatives fit into BLOCK numbers."""
    n, formats, parts = items.slopes.shape
    size = max(1, BLOCK // (subjects * formats * 2 * parts))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _by_item(items: MultimodalItems, theta: Array, block: slice) -> tuple[Array, Array]:
    """Return derivatives of the logits by free numbers, (S, m, F, 2 K), and weights p (1 - p), (S, m, F)."""
    design = items.modalities.design
    q = items.bound
    a = items.discrimination[block]
    b = items.difficulty[block]
    slopes = items.slopes[block]
    intercepts = items.intercepts[block]
    z = np.einsum("sk,mfk->smf", theta, slopes) + intercepts
    turn_a = a * (1.0 - a / q)
    turn_b = b * (1.0 - b / q)
    signed = design * items.modalities.signs
    if items.form == "m2":
        above = (theta @ design.T)[:, None, :] - (b @ signed.T)
        by_a = above[..., None] * (design * turn_a[:, None, :])
        by_b = -slopes[:, :, :1] * signed * turn_b[:, None, :]
    else:
        by_a = theta[:, None, None, :] * (design * turn_a[:, None, :])
        by_b = -signed * turn_b[:, None, :]
    p = 1.0 / (1.0 + np.exp(-z))
    return np.concatenate([by_a, np.broadcast_to(by_b, by_a.shape)], axis=-1), irt.weight(p)


def item_covariance(items: MultimodalItems, theta: Array, observed: Bools, spread: float) -> Array:
    """Return the covariance of each item's free numbers, ``logit`` of (a / q, b / q), shape (n, 2 K, 2 K).

    Args:
        theta: Shape (S, K). Abilities of the calibration subjects.
        observed: Shape (S, n, F). Whether each response is present.
        spread: Standard deviation of the free numbers' prior.
    """
    size = 2 * items.slopes.shape[-1]
    out = np.empty((len(items), size, size))
    for block in _blocks(items, len(theta)):
        by, weight = _by_item(items, theta, block)
        flat = by.transpose(1, 0, 2, 3).reshape(by.shape[1], -1, size)
        weighted = flat * np.where(observed[:, block], weight, 0.0).transpose(1, 0, 2).reshape(len(flat), -1, 1)
        out[block] = np.linalg.inv(weighted.swapaxes(1, 2) @ flat + np.eye(size) / spread**2)
    return out


def with_item_errors(abilities: Abilities, items: MultimodalItems, covariance: Array, observed: Bools) -> Abilities:
    """Return abilities with errors that allow for the items' errors, see `item_covariance`; `observed` is (S, n, F)."""
    theta = abilities.theta
    turn = theta * (1.0 - theta / items.bound)
    middle = np.zeros_like(abilities.spread)
    for block in _blocks(items, len(theta)):
        by, weight = _by_item(items, theta, block)
        weight = np.where(observed[:, block], weight, 0.0)
        cross = np.einsum("smf,mfk,smfx->smkx", weight, items.slopes[block], by, optimize=True) * turn[:, None, :, None]
        middle += ((cross @ covariance[block]) @ cross.swapaxes(2, 3)).sum(axis=1)
    spread = abilities.spread + abilities.spread @ middle @ abilities.spread
    return replace(abilities, spread=spread, covariance=spread * turn[:, :, None] * turn[:, None, :])


def gain_error(items: MultimodalItems, theta: Array, covariance: Array) -> Array:
    """Return the standard error of `MultimodalItems.cross_gain` at exact abilities (S, K), shape (n,)."""
    full = items.modalities.fullest
    mean = items.probability(theta).mean(axis=0)
    mean[:, full] = -1.0
    best = first_largest(mean)
    out = np.empty(len(items))
    for block in _blocks(items, len(theta)):
        by, weight = _by_item(items, theta, block)
        slope = (by * weight[..., None]).mean(axis=0)  # of mean probabilities by format, (m, F, 2 K)
        along = slope[:, full] - np.take_along_axis(slope, best[block][:, None, None], axis=1)[:, 0]
        out[block] = np.sqrt(np.einsum("mx,mxy,my->m", along, covariance[block], along))
    return out
