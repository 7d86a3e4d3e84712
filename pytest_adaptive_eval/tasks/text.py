"""Task families in words alone: counting, addition, operations, trees and anagrams.

Data is in capitals and digits, instructions in small letters: even a tiny tokenizer can then keep one token per
character of data.
"""

from __future__ import annotations

import random
import re

from pytest_adaptive_eval.tasks.answers import by_any, by_letters
from pytest_adaptive_eval.tasks.content import Malformed, check_level, only_match, plural
from pytest_adaptive_eval.tasks.family import Content, Question, TaskFamily
from pytest_adaptive_eval.tasks.words import ANAGRAMS, WORDS

__all__ = ["FAMILIES"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# Counting


def _count_question(needle: str, hay: str) -> Question:
    return Question(f"How many {needle} are in {hay}?", str(hay.count(needle)))


def _counting(rng: random.Random, level: int) -> Question:
    # The count is drawn first and uniformly: no constant answer is right more than one time in ten.
    count = rng.randrange(10)
    needle, *others = rng.sample("ABCDEF", 4)
    hay = [needle] * count + [rng.choice(others) for _ in range(6 + 3 * level - count)]
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

# Addition


def _sum_question(a: int, b: int) -> Question:
    return Question(f"What is {a} + {b}?", str(a + b))


def _addition(rng: random.Random, level: int) -> Question:
    low, high = 10 ** (level - 1), 10**level
    return _sum_question(rng.randrange(low, high), rng.randrange(low, high))


_SUM = re.compile(r"(?<![\d.+*/-])(?<![+*/-] )(\d{1,20}) ?\+ ?(\d{1,20})(?! ?[\d.+*/-])")


def _sum_demand(level: int) -> str:
    return f"two whole numbers of {level} digit{plural(level)} each"


def _read_sum(text: str, level: int, _: random.Random) -> Question:
    a, b = only_match(_SUM, text, "sum of two numbers")
    check_level(all(len(x) == len(str(int(x))) == level and int(x) for x in (a, b)), _sum_demand(level))
    return _sum_question(int(a), int(b))


_SUMS = Content("What is 12 + 34?", _sum_demand, _read_sum)

# Operations


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
    values = [int(first)]
    for sign, number in zip(rest[::2], map(int, rest[1::2]), strict=True):
        values.append({"+": values[-1] + number, "-": values[-1] - number, "*": values[-1] * number}[sign])
    check_level(len(values) == level + 1 and all(0 <= value < 10 for value in values), _operations_demand(level))
    return _operation_question(" ".join([str(int(first)), *rest]), values[-1])


_TERMS = Content("Work from left to right: 3 + 4 - 5 = ?", _operations_demand, _read_operations)

# Trees


def _tree_question(pre: str, inner: str, post: str) -> Question:
    prompt = f"A tree has pre-order {pre} and in-order {inner}. What is the post-order?"
    return Question(prompt, post, judge=by_letters(post))


def _post_order(rng: random.Random, level: int) -> Question:
    labels = rng.sample(LETTERS, level + 1)

    def grow(first: int, size: int) -> tuple[str, str, str]:
        """Return pre-, in- and post-order of a random tree over `size` labels from `first` on."""
        if size == 0:
            return "", "", ""
        below_left = rng.randrange(size)
        root = labels[first]
        a = grow(first + 1, below_left)
        b = grow(first + 1 + below_left, size - 1 - below_left)
        return root + a[0] + b[0], a[1] + root + b[1], a[2] + b[2] + root

    return _tree_question(*grow(0, level + 1))


_LABELS = r"\W{0,3}(?:is|of|traversal|:|=|\W){0,4}\W{0,3}([A-Z](?:[ ,>-]{0,3}[A-Z]){1,25})\b"
_PRE, _IN = (re.compile(rf"{name}-?order{_LABELS}", re.ASCII) for name in ("[Pp]re", "[Ii]n"))


def _tree_demand(level: int) -> str:
    return f"a tree of {level + 1} nodes, each named by another capital letter"


def _read_tree(text: str, level: int, _: random.Random) -> Question:
    orders = [only_match(pattern, text, f"{name}-order")[0] for pattern, name in ((_PRE, "pre"), (_IN, "in"))]
    pre, inner = ("".join(re.findall("[A-Z]", order)) for order in orders)
    check_level(len(pre) == len(set(pre)) == level + 1, _tree_demand(level))
    post = _post_order_of(pre, inner)
    if post is None:
        raise Malformed("format", "no tree has these two orders")
    return _tree_question(pre, inner, post)


def _post_order_of(pre: str, inner: str) -> str | None:
    """Return the post-order of the tree with these orders; None if there is no such tree."""
    if sorted(pre) != sorted(inner):
        return None
    if not pre:
        return ""
    root = inner.index(pre[0])
    a, b = _post_order_of(pre[1 : root + 1], inner[:root]), _post_order_of(pre[root + 1 :], inner[root + 1 :])
    return None if a is None or b is None else a + b + pre[0]


_TREES = Content("A tree has pre-order ABC and in-order BAC. What is the post-order?", _tree_demand, _read_tree)

# Anagrams


def _unscramble(rng: random.Random, level: int) -> Question:
    word = rng.choice(WORDS[level + 2])
    letters = list(word)
    while (mixed := "".join(letters)) == word:
        rng.shuffle(letters)
    others = ANAGRAMS.get(word, ())
    judge = by_any(by_letters(each, mixed) for each in (word, *others))
    return Question(f"Which word is {mixed}?", word, judge=judge, others=others)


FAMILIES = (
    TaskFamily(
        "counting", "length of the string, 6 + 3 * level characters", 40, 0.10, _counting, "numeric", content=_COUNTS
    ),
    TaskFamily("addition", "digits of each of the two numbers", 12, 0.12, _addition, "numeric", content=_SUMS),
    TaskFamily("operations", "number of operations", 40, 0.10, _operations, "numeric", content=_TERMS),
    TaskFamily("post_order", "nodes of the tree, level + 1", 25, 0.01, _post_order, "exact", content=_TREES),
    TaskFamily("unscramble", "letters of the word, level + 2", 6, 0.04, _unscramble, "exact"),
)
