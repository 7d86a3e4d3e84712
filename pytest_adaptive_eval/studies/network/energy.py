"""The energy of a network: how much of what its routes hold the interviewee masters.

MACEval's own formula is not to be had from its text; this is our definition.  With weights w that add up to 1, a level
cap L a node and the area A under its accuracies (ACC-AUC, at the accuracies that endlessly many questions would
show) ::

    energy = sum over the routes of  w * A / L * [each node before it has an area of at least opens_at]

which lies from 0 to 1.  A route is the way into a node.

Areas of different nodes come from different questions, so that their errors are independent, and their bounds are
joined by the squares of the half widths (Zou and Donner 2008).  What levels that were not asked may add, and what
missing scores may be, is no such error: it is added up.  A node that stayed closed adds nothing at least; at most
nothing where a node before it surely falls short, and else its whole weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Levels, area_bounds, difference
from pytest_adaptive_eval.studies.network.node_result import NodeResult

__all__ = ["NetworkScores", "energy", "energy_difference", "may_open"]

METHOD = "by levels and routes"


class NetworkScores(Protocol):
    """What a network's energy is computed from, such as a `result.NetworkResult`."""

    @property
    def nodes(self) -> Sequence[NodeResult]:
        """Results of the nodes, in the order in which they were written."""

    @property
    def seed(self) -> int:
        """Seed of the questions."""

    @property
    def repetitions(self) -> int:
        """Rounds of each node."""


def may_open(nodes: Sequence[NodeResult], confidence: float) -> Mapping[str, bool]:
    """By node, whether all before it may have the area that it wants, by their upper bounds."""
    by_name = {node.name: node for node in nodes}
    found: dict[str, bool] = {}

    def reach(node: NodeResult) -> bool:
        if node.name not in found:
            found[node.name] = True
            for name in node.after:
                before = by_name[name]
                area = before.interval(confidence)
                high = area.high if area else float(before.levels)
                if not reach(before) or high < node.opens_at:
                    found[node.name] = False
        return found[node.name]

    for node in nodes:
        reach(node)
    return found


class _Part(NamedTuple):
    """What a route adds: the estimate, what it is at least and most besides chance, and the half widths by chance."""

    estimate: float = 0.0
    low: float = 0.0
    high: float = 0.0
    down: float = 0.0
    up: float = 0.0

    def taken(self) -> _Part:
        """Of a route whose addition is subtracted."""
        return _Part(-self.estimate, -self.high, -self.low, self.up, self.down)


def _part(node: NodeResult, confidence: float, may: bool) -> _Part:
    ladder, share = node.ladder, node.weight / node.levels
    if ladder is None:
        return _Part(high=node.weight if may else 0.0)
    least, most = ladder.filled(0.0), ladder.filled(1.0)
    return _Part(
        share * ladder.area,
        share * least.area,
        share * (most.area + ladder.above(confidence)),
        share * (least.area - area_bounds(Levels.of(least.scores), confidence)[0]),
        share * (area_bounds(Levels.of(most.scores), confidence)[1] - most.area),
    )


def _pair(a: NodeResult, b: NodeResult, confidence: float) -> _Part:
    """The difference of two that were asked the same questions."""
    assert a.ladder is not None
    assert b.ladder is not None
    share, change = a.weight / a.levels, a.area - b.area
    chance, all_ = (difference(a.ladder, b.ladder, confidence, untested) for untested in ("zero", "bounded"))
    return _Part(
        share * change,
        share * (change + all_.low - chance.low),
        share * (change + all_.high - chance.high),
        share * (change - chance.low),
        share * (chance.high - change),
    )


def _joined(parts: Iterable[_Part], least: float, confidence: float, method: str) -> Interval:
    rows = [(part.estimate, part.low, part.high, part.down**2, part.up**2) for part in parts]
    estimate, low, high, down, up = (sum(column) for column in zip(*rows, strict=True))
    low, high = max(low - down**0.5, least), min(high + up**0.5, 1.0)
    return Interval(min(max(estimate, low), high), low, high, confidence, method)


def energy(nodes: Sequence[NodeResult], confidence: float = 0.95) -> Interval:
    """The energy with its bounds.

    Parameters
    ----------
    nodes : sequence of NodeResult
        Their weights add up to 1.
    confidence : float
        Of each one-sided bound.
    """
    possible = may_open(nodes, confidence)
    return _joined((_part(node, confidence, possible[node.name]) for node in nodes), 0.0, confidence, METHOD)


def energy_difference(candidate: NetworkScores, baseline: NetworkScores, confidence: float = 0.95) -> Interval:
    """The candidate's energy less the baseline's, question by question where both were asked the same.

    Raises
    ------
    EstimationError
        The two networks do not have the same nodes.
    """
    pairs = list(zip(candidate.nodes, baseline.nodes, strict=False))
    if len(candidate.nodes) != len(baseline.nodes) or any(_shape(a) != _shape(b) for a, b in pairs):
        raise EstimationError("the two networks do not have the same nodes with the same weights, levels and queries")
    same = candidate.seed == baseline.seed and candidate.repetitions == baseline.repetitions == 1
    possible = may_open(candidate.nodes, confidence), may_open(baseline.nodes, confidence)
    parts: list[_Part] = []
    for a, b in pairs:
        if same and a.questions == "code" and a.opened and b.opened:
            parts.append(_pair(a, b, confidence))
        else:
            parts.append(_part(a, confidence, possible[0][a.name]))
            parts.append(_part(b, confidence, possible[1][b.name]).taken())
    return _joined(parts, -1.0, confidence, f"{METHOD}, paired")


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
