"""Task family of text comprehension, in which fewer and fewer sentences matter."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from pytest_adaptive_eval.tasks.answers import by_choice
from pytest_adaptive_eval.tasks.family import Question, TaskFamily
from pytest_adaptive_eval.tasks.words import WORD_CLASSES

BEINGS = WORD_CLASSES["BEING"]
LOCATIONS = WORD_CLASSES["PLACE"]
#: Things of the terse form, and further ones.
FEW_THINGS = WORD_CLASSES["THING"]
THINGS = (*FEW_THINGS, "pencil", "clock", "spoon", "carpet", "drum", "saddle", "shield", "anchor")


def _places_question(
    rng: random.Random, level: int, drawn_from: Sequence[str], links: int, *, listed: bool
) -> Question:
    """Draw chains of sentences that each locate one thing, and ask about the first."""
    things = rng.sample(drawn_from, 2 * level + links - 1)
    beings = rng.sample(BEINGS, level)
    locations = [rng.choice(LOCATIONS) for _ in beings]
    chains = [things[: links + 1]]
    for start in range(links + 1, len(things), 2):
        chains.append(things[start : start + 2])
    sentences = []
    for chain, being, location in zip(chains, beings, locations, strict=True):
        for a, b in pairwise(chain):
            sentences.append(f"The {a} is kept with the {b}.")
        sentences += [f"The {being} has the {chain[-1]}.", f"The {being} is in the {location}."]
    rng.shuffle(sentences)
    if rng.randrange(2):
        ask = f"In which place is the {things[0]}?"
        answer = locations[0]
        alternatives = LOCATIONS
    elif links == 1:
        ask = f"Who has the thing that the {things[0]} is kept with?"
        answer = beings[0]
        alternatives = BEINGS
    else:
        ask = f"Who has the thing that the {things[0]} is kept with, directly or by way of other things?"
        answer = beings[0]
        alternatives = BEINGS
    if listed:
        ask += f" Choose one of these: {', '.join(alternatives)}."
    else:
        ask += " Answer with one word."
    prompt = f"{' '.join(sentences)}\n\n{ask}"
    return Question(prompt, answer, judge=by_choice(answer, alternatives))


_TERSE = TaskFamily(
    "comprehension", "share of sentences that do not matter, 1 - 1 / level", 13, 0.03,
    lambda rng, level: _places_question(rng, level, FEW_THINGS, 1, listed=False),
)  # fmt: skip
FAMILIES = (
    TaskFamily(
        "comprehension", "people with things, and a third as many steps from a thing to its place", 13, 0.03,
        lambda rng, level: _places_question(rng, level, THINGS, 1 + level // 3, listed=True),
        form="End with `Answer: <word>`.", terse=_TERSE,
    ),
)  # fmt: skip
