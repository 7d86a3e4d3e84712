"""Energy of a network, the weighted share of its routes' levels that the interviewee solves.

MACEval's text does not give its formula; this is our definition.  With weights w that sum to 1, the number of levels L
of a node and the area A under its expected accuracies (ACC-AUC) ::

    energy = sum over the routes of  w * A / L * [each node before it has an area of at least opens_at]

which is in [0, 1]. A route is a path to a node.

Areas of different nodes come from different questions. Their errors are independent, so their half widths are added in
squares (Zou and Donner 2008). The ranges due to unadministered levels and missing scores are added up. A node that was
not run contributes at least 0, and at most its weight, or 0 if an earlier node's upper bound is below the threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import NormalDist
from typing import NamedTuple, Protocol

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Levels, area_bounds, difference

METHOD = "by levels and routes"
#: Confidence of the bounds from which a standard error is computed.
ERROR_CONFIDENCE = 0.95


class NetworkScores(Protocol):
    """Results of a network from which its energy is computed, such as a `result.NetworkResult`."""

    @property
    def nodes(self) -> Sequence[NodeResult]:
        """Results of the nodes, in the order of their declaration."""

    @property
    def seed(self) -> int:
        """Seed of the questions."""

    @property
    def repetitions(self) -> int:
        """Rounds of each node."""


def may_open(nodes: Sequence[NodeResult], confidence: float) -> Mapping[str, bool]:
    """Return, by node, whether the upper bounds of all earlier areas reach the thresholds on its routes."""
    by_name = {node.name: node for node in nodes}

    @cache
    def reachable(name: str) -> bool:
        node = by_name[name]
        for before in (by_name[other] for other in node.after):
            area = before.interval(confidence)
            if not reachable(before.name) or (area.high if area else before.levels) < node.opens_at:
                return False
        return True

    return {node.name: reachable(node.name) for node in nodes}


class _Part(NamedTuple):
    """Contribution of a route: estimate, range without sampling error, and half widths of the sampling error."""

    estimate: float = 0.0
    low: float = 0.0
    high: float = 0.0
    down: float = 0.0
    up: float = 0.0

    def __neg__(self) -> _Part:
        """Return the contribution of a subtracted route."""
        return _Part(-self.estimate, -self.high, -self.low, self.up, self.down)


def _part(node: NodeResult, confidence: float, may_open: bool) -> _Part:
    ladder, share = node.ladder, node.weight / node.levels
    if ladder is None:
        return _Part(high=node.weight if may_open else 0.0)
    least, most = ladder.filled(0.0), ladder.filled(1.0)
    return _Part(
        share * ladder.area,
        share * least.area,
        share * (most.area + ladder.above(confidence)),
        share * (least.area - area_bounds(Levels.of(least.scores), confidence)[0]),
        share * (area_bounds(Levels.of(most.scores), confidence)[1] - most.area),
    )


def _pair(a: NodeResult, b: NodeResult, confidence: float) -> _Part:
    """Return the difference of two nodes with the same questions."""
    assert a.ladder is not None
    assert b.ladder is not None
    share, change = a.weight / a.levels, a.area - b.area
    sampling, whole = (difference(a.ladder, b.ladder, confidence, untested) for untested in ("zero", "bounded"))
    return _Part(
        share * change,
        share * (change + whole.low - sampling.low),
        share * (change + whole.high - sampling.high),
        share * (change - sampling.low),
        share * (sampling.high - change),
    )


def _sum(parts: Iterable[_Part], least: float, confidence: float, method: str, most: float = 1.0) -> Interval:
    rows = [(part.estimate, part.low, part.high, part.down**2, part.up**2) for part in parts]
    estimate, low, high, down, up = (sum(column) for column in zip(*rows, strict=True))
    low, high = max(low - down**0.5, least), min(high + up**0.5, most)
    return Interval(min(max(estimate, low), high), low, high, confidence, method)


def energy(nodes: Sequence[NodeResult], confidence: float = 0.95) -> Interval:
    """Return the energy with its bounds.

    Args:
        nodes: Their weights sum to 1.
    """
    possible = may_open(nodes, confidence)
    return _sum((_part(node, confidence, possible[node.name]) for node in nodes), 0.0, confidence, METHOD)


def mean_area(nodes: Sequence[NodeResult], confidence: float = 0.95) -> Interval | None:
    """Return the mean area of nodes with the same number of levels, with its bounds; None if one was not run."""
    if not all(node.opened for node in nodes):
        return None
    levels = nodes[0].levels
    parts = (_part(replace(node, weight=levels / len(nodes)), confidence, True) for node in nodes)
    return _sum(parts, 0.0, confidence, "mean of areas by levels", most=float(levels))


def energy_error(nodes: Sequence[NodeResult]) -> float | None:
    """Return the standard error of the energy by sampling alone, for repetitions; None if no node was run.

    What unadministered levels and closed nodes may add is the same in all repetitions.
    """
    z = NormalDist().inv_cdf(ERROR_CONFIDENCE)
    parts = [_part(node, ERROR_CONFIDENCE, False) for node in nodes if node.opened]
    variance = sum(((part.down + part.up) / (2.0 * z)) ** 2 for part in parts)
    return variance**0.5 if parts else None


def energy_difference(candidate: NetworkScores, baseline: NetworkScores, confidence: float = 0.95) -> Interval:
    """Return the candidate's energy minus the baseline's, paired by question if both got the same questions.

    Raises:
        EstimationError: The two networks do not have the same nodes.
    """
    pairs = list(zip(candidate.nodes, baseline.nodes, strict=False))
    if len(candidate.nodes) != len(baseline.nodes) or any(_shape(a) != _shape(b) for a, b in pairs):
        raise EstimationError("the two networks do not have the same nodes with the same weights, levels and queries")
    same_questions = _same_questions(candidate, baseline)
    possible = may_open(candidate.nodes, confidence), may_open(baseline.nodes, confidence)
    parts: list[_Part] = []
    for a, b in pairs:
        if same_questions and a.questions == "code" and a.opened and b.opened:
            parts.append(_pair(a, b, confidence))
        else:
            parts.append(_part(a, confidence, possible[0][a.name]))
            parts.append(-_part(b, confidence, possible[1][b.name]))
    return _sum(parts, -1.0, confidence, f"{METHOD}, paired")


def area_difference(candidate: NetworkScores, baseline: NetworkScores, name: str, confidence: float = 0.95) -> Interval:
    """Return the area of the candidate's node less the baseline's, paired by question if both got the same questions.

    Levels that neither administered count as equal, since both had failed before.

    Raises:
        EstimationError: The two nodes do not have the same levels and queries, or one was not run.
    """
    a, b = (next(node for node in scores.nodes if node.name == name) for scores in (candidate, baseline))
    if _shape(a) != _shape(b):
        raise EstimationError(f"the node {name} does not have the same task, levels and queries in both networks")
    if a.ladder is None or b.ladder is None:
        raise EstimationError(f"the node {name} was not run in both networks")
    if _same_questions(candidate, baseline) and a.questions == "code":
        return difference(a.ladder, b.ladder, confidence, "zero")
    return a.ladder.interval(confidence).less(b.ladder.interval(confidence))


def _same_questions(candidate: NetworkScores, baseline: NetworkScores) -> bool:
    return candidate.seed == baseline.seed and candidate.repetitions == baseline.repetitions == 1


def _shape(node: NodeResult) -> tuple[object, ...]:
    return (
        node.name,
        node.task,
        node.levels,
        node.queries,
        node.stop_at,
        node.weight,
        node.after,
        node.opens_at,
        node.questions,
        tuple(member.name for member in node.panel[1:]),
    )
