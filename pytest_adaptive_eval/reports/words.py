"""Shared text formatting for all reports, of values as they are promised, whatever a record holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.items.item import MISSING, Status, unanswered_sentence
from pytest_adaptive_eval.records.run_record import (
    Administration,
    GateRecord,
    InterviewRecord,
    RunRecord,
    StudyRecord,
    plain,
)
from pytest_adaptive_eval.text import counted, money, number

_PLOTTABLE = 1e12  #: Largest number on an axis.


def as_text(value: Any) -> str:
    """Return valid Unicode: a text as it is, None as an empty text, other values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str(plain(value))
    try:
        return json.dumps(plain(value), ensure_ascii=False)
    except (ValueError, RecursionError):  # a number of thousands of digits, a list within itself
        return type(value).__name__


def as_number(value: Any) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def plottable(value: Any) -> float | None:
    """Return a finite number that an axis can hold, None for anything else."""
    number = as_number(value)
    return number if number is not None and abs(number) < _PLOTTABLE else None


def as_count(value: Any) -> int | None:
    """Return a whole number that any reader can hold exactly, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def as_numbers(value: Any) -> list[float | None] | None:
    """Return the numbers of a list, None where there is no list."""
    return [as_number(entry) for entry in value] if isinstance(value, list | tuple) else None


def as_texts(value: Any) -> list[str]:
    """Return the texts of a list, an empty list where there is none."""
    return [as_text(entry) for entry in value] if isinstance(value, list | tuple) else []


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


_CONFIDENCE = 0.95  #: One-sided confidence where the record names none.
_DIMENSIONS = 3  #: Abilities shown of a bank with several dimensions.
_STATUSES = frozenset(Status)  #: Sentence of a gate whose record has none.
NO_VERDICT = "the record holds no verdict for this gate"


def number_or_dash(value: float | None, digits: int = 3) -> str:
    """Return a number, ``-`` for None."""
    return "-" if value is None else number(value, digits)


def confidence(interview: InterviewRecord) -> float:
    """Return the one-sided confidence of the interview's intervals."""
    interval = interview.accuracy or interview.accuracy_conformal or interview.accuracy_model or {}
    value = interval.get("confidence")
    return value if isinstance(value, float) and 0.5 < value < 1 else _CONFIDENCE


def percent(interview: InterviewRecord) -> str:
    """Return the two-sided confidence of the interview's intervals, ``90 %`` with a no-break space."""
    return f"{200 * confidence(interview) - 100:.4g}\u00a0%"


def interval_note(interviews: Sequence[InterviewRecord], gap: str) -> str:
    """Return the unit of abilities and the confidence of intervals, with `gap` before each percent sign."""
    percents = sorted({f"{200 * confidence(interview) - 100:.4g}{gap}%" for interview in interviews})
    text = f"intervals are two-sided at {' and '.join(percents)}"
    unit = ability_unit(interviews)
    return f"{unit}; {text}" if unit else text


def ability(interview: InterviewRecord) -> str:
    """Return ``1.23 ± .31``: the estimate and half of its two-sided interval; ``-`` without an ability."""
    if not interview.theta:
        return "-"
    z = NormalDist().inv_cdf(confidence(interview))
    errors: Sequence[float | None] = interview.standard_error or (None,) * len(interview.theta)
    rows = list(zip(dimensions(interview), interview.theta, errors, strict=False))
    has_parts = bool(in_parts(interview))
    most = len(rows) if has_parts else _DIMENSIONS
    texts = [
        (f"{name} " if has_parts else "") + number(theta, 2) + ("" if error is None else f" ± {number(z * error, 2)}")
        for name, theta, error in rows[:most]
    ]
    return ", ".join(texts) + (", ..." if len(rows) > most else "")


def in_parts(interview: InterviewRecord) -> list[str]:
    """Return the names of the ability components of a bank in formats; an empty list for any other bank."""
    return [str(part) for part in as_list(interview.bank.get("parts"))]


def dimensions(interview: InterviewRecord) -> list[str]:
    """Return the name of each ability: its component, else its number from 1."""
    return in_parts(interview) or [str(n) for n in range(1, len(as_numbers(interview.theta) or []) + 1)]


