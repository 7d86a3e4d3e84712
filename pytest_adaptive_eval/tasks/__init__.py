"""Seeded task families with a difficulty knob, truth by code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.tasks import (
    coding,
    graphs,
    instructions,
    numbers,
    pictures,
    reading,
    scrambled,
    strings,
    text,
)
from pytest_adaptive_eval.tasks.family import Mark, Picture, Question, Run, Runner, TaskFamily

__all__ = ["FAMILIES", "Mark", "Picture", "Question", "Run", "Runner", "TaskFamily", "families"]

#: Every built-in family by its name.
FAMILIES: Mapping[str, TaskFamily] = MappingProxyType(
    {
        family.name: family
        for family in (
            text.COUNTING,
            text.ADDITION,
            text.OPERATIONS,
            text.POST_ORDER,
            text.UNSCRAMBLE,
            pictures.GRID,
            pictures.CAPTION,
            pictures.AFTER,
            pictures.NOISE,
            pictures.ICONS,
            scrambled.SCRAMBLED,
            scrambled.MASKED,
            strings.PARSING,
            numbers.DECIMALS,
            numbers.EQUATIONS,
            graphs.PATH_NODES,
            graphs.PATH_DENSITY,
            coding.CODE_GENERATION,
            coding.CODE_REPAIR,
            instructions.INSTRUCTIONS,
            instructions.WRITING,
            reading.COMPREHENSION,
        )
    }
)


def families(more: Iterable[TaskFamily] = (), runner: Runner | None = None) -> Mapping[str, TaskFamily]:
    """The built-in families and others, by name.

    Parameters
    ----------
    more : iterable of TaskFamily
        Such as the hook ``pytest_adaptive_eval_task_families`` gives.
    runner : Runner, optional
        To run the answers of families whose answers are code; without it they have status ``not_run``.

    Raises
    ------
    ConfigError
        A name stands twice, or cannot be part of an item's id.
    """
    known = dict(FAMILIES)
    for family in more:
        if not isinstance(family, TaskFamily):
            raise ConfigError(f"{family!r:.80} is no TaskFamily")
        if family.name in known:
            raise ConfigError(f"there are two task families called {family.name!r}: give yours another name")
        known[family.name] = family
    if runner is not None:
        known = {name: replace(family, runner=runner) for name, family in known.items()}
    return MappingProxyType(known)
