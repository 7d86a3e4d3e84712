"""Draws: exact chances, unbiasedness by enumeration, and the hard cases."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, norm

from pytest_adaptive_eval.cat.selection import BLOCK, Selector, View, _draw, propose
from pytest_adaptive_eval.cat.selectors import SELECTORS, Information, MaximumInformation, Random, Spread
from pytest_adaptive_eval.inference.design import GATE_FLOOR, Proposal
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item


def make_bank(n: int, seed: int = 0, guess: float = 0.0, dimensions: int = 1) -> ItemBank:
    rng = np.random.default_rng(seed)
    ids = [f"i{i}" for i in range(n)]
    slopes = rng.lognormal(0, 0.3, (n, dimensions))
    return ItemBank("b", ids, [Item(i) for i in ids], slopes, rng.normal(size=n), np.full(n, guess))


def make_view(bank: ItemBank, theta: float = 0.3, asked: tuple[int, ...] = (), subjects: int = 1) -> View:
    abilities = np.full((subjects, bank.dimensions), theta)
    guess = bank.guess if bank.guess.any() else None
    p = irt.probability(abilities, bank.discrimination, bank.intercept, guess)
    covariance = np.broadcast_to(np.eye(bank.dimensions), (subjects, bank.dimensions, bank.dimensions))
    return View(bank, abilities, covariance, p, np.tile(np.array(asked, dtype=np.int64), (subjects, 1)))


class Stub:
    """A generator that gives the numbers it is told."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def one(selector: Selector, view: View, k: int, floor: float, *numbers: float) -> Proposal:
    return propose(selector, view, k, floor, [Stub(*numbers)])


def chances(selector: Selector, view: View, floor: float, drawn: tuple[int, ...] = ()) -> np.ndarray:
    """The chances of the next draw as the module's text defines them, where a batch has drawn some already."""
    weights = selector.criterion(view)[0]
    left = np.ones(len(weights), dtype=bool)
    if view.claim_probability is not None and selector.mode != "top" and floor > GATE_FLOOR:
        left[view.asked[0]] = False
        p, lean = view.probability[0], view.claim_probability[0, 0]
        guard = lean * p + (1 - lean) * (1 - p)
        weights, guard = weights * left, guard * left
        weights = (1 - floor) * weights / max(weights.sum(), 1e-300) + (floor - GATE_FLOOR) * guard / guard.sum()
        left[:], floor = True, GATE_FLOOR
    left[[*view.asked[0], *drawn]] = False
    weights = np.where(left, weights, 0.0)
    if selector.mode == "top":
        mode = (np.arange(len(weights)) == np.where(left, weights, -1).argmax()).astype(float)
    else:
        mode = weights / weights.sum() if weights.sum() > 0 else left / left.sum()
    return (1 - floor) * mode + floor * left / left.sum()


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_conformance(name: str) -> None:
    selector = SELECTORS[name]
    assert isinstance(selector, Selector)
    assert selector.name == name
    for dimensions in (1, 3):
        for guess in (0.0, 0.25):
            view = make_view(make_bank(30, guess=guess, dimensions=dimensions), subjects=2)
            before = view.probability.copy()
            criterion = selector.criterion(view)
            assert criterion.shape == (2, 30)
            assert (criterion >= 0).all()
            criterion[:] = -7  # fresh: what is done to it reaches nobody
            np.testing.assert_array_equal(view.probability, before)
            assert (selector.criterion(view) >= 0).all()


