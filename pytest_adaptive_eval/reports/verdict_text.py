"""Texts of reports on a gate: one sentence that anybody reads, and the command that comes next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.verdict import AT_MOST, Outcome
from pytest_adaptive_eval.inference.interval import ABILITY_BOUND
from pytest_adaptive_eval.items.item import INFRASTRUCTURE
from pytest_adaptive_eval.records.parts import BaselineSource
from pytest_adaptive_eval.records.run_record import GateRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.questions import wrong_questions
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.drift import Alarm

WORST_FIRST = (Outcome.ERROR, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)  #: Outcomes by urgency.
#: Words of a limit by the kind of the condition.
_LIMITS = {"at_least": "at least {} required", "at_most": "at most {} allowed"}
_FAILED = "pytest --adaptive-eval --adaptive-eval-failed={run}"
#: Outcome, or None for any; the fact of `_facts` that must be there, or "" for none; what to do, and its command. The
#: first that fits counts.
_STEPS = (
    (
        None,
        "notice",
        "record a baseline to compare with",
        "pytest --adaptive-eval --adaptive-eval-missing-baseline=record --adaptive-eval-baseline=baseline.json",
    ),
    (
        Outcome.ERROR,
        "",
        "correct what the verdict names, and run the gate again; answers of an unchanged model are kept",
        "pytest --adaptive-eval {gate}",
    ),
    (Outcome.FAIL, "lost_alone", "ask the {lost_alone} again, with the options of this run", _FAILED),
    (Outcome.FAIL, "lost", "ask the {wrong} again, {lost} of them lost, with the options of this run", _FAILED),
    (Outcome.FAIL, "wrong", "ask the {wrong} again, with the options of this run", _FAILED),
    (Outcome.FAIL, "baseline", "compare both runs", "adaptive-eval history --compare {baseline} {run}"),
    (
        Outcome.INCONCLUSIVE,
        "unscored",
        "run the gate again, with the options of this run; the {unscored} without a score are asked again",
        "pytest --adaptive-eval {gate}",
    ),
    (
        Outcome.INCONCLUSIVE,
        "budget",
        "raise the budget, with the options of this run; it ends at the verdict, and answers so far are kept",
        "pytest --adaptive-eval --adaptive-eval-budget={budget}",
    ),
    (
        Outcome.INCONCLUSIVE,
        "bank",
        "all questions were asked; add questions, or see which margin so many can decide",
        "adaptive-eval plan {bank} --margin 0.1",
    ),
    (Outcome.FAIL, "", "read the answers", "adaptive-eval report {run} --html report.html"),
    (Outcome.INCONCLUSIVE, "", "read the answers", "adaptive-eval report {run} --html report.html"),
    (
        None,
        "opinion",
        "add a gate on a bank or a task, or promote the checkpoint on models' opinion; this exits with 0",
        "adaptive-eval report {run} --exit-code",
    ),
    (
        None,
        "promoted",
        "promote the checkpoint; a script may do so if this exits with 0",
        "adaptive-eval report {run} --exit-code",
    ),
)


class Step(NamedTuple):
    """Next step after a verdict, and the command that does it."""

    text: str
    command: str


class VerdictText(NamedTuple):
    """A verdict for people in one sentence, of which reports may show the number larger than the rest.

    Args:
        number: Estimate with its unit, such as ``20 points``; empty for a verdict without one.
        rest: What the estimate is, its bounds and what is required.
        quantity: What was measured, before the number; empty where the rest says it, such as ``right``.
    """

    number: str
    rest: str
    quantity: str = ""

    @property
    def sentence(self) -> str:
        """``20 points below main, between 10 and 36; 10 are allowed``."""
        if self.quantity:
            return f"{self.quantity}: {self.number}, {self.rest}"
        return f"{self.number} {self.rest}".strip()


def verdict_text(record: RunRecord, gate: GateRecord) -> VerdictText:
    """Return the sentence of one gate; without an interval that decides, it is the verdict's claim, or its error."""
    verdict = gate.verdict
    interval = verdict.interval
    if gate.outcome is Outcome.ERROR and verdict.notes and not verdict.stated:
        return VerdictText("", f"not judged: {' '.join(verdict.notes[0].split())}")
    kind = verdict.condition.get("kind")
    if interval is None or verdict.stated or kind not in (*_LIMITS, "not_worse_than"):
        return VerdictText("", verdict.claim)
    bounds = interval.low, interval.estimate, interval.high
    unknown = [bound for bound in bounds if words.plottable(bound) is None or abs(bound) >= ABILITY_BOUND]
    if unknown:
        return VerdictText("", verdict.claim)
    metric = registered_metric(verdict.condition.get("metric"))
    limit = verdict.condition.get("value", 0.0)
    is_share = bool(verdict.condition.get("within")) or (metric is not None and metric.unit == "proportion")
    numbers = _Numbers(is_share, limit)
    if kind == "not_worse_than":
        if verdict.requirement.startswith(AT_MOST):  # lower values are better, and the words are of higher ones
            return VerdictText("", verdict.claim)
        return _difference(record, gate, bounds, numbers)
    sign = " %" * is_share
    (number,) = numbers.alike(interval.estimate)
    if not sign and metric is not None:
        number += _unit(metric.unit, number)
    rest = _LIMITS[kind].format(numbers.allowed + sign)
    if interval.low < interval.high:
        low, high = numbers.alike(interval.low, interval.high)
        rest = f"between {low}{sign} and {high}{sign}; {rest}"
    if metric is None or not metric.plain:
        return VerdictText(f"{number}{sign}", rest, verdict.metric)
    if interval.low < interval.high:
        return VerdictText(f"{number}{sign}", f"{metric.plain}, {rest}")
    return VerdictText(f"{number}{sign}", f"{metric.plain}; {rest}")


