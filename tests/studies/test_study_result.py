"""Studies: quantities of several subjects, conditions on them, verdicts, and what travels between processes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.quantities import Measured
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.gates.verdict import Outcome

NAMES = ("ant", "bee", "cat")


def measured(values: Any = (3.0, 3.5, 4.0), error: float = 0.1) -> Measured:
    return Measured(np.array(values), np.eye(3) * error**2)


def result(**more: Any) -> Result:
    given: dict[str, Any] = {
        "name": "council",
        "kind": "peers",
        "candidate": "cat",
        "subjects": NAMES,
        "metrics": ("score",),
        "quantities": {"score": measured()},
        "asked": 11,
        "size": 12,
        "notes": ("an opinion",),
    }
    return Result(**{**given, **more})


def test_thresholds_are_judged_by_one_sided_bounds():
    found = result()
    half = 1.6448536 * 0.1
    assert found.score.at_least(4.0 - half - 1e-6).outcome is Outcome.PASS
    assert found.score.at_least(4.0 - half + 1e-6).outcome is Outcome.INCONCLUSIVE
    assert found.score.at_least(4.0 + half - 1e-6).outcome is Outcome.INCONCLUSIVE
    assert found.score.at_least(4.0 + half + 1e-6).outcome is Outcome.FAIL
    assert found.score.at_least(4.0 - half + 1e-6, confidence=0.9).outcome is Outcome.PASS
    verdict = found.score.at_least(3.5)
    assert verdict.sentence == (
        "PASS score of cat 4.000 [3.836, 4.164] >= 3.50 required, 95 %, 11 of 12 rounds, model-based; an opinion"
    )
    assert verdict.condition == {"metric": "score", "kind": "at_least", "value": 3.5}
    assert found.score.at_least(3.5, subject="ant").metric == "score of ant"


def test_fail_claims_of_several_gates_are_corrected_and_pass_claims_are_not():
    low, high = 4.0 - 1.65 * 0.1, 4.0 + 1.65 * 0.1
    assert result().score.at_least(high).outcome is Outcome.FAIL
    assert result(family=2).score.at_least(high).outcome is Outcome.INCONCLUSIVE
    assert result(family=2).score.at_least(4.0 + 1.97 * 0.1).outcome is Outcome.FAIL
    assert result(family=20).score.at_least(low).outcome is Outcome.PASS


def test_ranks_and_pairs_are_judged_by_their_probabilities():
    found = result(quantities={"score": measured((3.8, 3.9, 4.0))})
    score = found.quantities["score"]
    assert isinstance(score, Measured)
    chance = score.above(2, 1)
    assert chance == pytest.approx(0.7602, abs=1e-4)  # of .1 with a standard error of .1414
    assert found.score.above("bee", probability=0.76).outcome is Outcome.PASS
    assert found.score.above("bee", probability=0.77).outcome is Outcome.INCONCLUSIVE
    assert found.score.above("cat", subject="bee", probability=0.76).outcome is Outcome.FAIL
    sentence = found.score.above("bee", probability=0.76).sentence
    assert sentence.startswith("PASS score of cat (4.000) above bee (3.900) with confidence .760, .76 required")
    ranks = result().score
    assert ranks.rank_within(1).outcome is Outcome.PASS
    assert ranks.rank_within(1, subject="ant").outcome is Outcome.FAIL
    assert "rank 1.0 [1, 1] of 3, within the first 1 with confidence 1.000" in ranks.rank_within(1).sentence


def test_errors_that_subjects_share_do_not_blur_ranks():
    shared = Measured(np.array([3.8, 3.9, 4.0]), np.eye(3) * 0.01**2 + 1.0)
    found = result(quantities={"score": shared})
    assert found.score.at_least(3.5).outcome is Outcome.INCONCLUSIVE
    assert found.score.rank_within(1).outcome is Outcome.PASS
    assert found.score.above("bee").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("values", "k", "within", "beyond"),
    [
        ((1.0, 0.0, 0.0, 0.0), 1, 0.95, 0.0),
        ((0.0, 1.0, 0.0, 0.0), 1, 0.05, 0.85),
        ((1.0, 2.0, 0.0, 0.0), 2, 0.9, 0.0),
        ((1.0, 2.0, 2.0, 0.0), 2, 0.0, 0.9),
        ((1.0, 2.0, 2.0, 0.0), 3, 0.85, 0.05),
        ((0.0, 1.0, 1.0, 1.0), 3, 0.0, 0.95),
    ],
)
def test_a_rank_takes_enough_comparisons_and_shares_the_error_rate_among_the_ones_that_may_err(
    values, k, within, beyond
):
    error = 1.0 / (1.6448536 * math.sqrt(2.0))  # a lead of 1 is one-sided 95 %
    one = Measured(values, np.eye(4) * error**2)
    assert (one.within(0, k), one.beyond(0, k)) == (pytest.approx(within), pytest.approx(beyond))


def test_bounds_of_a_rank_are_the_gates_that_pass_and_fail():
    one = Measured((3.0, 5.0, 5.1, 2.9, 1.0), np.eye(5) * 0.1**2)
    assert [one.rank_bounds(n) for n in range(5)] == [(3, 4), (1, 2), (1, 2), (3, 4), (5, 5)]
    assert one.mean_rank(0) == pytest.approx(3.0 + one.above(3, 0))


@pytest.mark.parametrize("k", [1, 4, 7])
def test_ranks_keep_their_rate_where_the_candidate_is_as_good_as_all_others_that_matter(k):
    rng = np.random.default_rng(k)
    better, worse = np.array([0.0] * (k + 1) + [-9.0] * (7 - k)), np.array([0.0] * (9 - k) + [9.0] * (k - 1))
    wrong = np.zeros(2)
    for _ in range(400):
        noise = rng.normal(0.0, 1.0, 8)
        wrong += [
            Measured(better + noise, np.eye(8)).within(0, k) >= 0.95,
            Measured(worse + noise, np.eye(8)).beyond(0, k) >= 0.95,
        ]
    assert (wrong <= 400 * 0.05 + 2 * math.sqrt(400 * 0.05 * 0.95)).all()


def test_variances_that_are_estimated_widen_bounds_and_comparisons():
    one = Measured((3.0, 3.5), np.eye(2) * 0.01, freedom=4.0, value_freedom=2.0)
    assert one.interval(0, 0.95).high == pytest.approx(3.0 + 0.1 * 2.919986)  # Student's quantile of 2 degrees
    assert one.above(1, 0) == pytest.approx(0.987945, abs=1e-5)  # and of 4, at .5 / sqrt(.02)
    assert Measured.from_json(one.to_json()).to_json() == one.to_json()


def test_what_is_not_known_is_no_verdict():
    unknown = Measured(np.array([3.0, np.nan, 4.0]), np.diag([0.01, np.nan, 0.01]))
    found = result(quantities={"score": unknown})
    for verdict in (found.score.at_least(3.0, subject="bee"), found.score.above("bee")):
        assert verdict.outcome is Outcome.ERROR
        assert "nothing is known of the score of bee" in verdict.sentence
    assert "of 3, within" in found.score.rank_within(1).sentence
    void = result(quantities={}, error="no task came")
    for verdict in (void.score.at_least(1.0), void.score.rank_within(1), void.score.above("ant")):
        assert verdict.outcome is Outcome.ERROR
        assert not verdict
        assert "no task came" in verdict.sentence
    unsure = result(unsure="it takes 3 rounds")
    for verdict in (unsure.score.at_least(1.0), unsure.score.rank_within(2)):
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "it takes 3 rounds" in verdict.sentence


def test_one_of_whom_nothing_is_known_may_be_better_or_worse():
    unknown = Measured(np.array([3.0, np.nan, 4.0]), np.diag([0.01, np.nan, 0.01]))
    score = result(quantities={"score": unknown}).score
    assert score.rank_within(2).outcome is Outcome.PASS  # behind bee at worst
    assert score.rank_within(1).outcome is Outcome.INCONCLUSIVE
    assert score.rank_within(2, subject="ant").outcome is Outcome.INCONCLUSIVE  # the last of those that are known
    assert score.rank_within(1, subject="ant").outcome is Outcome.FAIL
    assert "nothing is known of bee, who may be better or worse" in score.rank_within(1).sentence


@pytest.mark.parametrize(("then", "through"), [("fail", False), ("warn", True), ("pass", True)])
def test_an_undecided_gate_may_be_let_through(then, through):
    assert bool(result().score.at_least(4.0, on_inconclusive=then)) is through


def test_a_plugin_may_change_a_verdict():
    seen = []

    def change(verdict: Any) -> Any:
        seen.append(verdict.outcome)
        return replace(verdict, outcome=Outcome.FAIL)

    assert result(on_verdict=change).score.at_least(3.0).outcome is Outcome.FAIL
    assert seen == [Outcome.PASS]


def test_results_travel_between_processes():
    unknown = Measured(np.array([3.0, np.nan, 4.0]), np.diag([0.01, np.nan, 0.01]))
    found = result(quantities={"score": unknown}, account={"a": [1]}, costs={"b": 2}, members=({"name": "ant"},))
    text = json.dumps(found.to_json(), allow_nan=False)
    back = replace(Result.from_json(json.loads(text)), family=3)
    assert json.dumps(back.to_json()) == text
    for gate in (lambda r: r.score.at_least(3.9), lambda r: r.score.rank_within(1), lambda r: r.score.above("ant")):
        assert gate(replace(back, family=0)).sentence == gate(found).sentence
    assert repr(back) == "<result of council: 11 of 12 rounds>"
    assert repr(back.score) == "score of council"


def test_findings_tell_what_is_known():
    unknown = Measured(np.array([3.0, 3.5, np.nan]), np.diag([0.01, np.nan, np.nan]))
    first, second, third = result(quantities={"score": unknown}).findings()["score"]
    assert first["estimate"] == 3.0
    assert first["error"] == pytest.approx(0.1)
    assert first["low"] < 3.0 < first["high"]
    assert set(first["rank"]) == {"mean", "best", "worst"}
    assert second == {"subject": "bee", "estimate": 3.5}
    assert third == {"subject": "cat"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda r: r.score.at_least(True), "expected a number"),
        (lambda r: r.score.at_least(float("nan")), "expected a number"),
        (lambda r: r.score.at_least(3.0, confidence=0.4), "confidence is 0.4"),
        (lambda r: r.score.above("ant", probability=0.5), "probability is 0.5"),
        (lambda r: r.score.rank_within(0), "at least 1"),
        (lambda r: r.score.rank_within(3), "holds for each of the 3 subjects"),
        (lambda r: r.score.above(""), "expected the name"),
        (lambda r: r.score.above("cat"), "'cat' cannot be above itself"),
        (lambda r: r.score.above("dog"), "'dog' is not a subject; use ant, bee, cat"),
        (lambda r: r.score.at_least(3.0, subject="dog"), "council: 'dog' is not a subject"),
        (lambda r: r.score.at_least(3.0, on_inconclusive="skip"), "on_inconclusive is 'skip'"),
        (lambda r: r.verdict(Condition("energy", "at_least", 1.0)), "metric 'energy' is not known; use score"),
        (lambda _: Condition("score", "not_worse_than", 0.0, "x"), "margin is 0.0, expected points above 0"),
        (lambda _: Condition("energy", "not_worse_than", 1.0, "x"), "margin is 1.0, expected a share in"),
        (lambda _: Condition("last_level", "not_worse_than", 1.0, "x"), "last_level has no such condition"),
    ],
)
def test_mistakes(wrong, message):
    with pytest.raises(ConfigError, match=message):
        wrong(result())


def test_other_metrics_are_no_attributes():
    with pytest.raises(AttributeError, match="has no 'accuracy'; use score"):
        _ = result().accuracy


def test_labels_fit_into_node_ids():
    assert Condition("score", "at_least", 3.5).label == "score-at-least-3.5"
    assert Condition("score", "above", name="a::b[c] d", subject="x").label == "score-above-a_b_c_d-of-x"


def test_a_loss_against_a_baseline_is_judged_by_independent_intervals():
    before = result(candidate="cat", quantities={"score": measured((3.0, 3.5, 4.1))})
    found = result(baselines={"main": before})
    half = 1.6448536 * 0.1 * 2**0.5
    verdict = found.score.not_worse_than("main", margin=0.1 + half + 1e-6)
    assert verdict.outcome is Outcome.PASS
    assert verdict.metric == "score of cat less that of main"
    assert verdict.interval is not None
    assert verdict.interval.low == pytest.approx(-0.1 - half)
    assert found.score.not_worse_than("main", margin=0.1 + half - 1e-6).outcome is Outcome.INCONCLUSIVE
    worse = result(baselines={"main": result(quantities={"score": measured((3.0, 3.5, 4.9))})})
    assert worse.score.not_worse_than("main", margin=0.5).outcome is Outcome.FAIL
    assert found.score.not_worse_than("main", margin=0.5, subject="ant").interval.estimate == pytest.approx(0.0)


def test_a_baseline_of_another_candidate_is_compared_by_its_candidate():
    before = result(candidate="dog", subjects=("ant", "bee", "dog"), quantities={"score": measured((3.0, 3.5, 3.0))})
    verdict = result(baselines={"main": before}).score.not_worse_than("main", margin=0.1)
    assert verdict.interval.estimate == pytest.approx(1.0)
    assert verdict.outcome is Outcome.PASS


def test_baselines_that_decide_nothing():
    absent = result(absent={"main": "nothing was recorded"}).score.not_worse_than("main", margin=0.1)
    assert (absent.outcome, absent.notice) == (Outcome.INCONCLUSIVE, True)
    unsure = result(baselines={"main": result(unsure="too few rounds")}).score.not_worse_than("main", margin=0.1)
    assert unsure.outcome is Outcome.ERROR
    assert "the baseline main supports no claim: too few rounds" in unsure.sentence
    unknown = result(baselines={"main": result(quantities={})}).score.not_worse_than("main", margin=0.1)
    assert "the baseline has no score of cat" in unknown.sentence
    with pytest.raises(BaselineError, match="was not known before it ran"):
        result().score.not_worse_than("main", margin=0.1)
