"""Upper limits, and metrics of values of the answers: their conditions, their verdicts and how these read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.condition import Condition, decide_by_bounds
from pytest_adaptive_eval.gates.planning import outlook_sentence
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.reports.words import beside_interval

N = 100
BANK = ItemBank.uncalibrated("plain", [Item(f"q{n}", "?", "yes") for n in range(N)])
WHOLE = replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0, stop="budget", budget=N)


def result_of(scores=None, values=None, budget=N, **more):
    """An interview about `scores` and `values`, each an array over the bank, of one or several samples."""
    scores = np.ones(N) if scores is None else np.asarray(scores, dtype=float)
    session = Session(BANK, replace(WHOLE, budget=budget), seed=3)
    while (proposal := session.ask()) is not None:
        items = proposal.items
        told = {name: np.asarray(known, dtype=float)[items] for name, known in (values or {}).items()}
        session.tell(scores[items], told)
    return SessionResult.of("eval", session, statuses={"ok": budget}, **more)


def single(values):
    return np.asarray(values, dtype=float)[:, None]


@pytest.mark.parametrize(
    ("condition", "label", "quantity", "requirement"),
    [
        (("seconds", "at_least", "95%", {"within": 2.0}), "seconds-within-2-at-least-0.95",
         "share of seconds within 2", ">= .95"),
        (("output_tokens", "at_most", 300, {"cap": 1000}), "output_tokens-cap-1000-at-most-300",
         "mean output tokens cut at 1000", "<= 300.00"),
        (("latency", "not_worse_than", 0.5, {"cap": 10, "name": "old"}),
         "latency-cap-10-not-worse-than-0.5-old", "mean latency cut at 10 less that of old", "<= .50"),
        (("latency", "not_worse_than", "2%", {"within": 1.5, "name": "old"}),
         "latency-within-1.5-not-worse-than-0.02-old", "share of latency within 1.5 less that of old", ">= -.02"),
        (("pass^3", "at_least", 0.5, {}), "pass^3-at-least-0.5", "pass^3", ">= .50"),
        (("accuracy", "at_most", "20%", {}), "accuracy-at-most-0.2", "accuracy", "<= .20"),
    ],
)  # fmt: skip
def test_conditions_are_named_by_metric_and_bounds(condition, label, quantity, requirement):
    metric, kind, value, more = condition
    made = Condition(metric, kind, value, **more)
    assert (made.label, made.quantity, made.requirement) == (label, quantity, requirement)
    assert Condition(**made.to_json()) == made


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("seconds", "at_least", 0.9), "metric seconds: write within = 2.0 for the share"),
        (("seconds", "at_least", 0.9, {"within": 2, "cap": 3}), "within and cap exclude each other"),
        (("latency", "at_least", 0.9), "metric 'latency' is not known; .*or a field that tests record, with within"),
        (("seconds", "at_least", 0.9, {"within": 0}), "within is 0, expected a number above 0 in the unit of seconds"),
        (("seconds", "at_least", 0.9, {"within": "2"}), "within is '2', expected a number above 0"),
        (("seconds", "at_least", 1.2, {"within": 2}), r"share of seconds within 2 lies in \[0, 1\]"),
        (("seconds", "at_most", 12.0, {"cap": 10}), r"mean seconds cut at 10 lies in \[0, 10\]"),
        (("seconds", "at_most", 10, {"cap": 10}), "every mean seconds cut at 10 is at most 10, so the gate cannot"),
        (("seconds", "at_most", "5%", {"cap": 10}), "seconds is not a share: write a number without %"),
        (("seconds", "rank_within", 1, {"within": 2}), "seconds has no such condition; use at_least, at_most, not_wo"),
        (
            ("seconds", "not_worse_than", 10.0, {"cap": 10, "name": "old"}),
            "expected a loss above 0 and below 10, the whole range",
        ),
        (("accuracy", "at_least", 0.9, {"within": 2}), "accuracy: within and cap are for values that the run measures"),
        (("accuracy", "at_most", 1.0), "every accuracy is at most 1, so the gate cannot fail; write the highest"),
        (("gain", "at_most", 0.5), "gain has no such condition; use at_least"),
        (("pass^k", "at_least", 0.5), "metric pass.k: write a number from 1 on in place of k"),
        (("pass@0", "at_least", 0.5), "metric pass@k: write a number from 1 on in place of k"),
    ],
)
def test_conditions_that_mean_nothing_are_refused(settings, message):
    metric, kind, value, *more = settings
    with pytest.raises(ConfigError, match=message):
        Condition(metric, kind, value, **(more[0] if more else {}))


@pytest.mark.parametrize(
    ("right", "outcome", "sentence"),
    [
        (10, "PASS", "PASS accuracy .100 [.100, .100] <= .20 required"),
        (20, "PASS", "PASS accuracy .200 [.200, .200] <= .20 required"),
        (21, "FAIL", "FAIL accuracy .210 [.210, .210] > .20 required"),
    ],
)
def test_an_upper_limit_of_the_accuracy_passes_up_to_it(right, outcome, sentence):
    verdict = result_of(np.arange(N) < right, chance=0.25).accuracy.at_most(0.2)
    assert verdict.outcome.value == outcome
    assert verdict.sentence.startswith(sentence)


def test_an_undecided_upper_limit_has_the_threshold_in_its_interval():
    verdict = result_of(np.arange(N) < 20, budget=30).accuracy.at_most("20%")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.interval.low < 0.2 < verdict.interval.high
    assert " against .20 required" in verdict.sentence


@pytest.mark.parametrize(("value", "shown"), [(0.3, "FAIL"), (0.5, "PASS"), (0.45, "INCONCLUSIVE")])
def test_an_interval_is_read_from_the_side_of_its_limit(value, shown):
    condition = Condition("accuracy", "at_most", value)
    interval = Interval(0.45, 0.4, 0.5, 0.95, "anytime-valid")
    verdict = Verdict(
        Outcome.ERROR, "accuracy", condition.requirement, interval, condition=condition.to_json(), asked=5, size=9
    )
    for outcome in ("PASS", "FAIL", "INCONCLUSIVE"):
        differs = beside_interval(replace(verdict, outcome=Outcome(outcome)))
        assert bool(differs) == (outcome != shown)
        assert differs.startswith(f"the interval by itself would be {shown}" if differs else "")


@pytest.mark.parametrize(("limit", "outcome"), [(0.5, "PASS"), (0.39, "FAIL"), (0.45, "INCONCLUSIVE")])
def test_bounds_decide_an_upper_limit(limit, outcome):
    condition = Condition("auc", "at_most", limit)
    interval = Interval(0.45, 0.4, 0.49, 0.95, "by levels")
    verdict = decide_by_bounds(Verdict(Outcome.ERROR), condition, 1, lambda _: interval, limit)
    assert (verdict.outcome.value, verdict.interval) == (outcome, interval)


def test_time_outs_are_above_the_bound_and_missing_values_on_both_sides():
    seconds = np.full(N, 1.0)
    seconds[:10] = np.inf
    result = result_of(values={"seconds": single(seconds)})
    assert result.seconds.at_least("90%", within=2.0).outcome is Outcome.PASS
    assert result.seconds.at_least("91%", within=2.0).outcome is Outcome.FAIL
    assert result.seconds.at_most(1.9, cap=10).interval.estimate == pytest.approx(0.9 + 1.0)
    seconds[:10] = np.nan
    undecided = result_of(values={"seconds": single(seconds)}).seconds.at_least("95%", within=2.0)
    assert undecided.outcome is Outcome.INCONCLUSIVE
    assert (undecided.interval.low, undecided.interval.high) == (0.9, 1.0)
    assert "10 items without a value of seconds: it counts against PASS and against FAIL" in undecided.notes


def test_a_value_that_no_answer_has_is_an_error_whatever_an_undecided_gate_may_do():
    result = result_of(values={"seconds": single(np.ones(N))})
    verdict = result["latency"].at_least("95%", within=2.0, on_inconclusive="pass")
    assert (verdict.outcome, bool(verdict)) == (Outcome.ERROR, False)
    assert verdict.notes[0] == "no answer has a value of latency; the run measured seconds"


def test_values_go_with_a_result_to_another_process():
    samples = np.random.default_rng(1).random((N, 3)).round()
    seconds = np.full((N, 3), np.inf)
    result = result_of(samples.mean(axis=1), {"score": samples, "seconds": seconds}, budget=40)
    restored = SessionResult.restored(result.to_json(), BANK)
    for condition in (Condition("pass^2", "at_least", 0.2), Condition("seconds", "at_most", 0.5, within=2.0)):
        assert restored.judge(condition).sentence == result.judge(condition).sentence


def test_pass_metrics_are_means_of_estimates_by_item():
    samples = np.zeros((N, 4))
    samples[:60] = 1.0
    samples[60:80, :3] = 1.0
    result = result_of(samples.mean(axis=1), {"score": samples})
    assert result["pass^2"].at_least(0.5).interval.estimate == pytest.approx(0.6 + 0.2 / 2)
    assert result["pass@2"].at_least(0.5).interval.estimate == pytest.approx(0.8)
    partly = np.full((N, 4), 0.5)  # no sample is right
    assert result_of(partly.mean(axis=1), {"score": partly})["pass@4"].at_least(0.5).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("later", "bounds", "margin", "outcome", "estimate"),
    [
        (3.0, {"cap": 10}, 2.1, "PASS", 2.0),
        (3.0, {"cap": 10}, 1.9, "FAIL", 2.0),
        (0.5, {"cap": 10}, 0.1, "PASS", -0.5),
        (3.0, {"within": 2}, 0.9, "FAIL", -1.0),
        (1.5, {"within": 2}, 0.01, "PASS", 0.0),
    ],
)
def test_a_loss_is_in_the_unit_of_the_metric(later, bounds, margin, outcome, estimate):
    old = result_of(values={"seconds": single(np.ones(N))})
    result = result_of(values={"seconds": single(np.full(N, later))})
    result = replace_baselines(result, {"old": Baseline("old", np.ones(N), old.log)})
    verdict = result.seconds.not_worse_than("old", margin=margin, **bounds)
    assert verdict.outcome.value == outcome
    assert verdict.interval.estimate == pytest.approx(estimate)
    assert verdict.interval.low <= verdict.interval.estimate <= verdict.interval.high


def replace_baselines(result, baselines):
    object.__setattr__(result, "baselines", baselines)
    return result


def test_a_baseline_without_the_value_is_named():
    result = result_of(values={"seconds": single(np.ones(N))})
    replace_baselines(result, {"old": Baseline("old", np.ones(N))})
    with pytest.raises(
        BaselineError, match="the baseline 'old' has no answer with a value of seconds for this gate: record it"
    ):
        result.seconds.not_worse_than("old", margin=0.1, within=2.0)
    samples = np.ones((N, 3))
    result = result_of(values={"score": samples})
    replace_baselines(result, {"old": Baseline("old", np.ones(N), result_of().log)})
    with pytest.raises(BaselineError, match="the baseline 'old' has no answer with a value of score for this gate"):
        result["pass^3"].not_worse_than("old", margin=0.1)


@pytest.mark.parametrize(
    "condition", [Condition("seconds", "at_least", 0.5, within=2), Condition("pass^1", "at_least", 0.5)]
)
def test_answers_to_other_questions_may_be_quick_and_not_right(condition):
    floor = tuple((place, 1.0) for place in range(20))
    values = {"seconds": single(np.ones(N)), "score": single(np.ones(N))}
    verdict = result_of(values=values, floor=floor).judge(condition)
    assert verdict.outcome is (Outcome.PASS if condition.metric == "seconds" else Outcome.INCONCLUSIVE)


def test_a_chance_of_a_verdict_is_stated_at_a_distance_in_the_unit():
    said = outlook_sentence(Condition("seconds", "at_most", 4, cap=10), BANK, WHOLE, 60, "toy")
    assert "toy: mean seconds cut at 10 <= 4.00: " in said
    assert "if the truth is 10% of the cap away" in said
    assert "10 points away" in outlook_sentence(Condition("pass@2", "at_least", 0.5), BANK, WHOLE, 60, "toy")


def test_small_amounts_have_digits_that_count():
    costs = np.full(N, 0.00002)
    verdict = result_of(values={"cost": single(costs)}).cost.at_most(0.0003, cap=0.001)
    assert "mean cost cut at 0.001 .000020 [.000020, .000020] <= .00030 required" in verdict.sentence
