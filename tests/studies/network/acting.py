"""Actors for networks: interviewees of a known skill, with the agents of the benchmarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.network_agents import CodedAgent, chance
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity, Usage
from pytest_adaptive_eval.models.pool import ModelPool


class Skilled(Model):
    """Has a question of a level right with a given chance; a second answer follows what it hears if it `trusts`."""

    def __init__(self, name: str, skill: Mapping[int, float], status: Status = Status.OK, trusts: bool = False) -> None:
        super().__init__(SubjectIdentity(name, name * 3))
        self.skill, self.status, self.trusts = dict(skill), status, trusts
        self.spent = Usage()
        self.read: list[str] = []

    @property
    def usage(self) -> Usage:
        return self.spent

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        self.spent += Usage(len(items), 7 * len(items), 2 * len(items), 0, 0.5, 10.0)
        return [self._one(item) for item in items]

    def _one(self, item: Item) -> Completion:
        self.read.append(item.prompt)
        if self.status is not Status.OK:
            return Completion("", self.status, detail="planted")
        others = re.findall(r"^- (.*)$", item.prompt, re.MULTILINE)
        if self.trusts and others:
            return Completion(others[0])
        level = int(item.meta["level"])
        right = chance(self.identity.name, item.prompt.rpartition("\n")[2]) < self.skill.get(level, 0.0)
        return Completion(item.answer if right else "987654321987")


def _returning(model: Any) -> Callable[[], Any]:
    return lambda: model


def pool_of(*models: Model | CodedAgent, **more: Any) -> ModelPool:
    names = [model.identity.name for model in models]
    return ModelPool({name: _returning(model) for name, model in zip(names, models, strict=True)}, **more)
