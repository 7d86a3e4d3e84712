"""The study that a candidate's study is compared with, read from a run's record or from a history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_adaptive_eval.errors import AdaptiveEvalError, BaselineError, BaselineMissing
from pytest_adaptive_eval.records.baseline import locate_baseline
from pytest_adaptive_eval.records.derived import copied_from
from pytest_adaptive_eval.records.run_record import RunRecord, StudyRecord
from pytest_adaptive_eval.records.runs import read_run


def read_study_baseline(spec: str, folders: Sequence[Path], evaluation: str, kind: str) -> StudyRecord:
    """Return the recorded study of one evaluation.

    Args:
        spec: A run's record (``.json``), or a history (a run folder, a folder or zip of records), for its newest run
            that passed.
        folders: Bases of a relative path, in order.
        evaluation, kind: Name and kind of the candidate's study, and of the study in the record.

    Raises:
        BaselineMissing: There is no such study in it.
        BaselineError: There is no such file, it cannot be read, or the study is void.
    """
    source = locate_baseline(spec, folders, "name another study of the run, or a run's record")
    try:
        record = read_run(source) if source.suffix == ".json" else _newest(source, evaluation)
    except BaselineError:
        raise
    except AdaptiveEvalError as error:
        raise BaselineError(str(error)) from error
    study = next((study for study in record.studies if study.name == evaluation and study.kind == kind), None)
    if study is None:
        names = ", ".join(f"{study.name} ({study.kind})" for study in record.studies) or "none"
        raise BaselineMissing(f"{source}: the run has no study {evaluation!r} of the kind {kind!r}; it has {names}")
    if study.error:
        raise BaselineError(f"{source}: the study {evaluation!r} is void ({study.error}): record the baseline again")
    return study


def _newest(source: Path, evaluation: str) -> RunRecord:
    """Return the newest run of a history that serves, if possible one with answers of its own."""
    from pytest_adaptive_eval.records.history import History  # a data base, which few runs need

    history = History(source)
    ranked = [
        (not copied_from(record), record.exit_status == 0, position, record.run)
        for position, record in enumerate(history.runs)
        for study in record.studies
        if record.serves_as_baseline and study.name == evaluation and not study.error
    ]
    if not ranked:
        raise BaselineMissing(
            f"{source}: none of its {len(history.runs)} runs has passed with the study {evaluation!r}"
        )
    return history.whole(max(ranked)[-1])