def ability_unit(interviews: Sequence[InterviewRecord]) -> str:
    """Return the unit of the abilities as a sentence; an empty text without abilities."""
    units = []
    if any(interview.theta and not in_parts(interview) for interview in interviews):
        units.append("ability is by the bank's model, in logits")
    if any(interview.theta and in_parts(interview) for interview in interviews):
        units.append("parts of ability are in standard deviations of the bank's subjects")
    return "; ".join(units)


def accuracy(interview: InterviewRecord) -> str:
    """Return ``.612 [.551, .671]``; with ``~`` before it for a projection by the bank, ``-`` without any."""
    if interview.levels:
        return climb(interview)
    interval, prefix = interview.accuracy, ""
    if interval is None:
        interval, prefix = interview.accuracy_conformal or interview.accuracy_model, "~"
    if interval is None or interval.get("estimate") is None:
        return "-"
    estimate, low, high = (number_or_dash(interval.get(name)) for name in ("estimate", "low", "high"))
    return f"{prefix}{estimate} exact" if low == high == estimate else f"{prefix}{estimate} [{low}, {high}]"


def climb(interview: InterviewRecord) -> str:
    """Return a ladder's ``AUC 1.70 [1.31, 2.12], last level 2, half right at level 1.8 [1.2, 2.5]``."""
    levels = as_mapping(interview.levels)
    last_level = levels.get("last_level")
    parts = [] if last_level is None else [f"last level {last_level}"]
    if isinstance(levels.get("auc"), Mapping):
        parts.insert(0, f"AUC {_bounded(levels['auc'], 2)}{guessing(interview)}")
    if isinstance(levels.get("half"), Mapping):
        parts.append(f"half right at level {_bounded(levels['half'], 1)}")
    return ", ".join(parts) or "-"


def guessing(interview: InterviewRecord) -> str:
    """Return `` (.84 by guessing)``: the area of a guesser at the levels that a ladder asked; empty without a floor."""
    floors = [floor or 0.0 for floor in as_numbers(as_mapping(interview.levels).get("guess")) or []]
    return f" ({number(sum(floors), 2)} by guessing)" if floors else ""


def _bounded(interval: Mapping[str, Any], digits: int) -> str:
    estimate, low, high = (number_or_dash(interval.get(name), digits) for name in ("estimate", "low", "high"))
    return f"{estimate} [{low}, {high}]"


def settings(values: Any) -> str:
    """Return settings as people read them: ``rounds 12, topics (math, coding), judge none``; empty values are left out.

    Lists and mappings within are put into parentheses, and truth values are words.
    """
    return ", ".join(
        f"{name} {_setting(value)}"
        for name, value in as_mapping(values).items()
        if value not in (None, "") and not (isinstance(value, Mapping | list | tuple) and not value)
    )


def _setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({settings(value)})"
    if isinstance(value, list | tuple):
        return f"({', '.join(_setting(entry) for entry in value)})"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def share(interview: InterviewRecord) -> str:
    """Return ``96/640 15%``: items asked, items in the bank."""
    percentage = 100 * interview.asked / max(interview.size, 1)
    return f"{interview.asked}/{interview.size} {percentage:.{int(0 < percentage < 1)}f}%"


def statuses(interview: InterviewRecord) -> str:
    """Return the answers by status but ok, ``10 of 40 empty, 3 refused; no score: 2 timeout``; empty without any."""
    missing = [
        f"{n} {name}"
        for name, n in interview.statuses.items()
        if n and (name not in _STATUSES or Status(name).missing(interview.counting))  # a record may hold foreign ones
    ]
    given = "" if interview.counting == MISSING else unanswered_sentence(interview.statuses)
    return "; ".join(filter(None, [given, f"no score: {', '.join(missing)}" if missing else ""]))


