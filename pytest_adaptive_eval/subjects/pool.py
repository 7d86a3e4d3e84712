"""Models by name, of which no more than memory allows are loaded at once."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.subjects.agent import Agent, Message, Preference, Reply
from pytest_adaptive_eval.subjects.base import Completion, Subject, SubjectIdentity, Usage

__all__ = ["AgentPool"]


class AgentPool:
    """Agents and subjects by name, of which no more than `capacity` are in memory at once; loads are counted.

    Nothing is loaded before it is asked something.  When room is needed the one that was not used for the longest
    time is closed; who it is stays known.  May be used from several threads: models in memory are asked one
    at a time, those behind servers at once.

    Parameters
    ----------
    loaders : mapping of str to callable
        What makes each of them.
    capacity : int, optional
        As many as fit into memory; all when omitted.
    remote : collection of str
        Names of those behind servers, which hold no memory here and do not count.

    Raises
    ------
    ConfigError
        The capacity is below 1, or a name of `remote` has no loader.
    """

    def __init__(
        self,
        loaders: Mapping[str, Callable[[], Agent | Subject]],
        capacity: int | None = None,
        *,
        remote: Collection[str] = (),
    ) -> None:
        if capacity is not None:
            check_count("capacity", capacity)
        if unknown := sorted(set(remote) - set(loaders)):
            raise ConfigError(f"no model is called {unknown[0]!r}; expected one of {', '.join(loaders)}")
        self.capacity, self.remote = capacity, frozenset(remote)
        #: How often each was loaded, or connected to.
        self.loads: Counter[str] = Counter()
        self._loaders = dict(loaders)
        self._loaded: OrderedDict[str, Agent | Subject] = OrderedDict()  # the most recently used last
        self._identities: dict[str, SubjectIdentity] = {}
        self._spent: dict[str, Usage] = {}  # by subjects that were closed
        self._memory, self._wires = threading.RLock(), threading.RLock()

    def agent(self, name: str) -> Agent:
        """An agent, loaded when it is first asked anything.

        Raises
        ------
        ConfigError
            No model has that name.  When it is asked: it is a subject.
        """
        self._check(name)
        return _PooledAgent(self, name)

    def subject(self, name: str) -> Subject:
        """A subject, loaded when it is first asked anything.

        Raises
        ------
        ConfigError
            No model has that name.  When it is asked: it is an agent.
        """
        self._check(name)
        return _PooledSubject(self, name)

    def first(self, names: Iterable[str]) -> list[str]:
        """The names in an order that needs fewest loads: those that need none first, else as they come."""
        order = list(names)
        with self._wires:
            ready = self.remote | set(self._loaded)
        return sorted(order, key=lambda name: name not in ready)

    def identity(self, name: str) -> SubjectIdentity:
        """Who it is; one that was loaded before is not loaded again for that."""
        if name not in self._identities:
            with self.using(name):
                pass
        return self._identities[name]

    def usage(self, name: str) -> Usage:
        """What a subject's answers cost so far, loaded or not; nothing for an agent, whose replies tell."""
        model = self._loaded.get(name)
        return self._spent.get(name, Usage()) + (model.usage if isinstance(model, Subject) else Usage())

    @contextmanager
    def using(self, name: str) -> Iterator[Agent | Subject]:
        """Have a model in memory for as long as the block lasts."""
        self._check(name)
        if name in self.remote:
            with self._wires:
                model = self._loaded.get(name) or self._load(name)
            yield model
            return
        with self._memory:
            if name not in self._loaded:
                self._make_room()
                self._load(name)
            self._loaded.move_to_end(name)
            yield self._loaded[name]

    def close(self) -> None:
        """Close all that are loaded; they are loaded again when they are asked again."""
        with self._memory, self._wires, ExitStack() as dropping:  # all of them, even where one fails to close
            for name in list(self._loaded):
                dropping.callback(self._drop, name)

    def _check(self, name: str) -> None:
        if name not in self._loaders:
            raise ConfigError(f"no model is called {name!r}; expected one of {', '.join(self._loaders)}")

    def _make_room(self) -> None:
        held = [name for name in self._loaded if name not in self.remote]
        while self.capacity is not None and len(held) >= self.capacity:
            self._drop(held.pop(0))

    def _load(self, name: str) -> Agent | Subject:
        self.loads[name] += 1
        model = self._loaders[name]()
        self._identities[name] = model.identity
        with self._wires:
            self._loaded[name] = model
        return model

    def _drop(self, name: str) -> None:
        with self._wires:
            model = self._loaded.pop(name)
        if isinstance(model, Subject):
            self._spent[name] = self._spent.get(name, Usage()) + model.usage
        model.close()


class _PooledAgent:
    """An agent of a pool: closing it is the pool's business."""

    def __init__(self, pool: AgentPool, name: str) -> None:
        self._pool, self._name = pool, name

    @property
    def identity(self) -> SubjectIdentity:
        return self._pool.identity(self._name)

    @property
    def rates(self) -> bool:
        with self._pool.using(self._name) as model:
            return self._of(model).rates

    def ask(
        self, messages: Sequence[Message], *, max_tokens: int = 512, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        with self._pool.using(self._name) as model:
            return self._of(model).ask(messages, max_tokens=max_tokens, schema=schema)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        with self._pool.using(self._name) as model:
            return self._of(model).prefer(messages, candidates, label)

    def close(self) -> None:
        """Nothing: the pool decides what stays in memory."""

    def _of(self, model: Agent | Subject) -> Agent:
        if isinstance(model, Subject):
            raise ConfigError(
                f"{self._name!r} is a subject and was asked as an agent: give its agent a name of its own"
            )
        return model


class _PooledSubject(Subject):
    """A subject of a pool, likewise."""

    def __init__(self, pool: AgentPool, name: str) -> None:
        self._ready = {}
        self._pool, self._name = pool, name

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]  # not known before it is loaded
        return self._pool.identity(self._name)

    @property
    def usage(self) -> Usage:
        return self._pool.usage(self._name)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        with self._pool.using(self._name) as model:
            if not isinstance(model, Subject):
                raise ConfigError(f"{self._name!r} is an agent and was asked as a subject: name its subject otherwise")
            return model.answer(items)
