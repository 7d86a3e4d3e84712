"""Drift: false alarms as seldom as stated, drops found soon, and nothing taken back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, poisson, t

from pytest_adaptive_eval.records import drift
from pytest_adaptive_eval.records.drift import BASELINE, Alarm, Series, SeriesPoint, lasting, limit, monitor

LEVEL = [0.3, -0.4, 0.9, -1.1, 0.2, 0.6, -0.7, 0.1, -0.2, 0.4]


def series(
    values: Sequence[float],
    errors: float | Sequence[float] = 1.0,
    category: str = "",
    evaluation: str = "text",
    first: int = 0,
) -> Series:
    points = []
    for n, value in enumerate(values):
        at = first + n
        error = errors if isinstance(errors, float) else errors[n]
        started = f"2031-{at // 28 % 12 + 1:02}-{at % 28 + 1:02}T00:00:00Z" if at < 336 else f"2032-{at:05}"
        points.append(SeriesPoint(f"run-{at:05}", started, f"step-{at}", "c" * 16, float(value), error))
    metric = "accuracy" if category else "ability"
    return Series(evaluation, "text", "b" * 16, "5" * 16, metric, category, tuple(points))


def histories(values: np.ndarray) -> list[Series]:
    return [series(row.tolist(), category=f"c{k}" if k else "") for k, row in enumerate(values)]


def sampled(one: Series, error: float) -> Series:
    """A series whose runs vary by an error beyond that of their draws."""
    return replace(one, points=tuple(replace(point, sampling_error=error) for point in one.points))


def places(alarms: Sequence[Alarm]) -> list[tuple[str, int, int]]:
    return [(alarm.series.category, alarm.at, alarm.since) for alarm in alarms]


# --- the limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [100.0, 1000.0])
def test_the_limit_gives_the_stated_run_length(length: float) -> None:
    rng = np.random.default_rng(1)
    h, total, alarms, steps = limit(length), np.zeros(5000), 0, 2000
    for _ in range(steps):
        total = np.maximum(0.0, total + rng.standard_normal(5000) - 1.0)
        over = total > h
        alarms += int(over.sum())
        total[over] = 0.0
    expected = 5000 * steps / length
    assert abs(alarms - expected) < 4 * math.sqrt(expected)


def test_the_limit_agrees_with_the_textbook() -> None:
    # Montgomery, Introduction to Statistical Quality Control: k = 1 and h = 2.52 have 370 runs, two-sided
    assert limit(2 * 370.0) == pytest.approx(2.52, abs=0.005)
    lengths = [10.0, 30.0, 1e3, 1e5, 1e7, 1e8]
    assert np.all(np.diff([limit(length) for length in lengths]) > 0)
    assert limit(1e8) == pytest.approx(limit(1e7) + math.log(10) / 2, abs=0.02)


def test_students_t_becomes_normal() -> None:
    watch = drift._Watch(series([]))
    for degrees in (9, 19, 100):
        watch.spread = drift._Spread(float(degrees), degrees)
        for value in (-4.0, -1.5, 0.0, 0.7, 3.0):
            assert watch._score(value, watch.spread) == pytest.approx(norm.ppf(t.cdf(value, degrees)), abs=0.01)


def test_the_limit_is_higher_where_less_is_known() -> None:
    few, many = 10.0, 1e9
    assert limit(1000.0, 0.0, many) == pytest.approx(limit(1000.0))
    assert limit(1000.0, 0.0, few) == pytest.approx(limit(1000.0) + math.log(3.0) / 2.0)
    # 10 residuals of autocorrelation .6 tell as much of their variance as 10 * .64 / 1.36 independent ones
    known = 10.0 * 0.64 / 1.36
    assert limit(1000.0, 0.6, few) == pytest.approx(limit(1000.0, 0.6) + 4.0 * math.log1p(20.0 / known) / 2.0)
    assert limit(1000.0, 0.6, 0.0) == limit(1000.0, 0.6)


# --- rates and delays -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spread", "young"), [(1.0, 1.0), (math.sqrt(2.0), 2.0)], ids=["errors right", "errors leave out half the variance"]
)
def test_false_alarms_are_as_seldom_as_stated_over_all_series(spread: float, young: float) -> None:
    rng = np.random.default_rng(7)
    long = len(monitor(histories(spread * rng.standard_normal((6, 3000)))))
    months = 0  # alarms of the learned level: earlier ones hold where runs vary by their errors alone
    for _ in range(100):
        months += sum(alarm.at >= BASELINE for alarm in monitor(histories(spread * rng.standard_normal((6, 40)))))
    assert long <= poisson.ppf(0.975, 3.0)
    assert months <= poisson.ppf(0.975, 3.0 * young)


def test_a_tighter_rate_is_kept_too() -> None:
    rng = np.random.default_rng(8)
    found = sum(len(monitor(histories(rng.standard_normal((3, 1000))), average_run_length=50.0)) for _ in range(3))
    assert 3 * 990 / 50 / 2 < found <= poisson.ppf(0.995, 3 * 990 / 50)


@pytest.mark.parametrize("count", [1, 6])
def test_a_drop_of_three_standard_errors_is_found_soon(count: int) -> None:
    rng, delays = np.random.default_rng(9), []
    for _ in range(100):
        values = rng.standard_normal((count, 30))
        values[0, BASELINE:] -= 3.0
        found = [alarm.at for alarm in monitor(histories(values)) if not alarm.series.category]
        delays.append(found[0] - BASELINE + 1 if found else math.inf)
    assert np.median(delays) <= 4
    assert np.mean(np.array(delays) <= 6) >= 0.9


def wandering(rng: np.random.Generator, runs: int, count: int, rho: float) -> np.ndarray:
    """Stationary normal series of autocorrelation rho and variance 1, shape (count, runs)."""
    values = rng.standard_normal((count, runs))
    for n in range(1, runs):
        values[:, n] = rho * values[:, n - 1] + math.sqrt(1.0 - rho**2) * values[:, n]
    return values


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("rho", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize(("length", "most"), [(200.0, 1.6), (1000.0, 1.1)])
def test_the_limit_of_autocorrelated_residuals_gives_the_stated_run_length(
    length: float, most: float, rho: float
) -> None:
    rng = np.random.default_rng(2)
    h, total, alarms, steps, z = limit(length, rho), np.zeros(3000), 0, 1500, rng.standard_normal(3000)
    for _ in range(steps):
        z = rho * z + math.sqrt(1.0 - rho**2) * rng.standard_normal(3000)
        total = np.maximum(0.0, total - z - 1.0)
        over = total > h
        alarms += int(over.sum())
        total[over] = 0.0
    assert 0.6 < alarms * length / (3000 * steps) < most
    assert limit(length, -0.5) == limit(length)


def test_series_that_wander_alarm_few_times_as_often_as_stated() -> None:
    rng = np.random.default_rng(3)
    found = [alarm for _ in range(100) for alarm in monitor(histories(wandering(rng, 100, 1, 0.8)))]
    assert len(found) <= 2.5 * 9.0  # 9 are stated; with the limit of independent runs there are 100 and more
    assert all("at a steady level, one such alarm" in alarm.sentence for alarm in found)
    assert np.mean(["; runs in a row are alike here (autocorrelation ." in alarm.sentence for alarm in found]) > 0.6
    assert monitor(histories(np.hstack([wandering(rng, 40, 1, 0.8), np.full((1, 10), -8.0)])))


def test_the_change_is_dated() -> None:
    rng, dated = np.random.default_rng(10), []
    for _ in range(100):
        values = rng.standard_normal(30)
        values[15:] -= 4.0
        dated += [alarm.since for alarm in monitor([series(values.tolist())])[:1]]
    assert np.mean(np.array(dated) == 15) > 0.8
    assert np.mean(np.abs(np.array(dated) - 15) <= 1) > 0.9


# --- what an alarm is -------------------------------------------------------------------------------------------------


def test_an_alarm_lasts_until_the_level_is_back() -> None:
    values = [*LEVEL, 0.2, -0.1, *[-4.0] * 8, *[0.1, -0.3] * 6]
    one = series(values)
    (alarm,) = monitor([one])
    assert (alarm.at, alarm.since, alarm.until) == (13, 12, 23)
    assert alarm.before == pytest.approx(np.mean([*LEVEL, 0.2, -0.1]))
    assert alarm.after == -4.0
    assert alarm.sentence == (
        "ability of text fell from .02 (12 runs) to -4.00 (8 runs, since 2031-01-13 with step-12): at a steady level, "
        "one such alarm is expected in 1 000 runs"
    )
    assert states(values) == [False] * 13 + [True] * 10 + [False] * 9


def states(values: Sequence[float]) -> list[bool]:
    """Whether an alarm lasts after each run."""
    runs = [series(values[: n + 1]) for n in range(len(values))]
    return [bool(lasting(monitor([one]), [one])) for one in runs]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("before", "after", "error"), [(0.89, 0.42, 0.03), (0.89, 0.80, 0.03), (2.0, -3.0, 0.4)])
def test_no_run_at_the_lower_level_ends_an_alarm(before: float, after: float, error: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        noise = error * rng.standard_normal(70)
        values = np.where(np.arange(70) < 12, before, after) + noise
        found = [bool(monitor([series(values[:n].tolist(), error)])) for n in range(12, 71)]
        (alarm, *more) = monitor([series(values.tolist(), error)])
        assert found == sorted(found)
        assert alarm.until is None
        assert not more


def test_one_run_at_the_old_level_ends_no_alarm_and_a_part_of_the_way_back_ends_none() -> None:
    fallen = [*LEVEL, *[-6.0] * 4]
    assert states([*fallen, 0.5, *[-6.0] * 3])[-4:] == [True] * 4
    assert all(states([*fallen, *[-3.0] * 12])[-12:])
    (alarm,) = monitor([series([*fallen, *LEVEL[::-1]])])
    assert alarm.until is not None
    assert alarm.until - len(fallen) < 5


def test_a_rise_above_the_old_level_ends_an_alarm() -> None:
    (alarm,) = monitor([series([*LEVEL, *[-6.0] * 4, *[4.0 + value for value in LEVEL]])])
    assert alarm.until == 14


def test_an_alarm_lasts_while_its_bank_is_asked() -> None:
    fallen = [series([*LEVEL, *[-6.0] * 4]), series([*LEVEL, *[-6.0] * 3], category="c")]
    assert len(lasting(monitor(fallen), fallen)) == 2  # a category that the newest run did not measure too
    other = replace(series(LEVEL, first=20), bank_hash="new")
    assert not lasting(monitor([*fallen, other]), [*fallen, other])
    elsewhere = replace(other, evaluation="other")
    assert len(lasting(monitor([*fallen, elsewhere]), [*fallen, elsewhere])) == 2


def test_a_category_is_named() -> None:
    one = series([0.8 + 0.02 * value for value in LEVEL] + [0.6] * 4, 0.03, category="counting")
    one = replace(one, points=tuple(replace(point, subject="") for point in one.points))
    (alarm, *_) = monitor([one], average_run_length=12_500.0)
    assert alarm.sentence == (
        "accuracy of text in counting fell from .800 (10 runs) to .600 (4 runs, since 2031-01-11): at a steady level, "
        "one such alarm is expected in 12 500 runs"
    )


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        (1, "1 run: nothing to compare with yet"),
        (2, "2 of 10 runs: alarms by the errors of the runs alone"),
        (10, "10 of 10 runs: alarms by the errors of the runs alone"),
        (11, ""),
    ],
)
def test_a_series_says_what_is_known_of_its_level(runs: int, state: str) -> None:
    points = tuple(SeriesPoint(f"r{n:02}", f"2031-05-{n + 1:02}", "s", "c", 0.9, 0.02) for n in range(runs))
    assert Series("text", "b", "h", "s", "accuracy", "", points).learning == state


def test_no_series_and_no_run_alarm_nothing() -> None:
    assert not monitor([series([])])
    assert not monitor([])
    assert not monitor([series([5.0])])


def test_the_first_runs_alarm_by_their_errors_until_the_level_is_back() -> None:
    values = [*LEVEL[:4], -5.0, -5.0, -5.0, *LEVEL[:5], *LEVEL]
    (alarm,) = monitor([series(values)])
    assert (alarm.at, alarm.since, alarm.until) == (4, 4, 9)
    assert alarm.before == pytest.approx(np.mean(LEVEL[:4]))
    assert alarm.sentence.endswith(
        "at a steady level, at most one evaluation in 100 has such an alarm within 10 runs, if these vary by their "
        "errors alone"
    )
    lower = [value - 5.0 for value in LEVEL]
    (alarm,) = monitor([series([*LEVEL[:4], *lower, *lower])])
    assert alarm.until is None
    assert alarm.after == pytest.approx(np.mean(lower))


def test_rises_alarm_at_no_time() -> None:
    assert not monitor([series(np.linspace(-20.0, 20.0, 30).tolist())])


def test_the_series_of_an_evaluation_share_the_early_rate() -> None:
    drop = series([0.0, 0.1, -0.1, 0.0, *[-4.0] * 4])
    alone = places(monitor([drop]))[0][1]
    beside = [series([0.0] * 8, category=f"c{k}") for k in range(40)]
    assert places(monitor([drop, *beside]))[0][1] > alone
    foreign = [replace(one, evaluation="other") for one in beside]
    assert places(monitor([drop, *foreign]))[0][1] == alone


def test_the_first_runs_take_the_error_of_new_items_and_answers() -> None:
    drop = series([0.0, 0.1, -0.1, 0.0, *[-5.0] * 4])
    assert monitor([drop])
    assert not monitor([sampled(drop, 4.0)])
    # an error that is small by luck counts as the others
    lucky = [replace(drop.points[0], sampling_error=0.01), *drop.points[1:5]]
    lucky[4] = replace(lucky[4], value=-1.0)
    assert not monitor([replace(drop, points=tuple(lucky))])


def test_one_odd_run_alone_neither_alarms_nor_moves_the_level() -> None:
    values = [*LEVEL, 0.1, -30.0, *LEVEL]
    assert not monitor([series(values)])
    (alarm, *_) = monitor([series([*values, -4.0, -4.0, -4.0])])
    assert alarm.since == len(values)
    assert alarm.before == pytest.approx(np.mean([*LEVEL, 0.1, *LEVEL]))


def test_a_rise_that_lasts_is_the_new_level_and_one_that_does_not_is_none() -> None:
    high = [5.0 + value for value in LEVEL]
    assert not monitor([series([*LEVEL, *high, *high])])
    (alarm, *_) = monitor([series([*LEVEL, *high, *LEVEL])])
    assert alarm.before == pytest.approx(np.mean(high))
    assert alarm.since == 20
    assert not monitor([series([*LEVEL, *high[:6], *LEVEL])])


def test_a_climb_is_followed() -> None:
    rng = np.random.default_rng(3)
    climb = (0.4 * np.arange(60) + rng.standard_normal(60)).tolist()
    assert not monitor([series(climb)])
    alarms = monitor([series(climb + [12.0] * 5)])
    assert alarms
    assert alarms[0].since == 60


def test_series_of_the_same_runs_share_the_rate() -> None:
    drop = series([*LEVEL, *[-2.5] * 6])
    alone = places(monitor([drop]))
    assert alone
    others = [series([0.0] * 16, category=f"c{k}", evaluation="other") for k in range(40)]
    assert places(monitor([drop, *others]))[0][1] > alone[0][1]
    later = [series([0.0] * 16, category=f"c{k}", evaluation="other", first=100) for k in range(40)]
    assert places(monitor([drop, *later])) == alone


def test_errors_that_are_small_by_luck_do_not_count_more() -> None:
    values = [1.0, 0.9, 1.0, 0.9, 1.0, 0.9, 1.0, 0.9, 1.0, 0.9]
    errors = [0.01 if value == 1.0 else 0.1 for value in values]
    assert not monitor([series(values * 4, errors * 4, category="c")])
    (alarm, *_) = monitor([series([*values, 0.4, 0.4, 0.4], [*errors, 0.1, 0.1, 0.1], category="c")])
    assert alarm.before == pytest.approx(0.95, abs=0.02)


def test_a_spread_beyond_the_errors_is_learned() -> None:
    wide = [4 * value for value in LEVEL]
    assert monitor([series([*LEVEL, -3.0, -3.0, -3.0])])
    assert not monitor([sampled(series([*wide, -3.0, -3.0, -3.0]), 4.0)])
    # and the evaluation's other series lend theirs, which another evaluation's do not
    noisy = [sampled(series(wide * 4, category=f"c{k}"), 4.0) for k in range(5)]
    drop = [*LEVEL, *[-2.6] * 4]
    assert not monitor([series(drop), *noisy])
    foreign = [replace(one, evaluation="other") for one in noisy]
    assert monitor([series(drop), *foreign])


def test_extremes_break_nothing() -> None:
    for extreme in (1e308, -1e308):
        for error in (1e-308, 1e308):
            values, errors = [*LEVEL, *LEVEL], [1.0] * 20
            for at in (3, 12, 13):
                values[at], errors[at] = extreme, error
            assert all(math.isfinite(alarm.before + alarm.after) for alarm in monitor([series(values, errors)] * 2))
    assert not monitor([sampled(series(LEVEL * 3, 1e-308), 1.0)])
    (alarm,) = monitor([series([1e308] * 3 + [-1e308] * 3, 1e-308)])
    assert math.isfinite(alarm.before + alarm.after)


# --- properties -------------------------------------------------------------------------------------------------------

RUNS = st.lists(st.tuples(st.floats(-6, 6), st.floats(0.2, 3)), min_size=11, max_size=40)


@given(RUNS, RUNS, st.integers(1, 40))
def test_later_runs_take_no_alarm_back(
    first: list[tuple[float, float]], second: list[tuple[float, float]], cut: int
) -> None:
    whole = [series([v for v, _ in rows], [e for _, e in rows], category=c) for rows, c in ((first, ""), (second, "c"))]
    part = [replace(one, points=one.points[:cut]) for one in whole]
    before = places(monitor(part, average_run_length=20.0))
    assert before == [place for place in places(monitor(whole, average_run_length=20.0)) if place[1] < cut]


@given(RUNS, RUNS, st.sampled_from([0.25, 8.0]), st.floats(-3, 3))
def test_neither_the_unit_nor_the_order_matters(
    first: list[tuple[float, float]], second: list[tuple[float, float]], scale: float, origin: float
) -> None:
    plain = [series([v for v, _ in rows], [e for _, e in rows], category=c) for rows, c in ((first, ""), (second, "c"))]
    moved = [
        replace(
            one,
            points=tuple(
                replace(p, value=scale * p.value + origin, standard_error=scale * p.standard_error) for p in one.points
            ),
        )
        for one in plain
    ]
    expected = sorted(places(monitor(plain, average_run_length=20.0)))
    assert sorted(places(monitor(moved[::-1], average_run_length=20.0))) == expected


def test_alarms_come_in_the_order_of_time() -> None:
    late = series([*LEVEL, *LEVEL, -5.0, -5.0, -5.0])
    early = series([*LEVEL, -5.0, -5.0, -5.0], category="c")
    times = [alarm.series.points[alarm.at].started for alarm in monitor([late, early])]
    assert times == sorted(times)
    assert len(set(times)) > 1
