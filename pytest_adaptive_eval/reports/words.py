"""Shared text formatting for all reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any

from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.categories import CategoryResult
from pytest_adaptive_eval.gates.condition import LIMITS
from pytest_adaptive_eval.gates.verdict import AT_MOST, Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import APPROXIMATE
from pytest_adaptive_eval.items.item import Status, unanswered_sentence
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.records.parts import LOGGED_CURRENCY, Costs, Price, QuantityRecord
from pytest_adaptive_eval.records.repetitions import area, ladder_of
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.text import counted, money, number

_FLAKY = 3  #: Flaky items that a sentence names.
_PLOTTABLE = 1e12  #: Largest number on an axis.


def plottable(value: float | None) -> float | None:
    """Return a number that an axis can hold, None for any other."""
    if value is not None and abs(value) < _PLOTTABLE:
        return value
    return None


_CONFIDENCE = 0.95  #: One-sided confidence where the record names none.
_DIMENSIONS = 3  #: Abilities shown of a bank with several dimensions.
_STATUSES = frozenset(Status)


def number_or_dash(value: float | None, digits: int = 3) -> str:
    """Return a number, ``-`` for None."""
    if value is None:
        return "-"
    return number(value, digits)


def confidence(interview: EvaluationRecord) -> float:
    """Return the one-sided confidence of the interview's intervals."""
    interval = interview.projection
    if interval and 0.5 < interval.confidence < 1:
        return interval.confidence
    return _CONFIDENCE


def percent(interview: EvaluationRecord) -> str:
    """Return the two-sided confidence of the interview's intervals, ``90 %`` with a no-break space."""
    return f"{200 * confidence(interview) - 100:.4g}\u00a0%"


def interval_note(interviews: Sequence[EvaluationRecord], gap: str) -> str:
    """Return the unit of abilities and the confidence of intervals, with `gap` before each percent sign."""
    percents = sorted({f"{200 * confidence(interview) - 100:.4g}{gap}%" for interview in interviews})
    text = f"intervals are two-sided at {' and '.join(percents)}"
    unit = ability_unit(interviews)
    if unit:
        return f"{unit}; {text}"
    return text


def ability(interview: EvaluationRecord) -> str:
    """Return ``1.23 ± .31``: the estimate and half of its two-sided interval; ``-`` without an ability.

    A ``~`` comes before that of a subject that the bank's model does not describe.
    """
    if not interview.theta:
        return "-"
    z = NormalDist().inv_cdf(confidence(interview))
    errors: Sequence[float | None] = interview.standard_error or (None,) * len(interview.theta)
    rows = list(zip(dimensions(interview), interview.theta, errors, strict=False))
    has_parts = bool(in_parts(interview))
    if has_parts:
        most = len(rows)
    else:
        most = _DIMENSIONS
    texts = []
    for name, theta, error in rows[:most]:
        text = number(theta, 2)
        if has_parts:
            text = f"{name} {text}"
        if error is not None:
            text += f" ± {number(z * error, 2)}"
        texts.append(text)
    if len(rows) > most:
        texts.append("...")
    joined = ", ".join(texts)
    if interview.misfit:
        return f"~{joined}"
    return joined


def in_parts(interview: EvaluationRecord) -> list[str]:
    """Return the names of the ability components of a bank in formats; an empty list for any other bank."""
    return interview.bank.parts


def dimensions(interview: EvaluationRecord) -> list[str]:
    """Return the name of each ability: its component, else its number from 1."""
    return in_parts(interview) or [str(n) for n in range(1, len(interview.theta or []) + 1)]


def ability_unit(interviews: Sequence[EvaluationRecord]) -> str:
    """Return the unit of the abilities as a sentence; an empty text without abilities."""
    units = []
    if any(interview.theta and not in_parts(interview) for interview in interviews):
        units.append("ability is by the bank's model, in logits")
    if any(interview.theta and in_parts(interview) for interview in interviews):
        units.append("parts of ability are in standard deviations of the bank's subjects")
    return "; ".join(units)


