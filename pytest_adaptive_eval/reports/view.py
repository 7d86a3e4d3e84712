"""One view of a run's evaluations, which all reports format: the subject, the results and the end of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports import words


@dataclass(frozen=True, slots=True)
class ReportView:
    """What reports say of one evaluation.

    Args:
        subject: Name of the subject; empty if unknown.
        place: What it was asked: the bank, or the evaluation of several models with its kind.
        on: Preposition between both.
        ability: ``-`` without one.
        result: Accuracy, levels, or the candidate's quantities.
        leading: The first of the results.
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
    leading: str
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

    def notes(self) -> Iterator[str]:
        """Yield the notes on its bank and its intervals, then its own."""
        if self.record.is_interview:
            name = self.record.name or self.place
            yield from (
                f"{name}: {note}"
                for note in words.bank_notes(self.record, gated=bool(self.gates or self.record.conditions))
            )
        yield from self.record.notes


def views(record: RunRecord) -> list[ReportView]:
    """Return the view of each evaluation of a run, in order."""
    return [_view(evaluation, gates) for evaluation, gates in record.judged()[0]]


def _view(evaluation: EvaluationRecord, gates: list[GateRecord]) -> ReportView:
    if evaluation.is_interview:
        accuracy = words.accuracy(evaluation)
        return ReportView(
            evaluation,
            gates,
            evaluation.subject.name,
            words.bank_name(evaluation),
            "on",
            words.ability(evaluation),
            accuracy,
            accuracy,
            words.share(evaluation),
            words.end(evaluation),
            words.usage(evaluation.costs),
        )
    result, leading = words.subject_results(evaluation)
    return ReportView(
        evaluation,
        gates,
        evaluation.subject.name,
        evaluation.kind if evaluation.name in ("", evaluation.kind) else f"{evaluation.name} ({evaluation.kind})",
        "in",
        "-",
        result,
        leading,
        f"{evaluation.asked}/{evaluation.size} {evaluation.unit}",
        "",
        words.panel_cost(evaluation.costs),
    )


def standing_notes(record: RunRecord) -> list[str]:
    """Return the notes of all evaluations, each once."""
    return list(dict.fromkeys(note for view in views(record) for note in view.notes()))
