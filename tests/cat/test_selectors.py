"""The selectors: their criteria by brute force, and whole interviews led by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selection import Selector, View, propose
from pytest_adaptive_eval.cat.selectors import (
    Cluster,
    FixedForm,
    MaximumInformation,
    NearestDifficulty,
    Stratified,
    Variance,
)
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.prediction import Predictor
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

ALL = (Variance(), NearestDifficulty(), Stratified(), FixedForm((5, 3, 8)), Cluster())


def make_bank(n, *, seed=0, guess=0.0, dimensions=1, categories=()):
    """A bank of which one item in seven discriminates negatively."""
    rng = np.random.default_rng(seed)
    slopes = rng.lognormal(0, 0.3, (n, dimensions))
    slopes[::7, 0] *= -0.5
    ids = [f"i{i}" for i in range(n)]
    return ItemBank(
        "b", ids, [Item(i) for i in ids], slopes, rng.normal(size=n), np.full(n, guess), categories=categories
    )


def make_view(bank, *, subjects=3, asked=0, seed=1):
    """Subjects of various abilities, with correlated covariances, each asked items of its own."""
    rng, D = np.random.default_rng(seed), bank.dimensions
    theta = rng.normal(size=(subjects, D))
    root = rng.normal(size=(subjects, D, D)) * 0.4
    covariance = root @ root.swapaxes(1, 2) + 0.05 * np.eye(D)
    p = irt.probability(theta, bank.discrimination, bank.intercept, bank.asymptote)
    items = np.stack([rng.permutation(len(bank))[:asked] for _ in range(subjects)]).reshape(subjects, asked)
    return View(bank, theta, covariance, p, items)


def interview(bank, selector, scores, *, batch=1, floor=0.0, budget="100%", seed=1):
    session = Session(bank, Policy(selector, floor=floor, budget=budget, batch=batch), seed=seed, subjects=len(scores))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session


def answers(subjects, n, seed=2):
    return (np.random.default_rng(seed).random((subjects, n)) < 0.6).astype(float)


@pytest.mark.parametrize("selector", ALL, ids=lambda s: s.name)
@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_conformance(selector, guess, dimensions):
    assert isinstance(selector, Selector)
    for asked in (0, 4):
        view = make_view(make_bank(30, guess=guess, dimensions=dimensions), asked=asked)
        before = view.probability.copy()
        criterion = selector.criterion(view)
        assert criterion.shape == (3, 30)
        assert (criterion >= 0).all()
        assert np.isfinite(criterion).all()
        criterion[:] = -7  # fresh: what is done to it reaches nobody
        np.testing.assert_array_equal(view.probability, before)
        assert (selector.criterion(view) >= 0).all()
        # every subject is rated by itself
        for s in range(3):
            alone = View(view.bank, *(x[s : s + 1] for x in (view.theta, view.covariance, before, view.asked)))
            np.testing.assert_allclose(selector.criterion(alone)[0], selector.criterion(view)[s], rtol=1e-10)


@pytest.mark.parametrize("selector", ALL, ids=lambda s: s.name)
@pytest.mark.parametrize(("floor", "batch"), [(0.0, 1), (0.3, 1), (0.0, 7)])
def test_no_item_is_asked_twice_and_all_can_be(selector, floor, batch):
    bank = make_bank(25, categories=[f"c{i % 4}" for i in range(25)])
    session = interview(bank, selector, answers(3, 25), floor=floor, batch=batch)
    for s in range(3):
        assert sorted(session.log(s).items) == list(range(25))


# Variance


def variance_drops(view, s):
    """By how much each item, asked next, would lower the variance of the expected accuracy of a subject."""
    bank, V = view.bank, view.covariance[s]
    A, d, c = bank.discrimination, bank.intercept, bank.guess

    def accuracy(theta):
        return (c + (1 - c) / (1 + np.exp(-(A @ theta + d)))).mean()

    step = 1e-5 * np.eye(bank.dimensions)
    g = np.array([(accuracy(view.theta[s] + h) - accuracy(view.theta[s] - h)) / 2e-5 for h in step])
    p = view.probability[s]
    drops = np.empty(len(bank))
    for i in range(len(bank)):
        steepness = (p[i] - c[i]) * (1 - p[i]) / (1 - c[i])
        fisher = steepness**2 / (p[i] * (1 - p[i])) * np.outer(A[i], A[i])
        after = np.linalg.inv(np.linalg.inv(V) + fisher)
        drops[i] = g @ V @ g - g @ after @ g
    return drops


@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_variance_is_the_drop_by_one_more_item(dimensions, guess):
    view = make_view(make_bank(20, guess=guess, dimensions=dimensions), asked=3)
    criterion = Variance(decay=0.0, least=1.0).criterion(view)
    for s in range(3):
        expected = variance_drops(view, s)
        assert (expected > 0).all()
        expected[view.asked[s]] = 0.0
        np.testing.assert_allclose(criterion[s], expected / expected.max(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("asked", "power"), [(0, 200.0), (1, 100.0), (19, 10.0), (99, 2.0), (150, 2.0)])
def test_variance_spreads_out_as_the_interview_goes_on(asked, power):
    view = make_view(make_bank(200), asked=asked)
    plain = Variance(decay=0.0, least=1.0).criterion(view)
    np.testing.assert_allclose(Variance().criterion(view), plain**power, rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(Variance(40.0, 3.0).criterion(view), plain ** max(3.0, 40 / (asked + 1)), rtol=1e-8)


def test_variance_has_nothing_to_say_when_all_is_asked():
    view = make_view(make_bank(6), asked=6)
    np.testing.assert_array_equal(Variance().criterion(view), np.zeros((3, 6)))


def test_variance_asks_nearly_the_best_item_first_and_others_later():
    bank, scores = make_bank(300), answers(40, 300)
    first, later = set(), set()
    session = interview(bank, Variance(), scores, budget=60)
    for s in range(40):
        first.add(session.log(s).items[0])
        later.add(session.log(s).items[59])
    # all begin at the same ability, so that the first draw is from the same few best items
    best = np.argsort(-variance_drops(make_view_at_prior(bank), 0))[:5]
    assert first <= set(best.tolist())
    assert len(later) > 20


def make_view_at_prior(bank):
    p = irt.probability(np.zeros((1, 1)), bank.discrimination, bank.intercept, bank.asymptote)
    return View(bank, np.zeros((1, 1)), np.ones((1, 1, 1)), p, np.empty((1, 0), dtype=np.int64))


# Nearest difficulty


def test_the_nearest_difficulty_is_asked():
    bank = make_bank(40, seed=3)
    b = -bank.intercept / bank.discrimination[:, 0]
    view = make_view(bank, subjects=8)
    np.testing.assert_array_equal(
        NearestDifficulty().criterion(view).argmax(axis=1), np.abs(view.theta - b).argmin(axis=1)
    )
    session = interview(bank, NearestDifficulty(), answers(4, 40), budget=20)
    for s in range(4):
        theta, left = 0.0, np.ones(40, dtype=bool)
        for t, item in enumerate(session.log(s).items):
            assert item == np.where(left, np.abs(theta - b), np.inf).argmin()
            theta, left[item] = session.trace[s, t, 0], False


def test_items_without_a_difficulty_come_last():
    ids = ["x", "y", "z"]
    bank = ItemBank("b", ids, [Item(i) for i in ids], np.array([0.0, 1.0, 1e-300]), np.array([0.0, 50.0, 9.0]))
    criterion = NearestDifficulty().criterion(make_view(bank))
    assert (criterion[:, 0] == 0).all()
    assert (criterion[:, 1] > criterion[:, 2]).all()


# Stratified


@pytest.mark.slow
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_counts_of_categories_differ_by_one_while_items_last(categories, seed):
    bank = make_bank(len(categories), categories=categories)
    session = interview(bank, Stratified(), answers(2, len(categories)), seed=seed)
    names = np.array(categories)
    sizes = {name: (names == name).sum() for name in set(categories)}
    for s in range(2):
        asked = names[session.log(s).items]
        for t in range(1, len(asked) + 1):
            counts = {name: int((asked[:t] == name).sum()) for name in sizes}
            lasting = [counts[name] for name in sizes if counts[name] < sizes[name]]
            assert max(counts.values()) - min(lasting, default=max(counts.values())) <= 1


@pytest.mark.parametrize("batch", [2, 7, 30])
def test_batches_do_not_upset_the_counts_of_categories(batch):
    names = np.repeat(list("abcde"), 12)
    session = Session(
        make_bank(60, categories=names.tolist()),
        Policy(Stratified(), 0.0, budget=33, batch=batch),
        subjects=3,
    )
    asked = np.empty((3, 0), dtype=np.int64)
    while (proposal := session.ask()) is not None:
        asked = np.hstack([asked, proposal.items])
        counts = [np.unique(names[row], return_counts=True)[1] for row in asked]
        assert all(count.max() - (count.min() if len(count) == 5 else 0) <= 1 for count in counts)
        session.tell(np.ones(proposal.items.shape))
    assert asked.shape == (3, 33)


def test_within_the_least_asked_category_draws_are_uniform():
    bank = make_bank(6, categories=["a", "a", "a", "b", "b", "c"])
    view = make_view(bank, subjects=1)
    asked = View(bank, view.theta, view.covariance, view.probability, np.array([[0, 5]]))
    np.testing.assert_array_equal(Stratified().criterion(view)[0], np.ones(6))
    # a has one asked of three, c is used up, and b has none asked
    np.testing.assert_array_equal(Stratified().criterion(asked)[0], [0, 0, 0, 1, 1, 0])
    asked = View(bank, view.theta, view.covariance, view.probability, np.array([[0, 5, 3, 4]]))
    np.testing.assert_array_equal(Stratified().criterion(asked)[0], [1, 1, 1, 0, 0, 0])


def test_a_bank_without_categories_or_parameters_is_one_stratum():
    bank = ItemBank.uncalibrated("u", [Item(str(i)) for i in range(12)])
    session = interview(bank, Stratified(), answers(3, 12))
    assert session.log(0).items.tolist() != session.log(1).items.tolist()
    np.testing.assert_allclose(session.log(0).propensities, 1 / np.arange(12, 0, -1))


# Clusters


def grouped_bank(sizes=(12, 8, 4), *, predictor=False):
    """A bank of tight groups of difficulties far apart; with `predictor` of equal difficulties and other residuals."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    n, noise = len(group), np.random.default_rng(4).normal(size=len(group)) * 0.02
    residuals = np.stack([(group == k) * 0.3 + noise for k in range(len(sizes))])
    bank = ItemBank(
        "g", [str(i) for i in range(n)], (), np.ones((n, 1)), np.zeros(n) if predictor else 3.0 * group + noise
    )
    return group, replace(bank, predictor=Predictor(residuals, np.zeros(n), np.arange(n)) if predictor else None)


