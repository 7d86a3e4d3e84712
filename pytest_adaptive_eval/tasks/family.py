"""Task families: seeded generators of questions whose difficulty is set by a level."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.graders.kind import grader_kinds
from pytest_adaptive_eval.items.item import GRADED_CHARACTERS, Item, Status
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning

#: A picture, grey of shape (height, width) or in colour (red, green, blue) of shape (height, width, 3), 0 to 255.
Picture = NDArray[np.uint8]

#: Side of the pictures of items that do not name one in ``meta``.
SMALL_PIXELS = 48

#: Formats of a question about a picture, the default first.
PICTURE_FORMATS = ("image+text", "text", "image", "none")


class RunnerResult(Protocol):
    """Result of calling a function of foreign code; see `pytest_adaptive_eval.extensions.sandbox.runner.Run`."""

    @property
    def status(self) -> Status:
        """``ok``, what the code did wrong, or ``sandbox_error``."""

    @property
    def outputs(self) -> tuple[Any, ...]:
        """One value per call; empty unless ``ok``."""

    @property
    def detail(self) -> str:
        """Reason for missing outputs."""


class Runner(Protocol):
    """Sandbox that runs foreign code."""

    def call(self, code: str, function: str, arguments: Sequence[Sequence[Any]]) -> RunnerResult:
        """Define `function` by `code` and call it once with each list of arguments."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Score of an answer.

    Args:
        score: In [0, 1].
        why: Fault of the answer; empty for a full score.
    """

    score: float
    why: str = ""


#: Function that marks an answer.  It raises `Unscored` if there is no runner for an answer that is code.
Judge = Callable[[str, Runner | None], Mark]


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a family, drawn for one level and seed.

    Args:
        answer: Correct answer, computed by code; empty if only `judge` can mark answers.
        judge: Marks an answer. Without it the family's grader compares with `answer`.
        choices: Alternatives that the prompt lists, in the order A, B, C, ...
    """

    prompt: str
    answer: str = ""
    render: Callable[[], Picture] | None = None
    judge: Judge | None = None
    choices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """Instructions for models that write questions of a family, and the parser of such questions.

    Args:
        demand: ``demand(level)`` describes a question of that level.
        read: ``read(text, level, rng)`` makes the question that a model wrote, with its answer by code. It raises
            `pytest_adaptive_eval.tasks.family.Malformed` if the text cannot be used.
        whole: Whether the entire text is the question's material, which leaves a model no place for an answer.
    """

    form: str
    demand: Callable[[int], str]
    read: Callable[[str, int, random.Random], Question]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class TaskFamily:
    """Questions of one kind, harder with every level.

    Args:
        name: First part of every item's id: small letters, digits and underscores.
        knob: Meaning of the level, in words.
        levels: Hardest level; the easiest is 1.
        guess_floor: Accuracy of the best constant answer, at the level where it is highest.
        draw: ``draw(rng, level)`` returns the `Question`. All its randomness comes from `rng`, and it iterates over
            nothing whose order may change.
        grader: ``task`` if the questions' own judge grades them. Otherwise the name of a grader, see
            `pytest_adaptive_eval.items.item.Item`: a bank of such items can be graded without the family.
        growing: Whether the levels of one seed share their random numbers, which lets a question extend the previous
            level's.
        runner: Runs the subject's code, if answers are code.
        content: Lets models write questions of the family.
        pixels: Longer side of the pictures, stored in the item's ``meta``; None for `SMALL_PIXELS` and for a family
            whose pictures have no size to set.
        sized: ``sized(pixels)`` returns the family with pictures of another size, see `at_pixels`.
        form: Sentence with which every prompt ends: the form of the answer, such as ``End with `Answer: <number>`.``
        terse: Family that draws the questions of the terse form, where these differ by more than `form`.

    Raises:
        ConfigError: The name is malformed or a number is out of range.
    """

    name: str
    knob: str
    levels: int
    guess_floor: float
    draw: Callable[[random.Random, int], Question]
    grader: str = "task"
    pictorial: bool = False
    growing: bool = False
    runner: Runner | None = None
    content: Content | None = None
    pixels: int | None = None
    sized: Callable[[int], TaskFamily] | None = None
    form: str = ""
    terse: TaskFamily | None = None

    def __post_init__(self) -> None:
        named = re.fullmatch(r"[a-z][a-z0-9_]{0,59}", self.name)
        if not named or self.levels < 1 or not 0.0 <= self.guess_floor < 1.0:
            raise ConfigError(
                f"task family {self.name!r:.80}: {self.levels} levels, a guess floor of {self.guess_floor}; expected "
                "a name of small letters, digits and underscores, at least 1 level and a floor from 0 to 1"
            )

    def of_size(self, size: int | str) -> TaskFamily:
        """Return the family with pictures of `size` pixels, or its ``small`` form for tiny models; or ConfigError."""
        if isinstance(size, int):
            return self.at_pixels(size)
        if self.sized:
            return self.at_pixels(SMALL_PIXELS)
        return self.in_terse_form()

    def at_pixels(self, pixels: int) -> TaskFamily:
        """Return the family with pictures of that longer side; raise ConfigError if it has none of that size."""
        if self.sized is None:
            raise ConfigError(f"size is {pixels}, and the task {self.name!r} has no pictures of a set size: remove it")
        return replace(self.sized(pixels), runner=self.runner)

    def in_terse_form(self) -> TaskFamily:
        """Return the family whose prompts do not say what form the answer takes, for tiny models; or ConfigError."""
        if not self.form:
            raise ConfigError(f"size is 'small', and prompts of the task {self.name!r} have one form: remove it")
        return replace(self.terse or self, runner=self.runner, form="", terse=None)

    def has_form(self, item: Item) -> bool:
        """Return whether an item has this family's form: the size of its picture, and terse prompts or not."""
        same_size = self.sized is None or item.meta.get("pixels") == self.pixels
        return same_size and (item.meta.get("terse") is False) == bool(self.form)

    def question(self, level: int, seed: int) -> Question:
        """Return the question of a level and seed, the same on every platform; raise ValueError if out of range."""
        if not 1 <= level <= self.levels:
            raise ValueError(f"{self.name} has levels 1 to {self.levels}, not {level}")
        if self.growing:
            source = f"{self.name}-{seed}"
        else:
            source = self.item_id(level, seed)
        return self.with_form(self.draw(random.Random(source), level))

    def with_form(self, question: Question) -> Question:
        """Return a question whose prompt ends with the form of the answer."""
        if not self.form:
            return question
        between = "\n\n" if "\n" in question.prompt else " "
        return replace(question, prompt=f"{question.prompt}{between}{self.form}")

    @property
    def form_settings(self) -> Mapping[str, Any]:
        """Settings of the family's form, in the ``meta`` of its items and in records of its banks."""
        settings: dict[str, Any] = {}
        if self.pixels is not None:
            settings["pixels"] = self.pixels
        if self.form:
            settings["terse"] = False
        return settings

    def item_id(self, level: int, seed: int) -> str:
        """Return the id ``task-level-seed``, which also seeds the random numbers."""
        return f"{self.name}-{level}-{seed}"

    def item(self, level: int, seed: int) -> Item:
        """Return the question as an item that the family grades; a picture's file has its id and set size."""
        question = self.question(level, seed)
        name = self.item_id(level, seed)
        images: tuple[str, ...] = ()
        formats: tuple[str, ...] = ("text",)
        if self.pictorial:
            formats = PICTURE_FORMATS
            images = (f"{name}.png",)
            if self.pixels is not None:
                images = (f"{name}.{self.pixels}.png",)
        return Item(
            id=name,
            prompt=question.prompt,
            answer=question.answer,
            grader=self.grader,
            images=images,
            choices=question.choices,
            category=(self.name,),
            formats=formats,
            meta=MappingProxyType({"level": level, "seed": seed, **self.form_settings}),
            custom=self.grade,
            others=question.others,
        )

    def picture(self, level: int, seed: int) -> Picture:
        """Return the picture of a level and seed of a pictorial family."""
        render = self.question(level, seed).render
        assert render is not None
        return render()

    def verify(self, item: Item, text: str) -> Mark:
        """Mark an answer to an item of this family, with the reason for a lower score.

        Args:
            item: Drawn by this family, or read from a bank of its items: the answer is drawn again from the id.
            text: The subject's answer. Prose around it is allowed if exactly one answer can be meant.

        Raises:
            BankError: The item is not of this family, or differs from the one that the family draws.
            Unscored: The answer is code, and the runner is missing.
        """
        question = self._question_of(item)
        text = without_reasoning(str(text)[:GRADED_CHARACTERS])
        if question.judge is not None:
            return question.judge(text, self.runner)
        grader = "exact" if self.grader == "task" else self.grader
        score = grader_kinds()[grader].grade(item, text)
        if score == 1.0:
            return Mark(score)
        return Mark(score, f"{question.answer} was expected")

    def grade(self, item: Item, text: str) -> float:
        """Return the score of an answer, as an item's grader."""
        return self.verify(item, text).score

    def _in_form_of(self, item: Item) -> TaskFamily:
        if self.has_form(item) or not (self.form or self.sized):
            return self
        if self.sized is None:
            return self.in_terse_form()
        pixels = item.meta.get("pixels", SMALL_PIXELS)
        if not isinstance(pixels, int):
            raise BankError(f"item {item.id!r}: meta.pixels is {pixels!r:.80}, expected a whole number; correct it")
        return self.at_pixels(pixels)

    def _question_of(self, item: Item) -> Question:
        match = re.fullmatch(rf"{self.name}-([0-9]{{1,4}})-([0-9]{{1,20}})(@.*)?", item.id)
        if match is None:
            raise BankError(f"item {item.id!r} is not of the task family {self.name!r}, whose ids are task-level-seed")
        try:
            question = self._in_form_of(item).question(int(match[1]), int(match[2]))
        except (ValueError, ConfigError) as error:
            raise BankError(f"item {item.id!r}: {error}") from None
        if item.prompt not in ("", question.prompt):  # empty in the format that shows the picture alone
            raise BankError(
                f"item {item.id!r} does not ask what {self.name} draws for its id: it was edited, or made by another "
                "version; make the items again"
            )
        return question


