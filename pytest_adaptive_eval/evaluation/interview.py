"""Interviews: the assembly of bank, policy and presentation from written settings."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.banks.code import check_code_items
from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.ready import missing_bank, ready_name
from pytest_adaptive_eval.cat.policy import A2_JUDGER, FIXED_FORM, FORM, PAPERS, POLICIES, Policy
from pytest_adaptive_eval.cat.selection import MODES, Selector
from pytest_adaptive_eval.cat.selectors import SELECTORS, Random
from pytest_adaptive_eval.cat.stopping import repeats
from pytest_adaptive_eval.claims.earlier import EarlierAnswers
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import AdaptiveEvalWarning, BankError, BaselineError, ConfigError
from pytest_adaptive_eval.evaluation.evaluation import Evaluation, GatePlan, Runner
from pytest_adaptive_eval.evaluation.spec import Context, EvalSpec, EvaluationKind, Settings
from pytest_adaptive_eval.evaluation.spending import Spending, spending_of
from pytest_adaptive_eval.evaluation.tables import AUTOJUDGER, BANK, GENERATE, WAYS_TO_ASK, EvalTable, InterviewTable
from pytest_adaptive_eval.gates.bets import above_guessing
from pytest_adaptive_eval.gates.planning import default_budget, outlook_sentence
from pytest_adaptive_eval.gates.result import Result, SessionResult
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.grading import JUDGE, needs_judge
from pytest_adaptive_eval.items.item import Item, items_naming
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.items.presentation import (
    PLAIN,
    REPORT_KEY,
    Presentation,
    example_of,
    parse_template,
    presented,
)
from pytest_adaptive_eval.ladder.policy import LADDER, LADDER_POLICY, AdaptiveClimb, Climb
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.judging import RUBRIC, Judge, judged_bank
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.records.baseline import BaselineFile, read_baseline
from pytest_adaptive_eval.records.earlier import EarlierRun
from pytest_adaptive_eval.registry import Service
from pytest_adaptive_eval.text import counted, number
from pytest_adaptive_eval.typed_tables import find_named, refuse_keys, suggestion

if TYPE_CHECKING:
    from pytest_adaptive_eval.gates.condition import Condition

LADDER_ITEMS, BANK_ITEMS = 10, 50  #: Items of a level: of a ladder, as in MACEval, and of a bank that is drawn from.


def item_count(table: EvalTable) -> int:
    """Return the number of items that each level of a task has."""
    if table.queries is not None:
        return table.queries
    if climbed_in_full(table):
        return LADDER_ITEMS
    return BANK_ITEMS


def climbed_in_full(table: EvalTable) -> bool:
    """Return whether levels are asked in order; a number as `stop` of a ladder asks the levels that narrow the area."""
    return policy_name(table) == LADDER and not isinstance(table.stop, int | float)


def make_policy(
    table: EvalTable,
    data: Mapping[str, Any],
    bank: ItemBank,
    find_selector: Callable[[str], Selector | None],
    budget: str | None,
) -> Policy:
    """Return the policy of an evaluation by its written settings; a budget of the command line takes precedence.

    Raises:
        ConfigError: A name is unknown, or a setting does not apply to the policy.
    """
    name = policy_name(table)
    if name == LADDER:
        return _ladder(table, data, bank)
    policy = find_named("policy", name, {**POLICIES, **PAPERS, LADDER: LADDER_POLICY})
    _refuse_foreign_settings(name, table, data)
    changes = {}
    for key in ("floor", "batch", "budget"):
        if key in data:
            changes[key] = data[key]
    if table.stop is not None:
        changes["stop" if isinstance(table.stop, str) else "standard_error"] = table.stop
    if table.selector_name is not None:
        changes["selector"] = _selector(table.selector_name, find_selector)
        changes.setdefault("floor", 0.0)  # gates that draws decide raise it
    elif not bank.calibrated and name != FORM:
        changes["selector"] = SELECTORS["random"]
    elif bank.parts and name == "decide":
        changes["selector"] = SELECTORS["leverage"]  # what bets on an ability component need
    elif bank.parts and name not in (FIXED_FORM, FORM, *PAPERS):
        changes["selector"] = SELECTORS["information"]  # informs about every ability component
    if table.selector_name == AUTOJUDGER:
        changes.setdefault("batch", 1)  # each choice needs all earlier answers
    if budget is not None:
        changes["budget"] = budget
    if {"selector", "floor"} & changes.keys():
        changes |= {"assisted": False, "even_budget": False}  # designs and draws are for the policy as it is
    return replace(policy, **changes)


def _refuse_foreign_settings(name: str, table: EvalTable, data: Mapping[str, Any]) -> None:
    """Refuse settings that the named policy of a bank, or its selector, does not have."""
    refuse_keys(data, ("stop_at",), "goes with the policy 'ladder'")
    if name in (FIXED_FORM, FORM):
        refuse_keys(data, ("predict_from",), "does not go with a form, which asks all checkpoints the same: remove it")
    if name == FIXED_FORM:
        keys = ("selector", "floor", "stop")
        refuse_keys(data, keys, "does not go with a fixed form, which is drawn uniformly and asked in full: remove it")
    if name == FORM:
        refuse_keys(data, ("selector", "floor", "stop"), "does not go with a form: remove it")
    if name in PAPERS:
        refuse_keys(data, ("selector", "stop"), "does not go with the policy of a paper: remove it")
    if table.selector_name != AUTOJUDGER:
        refuse_keys(data, ("interview",), f"goes with selector = '{AUTOJUDGER}'")


def policy_name(table: EvalTable) -> str:
    """Return the name of the policy; a task is climbed unless another is written."""
    if table.policy is not None:
        return table.policy
    if table.task:
        return LADDER
    return "decide"


def _ladder(table: EvalTable, data: Mapping[str, Any], bank: ItemBank) -> Policy:
    if not table.task:
        raise ConfigError("the policy 'ladder' administers the levels of a task, and a bank has none: name a task")
    refuse_keys(data, ("formats",), 'does not go with a ladder: write policy = "decide"')
    keys = ("selector", "floor", "batch", "budget", "predict_from")
    refuse_keys(data, keys, "does not go with a ladder, which is asked level by level: remove it; set queries")
    reason = (
        "does not go with a ladder, which asks each item once and measures no decoding noise: remove it, or draw from "
        "the task with the policy 'decide'"
    )
    refuse_keys(data, ("samples", "repeat"), reason)
    ladder: Climb | AdaptiveClimb
    if isinstance(table.stop, int | float):
        refuse_keys(
            data, ("stop_at",), f"does not go with stop = {table.stop}, for which all levels are asked: remove it"
        )
        ladder = AdaptiveClimb(item_count(table), float(table.stop), float(bank.report.get("guess", 0.0)))
    elif table.stop in (None, "decision"):
        guess = bank.report.get("guess_by_level", ())
        ladder = Climb(item_count(table), float(table.stop_at), table.stop == "decision", guess)
    else:
        raise ConfigError(
            f'stop is {table.stop!r}, expected "decision" or the width of the area\'s interval in levels on a ladder'
        )
    return replace(LADDER_POLICY, selector=ladder, batch=ladder.batch)


def _selector(name: str, find_selector: Callable[[str], Selector | None]) -> Selector:
    selector = SELECTORS.get(name) or find_selector(name)
    if selector is None:
        names = suggestion(name, [*SELECTORS, AUTOJUDGER])
        raise ConfigError(f"selector {name!r} is not known; {names}, or install a plugin that provides it")
    if isinstance(selector, type) or not isinstance(selector, Selector) or selector.mode not in MODES:
        raise ConfigError(
            f"selector {name!r}: a plugin gave {selector!r:.80}, expected an object with name, mode "
            f"({' or '.join(map(repr, MODES))}), needs_calibration and criterion(view)"
        )
    return selector


#: Notes on a bank without parameters.
UNCALIBRATED = "uncalibrated bank"
UNIFORM = f"{UNCALIBRATED}, uniform draws"
#: Keys of an evaluation that say how its items are presented.
PRESENTATION_KEYS = ("ask", "template", "examples", "system")


def check_keys(table: EvalTable, data: Mapping[str, Any]) -> None:
    """Check the settings of the presentation that need no bank.

    Raises:
        ConfigError: A setting is unknown, has no effect, or excludes another.
    """
    fields = parse_template(PLAIN if table.template is None else table.template).fields
    if find_named("ask", table.ask, WAYS_TO_ASK) is not None:
        refuse_keys(
            data,
            ("system", "samples", "repeat"),
            f'goes with written answers, and ask = "{table.ask}" has none: remove it',
        )
    if table.examples and "examples" not in fields:
        raise ConfigError("examples are given, and the template has no {examples}: add it, or remove examples")
    if not table.examples and table.template is not None and "examples" in fields:
        raise ConfigError("template has {examples}, and there are none: name a file of items as examples")
    if table.system:
        refuse_keys(data, ("formats",), "and a system text exclude each other: write it into the items")
    if table.template is not None or table.examples:
        refuse_keys(data, ("formats",), "and a template exclude each other, since a format leaves out the prompt")


def presentation_of(table: EvalTable, read: Callable[[str], Sequence[Item]]) -> Presentation | None:
    """Return how items are presented; None if as the bank has them.

    Raises:
        ConfigError: An item of the examples is none.
    """
    normalization = WAYS_TO_ASK[table.ask]
    if table.template is None and not table.examples and normalization is None and not table.system:
        return None
    template = parse_template(PLAIN if table.template is None else table.template)
    examples = tuple(map(example_of, read(table.examples) if table.examples else ()))
    likelihood = None
    if normalization is not None:
        likelihood = ChoiceLikelihood(normalization, template.delimiter, template.candidates)
    return Presentation(template.text, examples, likelihood, template.delimiter, template.candidates, str(table.system))


@dataclass(frozen=True, slots=True)
class Interview(Evaluation):
    """A bank, a policy and a seed, ready for a `Session`; one subject is asked the items.

    Args:
        seed: Seed as the user set it; recorded.
        stream: Seed of this evaluation's own draws, from `seed` and `name`, or `group`.
        group, variant, series: See `EvalSpec`.
        lead: Interviewer and embeddings of the selector ``autojudger``, in words; else empty.
        samples: Administrations of each item; its score is their mean.
        repeat: Items that are asked again at the end, to measure decoding noise: a count, or a share of those asked.
            None until the subject is known, where the user sets nothing; see `repeat_of` and `stopping.repeats`.
        interviewer: Spec and options of the model that leads the interview; None where no model does.
        judge: Model that grades the answers; None where code does.
        max_tokens: Cap on answers; None for the subject's own.
        must_pass: Items that are asked first, whatever the draws, and that must all be right; in the bank's order.
        open_budget: Whether the settings lack a budget, which the gates then set, see `gates.planning.default_budget`.
        wrong_answer: Answer that the test has to fail; None where any made-up one serves.
        predict_from: What predicts, see `EvalTable`; the bank for a form, whose draws all checkpoints share.
        predictions: Earlier run whose answers do, see `predicted_by`.
    """

    metrics = None
    name: str
    bank: ItemBank
    policy: Policy
    seed: int
    stream: int
    budget: int
    notes: tuple[str, ...] = ()
    path: Path | None = None
    lead: str = ""
    samples: int = 1
    repeat: int | str | None = 0
    interviewer: tuple[str, Mapping[str, Any]] | None = None
    judge: Judge | None = None
    max_tokens: int | None = None
    must_pass: tuple[int, ...] = ()
    open_budget: bool = False
    spending: Spending = field(default_factory=Spending)
    wrong_answer: str | None = None
    written: frozenset[str] = frozenset()
    group: str = ""
    variant: str = ""
    series: str = ""
    predict_from: str = BANK
    predictions: EarlierRun | None = None

    def administer(self, runner: Runner) -> None:
        """Ask the questions, each in a test of its own."""
        runner.ask(self)

    def for_gates(self, gates: GatePlan) -> Interview:
        """Return the interview with the uniform draws and the budget that its gates need, where neither is written."""
        interview = self._drawn_evenly(gates)
        by_draws = any(condition.by_draws for condition in gates.conditions) or gates.undeclared
        if by_draws and interview._for_gates != interview.policy:
            note = (
                f"{100 * self._for_gates.floor:.0f} % of the questions are drawn uniformly, since a gate is decided by "
                "the draws; floor sets this share"
            )
            repeat = None
            if "repeat" in self.written or self.samples > 1:
                repeat = self.repeat
            interview = replace(self, policy=self._for_gates, notes=(*self.notes, note), repeat=repeat)
        return interview._with_needed_budget(gates)

    def _drawn_evenly(self, gates: GatePlan) -> Interview:
        """Return the interview with uniform draws, where no gate is on scores that the bank predicts."""
        if not gates.conditions or gates.undeclared or self.policy.levelled or isinstance(self.policy.selector, Random):
            return self
        if self.written & {"policy", "selector", "floor"}:
            return self
        if any(condition.measure.by_scores for condition in gates.conditions):
            return self
        policy = replace(self.policy, selector=SELECTORS["random"], floor=0.0, assisted=False, even_budget=False)
        note = "questions are drawn uniformly, since no gate is on their scores, and the bank predicts nothing else"
        return replace(self, policy=policy, notes=(*self.notes, note))

    def predictable(self, gates: GatePlan) -> bool:
        """Whether answers of an earlier run may predict the answers of this one.

        They do for a gate on the bank's sum of scores, unless another compares with a baseline, whose answers or draws
        the interview then follows.
        """
        if self.policy.levelled is not None or any(c.kind == "not_worse_than" for c in gates.conditions):
            return False
        claims = [claim for c in gates.conditions if c.by_draws for claim in c.claims(self.bank, {})]
        return any(claim.sought is not None for claim in claims)

    def predicted_by(self, earlier: EarlierRun) -> Interview:
        """Return the interview with predictions of an earlier run, and with draws of its own for them.

        Draws of an uncalibrated bank lean to items whose prediction is unsure, if no selector is written.
        """
        policy = self.policy
        notes = self.notes
        if not self.bank.calibrated and policy.stop == "decision" and "selector" not in self.written:
            policy = policy.by_predictions
            notes = tuple(UNCALIBRATED if note == UNIFORM else note for note in notes)
        return replace(self, predictions=earlier, stream=earlier.stream(self.stream), policy=policy, notes=notes)

    def _with_needed_budget(self, gates: GatePlan) -> Interview:
        """Return the interview with the budget that its gates need, where none is written and they need more."""
        if not self.open_budget:
            return self
        recorded = {name: file.baseline for name, file in gates.recorded.items()}
        needed = default_budget(gates.conditions, self.bank, self.policy, recorded) + len(self.must_pass)
        budget = min(needed, len(self.bank))
        if budget <= self.budget:
            return self
        return replace(self, budget=budget, policy=replace(self.policy, budget=budget))

    @property
    def _for_gates(self) -> Policy:
        """Policy of an interview that feeds a gate."""
        if "floor" in self.written:
            return self.policy
        return self.policy.feeding_gates()

    @property
    def kind(self) -> str:
        """``bank``, or ``ladder`` of a task."""
        if self.path:
            return "bank"
        return "ladder"

    @property
    def aliases(self) -> frozenset[str]:
        """Names by which a gate may ask for it."""
        return frozenset({self.name, self.bank.name})

    def check(self, condition: Condition) -> None:
        """Raise a ConfigError for a gate that the bank or the policy cannot decide."""
        condition.check(self.bank, climbed=self.policy.stop == "level")
        condition.measure.check_samples(condition, self.samples)
        if isinstance(ladder := self.policy.selector, Climb | AdaptiveClimb):
            condition.measure.check_ladder(ladder)
            levels = len(self.bank) // ladder.queries
            if condition.measure.by_levels and condition.kind == "at_least" and condition.value > levels:
                call = condition.measure.call(condition)
                raise ConfigError(f"{call}: the task has {levels} levels here, so the gate cannot pass: ask for fewer")
        reason = self._for_gates.design_based
        if reason and not condition.measure.by_levels:
            raise ConfigError(f"{self.name}: this interview cannot feed a gate: {reason}")

    def comparable(self, other: Any) -> bool:
        """Return whether another interview asks the same items."""
        return bool(other.bank.content_hash == self.bank.content_hash)

    def read_baseline(self, spec: str, folders: Sequence[Path]) -> BaselineFile[Baseline]:
        """Return the recorded answers of an earlier run; see `records.baseline.read_baseline`."""
        return read_baseline(spec, folders, self.bank, self.name)

    def baseline_of(self, name: str, result: Result) -> BaselineFile[Baseline]:
        """Return the answers of another interview of the run as the baseline `name`."""
        assert isinstance(result, SessionResult)
        if result.fault:
            raise BaselineError(f"the baseline {name!r} gave no answers to compare with: {result.fault}")
        subject = result.subject
        climbed = result.climb is not None
        baseline = Baseline(subject.get("name") or name, result.scores_by_item, result.log, climbed=climbed)
        # without requests: two tests of one run may differ, and the reader sees both
        where = f"evaluation {name!r}"
        decoding = subject.get("decoding", "")
        return BaselineFile(baseline, where, decoding, checkpoint=subject.get("checkpoint", ""))

    def session_arguments(self, gates: GatePlan, family: int) -> dict[str, Any]:
        """Return keyword arguments of `Session`: claims that may end it early, and the baseline that it follows."""
        baselines = {}
        for name, file in gates.baselines(self).items():
            baselines[name] = file.baseline
        claims = []
        for c in gates.conditions:
            if c.by_draws:
                for claim in c.claims(self.bank, baselines):
                    claims.append(claim)
        claims += self._above_guessing(gates, baselines)
        may_stop = gates.may_stop and not gates.undeclared
        earlier = self._earlier
        return {
            "earlier": earlier,
            "claims": claims if may_stop else (),
            "family": family,
            "baseline": self._followed_baseline(list(baselines.values())),
            "take_all": self.must_pass,
        }

    @property
    def _earlier(self) -> EarlierAnswers | None:
        """Scores that predict the scores of this interview."""
        if self.predictions is None:
            return None
        return self.predictions.on(self.bank)

    def _above_guessing(self, gates: GatePlan, baselines: Mapping[str, Baseline]) -> list[Claim]:
        """Return the claim of an accuracy above guessing for each threshold below it, whose PASS needs both."""
        bank = self.bank
        thresholds = []
        for c in gates.conditions:
            if c.metric == "accuracy" and c.kind not in ("not_worse_than", "at_most"):
                thresholds.append(c)
        claims = []
        for c in thresholds:
            for claim in c.claims(bank, baselines):
                if claim.total <= len(bank) / 2.0:
                    claims.append(claim)
        if not claims or not all(len(item.choices) > 1 for item in bank.items):
            return []
        total = sum(1.0 / len(item.choices) for item in bank.items)
        return [above_guessing(claim, total) for claim in claims if claim.total <= total]

    def _followed_baseline(self, baselines: list[Baseline]) -> Baseline | None:
        """Return the baseline by whose draws the session selects items."""
        drawn = [baseline for baseline in baselines if not baseline.climbed]
        partial = [baseline for baseline in drawn if not baseline.complete]
        if partial and len(drawn) > 1:
            raise BaselineError(
                f"{self.name}: several baselines, and {partial[0].name!r} answered some items only: record it "
                "on the whole bank, or compare in evaluations of their own"
            )
        if drawn:
            return drawn[0]
        return None

    def undeclared_warning(self, gates: GatePlan) -> str:
        """Return that the whole budget is asked where only the bodies of gates know conditions, and what to write."""
        if not gates.undeclared or self.policy.stop != "decision" or not gates.may_stop:
            return ""
        names = f"{gates.undeclared[0]}{f' and {len(gates.undeclared) - 1} more' * (len(gates.undeclared) > 1)}"
        return (
            f"the condition of {names} is in the test's body, which runs after the interview: it asks its whole "
            f"budget, {self.budget * self.samples} questions. To stop at the verdict, put "
            f'@pytest.mark.adaptive_gate("{self.name}", at_least=...) on the test, and '
            "`assert adaptive_eval.verdicts` into it"
        )

    def outlooks(self, gates: GatePlan) -> Iterator[str]:
        """Yield sentences on conditions in tests' bodies, the interviewer, the cost, and each gate."""
        warning = self.undeclared_warning(gates)
        if warning:
            yield f"WARNING: {self.name}: {warning}"
        if self.lead:
            yield f"{self.name}: {self.lead}"
        cost = self.spending.outlook(self.bank, self.most_questions, self.max_tokens)
        if cost:
            yield f"{self.name}: {cost}"
        if self.predictions is not None:
            yield f"{self.name}: {self.predictions.source.sentence}"
        if self.policy.stop == "decision":
            yield from self._outlooks_of_gates(gates)

    def _outlooks_of_gates(self, gates: GatePlan) -> Iterator[str]:
        """Yield the expected result of each gate with the budget; the first sentence mentions a default budget."""
        by_default = self.open_budget and self.policy.budget == self.budget
        remark = ". No budget is written: this one follows from the gates" if by_default else ""
        earlier = self._earlier
        for condition in gates.conditions:
            if condition.by_draws:
                recorded = gates.recorded.get(condition.name)
                baseline = recorded.baseline if recorded else None
                must_pass = len(self.must_pass)
                sentence = outlook_sentence(
                    condition,
                    self.bank,
                    self.policy,
                    self.budget,
                    self.name,
                    baseline,
                    must_pass=must_pass,
                    earlier=earlier,
                )
                yield f"{sentence}{remark}"
                remark = ""
        if claims := self._above_guessing(gates, {}):
            floor = number(claims[0].total / len(self.bank))
            yield (
                f"WARNING: {self.name}: guessing scores {floor}, and PASS needs an accuracy above that too: set "
                f"at_least above {floor}"
            )

    def other_models(self) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
        """Yield spec and options of the interviewer and the judge, which hold chats."""
        for model in filter(None, (self.interviewer, self.judge.model if self.judge else None)):
            yield *model, True

    def restore(self, data: Mapping[str, Any]) -> SessionResult:
        """Restore a result of another process from its `SessionResult.to_json`."""
        return SessionResult.restored(data, self.bank)

    def check_gradable(self, *, asks_items: bool) -> None:
        """Refuse items of a judge where there is none, and code that cannot be called; see the base class."""
        items = self.bank.items
        for item in items_naming(items, JUDGE) if asks_items and self.judge is None else ():
            if item.custom is needs_judge:
                needs_judge(item, "")
        check_code_items(items)

    @property
    def must_pass_ids(self) -> list[str]:
        """Ids of the items that must pass."""
        return [str(self.bank.ids[n]) for n in self.must_pass]

    @property
    def allows_for_noise(self) -> bool:
        """Whether intervals of this policy can allow for decoding noise.

        The interval of a ladder takes items as draws from the task, which includes decoding noise. Of other policies
        without an interval by the draws no verdict depends on it.
        """
        return self.policy.levelled is None and not self.policy.design_based

    def repeat_of(self, *, samples: bool) -> int | str | None:
        """Return which items of a subject are asked again, see `repeat`, by whether its decoding samples.

        Items that set ``meta.sample`` themselves are not asked again by default.
        """
        by_default = self.repeat is None
        if by_default and (not samples or _item_with_sample(self.bank) is not None):
            return 0
        return self.repeat

    @property
    def question_bank(self) -> ItemBank:
        """The bank."""
        return self.bank

    @property
    def most_questions(self) -> int:
        """Largest number of administrations: samples and repeats of the items in the budget."""
        return self.questions(self.repeat)

    def questions(self, repeat: int | str | None) -> int:
        """Return the largest number of administrations of a subject, see `repeat_of`."""
        return self.budget * self.samples + repeats(repeat, self.budget)

    def decodings(self, repeat: int | str | None) -> int:
        """Return the number of answers that a score is the mean of, where decoding noise is measured; else 0.

        Args:
            repeat: See `repeat_of`.
        """
        if self.questions(repeat) > self.budget:
            return self.samples
        return 0


