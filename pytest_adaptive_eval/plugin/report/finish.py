"""Put together the result and the record of an interview that has ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cat.session import CORRECTS
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.gates.measured import PassOf
from pytest_adaptive_eval.gates.misfit import misfit_note
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import LOW_QUALITY, items_naming
from pytest_adaptive_eval.models.base import Model, SubjectIdentity, Usage, sent_request
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.models.exchange import Exchange
from pytest_adaptive_eval.models.judging import BEGINNING
from pytest_adaptive_eval.models.replay import ReplayModel
from pytest_adaptive_eval.models.store import remove_store
from pytest_adaptive_eval.plugin.ask.answer_counts import AnswerCounts
from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
from pytest_adaptive_eval.records.findings import findings
from pytest_adaptive_eval.records.parts import (
    LOGGED_CURRENCY,
    BankRecord,
    DriftRecord,
    InterviewerRecord,
    Price,
)
from pytest_adaptive_eval.records.run_record import (
    Administration,
    EvaluationRecord,
    by_item,
    flaky_items,
    must_pass_answers,
    noise_of,
)
from pytest_adaptive_eval.text import counted, number, relative

FEWEST_REPEATED = 5  #: Fewest repeated items for a note that all their answers are equal.


def finish(loop: AskingLoop, seconds: float) -> tuple[SessionResult, EvaluationRecord]:
    """Return the result and the record of an interview that took `seconds`."""
    evaluation = loop.evaluation
    answers = loop.answers
    counts = AnswerCounts(loop.answered)
    noise = None
    if loop.decodings:
        noise = noise_of(answers.administrations, evaluation.samples, len(evaluation.bank))
    notes = [*_notes_of_plan(loop), *_notes_of_noise(loop, noise)]
    cap = loop.respondent.identity.decoding.get("max_tokens")
    shared = loop.reuse.notes(answers.administrations, judged=evaluation.judge is not None)
    notes += shared
    notes += filter(None, [counts.truncation_warning(cap), counts.unread_answers(), counts.constant.note()])
    if sentence := counts.too_many_unreadable():
        loop.give_up(sentence)
        if answers.journal is not None:  # a later run should not continue from such answers
            remove_store(answers.journal.path)
    try:
        arguments = loop.gate_plan.result_arguments(evaluation, loop.state.family)
        for file in loop.gate_plan.loaded.values():
            notes += filter(None, [file.age(clock.now())])
            notes += file.doubts(loop.respondent.identity)
    except AdaptiveEvalError:  # the session's start has reported it
        arguments = {}
    answers.keep_sent(loop.state.answers)
    identity = loop.respondent.identity
    result = SessionResult.of(
        evaluation.name,
        loop.session,
        statuses=counts.statuses,
        noise=_allowed_noise(loop, noise),
        error=loop.fault.sentence if loop.fault else "",
        chance=counts.constant.guessing,
        must_pass=must_pass_answers(evaluation.must_pass_ids, answers.administrations),
        notes=tuple(notes),
        caveat=loop.probes.caveat(),
        floor=tuple(loop.floor),
        subject={
            "name": identity.name,
            "checkpoint": identity.checkpoint,
            "decoding": loop.respondent.decoding,
        },
        **arguments,
    )
    record = _record(loop, result, noise, seconds)
    _keep_exchanges(loop, record)
    record.notes += [*shared, *filter(None, [evaluation.undeclared_warning(loop.gate_plan), loop.probes.caveat()])]
    record.notes += [*_notes_of_marked(evaluation.bank, record), *_notes_of_uniform_draws(loop)]
    if result.misfit:
        sentences = record.notes if loop.gate_plan.judged else record.warnings
        sentences.append(misfit_note(result.misfit, result.scored, drawn=not result.invalid))
    if loop.unneeded:
        record.notes.append(
            f"the interview ended before the answers to {counted(loop.unneeded, 'question')} asked ahead; answers that "
            "came are kept, and their cost counts"
        )
    return result, record


def _keep_exchanges(loop: AskingLoop, record: EvaluationRecord) -> None:
    """Keep what went between model and run in the store that runs share, if there is one."""
    if loop.state.answers is None:
        return
    texts = {}
    for asked in record.administrations:
        exchange = loop.answers.exchanges.get(asked.place, Exchange())
        if loop.evaluation.judge is not None:
            judged = loop.evaluation.judge.replies.get((asked.item, asked.text[:BEGINNING]), [])
            exchange = msgspec.structs.replace(exchange, judged=[sent_request(text) for text in judged])
        if exchange != Exchange():
            texts[record.exchange_key(asked)] = exchange.to_text()
    loop.state.answers.keep_requests(texts)


def _notes_of_plan(loop: AskingLoop) -> Iterator[str]:
    """Yield notes on the bank, the budget and questions that ran again."""
    evaluation = loop.evaluation
    plan = loop.gate_plan
    identity = loop.respondent.identity
    yield from evaluation.notes
    if evaluation.predictions is not None:
        yield loop.predictions.sentence
    if isinstance(loop.respondent.subject, CallableModel):
        yield from filter(None, [loop.respondent.subject.unkept])
    if isinstance(loop.respondent.subject, ReplayModel):
        yield from loop.respondent.subject.notes
    yield from filter(None, [loop.answers.unkept])
    if loop.answers.unrecorded:
        yield (
            f"stored answers lack {', '.join(sorted(loop.answers.unrecorded))}, which the test records now, so it is "
            "missing: ask again with --adaptive-eval-fresh"
        )
    if evaluation.judge is not None:
        yield from evaluation.judge.notes()
    if identity.name in evaluation.bank.subjects:
        yield f"{identity.name} is one of the subjects that calibrated the bank"
    if plan.missing and evaluation.policy.stop != "level":
        yield "the whole budget was asked, so the run's record can serve as a baseline"
    if loop.reruns:
        yield (
            f"another plugin ran questions again, {loop.reruns} times in all: each was asked once, and its first "
            "result counts"
        )


def _notes_of_marked(bank: ItemBank, record: EvaluationRecord) -> Iterator[str]:
    """Yield how many of the answered items are marked as low quality, if the bank has such items."""
    marked = set()
    for item in items_naming(bank.items, LOW_QUALITY):
        if LOW_QUALITY in item.meta:
            marked.add(item.id)
    if marked and record.asked:
        asked = len({answer.item for answer in record.administrations} & marked)
        yield (
            f"{asked} of {counted(record.asked, 'question')} ({number(asked / record.asked)}) went to items marked "
            f"{LOW_QUALITY}, which are {number(len(marked) / len(bank))} of the bank"
        )


def _notes_of_uniform_draws(loop: AskingLoop) -> Iterator[str]:
    """Yield a note on the uniform draws that the bank's predictor plans."""
    session = loop.session
    if (uniform := session.budget - session.uniform_from) > 0:
        yield f"the last {uniform} of {counted(session.budget, 'question')} are drawn uniformly, {CORRECTS}"


