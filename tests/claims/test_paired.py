"""Comparison with a baseline: what it predicts, what is drawn, and how often a worse candidate passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS, MaximumInformation
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.earlier import GUESS_WORTH, MOST, RAREST
from pytest_adaptive_eval.claims.paired import FLIPS, Baseline, PairedClaim
from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

NAN = float("nan")
NONE = np.empty((1, 0))


def make_bank(n, seed=0, intercept=None):
    rng = np.random.default_rng(seed)
    intercept = rng.normal(size=n) if intercept is None else intercept
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0, 0.3, n), intercept)


def finish(session, scores):
    scores = np.broadcast_to(scores, (session.subjects, len(session.bank)))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session


def recorded(bank, scores, policy, seed=0, name="old"):
    """A baseline as an interview of it leaves one."""
    log = finish(Session(bank, policy, seed=seed), scores).log()
    known = np.full(len(bank), NAN)
    known[log.items] = log.scores
    return Baseline(name, known, log)


def flipped(base, rng, worse, better=0):
    """A candidate with so many answers worse than the baseline's, and so many better, anywhere."""
    scores = base.copy()
    scores[rng.choice(np.flatnonzero(base == 1), worse, replace=False)] = 0.0
    scores[rng.choice(np.flatnonzero(base == 0), better, replace=False)] = 1.0
    return scores


# -- the baseline ---------------------------------------------------------------------------------


def test_a_baseline_is_complete_or_was_drawn():
    bank = make_bank(30)
    scores = (np.arange(30) % 3 > 0).astype(float)
    whole = Baseline("old", scores)
    assert (whole.complete, whole.draws) == (True, 30)
    assert not whole.climbed
    part = recorded(bank, scores, Policy(budget=12))
    assert (part.complete, part.draws) == (False, 12)
    all_asked = recorded(bank, scores, Policy(budget="100%"))
    assert (all_asked.complete, all_asked.draws) == (True, 30)


@pytest.mark.parametrize("selector", ["random", "spread"])
def test_a_session_expects_the_answers_of_a_complete_baseline(selector):
    base = np.asarray(np.arange(40) % 2, dtype=np.float64)
    policy = Policy(SELECTORS[selector], 0.5, 30, batch=10)
    proposal = Session(make_bank(40, intercept=np.zeros(40)), policy, baseline=Baseline("old", base)).ask()
    even = Session(make_bank(40, intercept=np.zeros(40)), policy).ask()
    np.testing.assert_array_equal(even.predictions, 0.5)  # the bank alone expects nothing
    np.testing.assert_array_equal(proposal.predictions > 0.6, base[proposal.items] == 1)
    np.testing.assert_array_equal(proposal.predictions < 0.4, base[proposal.items] == 0)


def test_some_answers_of_which_nobody_knows_how_they_came_are_no_baseline():
    scores = np.array([1.0, NAN, 0.0, 1.0])
    with pytest.raises(BaselineError, match="'old' has scores on 3 of 4 items that were not drawn at random"):
        Baseline("old", scores)
    with pytest.raises(BaselineError, match="or by the policy 'decide'"):
        recorded(make_bank(30), np.ones(30), Policy(MaximumInformation(), floor=0.0, budget=5))
    assert recorded(make_bank(30), np.ones(30), Policy(MaximumInformation(), floor=0.0, budget=30)).complete


