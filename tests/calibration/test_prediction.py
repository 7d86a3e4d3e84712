"""Predictions from the responses' covariance, and estimates that rest on them only as far as they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.calibration.backtest import CONTENDERS, Split, backtest
from pytest_adaptive_eval.calibration.prediction import Assisted, Predictor, Setting, choose_setting, fit_assisted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.responses import Responses


def fitted(planted, setting=None, subjects=30, items=40):
    scores = planted(subjects, items, 3).scores
    return Predictor.fit(scores, np.ones(subjects), setting or Setting()), scores


def dense(predictor, items):
    """Mean and covariance of the scores as the model has them, and their regression on those of `items`."""
    cov = predictor.loadings.T @ predictor.loadings + np.diag(predictor.noise)
    return cov, np.linalg.solve(cov[np.ix_(items, items)], cov[items]).T


@pytest.mark.parametrize("count", [3, 38])
def test_predictions_are_the_regression_of_the_dense_covariance(planted, count):
    predictor, scores = fitted(planted, Setting(shift=0.2, slope=1.0), subjects=12)
    items = np.random.default_rng(1).permutation(40)[:count]  # fewer, and more, than the calibration subjects
    rest = np.setdiff1d(np.arange(40), items)
    _, slope = dense(predictor, items)
    expected = predictor.mean + slope @ (scores[0, items] - predictor.mean[items])
    found = predictor.predict(items, scores[0, items])
    np.testing.assert_allclose(found[rest], np.clip(expected, 0, 1)[rest], atol=1e-9)
    np.testing.assert_array_equal(predictor.predict(items[:0], scores[0, :0]), predictor.mean)


def test_each_item_of_the_form_lowers_the_variance_of_the_mean_most(planted):
    predictor, _ = fitted(planted)
    order = predictor.form(6)
    assert len(set(order.tolist())) == 6

    def variance(items):
        cov, slope = dense(predictor, np.array(items))
        return float((cov - slope @ cov[items]).mean())

    for k in range(6):
        others = [j for j in range(40) if j not in order[:k]]
        best = min(others, key=lambda j: variance([*order[:k].tolist(), j]))
        assert variance([*order[:k].tolist(), best]) == pytest.approx(variance(order[: k + 1].tolist()), abs=1e-12)


def test_weights_make_copies_one_subject(planted):
    scores = planted(20, 30, 4).scores
    copied = np.vstack([scores, np.repeat(scores[:1], 9, axis=0)])
    weights = np.r_[0.1, np.ones(19), np.full(9, 0.1)]
    once, often = Predictor.fit(scores, np.ones(20), Setting()), Predictor.fit(copied, weights, Setting())
    items, answers = np.arange(5), scores[3, :5]
    np.testing.assert_allclose(often.predict(items, answers), once.predict(items, answers), atol=1e-9)
    np.testing.assert_array_equal(often.form(8), once.form(8))


def test_the_difference_estimator_is_unbiased_by_wrong_predictions(planted):
    predictor, _ = fitted(planted)
    wrong = replace(predictor, mean=np.clip(predictor.mean + 0.3, 0, 1))
    truth = np.random.default_rng(5).random(40).round()
    design, model = (Assisted(wrong, wrong.form(4), weight) for weight in (1.0, 0.0))
    drawn = [design.draw(12, np.random.default_rng(seed)) for seed in range(1500)]
    assert all((items[:4] == design.form).all() and len(set(items.tolist())) == 12 for items in drawn)
    by_design, by_model = (np.mean([a.parts(i, truth[i])[k] for i in drawn]) for k, a in ((1, design), (0, model)))
    assert by_design == pytest.approx(truth.mean(), abs=0.012)
    assert abs(by_model - truth.mean()) > 0.03


def test_missing_scores_are_left_out(planted):
    predictor, scores = fitted(planted)
    assisted = Assisted(predictor, predictor.form(5), 0.5)
    items = assisted.draw(10, np.random.default_rng(1))
    answers = scores[0, items].copy()
    answers[[1, 7]] = np.nan
    assert 0.0 <= assisted.estimate(items, answers) <= 1.0
    assert assisted.parts(items, np.full(10, np.nan)) == (pytest.approx(predictor.mean.mean()),) * 2


def test_everything_asked_is_the_accuracy_itself(planted):
    predictor, scores = fitted(planted)
    for share in (40, 20):
        assisted = Assisted(predictor, predictor.form(share), 0.5)
        items = assisted.draw(40, np.random.default_rng(2))
        assert assisted.estimate(items, scores[1, items]) == pytest.approx(scores[1].mean())


def test_the_setting_is_the_same_for_the_same_seed():
    rng = np.random.default_rng(6)
    noise = (rng.random((40, 60)) < rng.random((40, 1))).astype(float)  # items tell nothing of each other
    responses = Responses(tuple(f"m{s}" for s in range(40)), tuple(f"q{i}" for i in range(60)), noise)
    setting = choose_setting(responses, 20, 10)
    assert setting == choose_setting(responses, 20, 10)
    assert fit_assisted(responses, 20).design_weight == setting.design_weight


def test_contenders_form_and_half_form_beat_uniform_draws(planted):
    made = planted(60, 80, 7)
    everybody = np.arange(60)
    contenders = [CONTENDERS[name] for name in ("form", "half-form", "random")]
    found = backtest(made.responses, Split(everybody[:45], everybody[45:]), contenders, ["15%"], recipe=Recipe("1pl"))
    errors = {name: cell.error[0] for (name, _), cell in found.cells.items()}
    assert errors["form"] < errors["random"]
    assert errors["half-form"] < errors["random"]
    assert all(
        contender.missing_requirement(Recipe("1pl")(made.scores).bank("b", made.responses.items), ())
        for contender in contenders[:2]
    )
