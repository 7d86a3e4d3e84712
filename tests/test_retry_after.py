"""Reading the HTTP header ``Retry-After``."""

from __future__ import annotations

import datetime
import math
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.retry_after import retry_after

NOW = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0.5", 0.5),
        ("2.", 2.0),
        ("9" * 40, 1e40),
        ("9" * 5000, math.inf),
        (format_datetime(NOW + datetime.timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - datetime.timedelta(seconds=90), usegmt=True), 0.0),
        ("Wed, 01 Jan 2025 01:00:30 +0100", 30.0),
        ("Wed, 01 Jan 2025 00:00:30 -0000", 30.0),
        ("Wed, 99 Jan 2025 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 251666697539.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("+3", None),
        ("1e3", None),
        ("1_000", None),
        ("٣", None),
        ("nan", None),
        ("inf", None),
        ("7; 8", None),
    ],
)
def test_seconds_of_a_number_or_a_date(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == (None if seconds is None else pytest.approx(seconds))


@given(st.text())
def test_any_text_gives_no_negative_wait(value: str) -> None:
    seconds = retry_after(value, NOW)
    assert seconds is None or seconds >= 0.0
