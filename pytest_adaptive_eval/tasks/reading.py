"""Task family of text comprehension, in which fewer and fewer sentences matter."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from pytest_adaptive_eval.tasks.answers import by_choice
from pytest_adaptive_eval.tasks.family import Question, TaskFamily
from pytest_adaptive_eval.tasks.sentences import WORD_CLASSES

__all__ = ["FAMILIES"]

THINGS, BEINGS, LOCATIONS = WORD_CLASSES["THING"], WORD_CLASSES["BEING"], WORD_CLASSES["PLACE"]


def _comprehension(rng: random.Random, level: int, *, listed: bool = True) -> Question:
    # Each chain of three sentences locates one thing; only the first chain is asked about.
    things, beings = rng.sample(THINGS, 2 * level), rng.sample(BEINGS, level)
    locations = [rng.choice(LOCATIONS) for _ in beings]
    sentences = []
    for i, (being, location) in enumerate(zip(beings, locations, strict=True)):
        sentences += [
            f"The {things[2 * i]} is kept with the {things[2 * i + 1]}.",
            f"The {being} has the {things[2 * i + 1]}.",
            f"The {being} is in the {location}.",
        ]
    rng.shuffle(sentences)
    if rng.randrange(2):
        ask, answer, alternatives = f"In which place is the {things[0]}?", locations[0], LOCATIONS
    else:
        ask, answer, alternatives = f"Who has the thing that the {things[0]} is kept with?", beings[0], BEINGS
    ask += f" Choose one of these: {', '.join(alternatives)}." if listed else " Answer with one word."
    prompt = f"{' '.join(sentences)}\n\n{ask}"
    return Question(prompt, answer, judge=by_choice(answer, alternatives))


_TERSE = TaskFamily(
    "comprehension", "share of sentences that do not matter, 1 - 1 / level", 13, 0.03,
    partial(_comprehension, listed=False),
)  # fmt: skip
FAMILIES = (replace(_TERSE, draw=_comprehension, form="End with `Answer: <word>`.", terse=_TERSE),)