def test_predictions_by_hand():
    baseline = Baseline("old", np.array([1.0, 1.0, 1.0, 0.0, 0.0]))
    even = np.ones((1, 5))
    guess = FLIPS
    assert guess == 0.05
    first = baseline.predicted(even, NONE.astype(int), NONE)
    np.testing.assert_allclose(first, [[1 - guess] * 3 + [guess] * 2])
    # a right answer became a wrong one, and one has no score: only right answers are expected to flip more
    one = baseline.predicted(even, np.array([[0, 1]]), np.array([[0.0, NAN]]))
    rate = (1 + GUESS_WORTH * FLIPS) / (1 + GUESS_WORTH)
    np.testing.assert_allclose(one, [[1 - rate] * 3 + [guess] * 2])
    # likely flips count for less: 2 expected on an item of shape 2
    shape = np.array([[2.0, 0.5, 0.5, 1.0, 1.0]])
    rate = (1 + GUESS_WORTH * FLIPS) / (2 + GUESS_WORTH)
    other = baseline.predicted(shape, np.array([[0]]), np.array([[0.0]]))
    np.testing.assert_allclose(other, [[1 - min(2 * rate, MOST), *[1 - rate / 2] * 2, guess, guess]])
    # nothing is ever sure
    sure = baseline.predicted(even * 1e-9, np.array([[0, 3]]), np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(sure, [[1 - RAREST] * 3 + [RAREST] * 2])


def test_thousands_of_answers_against_the_predictions_keep_them_finite():
    n = 3000
    baseline = Baseline("old", np.ones(n))
    scores = (np.arange(n) % 2).astype(float)[None]  # every likelihood is below 1e-900
    found = baseline.predicted(np.ones((2, n)), np.arange(n)[None], scores)
    np.testing.assert_allclose(found, 1.0 - (n / 2 + GUESS_WORTH * FLIPS) / (n + GUESS_WORTH))


def test_bank_predictions_move_towards_the_baseline_by_agreement():
    scores, none = np.array([1.0, 0.0, 0.5]), np.empty((0, 3))
    model = np.array([[0.6, 0.6, 0.3]])
    baseline = Baseline("old", scores)
    moved = np.array([expit(logit(model[0]) + agreement * (2 * scores - 1)) for agreement in (0, 1, 2, 3, 4)])
    before = baseline.predicted(none, NONE.astype(int), NONE, model)
    np.testing.assert_allclose(before, moved.mean(axis=0)[None])  # no answer yet: all count alike
    likelihood = moved[:, 0] * (1 - moved[:, 1])  # as the baseline on both; the third has no score
    after = baseline.predicted(none, np.array([[0, 1, 2]]), np.array([[1.0, 0.0, NAN]]), model)
    np.testing.assert_allclose(after, (likelihood @ moved / likelihood.sum())[None])
    differing = baseline.predicted(none, np.array([[0]]), np.array([[0.0]]), model)
    np.testing.assert_allclose(differing, ((1 - moved[:, 0]) @ moved / (1 - moved[:, 0]).sum())[None])


def test_bank_predictions_are_never_certain():
    sure = Baseline("old", np.array([1.0, 0.0])).predicted(
        np.empty((0, 2)), NONE.astype(int), NONE, np.array([[1.0, 0.0]])
    )
    np.testing.assert_allclose(sure, [[1 - RAREST, RAREST]])


def test_candidates_are_predicted_each_from_its_own_answers():
    rng = np.random.default_rng(3)
    baseline = Baseline("old", rng.random(20).round(1))
    shape, items = rng.random((2, 20)) + 0.5, rng.permuted(np.tile(np.arange(20), (5, 1)), axis=1)[:, :8]
    scores = rng.random((5, 8)).round(1)
    together = baseline.predicted(shape, items, scores)
    assert together.shape == (5, 20)
    for s in range(5):
        alone = baseline.predicted(shape, items[s : s + 1], scores[s : s + 1])
        np.testing.assert_allclose(together[s], alone[0], rtol=1e-12)
    assert ((together >= 0) & (together <= 1)).all()


def test_answers_flip_most_where_the_baseline_was_unsure():
    plain = ItemBank.uncalibrated("u", [Item(str(i)) for i in range(6)])
    assert Baseline("old", np.ones(6)).shapes(plain).tolist() == [[1.0] * 6]
    bank = make_bank(200, intercept=np.linspace(-5, 5, 200))
    scores = (np.arange(200) >= 100).astype(float)  # of ability 0
    shapes = Baseline("old", scores).shapes(bank)
    np.testing.assert_allclose(shapes.mean(axis=1), 1.0)
    even, half, unsure = shapes
    assert even.tolist() == [1.0] * 200
    np.testing.assert_allclose(half, (even + unsure) / 2)
    assert abs(int(unsure.argmax()) - 100) < 20
    assert unsure[100] > 20 * unsure[0]


def test_the_flips_met_tell_where_others_are():
    shapes = np.array([[1.0] * 8, [2.0] * 4 + [0.01] * 4])
    baseline = Baseline("old", np.ones(8))
    items = np.array([[0, 1, 4, 5]])
    focused = baseline.predicted(shapes, items, np.array([[0.0, 0.0, 1.0, 1.0]]))[0]
    spread = baseline.predicted(shapes, items, np.array([[0.0, 1.0, 0.0, 1.0]]))[0]
    assert focused[7] - focused[3] > 0.3
    assert spread[7] - spread[3] < 0.1


# -- the interview --------------------------------------------------------------------------------


def test_a_candidate_follows_the_draws_of_a_baseline_that_answered_some_items():
    bank = make_bank(60)
    rng = np.random.default_rng(2)
    scores = (rng.random(60) < 0.7).astype(float)
    baseline = recorded(bank, scores, Policy(budget=25, batch=4), seed=3)
    candidate = flipped(scores, rng, 4, 2)
    for budget, asked, why in ((40, 25, StopReason.BASELINE), (25, 25, StopReason.BUDGET), (10, 10, StopReason.BUDGET)):
        session = finish(Session(bank, Policy(budget=budget, batch=3), seed=8, baseline=baseline), candidate)
        log = session.log()
        assert len(log) == asked
        assert session.stop == [why]
        assert session.sequential is True  # bets decide, though nobody stops for them
        assert session.adapts_length is True
        np.testing.assert_array_equal(log.items, baseline.log.items[:asked])
        for name in ("propensities", "variance"):
            np.testing.assert_array_equal(getattr(log, name), getattr(baseline.log, name)[:asked])
        np.testing.assert_array_equal(log.scores, candidate[log.items])
        # no draw can move the estimate by more than it says
        assert (log.down >= 1 / log.propensities - 1e-9).all()
        assert (log.up >= 1 / log.propensities - 1e-9).all()
        # and the sum of differences halved by half as much
        view = PairedClaim.of(baseline, 0.05, 0.95).view(log)
        np.testing.assert_allclose(view.down, log.down / 2)
        np.testing.assert_allclose(view.up, log.up / 2)


def test_the_totals_of_who_follows_are_unbiased():
    bank = make_bank(40)
    rng = np.random.default_rng(5)
    scores = (rng.random(40) < 0.6).astype(float)
    candidate = flipped(scores, rng, 5)
    subjects = 1500
    session = finish(Session(bank, Policy(budget=12, batch=3), seed=range(subjects), subjects=subjects), scores)
    differences = []
    for s in range(subjects):
        log = session.log(s)
        known = np.full(40, NAN)
        known[log.items] = log.scores
        claim = PairedClaim.of(Baseline("old", known, log), 0.1, 0.95)
        differences.append(claim.view(replace(log, scores=candidate[log.items])).totals)
    mean, error = np.mean(differences, axis=0), np.std(differences, axis=0) / np.sqrt(subjects)
    assert (np.abs(mean - (40 - 5) / 2) < 4 * error).all()


def test_a_complete_baseline_sends_the_interview_where_the_two_may_differ():
    bank = ItemBank.uncalibrated("u", [Item(str(i)) for i in range(100)])
    rng = np.random.default_rng(1)
    base = (rng.random(100) < 0.7).astype(float)
    session = Session(bank, Policy(SELECTORS["random"], 0.0, 30), baseline=Baseline("old", base))
    proposal = session.ask()
    np.testing.assert_allclose(proposal.predictions, np.where(base[proposal.items] > 0.5, 1 - FLIPS, FLIPS))
    np.testing.assert_allclose(proposal.rest, (base * (1 - FLIPS) + (1 - base) * FLIPS).sum())
    same = finish(session, base)
    assert len(same.log()) == 30
    assert same.log().variance[-1] < 0.5 * same.log().variance[0]  # no answer differs, and fewer items are left


# -- the claim ------------------------------------------------------------------------------------


def test_bets_aim_at_the_budget_that_was_planned():
    bank, base = make_bank(30), (np.arange(30) % 3 > 0).astype(float)
    assert (Session(bank, Policy(budget=12)).log().horizon, Session(bank, Policy(budget=12)).fixed) == (12, True)
    assert finish(Session(bank, Policy(budget=12, stop="decision")), base).log().horizon == 12
    assert finish(Session(bank, Policy(budget=12), baseline=Baseline("old", base)), base).log().horizon == 12
    part = recorded(bank, base, Policy(budget=9))
    session = Session(bank, Policy(budget=12), baseline=part)
    assert session.logs().horizon == 9  # the baseline has no more


@pytest.mark.parametrize("whole", [True, False])
def test_draws_that_spend_a_budget_lean_to_the_verdict_against_a_whole_baseline_alone(whole):
    rng = np.random.default_rng(2)
    bank, base = make_bank(200), (rng.random(200) < 0.6).astype(float)
    baseline = Baseline("old", base) if whole else None
    claim = Claim(base.sum() - 10, 1 - 1e-12, rare=whole)
    draws = {}
    for stop in ("decision", "budget"):
        policy = Policy(budget=60, batch=8, stop=stop)
        for claims in ((), (claim,)):
            session = finish(Session(bank, policy, seed=3, claims=claims, baseline=baseline), base)
            draws[stop, bool(claims)] = session.log().items.tolist()
    assert draws["decision", False] == draws["budget", False]
    assert draws["decision", True] != draws["decision", False]
    assert draws["budget", True] == draws["decision" if whole else "budget", whole]


def test_against_the_whole_bank_the_claim_is_a_threshold():
    base = np.array([1.0, 1.0, 0.0, 0.5])
    claim = PairedClaim.of(Baseline("old", base), 0.1, 0.9)
    assert type(claim) is Claim
    assert claim.total == pytest.approx(2.5 - 0.4)
    assert (claim.confidence, claim.unit, claim.distances, claim.rare) == (0.9, 0.1, (1.5, 3.0), True)


def test_against_some_items_the_claim_is_about_differences():
    bank = make_bank(20)
    baseline = recorded(bank, np.ones(20), Policy(budget=3))
    claim = PairedClaim.of(baseline, 0.1, 0.9)
    assert isinstance(claim, PairedClaim)
    # all the same would be 1 / 2 on each of 20 items
    assert claim.total == pytest.approx(20 * (1 - 0.1) / 2)
    assert (claim.confidence, claim.unit, claim.distances, claim.rare) == (0.9, 0.05, (1.5, 3.0), True)
    log = replace(baseline.log, scores=np.array([0.0, NAN, 1.0]))
    view = claim.view(log)
    np.testing.assert_array_equal(view.scores, [0.0, NAN, 0.5])
    assert view.with_missing_as(0.0).scores.tolist() == [0.0, 0.0, 0.5]
    np.testing.assert_array_equal(view.predictions, [0.5] * 3)
    np.testing.assert_array_equal(view.rest, [10.0, 9.5, 9.0])
    rate = np.array([0.0, 1.0, 1.0]) + GUESS_WORTH * FLIPS
    np.testing.assert_allclose(
        view.variance, np.clip(rate / (np.arange(3) + GUESS_WORTH), RAREST, MOST) / 4 * np.array([20, 19, 18]) ** 2
    )


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1) | st.just(NAN)), min_size=1, max_size=15))
def test_differences_lie_in_the_range_of_scores(pairs):
    bank = make_bank(20)
    scores = np.array([old for old, _ in pairs] + [0.5] * (20 - len(pairs)))
    baseline = recorded(bank, scores, Policy(SELECTORS["random"], 0.0, len(pairs)))
    candidate = np.array([new for _, new in pairs] + [0.5] * (20 - len(pairs)))
    log = replace(baseline.log, scores=candidate[baseline.log.items])
    if baseline.complete:
        return
    view = PairedClaim.of(baseline, 0.05, 0.95).view(log)
    known = ~np.isnan(log.scores)
    assert (view.scores[known] >= 0).all()
    assert (view.scores[known] <= 1).all()
    assert np.isnan(view.scores[~known]).all()
    np.testing.assert_allclose(
        2 * view.scores[known] - 1, log.scores[known] - baseline.scores[log.items][known], atol=1e-12
    )
    # what a draw may do to the estimate of the sum of these scores
    reach = 0.5 / log.propensities
    assert (view.down >= reach - 1e-9).all()
    assert (view.up >= reach - 1e-9).all()


