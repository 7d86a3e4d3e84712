"""Fits of M2 and M3: recovery, sparse and fractional data, three modalities, errors, quality, public matrices."""

from __future__ import annotations

import gzip
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="multimodal fits need torch (extra hf)")

from benchmarks.multimodal_marginal import _Marginal, standing  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal import PAPER, Training, fit_multimodal, roc_auc  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality  # noqa: E402
from pytest_adaptive_eval.irt.multimodal import Modalities, MultimodalItems  # noqa: E402

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "m3irt"
QUICK = Training(steps=300, patience=3)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def planted(form, subjects=60, n=200, seed=0, modalities=None):
    """Half of the items need all modalities together, the others one alone."""
    rng = np.random.default_rng(seed)
    modalities = modalities or Modalities()
    parts, singles = len(modalities.parts), len(modalities.names)

    def within(middle, spread, *shape):
        return 4.0 / (1.0 + np.exp(-rng.normal(middle, spread, shape)))

    theta = within(-1.2, 0.8, subjects, parts)
    a, b = within(-2.2 if form == "m2" else -1.2, 0.5, n, parts), within(-3.0, 0.6, n, parts)
    b[:, 0] = within(2.0, 0.7, n)
    cross = rng.random(n) < 0.5
    needed = np.where(cross, parts - 1, rng.integers(1, 1 + singles, n))
    b[np.arange(n), needed] = within(-0.2 if form == "m2" else 0.4, 0.4, n)
    items = MultimodalItems(modalities, form, 4.0, a, b)
    p = items.probability(theta)
    return theta, items, cross, (rng.random(p.shape) < p).astype(float)


@pytest.mark.parametrize("form", ["m2", "m3"])
class TestRecovery:
    @pytest.mark.slow
    def test_cross_modal_items_and_abilities_are_found(self, form):
        theta, _, cross, scores = planted(form, 60, 250)
        fit = fit_multimodal(scores, form=form, bounds=(4.0,), training=QUICK)
        assert roc_auc(cross, fit.items.cross_gain(fit.abilities.theta)) > 0.93
        for k in range(4):
            assert np.corrcoef(theta[:, k], fit.abilities.theta[:, k])[0, 1] > (0.6 if k == 3 else 0.8)
        found = standing(scores, fit.items, fit.abilities.theta)
        low, high = found.interval(0.95)
        truth = (theta - theta.mean(axis=0)) / theta.std(axis=0)
        assert found.converged
        assert not found.at_bound.any()
        assert ((low <= truth) & (truth <= high)).mean() > 0.9
        assert np.allclose(found.value.mean(axis=0), 0)
        assert np.allclose(found.value.std(axis=0), 1)
        error = np.sqrt(((found.value - truth) ** 2).mean(axis=0))
        assert (error < 1.5 * np.sqrt((found.standard_error**2).mean(axis=0))).all()
        assert (error[:3] < (0.6 if form == "m2" else 0.4)).all()

    def test_sparse_responses(self, form):
        *_, scores = planted(form, 60, 300)
        rng = np.random.default_rng(1)
        some = rng.random(scores.shape) < 0.1
        some[rng.integers(60, size=300), np.arange(300), 0] = True
        fit = fit_multimodal(np.where(some, scores, np.nan), form=form, bounds=(4.0,))
        assert fit.converged
        assert fit.loss <= min(fit.history) + 1e-6
        assert roc_auc(scores[~some], fit.probability()[~some]) > 0.75

    @pytest.mark.slow
    def test_parts_stay_in_bounds_and_the_same_seed_gives_the_same_fit(self, form):
        *_, scores = planted(form, 20, 40)
        fits = [fit_multimodal(scores, form=form, bounds=(2.0, 4.0), training=QUICK, seed=3) for _ in range(2)]
        np.testing.assert_array_equal(fits[0].items.discrimination, fits[1].items.discrimination)
        np.testing.assert_array_equal(fits[0].abilities.theta, fits[1].abilities.theta)
        assert fits[0].tried == fits[1].tried
        assert set(fits[0].tried) == {2.0, 4.0}
        assert fits[0].auc == max(fits[0].tried.values())
        for x in (fits[0].items.discrimination, fits[0].items.difficulty, fits[0].abilities.theta):
            assert ((x > 0) & (x < fits[0].items.bound)).all()
        other = fit_multimodal(scores, form=form, bounds=(4.0,), training=QUICK, seed=4)
        assert not np.array_equal(other.items.discrimination, fits[0].items.discrimination)

    @pytest.mark.slow
    def test_the_gradient_is_that_of_the_loss(self, form):
        """One long descent without a prior to speak of ends where no item's likelihood rises."""
        *_, scores = planted(form, 40, 12)
        long = Training(steps=1500, patience=10**6, held_out=0.0, rate=0.03, item_spread=50.0, ability_spread=50.0)
        fit = fit_multimodal(scores, form=form, bounds=(4.0,), training=long)
        assert fit.loss < fit.history[0]

        def loss(a, b):
            moved = MultimodalItems(fit.items.modalities, form, 4.0, a, b)
            p = np.clip(moved.probability(fit.abilities.theta), 1e-9, 1 - 1e-9)
            return -(scores * np.log(p) + (1 - scores) * np.log1p(-p)).sum()

        at = loss(fit.items.discrimination, fit.items.difficulty)
        worse = 0
        rng = np.random.default_rng(0)
        for _ in range(20):
            share = [x / 4.0 for x in (fit.items.discrimination, fit.items.difficulty)]
            moved = [4.0 / (1 + (1 - x) / x * np.exp(-0.3 * rng.normal(size=x.shape))) for x in share]
            worse += loss(*moved) > at
        assert worse >= 19


