"""Studies as written in TOML: evaluations of several models, or of one model in a network.

A kind of study is a module that offers a `StudyKind`: its settings, its metrics and the construction of its plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.evaluation import Settings
from pytest_adaptive_eval.evaluation.tables import MemberTable, StudyTable
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.base import SubjectIdentity, Usage
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.reuse import CompletionStore
from pytest_adaptive_eval.registry import Service, registered
from pytest_adaptive_eval.typed_tables import located, read_table, refuse_keys

if TYPE_CHECKING:
    from pytest_adaptive_eval.gates.result import Result
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.models.base import Model
    from pytest_adaptive_eval.tasks import TaskFamily

#: Called with the number of finished steps, the number of all steps, and the present step in words.
Progress = Callable[[int, int, str], None]


class StudyPlan(Protocol):
    """A study that is ready to run."""

    @property
    def name(self) -> str:
        """Name of the evaluation."""

    @property
    def candidate(self) -> str:
        """Subject of gates that name no other."""

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all subjects."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of gates, the default one first."""

    @property
    def roles(self) -> Sequence[tuple[Member, bool]]:
        """Models of the study, each with whether it is a subject; the others are agents."""

    @property
    def outlook(self) -> str:
        """A sentence on the models and the expected cost."""

    def to_json(self) -> dict[str, Any]:
        """Return all that replies depend on, except the models.  A run with equal data continues an interrupted one."""

    def hold(self, replies: CompletionStore, progress: Progress) -> Result:
        """Run the study with the replies of an interrupted run; a fault of the run becomes an error of the result."""

    def check(self, condition: Condition) -> None:
        """Raise a `ConfigError` for a gate on a metric that is not measured."""

    def void(self, error: str) -> Result:
        """Return the result of a study that could not run."""

    def restore(self, data: Mapping[str, Any]) -> Result:
        """Restore a result of another process from its `Result.to_json`."""


@runtime_checkable
class ComparablePlan(StudyPlan, Protocol):
    """A study whose runs can be compared with each other."""

    @property
    def population(self) -> str:
        """Key of all that must be equal for two runs of the study to measure the same quantities."""

    def recall(self, account: Mapping[str, Any]) -> Result:
        """Return the recorded result of an earlier run, as a baseline.

        Raises:
            BaselineError: The account is damaged, or that of another study.
        """


@dataclass(frozen=True, slots=True)
class StudyContext:
    """Task families, and files in folders that relative paths are looked up in, in order."""

    folders: tuple[Path, ...]
    tasks: Callable[[], Mapping[str, TaskFamily]]
    read: Callable[[Path], ItemBank]


class StudyKind(NamedTuple):
    """A kind of study: its settings, its metrics, and the function that makes its plan."""

    table: type[StudyTable]
    metrics: tuple[str, ...]
    build: Callable[[StudySpec, Settings, StudyContext], StudyPlan]


@dataclass(frozen=True, slots=True)
class StudySpec:
    """One study as written by the user.

    Raises:
        ConfigError: A key is unknown, or a value has a wrong type.
    """

    data: Mapping[str, Any]
    where: str
    base: Path
    kind: StudyKind
    table: StudyTable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        written = {key: value for key, value in self.data.items() if key != "gate"}  # gates have lines of their own
        object.__setattr__(self, "table", read_table(self.kind.table, written, self.where))
        if self.table.model is None:
            with located(self.where):
                refuse_keys(self.data, ("model_options",), "goes with a model, and there is none: write model = ...")

    @property
    def name(self) -> str:
        """The evaluation's own name, else its kind."""
        return self.table.kind if self.table.name is None else self.table.name

    def build(self, settings: Settings, context: StudyContext) -> StudyPlan:
        """Return the plan, after a check of every setting and of the models' paths.

        Raises:
            ConfigError: Anything that the user can correct.
        """
        with located(self.where):
            return self.kind.build(self, settings, replace(context, folders=(self.base, *context.folders)))

    def seed(self, settings: Settings) -> int:
        """Return the seed of the run, else of the file."""
        return self.table.seed if settings.seed is None else settings.seed


@dataclass(frozen=True, slots=True)
class Member:
    """A model that takes part: a unique name, and the folder or ``http://HOST:PORT/v1#MODEL`` that is loaded."""

    name: str
    spec: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remote(self) -> bool:
        """Whether the model uses no memory of this machine."""
        return resolve(self.spec, chats=True)[0].remote