@pytest.mark.parametrize("predictor", [False, True])
def test_clusters_give_the_middle_item_of_each_group_and_large_groups_first(predictor):
    group, bank = grouped_bank(predictor=predictor)
    session = interview(bank, Cluster(), answers(2, 24), budget=3)
    items = session.log(0).items
    assert group[items].tolist() == [0, 1, 2]
    assert session.log(1).items.tolist() == items.tolist()
    position = bank.predictor.residuals.T if predictor else bank.intercept[:, None]
    for k, item in enumerate(items):
        members = np.flatnonzero(group == k)
        gap = np.linalg.norm(position[members] - position[members].mean(axis=0), axis=1)
        assert gap[members == item] <= 1.5 * gap.min() + 1e-3


def test_there_are_as_many_clusters_as_the_budget_has_items():
    group, bank = grouped_bank()
    two = interview(bank, Cluster(), answers(1, 24), budget=2).log().items
    three = interview(bank, Cluster(), answers(1, 24), budget=3).log().items
    assert len(set(group[two])) == 2
    assert set(two) - set(three)  # other items, not the first of the longer form
    assert not Policy(Cluster(), 0.0).draws_ahead


def test_beyond_the_limit_of_clusters_their_second_items_follow(monkeypatch):
    monkeypatch.setattr("pytest_adaptive_eval.cat.selectors.CLUSTERS", 3)
    group, bank = grouped_bank()
    items = interview(bank, Cluster(), answers(1, 24), budget=9).log().items
    assert group[items].tolist() == [0, 1, 2] * 3


