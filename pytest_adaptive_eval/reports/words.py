"""How numbers and facts of a record read, the same in every report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.records.run_record import Administration, GateRecord, InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.reports.typed import as_count, as_numbers, as_text
from pytest_adaptive_eval.text import counted, number

__all__ = [
    "ability",
    "ability_unit",
    "accuracy",
    "asked_item",
    "bank_name",
    "climb",
    "confidence",
    "dimensions",
    "gates_by_interview",
    "gates_by_study",
    "in_parts",
    "missing",
    "noise",
    "outcome",
    "promoted",
    "promotion",
    "quantities",
    "quantity",
    "ranked",
    "share",
    "standing_notes",
    "stop",
    "study_cost",
    "study_line",
    "study_name",
    "sure",
    "void",
    "why",
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
    rows = list(zip(dimensions(interview), interview.theta, errors, strict=False))
    most = len(rows) if in_parts(interview) else _DIMENSIONS
    shown = [
        (f"{name} " if in_parts(interview) else "") + _shown(t, 2) + ("" if e is None else f" ± {_shown(z * e, 2)}")
        for name, t, e in rows[:most]
    ]
    return ", ".join(shown) + (", ..." if len(rows) > most else "")


def in_parts(interview: InterviewRecord) -> list[str]:
    """The parts of ability, of a bank that was asked in formats."""
    parts = interview.bank.get("parts")
    return [str(part) for part in parts] if isinstance(parts, list) else []


def dimensions(interview: InterviewRecord) -> list[str]:
    """What each ability is called: its part, else its number from 1."""
    return in_parts(interview) or [str(n) for n in range(1, len(as_numbers(interview.theta) or []) + 1)]


def ability_unit(interviews: Sequence[InterviewRecord]) -> str:
    """What the abilities shown are in; empty where there are none."""
    units = []
    if any(interview.theta and not in_parts(interview) for interview in interviews):
        units.append("ability is in logits on the bank's own scale")
    if any(interview.theta and in_parts(interview) for interview in interviews):
        units.append("parts of ability are in standard deviations of the bank's subjects")
    return "; ".join(units)


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


def noise(interview: InterviewRecord) -> str:
    """``.0031, by 26 answers to 13 items``: what decoding adds to the accuracy's error; empty where it is not known."""
    found = interview.decoding_noise if isinstance(interview.decoding_noise, Mapping) else {}
    error, items, answers = (_real(found, name) for name in ("error", "items", "answers"))
    if error is None:
        return ""
    by = "" if items is None or answers is None else f", by {answers:.0f} answers to {counted(int(items), 'item')}"
    return _shown(error, 4) + by


def stop(interview: InterviewRecord) -> str:
    """Why the interview ended, as a sentence without its full stop."""
    return interview.stop_sentence or interview.stop or "it was cut off"


def void(interview: InterviewRecord) -> str:
    """Why nothing follows from the interview; empty if something does."""
    return interview.error or ("" if interview.stop else "the interview was cut off")


def asked_item(asked: Administration) -> str:
    """The item, as its test is called: ``ITEM``, and ``ITEM#2`` and so on where it was asked again."""
    item, sample = as_text(asked.item), as_count(asked.sample)
    return f"{item}#{sample + 1}" if sample else item


def bank_name(interview: InterviewRecord) -> str:
    """The bank, and the evaluation's name where it differs and does not begin with the bank's, as in merged records."""
    bank = str(interview.bank.get("name", ""))
    if interview.name.startswith(f"{bank} ("):
        return interview.name
    return bank if interview.name in ("", bank) else f"{interview.name} ({bank})"


def outcome(gate: GateRecord) -> Outcome:
    """The gate's outcome; ERROR when the record holds none that is known."""
    try:
        return gate.outcome
    except (KeyError, ValueError):
        return Outcome.ERROR


def promoted(record: RunRecord) -> bool:
    """Whether the checkpoint may be promoted; a record that contradicts itself promotes nothing."""
    return record.promote and all(gate.holds for gate in record.gates)


def promotion(record: RunRecord) -> str:
    """The same as a title."""
    return "May be promoted" if promoted(record) else "Not to be promoted"


def why(record: RunRecord) -> str:
    """Why the checkpoint may be promoted or not: a sentence of our own words and numbers alone."""
    outcomes = [outcome(gate) for gate in record.gates]
    if promoted(record):
        undecided = len(outcomes) - outcomes.count(Outcome.PASS)
        more = f", and {undecided} undecided {'was' if undecided == 1 else 'were'} let through" if undecided else ""
        return f"{counted(outcomes.count(Outcome.PASS), 'gate')} of {len(outcomes)} passed{more}."
    notices = sum(bool(gate.verdict.get("notice")) for gate in record.gates)
    undecided = sum(
        o is Outcome.INCONCLUSIVE and not g.let_through for o, g in zip(outcomes, record.gates, strict=True)
    )
    ended = sum(bool(void(interview)) for interview in record.interviews)
    held = sum(bool(study.error) for study in record.studies)
    reasons = [
        f"{counted(n, what)} {did}"
        for n, what, did in (
            (outcomes.count(Outcome.FAIL), "gate", "failed"),
            (undecided, "gate", "could not be decided"),
            (outcomes.count(Outcome.ERROR), "gate", "could not be judged"),
            (notices, "gate", "had nothing to compare with yet"),
            (ended, "interview", "gave no result"),
            (held, "study", "gave no result"),
            (len(record.absent_required), "required gate", "gave no result"),
        )
        if n
    ]
    if record.left_to_shards:
        reasons.append("gates are left to other shards")
    if Outcome.PASS not in outcomes:
        reasons.append("no gate passed" if outcomes else "no gate judged the checkpoint")
    if record.exit_status is None:
        reasons.append("the run did not come to its end")
    elif record.exit_status or not reasons:
        reasons.append(f"the run ended with exit status {record.exit_status}")
    text = "; ".join(reasons)
    return f"{text[0].upper()}{text[1:]}."


