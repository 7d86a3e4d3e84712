"""How conditions other than a plain threshold at a fixed size are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import accuracy_at
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates import misfit
from pytest_adaptive_eval.gates.bets import claim_family
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.misfit import misfit_note, misfit_reason, refitted_projection
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import Claim, decide, log_wealth
from pytest_adaptive_eval.inference.conformal import Conformal, uniform_half_width
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.run_record import GateRecord
from pytest_adaptive_eval.reports import words

N = 400
REFERENCES = tuple(f"m{i}" for i in range(21))


def bank(**more):
    rng = np.random.default_rng(5)
    return ItemBank(
        "good", [f"q{i}" for i in range(N)], [None] * N, rng.lognormal(0, 0.3, N), rng.normal(0, 1, N), **more
    )


def answers(of, theta, seed=0):
    rng = np.random.default_rng(seed)
    p = irt.probability(np.array([[theta]]), of.discrimination, of.intercept)[0]
    return (rng.random(len(of)) < p).astype(float)


def interview(of, scores, *, seed=1, policy=POLICIES["decide"], planned=(), family=0, **more):
    claims = [claim for c in planned if c.by_draws for claim in c.claims(of, {})]
    session = Session(of, policy, seed=seed, claims=claims, family=family)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    return SessionResult.of("eval", session, statuses={}, planned=tuple(planned), family=family, **more)


@pytest.mark.parametrize(("family", "expected"), [(0, 3), (2, 3), (3, 3), (20, 20)])
def test_a_fail_verdict_is_corrected_for_all_claims_of_the_interview(family, expected):
    planned = [Condition("accuracy", "at_least", value) for value in (0.5, 0.6, 0.7)]
    found = interview(bank(), answers(bank(), 0.5), planned=planned, family=family)
    assert [claim_family(found, condition) for condition in planned] == [expected] * 3


# -- decided on the way ---------------------------------------------------------------------------


def test_a_verdict_of_a_stopped_interview_says_how_it_was_reached():
    good = bank()
    condition = Condition("accuracy", "at_least", 0.3)
    result = interview(good, np.ones(N), planned=[condition])
    assert result.stop is StopReason.DECISION
    verdict = result.judge(condition)
    assert verdict.outcome is Outcome.PASS
    assert verdict.interval.low >= 0.3
    assert verdict.sentence.endswith(f"% , {result.asked} of {N} items, anytime-valid".replace("% ,", "%,"))


def test_each_gate_of_an_interview_says_after_how_many_items_it_was_decided():
    easy, hard = (Condition("accuracy", "at_least", value) for value in (0.3, 0.8))
    result = interview(bank(), np.ones(N), planned=[easy, hard])
    first, last = result.judge(easy), result.judge(hard)
    claims = [claim for condition in (easy, hard) for claim in condition.claims(result.bank, {})]
    at = decide(result.log, claims).at.tolist()
    assert at[0] < at[1] <= result.asked
    assert first.decided_after == at[0]
    assert last.decided_after == (None if at[1] == result.asked else at[1])
    record = GateRecord("gate", "file::gate", "eval", first)
    assert words.decided(record) == f"decided after {at[0]} of {result.asked} items"
    assert "decided_after" not in replace(first, decided_after=None).to_json()


def test_a_notebook_shows_a_verdict_and_its_result():
    condition = Condition("accuracy", "at_least", 0.3)
    result = interview(bank(), np.ones(N), planned=[condition], subject={"name": "<m>"})
    assert result.judge(condition)._repr_html_().startswith("<b>PASS</b> accuracy ")
    assert "&gt;= .30 required" in result.judge(condition)._repr_html_()
    table = result._repr_html_()
    assert "<tr><th>subject</th><td>&lt;m&gt;</td></tr>" in table
    assert f"<td>{result.asked} of {N} items</td>" in table
    assert "void" not in table


@pytest.mark.slow
def test_the_interval_shown_never_contradicts_the_verdict():
    good = bank()
    for seed in range(30):
        scores = answers(good, 0.3, seed)
        for target in (0.35, 0.5, 0.65, 0.8):
            condition = Condition("accuracy", "at_least", target)
            verdict = interview(good, scores, seed=seed, planned=[condition]).judge(condition)
            low, high = verdict.interval.low, verdict.interval.high
            assert low <= verdict.interval.estimate <= high
            expected = {Outcome.PASS: low >= target - 1e-9, Outcome.FAIL: high <= target + 1e-9}
            assert expected.get(verdict.outcome, low < target < high)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("budget", [40, 80, 160, "100%"])
@pytest.mark.parametrize("stop", ["decision", "budget"])
def test_an_undecided_gate_among_many_shows_the_corrected_bound_and_names_the_correction(budget, stop):
    good, named = bank(), 0
    for seed in range(12):
        scores = answers(good, 0.0, seed)
        for target in (0.55, 0.6, 0.7):
            condition = Condition("accuracy", "at_least", target)
            policy = replace(POLICIES["decide"], budget=budget, stop=stop)
            result = interview(good, scores, seed=seed, planned=[condition], family=20, policy=policy)
            verdict = result.judge(condition)
            if verdict.outcome is not Outcome.INCONCLUSIVE:
                continue
            assert verdict.interval.low < target <= verdict.interval.high
            corrected = "corrected for 20 claims (Holm)" in verdict.claim
            assert corrected == (result.interval().high < target)
            named += corrected
    assert named or budget == "100%"


def test_the_forecast_of_a_gate_among_many_is_that_of_the_corrected_claim():
    good = bank()
    scores = answers(good, 0.0, 3)
    condition = Condition("accuracy", "at_least", float(scores.mean()) + 0.12)
    policy = replace(POLICIES["decide"], budget=80, stop="budget")
    alone, among = (
        interview(good, scores, seed=3, planned=[condition], family=family, policy=policy).judge(condition)
        for family in (0, 500)
    )
    assert among.outcome is Outcome.INCONCLUSIVE
    assert alone.outcome is Outcome.FAIL or "about" in alone.notes[0]
    assert among.notes[0] != "about 1 more question would probably decide"


def test_fail_is_corrected_for_the_other_gates_of_a_run_and_pass_is_not():
    good = bank()
    condition = Condition("accuracy", "at_least", 0.6)
    low, high = answers(good, -0.6), answers(good, 2.2)
    alone = [interview(good, s, seed=4, planned=[condition]).asked for s in (low, high)]
    among = [interview(good, s, seed=4, planned=[condition], family=40).asked for s in (low, high)]
    assert among[0] > alone[0]
    assert among[1] == alone[1]


def test_an_undecided_gate_says_how_many_more_questions_it_would_take():
    good = bank()
    condition = Condition("accuracy", "at_least", float(np.mean(answers(good, 0.5))) - 0.04)
    verdict = interview(good, answers(good, 0.5), planned=[condition]).judge(condition)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "more questions would probably decide" in verdict.sentence or "only the whole bank" in verdict.sentence
    assert not verdict
    allowed = interview(good, answers(good, 0.5), planned=[condition]).judge(replace(condition, on_inconclusive="pass"))
    assert allowed
    assert "let through by on_inconclusive = pass" in allowed.sentence


def test_an_undecided_gate_forecasts_from_its_estimate_spread_and_bets():
    plain = ItemBank.uncalibrated("plain", [Item(id=f"q{i}", prompt="?", answer="A") for i in range(N)])
    uniform = replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0, budget=40)
    scores = (np.arange(N) % 10 < 8).astype(float)
    cases: tuple[tuple[Literal["decision", "budget"], float], ...] = (("decision", 0.72), ("budget", 0.78))
    for stop, target in cases:
        result = interview(plain, scores, policy=replace(uniform, stop=stop))
        verdict = result.accuracy.at_least(target)
        assert verdict.outcome is Outcome.INCONCLUSIVE
        gap = abs(verdict.interval.estimate - target)
        bets = float(log_wealth(result.log, Claim(target * N), 1)[-1]) if stop == "decision" else 0.0
        variance = float(result.log.variance[-1]) / (N - 39) ** 2  # of the last draw, as a share of the items left
        more = Outlook(N, gap, variance, 0.95, 40, bets).quantile(0.5) - 40
        assert 1 < more < 0.8 * (N - 40)
        assert verdict.notes[0] == f"about {more} more questions would probably decide"


# -- guessing -------------------------------------------------------------------------------------


def test_no_gate_passes_on_what_guessing_reaches():
    plain = ItemBank.uncalibrated("plain", [Item(id=f"q{i}", prompt="?", answer="A") for i in range(N)])
    scores = (np.random.default_rng(0).random(N) < 0.27).astype(float)
    condition = Condition("accuracy", "at_least", 0.1)
    uniform = replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0)
    guessed = interview(plain, scores, policy=uniform, planned=[condition], chance=0.25).judge(condition)
    assert guessed.outcome is Outcome.INCONCLUSIVE
    assert "not distinguishable from guessing, which scores .250" in guessed.sentence
    told = interview(plain, scores, policy=uniform, planned=[condition]).judge(condition)
    assert told.outcome is Outcome.PASS
    whole = replace(uniform, stop="budget")
    able = interview(plain, np.ones(N), policy=whole, planned=[condition], chance=0.25).judge(condition)
    assert able.outcome is Outcome.PASS


# -- the floor of scores --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("floor", "accuracy", "outcome"),
    [
        (None, 0.95, Outcome.PASS),
        (0.2, 0.95, Outcome.PASS),
        (0.6, 0.95, Outcome.INCONCLUSIVE),  # its bound is above the threshold
        (0.8, 0.95, Outcome.INCONCLUSIVE),
        (0.95, 0.95, Outcome.INCONCLUSIVE),
        (0.8, 0.3, Outcome.FAIL),
    ],
)
@pytest.mark.parametrize(
    "condition",
    [
        Condition("accuracy", "at_least", 0.6),
        Condition("accuracy", "at_least", 0.6, method="like-questions"),
        Condition("accuracy", "not_worse_than", 0.3, name="strong"),
        Condition("accuracy", "above", name="m12"),
        Condition("ability", "at_least", 0.5),
    ],
    ids=lambda condition: f"{condition.metric}-{condition.kind}-{condition.method}",
)
def test_no_gate_passes_on_what_answers_to_other_questions_get(condition, floor, accuracy, outcome):
    good = bank(subjects=REFERENCES, accuracies=tuple(np.linspace(0.0, 1.0, 21)))
    order = np.argsort(good.difficulty)
    scores = np.zeros(N)
    scores[order[: int(accuracy * N)]] = 1.0
    baseline = np.zeros(N)
    baseline[order[: int(0.9 * N)]] = 1.0
    places = np.random.default_rng(3).permutation(N)[:100].tolist()
    others = [] if floor is None else [(place, floor) for place in places]
    policy = replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0, budget=N, stop="budget")
    more = {"floor": tuple(others), "baselines": {"strong": Baseline("strong", baseline)}}
    verdict = interview(good, scores, policy=policy, **more).judge(condition)
    assert verdict.outcome is outcome
    if outcome is Outcome.INCONCLUSIVE:
        assert "is what other questions' answers get" in verdict.notes[0]


# -- subjects unlike the bank ---------------------------------------------------------------------


def reversed_scores(plain, share):
    """Scores of a subject that is right on the hardest items alone."""
    return (plain.difficulty > np.quantile(plain.difficulty, 1.0 - share)).astype(float)


@pytest.mark.parametrize("selector", ["variance", "maximum-information"])
def test_a_reversed_subject_is_named_and_an_ordinary_one_is_not(selector):
    plain = bank()
    policy = replace(POLICIES["estimate"], budget=60, selector=SELECTORS[selector])
    rng = np.random.default_rng(4)
    strange, ordinary = (
        [interview(plain, scores, policy=policy, seed=s) for s, scores in enumerate(sheets)]
        for sheets in (
            [reversed_scores(plain, share) for share in rng.uniform(0.3, 0.7, 20)],
            [answers(plain, theta, s) for s, theta in enumerate(rng.normal(size=20))],
        )
    )
    assert sum(bool(result.misfit) for result in strange) >= 18
    assert sum(bool(result.misfit) for result in ordinary) <= 1
    for result in strange:
        if result.misfit:
            assert result.notes[-1] == misfit_note(result.misfit, 60, drawn=False)
            assert "rest on 60 answers" in result.notes[-1]


def test_a_subject_unlike_the_bank_has_the_refitted_projection_and_no_table():
    plain = bank()
    scores = (np.random.default_rng(1).random(N) < 0.25).astype(float)  # it guesses
    result = interview(plain, scores, policy=replace(POLICIES["decide"], budget="60%", stop="budget"))
    assert result.misfit
    assert result.policy == ""
    assert result.projected == refitted_projection(plain, result.log, result.theta)
    assert abs(result.projected[0] - scores.mean()) < 3 * result.projected[1]
    again = SessionResult.restored(result.to_json(), result.bank)
    assert (again.misfit, again.projected) == (result.misfit, result.projected)


def test_a_projection_far_from_the_draws_is_told():
    good = bank()
    result = interview(good, answers(good, 0.0, 3), policy=replace(POLICIES["decide"], budget="100%"))
    told = misfit_reason(good, result.log, result.theta, result.standard_error, 0.99, drawn=True)
    assert told.startswith("the bank projects an accuracy of .990, and the draws")


@pytest.mark.parametrize(
    ("ability", "error", "distance"),
    [
        (3.3, 0.4, ""),  # merely stronger than the bank's subjects
        (3.3, 0.6, "3.3 ± .6 standard deviations above"),  # no answer bounds it
        (-3.3, 0.1, "3.3 ± .1 standard deviations below"),
        (2.9, 1.5, ""),
    ],
)
def test_an_ability_is_unlike_the_bank_where_it_is_surely_far_or_has_no_end(ability, error, distance, monkeypatch):
    monkeypatch.setattr(misfit, "LEVEL", 1e-12)
    good = bank()
    log = interview(good, answers(good, 3.0, 3), policy=replace(POLICIES["estimate"], budget="10%")).log
    told = misfit_reason(good, log, [ability], [error], 0.9, drawn=False)
    assert (f"the ability is {distance} its mean" in told) if distance else told == ""
    assert misfit_reason(good, log, [ability], [error], 0.9, drawn=False, has_prior=False) == ""


@pytest.mark.parametrize("estimator", ["bisection", "mle"])
def test_an_ability_without_a_prior_names_nobody_unlike_the_bank(estimator):
    good = bank()
    policy = replace(POLICIES["estimate"], budget="10%", estimator=ESTIMATORS[estimator](), assisted=False)
    result = interview(good, np.ones(len(good)), policy=policy)
    assert abs(result.theta[0]) > 5
    assert "the ability is" not in result.misfit


# -- ranks ----------------------------------------------------------------------------------------


def ranked(**more):
    return bank(subjects=REFERENCES, accuracies=tuple(np.linspace(0.2, 0.8, 21)), **more)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("stop", ["decision", "budget"])
def test_ranks_on_a_bank_are_thresholds_of_the_accuracy(stop):
    good, policy = ranked(), replace(POLICIES["decide"], stop=stop)
    for theta in (-2.0, 0.0, 2.0):
        scores = answers(good, theta)
        for k in (1, 5, 11, 20):
            by_rank = Condition("accuracy", "rank_within", k)
            above = Condition("accuracy", "above", name=f"m{21 - k}")
            at_least = Condition("accuracy", "at_least", 0.8 - 0.03 * (k - 1))
            found = [interview(good, scores, planned=[c], policy=policy) for c in (by_rank, above, at_least)]
            verdicts = [result.judge(c) for result, c in zip(found, (by_rank, above, at_least), strict=True)]
            assert len({(v.outcome, v.asked, v.confidence) for v in verdicts}) == 1
            assert f"{at_least.value:.3f} (m{21 - k}, place {k} of 21) required".replace("0.", ".") in verdicts[0].claim
            assert f"{at_least.value:.3f} (m{21 - k}) required".replace("0.", ".") in verdicts[1].claim


def test_a_tie_is_within_the_rank():
    good = ranked()
    scores = np.zeros(N)
    scores[: round(0.5 * N)] = 1.0  # as many as m10 has
    whole = interview(good, scores, policy=replace(POLICIES["decide"], stop="budget", budget="100%"))
    assert whole.accuracy.rank_within(11).outcome is Outcome.PASS
    assert whole.accuracy.above("m10").outcome is Outcome.PASS
    assert whole.accuracy.rank_within(10).outcome is Outcome.FAIL


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("strange", ["reversed", "lost at random", "lost the hard half"])
def test_a_subject_unlike_the_bank_gets_no_rank_that_it_has_not(strange):
    """The bank's model would place each of them far from its true rank."""
    good = ranked()
    ordinary, easy = answers(good, 0.8), good.difficulty < np.median(good.difficulty)
    kept = np.random.default_rng(3).random(N) > 0.2
    scores = {
        "reversed": 1.0 - answers(good, -0.3),
        "lost at random": ordinary * kept,
        "lost the hard half": easy * 1.0,
    }
    accuracy = scores[strange].mean()
    rank = 1 + sum(bool(reference > accuracy) for reference in good.accuracies)
    for k, wrong in ((rank - 1, Outcome.PASS), (rank, Outcome.FAIL)):
        condition = Condition("accuracy", "rank_within", k)
        for policy in (POLICIES["decide"], POLICIES["estimate"].feeding_gates()):
            found = [
                interview(good, scores[strange], seed=seed, planned=[condition], policy=policy).judge(condition).outcome
                for seed in range(8)
            ]
            assert found.count(wrong) <= 1