def test_a_large_bank_is_clustered_by_a_sample_and_asked_in_full(monkeypatch):
    monkeypatch.setattr("pytest_adaptive_eval.cat.selectors.SAMPLE", 10)
    _, bank = grouped_bank()
    items = interview(bank, Cluster(), answers(1, 24)).log().items
    assert sorted(items) == list(range(24))
    rest = items[10:].tolist()
    assert rest == sorted(rest)


# Fixed form


def test_a_fixed_form_is_the_same_for_all():
    scores = answers(3, 10)
    session = interview(make_bank(10), FixedForm((7, 2, 9)), scores)
    for s in range(3):
        assert session.log(s).items.tolist() == [7, 2, 9, 0, 1, 3, 4, 5, 6, 8]
        np.testing.assert_array_equal(session.log(s).scores, scores[s, session.log(s).items])
    again = interview(make_bank(10), FixedForm((7, 2, 9)), 1 - scores, batch=4, seed=9)
    assert again.log(2).items.tolist() == session.log(0).items.tolist()


@pytest.mark.parametrize("order", [(), (4,), tuple(range(9, -1, -1))])
def test_forms_of_any_length(order):
    session = interview(make_bank(10), FixedForm(order), answers(1, 10))
    assert session.log().items.tolist() == [*order, *(i for i in range(10) if i not in order)]


