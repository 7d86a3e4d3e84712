"""A pool of models by name, with a limit on loaded ones."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import (
    Completion,
    Message,
    Model,
    Preference,
    SubjectIdentity,
    Usage,
)
from pytest_adaptive_eval.models.caps import Cap


class ModelPool:
    """Models by name, at most `capacity` of them in memory; loads are counted.

    A model is loaded at its first request. The least recently used model is closed to make room; its identity stays
    available. Several threads may use the pool: models in memory answer one at a time, those on servers at the same
    time.

    Args:
        capacity: Number of models that fit into memory; unlimited if omitted.
        remote: Names of models on servers, which use no memory here and do not count.

    Raises:
        ConfigError: The capacity is below 1, or a name of `remote` has no loader.
    """

    def __init__(
        self,
        loaders: Mapping[str, Callable[[], Model]],
        capacity: int | None = None,
        *,
        remote: Collection[str] = (),
    ) -> None:
        if capacity is not None:
            check_count("capacity", capacity)
        if unknown := sorted(set(remote) - set(loaders)):
            raise ConfigError(f"no model is called {unknown[0]!r}; expected one of {', '.join(loaders)}")
        self.capacity, self.remote = capacity, frozenset(remote)
        #: Number of times that each model was loaded or connected to.
        self.loads: Counter[str] = Counter()
        self._loaders = dict(loaders)
        self._loaded: OrderedDict[str, Model] = OrderedDict()  # the most recently used one last
        self._identities: dict[str, SubjectIdentity] = {}
        self._caps: dict[str, Cap | None] = {}
        self._closed_usage: dict[str, Usage] = {}  # by closed models
        self._memory_lock, self._remote_lock = threading.RLock(), threading.RLock()

    def model(self, name: str) -> Model:
        """Return a model, loaded at its first request; raise ConfigError for an unknown name."""
        self._check(name)
        return _PooledModel(self, name)

    def first(self, names: Iterable[str]) -> list[str]:
        """Return the names in an order that needs the fewest loads: the ones that need none first."""
        order = list(names)
        with self._remote_lock:
            ready = self.remote | set(self._loaded)
        return sorted(order, key=lambda name: name not in ready)

    def identity(self, name: str) -> SubjectIdentity:
        """Return the identity of a model, which is loaded for this only the first time."""
        if name not in self._identities:
            with self.using(name):
                pass
        return self._identities[name]

    def cap(self, name: str) -> Cap | None:
        """Return the cap on the answers of a model; None where nothing caps them."""
        self.identity(name)
        return self._caps[name]

    def usage(self, name: str) -> Usage:
        """Return the cost of a model's answers so far."""
        model = self._loaded.get(name)
        return self._closed_usage.get(name, Usage()) + (Usage() if model is None else model.usage)

    @contextmanager
    def using(self, name: str) -> Iterator[Model]:
        """Keep a model in memory until the end of the block."""
        self._check(name)
        if name in self.remote:
            with self._remote_lock:
                model = self._loaded.get(name) or self._load(name)
            yield model
            return
        with self._memory_lock:
            if name not in self._loaded:
                in_memory = [loaded for loaded in self._loaded if loaded not in self.remote]
                while self.capacity is not None and len(in_memory) >= self.capacity:
                    self._drop(in_memory.pop(0))
                self._load(name)
            self._loaded.move_to_end(name)
            yield self._loaded[name]

    def close(self) -> None:
        """Close all loaded models; each is loaded again at its next request."""
        with self._memory_lock, self._remote_lock, ExitStack() as dropping:  # an error in one does not stop the others
            for name in list(self._loaded):
                dropping.callback(self._drop, name)

    def _check(self, name: str) -> None:
        if name not in self._loaders:
            raise ConfigError(f"no model is called {name!r}; expected one of {', '.join(self._loaders)}")

    def _load(self, name: str) -> Model:
        self.loads[name] += 1
        model = self._loaders[name]()
        self._identities[name] = model.identity
        self._caps[name] = model.cap
        with self._remote_lock:
            self._loaded[name] = model
        return model

    def _drop(self, name: str) -> None:
        with self._remote_lock:
            model = self._loaded.pop(name)
        self._closed_usage[name] = self._closed_usage.get(name, Usage()) + model.usage
        model.close()


class _PooledModel(Model):
    """A model of a pool."""

    def __init__(self, pool: ModelPool, name: str) -> None:
        self._ready = {}
        self._pool, self._name = pool, name
        self.waits_apart = name in pool.remote

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]  # not known before it is loaded
        return self._pool.identity(self._name)

    @property
    def cap(self) -> Cap | None:  # type: ignore[override]  # likewise
        return self._pool.cap(self._name)

    @property
    def usage(self) -> Usage:
        return self._pool.usage(self._name)

    @property
    def no_reuse(self) -> str:
        with self._pool.using(self._name) as model:
            return model.no_reuse

    @property
    def rates(self) -> bool:
        with self._pool.using(self._name) as model:
            return model.rates

    def prepare_chats(self) -> None:
        with self._pool.using(self._name) as model:
            model.prepare_chats()

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Completion:
        with self._pool.using(self._name) as model:
            return model.ask(messages, max_tokens=max_tokens, schema=schema, draw=draw)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        with self._pool.using(self._name) as model:
            return model.prefer(messages, candidates, label)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        with self._pool.using(self._name) as model:
            return model.answer(items)

    def close(self) -> None:
        """Do nothing; the pool decides which models stay in memory."""
