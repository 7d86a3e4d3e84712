"""Records made from other records without new answers: rescored or merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_adaptive_eval.records.run_record import ONLY_REQUIRED, RunRecord


def copied_from(record: RunRecord) -> str:
    """Return ``rescored from RUN`` or ``merged of N``; an empty text for a run with answers of its own."""
    if source := record.extra.get("rescored_from"):
        return f"rescored from {source}"
    runs = record.extra.get("merged")
    return f"merged of {len(runs)}" if isinstance(runs, list) else ""


def sources_of(record: RunRecord) -> list[str]:
    """Return the ids of the runs whose answers a derived record holds; an empty list for any other record."""
    source, runs = record.extra.get("rescored_from"), record.extra.get("merged")
    return [str(source)] if source else [str(run) for run in runs] if isinstance(runs, list) else []


def merged(records: Sequence[RunRecord], run: str) -> RunRecord:
    """Return one record of several, with their verdicts.

    Evaluations that share a name get the subject's name added, else the start of the run, else its id.
    """
    whole = RunRecord(run, min(record.started for record in records))
    names: set[str] = set()
    for record in records:
        _add(record, whole, names)
    whole.exit_status = max(map(_exit_status, records))
    whole.extra["merged"] = [record.run for record in records]
    judged = {gate.nodeid for gate in whole.gates}
    deselected = dict.fromkeys(nodeid for record in records for nodeid in record.extra.get("deselected") or ())
    if unjudged := [nodeid for nodeid in deselected if nodeid not in judged]:
        whole.extra["deselected"] = unjudged
        if any(record.extra.get("shard") for record in records):
            whole.extra["shard"] = True
    required: dict[str, dict[str, None]] = {}
    for record in records:
        for name, nodeids in record.required.items():
            required.setdefault(name, {}).update(dict.fromkeys(nodeids))
    if required:
        whole.extra["required"] = {name: list(nodeids) for name, nodeids in required.items()}
    whole.fail_without_required()
    whole.warn()
    return whole


def _add(record: RunRecord, whole: RunRecord, names: set[str]) -> None:
    """Add a record's evaluations under names of their own, and its gates."""
    marks = (record.started[:16].replace("T", " "), record.run)
    renamed: dict[str, str] = {}
    for interview in record.interviews:
        name = _unique(interview.name, (str(interview.subject.get("name") or ""), *marks), names)
        renamed |= {interview.name: name, interview.nodeid: name}
        whole.interviews.append(replace(interview, name=name))
    for study in record.studies:
        name = _unique(study.name, (study.candidate, *marks), names)
        renamed |= {study.name: name, study.nodeid: name}
        whole.studies.append(replace(study, name=name))
    whole.gates += [replace(gate, interview=renamed.get(gate.interview, gate.interview)) for gate in record.gates]
    whole.seconds += record.seconds
    whole.versions |= record.versions


def _exit_status(record: RunRecord) -> int:
    """Return a run's exit status, 0 if it failed only for required gates, which another run may have judged."""
    if record.exit_status == 1 and record.extra.get(ONLY_REQUIRED) is True:
        return 0
    return 1 if record.exit_status is None else record.exit_status


def _unique(name: str, marks: Sequence[str], taken: set[str]) -> str:
    """Return the name, with the first mark that makes it unique, and add it to those taken."""
    candidates = [name, *(f"{name} ({mark})" for mark in marks if mark)]
    unique = next((candidate for candidate in candidates if candidate not in taken), candidates[-1])
    taken.add(unique)
    return unique