def category_accuracy(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the recorded interval of a category; where no answer in it has a score, the accuracy may be any."""
    unknown = as_count(row.get("scored")) == 0 and as_count(row.get("asked"))
    return {"estimate": 0.5, "low": 0.0, "high": 1.0} if unknown else as_mapping(row.get("accuracy"))


def noise(interview: InterviewRecord) -> str:
    """Return the error that decoding adds to the accuracy, ``.0031, by 26 answers to 13 items``; empty if unknown."""
    measured = as_mapping(interview.decoding_noise)
    error, items, answers = (as_number(measured.get(name)) for name in ("error", "items", "answers"))
    if error is None:
        return ""
    by = "" if items is None or answers is None else f", by {answers:.0f} answers to {counted(int(items), 'item')}"
    return number(error, 4) + by


def stop(interview: InterviewRecord) -> str:
    """Return the reason why the interview ended, as a sentence without its full stop."""
    return interview.stop_sentence or interview.stop or "it did not finish"


def void(interview: InterviewRecord) -> str:
    """Return the reason why the interview is void; empty for a usable one."""
    return interview.error or ("" if interview.stop else "the interview did not finish")


def asked_item(asked: Administration) -> str:
    """Return the item's name: ``ITEM``, and ``ITEM#2`` and so on for repeated administrations."""
    item, sample = as_text(asked.item), as_count(asked.sample)
    return f"{item}#{sample + 1}" if sample else item


def bank_name(interview: InterviewRecord) -> str:
    """Return the bank's name, with the evaluation's name where it says more, as in merged records."""
    bank = str(interview.bank.get("name", ""))
    if interview.name.startswith(f"{bank} ("):
        return interview.name
    return bank if interview.name in ("", bank) else f"{interview.name} ({bank})"


def outcome(gate: GateRecord) -> Outcome:
    """Return the gate's outcome; ERROR when the record holds no valid one."""
    try:
        return gate.outcome
    except (KeyError, ValueError):
        return Outcome.ERROR


def sentence_without(gate: GateRecord, notes: Sequence[str]) -> str:
    """Return a verdict's sentence without its outcome and without notes that are shown elsewhere."""
    sentence = str(gate.verdict.get("sentence") or NO_VERDICT).removeprefix(f"{outcome(gate).value} ")
    for note in notes:
        sentence = sentence.replace(f"; {' '.join(str(note).split())}", "")
    return sentence


def promoted(record: RunRecord) -> bool:
    """Return whether the checkpoint may be promoted; False for a record that contradicts itself."""
    return record.promote and all(gate.holds for gate in record.gates)


def promotion(record: RunRecord) -> str:
    """Return the promotion decision as a title."""
    return "May be promoted" if promoted(record) else "Not to be promoted"


def why(record: RunRecord) -> str:
    """Return the reasons of the promotion decision as a sentence without any text of the record."""
    outcomes = [outcome(gate) for gate in record.gates]
    if promoted(record):
        undecided = len(outcomes) - outcomes.count(Outcome.PASS)
        more = f", and {undecided} undecided {'was' if undecided == 1 else 'were'} let through" if undecided else ""
        return f"{counted(outcomes.count(Outcome.PASS), 'gate')} of {len(outcomes)} passed{more}."
    reasons = [f"{counted(n, unit)} {event}" for n, unit, event in _failures(record, outcomes) if n]
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


def _failures(record: RunRecord, outcomes: Sequence[Outcome]) -> Iterator[tuple[int, str, str]]:
    """Yield how many gates, interviews and studies failed in each way."""
    undecided = [gate for gate in record.gates if outcome(gate) is Outcome.INCONCLUSIVE and not gate.let_through]
    yield outcomes.count(Outcome.FAIL), "gate", "failed"
    yield len(undecided), "gate", "could not be decided"
    yield outcomes.count(Outcome.ERROR), "gate", "could not be judged"
    yield sum(bool(gate.verdict.get("notice")) for gate in record.gates), "gate", "had nothing to compare with yet"
    yield sum(map(bool, map(void, record.interviews))), "interview", "gave no result"
    yield sum(bool(study.error) for study in record.studies), "study", "gave no result"
    yield len(record.absent_required), "required gate", "gave no result"


def gates_by_interview(record: RunRecord) -> tuple[list[list[GateRecord]], list[GateRecord]]:
    """Return the gates of each interview in order, and the gates of no recorded interview or study."""
    groups: list[list[GateRecord]] = [[] for _ in record.interviews]
    alone: list[GateRecord] = []
    index: dict[str, int] = {}
    for n, interview in enumerate(record.interviews):
        for name in (interview.name, interview.nodeid):
            index.setdefault(name, n)
    for gate in record.gates:
        if gate.interview and gate.interview in index:
            groups[index[gate.interview]].append(gate)
        elif not any(gate.interview in (study.name, study.nodeid) for study in record.studies):
            alone.append(gate)
    return groups, alone


def gates_by_study(record: RunRecord) -> list[list[GateRecord]]:
    """Return the gates of each study in order."""
    return [
        [gate for gate in record.gates if gate.interview and gate.interview in (study.name, study.nodeid)]
        for study in record.studies
    ]


def gate_groups(record: RunRecord) -> list[list[GateRecord]]:
    """Return the gates of each interview, then of each study, then all others."""
    groups, alone = gates_by_interview(record)
    return [*groups, *gates_by_study(record), alone]


def study_name(study: StudyRecord) -> str:
    """Return the study with its kind, ``council (peers)``."""
    return study.kind if study.name in ("", study.kind) else f"{study.name} ({study.kind})"


def quantities(study: StudyRecord) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of all subjects by metric, without damaged ones."""
    return {
        str(metric): [row for row in rows if isinstance(row, Mapping)]
        for metric, rows in as_mapping(study.metrics).items()
        if isinstance(rows, list)
    }


def study_line(study: StudyRecord) -> str:
    """Return the candidate's results, ``score of dog 4.146 [4.024, 4.268], rank 2.0 [2, 2] of 5, 12 of 12 rounds``."""
    parts = []
    for metric, rows in quantities(study).items():
        candidate_row = next((row for row in rows if row.get("subject") == study.candidate), {})
        if candidate_row.get("estimate") is not None:
            value, _, rank = quantity(candidate_row)
            count = sum(row.get("rank") is not None for row in rows)
            parts.append(f"{metric} of {study.candidate} {value}" + (f", rank {rank} of {count}" if count else ""))
    return ", ".join([*(parts or [f"candidate {study.candidate}"]), f"{study.asked} of {study.size} {study.unit}"])


def ranked(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the subjects of a quantity, the highest first and those without an estimate last."""

    def estimate(row: Mapping[str, Any]) -> float:
        value = as_number(row.get("estimate"))
        return -math.inf if value is None else value

    return sorted(rows, key=estimate, reverse=True)


def quantity(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return ``4.146 [4.024, 4.268]``, the standard error, and the rank ``2.0 [2, 2]``; ``-`` for unknown ones.

    A value that guessing alone has follows the bounds, as `` (.210 by guessing)``.
    """
    estimate, low, high, error = (as_number(row.get(name)) for name in ("estimate", "low", "high", "error"))
    text = number_or_dash(estimate)
    if low is not None and high is not None:
        text += f" [{number(low)}, {number(high)}]"
    if guess := as_number(row.get("guess")):
        text += f" ({number(guess)} by guessing)"
    rank, rank_text = row.get("rank"), "-"
    if isinstance(rank, Mapping):
        rank_text = f"{number_or_dash(as_number(rank.get('mean')), 1)} [{rank.get('best')}, {rank.get('worst')}]"
    return text, number_or_dash(error), rank_text


def quantity_percent(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the two-sided confidence of a quantity's intervals, ``90 %``."""
    value = next((row["confidence"] for row in rows if isinstance(row.get("confidence"), float)), _CONFIDENCE)
    return f"{200 * value - 100:.4g} %"


def study_cost(study: StudyRecord) -> str:
    """Return ``450 calls, 5,400 tokens, 3 loads of 2 models``; empty if no cost is known.

    Roles follow where there are several, as ``; judgment 300 calls, 3,000 tokens``.
    """
    costs = as_mapping(study.costs)
    total, loads = (as_mapping(costs.get(name)) for name in ("total", "loads"))
    parts = []
    if calls := as_number(total.get("calls")):
        parts.append(f"{calls:.0f} calls")
        tokens = sum(as_number(total.get(name)) or 0.0 for name in ("prompt_tokens", "completion_tokens"))
        parts += [f"{tokens:,.0f} tokens"] if tokens else []
        parts += [f"{flops:.2g} FLOPs"] if (flops := as_number(total.get("flops"))) else []
    if counts := [n for value in loads.values() if (n := as_number(value))]:
        parts.append(f"{sum(counts):.0f} loads of {len(counts)} models")
    roles = [
        f"{role} {text}"
        for role, spent in as_mapping(costs.get("roles")).items()
        if (text := _spent(as_mapping(spent)))
    ]
    return "; ".join([", ".join(parts), *(roles if len(roles) > 1 else [])])


def usage(costs: Mapping[str, Any]) -> str:
    """Return ``96 calls, 3,100 tokens, 12.3 s, $0.021``; empty where no call is known.

    Models that worked for the run follow, as ``; judge 40 calls, 900 tokens, 2.0 s``.
    """
    subject = {**as_mapping(costs.get("subject")), **{name: costs.get(name) for name in ("money", "currency")}}
    return "; ".join(filter(None, [_spent(subject), *agent_usages(costs)]))


def agent_usages(costs: Mapping[str, Any]) -> list[str]:
    """Return the cost of each model that worked for the run, as ``judge 40 calls, 900 tokens, 2.0 s``."""
    told = {role: _spent(as_mapping(costs.get(role))) for role in ("interviewer", "judge")}
    return [f"{role} {text}" for role, text in told.items() if text]


def _spent(spent: Mapping[str, Any]) -> str:
    if not (calls := as_number(spent.get("calls"))):
        return ""
    tokens = sum(as_number(spent.get(name)) or 0.0 for name in ("prompt_tokens", "completion_tokens"))
    parts = [counted(int(calls), "call")] + ([f"{tokens:,.0f} tokens"] if tokens else [])
    parts += [f"{seconds:.1f} s"] if (seconds := as_number(spent.get("seconds"))) else []
    paid = as_number(spent.get("money"))
    parts += [] if paid is None else [money(paid, str(spent.get("currency") or ""))]
    return ", ".join(parts)


def run_usage(interviews: Sequence[InterviewRecord]) -> str:
    """Return the cost of the interviews, of several each by its name and their total; empty where none is known."""
    known = [(i.name, text) for i in interviews if (text := usage(i.costs))]
    if len(known) < 2:
        return "".join(text for _, text in known)
    return "; ".join([*(f"{name}: {text}" for name, text in known), f"total: {_spent(_total(interviews))}"])


def _total(interviews: Iterable[InterviewRecord]) -> dict[str, Any]:
    """Return the sum of what subjects, interviewers and judges cost; without money in several currencies."""
    spent = [as_mapping(i.costs.get(role)) for i in interviews for role in ("subject", "interviewer", "judge")]
    spent += [{name: i.costs.get(name) for name in ("money", "currency")} for i in interviews]
    names = ("calls", "prompt_tokens", "completion_tokens", "seconds", "money")
    total: dict[str, Any] = {name: sum(as_number(part.get(name)) or 0.0 for part in spent) for name in names}
    currencies = {str(part.get("currency") or "") for part in spent if as_number(part.get("money")) is not None}
    if len(currencies) != 1:
        del total["money"]
    return {**total, "currency": "".join(currencies)}


def standing_notes(record: RunRecord) -> list[str]:
    """Return notes on banks and intervals, then the notes of interviews and studies, each once."""
    notes: list[str] = []
    groups, _ = gates_by_interview(record)
    for interview, gates in zip(record.interviews, groups, strict=True):
        name = interview.name or bank_name(interview)
        notes += [f"{name}: {note}" for note in _bank_notes(interview, gated=bool(gates))]
        notes += interview.notes
    for study in record.studies:
        notes += study.notes
    return list(dict.fromkeys(notes))


def _bank_notes(interview: InterviewRecord, *, gated: bool) -> Iterator[str]:
    """Yield notes on an interview's bank and on the origin of its accuracy."""
    bank = interview.bank
    if bank.get("calibrated") is False and interview.policy.get("stop") != "level":
        yield "the bank is not calibrated: items were drawn uniformly, and there is no ability"
    if bank.get("trusted") is False:
        yield (
            "the bank was written although its calibration report advised against it: its abilities are "
            "a hint; intervals that rest on the draws hold all the same"
        )
    if gated and bank.get("calibration_subject"):
        yield (
            f"{interview.subject.get('name', 'the subject')} is one of the bank's calibration subjects: "
            "its ability is estimated from items fitted to its own answers"
        )
    if interview.accuracy is None and interview.accuracy_conformal is not None:
        yield (
            "~ is the bank's projection, with an interval from replayed interviews of its calibration "
            "subjects; it holds for checkpoints like them, and no gate decides on it"
        )
    elif interview.accuracy is None and interview.accuracy_model is not None:
        yield "~ is the bank's own projection, which trusts its parameters; no gate decides on it"
