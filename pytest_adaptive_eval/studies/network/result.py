"""What a network found: by node its ladder, counters, costs and dialogue; over all of them the energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.studies.network.node_result import NodeResult
from pytest_adaptive_eval.subjects.base import Usage

__all__ = ["NetworkResult"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NetworkResult:
    """The one account of a network.

    Parameters
    ----------
    topology : str
    interviewee : str
        Name of the subject.
    nodes : tuple of NodeResult
        In the order in which they were written.
    models : mapping of str to mapping
        Identities by name, of all that were asked anything.
    supervisor, scheme : str
        Empty where there is none.
    passing : bool
    seed, repetitions : int
        Rounds of each node.
    confidence : float
        Of each one-sided bound.
    loads : mapping of str to int
        How often each model was loaded or connected to in this run.
    recalled : int
        Calls whose replies were known from an earlier run.
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
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def energy(self) -> Interval:
        """See `pytest_adaptive_eval.studies.network.energy.energy`."""
        from pytest_adaptive_eval.studies.network.energy import energy

        return energy(self.nodes, self.confidence)

    @property
    def total(self) -> Usage:
        """What all replies cost; what was recalled as it cost then."""
        return sum((usage for node in self.nodes for usage in node.usage.values()), Usage())

    @property
    def fault_share(self) -> float:
        """Share of the interviewee's answers that failed by a fault of the run."""
        counts = [sum(node.counts.get(name, 0) for node in self.nodes) for name in ("faults", "answers")]
        return counts[0] / counts[1] if counts[1] else 0.0

    def opinions(self) -> dict[str, float]:
        """Mean area over the interviewers of one task, by the name of their group; groups of one are left out."""
        groups: dict[str, list[float]] = {}
        for node in self.nodes:
            groups.setdefault(node.group, []).append(node.area)
        return {name: float(np.mean(areas)) for name, areas in groups.items() if len(areas) > 1}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; `from_json` takes it back."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **plain,
            "nodes": [node.to_json(self.confidence) for node in self.nodes],
            "models": {name: dict(one) for name, one in self.models.items()},
            "loads": dict(self.loads),
            "energy": self.energy.to_json(),
            "opinions": self.opinions(),
            "usage": self.total.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkResult:
        """Read back what `to_json` gave; unknown fields are left out."""
        known = {name: data[name] for name in (f.name for f in fields(cls)) if name in data}
        return cls(**{**known, "nodes": tuple(NodeResult.from_json(node) for node in data["nodes"])})