def _allowed_noise(loop: AskingLoop, noise: DecodingNoise | None) -> float | None:
    """Return the variance of a score that bounds allow for, of decoding or of the judge; None if neither samples."""
    if noise is not None:  # repeated answers are graded again, so their variance holds the judge's noise
        return noise.allowed
    judge = loop.evaluation.judge
    if judge is None or not judge.samples:
        return None
    return judge.noise_allowed(loop.session.log().scores.tolist())


def _notes_of_noise(loop: AskingLoop, noise: DecodingNoise | None) -> Iterator[str]:
    if noise is not None:
        yield noise.sentence
        if loop.respondent.identity.decoding.get("temperature") == 0:
            yield "decoding is greedy, so answers to an item can differ by device or batch noise only"
        elif count := _equal_repeats(loop.answers.administrations):
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
    repeated = []
    for item_texts in texts.values():
        if len(item_texts) > 1:
            repeated.append(item_texts)
    equal = all(len(set(item_texts)) == 1 for item_texts in repeated)
    if equal and len(repeated) >= FEWEST_REPEATED:
        return len(repeated)
    return 0


def _record(loop: AskingLoop, result: SessionResult, noise: DecodingNoise | None, seconds: float) -> EvaluationRecord:
    evaluation = loop.evaluation
    bank = loop.evaluation.bank
    identity = _identity_at_the_end(loop)
    answers = loop.answers.administrations
    items = by_item(answers, evaluation.samples)
    judge = evaluation.judge
    journal = loop.answers.journal
    record = EvaluationRecord(
        name=evaluation.name,
        nodeid=loop.nodeid,
        kind=evaluation.kind,
        group=evaluation.group,
        variant=evaluation.variant,
        series=evaluation.series,
        subject=identity,
        whose=loop.respondent.whose,
        bank=BankRecord.of(
            bank,
            path=relative(evaluation.path, loop.node.config.rootpath) if evaluation.path else "",
            calibration_subject=identity.name in bank.subjects,
        ),
        policy=loop.policy_record(),
        drift=DriftRecord(action=loop.node.drift),
        conditions=[condition.to_json() for condition in loop.gate_plan.conditions],
        seconds=round(seconds, 3),
        samples=evaluation.samples,
        decoding_noise=noise,
        administrations=answers,
        item_estimates=_item_estimates(loop, result),
        flaky=flaky_items(answers),
        interviewer=InterviewerRecord.of(loop.session.account),
        call_sizes={str(size): count for size, count in sorted(loop.answers.call_sizes.items())},
        judge=judge.name if judge is not None else "",
        judged=judge.counts if judge is not None else None,
        baselines={name: file.compared(bank, items) for name, file in loop.gate_plan.loaded.items()},
        journal=journal.path.name if journal is not None else "",
        predictions=None if evaluation.predictions is None else loop.predictions,
        reuse=loop.reuse.record(answers),
        usage_error=bool(loop.fault and loop.fault.usage),
        **findings(result, [a.theta_before or [] for a in items] if bank.calibrated else None),
    )
    record.asked = len(items)  # also those of a batch that was cut off
    if judge is not None:
        record.notes = list(judge.notes())
    record.notes += filter(None, [must_pass_sentence(result.must_pass), _continued(loop.session.earlier)])
    spent = Usage()
    subject = loop.respondent.subject
    if isinstance(subject, Model):
        spent = subject.usage - loop.answers.usage_before
        record.warnings = subject.warnings
    if judge is not None:
        of_judge = judge.usage
    else:
        of_judge = Usage()
    record.costs = evaluation.spending.costs(spent, record.interviewer, of_judge, record.size)
    if spent.money:  # as a harness states it
        record.costs.prices["subject"] = Price(spent.money, LOGGED_CURRENCY, _cost_of_bank(record))
    return record


