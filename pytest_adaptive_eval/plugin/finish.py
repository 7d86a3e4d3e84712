"""Put together the result and the record of an interview that has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.evaluation.spending import Spending
from pytest_adaptive_eval.gates.findings import findings, with_misfit_note
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.items.presentation import REPORT_KEY
from pytest_adaptive_eval.models.base import Model, Usage
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.plugin.asking import AskingLoop
from pytest_adaptive_eval.records.run_record import (
    Administration,
    InterviewRecord,
    by_item,
    must_pass_answers,
    noise_of,
    plain,
)
from pytest_adaptive_eval.text import counted, relative

FEWEST_REPEATED = 5  #: Fewest repeated items for a note that all their answers are equal.
#: Keys of a bank's report that a record repeats.
BANK_REPORT_KEYS = ("task", "category", "twins", "formats", "parts", REPORT_KEY)


def finish(loop: AskingLoop, seconds: float) -> tuple[SessionResult, InterviewRecord]:
    """Return the result and the record of an interview that took `seconds`."""
    evaluation, recorder = loop.evaluation, loop.recorder
    noise = None
    if evaluation.decodings:
        noise = noise_of(recorder.administrations, evaluation.samples, len(evaluation.bank))
    notes = [*_notes_of_plan(loop), *_notes_of_noise(loop, noise)]
    cap = loop.respondent.identity.decoding.get("max_tokens")
    shared = loop.reuse.notes(recorder.administrations, judged=evaluation.judge is not None)
    notes += shared
    notes += filter(None, [recorder.cut(cap), recorder.unread_answers(), recorder.constant.note()])
    if sentence := recorder.too_many_unreadable():
        loop.give_up(sentence)
        if recorder.journal is not None:  # a later run should not continue from such answers
            recorder.journal.path.unlink(missing_ok=True)
    try:
        arguments = loop.gate_plan.result_arguments()
        for file in loop.gate_plan.loaded.values():
            notes += filter(None, [file.age(clock.now())])
            notes += file.doubts(loop.respondent.identity.to_json())
    except AdaptiveEvalError:  # the session's start has reported it
        arguments = {}
    identity = loop.respondent.identity
    result = SessionResult.of(
        evaluation.name,
        loop.session,
        statuses=recorder.statuses,
        noise=noise.allowed if noise else None,
        error=loop.fault.sentence if loop.fault else "",
        chance=recorder.constant.guessing,
        must_pass=must_pass_answers(evaluation.must_pass_ids, recorder.administrations),
        notes=tuple(notes),
        subject={
            "name": identity.name,
            "checkpoint": identity.checkpoint,
            "decoding": loop.respondent.decoding,
        },
        **arguments,
    )
    result = with_misfit_note(result)
    record = _record(loop, result, noise, seconds)
    record.notes += [*shared, *filter(None, [loop.gate_plan.undeclared_warning])]
    if loop.unneeded:
        record.notes.append(
            f"the verdict came before the answers to {counted(loop.unneeded, 'question')} asked ahead; those that came "
            "are kept, and their cost counts"
        )
    return result, record


def _notes_of_plan(loop: AskingLoop) -> Iterator[str]:
    """Yield notes on the bank, the budget and questions that ran again."""
    evaluation, plan, identity = loop.evaluation, loop.gate_plan, loop.respondent.identity
    yield from evaluation.notes
    if isinstance(loop.respondent.subject, CallableModel):
        yield from filter(None, [loop.respondent.subject.unkept])
    yield from filter(None, [loop.recorder.unkept])
    if evaluation.judge is not None:
        yield from evaluation.judge.notes()
    if identity.name in evaluation.bank.subjects:
        yield f"{identity.name} is one of the subjects that calibrated the bank"
    if plan.missing and evaluation.policy.stop != "level":
        yield "the whole budget was asked, so that the run's record can serve as a baseline"
    if loop.reruns:
        yield (
            f"another plugin ran questions again, {loop.reruns} times in all: each was asked once, and its first "
            "result counts"
        )


def _notes_of_noise(loop: AskingLoop, noise: DecodingNoise | None) -> Iterator[str]:
    if noise is not None:
        yield noise.sentence
        if loop.respondent.identity.decoding.get("temperature") == 0:
            yield "decoding is greedy, so that answers to an item can differ by device or batch noise only"
        elif count := _equal_repeats(loop.recorder.administrations):
            yield (
                f"all answers to each of {count} repeated items are the same: a model that samples would differ, "
                "so check that it does not seed its generator before every answer"
            )
    if (noise_check := loop.respondent.noise_check) is not None:
        yield from noise_check.notes(noise, whole=len(loop.session.log()) == len(loop.evaluation.bank))


def _equal_repeats(answers: Sequence[Administration]) -> int:
    """Return the number of repeated items if each has equal answers; 0 where answers differ or items are too few."""
    texts: dict[str, list[str]] = {}
    for answer in answers:
        if answer.score is not None:
            texts.setdefault(answer.item, []).append(answer.text)
    repeated = [item_texts for item_texts in texts.values() if len(item_texts) > 1]
    equal = all(len(set(item_texts)) == 1 for item_texts in repeated)
    return len(repeated) if equal and len(repeated) >= FEWEST_REPEATED else 0


def _record(loop: AskingLoop, result: SessionResult, noise: DecodingNoise | None, seconds: float) -> InterviewRecord:
    evaluation, bank, respondent = loop.evaluation, loop.evaluation.bank, loop.respondent
    answers = loop.recorder.administrations
    items = by_item(answers, evaluation.samples)
    root = loop.node.config.rootpath
    identity = respondent.identity
    if isinstance(respondent.subject, Model):  # the environment as it is at the end: batches may have become smaller
        identity = replace(identity, environment=respondent.subject.identity.environment)
    first = {
        "asked_first": [str(bank.ids[n]) for n in loop.session.take_all.tolist()],
        "must_pass": evaluation.must_pass_ids,
    }
    record = InterviewRecord(
        name=evaluation.name,
        nodeid=loop.nodeid,
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
            **{name: bank.report[name] for name in BANK_REPORT_KEYS if name in bank.report},
        },
        policy={
            **evaluation.policy.to_json(),
            **evaluation.policy.assisted_by(evaluation.bank),
            "seed": evaluation.seed,
            "stream": str(evaluation.stream),
            **{name: ids for name, ids in first.items() if ids},
        },
        conditions=[condition.to_json() for condition in loop.gate_plan.conditions],
        seconds=round(seconds, 3),
        samples=evaluation.samples,
        decoding_noise=noise.to_json() if noise else None,
        administrations=answers,
        interviewer=plain(loop.session.account) or None,
        **findings(result, [a.theta_before or [] for a in items] if bank.calibrated else None),
    )
    record.asked = len(items)  # also those of a batch that was cut off
    record.extra = _extra(loop)
    if evaluation.judge is not None:
        record.notes = list(evaluation.judge.notes())
    record.notes += filter(None, [must_pass_sentence(result.must_pass)])
    spent = respondent.subject.usage - respondent.usage if isinstance(respondent.subject, Model) else Usage()
    judged = Usage() if evaluation.judge is None else evaluation.judge.usage
    record.costs = _costs(spent, judged, record, evaluation.spending)
    return record


def _extra(loop: AskingLoop) -> dict[str, Any]:
    """Return further fields of the record; those without a value are left out."""
    journal = loop.recorder.journal
    judge = loop.evaluation.judge
    fields = {
        "judge": {"name": judge.name, **judge.counts.to_json()} if judge is not None else {},
        "baselines": {name: dict(file.source) for name, file in loop.gate_plan.loaded.items() if file.source},
        "unanswered": loop.unanswered,
        "journal": journal.path.name if journal is not None else "",
        "reuse": loop.reuse.to_json(loop.recorder.administrations),
        "usage_error": bool(loop.fault and loop.fault.usage),
    }
    return {name: value for name, value in fields.items() if value}


def _costs(spent: Usage, judged: Usage, record: InterviewRecord, spending: Spending) -> dict[str, Any]:
    """Return the costs of questions, item selection and judgments, relative to the FLOPs of the whole bank if known."""
    account = (record.interviewer or {}).get("interviewer") or {}
    interviewer = Usage(**{name: account[name] for name in spent.to_json() if name in account})
    costs: dict[str, Any] = spending.agent_costs({"interviewer": interviewer, "judge": judged})
    if not spent.calls:
        return costs
    complete = interviewer.flops or not interviewer.calls  # a model on a server does not tell
    if spent.flops and complete and not judged.calls:
        costs["relative"] = (spent.flops + interviewer.flops) / (spent.flops / spent.calls * record.size)
    return {"subject": spent.to_json(), **costs, **spending.to_json(spent)}
