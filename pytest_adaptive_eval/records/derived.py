"""Records that are made from others without asking anything: judged again, or merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_adaptive_eval.records.run_record import ONLY_REQUIRED, RunRecord

__all__ = ["copied_from", "merged", "sources_of"]


def copied_from(record: RunRecord) -> str:
    """``rescored from RUN`` or ``merged of N``; empty for a run that asked."""
    if source := record.extra.get("rescored_from"):
        return f"rescored from {source}"
    runs = record.extra.get("merged")
    return f"merged of {len(runs)}" if isinstance(runs, list) else ""


def sources_of(record: RunRecord) -> list[str]:
    """Ids of the runs whose answers a copy holds; none for a run that asked."""
    source, runs = record.extra.get("rescored_from"), record.extra.get("merged")
    return [str(source)] if source else [str(run) for run in runs] if isinstance(runs, list) else []


def merged(records: Sequence[RunRecord], run: str) -> RunRecord:
    """One record of several, as they were judged.

    Evaluations that share a name get the subject's added to it, or else when
    the run started, or its id.

    Parameters
    ----------
    records : sequence of RunRecord
        At least one.
    run : str
        Id of the new record.
    """
    out = RunRecord(run, min(record.started for record in records))
    names: set[str] = set()
    for record in records:
        marks = (record.started[:16].replace("T", " "), record.run)
        renamed: dict[str, str] = {}
        for interview in record.interviews:
            name = _free(interview.name, (str(interview.subject.get("name") or ""), *marks), names)
            renamed |= {interview.name: name, interview.nodeid: name}
            out.interviews.append(replace(interview, name=name))
        for study in record.studies:
            name = _free(study.name, (study.candidate, *marks), names)
            renamed |= {study.name: name, study.nodeid: name}
            out.studies.append(replace(study, name=name))
        out.gates += [replace(gate, interview=renamed.get(gate.interview, gate.interview)) for gate in record.gates]
        out.seconds += record.seconds
        out.versions |= record.versions
    out.exit_status = max(map(_own_status, records))
    out.extra["merged"] = [record.run for record in records]
    judged = {gate.nodeid for gate in out.gates}
    left_out = dict.fromkeys(nodeid for record in records for nodeid in record.extra.get("deselected") or ())
    if left := [nodeid for nodeid in left_out if nodeid not in judged]:
        out.extra["deselected"] = left
        if any(record.extra.get("shard") for record in records):
            out.extra["shard"] = True
    if required := _all_required(records):
        out.extra["required"] = required
    out.fail_without_required()
    out.warn()
    return out


def _own_status(record: RunRecord) -> int:
    """Return a run's exit status, and 0 where it failed only for required gates, which another run may have judged."""
    if record.exit_status == 1 and record.extra.get(ONLY_REQUIRED) is True:
        return 0
    return 1 if record.exit_status is None else record.exit_status


def _all_required(records: Sequence[RunRecord]) -> dict[str, list[str]]:
    """Return the required gates of all records, each with the node ids that any of them found."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for name, nodeids in record.required.items():
            found.setdefault(name, {}).update(dict.fromkeys(nodeids))
    return {name: list(nodeids) for name, nodeids in found.items()}


def _free(name: str, marks: Sequence[str], names: set[str]) -> str:
    """The name, with the first mark that makes it another than those taken; it is taken now."""
    tried = [name, *(f"{name} ({mark})" for mark in marks if mark)]
    found = next((one for one in tried if one not in names), tried[-1])
    names.add(found)
    return found