def test_three_modalities():
    modalities = Modalities(("image", "audio", "text"))
    _, _, cross, scores = planted("m3", 60, 150, modalities=modalities)
    fit = fit_multimodal(scores, modalities=modalities, form="m3", bounds=(4.0,), training=QUICK)
    assert fit.items.slopes.shape == (150, 8, 8)
    assert roc_auc(cross, fit.items.cross_gain(fit.abilities.theta)) > 0.85
    assert len(fit.identifiability().reliability) == 8


@pytest.mark.slow
def test_what_cannot_be_told_is_said():
    """Without the formats of one modality, image and base are one ability."""
    modalities = Modalities(("image", "text"), ("image+text", "image"))
    *_, full = planted("m3", 60, 200)
    fit = fit_multimodal(full[:, :, :2], modalities=modalities, form="m3", bounds=(4.0,), training=QUICK)
    whole = fit_multimodal(full, form="m3", bounds=(4.0,), training=QUICK).identifiability()
    missing = fit.identifiability()
    assert missing.condition > 3 * whole.condition
    assert missing.reliability[0] < whole.reliability[0]
    assert {"ability", "discrimination", "difficulty"} == set(whole.at_bound)


def test_fractions_and_constant_items_stay_finite():
    scores = np.random.default_rng(0).random((6, 10, 4))
    scores[:, 0], scores[:, 1] = 1.0, 0.0
    fit = fit_multimodal(scores, bounds=(2.0,), training=Training(steps=60))
    assert np.isfinite(fit.probability()).all()
    assert np.isfinite(fit.abilities.covariance).all()


def test_the_paper_s_fit_is_the_likelihood_alone():
    *_, scores = planted("m3", 12, 40)
    scores[:, 0] = 1.0  # nothing but a prior keeps an item that all solve from the bounds
    short = replace(PAPER, steps=300, patience=100, rate=0.1)
    alone, with_priors = (
        fit_multimodal(scores, form="m3", bounds=(4.0,), training=training)
        for training in (short, replace(short, item_spread=1.0, ability_spread=1.0))
    )
    log_likelihood = [
        np.log(np.where(scores == 1, p, 1 - p)).sum() for p in (alone.probability(), with_priors.probability())
    ]
    assert log_likelihood[0] > log_likelihood[1]
    assert alone.probability()[:, 0].mean() > with_priors.probability()[:, 0].mean()
    assert np.isfinite(alone.abilities.covariance).all()
    assert np.isfinite(alone.covariance).all()


def test_roc_auc():
    assert roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) == 0.75
    assert roc_auc([0, 1], [0.5, 0.5]) == 0.5
    assert np.isnan(roc_auc([1, 1], [0.1, 0.2]))


class TestQuality:
    def test_shortcuts_and_nonsense_come_last(self):
        rng = np.random.default_rng(0)
        kinds = np.repeat([0, 1, 2], 60)
        # image and text, image, text, none: genuine, solved by the text alone, and without a right answer
        level = np.array([[0.7, 0.2, 0.3, 0.2], [0.6, 0.2, 0.65, 0.2], [0.15, 0.2, 0.2, 0.2]])
        skill = rng.normal(0, 0.1, (20, 1, 1))
        scores = (rng.random((20, 180, 4)) < level[kinds] + skill).astype(float)
        quality = item_quality(scores, starts=2)
        assert roc_auc(kinds == 0, quality.value) > 0.97
        assert quality.genuine[kinds == 0].mean() > 0.9
        assert quality.genuine[kinds > 0].mean() < 0.2

    def test_worth_always_leaves_as_many_as_needed(self):
        *_, scores = planted("m2", 10, 40)
        quality = item_quality(scores, starts=1)
        assert quality.worth().sum() == max(1, quality.genuine.sum())
        assert quality.worth(40).sum() == 40
        assert quality.worth(39).sum() >= 39

    def test_sparse_responses_are_rated(self):
        *_, scores = planted("m3", 24, 100)
        some = np.random.default_rng(0).random(scores.shape) < 0.3
        some[0] = True
        assert np.isfinite(item_quality(np.where(some, scores, np.nan), starts=1).value).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("form", ["m2", "m3"])
