"""Terse forms of task families in words alone, for models as tiny as this project's own fixtures.

Data is in capitals and digits, instructions in small letters: even a tiny tokenizer can then keep one token per
character of data.
"""

from __future__ import annotations

import random
import re

from pytest_adaptive_eval.tasks.answers import by_any, by_letters
from pytest_adaptive_eval.tasks.family import Content, Question, TaskFamily, check_level, only_match, plural
from pytest_adaptive_eval.tasks.words import ANAGRAMS, WORDS


def _count_question(needle: str, hay: str) -> Question:
    return Question(f"How many {needle} are in {hay}?", str(hay.count(needle)))


def _counting(rng: random.Random, level: int) -> Question:
    # The count is drawn first and uniformly: no constant answer is right more than one time in ten.
    count = rng.randrange(10)
    needle, *others = rng.sample("ABCDEF", 4)
    length = 6 + 3 * level
    hay = [needle] * count + [rng.choice(others) for _ in range(length - count)]
    rng.shuffle(hay)
    return _count_question(needle, "".join(hay))


_COUNT = re.compile(r"\b([A-F])\b[^A-Z]{1,60}\b([A-F]{2,200})\b")


def _count_demand(level: int) -> str:
    return f"a string of {6 + 3 * level} capital letters from A to F, which holds the letter nine times at most"


def _read_count(text: str, level: int, _: random.Random) -> Question:
    needle, hay = only_match(_COUNT, text, "letter with a string of the letters A to F")
    check_level(len(hay) == 6 + 3 * level and hay.count(needle) < 10, _count_demand(level))
    return _count_question(needle, hay)


_COUNTS = Content("How many A are in ABCADBFEA?", _count_demand, _read_count)


def _operation_question(terms: str, value: int) -> Question:
    return Question(f"Work from left to right: {terms} = ?", str(value))


def _operations(rng: random.Random, level: int) -> Question:
    # Every intermediate value is a uniformly drawn digit: the floor is one in ten at all levels.
    value = rng.randrange(10)
    terms = str(value)
    for _ in range(level):
        target = (value + rng.randrange(1, 10)) % 10
        if value and target % value == 0 and rng.randrange(2):
            terms += f" * {target // value}"
        elif target > value:
            terms += f" + {target - value}"
        else:
            terms += f" - {value - target}"
        value = target
    return _operation_question(terms, value)


_OPERATIONS = re.compile(r"(?<![\d.])(\d{1,4}(?: ?[-+*] ?\d{1,4}){1,60})(?! ?[\d.*/+-])")


def _operations_demand(level: int) -> str:
    return f"{level} operation{plural(level)}, + - or *, and from left to right no value below 0 or above 9"


def _read_operations(text: str, level: int, _: random.Random) -> Question:
    (terms,) = only_match(_OPERATIONS, text, "row of operations")
    first, *rest = re.findall(r"[-+*]|\d+", terms)
    value = int(first)
    values = [value]
    for sign, number in zip(rest[::2], map(int, rest[1::2]), strict=True):
        value = {"+": value + number, "-": value - number, "*": value * number}[sign]
        values.append(value)
    of_level = len(values) == level + 1 and all(0 <= value < 10 for value in values)
    check_level(of_level, _operations_demand(level))
    return _operation_question(" ".join([str(int(first)), *rest]), value)


_TERMS = Content("Work from left to right: 3 + 4 - 5 = ?", _operations_demand, _read_operations)


def anagram_question(prompt: str, word: str, mixed: str) -> Question:
    """Return a question whose right answers are all English words with the letters of a word, without `mixed`."""
    others = ANAGRAMS.get(word, ())
    judge = by_any(by_letters(each, mixed) for each in (word, *others))
    return Question(prompt, word, judge=judge, others=others)


def _unscramble(rng: random.Random, level: int) -> Question:
    word = rng.choice(WORDS[level + 2])
    letters = list(word)
    while (mixed := "".join(letters)) == word:
        rng.shuffle(letters)
    return anagram_question(f"Which word is {mixed}?", word, mixed)


COUNTING = TaskFamily(
    "counting", "length of the string, 6 + 3 * level characters", 40, 0.10, _counting, "numeric", content=_COUNTS
)
OPERATIONS = TaskFamily(
    "operations", "number of operations, from left to right", 40, 0.10, _operations, "numeric", content=_TERMS
)
UNSCRAMBLE = TaskFamily("unscramble", "letters of the word, level + 2", 6, 0.04, _unscramble, "exact")
