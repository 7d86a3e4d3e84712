"""Seeded task families with a difficulty knob, truth by code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_adaptive_eval.tasks import pictures, text
from pytest_adaptive_eval.tasks.family import Picture, Question, TaskFamily

__all__ = ["FAMILIES", "Picture", "Question", "TaskFamily"]

#: Every family by its name.
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
            pictures.NOISE,
        )
    }
)
