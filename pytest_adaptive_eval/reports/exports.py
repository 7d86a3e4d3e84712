"""A record for other tools: answers and studies as JSON lines and CSV, Every Eval Ever, MLflow.

Every value has the type that its column or field promises, whatever the
record holds: a number that is none, or not finite, is null; a text is valid
Unicode.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports import evaleval, words
from pytest_adaptive_eval.reports.study_rows import STUDY_COLUMNS, member, study_rows
from pytest_adaptive_eval.reports.values import as_count, as_number, as_numbers, as_text, as_texts
from pytest_adaptive_eval.text import clean_xml

__all__ = [
    "RESPONSES_VERSION",
    "every_eval_ever",
    "log_mlflow",
    "mlflow_metrics",
    "responses_csv",
    "responses_jsonl",
    "studies_csv",
    "studies_jsonl",
    "write_export",
]

#: Version of the columns of `responses_jsonl`; a new column leaves it, a changed or removed one raises it.
RESPONSES_VERSION = 1
#: Columns taken from an administration, by its own names, with their types.
_ASKED: dict[str, Callable[[Any], Any]] = {
    "position": as_count,
    "item": as_text,
    "item_hash": as_text,
    "format": as_text,
    "sample": as_count,
    "category": as_texts,
    "difficulty": as_number,
    "status": as_text,
    "score": as_number,
    "text": as_text,
    "detail": as_text,
    "reason": as_text,
    "propensity": as_number,
    "predicted": as_number,
    "rest": as_number,
    "variance": as_number,
    "down": as_number,
    "up": as_number,
    "theta_before": as_numbers,
    "theta_after": as_numbers,
    "seconds": as_number,
    "resumed": bool,
}
#: Columns that tell an interview, before those of `_ASKED`.
_ABOUT = (
    "schema_version",
    "run",
    "started",
    "evaluation",
    "subject",
    "checkpoint",
    "decoding_hash",
    "bank",
    "bank_hash",
    "scale",
)
_COLUMNS = (*_ABOUT, *_ASKED)


def _rows(record: RunRecord) -> Iterator[dict[str, Any]]:
    """One flat mapping an administration, all with the same keys."""
    for interview in record.interviews:
        subject, bank = interview.subject, interview.bank
        facts: list[Any] = [record.run, record.started, interview.name]
        facts += [subject.get(key) for key in ("name", "checkpoint", "decoding_hash")]
        facts += [bank.get(key) for key in ("name", "content_hash", "scale")]
        about = dict(zip(_ABOUT, [RESPONSES_VERSION, *map(as_text, facts)], strict=True))
        for asked in interview.administrations:
            yield about | {name: kind(getattr(asked, name)) for name, kind in _ASKED.items()}


def responses_jsonl(record: RunRecord) -> Iterator[str]:
    """Every answer as a line of JSON, without its end; the columns are documented in ``docs/exports.md``."""
    return map(_line, _rows(record))


def studies_jsonl(record: RunRecord) -> Iterator[str]:
    """What studies found, a line of JSON a subject and quantity; the columns are in ``docs/exports.md`` too."""
    return map(_line, _of_studies(record))


def _of_studies(record: RunRecord) -> Iterator[dict[str, Any]]:
    return (row for study in record.studies for row in study_rows(record, study))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=True, allow_nan=False)


#: What spreadsheets may take for a formula, at the start of a cell.
_FORMULA = re.compile("\\s*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n]")
#: Characters of a cell; Excel breaks a longer one apart, and its rest may begin a formula.
_CELL = 32_000


def responses_csv(record: RunRecord) -> str:
    """Every answer as a row of CSV, with a head.

    The columns are those of `responses_jsonl`.  A list of one is the thing
    itself, another is JSON.  A text that a spreadsheet could take for a
    formula begins with an apostrophe, control characters are shown as
    escapes, and a text of more than 32 000 characters is cut.
    """
    return _csv(_COLUMNS, _rows(record))


def studies_csv(record: RunRecord) -> str:
    """The rows of `studies_jsonl` as CSV, with a head; see `responses_csv`."""
    return _csv(STUDY_COLUMNS, _of_studies(record))


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A number, a text that is none to a spreadsheet either, or None."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else json.dumps(value) if value else None
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, str):
        return value
    text = clean_xml(value, _CELL)
    return f"'{text}" if _FORMULA.match(text) else text


def write_export(record: RunRecord, path: Path, kind: str, *, studies: bool = False) -> int:
    """Write the answers of a run, or what its studies found, replacing what is there in one step.

    Parameters
    ----------
    record : RunRecord
    path : Path
    kind : {"jsonl", "csv"}
    studies : bool
        Whether studies are written, and not answers.

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    UsageError
        There is no such kind, or the file cannot be written.
    """
    rows = list(_of_studies(record) if studies else _rows(record))
    if kind == "jsonl":
        text = "".join(f"{_line(row)}\n" for row in rows)
    elif kind == "csv":
        text = _csv(STUDY_COLUMNS if studies else _COLUMNS, rows)
    else:
        raise UsageError(f"there is no export {kind!r}: expected 'jsonl' or 'csv'")
    write_whole(path, [text.encode("utf-8")], "the studies" if studies else "the answers")
    return len(rows)


def every_eval_ever(record: RunRecord, folder: Path, *, banks: Mapping[str, ItemBank] | None = None) -> list[Path]:
    """Write a run in the format of Every Eval Ever, version 0.3.

    Each interview becomes ``data/<bank>/<developer>/<model>/<uuid>.json`` with
    its estimates, and ``<uuid>_samples.jsonl`` with its scored answers.  A study
    becomes ``data/<evaluation>/<developer>/<model>/<uuid>.json`` of each model
    that it measures.  The same record gives the same files.  An interview that
    estimates nothing is left out, and so are a void study, and answers without
    a score, which the format cannot tell from wrong ones.

    Parameters
    ----------
    record : RunRecord
    folder : Path
    banks : mapping of str to ItemBank, optional
        By evaluation, for the questions and the right answers, which no record holds.

    Returns
    -------
    list of Path

    Raises
    ------
    UsageError
        A file cannot be written.
    """
    written = []
    for place, interview in enumerate(record.interviews):
        whole = evaleval.aggregate(record, interview)
        if whole is None:
            continue
        where, file = evaleval.location(as_text(interview.bank.get("name")) or interview.name, whole, place)
        lines = [
            json.dumps(line) + "\n" for line in evaleval.samples(interview, whole, (banks or {}).get(interview.name))
        ]
        if lines:
            data = "".join(lines).encode("ascii")
            path = folder / where / f"{file}_samples.jsonl"
            write_whole(path, [data], "the samples")
            written.append(path)
            whole["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{where}/{path.name}",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(data).hexdigest(),
                "total_rows": len(lines),
            }
        written.append(_written(whole, folder / where / f"{file}.json"))
    for place, study in enumerate(record.studies, len(record.interviews)):
        for whole in evaleval.study_aggregates(record, study):
            where, file = evaleval.location(study.name, whole, place)
            written.append(_written(whole, folder / where / f"{file}.json"))
    return written


def _written(whole: Mapping[str, Any], path: Path) -> Path:
    write_whole(path, [(json.dumps(whole, indent=1, allow_nan=False) + "\n").encode("ascii")], "the evaluation")
    return path


#: Columns of `study_rows` and how the names of their metrics end.
_OF_A_ROW = {"estimate": "", "low": "_low", "high": "_high", "standard_error": "_standard_error", "rank": "_rank"}


def mlflow_metrics(record: RunRecord) -> dict[str, float]:
    """Numbers of a run by names that MLflow takes, such as ``text/accuracy`` and ``gates/failed``."""
    found: dict[str, float] = {}

    def add(value: Any, *parts: str) -> None:
        if (number := as_number(value)) is None:
            return
        name = "/".join(_metric_part(part) for part in parts)
        n = 2
        unique = name
        while unique in found:
            unique, n = f"{name}_{n}", n + 1
        found[unique] = number

    for interview in record.interviews:
        name = as_text(interview.name) or "evaluation"
        accuracy = interview.accuracy or {}
        for key, title in (("estimate", "accuracy"), ("low", "accuracy_low"), ("high", "accuracy_high")):
            add(accuracy.get(key), name, title)
        add(interview.accuracy_error, name, "accuracy_standard_error")
        add((interview.decoding_noise or {}).get("error"), name, "decoding_noise")
        if interview.accuracy is None:
            add(
                (interview.accuracy_conformal or interview.accuracy_model or {}).get("estimate"),
                name,
                "accuracy_projected",
            )
        for title, values in (("ability", interview.theta), ("ability_standard_error", interview.standard_error)):
            for n, (which, value) in enumerate(
                zip(words.dimensions(interview), as_numbers(values) or [], strict=False)
            ):
                add(value, name, title if n == 0 and not words.in_parts(interview) else f"{title}_{which}")
        add(interview.asked, name, "asked")
        add(interview.scored, name, "scored")
        for part in interview.categories:
            add((part.get("accuracy") or {}).get("estimate"), name, "category", as_text(part.get("category")))
    for study in record.studies:
        name = as_text(study.name) or as_text(study.kind) or "study"
        add(study.asked, name, as_text(study.unit))
        for row in study_rows(record, study):
            if row["void"]:
                continue
            which = row["node"] or ("" if row["subject"] == as_text(study.candidate) else row["subject"])
            for key, title in _OF_A_ROW.items():
                add(row[key], name, row["metric"] + title, *filter(None, [which]))
    outcomes = [words.outcome(gate) for gate in record.gates]
    for outcome in Outcome:
        add(outcomes.count(outcome), "gates", outcome.value.lower())
    add(int(words.promoted(record)), "promote")
    return found


def _metric_part(text: str) -> str:
    """A part of a metric's name: no path, and only what every version of MLflow takes."""
    return re.sub(r"[^A-Za-z0-9_. -]", "_", text)[:80].strip(" .") or "_"


