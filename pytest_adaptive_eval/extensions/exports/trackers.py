"""Runs as runs of MLflow and Weights & Biases: metrics, names, and the record, which a later run takes as baseline."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import BaselineError, UsageError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.run_files import read_run, write_record
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import words

#: Folder of a run's artifacts, or name and type of an artifact, and the record's file in it.
FOLDER, RECORD = "adaptive-eval", "record.json"
#: Attributes of a quantity's row, and the suffixes of their metrics.
_SUFFIXES = {"estimate": "", "low": "_low", "high": "_high", "error": "_standard_error"}


def mlflow_metrics(record: RunRecord) -> dict[str, float]:
    """Return the numbers of a run by names that MLflow takes, such as ``text/accuracy`` and ``gates/failed``."""
    values: list[tuple[tuple[str, ...], float | None]] = []
    for interview in record.interviews:
        name = interview.name or "evaluation"
        values += [((name, *path), value) for path, value in _interview_values(interview)]
    for evaluation in record.others:
        name = evaluation.name or evaluation.kind
        values += [((name, *path), value) for path, value in _quantity_values(evaluation)]
    outcomes = [gate.outcome for gate in record.gates]
    for outcome in Outcome:
        values.append((("gates", outcome.value.lower()), outcomes.count(outcome)))
    values.append((("promote",), int(words.promoted(record))))
    metrics: dict[str, float] = {}
    for path, value in values:
        if value is None:
            continue
        name = "/".join(map(_metric_part, path))
        unique = name
        n = 2
        while unique in metrics:
            unique = f"{name}_{n}"
            n += 1
        metrics[unique] = float(value)
    return metrics


def _interview_values(interview: EvaluationRecord) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """Yield the parts of a metric's name and its value for each number of an interview."""
    accuracy = interview.accuracy
    if accuracy:
        yield ("accuracy",), accuracy.estimate
        yield ("accuracy_low",), accuracy.low
        yield ("accuracy_high",), accuracy.high
    elif interview.projection:
        yield ("accuracy_projected",), interview.projection.estimate
    yield ("accuracy_standard_error",), interview.accuracy_error
    if interview.decoding_noise:
        yield ("decoding_noise",), interview.decoding_noise.error
    suffixes = [f"_{dimension}" for dimension in words.dimensions(interview)]
    if suffixes and not words.in_parts(interview):
        suffixes[0] = ""
    for title, values in (("ability", interview.theta), ("ability_standard_error", interview.standard_error)):
        for suffix, value in zip(suffixes, values or [], strict=False):
            yield (title + suffix,), value
    yield ("asked",), interview.asked
    yield ("scored",), interview.scored
    for row in interview.categories:
        if row.accuracy:
            yield ("category", row.category), row.accuracy.estimate


def _quantity_values(evaluation: EvaluationRecord) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """Yield the parts of a metric's name and its value for each quantity of an evaluation."""
    yield (evaluation.unit,), evaluation.asked
    if evaluation.error:
        return
    for metric, rows in evaluation.metrics.items():
        for row in rows:
            other = [] if row.subject == evaluation.subject.name else [row.subject]
            for attribute, suffix in _SUFFIXES.items():
                yield (metric + suffix, *other), getattr(row, attribute)
            if row.rank:
                yield (f"{metric}_rank", *other), row.rank.mean


def _metric_part(text: str) -> str:
    """Return a part of a metric's name in the characters that every version of MLflow takes."""
    return re.sub(r"[^A-Za-z0-9_. -]", "_", text)[:80].strip(" .") or "_"


def _tags(record: RunRecord) -> dict[str, str]:
    names: dict[str, list[str]] = {
        "run": [record.run],
        "subject": [evaluation.subject.name for evaluation in record.evaluations],
        "checkpoint": [evaluation.subject.checkpoint for evaluation in record.evaluations],
        "bank": [interview.bank.name for interview in record.interviews],
        "bank_hash": [interview.bank.content_hash for interview in record.interviews],
    }
    tags = {}
    for key, values in names.items():
        if values:
            distinct = dict.fromkeys(filter(None, values))
            tags[f"adaptive_eval.{key}"] = ", ".join(distinct)[:250]
    return tags


