"""Classification at a cut score: ratios by hand, Wald's bounds, and error rates where the bank is true."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.classification import INDIFFERENCE, classify, likelihood_ratio, wald_bounds
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank

METHODS: tuple[Literal["sprt", "glr", "mixture"], ...] = ("sprt", "glr", "mixture")
LOGITS = st.floats(-3, 3)


def expit(z):
    return 1 / (1 + math.exp(-z))


def items(slopes, intercepts, guess=None) -> tuple[Any, Any, Any]:
    """The parameters of one subject's items in one dimension."""
    A, d = np.array([slopes], float)[..., None], np.array([intercepts], float)
    return A, d, None if guess is None else np.array([guess], float)


def interviewed(A, d, theta, *, guess=None, budget=120, policy="decide", seed=0) -> tuple[Any, Any, Any, Any]:
    """Scores and parameters of the items asked of subjects of abilities `theta` (S, D), for whom the bank is true."""
    n = len(d)
    bank = ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, A, d, np.zeros(n) if guess is None else guess)
    answers = np.random.default_rng(seed).random((len(theta), n)) < irt.probability(
        theta, bank.discrimination, bank.intercept, bank.asymptote
    )
    session = Session(bank, replace(POLICIES[policy], budget=budget), seed=seed, subjects=len(theta))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(answers, proposal.items, axis=1))
    asked, scores = session.answers
    c = None if bank.asymptote is None else bank.guess[asked]
    return scores, bank.discrimination[asked], bank.intercept[asked], c


def test_wald_bounds():
    assert wald_bounds(0.95) == pytest.approx((-math.log(19), math.log(19)))


def test_the_ratio_by_hand():
    scores = np.array([[1.0, 0.0, np.nan, 0.5]])
    parameters = items([1.0, 2.0, 1.0, 1.0], [0.0, 1.0, 3.0, -1.0])
    high, low = 0.8, 0.2
    right = math.log(expit(high) / expit(low))
    wrong = math.log((1 - expit(2 * high + 1)) / (1 - expit(2 * low + 1)))
    half = 0.5 * math.log(expit(high - 1) / expit(low - 1)) + 0.5 * math.log(expit(1 - high) / expit(1 - low))
    ratio = likelihood_ratio(scores, *parameters, 0.5, indifference=0.3)
    assert ratio[0] == pytest.approx([right, right + wrong, right + wrong, right + wrong + half])


def test_guessing_makes_a_right_answer_say_less():
    ratio = likelihood_ratio(np.ones((1, 1)), *items([1.0], [0.0], [0.25]), 0.0, indifference=0.5)
    expected = math.log((0.25 + 0.75 * expit(0.5)) / (0.25 + 0.75 * expit(-0.5)))
    assert ratio[0, 0] == pytest.approx(expected)


def test_the_generalised_ratio_takes_the_likeliest_abilities():
    # 14 of 20 right on equal items: the likeliest ability is log(14 / 6), above the region
    scores = np.array([[1.0] * 14 + [0.0] * 6])
    parameters = items([1.0] * 20, [0.0] * 20)
    best = 14 * math.log(0.7) + 6 * math.log(0.3)
    at_lower_end = 14 * math.log(expit(-0.25)) + 6 * math.log(expit(0.25))
    ratio = likelihood_ratio(scores, *parameters, 0.0, method="glr")[0, -1]
    assert best - at_lower_end - 0.02 < ratio <= best - at_lower_end
    # halves put it at the cut, where either end is as far
    even = likelihood_ratio(np.full((1, 20), 0.5), *parameters, 0.0, method="glr")
    assert even == pytest.approx(np.zeros((1, 20)), abs=1e-12)


def test_the_mixture_by_hand():
    # a region as wide as the search leaves two abilities a side: the end, and one a step beyond
    scores, parameters = np.array([[1.0, 1.0, 0.0]]), items([1.0] * 3, [0.0] * 3)
    end, beyond = 2.0, 2.4
    likelihood = lambda theta: expit(theta) ** 2 * expit(-theta)  # noqa: E731
    mean = 0.5 * likelihood(end) + 0.5 * likelihood(-2.0 + 4.4)
    best_below = max(likelihood(-end), likelihood(-beyond))
    ratio = likelihood_ratio(scores, *parameters, 0.0, indifference=2.0, method="mixture")
    assert ratio[0, -1] == pytest.approx(math.log(mean / best_below))


answers = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 0.3, math.nan]), st.floats(-2, 2), LOGITS, st.sampled_from([0.0, 0.2])),
    min_size=1,
    max_size=12,
)