class _Assembly(NamedTuple):
    """Bank, models and repeats of an interview, from its written settings."""

    spec: EvalSpec
    settings: Settings
    context: Context

    @property
    def _folders(self) -> tuple[Path, Path]:
        return self.spec.base, self.settings.root

    def bank(self, seed: int) -> tuple[ItemBank, Path | None]:
        """Return the bank as it is administered, and its path unless it was generated."""
        if self.spec.table.task:
            return self._generated(seed), None
        file, category = self.spec.table.source
        path = self._bank_path(file)
        bank = self.context.read(path)
        if category is not None:
            bank = bank.only(category)
        if self.spec.table.formats is not None:
            from pytest_adaptive_eval.items.modalities import asked_in_formats

            bank = asked_in_formats(bank, self.spec.table.formats)
        return self._presented(bank, path), path

    def _presented(self, bank: ItemBank, path: Path) -> ItemBank:
        """Return the bank as its items are asked, after checking each, since all are asked in one form."""

        def read(path: str) -> Sequence[Item]:
            return self._read(self._bank_path(path)).items

        presentation = presentation_of(self.spec.table, read)
        if presentation is None or bank.report.get("textless"):
            return presented(bank, None)
        hidden = []
        try:
            for item in bank.items:
                presentation.check(item)
                if presentation.hides_choices(item):
                    hidden.append(item.id)
        except BankError as error:
            raise BankError(f"{path}: {error}") from None
        if hidden:
            message = (
                f"{path}: the template shows no choices of {counted(len(hidden), 'item')}, such as {hidden[0]!r}: add "
                "{choices} to it, or meta.choices_shown = false to items whose choices are not asked"
            )
            warnings.warn(AdaptiveEvalWarning(message), stacklevel=2)
        return presented(bank, presentation)

    def _read(self, path: Path) -> ItemBank:
        return read_bank(path, graders=self.settings.graders)

    def _generated(self, seed: int) -> ItemBank:
        from pytest_adaptive_eval.tasks.bank import asked_without, task_bank

        table = self.spec.table
        family = find_named("task", table.task, self.context.tasks())
        if table.size is not None:
            family = family.of_size(table.size)
        scaled: dict[str, Any] = {}
        if table.bank:
            from pytest_adaptive_eval.tasks.difficulty import level_parameters

            reference = self._read(self._bank_path(table.bank))
            levels = family.levels if table.levels is None else table.levels
            difficulty = level_parameters(reference, table.task, levels, same_form=family.has_form)
            scaled = {"difficulty": difficulty, "scale": reference.scale}
        bank = task_bank(
            family,
            queries=item_count(table),
            levels=table.levels,
            seed=seed,
            pictures=self.settings.folder / "pictures",
            guess_by_level=climbed_in_full(table),
            **scaled,
        )
        if table.formats is None:
            return bank
        return asked_without(bank, family, table.formats)

    def _bank_path(self, path: str) -> Path:
        if ready_name(path):
            return Path(path)
        folders = self._folders
        if (existing := find_input(Path(path).expanduser(), folders)) is not None:
            return existing
        paths = dict.fromkeys(str(folder / Path(path).expanduser()) for folder in folders)
        raise ConfigError(missing_bank(list(paths)))

    def judge(self) -> Judge | None:
        """Return the judge that grades the answers, which is loaded at its first judgment."""
        if (table := self.spec.table.judge) is None:
            return None
        if not table.model:
            raise ConfigError('judge has no model: write judge = { model = "http://HOST:PORT/v1#MODEL" }')
        kind, spec = resolve(table.model, self._folders, chats=True)
        load = partial(kind.load, spec, table.options, self.settings.folder / "cache", chats=True)
        return Judge(kind.model_name(spec), load, table.rubric or RUBRIC, table.max_tokens, (spec, table.options))

    def interviewer(self, bank: ItemBank, seed: int) -> tuple[Selector, tuple[str, Mapping[str, Any]] | None, str]:
        from pytest_adaptive_eval.evaluation.interviewing import interviewed

        name = hashlib.sha256(f"{seed}:{self.spec.name}".encode()).hexdigest()[:16]
        return interviewed(
            self.spec.table.interview or InterviewTable(),
            bank,
            self._folders,
            cache=self.settings.folder / "cache",
            decisions=self.settings.folder / "decisions" / f"{name}.sqlite",
            profile=self.spec.table.policy == A2_JUDGER,
            fresh=self.settings.fresh,
            seed=seed,
        )

    def decodings(self, bank: ItemBank, policy: Policy) -> tuple[int, int | str | None]:
        """Return the samples of each item, and the items that are asked again at the end."""
        samples = self.spec.table.samples
        repeat = self.spec.table.repeat
        if self.spec.table.ask != GENERATE:
            return 1, 0
        if repeat is None and (samples > 1 or policy.levelled is not None or policy.design_based):
            repeat = 0
        if samples == 1 and repeat is None:  # `Interview.repeat_of` looks at the items if they are to be asked again
            return 1, None
        if samples == 1 and repeats(repeat, len(bank)) == 0:
            return 1, 0
        if (item_id := _item_with_sample(bank)) is not None:
            raise ConfigError(
                f"item {item_id!r} sets meta.sample, which samples and repeat count by: remove it from the bank, or "
                "remove samples and repeat"
            )
        return samples, repeat