def accuracy(interview: EvaluationRecord) -> str:
    """Return ``.612 [.551, .671]``; with ``~`` before it for a projection by the bank, ``-`` without any."""
    if interview.levels:
        return climb(interview)
    interval = interview.projection
    if interval is None:
        return "-"
    prefix = "" if interview.accuracy else "~"
    estimate, low, high = map(number, (interval.estimate, interval.low, interval.high))
    if low == high == estimate:
        return f"{prefix}{estimate} exact"
    return prefix + interval.in_words()


def brief_accuracy(interview: EvaluationRecord) -> str:
    """Return the accuracy; for a ladder its area and last level, ``1.7/2 [1.31, 2.12]``."""
    ladder = ladder_of(interview)
    interval = area(interview)
    if ladder is None:
        return accuracy(interview)
    if interval is None:
        return str(ladder)
    if interview.levels is None or interview.levels.last_level is None:  # the answers do not measure it
        return accuracy(interview)
    return f"{ladder} {interval.bounds_in_words(2)}{guessing(interview)}"


def climb(interview: EvaluationRecord) -> str:
    """Return a ladder's ``AUC 1.70 [1.31, 2.12], last level 2, half right at level 1.8 [1.2, 2.5]``."""
    levels = interview.levels
    if levels is None:
        return "-"
    if levels.last_level is None:
        parts = []
    else:
        parts = [f"last level {levels.last_level}"]
    if levels.auc:
        parts.insert(0, f"AUC {levels.auc.in_words(2)}{guessing(interview)}")
    if levels.half and levels.crosses_half:
        parts.append(f"half right at level {levels.half.in_words(1)}")
    return ", ".join(parts) or "-"


def guessing(interview: EvaluationRecord) -> str:
    """Return `` (.84 by guessing)``: the area of a guesser at the levels that a ladder asked; empty without a floor."""
    levels = interview.levels
    if levels is None or not levels.guess:
        return ""
    area_of_guessing = sum(levels.guess)
    return f" ({number(area_of_guessing, 2)} by guessing)"


def settings(values: Mapping[str, Any]) -> str:
    """Return settings as people read them: ``rounds 12, topics (math, coding), judge none``; empty values are left out.

    Lists and mappings within are put into parentheses, and truth values are words.
    """
    texts = []
    for name, value in values.items():
        is_empty = value in (None, "") or (isinstance(value, Mapping | list | tuple) and not value)
        if not is_empty:
            texts.append(f"{name} {_setting(value)}")
    return ", ".join(texts)


def _setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({settings(value)})"
    if isinstance(value, list | tuple):
        return f"({', '.join(_setting(entry) for entry in value)})"
    if isinstance(value, bool):
        return {True: "yes", False: "no"}[value]
    return str(value)


def count(asked: int, size: int, unit: str = "items") -> str:
    """Return ``28 of 140``, the form of every count; units other than items follow."""
    text = f"{asked} of {size}"
    if unit == "items":
        return text
    return f"{text} {unit}"


def calls(evaluation: EvaluationRecord | None) -> str:
    """Return ``, 44 calls`` where the model was called more often than questions counted; empty otherwise.

    Questions that were asked ahead and not needed are the usual reason.
    """
    if evaluation is None or evaluation.costs.subject is None or evaluation.costs.subject.calls <= evaluation.asked:
        return ""
    return f", {counted(evaluation.costs.subject.calls, 'call')}"


def share(interview: EvaluationRecord) -> str:
    """Return ``28 of 140, 44 calls``: items asked, items in the bank, and calls where they are more."""
    return f"{count(interview.asked, interview.size)}{calls(interview)}"


