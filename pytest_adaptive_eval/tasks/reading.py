"""Comprehension of a text in which fewer and fewer sentences matter."""

from __future__ import annotations

import random

from pytest_adaptive_eval.tasks.answers import by_choice
from pytest_adaptive_eval.tasks.family import Question, TaskFamily
from pytest_adaptive_eval.tasks.sentences import WORD_CLASSES

__all__ = ["COMPREHENSION"]

THINGS, BEINGS, PLACES = WORD_CLASSES["THING"], WORD_CLASSES["BEING"], WORD_CLASSES["PLACE"]


def _comprehension(rng: random.Random, level: int) -> Question:
    # Each chain of three sentences tells where one thing is; only the first is asked about.
    things, beings = rng.sample(THINGS, 2 * level), rng.sample(BEINGS, level)
    places = [rng.choice(PLACES) for _ in beings]
    told = []
    for i, (being, place) in enumerate(zip(beings, places, strict=True)):
        told += [
            f"The {things[2 * i]} is kept with the {things[2 * i + 1]}.",
            f"The {being} has the {things[2 * i + 1]}.",
            f"The {being} is in the {place}.",
        ]
    rng.shuffle(told)
    if rng.randrange(2):
        ask, answer, known = f"In which place is the {things[0]}?", places[0], PLACES
    else:
        ask, answer, known = f"Who has the thing that the {things[0]} is kept with?", beings[0], BEINGS
    prompt = f"{' '.join(told)}\n\n{ask} Answer with one word."
    return Question(prompt, answer, judge=by_choice(answer, known))


COMPREHENSION = TaskFamily(
    "comprehension", "share of sentences that do not matter, 1 - 1 / level", 13, 0.03, _comprehension, max_tokens=1024
)
