"""Which banks are refused, and by which sentence."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.parameters import read_parameters
from pytest_adaptive_eval.calibration.quality import (
    CHOOSING_SEED,
    FEWEST_SUBJECTS,
    INFIT,
    RASCH_MARGIN,
    TINY_SLOPE,
    _gain,
    _held_out,
    _problems,
    _spread,
    _suspects,
    _warnings,
    _why_negative,
    alike,
    assess,
    choose_dimensions,
    losses,
    predicted,
    prior_sd,
)
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.errors import ResponsesError

FINE = {"bank": 0.5, "mean accuracy": 0.6, "rasch": 0.5}
TELLING = {"negative": 0.0, "tiny": 0.0}
COUNT = np.full(20, 50)


def bank(**change):
    """Twenty items with difficulties from -2 to 2 that are known to a tenth of a logit."""
    b = np.linspace(-2, 2, 20)
    given = {
        "model": "1pl",
        "discrimination": np.ones((20, 1)),
        "intercept": -b,
        "guess": np.zeros(20),
        "difficulty_sd": np.full(20, 0.1),
        "converged": True,
        "about": {"engine": "map", "iterations": 7},
    }
    return Calibration(**{**given, **change})


def problems(loss=FINE, gain=(0.1, 0.01), slopes=TELLING, count=COUNT, **change):
    return _problems(bank(**change), dict(loss), gain, slopes, count)


# Each rule by itself


def test_nothing_to_refuse():
    assert problems() == ()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"converged": False}, "did not converge in 7 iterations: raise limit"),
        ({"converged": False, "interrupted": True, "loss": {}}, "interrupted before it converged: run it again"),
        ({"loss": {}}, "too few responses, or too few subjects that differ, to hold some out"),
        (
            {"loss": {**FINE, "mean accuracy": 0.4999}, "gain": (-0.0001, 0.01)},
            r"worse \(.5000 nats each\) than .* \(.4999; .0130 less is needed to be sure\): its difficulties",
        ),
        (
            {"gain": (0.012, 0.01)},
            r"not clearly better \(.5000 nats each\) than each subject's own mean .* \(.6000; .013",
        ),
        ({"gain": (0.0, 0.0)}, "not clearly better"),  # as it happens where all items are alike
        (
            {"loss": {**FINE, "rasch": 0.4499}},
            r".050 nats worse than a converged Rasch fit .* \(.500 against .450; .05",
        ),
        ({"difficulty_sd": np.full(20, 40.0)}, "not known: .* deviation is 40.00 logits, and their spread 1.48"),
        ({"slopes": {"negative": 0.3, "tiny": 0.21}}, "51 % of the items do not separate strong from weak subjects"),
        ({"count": np.full(20, FEWEST_SUBJECTS - 1)}, "half of the items have fewer than 5 subjects"),
    ],
)
def test_each_rule_refuses_alone(change, sentence):
    found = problems(**change)
    assert len(found) == 1
    assert re.search(sentence, found[0]), found[0]


@pytest.mark.parametrize(
    "change",
    [
        {"loss": {**FINE, "mean accuracy": 0.5}},
        {"loss": {**FINE, "rasch": 0.5 - RASCH_MARGIN}},
        {"loss": {**FINE, "rasch": 0.1, "bank": 0.15}},
        {"difficulty_sd": np.full(20, 4.4)},  # three times the spread is 4.45
        {"difficulty_sd": np.full(20, np.nan)},
        {"difficulty_sd": np.where(np.arange(20) < 9, 1e3, 0.1)},  # nine items that all had right, say
        {"slopes": {"negative": 0.3, "tiny": 0.2}},
        {"count": np.r_[np.full(9, 1), np.full(11, FEWEST_SUBJECTS)]},
    ],
)
def test_what_is_just_allowed(change):
    assert problems(**change) == ()


def test_difficulties_that_are_all_alike_are_no_division_by_zero():
    [sentence] = problems(intercept=np.zeros(20))
    assert "spread .00" in sentence
    assert problems(intercept=np.zeros(20), discrimination=np.zeros((20, 1))) == ()  # another rule's matter


def test_the_spread_of_many_dimensions_is_along_the_slope():
    assert problems(discrimination=np.full((20, 4), 0.5)) == ()
    assert len(problems(discrimination=np.full((20, 4), 0.5), difficulty_sd=np.full(20, 4.5))) == 1


# What they are computed from


def test_the_loss_is_that_of_bernoulli():
    scores, p = np.array([[1.0, 0.0, 0.5]]), np.array([[0.8, 0.3, 0.6]])
    expected = [[-np.log(0.8), -np.log(0.7), -0.5 * np.log(0.6) - 0.5 * np.log(0.4)]]
    np.testing.assert_allclose(losses(scores, p), expected)
    # A certainty that is wrong costs as much as a chance of one in a million.
    np.testing.assert_allclose(losses(scores, np.array([[0.0, 1.0, 0.5]]))[0, :2], -np.log(1e-6))


def test_the_gain_and_its_error_are_those_of_items():
    rng = np.random.default_rng(2)
    worse, better = rng.random((2, 30, 50))
    mean, error = _gain(better, worse, np.ones((30, 50), bool))
    by_item = (worse - better).mean(axis=0)
    assert mean == pytest.approx(by_item.mean())
    assert error == pytest.approx(by_item.std(ddof=1) / np.sqrt(50))
    held = np.zeros((30, 50), bool)
    held[:, :7] = True
    mean, error = _gain(better, worse, held)  # items without a held-out response are none
    assert mean == pytest.approx(by_item[:7].mean())
    assert error == pytest.approx(by_item[:7].std(ddof=1) / np.sqrt(7))


def test_subjects_are_shrunk_by_how_much_they_differ():
    rng = np.random.default_rng(3)
    same = (rng.random((400, 30)) < 0.7).astype(float)
    assert np.ptp(alike(same)) < 0.25 * np.ptp(same.mean(axis=1))
    theta = rng.beta(2.0, 2.0, 4000)
    apart = (rng.random((4000, 20)) < theta[:, None]).astype(float)
    apart[:, 15:] = np.nan
    right = np.nansum(apart, axis=1)
    np.testing.assert_allclose(alike(apart)[:, 0], (right + 2.0) / 19.0, atol=0.02)  # the posterior mean of the truth
    assert (alike(np.ones((3, 4))) == 1.0).all()


def test_the_spread_is_the_standard_deviation_of_a_normal_whatever_its_outliers():
    values = np.random.default_rng(1).normal(3.0, 2.0, 10_000)
    assert _spread(values) == pytest.approx(2.0, rel=0.05)
    assert _spread(np.r_[values, np.full(500, 1e6)]) == pytest.approx(2.0, rel=0.1)


def test_tenths_are_held_out_and_nobody_loses_all(planted):
    scores = planted(60, 80, 1).scores
    tenths = list(_held_out(scores))
    assert len(tenths) == 10
    assert np.sum(tenths, axis=0).max() == 1
    assert all(held.mean() == pytest.approx(0.1, abs=0.02) for held in tenths)
    for held, again in zip(tenths, _held_out(scores), strict=True):
        np.testing.assert_array_equal(held, again)
    assert (next(_held_out(scores, None, CHOOSING_SEED)) != tenths[0]).any()
    assert len(list(_held_out(np.ones((300, 200))))) == 1, "a tenth of many is enough"
    for shape in ((2, 1), (1, 300), (300, 1)):
        for held in _held_out(np.ones(shape)):
            assert not held.all(axis=0).any()
            assert not held.all(axis=1).any()


def test_copies_are_held_out_together():
    names = ["a", "b", "a", "c", "b", "a"] * 5
    for held in _held_out(np.ones((30, 40)), names):
        for name in "abc":
            own = held[[s for s in range(30) if names[s] == name]]
            assert (own == own[0]).all()


def test_predictions_are_the_models_at_the_posterior_mode(planted):
    scores = planted(9, 30, 2).scores.copy()
    scores[2, 3:] = np.nan
    fitted = Recipe("2pl")(scores)
    p = predicted(scores, fitted)
    found = fitted.bank("b", [str(i) for i in range(30)])
    theta = (np.log(p / (1 - p)) - found.intercept) / found.discrimination[:, 0]
    np.testing.assert_allclose(theta, np.broadcast_to(theta[:, :1], theta.shape), atol=1e-6)
    seen = ~np.isnan(scores)
    slope = (np.where(seen, np.nan_to_num(scores) - p, 0.0) * found.discrimination[:, 0]).sum(axis=1)
    np.testing.assert_allclose(slope, theta[:, 0], atol=1e-3)  # of the likelihood, and of the prior


def test_subjects_that_do_not_fit_in_memory_at_once_are_predicted_by_turns(planted, monkeypatch):
    scores = planted(7, 12, 3).scores
    fit = Recipe("2pl").fit_completely(scores)
    whole = predicted(scores, fit)
    monkeypatch.setattr("pytest_adaptive_eval.calibration.quality.CELLS", 3 * 12)
    np.testing.assert_allclose(predicted(scores, fit), whole, atol=1e-6)


def test_parameters_of_an_unknown_scale_do_not_shrink_abilities():
    given = bank(discrimination=np.full((20, 1), 0.1), intercept=np.zeros(20))  # abilities of ten times the usual size
    scores = np.ones((1, 20))
    assert predicted(scores, given, prior_sd(given_parameters=True)).min() > 0.8
    assert predicted(scores, given, prior_sd(given_parameters=False)).max() < 0.6


def test_predictions_never_fall_below_guessing():
    wrong, n = np.zeros((1, 20)), 20
    assert predicted(wrong, bank()).min() < 0.1
    assert predicted(wrong, bank(guess=np.full(n, 0.25))).min() > 0.25


# Whole assessments


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("model", ["1pl", "2pl", "mirt"])
def test_a_good_fit_passes(planted, model):
    responses = planted(80, 40, 3).responses
    recipe = Recipe(model)
    quality = assess(responses.scores, recipe(responses.scores), recipe, responses.items)
    assert quality.problems == quality.warnings == ()
    assert quality.trusted
    assert quality.to_json()["trusted"] is True
    assert json.loads(json.dumps(quality.to_json()))["details"]["model"] == model
    assert (quality.subjects, quality.items, quality.observed, quality.extreme) == (80, 40, 1.0, 0)
    assert quality.log_loss["bank"] < quality.log_loss["mean accuracy"]
    assert quality.log_loss["bank"] == pytest.approx(quality.log_loss["rasch"], abs=0.03)


def test_an_interrupted_fit_is_refused_and_nothing_more_is_fitted(planted, monkeypatch):
    responses = planted(40, 20, 4).responses
    fit = Recipe("2pl")(responses.scores)
    monkeypatch.setattr(Recipe, "__call__", lambda *_: pytest.fail("fitted"))
    fit = replace(fit, interrupted=True, converged=False)
    quality = assess(responses.scores, fit, Recipe("2pl"), responses.items)
    assert quality.problems == ("the fit was interrupted before it converged: run it again to the end",)
    assert quality.log_loss == {}


def test_ctrl_c_during_a_check_is_no_finished_check(planted, monkeypatch):
    responses = planted(40, 20, 4).responses
    fit = Recipe("2pl")(responses.scores)
    call = Recipe.__call__
    monkeypatch.setattr(Recipe, "__call__", lambda *given, **_: replace(call(*given), interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        assess(responses.scores, fit, Recipe("2pl"), responses.items)


def test_shuffled_difficulties_are_refused(planted):
    responses = planted(80, 40, 5).responses
    fit = Recipe("1pl")(responses.scores)
    wrong = replace(fit, intercept=fit.intercept[::-1].copy())
    sentences = assess(responses.scores, wrong, None, responses.items).problems
    assert "difficulties say nothing" in sentences[0]
    assert "than a converged Rasch fit" in sentences[1]
    assert assess(responses.scores, fit, None, responses.items).trusted


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(100, 50), (30, 200), (500, 50)])
def test_items_that_are_all_alike_are_refused(shape):
    """Answers in any order within each subject: a bank could only gain by shrinking abilities."""
    refused = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-rng.normal(size=(shape[0], 1))))
        scores = (rng.random(shape) < p).astype(float)
        quality = assess(scores, Recipe("2pl")(scores), Recipe("2pl"), [str(i) for i in range(shape[1])])
        refused += any("its difficulties say nothing" in problem for problem in quality.problems)
    assert refused >= 4


@pytest.mark.slow
def test_near_copies_cannot_pass_noise_off_for_a_bank():
    rng = np.random.default_rng(4)
    patterns = (rng.random((6, 100)) < 0.6).astype(float)
    scores = np.repeat(patterns, 12, axis=0)
    scores = np.where(rng.random(scores.shape) < 0.03, 1.0 - scores, scores)
    names, items = np.repeat(np.arange(6), 12).tolist(), [str(i) for i in range(100)]
    fit = Recipe("2pl")(scores)
    assert assess(scores, fit, Recipe("2pl"), items).log_loss["bank"] < 0.55, "copies tell what copies answer"
    found = assess(scores, fit, Recipe("2pl"), items, None, names)
    assert any("its difficulties say nothing" in problem for problem in found.problems)
    assert "fewer than 20 subjects" in "; ".join(found.warnings)
    few = assess(scores[:48], fit, Recipe("2pl"), items, None, names[:48]).problems
    assert any("fewer than 5 subjects, near-copies counted once" in problem for problem in few)


def test_parts_without_a_subject_in_common_are_refused(planted):
    scores = planted(60, 40, 8).scores.copy()
    scores[:30, 20:] = scores[30:, :20] = np.nan
    items = [f"q{i}" for i in range(40)]
    (found,) = assess(scores, Recipe("1pl")(scores), Recipe("1pl"), items).problems
    assert found.startswith(
        "its items fall into 2 parts, and no subject has answered items of two of them (20 items such"
    )
    scores[0] = planted(60, 40, 8).scores[0]
    assert assess(scores, Recipe("1pl")(scores), Recipe("1pl"), items).trusted


@pytest.mark.slow
def test_wrong_keys_extreme_items_and_noise_are_told(planted):
    scores = planted(200, 40, 6, slope=3.0).scores.copy()
    scores[:, 0] = 1.0 - scores[:, 0]  # a wrong key
    scores[:, 1], scores[:, 2] = 1.0, 0.0
    scores[:, 3] = np.random.default_rng(1).integers(0, 2, 200)
    scores[15:, 4] = np.nan
    scores[20:, 5] = np.nan  # as many as are enough
    items = [f"q{i}" for i in range(40)]
    recipe = Recipe("2pl")
    quality = assess(scores, recipe(scores), recipe, items)
    assert quality.extreme == 2
    assert quality.slopes["negative"] == pytest.approx(1 / 40)
    text = "; ".join(quality.warnings)
    assert "1 of 40 items: stronger subjects answer worse; look for wrong keys, the clearest first" in text
    assert list(quality.suspects) == ["q0"]
    assert "2 of 40 items: right for everybody, or wrong for everybody; kept, with little information" in text
    assert "1 of 40 items: fewer than 20 subjects" in text
    one_slope = assess(scores, Recipe("1pl")(scores), Recipe("1pl"), items)
    assert {"q0", "q3"} < set(one_slope.misfit)
    assert one_slope.misfits >= 2
    assert INFIT == (0.7, 1.3)


def test_too_few_responses_to_check_anything_are_no_pass():
    scores = np.array([[1.0], [0.0], [1.0], [0.0], [1.0], [1.0]])
    quality = assess(scores, Recipe("1pl")(scores), Recipe("1pl"), ["q"])
    assert quality.log_loss == {}
    assert any("too few subjects that differ, to hold some out" in text for text in quality.problems)


def test_the_dimensions_that_predict_best_are_chosen():
    rng = np.random.default_rng(1)
    theta, A = rng.normal(size=(150, 2)), np.zeros((40, 2))
    A[:20, 0] = A[20:, 1] = 2.5
    scores = (rng.random((150, 40)) < 1 / (1 + np.exp(-theta @ A.T))).astype(float)
    told: list[str] = []
    D, losses = choose_dimensions(scores, lambda D: Recipe("mirt", D), (1, 2), told.append)
    assert D == 2
    assert losses[2] < losses[1] - 0.05
    assert len(told) == 2
    with pytest.raises(ResponsesError, match="too few responses"):
        choose_dimensions(np.ones((3, 1)), lambda D: Recipe("mirt", D))


@pytest.mark.slow
def test_dimensions_are_tried_that_the_subjects_allow():
    scores = (np.random.default_rng(2).random((5, 12)) < 0.6).astype(float)
    assert list(choose_dimensions(scores, lambda D: Recipe("mirt", D))[1]) == [1, 2, 3, 4]


# Recipes


def test_items_that_nobody_here_answered_get_the_mean(planted):
    scores = planted(30, 12, 7).scores.copy()
    scores[:, 4] = np.nan
    whole, part = Recipe("2pl")(scores), Recipe("2pl")(np.delete(scores, 4, axis=1))
    np.testing.assert_allclose(np.delete(whole.intercept, 4), part.intercept, atol=1e-9)
    assert whole.intercept[4] == pytest.approx(part.intercept.mean())
    assert whole.discrimination[4, 0] == pytest.approx(part.discrimination.mean())
    assert np.isnan(whole.difficulty_sd[4])


def test_few_subjects_have_few_dimensions(planted):
    assert [Recipe("mirt")(planted(S, 15, 8).scores).discrimination.shape[1] for S in (2, 3, 12)] == [1, 2, 4]


def test_parameters_are_read_under_their_several_names(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"item_id": "x", "b": 2, "a": 2}\n\n{"id": 7, "difficulty": -1, "c": 0.2}\n')
    found = read_parameters(path, ["7", "x"])
    assert found.model == "3pl"
    np.testing.assert_allclose(found.intercept, [1.0, -4.0])
    np.testing.assert_allclose(found.discrimination[:, 0], [1.0, 2.0])
    np.testing.assert_allclose(found.guess, [0.2, 0.0])
    assert np.isnan(found.difficulty_sd).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "line 1: not a readable JSONL of parameters: Expected `object`"),
        ('\n{"id": "x", "difficulty": null}', "line 2: .* missing required field `difficulty`"),
        ('{"id": "x", "difficulty": NaN}', "line 1: .* JSON is malformed"),
        ('{"id": "x", "b": 1, "a": true}', "Expected `float`"),
        ('{"id": "x", "b": 1, "c": 1}', "Expected `float` < 1.0"),
        ('{"id": "x", "b": 1}\n{"id": "x", "b": 2}', "line 2: .* a second line of the item 'x'"),
        ('{"id": "y", "b": 1}', "no parameters for 1 of 1 item, the first 'x'"),
        ("{", "p.jsonl, line 1: not a readable JSONL"),
        ("\xff", "not a readable JSONL"),
    ],
)
def test_what_are_no_parameters(tmp_path, text, message):
    path = tmp_path / "p.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ResponsesError, match=message):
        read_parameters(path, ["x"])


def test_a_broken_archive_of_parameters(tmp_path):
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(ResponsesError, match="not a readable JSONL"):
        read_parameters(path, ["x"])


def test_released_difficulties_that_are_not_converged_are_refused(published):
    name, responses, train, _, path = published
    released = read_parameters(path, responses.items)
    assert np.median(released.difficulty_sd) > 30
    quality = assess(responses.scores[train], released, None, responses.items)
    text = "\n".join(quality.problems)
    assert "difficulties say nothing" in text or name == "AI2D"
    assert "than a converged Rasch fit" in text
    assert "its difficulties are not known" in text


@pytest.mark.slow
def test_weights_count_copies_once_in_every_check():
    rng = np.random.default_rng(4)
    theta, b = rng.normal(size=(40, 1)), rng.normal(size=30)
    scores = (rng.random((40, 30)) < 1 / (1 + np.exp(b - theta))).astype(float)
    copied = np.vstack([scores, np.repeat(scores[:1], 60, axis=0)])
    weights = np.r_[1 / 61, np.ones(39), np.full(60, 1 / 61)]
    names = [*range(40), *[0] * 60]
    items = [f"i{i}" for i in range(30)]
    recipe = Recipe("2pl")
    alone = assess(scores, recipe(scores), recipe, items)
    together = assess(copied, recipe(copied, weights=weights), recipe, items, copies=names, weights=weights)
    unweighted = assess(copied, recipe(copied), recipe, items, copies=names)
    assert together.slopes == alone.slopes
    assert together.misfit == alone.misfit
    assert together.log_loss["bank"] == pytest.approx(alone.log_loss["bank"], abs=0.02)
    assert abs(unweighted.log_loss["bank"] - alone.log_loss["bank"]) > 0.05


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("keys", "wrong keys"), ("dimension", "measure something else"), ("chance", "may be chance")],
)
def test_many_negative_slopes_are_explained(kind, reason):
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(14 if kind == "chance" else 200, 2))
    b = rng.normal(size=40)
    logit = 1.5 * theta[:, :1] - b
    if kind == "dimension":
        logit[:, :10] = 2.0 * theta[:, 1:] - 0.7 * theta[:, :1]
    else:
        logit[:, :10] = (-1.5 if kind == "keys" else -0.2) * theta[:, :1]
    scores = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
    if kind == "keys":  # a wrong key of each: dependent on nothing in common but the ability
        scores[:, :10] = (rng.random((200, 10)) < 1 / (1 + np.exp(1.0 * theta[:, :1]))).astype(float)
    slopes = np.r_[np.full(10, -0.5), np.ones(30)]
    [sentence] = _why_negative(scores, slopes, None)
    assert sentence.startswith("25 % of the slopes are negative")
    assert reason in sentence
    assert _why_negative(scores, np.ones(40), None) == []


@pytest.mark.slow
def test_subjects_of_an_item_count_in_any_format(planted):
    scores = planted(20, 40, 9).scores.copy()
    scores[np.random.default_rng(1).random(scores.shape) > 0.15] = np.nan  # three subjects an item
    items, recipe = [f"q{i}" for i in range(40)], Recipe("1pl")
    few = "half of the items have fewer than 5 subjects"
    assert any(few in text for text in assess(scores, recipe(scores), recipe, items).problems)
    answered = np.ones(scores.shape, dtype=bool)
    assert not any(few in text for text in assess(scores, recipe(scores), recipe, items, answered=answered).problems)


@pytest.mark.parametrize("copies", [0, 60])
def test_wrong_keys_are_told_by_the_evidence_for_them(copies):
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(100, 1))
    slope = np.r_[-2.0, -1.0, np.full(40, 0.0), np.full(58, 1.5)]  # forty whose keys no answer tells of
    scores = (rng.random((100, 100)) < 1 / (1 + np.exp(-slope * theta))).astype(float)
    weights = np.r_[np.full(copies, 1.0 / (copies + 1)), 1.0 / (copies + 1), np.ones(99)]
    scores = np.vstack([np.repeat(scores[:1], copies, axis=0), scores])
    scores[rng.random(scores.shape) < 0.1] = np.nan
    items = [f"i{i}" for i in range(100)]
    fit = Recipe("2pl")(scores, weights=weights)
    assert (fit.discrimination[2:42, 0] < -TINY_SLOPE).sum() > 3
    found = assess(scores, fit, Recipe("2pl"), items, weights=weights)
    assert next(iter(found.suspects)) == "i0"
    assert "i1" in found.suspects
    assert len(found.suspects) <= 3  # one of a hundred that chance brings about
    assert list(found.suspects.values()) == sorted(found.suspects.values())
    assert f"with their standard errors: 'i0' ({-found.suspects['i0']:.1f}), '" in "; ".join(found.warnings)
    slopes = np.r_[np.full(42, -0.5), np.ones(58)]
    assert len(_suspects(scores[:, 2:], slopes[2:], weights, items[2:])) <= 1
    (warning, *_) = _warnings({"negative": 0.4}, {}, np.full(98, 50.0), 0, 0, 98)
    assert "none is clearer than chance" in warning
    many = {f"i{i}": -5.0 for i in range(7)}
    assert _warnings({"negative": 0.4}, many, np.full(98, 50.0), 0, 0, 98)[0].endswith("'i4' (5.0) and 2 more")


@pytest.mark.parametrize("subjects", [30, 58, 300])
def test_responses_of_the_model_itself_are_hardly_ever_misfits(subjects):
    rng = np.random.default_rng(7)
    theta, b = rng.normal(size=(subjects, 1)), rng.normal(2.0, 1.5, size=200)
    scores = (rng.random((subjects, 200)) < 1 / (1 + np.exp(b - theta))).astype(float)
    scores = scores[:, scores.any(axis=0)]
    recipe = Recipe("1pl")
    quality = assess(scores, recipe(scores), recipe, [f"i{i}" for i in range(scores.shape[1])])
    assert quality.misfits <= 0.02 * scores.shape[1]


def test_fractional_scores_are_no_misfits():
    rng = np.random.default_rng(8)
    p = 1 / (1 + np.exp(rng.normal(size=30) - rng.normal(size=(200, 1))))
    scores = np.clip(p + rng.normal(0.0, 0.05, p.shape), 0.0, 1.0)
    recipe = Recipe("2pl")
    assert assess(scores, recipe(scores), recipe, [f"i{i}" for i in range(30)]).misfits == 0