def test_cuda_agrees_with_the_cpu(form):
    *_, scores = planted(form, 60, 200)
    cpu, gpu = (
        fit_multimodal(scores, form=form, bounds=(4.0,), training=Training(steps=200, patience=100), device=device)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(gpu.probability(), cpu.probability(), atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["mmmu"])
def test_public_responses_fit_in_time(data):
    path = DATA / f"normal_{data}.csv.gz"
    if not path.is_file():
        pytest.skip(f"the public response matrices are not there: {path} (ADAPTIVE_EVAL_DATA names their folder)")
    prefixes = ("", "<no_question>", "<no_image>", "<no_info>")
    with gzip.open(path, "rt", encoding="utf-8-sig") as file:
        head, *rows = (line.rstrip("\n").split(",") for line in file)
    place = {column: k for k, column in enumerate(head)}
    items = [column for column in head[1:] if not column.startswith("<")]
    columns = [[place[prefix + item] for prefix in prefixes] for item in items]
    scores = np.array(rows, dtype=object)[:, columns].astype(float)
    start = time.process_time()
    fit = fit_multimodal(scores, form="m2", bounds=(8.0,))
    assert time.process_time() - start < 24
    assert fit.auc > 0.75


@pytest.mark.parametrize("form", ["m2", "m3"])
class TestMarginal:
    def test_gradient(self, form):
        theta, items, _, scores = planted(form, 12, 9)
        rng = np.random.default_rng(4)
        scores[rng.random(scores.shape) < 0.2] = np.nan
        marginal = _Marginal(scores, items, theta)
        at = rng.normal(0, 0.5, len(marginal.start))
        _, gradient = marginal.loss(at)
        for place in (*range(0, 48, 5), *rng.integers(48, len(at), 6)):
            step = np.zeros(len(at))
            step[place] = 1e-4
            slope = (marginal.loss(at + step)[0] - marginal.loss(at - step)[0]) / 2e-4
            assert slope == pytest.approx(gradient[place], abs=2e-4, rel=1e-3)

    @pytest.mark.slow
    def test_the_items_are_integrated_out(self, form):
        """A difference of two losses, against importance sampling of the same integral."""
        theta, items, _, scores = planted(form, 60, 30)
        marginal = _Marginal(scores, items, theta)
        rng = np.random.default_rng(0)

        def sampled(searched):
            point = marginal._point(torch.tensor(searched))
            mean, whitening, middle, u = (x.numpy() for x in marginal._parts(point))
            marginal.loss(searched)
            basis = marginal._basis(torch.tensor(u))
            known, by, _ = marginal._coefficients(marginal.x)
            hessian = marginal._expected(torch.sigmoid(known @ basis.T), by, basis)
            hessian = hessian + torch.tensor(whitening.T @ whitening)
            root = torch.linalg.inv(torch.linalg.cholesky(hessian)).transpose(1, 2).numpy()
            log = []
            for _ in range(2000):
                noise = rng.normal(size=(len(items), len(mean), 1))
                x = marginal.x.numpy() + (root @ noise)[..., 0]
                z = (marginal._coefficients(torch.tensor(x))[0] @ basis.T).numpy()
                likely = (np.nan_to_num(scores.transpose(1, 2, 0)) * z - np.logaddexp(0, z)).sum(axis=(1, 2))
                prior = -0.5 * (((x - mean) @ whitening.T) ** 2).sum(axis=1) + np.log(np.diag(whitening)).sum()
                log.append(likely + prior + 0.5 * (noise**2).sum(axis=(1, 2)))
            best = np.max(log, axis=0)
            integral = np.log(np.exp(log - best).mean(axis=0)) + best - 0.5 * torch.linalg.slogdet(hessian)[1].numpy()
            learned = 5.0 * (whitening**2).sum() - 10.0 * np.log(np.diag(whitening)).sum()
            return -integral.sum() + 0.5 * ((u - middle) ** 2).sum() + learned

        start = np.zeros(len(marginal.start))
        away = start.copy()
        away[48:] = rng.normal(0, 3, len(start) - 48)
        ours = marginal.loss(away)[0] - marginal.loss(start)[0]
        assert ours > 100
        assert sampled(away) - sampled(start) == pytest.approx(ours, rel=0.02)

    @pytest.mark.slow
    def test_missing_answers_and_order_of_subjects(self, form):
        theta, items, _, scores = planted(form, 20, 40)
        scores[np.random.default_rng(1).random(scores.shape) < 0.3] = np.nan
        found = standing(scores, items, theta)
        other = standing(scores[::-1], items, theta[::-1])
        assert np.isfinite(found.standard_error).all()
        assert np.allclose(other.value[::-1], found.value, atol=0.1)
        assert np.allclose(other.standard_error[::-1], found.standard_error, rtol=0.1)
        whole = standing(planted(form, 20, 40)[3], items, theta)
        assert whole.standard_error.mean() < found.standard_error.mean()