def test_ranks_by_the_model_are_a_figure_that_decides_nothing():
    good = ranked()
    result = interview(good, answers(good, 0.0), policy=replace(POLICIES["decide"], stop="budget", budget="40%"))
    verdict = result.accuracy.rank_within(11)
    assert "by the bank's model alone, which decides nothing: rank " in verdict.sentence
    assert " of 21, within the first 11 with probability ." in verdict.sentence
    assert ", above m10 with probability ." in result.accuracy.above("m10").sentence
    table = Conformal(result.policy or result.bank.name, tuple(np.linspace(-2, 2, 41)))
    by_replays = replace(result, bank=replace(good, conformal={result.policy: table}))
    assert "with probability" in by_replays.accuracy.rank_within(11).sentence
    beside = replace(result, misfit="the draws refute the projection")
    assert "which decides nothing" not in beside.accuracy.rank_within(11).sentence


def test_a_rank_needs_random_draws():
    good = ranked()
    result = interview(good, answers(good, 0.0), policy=replace(POLICIES["estimate"], budget=60))
    for judge in (lambda: result.accuracy.rank_within(2), lambda: result.accuracy.at_least(0.1)):
        with pytest.raises(ConfigError, match="no certain propensity"):
            judge()


@pytest.mark.parametrize(("families", "level"), [(19, 0.9), (9, 0.9), (8, 0.88), (5, 0.83), (2, 0.66), (1, None)])
def test_a_conformal_interval_is_of_the_highest_level_that_so_many_families_give(families, level):
    policy = replace(POLICIES["estimate"], budget=60)
    key = policy.key(ranked())
    good = ranked(conformal={key: Conformal(key, tuple(np.linspace(-2, 2, families)))})
    result = interview(good, answers(good, 0.0), policy=policy)
    if level is None:
        assert result.conformal is None
        return
    found = result.conformal
    assert 2 * found.confidence - 1 == pytest.approx(level)
    furthest = float(uniform_half_width(result.projected[0], 60, N, found.confidence))
    assert found == result.table.interval(result.projected[0], result.scale, found.confidence, furthest)


