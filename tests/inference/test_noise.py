"""Noise of decoding: what is measured, how far bounds move for it, and that verdicts about expectations then hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made
from scipy.stats import binom, binomtest, poisson

from benchmarks.decoding_noise import verdicts
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason, repeats
from pytest_adaptive_eval.claims.categories import by_category
from pytest_adaptive_eval.claims.gain import gap_claims
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.claims.weighted_ability import weighted_ability
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.inference.betting import Claim, decide, interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog, uniform_draws
from pytest_adaptive_eval.inference.noise import (
    DecodingNoise,
    allowed_variance,
    item_score,
    noise_margin,
    one_way_changes,
    variance_bound,
)
from pytest_adaptive_eval.inference.sampling import standard_error
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, by_item, noise_of


def plain_bank(n: int) -> ItemBank:
    items = [Item(f"q{i}", "?", "a") for i in range(n)]
    return ItemBank("toy", [item.id for item in items], items, np.zeros((n, 1)), np.zeros(n), calibrated=False)


def margin(variance: float, alpha: float = 0.05) -> float:
    """Bernstein's bound of a sum of this variance, at an eighth of the error rate."""
    rate = math.log(8 / alpha)
    return math.sqrt(2 * rate * variance) + rate / 3


def held(scores: list[float], **more: Any) -> Session:
    """An interview of a plain bank whose item i has the score i."""
    policy = replace(POLICIES["decide"], selector=POLICIES["fixed-form"].selector, budget="50%", stop="budget")
    session = Session(plain_bank(len(scores)), policy, seed=3, **more)
    while (proposal := session.ask()) is not None:
        session.tell(np.array(scores)[proposal.items])
    return session


def test_the_score_of_an_item_is_the_mean_of_its_samples() -> None:
    assert item_score([1.0, 0.0, 0.5]) == 0.5
    assert item_score([1.0]) == 1.0
    assert item_score([1.0, None]) is None
    assert item_score([]) is None


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=5), min_size=1, max_size=12))
def test_the_noise_is_the_mean_variance_within_items(answers: list[list[float]]) -> None:
    several = [np.var(given, ddof=1) for given in answers if len(given) > 1]
    noise = DecodingNoise.of(answers, [float(given[0]) for given in answers], 2, 50)
    assert noise.items == len(several)
    assert noise.answers == sum(len(given) for given in answers if len(given) > 1)
    assert 0 <= noise.allowed <= 0.125
    if several:
        assert noise.variance == pytest.approx(np.mean(several))
        assert noise.error == pytest.approx(math.sqrt(len(answers) * np.mean(several) / 2) / 50)
    else:
        assert noise.variance is noise.error is None
        assert noise.allowed == pytest.approx(float(variance_bound([given[0] for given in answers])) / 2)


def test_noise_as_records_keep_it() -> None:
    assert plain(DecodingNoise(0.1, 2, 5, 1, 0.01, 0.2)) == {
        "variance": 0.1,
        "items": 2,
        "answers": 5,
        "samples": 1,
        "error": 0.01,
        "allowed": 0.2,
    }


def test_few_measurements_allow_for_more() -> None:
    assert allowed_variance([]) == math.inf
    sure = [allowed_variance([0.0] * n) for n in (3, 30, 300, 3000)]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] > 0.1
    assert sure[-1] < 0.001
    many = [0.0, 0.5] * 20000
    assert allowed_variance(many) == pytest.approx(0.25, rel=0.02)


@pytest.mark.parametrize("expected", [0.01, 0.3, 1.0, 5.0, 40.0])
def test_the_allowed_variance_is_below_the_true_one_in_a_twentieth_at_most(expected: float) -> None:
    """Of 1000 items asked twice, a number near to Poisson differs; each then has the unbiased variance 1 / 2."""
    differing = np.arange(1000)
    chance = poisson.pmf(differing, expected)
    too_low = [allowed_variance([0.5] * k + [0.0] * (1000 - k)) < 0.5 * expected / 1000 for k in differing[:200]]
    assert float(chance[:200] @ too_low) <= 0.05


@pytest.mark.parametrize("n", [60, 250, 1000])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.97, 0.99, 0.999])
def test_a_bank_that_is_asked_whole_seldom_passes_at_its_expected_accuracy(p: float, n: int) -> None:
    """No item was asked twice, so bounds allow for the largest noise that the scores admit."""
    right = np.arange(n + 1)
    passes = []
    for k in right.tolist():
        noise = DecodingNoise.of([], [1.0] * k + [0.0] * (n - k), 1, n).allowed
        log = replace(uniform_draws(np.zeros(n), n), noise=noise)
        passes.append(k - noise_margin(log, 0.95) >= n * p)
    assert float(binom.pmf(right, n, p) @ passes) <= 0.05 / 4


def test_no_more_is_allowed_for_than_the_scores_admit() -> None:
    assert variance_bound([1.0] * 98) == pytest.approx(0.99 * 0.01)
    assert variance_bound([0.5, math.nan]) == pytest.approx(0.25)
    assert DecodingNoise.of([[1.0, 1.0]], [1.0] * 98, 1, 200).allowed == pytest.approx(0.99 * 0.01)