def test_a_difference_is_bounded_by_the_score_of_the_baseline():
    bank = make_bank(20)
    baseline = recorded(bank, np.full(20, 0.4), Policy(budget=3))
    log = replace(baseline.log, scores=np.array([0.0, NAN, 1.0]), noise=0.2)
    view = PairedClaim.of(baseline, 0.1, 0.9).view(log)
    np.testing.assert_allclose(view.low, [0.3] * 3)
    np.testing.assert_allclose(view.high, [0.8] * 3)
    np.testing.assert_allclose(view.scores, [0.3, NAN, 0.8])
    assert view.noise == pytest.approx(0.05)  # of half a difference


def test_the_assumed_distance_is_never_below_a_thousandth_of_the_bank():
    assert PairedClaim.of(Baseline("old", np.ones(4)), 1e-9, 0.9).unit == 1e-3


def test_what_a_baseline_could_not_answer_may_have_been_anything():
    bank = make_bank(20)
    scores = np.r_[1.0, NAN, np.full(18, 1.0)]
    baseline = recorded(bank, scores, Policy(SELECTORS["random"], 0.0, 20))
    log = replace(baseline.log, scores=np.ones(20))
    claim = PairedClaim.of(baseline, 0.1, 0.95)
    view = claim.view(log)
    at = int(np.flatnonzero(np.isnan(baseline.scores[log.items]))[0])
    assert (view.with_missing_as(0.0).scores[at], view.with_missing_as(1.0).scores[at]) == (0.0, 1.0)
    assert decide(log, [claim]).outcome.tolist() == [1]  # equal on 19, and at worst .05 below in all
    assert decide(log, [PairedClaim.of(baseline, 0.01, 0.95)]).outcome.tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_a_candidate_that_is_worse_than_allowed_seldom_passes_against_the_whole_bank(confidence):
    n, margin, seeds = 150, 0.05, 500
    rng = np.random.default_rng(21)
    base = (rng.random(n) < 0.7).astype(float)
    baseline = Baseline("old", base)
    bank = make_bank(n, 4, np.where(base > 0.5, -1.0, 1.0))  # misleading about the baseline too
    policy = Policy(budget=90, batch=6)
    claim = PairedClaim.of(baseline, margin, confidence)
    slack = 3 * np.sqrt((1 - confidence) * confidence / seeds)
    for worse, better in ((8, 0), (18, 10)):  # 7.5 items are the margin
        session = Session(bank, policy, seed=range(seeds), subjects=seeds, baseline=baseline)
        finish(session, flipped(base, rng, worse, better))
        assert (decide(session.logs(), [claim]).outcome == 1).mean() <= 1 - confidence + slack
    session = finish(Session(bank, policy, seed=range(100), subjects=100, baseline=baseline), base)
    assert (decide(session.logs(), [claim]).outcome == 1).mean() > 0.9
    # and at the margin itself, where the claim is true, it is seldom denied
    just = PairedClaim.of(baseline, 8 / n, confidence)
    session = Session(bank, policy, seed=range(seeds), subjects=seeds, baseline=baseline)
    finish(session, flipped(base, rng, 8))
    assert (decide(session.logs(), [just]).outcome == -1).mean() <= 1 - confidence + slack