def test_ranks_need_references():
    result = interview(bank(), np.ones(N))
    with pytest.raises(ConfigError, match="has no reference subjects to rank among"):
        result.accuracy.rank_within(1)
    with pytest.raises(ConfigError, match="no reference subject 'unknown'; known are m0, m1"):
        interview(ranked(), np.ones(N)).accuracy.above("unknown")


# -- errors at the threshold ----------------------------------------------------------------------


@pytest.mark.slow
def test_false_verdicts_under_constant_looking_stay_below_alpha_even_with_a_wrong_bank():
    good = bank()
    wrong = replace(good, intercept=np.random.default_rng(1).permutation(good.intercept))
    scores = answers(good, 0.4, 8)
    total, seeds = scores.sum(), 400
    policy = replace(POLICIES["decide"], budget="40%", batch=2)
    for side, threshold in ((1, total + 1.0), (-1, total)):
        session = Session(wrong, policy, seed=side + 1, subjects=seeds, claims=[Claim(threshold)])
        rows = np.tile(scores, (seeds, 1))
        while (proposal := session.ask()) is not None:
            session.tell(np.take_along_axis(rows, proposal.items, axis=1))
        false = np.mean([reason is StopReason.DECISION for reason in session.stop])
        assert false <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / seeds)


def test_an_ability_gate_is_the_gate_on_the_accuracy_that_it_implies():
    good = bank()
    scores = answers(good, 0.4, 8)
    ability = Condition("ability", "at_least", 0.1)
    accuracy = Condition("accuracy", "at_least", accuracy_at(good, 0.1))
    for seed in range(10):
        by_ability = interview(good, scores, seed=seed, planned=[ability])
        by_accuracy = interview(good, scores, seed=seed, planned=[accuracy])
        assert by_ability.asked == by_accuracy.asked
        assert by_ability.judge(ability).outcome is by_accuracy.judge(accuracy).outcome


def test_a_note_is_told_once() -> None:
    verdict = Verdict(Outcome.ERROR, "accuracy", ">= .50", None, 0.95, 3, 9, ("cut off", "few answers", "cut off"))
    assert verdict.sentence == "ERROR accuracy >= .50 required, 95 %, 3 of 9 items; cut off; few answers"
