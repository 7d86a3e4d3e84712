"""A task family: an endless, seeded supply of questions with a difficulty knob."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.core.item import Item

__all__ = ["Picture", "Question", "TaskFamily"]

#: A grey picture, shape (height, width), 0 black to 255 white.
Picture = NDArray[np.uint8]

#: Ways in which a question about a picture can be asked, the default first.
PICTURE_FORMATS = ("image+text", "text", "image", "none")


@dataclass(frozen=True, slots=True)
class Question:
    """What a family draws for one level and seed.

    Parameters
    ----------
    prompt : str
        What the subject reads.
    answer : str
        The truth, computed by code.
    render : callable, optional
        Draws the picture that belongs to the question.
    """

    prompt: str
    answer: str
    render: Callable[[], Picture] | None = None


@dataclass(frozen=True, slots=True)
class TaskFamily:
    """Questions of one kind, harder with every level.

    Parameters
    ----------
    name : str
        Part of every item's id; without hyphens.
    knob : str
        What the level means, in words.
    levels : int
        The hardest level; the easiest is 1.
    guess_floor : float
        Accuracy, at the worst level, of always giving the best single answer.
    draw : callable
        ``draw(rng, level)`` gives the question.  It takes all its randomness
        from `rng` and iterates over nothing whose order is not fixed.
    grader : str
        A grader's name, see `pytest_adaptive_eval.core.item.Item`.
    pictorial : bool
        Whether a picture belongs to each question.
    max_tokens : int
        Cap on the length of an answer, stored in the item's ``meta``.
    """

    name: str
    knob: str
    levels: int
    guess_floor: float
    draw: Callable[[random.Random, int], Question]
    grader: str = "exact"
    pictorial: bool = False
    max_tokens: int = 16

    def question(self, level: int, seed: int) -> Question:
        """The question of a level and seed: the same on every platform and Python version.

        Raises
        ------
        ValueError
            If the level is not one of 1 to `levels`, or the seed is negative.
        """
        if not 1 <= level <= self.levels:
            raise ValueError(f"{self.name} has levels 1 to {self.levels}, not {level}")
        if seed < 0:
            raise ValueError(f"a seed is 0 or more, not {seed}")
        return self.draw(random.Random(self.item_id(level, seed)), level)

    def item_id(self, level: int, seed: int) -> str:
        """The id ``task-level-seed``, which is also the seed of the random numbers."""
        return f"{self.name}-{level}-{seed}"

    def item(self, level: int, seed: int) -> Item:
        """The question as an item; a picture's file is called after the item's id."""
        question = self.question(level, seed)
        name = self.item_id(level, seed)
        return Item(
            id=name,
            prompt=question.prompt,
            answer=question.answer,
            grader=self.grader,
            images=(f"{name}.png",) if self.pictorial else (),
            category=(self.name,),
            formats=PICTURE_FORMATS if self.pictorial else ("text",),
            meta=MappingProxyType({"level": level, "seed": seed, "max_tokens": self.max_tokens}),
        )

    def picture(self, level: int, seed: int) -> Picture:
        """The picture of a level and seed.

        Raises
        ------
        ValueError
            If the family has no pictures.
        """
        render = self.question(level, seed).render
        if render is None:
            raise ValueError(f"questions of {self.name} have no pictures")
        return render()
