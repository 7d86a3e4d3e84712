"""Comparison of interviews: the changes of two with their intervals, and items that flicker between runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from pytest_adaptive_eval.items.item import unanswered_sentence
from pytest_adaptive_eval.records.repetitions import area, area_error, population
from pytest_adaptive_eval.records.run_record import (
    InterviewRecord,
    Quantity,
    QuantityRecord,
    RunRecord,
    StudyRecord,
    changed_requests,
)

Estimate = tuple[float | None, float | None]  #: A value and its standard error.


@dataclass(frozen=True, slots=True)
class Difference:
    """Change of one quantity between two interviews; `bounds` is its two-sided 95 % interval where it is not normal."""

    before: float
    after: float
    standard_error: float
    bounds: tuple[float, float] | None = None

    @property
    def change(self) -> float:
        """`after` minus `before`."""
        return self.after - self.before

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the two-sided interval of the change: `bounds`, or by the normal distribution."""
        if self.bounds is not None:
            return self.bounds
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * self.standard_error
        return self.change - half, self.change + half

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
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
    """Changes from one interview to another.

    Args:
        refused: Reason why the two do not compare; empty when they do.
        ability, accuracy, auc: None where one of the two has no estimate, or the scales differ; auc of ladders, in
            levels.
        quantities: Quantities of studies, such as ``energy`` and ``auc of NODE``.
        lost, gained: Ids of the items with a higher score before, and with a higher score after.
    """

    evaluation: str
    subjects: tuple[str, str]
    refused: str = ""
    ability: Difference | None = None
    accuracy: Difference | None = None
    auc: Difference | None = None
    quantities: Mapping[str, Difference] = field(default_factory=dict)
    parts: Mapping[str, Difference] = field(default_factory=dict)
    categories: Mapping[str, Difference] = field(default_factory=dict)
    common: int = 0
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {name: _json_value(getattr(self, name)) for name in self.__dataclass_fields__}


def _json_value(value: Any) -> Any:
    if isinstance(value, Difference):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _json_value(entry) for name, entry in value.items()}
    return list(value) if isinstance(value, tuple) else value


def compare(before: InterviewRecord, after: InterviewRecord) -> Comparison:
    """Compare two interviews of one evaluation.

    Interviews on different banks, with different decoding settings or by a changed test do not compare, because the
    checkpoint would not be the only difference. Ladders of one task and policy compare by their areas, also with
    different seeds.
    """
    subjects = (before.subject.name, after.subject.name)
    if reason := _refusal(before, after):
        return Comparison(after.name, subjects, reason)
    same_scale = before.bank.scale == after.bank.scale
    scores = [{a.item: a.score for a in i.by_item() if a.score is not None} for i in (before, after)]
    common = [item for item in scores[0] if item in scores[1]]
    old_categories, new_categories = _by_category(before), _by_category(after)
    return Comparison(
        after.name,
        subjects,
        ability=_difference(_ability(before), _ability(after)) if same_scale else None,
        accuracy=_difference(_accuracy(before), _accuracy(after)),
        auc=_difference(_area(before), _area(after)),
        parts=_differences(_parts(before, after), _parts(after, after)) if same_scale else {},
        categories=_differences(old_categories, new_categories),
        common=len(common),
        lost=tuple(item for item in common if scores[1][item] < scores[0][item]),
        gained=tuple(item for item in common if scores[1][item] > scores[0][item]),
    )


def _refusal(before: InterviewRecord, after: InterviewRecord) -> str:
    for interview, position in ((before, "first"), (after, "second")):
        if interview.error or not interview.stop:
            return f"the {position} interview is void: {interview.error or 'it did not finish'}"
    silent = any(unanswered_sentence(interview.statuses) for interview in (before, after))
    if silent and before.counting != after.counting:
        return (
            f"answers that are empty, refused or cut count as {before.counting} in the first and as {after.counting} "
            "in the second"
        )
    hashes = {
        "the bank": (before.bank.content_hash, after.bank.content_hash),
        "the decoding settings": (before.subject.decoding_hash, after.subject.decoding_hash),
    }
    if before.levels and after.levels:
        if population(before) != population(after):
            return "the task's levels, or the way they were climbed, changed between the two"
        if _seed(before) != _seed(after):
            del hashes["the bank"]
    for part, (old, new) in hashes.items():
        if old and new and old != new:
            return f"{part} changed between the two (hash {old}, then {new})"
    if changed := changed_requests(before.requests, after.administrations if after.requests else ()):
        return f"{changed} the prompts changed between the two"
    return ""


def _difference(before: Estimate, after: Estimate) -> Difference | None:
    (old, old_error), (new, new_error) = before, after
    if old is None or new is None or old_error is None or new_error is None:
        return None
    return Difference(old, new, math.hypot(old_error, new_error))


def _differences(before: Mapping[str, Estimate], after: Mapping[str, Estimate]) -> dict[str, Difference]:
    """Return the changes of all quantities with estimates in both interviews."""
    changes = {name: _difference(before[name], estimate) for name, estimate in after.items() if name in before}
    return {name: change for name, change in changes.items() if change is not None}