def _build(spec: EvalSpec, settings: Settings, context: Context) -> Interview:
    """Read the bank and check every setting."""
    table = spec.table
    assembly = _Assembly(spec, settings, context)
    seed = spec.seed(settings)
    lead, interviewer = "", None
    bank, path = assembly.bank(seed)
    find_selector = context.selector
    if table.selector_name == AUTOJUDGER:
        judger, interviewer, lead = assembly.interviewer(bank, seed)
        find_selector = {AUTOJUDGER: judger}.get
    judge = assembly.judge()
    if judge is None:
        bank = bank
    else:
        bank = judged_bank(bank, judge)
    policy = make_policy(table, spec.data, bank, find_selector, settings.budget)
    budget = policy.budget_on(bank)
    open_budget = policy.stop == "decision" and table.budget is None and settings.budget is None
    must_pass = _must_pass(bank, table.must_pass, len(bank) if open_budget else budget)
    samples, repeat = assembly.decodings(bank, policy)
    kind, named = _named_kind(spec, settings)
    if bank.report.get("textless") and not kind.answers_ids:
        ready = ready_name(path or "")
        if ready:
            texts = f"import FILE --ready {ready}"
        else:
            texts = "calibrate --items ITEMS.jsonl"
        raise ConfigError(
            f"the bank {path} has items without texts, so there is nothing to ask: add texts ({texts}), write prompts, "
            "or name a model that knows ids, harness:NAME or replay:FILE"
        )
    kind.check_items(named, bank.items)
    notes = bank_notes(bank, policy.selector.name, climbed=policy.levelled is not None)
    if table.policy == FIXED_FORM:
        seed = table.seed
        notes.insert(0, "a fixed form, drawn once: all checkpoints get the same items and share the sampling error")
    stream = int.from_bytes(hashlib.sha256(f"{seed}:{spec.group or spec.name}".encode()).digest()[:8])
    return Interview(
        spec.name,
        bank,
        policy,
        seed,
        stream,
        budget,
        tuple(notes),
        path,
        lead,
        samples,
        repeat,
        interviewer,
        judge,
        table.max_tokens,
        must_pass,
        open_budget,
        spending_of(table, policy.stop),
        table.wrong_answer,
        frozenset(spec.data),
        spec.group,
        spec.variant,
        spec.series,
        BANK if table.policy in (FIXED_FORM, FORM) else table.predict_from,
    )


