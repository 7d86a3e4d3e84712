"""What a calibrated bank keeps of its subjects."""

from __future__ import annotations

import numpy as np

from pytest_adaptive_eval.banks import read_bank, write_bank
from pytest_adaptive_eval.calibration.build import calibrate
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.responses import Responses


def with_scores(responses, scores):
    return Responses(responses.subjects, responses.items, scores)


def test_accuracies_are_mean_scores_where_all_are_there(planted, tmp_path):
    made = planted(12, 40, 1)
    built = calibrate(made.responses, Recipe("2pl"))
    np.testing.assert_allclose(built.accuracies, made.scores.mean(axis=1), rtol=1e-12)
    built.write(write_bank, tmp_path / "x.bank")
    bank = read_bank(tmp_path / "x.bank")
    assert (bank.subjects, bank.accuracies) == (made.responses.subjects, built.accuracies)


def test_missing_scores_are_predicted_at_the_subjects_ability(planted):
    """The hard half is missing of some subjects: their mean scores are far too high, and their accuracies are not."""
    made = planted(60, 300, 2)
    scores = made.scores.copy()
    hard = made.b > 0
    scores[:20, hard] = np.nan
    built = calibrate(with_scores(made.responses, scores), Recipe("2pl"))
    truth, mean = made.scores.mean(axis=1), np.nanmean(scores, axis=1)
    found = np.array(built.accuracies)
    np.testing.assert_allclose(found[20:], truth[20:], rtol=1e-12)
    assert (mean - truth)[:20].mean() > 0.15
    assert abs((found - truth)[:20].mean()) < 0.02
    assert np.abs(found - truth)[:20].max() < 0.1
    low, high = np.array(built.accuracy_ranges).T
    np.testing.assert_allclose(high - low, np.r_[np.full(20, hard.mean()), np.zeros(40)], atol=1e-12)
    assert ((low <= truth + 1e-12) & (truth <= high + 1e-12)).all()
    # scores that are there count as they are: predictions fill the hard half alone
    p = (300 * found[:20] - np.nansum(scores[:20], axis=1)) / hard.sum()
    assert ((p > 0) & (p < 1)).all()


def test_subjects_that_were_hardly_asked_have_finite_accuracies(planted):
    made = planted(20, 50, 3)
    scores = made.scores.copy()
    scores[0, 1:], scores[0, 0] = np.nan, 1.0
    scores[1, 5:], scores[1, :5] = np.nan, 0.0
    for given in (None, Recipe("2pl")(made.scores)):
        built = calibrate(with_scores(made.responses, scores), Recipe("2pl"), given_parameters=given)
        found = np.array(built.accuracies)
        assert np.isfinite(found).all()
        assert ((found >= 0) & (found <= 1)).all()
        assert found[1] < found[0]