def statuses(interview: EvaluationRecord) -> str:
    """Return the answers by status but ok, ``10 of 40 empty, 3 refused; no score: 2 timeout``; empty without any."""
    missing = []
    for name, n in interview.statuses.items():
        if n and (name not in _STATUSES or Status(name).infrastructure):
            missing.append(f"{n} {name}")
    sentence = unanswered_sentence(interview.statuses)
    if not missing:
        return sentence
    without_score = f"no score: {', '.join(missing)}"
    if not sentence:
        return without_score
    return f"{sentence}; {without_score}"


def category_accuracy(row: CategoryResult, interview: EvaluationRecord) -> Interval | None:
    """Return the recorded interval of a category; where no answer in it has a score, the accuracy may be any.

    An approximate interval is for a planned number of draws, so there is none where the answers ended the interview,
    and none where its error is not below that of the mean of as many uniform draws: there the counts say more.
    """
    if row.asked and not row.scored:
        return Interval(0.5, 0.0, 1.0, _CONFIDENCE, "")
    if row.accuracy is None or row.accuracy.method != APPROXIMATE:
        return row.accuracy
    if ended_at_verdict(interview) or _is_no_better(row):
        return None
    return row.accuracy


def _is_no_better(row: CategoryResult) -> bool:
    """Return whether a category's estimate has at least the error of the mean of as many uniform draws."""
    if row.standard_error is None or row.sampling_error is None:
        return False
    uniform = row.sampling_error * math.sqrt(1.0 - row.scored / row.size)
    return row.standard_error >= uniform


def category_counts(row: CategoryResult) -> str:
    """Return ``3 of 4``, the sum of a category's scores of the questions with a score; ``-`` without any."""
    if row.total is None:
        return "-"
    return f"{row.total:.4g} of {row.scored}"


def ended_at_verdict(interview: EvaluationRecord) -> bool:
    """Return whether the answers ended an interview, at the decision of its gates."""
    return interview.stop == StopReason.DECISION.name


def noise(interview: EvaluationRecord) -> str:
    """Return the error that decoding adds to the accuracy, ``.0031, by 26 answers to 13 items``; empty if unknown."""
    noise = interview.decoding_noise
    if noise is None or noise.error is None:
        return ""
    return f"{number(noise.error, 4)}, by {noise.answers} answers to {counted(noise.items, 'item')}"


def stop(interview: EvaluationRecord) -> str:
    """Return the reason why the interview ended, as a sentence without its full stop."""
    return interview.stop_sentence or interview.stop or "it did not finish"


def end(interview: EvaluationRecord) -> str:
    """Return why the interview ended, with the answers that have no score and the decoding noise."""
    remarks = []
    by_status = statuses(interview)
    if by_status:
        remarks.append(by_status)
    error = noise(interview)
    if error:
        remarks.append(f"decoding noise {error}")
    reason = stop(interview)
    if not remarks:
        return reason
    return f"{reason} ({'; '.join(remarks)})"


def asked_item(asked: Administration) -> str:
    """Return the item's name: ``ITEM``, and ``ITEM#2`` and so on for repeated administrations."""
    if asked.sample:
        return f"{asked.item}#{asked.sample + 1}"
    return asked.item


def bank_name(interview: EvaluationRecord) -> str:
    """Return the bank's name, with the evaluation's name where it says more, as in merged records."""
    bank = interview.bank.name
    if interview.name.startswith(f"{bank} ("):
        return interview.name
    if interview.name in ("", bank):
        return bank
    return f"{interview.name} ({bank})"


def sentence_without(gate: GateRecord, notes: Sequence[str]) -> str:
    """Return a verdict's sentence without its outcome and without notes that are shown elsewhere."""
    sentence = gate.verdict.sentence.removeprefix(f"{gate.outcome.value} ")
    for note in notes:
        sentence = sentence.replace(f"; {' '.join(note.split())}", "")
    return sentence


def decided(gate: GateRecord) -> str:
    """Return after how many questions a gate was decided, where the interview asked more; empty otherwise."""
    verdict = gate.verdict
    if verdict.decided_after is None:
        return ""
    return f"decided after {verdict.decided_after} of {verdict.asked} {verdict.unit}"


