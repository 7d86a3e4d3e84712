"""A pool of models by name, with a limit on loaded ones."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.base import Model, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.models.wrapped import WrappedModel


class ModelFacts(NamedTuple):
    """Facts on a model of a pool that are kept while it is not in memory, see `Model`."""

    identity: SubjectIdentity
    cap: Cap | None
    no_reuse: str


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
        self.capacity = capacity
        self.remote = frozenset(remote)
        #: Number of times that each model was loaded or connected to.
        self.loads: Counter[str] = Counter()
        self._loaders = dict(loaders)
        self._loaded: OrderedDict[str, Model] = OrderedDict()  # the most recently used one last
        self._facts: dict[str, ModelFacts] = {}
        self._closed_usage: dict[str, Usage] = {}  # by closed models
        self._memory_lock = threading.RLock()
        self._remote_lock = threading.RLock()

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

    def facts(self, name: str) -> ModelFacts:
        """Return what is known of a model, which is loaded for this only the first time."""
        if name not in self._facts:
            with self.using(name):
                pass
        return self._facts[name]

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
        self._facts[name] = ModelFacts(model.identity, model.cap, model.no_reuse)
        with self._remote_lock:
            self._loaded[name] = model
        return model

    def _drop(self, name: str) -> None:
        with self._remote_lock:
            model = self._loaded.pop(name)
        self._closed_usage[name] = self._closed_usage.get(name, Usage()) + model.usage
        model.close()


class _PooledModel(WrappedModel):
    """A model of a pool."""

    def __init__(self, pool: ModelPool, name: str) -> None:
        self._pool, self._name = pool, name

    def _using(self) -> AbstractContextManager[Model]:
        return self._pool.using(self._name)

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]
        return self._pool.facts(self._name).identity

    @property
    def cap(self) -> Cap | None:  # type: ignore[override]
        return self._pool.facts(self._name).cap

    @property
    def no_reuse(self) -> str:
        return self._pool.facts(self._name).no_reuse

    @property
    def waits_apart(self) -> bool:  # type: ignore[override]
        return self._name in self._pool.remote

    @property
    def usage(self) -> Usage:
        return self._pool.usage(self._name)

    def close(self) -> None:
        """Do nothing; the pool decides which models stay in memory."""