def _check(table: EvalTable, data: Mapping[str, Any]) -> None:
    """Refuse settings of banks with a task, settings of tasks with a bank, and a contradictory presentation."""
    if not table.bank and not table.task:
        raise ConfigError(
            'bank is missing; name a bank folder or a JSONL of items: bank="my.bank", or a task that is generated: '
            'task="addition"'
        )
    if "task" in data:
        of_banks = ("must_pass", *PRESENTATION_KEYS)
        refuse_keys(data, of_banks, "and task exclude each other: remove one of them")
    else:
        of_tasks = ("levels", "queries", "stop_at", "size")
        refuse_keys(data, of_tasks, "goes with a task, and there is none: remove it, or name a task")
        check_keys(table, data)


_SECTION = Service("interview", "pytest_adaptive_eval.reports.interview:SECTION")
INTERVIEW = EvaluationKind(EvalTable, None, _build, _check, _SECTION.load)  #: The kinds ``bank`` and ``ladder``.


def _named_kind(spec: EvalSpec, settings: Settings) -> tuple[ModelKind, str]:
    """Return the kind of the model that a setting or the file names, and how `resolve` writes the model."""
    named = settings.models.get(spec.name) or settings.model or spec.table.model
    if named is not None:
        with contextlib.suppress(ConfigError):  # a model that only a hook knows, or a mistake that loading reports
            return resolve(named, [spec.base, settings.root])
    return ModelKind(), ""


