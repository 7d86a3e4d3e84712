"""Common parts of evaluations of several models: members, their pool and costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.evaluation import Evaluation
from pytest_adaptive_eval.evaluation.spec import Settings
from pytest_adaptive_eval.evaluation.spending import price_of
from pytest_adaptive_eval.evaluation.tables import KindTable, PriceTable
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.models.instructed import InstructedModel
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.records.parts import Costs
from pytest_adaptive_eval.typed_tables import Table

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Model


class MemberTable(Table, frozen=True, kw_only=True):
    """A model, in place of its folder or URL alone.

    Args:
        name: Name here; the folder's or the server's name by default.
        model: Checkpoint folder, or URL#MODEL.
        options: Options for loading or reaching the model.
        system: System message before each of its chats.
        price: Prices of the model's tokens.
    """

    name: str | None = None
    model: str = ""
    options: dict[str, Any] = {}
    system: str = ""
    price: PriceTable | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A model that takes part: a unique name, and the folder or ``http://HOST:PORT/v1#MODEL`` that is loaded."""

    name: str
    spec: str
    options: Mapping[str, Any] = field(default_factory=dict)
    price: PriceTable | None = None
    system: str = ""

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
    shared: dict[str, Any] = {"price": table.price, "system": table.system}
    if settings.model is not None:
        chosen = MemberTable(model=settings.model, options=dict(settings.model_options), **shared)
        candidate = _member(chosen, (*folders[1:], *folders[:1]))
    elif table.model is not None:
        candidate = _member(MemberTable(model=table.model, options=table.model_options, **shared), folders)
    else:
        raise ConfigError("no candidate: name one with --adaptive-eval-model, or in this file (model = ...)")
    models = [_capped(candidate, table.max_tokens)]
    for other in others:
        if isinstance(other, str):
            entry = MemberTable(model=other)
        else:
            entry = other
        models.append(_capped(_member(entry, folders), table.max_tokens))
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
            f'{entry.model!r} is not a model: write "FOLDER", "http://HOST:PORT/v1#MODEL" or {{ model = ... }}'
        )
    kind, spec = resolve(entry.model, folders, chats=True)
    name = kind.model_name(spec)
    if entry.name is not None:
        name = entry.name
    if not name.strip():
        raise ConfigError(f"the model {kind.label(spec)!r} has an empty name: give it another")
    return Member(name, spec, entry.options, entry.price, entry.system)


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
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def model_pool(evaluation: Evaluation, memory: int | None, cache: Path) -> Iterator[ModelPool]:
    """Give a pool of an evaluation's models, which is closed at the end.

    Args:
        memory: Models in memory at once.
        cache: Folder for hashes of checkpoints.
    """

    def loader(member: Member, subject: bool) -> Callable[[], Model]:
        kind, spec = resolve(member.spec, chats=not subject)
        load = partial(kind.load, spec, member.options, cache, chats=not subject)
        if member.system:
            return lambda: InstructedModel(load(), member.system)
        return load

    loaders = {}
    remote = []
    for member, subject in evaluation.roles:
        loaders[member.name] = loader(member, subject)
        if member.remote:
            remote.append(member.name)
    pool = ModelPool(loaders, memory, remote=remote)
    try:
        yield pool
    finally:
        pool.close()


def costs_of(models: Sequence[Member], usages: Iterable[tuple[str, str, Usage]], loads: Mapping[str, int]) -> Costs:
    """Return the cost of an evaluation for its record.

    Args:
        usages: Role, model and cost of replies.
        loads: How often each model was loaded.
    """
    roles: dict[str, Usage] = {}
    by_model: dict[str, Usage] = {}
    for role, name, usage in usages:
        roles[role] = roles.get(role, Usage()) + usage
        by_model[name] = by_model.get(name, Usage()) + usage
    called = {name: usage for name, usage in by_model.items() if usage.calls}
    prices = {}
    for member in models:
        if member.price is not None and member.name in called:
            prices[member.name] = price_of(member.price, called[member.name])
    return Costs(
        total=sum(roles.values(), Usage()),
        roles={role: usage for role, usage in roles.items() if usage.calls},
        members=called,
        prices=prices,
        loads=dict(loads),
    )
