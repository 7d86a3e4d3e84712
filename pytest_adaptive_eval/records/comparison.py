"""Comparison of interviews: the changes of two with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from pytest_adaptive_eval.records.parts import QuantityRecord
from pytest_adaptive_eval.records.quantities import Quantity, of_answers, of_models, of_subject
from pytest_adaptive_eval.records.repetitions import population
from pytest_adaptive_eval.records.run_record import EvaluationRecord, changed_requests


@dataclass(frozen=True, slots=True)
class Difference:
    """Change of a quantity between two evaluations; `bounds` is its two-sided 95 % interval where it is not normal."""

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
    """Changes from one evaluation to another.

    Args:
        refused: Reason why the two do not compare; empty when they do.
        ability, accuracy, auc: None where one of the two has no estimate, or the scales differ; auc of ladders, in
            levels.
        quantities: Quantities of other kinds than interviews, such as ``energy`` and ``auc of NODE``.
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
    if isinstance(value, tuple):
        return list(value)
    return value


def compare(before: EvaluationRecord, after: EvaluationRecord) -> Comparison:
    """Compare two results of one evaluation, by the quantities of the tested subject, taken as independent.

    Interviews on different banks, with different decoding settings or by a changed test do not compare, and neither do
    other settings of several models, because the checkpoint would not be the only difference. Ladders of one task and
    policy compare by their areas, also with different seeds.
    """
    subjects = (before.subject.name, after.subject.name)
    reason = _void(before, after) or _other_settings(before, after)
    if reason:
        return Comparison(after.evaluation_name, subjects, reason)
    of_results = _changes(before, after, of_models, _by_intervals)
    changes = _changes(before, after, of_answers, _by_errors)
    old = _scores(before)
    new = _scores(after)
    common = [item for item in old if item in new]
    if before.bank.scale == after.bank.scale:
        abilities = _of_metric(changes, "ability")
    else:
        abilities = {}
    accuracies = _of_metric(changes, "accuracy")
    lost = tuple(item for item in common if new[item] < old[item])
    gained = tuple(item for item in common if new[item] > old[item])
    return Comparison(
        after.evaluation_name,
        subjects,
        ability=abilities.pop("", None),
        accuracy=accuracies.pop("", None),
        auc=_of_metric(changes, "auc").get(""),
        quantities={f"{metric} of {part}" if part else metric: change for (metric, part), change in of_results.items()},
        parts=abilities,
        categories=accuracies,
        common=len(common),
        lost=lost,
        gained=gained,
    )


def _scores(interview: EvaluationRecord) -> dict[str, float]:
    """Return the scores of an interview by item."""
    return {asked.item: asked.score for asked in interview.by_item() if asked.score is not None}


def _of_metric(changes: Mapping[Quantity, Difference], metric: str) -> dict[str, Difference]:
    """Return the changes of one metric by part, that of the whole under an empty text."""
    return {quantity.part: change for quantity, change in changes.items() if quantity.metric == metric}


def _changes(
    before: EvaluationRecord,
    after: EvaluationRecord,
    measure: Callable[[EvaluationRecord], Iterable[tuple[Quantity, QuantityRecord]]],
    difference: Callable[[QuantityRecord, QuantityRecord], Difference | None],
) -> dict[Quantity, Difference]:
    """Return the changes of all quantities that both results have."""
    old, new = (dict(of_subject(evaluation, measure(evaluation))) for evaluation in (before, after))
    changes = {}
    for quantity, row in new.items():
        if quantity in old:
            changes[quantity] = difference(old[quantity], row)
    return {quantity: change for quantity, change in changes.items() if change is not None}


def _void(before: EvaluationRecord, after: EvaluationRecord) -> str:
    for evaluation, position in ((before, "first"), (after, "second")):
        if evaluation.void:
            return f"the {position} evaluation is void: {evaluation.error or 'it did not finish'}"
    return ""


def _other_settings(before: EvaluationRecord, after: EvaluationRecord) -> str:
    """Return why two results of other settings do not compare; empty if they do."""
    if before.bank and after.bank:
        return _refusal(before, after)
    if before.kind != after.kind:
        return f"the kind of the evaluation changed between the two ({before.kind}, then {after.kind})"
    old, new = before.population, after.population
    if old and old != new:
        return f"its settings changed between the two (hash {old}, then {new})"
    return ""


def _refusal(before: EvaluationRecord, after: EvaluationRecord) -> str:
    hashes = {
        "the bank": (before.bank.content_hash, after.bank.content_hash),
        "the decoding settings": (before.subject.decoding_hash, after.subject.decoding_hash),
    }
    climbs = before.levels is not None and after.levels is not None
    if climbs and population(before) != population(after):
        return "the task's levels, or the way they were climbed, changed between the two"
    if climbs and _seed(before) != _seed(after):
        del hashes["the bank"]
    for part, (old, new) in hashes.items():
        if old and new and old != new:
            return f"{part} changed between the two (hash {old}, then {new})"
    changed = changed_requests(before.requests, after.administrations if after.requests else ())
    if changed:
        return f"{changed} the prompts changed between the two"
    return ""


def _seed(interview: EvaluationRecord) -> object:
    return (interview.bank.task or {}).get("seed")


def _by_errors(before: QuantityRecord, after: QuantityRecord) -> Difference | None:
    """Return the change of one quantity by its standard errors; None without both."""
    if before.estimate is None or after.estimate is None or before.error is None or after.error is None:
        return None
    return Difference(before.estimate, after.estimate, math.hypot(before.error, after.error))


def _by_intervals(before: QuantityRecord, after: QuantityRecord) -> Difference | None:
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
