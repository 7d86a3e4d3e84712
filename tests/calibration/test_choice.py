"""The choice of an item response model by held-out loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.calibration import choice as choosing
from pytest_adaptive_eval.calibration.choice import CANDIDATES, _misplaced, _simplest, choose_model
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.responses import Responses


def drawn(logit, seed, families=()):
    rng = np.random.default_rng(seed)
    scores = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
    subjects = tuple(f"m{s}" for s in range(len(scores)))
    return Responses(subjects, tuple(f"q{i}" for i in range(scores.shape[1])), scores, families)


def logits(kind, S=120, n=80, seed=1):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=(S, 2)), rng.normal(size=n)
    if kind == "1pl":
        return theta[:, :1] - b
    if kind == "2pl":
        return np.exp(rng.normal(size=n)) * (1.5 * theta[:, :1] - b)
    return np.where(np.arange(n) % 2, 2.5 * theta[:, :1], 2.5 * theta[:, 1:]) - b


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("kind", ["1pl", "2pl", "mirt"])
def test_the_model_that_made_the_responses_is_chosen(kind):
    choice = choose_model(drawn(logits(kind), 2), Recipe())
    assert choice.model == kind
    assert list(choice.losses) == list(CANDIDATES)
    assert choice.families == 120
    assert f"model {kind}" in choice.sentence
    assert all(f"{loss:.4f}" in choice.sentence for loss in choice.losses.values())
    assert "--model" in choice.sentence
    assert choice.to_json()["model"] == kind


@pytest.mark.parametrize(("kind", "everywhere"), [("1pl", False), ("mirt", True)])
def test_several_dimensions_are_fitted_until_they_cannot_be_chosen(kind, everywhere, monkeypatch):
    responses = drawn(logits(kind), 2)
    early = choose_model(responses, Recipe())
    assert (early.mirt_families == early.families) == everywhere
    assert (f", tested on {early.mirt_families} families," in early.sentence) != everywhere
    monkeypatch.setattr("pytest_adaptive_eval.calibration.choice.HOPELESS", np.inf)
    whole = choose_model(responses, Recipe())
    assert whole.mirt_families == whole.families
    assert whole.model == early.model
    assert {**whole.losses, "mirt": early.losses["mirt"]} == early.losses
    assert early.losses["mirt"] == pytest.approx(whole.losses["mirt"], abs=5.0 * whole.errors["mirt"])


def test_shrunken_slopes_lie_between_rasch_and_2pl():
    scores = drawn(logits("2pl"), 3).scores
    full, shrunk = (Recipe(model)(scores) for model in ("2pl", "2pl-shrunk"))
    assert shrunk.model == "2pl"
    assert shrunk.converged
    assert 0.4 * full.discrimination.std() < shrunk.discrimination.std() < 0.97 * full.discrimination.std()


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_a_shared_2pl_fit_gives_the_same_models(share):
    scores = drawn(logits("2pl"), 3).scores.copy()
    scores[np.random.default_rng(0).random(scores.shape) >= share] = np.nan
    made: dict[tuple[str, int | None], Any] = {}
    for model in CANDIDATES:
        alone, shared = Recipe(model)(scores), Recipe(model)(scores, shared_fits=made)
        np.testing.assert_array_equal(shared.discrimination, alone.discrimination)
        np.testing.assert_array_equal(shared.intercept, alone.intercept)
    assert {model for model, _ in made} == {"1pl", "2pl", "mirt"}


@pytest.mark.slow
def test_copies_in_one_family_do_not_choose():
    responses = drawn(logits("1pl", S=40), 4)
    copies = np.repeat(responses.scores[:1], 60, axis=0)
    scores = np.vstack([responses.scores, copies])
    names = tuple(f"s{s}" for s in range(100))
    weights = np.r_[1 / 61, np.ones(39), np.full(60, 1 / 61)]
    families = ("s0", *names[1:40], *["s0"] * 60)
    together = Responses(names, responses.items, scores, families, weights=weights)
    choice = choose_model(together, Recipe())
    alone = choose_model(responses, Recipe())
    assert choice.families == alone.families == 40
    assert choice.losses["1pl"] == pytest.approx(alone.losses["1pl"], abs=0.02)


def test_missing_scores_are_not_counted():
    responses = drawn(logits("1pl", S=40), 5)
    scores = responses.scores.copy()
    scores[np.random.default_rng(1).random(scores.shape) < 0.3] = np.nan
    choice = choose_model(Responses(responses.subjects, responses.items, scores), Recipe())
    assert 0.3 < choice.losses["1pl"] < 0.75


@pytest.mark.parametrize(
    ("losses", "error", "model"),
    [
        ((0.50, 0.50, 0.50, 0.40), 0.001, "1pl"),  # several dimensions are chosen by their interviews
        ((0.52, 0.50, 0.499, 0.499), 0.002, "2pl-shrunk"),
        ((0.52, 0.51, 0.499, 0.499), 0.002, "2pl"),
    ],
)
def test_the_simplest_within_a_standard_error_wins(losses, error, model):
    means = dict(zip(CANDIDATES, losses, strict=True))
    errors = dict.fromkeys(CANDIDATES, error)
    assert _simplest(means, errors) == model


@pytest.mark.parametrize(
    ("margin", "gain", "model"),
    [
        (np.inf, 0.02, "mirt"),  # a smaller loss and interviews that err less
        (np.inf, 0.005, "1-dimensional"),  # a smaller loss alone
        (0.0, -0.005, "mirt"),  # a much smaller loss, and interviews that err no more
        (0.0, -0.02, "1-dimensional"),
    ],
)
@pytest.mark.fast_rows(2)
def test_several_dimensions_are_chosen_by_what_interviews_of_left_out_families_find(margin, gain, model, monkeypatch):
    monkeypatch.setattr(choosing, "DIMENSIONS_MARGIN", margin)
    monkeypatch.setattr(choosing, "_gain_of_interviews", lambda *_: (gain, 0.01))
    choice = choose_model(drawn(logits("mirt", S=60, n=60), 2), Recipe())
    assert (choice.model == "mirt") == (model == "mirt")
    assert f"{gain:.1%} +- 1.0% smaller by mirt" in choice.sentence
    assert choice.to_json()["gain"] == gain


def test_interviews_are_not_held_where_the_loss_alone_decides(monkeypatch):
    monkeypatch.setattr(choosing, "_gain_of_interviews", lambda *_: pytest.fail("an interview was held"))
    choice = choose_model(drawn(logits("1pl", S=40, n=40), 2), Recipe())
    assert choice.model != "mirt"
    assert "is not better by two standard errors" in choice.sentence
    assert "gain" not in choice.to_json()


def test_an_estimate_is_misplaced_beside_subjects_on_its_wrong_side():
    truth = np.array([0.2, 0.3, 0.9])
    accuracies = np.array([[0.1, 0.5, 0.4], [0.1, 0.2, 0.3], [0.9, 0.3, 0.2], [0.1, 0.4, 0.4]])
    shares = [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.25, 0.25]]
    np.testing.assert_allclose(_misplaced(accuracies, truth), shares)
    np.testing.assert_allclose(_misplaced(accuracies[:1], np.full(3, 0.5)), [[0.0, 0.0, 0.0]])


def test_the_gain_of_interviews_is_positive_where_the_other_model_has_the_parameters_of_other_items():
    responses = drawn(logits("2pl", S=60, n=400), 3)
    fold = np.arange(60) % 2
    fits = []
    for f in range(2):
        good = Recipe("2pl")(responses.of(np.flatnonzero(fold != f)).scores)
        swapped = replace(good, intercept=good.intercept[::-1], discrimination=good.discrimination[::-1])
        fits.append({"2pl": swapped, "mirt": good})
    gain, error = choosing._gain_of_interviews(responses, fold, fits, "2pl")
    assert gain > 2.0 * error > 0.0
    same = [{"2pl": fit["mirt"], "mirt": fit["mirt"]} for fit in fits]
    assert choosing._gain_of_interviews(responses, fold, same, "2pl") == (0.0, 0.0)
