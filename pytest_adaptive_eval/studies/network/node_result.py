"""What an interview at one node found: its ladder, counters, costs and dialogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Ladder, last_above
from pytest_adaptive_eval.studies.network.roles import Dialogue, Exchange, Review
from pytest_adaptive_eval.subjects.base import Usage

__all__ = ["COUNTERS", "ERRORS", "NodeResult", "PanelMember"]

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
