"""Items that are asked first with probability 1: known parts of the sum, which bias nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.categories import by_category, macro_claim
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim, decide, interval_of_draws, log_wealth
from pytest_adaptive_eval.inference.sampling import mean_of_draws, standard_error
from pytest_adaptive_eval.irt.prediction import Design, Predictor
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.policy import Climb

N, FIRST = 60, tuple(range(15))
UNIFORM = Policy(SELECTORS["random"], floor=0.0, budget=30, batch=8)


def make_bank(*, calibrated: bool = True) -> ItemBank:
    items = [Item(f"i{n}", category=("must" if n < 20 else "other",)) for n in range(N)]
    if not calibrated:
        return ItemBank.uncalibrated("b", items)
    rng = np.random.default_rng(N)
    return ItemBank(
        "b",
        [item.id for item in items],
        items,
        rng.lognormal(0, 0.3, (N, 1)),
        rng.normal(size=N),
        categories=[item.category[0] for item in items],
    )


def truth_of() -> np.ndarray:
    """All of the first items right, 45 % of the others."""
    scores = np.zeros(N)
    scores[: len(FIRST)] = 1.0
    scores[np.random.default_rng(3).permutation(np.arange(len(FIRST), N))[:20]] = 1.0
    return scores


def run(bank: ItemBank, policy: Policy, scores: np.ndarray, subjects: int = 1, **settings) -> Session:
    session = Session(bank, policy, seed=5, subjects=subjects, take_all=FIRST, **settings)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    return session


def test_they_come_first_in_order_and_nothing_else_comes_with_them():
    session = Session(make_bank(), UNIFORM, take_all=FIRST)
    sizes = []
    while session.asked < len(FIRST):
        proposal = session.ask()
        assert proposal is not None
        sizes.append(proposal.items.shape[1])
        np.testing.assert_array_equal(proposal.propensities, 1.0)
        assert session.reason(int(proposal.items[0, 0])) == "asked first, whatever the draws"
        session.tell(np.ones(proposal.items.shape))
    assert sizes == [8, 7]
    np.testing.assert_array_equal(session.log().items, FIRST)
    proposal = session.ask()
    assert proposal is not None
    assert not set(proposal.items[0].tolist()) & set(FIRST)
    np.testing.assert_allclose(proposal.propensities[0], 1.0 / (45 - np.arange(8)))


def test_each_of_them_logs_what_was_predicted_for_the_items_not_asked_yet():
    session = Session(make_bank(), UNIFORM, take_all=FIRST)
    proposal, p = session.ask(), session.predicted[0]
    rest = [p[n:].sum() for n in range(8)]
    variance = [(p * (1 - p))[n:].sum() * (N - n) for n in range(8)]
    np.testing.assert_allclose(proposal.rest[0], rest)
    np.testing.assert_allclose(proposal.variance[0], variance)


@pytest.mark.parametrize(("calibrated", "selector"), [(False, "random"), (True, "random"), (True, "spread")])
def test_estimates_by_the_draws_are_unbiased(calibrated, selector):
    bank, scores = make_bank(calibrated=calibrated), truth_of()
    policy = Policy(SELECTORS[selector], floor=0.5, budget=30, batch=3)
    session = run(bank, policy, scores, subjects=800)
    totals = session.logs().totals[:, len(FIRST) :]
    error = totals.std(axis=0).mean() / np.sqrt(800)
    assert abs(totals.mean() - scores.sum()) < 2 * error
    estimates = np.array([mean_of_draws(session.log(s)) for s in range(200)])
    assert abs(estimates.mean() - scores.mean()) < 3 * estimates.std() / np.sqrt(200)
    if not calibrated:  # as draws, the first items would count as often as all others
        counted = [mean_of_draws(replace(session.log(s), take_all=0)) for s in range(20)]
        assert np.mean(counted) > scores.mean() + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["random", "spread"])
def test_bounds_and_bets_err_as_seldom_as_they_say(selector):
    bank, scores = make_bank(), truth_of()
    policy = Policy(SELECTORS[selector], floor=0.5 * (selector == "spread"), budget=40, batch=4, stop="decision")
    subjects, true = 600, scores.mean()
    session = run(bank, policy, scores, subjects=subjects)
    intervals = [interval_of_draws(session.log(s), 0.9) for s in range(subjects)]
    most = 0.1 + 3 * np.sqrt(0.09 / subjects)
    assert np.mean([i.low > true for i in intervals]) < most
    assert np.mean([i.high < true for i in intervals]) < most
    logs = session.logs()
    assert np.mean(decide(logs, [Claim(scores.sum() + 0.01, 0.9)]).outcome == 1) < most
    assert np.mean(decide(logs, [Claim(scores.sum(), 0.9)]).outcome == -1) < most
    # the test would show it: as draws, these items would deny true claims most of the time
    naive = decide(replace(logs, take_all=0), [Claim(scores.sum(), 0.9)]).outcome
    assert np.mean(naive == -1) > 0.3


def test_known_scores_count_and_are_no_stakes():
    session = run(make_bank(calibrated=False), UNIFORM, truth_of())
    log = session.log()
    np.testing.assert_allclose(log_wealth(log, Claim(36.0), 1)[: len(FIRST)], 0.0, atol=1e-12)
    assert np.isinf(log_wealth(log, Claim(10.0), 1)[9])  # ten right answers settle a sum of ten
    interval = interval_of_draws(log)
    drawn = interval_of_draws(log.draws)
    assert interval.low == pytest.approx((15 + 45 * drawn.low) / 60)
    assert interval.high == pytest.approx((15 + 45 * drawn.high) / 60)
    assert interval.method == "exact uniform"
    assert standard_error(log) == pytest.approx(standard_error(log.draws) * 45 / 60)
    assert interval_of_draws(replace(log, fixed=False)).low >= 15 / 60


def test_without_a_draw_the_limits_of_the_scores_remain():
    session = run(make_bank(calibrated=False), replace(UNIFORM, budget=15), truth_of())
    log = session.log()
    interval = interval_of_draws(log)
    assert (interval.low, interval.high) == (15 / 60, 1.0)
    assert (mean_of_draws(log), standard_error(log)) == (37.5 / 60, 22.5 / 60)


@pytest.mark.slow
def test_categories_and_weighted_claims_count_them_as_known():
    bank, scores = make_bank(), truth_of()
    session = run(bank, UNIFORM, scores, subjects=200)
    true = {"must": scores[:20].mean(), "other": scores[20:].mean()}
    missed = {"must": 0, "other": 0}
    for s in range(200):
        for row in by_category(bank, session.log(s), None, 0.9):
            assert row.accuracy is not None
            missed[row.category] += not row.accuracy.low - 1e-9 <= true[row.category] <= row.accuracy.high + 1e-9
    assert max(missed.values()) < 0.2 * 200 + 3 * np.sqrt(0.16 * 200)
    claim = macro_claim(bank, (true["must"] + true["other"]) / 2 + 1e-4, 0.9)
    assert np.mean(decide(session.logs(), [claim]).outcome == 1) < 0.1 + 3 * np.sqrt(0.09 / 200)


def test_a_baseline_that_is_followed_must_have_asked_them_first():
    bank, scores = make_bank(), truth_of()
    log = run(bank, Policy(floor=0.5, budget=24, batch=4), scores).log()
    known = np.full(N, np.nan)
    known[log.items] = log.scores
    baseline = Baseline("before", known, log)
    session = Session(bank, UNIFORM, baseline=baseline, take_all=FIRST[:3])
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    np.testing.assert_array_equal(session.log().items, log.items)
    assert session.log().take_all == len(FIRST)
    claim = PairedClaim.of(baseline, 0.1, 0.95)
    np.testing.assert_allclose(log_wealth(claim.view(session.log()), claim, 1)[: len(FIRST)], 0.0, atol=1e-12)
    with pytest.raises(ConfigError, match="asked first of it too"):
        Session(bank, UNIFORM, baseline=baseline, take_all=(40,))


def test_a_ladder_and_a_small_budget_are_refused():
    with pytest.raises(ConfigError, match="budget is 10, and 15 items are asked first"):
        Session(make_bank(), replace(UNIFORM, budget=10), take_all=FIRST)
    with pytest.raises(ConfigError, match="a ladder asks items level by level"):
        Session(make_bank(), Policy(Climb(10), budget=30, stop="level"), take_all=FIRST)


def test_an_assisted_interview_draws_after_them():
    bank = make_bank()
    design = Design("estimate", 20, uniform=0.5, weight=0.5)
    bank = replace(bank, predictor=Predictor(np.zeros((1, N)), np.full(N, 0.1), np.arange(N), (design,)))
    session = run(bank, replace(POLICIES["estimate"], budget=35), truth_of())
    assert session.assistance is not None
    assert session.assistance.chosen == 15 + design.chosen(20)
    accuracy, error = session.projection()
    assert 0.0 <= accuracy[0] <= 1.0
    assert error[0] > 0
