"""The interviewer without a model: one rule, the same whatever the order, and sentences that are true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.interviewer.deterministic import DeterministicInterviewer, categories_of
from pytest_adaptive_eval.interviewer.interviewer import Candidate, CategoryRow, Interviewer, MemoryTable
from pytest_adaptive_eval.items.item import Item

AGENT = DeterministicInterviewer()


def one(position=0, categories=("a",), difficulty=0.0, probability=0.5, distance=1.0):
    return Candidate(position, Item(f"q{position}"), tuple(categories), difficulty, probability, distance)


def table(asked=None, **counts):
    rows = [CategoryRow(name, count, None, None, None, None) for name, count in counts.items()]
    return MemoryTable(tuple(rows), sum(counts.values()) if asked is None else asked)


def test_it_is_an_interviewer():
    assert isinstance(AGENT, Interviewer)
    assert AGENT.account() == {"name": "deterministic"}


# The rule


def test_coverage_difficulty_and_distance_each_decide_alone():
    memory = table(a=5, b=1)
    assert AGENT.choose([one(0), one(1, "b")], memory, 0.0).index == 1
    assert AGENT.choose([one(0, probability=0.3), one(1), one(2, probability=0.9)], memory, 0.0).index == 1
    assert AGENT.choose([one(0), one(1, distance=2.0), one(2)], memory, 0.0).index == 1


def test_the_product_weighs_them():
    """Asked once for a category asked three times: twice the share, which a third of the distance outweighs."""
    memory = table(a=3, b=1)
    assert AGENT.choose([one(0), one(1, "b", distance=0.51)], memory, 0.0).index == 1
    assert AGENT.choose([one(0), one(1, "b", distance=0.49)], memory, 0.0).index == 0
    assert AGENT.choose([one(0), one(1, "b", probability=0.15)], memory, 0.0).index == 1  # 4 p q = .51
    assert AGENT.choose([one(0), one(1, "b", probability=0.14)], memory, 0.0).index == 0  # .48


def test_of_several_categories_the_least_asked_counts():
    memory = table(a=3, b=1)
    assert AGENT.choose([one(0, ["a"]), one(1, ["a", "b"])], memory, 0.0).index == 1
    assert AGENT.choose([one(0, ["b"]), one(1, ["a", "new"])], memory, 0.0).index == 1


def test_what_is_unknown_does_not_count():
    blind = [one(0, (), None, None, math.inf), one(1, (), None, None, math.inf)]
    assert AGENT.choose(blind, MemoryTable(), None).index == 0
    assert AGENT.choose(blind, MemoryTable(), None).reason == "chosen because it suits best, all in all"
    assert AGENT.choose([one(0, probability=None), one(1, probability=None, distance=3.0)], table(a=1), None).index == 1


candidates = st.lists(
    st.builds(
        one,
        st.integers(0, 10**6),
        st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        st.none() | st.floats(-4, 4),
        st.none() | st.floats(0, 1),
        st.floats(0, 2) | st.just(math.inf),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda c: c.position,
)


@pytest.mark.slow
@given(candidates, st.randoms(), st.integers(0, 4), st.integers(0, 4), st.none() | st.floats(-4, 4))
def test_the_order_of_the_candidates_does_not_matter(offered, random, a, b, ability):
    memory = table(a=a + 1, b=b + 1)
    first = AGENT.choose(offered, memory, ability)
    shuffled = random.sample(offered, len(offered))
    second = AGENT.choose(shuffled, memory, ability)
    assert offered[first.index].position == shuffled[second.index].position
    assert first.reason == second.reason
    assert first.reason.startswith("chosen because ")
    assert first.fallback == ""


# What it says


def test_a_reason_reads_well():
    memory = table(asked=31, addition=2, counting=15, shapes=14)
    offered = [one(0, ["addition"], 0.4, 0.55, 1.2), one(1, ["counting"], 0.6, 0.5, 1.1)]
    assert AGENT.choose(offered, memory, 0.6).reason == (
        "chosen because addition was asked least (2 of 31 questions), its difficulty 0.4 is near the ability 0.6, and "
        "it is far from all questions so far"
    )


@pytest.mark.parametrize(
    ("offered", "memory", "ability", "text"),
    [
        ([one(0, ["new"], 3.0, 0.1, 0.5), one(1)], table(a=9), 0.0, "no question was of new yet"),
        (
            [one(0, ["b"], 0.2, 0.5, 0.5), one(1, ["c"])],
            table(a=1, b=2, c=9),
            0.0,
            "b was asked less than the other candidates (2 of 12 questions) and its difficulty 0.2 is near the "
            "ability 0.0",
        ),
        (
            [one(0, [], 2.5, 0.2), one(1, [], 3.0, 0.1)],
            table(a=1),
            0.5,
            "its difficulty 2.5 is the nearest to the ability 0.5 and it is far from all questions so far",
        ),
        ([one(0, [], 2.5, 0.52, 0.9), one(1, [], 0.0, 0.3)], table(a=1), None, "the chance of a right answer is 52%"),
        ([one(0, ["b"], None, None, 2.0)], table(a=1, b=4), None, "it is far from all questions so far"),
    ],
)
def test_reasons_are_true(offered, memory, ability, text):
    choice = AGENT.choose(offered, memory, ability)
    assert choice.index == 0
    assert choice.reason == "chosen because " + text


# Categories


def test_the_finest_category_that_another_item_shares():
    paths = [("math", "algebra", "q1"), ("math", "algebra", "q2"), ("math", "sums"), ("art",), ("music", "x")]
    items = [Item(f"q{i}", category=path) for i, path in enumerate(paths)]
    points = np.zeros((5, 2))
    assert categories_of(items, points) == (("algebra",), ("algebra",), ("math",), ("other",), ("other",))


def test_two_categories_of_one_name_keep_their_parents():
    paths = [("math", "other"), ("math", "other"), ("art", "other"), ("art", "other")]
    items = [Item(f"q{i}", category=path) for i, path in enumerate(paths)]
    assert categories_of(items, np.zeros((4, 1)))[1:3] == (("math / other",), ("art / other",))


def test_without_categories_clusters_of_the_embeddings_serve():
    points = np.repeat(np.random.default_rng(0).normal(size=(10, 4)) * 5, 6, axis=0)
    for items in ([], [Item(f"q{i}", category=(f"c{i}",)) for i in range(60)]):  # of one item each is none
        found = categories_of(items, points)
        assert len(found) == 60
        assert all(len(set(found[6 * k : 6 * k + 6])) == 1 for k in range(10))
        assert {name for (name,) in found} <= {f"group {k}" for k in range(1, 11)}


def test_categories_by_id_or_of_the_item():
    agent = DeterministicInterviewer({"q0": ("x", "y")})
    items = [Item("q0", category=("z",)), Item("q1", category=("broad", "fine")), Item("q2")]
    assert agent.categorise(items, ["known"]) == [("x", "y"), ("fine",), ("other",)]