@given(answers, LOGITS, st.floats(0.05, 1))
def test_ratios_are_ordered_and_turn_with_the_answers(given_answers, cut, indifference):
    scores, a, d, c = (np.array([column]) for column in zip(*given_answers, strict=True))
    ratios = {
        m: likelihood_ratio(scores, a[..., None], d, c, cut, indifference=indifference, method=m) for m in METHODS
    }
    for ratio in ratios.values():
        assert ratio.shape == scores.shape
        assert np.isfinite(ratio).all()
    # the average over a side is at most its best, and leads only where the best does
    assert (np.abs(ratios["mixture"]) <= np.abs(ratios["glr"]) + 1e-9).all()
    assert (ratios["mixture"] * ratios["glr"] >= -1e-9).all()
    none = np.zeros_like(c)
    for method in METHODS:
        forward = likelihood_ratio(scores, a[..., None], d, none, cut, indifference=indifference, method=method)
        mirrored = likelihood_ratio(1 - scores, a[..., None], -d, None, -cut, indifference=indifference, method=method)
        assert mirrored == pytest.approx(-forward, abs=1e-9)


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.floats(0, 1))
def test_a_fraction_never_raises_the_expected_ratio(low, high, spread):
    # two-point scores of mean `low`: r = low +- spread min(low, 1 - low)
    step = spread * min(low, 1 - low)
    ratio = [(high / low) ** r * ((1 - high) / (1 - low)) ** (1 - r) for r in (low - step, low + step)]
    assert sum(ratio) / 2 <= 1 + 1e-12


def test_the_first_crossing_counts():
    ratio = np.array([[1.0, 3.0, -9.0], [-3.0, 9.0, 9.0], [1.0, 2.0, -2.9]])
    result = classify(ratio)
    assert result.side.tolist() == [1, -1, 0]
    assert result.at.tolist() == [2, 1, 3]
    none = np.empty((2, 0))
    nothing = classify(likelihood_ratio(none, np.empty((2, 0, 2)), none, None, 0.0, method="mixture"))
    assert (nothing.side.tolist(), nothing.at.tolist()) == ([0, 0], [0, 0])


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("guess", [None, 0.25])
@pytest.mark.parametrize("policy", ["decide", "estimate"])
def test_errors_where_the_bank_is_true(policy, guess):
    rng = np.random.default_rng(1)
    n, subjects, cut = 400, 400, 0.5
    theta = np.repeat([cut - INDIFFERENCE, cut + INDIFFERENCE], subjects)[:, None]
    A, d = rng.lognormal(0, 0.3, n), rng.normal(0, 1.3, n)
    c = None if guess is None else np.full(n, guess)
    found = interviewed(A, d, theta, guess=c, budget=60, policy=policy)
    truth = np.sign(theta[:, 0] - cut)
    slack = 3 * math.sqrt(0.05 * 0.95 / subjects)
    for method in ("sprt", "mixture"):
        side = classify(likelihood_ratio(*found, cut, method=method)).side
        for truly in (-1, 1):
            assert (side[truth == truly] == -truly).mean() <= 0.05 + slack
        assert (side == truth).mean() > 0.03 + 3 * (side == -truth).mean()


def test_far_from_the_cut_the_mixture_is_sooner():
    rng = np.random.default_rng(2)
    theta = np.where(rng.random(200) < 0.5, -1.2, 1.2)[:, None]
    found = interviewed(rng.lognormal(0, 0.3, 400), rng.normal(0, 1.3, 400), theta, budget=80)
    at = {}
    for method in METHODS:
        result = classify(likelihood_ratio(*found, 0.0, method=method))
        assert (result.side == np.sign(theta[:, 0])).mean() > 0.97
        at[method] = result.at.mean()
    assert at["glr"] < at["mixture"] < 0.95 * at["sprt"]


def test_other_dimensions_are_integrated_out():
    # by quadrature over the one other dimension
    rng = np.random.default_rng(3)
    scores, A, d = (
        (rng.random((1, 12)) < 0.6).astype(float),
        rng.normal(0.7, 0.5, (1, 12, 2)),
        rng.normal(0, 1, (1, 12)),
    )
    nodes = np.linspace(-8, 8, 2001)
    marginal = []
    for general in (3.0, -1.0):
        theta = np.column_stack([np.full(len(nodes), general), nodes])
        height = irt.log_likelihood(scores, irt.logits(theta, A[0], d[0]))
        marginal.append(math.log(np.exp(height - nodes**2 / 2).sum()))
    ratio = likelihood_ratio(scores, A, d, None, 1.0, indifference=2.0)[0, -1]
    assert ratio == pytest.approx(marginal[0] - marginal[1], abs=0.03)
    # another dimension that no item has changes nothing
    alone = likelihood_ratio(scores, A[..., :1], d, None, 0.0)
    padded = np.concatenate([A[..., :1], np.zeros_like(A)], axis=-1)
    assert likelihood_ratio(scores, padded, d, None, 0.0) == pytest.approx(alone)


def test_another_dimension_is_no_evidence_on_the_general_one():
    rng = np.random.default_rng(4)
    n, subjects = 300, 200
    A = np.column_stack([rng.lognormal(0, 0.3, n), np.abs(rng.normal(0, 0.8, n))])
    theta = np.column_stack([np.full(subjects, -INDIFFERENCE), rng.normal(0, 1, subjects)])
    scores, A, d, _ = interviewed(A, rng.normal(0, 1.3, n), theta, budget=60)
    slack = 3 * math.sqrt(0.05 * 0.95 / subjects)
    side = classify(likelihood_ratio(scores, A, d, None, 0.0)).side
    assert (side == 1).mean() <= 0.05 + slack
    held_at_zero = classify(likelihood_ratio(scores, A[..., :1], d, None, 0.0)).side
    assert (held_at_zero == 1).mean() > 0.05 + slack