@pytest.mark.slow
def test_a_candidate_that_is_worse_than_allowed_seldom_passes_against_some_items():
    n, margin, seeds, confidence = 150, 0.05, 400, 0.9
    rng = np.random.default_rng(22)
    base = (rng.random(n) < 0.7).astype(float)
    bank = make_bank(n, 4, np.where(base > 0.5, -1.0, 1.0))
    first = Session(bank, Policy(budget=120, batch=6), seed=range(seeds), subjects=seeds)
    finish(first, base)
    slack = 3 * np.sqrt(0.1 * 0.9 / seeds)
    passed, decided = {}, {}
    candidates = {"worse": flipped(base, rng, 8), "mixed": flipped(base, rng, 18, 10), "same": base}
    for name, candidate in candidates.items():
        outcomes = []
        for s in range(seeds):
            log = first.log(s)
            known = np.full(n, NAN)
            known[log.items] = log.scores
            baseline = Baseline("old", known, log)
            session = finish(Session(bank, Policy(budget=120, batch=40), baseline=baseline), candidate)
            outcomes.append(decide(session.log(), [PairedClaim.of(baseline, margin, confidence)]).outcome[0])
        passed[name] = np.mean(np.array(outcomes) == 1)
        decided[name] = np.mean(np.array(outcomes) != 0)
    assert passed["worse"] <= 0.1 + slack
    assert passed["mixed"] <= 0.1 + slack
    assert passed["same"] > 0.5


def test_missing_answers_count_for_and_against_a_paired_claim():
    n = 200
    bank = make_bank(n)
    base = np.ones(n)
    baseline = recorded(bank, base, Policy(budget=120, batch=8))
    claim = PairedClaim.of(baseline, 0.05, 0.9)
    full = replace(baseline.log, scores=base[baseline.log.items])
    assert decide(full, [claim]).outcome[0] == 1
    holes = full.scores.copy()
    holes[::5] = NAN
    assert decide(replace(full, scores=holes), [claim]).outcome[0] == 0


def test_the_columns_of_a_followed_log_are_those_of_any_log():
    bank = make_bank(30)
    baseline = recorded(bank, np.ones(30), Policy(budget=10))
    predicted = np.full((2, 30), 0.8)
    proposal = baseline.follow(3, predicted, 4)
    for name in DesignLog.columns():
        if name != "scores":
            assert getattr(proposal, name).shape == (2, 4)
    np.testing.assert_allclose(proposal.rest[0], 0.8 * (27 - np.arange(4)))
    np.testing.assert_allclose(proposal.predictions, 0.8)
    assert baseline.follow(9, predicted, 4).items.shape == (2, 1)