def threshold_of(verdict: Verdict) -> float | None:
    """Return the value at which a verdict on an interval changes, in the metric's unit; None if it is not known."""
    kind = verdict.condition.get("kind")
    if kind not in (*LIMITS, "not_worse_than"):
        return None
    value = plottable(verdict.condition.get("value", 0.0))
    if value is not None and kind == "not_worse_than" and not verdict.requirement.startswith(AT_MOST):
        return -value  # a margin: the difference from the baseline may be so far below 0
    return value


def flaky(interviews: Sequence[EvaluationRecord]) -> str:
    """Return the items with a right answer and one that is not, ``toy: 5 of 40 (q9, q48, q8 and 2 more)``."""
    parts = []
    for interview in interviews:
        items = interview.flaky
        if items:
            if len(items) > _FLAKY:
                more = f" and {len(items) - _FLAKY} more"
            else:
                more = ""
            named = ", ".join(items[:_FLAKY])
            parts.append(f"{interview.name}: {len(items)} of {interview.asked} ({named}{more})")
    if parts:
        return f"right in one answer and not in another: {'; '.join(parts)}"
    return ""


def beside_interval(verdict: Verdict) -> str:
    """Return why a verdict differs from where its interval lies beside the threshold; empty where both agree."""
    interval = verdict.interval
    threshold = threshold_of(verdict)
    if interval is None or verdict.stated or threshold is None:
        return ""
    low, high = map(plottable, (interval.low, interval.high))
    if low is None or high is None:
        return ""
    if verdict.requirement.startswith(AT_MOST):
        low, high, threshold = -high, -low, -threshold
    if low >= threshold:
        by_interval = Outcome.PASS
    elif high < threshold:
        by_interval = Outcome.FAIL
    else:
        by_interval = Outcome.INCONCLUSIVE
    if verdict.outcome in (by_interval, Outcome.ERROR):
        return ""
    if verdict.decided_after is not None:
        return "the interval is of all answers, and the verdict of those before it was decided"
    return (
        f"the interval by itself would be {by_interval.value}: the verdict is by bets on the threshold, corrected for "
        "the number of gates, and by the notes"
    )


def promoted(record: RunRecord) -> bool:
    """Return whether the checkpoint may be promoted; False for a record that contradicts itself."""
    return record.promote and all(gate.holds for gate in record.gates)


def promotion(record: RunRecord) -> str:
    """Return the promotion decision as a title."""
    if promoted(record):
        return "May be promoted"
    return "Not to be promoted"


def outcome_counts(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, str]]:
    """Return each outcome with its text: ``PASS`` of one gate, ``1 PASS`` and ``2 FAIL`` of several."""
    counts = []
    for outcome in Outcome:
        if outcome in outcomes:
            text = outcome.value
            if len(outcomes) > 1:
                text = f"{outcomes.count(outcome)}\u00a0{text}"
            counts.append((outcome, text))
    return counts


def changes(record: RunRecord) -> list[str]:
    """Return what earlier runs say of each evaluation, such as its change since the last one."""
    return [f"{entry.name}: {entry.drift.news}" for entry in record.evaluations if entry.drift.news]


def why(record: RunRecord) -> str:
    """Return the reasons of the promotion decision as a sentence without any text of the record."""
    outcomes = [gate.outcome for gate in record.gates]
    if promoted(record):
        passed = outcomes.count(Outcome.PASS)
        undecided = len(outcomes) - passed
        if undecided == 1:
            more = ", and 1 undecided was let through"
        elif undecided:
            more = f", and {undecided} undecided were let through"
        else:
            more = ""
        return f"{passed} of {counted(len(outcomes), 'gate')} passed{more}."
    text = "; ".join(_reasons(record, outcomes))
    return f"{text[0].upper()}{text[1:]}."