def test_criteria_are_their_formulas() -> None:
    bank = make_bank(50, guess=0.2)
    view = make_view(bank)
    p, a = view.probability[0], bank.discrimination[:, 0]
    np.testing.assert_allclose(Spread().criterion(view)[0], np.sqrt(p * (1 - p)), rtol=1e-12)
    expected = a**2 * ((p - 0.2) / 0.8) ** 2 * (1 - p) / p
    np.testing.assert_allclose(MaximumInformation().criterion(view)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(Information().criterion(view)[0], expected, rtol=1e-12)


def test_maximum_information_takes_the_best_that_are_left_in_order() -> None:
    view = make_view(make_bank(40), asked=(3, 7, 11))
    order = [i for i in np.argsort(-MaximumInformation().criterion(view)[0], kind="stable") if i not in (3, 7, 11)]
    got = one(MaximumInformation(), view, 5, 0.0)
    assert got.items[0].tolist() == order[:5]
    assert np.isnan([got.propensities, got.rest, got.variance]).all()
    np.testing.assert_array_equal(got.predictions[0], view.probability[0, got.items[0]])


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        (name, floor)
        for name in sorted(SELECTORS)
        for floor in (0.0, 0.1, 1.0)
        if SELECTORS[name].mode != "top" or floor
    ],
)
def test_logged_quantities_are_their_formulas(name: str, floor: float) -> None:
    bank, asked = make_bank(300), (5, 200, 17)
    rng = np.random.default_rng(1)
    for _ in range(20):
        view = make_view(bank, float(rng.normal()), asked)
        p = view.probability[0]
        first, second = rng.random(2)
        got = one(SELECTORS[name], view, 2, floor, first, second)
        gone: tuple[int, ...] = asked
        for j in range(2):
            q = chances(SELECTORS[name], view, floor, gone[3:])
            i = int(got.items[0, j])
            assert i not in gone
            left = np.setdiff1d(np.arange(300), gone)
            assert got.propensities[0, j] == pytest.approx(q[i], rel=1e-12)
            assert got.rest[0, j] == pytest.approx(p[left].sum(), rel=1e-12)
            assert got.variance[0, j] == pytest.approx((p[left] * (1 - p[left]) / q[left]).sum(), rel=1e-10)
            assert got.predictions[0, j] == p[i]
            gone = (*gone, i)


def drawn(weights: np.ndarray, numbers: object) -> list[int]:
    """Draw from the same weights, one row a number."""
    u = np.atleast_1d(np.array(numbers))
    return [int(index) for index in np.atleast_1d(_draw(np.tile(weights, (len(u), 1)), u.tolist()))]


