"""M2 and M3 in numbers: formats and parts, signs, information, rank-one updates, abilities, interviews in formats."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.irt.multimodal import (
    CumulativeInformation,
    Modalities,
    MultimodalItems,
    Population,
    estimate_abilities,
)
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview

FORMS = ("m2", "m3")


def made(form, n=40, seed=0, bound=4.0, modalities=None):
    rng = np.random.default_rng(seed)
    modalities = modalities or Modalities()
    shape = (n, len(modalities.parts))
    difficulty = bound * rng.uniform(0.02, 0.3, shape)
    difficulty[:, 0] = bound * rng.uniform(0.3, 0.9, n)
    return MultimodalItems(modalities, form, bound, bound * rng.uniform(0.05, 0.4, shape), difficulty)


def logits(items, theta):
    return np.einsum("nfk,k->nf", items.slopes, theta) + items.intercepts


def middle(items, spread=1.0):
    parts = len(items.modalities.parts)
    return Population(np.full(parts, -1.0), spread**2 * np.eye(parts), items.bound)


class TestModalities:
    def test_image_and_text_have_four_formats(self):
        two = Modalities()
        assert two.formats == ("image+text", "image", "text", "none")
        assert two.parts == ("base", "image", "text", "cross")
        np.testing.assert_array_equal(two.design, [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0]])
        assert two.fullest == 0

    def test_three_modalities_are_data(self):
        three = Modalities(("image", "audio", "text"))
        assert len(three.formats) == len(three.parts) == 8
        assert three.parts[4:] == ("image+audio", "image+text", "audio+text", "image+audio+text")
        row = three.design[three.formats.index("image+text")]
        assert {p for p, on in zip(three.parts, row, strict=True) if on} == {"base", "image", "text", "image+text"}

    def test_formats_may_be_fewer_and_in_any_order(self):
        some = Modalities(("image", "text"), ("text", "image+text"))
        np.testing.assert_array_equal(some.design, [[1, 0, 1, 0], [1, 1, 1, 1]])
        assert some.fullest == 1

    @pytest.mark.parametrize(
        ("names", "formats"),
        [
            ((), ()),
            (("image", "image"), ()),
            (("none",), ()),
            (("a+b", "c"), ()),
            (("a", "b"), ("b+a",)),
            (("a",), ("a", "a")),
        ],
    )
    def test_names_that_cannot_be(self, names, formats):
        with pytest.raises(EstimationError):
            Modalities(names, formats)


class TestItems:
    def test_the_two_forms_by_hand(self):
        a, b = np.array([[0.5, 0.2, 0.3, 0.4]]), np.array([[2.0, 0.1, 0.6, 0.9]])
        theta = np.array([[1.0, 0.7, 0.2, 0.5]])
        expected = {
            # discrimination(s) (ability(s) - difficulty(s)), in the formats' order
            "m2": [1.4 * (2.4 - 0.4), 0.7 * (1.7 - 1.9), 0.8 * (1.2 - 1.4), 0.5 * (1.0 - 2.0)],
            "m3": [0.5 + 0.14 + 0.06 + 0.2 - 0.4, 0.5 + 0.14 - 1.9, 0.5 + 0.06 - 1.4, 0.5 - 2.0],
        }
        form: Literal["m2", "m3"]
        for form in ("m2", "m3"):
            z = expected[form]
            p = MultimodalItems(Modalities(), form, 4.0, a, b).probability(theta)[0, 0]
            np.testing.assert_allclose(np.log(p / (1 - p)), z, rtol=1e-9)

    @pytest.mark.parametrize("form", FORMS)
    @given(seed=st.integers(0, 10_000), part=st.integers(0, 3))
    def test_signs_every_ability_helps_and_every_modality_lowers_difficulty(self, form, seed, part):
        items = made(form, 10, seed)
        theta = np.random.default_rng(seed).uniform(0.1, 3.0, 4)
        gain = logits(items, theta + 0.5 * (np.arange(4) == part)) - logits(items, theta)
        counts = items.modalities.design[:, part] > 0
        assert (gain[:, counts] > 0).all()
        np.testing.assert_allclose(gain[:, ~counts], 0.0, atol=1e-12)
        harder = items.difficulty.copy()
        harder[:, part] = np.minimum(harder[:, part] + 0.3, items.bound)
        moved = MultimodalItems(items.modalities, form, 4.0, items.discrimination, harder)
        change = (logits(moved, theta) - logits(items, theta))[:, counts]
        assert (change < 0).all() if part == 0 else (change > 0).all()

    @pytest.mark.parametrize("form", FORMS)
    def test_slopes_are_the_derivative_of_the_logit(self, form):
        items, theta = made(form, 5), np.array([[0.8, 1.1, 0.3, 0.9]])
        for k in range(4):
            up, down = theta.copy(), theta.copy()
            up[0, k] += 1e-5
            down[0, k] -= 1e-5
            z = [np.log(p / (1 - p)) for p in (items.probability(up)[0], items.probability(down)[0])]
            np.testing.assert_allclose((z[0] - z[1]) / 2e-5, items.slopes[:, :, k], atol=1e-4)

    def test_m2_information_is_equation_9(self):
        items, theta = made("m2"), np.array([[0.8, 1.1, 0.3, 0.9]])
        p = items.probability(theta)
        whole = items.discrimination @ items.modalities.design.T
        np.testing.assert_allclose(items.information(theta), p * (1 - p) * whole**2)

    def test_an_item_that_needs_both_gains_from_both(self):
        a = np.full((2, 4), 0.5)
        items = MultimodalItems(Modalities(), "m3", 4.0, a, np.array([[3.0, 0.1, 0.1, 2.5], [3.0, 0.1, 2.5, 0.1]]))
        gain = items.cross_gain(np.full((1, 4), 0.8))
        assert gain[0] > 0.4
        assert gain[1] < 0.25

    @pytest.mark.parametrize("value", [-0.1, 4.1, np.nan])
    def test_a_part_outside_its_bounds(self, value):
        parts = np.ones((2, 4))
        bad = parts.copy()
        bad[1, 2] = value
        with pytest.raises(EstimationError, match=r"in \[0, 4\]"):
            MultimodalItems(Modalities(), "m2", 4.0, parts, bad)


class TestInformation:
    @given(seed=st.integers(0, 10_000), count=st.integers(1, 30))
    def test_rank_one_updates_are_the_determinant(self, seed, count):
        rng = np.random.default_rng(seed)
        A, w = rng.normal(size=(count, 4)), rng.uniform(0, 0.25, count)
        information = CumulativeInformation.start(np.eye(4) * 2.0)
        gains = []
        for k in range(count):
            gains.append(float(information.gain(w[k], A[k])))
            information.add(w[[k]], A[[k]])
        direct = 2.0 * np.eye(4) + (A * w[:, None]).T @ A
        np.testing.assert_allclose(information.log_determinant, np.linalg.slogdet(direct)[1], atol=1e-9)
        np.testing.assert_allclose(information.inverse, np.linalg.inv(direct), atol=1e-9)
        assert sum(gains) == pytest.approx(information.log_determinant - np.linalg.slogdet(2.0 * np.eye(4))[1])

    def test_all_formats_together(self):
        rng = np.random.default_rng(0)
        A, w = rng.normal(size=(7, 4, 4)), rng.uniform(0, 0.25, (7, 4))
        information = CumulativeInformation.start(np.eye(4))
        for value, slopes, weights in zip(information.joint_gain(w, A), A, w, strict=True):
            assert value == pytest.approx(np.linalg.slogdet(np.eye(4) + (slopes * weights[:, None]).T @ slopes)[1])


class TestAbilities:
    @pytest.mark.parametrize("form", FORMS)
    def test_planted_abilities_lie_in_their_intervals(self, form):
        items = made(form, 600)
        population = middle(items, 0.8)
        rng = np.random.default_rng(1)
        theta = 4.0 / (1.0 + np.exp(-rng.normal(-1.0, 0.8, (200, 4))))
        p = items.probability(theta)
        scores = (rng.random(p.shape) < p).astype(float).reshape(200, -1)
        found = estimate_abilities(scores, items.slopes.reshape(-1, 4), items.intercepts.ravel(), population)
        assert found.converged.all()
        low, high = found.interval(0.95)
        assert (low > 0).all()
        assert (high < 4).all()
        inside = ((low <= theta) & (theta <= high)).mean()
        assert 0.93 <= inside <= 0.97

    def test_the_mode_is_where_the_posterior_has_no_slope(self):
        items = made("m3", 30)
        population = middle(items)
        scores = np.random.default_rng(2).integers(0, 2, (3, 120)).astype(float)
        slopes, intercepts = items.slopes.reshape(-1, 4), items.intercepts.ravel()
        found = estimate_abilities(scores, slopes, intercepts, population)

        def height(u):
            z = (4.0 / (1.0 + np.exp(-u))) @ slopes.T + intercepts
            return (scores * z - np.logaddexp(0, z)).sum(axis=1) - 0.5 * ((u + 1.0) ** 2).sum(axis=1)

        for k in range(4):
            step = np.zeros(4)
            step[k] = 1e-4
            assert np.abs(height(found.u + step) - height(found.u - step)).max() / 2e-4 < 1e-3

    def test_no_answer_leaves_the_population(self):
        items = made("m2", 3)
        population = middle(items)
        unscored = np.full((1, 12), np.nan)
        found = estimate_abilities(unscored, items.slopes.reshape(-1, 4), items.intercepts.ravel(), population)
        np.testing.assert_allclose(found.theta[0], population.theta)
        np.testing.assert_allclose(found.spread[0], population.covariance)

    def test_extreme_answers_stay_in_bounds(self):
        items = made("m2", 50)
        for score in (0.0, 1.0):
            scores = np.full((1, 200), score)
            flat = items.slopes.reshape(-1, 4), items.intercepts.ravel()
            found = estimate_abilities(scores, *flat, middle(items))
            assert found.converged.all()
            assert ((found.theta > 0) & (found.theta < 4)).all()

    def test_scores_outside_their_range(self):
        items = made("m2", 1)
        with pytest.raises(EstimationError):
            estimate_abilities([[2.0] * 4], items.slopes[0], items.intercepts[0], middle(items))


class TestInterview:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("whole", [True, False])
    @pytest.mark.parametrize("adaptive", [True, False])
    def test_no_pair_is_asked_twice_and_calls_are_counted(self, form, whole, adaptive):
        items = made(form, 12)
        talk = FormatInterview(items, middle(items), whole=whole, adaptive=adaptive)
        rng = np.random.default_rng(0)
        while len(pairs := talk.ask(41 - talk.calls)) and talk.calls <= 41:
            talk.tell(rng.integers(0, 2, len(pairs)))
            if talk.calls == 41:
                break
        assert talk.calls == 41
        assert len(set(talk.pairs.tolist())) == 41

    def test_a_spent_bank_gives_nothing_more(self):
        items = made("m3", 2)
        talk = FormatInterview(items, middle(items), worth=[1.0, 0.0])
        for _ in range(4):
            talk.tell([1.0] * len(talk.ask()))
        assert len(talk.ask()) == 0
        assert sorted(talk.pairs.tolist()) == [0, 1, 2, 3]

    def test_d_optimal_choices_are_those_of_the_determinant(self):
        items = made("m3", 15)
        population = middle(items)
        talk = FormatInterview(items, population, adaptive=False)
        p = items.probability(population.theta[None])[0].ravel()
        A, information, left = items.slopes.reshape(-1, 4), population.precision(), set(range(60))
        for _ in range(10):
            grown = {i: np.linalg.slogdet(information + p[i] * (1 - p[i]) * np.outer(A[i], A[i]))[1] for i in left}
            best = max(grown, key=grown.get)
            assert talk.ask().tolist() == [best]
            talk.tell([1.0])
            information = information + p[best] * (1 - p[best]) * np.outer(A[best], A[best])
            left.remove(best)
            assert talk.log_determinant == pytest.approx(np.linalg.slogdet(information)[1])

    def test_fisher_takes_the_pairs_of_most_information(self):
        items = made("m2", 15)
        population = middle(items)
        talk = FormatInterview(items, population, adaptive=False)
        value = items.information(population.theta[None])[0].ravel()
        for _ in range(8):
            talk.tell([0.0] * len(talk.ask()))
        assert talk.pairs.tolist() == np.argsort(-value)[:8].tolist()

    def test_abilities_follow_the_answers(self):
        items = made("m2", 60)
        ends = []
        for score in (0.0, 1.0):
            talk = FormatInterview(items, middle(items))
            for _ in range(30):
                talk.tell([score] * len(talk.ask()))
            ends.append(talk.abilities.theta[0].sum())
        assert ends[1] > ends[0] + 1.0