def _reasons(record: RunRecord, outcomes: Sequence[Outcome]) -> list[str]:
    """Return why a run is not promoted."""
    reasons = []
    for n, unit, event in _failures(record, outcomes):
        if n:
            reasons.append(f"{counted(n, unit)} {event}")
    if record.left_to_shards:
        reasons.append("gates are left to other shards")
    if not outcomes:
        reasons.append("no gate judged the checkpoint")
    elif Outcome.PASS not in outcomes and not reasons:
        reasons.append("no gate passed")
    if record.exit_status is None:
        reasons.append("the run did not come to its end")
    elif record.exit_status or not reasons:
        reasons.append(f"the run ended with exit status {record.exit_status}")
    return reasons


def _failures(record: RunRecord, outcomes: Sequence[Outcome]) -> Iterator[tuple[int, str, str]]:
    """Yield how many gates and evaluations failed in each way."""
    undecided = []
    for gate in record.gates:
        if gate.outcome is Outcome.INCONCLUSIVE and not gate.verdict.allowed:
            undecided.append(gate)
    yield outcomes.count(Outcome.FAIL), "gate", "failed"
    yield len(undecided), "gate", "could not be decided"
    yield outcomes.count(Outcome.ERROR), "gate", "could not be judged"
    yield sum(gate.verdict.notice for gate in record.gates), "gate", "had nothing to compare with yet"
    yield sum(bool(interview.void) for interview in record.interviews), "interview", "gave no result"
    yield sum(bool(evaluation.void) for evaluation in record.others), "evaluation", "gave no result"
    yield sum(entry.drift.fails for entry in record.evaluations), "level", "fell below that of earlier runs"
    yield len(record.absent_required), "required gate", "gave no result"


def subject_results(evaluation: EvaluationRecord) -> str:
    """Return the results of the subject: ``score of dog 4.146 [4.02, 4.27], rank 2.0 [2, 2] of 5, 12 of 12 rounds``."""
    parts: list[str] = []
    candidate = evaluation.subject.name
    for metric, row in evaluation.of_subject():
        if row.estimate is not None:
            value, _, rank = quantity(row)
            count = sum(other.rank is not None for other in evaluation.metrics[metric])
            parts.append(f"{metric} of {candidate} {value}")
            if count:
                parts.append(f"rank {rank} of {count}")
    if not parts:
        parts.append(f"candidate {candidate}")
    parts.append(f"{evaluation.asked} of {evaluation.size} {evaluation.unit}")
    return ", ".join(parts)


def ranked(rows: Sequence[QuantityRecord]) -> list[QuantityRecord]:
    """Return the subjects of a quantity, the highest first and those without an estimate last."""

    def estimate(row: QuantityRecord) -> float:
        if row.estimate is None:
            return -math.inf
        return row.estimate

    return sorted(rows, key=estimate, reverse=True)


def quantity(row: QuantityRecord) -> tuple[str, str, str]:
    """Return ``4.146 [4.024, 4.268]``, the standard error, and the rank ``2.0 [2, 2]``; ``-`` for unknown ones.

    A value that guessing alone has follows the bounds, as `` (.210 by guessing)``.
    """
    text = number_or_dash(row.estimate)
    if row.low is not None and row.high is not None:
        text += f" [{number(row.low)}, {number(row.high)}]"
    if row.guess:
        text += f" ({number(row.guess)} by guessing)"
    if row.rank:
        rank = f"{number(row.rank.mean, 1)} [{row.rank.best}, {row.rank.worst}]"
    else:
        rank = "-"
    return text, number_or_dash(row.error), rank


def quantity_percent(rows: Sequence[QuantityRecord]) -> str:
    """Return the two-sided confidence of a quantity's intervals, ``90 %``."""
    value = next((row.confidence for row in rows if row.confidence is not None), _CONFIDENCE)
    two_sided = 200 * value - 100
    return f"{two_sided:.4g} %"