@pytest.mark.parametrize("n", [1, 5, BLOCK, BLOCK + 1, 5 * BLOCK - 3])
def test_one_subject_draws_what_it_draws_among_others(n: int) -> None:
    rng = np.random.default_rng(3)
    weights = rng.gamma(0.3, size=n)
    weights[rng.permutation(n)[: n // 3]] = 0.0
    u = [*rng.random(200).tolist(), 0.0, np.nextafter(1.0, 0.0)]
    assert drawn(weights, u) == [drawn(weights, number)[0] for number in u]


@pytest.mark.parametrize("n", [1, 5, BLOCK, BLOCK + 1, 5 * BLOCK - 3])
def test_an_item_is_drawn_with_exactly_its_chance(n: int) -> None:
    rng = np.random.default_rng(2)
    weights = rng.random(n) * (rng.random(n) < 0.7)
    weights[rng.integers(n)] = 1.0
    edges = weights.cumsum() / weights.sum()
    positive = np.flatnonzero(weights)
    low, high = np.where(positive > 0, edges[positive - 1], 0.0), edges[positive]
    assert drawn(weights, low + 1e-9 * (high - low) + 1e-14) == positive.tolist()
    assert drawn(weights, high - 1e-9 * (high - low) - 1e-14) == positive.tolist()
    assert drawn(weights, [0.0, np.nextafter(1.0, 0.0)]) == [positive[0], positive[-1]]


@given(
    st.lists(st.sampled_from([0.0, 1e-300, 1e-17, 0.3, 1.0, 1e6]), min_size=1, max_size=400),
    st.floats(0, 1, exclude_max=True),
)
def test_an_item_without_weight_is_never_drawn(weights: list[float], u: float) -> None:
    array = np.array(weights)
    if array.sum() > 0:
        assert array[drawn(array, u)[0]] > 0


@pytest.mark.parametrize("before", [0, 2 * BLOCK])
@pytest.mark.parametrize("after", [0, 2, BLOCK])
def test_a_number_that_rounding_puts_at_the_sum_draws_the_last_item_of_positive_weight(before: int, after: int) -> None:
    weights = np.r_[np.zeros(before), 1.0, 2.0, 3.0, np.zeros(after)]
    assert drawn(weights, 1.0) == [before + 2]
    assert drawn(weights, [1.0, 1.0]) == [before + 2] * 2


def test_items_are_drawn_alike_with_and_without_the_design() -> None:
    bank = make_bank(60)
    for name in ("spread", "information", "random", "variance"):
        logged, plain = (
            propose(SELECTORS[name], make_view(bank), 7, 0.3, [np.random.default_rng(5)], designed=designed)
            for designed in (True, False)
        )
        np.testing.assert_array_equal(logged.items, plain.items)
        assert np.isfinite(logged.design).all()
        assert np.isnan(plain.design).all()


@pytest.mark.parametrize(("name", "floor"), [("spread", 0.25), ("maximum-information", 0.1), ("information", 0.0)])
def test_draws_have_their_chances(name: str, floor: float) -> None:
    view, draws = make_view(make_bank(12), asked=(4,), subjects=1), 20_000
    rng = np.random.default_rng(3)
    repeated = View(
        view.bank,
        np.repeat(view.theta, draws, axis=0),
        np.repeat(view.covariance, draws, axis=0),
        np.repeat(view.probability, draws, axis=0),
        np.repeat(view.asked, draws, axis=0),
    )
    got = propose(SELECTORS[name], repeated, 1, floor, [rng] * draws)
    q = chances(SELECTORS[name], view, floor)
    counts = np.bincount(got.items[:, 0], minlength=12)
    assert counts[4] == 0
    keep = q > 0
    assert chisquare(counts[keep], draws * q[keep]).pvalue > 0.001
    np.testing.assert_allclose(got.propensities[:, 0], q[got.items[:, 0]], rtol=1e-12)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("name", "floor"), [("spread", 0.25), ("maximum-information", 0.1), ("random", 0.0)])
def test_weighted_statistic_is_unbiased_by_enumeration(name: str, floor: float, batch: int) -> None:
    """Every draw's asked scores + rest + (score - prediction) / q has the true total as its mean."""
    bank, scores = make_bank(5, seed=4), np.array([1.0, 0.0, 0.3, 1.0, 0.0])
    selector = SELECTORS[name]

    def walk(asked: tuple[int, ...], chance: float) -> list[tuple[int, float, float]]:
        if len(asked) == 4:
            return []
        # the ability moves with the answers, as in an interview
        view = make_view(bank, float((scores[list(asked)] - 0.5).sum()), asked)
        out: list[tuple[int, float, float]] = []
        for path in itertools.permutations([i for i in range(5) if i not in asked], batch):
            # find this path's proposal by numbers that lead to each of its items in turn
            numbers: list[float] = []
            for j in range(batch):
                now = View(
                    bank, view.theta, view.covariance, view.probability, np.array([asked + path[:j]], dtype=np.int64)
                )
                q = chances(selector, now, floor)
                numbers.append(float(q[: path[j]].sum() + q[path[j]] / 2))
            got = one(selector, view, batch, floor, *numbers)
            assert tuple(got.items[0]) == path
            weight, done = chance * float(got.propensities.prod()), 0.0
            for j, i in enumerate(path):
                statistic = done + got.rest[0, j] + (scores[i] - got.predictions[0, j]) / got.propensities[0, j]
                out.append((len(asked) + j, weight, scores[list(asked)].sum() + statistic))
                done += scores[i]
            out += walk(asked + path, weight)
        return out

    leaves = walk((), 1.0)
    for draw in range(4):
        rows = [(w, x) for d, w, x in leaves if d == draw]
        assert sum(w for w, _ in rows) == pytest.approx(1.0, rel=1e-12)
        assert sum(w * x for w, x in rows) == pytest.approx(scores.sum(), rel=1e-12)


# -- the floor of what is to be decided -----------------------------------------------------------


def leaning(view: View, lean: float) -> View:
    view.claim_probability = np.full((len(view.asked), 1), lean)
    return view


@pytest.mark.parametrize("lean", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["spread", "information", "random", "maximum-information"])
@pytest.mark.parametrize("floor", [0.1, 0.5, 1.0])
def test_a_floor_leans_as_told_and_is_logged(name: str, floor: float, lean: float) -> None:
    bank, asked = make_bank(300), (5, 200, 17)
    rng = np.random.default_rng(2)
    for _ in range(5):
        view = leaning(make_view(bank, float(rng.normal()), asked), lean)
        p = view.probability[0]
        gone: tuple[int, ...] = asked
        got = one(SELECTORS[name], view, 2, floor, *rng.random(2))
        for j in range(2):
            q, i = chances(SELECTORS[name], view, floor, gone[3:]), int(got.items[0, j])
            left = np.setdiff1d(np.arange(300), gone)
            assert q[left].sum() == pytest.approx(1.0)
            assert q[left].min() >= GATE_FLOOR / len(left) - 1e-12
            assert got.propensities[0, j] == pytest.approx(q[i], rel=1e-12)
            assert got.variance[0, j] == pytest.approx((p[left] * (1 - p[left]) / q[left]).sum(), rel=1e-10)
            if j == 0:
                assert got.design[4, 0, j] == pytest.approx((p[left] / q[left]).max(), rel=1e-10)
                assert got.design[5, 0, j] == pytest.approx(((1 - p[left]) / q[left]).max(), rel=1e-10)
            gone = (*gone, i)


def test_an_even_lean_is_the_uniform_floor() -> None:
    view = make_view(make_bank(40), asked=(3, 7))
    plain = one(Spread(), view, 1, 0.5, 0.4)
    even = one(Spread(), leaning(view, 0.5), 1, 0.5, 0.4)
    np.testing.assert_array_equal(even.items, plain.items)
    np.testing.assert_allclose(even.design, plain.design, rtol=1e-12)


def test_a_lean_makes_the_losses_of_its_side_small() -> None:
    bank = make_bank(500)
    down, up = (
        [float(one(Spread(), leaning(make_view(bank), lean), 1, 0.5, 0.3).design[k, 0, 0]) for lean in (0.0, 0.5, 1.0)]
        for k in (4, 5)
    )
    assert down[2] < 0.9 * down[1] < 0.9 * down[0]
    assert up[0] < 0.9 * up[1] < 0.9 * up[2]


def test_where_nothing_can_be_told_a_floor_leans_all_the_same() -> None:
    view = leaning(make_view(make_bank(20)), 1.0)
    view.predictions = np.repeat([[0.0, 1.0]], 10, axis=0).reshape(1, 20)  # spread of 0 everywhere
    got = one(Spread(), view, 1, 0.5, 0.99)
    assert got.items[0, 0] == 19
    assert got.propensities[0, 0] == pytest.approx(0.9 / 10 + 0.1 / 20)


@pytest.mark.parametrize("missing", [False, True])
def test_how_likely_a_claim_seems(missing: bool) -> None:
    view = make_view(make_bank(50), asked=(3, 7, 9), subjects=2)
    p = view.probability[0]
    scores = np.array([[1.0, np.nan if missing else 0.0, 1.0], [0.0, 0.0, 0.0]])
    expected = p.sum() - p[[3, 7, 9]].sum() + np.array([2.0, 0.0])
    view.set_claim_probability([30.0], scores, np.array([4.0, 9.0]))
    assert view.claim_probability is not None
    np.testing.assert_allclose(view.claim_probability[:, 0], norm.cdf((expected - 30.0) / [2.0, 3.0]), atol=0.01)
    view.set_claim_probability(
        [30.0, 10.0, 49.0], scores, np.array([4.0, 9.0])
    )  # those that are clear count for nothing
    np.testing.assert_allclose(view.claim_probability[:, 0], norm.cdf((expected - 30.0) / [2.0, 3.0]), atol=0.02)
    view.set_claim_probability([-1e9, 1e9], scores, np.array([0.0, 0.0]))
    assert np.isfinite(view.claim_probability).all()


def test_permuting_the_items_permutes_the_chances() -> None:
    bank = make_bank(20)
    order = np.random.default_rng(5).permutation(20)
    moved = ItemBank(
        "m",
        [bank.ids[i] for i in order],
        [bank.items[i] for i in order],
        bank.discrimination[order],
        bank.intercept[order],
    )
    for name, floor in (("spread", 0.2), ("maximum-information", 0.1)):
        by_id: list[dict[str, float]] = []
        for each in (bank, moved):
            found: dict[str, float] = {}
            for u in (np.arange(2000) + 0.5) / 2000:
                got = one(SELECTORS[name], make_view(each), 1, floor, float(u))
                found[each.ids[got.items[0, 0]]] = got.propensities[0, 0]
            by_id.append(found)
        assert by_id[0].keys() == by_id[1].keys() == set(bank.ids)
        for key, value in by_id[0].items():
            assert by_id[1][key] == pytest.approx(value, rel=1e-12)


def test_best_item_has_the_rest_of_the_chance() -> None:
    view = make_view(make_bank(11), asked=(0,))
    best = int(np.argmax(np.r_[-1, MaximumInformation().criterion(view)[0, 1:]]))
    drawn: Counter[int] = Counter()
    for u in (np.arange(1000) + 0.5) / 1000:
        got = one(MaximumInformation(), view, 1, 0.2, float(u))
        drawn[int(got.items[0, 0])] += 1
        assert got.propensities[0, 0] == pytest.approx(0.82 if got.items[0, 0] == best else 0.02, rel=1e-12)
    assert drawn[best] == 820


@pytest.mark.parametrize("theta", [-30.0, 30.0, 1000.0])
@pytest.mark.parametrize("name", sorted(SELECTORS))
@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_far_abilities_and_dead_items(name: str, floor: float, theta: float) -> None:
    bank = ItemBank("b", list("abc"), [Item(x) for x in "abc"], np.array([0.0, 40.0, 1.0]), np.array([0.0, 3.0, 800.0]))
    got = one(SELECTORS[name], make_view(bank, theta), 3, floor, 0.1, 0.5, 0.9)
    assert sorted(got.items[0]) == [0, 1, 2]
    if SELECTORS[name].mode == "proportional" or floor:
        assert (got.propensities > 0).all()
        assert got.propensities[0, 2] == pytest.approx(1.0)


def test_without_any_criterion_the_draw_is_uniform() -> None:
    bank = ItemBank("b", list("abcd"), [Item(x) for x in "abcd"], np.zeros(4), np.full(4, 2000.0))
    for u, item in ((0.1, 0), (0.5, 2), (0.9, 3)):
        got = one(Spread(), make_view(bank, asked=(1,)), 1, 0.0, u)
        assert got.items[0, 0] == item
        assert got.propensities[0, 0] == pytest.approx(1 / 3)
        assert got.variance[0, 0] == 0


def test_subjects_without_any_criterion_draw_uniformly_beside_others() -> None:
    class Fixed(Random):
        def criterion(self, view: View) -> np.ndarray:
            return np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 3.0, 0.0]])

    got = propose(Fixed(), make_view(make_bank(4), subjects=2), 1, 0.2, [Stub(0.6), Stub(0.6)])
    assert got.items[:, 0].tolist() == [2, 2]
    np.testing.assert_allclose(got.propensities[:, 0], [1 / 4, 0.8 * 3 / 4 + 0.2 / 4])


def test_join_keeps_the_order_of_subjects() -> None:
    bank = make_bank(9)
    parts = [propose(Spread(), make_view(bank, t), 2, 0.2, [np.random.default_rng(0)]) for t in (0.0, 1.0, 2.0)]
    joined = Proposal.join(parts)
    for s, part in enumerate(parts):
        for name in ("items", "propensities", "predictions", "rest", "variance"):
            np.testing.assert_array_equal(getattr(joined, name)[s], getattr(part, name)[0])
