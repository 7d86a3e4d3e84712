"""The published engine: mean-field variational inference in Pyro."""

from __future__ import annotations

import importlib.util
import random
import sys

import numpy as np
import pytest
from scipy.special import expit, logit

from pytest_adaptive_eval.calibration.build import calibrate
from pytest_adaptive_eval.calibration.engines.svi import SVISettings, fit_svi
from pytest_adaptive_eval.calibration.meanfield import MeanField
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.items.responses import Responses

needs_pyro = pytest.mark.skipif(
    importlib.util.find_spec("pyro") is None, reason="pyro-ppl is not installed: pip install pytest-adaptive-eval[pyro]"
)
#: As the defaults, with fewer draws, which is enough for these sizes.
QUICK = SVISettings(batch=2048, evaluations=1 << 18, window=100)


def simulate(subjects, items, seed, *, slope_sd=0.0, guess=0.0):
    rng = np.random.default_rng(seed)
    a, b, theta = np.exp(rng.normal(0, slope_sd, items)), rng.normal(size=items), rng.normal(size=subjects)
    p = guess + (1 - guess) * expit(a * (theta[:, None] - b))
    return a, b, theta, (rng.random(p.shape) < p).astype(float)


def r(x, y):
    return np.corrcoef(x, y)[0, 1]


@pytest.mark.slow
@needs_pyro
def test_planted_difficulties_and_abilities_are_recovered():
    _, b, theta, responses = simulate(150, 60, 1)
    fit = fit_svi(responses, model="1pl", settings=QUICK)
    assert fit.converged
    assert not fit.interrupted
    assert fit.steps < QUICK.steps
    assert len(fit.elbo) == fit.steps // QUICK.window
    assert r(fit.difficulty, b) > 0.97
    assert r(fit.theta, theta) > 0.93
    assert np.sqrt(np.mean((fit.difficulty - b) ** 2)) < 0.3
    assert (fit.discrimination == 1).all()
    assert (fit.guess == 0).all()
    np.testing.assert_array_equal(fit.intercept, -fit.difficulty)
    p = expit(fit.theta[:, None] + fit.intercept)
    ratio = fit.difficulty_sd / (p * (1 - p)).sum(axis=0) ** -0.5
    assert np.median(ratio) == pytest.approx(1, abs=0.08)
    assert np.abs(ratio - 1).max() < 0.3


@pytest.mark.slow
@needs_pyro
def test_planted_slopes_are_recovered():
    a, b, _, responses = simulate(400, 40, 3, slope_sd=0.5)
    fit = fit_svi(responses, model="2pl", settings=QUICK)
    assert fit.converged
    assert r(np.log(fit.discrimination), np.log(a)) > 0.85
    assert r(fit.difficulty, b) > 0.95
    np.testing.assert_allclose(fit.intercept, -fit.discrimination * fit.difficulty)
    assert (fit.guess == 0).all()


@pytest.mark.slow
@needs_pyro
def test_a_guess_floor_is_found_and_stays_off_one():
    _, b, _, responses = simulate(300, 40, 4, guess=0.25)
    responses[:, :2] = 1.0
    fit = fit_svi(responses, model="3pl", settings=QUICK)
    assert fit.converged
    assert np.median(fit.guess) == pytest.approx(0.23, abs=0.04)
    assert fit.guess.max() < 0.5
    p = fit.guess + (1 - fit.guess) * expit(fit.theta[:, None] * fit.discrimination + fit.intercept)
    assert np.abs(p.mean(axis=0) - responses.mean(axis=0)).max() < 0.04
    assert r(fit.difficulty[2:], b[2:]) > 0.93


@pytest.mark.slow
@needs_pyro
def test_missing_answers_say_nothing():
    _, b, _, responses = simulate(150, 40, 5)
    holes = np.where(np.random.default_rng(6).random(responses.shape) < 0.4, np.nan, responses)
    fit, whole = (fit_svi(x, model="1pl", settings=QUICK) for x in (holes, responses))
    assert fit.converged
    assert r(fit.difficulty, b) > 0.9
    assert (fit.difficulty_sd > whole.difficulty_sd).mean() > 0.9


@pytest.mark.slow
@needs_pyro
def test_a_fraction_counts_as_that_much_right():
    _, _, _, responses = simulate(60, 20, 7)
    fit = fit_svi(0.25 + 0.5 * responses, model="1pl", settings=QUICK)
    share = (0.25 + 0.5 * responses).mean(axis=0)
    assert r(fit.difficulty, -logit(share)) > 0.99