def test_repeats() -> None:
    assert repeats(0, 40) == repeats("0", 40) == repeats("10%", 0) == 0
    assert repeats("10%", 40) == repeats(4, 40) == 4
    assert repeats(50, 40) == 40
    assert repeats("1%", 40) == 1
    for wrong in ("many", "-1", -1, "101%", "1.5"):
        with pytest.raises(ConfigError, match=r"repeat is .*expected a count such as 20, or a share"):
            repeats(wrong, 40)


def asked(item: str, *scores: float | None) -> list[Administration]:
    return [Administration(1, item, "h", sample=k, score=score) for k, score in enumerate(scores)]


def test_a_record_by_item() -> None:
    answers = [*asked("a", 1.0, 0.0), *asked("b", 1.0, None), *asked("c", 0.0), *asked("a", 1.0, 0.0, 1.0)[2:]]
    assert [(a.item, a.score) for a in by_item(answers, 2)] == [("a", 0.5), ("b", None), ("c", None)]
    noise = noise_of(answers, 2, 10)
    assert (noise.items, noise.answers) == (1, 3)
    assert noise.variance == pytest.approx(1 / 3)
    once = asked("a", 1.0)
    assert by_item(once, 1) is once


@pytest.mark.parametrize(
    ("fell", "rose", "same", "named"),
    [(10, 0, 0, 10), (9, 0, 5, 0), (0, 10, 90, 10), (12, 1, 0, 0), (13, 1, 0, 13), (30, 20, 0, 0), (0, 0, 40, 0)],
)
def test_changes_one_way_are_told_from_noise_by_the_sign_test(fell: int, rose: int, same: int, named: int) -> None:
    values = [-1.0] * fell + [0.5] * rose + [0.0] * same
    changes = {f"q{n}": value for n, value in enumerate(values)}
    way = range(fell) if fell >= rose else range(fell, fell + rose)
    assert one_way_changes(changes) == ([f"q{n}" for n in way] if named else [])
    assert len(one_way_changes(changes)) == named
    p = binomtest(max(fell, rose), fell + rose, alternative="greater").pvalue if fell + rose else 1.0
    assert (p <= 0.001) == bool(named)


def test_bounds_move_by_the_bound_of_the_noise() -> None:
    scores = ([1.0] * 7 + [0.0] * 3) * 10
    log = held(scores).log()
    noisy = replace(log, noise=0.09)
    assert noisy.decoding_sd == pytest.approx(math.sqrt(50 * 0.09))
    for fixed in (True, False):
        half = margin(50 * 0.09) / 100
        was, now = (interval_of_draws(replace(one, fixed=fixed)) for one in (log, noisy))
        assert (now.low, now.high) == pytest.approx((was.low - half, was.high + half))
        assert now.estimate == was.estimate
    assert standard_error(noisy) ** 2 == pytest.approx(standard_error(log) ** 2 + 50 * 0.09 / 100**2)


def test_the_margin_of_each_subject_is_that_of_its_own_noise() -> None:
    log = replace(held([1.0, 0.0] * 50).log(), noise=np.array([0.0, 0.09, 0.25]))
    expected = [0.0, margin(50 * 0.09, 0.1), margin(50 * 0.25, 0.1)]
    np.testing.assert_allclose(noise_margin(log, 0.9), expected)


@pytest.mark.parametrize(("right", "total"), [(1, 2.0), (9, 58.0)])
def test_a_threshold_that_noise_moves_off_the_scale_stays_undecided(right: int, total: float) -> None:
    log = replace(held(([1.0] * right + [0.0] * (10 - right)) * 6).log(), noise=0.25)
    assert noise_margin(log, 0.95) > 6.0
    assert decide(log, [Claim(total)]).outcome[0] == 0


def test_thresholds_move_with_them_and_stay_one_verdict_with_the_interval() -> None:
    log = replace(held(([1.0] * 7 + [0.0] * 3) * 10).log(), noise=0.1, fixed=False)
    interval = interval_of_draws(log)
    totals = np.linspace(interval.low, interval.high, 7) * 100
    inside = [int(decide(log, [Claim(total)]).outcome[0]) for total in totals[1:-1]]
    assert inside == [0] * 5
    assert decide(log, [Claim(totals[0] - 0.1)]).outcome[0] == 1
    assert decide(log, [Claim(totals[-1] + 0.1)]).outcome[0] == -1
    assert decide(replace(log, noise=0.0), [Claim(totals[1])]).outcome[0] != 0 or len(log) < 100


def test_differences_from_a_baseline_are_half_as_noisy() -> None:
    """(1 + score - baseline) / 2 has a quarter of the score's variance."""
    session = held([1.0, 0.0] * 20)
    log = replace(session.log(), noise=0.2)
    known = np.full(40, np.nan)
    known[log.items] = log.scores
    claim = PairedClaim.of(Baseline("old", known, log), 0.1, 0.95)
    assert claim.view(log).noise == pytest.approx(0.05)


