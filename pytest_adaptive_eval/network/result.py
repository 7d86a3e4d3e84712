"""What a network found: by node its ladder, counters, costs and dialogue; over all of them the energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.core.interval import Interval
from pytest_adaptive_eval.core.ladder import Ladder, last_above
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.network.roles import Dialogue, Exchange, Review

__all__ = ["COUNTERS", "NetworkResult", "NodeResult", "PanelMember"]

Array = NDArray[np.float64]

#: What is counted by node, and what each name means.
COUNTERS: Mapping[str, str] = {
    "attempts": "questions that an interviewer was asked for, repetitions included",
    "format": "of which such that nothing could be read from",
    "level": "of which such that were not of their level",
    "repeat": "of which such that had been asked before",
    "silent": "of which without a reply of use: a fault, cut off, refused or empty",
    "filter": "of which such that the content filter flagged",
    "review": "of which such that the supervisor refused",
    "directives": "directives to write a question again",
    "fallbacks": "questions that code made since the interviewer did not",
    "claims": "answers that an interviewer gave along with its question",
    "wrong_claims": "of which wrong by the code",
    "flagged_answers": "answers that the content filter flagged",
    "reviews": "reviews that the supervisor was asked for",
    "unread": "of which such that could not be read",
    "answers": "answers that were asked of the interviewee",
    "unscored": "of which such that have a status and no score",
    "faults": "of which by a fault of the run and not of the interviewee",
}
#: Kinds of errors of an interviewer, as MACEval counts them: format violations and redundant questions.
ERRORS = ("format", "level", "repeat", "silent")


@dataclass(frozen=True, slots=True)
class PanelMember:
    """One interviewee of a panel, over all questions of the node.

    Parameters
    ----------
    name : str
    accuracies : tuple of (float or None)
        Before the debate and after each cycle; None where nothing was scored.
    mended, spoiled : int
        Questions that it had wrong at first and right in the end, and the other way round.
    """

    name: str
    accuracies: tuple[float | None, ...]
    mended: int
    spoiled: int


@dataclass(frozen=True, slots=True, eq=False)
class NodeResult:
    """What one node found.

    Parameters
    ----------
    name, task, knob, group : str
    kind : {"task", "bank"}
    levels, queries : int
    stop_at, weight, opens_at : float
        The weight as its share of all.
    after : tuple of str
    interviewer : str
    questions : str
    opened : bool
        Whether it was held.
    scores : tuple of array
        By level from 1, all rounds together; NaN where there is none.
    rounds : tuple of (int, int)
        First and last level asked in each round.
    counts : mapping of str to int
        See `COUNTERS`.
    usage : mapping of str to Usage
        By role: ``interviewee``, ``panel``, ``interviewer``, ``supervisor``.
    exchanges : tuple of Exchange
        The first of each level, up to a number.
    reviews : tuple of Review
    panel : tuple of PanelMember
        The interviewee first, and last the plurality of their answers; empty where there is no panel.
    """

    name: str
    task: str
    knob: str
    group: str
    kind: str
    levels: int
    queries: int
    stop_at: float
    weight: float
    opens_at: float
    after: tuple[str, ...]
    interviewer: str
    questions: str
    opened: bool = False
    scores: tuple[Array, ...] = ()
    rounds: tuple[tuple[int, int], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()
    reviews: tuple[Review, ...] = ()
    panel: tuple[PanelMember, ...] = ()

    @property
    def ladder(self) -> Ladder | None:
        """None where the node stayed closed."""
        return Ladder(self.scores, self.levels) if self.opened else None

    @property
    def area(self) -> float:
        """ACC-AUC; NaN where the node stayed closed."""
        ladder = self.ladder
        return ladder.area if ladder else float("nan")

    @property
    def last_level(self) -> int:
        """The last level with an accuracy above 0."""
        ladder = self.ladder
        return ladder.last_level if ladder else 0

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """The area with its bounds; None where the node stayed closed."""
        ladder = self.ladder
        return ladder.interval(confidence) if ladder else None

    def last(self, confidence: float = 0.95) -> Interval | None:
        """The last level whose accuracy is above the rate that ends a round, with its bounds."""
        ladder = self.ladder
        return last_above(ladder, self.stop_at, confidence) if ladder else None

    @property
    def error_rate(self) -> float:
        """Share of an interviewer's attempts that broke the format, missed the level or repeated; NaN without any."""
        attempts = self.counts.get("attempts", 0)
        return sum(self.counts.get(name, 0) for name in ERRORS) / attempts if attempts else float("nan")

    @property
    def dialogue(self) -> Dialogue:
        """What later nodes are told."""
        area = 0.0 if np.isnan(self.area) else self.area
        return Dialogue(self.name, self.task, area, self.last_level, self.exchanges)

    def to_json(self, confidence: float = 0.95) -> dict[str, Any]:
        """Plain JSON data; `from_json` takes it back."""
        area, last = self.interval(confidence), self.last(confidence)
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **plain,
            "after": list(self.after),
            "scores": [[None if np.isnan(x) else x for x in level.tolist()] for level in self.scores],
            "rounds": [list(one) for one in self.rounds],
            "counts": dict(self.counts),
            "usage": {role: usage.to_json() for role, usage in self.usage.items()},
            "exchanges": [one.to_json() for one in self.exchanges],
            "reviews": [one.to_json() for one in self.reviews],
            "panel": [{**asdict(one), "accuracies": list(one.accuracies)} for one in self.panel],
            "area": None if area is None else area.to_json(),
            "last_level": None if last is None else last.to_json(),
            "last": self.last_level,
            "error_rate": None if np.isnan(self.error_rate) else self.error_rate,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NodeResult:
        """Read back what `to_json` gave; unknown fields are left out."""
        known = {name: data[name] for name in (f.name for f in fields(cls)) if name in data}
        return cls(
            **{
                **known,
                "after": tuple(data["after"]),
                "scores": tuple(np.array(level, dtype=np.float64) for level in data["scores"]),
                "rounds": tuple((int(first), int(last)) for first, last in data["rounds"]),
                "usage": {role: Usage(**usage) for role, usage in data["usage"].items()},
                "exchanges": tuple(Exchange(**one) for one in data["exchanges"]),
                "reviews": tuple(Review(**one) for one in data["reviews"]),
                "panel": tuple(PanelMember(**{**one, "accuracies": tuple(one["accuracies"])}) for one in data["panel"]),
            }
        )


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
        """See `pytest_adaptive_eval.network.energy.energy`."""
        from pytest_adaptive_eval.network.energy import energy

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
