"""The number of questions of a call follows from the seconds that earlier calls took."""

from __future__ import annotations

import pytest

from pytest_adaptive_eval.plugin.ask.call_sizes import CallSizes


def sizes(**seconds: float) -> CallSizes:
    """Sizes after calls of these seconds, ``of_8=4.4`` for one of 8 questions."""
    found = CallSizes()
    for name, taken in seconds.items():
        found.note(int(name.removeprefix("of_")), taken)
    return found


def test_the_first_call_holds_what_it_is_told() -> None:
    assert CallSizes().best(256, first=30, least=8) == 30
    assert CallSizes().best(5, first=8, least=8) == 5


def test_calls_of_a_device_that_takes_any_number_in_one_time_grow_to_what_fits() -> None:
    assert sizes(of_8=0.5).best(256, first=8, least=8) == 32
    assert sizes(of_8=0.5, of_32=0.5).best(256, first=8, least=8) == 128
    assert sizes(of_8=0.5, of_32=0.5, of_128=0.5).best(256, first=8, least=8) == 256


def test_calls_whose_time_is_in_proportion_stay_small() -> None:
    assert sizes(of_8=8.0, of_16=16.0).best(256, first=8, least=8) == 8


@pytest.mark.parametrize(("fixed", "each"), [(2.0, 0.3), (1.0, 0.1), (0.5, 0.5)])
def test_a_question_lasts_a_quarter_longer_than_it_must(fixed: float, each: float) -> None:
    times = {f"of_{size}": fixed + each * size for size in (8, 32)}
    best = sizes(**times).best(1000, first=1, least=1)
    assert best == min(round(4 * fixed / each), int((10.0 - fixed) / each))


def test_a_call_lasts_about_ten_seconds_at_most() -> None:
    assert sizes(of_8=9.0, of_16=9.9).best(256, first=1, least=1) == 16


def test_the_latest_time_of_a_size_counts() -> None:
    found = sizes(of_8=5.0, of_16=5.0)
    found.note(8, 0.5)
    found.note(16, 0.5)
    assert found.best(256, first=8, least=8) == 64