def test_formats_categories_and_parts_take_their_share_of_it() -> None:
    rng = np.random.default_rng(2)
    n, forms = 40, ("image+text", "text")
    names = [form for form in forms for _ in range(n)]
    bank = replace(plain_bank(2 * n), categories=names, report={"formats": list(forms)})
    policy = replace(POLICIES["fixed-form"], budget="50%")
    session = Session(bank, policy, seed=1)
    while (proposal := session.ask()) is not None:
        session.tell((rng.random(proposal.items.shape) < 0.6).astype(float))
    quiet = session.log()
    log = replace(quiet, noise=0.2)
    (claim,) = gap_claims(bank, 0.1, 0.95)
    assert claim.view(log).noise == pytest.approx(0.05)
    was, now = (claim.gap(one, 0.95) for one in (quiet, log))
    # of both formats' answers, over one's items; a gap is twice the mean that the bound is about
    half = (margin(n * 0.2) + math.log(160) / 3) / n
    assert (was.low - now.low, now.high - was.high) == pytest.approx((half, half))
    for before, after in zip(by_category(bank, quiet, None), by_category(bank, log, None), strict=True):
        assert before.accuracy is not None
        assert after.accuracy is not None
        half = margin(after.asked * 0.2) / n
        assert after.accuracy.low == pytest.approx(max(before.accuracy.low - half, 0.0))
        assert after.accuracy.high == pytest.approx(min(before.accuracy.high + half, 1.0))
    scaled = replace(bank, calibrated=True, discrimination=np.ones((2 * n, 1)))
    errors = [weighted_ability(scaled, one).standard_error[0] for one in (quiet, log)]
    assert errors[1] > errors[0]


def test_results_travel_with_their_noise() -> None:
    session = held([1.0, 0.0] * 20)
    result = SessionResult.of("toy", session, statuses={"ok": 20}, noise=0.125)
    assert result.log.noise == 0.125
    assert SessionResult.restored(result.to_json(), session.bank).log.noise == 0.125
    assert SessionResult.of("toy", session, statuses={"ok": 20}).log.noise == 0.0
    noise = DecodingNoise(None, 0, 0, 1, None, 0.125)
    record = made(EvaluationRecord, decoding_noise=noise, **_EMPTY)
    assert record.draws().noise == 0.125


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("name", "nodeid", "stop", "stop_sentence"), ""),
    **{name: {} for name in ("bank", "policy", "statuses")},
    "subject": {"name": ""},
    **dict.fromkeys(("asked", "scored", "size"), 0),
    **dict.fromkeys(("theta", "standard_error", "accuracy", "accuracy_model"), None),
}


def test_the_interview_itself_allows_for_what_it_sees() -> None:
    rng = np.random.default_rng(1)
    thirds = rng.binomial(3, 0.5, 100) / 3
    assert held(thirds.tolist(), decodings=3).log().noise == pytest.approx(0.25 / 3, rel=0.15)
    assert held(thirds.tolist()).log().noise == 0.0
    right = [1.0] * 100
    assert held(right, decodings=1).log().noise == pytest.approx(float(variance_bound([1.0] * 50)))
    assert 0 < held(right, decodings=3).log().noise < 0.01


def test_what_stopped_as_decided_is_decided_whatever_was_measured() -> None:
    rng = np.random.default_rng(5)
    for seed in range(20):
        claim = Claim(0.6 * 200)
        policy = replace(POLICIES["decide"], selector=POLICIES["fixed-form"].selector, budget="100%")
        session = Session(plain_bank(200), policy, seed=seed, claims=(claim,), decodings=1)
        scores = (rng.random(200) < 0.8).astype(float)
        while (proposal := session.ask()) is not None:
            session.tell(scores[proposal.items])
        assert session.stop[0] in (StopReason.DECISION, StopReason.EXHAUSTED)
        log = session.log()
        most = DecodingNoise.of([[0.0, 1.0]] * 9, log.scores.tolist(), 1, 200).allowed
        for noise in (0.0, most):
            assert decide(replace(log, noise=noise), [claim]).outcome[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stop", "samples", "repeat"), [("decision", 1, 0.3), ("budget", 1, 0.1), ("decision", 3, 0.0)]
)
def test_verdicts_about_expectations_hold(stop: Literal["decision", "budget"], samples: int, repeat: float) -> None:
    """With the truth at the threshold and the whole bank asked, where the luck of decoding is all that is left."""
    seeds = 300
    expected = np.random.default_rng(3).beta(0.5, 0.5, 120)
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / seeds)
    for side in (1, -1):
        wrong, _ = verdicts(expected, side, seeds, samples, repeat, stop, "100%", measured=True)
        assert (wrong == side).mean() <= most
    careless, _ = verdicts(expected, 1, 100, samples, repeat, stop, "100%", measured=False)
    assert (careless == 1).mean() > 0.3


def test_a_log_is_cut_with_its_noise() -> None:
    log = replace(held([1.0, 0.0] * 20).log(), noise=0.2)
    assert log[:5].decoding_sd == pytest.approx(1.0)
    assert "noise" not in DesignLog.columns()
