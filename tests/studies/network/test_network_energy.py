"""Energy: what it is, that its bounds hold, and differences between two subjects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from acting import Skilled, pool_of

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult, energy, energy_difference, may_open
from pytest_adaptive_eval.ladder.policy import Climb

CONFIDENCE = 0.95
CAP = 6


def node(name: str, scores: Any, weight: float = 1.0, **more: Any) -> NodeResult:
    levels = tuple(np.array(level, dtype=float) for level in scores)
    plain = {"opens_at": 0.0, "after": (), "opened": bool(levels), **more}
    return NodeResult(
        name,
        "addition",
        "digits",
        name,
        "task",
        CAP,
        10,
        0.0,
        weight,
        interviewer="",
        questions="code",
        scores=levels,
        **plain,
    )


def curve(rng: np.random.Generator) -> np.ndarray:
    """True accuracies by level, falling from a random ability on."""
    return 1.0 / (1.0 + np.exp(rng.uniform(0.7, 3.0) * (np.arange(1, CAP + 1) - rng.uniform(0.0, CAP + 1.0))))


def climbed(rng: np.random.Generator, true: np.ndarray, queries: int) -> list[np.ndarray]:
    way, levels = Climb(queries), []
    for p in true:
        levels.append((rng.random(queries) < p).astype(float))
        if way.side(levels[-1]) < 0:
            break
    return levels


def test_energy_is_the_weighted_sum_of_normalised_areas() -> None:
    nodes = [node("a", [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], 0.75), node("b", [[1] * 4] * CAP, 0.25)]
    found = energy(nodes)
    assert found.estimate == pytest.approx(0.75 * 1.5 / CAP + 0.25)
    assert 0 < found.low < found.estimate < found.high < 1


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("queries", [5, 10, 30])
def test_bounds_hold(queries: int) -> None:
    """Of four nodes with random curves; `benchmarks/network_energy.py --coverage` draws more."""
    rng = np.random.default_rng([7, queries])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    below = above = wide = 0.0
    draws = 150
    for _ in range(draws):
        curves = [curve(rng) for _ in weights]
        truth = float(sum(w * c.sum() / CAP for w, c in zip(weights, curves, strict=True)))
        nodes = [
            node(str(n), climbed(rng, c, queries), w) for n, (w, c) in enumerate(zip(weights, curves, strict=True))
        ]
        found = energy(nodes, CONFIDENCE)
        below += found.low <= truth
        above += found.high >= truth
        wide += found.high - found.low
    assert below / draws >= 0.93
    assert above / draws >= 0.93
    assert wide / draws < {5: 0.4, 10: 0.27, 30: 0.16}[queries]


def test_bounds_hold_in_trees() -> None:
    """Where children open only behind a parent that surely has the ability, the truth says so too."""
    rng, draws = np.random.default_rng(11), 150
    below = above = 0.0
    for _ in range(draws):
        root, child, other = (curve(rng) for _ in range(3))
        opens_at = 1.5
        truth = root.sum() / CAP / 3 + (root.sum() >= opens_at) * (child.sum() + other.sum()) / CAP / 3
        nodes = [node("root", climbed(rng, root, 10), 1 / 3)]
        area = nodes[0].interval(CONFIDENCE)
        assert area is not None
        for name, true in (("child", child), ("other", other)):
            scores = climbed(rng, true, 10) if area.low >= opens_at else ()
            nodes.append(node(name, scores, 1 / 3, after=("root",), opens_at=opens_at))
        found = energy(nodes, CONFIDENCE)
        below += found.low <= truth
        above += found.high >= truth
    assert below / draws >= 0.93
    assert above / draws >= 0.93


def test_missing_scores_count_both_ways() -> None:
    whole = energy([node("a", [[1] * 10, [1, 0] * 5, [0] * 10])])
    missing = energy([node("a", [[1] * 10, [1, 0, 1, 0, np.nan, np.nan, 1, 0, 1, 0], [0] * 10])])
    assert missing.low < whole.low
    assert missing.high > whole.high


def test_a_closed_node_adds_nothing_or_may_add_all() -> None:
    closed: dict[str, Any] = {"after": ("a",), "opens_at": 2.0}
    far = energy([node("a", [[0] * 30], 0.5), node("b", (), 0.5, **closed)])
    near = energy([node("a", [[1] * 5, [1, 1, 0, 0, 0], [0] * 5], 0.5), node("b", (), 0.5, **closed)])
    assert far.estimate == 0.0
    assert may_open([node("a", [[0] * 30]), node("b", (), **closed), node("c", (), after=("b",))], 0.95) == {
        "a": True,
        "b": False,
        "c": False,
    }
    assert far.high < 0.4
    assert near.high > 0.7
    assert near.low < near.estimate == pytest.approx(1.4 / CAP / 2)


def held(skill: dict[int, float], seed: int = 0, **more: Any) -> NetworkResult:
    data = {"seed": seed, "node": [{"task": "addition", "levels": 5}, {"task": "operations", "levels": 5}], **more}
    return hold_network(read_network(data, "sue"), pool_of(Skilled("sue", skill)))


def test_two_that_were_asked_the_same_are_compared_question_by_question() -> None:
    good, poor = {1: 1.0, 2: 0.8, 3: 0.4}, {1: 1.0, 2: 0.4, 3: 0.1}
    better, worse = held(good, queries=40), held(poor, queries=40)
    paired = energy_difference(better, worse)
    apart = energy_difference(better, held(poor, seed=1, queries=40))
    assert paired.estimate == pytest.approx(better.energy.estimate - worse.energy.estimate)
    assert 0 < paired.low < paired.estimate < paired.high
    assert paired.high - paired.low < apart.high - apart.low
    none = energy_difference(better, better)
    assert none.estimate == 0.0
    assert none.low < 0 < none.high
    mirrored = energy_difference(worse, better)
    assert mirrored.low == pytest.approx(-paired.high)
    assert mirrored.high == pytest.approx(-paired.low)


@pytest.mark.slow
def test_differences_hold() -> None:
    """Of two subjects with close curves, paired or not, the bounds hold."""
    rng, draws = np.random.default_rng(3), 100
    kept = {"paired": [0, 0], "apart": [0, 0]}
    for _ in range(draws):
        curves = [curve(rng) for _ in range(2)]
        others = [np.clip(c - 0.1, 0, 1) for c in curves]
        truth = sum((a - b).sum() / CAP / 2 for a, b in zip(curves, others, strict=True))
        base = held({1: 0.5})
        for how in kept:
            sides: list[list[NodeResult]] = [[], []]
            for n, pair in enumerate(zip(curves, others, strict=True)):
                drawn = rng.random((CAP, 10))
                for side, true in zip(sides, pair, strict=True):
                    draw = drawn if how == "paired" else rng.random((CAP, 10))
                    levels = []
                    for row, p in zip(draw, true, strict=True):
                        levels.append((row < p).astype(float))
                        if not levels[-1].any():
                            break
                    side.append(node(str(n), levels, 0.5))
            one, other = (replace(base, nodes=tuple(side)) for side in sides)
            found = energy_difference(one, other if how == "paired" else replace(other, seed=9), CONFIDENCE)
            kept[how][0] += found.low <= truth
            kept[how][1] += found.high >= truth
    for low, high in kept.values():
        assert low / draws >= 0.93
        assert high / draws >= 0.93


def test_networks_of_other_shapes_are_not_compared() -> None:
    with pytest.raises(EstimationError, match="same nodes"):
        energy_difference(held({}), held({}, queries=5))