def log_mlflow(record: RunRecord) -> None:
    """Log a run's numbers and names to MLflow, into its active run or a new one.

    Raises
    ------
    UsageError
        MLflow is not installed, or did not take them.
    """
    try:
        import mlflow
    except ImportError as error:
        raise UsageError("MLflow is not installed: pip install mlflow-skinny (or mlflow)") from error
    names: dict[str, list[str]] = {"run": [record.run]}
    for interview in record.interviews:
        for key, value in (
            ("subject", interview.subject.get("name")),
            ("checkpoint", interview.subject.get("checkpoint")),
            ("bank", interview.bank.get("name")),
            ("bank_hash", interview.bank.get("content_hash")),
        ):
            names.setdefault(key, []).append(as_text(value))
    for study in record.studies:
        names.setdefault("subject", []).append(as_text(study.candidate))
        names.setdefault("checkpoint", []).append(as_text(member(study, study.candidate).get("checkpoint")))
    tags = {f"adaptive_eval.{key}": ", ".join(dict.fromkeys(filter(None, some)))[:250] for key, some in names.items()}
    try:
        with nullcontext() if mlflow.active_run() else mlflow.start_run(run_name=as_text(record.run)):
            mlflow.log_metrics(mlflow_metrics(record))
            mlflow.set_tags(tags)
    except Exception as error:  # whatever the server and its client may raise
        text = re.sub(r"://[^/\s@]*@", "://", str(error))  # a tracking URI may hold a password
        raise UsageError(f"MLflow did not take the run: {text[:500]}. See MLFLOW_TRACKING_URI") from None