@contextmanager
def _record_file(record: RunRecord) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / RECORD
        write_record(path, record)
        yield path


def log_mlflow(record: RunRecord) -> None:
    """Log a run's numbers, names and record to MLflow, into its active run or a new one.

    Raises:
        UsageError: MLflow is not installed, or refused them.
    """
    try:
        import mlflow
    except ImportError as error:
        raise UsageError("MLflow is not installed: pip install mlflow-skinny (or mlflow)") from error
    try:
        active: Any = nullcontext()
        if not mlflow.active_run():
            active = mlflow.start_run(run_name=record.run)
        with active, _record_file(record) as path:
            mlflow.log_metrics(mlflow_metrics(record))
            mlflow.set_tags(_tags(record))
            mlflow.log_artifact(str(path), FOLDER)
    except Exception as error:  # any exception of the server or its client
        raise UsageError(f"MLflow refused the run: {without_password(error)}. See MLFLOW_TRACKING_URI") from None


def log_wandb(record: RunRecord) -> str:
    """Log a run's numbers, names and record to Weights & Biases, into its active run or a new one.

    Returns:
        The run as a baseline: ``wandb:ENTITY/PROJECT/RUN``.

    Raises:
        UsageError: ``wandb`` is not installed, or refused them.
    """
    try:
        import wandb
    except ImportError as error:
        raise UsageError('wandb is not installed: pip install "pytest-adaptive-eval[wandb]"') from error
    try:
        run = wandb.run
        is_new = run is None
        if is_new:
            run = wandb.init(name=re.sub(r"\W", "-", record.run))
        with _record_file(record) as path:
            run.config.update(_tags(record), allow_val_change=True)
            run.log(mlflow_metrics(record))
            artifact = wandb.Artifact(f"{FOLDER}-{run.id}", type=FOLDER)
            artifact.add_file(str(path), name=RECORD)
            run.log_artifact(artifact)
            if is_new:
                run.finish()
        return f"wandb:{run.entity}/{run.project}/{run.id}"
    except Exception as error:  # any exception of the server or its client
        raise UsageError(
            f"Weights & Biases refused the run: {without_password(error)}. See WANDB_PROJECT, WANDB_ENTITY, "
            "WANDB_MODE and wandb login"
        ) from None


def without_password(error: Exception) -> str:
    """Return an error of a tracker without the password and the query that an address may hold."""
    return re.sub(r"(://)(?:[^/\s@]*@)?([^\s?]*)(?:\?\S*)?", r"\1\2", str(error))[:500]


def fetch_run(spec: str) -> RunRecord:
    """Return the record that a run of a tracker keeps.

    Raises:
        BaselineError: The tracker has no such run, the run no record, or the package of the tracker is not installed.
    """
    name, _, run = spec.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = _TRACKERS[name](run, folder)
        except ImportError as error:
            raise BaselineError(f'{spec}: pip install "pytest-adaptive-eval[{name}]"') from error
        except Exception as error:  # any exception of the server or its client
            raise BaselineError(
                f"{spec}: cannot fetch its record ({without_password(error)}); log a run with adaptive-eval report "
                f"--export {name}, and give its id"
            ) from None
        return read_run(path)


def _mlflow(run: str, folder: str) -> Path:
    import mlflow

    return Path(mlflow.artifacts.download_artifacts(run_id=run, artifact_path=f"{FOLDER}/{RECORD}", dst_path=folder))


def _wandb(run: str, folder: str) -> Path:
    import wandb

    project, _, name = run.rpartition("/")
    artifact = wandb.Api().artifact(f"{project}/{FOLDER}-{name}:latest", type=FOLDER)
    return Path(artifact.download(root=folder)) / RECORD


_TRACKERS: dict[str, Callable[[str, str], Path]] = {"mlflow": _mlflow, "wandb": _wandb}
