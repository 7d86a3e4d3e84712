"""Interview subjects from recorded scores in step, much faster than sessions, with their items.

It serves banks of one dimension without guessing, and policies that spend their budgets. Designs are not computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pytest_adaptive_eval.cat.block_draws import BlockDraws, SmoothSelector
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.irt.estimation import MAP, Estimate
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints


class Interviews(NamedTuple):
    """Interviews of S subjects.

    Args:
        items: Shape (S, t).
        theta: Shape (S, t). Abilities after each item, or after its batch.
        estimates: By the number of items.
    """

    items: Ints
    theta: Array
    estimates: Mapping[int, Estimate]


def servable(bank: ItemBank, policy: Policy) -> bool:
    """Return whether interviews by a policy, without its stopping rule and assistance, can be held here."""
    plain = bank.calibrated and bank.dimensions == 1 and bank.asymptote is None
    return plain and isinstance(policy.estimator, MAP) and isinstance(policy.selector, SmoothSelector)


def interview_in_step(
    banks: Sequence[ItemBank],
    of: Ints,
    policy: Policy,
    scores: Array,
    numbers: Array,
    counts: Collection[int] = (),
    uniform_from: int | None = None,
) -> Interviews:
    """Interview subjects in step; each has the items that `Session` draws.

    Args:
        banks: With the same number n of items, see `servable`.
        of: Shape (S,). Bank of each subject.
        policy: Its budget and stopping rule do not count.
        scores: Shape (S, n). NaN marks a missing score.
        numbers: Shape (S, t). Uniform random numbers in [0, 1), one for each item of each subject.
        counts: Numbers of items after which there is an estimate.
        uniform_from: Place from which draws are uniform; None for no such draws.
    """
    selector = policy.selector
    assert isinstance(selector, SmoothSelector)
    draws = BlockDraws(banks, of, selector, policy.floor, numbers)
    slopes = np.stack([bank.discrimination[:, 0] for bank in banks])
    intercepts = np.stack([bank.intercept for bank in banks])
    (subjects, count), rows, first = numbers.shape, np.arange(len(of))[:, None], 0
    items = np.empty((subjects, count), dtype=np.int64)
    theta = np.empty((subjects, count))
    answers, a, d = np.empty((3, subjects, count))
    estimate = policy.estimator.prior(subjects, 1)
    estimates = {}
    chosen = count if uniform_from is None else uniform_from
    for t in range(1, count + 1):
        if t > chosen:
            items[:, t - 1] = uniform_draws(numbers[:, t - 1 : t], items[:, : t - 1], len(banks[0]))[:, 0]
            draws.take(items[:, t - 1])
        else:
            items[:, t - 1] = draws.draw(estimate.theta[:, 0], estimate.covariance[:, 0, 0], first)
        new = items[:, t - 1, None]
        answers[:, t - 1, None] = scores[rows, new]
        a[:, t - 1, None], d[:, t - 1, None] = slopes[of[:, None], new], intercepts[of[:, None], new]
        ends = t - first == policy.batch or t in (chosen, count)
        if not ends and t not in counts:
            continue
        estimated = policy.estimator.estimate(answers[:, :t], a[:, :t, None], d[:, :t], None, estimate)
        if t in counts:
            estimates[t] = estimated
        if ends:
            theta[:, first:t], estimate, first = estimated.theta, estimated, t
    return Interviews(items, theta, estimates)


def uniform_draws(numbers: Array, before: Ints, size: int) -> Ints:
    """Return the unasked items (S, k) that uniform random numbers (S, k) draw; `before` (S, t) were asked.

    They are the same as from `propose` with the selector `Random`.
    """
    asked = np.sort(before, axis=1)
    for number in numbers.T[:, :, None]:
        t = asked.shape[1]
        nth_free = (number * (size - t)).astype(np.int64)  # among the free items, of which asked - arange(t) are lower
        item = nth_free + (asked - np.arange(t) <= nth_free).sum(axis=1, keepdims=True)
        asked = np.sort(np.concatenate([asked, item], axis=1), axis=1)
        before = np.concatenate([before, item], axis=1)
    return before[:, before.shape[1] - numbers.shape[1] :]
