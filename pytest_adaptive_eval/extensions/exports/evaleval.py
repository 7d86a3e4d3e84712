"""Interviews and studies in the format of Every Eval Ever, a collection of evaluations by many tools.

Version 0.3: an aggregate of each interview's estimates, and its scored answers as samples; of a study an aggregate for
each model that it measures. They follow the published JSON schemas.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pytest_adaptive_eval.extensions.exports.quantity_rows import quantity_rows
from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.parts import SubjectRecord, plain
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import words

_VERSION = "0.3.0"
_LIBRARY = "pytest-adaptive-eval"
#: Folder names that Windows or the format refuses.
_RESERVED = {"CON", "PRN", "AUX", "NUL", "DATA", "UNKNOWN", *(f"{x}{n}" for x in ("COM", "LPT") for n in range(1, 10))}
#: Attributes of an administration that become a sample's metadata.
_METADATA = ("position", "item_hash", "format", "sample", "category", "propensity", "predicted", "reason")
_UNBOUNDED = ("-Infinity", "Infinity")
_FACTS = ("kind", "size", "unit", "asked")  #: Attributes of a record that become its source's details.


def aggregate(record: RunRecord, interview: EvaluationRecord) -> dict[str, Any] | None:
    """Return an interview's estimates, None without any."""
    name = interview.name or words.bank_name(interview) or "evaluation"
    bank = interview.bank.to_json()
    results = [result for result in _results(interview, name) if result]
    generation = {
        "generation_args": _generation(interview.subject),
        "additional_details": _details(interview.policy.to_json()),
    }
    source = _source(interview.bank.name or name, bank)
    return _aggregate(record, name, interview.subject, results, source, generation) if results else None


def aggregates(record: RunRecord, study: EvaluationRecord) -> Iterator[dict[str, Any]]:
    """Yield the results of each model of a study, the candidate's by node; none of a void study."""
    name = study.name or study.kind
    source = _source(name, {"candidate": study.subject.name, **{key: getattr(study, key) for key in _FACTS}})
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for row in quantity_rows(record, study):
        title = ".".join(filter(None, (name, row["metric"], row["node"])))
        if not study.error and (result := _quantity(title, row)):
            by_subject.setdefault(row["subject"], []).append(result)
    for subject, results in by_subject.items():
        identity = study.member(subject)
        generation = {"generation_args": _generation(identity)}
        yield _aggregate(record, name, identity, results, source, generation)


def _source(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"dataset_name": name, "source_type": "other", "additional_details": _details(facts)}


