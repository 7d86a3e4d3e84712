"""A task family: an endless, seeded supply of questions with a difficulty knob."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.grading import BUILT_IN
from pytest_adaptive_eval.items.item import GRADED_CHARACTERS, Item, Status

__all__ = ["Judge", "Mark", "Picture", "Question", "Run", "Runner", "TaskFamily"]

#: A grey picture, shape (height, width), 0 black to 255 white.
Picture = NDArray[np.uint8]

#: Ways in which a question about a picture can be asked, the default first.
PICTURE_FORMATS = ("image+text", "text", "image", "none")


class Run(Protocol):
    """What became of calling a function of foreign code."""

    @property
    def status(self) -> Status:
        """Ok, or timeout or error (faults of the code), sandbox_error or not_run (of the place to run it in)."""

    @property
    def outputs(self) -> tuple[Any, ...]:
        """One JSON value a call, in order, where the status is ok."""

    @property
    def detail(self) -> str:
        """What happened otherwise."""


class Runner(Protocol):
    """Something that runs foreign code safely."""

    def call(self, code: str, function: str, arguments: Sequence[Sequence[Any]]) -> Run:
        """Define `function` by `code` and call it once with each list of arguments."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What an answer is worth.

    Parameters
    ----------
    score : float
        In [0, 1].
    why : str
        What is wrong with the answer; empty where nothing is.
    """

    score: float
    why: str = ""


#: Marks an answer; raises `Unscored` where it cannot be marked, as when code cannot be run.
Judge = Callable[[str, Runner | None], Mark]


@dataclass(frozen=True, slots=True)
class Question:
    """What a family draws for one level and seed.

    Parameters
    ----------
    prompt : str
        What the subject reads.
    answer : str
        The truth, computed by code; empty where only `judge` knows it.
    render : callable, optional
        Draws the picture that belongs to the question.
    judge : callable, optional
        Marks an answer; without it the family's grader compares with `answer`.
    """

    prompt: str
    answer: str = ""
    render: Callable[[], Picture] | None = None
    judge: Judge | None = None


@dataclass(frozen=True, slots=True)
class TaskFamily:
    """Questions of one kind, harder with every level.

    Parameters
    ----------
    name : str
        Part of every item's id: small letters, digits and underscores.
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
        ``task`` where the questions' own judge is needed to grade them, or a
        grader's name, see `pytest_adaptive_eval.items.item.Item`: a bank of such
        items can be graded without the family.
    pictorial : bool
        Whether a picture belongs to each question.
    max_tokens : int
        Cap on the length of an answer, stored in the item's ``meta``.
    growing : bool
        The levels of one seed share their random numbers, so that a question
        can be that of the level below with something added.
    runner : Runner, optional
        Runs the subject's code, where answers are code.

    Raises
    ------
    ConfigError
        The name or a number cannot be.
    """

    name: str
    knob: str
    levels: int
    guess_floor: float
    draw: Callable[[random.Random, int], Question]
    grader: str = "task"
    pictorial: bool = False
    max_tokens: int = 16
    growing: bool = False
    runner: Runner | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,59}", self.name):
            raise ConfigError(
                f"a task family is called {self.name!r:.80}: small letters, digits and underscores are expected"
            )
        if self.levels < 1 or not 0.0 <= self.guess_floor < 1.0 or self.max_tokens < 1:
            raise ConfigError(
                f"task family {self.name!r}: {self.levels} levels, a guess floor of {self.guess_floor} and "
                f"{self.max_tokens} tokens, expected at least 1, a number from 0 to 1 and at least 1"
            )

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
        source = f"{self.name}-{seed}" if self.growing else self.item_id(level, seed)
        return self.draw(random.Random(source), level)

    def item_id(self, level: int, seed: int) -> str:
        """The id ``task-level-seed``, which is also the seed of the random numbers."""
        return f"{self.name}-{level}-{seed}"

    def item(self, level: int, seed: int) -> Item:
        """The question as an item, which the family grades; a picture's file is called after the item's id."""
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
            custom=self.grade,
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

    def verify(self, item: Item, text: str) -> Mark:
        """Mark an answer to an item of this family, and say what is wrong with it.

        Parameters
        ----------
        item : Item
            Drawn by this family, or read from a bank of its items: the truth is drawn again from the id.
        text : str
            The subject's answer; prose around what is asked for is no fault as long as it leaves no doubt.

        Raises
        ------
        BankError
            The item is not of this family, or is not what the family draws.
        Unscored
            The answer is code, and there is nothing to run it in.
        """
        question = self._question_of(item)
        text = str(text)[:GRADED_CHARACTERS]
        if question.judge is not None:
            return question.judge(text, self.runner)
        score = BUILT_IN["exact" if self.grader == "task" else self.grader](item, text)
        return Mark(score, "" if score == 1.0 else f"{question.answer} was expected")

    def grade(self, item: Item, text: str) -> float:
        """The score alone, as an item's grader gives it."""
        return self.verify(item, text).score

    def _question_of(self, item: Item) -> Question:
        found = re.fullmatch(rf"{self.name}-([0-9]{{1,4}})-([0-9]{{1,20}})", item.id)
        if found is None:
            raise BankError(f"item {item.id!r} is not of the task family {self.name!r}, whose ids are task-level-seed")
        try:
            question = self.question(int(found[1]), int(found[2]))
        except ValueError as error:
            raise BankError(f"item {item.id!r}: {error}") from None
        if item.prompt not in ("", question.prompt):  # empty where the item is asked by its picture alone
            raise BankError(
                f"item {item.id!r} does not ask what {self.name} draws for its id: it was edited, or made by another "
                "version; make the items anew"
            )
        return question
