"""Result of a network: its nodes, the models and the energy.

The energy is the weighted share of the routes' levels that the interviewee solves. MACEval's text does not give its
formula; this is our definition.  With weights w that sum to 1, the number of levels L of a node and the area A under
its expected accuracies (ACC-AUC) ::

    energy = sum over the routes of  w * A / L * [each node before it has an area of at least opens_at]

which is in [0, 1]. A route is a path to a node.

Areas of different nodes come from different questions. Their errors are independent, so the cumulants of all levels of
all nodes are added, and the bounds are bounds of one sum, see `ladder.result.Cumulants`. (Half widths that are joined
node by node would correct each node for its own skewness. The correction of a sum of n alike nodes is that of one node
in total; n separate ones come to its n-fold over a root of n.) The ranges due to unadministered levels and missing
scores are added up. A node that was not run contributes at least 0, and at most its weight, or 0 if an earlier node's
upper bound is below the threshold. Accuracy is assumed never to rise with level, see `ladder.result`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pytest_adaptive_eval.errors import ConfigError, EstimationError
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.item import UNANSWERED, Status
from pytest_adaptive_eval.ladder.result import (
    Cumulants,
    Levels,
    area_cumulants,
    difference,
    difference_ends,
    pooled,
)
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.records.parts import plain

METHOD = "by levels and routes"
#: Confidence of the bounds from which a standard error is computed.
ERROR_CONFIDENCE = 0.95
CERTAIN = Cumulants(np.zeros(2), np.zeros(2))


def may_open(nodes: Sequence[NodeResult], confidence: float) -> Mapping[str, bool]:
    """Return, by node, whether the upper bounds of all earlier areas reach the thresholds on its routes."""
    by_name = {node.name: node for node in nodes}

    @cache
    def reachable(name: str) -> bool:
        node = by_name[name]
        for other in node.after:
            area = by_name[other].interval(confidence)
            highest: float = by_name[other].levels
            if area:
                highest = area.high
            if highest < node.opens_at or not reachable(other):
                return False
        return True

    return {node.name: reachable(node.name) for node in nodes}


class _Part(NamedTuple):
    """Contribution of a route: estimate, range without sampling error, and the sampling error at either end."""

    estimate: float = 0.0
    low: float = 0.0
    high: float = 0.0
    low_error: Cumulants = CERTAIN
    high_error: Cumulants = CERTAIN

    def __neg__(self) -> _Part:
        """Return the contribution of a subtracted route."""
        return _Part(-self.estimate, -self.high, -self.low, self.high_error.mirrored(), self.low_error.mirrored())


def _part(node: NodeResult, confidence: float, may_open: bool) -> _Part:
    ladder = node.ladder
    share = node.weight / node.levels
    if ladder is None and may_open:
        return _Part(high=node.weight)
    if ladder is None:
        return _Part()
    least = ladder.filled(0.0)
    most = ladder.filled(1.0)
    return _Part(
        share * ladder.area,
        share * least.area,
        share * (most.area + ladder.above(confidence)),
        _error(Levels.of(least.scores), share),
        _error(Levels.of(most.scores), share),
    )


def _error(levels: Levels, share: float) -> Cumulants:
    """Return the sampling error of a node's share.

    Means of several pools of levels were fitted to the answers, which lowers their variances by that share on average.
    One node's skewness covers that, a sum over many does not.
    """
    answers = float(levels.counts.sum())
    pools = len(pooled(levels.means, levels.counts))
    inflation = (answers / (answers - pools + 1.0)) ** 0.5
    return area_cumulants(levels).scaled(share * inflation)


def _pair(a: NodeResult, b: NodeResult, confidence: float) -> _Part:
    """Return the difference of two nodes with the same questions."""
    assert a.ladder is not None
    assert b.ladder is not None
    share = a.weight / a.levels
    (low, low_error), (high, high_error) = difference_ends(a.ladder, b.ladder, confidence)
    return _Part(
        share * (a.area - b.area), share * low, share * high, low_error.scaled(share), high_error.scaled(share)
    )


def _sum(parts: Iterable[_Part], least: float, confidence: float, method: str, most: float = 1.0) -> Interval:
    estimates, lows, highs, low_errors, high_errors = zip(*parts, strict=True)
    z = NormalDist().inv_cdf(confidence)
    down, _ = Cumulants.total(low_errors).half_widths(z)
    _, up = Cumulants.total(high_errors).half_widths(z)
    low = max(sum(lows) - down, least)
    high = min(sum(highs) + up, most)
    estimate = min(max(sum(estimates), low), high)
    return Interval(estimate, low, high, confidence, method)


def energy(nodes: Sequence[NodeResult], confidence: float = 0.95) -> Interval:
    """Return the energy with its bounds.

    Args:
        nodes: Their weights sum to 1.
    """
    possible = may_open(nodes, confidence)
    parts = [_part(node, confidence, possible[node.name]) for node in nodes]
    return _sum(parts, 0.0, confidence, METHOD)


def mean_area(nodes: Sequence[NodeResult], confidence: float = 0.95) -> Interval | None:
    """Return the mean area of nodes with the same number of levels, with its bounds; None if one was not run."""
    if not all(node.opened for node in nodes):
        return None
    levels = nodes[0].levels
    parts = []
    for node in nodes:
        weighted = replace(node, weight=levels / len(nodes))
        parts.append(_part(weighted, confidence, True))
    return _sum(parts, 0.0, confidence, "mean of areas by levels", most=float(levels))


def energy_error(nodes: Sequence[NodeResult]) -> float | None:
    """Return the standard error of the energy by sampling alone, for repetitions; None if no node was run.

    What unadministered levels and closed nodes may add is the same in all repetitions.
    """
    parts = []
    for node in nodes:
        if node.opened:
            parts.append(_part(node, ERROR_CONFIDENCE, False))
    if not parts:
        return None
    z = NormalDist().inv_cdf(ERROR_CONFIDENCE)
    down = Cumulants.total([part.low_error for part in parts]).half_widths(z)[0]
    up = Cumulants.total([part.high_error for part in parts]).half_widths(z)[1]
    return (down + up) / (2.0 * z)


def energy_difference(candidate: NetworkResult, baseline: NetworkResult, confidence: float = 0.95) -> Interval:
    """Return the candidate's energy minus the baseline's, paired by question if both got the same questions.

    Raises:
        EstimationError: The two networks do not have the same nodes.
    """
    pairs = list(zip(candidate.nodes, baseline.nodes, strict=False))
    if len(candidate.nodes) != len(baseline.nodes) or any(_shape(a) != _shape(b) for a, b in pairs):
        raise EstimationError("the two networks do not have the same nodes with the same weights, levels and queries")
    same_questions = _same_questions(candidate, baseline)
    possible = may_open(candidate.nodes, confidence)
    possible_before = may_open(baseline.nodes, confidence)
    parts: list[_Part] = []
    for a, b in pairs:
        if same_questions and a.questions == "code" and a.opened and b.opened:
            parts.append(_pair(a, b, confidence))
        else:
            parts.append(_part(a, confidence, possible[a.name]))
            parts.append(-_part(b, confidence, possible_before[b.name]))
    return _sum(parts, -1.0, confidence, f"{METHOD}, paired")


def area_difference(candidate: NetworkResult, baseline: NetworkResult, name: str, confidence: float = 0.95) -> Interval:
    """Return the area of the candidate's node less the baseline's, paired by question if both got the same questions.

    Levels that neither administered count as equal, since both had failed before.

    Raises:
        EstimationError: The two nodes do not have the same levels and queries, or one was not run.
    """
    a = candidate[name]
    b = baseline[name]
    if _shape(a) != _shape(b):
        raise EstimationError(f"the node {name} does not have the same task, levels and queries in both networks")
    if a.ladder is None or b.ladder is None:
        raise EstimationError(f"the node {name} was not run in both networks")
    if _same_questions(candidate, baseline) and a.questions == "code":
        return difference(a.ladder, b.ladder, confidence, "zero")
    return a.ladder.interval(confidence).less(b.ladder.interval(confidence))


def _same_questions(candidate: NetworkResult, baseline: NetworkResult) -> bool:
    return candidate.seed == baseline.seed and candidate.repetitions == baseline.repetitions == 1


def _shape(node: NodeResult) -> tuple[object, ...]:
    names = ("name", "task", "levels", "queries", "stop_at", "weight", "after", "opens_at", "questions")
    settings = [getattr(node, name) for name in names]
    others = [member.name for member in node.panel[1:]]
    return (*settings, *others)


@dataclass(frozen=True, slots=True, eq=False)
class NetworkResult:
    """Result of a network.

    Args:
        nodes: In the order of their declaration.
        supervisor, scheme: Empty without a supervisor.
        loads: Times that this run loaded or connected to each model.
        recalled: Replies that an earlier run had stored.
        truncated: Truncated replies, and all replies, of each agent that had any truncated.
    """

    topology: str
    interviewee: str
    nodes: tuple[NodeResult, ...]
    models: Mapping[str, Mapping[str, Any]]
    supervisor: str = ""
    scheme: str = ""
    passing: bool = True
    seed: int = 0
    repetitions: int = 1
    confidence: float = 0.95
    loads: Mapping[str, int] = field(default_factory=dict)
    recalled: int = 0
    truncated: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NodeResult:
        """Return the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def energy(self) -> Interval:
        """Energy, see `pytest_adaptive_eval.extensions.studies.network.result.energy`."""
        return energy(self.nodes, self.confidence)

    @property
    def total(self) -> Usage:
        """Cost of all replies; a recalled reply counts with its original cost."""
        total = Usage()
        for node in self.nodes:
            total = sum(node.usage.values(), total)
        return total

    @property
    def by_member(self) -> list[tuple[str, str, Usage]]:
        """Role, model and cost of replies by node; several other interviewees of a node are one entry."""
        rows = []
        for node in self.nodes:
            others = " and ".join(member.name for member in node.panel[1:-1])
            names = {"interviewer": node.interviewer, "supervisor": self.supervisor, "panel": others}
            for role, usage in node.usage.items():
                rows.append((role, names.get(role, self.interviewee), usage))
        return rows

    @property
    def fault_share(self) -> float:
        """Share of the interviewee's answers that failed by a fault of the run."""
        answers = self.count("answers")
        if answers:
            return self.count("faults") / answers
        return 0.0

    def count(self, name: str) -> int:
        """Return a count over all nodes."""
        return sum(node.counts.get(name, 0) for node in self.nodes)

    def cap(self, model: str) -> object:
        """Return the cap that a model's replies had, a list if they differ; None if it is unknown."""
        decoding = self.models.get(model, {}).get("decoding") or {}
        return decoding.get("max_tokens")

    @property
    def statuses(self) -> dict[str, int]:
        """Number of the interviewee's answers by status; all that it gave and finished count as ok."""
        counts = {status.value: self.count(status.value) for status in UNANSWERED}
        finished = self.count("answers") - sum(counts.values())
        return {Status.OK.value: finished, **counts}

    def cut(self) -> str:
        """Return a warning on truncated answers of the interviewee, empty if there are few."""
        return truncation_warning(self.count("truncated"), self.count("answers"), self.cap(self.interviewee))

    def groups(self) -> dict[str, list[NodeResult]]:
        """Return the nodes of each group of several interviewers of one task."""
        groups: dict[str, list[NodeResult]] = {}
        for node in self.nodes:
            groups.setdefault(node.group, []).append(node)
        return {name: nodes for name, nodes in groups.items() if len(nodes) > 1}

    def opinions(self) -> dict[str, float]:
        """Return the mean area over the interviewers of one task, for groups of several nodes."""
        means = {}
        for name, nodes in self.groups().items():
            areas = [node.area for node in nodes]
            means[name] = float(np.mean(areas))
        return means

    def opinion(self, group: str, confidence: float | None = None) -> Interval | None:
        """Return the mean opinion of a group with its bounds; None if one of its nodes was not run."""
        if confidence is None:
            confidence = self.confidence
        return mean_area(self.groups()[group], confidence)

    def guess_opinion(self, group: str) -> float:
        """Return the mean over a group of the areas of a guesser."""
        areas = [node.guess_area for node in self.groups()[group]]
        return float(np.mean(areas))

    @property
    def guess_energy(self) -> float:
        """Energy of a guesser, at the levels that were asked."""
        return sum(node.weight * node.guess_area / node.levels for node in self.nodes)

    def interviewers(self) -> list[dict[str, Any]]:
        """Return, by interviewer, its attempts and errors at nodes without and with dialogues of earlier nodes."""
        rows = []
        for name in dict.fromkeys(node.interviewer for node in self.nodes if node.interviewer):
            nodes = [node for node in self.nodes if node.interviewer == name]
            uninformed = [node for node in nodes if not node.messages]
            informed = [node for node in nodes if node.messages]
            rows.append({"name": name, "without": _attempts(uninformed), "with": _attempts(informed)})
        return rows

    def reviews(self) -> dict[str, dict[str, Any]]:
        """Return counts of the supervisor's reviews of questions and of exchanges."""
        counts: dict[str, dict[str, Any]] = {}
        for node in self.nodes:
            for review in node.reviews:
                zeros = {"reviews": 0, "refused": 0, "unread": 0, "ratings": [0] * 5}
                of_subject = counts.setdefault(review.subject, zeros)
                of_subject["reviews"] += 1
                of_subject["refused"] += review.refused
                of_subject["unread"] += review.unread
                if review.rating is not None:
                    of_subject["ratings"][review.rating - 1] += 1
        return counts

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_json` reads."""
        data: dict[str, Any] = plain(self)
        return data | {
            "nodes": [node.to_json(self.confidence) for node in self.nodes],
            "energy": self.energy.to_json(),
            "opinions": plain({name: self.opinion(name) for name in self.groups()}),
            "guess_energy": self.guess_energy,
            "interviewers": self.interviewers(),
            "reviews": self.reviews(),
            "usage": self.total.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkResult:
        """Create from the data of `to_json`, without unknown fields.

        Raises:
            ConfigError: The data is not that of a network.
        """
        try:
            return msgspec.convert(dict(data), cls, dec_hook=lambda _, scores: np.array(scores, dtype=np.float64))
        except msgspec.ValidationError as error:
            raise ConfigError(f"this is not the data of NetworkResult.to_json: {error}") from None


def _attempts(nodes: Iterable[NodeResult]) -> dict[str, Any]:
    """Return the attempts of an interviewer at nodes, and its errors."""
    attempts = 0
    errors = 0
    for node in nodes:
        attempts += node.counts.get("attempts", 0)
        errors += node.errors
    rate = errors / attempts if attempts else None
    return {"attempts": attempts, "errors": errors, "rate": rate}
