"""What evaluations of several models have in common: members, their pool and costs, and defaults of plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.spec import Plan, Settings
from pytest_adaptive_eval.evaluation.tables import KindTable
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.base import SubjectIdentity, Usage
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.records.baseline import read_recorded
from pytest_adaptive_eval.typed_tables import Table, described

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Model


class MemberTable(Table, frozen=True, kw_only=True):
    """A model, in place of its folder or URL alone."""

    name: Annotated[str | None, described("name here; the folder's or the server's name by default")] = None
    model: Annotated[str, described("checkpoint folder, or URL#MODEL")] = ""
    options: Annotated[dict[str, Any], described("options for loading or reaching the model")] = {}


class SeveralSubjects:
    """Members of a `Plan` that are the same for all kinds of several subjects."""

    __slots__ = ()

    @property
    def aliases(self: Any) -> frozenset[str]:
        """The name."""
        return frozenset({self.name})

    @property
    def population(self) -> str:
        """Empty: runs do not compare."""
        return ""

    def check(self: Any, condition: Condition) -> None:
        """Raise a ConfigError for a gate on a metric that is not measured."""
        condition.check_subjects(self.metrics, self.subjects, self.candidate)

    def denials(self, condition: Condition) -> int:
        """Return 1, and 0 for a rank."""
        return int(not condition.by_rank)

    def comparable(self, other: Any) -> bool:
        """Return whether another evaluation has the same settings."""
        return bool(self.population) and self.population == other.population

    def read_baseline(self: Any, spec: str, folders: Sequence[Path]) -> Result:
        """Return the recorded result of an earlier run."""
        if not self.population:
            raise ConfigError(f"{self.name}: the kind {self.kind!r} has no baseline: gate on it by at_least")
        result: Result = self.recall(read_recorded(spec, folders, self.name, self.kind).account)
        return result

    def restore(self, data: Mapping[str, Any]) -> Result:
        """Restore a result of another process."""
        return Result.from_json(data)

    def void_result(self: Any, error: str, **facts: Any) -> Result:
        """Return the result of an evaluation that could not run, with fields that are known before."""
        members = tuple(SubjectIdentity(member.name).to_json() for member, _ in self.roles)
        names = (self.name, self.kind, self.candidate, self.subjects, self.metrics)
        return Result(*names, error=error, members=members, **facts)


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
    table: KindTable, settings: Settings, others: Sequence[str | MemberTable], folders: Sequence[Path]
) -> list[Member]:
    """Return the candidate, which `settings` may name, and the other members.

    Args:
        folders: Folders that relative paths are looked up in, in order. The first is that of the file, which for a
            model of the command line is the last.

    Raises:
        ConfigError: The candidate is missing, two members have one name, or one is neither an existing folder nor on a
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
    """Return a member with the evaluation's cap on replies, unless it has one of its own."""
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
def model_pool(plan: Plan, memory: int | None, cache: Path) -> Iterator[ModelPool]:
    """Give a pool of an evaluation's models, which is closed at the end.

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


def costs_of(by_role: Iterable[Mapping[str, Usage]], loads: Mapping[str, int]) -> dict[str, Any]:
    """Return the cost of an evaluation for its record.

    Args:
        by_role: Cost of each role's replies, in each part of it.
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