def _unit(unit: str, number: str) -> str:
    """Return `` levels`` or `` level``; nothing for money, whose currency is not known here."""
    if unit in ("", "money"):
        return ""
    if number == "1":
        unit = unit.removesuffix("s")
    return f" {unit}"


def _difference(
    record: RunRecord, gate: GateRecord, bounds: tuple[float, float, float], numbers: _Numbers
) -> VerdictText:
    """Return ``20 points`` and ``below main, between 10 and 36; 10 are allowed``."""
    low, estimate, high = bounds
    metric = str(gate.verdict.condition.get("metric"))
    registered = registered_metric(metric)
    (start,) = numbers.alike(abs(estimate))
    name = _source(record, gate).subject or str(gate.verdict.condition.get("name"))
    evaluation = record.evaluation_named(gate.interview)
    if name == "baseline" or (evaluation is not None and name == evaluation.subject.name):
        name = "the baseline"
    if start == "0":
        side = "from"
    elif estimate < 0:
        side = "below"
    else:
        side = "above"
    if numbers.is_share:
        start += _unit("points", start)
    elif registered is not None:
        start += _unit(registered.unit, start)
    rest = f"{side} {name}"
    if metric != "accuracy":
        rest += f" in {metric.replace('_', ' ')}"
    if low < 0 < high:
        below, above = numbers.alike(-low, high)
        rest += f", between {below} below and {above} above"
    elif low < high:
        nearer, farther = numbers.alike(*sorted((abs(low), abs(high))))
        rest += f", between {nearer} and {farther}"
    allowed = numbers.allowed
    if high > 0:
        allowed += " below"
    verb = "are"
    if numbers.allowed == "1":
        verb = "is"
    return VerdictText(start, f"{rest}; {allowed} {verb} allowed")


class _Numbers(NamedTuple):
    """Numbers of one sentence; shares are in percent."""

    is_share: bool
    limit: float

    @property
    def allowed(self) -> str:
        """The limit, without zeros at its end."""
        text = self._rounded(self.limit, 6)
        if "." in text:
            text = text.rstrip("0").rstrip(".")
        return text

    def alike(self, *values: float) -> list[str]:
        """Return values with equally many decimals: the fewest by which each differs from the limit, if it does."""
        decimals = max(self._decimals(value) for value in values)
        return [self._rounded(value, decimals) for value in values]

    def _decimals(self, value: float) -> int:
        if math.isclose(value, self.limit):
            return len(self.allowed.partition(".")[2])
        fewest = 0
        if value and not self.is_share:
            fewest = max(0, 1 - math.floor(math.log10(abs(value))))  # two digits that count
        for decimals in range(fewest, fewest + 3):
            if float(self._rounded(value, decimals).replace(",", "")) != float(self.allowed.replace(",", "")):
                return decimals
        return fewest + 3

    def _rounded(self, value: float, decimals: int) -> str:
        if self.is_share:
            value *= 100
        return f"{round(value, decimals) + 0.0:,.{decimals}f}"  # of -0.0 this makes 0.0


