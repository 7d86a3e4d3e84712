"""Rules for texts: instructions that code checks.

A text can keep any of them together: required words are distinct, and a letter to avoid is in none of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pytest_adaptive_eval.tasks.words import WORD_CLASSES

#: Definitions of a word and a sentence, for the prompt.
DEFINITIONS = (
    "A word is a run of letters. A sentence ends with a full stop, a question mark or an exclamation mark before a "
    "space or the end."
)
#: Words that a rule may demand.
REQUIRED_WORDS = (*WORD_CLASSES["THING"], *WORD_CLASSES["BEING"], *WORD_CLASSES["LIKE"])
#: Letters that a rule may forbid, if no required word contains them.
AVOIDED = "bcdfgkmpvwy"


def words_in(text: str) -> list[str]:
    """Return the words of a text in their case."""
    return re.findall(r"[^\W\d_]+", text)


def sentences_in(text: str) -> int:
    """Return the number of sentences of a text."""
    return len(re.findall(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s|$)", text))


@dataclass(frozen=True, slots=True)
class Rule:
    """An instruction that code can check.

    Args:
        holds: Returns whether an answer keeps the rule.
    """

    text: str
    holds: Callable[[str], bool]


def folded_words(text: str) -> list[str]:
    """Return the words of a text, casefolded."""
    return [word.casefold() for word in words_in(text)]


#: Draws a rule with random numbers, and takes required words from the end of a list.
Kind = Callable[[random.Random, list[str]], Rule]


def _count(instruction: str, low: int, high: int, count: Callable[[str], int]) -> Kind:
    """Return a kind of rule that demands an exact number, drawn uniformly from `low` to `high`."""

    def kind(rng: random.Random, _: list[str]) -> Rule:
        number = rng.randint(low, high)
        return Rule(instruction.format(n=number), lambda text: count(text) == number)

    return kind


def _word_at(name: str, position: slice) -> Kind:
    """Return a kind of rule that demands a word at a position, a slice of one word."""

    def kind(_: random.Random, words: list[str]) -> Rule:
        word = words.pop()
        return Rule(f"{name} is {word}", lambda text: folded_words(text)[position] == [word])

    return kind


def _repeat(rng: random.Random, words: list[str]) -> Rule:
    word = words.pop()
    times = rng.randint(2, 5)
    return Rule(
        f"the word {word} stands in it exactly {times} times", lambda text: folded_words(text).count(word) == times
    )


def _capitals(_: random.Random, words: list[str]) -> Rule:
    word = words.pop().upper()
    return Rule(
        f"{word} stands in it once, in capital letters, and no other word of several letters is in capitals",
        lambda text: [other for other in words_in(text) if len(other) > 1 and other.isupper()] == [word],
    )


def _quoted(_: random.Random, words: list[str]) -> Rule:
    both = f'"{words.pop()} {words.pop()}"'
    return Rule(f"{both} stands in it, in these double quotation marks", lambda text: both in text.casefold())


def _number(rng: random.Random, _: list[str]) -> Rule:
    number = str(rng.randint(100, 999))
    return Rule(f"{number} is the only number in it, once", lambda text: re.findall(r"\d+", text) == [number])


def _avoided(rng: random.Random, words: list[str]) -> Rule:
    """Draw a letter to avoid that is in no word of an earlier rule; no rule demands `words`."""
    taken: set[str] = set()
    for word in REQUIRED_WORDS:
        if word not in words:
            taken.update(word)
    letter = rng.choice([letter for letter in AVOIDED if letter not in taken] or ["z"])
    return Rule(f"the letter {letter} does not stand in it", lambda text: letter not in text.casefold())


def _brackets_in(text: str) -> int:
    """Return the number of round brackets that open, -1 unless as many close."""
    opening = text.count("(")
    if opening != text.count(")"):
        return -1
    return opening


#: Kinds of rules that demand a number.
COUNTED: Mapping[str, Kind] = MappingProxyType(
    {
        "words": _count("it has exactly {n} words", 60, 99, lambda text: len(words_in(text))),
        "sentences": _count("it has exactly {n} sentences", 5, 12, sentences_in),
        "lines": _count(
            "it has exactly {n} lines, blank ones not counted",
            2,
            9,
            lambda text: sum(bool(line.strip()) for line in text.splitlines()),
        ),
        "commas": _count("it has exactly {n} commas", 3, 12, lambda text: text.count(",")),
        "questions": _count("it has exactly {n} question marks", 1, 4, lambda text: text.count("?")),
        "brackets": _count(
            "it has exactly {n} round brackets that open, and as many that close",
            2,
            6,
            _brackets_in,
        ),
        "semicolons": _count("it has exactly {n} semicolons", 2, 7, lambda text: text.count(";")),
        "initials": _count(
            "exactly {n} of its words begin with s", 5, 14, lambda text: sum(w[0] == "s" for w in folded_words(text))
        ),
        "long": _count(
            "exactly {n} of its words have ten letters or more",
            2,
            9,
            lambda text: sum(len(w) > 9 for w in folded_words(text)),
        ),
        "repeat": _repeat,
    }
)

#: Kinds of rules about the form of a text, without counts that could exclude each other.
FORMAL: Mapping[str, Kind] = MappingProxyType(
    {
        "first": _word_at("its first word", slice(0, 1)),
        "fourth": _word_at("its fourth word", slice(3, 4)),
        "last": _word_at("its last word", slice(-1, None)),
        "capitals": _capitals,
        "quoted": _quoted,
        "number": _number,
        **{
            name: COUNTED[name] for name in ("words", "sentences", "lines", "commas", "questions", "brackets", "repeat")
        },
    }
)


def draw_rules(rng: random.Random, number: int, kinds: Mapping[str, Kind], *, avoid: bool = False) -> Sequence[Rule]:
    """Draw rules, each of another kind; one of several may forbid a letter with `avoid`."""
    words = list(REQUIRED_WORDS)
    rng.shuffle(words)
    names = rng.sample(list(kinds), number)
    avoids = avoid and number > 1 and rng.randrange(2) == 1
    if avoids:
        names.pop(0)
    rules = [kinds[name](rng, words) for name in names]
    if avoids:
        rules.append(_avoided(rng, words))
    return rules
