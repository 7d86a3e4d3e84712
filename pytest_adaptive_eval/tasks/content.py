"""Questions that somebody else writes: what they are made of is read, and the question and its truth are made by code.

A model that sets a question of a family writes it in its own words, such as ``What is 12 + 34?``.  What the question
is made of is read from that, the two numbers here, and everything else is left where it is: an
answer that the model gives along with it is at most compared with the truth.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import GRADED_CHARACTERS, Item
from pytest_adaptive_eval.tasks import graphs, numbers, scrambled, text
from pytest_adaptive_eval.tasks.family import Question, TaskFamily

__all__ = ["CONTENTS", "Content", "Malformed", "content_of", "written_item"]

#: Characters of a question that are read.
READ_CHARACTERS = 4000
#: Words of a text: about a hundred are asked for.
FEWEST_WORDS, MOST_WORDS = 20, 200
#: Words of it that are long enough to be damaged.
FEWEST_LONG = 10


class Malformed(ValueError):
    """A question that cannot be used.

    Parameters
    ----------
    kind : {"format", "level"}
        What it is made of cannot be read, or is not of the level.
    why : str
        For the one who wrote it.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Content:
    """How the questions of a family are written and read.

    Parameters
    ----------
    form : str
        What a question looks like.
    demand : callable
        What a level asks of it, in words.
    read : callable
        ``read(text, level, rng)`` makes the question; raises `Malformed`.
    whole : bool
        Whether the text itself is all that is read, and no answer can be given along with it.
    """

    form: str
    demand: Callable[[int], str]
    read: Callable[[str, int, random.Random], Question]
    whole: bool = False


def _one(pattern: re.Pattern[str], told: str, what: str) -> tuple[str, ...]:
    """The groups of the one thing that is told, however often."""
    found = list(dict.fromkeys(match.groups() for match in pattern.finditer(told)))
    if len(found) != 1:
        raise Malformed("format", f"{'no' if not found else 'more than one'} {what} was found")
    return found[0]


def _level(right: bool, demand: str) -> None:
    if not right:
        raise Malformed("level", f"it does not hold to this: {demand}")


_SUM = re.compile(r"(?<![\d.+*/-])(?<![+*/-] )(\d{1,20}) ?\+ ?(\d{1,20})(?! ?[\d.+*/-])")


def _sum_demand(level: int) -> str:
    return f"two whole numbers of {level} digit{'s' * (level > 1)} each"


def _sum(told: str, level: int, _: random.Random) -> Question:
    a, b = _one(_SUM, told, "sum of two numbers")
    _level(all(len(x) == len(str(int(x))) == level and int(x) for x in (a, b)), _sum_demand(level))
    return text.sum_question(int(a), int(b))


_COUNT = re.compile(r"\b([A-F])\b[^A-Z]{1,60}\b([A-F]{2,200})\b")


def _count_demand(level: int) -> str:
    return f"a string of {6 + 3 * level} capital letters from A to F, which holds the letter nine times at most"


def _count(told: str, level: int, _: random.Random) -> Question:
    needle, hay = _one(_COUNT, told, "letter with a string of the letters A to F")
    _level(len(hay) == 6 + 3 * level and hay.count(needle) < 10, _count_demand(level))
    return text.count_question(needle, hay)


_OPERATIONS = re.compile(r"(?<![\d.])(\d{1,4}(?: ?[-+*] ?\d{1,4}){1,60})(?! ?[\d.*/+-])")


def _operations_demand(level: int) -> str:
    return f"{level} operation{'s' * (level > 1)}, + - or *, and from left to right no value below 0 or above 9"


def _operations(told: str, level: int, _: random.Random) -> Question:
    (terms,) = _one(_OPERATIONS, told, "row of operations")
    first, *rest = re.findall(r"[-+*]|\d+", terms)
    values = [int(first)]
    for sign, number in zip(rest[::2], map(int, rest[1::2]), strict=True):
        values.append({"+": values[-1] + number, "-": values[-1] - number, "*": values[-1] * number}[sign])
    _level(len(values) == level + 1 and all(0 <= value < 10 for value in values), _operations_demand(level))
    return text.operation_question(" ".join([str(int(first)), *rest]), values[-1])


_LABELS = r"\W{0,3}(?:is|of|traversal|:|=|\W){0,4}\W{0,3}([A-Z](?:[ ,>-]{0,3}[A-Z]){1,25})\b"
_BEFORE, _WITHIN = (re.compile(rf"{name}-?order{_LABELS}", re.ASCII) for name in ("[Pp]re", "[Ii]n"))


def _tree_demand(level: int) -> str:
    return f"a tree of {level + 1} nodes, each named by another capital letter"


def _tree(told: str, level: int, _: random.Random) -> Question:
    orders = [_one(pattern, told, f"{name}-order")[0] for pattern, name in ((_BEFORE, "pre"), (_WITHIN, "in"))]
    before, within = ("".join(re.findall("[A-Z]", order)) for order in orders)
    _level(len(before) == len(set(before)) == level + 1, _tree_demand(level))
    after = _post_order(before, within)
    if after is None:
        raise Malformed("format", "no tree has these two orders")
    return text.tree_question(before, within, after)


def _post_order(before: str, within: str) -> str | None:
    if sorted(before) != sorted(within):
        return None
    if not before:
        return ""
    at = within.index(before[0])
    left, right = _post_order(before[1 : at + 1], within[:at]), _post_order(before[at + 1 :], within[at + 1 :])
    return None if left is None or right is None else left + right + before[0]