@pytest.mark.fast_rows(1)
@needs_pyro
@pytest.mark.parametrize("model", ["1pl", "2pl", "3pl"])
def test_the_same_seed_gives_the_same_fit(model):
    _, _, _, responses = simulate(20, 12, 8)
    short = SVISettings(steps=30, guess_steps=10, window=10, batch=100, evaluations=1 << 12)  # three batches a pass
    one, same, other = (fit_svi(responses, model=model, settings=short, seed=s) for s in (1, 1, 2))
    for name in ("difficulty", "difficulty_sd", "discrimination", "guess", "theta", "elbo"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert (one.difficulty != other.difficulty).all()
    assert (one.seed, other.seed) == (1, 2)


@needs_pyro
def test_global_state_is_left_alone():
    import pyro
    import torch

    _, _, _, responses = simulate(10, 6, 9)
    pyro.clear_param_store()
    pyro.param("b_mean", torch.tensor(7.0))
    torch.manual_seed(3)
    before = (
        torch.get_rng_state(),
        random.getstate(),
        np.random.get_state(legacy=False)["state"]["key"].copy(),
        torch.get_num_threads(),
    )
    fit = fit_svi(responses, model="1pl", settings=SVISettings(steps=5, window=5, evaluations=100))
    assert fit.steps == 5
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], before[2])
    assert torch.get_num_threads() == before[3]
    assert dict(pyro.get_param_store()) == {"b_mean": torch.tensor(7.0)}
    pyro.clear_param_store()


@pytest.mark.slow
@needs_pyro
def test_an_item_that_all_solved_is_finite_and_shows_by_its_spread():
    _, _, _, responses = simulate(60, 20, 10)
    responses[:, 0], responses[:, 1] = 1.0, 0.0
    for prior in ("variance", "sd"):
        fit = fit_svi(
            responses,
            model="1pl",
            settings=SVISettings(difficulty_prior=prior, steps=400, window=200, evaluations=1000),
        )
        assert np.isfinite(fit.intercept).all()
        assert fit.difficulty[0] < -4
        assert fit.difficulty[1] > 4
        assert fit.difficulty_sd[:2].min() > 3 * fit.difficulty_sd[2:].max()


def test_the_prior_s_scale_is_a_variance_or_a_standard_deviation():
    assert SVISettings().difficulty_sd == pytest.approx(1000**0.5)
    assert SVISettings(difficulty_prior="sd").difficulty_sd == 1000
    assert SVISettings(difficulty_prior="sd", prior_scale=2.0).priors["b"] == (0.0, 2.0)
    assert SVISettings(initial_difficulty_sd=5.0).start["b"] == (0.0, 5.0)


@pytest.mark.fast_rows(1)
@needs_pyro
@pytest.mark.parametrize(("engine", "deviation"), [("svi", 1000**0.5), ("svi-sd", 1000.0)])
def test_an_engine_s_name_says_how_the_prior_is_read(engine, deviation, monkeypatch):
    priors = []

    def program(scores, latents, given, start, **settings):
        priors.append(given["b"])
        return MeanField(scores, latents, given, start, **settings)

    monkeypatch.setattr("pytest_adaptive_eval.calibration.engines.svi.MeanField", program)
    fit = Recipe("1pl", engine=engine, limit=2)(np.eye(4))
    assert priors == [(0.0, pytest.approx(deviation))]
    assert fit.about["engine"] == engine


@pytest.mark.slow
@needs_pyro
def test_a_narrow_prior_shrinks_difficulties_and_the_named_two_agree_where_items_are_bounded():
    _, _, _, responses = simulate(40, 20, 11)
    fits = [
        fit_svi(responses, model="1pl", settings=SVISettings(**more, batch=4096, window=100, evaluations=1 << 16))
        for more in ({}, {"difficulty_prior": "sd"}, {"difficulty_prior": "sd", "prior_scale": 0.3})
    ]
    variance, sd, narrow = (fit.difficulty for fit in fits)
    assert np.abs(variance - sd).max() < 0.1
    assert np.abs(narrow).mean() < 0.6 * np.abs(sd).mean()


@needs_pyro
def test_the_step_limit_is_told():
    _, _, _, responses = simulate(20, 10, 12)
    told = []
    fit = fit_svi(
        responses,
        model="2pl",
        settings=SVISettings(steps=25, window=10, evaluations=1000),
        progress=lambda step, elbo: told.append((step, elbo)),
    )
    assert (fit.converged, fit.interrupted, fit.steps) == (False, False, 25)
    assert [step for step, _ in told] == [10, 20, 25]
    np.testing.assert_array_equal([elbo for _, elbo in told], fit.elbo)


