"""The memory table: exact sums, several categories a question, names of any kind."""

from __future__ import annotations

from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.interviewer.interviewer import LIMIT, CategoryRow, Memory, MemoryTable

numbers = st.none() | st.floats(-30, 30)
answers = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b", "c d", "e|f"]), min_size=1, max_size=3),
        numbers,
        st.none() | st.floats(0, 1),
    )
)


@given(answers)
def test_every_row_is_of_its_own_questions(told):
    memory = Memory()
    for entry in told:
        memory.add(*entry)
    table = memory.table
    assert table.asked == len(told)
    assert [row.name for row in table.rows] == list(dict.fromkeys(name for names, _, _ in told for name in names))
    for row in table.rows:
        own = [(b, score) for names, b, score in told if row.name in names]
        difficulties = [min(max(b, -LIMIT), LIMIT) for b, _ in own if b is not None]
        scores = [score for _, score in own if score is not None]
        assert row.count == table.count(row.name) == len(own)
        assert row.lowest == (min(difficulties) if difficulties else None)
        assert row.highest == (max(difficulties) if difficulties else None)
        assert row.mean == (fsum(difficulties) / len(difficulties) if difficulties else None)
        assert row.accuracy == (fsum(scores) / len(scores) if scores else None)


def test_precision_is_kept():
    memory = Memory()
    for _ in range(3):
        memory.add(["x"], 1 / 3, 1.0)
    memory.add(["x"], 0.125, 0.0)
    (row,) = memory.table.rows
    near: Any = pytest.approx(0.28125, abs=1e-15)
    assert row == CategoryRow("x", 4, 0.125, 1 / 3, near, 0.75)
    assert memory.table.to_json()[0]["highest"] == 1 / 3


def test_difficulties_far_off_do_not_make_the_mean():
    memory = Memory()
    for difficulty in (-209.0, 0.1, 80.0, 0.3):
        memory.add(["x"], difficulty, 1.0)
    (row,) = memory.table.rows
    assert (row.lowest, row.highest) == (-LIMIT, LIMIT)
    assert row.mean == pytest.approx(0.1)


def test_an_empty_table():
    assert Memory().table == MemoryTable()
    assert MemoryTable().count("x") == 0
