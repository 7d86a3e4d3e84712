"""Intervals on questions like those of a bank all of whose items were asked."""

import numpy as np
import pytest
from scipy import stats

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.gates.condition import LIKE_QUESTIONS, Condition
from pytest_adaptive_eval.gates.finished import interval_on_like_questions
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

BASELINE = np.array([1.0] * 60 + [0.0] * 40)


def test_an_accuracy_on_like_questions_has_exact_bounds():
    interval = interval_on_like_questions(BASELINE)
    low, high = stats.beta.ppf(0.05, 60, 41), stats.beta.ppf(0.95, 61, 40)  # Clopper and Pearson
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-3)
    assert interval.estimate == 0.6


def test_a_difference_on_like_questions_is_paired():
    chance = np.random.default_rng(1)
    baseline = (chance.random(400) < 0.6).astype(float)
    changed = chance.random(400) < 0.1
    scores = np.where(changed, 1.0 - baseline, baseline)
    gap = scores - baseline
    half = stats.t.ppf(0.95, 399) * gap.std(ddof=1) / 20
    interval = interval_on_like_questions(scores, baseline)
    assert interval.estimate == pytest.approx(gap.mean(), abs=1e-9)
    for bound, exact in ((interval.low, gap.mean() - half), (interval.high, gap.mean() + half)):
        assert abs(bound - gap.mean()) >= abs(exact - gap.mean())  # bets need no normal distribution
        assert bound == pytest.approx(exact, abs=0.008)


@pytest.mark.slow
def test_bounds_on_like_questions_fail_as_seldom_as_they_say():
    chance = np.random.default_rng(2)
    truth, missed = 0.02, 0
    for _ in range(400):
        gap = chance.choice([-1.0, 0.0, 1.0], size=150, p=[0.04, 0.9, 0.06])
        baseline = np.where(gap > 0, 0.0, np.where(gap < 0, 1.0, chance.integers(0, 2, 150)))
        missed += interval_on_like_questions(baseline + gap, baseline).low > truth
    assert missed / 400 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_gate_on_like_questions_needs_the_whole_bank_and_takes_it_for_a_sample():
    bank = ItemBank.uncalibrated("b", [Item(f"q{n}", "?", "1") for n in range(100)])
    for asked, at_least, outcome in (
        (100, 0.5, Outcome.PASS),  # 60 right: the lower bound is .513
        (100, 0.55, Outcome.INCONCLUSIVE),
        (100, 0.7, Outcome.FAIL),  # the upper bound is .683
        (99, 0.1, Outcome.INCONCLUSIVE),
    ):
        session = Session(bank, Policy(SELECTORS["random"], budget=asked, stop="budget"))
        while (proposal := session.ask()) is not None:
            session.tell(BASELINE[proposal.items])
        result = SessionResult.of("e", session, statuses={"ok": asked})
        verdict = result.judge(Condition("accuracy", "at_least", at_least, method=LIKE_QUESTIONS))
        assert verdict.outcome is outcome
        exact = result.judge(Condition("accuracy", "at_least", at_least))
        assert exact.outcome is (Outcome.PASS if at_least <= 0.6 else Outcome.FAIL)
