"""A run in few lines for a terminal: one a gate, and at most two for the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_adaptive_eval.gates.verdict import Outcome, claim_in_words
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.values import as_mapping, as_number
from pytest_adaptive_eval.text import clean_terminal, columns, wrap

#: Most lines of a reason, columns of a name, and characters of a claim.
REASON_LINES, NAME, CLAIM = 2, 60, 600

#: Outcome of a gate, and its lines: the first begins with the outcome.
GateLines = tuple[Outcome, list[str]]


def gate_lines(record: RunRecord, width: int) -> list[GateLines]:
    """Return each gate's verdict in one line, and in at most two more what was unanswered and why nothing is decided.

    Args:
        width: Columns of the terminal.
    """
    several = len(record.interviews) + len(record.studies) > 1
    standing = words.standing_notes(record)
    head = max((len(words.outcome(gate).value) for gate in record.gates), default=0) + 2
    return [
        (words.outcome(gate), _lines(gate, width, head, several=several, standing=standing)) for gate in record.gates
    ]


def _lines(gate: GateRecord, width: int, head: int, *, several: bool, standing: Sequence[str]) -> list[str]:
    outcome = words.outcome(gate)
    claim, asked = _claim(gate, outcome), _asked(gate.verdict)
    reason = _reason(gate, standing) if outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR) else ""
    reason = "; ".join(filter(None, [clean_terminal(str(gate.verdict.get("unanswered", "")), CLAIM), reason]))
    start, indent, room = outcome.value.ljust(head), " " * head, width - head
    name = clean_terminal(gate.name, max(room, NAME), keep_end=True)
    full_name = name + (f" ({clean_terminal(gate.interview, NAME)})" if several and _says_more(gate) else "")
    metric = str(gate.verdict.get("metric"))
    short_claim = claim.removeprefix(f"{metric} ") if metric.replace(" ", "_") in gate.name else claim
    tails = (asked, asked.replace(" of ", "/"), "")
    lines = [f"{title}: {said}{tail}" for title in (full_name, name) for tail in tails for said in (claim, short_claim)]
    if fitting := next((line for line in lines if columns(line) <= room), ""):
        return [f"{start}{fitting}", *_cut([reason], width, indent)]
    title = full_name if columns(full_name) <= room else clean_terminal(name, room, keep_end=True)
    said = next((text for tail in tails if columns(text := f"{claim}{tail}") <= room), f"{claim}{asked}")
    return [f"{start}{title}", *_cut([said, reason], width, indent)]


def _says_more(gate: GateRecord) -> bool:
    """Return whether the evaluation's name is not yet a part of the gate's name, as it is of gates in TOML files."""
    return gate.interview not in ("", gate.name) and not gate.name.startswith(f"{gate.interview}-")


def _claim(gate: GateRecord, outcome: Outcome) -> str:
    """Return what was found and what is required, as short as it can be said."""
    verdict = gate.verdict
    interval, stated = as_mapping(verdict.get("interval")), verdict.get("stated")
    if stated or not verdict.get("metric"):
        return clean_terminal(str(stated or words.sentence_without(gate, ())), CLAIM)
    metric, requirement = str(verdict["metric"]), str(verdict.get("requirement"))
    if interval.get("estimate") is None:
        return clean_terminal(f"{metric} {requirement} required", CLAIM)
    bounds = [as_number(interval.get(end)) for end in ("estimate", "low", "high")]
    return clean_terminal(claim_in_words(outcome, metric, requirement, bounds, str(interval.get("method"))), CLAIM)


def _asked(verdict: dict[str, Any]) -> str:
    asked, size, unit = verdict.get("asked"), verdict.get("size"), verdict.get("unit", "items")
    return "" if asked is None else f", {asked} of {size}" + ("" if unit == "items" else f" {unit}")


def _reason(gate: GateRecord, standing: Sequence[str]) -> str:
    """Return the first note of a verdict that no other line has."""
    notes = gate.verdict.get("notes")
    texts = [str(note) for note in notes] if isinstance(notes, list) else []
    return next((clean_terminal(text, CLAIM) for text in texts if text not in standing), "")


def _cut(texts: Sequence[str], width: int, indent: str) -> list[str]:
    """Return texts in at most `REASON_LINES` lines; an ellipsis marks a cut, which is between words."""
    lines = [line for text in texts if text for line in wrap(text, width, indent)]
    if len(lines) > REASON_LINES:
        last = lines[REASON_LINES - 1]
        while columns(last) + 2 > width and " " in last.strip():
            last = last.rpartition(" ")[0]
        lines[REASON_LINES - 1 :] = [f"{last} …"]
    return lines


def unjudged_lines(record: RunRecord, width: int) -> list[tuple[str, bool]]:
    """Return a line for each interview that no gate judges or that is void, and whether it is void."""
    groups, _ = words.gates_by_interview(record)
    lines: list[tuple[str, bool]] = []
    for interview, gates in zip(record.interviews, groups, strict=True):
        error = words.void(interview)
        if error or not gates:
            text = f"void: {clean_terminal(error, CLAIM)}" if error else _found(interview)
            lines += [(line, bool(error)) for line in _cut([f"{_title(interview)}: {text}"], width, "")]
    return lines


def _title(interview: InterviewRecord) -> str:
    subject = clean_terminal(interview.subject.get("name") or "-", NAME, keep_end=True)
    return f"{subject} on {clean_terminal(words.bank_name(interview) or '-', NAME)}"


def _found(interview: InterviewRecord) -> str:
    found, asked = words.accuracy(interview), f"{interview.asked} of {interview.size}"
    label = "" if interview.levels else "accuracy "
    return clean_terminal(f"{label}{found}, {asked}, {words.stop(interview)}", CLAIM)
