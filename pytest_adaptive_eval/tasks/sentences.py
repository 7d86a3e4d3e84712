"""Seeded grammar of sentences from common words, no two of which are anagrams."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType

_CLASSES = {
    "THING": "lantern basket hammer blanket mirror kettle candle ladder violin compass bottle ticket wallet pillow"
    " shovel bucket notebook umbrella scarf helmet trumpet puzzle bracelet envelope magnet thermos",
    "PLACE": "kitchen cellar garage library attic stable bakery harbour tower chapel museum workshop barn orchard"
    " tunnel balcony station pharmacy theatre laundry",
    "BEING": "farmer teacher sailor doctor painter neighbour gardener butcher captain student singer plumber rabbit"
    " donkey parrot squirrel elephant monkey tortoise hedgehog",
    "DID": "carried borrowed painted dropped noticed repaired followed measured covered admired polished visited"
    " described ignored counted found pushed lifted examined mentioned",
    "WENT": "walked travelled wandered hurried jumped climbed sailed crawled danced waited",
    "LIKE": "heavy broken yellow wooden ancient clever gentle hungry narrow purple shiny frozen famous lonely noisy"
    " curious elegant dusty orange striped",
    "HOW": "quietly slowly suddenly proudly carefully rarely gladly politely calmly secretly bravely nearly",
    "WHERE": "behind inside beside near under above across beyond",
}

#: Words of each class, in a fixed order.
WORD_CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: tuple(words.split()) for name, words in _CLASSES.items()}
)
FUNCTION_WORDS = ("the", "and", "every", "one", "while", "because", "before", "then", "with")

#: Every word that a sentence can hold, in small letters.
LEXICON: tuple[str, ...] = (*(word for words in WORD_CLASSES.values() for word in words), *FUNCTION_WORDS)

TEMPLATES = tuple(
    tuple(template.split())
    for template in (
        "the LIKE BEING HOW DID the LIKE THING WHERE the PLACE",
        "every BEING DID one THING and then WENT WHERE the LIKE PLACE",
        "the BEING WENT HOW because one LIKE BEING DID the THING",
        "one BEING with the LIKE THING WENT WHERE the PLACE while the LIKE BEING DID the THING",
        "before the BEING DID the LIKE THING the LIKE BEING HOW WENT WHERE one PLACE",
        "the LIKE THING and the LIKE THING waited WHERE every LIKE PLACE",
        "HOW the BEING DID every LIKE THING WHERE the PLACE and DID the BEING",
    )
)


def compose(rng: random.Random, sentences: int) -> list[list[str]]:
    """Draw sentences, each a list of words in small letters."""
    return [
        [rng.choice(WORD_CLASSES[slot]) if slot in WORD_CLASSES else slot for slot in rng.choice(TEMPLATES)]
        for _ in range(sentences)
    ]