def panel_cost(costs: Costs) -> str:
    """Return ``450 calls, 5,400 tokens, 3 loads of 2 models``; empty if no cost is known.

    Roles follow where there are several, as ``; judgment 300 calls, 3,000 tokens``.
    """
    total = costs.total or Usage()
    parts = []
    if total.calls:
        parts.append(f"{total.calls} calls")
        if total.tokens:
            parts.append(f"{total.tokens:,} tokens")
        if total.flops:
            parts.append(f"{total.flops:.2g} FLOPs")
    loads = list(filter(None, costs.loads.values()))
    if loads:
        parts.append(f"{counted(sum(loads), 'load')} of {counted(len(loads), 'model')}")
    roles = []
    for role, spent in costs.roles.items():
        text = _spent(spent)
        if text:
            roles.append(f"{role} {text}")
    whole = ", ".join(parts)
    if len(roles) < 2:
        return whole
    return "; ".join([whole, *roles])


def spent(interview: EvaluationRecord) -> str:
    """Return ``96 calls, 3,100 tokens, 12.3 s, $0.021``; empty where no call is known.

    Seconds and steps of an item follow where a log states them, and models that worked for the run, as ``; judge 40
    calls, 900 tokens, 2.0 s``.
    """
    costs = interview.costs
    of_subject = filter(None, [_spent(costs.subject, costs.prices.get("subject")), per_item(interview)])
    usages = [", ".join(of_subject), *agent_usages(costs)]
    return "; ".join(filter(None, usages))


_WORTH_SAYING = 1.0  #: Seconds or steps of an item below which the totals of a run say enough.


def per_item(interview: EvaluationRecord) -> str:
    """Return ``12.5 s and 7 steps per item``, the means of at least `_WORTH_SAYING`; empty without."""
    means = {}
    for name in ("seconds", "steps"):
        values = [asked.measures[name] for asked in interview.administrations if name in asked.measures]
        if values and sum(values) >= _WORTH_SAYING * len(values):
            means[name] = sum(values) / len(values)
    if not means:
        return ""
    return f"{' and '.join(measured(means))} per item"


#: How measures of an item read.
_MEASURES = {
    "seconds": "{:,.1f} s",
    "steps": "{:,.3g} steps",
    "input_tokens": "{:,.0f} tokens read",
    "output_tokens": "{:,.0f} tokens written",
    "reasoning_tokens": "{:,.0f} of thought",
}


def measured(measures: Mapping[str, float]) -> list[str]:
    """Return measures of an item as ``12.5 s``, ``7 steps`` and ``$0.12``."""
    texts = []
    for name, value in measures.items():
        if name == "cost":
            texts.append(money(value, LOGGED_CURRENCY))
        else:
            texts.append(_MEASURES.get(name, f"{name} {{:.4g}}").format(value))
    return texts


def agent_usages(costs: Costs) -> list[str]:
    """Return the cost of each model that worked for the run, as ``judge 40 calls, 900 tokens, 2.0 s``."""
    usages = {"interviewer": costs.interviewer, "judge": costs.judge}
    texts = []
    for role, usage in usages.items():
        text = _spent(usage, costs.prices.get(role))
        if text:
            texts.append(f"{role} {text}")
    return texts


def _spent(usage: Usage | None, price: Price | None = None) -> str:
    """Return ``96 calls, 3,100 tokens, 12.3 s, $0.021``; empty without calls."""
    if usage is None or not usage.calls:
        return ""
    parts = [counted(usage.calls, "call")]
    if usage.tokens:
        parts.append(f"{usage.tokens:,} tokens")
    if usage.seconds:
        parts.append(f"{usage.seconds:.1f} s")
    if price is not None:
        parts.append(_price(price))
    return ", ".join(parts)


def _price(price: Price | None) -> str:
    """Return ``$0.021``, or ``$3.84 of about $60 for the whole bank`` where that is known."""
    if price is None:
        return "-"
    text = money(price.money, price.currency)
    if price.whole is None:
        return text
    return f"{text} of about {money(price.whole, price.currency)} for the whole bank"


