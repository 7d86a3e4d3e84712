"""Task family of paraphrases among irrelevant sentences (task 1-2 of MACEval's open tasks)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from pytest_adaptive_eval.tasks.answers import text_versions
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.words import WORD_CLASSES

KEPT = 5  #: Sentences to retell.
_THINGS, _PLACES = WORD_CLASSES["THING"], WORD_CLASSES["PLACE"]
_SENTENCE_END = re.compile(r"[.!?;]\s|\n")
_WORD = re.compile(r"[a-z]+")

Fact = tuple[str, str]  #: A thing and a place.


def _facts(text: str) -> Iterator[Fact]:
    """Yield the thing and the place of each sentence that names one of each; empty for what it does not name once."""
    for sentence in _SENTENCE_END.split(text.casefold()):
        words = _WORD.findall(sentence)
        things = [word for word in words if word in _THINGS]
        rooms = [word for word in words if word in _PLACES]
        if things or rooms:
            yield things[0] if len(things) == 1 else "", rooms[0] if len(rooms) == 1 else ""


def by_facts(facts: Sequence[Fact]) -> Judge:
    """Return a judge by the share of facts that an answer has, less one for each other sentence on things or places.

    Remarks before or after the text are ignored, see `text_versions`: the version with the highest score counts.
    """

    def judge(text: str, _: Runner | None) -> Mark:
        marks = [_mark(version, facts) for version in text_versions(text) or [text]]
        return max(marks, key=lambda mark: mark.score)

    return judge


def _mark(text: str, facts: Sequence[Fact]) -> Mark:
    """Return the mark of a text."""
    stated = list(dict.fromkeys(_facts(text)))
    missing = [" and ".join(fact) for fact in facts if fact not in stated]
    others = len(stated) - (len(facts) - len(missing))
    score = max(len(facts) - len(missing) - others, 0) / len(facts)
    faults = []
    if missing:
        faults.append(f"missing: {'; '.join(missing)}")
    if others:
        faults.append(f"other sentences: {others}")
    return Mark(score, "; ".join(faults))


def _draw(rng: random.Random, level: int) -> Question:
    """Draw sentences about one being, and `level` times as many about others."""
    pairs = [(thing, location) for thing in _THINGS for location in _PLACES]
    facts = rng.sample(pairs, KEPT * (level + 1))
    being, *others = rng.sample(WORD_CLASSES["BEING"], 8)
    sentences = []
    for n, (thing, location) in enumerate(facts):
        if n < KEPT:
            character = being
        else:
            character = rng.choice(others)
        did, where = rng.choice(WORD_CLASSES["DID"]), rng.choice(WORD_CLASSES["WHERE"])
        sentences.append(f"The {character} {did} the {thing} {where} the {location}.")
    own_facts = facts[:KEPT]
    answer = "\n".join(sentences[:KEPT])
    rng.shuffle(sentences)
    ask = (
        f"Retell in other words what the {being} did, one sentence for each deed. Keep the names of things and places, "
        "and leave out what anybody else did."
    )
    return Question(f"{' '.join(sentences)}\n\n{ask}", answer, judge=by_facts(own_facts))


FAMILIES = (
    TaskFamily(
        "retelling", "irrelevant sentences, 5 * level beside 5 that matter", 10, 0.01, _draw,
        form="Write nothing but these sentences, one a line.",
    ),
)  # fmt: skip
