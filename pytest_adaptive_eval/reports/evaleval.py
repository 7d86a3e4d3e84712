"""Interviews and studies in the format of Every Eval Ever, which collects evaluations of many tools.

Version 0.3: an aggregate of each interview's estimates, and its scored answers
as samples; of a study an aggregate for each model that it measures.  They
follow the published JSON schemas.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.study_rows import member, study_rows
from pytest_adaptive_eval.reports.values import as_count, as_number, as_numbers, as_text, as_texts

__all__ = ["aggregate", "location", "samples", "study_aggregates"]

_VERSION = "0.3.0"
#: Names that no folder may have on Windows, and those that the format refuses.
_RESERVED = {"CON", "PRN", "AUX", "NUL", "DATA", "UNKNOWN", *(f"{x}{n}" for x in ("COM", "LPT") for n in range(1, 10))}


def aggregate(record: RunRecord, interview: InterviewRecord) -> dict[str, Any] | None:
    """What an interview estimates; None where it estimates nothing."""
    name = as_text(interview.name) or words.bank_name(interview) or "evaluation"
    about = f"{name}/{'/'.join(_model(interview.subject))}/{as_text(record.run)}"
    results = _results(interview, name, about)
    return _aggregate(record, about, interview.subject, results) if results else None


def study_aggregates(record: RunRecord, study: StudyRecord) -> Iterator[dict[str, Any]]:
    """What a study found of each model, its own node by node; nothing where it is void."""
    name = as_text(study.name) or as_text(study.kind) or "study"
    details = {key: getattr(study, key) for key in ("kind", "candidate", "size", "unit", "asked")}
    source = {"dataset_name": name, "source_type": "other", "additional_details": _details(details)}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in study_rows(record, study):
        title = ".".join(filter(None, (name, row["metric"], row["node"])))
        result = None if study.error else _measured(title, row)
        if result is not None:
            found.setdefault(row["subject"], []).append(result)
    for subject, results in found.items():
        who = member(study, subject)
        about = f"{name}/{'/'.join(_model(who))}/{as_text(record.run)}"
        more = {"source_data": source, "generation_config": {"generation_args": _generation(who)}}
        told = [{**one, "evaluation_result_id": f"{about}#{n}", **more} for n, one in enumerate(results)]
        yield _aggregate(record, about, who, told)


def _aggregate(
    record: RunRecord, about: str, subject: Mapping[str, Any], results: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "schema_version": _VERSION,
        "evaluation_id": about,
        "evaluation_timestamp": as_text(record.started),
        "retrieved_timestamp": _epoch(record.started),
        "source_metadata": {
            "source_name": "pytest-adaptive-eval",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "pytest-adaptive-eval",
            "version": as_text(record.versions.get("pytest-adaptive-eval")) or "unknown",
        },
        "model_info": _model_info(subject),
        "evaluation_results": results,
    }


def location(collection: Any, whole: Mapping[str, Any], place: int) -> tuple[str, str]:
    """The folder of an aggregate and the stem of its files, the same for the same record.

    Parameters
    ----------
    collection : str
        Name of the bank or the study.
    whole : mapping
        See `aggregate`.
    place : int
        Of the interview or study in its record, studies after interviews.
    """
    key = hashlib.sha256(f"{place} {whole['evaluation_id']}".encode()).digest()
    folder = f"data/{_component(as_text(collection))}/{whole['model_info']['id']}"
    return folder, str(uuid.UUID(bytes=key[:16], version=4))


def samples(
    interview: InterviewRecord, whole: Mapping[str, Any], bank: ItemBank | None = None
) -> Iterator[dict[str, Any]]:
    """The scored answers, one mapping each; with a bank, also what was asked and what is right."""
    place = {item: n for n, item in enumerate(bank.ids)} if bank is not None and bank.items else {}
    first = whole["evaluation_results"][0]
    for asked in interview.administrations:
        score = as_number(asked.score)
        if score is None:
            continue
        answer, item = as_text(asked.text), as_text(asked.item)
        given: dict[str, Any] = {"raw": "", "reference": []}
        sample_hash = None
        question = bank.items[place[item]] if bank is not None and item in place else None
        if question is not None and question.content_hash == asked.item_hash:  # else the bank has changed since
            given["raw"] = as_text(question.prompt or [dict(message) for message in question.messages])
            given["reference"] = [as_text(question.answer)]
            if question.choices:
                given["choices"] = as_texts(question.choices)
            canonical = json.dumps({k: given[k] for k in ("raw", "reference")}, sort_keys=True, separators=(",", ":"))
            sample_hash = hashlib.sha256(canonical.encode()).hexdigest()
        seconds = as_number(asked.seconds)
        yield {
            "schema_version": _VERSION,
            "evaluation_id": whole["evaluation_id"],
            "model_id": whole["model_info"]["id"],
            "evaluation_name": first["evaluation_name"],
            "evaluation_result_id": first["evaluation_result_id"],
            "sample_id": words.asked_item(asked),
            "sample_hash": sample_hash,
            "interaction_type": "single_turn",
            "input": given,
            "output": {"raw": [answer] if answer else []},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": answer,
                    "extraction_method": "custom",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score, "is_correct": score == 1.0},
            "performance": {"latency_ms": 1000.0 * seconds} if seconds is not None and seconds >= 0 else None,
            "metadata": {
                key: as_text(getattr(asked, key))
                for key in (
                    "position",
                    "item_hash",
                    "format",
                    "sample",
                    "category",
                    "propensity",
                    "predicted",
                    "reason",
                )
            },
        }


def _component(text: str) -> str:
    """A text as the name of a folder on any system."""
    name = re.sub("[^A-Za-z0-9._-]+", "_", text)[:100].strip(".")
    return f"{name}_" if not name or name.split(".")[0].upper() in _RESERVED else name


def _model(subject: Mapping[str, Any]) -> tuple[str, str]:
    """Developer and model, as names of folders."""
    developer, _, model = as_text(subject.get("name")).rpartition("/")
    return _component(developer or "local"), _component(model or "unnamed")


def _model_info(subject: Mapping[str, Any]) -> dict[str, Any]:
    model = _model(subject)
    details = _details(subject) | {
        "deployment_type": "self_deployed" if subject.get("checkpoint") else "unknown",
        "model_availability": "unknown",
    }
    name = as_text(subject.get("name")) or "unnamed"
    return {"name": name, "id": "/".join(model), "developer": model[0], "additional_details": details}


def _details(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as texts, without names and paths."""
    return {key: as_text(value) for key, value in facts.items() if key not in ("name", "path") and value is not None}