def sentence_and_formula(record: RunRecord, gate: GateRecord, notes: Sequence[str]) -> tuple[VerdictText, str]:
    """Return the text of a verdict, and its formula without the notes; a verdict without a number has one sentence."""
    text = verdict_text(record, gate)
    formula = words.sentence_without(gate, notes)
    if text.number:
        return text, formula
    return VerdictText("", formula), ""


def next_steps(record: RunRecord, alarms: Sequence[Alarm] = ()) -> list[Step]:
    """Return what to do after the verdicts of a run, each step once, steps of the worst outcomes first.

    Args:
        alarms: Alarms that still last.  Each on an evaluation that a gate judges is a step.
    """
    evaluations: dict[Step, dict[str, None]] = {}  # names, each once
    for gate in sorted(record.gates, key=lambda gate: WORST_FIRST.index(gate.outcome)):
        facts = _facts(record, gate)
        quoted = {name: shlex.quote(value) for name, value in facts.items()}
        for outcome, fact, text, command in _STEPS:
            if outcome in (None, gate.outcome) and (not fact or facts[fact]):
                step = Step(text.format(**facts), command.format(**quoted))
                evaluations.setdefault(step, {})[gate.interview] = None
                break
    judged = {gate.interview for gate in record.gates}
    quantities: dict[str, dict[str, None]] = {}
    for alarm in alarms:
        if alarm.series.evaluation in judged:
            quantities.setdefault(alarm.series.evaluation, {})[alarm.series.quantity] = None
    steps = []
    for step, names in evaluations.items():
        label = ""
        if names.keys() != judged:
            label = f"{', '.join(names)}: "
        steps.append(Step(f"{label}{step.text}", step.command))
    for name, alarmed in quantities.items():
        text = f"look at the alarm{'s' * (len(alarmed) > 1)} on {', '.join(alarmed)}"
        steps.append(Step(text, f"adaptive-eval history --drift --evaluation {shlex.quote(name)}"))
    return steps


def _facts(record: RunRecord, gate: GateRecord) -> dict[str, str]:
    """Return what steps depend on and name, empty where it is not the case.

    A run's id is cut to its time, by which commands find it.
    """
    verdict = gate.verdict
    source = _source(record, gate)
    evaluation = record.evaluation_named(gate.interview)
    nodeids = [nodeid for _, nodeid in wrong_questions(record)]
    facts = dict.fromkeys(
        ("notice", "lost_alone", "lost", "wrong", "unscored", "budget", "bank", "promoted", "opinion"), ""
    )
    facts |= {"run": record.run.partition("-")[0], "gate": gate.nodeid, "baseline": source.path}
    if verdict.notice:
        facts["notice"] = "yes"
    if words.promoted(record):
        facts["promoted"] = "yes"
    if record.opinion_warning:
        facts["opinion"] = "yes"
    if nodeids and all(nodeids) and not record.merged:  # else some question cannot be asked by its name
        facts["wrong"] = counted(len(nodeids), "wrongly answered question")
        facts["lost"] = str(len(source.lost) or "")
        if len(source.lost) == len(nodeids):
            facts["lost_alone"] = counted(len(nodeids), "lost question")
    if evaluation is not None and evaluation.bank:
        facts["bank"] = evaluation.bank.path
        unscored = sum(evaluation.statuses.get(status, 0) for status in INFRASTRUCTURE)
        if unscored:
            facts["unscored"] = counted(unscored, "question")
        if verdict.asked < verdict.size:
            facts["budget"] = str(min(2 * verdict.asked, verdict.size))
    return facts


def _source(record: RunRecord, gate: GateRecord) -> BaselineSource:
    """Return where the baseline of a gate is from, nothing for other gates."""
    evaluation = record.evaluation_named(gate.interview)
    if evaluation is None:
        return BaselineSource()
    return evaluation.baselines.get(str(gate.verdict.condition.get("name")), BaselineSource())