def _aggregate(
    record: RunRecord,
    name: str,
    subject: SubjectRecord,
    results: list[dict[str, Any]],
    source: Mapping[str, Any],
    generation: Mapping[str, Any],
) -> dict[str, Any]:
    model = _model(subject)
    evaluation_id = f"{name}/{'/'.join(model)}/{record.run}"
    details = _details(subject.to_json()) | {
        "deployment_type": "self_deployed" if subject.checkpoint else "unknown",
        "model_availability": "unknown",
    }
    about = {"name": subject.name or "unnamed", "id": "/".join(model), "developer": model[0]}
    try:  # a time without a zone is in UTC
        time = datetime.fromisoformat(record.started)
        epoch = str((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError):
        epoch = "0"
    shared = {"source_data": source, "generation_config": generation}
    return {
        "schema_version": _VERSION,
        "evaluation_id": evaluation_id,
        "evaluation_timestamp": record.started,
        "retrieved_timestamp": epoch,
        "source_metadata": {
            "source_name": _LIBRARY,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": _LIBRARY, "version": record.versions.get(_LIBRARY) or "unknown"},
        "model_info": {**about, "additional_details": details},
        "evaluation_results": [
            {**result, "evaluation_result_id": f"{evaluation_id}#{n}", **shared} for n, result in enumerate(results)
        ],
    }


def location(collection: str, whole: Mapping[str, Any], position: int) -> tuple[str, str]:
    """Return the folder of an aggregate and the stem of its files, the same for the same record.

    Args:
        position: Index of the evaluation in its record.
    """
    key = hashlib.sha256(f"{position} {whole['evaluation_id']}".encode()).digest()
    folder = f"data/{_component(collection)}/{whole['model_info']['id']}"
    return folder, str(uuid.UUID(bytes=key[:16], version=4))


def samples(
    interview: EvaluationRecord, whole: Mapping[str, Any], bank: ItemBank | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a mapping per scored answer; a bank adds the questions and expected answers."""
    index = {item: n for n, item in enumerate(bank.ids)} if bank is not None and bank.items else {}
    first = whole["evaluation_results"][0]
    for asked in interview.administrations:
        score, answer, seconds = asked.score, asked.text, asked.seconds
        if score is None:
            continue
        question, question_hash = _question(asked, bank, index)
        attribution = {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": answer,
            "extraction_method": "custom",
            "is_terminal": True,
        }
        yield {
            "schema_version": _VERSION,
            "evaluation_id": whole["evaluation_id"],
            "model_id": whole["model_info"]["id"],
            "evaluation_name": first["evaluation_name"],
            "evaluation_result_id": first["evaluation_result_id"],
            "sample_id": words.asked_item(asked),
            "sample_hash": question_hash,
            "interaction_type": "single_turn",
            "input": question,
            "output": {"raw": [answer] if answer else []},
            "answer_attribution": [attribution],
            "evaluation": {"score": score, "is_correct": score == 1.0},
            "performance": {"latency_ms": 1000.0 * seconds} if seconds is not None and seconds >= 0 else None,
            "metadata": {key: _text(getattr(asked, key)) for key in _METADATA},
        }


def _question(
    asked: Administration, bank: ItemBank | None, index: Mapping[str, int]
) -> tuple[dict[str, Any], str | None]:
    """Return question and expected answer with their hash; empty and None unless the bank has the unchanged item."""
    item = bank.items[index[asked.item]] if bank is not None and asked.item in index else None
    if item is None or item.content_hash != asked.item_hash:
        return {"raw": "", "reference": []}, None
    messages = [dict(message) for message in item.messages]
    question = {"raw": _text(item.prompt or messages), "reference": [_text(item.answer)]}
    canonical = json.dumps(question, sort_keys=True, separators=(",", ":"))
    choices = {"choices": plain(item.choices)} if item.choices else {}
    return question | choices, hashlib.sha256(canonical.encode()).hexdigest()


def _component(text: str) -> str:
    """Return a text as the name of a folder on any system."""
    name = re.sub("[^A-Za-z0-9._-]+", "_", text)[:100].strip(".")
    return f"{name}_" if not name or name.split(".")[0].upper() in _RESERVED else name


def _model(subject: SubjectRecord) -> tuple[str, str]:
    developer, _, model = subject.name.rpartition("/")
    return _component(developer or "local"), _component(model or "unnamed")


def _details(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return facts as texts, without names and paths."""
    return {key: _text(value) for key, value in facts.items() if key not in ("name", "path") and value is not None}


def _text(value: Any) -> str:
    """Return valid Unicode: a text as it is, None as an empty text, other values as JSON."""
    value = plain(value)
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _results(interview: EvaluationRecord, name: str) -> Iterator[dict[str, Any] | None]:
    """Yield accuracy, abilities, and accuracy by category; None for a missing estimate."""
    error = interview.accuracy_error if interview.accuracy else None
    yield _accuracy(name, interview.projection, error, interview.size, interview.scored)
    theta = interview.theta or []
    errors: list[float | None] = [*(interview.standard_error or []), *[None] * len(theta)]
    unit = "standard deviations" if words.in_parts(interview) else "logits"
    for dimension, value, error in zip(words.dimensions(interview), theta, errors, strict=False):
        title = "ability" if len(theta) == 1 else f"ability_{dimension}"
        metric = _metric(words.ability_unit([interview]), title, unit, *_UNBOUNDED)
        yield _result(f"{name}.{title}", value, metric, error, interview.scored)
    for row in interview.categories:
        yield _accuracy(f"{name}.{row.category}", row.accuracy, row.standard_error, row.size, row.scored)


def _metric(description: str, name: str, unit: str, low: float | str, high: float | str) -> dict[str, Any]:
    return {
        "evaluation_description": description,
        "metric_id": f"{_LIBRARY}.{name}",
        "metric_name": name,
        "metric_unit": unit,
        "min_score": low,
        "max_score": high,
    }


def _accuracy(
    title: str, interval: Interval | None, error: float | None, size: int, scored: int
) -> dict[str, Any] | None:
    value = interval.estimate if interval else None
    description = f"share of the bank's {size} items that would be answered right, estimated"
    metric = _metric(description, "Accuracy", "proportion", 0.0, 1.0)
    metric |= {"metric_id": "accuracy", "metric_kind": "accuracy"}
    result = _result(title, value if value is not None and 0 <= value <= 1 else None, metric, error, scored)
    return _with_bounds(result, plain(interval) or {})


def _quantity(title: str, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result of one row of a study, None for an unknown or impossible value."""
    name, value, measure = row["metric"], row["estimate"], registered_metric(row["metric"])
    description, unit, least, most = "a quantity of a study", "", None, None
    if measure is not None:
        description, unit, least, most = measure.description, measure.unit, measure.minimum, measure.maximum
    if value is None or (least is not None and value < least) or (most is not None and value > most):
        return None
    low, high = (
        limit if limit is not None else unbounded for limit, unbounded in zip((least, most), _UNBOUNDED, strict=True)
    )
    rounds = row["asked"] if row["unit"] == "rounds" else None
    metric = _metric(description, name, unit, low, high)
    return _with_bounds(_result(title, value, metric, row["standard_error"], rounds), row)


def _with_bounds(result: dict[str, Any] | None, interval: Mapping[str, Any]) -> dict[str, Any] | None:
    low, high, confidence = (interval.get(key) for key in ("low", "high", "confidence"))
    if result and low is not None and high is not None:
        bounds = {"lower": low, "upper": high, "method": interval["method"]}
        if confidence is not None and 0.5 < confidence < 1:
            bounds["confidence_level"] = round(2 * confidence - 1, 12)  # a record's confidence is one-sided
        result["score_details"]["uncertainty"]["confidence_interval"] = bounds
    return result


def _result(
    title: str, value: float | None, metric: dict[str, Any], error: float | None, scored: int | None
) -> dict[str, Any] | None:
    if value is None:
        return None
    uncertainty: dict[str, Any] = {}
    if error is not None:
        uncertainty["standard_error"] = {"value": error}
    if scored is not None:
        uncertainty["num_samples"] = scored
    return {
        "evaluation_name": title,
        "metric_config": {**metric, "lower_is_better": False, "score_type": "continuous"},
        "score_details": {"score": value, "uncertainty": uncertainty},
    }


def _generation(subject: SubjectRecord) -> dict[str, Any]:
    temperature, tokens = subject.decoding.get("temperature"), subject.decoding.get("max_tokens")
    settings: dict[str, Any] = {}
    if isinstance(temperature, int | float) and not isinstance(temperature, bool):
        settings["temperature"] = float(temperature)
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
        settings["max_tokens"] = tokens
    return settings
