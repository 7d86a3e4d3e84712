"""Accuracy by category: exact where draws are uniform, unbiased and covering where they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.categories import by_category
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.findings import findings

NAMES = ("algebra", "geometry", "logic")
SIZES = (150, 90, 60)


def bank(calibrated: bool = True) -> ItemBank:
    rng = np.random.default_rng(5)
    n = sum(SIZES)
    ids = [f"i{k}" for k in range(n)]
    categories = [name for name, size in zip(NAMES, SIZES, strict=True) for _ in range(size)]
    return ItemBank(
        "three",
        ids,
        [Item(id=i, prompt=i, answer="1", category=(c,)) for i, c in zip(ids, categories, strict=True)],
        rng.uniform(0.6, 1.8, (n, 1)),
        rng.normal(0.0, 1.2, n),
        calibrated=calibrated,
        categories=categories,
    )


def held(
    bank: ItemBank, scores: np.ndarray, *, seed: int, selector: str | None = None
) -> tuple[Session, list[list[float]]]:
    policy = replace(POLICIES["decide"], budget=90, stop="budget")
    if selector:
        policy = replace(policy, selector=SELECTORS[selector], floor=0.0)
    session, abilities = Session(bank, policy, seed=seed), []
    while (proposal := session.ask()) is not None:
        abilities += [session.estimate.theta[0].tolist()] * proposal.items.shape[1]
        session.tell(scores[proposal.items])
    return session, abilities


def test_uniform_draws_give_the_exact_interval_of_each_category() -> None:
    from scipy.stats import hypergeom

    plain = bank(calibrated=False)
    scores = (np.random.default_rng(1).random(300) < 0.6).astype(float)
    session, _ = held(plain, scores, seed=3, selector="random")
    log = session.log()
    for found, name, size in zip(by_category(plain, log, None), NAMES, SIZES, strict=True):
        inside = np.array([plain.categories[i] == name for i in log.items])
        right, drawn = int(log.scores[inside].sum()), int(inside.sum())
        assert (found.category, found.size, found.asked) == (name, size, drawn)
        assert found.accuracy is not None
        assert found.accuracy.estimate == pytest.approx(right / drawn)
        low, high = round(found.accuracy.low * size), round(found.accuracy.high * size)
        assert hypergeom.sf(right - 1, size, low, drawn) > 0.05 >= hypergeom.sf(right - 1, size, low - 1, drawn)
        assert hypergeom.cdf(right, size, high, drawn) > 0.05 >= hypergeom.cdf(right, size, high + 1, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, -1.5])
def test_unequal_draws_estimate_each_category_without_bias_and_cover_it(shift: float) -> None:
    calibrated = bank()
    p = irt.probability(np.array([[0.7]]), calibrated.discrimination, calibrated.intercept, None)[0]
    algebra = np.array([c == "algebra" for c in calibrated.categories])
    odds = np.log(p / (1 - p)) + shift * algebra  # one category worse than the bank thinks
    scores = (np.random.default_rng(2).random(300) < 1 / (1 + np.exp(-odds))).astype(float)
    truth = [scores[np.array([c == name for c in calibrated.categories])].mean() for name in NAMES]
    found = []
    for seed in range(200):
        session, abilities = held(calibrated, scores, seed=seed)
        found.append(by_category(calibrated, session.log(), abilities))
    for c, (name, true) in enumerate(zip(NAMES, truth, strict=True)):
        rows = [row[c] for row in found]
        assert rows[0].category == name
        estimates = np.array([row.accuracy.estimate for row in rows])
        errors = np.array([row.standard_error for row in rows])
        assert abs(estimates.mean() - true) < 3.5 * estimates.std() / np.sqrt(200)
        assert 0.85 < np.sqrt((errors**2).mean()) / estimates.std() < 1.5
        for missed in ([row.accuracy.low > true for row in rows], [row.accuracy.high < true for row in rows]):
            assert np.mean(missed) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
        assert np.mean([row.accuracy.high - row.accuracy.low for row in rows]) < 2.4 * 1.645 * estimates.std()


def test_missing_scores_widen_and_known_ones_bound() -> None:
    calibrated = bank()
    scores = np.ones(300)
    session, abilities = held(calibrated, scores, seed=1)
    log = session.log()
    whole = by_category(calibrated, log, abilities)
    holed = replace(log, scores=np.where(np.arange(len(log)) % 9 == 0, np.nan, log.scores))
    for a, b in zip(whole, by_category(calibrated, holed, abilities), strict=True):
        assert b.accuracy.low <= a.accuracy.low <= a.accuracy.estimate <= a.accuracy.high == 1.0
        assert a.accuracy.low >= a.asked / a.size
        assert b.scored < a.asked == a.scored


def test_categories_never_asked_or_not_drawn_have_no_interval() -> None:
    calibrated = bank()
    session, abilities = held(calibrated, np.zeros(300), seed=1)
    log = session.log()
    first = log[:1]
    assert sum(found.accuracy is None for found in by_category(calibrated, first, abilities[:1])) == 2
    blind = replace(log, propensities=np.full(len(log), np.nan))
    assert all(found.accuracy is None and found.asked for found in by_category(calibrated, blind, abilities))
    single = replace(calibrated, categories=["algebra"] * 300)
    assert by_category(single, log, abilities) == []


def test_an_interview_whose_draws_decide_nothing_has_no_intervals_by_category() -> None:
    calibrated = bank()
    session = Session(calibrated, replace(POLICIES["estimate"], budget=30), seed=1)
    abilities = []
    while (proposal := session.ask()) is not None:
        abilities += [session.estimate.theta[0].tolist()] * proposal.items.shape[1]
        session.tell(np.ones(proposal.items.shape))
    result = SessionResult.of("three", session, statuses={"ok": 30})
    assert not np.isnan(result.log.propensities).any(), "their chances are known, and some left items none"
    told = findings(result, abilities)
    assert told["accuracy"] is None
    assert sum(found.asked for found in told["categories"]) == 30
    assert all(found.accuracy is found.standard_error is None for found in told["categories"])


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("stop", ["decision", "budget"])
@pytest.mark.parametrize("selector", ["random", "spread"])
def test_intervals_of_categories_hold_for_fractions_and_items_asked_first(stop, selector):
    """The bounds on a draw are those of the category, so no draw loses more than the wealth."""
    rng = np.random.default_rng(4)
    plain = ItemBank("b", [f"q{n}" for n in range(120)], (), rng.lognormal(0, 0.5, 120), rng.normal(0, 2, 120))
    of = replace(plain, categories=[f"c{n % 3}" for n in range(120)])
    policy = Policy(SELECTORS[selector], 0.5, budget=60, batch=4, stop=stop)
    missed, count = 0, 0
    for seed in range(40):
        scores = np.where(rng.random(120) < 0.5, rng.random(120), np.round(rng.random(120)))
        session = Session(of, policy, seed=seed, take_all=(3, 5, 60))
        abilities = []
        while (proposal := session.ask()) is not None:
            abilities += [session.estimate.theta[0].tolist()] * proposal.items.shape[1]
            session.tell(scores[proposal.items])
        for row in by_category(of, session.log(), abilities):
            true = scores[int(row.category[1]) :: 3].mean()
            missed += not row.accuracy.low - 1e-9 <= true <= row.accuracy.high + 1e-9
            count += 1
    assert missed / count <= 0.1