def gates_by_interview(record: RunRecord) -> tuple[list[list[GateRecord]], list[GateRecord]]:
    """The gates of each interview in order, and those that judge none that is known."""
    groups: list[list[GateRecord]] = [[] for _ in record.interviews]
    alone: list[GateRecord] = []
    for gate in record.gates:
        at = [
            i for i, interview in enumerate(record.interviews) if gate.interview in (interview.name, interview.nodeid)
        ]
        if gate.interview and at:
            groups[at[0]].append(gate)
        elif not any(gate.interview in (study.name, study.nodeid) for study in record.studies):
            alone.append(gate)
    return groups, alone


def gates_by_study(record: RunRecord) -> list[list[GateRecord]]:
    """The gates of each study in order."""
    return [
        [gate for gate in record.gates if gate.interview and gate.interview in (study.name, study.nodeid)]
        for study in record.studies
    ]


def study_name(study: StudyRecord) -> str:
    """``council (peers)``."""
    return study.kind if study.name in ("", study.kind) else f"{study.name} ({study.kind})"


def quantities(study: StudyRecord) -> dict[str, list[Mapping[str, Any]]]:
    """By metric the rows of its subjects, those of a damaged record left out."""
    given = study.metrics if isinstance(study.metrics, Mapping) else {}
    return {
        str(metric): [row for row in rows if isinstance(row, Mapping)]
        for metric, rows in given.items()
        if isinstance(rows, list)
    }


def study_line(study: StudyRecord) -> str:
    """``score of dog 4.146 [4.024, 4.268], rank 2.0 [2, 2] of 5, 12 of 12 rounds``, as far as it is known."""
    parts = []
    for metric, rows in quantities(study).items():
        own = next((row for row in rows if row.get("subject") == study.candidate), {})
        if own.get("estimate") is not None:
            value, _, rank = quantity(own)
            known = sum(row.get("rank") is not None for row in rows)
            parts.append(f"{metric} of {study.candidate} {value}" + (f", rank {rank} of {known}" if known else ""))
    return ", ".join([*(parts or [f"candidate {study.candidate}"]), f"{study.asked} of {study.size} {study.unit}"])


def ranked(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Subjects of a quantity, the highest first, those of which nothing is known at the end."""
    return sorted(rows, key=lambda row: -math.inf if (value := _real(row, "estimate")) is None else value, reverse=True)


def _real(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def quantity(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """``4.146 [4.024, 4.268]``, standard error, ``2.0 [2, 2]``; ``-`` where it is not known."""
    estimate, low, high, error = (_real(row, name) for name in ("estimate", "low", "high", "error"))
    shown = _shown(estimate, 3) + ("" if low is None or high is None else f" [{_shown(low, 3)}, {_shown(high, 3)}]")
    rank, place = row.get("rank"), "-"
    if isinstance(rank, Mapping):
        place = f"{_shown(_real(rank, 'mean'), 1)} [{rank.get('best')}, {rank.get('worst')}]"
    return shown, _shown(error, 3), place


def sure(rows: Sequence[Mapping[str, Any]]) -> str:
    """``90 %``: of the two-sided intervals of a quantity."""
    found = next((row["confidence"] for row in rows if isinstance(row.get("confidence"), float)), _CONFIDENCE)
    return f"{200 * found - 100:.4g} %"


def study_cost(study: StudyRecord) -> str:
    """``450 calls, 5400 tokens, 3 models loaded 5 times``; empty where nothing is known."""
    costs = study.costs if isinstance(study.costs, Mapping) else {}
    total, loads = (one if isinstance(one := costs.get(name), Mapping) else {} for name in ("total", "loads"))
    parts = []
    if calls := _real(total, "calls"):
        parts.append(f"{calls:.0f} calls")
        tokens = sum(_real(total, name) or 0.0 for name in ("prompt_tokens", "completion_tokens"))
        parts += [f"{tokens:.0f} tokens"] if tokens else []
        parts += [f"{flops:.2g} FLOPs"] if (flops := _real(total, "flops")) else []
    if counts := [n for name in loads if (n := _real(loads, name))]:
        parts.append(f"{sum(counts):.0f} loads of {len(counts)} models")
    return ", ".join(parts)


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
    for study in record.studies:
        notes += study.notes
    return list(dict.fromkeys(notes))
