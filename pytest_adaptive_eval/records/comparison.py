"""Two interviews side by side: what changed, and how surely."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.records.repetitions import area, area_error, population
from pytest_adaptive_eval.records.run_record import InterviewRecord

__all__ = ["Comparison", "Difference", "compare"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A change of one quantity between two interviews.

    Parameters
    ----------
    before, after : float
        In the quantity's own unit.
    standard_error : float
        Of the change, the two interviews' draws taken as independent.
    """

    before: float
    after: float
    standard_error: float

    @property
    def change(self) -> float:
        """`after` less `before`."""
        return self.after - self.before

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Two-sided interval of the change, by the normal distribution."""
        half = student_quantile(math.inf, 0.5 + confidence / 2) * self.standard_error
        return self.change - half, self.change + half

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        low, high = self.interval()
        return {
            "before": self.before,
            "after": self.after,
            "change": self.change,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one interview to another.

    Parameters
    ----------
    evaluation : str
    subjects : tuple of str
        Names of the two subjects.
    refused : str
        Why the two do not compare; empty when they do.
    ability, accuracy, auc : Difference or None
        None where one of the two has none, or the scales differ; auc of climbs, in levels.
    parts : mapping of str to Difference
        Ability by part, of banks asked in formats, where both have it on one scale.
    categories : mapping of str to Difference
        Accuracy by category, where both have one.
    common : int
        Items with a score in both.
    lost, gained : tuple of str
        Ids of the items answered better before, and better after.
    """

    evaluation: str
    subjects: tuple[str, str]
    refused: str = ""
    ability: Difference | None = None
    accuracy: Difference | None = None
    auc: Difference | None = None
    parts: Mapping[str, Difference] | None = None
    categories: Mapping[str, Difference] | None = None
    common: int = 0
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "evaluation": self.evaluation,
            "subjects": list(self.subjects),
            "refused": self.refused,
            "ability": self.ability.to_json() if self.ability else None,
            "accuracy": self.accuracy.to_json() if self.accuracy else None,
            "auc": self.auc.to_json() if self.auc else None,
            "parts": {name: found.to_json() for name, found in (self.parts or {}).items()},
            "categories": {name: found.to_json() for name, found in (self.categories or {}).items()},
            "common": self.common,
            "lost": list(self.lost),
            "gained": list(self.gained),
        }


def compare(before: InterviewRecord, after: InterviewRecord) -> Comparison:
    """Compare two interviews of one evaluation.

    Interviews on different banks, with different decoding settings or by a test
    that was changed do not compare: a difference would not be the checkpoint's.
    Climbs of one task in one way compare by their areas although another seed gave
    them other questions.
    """
    names = (str(before.subject.get("name", "")), str(after.subject.get("name", "")))
    if why := _refusal(before, after):
        return Comparison(after.name, names, why)
    ability, parts = None, {}
    if before.bank.get("scale") == after.bank.get("scale"):
        ability = _difference(_first(before.theta), _first(after.theta), _ability_error(before), _ability_error(after))
        parts = _parts(before, after)
    scores = [{a.item: a.score for a in i.by_item() if a.score is not None} for i in (before, after)]
    common = [item for item in scores[0] if item in scores[1]]
    return Comparison(
        after.name,
        names,
        ability=ability,
        accuracy=_difference(
            _estimate(before.accuracy), _estimate(after.accuracy), before.accuracy_error, after.accuracy_error
        ),
        auc=_difference(_area(before), _area(after), area_error(before), area_error(after)),
        parts=parts,
        categories=_categories(before, after),
        common=len(common),
        lost=tuple(item for item in common if scores[1][item] < scores[0][item]),
        gained=tuple(item for item in common if scores[1][item] > scores[0][item]),
    )


def _refusal(before: InterviewRecord, after: InterviewRecord) -> str:
    for interview, which in ((before, "first"), (after, "second")):
        if interview.error or not interview.stop:
            return f"the {which} interview is void: {interview.error or 'it was cut off'}"
    hashes = [interview.bank.get("content_hash") for interview in (before, after)]
    if before.levels and after.levels:
        if population(before) != population(after):
            return "the task's levels, or the way they were climbed, changed between the two"
        if _seed(before) != _seed(after):
            hashes = ["", ""]
    for what, old, new in (
        ("the bank", *hashes),
        ("the decoding settings", before.subject.get("decoding_hash"), after.subject.get("decoding_hash")),
        ("the test that makes the prompts", before.extra.get("prompt"), after.extra.get("prompt")),
    ):
        if old and new and old != new:
            return f"{what} changed between the two (hash {old}, then {new})"
    return ""


def _difference(
    before: float | None, after: float | None, first: float | None, second: float | None
) -> Difference | None:
    if before is None or after is None or first is None or second is None:
        return None
    return Difference(before, after, math.hypot(first, second))


def _seed(interview: InterviewRecord) -> Any:
    return interview.bank.get("task", {}).get("seed")


def _area(interview: InterviewRecord) -> float | None:
    interval = area(interview)
    return interval.estimate if interval else None


def _first(values: list[float] | None) -> float | None:
    return values[0] if values and len(values) == 1 else None


def _ability_error(interview: InterviewRecord) -> float | None:
    return _first(interview.standard_error)


def _parts(before: InterviewRecord, after: InterviewRecord) -> dict[str, Difference]:
    """By part of ability, on one scale, whose parts are the same."""
    names = after.bank.get("parts")
    rows = [before.theta, after.theta, before.standard_error, after.standard_error]
    if not isinstance(names, list) or any(row is None or len(row) != len(names) for row in rows):
        return {}
    changes = {str(name): _difference(*(row[n] for row in rows if row)) for n, name in enumerate(names)}
    return {name: change for name, change in changes.items() if change is not None}


def _estimate(interval: Mapping[str, Any] | None) -> float | None:
    return None if interval is None else interval.get("estimate")


def _categories(before: InterviewRecord, after: InterviewRecord) -> dict[str, Difference]:
    old = {found.get("category"): found for found in before.categories}
    differences = {}
    for new in after.categories:
        if (known := old.get(new.get("category"))) is not None:
            change = _difference(
                _estimate(known.get("accuracy")),
                _estimate(new.get("accuracy")),
                known.get("standard_error"),
                new.get("standard_error"),
            )
            if change is not None:
                differences[str(new["category"])] = change
    return differences
