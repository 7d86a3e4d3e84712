"""One view of a run's evaluations, which all reports format: the subject, the results and the end of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pytest_adaptive_eval.records.run_record import INTERVIEWS, EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports import words


@dataclass(frozen=True, slots=True)
class ReportView:
    """Texts of reports on one evaluation.

    Args:
        subject: Name of the subject; empty if unknown.
        place: What it was asked: the bank, or the evaluation of several models with its kind.
        on: Preposition between both.
        ability: ``-`` without one.
        result: Accuracy, levels, or the candidate's quantities.
        asked: Share of the items, or the parts that counted.
        end: Why it ended, with answers that have no score and the decoding noise; empty where nothing ends early.
        cost: Calls, tokens, seconds and money; empty if unknown.
    """

    record: EvaluationRecord
    gates: list[GateRecord]
    subject: str
    place: str
    on: str
    ability: str
    result: str
    asked: str
    end: str
    cost: str

    @property
    def title(self) -> str:
        """Subject and place."""
        return f"{self.shown_subject} {self.on} {self.shown_place}"

    @property
    def shown_subject(self) -> str:
        """Name of the subject."""
        return self.subject or "unnamed subject"

    @property
    def shown_place(self) -> str:
        """Name of the bank or the kind."""
        return self.place or "unnamed bank"

    @property
    def line(self) -> str:
        """Result and cost in one line."""
        return "; ".join(filter(None, (self.result, self.cost)))

    @property
    def leading(self) -> str:
        """The first of the results, for a row of a history."""
        for name, row in self.record.of_subject():
            if row.estimate is not None:
                return f"{name} {words.quantity(row)[0]}"
        return "-"

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield its notes, each after the evaluation's name where readers need that, else after an empty text."""
        yield from (("", note) for note in self.record.notes)

    def case(self) -> tuple[str, list[str]]:
        """Return the name of its test case in JUnit, as readers know it, and the lines on its result."""
        return "study", [self.result, self.cost]

    def properties(self) -> dict[str, Any]:
        """Return the facts on its subject, its result and its end, by name."""
        return self.record.facts()


class InterviewView(ReportView):
    """Texts of reports on an interview."""

    __slots__ = ()

    @property
    def leading(self) -> str:
        """The accuracy; for a ladder its area and last level."""
        return words.brief_accuracy(self.record)

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield the notes on its bank and its intervals, then its own."""
        name = self.record.name or self.place
        gated = bool(self.gates or self.record.conditions)
        yield from ((name, note) for note in words.bank_notes(self.record, gated=gated))
        yield from super().notes()

    def case(self) -> tuple[str, list[str]]:
        """Return the name of its test case in JUnit, as readers know it, and the lines on its result."""
        record = self.record
        interviewer = self.record.interviewer
        facts = [
            f"asked {self.asked}, {words.stop(record)}",
            f"ability {self.ability}, accuracy {self.result}",
            words.statuses(record),
            self.cost and f"cost: {self.cost}",
        ]
        if interviewer:
            facts += interviewer.faults
        return "interview", facts

    def properties(self) -> dict[str, Any]:
        """Return the facts on its subject, its result and its end, by name."""
        interview = self.record
        noise = interview.decoding_noise
        facts: dict[str, Any] = {
            "subject": interview.subject.name,
            "checkpoint": interview.subject.checkpoint,
            "decoding_hash": interview.subject.decoding_hash,
            "bank": interview.bank.name,
            "bank_content_hash": interview.bank.content_hash,
            "scale": interview.bank.scale,
            "seed": interview.policy.seed,
            "theta": interview.theta,
            "standard_error": interview.standard_error,
            "samples": interview.samples,
            "decoding_noise": noise.error if noise else None,
            "flaky": ", ".join(interview.flaky) or None,
            "asked": interview.asked,
            "scored": interview.scored,
            "bank_size": interview.size,
            "stop_reason": interview.stop,
            "stop": words.stop(interview),
        }
        if interview.interviewer:
            choices, categories = interview.interviewer.fallback_counts
            facts |= {"interviewer_choice_fallbacks": choices, "interviewer_category_fallbacks": categories}
        price = interview.costs.prices.get("subject")
        if price is not None:
            facts |= {"cost": price.money, "cost_of_whole_bank": price.whole, "currency": price.currency}
        for prefix, interval in (
            ("accuracy", interview.accuracy),
            ("conformal_accuracy", interview.accuracy_conformal),
            ("model_accuracy", interview.accuracy_model),
        ):
            if interval is None:
                continue
            bounds = asdict(interval)
            facts[prefix] = bounds.pop("estimate")
            for name, value in bounds.items():
                facts[f"{prefix}_{name}"] = value
        return facts


def views(record: RunRecord) -> list[ReportView]:
    """Return the view of each evaluation of a run, in order."""
    return [_VIEWS.get(entry.kind, _of_results)(entry, gates) for entry, gates in record.judged()[0]]


def _of_interview(interview: EvaluationRecord, gates: list[GateRecord]) -> ReportView:
    return InterviewView(
        record=interview,
        gates=gates,
        subject=interview.subject.name,
        place=words.bank_name(interview),
        on="on",
        ability=words.ability(interview),
        result=words.accuracy(interview),
        asked=words.share(interview),
        end=words.end(interview),
        cost=words.spent(interview),
    )


def _of_results(evaluation: EvaluationRecord, gates: list[GateRecord]) -> ReportView:
    place = evaluation.kind
    if evaluation.name not in ("", evaluation.kind):
        place = f"{evaluation.name} ({evaluation.kind})"
    return ReportView(
        record=evaluation,
        gates=gates,
        subject=evaluation.subject.name,
        place=place,
        on="in",
        ability="-",
        result=words.subject_results(evaluation),
        asked=words.count(evaluation.asked, evaluation.size, evaluation.unit),
        end="",
        cost=words.panel_cost(evaluation.costs),
    )


_VIEWS = dict.fromkeys(INTERVIEWS, _of_interview)  #: Views by kind; others have results of models.


def standing_notes(record: RunRecord) -> list[str]:
    """Return the notes of all evaluations, each once, with the names of the evaluations that have it."""
    names: dict[str, dict[str, None]] = {}
    for view in views(record):
        for name, note in view.notes():
            names.setdefault(note, {}).update(dict.fromkeys(filter(None, [name])))
    return [": ".join(filter(None, [", ".join(about), note])) for note, about in names.items()]


def shared_notes(record: RunRecord) -> list[str]:
    """Return the notes that several evaluations, or several gates, have, without any name."""
    counts: Counter[str] = Counter()
    for view in views(record):
        counts.update({note for _, note in view.notes()})
    for gate in record.gates:
        counts.update(set(gate.verdict.notes))
    return [note for note, count in counts.items() if count > 1]