def _seed(interview: InterviewRecord) -> Any:
    return (interview.bank.task or {}).get("seed")


def _area(interview: InterviewRecord) -> Estimate:
    interval = area(interview)
    return interval.estimate if interval else None, area_error(interview)


def _accuracy(interview: InterviewRecord) -> Estimate:
    return interview.accuracy.estimate if interview.accuracy else None, interview.accuracy_error


def _ability(interview: InterviewRecord) -> Estimate:
    theta, errors = interview.theta or [], interview.standard_error or []
    return (theta[0], errors[0]) if len(theta) == len(errors) == 1 else (None, None)


def _parts(interview: InterviewRecord, named: InterviewRecord) -> dict[str, Estimate]:
    """Return the ability components under the names of another interview; an empty mapping without components."""
    names, theta, errors = named.bank.parts, interview.theta or [], interview.standard_error or []
    if not len(names) == len(theta) == len(errors):
        return {}
    return dict(zip(names, zip(theta, errors, strict=True), strict=True))


def _by_category(interview: InterviewRecord) -> dict[str, Estimate]:
    return {
        row.category: (row.accuracy.estimate if row.accuracy else None, row.standard_error)
        for row in interview.categories
    }


def compare_studies(before: StudyRecord, after: StudyRecord) -> Comparison:
    """Compare two runs of a study by the intervals of their candidates, taken as independent.

    Studies of other settings do not compare, because the candidate would not be the only difference.
    """
    subjects = (before.candidate, after.candidate)
    if reason := _study_refusal(before, after):
        return Comparison(after.name, subjects, reason)
    old = dict(_candidate_rows(before))
    quantities = {}
    for quantity, row in _candidate_rows(after):
        if quantity in old and (change := _study_difference(old[quantity], row)):
            quantities[f"{quantity.metric} of {quantity.part}" if quantity.part else quantity.metric] = change
    return Comparison(after.name, subjects, quantities=quantities)


def _study_refusal(before: StudyRecord, after: StudyRecord) -> str:
    for study, position in ((before, "first"), (after, "second")):
        if study.error:
            return f"the {position} study is void: {study.error}"
    if before.kind != after.kind:
        return f"the kind of the study changed between the two ({before.kind}, then {after.kind})"
    old, new = before.population, after.population
    return f"the settings of the study changed between the two (hash {old}, then {new})" if old and old != new else ""


def _candidate_rows(study: StudyRecord) -> Iterator[tuple[Quantity, QuantityRecord]]:
    for quantity, subject, row in study.quantities():
        if subject == study.candidate:
            yield quantity, row


def _study_difference(before: QuantityRecord, after: QuantityRecord) -> Difference | None:
    """Return the change of one quantity with its two-sided 95 % interval; None without both intervals."""
    old, new = before.interval, after.interval
    if old is None or new is None:
        return None
    change = new.less(old)
    z, z_recorded = (NormalDist().inv_cdf(level) for level in (0.975, new.confidence))
    scale = z / z_recorded
    bounds = (
        change.estimate - scale * (change.estimate - change.low),
        change.estimate + scale * (change.high - change.estimate),
    )
    error = (change.high - change.low) / (2.0 * z_recorded)
    return Difference(old.estimate, new.estimate, error, bounds)


RIGHT = 0.5  #: Score from which an answer counts as right.


@dataclass
class Flicker:
    """Answers of one subject to one item over several runs, with the latest right and the latest wrong text."""

    evaluation: str
    item: str
    subject: str
    right: int = 0
    answers: int = 0
    texts: list[str] = field(default_factory=lambda: ["", ""])

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {
            "evaluation": self.evaluation,
            "item": self.item,
            "subject": self.subject,
            "right": self.right,
            "answers": self.answers,
            "latest_right": self.texts[0],
            "latest_wrong": self.texts[1],
        }


def flickering(interviews: Iterable[tuple[RunRecord, InterviewRecord]]) -> list[Flicker]:
    """Return the items whose answers changed between runs, the most even first.

    Only runs of the same checkpoint, decoding and item text are compared, so that the checkpoint did not change.
    """
    found: dict[tuple[str, ...], Flicker] = {}
    for _, interview in interviews:
        subject = interview.subject
        who = subject.checkpoint or subject.name, subject.decoding_hash
        for asked in interview.administrations:
            if asked.score is None or asked.sample:
                continue
            key = (interview.name, asked.item, asked.item_hash, *who)
            entry = found.setdefault(key, Flicker(interview.name, asked.item, subject.name))
            right = asked.score >= RIGHT
            entry.right += right
            entry.answers += 1
            entry.texts[0 if right else 1] = asked.text
    return sorted(
        (entry for entry in found.values() if 0 < entry.right < entry.answers),
        key=lambda entry: (-min(entry.right, entry.answers - entry.right) / entry.answers, -entry.answers, entry.item),
    )
