"""Banks of a task's questions, which are drawn when they are asked."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import Computed, ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.modalities import asked_in_formats
from pytest_adaptive_eval.tasks.family import PICTURE_FORMATS, TaskFamily
from pytest_adaptive_eval.tasks.pictures import save_png

#: Questions of each level that enter the bank's content hash.
_HASHED = 3

#: First seed of the questions that stand in for repeated ones, and draws to find one.
_OTHER_SEEDS, _TRIES = 10**9, 50
#: Levels in a row without a repeated question, above which none is looked for.
_ALL_DIFFER = 3


def _drawn(family: TaskFamily, level: int, seed: int, pictures: Path | None) -> Item:
    """Return a question as an item, with its picture in a folder, if one is given."""
    item = family.item(level, seed)
    if not item.images or pictures is None:
        return item
    path = pictures / item.images[0]
    if not path.exists():
        save_png(family.picture(level, seed), path)
    return replace(item, root=str(pictures))


def _distinct_seeds(
    family: TaskFamily, levels: int, queries: int, first: int
) -> tuple[list[Sequence[int]], dict[str, int]]:
    """Return the seeds of each level's questions, no two alike, and how many are by level where the family has no more.

    Questions run out at the easiest levels: those above `_ALL_DIFFER` levels in a row whose questions all differ are
    not compared. Questions about pictures are not compared at all, since their words are the same.
    """
    seeds: list[Sequence[int]] = [range(first, first + queries) for _ in range(levels)]
    repeated: dict[str, int] = {}
    differing = 0
    if family.pictorial:
        return seeds, repeated
    for level in range(1, levels + 1):
        drawn = range(first, first + queries)
        distinct, repeats = _distinct_level(family, level, drawn)
        was_replaced = distinct != list(drawn)
        if was_replaced:
            seeds[level - 1] = distinct
        if repeats:
            repeated[str(level)] = repeats
        if was_replaced or repeats:
            differing = 0
        else:
            differing += 1
        if differing == _ALL_DIFFER:
            break
    return seeds, repeated


def _distinct_level(family: TaskFamily, level: int, seeds: range) -> tuple[list[int], int]:
    """Return the seeds of a level, without seeds of repeated questions if possible, and how many still repeat one."""
    prompts = set()
    again = []
    for k, seed in enumerate(seeds):
        prompt = family.question(level, seed).prompt
        if prompt in prompts:
            again.append(k)
        prompts.add(prompt)
    distinct = list(seeds)
    repeats = 0
    start = _OTHER_SEEDS + seeds.start * _TRIES
    others = iter(range(start, start + len(again) * _TRIES))
    for k in again:
        other = next((seed for seed in others if family.question(level, seed).prompt not in prompts), None)
        if other is None:
            repeats += 1
        else:
            distinct[k] = other
            prompts.add(family.question(level, other).prompt)
    return distinct, repeats


def _digest(family: TaskFamily, seeds: Sequence[Sequence[int]], queries: int, first: int) -> str:
    """Return the hash of a bank's questions, by the first of each level and the seeds that were replaced."""
    digest = hashlib.sha256(f"{family.name} {len(seeds)} {queries} {first}".encode())
    for level, level_seeds in enumerate(seeds, 1):
        for seed in level_seeds[:_HASHED]:
            item = family.item(level, seed)
            digest.update(item.content_hash.encode())
        if level_seeds != range(first, first + queries):
            digest.update(str(list(level_seeds)).encode())
    return digest.hexdigest()[:16]


def _hardest(family: TaskFamily, levels: int | None) -> int:
    cap = family.levels if levels is None else levels
    if not 1 <= cap <= family.levels:
        raise ConfigError(f"levels is {levels!r}: the task {family.name!r} has levels 1 to {family.levels}")
    return cap


def task_bank(
    family: TaskFamily,
    *,
    queries: int,
    levels: int | None = None,
    seed: int = 0,
    difficulty: ArrayLike | None = None,
    scale: str = "",
    pictures: Path | None = None,
    guess_by_level: bool = False,
    pixels: int | None = None,
    terse: bool = False,
) -> ItemBank:
    """Create a bank of questions of each level of a family, the easiest level first.

    Args:
        queries: Questions per level, at least 1.
        levels: Hardest level; the family's when omitted.
        seed: Seed of the questions. With one seed all subjects get the same questions and can be compared pair by pair.
        difficulty: Shape (levels, 2). Slope and intercept of each level's items on a bank's scale. Without it the bank
            is uncalibrated.
        pictures: Folder into which pictures are drawn on access.
        guess_by_level: Whether the bank's report has the guess floor of each level, which takes some draws of every
            level.
        pixels: Longer side of the pictures; that of `family` when omitted.

    Raises:
        ConfigError: The family has no pictures of that size, or no terse form, or lacks such levels, or no question is
            requested.
    """
    if pixels is not None:
        family = family.at_pixels(pixels)
    if terse:
        family = family.in_terse_form()
    cap = _hardest(family, levels)
    check_count("queries", queries)
    size = cap * queries
    first = seed * queries

    seeds, repeated = _distinct_seeds(family, cap, queries, first)
    settings: dict[str, Any] = {"levels": cap, "queries": queries, "seed": seed, **family.form_settings}
    discrimination = np.ones((size, 1))
    intercept = np.zeros(size)
    model = "none"
    if difficulty is not None:
        by_level = np.asarray(difficulty)
        settings |= {"difficulty": by_level.tolist(), "scale": scale}
        curves = np.repeat(by_level, queries, axis=0)
        discrimination = curves[:, :1]
        intercept = curves[:, 1]
        model = "2pl"
    report: dict[str, Any] = {"task": settings, "guess": family.guess_floor}
    if guess_by_level:
        report["guess_by_level"] = guess_floors(family, cap)
    if repeated:
        report["repeated"] = repeated
    ids = []
    categories = []
    for level, level_seeds in enumerate(seeds, 1):
        ids += [family.item_id(level, s) for s in level_seeds]
        categories += [f"level {level}"] * queries

    def drawn(n: int) -> Item:
        level, k = divmod(n, queries)
        return _drawn(family, level + 1, seeds[level][k], pictures)

    return ItemBank(
        family.name,
        ids,
        Computed(size, drawn),
        discrimination,
        intercept,
        calibrated=difficulty is not None,
        model=model,
        scale=scale,
        content_hash=_digest(family, seeds, queries, first),
        report=MappingProxyType(report),
        categories=categories,
    )


def asked_without(bank: ItemBank, family: TaskFamily, formats: str | Sequence[str]) -> ItemBank:
    """Return the bank of a task on pictures as it is asked in formats, see `items.modalities.asked_in_formats`.

    Raises:
        ConfigError: The task has no pictures, or the formats are not known.
    """
    if not family.pictorial:
        raise ConfigError(f"formats needs pictures, and the task {family.name!r} has none: name a task such as 'grid'")
    items = Computed(len(bank), lambda n: replace(bank.items[n], formats=PICTURE_FORMATS))
    return asked_in_formats(replace(bank, items=items), formats)


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
    answers: Counter[str] = Counter()
    chances = 0.0
    for seed in range(QUESTIONS):
        item = family.item(level, seed)
        answers[item.answer] += 1
        if item.choices:
            chances += 1.0 / len(item.choices)
    most_frequent = max(answers.values()) / QUESTIONS
    return max(min(most_frequent, family.guess_floor), chances / QUESTIONS)
