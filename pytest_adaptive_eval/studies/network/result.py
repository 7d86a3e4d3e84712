"""Result of a network: its nodes, the models and the energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.studies.network.energy import energy
from pytest_adaptive_eval.studies.network.node_result import NodeResult
from pytest_adaptive_eval.studies.plain import fields_json, plain
from pytest_adaptive_eval.subjects.base import Usage

__all__ = ["NetworkResult"]


@dataclass(frozen=True, slots=True, eq=False)
class NetworkResult:
    """Result of a network.

    Parameters
    ----------
    topology : str
    interviewee : str
        Name of the subject.
    nodes : tuple of NodeResult
        In the order of their declaration.
    models : mapping of str to mapping
        Identities of all called models by name.
    supervisor, scheme : str
        Empty without a supervisor.
    passing : bool
    seed, repetitions : int
        Seed, and rounds of each node.
    confidence : float
        Confidence of each one-sided bound.
    loads : mapping of str to int
        Times that this run loaded or connected to each model.
    recalled : int
        Calls whose replies an earlier run had stored.
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

    def __getitem__(self, name: str) -> NodeResult:
        """Return the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def energy(self) -> Interval:
        """Energy, see `pytest_adaptive_eval.studies.network.energy.energy`."""
        return energy(self.nodes, self.confidence)

    @property
    def total(self) -> Usage:
        """Cost of all replies; a recalled reply counts with its original cost."""
        return sum((usage for node in self.nodes for usage in node.usage.values()), Usage())

    @property
    def fault_share(self) -> float:
        """Share of the interviewee's answers that failed by a fault of the run."""
        faults, answers = (sum(node.counts.get(name, 0) for node in self.nodes) for name in ("faults", "answers"))
        return faults / answers if answers else 0.0

    def opinions(self) -> dict[str, float]:
        """Return the mean area over the interviewers of one task, for groups of several nodes."""
        groups: dict[str, list[float]] = {}
        for node in self.nodes:
            groups.setdefault(node.group, []).append(node.area)
        return {name: float(np.mean(areas)) for name, areas in groups.items() if len(areas) > 1}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_json` reads."""
        return fields_json(self) | {
            "nodes": [node.to_json(self.confidence) for node in self.nodes],
            "energy": self.energy.to_json(),
            "opinions": plain(self.opinions()),
            "usage": self.total.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkResult:
        """Create from the data of `to_json`, without unknown fields."""
        return msgspec.convert(dict(data), cls, dec_hook=lambda _, scores: np.array(scores, dtype=np.float64))
