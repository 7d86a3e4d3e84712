"""Guess floors of a task family by level."""

from __future__ import annotations

from collections import Counter

from pytest_adaptive_eval.tasks.family import TaskFamily

#: Questions of each level from which its floor is estimated.
QUESTIONS = 100


def guess_floors(family: TaskFamily, levels: int) -> tuple[float, ...]:
    """Return the expected score of a guess at each of the first levels.

    It is the share of the most frequent answer among some questions, at most `TaskFamily.guess_floor`, or the share of
    one choice where the questions have choices. A family whose own judge marks answers has its `guess_floor` at every
    level.
    """
    if not family.guess_floor or family.grader == "task":
        return (family.guess_floor,) * levels
    return tuple(_floor(family, level) for level in range(1, levels + 1))


def _floor(family: TaskFamily, level: int) -> float:
    items = [family.item(level, seed) for seed in range(QUESTIONS)]
    most = Counter(item.answer for item in items).most_common(1)[0][1] / QUESTIONS
    choice = sum(1.0 / len(item.choices) for item in items if item.choices) / QUESTIONS
    return max(min(most, family.guess_floor), choice)
