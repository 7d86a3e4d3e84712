"""Interview subjects from recorded scores in step, much faster than sessions, with their items.

It serves banks of one dimension without guessing, and policies that spend their budgets. Designs are not computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pytest_adaptive_eval.cat.block_draws import BlockDraws, SmoothSelector
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import MaximumInformation
from pytest_adaptive_eval.cat.top_draws import TopDraws
from pytest_adaptive_eval.irt.estimation import MAP, Estimate
from pytest_adaptive_eval.irt.growing_map import RunningMAP
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


class _Draws(Protocol):
    """Draws of subjects, one item each at a time."""

    def take(self, items: Ints) -> None:
        """Take an item of each subject, shape (S,), that something else has drawn."""

    def draw(self, theta: Array, variance: Array, first: int) -> Ints:
        """Return the next items (S,) at abilities and variances (S,), with the draws before its batch."""


def servable(bank: ItemBank, policy: Policy) -> bool:
    """Return whether interviews by a policy, without its stopping rule and assistance, can be held here."""
    plain = bank.calibrated and bank.dimensions == 1 and bank.asymptote is None and isinstance(policy.estimator, MAP)
    selector = policy.selector
    top = type(selector) is MaximumInformation and selector.mode == "top" and policy.floor == 0.0
    return plain and (top or isinstance(selector, SmoothSelector))


def interview_in_step(
    banks: Sequence[ItemBank],
    of: Ints,
    policy: Policy,
    scores: Array,
    numbers: Array,
    counts: Collection[int] = (),
    block: tuple[int, int] = (0, 0),
) -> Interviews:
    """Interview subjects in step; each has the items that `Session` draws.

    Args:
        banks: With the same number n of items, see `servable`.
        of: Shape (S,). Bank of each subject.
        policy: Its budget and stopping rule do not count.
        scores: Shape (S, n). NaN marks a missing score.
        numbers: Shape (S, t). Uniform random numbers in [0, 1), one for each item of each subject.
        counts: Numbers of items after which there is an estimate.
        block: Places, from and before which, of uniform draws.
    """
    selector, method = policy.selector, policy.estimator
    assert isinstance(method, MAP)
    draws: _Draws = TopDraws(banks, of)
    if isinstance(selector, SmoothSelector):
        draws = BlockDraws(banks, of, selector, policy.floor, numbers)
    slopes = np.stack([bank.discrimination[:, 0] for bank in banks])
    intercepts = np.stack([bank.intercept for bank in banks])
    (subjects, count), rows, first = numbers.shape, np.arange(len(of))[:, None], 0
    earlier = block[0] if selector.mode == "top" else 0  # draws that take no random number
    ability = RunningMAP(method, np.abs(slopes).max(axis=1)[of], count)
    items, theta = np.empty((subjects, count), dtype=np.int64), np.empty((subjects, count))
    estimate, estimates = ability.latest, {}
    for t in range(1, count + 1):
        if block[0] < t <= block[1]:
            own = slice(t - 1 - earlier, t - earlier)
            items[:, t - 1] = uniform_draws(numbers[:, own], items[:, : t - 1], len(banks[0]))[:, 0]
            draws.take(items[:, t - 1])
        else:
            items[:, t - 1] = draws.draw(estimate.theta[:, 0], estimate.covariance[:, 0, 0], first)
        ends = t - first == policy.batch or t == count or t in block
        if not ends and t not in counts:
            continue
        new = items[:, first:t]
        answers = scores[rows, new], slopes[of[:, None], new], intercepts[of[:, None], new]
        if ends:
            estimate, first = ability.add(*answers), t
            theta[:, t - len(new[0]) : t] = estimate.theta
        if t in counts:
            estimates[t] = estimate if ends else ability.with_more(*answers)
    return Interviews(items, theta, estimates)


def uniform_draws(numbers: Array, before: Ints, size: int) -> Ints:
    """Return the unasked items (S, k) that uniform random numbers (S, k) draw; `before` (S, t) were asked.

    They are the same as from `propose` with the selector `Random`.
    """
    asked = np.sort(before, axis=1)
    for number in numbers.T[:, :, None]:
        t = asked.shape[1]
        place = (number * (size - t)).astype(np.int64)  # among the free items, of which asked - arange(t) are lower
        item = place + (asked - np.arange(t) <= place).sum(axis=1, keepdims=True)
        asked = np.sort(np.concatenate([asked, item], axis=1), axis=1)
        before = np.concatenate([before, item], axis=1)
    return before[:, before.shape[1] - numbers.shape[1] :]
