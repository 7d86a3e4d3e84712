"""Verdicts: what passes, what fails, what stays open, and how it is said."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.projection import ability_at, expected_accuracy
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.faults import CONSECUTIVE_FAULTS, FAULT_SHARE, FaultLimit
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.result import UNREADABLE_SHARE, BoundMetric, SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, claim_in_words
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.sampling import approximate_interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.text import number

N = 200


def plain_bank():
    return ItemBank.uncalibrated("plain", [Item(id=f"q{i}", prompt="?", answer="1") for i in range(N)])


def calibrated_bank():
    rng = np.random.default_rng(0)
    return ItemBank("good", [f"q{i}" for i in range(N)], [None] * N, rng.lognormal(0, 0.3, N), rng.normal(0, 1, N))


def result_of(bank, policy, answer, **more):
    session = Session(bank, policy, seed=1)
    while (proposal := session.ask()) is not None:
        session.tell([[answer(i) for i in proposal.items[0].tolist()]])
    statuses = {"ok": int((~np.isnan(session.log().scores)).sum())}
    return SessionResult.of("eval", session, statuses=statuses, **more)


def uniform(budget=60):
    return Policy(SELECTORS["random"], 0.0, budget)


def test_pass_fail_and_inconclusive_follow_the_bounds():
    result = result_of(plain_bank(), uniform(), lambda i: float(i % 4 > 0))
    interval = result.interval()
    for target, outcome in [
        (interval.low, Outcome.PASS),
        (interval.low + 0.001, Outcome.INCONCLUSIVE),
        (interval.high, Outcome.INCONCLUSIVE),
        (interval.high + 0.001, Outcome.FAIL),
    ]:
        verdict = result.accuracy.at_least(min(target, 1.0))
        assert verdict.outcome is outcome
        assert bool(verdict) is (outcome is Outcome.PASS)


def test_the_sentence_can_be_read_alone():
    result = result_of(plain_bank(), uniform(), lambda i: 0.0, notes=("two\nlines",))
    sentence = result.accuracy.at_least(0.6).sentence
    assert sentence == str(result.accuracy.at_least(0.6)) == repr(result.accuracy.at_least(0.6))
    assert sentence.startswith("FAIL accuracy .000 [.000, ")
    assert sentence.endswith("] < .60 required, 95 %, 60 of 200 items, exact uniform; two lines")
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("value", "text"), [(0.5124, ".512"), (1.0, "1.000"), (-0.5, "-.500"), (-0.0001, ".000"), (12.3456, "12.346")]
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_missing_answers_never_decide():
    nan = float("nan")
    full = result_of(plain_bank(), uniform(), lambda i: 1.0)
    assert full.accuracy.at_least(0.94).outcome is Outcome.PASS
    holes = result_of(plain_bank(), uniform(), lambda i: nan if i % 10 == 0 else 1.0)
    missing = holes.asked - holes.scored
    assert missing > 0
    verdict = holes.accuracy.at_least(0.94)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert f"{missing} answers have no score and are counted as wrong in the lower bound" in verdict.sentence
    assert holes.interval().low < full.interval().low
    assert holes.interval().high == full.interval().high == 1.0
    whole = result_of(plain_bank(), uniform(N), lambda i: nan if i % 10 == 0 else 1.0).accuracy.at_least(0.94)
    assert whole.outcome is Outcome.INCONCLUSIVE
    assert whole.notes[0] == "the whole bank was asked, and answers without a score leave it open"


def test_an_interview_cut_short_is_an_error_whatever_it_found():
    session = Session(plain_bank(), uniform(), seed=1)
    for _ in range(30):
        session.ask()
        session.tell([[1.0]])
    session.end(StopReason.INTERRUPTED)
    result = SessionResult.of("eval", session, statuses={"ok": 30})
    verdict = result.accuracy.at_least(0.1)
    assert verdict.outcome is Outcome.ERROR
    assert StopReason.INTERRUPTED.value in verdict.sentence
    assert result.interval() is None


def test_an_error_is_an_error():
    result = result_of(plain_bank(), uniform(), lambda i: 1.0, error="the server was down")
    verdict = result.accuracy.at_least(0.1)
    assert (verdict.outcome, bool(verdict)) == (Outcome.ERROR, False)
    assert "the server was down" in verdict.sentence


def test_ability_is_decided_on_the_accuracy_it_implies():
    bank = calibrated_bank()
    result = result_of(bank, Policy(budget=100), lambda i: float(i % 3 > 0))
    for theta in np.linspace(-3, 3, 13):
        implied = float(expected_accuracy(bank, np.array([[theta]]))[0])
        assert result.ability.at_least(float(theta)).outcome is result.accuracy.at_least(implied).outcome
    shown = result.ability.at_least(0.0).interval
    accuracy = interval_of_draws(result.log)
    assert shown.low == pytest.approx(ability_at(bank, accuracy.low), abs=1e-5)
    assert shown.high == pytest.approx(ability_at(bank, accuracy.high), abs=1e-5)
    assert shown.estimate == pytest.approx(ability_at(bank, accuracy.estimate), abs=1e-5)


@pytest.mark.parametrize(
    ("policy", "planned", "method"),
    [
        (POLICIES["decide"], (), "approximate"),
        (POLICIES["decide"], (Condition("accuracy", "at_least", 0.5),), "anytime-valid"),
        (uniform(), (), "exact uniform"),
        (Policy(SELECTORS["random"], 0.0, 60, stop="decision"), (), "exact uniform"),
        (Policy(budget=60), (Condition("accuracy", "at_least", 0.5),), "bets at the budget"),
        (Policy(budget="100%"), (), "exact uniform"),
    ],
)
def test_only_an_interview_that_no_gate_judges_has_an_approximate_interval(policy, planned, method):
    result = result_of(calibrated_bank(), policy, lambda i: float(i % 3 > 0), planned=planned)
    assert result.interval().method == method


def test_an_interview_that_ended_early_has_no_approximate_interval():
    session = Session(calibrated_bank(), POLICIES["decide"], seed=1)
    session.tell(np.ones(session.ask().items.shape))
    session.end(StopReason.BUDGET)
    result = SessionResult.of("eval", session, statuses={"ok": 8})
    assert result.interval().method == "anytime-valid"


def test_verdicts_without_a_declared_gate_have_the_interval_of_bets():
    result = result_of(calibrated_bank(), POLICIES["decide"], lambda i: float(i % 3 > 0))
    approximate, verdict = result.interval(), result.accuracy.at_least(0.65)
    assert approximate == approximate_interval(result.log)
    assert verdict.interval.method == "anytime-valid"
    assert verdict.interval.high - verdict.interval.low > approximate.high - approximate.low


def test_ability_at_inverts_the_characteristic_curve():
    bank = calibrated_bank()
    for theta in (-2.0, 0.0, 1.5):
        assert ability_at(bank, float(expected_accuracy(bank, np.array([[theta]]))[0])) == pytest.approx(
            theta, abs=1e-4
        )
    assert ability_at(bank, 0.0) == -8.0
    assert ability_at(bank, 1.0) == 8.0


def test_a_result_survives_the_way_to_another_process():
    bank = calibrated_bank()
    result = result_of(bank, Policy(budget=40), lambda i: float("nan") if i == 3 else float(i % 2))
    back = SessionResult.restored(json.loads(json.dumps(result.to_json())), bank)
    for target in (0.2, 0.5, 0.8):
        assert back.accuracy.at_least(target) == result.accuracy.at_least(target)
    assert (back.theta, back.stop, back.scored) == (result.theta, result.stop, result.scored)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.accuracy.at_least(1.2), r"lies in \[0, 1\]"),
        (lambda r: r.accuracy.at_least(True), "expected a number"),
        (lambda r: r.accuracy.at_least(float("nan")), "expected a number"),
        (lambda r: r.accuracy.at_least(0.5, confidence=0.2), "confidence is 0.2"),
        (lambda r: r.ability.at_least(0.0), "no ability scale"),
    ],
)
def test_gates_refuse_what_has_no_meaning(ask, message):
    result = result_of(plain_bank(), uniform(), lambda i: 1.0)
    with pytest.raises(ConfigError, match=message):
        ask(result)


class Noted:
    """A result that gives back the condition asked of it."""

    on_metric = None

    @staticmethod
    def verdict(condition):
        return condition


def test_gates_ask_at_95_percent_and_fail_where_open_unless_told_otherwise():
    noted: Any = Noted()
    accuracy = BoundMetric("accuracy", noted)
    noted.name = "toy"
    with pytest.raises(AttributeError, match="has no 'estimate'; judge it, as by"):
        _ = accuracy.estimate
    defaults: dict[str, Any] = {"confidence": 0.95, "probability": 0.95, "on_inconclusive": "fail", "method": "draws"}
    assert accuracy.at_least(0.6) == Condition("accuracy", "at_least", 0.6, **defaults)
    assert accuracy.not_worse_than("old", margin=0.02) == Condition(
        "accuracy", "not_worse_than", 0.02, "old", **defaults
    )
    assert accuracy.rank_within(3) == Condition("accuracy", "rank_within", 3, **defaults)
    assert accuracy.above("u") == Condition("accuracy", "above", name="u", **defaults)


def test_gates_ask_what_they_are_told():
    noted: Any = Noted()
    accuracy, ability = BoundMetric("accuracy", noted), BoundMetric("ability", noted)
    assert accuracy.at_least(1, confidence=0.9, on_inconclusive="warn", method="like-questions") == Condition(
        "accuracy", "at_least", 1, confidence=0.9, on_inconclusive="warn", method="like-questions"
    )
    assert accuracy.not_worse_than("old", margin=0.1, confidence=0.8, on_inconclusive="pass") == Condition(
        "accuracy", "not_worse_than", 0.1, "old", confidence=0.8, on_inconclusive="pass"
    )
    conditions: list[Any] = [accuracy.rank_within(3, confidence=0.8), accuracy.above("u", confidence=0.8)]
    for given in conditions:
        assert given.confidence == 0.8
    assert ability["cross"].at_least(0.5).metric == "ability.cross"
    with pytest.raises(ConfigError, match=r"confidence is 1\.0, expected"):  # a whole number is a number
        accuracy.at_least(0.6, confidence=1)
    wrong_types: tuple[Any, ...] = (True, "95%", None)
    for wrong in wrong_types:
        with pytest.raises(ConfigError, match=f"confidence is {wrong!r}, expected"):
            accuracy.at_least(0.6, confidence=wrong)


def test_results_and_metrics_are_named_where_they_are_shown():
    result = result_of(plain_bank(), uniform(), lambda i: 1.0)
    assert repr(result) == "<result of eval: 60 of 200 items>"
    assert repr(result.accuracy) == "accuracy of eval"
    assert result.ladder is None  # no levels were climbed
    with pytest.raises(
        AttributeError, match=r"<result of eval.*> has no 'speed'; use ability, accuracy, auc, cost, gain"
    ):
        _ = result.speed


def test_interviews_end_in_error_after_three_errors_in_a_row_or_one_in_twenty():
    assert (CONSECUTIVE_FAULTS, FAULT_SHARE, UNREADABLE_SHARE) == (3, 0.05, 0.5)


def test_faults_in_a_row_are_counted_by_source_and_all_faults_together():
    limit = FaultLimit(100, "replies", "calls")
    assert not any(limit.add("no answer", name) for name in ("bee", "dog", "bee", "dog"))
    assert limit.add(None, "dog") == ""
    assert limit.add("no\n answer", "bee") == "3 replies of bee in a row failed; the last: no answer"
    assert limit.add(" late ", "dog") == "6 of the replies failed, more than 5 % of the calls; the last of dog: late"
    assert limit.add(None, "dog").startswith("6 of the replies failed")


def test_deterministic_and_data_dependent_interviews_cannot_feed_a_gate():
    greedy = result_of(calibrated_bank(), POLICIES["estimate"], lambda i: 1.0)
    with pytest.raises(ConfigError, match=r"floor is 0, expected at least 0\.1"):
        greedy.accuracy.at_least(0.5)
    early = result_of(calibrated_bank(), Policy(standard_error=0.5), lambda i: float(i % 2))
    with pytest.raises(ConfigError, match="standard error"):
        early.accuracy.at_least(0.5)
    assert greedy.interval() is None
    assert greedy.model is not None
    assert greedy.conformal is None  # the bank has no table of replayed interviews
    assert result_of(plain_bank(), uniform(), lambda i: 1.0).conformal is None


def test_verdicts_are_told_and_can_be_replaced():
    from dataclasses import replace

    result = result_of(plain_bank(), uniform(), lambda i: 1.0)
    told = []

    def listen(verdict):
        told.append(verdict)
        return replace(verdict, outcome=Outcome.FAIL)

    verdict = replace(result, on_verdict=listen).accuracy.at_least(0.5)
    assert told[0].outcome is Outcome.PASS
    assert not verdict


@pytest.mark.parametrize(
    ("outcome", "bounds", "method", "expected"),
    [
        ("PASS", (1.2, 0.4, 2.0), "exact uniform", "ability by accuracy 1.200 [.400, 2.000] >= .30"),
        ("PASS", (4.95, 2.145, 8.0), "exact uniform", "ability by accuracy at least 2.145, >= .30"),
        ("FAIL", (-8.0, -8.0, 0.1), "anytime-valid", "ability by accuracy at most .100, < .30"),
        ("INCONCLUSIVE", (0.0, -8.0, 8.0), "anytime-valid", "ability by accuracy unknown, against .30"),
        ("PASS", (1.2, 0.4, 9.0), "likelihood ratio", "ability 1.200 [.400, 9.000] >= .30"),
        ("ERROR", (0.5, None, 1.0), "by levels", "ability by accuracy .500 [-, 1.000] for .30"),
    ],
)
def test_an_ability_that_the_accuracy_implies_is_named_and_has_no_bound_at_the_end_of_its_scale(
    outcome: str, bounds: tuple[float | None, ...], method: str, expected: str
) -> None:
    assert claim_in_words(Outcome[outcome], "ability", ">= .30", bounds, method) == expected
