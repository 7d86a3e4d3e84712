"""Recorded answers to the items that must pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_adaptive_eval.gates.must_pass import MustPassAnswer
from pytest_adaptive_eval.records.run_record import Administration, InterviewRecord


def recorded_must_pass(interview: InterviewRecord) -> tuple[MustPassAnswer, ...]:
    """Return the answers to the items of a recorded interview that must pass."""
    return must_pass_answers(map(str, interview.policy.get("must_pass") or ()), interview.administrations)


def must_pass_answers(items: Iterable[str], administrations: Sequence[Administration]) -> tuple[MustPassAnswer, ...]:
    """Return the answers to items that must pass; of several answers to one the worst counts."""
    answers: dict[str, list[Administration]] = {item: [] for item in items}
    for administration in administrations if answers else ():
        if administration.item in answers:
            answers[administration.item].append(administration)
    return tuple(_worst(item, given) for item, given in answers.items())


def _worst(item: str, answers: Sequence[Administration]) -> MustPassAnswer:
    """Return the lowest score of the answers to an item, or else the first that has none."""
    scored = [(answer.score, answer.text) for answer in answers if answer.score is not None]
    lowest = min(scored, default=None, key=lambda pair: pair[0])
    missing = next((answer for answer in answers if answer.score is None), None)
    if lowest is not None and (lowest[0] < 1.0 or missing is None):
        return MustPassAnswer(item, *lowest)
    why = ": ".join(filter(None, (missing.status, missing.detail.strip()))) if missing else ""
    return MustPassAnswer(item, None, why)
