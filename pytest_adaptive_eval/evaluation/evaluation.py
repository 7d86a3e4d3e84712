"""Evaluations of any kind, ready to run: what the plugin asks of them, and how each kind answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.baseline import BaselineFile, read_recorded

if TYPE_CHECKING:
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.models.store import CompletionStore

#: Called with the number of finished steps, the number of all steps, and the present step in words.
Progress = Callable[[int, int, str], None]


class Runner(Protocol):
    """The two ways to run an evaluation. Its kind chooses one; see `Evaluation.administer`."""

    def ask(self, interview: Any) -> None:
        """Ask the questions of an `Interview`, which are tests of their own."""

    def hold(self, evaluation: Evaluation) -> None:
        """Let the evaluation call its models itself."""


@dataclass
class GatePlan:
    """Conditions of gates on one evaluation, which their marks and TOML files declare.

    Args:
        undeclared: Names of gates without marks, whose conditions are not known before they run.
        recorded: Recorded baselines by the name that gates use.
        followed: Functions that return the results of other evaluations of the run, which are baselines by these names.
        missing: Sentences on baselines that do not exist yet, by name.
        loaded: All baselines by name, once `baselines` has read them.
        remarks: Sentences on the predictions of an earlier run, for before the first question.
    """

    conditions: list[Condition] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    recorded: dict[str, BaselineFile[Any]] = field(default_factory=dict)
    followed: dict[str, Callable[[], Result]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    loaded: dict[str, BaselineFile[Any]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def judged(self) -> bool:
        """Whether a gate judges the evaluation, with declared conditions or its own."""
        return bool(self.conditions or self.undeclared)

    @property
    def may_stop(self) -> bool:
        """Whether declared conditions and baselines allow an interview to end early."""
        return not (self.missing or any(condition.whole for condition in self.conditions))

    def baselines(self, evaluation: Evaluation) -> dict[str, BaselineFile[Any]]:
        """Return the baselines by name, including other evaluations of this run."""
        if not self.loaded:
            followed = {}
            for name, result in self.followed.items():
                followed[name] = evaluation.baseline_of(name, result())
            self.loaded = {**self.recorded, **followed}
        return self.loaded

    def result_arguments(self, evaluation: Evaluation, family: int) -> dict[str, Any]:
        """Return keyword arguments of a result that come from the gates."""
        baselines = {}
        for name, file in self.baselines(evaluation).items():
            baselines[name] = file.baseline
        planned = tuple(self.conditions)
        return {"planned": planned, "family": family, "baselines": baselines, "absent": self.missing}


class Evaluation:
    """An evaluation that is ready to run: a dataclass with the settings of its kind.

    Members with a default are as evaluations need them that call their models themselves, such as networks and panels.
    """

    __slots__ = ()
    if TYPE_CHECKING:  # fields or properties of a subclass

        @property
        def name(self) -> str:
            """Name of the evaluation."""

        @property
        def kind(self) -> str:
            """Name of its kind."""

        @property
        def metrics(self) -> tuple[str, ...] | None:
            """Metrics of gates, the default one first; None for all metrics of banks."""

        @property
        def candidate(self) -> str:
            """Subject of gates that name no other."""

        @property
        def subjects(self) -> tuple[str, ...]:
            """Names of all subjects."""

        @property
        def roles(self) -> Sequence[tuple[Any, bool]]:
            """Models, with `name`, `spec` and `options`, each with whether it is a subject; the others are agents."""

        @property
        def outlook(self) -> str:
            """A sentence on the models and the expected cost."""

    def to_json(self) -> dict[str, Any]:
        """Return all that replies depend on, except the models.  A run with equal data continues an interrupted one."""
        raise NotImplementedError

    def hold(self, replies: CompletionStore, progress: Progress) -> Result:
        """Run it with the replies of an interrupted run; a fault of the run becomes an error of the result."""
        raise NotImplementedError

    def void(self, error: str) -> Result:
        """Return the result of an evaluation that could not run."""
        return self.void_result(error)

    def recall(self, account: Mapping[str, Any]) -> Result:
        """Return the recorded result of an earlier run, as a baseline; BaselineError if it is damaged or another."""
        raise NotImplementedError

    @property
    def aliases(self) -> frozenset[str]:
        """Names by which a gate may ask for it."""
        return frozenset({self.name})

    @property
    def population(self) -> str:
        """Key of all that must be equal for two runs to measure the same quantities; empty where none do."""
        return ""

    @property
    def question_bank(self) -> ItemBank | None:
        """Bank of its questions; None where no question is a test of its own."""
        return None

    @property
    def most_questions(self) -> int:
        """Largest number of questions that are tests of their own."""
        return 0

    def changed(self, **fields: Any) -> Self:
        """Return a copy with other fields."""
        copy: Self = replace(self, **fields)  # type: ignore[type-var]  # every kind is a dataclass
        return copy

    def administer(self, runner: Runner) -> None:
        """Have the evaluation run in the way of its kind."""
        runner.hold(self)

    def for_gates(self, gates: GatePlan) -> Evaluation:  # noqa: ARG002  # of `Interview`
        """Return the evaluation with the settings that its gates need, where they are not written."""
        return self

    def undeclared_warning(self, gates: GatePlan) -> str:  # noqa: ARG002  # of `Interview`
        """Return what conditions that only the bodies of gates know cost, and the mark to write; empty if nothing."""
        return ""

    def outlooks(self, gates: GatePlan) -> Iterator[str]:  # noqa: ARG002  # of `Interview`
        """Yield sentences on the expected cost, and on the expected result of each gate."""
        yield f"{self.name}: {self.outlook}"

    def check_gradable(self, *, asks_items: bool) -> None:
        """Refuse items that cannot be graded, before any question.

        Args:
            asks_items: Whether tests do nothing but ask their items and grade the answers.

        Raises:
            ConfigError, BankError: There is such an item.
        """

    def other_models(self) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
        """Yield spec and options of models besides the fixture `model`, and whether each is to hold chats."""
        for member, is_subject in self.roles:
            yield member.spec, member.options, not is_subject

    def check(self, condition: Condition) -> None:
        """Raise a `ConfigError` for a gate that the evaluation cannot decide."""
        condition.check_subjects(self.metrics or (), self.subjects, self.candidate)

    def comparable(self, other: Any) -> bool:
        """Return whether another evaluation of this kind measures the same quantities."""
        return bool(self.population) and self.population == other.population

    def read_baseline(self, spec: str, folders: Sequence[Path]) -> BaselineFile[Any]:
        """Return the recorded result in a file or a history; a ConfigError if the kind has no baseline."""
        if not self.population:
            raise ConfigError(f"{self.name}: the kind {self.kind!r} has no baseline: gate on it by at_least")
        return self.baseline_of(spec, self.recall(read_recorded(spec, folders, self.name, self.kind).account))

    def baseline_of(self, name: str, result: Result) -> BaselineFile[Any]:
        """Return the result of another evaluation of this kind as the baseline `name`."""
        return BaselineFile(result, name)

    def restore(self, data: Mapping[str, Any]) -> Result:
        """Restore a result of another process from its `Result.to_json`."""
        result = Result.from_json(data)
        if result.account:
            return self.measured(result)
        return result

    def measured(self, result: Result) -> Result:
        """Return a result with the quantities of its account that do not travel between processes; none by default."""
        return result

    def void_result(self, error: str, **facts: Any) -> Result:
        """Return the result of an evaluation that could not run, with fields that are known before."""
        members = tuple(SubjectIdentity(member.name) for member, _ in self.roles)
        names = (self.name, self.kind, self.candidate, self.subjects, self.metrics or ())
        return Result(*names, error=error, members=members, **facts)
