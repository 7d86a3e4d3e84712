"""Pools of models: what is in memory, what is loaded how often, and by whom it may be asked."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from pytest_adaptive_eval.models.pool import ModelPool


class Loaded(Model):
    """A model that knows who else is in memory."""

    def __init__(self, name: str, memory: list[str], busy: threading.Barrier | None = None) -> None:
        super().__init__(SubjectIdentity(name, name * 2))
        self.memory, self.busy = memory, busy
        memory.append(name)

    @property
    def rates(self) -> bool:
        return True

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        raise AssertionError("it is asked in chats alone")

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Completion:
        assert self.identity.name in self.memory
        if self.busy:
            self.busy.wait(10)
        return Completion(f"{self.identity.name}: {messages[0].text} {max_tokens} {schema}")

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        return Preference(tuple(float(len(candidate)) for candidate in candidates))

    def close(self) -> None:
        self.memory.remove(self.identity.name)


class Answering(Model):
    """A subject whose answers cost something."""

    def __init__(self, name: str) -> None:
        super().__init__(SubjectIdentity(name))
        self.spent = Usage()

    @property
    def usage(self) -> Usage:
        return self.spent

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        self.spent += Usage(len(items))
        return [Completion(item.prompt.upper()) for item in items]


def pool_of(names: str, memory: list[str], capacity: int | None = None, **more: Any) -> ModelPool:
    return ModelPool({name: partial(Loaded, name, memory) for name in names}, capacity, **more)


def ask(pool: ModelPool, name: str) -> str:
    return pool.model(name).ask([Message("user", "hi")], max_tokens=3).text


def test_nothing_is_loaded_before_it_is_asked() -> None:
    memory: list[str] = []
    pool = pool_of("abc", memory)
    agent = pool.model("a")
    assert not memory
    assert not pool.loads
    assert ask(pool, "a") == "a: hi 3 None"
    assert agent.prefer([], ["x", "yy"], "yes").scores == (1.0, 2.0)
    assert agent.rates
    assert memory == ["a"]
    assert pool.loads == {"a": 1}


@given(st.lists(st.sampled_from("abcde"), max_size=40), st.integers(1, 4))
def test_the_least_recently_used_makes_room(asked: list[str], capacity: int) -> None:
    memory: list[str] = []
    pool = pool_of("abcde", memory, capacity)
    expected: OrderedDict[str, None] = OrderedDict()
    loads = 0
    for name in asked:
        if name not in expected:
            loads += 1
            if len(expected) == capacity:
                expected.popitem(last=False)
        expected[name] = None
        expected.move_to_end(name)
        ask(pool, name)
        assert sorted(memory) == sorted(expected)
    assert pool.loads.total() == loads


@given(st.integers(1, 4), st.integers(1, 5))
def test_asking_those_in_memory_first_saves_loads(capacity: int, rounds: int) -> None:
    memory: list[str] = []
    pool = pool_of("abcd", memory, capacity)
    for _ in range(rounds):
        for name in pool.first("abcd"):
            ask(pool, name)
    assert pool.loads.total() == 4 + (rounds - 1) * (4 - capacity)  # the fewest that there can be


def test_who_a_closed_one_is_stays_known() -> None:
    memory: list[str] = []
    pool = pool_of("ab", memory, 1)
    assert [pool.model(name).identity.checkpoint for name in "abab"] == ["aa", "bb", "aa", "bb"]
    assert pool.loads == {"a": 1, "b": 1}
    assert memory == ["b"]


def test_models_on_servers_take_no_room_and_are_asked_at_once() -> None:
    memory: list[str] = []
    together = threading.Barrier(3)
    pool = ModelPool(
        {"far": lambda: Loaded("far", memory, together), "near": lambda: Loaded("near", memory)}, 1, remote=["far"]
    )
    ask(pool, "near")
    with ThreadPoolExecutor(3) as threads:
        assert len({*threads.map(lambda _: ask(pool, "far"), range(3))}) == 1
    assert sorted(memory) == ["far", "near"]
    assert pool.loads == {"far": 1, "near": 1}
    assert pool.first(["other", "near", "far"]) == ["near", "far", "other"]
    pool.close()
    assert not memory


def test_threads_do_not_take_models_from_each_other() -> None:
    memory: list[str] = []
    pool = pool_of("abc", memory, 1)
    with ThreadPoolExecutor(6) as threads:
        names = list("abc" * 20)
        assert [text[0] for text in threads.map(lambda name: ask(pool, name), names)] == names
    assert len(memory) == 1


def test_subjects_are_pooled_too_and_what_they_cost_is_added_up() -> None:
    pool = ModelPool({name: partial(Answering, name) for name in "ab"}, 1)
    one, other = pool.model("a"), pool.model("b")
    assert one.usage.calls == 0
    for subject in (one, other, one):
        assert subject.generate(Item("x", "yes")) == "YES"
    assert one.identity.name == "a"
    assert (one.usage.calls, other.usage.calls) == (2, 1)
    assert pool.loads == {"a": 2, "b": 1}
    one.close()
    assert one.generate(Item("x", "yes")) == "YES"
    assert pool.loads["a"] == 2


def test_a_model_that_does_not_load_leaves_the_pool_usable() -> None:
    memory: list[str] = []

    def broken() -> Model:
        raise ConfigError("no such folder")

    pool = ModelPool({"a": lambda: Loaded("a", memory), "broken": broken}, 1)
    with pytest.raises(ConfigError, match="no such folder"):
        ask(pool, "broken")
    assert ask(pool, "a")
    assert pool.loads == {"a": 1, "broken": 1}


def test_all_are_closed_even_where_one_cannot_be() -> None:
    class Stuck(Loaded):
        def close(self) -> None:
            super().close()
            raise OSError("stuck")

    memory: list[str] = []
    pool = ModelPool(
        {"a": lambda: Loaded("a", memory), "b": lambda: Stuck("b", memory), "c": lambda: Loaded("c", memory)}
    )
    for name in "abc":
        pool.facts(name)
    with pytest.raises(OSError, match="stuck"):
        pool.close()
    assert memory == []


def test_mistakes_are_told() -> None:
    pool = ModelPool({"agent": lambda: Loaded("agent", []), "other": lambda: Answering("other")})
    with pytest.raises(ConfigError, match="no model is called 'x'; expected one of agent, other"):
        pool.model("x")
    for capacity in (0, True, 1.5):
        with pytest.raises(ConfigError, match="whole number of at least 1"):
            ModelPool({}, capacity)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no model is called 'y'"):
        ModelPool({"x": lambda: Answering("x")}, remote=["y"])