# The highest ratings without all of them


def big_bank(n=20_000, *, guess=0.0, alike=False, seed=3):
    rng = np.random.default_rng(seed)
    ids = [f"i{i}" for i in range(n)]
    slopes = np.full(n, 1.3) if alike else rng.lognormal(0.0, 0.4, n) * rng.choice([-1.0, 1.0], n, p=[0.02, 0.98])
    return ItemBank("b", ids, [Item(i) for i in ids], slopes, rng.normal(size=n) * 2, rng.random(n) * guess)


@pytest.mark.fast_rows(3)
@pytest.mark.parametrize("guess", [0.0, 0.4])
@pytest.mark.parametrize("wanted", [1, 7])
@pytest.mark.parametrize("asked", [0, 30])
def test_the_highest_information_is_found_without_rating_the_flat_items(guess, wanted, asked):
    bank, selector, found = big_bank(guess=guess), MaximumInformation(), 0
    for seed in range(5):
        view = make_view(bank, asked=asked, seed=seed)
        order = np.argsort(-selector.criterion(view), axis=1, kind="stable")
        # those asked were the best ones, as in an interview
        lazy = View(bank, view.theta, view.covariance, None, order[:, :asked])
        got = selector.highest(lazy, wanted)
        assert lazy.predictions is None  # nothing was computed for the whole bank
        if got is not None:
            found += 1
            np.testing.assert_array_equal(got[0], order[:, asked : asked + wanted])
            np.testing.assert_array_equal(got[1], np.take_along_axis(view.probability, got[0], axis=1))
    assert found >= 2  # not where somebody stands far off from the steep items


def test_all_items_are_rated_where_all_may_be_best_and_where_predictions_are_not_the_banks():
    bank = big_bank(alike=True)
    view = make_view(bank, asked=3)
    assert MaximumInformation().highest(View(bank, view.theta, view.covariance, None, view.asked), 2) is None
    bank = big_bank()
    view = make_view(bank, asked=3)
    assert MaximumInformation().highest(view, 2) is None
    assert MaximumInformation().highest(View(bank, view.theta, view.covariance, None, view.asked), 2) is not None


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_an_interview_by_maximum_information_asks_what_full_ratings_ask(floor):
    bank = big_bank(3000)
    scores = answers(2, len(bank))
    session = Session(bank, Policy(MaximumInformation(), floor=floor, budget=40, batch=3), seed=4, subjects=2)
    rngs = [np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(4).spawn(2)]
    while (proposal := session.ask()) is not None:
        estimate, asked = session.estimate, session.answers[0]
        p = irt.probability(estimate.theta, bank.discrimination, bank.intercept)
        full = View(bank, estimate.theta, estimate.covariance, p, asked)
        same = propose(MaximumInformation(), full, proposal.items.shape[1], floor, rngs)
        np.testing.assert_array_equal(proposal.items, same.items)
        np.testing.assert_array_equal(proposal.design, same.design)
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))


@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_what_is_predicted_of_some_items_is_what_is_predicted_of_all(guess, dimensions):
    bank = make_bank(30, guess=guess, dimensions=dimensions)
    known = make_view(bank)
    lazy = View(bank, known.theta, known.covariance, None, known.asked)
    items = np.array([[3, 1], [29, 0], [7, 7]])
    np.testing.assert_allclose(lazy.predicted(items), np.take_along_axis(known.probability, items, axis=1), rtol=1e-14)
    assert lazy.predictions is None
    np.testing.assert_array_equal(lazy.probability, known.probability)
    np.testing.assert_array_equal(lazy.predicted(items), known.predicted(items))
    np.testing.assert_array_equal(lazy.spread, irt.weight(known.probability))
    lazy.pop_spread()[:] = 7.0  # the caller's own: it is computed anew
    np.testing.assert_array_equal(lazy.spread, irt.weight(known.probability))