@pytest.mark.slow
@needs_pyro
@pytest.mark.parametrize(("engine", "measure"), [("svi", "ELBO -"), ("map", "largest change ")])
def test_progress_names_the_number_that_the_engine_reports(engine, measure):
    _, _, _, scores = simulate(20, 10, 12)
    responses = Responses(tuple(f"m{s}" for s in range(20)), tuple(f"q{i}" for i in range(10)), scores)
    told: list[str] = []
    calibrate(responses, Recipe("1pl", engine=engine, limit=25), progress=told.append)
    assert told[0].startswith("fitting, iteration ")
    assert measure in told[0]


@pytest.mark.slow
@needs_pyro
def test_ctrl_c_keeps_the_best_window():
    _, _, _, responses = simulate(20, 10, 13)
    settings = SVISettings(steps=300, window=20, evaluations=10_000)

    def stop(step, elbo):
        if step == 200:
            raise KeyboardInterrupt

    cut = fit_svi(responses, model="1pl", settings=settings, progress=stop)
    assert (cut.converged, cut.interrupted, cut.steps) == (False, True, 200)
    best = 20 * (1 + int(cut.elbo.argmax()))
    again = fit_svi(responses, model="1pl", settings=SVISettings(steps=best, window=20, evaluations=10_000))
    np.testing.assert_array_equal(cut.difficulty, again.difficulty)


@needs_pyro
@pytest.mark.parametrize(("last", "guessing"), [(10, False), (20, False), (30, True)])
def test_ctrl_c_before_there_is_guessing_leaves_none(last, guessing):
    def stop(step, elbo):
        if step == last:
            raise KeyboardInterrupt

    _, _, _, responses = simulate(20, 10, 15)
    settings = SVISettings(steps=50, window=10, guess_steps=15, evaluations=1000)
    fit = fit_svi(responses, model="3pl", settings=settings, progress=stop)
    assert (fit.interrupted, fit.steps) == (True, last)
    assert (fit.guess > 0).all() == guessing
    assert (fit.guess == 0).all() != guessing


@needs_pyro
@pytest.mark.parametrize("after", [0, 3])
def test_ctrl_c_within_the_first_window_keeps_what_there_is(after, monkeypatch):
    from pytest_adaptive_eval.calibration.meanfield import MeanField

    done: list[int] = []
    step = MeanField.step

    def stop(self, batch):
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(1)
        step(self, batch)

    monkeypatch.setattr(MeanField, "step", stop)
    _, _, _, responses = simulate(20, 10, 14)
    fit = fit_svi(responses, model="3pl", settings=SVISettings(evaluations=1000))
    assert (fit.converged, fit.interrupted, fit.steps) == (False, True, after)
    assert np.isfinite(fit.intercept).all()
    assert (fit.difficulty == 0).all() == (after == 0)
    assert fit.difficulty_sd == pytest.approx(1000, rel=0.5)


@needs_pyro
def test_the_estimate_of_the_elbo_is_the_one_of_the_gaussian_case():
    """Gaussians of next to no width at theta = b: log 1/2 a response, less divergences known in closed form."""
    from pytest_adaptive_eval.calibration.meanfield import MeanField

    scores = np.full((3, 2), 0.5)
    program = MeanField(
        scores,
        ("theta", "b"),
        {"theta": (0.0, 1.0), "b": (0.0, 10.0)},
        {"theta": (0.0, 1.0), "b": (0.0, 10.0)},
        adam={"lr": 0.1},
        particles=4,
        evaluations=600,
        device="cpu",
    )
    tiny = {"theta": (np.full(3, 2.0), np.full(3, -9.0)), "b": (np.full(2, 2.0), np.full(2, -9.0))}
    theta = 9 - 0.5 + 0.5 * (np.exp(-18) + 4)
    b = 9 + np.log(10) - 0.5 + 0.5 * (np.exp(-18) + 4) / 100
    assert program.elbo(tiny, 0) == pytest.approx(6 * np.log(0.5) - 3 * theta - 2 * b, abs=1e-6)


def test_without_pyro_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyro", None)
    with pytest.raises(UsageError, match=r"pip install pytest-adaptive-eval\[pyro\]"):
        fit_svi(np.eye(3), model="1pl")
