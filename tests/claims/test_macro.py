"""Macro accuracy: its claim, its error rate, its verdicts and its forecast."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.categories import macro_claim, macro_weights
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import outlook_sentence, outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.items.bank import ItemBank

#: Items and right answers by category: accuracy .815, macro accuracy .5.
SIZES, RIGHT = {"large": 160, "medium": 30, "small": 10}, {"large": 160, "medium": 3, "small": 4}
DECIDE = Policy(selector=SELECTORS["spread"], floor=0.5, budget="100%", batch=4, stop="decision")


def skewed_bank(seed=0):
    rng = np.random.default_rng(seed)
    categories = [name for name, size in SIZES.items() for _ in range(size)]
    n = len(categories)
    return ItemBank(
        "b",
        [f"i{i}" for i in range(n)],
        [None] * n,
        rng.uniform(0.5, 1.5, n),
        rng.normal(-1, 1, n),
        categories=categories,
    )


def skewed_scores(right=RIGHT):
    """Return scores with exactly so many right per category, the first of each."""
    return np.concatenate([np.arange(SIZES[name]) < count for name, count in right.items()]).astype(float)


def interview(bank, scores, policy, seed, *conditions):
    claims = [claim for c in conditions for claim in c.claims(bank, {})]
    session = Session(bank, policy, seed=seed, claims=claims)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    return SessionResult.of("b", session, statuses={"ok": session.asked}, planned=tuple(conditions), family=len(claims))


def macro_of(scores):
    splits = np.split(scores, np.cumsum(list(SIZES.values()))[:-1])
    return float(np.mean([part.mean() for part in splits]))


def test_weighted_sum_at_the_total_is_the_macro_accuracy():
    bank, scores = skewed_bank(), skewed_scores()
    claim = macro_claim(bank, macro_of(scores), 0.95)
    assert claim.total == pytest.approx(float((macro_weights(bank) * scores).sum()))
    assert claim.total / len(bank) * claim.scale == pytest.approx(macro_of(scores))


@pytest.mark.slow
@pytest.mark.parametrize("calibrated", [True, False])
def test_one_draw_estimates_are_unbiased_and_within_their_bounds(calibrated):
    bank, scores = skewed_bank(), skewed_scores()
    policy = Policy(selector=SELECTORS["spread" if calibrated else "random"], floor=0.5, budget=30, batch=5)
    estimates = []
    for seed in range(200):
        log = interview(bank, scores, policy, seed).log
        view = macro_claim(bank, 0.5, 0.95).view(log)
        estimates.append(float(view.totals.mean()))
        middle = view.before + view.rest
        assert (view.totals >= middle - view.down - 1e-9).all()
        assert (view.totals <= middle + view.up + 1e-9).all()
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert np.mean(estimates) == pytest.approx(float((macro_weights(bank) * scores).sum()), abs=4 * error)


@pytest.mark.slow
@pytest.mark.parametrize(("side", "offset"), [(1, 1e-6), (-1, -1e-6)])
def test_false_verdicts_at_the_threshold_stay_below_alpha(side, offset):
    bank, scores = skewed_bank(), skewed_scores()
    claim = macro_claim(bank, macro_of(scores) + offset, 0.8)
    policy = Policy(selector=SELECTORS["spread"], floor=0.5, budget=60, batch=10)
    sides = [int(decide(interview(bank, scores, policy, s).log, [claim]).outcome[0]) for s in range(150)]
    assert np.mean(np.array(sides) == side) <= 0.2 + 2 * np.sqrt(0.2 * 0.8 / 150)


def test_verdict_shows_the_macro_accuracy_and_differs_from_accuracy():
    bank, scores = skewed_bank(), skewed_scores()
    macro, plain = (Condition(metric, "at_least", 0.7) for metric in ("macro_accuracy", "accuracy"))
    result = interview(bank, scores, DECIDE, 1, macro, plain)
    verdict = result.macro_accuracy.at_least(0.7)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.sentence.startswith("FAIL macro accuracy ")
    assert verdict.interval is not None
    assert verdict.interval.low <= macro_of(scores) <= verdict.interval.high
    assert result.accuracy.at_least(0.7).outcome is Outcome.PASS
    assert interview(bank, scores, DECIDE, 1, Condition("macro_accuracy", "at_least", 0.2)).macro_accuracy.at_least(0.2)


def test_bank_of_one_category_is_refused():
    bank = skewed_bank()
    plain = ItemBank("b", bank.ids, [None] * len(bank), bank.discrimination, bank.intercept)
    with pytest.raises(ConfigError, match="fewer than 2 categories"):
        Condition("macro_accuracy", "at_least", 0.5).check(plain)
    with pytest.raises(ConfigError, match=r"macro_accuracy\.at_least\(1\.5\): an accuracy lies in \[0, 1\]"):
        Condition("macro_accuracy", "at_least", 1.5)


def test_forecast_counts_weights_and_matches_interviews():
    bank = skewed_bank()
    condition = Condition("macro_accuracy", "at_least", 0.2)
    scores = skewed_scores({"large": 80, "medium": 15, "small": 5})
    forecast = outlooks(condition, bank, DECIDE, margin=0.3)[0]
    asked = [interview(bank, scores, DECIDE, seed, condition).asked for seed in range(30)]
    assert 0.5 < forecast.expected / np.mean(asked) < 2.0
    assert "macro accuracy >= .20" in outlook_sentence(condition, bank, DECIDE, 40, "b")
