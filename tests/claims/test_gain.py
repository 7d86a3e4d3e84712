"""Gains of a format over smaller ones: what the draws say, at the error rate that is stated."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from benchmarks import error_rates
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.gain import fullest, gap_claims
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

FORMATS = ("image+text", "image", "none")


def pairs(n=100, formats=FORMATS, drop=()):
    ids = [(f"q{i}@{form}", form) for i in range(n) for form in formats if (i, form) not in drop]
    items = [Item(name, "?", "yes", formats=(form,)) for name, form in ids]
    rng = np.random.default_rng(4)
    return ItemBank(
        "v",
        [name for name, _ in ids],
        items,
        rng.uniform(0.5, 1.5, len(ids)),
        rng.normal(size=len(ids)),
        categories=[form for _, form in ids],
        report=MappingProxyType({"formats": list(formats)}),
    )


def answers(bank, shares, rng):
    """Exactly so many right in each format, anywhere."""
    right = np.zeros(len(bank))
    for form, share in shares.items():
        own = np.flatnonzero(np.array(bank.categories) == form)
        right[rng.choice(own, round(share * len(own)), replace=False)] = 1.0
    return right


def held(bank, right, policy, seed, conditions=()):
    claims = [claim for c in conditions for claim in c.claims(bank, {})]
    session = Session(bank, policy, seed=seed, claims=claims, family=len(claims))
    while (proposal := session.ask()) is not None:
        session.tell(right[proposal.items])
    more: dict[str, Any] = {"statuses": {"ok": session.asked}, "planned": tuple(conditions), "family": len(claims)}
    return SessionResult.of("v", session, **more)


DECIDE = Policy(selector=SELECTORS["spread"], floor=0.5, budget="100%", batch=8, stop="decision")


def test_the_claims_hold_exactly_where_the_gain_does():
    bank, rng = pairs(), np.random.default_rng(0)
    right = answers(bank, {"image+text": 0.8, "image": 0.5, "none": 0.1}, rng)
    for gain, holds in ((0.29, (True, True)), (0.31, (False, True)), (0.71, (False, False))):
        for claim, expected in zip(gap_claims(bank, gain, 0.95), holds, strict=True):
            signed = 0.5 + 0.5 * claim.signs * right
            assert (signed.sum() >= claim.total) == expected
    assert [claim.form for claim in gap_claims(bank, 0.1, 0.95)] == ["image", "none"]
    assert fullest(bank) == "image+text"


def test_the_one_draw_estimates_are_unbiased():
    bank, rng = pairs(20), np.random.default_rng(1)
    right = answers(bank, {"image+text": 0.7, "image": 0.4, "none": 0.2}, rng)
    claim = gap_claims(bank, 0.1, 0.95)[0]
    truth = float((0.5 + 0.5 * claim.signs * right).sum())
    session = Session(bank, dataclasses.replace(DECIDE, budget=12), subjects=600)
    while (proposal := session.ask()) is not None:
        session.tell(right[proposal.items])
    found = claim.view(session.logs()).totals
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(mean - truth) < 4 * error).all()


def test_a_whole_bank_decides_and_shows_the_gain_itself():
    bank, rng = pairs(), np.random.default_rng(2)
    right = answers(bank, {"image+text": 0.8, "image": 0.5, "none": 0.1}, rng)
    result = held(bank, right, dataclasses.replace(DECIDE, stop="budget"), 3)
    for gain, outcome in ((0.25, Outcome.PASS), (0.35, Outcome.FAIL)):
        verdict = result.gain.at_least(gain)
        assert verdict.outcome is outcome
        assert verdict.interval is not None
        assert verdict.interval.estimate == pytest.approx(0.30, abs=0.06)
        assert "accuracy as image+text gains" in verdict.sentence
    assert "over none" in verdict.sentence


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["decision", "budget"])
@pytest.mark.parametrize(("image", "wrong"), [(0.46, Outcome.PASS), (0.44, Outcome.FAIL)])
def test_wrong_verdicts_are_as_rare_as_stated(stop, image, wrong):
    """The gain over the image alone is a hair below, or above, what is asked."""
    bank = pairs(50)
    condition = Condition("gain", "at_least", 0.25, confidence=0.9)
    policy, seeds, rng = dataclasses.replace(DECIDE, stop=stop, budget="50%"), 150, np.random.default_rng(0)
    scores = np.stack([answers(bank, {"image+text": 0.7, "image": image, "none": 0.1}, rng) for _ in range(seeds)])
    found = error_rates.verdicts(error_rates.interview(bank, policy, scores, rng, condition), condition)
    assert found.count(wrong) / seeds <= 0.1 + 2.5 * np.sqrt(0.09 / seeds)


def test_a_clear_gain_is_decided_early_and_a_shortcut_refused():
    bank, condition = pairs(), Condition("gain", "at_least", 0.2)
    seen, shown = {}, {}
    for name, image in (("looks and reads", 0.2), ("looks only", 0.75)):
        right = answers(bank, {"image+text": 0.8, "image": image, "none": 0.1}, np.random.default_rng(5))
        result = held(bank, right, DECIDE, 5, [condition])
        seen[name] = result.judge(condition).outcome, result.asked
        shown[name] = result.judge(condition).interval
    assert [outcome for outcome, _ in seen.values()] == [Outcome.PASS, Outcome.FAIL]
    assert max(asked for _, asked in seen.values()) < 0.8 * len(bank)
    passed, failed = shown.values()
    assert 0.2 <= passed.low <= passed.estimate <= passed.high <= 1.0
    assert -1.0 <= failed.low <= failed.estimate <= failed.high <= 0.2


def test_missing_scores_are_counted_against_either_side():
    bank, rng = pairs(), np.random.default_rng(6)
    right = answers(bank, {"image+text": 0.8, "image": 0.5, "none": 0.1}, rng)
    right[rng.random(len(bank)) < 0.3] = np.nan
    result = held(bank, right, dataclasses.replace(DECIDE, stop="budget"), 6)
    assert result.gain.at_least(0.25).outcome is Outcome.INCONCLUSIVE
    assert "counted as wrong in the lower bound" in result.gain.at_least(0.25).sentence


def test_denials_are_counted_by_format():
    bank = pairs()
    assert Condition("gain", "at_least", 0.1).denials(bank) == 2
    assert Condition("accuracy", "at_least", 0.1).denials(bank) == 1
    assert Condition("rank", "rank_within", 2).denials(bank) == 0
    right = answers(bank, {"image+text": 0.5, "image": 0.5, "none": 0.5}, np.random.default_rng(1))
    result = held(bank, right, DECIDE, 1, [Condition("gain", "at_least", 0.5)])
    assert decide(result.log, gap_claims(bank, 0.5, 0.95), 2).outcome.shape == (2,)


@pytest.mark.parametrize(
    ("bank", "message"),
    [
        (pairs(formats=("text",)), "is not asked in formats"),
        (pairs(drop={(3, "none")}), "have different formats .100 as image, 100 as image.text, 99 as none."),
    ],
)
def test_where_there_is_no_gain_it_is_said(bank, message):
    with pytest.raises(ConfigError, match=message):
        Condition("gain", "at_least", 0.1).check(bank)


def test_a_gain_is_a_difference():
    with pytest.raises(ConfigError, match="difference of accuracies"):
        Condition("gain", "at_least", 1.0)
    with pytest.raises(ConfigError, match="gain has no such condition"):
        Condition("gain", "above", name="x")


@pytest.mark.parametrize(("share", "sign"), [(1.0, 1), (0.0, -1)])
def test_a_missing_answer_costs_no_more_than_it_may(share, sign):
    """Bets go on behind it, and decide what answers so clear decide."""
    bank = pairs(60, ("image+text", "none"))
    rng = np.random.default_rng(5)
    right = answers(bank, {"image+text": share, "none": 0.0}, rng)
    for seed in range(5):
        gone = right.copy()
        gone[rng.choice(len(bank), 3, replace=False)] = np.nan
        result = held(bank, gone, DECIDE, seed, [Condition("gain", "at_least", 0.5)])
        (claim,) = gap_claims(bank, 0.5, 0.95)
        view = claim.view(result.log)
        for score in (0.0, 1.0):
            filled = view.with_missing_as(score)
            assert (np.abs(filled.scores - 0.5) <= 0.5).all()
            signs = claim.signs[result.log.items]
            assert ((filled.scores - 0.5) * signs >= 0).all()
        decided = decide(result.log, [claim])
        assert decided.outcome.tolist() == [sign]
        assert decided.at[0] < len(bank)
        verdict = result.gain.at_least(0.5)
        assert verdict.outcome is (Outcome.PASS if sign > 0 else Outcome.FAIL)
        assert np.isfinite([verdict.interval.low, verdict.interval.high]).all()