def _must_pass(bank: ItemBank, names: Sequence[str], budget: int) -> tuple[int, ...]:
    """Return the items of these ids or categories, in the bank's order, which the budget must hold."""
    categories = dict.fromkeys(filter(None, bank.categories))
    if names:
        ids = {str(item): n for n, item in enumerate(bank.ids)}
    else:
        ids = {}
    chosen: set[int] = set()
    for name in names:
        if name in ids:
            chosen.add(ids[name])
        elif name in categories:
            chosen.update(n for n, category in enumerate(bank.categories) if category == name)
        else:
            raise ConfigError(
                f"must_pass: {name!r} is neither an item nor a category of the bank {bank.name!r}; "
                f"{suggestion(name, [*categories, *ids])}"
            )
    if len(chosen) > budget:
        raise ConfigError(
            f"must_pass has {len(chosen)} items, and the budget is {budget}: raise it, at least to "
            f"{min(2 * len(chosen), len(bank))}, since the accuracy rests on the other items"
        )
    return tuple(sorted(chosen))


def _item_with_sample(bank: ItemBank) -> str | None:
    for item in items_naming(bank.items, "sample"):
        if "sample" in item.meta:
            return item.id
    return None


def bank_notes(bank: ItemBank, selector: str, *, climbed: bool) -> list[str]:
    """Return notes on the bank for readers of any verdict, by its selector or ladder."""
    notes = []
    for level, count in bank.report.get("repeated", {}).items():
        notes.append(f"{counted(count, 'question')} of level {level} repeat others: the task has no more")
    if not bank.calibrated and not climbed:
        return [UNIFORM if selector == "random" else UNCALIBRATED, *notes]
    if "ready" in bank.report:
        notes.append(f"ready bank: {bank.report['ready']}")
    if bank.report.get("trusted") is False:
        notes.append("the bank failed its quality checks and was written by force")
    if REPORT_KEY in bank.report:
        notes.append(
            "items are asked in another form than the bank was calibrated in: gates on accuracy hold, and abilities "
            "are on no scale"
        )
    return notes
