"""Rules that a text is to keep, each an instruction and a check by code.

Any of them can be kept together: required words differ from each other, and a
letter to be avoided is in none of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pytest_adaptive_eval.tasks.sentences import WORD_CLASSES

__all__ = ["COUNTED", "DEFINITIONS", "FORMAL", "REQUIRED_WORDS", "Rule", "draw_rules", "sentences_in", "words_in"]

#: What the instructions mean by a word and a sentence; part of the prompt.
DEFINITIONS = (
    "A word is a run of letters. A sentence ends with a full stop, a question mark or an exclamation mark before a "
    "space or the end."
)
#: Words that a rule may ask for.
REQUIRED_WORDS = (*WORD_CLASSES["THING"], *WORD_CLASSES["BEING"], *WORD_CLASSES["LIKE"])
#: Letters that may have to be avoided, where no required word has them.
AVOIDED = "bcdfgkmpvwy"


def words_in(text: str) -> list[str]:
    """The words of a text, as they stand."""
    return re.findall(r"[^\W\d_]+", text)


def sentences_in(text: str) -> int:
    """The number of sentences of a text."""
    return len(re.findall(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s|$)", text))


@dataclass(frozen=True, slots=True)
class Rule:
    """An instruction that code can check.

    Parameters
    ----------
    text : str
        As the subject reads it.
    holds : callable
        Whether an answer keeps it.
    """

    text: str
    holds: Callable[[str], bool]


def _folded(text: str) -> list[str]:
    return [word.casefold() for word in words_in(text)]


def _count(what: str, low: int, high: int, count: Callable[[str], int]) -> Callable[[random.Random, list[str]], Rule]:
    """A kind of rule that asks for an exact number, drawn evenly from `low` to `high`."""

    def kind(rng: random.Random, _: list[str]) -> Rule:
        wanted = rng.randint(low, high)
        return Rule(f"{what.format(n=wanted)}", lambda text: count(text) == wanted)

    return kind


def _place(what: str, at: int) -> Callable[[random.Random, list[str]], Rule]:
    """A kind of rule that asks for a word in a place, counted from 0, or from the end with -1."""

    def kind(_: random.Random, words: list[str]) -> Rule:
        word = words.pop()

        def holds(text: str) -> bool:
            found = _folded(text)
            return len(found) > at and found[at] == word if at >= 0 else bool(found) and found[at] == word

        return Rule(f"{what} is {word}", holds)

    return kind


def _repeat(rng: random.Random, words: list[str]) -> Rule:
    word, wanted = words.pop(), rng.randint(2, 5)
    return Rule(
        f"the word {word} stands in it exactly {wanted} times", lambda text: _folded(text).count(word) == wanted
    )


def _capitals(_: random.Random, words: list[str]) -> Rule:
    word = words.pop().upper()
    return Rule(
        f"{word} stands in it once, in capital letters, and no other word of several letters is in capitals",
        lambda text: [found for found in words_in(text) if len(found) > 1 and found.isupper()] == [word],
    )


def _quoted(_: random.Random, words: list[str]) -> Rule:
    both = f'"{words.pop()} {words.pop()}"'
    return Rule(f"{both} stands in it, in these double quotation marks", lambda text: both in text.casefold())


def _number(rng: random.Random, _: list[str]) -> Rule:
    wanted = str(rng.randint(100, 999))
    return Rule(f"{wanted} is the only number in it, once", lambda text: re.findall(r"\d+", text) == [wanted])


def _avoided(rng: random.Random, words: list[str]) -> Rule:
    """To be drawn last; without the words that are still free to be asked for, all others being taken."""
    taken = {letter for word in REQUIRED_WORDS if word not in words for letter in word}
    letter = rng.choice([letter for letter in AVOIDED if letter not in taken] or ["z"])
    return Rule(f"the letter {letter} does not stand in it", lambda text: letter not in text.casefold())


Kind = Callable[[random.Random, list[str]], Rule]

#: Kinds of rules that ask for a number.
COUNTED: Mapping[str, Kind] = MappingProxyType(
    {
        "words": _count("it has exactly {n} words", 60, 99, lambda text: len(words_in(text))),
        "sentences": _count("it has exactly {n} sentences", 5, 12, sentences_in),
        "lines": _count(
            "it has exactly {n} lines, blank ones not counted",
            2,
            9,
            lambda text: sum(1 for line in text.splitlines() if line.strip()),
        ),
        "commas": _count("it has exactly {n} commas", 3, 12, lambda text: text.count(",")),
        "questions": _count("it has exactly {n} question marks", 1, 4, lambda text: text.count("?")),
        "brackets": _count(
            "it has exactly {n} round brackets that open, and as many that close",
            2,
            6,
            lambda text: text.count("(") if text.count("(") == text.count(")") else -1,
        ),
        "semicolons": _count("it has exactly {n} semicolons", 2, 7, lambda text: text.count(";")),
        "initials": _count(
            "exactly {n} of its words begin with s", 5, 14, lambda text: sum(w[0] == "s" for w in _folded(text))
        ),
        "long": _count(
            "exactly {n} of its words have ten letters or more",
            2,
            9,
            lambda text: sum(len(w) > 9 for w in _folded(text)),
        ),
        "repeat": _repeat,
    }
)

#: Kinds of rules about the form of a text; counts that could exclude each other are left out.
FORMAL: Mapping[str, Kind] = MappingProxyType(
    {
        "first": _place("its first word", 0),
        "fourth": _place("its fourth word", 3),
        "last": _place("its last word", -1),
        "capitals": _capitals,
        "quoted": _quoted,
        "number": _number,
        **{
            name: COUNTED[name] for name in ("words", "sentences", "lines", "commas", "questions", "brackets", "repeat")
        },
    }
)


def draw_rules(rng: random.Random, number: int, kinds: Mapping[str, Kind], *, avoid: bool = False) -> Sequence[Rule]:
    """So many rules, of as many kinds.

    Parameters
    ----------
    rng : random.Random
    number : int
        At most the number of kinds.
    kinds : mapping
    avoid : bool
        Whether one of several rules may be a letter to be avoided.
    """
    words = list(REQUIRED_WORDS)
    rng.shuffle(words)
    names = rng.sample(list(kinds), number)
    avoids = avoid and number > 1 and rng.randrange(2) == 1
    rules = [kinds[name](rng, words) for name in (names[1:] if avoids else names)]
    if avoids:
        rules.append(_avoided(rng, words))
    return rules