def reused(interviews: Sequence[EvaluationRecord]) -> str:
    """Return how many answers came from earlier runs, as a clause; empty where none did."""
    taken = []
    for interview in interviews:
        if interview.reuse and interview.reuse.answers:
            taken.append(interview.reuse)
    if not taken:
        return ""
    count = sum(entry.answers for entry in taken)
    asked = sum(len(entry.administrations) for entry in interviews)
    store = taken[0].store
    return f"{count} of {counted(asked, 'answer')} from {store}; --adaptive-eval-fresh asks again"


def run_usage(interviews: Sequence[EvaluationRecord]) -> str:
    """Return the cost of the interviews, of several each by its name; empty where none is known."""
    texts = []
    named = []
    for interview in interviews:
        text = spent(interview)
        if text:
            texts.append(text)
            named.append(f"{interview.name}: {text}")
    if len(named) > 1:
        return "; ".join(named)
    return "".join(texts)


COST_HEADS = ("cost of", "calls", "tokens read", "tokens written", "seconds", "price")


def cost_rows(interviews: Sequence[EvaluationRecord]) -> list[tuple[str, ...]]:
    """Return a row per model of each interview for `COST_HEADS`, and the total of several rows."""
    rows: list[tuple[str, ...]] = []
    total = Usage()
    prices: list[Price] = []
    for interview in interviews:
        costs = interview.costs
        spent = {"subject": costs.subject, "interviewer": costs.interviewer, "judge": costs.judge}
        for role, usage in spent.items():
            if usage is None or not usage.calls:
                continue
            price = costs.prices.get(role)
            if price is not None:
                prices.append(price)
            total += usage
            name = role
            if len(interviews) > 1:
                name = f"{interview.name}: {role}"
            rows.append((name, *_cost_cells(usage, price)))
    if len(rows) > 1:
        one_currency = len({price.currency for price in prices}) == 1
        whole = None
        if one_currency:
            whole = Price(sum(price.money for price in prices), prices[0].currency)
        rows.append(("total", *_cost_cells(total, whole)))
    return rows


def _cost_cells(usage: Usage, price: Price | None) -> tuple[str, ...]:
    tokens = (f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}")
    if not usage.prompt_tokens and not usage.completion_tokens:  # a function or a harness that counts none
        tokens = ("-", "-")
    return f"{usage.calls:,}", *tokens, f"{usage.seconds:.1f}", _price(price)


def bank_notes(interview: EvaluationRecord, *, gated: bool) -> Iterator[str]:
    """Yield notes on an interview's bank and on the origin of its accuracy."""
    bank = interview.bank
    if not bank.calibrated and interview.policy.stop != "level" and not gated:  # a verdict says it shortly
        drawn = "items were drawn uniformly"
        if interview.predictions is not None and interview.policy.selector != "random":
            drawn = "draws lean to items that the earlier run predicts least surely"
        yield f"the bank is not calibrated: {drawn}, and no ability is estimated"
    if not bank.trusted:
        yield (
            "the bank was written although its calibration report advised against it: its abilities are "
            "a hint; intervals that rest on the draws hold all the same"
        )
    if gated and bank.calibration_subject:
        yield (
            f"{interview.subject.name or 'the subject'} is one of the bank's calibration subjects: "
            "its ability is estimated from items fitted to its own answers"
        )
    if interview.accuracy is not None and interview.accuracy.method == APPROXIMATE:
        yield "no gate was declared, so the bounds of the accuracy are approximate, by a normal distribution"
    if interview.accuracy is None and interview.accuracy_conformal is not None:
        yield (
            "~ is the bank's projection, with an interval from replayed interviews of its calibration "
            "subjects; it holds for checkpoints like them, and no gate decides on it"
        )
    elif interview.accuracy is None and interview.accuracy_model is not None:
        yield "~ is the bank's own projection, which trusts its parameters; no gate decides on it"
