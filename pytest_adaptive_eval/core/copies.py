"""Records that are made from others without asking anything: judged again, or merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_adaptive_eval.core.record import RunRecord

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
    statuses = [1 if record.exit_status is None else record.exit_status for record in records]
    out.exit_status = max(statuses)
    out.extra["merged"] = [record.run for record in records]
    judged = {gate.nodeid for gate in out.gates}
    left_out = dict.fromkeys(nodeid for record in records for nodeid in record.extra.get("deselected") or ())
    if left := [nodeid for nodeid in left_out if nodeid not in judged]:
        out.extra["deselected"] = left
    out.warn()
    return out


def _free(name: str, marks: Sequence[str], names: set[str]) -> str:
    """The name, with the first mark that makes it another than those taken; it is taken now."""
    tried = [name, *(f"{name} ({mark})" for mark in marks if mark)]
    found = next((one for one in tried if one not in names), tried[-1])
    names.add(found)
    return found
