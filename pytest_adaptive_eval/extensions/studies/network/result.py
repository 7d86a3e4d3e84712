"""Result of a network: its nodes, the models and the energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.energy import energy, mean_area
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.extensions.studies.network.roles import Review
from pytest_adaptive_eval.extensions.studies.plain import fields_json, plain
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.item import MISSING, UNANSWERED, WRONG, Status
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.models.caps import truncation_warning


@dataclass(frozen=True, slots=True, eq=False)
class NetworkResult:
    """Result of a network.

    Args:
        nodes: In the order of their declaration.
        models: Identities of all called models by name.
        supervisor, scheme: Empty without a supervisor.
        seed, repetitions: Seed, and rounds of each node.
        loads: Times that this run loaded or connected to each model.
        recalled: Calls whose replies an earlier run had stored.
        truncated: Truncated replies, and all replies, of each agent that had any truncated.
        unanswered: What answers of the interviewees count as that are empty, refused or cut, see
            `items.item.Response.of`; empty in records of earlier versions.
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
    unanswered: str = ""

    def __getitem__(self, name: str) -> NodeResult:
        """Return the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def energy(self) -> Interval:
        """Energy, see `pytest_adaptive_eval.extensions.studies.network.energy.energy`."""
        return energy(self.nodes, self.confidence)

    @property
    def total(self) -> Usage:
        """Cost of all replies; a recalled reply counts with its original cost."""
        return sum((usage for node in self.nodes for usage in node.usage.values()), Usage())

    @property
    def fault_share(self) -> float:
        """Share of the interviewee's answers that failed by a fault of the run."""
        answers = self._count("answers")
        return self._count("faults") / answers if answers else 0.0

    def _count(self, name: str) -> int:
        """Return a count of `COUNTERS` over all nodes."""
        return sum(node.counts.get(name, 0) for node in self.nodes)

    def cap(self, model: str) -> object:
        """Return the cap that a model's replies had, a list if they differ; None if it is unknown."""
        decoding = self.models.get(model, {}).get("decoding") or {}
        return decoding.get("max_tokens")

    @property
    def statuses(self) -> dict[str, int]:
        """Number of the interviewee's answers by status: those that it did not give or finish, and all others as ok."""
        counts = {status.value: self._count(status.value) for status in UNANSWERED}
        return {Status.OK.value: self._count("answers") - sum(counts.values()), **counts}

    @property
    def counting(self) -> str:
        """What answers count as that are empty, refused or cut; earlier versions counted them as missing."""
        return self.unanswered or (MISSING if self._count("unscored") > self._count("faults") else WRONG)

    def cut(self) -> str:
        """Return a warning on truncated answers of the interviewee, empty if there are few."""
        return truncation_warning(self._count("truncated"), self._count("answers"), self.cap(self.interviewee))

    def groups(self) -> dict[str, list[NodeResult]]:
        """Return the nodes of each group of several interviewers of one task."""
        groups: dict[str, list[NodeResult]] = {}
        for node in self.nodes:
            groups.setdefault(node.group, []).append(node)
        return {name: nodes for name, nodes in groups.items() if len(nodes) > 1}

    def opinions(self) -> dict[str, float]:
        """Return the mean area over the interviewers of one task, for groups of several nodes."""
        return {name: float(np.mean([node.area for node in nodes])) for name, nodes in self.groups().items()}

    def opinion(self, group: str, confidence: float | None = None) -> Interval | None:
        """Return the mean opinion of a group with its bounds; None if one of its nodes was not run."""
        return mean_area(self.groups()[group], self.confidence if confidence is None else confidence)

    def guess_opinion(self, group: str) -> float:
        """Return the mean over a group of the areas of a guesser."""
        return float(np.mean([node.guess_area for node in self.groups()[group]]))

    @property
    def guess_energy(self) -> float:
        """Energy of a guesser, at the levels that were asked."""
        return sum(node.weight * node.guess_area / node.levels for node in self.nodes)

    def interviewers(self) -> list[dict[str, Any]]:
        """Return, by interviewer, its attempts and errors at nodes without and with dialogues of earlier nodes."""
        rows = []
        for name in dict.fromkeys(node.interviewer for node in self.nodes if node.interviewer):
            row: dict[str, Any] = {"name": name}
            for kind, with_messages in (("without", False), ("with", True)):
                nodes = [
                    node for node in self.nodes if node.interviewer == name and (node.messages > 0) == with_messages
                ]
                attempts, errors = sum(node.counts.get("attempts", 0) for node in nodes), sum(n.errors for n in nodes)
                row[kind] = {"attempts": attempts, "errors": errors, "rate": errors / attempts if attempts else None}
            rows.append(row)
        return rows

    def reviews(self) -> dict[str, dict[str, Any]]:
        """Return counts of the supervisor's reviews of questions and of exchanges."""
        reviews = [review for node in self.nodes for review in node.reviews]
        subjects = dict.fromkeys(review.subject for review in reviews)
        return {subject: _counted([r for r in reviews if r.subject == subject]) for subject in subjects}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_json` reads."""
        return fields_json(self) | {
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


def _counted(reviews: Sequence[Review]) -> dict[str, Any]:
    """Return the number of reviews, refusals and unreadable replies, and the ratings from 1 to 5 by their number."""
    return {
        "reviews": len(reviews),
        "refused": sum(review.refused for review in reviews),
        "unread": sum(review.unread for review in reviews),
        "ratings": [sum(review.rating == rating for review in reviews) for rating in range(1, 6)],
    }
