"""Task families in words alone: counting, addition, operations, trees and anagrams."""

from __future__ import annotations

import ast
import random
import re

from pytest_adaptive_eval.tasks.answers import by_letters
from pytest_adaptive_eval.tasks.family import Content, Malformed, Question, TaskFamily, check_level, only_match, plural
from pytest_adaptive_eval.tasks.terse import COUNTING, OPERATIONS, UNSCRAMBLE, anagram_question
from pytest_adaptive_eval.tasks.words import ANAGRAMS, WORDS

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ENDS_WITH_NUMBER = "End with `Answer: <number>`."


def _count_question(needle: str, hay: str) -> Question:
    return Question(f"How many times does the letter {needle} occur in {hay}?", str(hay.count(needle)))


def _length(level: int) -> int:
    return 6 + 3 * level + level * level // 2


def _most(level: int) -> int:
    """Return one more than the highest count: no constant answer is right more than one time in ten."""
    return max(10, _length(level) // 3)


def _counting(rng: random.Random, level: int) -> Question:
    count = rng.randrange(_most(level))
    needle, *others = rng.sample("ABCDEF", 4)
    hay = [needle] * count + [rng.choice(others) for _ in range(_length(level) - count)]
    rng.shuffle(hay)
    return _count_question(needle, "".join(hay))


_COUNT = re.compile(r"\b([A-F])\b[^A-Z]{1,60}\b([A-F]{2,2000})\b")


def _count_demand(level: int) -> str:
    return (
        f"a string of {_length(level)} capital letters from A to F, which holds the letter {_most(level) - 1} times at "
        "most"
    )


def _read_count(text: str, level: int, _: random.Random) -> Question:
    needle, hay = only_match(_COUNT, text, "letter with a string of the letters A to F")
    check_level(len(hay) == _length(level) and hay.count(needle) < _most(level), _count_demand(level))
    return _count_question(needle, hay)


_COUNTS = Content("How many times does the letter A occur in ABCADBFEA?", _count_demand, _read_count)


def _sum_question(a: int, b: int) -> Question:
    return Question(f"What is {a} + {b}?", str(a + b))


def _addition(rng: random.Random, level: int) -> Question:
    low = 10 ** (level - 1)
    high = 10**level
    return _sum_question(rng.randrange(low, high), rng.randrange(low, high))


_SUM = re.compile(r"(?<![\d.+*/-])(?<![+*/-] )(\d{1,20}) ?\+ ?(\d{1,20})(?! ?[\d.+*/-])")


def _sum_demand(level: int) -> str:
    return f"two whole numbers of {level} digit{plural(level)} each"


def _read_sum(text: str, level: int, _: random.Random) -> Question:
    a, b = only_match(_SUM, text, "sum of two numbers")
    smallest = 10 ** (level - 1)
    of_level = all(len(x) == level and int(x) >= smallest for x in (a, b))
    check_level(of_level, _sum_demand(level))
    return _sum_question(int(a), int(b))


_SUMS = Content("What is 12 + 34?", _sum_demand, _read_sum)


#: Largest number of an expression, and limit on the values on the way.
LARGEST_TERM, LARGEST_VALUE = 99, 1_000_000
_PRECEDENCE = {"+": 1, "-": 1, "*": 2}


def _expression(rng: random.Random, operations: int) -> tuple[str, int, str]:
    """Draw an expression, and return it with its value and the operation that is done last."""
    if not operations:
        number = rng.randint(2, LARGEST_TERM)
        return str(number), number, ""
    before = rng.randrange(operations)
    left, a, last_of_left = _expression(rng, before)
    right, b, last_of_right = _expression(rng, operations - 1 - before)
    signs = rng.sample("+-*", 3)  # of a sum and a difference, one is not larger than its larger term
    sign = next(sign for sign in signs if abs(_result(sign, a, b)) <= LARGEST_VALUE)
    if last_of_left and _PRECEDENCE[last_of_left] < _PRECEDENCE[sign]:
        left = f"({left})"
    is_subtracted = sign == "-" and last_of_right in ("+", "-")
    if last_of_right and (is_subtracted or _PRECEDENCE[last_of_right] < _PRECEDENCE[sign]):
        right = f"({right})"
    return f"{left} {sign} {right}", _result(sign, a, b), sign


def _result(sign: str, a: int, b: int) -> int:
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def _operation_question(expression: str, value: int) -> Question:
    return Question(f"Calculate {expression}, with the usual order of operations.", str(value))


_TERMS = re.compile(r"(?<![\w.])(\(*\d{1,4}(?:[ ()]*[-+*][ ()]*\d{1,4}){1,60}\)*)(?![\d.]*\w)")
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def _values(node: ast.expr) -> list[int]:
    """Return the values of an expression's parts in the order of their calculation, its own last."""
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left = _values(node.left)
        right = _values(node.right)
        return [*left, *right, _result(_SIGNS[type(node.op)], left[-1], right[-1])]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return [node.value]
    raise Malformed("format", "an expression of numbers, +, -, * and brackets was expected")


def _operations_demand(level: int) -> str:
    return (
        f"{level} operation{plural(level)}, +, - or *, of whole numbers from 1 to {LARGEST_TERM}, brackets allowed, "
        f"and no value beyond {LARGEST_VALUE} on the way"
    )


def _read_operations(text: str, level: int, _: random.Random) -> Question:
    (terms,) = only_match(_TERMS, text, "expression of numbers, +, -, * and brackets")
    try:
        values = _values(ast.parse(terms, mode="eval").body)
    except (SyntaxError, MemoryError, RecursionError):
        raise Malformed("format", f"{terms:.80} is not an expression of numbers, +, -, * and brackets") from None
    numbers = [int(number) for number in re.findall(r"\d+", terms)]
    of_level = len(values) == 2 * level + 1 and min(numbers) >= 1 and max(numbers) <= LARGEST_TERM
    check_level(of_level and max(map(abs, values)) <= LARGEST_VALUE, _operations_demand(level))
    return _operation_question(terms, values[-1])


_OPERATIONS = Content("Calculate 3 + 4 * (15 - 8).", _operations_demand, _read_operations)


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
        pre_left, in_left, post_left = grow(first + 1, below_left)
        pre_right, in_right, post_right = grow(first + 1 + below_left, size - 1 - below_left)
        return root + pre_left + pre_right, in_left + root + in_right, post_left + post_right + root

    return _tree_question(*grow(0, level + 1))


_LABELS = r"\W{0,3}(?:is|of|traversal|:|=|\W){0,4}\W{0,3}([A-Z](?:[ ,>-]{0,3}[A-Z]){1,25})\b"
_PRE, _IN = (re.compile(rf"{name}-?order{_LABELS}", re.ASCII) for name in ("[Pp]re", "[Ii]n"))


def _tree_demand(level: int) -> str:
    return f"a tree of {level + 1} nodes, each named by another capital letter"


def _read_tree(text: str, level: int, _: random.Random) -> Question:
    orders = []
    for pattern, name in ((_PRE, "pre"), (_IN, "in")):
        (order,) = only_match(pattern, text, f"{name}-order")
        orders.append("".join(re.findall("[A-Z]", order)))
    pre, inner = orders
    check_level(len(pre) == len(set(pre)) == level + 1, _tree_demand(level))
    post = _post_order_of(pre, inner)
    if post is None:
        raise Malformed("format", "no tree has these two orders")
    return _tree_question(pre, inner, post)


def _post_order_of(pre: str, inner: str) -> str | None:
    """Return the post-order of the tree with these orders; None if it does not exist."""
    if sorted(pre) != sorted(inner):
        return None
    if not pre:
        return ""
    root = inner.index(pre[0])
    a = _post_order_of(pre[1 : root + 1], inner[:root])
    b = _post_order_of(pre[root + 1 :], inner[root + 1 :])
    if a is None or b is None:
        return None
    return a + b + pre[0]


_TREES = Content("A tree has pre-order ABC and in-order BAC. What is the post-order?", _tree_demand, _read_tree)


def _unscramble(rng: random.Random, level: int) -> Question:
    word = rng.choice(WORDS[level + 2])
    letters = list(word)
    while (mixed := "".join(letters)) in (word, *ANAGRAMS.get(word, ())):
        rng.shuffle(letters)
    return anagram_question(f"Put the letters {mixed} in order so that they spell a common English word.", word, mixed)


FAMILIES = (
    TaskFamily(
        "counting", "length of the string, 6 + 3 * level + level * level / 2 characters", 40, 0.10, _counting,
        "numeric", content=_COUNTS, form=ENDS_WITH_NUMBER, terse=COUNTING,
    ),
    TaskFamily(
        "addition", "digits of each of the two numbers", 12, 0.12, _addition, "numeric", content=_SUMS,
        form=ENDS_WITH_NUMBER,
    ),
    TaskFamily(
        "operations", "number of operations with precedence", 40, 0.01,
        lambda rng, level: _operation_question(*_expression(rng, level)[:2]), "numeric", content=_OPERATIONS,
        form=ENDS_WITH_NUMBER, terse=OPERATIONS,
    ),
    TaskFamily(
        "post_order", "nodes of the tree, level + 1", 25, 0.01, _post_order, "exact", content=_TREES,
        form="End with `Answer: <letters>`.",
    ),
    TaskFamily(
        "unscramble", "letters of the word, level + 2", 6, 0.04, _unscramble, "exact",
        form="End with `Answer: <word>`.", terse=UNSCRAMBLE,
    ),
)  # fmt: skip
