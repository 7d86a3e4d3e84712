"""Record logs of OpenAI evals: JSON lines of events, with ``match`` or ``metrics`` for each sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, files_that, named
from pytest_adaptive_eval.banks.responses.questions import as_question
from pytest_adaptive_eval.banks.rows import first_keys, json_lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

_EVENT = frozenset({"run_id", "event_id", "type"})


def _is_log(path: Path) -> bool:
    keys = first_keys(path)
    return "spec" in keys or keys >= _EVENT


@dataclass(slots=True)
class _Sample:
    """Events of one sample."""

    where: str
    values: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    reply: Any = None
    failed: str = ""


def read_openai_evals(path: Path, settings: ReadSettings) -> Responses:
    """Read a record log, or a folder of them.

    The subject is the completion function. An item's id is the sample's. A sample with an ``error`` event is missing.
    Several logs of a subject on one eval count as their mean.
    """
    collected = Collected(str(path))
    runs = 0
    for file in files_that(_is_log, path, "no record log; expected the file of a finished eval"):
        subject, samples = _read(file)
        if not any(sample.values for sample in samples.values()):
            errors = sorted({sample.failed for sample in samples.values() if sample.failed})
            listed = f"; its errors: {'; '.join(errors[:3])}" if errors else ""
            settings.note(f"{file}: no match or metrics event; it is left out{listed}")
            continue
        runs += 1
        answers = [
            Answer(s.where, subject, item, s.values, as_question(s.fields, file), s.reply, bool(s.failed))
            for item, s in samples.items()
        ]
        collected.add_answers(answers, settings.metric, str(file))
    if not runs:
        raise ResponsesError(f"{path}: no sample has a match or metrics event; expected the log of a finished eval")
    collected.check_questions("give logs of one version of the eval")
    return collected.responses()


def _read(file: Path) -> tuple[str, dict[str, _Sample]]:
    """Return the subject of a log, and its samples by id."""
    subject, samples = file.stem, dict[str, _Sample]()
    for where, event in json_lines(file):
        if isinstance(spec := event.get("spec"), dict):
            functions = spec.get("completion_fns")
            first = functions[0] if isinstance(functions, list) and functions else spec.get("model")
            subject = named(first, "spec.completion_fns", where)
        elif isinstance(event.get("data"), dict) and event.get("sample_id") is not None:
            name = named(event["sample_id"], "sample_id", where)
            _add(samples.setdefault(name, _Sample(where)), str(event.get("type")), event["data"])
    return subject, samples


def _add(sample: _Sample, kind: str, data: Mapping[str, Any]) -> None:
    """Add an event's data to its sample."""
    if kind == "sampling":
        sampled = data.get("sampled", data.get("result"))
        answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
        prompt = data.get("prompt")
        if isinstance(prompt, list):  # without the names that examples have
            prompt = [{"role": m.get("role"), "content": m.get("content")} for m in prompt if isinstance(m, Mapping)]
        sample.fields["question"], sample.reply = prompt, answer
    elif kind == "match":
        sample.values["match"] = data.get("correct")
        sample.fields["target"] = data.get("expected")
    elif kind == "metrics":
        sample.values |= {name: value for name, value in data.items() if isinstance(value, int | float)}
    elif kind == "error":
        sample.failed = str(data.get("message") or data.get("type") or data)[:200]


REGISTERED = (
    ResponseReader(
        "openai-evals",
        "record logs of OpenAI evals",
        _is_log,
        read_openai_evals,
        {"metric": "match, or a name of the metrics events"},
    ),
)
