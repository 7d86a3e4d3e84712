"""Task families that are asked in words alone.

Data is written in capitals and digits, instructions in small letters, so that
even a tiny tokenizer can keep one token a data character.
"""

from __future__ import annotations

import random

from pytest_adaptive_eval.tasks.answers import by_letters
from pytest_adaptive_eval.tasks.family import Question, TaskFamily
from pytest_adaptive_eval.tasks.words import WORDS

__all__ = [
    "ADDITION",
    "COUNTING",
    "OPERATIONS",
    "POST_ORDER",
    "UNSCRAMBLE",
    "count_question",
    "operation_question",
    "sum_question",
    "tree_question",
]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def count_question(needle: str, hay: str) -> Question:
    """How often a letter stands in a string."""
    return Question(f"How many {needle} are in {hay}?", str(hay.count(needle)))


def sum_question(a: int, b: int) -> Question:
    """What two numbers add up to."""
    return Question(f"What is {a} + {b}?", str(a + b))


def operation_question(terms: str, value: int) -> Question:
    """What is left of operations from left to right."""
    return Question(f"Work from left to right: {terms} = ?", str(value))


def tree_question(before: str, within: str, after: str) -> Question:
    """The post-order of a tree by its pre-order and in-order."""
    prompt = f"A tree has pre-order {before} and in-order {within}. What is the post-order?"
    return Question(prompt, after, judge=by_letters(after))


def _counting(rng: random.Random, level: int) -> Question:
    # The count is drawn first and evenly, so that no single answer is right more than one time in ten.
    count = rng.randrange(10)
    needle, *others = rng.sample("ABCDEF", 4)
    hay = [needle] * count + [rng.choice(others) for _ in range(6 + 3 * level - count)]
    rng.shuffle(hay)
    return count_question(needle, "".join(hay))


def _addition(rng: random.Random, level: int) -> Question:
    low, high = 10 ** (level - 1), 10**level
    return sum_question(rng.randrange(low, high), rng.randrange(low, high))


def _operations(rng: random.Random, level: int) -> Question:
    # Every intermediate value is a digit, each as likely as any other: the floor is one in ten at all levels.
    value = rng.randrange(10)
    text = str(value)
    for _ in range(level):
        target = (value + rng.randrange(1, 10)) % 10
        if value and target % value == 0 and rng.randrange(2):
            text += f" * {target // value}"
        elif target > value:
            text += f" + {target - value}"
        else:
            text += f" - {value - target}"
        value = target
    return operation_question(text, value)


def _post_order(rng: random.Random, level: int) -> Question:
    labels = rng.sample(LETTERS, level + 1)

    def grow(first: int, size: int) -> tuple[str, str, str]:
        """Pre-, in- and post-order of a random tree over the labels from `first` on."""
        if size == 0:
            return "", "", ""
        left = rng.randrange(size)
        root = labels[first]
        a = grow(first + 1, left)
        b = grow(first + 1 + left, size - 1 - left)
        return root + a[0] + b[0], a[1] + root + b[1], a[2] + b[2] + root

    return tree_question(*grow(0, level + 1))


def _unscramble(rng: random.Random, level: int) -> Question:
    word = rng.choice(WORDS[level + 2])
    letters = list(word)
    while (mixed := "".join(letters)) == word:
        rng.shuffle(letters)
    return Question(f"Which word is {mixed}?", word, judge=by_letters(word, mixed))


COUNTING = TaskFamily("counting", "length of the string, 6 + 3 * level characters", 40, 0.10, _counting, "numeric")
ADDITION = TaskFamily("addition", "digits of each of the two numbers", 12, 0.12, _addition, "numeric")
OPERATIONS = TaskFamily("operations", "number of operations", 40, 0.10, _operations, "numeric")
POST_ORDER = TaskFamily("post_order", "nodes of the tree, level + 1", 25, 0.01, _post_order, "exact")
UNSCRAMBLE = TaskFamily("unscramble", "letters of the word, level + 2", 6, 0.04, _unscramble, "exact")
