"""Projected accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.core.projection import expected_accuracy, model_based
from pytest_adaptive_eval.core.session import POLICIES, Policy, Session


def bank_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0, 0.3, n), rng.normal(0, 1, n))


def test_the_characteristic_curve_is_the_mean_probability():
    bank = ItemBank("b", ["x", "y"], [None] * 2, [1.0, 2.0], [0.0, -1.0], [0.0, 0.2])
    expected = (1 / (1 + np.exp(-1.0)) + 0.2 + 0.8 / (1 + np.exp(-1.0))) / 2
    assert expected_accuracy(bank, np.array([[1.0]]))[0] == pytest.approx(expected)


def test_asked_items_count_as_answered_and_the_rest_as_predicted():
    bank = bank_of(50)
    session = Session(bank, Policy(budget=10), seed=2)
    while session.ask() is not None:
        session.tell([[1.0]])
    log = session.log()
    p = session.predicted[0]
    rest = np.setdiff1d(np.arange(50), log.items)
    assert model_based(session).estimate == pytest.approx((10 + p[rest].sum()) / 50)


def test_a_true_bank_is_projected_within_its_own_interval():
    bank = bank_of(400, seed=4)
    subjects, inside = 200, 0
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(subjects, 1))
    p = 1 / (1 + np.exp(-(theta * bank.discrimination[:, 0] + bank.intercept)))
    truth = (rng.random(p.shape) < p).astype(float)
    session = Session(bank, POLICIES["estimate"], seed=1, subjects=subjects)
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(truth, proposal.items, axis=1))
    for s in range(subjects):
        interval = model_based(session, 0.95, s)
        inside += interval.low <= truth[s].mean() <= interval.high
    assert 0.84 <= inside / subjects <= 0.96  # 90 % nominal, standard error .02