def _item_estimates(loop: AskingLoop, result: SessionResult) -> dict[str, dict[str, float]]:
    """Return the estimates by item of each metric of samples that a gate requires."""
    estimates: dict[str, dict[str, float]] = {}
    ids = [str(result.bank.ids[index]) for index in result.log.items]
    for condition in loop.gate_plan.conditions:
        measure = condition.measure
        if isinstance(measure, PassOf) and measure.scores is not None:
            by_item = zip(ids, measure.scores.of(result.log).tolist(), strict=True)
            estimates[condition.metric] = {item: value for item, value in by_item if not math.isnan(value)}
    return estimates


def _cost_of_bank(record: EvaluationRecord) -> float | None:
    """Return about what asking each item of the bank would cost, from the items whose cost is known."""
    costs = []
    for asked in record.administrations:
        if "cost" in asked.measures:
            costs.append(asked.measures["cost"])
    if not costs:
        return None
    return sum(costs) / len(costs) * record.size * record.samples


def _continued(budgets: Sequence[int]) -> str:
    """Return a note on the budgets of earlier runs that the bets go on from; empty if there are none."""
    if not budgets:
        return ""
    listed = ", ".join(map(str, budgets))
    return (
        f"the bets go on from earlier runs of these draws with a budget of {listed}: all these runs together are one "
        "test, with its error rate"
    )


def _identity_at_the_end(loop: AskingLoop) -> SubjectIdentity:
    """Return the subject's identity with its present environment: batches may have become smaller."""
    identity = loop.respondent.identity
    subject = loop.respondent.subject
    if isinstance(subject, Model):
        return replace(identity, environment=subject.identity.environment)
    return identity
