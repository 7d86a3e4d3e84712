"""Projected accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import MaximumInformation
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.projection import expected_accuracy, model_based
from pytest_adaptive_eval.items.bank import ItemBank


def bank_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0, 0.3, n), rng.normal(0, 1, n))


def test_the_characteristic_curve_is_the_mean_probability():
    bank = ItemBank("b", ["x", "y"], [None] * 2, np.array([1.0, 2.0]), np.array([0.0, -1.0]), np.array([0.0, 0.2]))
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
    assert session.projection()[0][0] == pytest.approx((10 + p[rest].sum()) / 50)


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
    for s, (accuracy, error) in enumerate(np.stack(session.projection(), axis=1).tolist()):
        interval = model_based(accuracy, error, 0.95)
        assert interval.estimate == accuracy
        inside += interval.low <= truth[s].mean() <= interval.high
    assert 0.84 <= inside / subjects <= 0.96  # 90 % nominal, standard error .02


@pytest.mark.parametrize(
    ("accuracy", "error", "confidence", "low", "high"),
    [
        (0.6, 0.1, 0.95, 0.6 - 0.1644854, 0.6 + 0.1644854),
        (0.6, 0.1, 0.975, 0.6 - 0.1959964, 0.6 + 0.1959964),
        (0.95, 0.1, 0.95, 0.95 - 0.1644854, 1.0),
        (0.05, 0.1, 0.95, 0.0, 0.05 + 0.1644854),
        (0.3, 0.0, 0.95, 0.3, 0.3),
    ],
)
def test_the_banks_own_interval_is_normal_and_within_the_scale(accuracy, error, confidence, low, high):
    interval = model_based(accuracy, error, confidence)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-6)
    assert (interval.estimate, interval.confidence, interval.method) == (accuracy, confidence, "model-based")


def led(session, scores):
    """The interview with the scores (S, n) at its end."""
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session


def wide_bank(n, *, guess=0.0, dimensions=1):
    rng = np.random.default_rng(n)
    slopes = rng.lognormal(0, 0.3, (n, dimensions))
    slopes[::6] *= -0.5
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, slopes, rng.normal(size=n), np.full(n, guess))


@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_many_subjects_are_projected_as_one_at_a_time(guess, dimensions):
    bank = wide_bank(60, guess=guess, dimensions=dimensions)
    rng = np.random.default_rng(1)
    scores = (rng.random((6, 60)) < 0.6).astype(float)
    scores[rng.random(scores.shape) < 0.1] = np.nan  # asked without a score: predicted
    policy = Policy(budget=20, batch=3)
    accuracy, error = led(Session(bank, policy, seed=range(6), subjects=6), scores).projection()
    assert accuracy.shape == error.shape == (6,)
    for s in range(6):
        alone = led(Session(bank, policy, seed=s), scores[s : s + 1])
        got, its_error = alone.projection()
        assert accuracy[s] == pytest.approx(got[0], abs=1e-12)
        assert error[s] == pytest.approx(its_error[0], rel=1e-10)
        log = alone.log()
        known = log.items[~np.isnan(log.scores)]
        assert len(known) < 20 or s  # some have no score
        rest = np.setdiff1d(np.arange(60), known)
        expected = (np.nansum(log.scores) + alone.predicted[0, rest].sum()) / 60
        assert got[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_the_error_is_that_of_the_ability_and_of_the_answers_to_come(guess, dimensions):
    bank = wide_bank(40, guess=guess, dimensions=dimensions)
    session = led(Session(bank, Policy(budget=15), seed=3), np.arange(40)[None] % 2 * 1.0)
    rest = np.setdiff1d(np.arange(40), session.log().items)

    def total(theta):
        z = bank.discrimination[rest] @ theta + bank.intercept[rest]
        return (guess + (1 - guess) / (1 + np.exp(-z))).sum()

    theta = session.estimate.theta[0]
    step = 1e-5 * np.eye(dimensions)
    gradient = np.array([(total(theta + h) - total(theta - h)) / 2e-5 for h in step])
    p = session.predicted[0, rest]
    variance = gradient @ session.estimate.covariance[0] @ gradient + (p * (1 - p)).sum()
    assert session.projection()[1][0] == pytest.approx(np.sqrt(variance) / 40, rel=1e-7)


def test_when_all_is_asked_the_projection_is_the_accuracy():
    scores = np.random.default_rng(2).random((3, 30)).round(1)
    accuracy, error = led(Session(wide_bank(30), Policy(budget="100%"), subjects=3), scores).projection()
    np.testing.assert_allclose(accuracy, scores.mean(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(error, 0)


def test_before_the_first_answer_the_bank_predicts_all():
    bank = wide_bank(30)
    accuracy, error = Session(bank, Policy(budget=5), subjects=2).projection()
    np.testing.assert_allclose(accuracy, expected_accuracy(bank, np.zeros((2, 1))), rtol=1e-12)
    assert (error > 0).all()


def test_subjects_that_have_ended_keep_their_projection():
    bank = bank_of(80, seed=5)
    scores = np.stack([np.arange(80) % 2, np.ones(80), np.zeros(80)]).astype(float)
    session = Session(bank, Policy(MaximumInformation(), floor=0.0, budget=40, standard_error=0.45), subjects=3)
    kept: dict[int, tuple[float, float]] = {}
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
        if session.asked == 3:
            session.end(StopReason.INTERRUPTED, 2)
        accuracy, error = session.projection()
        for s in np.flatnonzero(session.stopped):
            kept.setdefault(int(s), (accuracy[s], error[s]))
    assert len(set(session.stopped_at.tolist())) == 3
    accuracy, error = session.projection()
    for subject in range(3):
        assert (accuracy[subject], error[subject]) == kept[subject]
