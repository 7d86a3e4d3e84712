"""An interview's record, put together at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.config import Evaluation
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.findings import findings
from pytest_adaptive_eval.gates.result import ERROR_SHARE, ERRORS_IN_A_ROW, SessionResult
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.items.item import Item, Response, Status
from pytest_adaptive_eval.records.baseline import BaselineFile
from pytest_adaptive_eval.records.run_record import Administration, InterviewRecord, by_item, plain
from pytest_adaptive_eval.subjects.base import Completion, SubjectIdentity, Usage
from pytest_adaptive_eval.text import relative

__all__ = ["costs_of", "journaled", "noise_notes", "recorded", "too_many_errors"]

#: Repeated items from which on equal answers are told.
FEWEST_REPEATED = 5
#: What a record says of its bank from the bank's report.
KEPT = ("task", "category", "twins", "formats", "parts")


def too_many_errors(answers: Sequence[Administration], budget: int) -> str:
    """Return why failed answers end the interview: too many in a row or of the budget; else empty."""
    bad = [entry for entry in answers if Status(entry.status).infrastructure]
    latest = answers[-ERRORS_IN_A_ROW:]
    if len(latest) == ERRORS_IN_A_ROW and all(Status(entry.status).infrastructure for entry in latest):
        reason = f"{ERRORS_IN_A_ROW} answers in a row could not be had"
    elif len(bad) > ERROR_SHARE * budget:
        reason = f"{len(bad)} answers could not be had, more than {ERROR_SHARE:.0%} of the budget"
    else:
        return ""
    detail = " ".join(bad[-1].detail.split())[:200] or bad[-1].status
    return f"{reason}; the last: {detail}"


def journaled(item: Item, answer: Response | Completion) -> dict[str, Any]:
    """Return what the journal keeps of an answer."""
    return {
        "item": item.id,
        "status": answer.status.value,
        "score": answer.score,
        "text": plain(answer.text),
        "detail": plain(answer.detail),
    }


def noise_notes(noise: DecodingNoise, identity: SubjectIdentity, answers: Sequence[Administration]) -> list[str]:
    """Return notes on decoding noise for readers of any verdict."""
    notes = [noise.sentence]
    if identity.decoding.get("temperature") == 0:
        notes.append("decoding is greedy, so that answers to an item can differ by device or batch noise only")
        return notes
    texts: dict[str, list[str]] = {}
    for answer in answers:
        if answer.score is not None:
            texts.setdefault(answer.item, []).append(answer.text)
    repeated = [item_texts for item_texts in texts.values() if len(item_texts) > 1]
    if len(repeated) >= FEWEST_REPEATED and all(len(set(item_texts)) == 1 for item_texts in repeated):
        notes.append(
            f"all answers to each of {len(repeated)} repeated items are the same: a model that samples would differ, "
            "so check that it does not seed its generator before every answer"
        )
    return notes


def recorded(
    evaluation: Evaluation,
    nodeid: str,
    root: Path,
    identity: SubjectIdentity,
    result: SessionResult,
    answers: list[Administration],
    *,
    conditions: Sequence[Condition],
    baselines: Mapping[str, BaselineFile],
    noise: DecodingNoise | None,
    seconds: float,
) -> InterviewRecord:
    """Create the record of an interview.

    Parameters
    ----------
    evaluation : Evaluation
    nodeid : str
        Of the placeholder.
    root : Path
        Folder that the bank's path is told relative to.
    identity : SubjectIdentity
    result : SessionResult
    answers : list of Administration
    conditions : sequence of Condition
        Known before the first question.
    baselines : mapping of str to BaselineFile
        What they compare with.
    noise : DecodingNoise or None
        Where it was measured.
    seconds : float
    """
    bank, items = evaluation.bank, by_item(answers, evaluation.samples)
    record = InterviewRecord(
        name=evaluation.name,
        nodeid=nodeid,
        subject=identity.to_json(),
        bank={
            "name": bank.name,
            "path": relative(evaluation.path, root) if evaluation.path else "",
            "content_hash": bank.content_hash,
            "scale": bank.scale,
            "size": len(bank),
            "calibrated": bank.calibrated,
            "model": bank.model,
            "trusted": bank.report.get("trusted") is not False,
            "calibration_subject": identity.name in bank.subjects,
            **{name: bank.report[name] for name in KEPT if name in bank.report},
        },
        policy={**evaluation.policy.to_json(), "seed": evaluation.seed, "stream": str(evaluation.stream)},
        conditions=[condition.to_json() for condition in conditions],
        seconds=round(seconds, 3),
        samples=evaluation.samples,
        decoding_noise=noise.to_json() if noise else None,
        administrations=answers,
        **findings(result, [a.theta_before or [] for a in items] if bank.calibrated else None),
    )
    record.asked = len(items)  # also those of a batch that was cut off
    if sources := {name: dict(file.source) for name, file in baselines.items() if file.source}:
        record.extra["baselines"] = sources
    return record


def costs_of(spent: Usage, record: InterviewRecord) -> dict[str, Any]:
    """Return the costs of questions and of item selection, relative to the FLOPs of the whole bank."""
    subject = spent.to_json()
    account = (record.interviewer or {}).get("interviewer") or {}
    interviewer = {name: account[name] for name in subject if name in account}
    costs: dict[str, Any] = {"subject": subject, **({"interviewer": interviewer} if interviewer else {})}
    if subject["calls"] and subject["flops"]:
        whole = subject["flops"] / subject["calls"] * record.size
        costs["relative"] = (subject["flops"] + interviewer.get("flops", 0.0)) / whole
    return costs if subject["calls"] else {}