def _epoch(started: Any) -> str:
    """Seconds since 1970 of an ISO time, which is of UTC where it does not say."""
    try:
        time = datetime.fromisoformat(started)
        return str((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError):
        return "0"


def _results(interview: InterviewRecord, name: str, about: str) -> list[dict[str, Any]]:
    """Accuracy, ability, and accuracy by category, as far as they are estimated."""
    interval = interview.accuracy or interview.accuracy_conformal or interview.accuracy_model
    error = interview.accuracy_error if interview.accuracy else None
    found = [_accuracy(name, interval, error, interview.size, interview.scored)]
    theta, errors = as_numbers(interview.theta) or [], as_numbers(interview.standard_error) or []
    for n, (which, value) in enumerate(zip(words.dimensions(interview), theta, strict=False)):
        title = "ability" if len(theta) == 1 else f"ability_{which}"
        metric = {
            "evaluation_description": words.ability_unit([interview]),
            "metric_id": f"pytest-adaptive-eval.{title}",
            "metric_name": title,
            "metric_unit": "standard deviations" if words.in_parts(interview) else "logits",
            "min_score": "-Infinity",
            "max_score": "Infinity",
        }
        found.append(
            _result(f"{name}.{title}", value, metric, errors[n] if n < len(errors) else None, interview.scored)
        )
    for part in interview.categories:
        title, size, scored = f"{name}.{as_text(part.get('category'))}", part.get("size"), part.get("scored")
        found.append(_accuracy(title, part.get("accuracy"), part.get("standard_error"), size, scored))
    source = {
        "dataset_name": as_text(interview.bank.get("name")) or name,
        "source_type": "other",
        "additional_details": _details(interview.bank),
    }
    asked = {
        "generation_args": _generation(interview.subject),
        "additional_details": _details(interview.policy),
    }
    return [
        {**result, "evaluation_result_id": f"{about}#{n}", "source_data": source, "generation_config": asked}
        for n, result in enumerate(result for result in found if result)
    ]


def _accuracy(title: str, interval: Any, error: Any, size: Any, scored: Any) -> dict[str, Any] | None:
    interval = interval if isinstance(interval, Mapping) else {}
    value = as_number(interval.get("estimate"))
    metric = {
        "evaluation_description": f"share of the bank's {as_text(size)} items that would be answered right, estimated",
        "metric_id": "accuracy",
        "metric_name": "Accuracy",
        "metric_kind": "accuracy",
        "metric_unit": "proportion",
        "min_score": 0.0,
        "max_score": 1.0,
    }
    result = _result(title, value if value is not None and 0 <= value <= 1 else None, metric, error, scored)
    return _with_bounds(result, interval)


#: Of a study's quantity: what it is, its unit, its lowest and highest value.
_OF_STUDIES = {
    "score": ("how good a panel of models finds the answers: an opinion, held against no truth", "points", None, None),
    "energy": ("share of what the routes of a network of nodes hold that the model masters", "proportion", 0.0, 1.0),
    "auc": ("sum of the accuracies at the levels of one node", "levels", 0.0, None),
    "last_level": ("last level of one node with an accuracy above the rate that ends it", "levels", 0.0, None),
}


def _measured(title: str, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """One row of a study; None where its quantity is not known or cannot be."""
    name, value = row["metric"], row["estimate"]
    text, unit, least, most = _OF_STUDIES.get(name, ("a quantity of a study", "", None, None))
    if value is None or (least is not None and value < least) or (most is not None and value > most):
        return None
    metric = {
        "evaluation_description": text,
        "metric_id": f"pytest-adaptive-eval.{name}",
        "metric_name": name,
        "metric_unit": unit,
        "min_score": "-Infinity" if least is None else least,
        "max_score": "Infinity" if most is None else most,
    }
    rounds = row["asked"] if row["unit"] == "rounds" else None
    return _with_bounds(_result(title, value, metric, row["standard_error"], rounds), row)


def _with_bounds(result: dict[str, Any] | None, interval: Mapping[str, Any]) -> dict[str, Any] | None:
    low, high, confidence = (as_number(interval.get(key)) for key in ("low", "high", "confidence"))
    if result and low is not None and high is not None:
        bounds = {"lower": low, "upper": high, "method": as_text(interval.get("method"))}
        if confidence is not None and 0.5 < confidence < 1:
            bounds["confidence_level"] = round(2 * confidence - 1, 12)  # a record's confidence is that of each bound
        result["score_details"]["uncertainty"]["confidence_interval"] = bounds
    return result


def _result(title: str, value: float | None, metric: Any, error: Any, scored: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    uncertainty: dict[str, Any] = {}
    if (error := as_number(error)) is not None:
        uncertainty["standard_error"] = {"value": error}
    if (scored := as_count(scored)) is not None:
        uncertainty["num_samples"] = scored
    return {
        "evaluation_name": title,
        "metric_config": {**metric, "lower_is_better": False, "score_type": "continuous"},
        "score_details": {"score": value, "uncertainty": uncertainty},
    }


def _generation(subject: Mapping[str, Any]) -> dict[str, Any]:
    decoding = subject.get("decoding")
    decoding = decoding if isinstance(decoding, Mapping) else {}
    found: dict[str, Any] = {}
    if (temperature := as_number(decoding.get("temperature"))) is not None:
        found["temperature"] = temperature
    if (tokens := as_count(decoding.get("max_tokens"))) is not None and tokens > 0:
        found["max_tokens"] = tokens
    return found
