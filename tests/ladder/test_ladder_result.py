"""The area under the accuracy by level, where it falls, and what two subjects differ by."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.ladder.result import (
    Ladder,
    Levels,
    Settled,
    area_bounds,
    crossing,
    difference,
    last_above,
    last_settled,
    pooled,
)


def ladder(*levels: tuple[int, int] | list[float], cap: int | None = None, first: int = 1) -> Ladder:
    """Each level as (right, asked), or as its scores."""
    scores = [
        np.array(level) if isinstance(level, list) else np.repeat([1.0, 0.0], [level[0], level[1] - level[0]])
        for level in levels
    ]
    return Ladder(tuple(scores), cap or len(scores) + first - 1, first)


def curve(levels: int, middle: float, slope: float, luck: float = 0.0) -> np.ndarray:
    return luck + (1 - luck) * expit((middle - np.arange(1, levels + 1)) / slope)


def test_area_and_last_level() -> None:
    one = ladder((10, 10), (7, 10), (0, 10), cap=8)
    assert one.area == pytest.approx(1.7)
    assert one.last_level == 2
    assert str(one) == "1.7/2"
    assert one.untested == 5
    assert str(ladder((0, 10))) == "0/0"
    assert str(ladder((10, 10), (10, 10))) == "2/2"
    assert str(ladder([0.5, 0.25, 0.25], [0.0, 0.1, 0.0])) == "0.367/2"
    assert str(ladder((4, 10), (1, 10), (0, 10), cap=9, first=3)) == "0.5/4"
    assert str(ladder((0, 10), cap=9, first=3)) == "0/2"
    assert str(ladder((4, 10), (0, 10), (1, 10))) == "0.5/3"  # a level above an empty one counts


def test_missing_scores_are_left_out_of_the_accuracy_and_widen_the_bounds() -> None:
    whole = ladder([1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    gaps = ladder([1.0, np.nan, 0.0, 1.0, np.nan], [0.0, 0.0, 1.0, np.nan])
    assert gaps.area == pytest.approx(2 / 3 + 1 / 3)
    assert gaps.interval().low == pytest.approx(gaps.filled(0.0).interval().low)
    assert gaps.interval().high == pytest.approx(gaps.filled(1.0).interval().high)
    assert gaps.interval().low < whole.interval().low
    assert gaps.interval().high > whole.interval().high
    nothing = ladder((1, 2), [np.nan])
    assert nothing.area == 0.5
    assert 0.0 <= nothing.interval().low <= 0.5 <= nothing.interval().high <= 2.0


def test_ladders_that_cannot_be() -> None:
    with pytest.raises(EstimationError, match="a ladder from level 1 to 2 cannot have scores on 3 levels"):
        ladder((1, 2), (1, 2), (1, 2), cap=2)
    with pytest.raises(EstimationError, match="cannot have scores on 0 levels"):
        Ladder((), 3)
    with pytest.raises(EstimationError, match="level 2 of the ladder has no score"):
        ladder((1, 2), []).interval()


def test_pools_are_the_falling_least_squares_fit() -> None:
    means, counts = np.array([0.5, 0.9, 0.2, 0.3, 0.1]), np.array([2.0, 6.0, 5.0, 5.0, 5.0])
    found = pooled(means, counts)
    assert [(w.start, w.stop) for w, _ in found] == [(0, 2), (2, 4), (4, 5)]
    assert [value for _, value in found] == pytest.approx([0.8, 0.25, 0.1])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=12))
def test_pools_fall_and_keep_the_total(levels: list[tuple[int, int]]) -> None:
    counts = np.array([float(n) for _, n in levels])
    means = np.array([min(k, n) / n for k, n in levels])
    found = pooled(means, counts)
    values = [value for _, value in found]
    assert all(a > b for a, b in itertools.pairwise(values))
    assert sum(value * counts[where].sum() for where, value in found) == pytest.approx(float(means @ counts))
    assert [where.start for where, _ in found] == [0, *(where.stop for where, _ in found[:-1])]


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12), min_size=1, max_size=8),
    st.integers(0, 5),
)
def test_bounds_hold_the_area_and_widen_with_the_confidence(levels: list[list[float]], more: int) -> None:
    one = ladder(*levels, cap=len(levels) + more)
    near, far = one.interval(0.8), one.interval(0.99)
    assert 0.0 <= far.low <= near.low <= near.estimate + 1e-12
    assert near.estimate - 1e-12 <= near.high <= far.high <= one.cap
    assert near.estimate == pytest.approx(one.area)
    counted = one.interval(0.8, untested="zero")
    assert counted.low == near.low
    assert counted.high <= near.high
    assert (counted.high < near.high) == (more > 0) or near.high == one.cap


def test_one_level_is_near_the_exact_binomial_bounds() -> None:
    for right, asked in ((0, 10), (10, 10), (0, 50), (25, 50), (48, 50)):
        found = ladder((right, asked)).interval(0.95)
        p = np.linspace(0, 1, 4001)
        low = p[binom.sf(right - 1, asked, p) > 0.05].min()
        high = p[binom.cdf(right, asked, p) > 0.05].max()
        assert found.low == pytest.approx(low, abs=0.06)
        assert found.high == pytest.approx(high, abs=0.06)


def test_levels_not_asked_count_as_the_last_may_be() -> None:
    one, more = ladder((10, 10), (0, 10), cap=2), ladder((10, 10), (0, 10), cap=7)
    last = area_bounds(Levels.of(one.scores[1:]), 1 - 0.05 / 2)[1]  # one of two levels it could have ended at
    assert more.interval().high == pytest.approx(one.interval().high + 5 * last)
    assert more.interval().low == one.interval().low
    assert more.interval(untested="zero") == one.interval()


@pytest.mark.parametrize("queries", [10, 50])
@pytest.mark.parametrize(
    "accuracy",
    [curve(8, 4, 0.7), curve(20, 8, 1.0, 0.1), np.full(8, 0.995), np.array([1, 0.6, 0.9, 0.5, 0.7, 0.3, 0.2, 0.1])],
)
def test_coverage_of_a_full_ladder(queries: int, accuracy: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    truth, n = accuracy.sum(), 600
    counts = np.full(len(accuracy), float(queries))
    misses = np.zeros(2)
    for right in rng.binomial(queries, accuracy, (n, len(accuracy))):
        low, high = area_bounds(Levels(counts, right / queries, 1.0), 0.95)
        misses += low > truth + 1e-9, high < truth - 1e-9
    assert (misses / n <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5).all()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("accuracy", [curve(8, 4, 0.7), np.full(10, 0.2), curve(20, 6, 1.0, 0.1)])
def test_coverage_of_a_ladder_that_stops_at_no_right_answer(accuracy: np.ndarray) -> None:
    rng = np.random.default_rng(4)
    truth, n = accuracy.sum(), 400
    misses = np.zeros(2)
    for _ in range(n):
        scores = []
        for p in accuracy:
            scores.append((rng.random(20) < p).astype(float))
            if not scores[-1].any():
                break
        found = Ladder(tuple(scores), len(accuracy)).interval(0.95)
        misses += found.low > truth + 1e-9, found.high < truth - 1e-9
    assert (misses / n <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5).all()


def test_fractions_vary_less_than_right_and_wrong() -> None:
    rng = np.random.default_rng(5)
    fractions = tuple(np.clip(p + rng.normal(0, 0.1, 40), 0, 1) for p in (0.8, 0.5, 0.2))
    halves = tuple((rng.random(40) < p).astype(float) for p in (0.8, 0.5, 0.2))
    assert Levels.of(fractions).dispersion < 0.15
    assert Levels.of(halves).dispersion == 1.0
    narrow, wide = Ladder(fractions, 3).interval(), Ladder(halves, 3).interval()
    assert narrow.high - narrow.low < 0.4 * (wide.high - wide.low)
    assert Levels.of((np.array([0.5]),)).dispersion < 1.0  # little data says little
    assert Levels.of((np.array([0.5]),)).dispersion >= 0.5


def test_coverage_with_fractions() -> None:
    rng = np.random.default_rng(6)
    accuracy, n = np.array([0.9, 0.7, 0.4, 0.1]), 500
    misses = np.zeros(2)
    for _ in range(n):
        found = Ladder(tuple(rng.beta(4 * p, 4 * (1 - p), 10) for p in accuracy), 4).interval(0.95)
        misses += found.low > accuracy.sum(), found.high < accuracy.sum()
    assert (misses / n <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5).all()
    assert misses.sum() / n > 0.02  # and not merely wide


def paired(rng: np.random.Generator, first: np.ndarray, second: np.ndarray, queries: int, alike: float) -> list[Ladder]:
    scores: list[list[np.ndarray]] = [[], []]
    for p, q in zip(first, second, strict=True):
        u = rng.random(queries)
        v = np.where(rng.random(queries) < alike, u, rng.random(queries))
        scores[0].append((u < p).astype(float))
        scores[1].append((v < q).astype(float))
    return [Ladder(tuple(s), len(first)) for s in scores]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("alike", [0.5, 0.9])
@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_coverage_of_differences(alike: float, drop: float) -> None:
    rng = np.random.default_rng(8)
    first = curve(8, 4, 0.7)
    second = curve(8, 4 - drop, 0.7)
    truth, n = second.sum() - first.sum(), 400
    misses, widths = np.zeros(2), []
    for _ in range(n):
        baseline, candidate = paired(rng, first, second, 50, alike)
        found = difference(candidate, baseline, 0.95)
        assert found.estimate == pytest.approx(candidate.area - baseline.area)
        misses += found.low > truth + 1e-9, found.high < truth - 1e-9
        widths.append(found.high - found.low)
    assert (misses / n <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5).all()
    if alike == 0.9:  # pairing pays: two ladders of their own would be 1.4 times as wide as one
        alone = baseline.interval(0.95)
        assert np.mean(widths) < alone.high - alone.low


def test_equal_subjects_do_not_differ_but_for_what_was_not_seen() -> None:
    one = ladder((50, 50), (20, 50), (0, 50))
    found = difference(one, one)
    assert found.estimate == 0.0
    assert found.high == -found.low
    assert 0.02 < found.high < 0.12


def test_differences_of_ladders_that_ended_apart() -> None:
    short, long = ladder((50, 50), (0, 50), cap=4), ladder((50, 50), (40, 50), (10, 50), (0, 50), cap=4)
    found = difference(long, short)
    assert found.estimate == pytest.approx(1.0)
    assert found.low > 0.6
    back = difference(short, long)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    # what the short one would have scored on the levels it did not reach is bounded, unless it counts nothing
    assert difference(long, short, untested="zero").low > found.low
    assert difference(short, short).high == pytest.approx(-difference(short, short).low)
    assert difference(short, short, untested="zero").high < difference(short, short).high


def test_missing_pairs_widen_to_both_sides() -> None:
    whole, gaps = ladder((5, 10), (1, 10)), ladder([1.0] * 4 + [np.nan] * 2 + [0.0] * 4, (1, 10))
    found, sure = difference(gaps, whole), difference(whole, whole)
    assert found.low < sure.low
    assert found.high > sure.high
    assert difference(whole, gaps).low < sure.low


def test_ladders_that_cannot_be_paired() -> None:
    with pytest.raises(EstimationError, match="10 and 9 questions of one level cannot be paired"):
        difference(ladder((1, 10)), ladder((1, 9)))
    with pytest.raises(EstimationError, match="do not have the same levels"):
        difference(ladder((1, 10), cap=2), ladder((1, 10), cap=3))


def test_a_level_is_settled_by_enough_answers() -> None:
    rule = Settled(0.5)
    assert rule.side([]) == rule.side([1.0, 0.0] * 20) == 0
    assert rule.side([1.0] * 3) == 0
    assert rule.side([1.0] * 8) == 1
    assert rule.side([0.0] * 8) == -1
    assert rule.side([1.0] * 8 + [0.0] * 50) == 1  # what was settled once stays
    assert rule.side([np.nan] * 5 + [0.0] * 8) == -1
    assert Settled(0.5, 0.999).side([1.0] * 8) == 0
    assert Settled(0.2).side([0.5] * 30) == 1
    assert Settled(0.0).side([0.0] * 1000) == 0
    assert Settled(0.0).side([0.0] * 9 + [1.0]) == 1


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_levels_are_rarely_settled_wrongly_however_often_one_looks(rate: float) -> None:
    rng = np.random.default_rng(9)
    rule, n = Settled(rate, 0.9), 600
    sides = np.array([rule.side((rng.random(200) < rate).astype(float).tolist()) for _ in range(n)])
    allowed = 0.1 + 3 * (0.09 / n) ** 0.5
    assert (sides == 1).mean() <= allowed
    assert (sides == -1).mean() <= allowed
    above = np.mean(
        [rule.side((rng.random(200) < min(rate + 0.2, 1.0)).astype(float).tolist()) == 1 for _ in range(100)]
    )
    assert above > 0.95


def test_the_last_level_above_a_rate() -> None:
    one = ladder((50, 50), (49, 50), (26, 50), (3, 50), (0, 50), cap=9)
    found = last_above(one, 0.5)
    assert (found.low, found.estimate, found.high) == (2.0, 3.0, 3.0)
    assert last_above(ladder((5, 10), (0, 10), cap=4), 0.0).low == 1.0
    assert last_above(ladder((5, 10), (0, 10), cap=4), 0.0).high == 4.0  # no answers show that none can be right
    assert last_above(ladder((0, 20), cap=4), 0.5).high == 0.0
    few = last_above(ladder((2, 3), (1, 3), (1, 3)), 0.5)
    assert (few.low, few.estimate, few.high) == (0.0, 1.0, 3.0)


def test_where_accuracy_crosses_a_half() -> None:
    one = ladder((50, 50), (45, 50), (30, 50), (10, 50), (0, 50))
    found = crossing(one)
    assert found.estimate == pytest.approx(3.25)
    assert (found.low, found.high) == (2.0, 4.0)
    assert crossing(ladder((50, 50), (49, 50))).estimate == 2.0
    assert crossing(ladder((1, 50), (0, 50))).estimate == 1.0
    late = crossing(ladder((50, 50), (49, 50), cap=8))
    assert (late.low, late.high) == (2.0, 2.0)  # it lies beyond the last level asked
    assert crossing(ladder((50, 50), (49, 50), (26, 50), (3, 50))).high == 4.0
    for right, estimate in ((1, 1.0), (2, 3.0)):  # few answers: any level may be the one
        few = crossing(ladder((right, 3), (right, 3), (right, 3)))
        assert (few.low, few.estimate, few.high) == (1.0, estimate, 3.0)
    few = crossing(ladder((2, 3), (1, 3), (1, 3)))
    assert (few.low, few.estimate, few.high) == pytest.approx((1.0, 1.5, 3.0))
    shifted = crossing(ladder((50, 50), (45, 50), (30, 50), (10, 50), (0, 50), first=3))
    assert (shifted.low, shifted.estimate, shifted.high) == pytest.approx((4.0, 5.25, 6.0))


def test_the_crossing_is_rarely_missed() -> None:
    rng = np.random.default_rng(10)
    accuracy, n = curve(10, 5.3, 0.9), 300
    misses = np.zeros(2)
    for _ in range(n):
        found = crossing(Ladder(tuple((rng.random(20) < p).astype(float) for p in accuracy), 10), 0.5, 0.95)
        misses += found.low > 5.3, found.high < 5.3
    assert (misses / n <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5).all()


def test_a_level_is_certified_by_exact_bounds() -> None:
    # of 20 answers at an accuracy of one half, 5 or fewer are right in 2.1 % of cases, 6 or fewer in 5.8 %
    assert last_above(ladder((5, 20), cap=1), 0.5).high == 0.0
    assert last_above(ladder((6, 20), cap=1), 0.5).high == 1.0
    assert last_above(ladder((14, 20), cap=1), 0.5).low == 0.0
    assert last_above(ladder((15, 20), cap=1), 0.5).low == 1.0
    # five of five answers are all right with a chance of 5 % at an accuracy of 0.05 ** (1 / 5)
    for rate, low in ((0.05**0.2 - 1e-6, 1.0), (0.05**0.2 + 1e-6, 0.0)):
        assert last_above(ladder((5, 5), cap=1), rate).low == low


def test_a_level_of_fractions_is_certified_by_its_own_scores() -> None:
    found = last_above(ladder([0.9, 0.8] * 20, [0.3, 0.2] * 20), 0.5)
    assert (found.low, found.estimate, found.high) == (1.0, 1.0, 1.0)


def test_an_undecided_level_counts_by_its_accuracy_and_stays_open() -> None:
    found = last_settled(ladder((2, 3), (0, 20)), 0.5)  # level 1 is undecided, level 2 is below
    assert (found.low, found.estimate, found.high) == (0.0, 1.0, 1.0)