#: Characters of a written question that are read.
READ_CHARACTERS = 4000


class Malformed(ValueError):
    """A written question that cannot be used.

    Args:
        kind: Whether the content cannot be parsed, or is of another level.
        why: Reason, for the model that wrote it.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def only_match(pattern: re.Pattern[str], text: str, label: str) -> tuple[str, ...]:
    """Return the groups of the pattern's only distinct match; raise `Malformed` if there is none or more than one."""
    matches = list(dict.fromkeys(match.groups() for match in pattern.finditer(text)))
    if not matches:
        raise Malformed("format", f"no {label} was found")
    if len(matches) > 1:
        raise Malformed("format", f"more than one {label} was found")
    return matches[0]


def check_level(matches: bool, demand: str) -> None:
    """Raise `Malformed` unless a question matches the demand of its level."""
    if not matches:
        raise Malformed("level", f"it does not hold to this: {demand}")


def plural(level: int) -> str:
    """Return the plural ending of that many things."""
    return "s" * (level > 1)


def content_of(family: TaskFamily) -> Content:
    """Return how models write questions of a family; raise ConfigError if they cannot."""
    if family.content is None:
        raise ConfigError(
            f"questions of {family.name!r} cannot be written by a model, since no code parses them; name a task whose "
            "questions can, see docs/reference/networks.md"
        )
    return family.content


def _grader_by(judge: Judge) -> Callable[[Item, str], float]:
    """Return an item's grader by a judge, which gets no runner."""
    return lambda _, answer: judge(answer[:GRADED_CHARACTERS], None).score


def written_item(family: TaskFamily, level: int, name: str, text: str) -> Item:
    """Return the question that a model wrote, in the family's words and with the answer by its code.

    Args:
        name: Unique among the items of the level; it also seeds what code draws.

    Raises:
        Malformed: The text cannot be used.
        ConfigError: Models cannot write questions of that family.
    """
    identity = f"{family.name}-{level}-{name}"
    text = re.sub(r"[ \t]+", " ", text[:READ_CHARACTERS].replace("**", ""))
    question = family.with_form(content_of(family).read(text, level, random.Random(identity)))
    grade = None
    if question.judge is not None:
        grade = _grader_by(question.judge)
    return Item(
        id=identity,
        prompt=question.prompt,
        answer=question.answer,
        grader=family.grader,
        category=(family.name,),
        meta=MappingProxyType({"level": level}),
        custom=grade,
    )