def members(
    table: StudyTable, settings: Settings, others: Sequence[str | MemberTable], folders: Sequence[Path]
) -> list[Member]:
    """Return the candidate, which `settings` may name, and the other members of a study.

    Args:
        folders: Folders that relative paths are looked up in, in order. The first is that of the file, which for a
            model of the command line is the last.

    Raises:
        ConfigError: There is no candidate, two members have one name, or one is neither an existing folder nor on a
            server.
    """
    if settings.model is not None:
        chosen = MemberTable(model=settings.model, options=dict(settings.model_options))
        candidate = _member(chosen, (*folders[1:], *folders[:1]))
    elif table.model is not None:
        candidate = _member(MemberTable(model=table.model, options=table.model_options), folders)
    else:
        raise ConfigError("there is no candidate: name one with --adaptive-eval-model, or in this file (model = ...)")
    entries = [MemberTable(model=entry) if isinstance(entry, str) else entry for entry in others]
    models = [
        _capped(model, table.max_tokens) for model in (candidate, *(_member(entry, folders) for entry in entries))
    ]
    names = [member.name for member in models]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f'{names.count(name)} models are called {name!r}: give them names, {{ name = "...", model = "..." }}'
            )
    return models


def _member(entry: MemberTable, folders: Sequence[Path]) -> Member:
    if not entry.model.strip():
        raise ConfigError(
            f'{entry.model!r} is no model: write "FOLDER", "http://HOST:PORT/v1#MODEL" or {{ model = ... }}'
        )
    kind, spec = resolve(entry.model, folders, chats=True)
    name = kind.model_name(spec)
    if entry.name is not None:
        name = entry.name
    if not name.strip():
        raise ConfigError(f"the model {kind.label(spec)!r} has an empty name: give it another")
    return Member(name, spec, entry.options)


def _capped(model: Member, max_tokens: int | None) -> Member:
    """Return a member with the study's cap on replies, unless it has one of its own."""
    if max_tokens is None or "max_tokens" in model.options:
        return model
    kind, spec = resolve(model.spec, chats=True)
    if "max_tokens" not in kind.options:
        raise ConfigError(
            f"max_tokens is {max_tokens}, and nothing caps the replies of {kind.label(spec)!r}: remove it"
        )
    return replace(model, options={"max_tokens": max_tokens, **model.options})


def population_key(settings: Mapping[str, Any]) -> str:
    """Return the first 16 hex digits of SHA-256 over settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


@contextmanager
def study_pool(plan: StudyPlan, memory: int | None, cache: Path) -> Iterator[ModelPool]:
    """Give a pool of a study's models, which is closed at the end.

    Args:
        memory: Models in memory at once.
        cache: Folder for hashes of checkpoints.
    """

    def loader(member: Member, subject: bool) -> Callable[[], Model]:
        kind, spec = resolve(member.spec, chats=not subject)
        return partial(kind.load, spec, member.options, cache, chats=not subject)

    loaders = {member.name: loader(member, subject) for member, subject in plan.roles}
    pool = ModelPool(loaders, memory, remote=[member.name for member, _ in plan.roles if member.remote])
    try:
        yield pool
    finally:
        pool.close()


def void_study(plan: StudyPlan, kind: str, error: str, **facts: Any) -> Result:
    """Return the result of a study that could not run, with fields of `Result` that are known before."""
    from pytest_adaptive_eval.gates.result import Result

    members = tuple(SubjectIdentity(member.name).to_json() for member, _ in plan.roles)
    names = (plan.name, kind, plan.candidate, plan.subjects, plan.metrics)
    return Result(*names, error=error, members=members, **facts)


def study_costs(by_role: Iterable[Mapping[str, Usage]], loads: Mapping[str, int]) -> dict[str, Any]:
    """Return the cost of a study for its record.

    Args:
        by_role: Cost of each role's replies, in each part of the study.
        loads: How often each model was loaded.

    Returns:
        ``total``, ``roles`` and ``loads``.
    """
    sums: dict[str, Usage] = {}
    for usages in by_role:
        for role, usage in usages.items():
            sums[role] = sums.get(role, Usage()) + usage
    roles = {role: usage.to_json() for role, usage in sums.items() if usage.calls}
    return {"total": sum(sums.values(), Usage()).to_json(), "roles": roles, "loads": dict(loads)}


#: Loaders of the built-in kinds.
STUDIES: Mapping[str, Callable[[], StudyKind]] = {
    name: kind.load for name, kind in registered(None, "adaptive_eval.study_kinds", Service).items()
}


def merge_kinds(provided: Iterable[Mapping[str, Callable[[], StudyKind]]]) -> Mapping[str, Callable[[], StudyKind]]:
    """Return the loaders of several plugins by kind.

    Raises:
        ConfigError: Two plugins provide one kind.
    """
    kinds: dict[str, Callable[[], StudyKind]] = {}
    for loaders in provided:
        for name, load in loaders.items():
            if name in (*kinds, "bank", "ladder"):
                raise ConfigError(f"plugins provide the study kind {name!r} more than once: rename one of them")
            kinds[name] = load
    return kinds