_PRODUCT = re.compile(r"(?<![\d.])(\d{1,20})\.(\d{1,20}) ?[*x\N{MULTIPLICATION SIGN}] ?(\d{1,20})\.(\d{1,20})(?![\d.])")


def _product_demand(level: int) -> str:
    return f"two decimals of {level} digit{'s' * (level > 1)} each, leading zeros left out, with a decimal point each"


def _product(told: str, level: int, _: random.Random) -> Question:
    *parts, b, q = _one(_PRODUCT, told, "product of two decimals")
    a, p = parts
    digits = [str(int(a + p)), str(int(b + q))]
    right = all(len(x) == level and int(x) > 1 for x in digits) and max(len(p), len(q)) <= level
    _level(right, _product_demand(level))
    return numbers.product_question(int(digits[0]), len(p), int(digits[1]), len(q))


_ROAD = re.compile(r"\b([A-Z]) ?- ?([A-Z]):? ?(\d{1,4})\b")
_WAY = re.compile(r"\bfrom ([A-Z]) to ([A-Z])\b")


def _path_demand(family: str, level: int) -> str:
    towns, roads = graphs.size(family, level)
    return f"{towns} towns, each named by another capital letter, and {roads} roads of lengths from 10 to 99"


def _path(family: str) -> Callable[[str, int, random.Random], Question]:
    def read(told: str, level: int, _: random.Random) -> Question:
        start, end = _one(_WAY, told, "start and end")
        roads = [(a, b, int(length)) for a, b, length in _ROAD.findall(told)]
        towns = {town for a, b, _ in roads for town in (a, b)}
        joined = {frozenset((a, b)) for a, b, _ in roads if a != b}
        if len(joined) < len(roads) or start == end or not {start, end} <= towns:
            raise Malformed("format", "the roads do not make a map that has the start and the end")
        lengths = all(graphs.SHORTEST_EDGE <= length <= graphs.LONGEST_EDGE for *_, length in roads)
        _level((len(towns), len(roads)) == graphs.size(family, level) and lengths, _path_demand(family, level))
        try:
            return graphs.path_question(roads, start, end)
        except ValueError as error:
            raise Malformed("format", str(error)) from None

    return read


def _text_demand(_: int) -> str:
    return "a story, diary or essay of about 60 words in plain English, several sentences, no names and no digits"


def _text(damage: Callable[..., Question]) -> Callable[[str, int, random.Random], Question]:
    def read(told: str, level: int, rng: random.Random) -> Question:
        words: list[str] = []
        ends = []
        for sentence in re.split(r"[.!?]+", told.casefold()):
            if found := re.findall(r"[a-z]{1,30}(?:'[a-z]{1,5})?", sentence):
                words += found
                ends.append(len(words))
        long = [word for word in words if len(word) >= scrambled.SHORTEST and len(set(word)) > 1]
        if not FEWEST_WORDS <= len(words) <= MOST_WORDS or len(long) < FEWEST_LONG:
            raise Malformed("format", f"a text of {FEWEST_WORDS} to {MOST_WORDS} English words was expected")
        return damage(words, ends, rng, level)

    return read


#: By the family's name.
CONTENTS: Mapping[str, Content] = MappingProxyType(
    {
        "addition": Content("What is 12 + 34?", _sum_demand, _sum),
        "counting": Content("How many A are in ABCADBFEA?", _count_demand, _count),
        "operations": Content("Work from left to right: 3 + 4 - 5 = ?", _operations_demand, _operations),
        "post_order": Content(
            "A tree has pre-order ABC and in-order BAC. What is the post-order?", _tree_demand, _tree
        ),
        "decimals": Content("What is 1.2 * 0.34?", _product_demand, _product),
        **{
            name: Content(
                "Roads join towns, each with its length: A-B 25, B-C 31. How long is the shortest way from A to C?",
                lambda level, name=name: _path_demand(name, level),  # type: ignore[misc]
                _path(name),
            )
            for name in ("path_nodes", "path_density")
        },
        "scrambled": Content("a text", _text_demand, _text(scrambled.scramble), whole=True),
        "masked": Content("a text", _text_demand, _text(scrambled.mask), whole=True),
    }
)


def content_of(family: str) -> Content:
    """How the questions of a family are written.

    Raises
    ------
    ConfigError
        Questions of that family cannot be read from what somebody wrote.
    """
    if family not in CONTENTS:
        raise ConfigError(
            f"questions of {family!r} cannot be written by a model, as their truth could not be told by code; "
            f"families whose questions can are {', '.join(CONTENTS)}"
        )
    return CONTENTS[family]


def written_item(family: TaskFamily, level: int, name: str, told: str) -> Item:
    """The question that somebody wrote, in the family's own words and with the truth by its code.

    Parameters
    ----------
    family : TaskFamily
    level : int
    name : str
        Tells the item from others of the level; also the seed of what is drawn.
    told : str
        What was written.

    Raises
    ------
    Malformed
        It cannot be used.
    ConfigError
        Questions of that family cannot be read.
    """
    identity = f"{family.name}-{level}-{name}"
    told = re.sub(r"[ \t]+", " ", told[:READ_CHARACTERS].replace("**", ""))
    question = content_of(family.name).read(told, level, random.Random(identity))
    judge = question.judge

    def marks(_: Item, answer: str) -> float:
        assert judge is not None
        return judge(answer[:GRADED_CHARACTERS], None).score

    return Item(
        id=identity,
        prompt=question.prompt,
        answer=question.answer,
        grader=family.grader,
        category=(family.name,),
        meta=MappingProxyType({"level": level, "max_tokens": family.max_tokens}),
        custom=None if judge is None else marks,
    )
