"""How numbers and facts of a record read, the same in every report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_adaptive_eval.core.inference import student_quantile
from pytest_adaptive_eval.core.record import GateRecord, InterviewRecord, RunRecord
from pytest_adaptive_eval.core.verdict import Outcome, number

__all__ = [
    "ability",
    "accuracy",
    "bank_name",
    "climb",
    "confidence",
    "gates_by_interview",
    "missing",
    "outcome",
    "share",
    "standing_notes",
    "stop",
    "void",
]

#: One-sided confidence where the record names none.
_CONFIDENCE = 0.95
#: Abilities shown of a bank with several dimensions.
_DIMENSIONS = 3


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None else number(round(value, digits) + 0.0, digits)  # + 0.0: no minus before zero


def confidence(interview: InterviewRecord) -> float:
    """One-sided confidence of the interview's intervals."""
    interval = interview.accuracy or interview.accuracy_conformal or interview.accuracy_model or {}
    value = interval.get("confidence")
    return value if isinstance(value, float) and 0.5 < value < 1 else _CONFIDENCE


def ability(interview: InterviewRecord) -> str:
    """``1.23 ± .31``: the estimate and half of its two-sided interval; ``-`` without an ability."""
    if not interview.theta:
        return "-"
    z = student_quantile(math.inf, confidence(interview))
    errors: Sequence[float | None] = interview.standard_error or (None,) * len(interview.theta)
    pairs = list(zip(interview.theta, errors, strict=False))
    parts = [_shown(t, 2) + ("" if e is None else f" ± {_shown(z * e, 2)}") for t, e in pairs[:_DIMENSIONS]]
    return ", ".join(parts) + (", ..." if len(pairs) > _DIMENSIONS else "")


def accuracy(interview: InterviewRecord) -> str:
    """``.612 [.551, .671]``; with ``~`` before it when it is a projection by the bank, ``-`` without any."""
    if interview.levels:
        return climb(interview)
    interval, mark = interview.accuracy, ""
    if interval is None:
        interval, mark = interview.accuracy_conformal or interview.accuracy_model, "~"
    if interval is None or interval.get("estimate") is None:
        return "-"
    estimate, low, high = (_shown(interval.get(name), 3) for name in ("estimate", "low", "high"))
    return f"{mark}{estimate} exact" if low == high == estimate else f"{mark}{estimate} [{low}, {high}]"


def climb(interview: InterviewRecord) -> str:
    """``AUC 1.70 [1.31, 2.12], last level 2, half right at level 1.8 [1.2, 2.5]``, of a climb."""
    levels = interview.levels if isinstance(interview.levels, Mapping) else {}
    last = f"last level {levels.get('last_level', '-')}"
    if isinstance(auc := levels.get("auc"), Mapping):
        area, low, high = (_shown(auc.get(name), 2) for name in ("estimate", "low", "high"))
        last = f"AUC {area} [{low}, {high}], {last}"
    if isinstance(half := levels.get("half"), Mapping):
        level, low, high = (_shown(half.get(name), 1) for name in ("estimate", "low", "high"))
        last += f", half right at level {level} [{low}, {high}]"
    return last


def share(interview: InterviewRecord) -> str:
    """``96/640 15%``: items asked, items in the bank."""
    percent = 100 * interview.asked / max(interview.size, 1)
    return f"{interview.asked}/{interview.size} {percent:.{int(0 < percent < 1)}f}%"


def missing(interview: InterviewRecord) -> str:
    """Administrations without a score, such as ``2 timeout, 1 refused``; empty if there are none."""
    return ", ".join(f"{n} {status}" for status, n in interview.statuses.items() if n and status != "ok")


def stop(interview: InterviewRecord) -> str:
    """Why the interview ended, as a sentence without its full stop."""
    return interview.stop_sentence or interview.stop or "it was cut off"


def void(interview: InterviewRecord) -> str:
    """Why nothing follows from the interview; empty if something does."""
    return interview.error or ("" if interview.stop else "the interview was cut off")


def bank_name(interview: InterviewRecord) -> str:
    """The bank, and the evaluation's name where it differs."""
    bank = str(interview.bank.get("name", ""))
    return bank if interview.name in ("", bank) else f"{interview.name} ({bank})"


def outcome(gate: GateRecord) -> Outcome:
    """The gate's outcome; ERROR when the record holds none that is known."""
    try:
        return gate.outcome
    except (KeyError, ValueError):
        return Outcome.ERROR


def gates_by_interview(record: RunRecord) -> tuple[list[list[GateRecord]], list[GateRecord]]:
    """The gates of each interview in order, and those that judge none that is known."""
    groups: list[list[GateRecord]] = [[] for _ in record.interviews]
    alone: list[GateRecord] = []
    for gate in record.gates:
        at = [
            i for i, interview in enumerate(record.interviews) if gate.interview in (interview.name, interview.nodeid)
        ]
        (groups[at[0]] if gate.interview and at else alone).append(gate)
    return groups, alone


def standing_notes(record: RunRecord) -> list[str]:
    """What a reader must know about banks and intervals, then what the interviews and gates noted, each once."""
    notes: list[str] = []
    groups, _ = gates_by_interview(record)
    for interview, gates in zip(record.interviews, groups, strict=True):
        name, bank = interview.name or bank_name(interview), interview.bank
        if bank.get("calibrated") is False and interview.policy.get("stop") != "level":
            notes.append(f"{name}: the bank is not calibrated: items were drawn uniformly, and there is no ability")
        if bank.get("trusted") is False:
            notes.append(
                f"{name}: the bank was written although its calibration report advised against it: its abilities are "
                "a hint; intervals that rest on the draws hold all the same"
            )
        if gates and bank.get("calibration_subject"):
            notes.append(
                f"{name}: {interview.subject.get('name', 'the subject')} is one of the bank's calibration subjects: "
                "its ability is estimated from items fitted to its own answers"
            )
        if interview.accuracy is None and interview.accuracy_conformal is not None:
            notes.append(
                f"{name}: ~ is the bank's projection, with an interval from replayed interviews of its calibration "
                "subjects; it holds for checkpoints like them, and no gate decides on it"
            )
        elif interview.accuracy is None and interview.accuracy_model is not None:
            notes.append(f"{name}: ~ is the bank's own projection, which trusts its parameters; no gate decides on it")
        notes += interview.notes
    return list(dict.fromkeys(notes))
