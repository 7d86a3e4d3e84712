"""What reports say of a gate: one sentence that anybody reads, and the command that comes next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.interval import ABILITY_BOUND, Interval
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.records.parts import BaselineSource
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.questions import wrong_questions
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.drift import Alarm

WORST_FIRST = (Outcome.ERROR, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)  #: Outcomes by urgency.
_SHARE = "proportion"  #: Unit of the metrics whose values are shown in percent, and their differences in points.


class Step(NamedTuple):
    """What to do after a verdict, and the command that does it."""

    text: str
    command: str


class VerdictText(NamedTuple):
    """A verdict for people.

    Args:
        number: Start of the sentence, such as ``20 points``; empty for a verdict without an interval.
        rest: Rest of the sentence.
        steps: What to do next, the first being the most useful.
    """

    number: str
    rest: str
    steps: tuple[Step, ...] = ()

    @property
    def sentence(self) -> str:
        """``20 points below main, between 10 and 36; 10 are allowed``."""
        return f"{self.number}{self.rest}"


def verdict_text(record: RunRecord, gate: GateRecord, alarms: Sequence[Alarm] = ()) -> VerdictText:
    """Return the sentence and the next steps of one gate.

    Args:
        alarms: Those that last.  The ones on the gate's evaluation add a step each.
    """
    evaluation = None
    if gate.interview:
        evaluation = record.evaluation_named(gate.interview)
    case = _Case(record, gate, evaluation)
    return VerdictText(*_sentence(case), (*_next_step(case), *_alarm_steps(case, alarms)))


def sentence_and_formula(record: RunRecord, gate: GateRecord, notes: Sequence[str]) -> tuple[VerdictText, str]:
    """Return the text of a verdict, and its formula without the notes; a verdict without a number has one sentence."""
    text = verdict_text(record, gate)
    formula = words.sentence_without(gate, notes)
    if text.number:
        return text, formula
    return text._replace(rest=formula), ""


def next_steps(record: RunRecord, alarms: Sequence[Alarm] = ()) -> list[Step]:
    """Return the next steps of all gates, each once, the worst outcome first."""
    steps: dict[Step, None] = {}
    for gate in sorted(record.gates, key=lambda gate: WORST_FIRST.index(gate.outcome)):
        steps |= dict.fromkeys(verdict_text(record, gate, alarms).steps)
    return list(steps)


class _Case(NamedTuple):
    """A gate with the run and the evaluation that it judges."""

    record: RunRecord
    gate: GateRecord
    evaluation: EvaluationRecord | None

    @property
    def failed(self) -> bool:
        return self.gate.outcome is Outcome.FAIL

    @property
    def undecided(self) -> bool:
        return self.gate.outcome is Outcome.INCONCLUSIVE

    @property
    def baseline(self) -> BaselineSource:
        name = self.gate.verdict.condition.get("name")
        if self.evaluation is None:
            return BaselineSource()
        return self.evaluation.baselines.get(str(name), BaselineSource())

    @property
    def wrong(self) -> int:
        """Number of wrong answers of the run whose questions can be asked again; 0 if one cannot."""
        nodeids = [nodeid for _, nodeid in wrong_questions(self.record)]
        if all(nodeids) and not self.record.merged:
            return len(nodeids)
        return 0

    @property
    def unscored(self) -> int:
        if self.evaluation is None:
            return 0
        statuses = self.evaluation.statuses
        return sum(count for name, count in statuses.items() if name in _NO_SCORE)

    @property
    def unasked(self) -> int:
        if self.evaluation is None or not self.evaluation.bank:
            return 0
        return self.gate.verdict.size - self.gate.verdict.asked


_NO_SCORE = frozenset(status.value for status in Status if status.infrastructure)


# The sentence


def _sentence(case: _Case) -> tuple[str, str]:
    verdict = case.gate.verdict
    condition = verdict.condition
    interval = verdict.interval
    shape = _SHAPES.get(str(condition.get("kind")))
    value = condition.get("value", 0.0)
    if interval is None or shape is None or verdict.stated or _unbounded(interval, verdict.metric):
        return "", verdict.claim
    return shape(case, (interval.low, interval.estimate, interval.high), value)


def _unbounded(interval: Interval, metric: str) -> bool:
    """Return whether a bound is unknown, or an end of the scale of abilities, beyond which nothing is known."""
    bounds = (interval.low, interval.estimate, interval.high)
    if any(words.plottable(bound) is None for bound in bounds):
        return True
    return metric.startswith("ability") and max(map(abs, bounds)) >= ABILITY_BOUND


def _limit(case: _Case, bounds: Sequence[float], value: float) -> tuple[str, str]:
    """Return ``75 %`` and `` right, between 61 % and 87 %; at least 60 % are required``."""
    metric = registered_metric(case.gate.verdict.condition.get("metric"))
    numbers = _Numbers(metric is not None and metric.unit == _SHARE, value)
    low, estimate, high = map(numbers.percent, bounds)
    if metric is None or not metric.plain:
        what = f" is the {case.gate.verdict.metric}"
    else:
        what = f" {metric.plain}"
    required = _LIMITS[case.gate.verdict.condition["kind"]].format(numbers.percent(value))
    if bounds[0] == bounds[2]:
        return estimate, f"{what}; {required}"
    return estimate, f"{what}, between {low} and {high}; {required}"


def _difference(case: _Case, bounds: Sequence[float], margin: float) -> tuple[str, str]:
    """Return ``20 points`` and `` below main, between 10 and 36; 10 are allowed``."""
    condition = case.gate.verdict.condition
    metric = registered_metric(condition.get("metric"))
    is_share = metric is not None and metric.unit == _SHARE
    numbers = _Numbers(is_share, margin)
    low, estimate, high = bounds
    name = case.baseline.subject or str(condition.get("name"))
    if name in ("baseline", case.evaluation and case.evaluation.subject.name):
        name = "the baseline"
    shown = numbers.points(estimate)
    unit = ""
    if is_share:
        unit = " point" + "s" * (shown != "1")
    side, allowed = "below", f"{numbers.points(margin)} are allowed"
    if estimate > 0:
        side, allowed = "above", f"{numbers.points(margin)} below are allowed"
    smaller, larger = map(numbers.points, sorted((low, high), key=abs))
    range_text = f", between {smaller} and {larger}"
    if low < 0 < high:
        range_text = f", between {numbers.points(low)} below and {numbers.points(high)} above"
        allowed = f"{numbers.points(margin)} below are allowed"
    elif low == high:
        range_text = ""
    what = ""
    if metric is None or metric.name != "accuracy":
        what = f" in {str(condition.get('metric')).replace('_', ' ')}"
    return f"{shown}{unit}", f" {side} {name}{what}{range_text}; {allowed}"


_SHAPES: dict[str, Callable[[_Case, Sequence[float], float], tuple[str, str]]] = {
    "at_least": _limit,
    "at_most": _limit,
    "not_worse_than": _difference,
}
_LIMITS = {"at_least": "at least {} required", "at_most": "at most {} allowed"}


class _Numbers(NamedTuple):
    """Numbers of one sentence.  Each has the fewest digits by which it differs from the limit as it does in truth."""

    is_share: bool
    limit: float

    def percent(self, value: float) -> str:
        if self.is_share:
            return f"{self._shown(value)} %"
        return self._shown(value)

    def points(self, value: float) -> str:
        return self._shown(abs(value))

    def _shown(self, value: float) -> str:
        if math.isclose(value, self.limit):
            return _plain(self.limit, self.is_share, 6)
        limit = _plain(self.limit, self.is_share, 6)
        texts = [_plain(value, self.is_share, digits) for digits in range(4)]
        return next((text for text in texts if text != limit), texts[-1])


def _plain(value: float, is_share: bool, digits: int) -> str:
    """Return a number without zeros at its end, with so many digits after the point; a share in percent."""
    if is_share:
        text = f"{100 * value:,.{digits}f}"
    else:
        places = max(0, 1 - math.floor(math.log10(abs(value)))) if value else 0  # two digits that count
        text = f"{value:,.{places + digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return {"-0": "0"}.get(text, text)


# The next step

_FAILED = "pytest --adaptive-eval --adaptive-eval-failed={run}"
#: Which case, what to do and by which command; the first that fits counts.
_STEPS: tuple[tuple[Callable[[_Case], object], str, str], ...] = (
    (
        lambda case: case.gate.verdict.notice,
        "record a baseline to compare with",
        "pytest --adaptive-eval --adaptive-eval-missing-baseline=record --adaptive-eval-baseline=baseline.json",
    ),
    (
        lambda case: case.gate.outcome is Outcome.ERROR,
        "correct what the verdict names, and run the gate again; known answers are kept",
        "pytest --adaptive-eval {gate}",
    ),
    (
        lambda case: case.failed and case.wrong and case.baseline.lost,
        "ask the {wrong} again, {lost} of them lost, with the options of this run",
        _FAILED,
    ),
    (
        lambda case: case.failed and case.wrong,
        "ask the {wrong} again, with the options of this run",
        _FAILED,
    ),
    (
        lambda case: case.failed and case.baseline.path,
        "compare both runs",
        "adaptive-eval history --compare {baseline} {run}",
    ),
    (
        lambda case: case.undecided and case.unscored,
        "run the gate again, with the options of this run; the {unscored} without a score are asked again",
        "pytest --adaptive-eval {gate}",
    ),
    (
        lambda case: case.undecided and case.unasked > 0,
        "raise the budget, with the options of this run; answers so far are kept",
        "pytest --adaptive-eval --adaptive-eval-budget={budget}",
    ),
    (
        lambda case: case.undecided and case.evaluation and case.evaluation.bank.path,
        "all questions were asked; add questions, or see which margin so many can decide",
        "adaptive-eval plan {bank} --margin 0.1",
    ),
    (
        lambda case: case.failed or case.undecided,
        "read the answers",
        "adaptive-eval report {run} --html report.html",
    ),
    (
        lambda case: words.promoted(case.record),
        "promote the checkpoint; a script may do so if this exits with 0",
        "adaptive-eval report {run} --exit-code",
    ),
)


def _next_step(case: _Case) -> list[Step]:
    for applies, text, command in _STEPS:
        if applies(case):
            verdict = case.gate.verdict
            bank = ""
            if case.evaluation is not None:
                bank = case.evaluation.bank.path
            counts = {
                "wrong": counted(case.wrong, "wrong question"),
                "lost": str(len(case.baseline.lost)),
                "unscored": counted(case.unscored, "question"),
                "budget": str(min(2 * verdict.asked, verdict.size)),
            }
            names = {
                "run": short_run(case.record),
                "gate": case.gate.nodeid,
                "baseline": case.baseline.path,
                "bank": bank,
            }
            quoted = {name: shlex.quote(value) for name, value in names.items()}
            return [Step(text.format(**counts), command.format(**counts, **quoted))]
    return []


def short_run(record: RunRecord) -> str:
    """Return the start of a run's id, its time to the millisecond, by which commands find it."""
    return record.run.partition("-")[0]


def _alarm_steps(case: _Case, alarms: Sequence[Alarm]) -> list[Step]:
    steps = {}
    for alarm in alarms:
        if case.evaluation is not None and alarm.series.evaluation == case.evaluation.name:
            name = shlex.quote(alarm.series.evaluation)
            text = f"look at the alarm on {alarm.series.quantity}"
            steps[text] = Step(text, f"adaptive-eval history --drift --evaluation {name}")
    return list(steps.values())
