"""One question, its grading, and what became of asking it."""

from __future__ import annotations

import enum
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import BankError

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = [
    "EXPRESSION",
    "GRADERS",
    "MARK",
    "MARKED",
    "Grader",
    "Item",
    "Response",
    "Status",
    "cut_text",
    "expected_number",
    "length_note",
    "named_choice",
    "unmarked",
]

Grader = Callable[["Item", str], float]

_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode

#: A value that a prompt marks as one that may be drawn anew: ``<20>`` or ``<rate=20>``.
MARK = re.compile(r"<(?:([A-Za-z]\w{0,29})=)?(-?)(\d{1,15})(?:\.(\d{1,15}))?>")
#: Where an item's ``meta`` tells how the answer follows from the marked values.
EXPRESSION = "answer_expression"
#: Where it keeps the prompt with its marks.
MARKED = "marked_prompt"

#: Answers are graded on at most this many characters, so that a runaway
#: completion cannot stall a grader.
GRADED_CHARACTERS = 20_000
#: What stands for the rest of a longer answer in journals and records.
_CUT = re.compile(r"\n\[([0-9]{1,18}) more characters were neither graded nor kept\]")


class Status(enum.StrEnum):
    """What became of one administration.  Only ``ok`` carries a score."""

    OK = "ok"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    EMPTY = "empty"
    TIMEOUT = "timeout"
    ERROR = "error"
    SANDBOX_ERROR = "sandbox_error"
    NOT_RUN = "not_run"

    @property
    def infrastructure(self) -> bool:
        """Whether the fault lies with the run and not with the subject."""
        return self in _INFRASTRUCTURE


_INFRASTRUCTURE = (Status.TIMEOUT, Status.ERROR, Status.SANDBOX_ERROR, Status.NOT_RUN)


def cut_text(text: str) -> str:
    """Return the part of an answer that is graded, and a line that tells the length of the rest.

    This is what memory, journals and records keep.  A text that was cut before stays as it is.
    """
    if len(text) <= GRADED_CHARACTERS or _rest(text):
        return text
    more = len(text) - GRADED_CHARACTERS
    return f"{text[:GRADED_CHARACTERS]}\n[{more} more characters were neither graded nor kept]"


def length_note(text: str) -> str:
    """Return how long an answer was that `cut_text` cut; empty for any other."""
    if not (more := _rest(text)):
        return ""
    return f"the answer has {GRADED_CHARACTERS + more} characters: the first {GRADED_CHARACTERS} were graded and kept"


def _rest(text: str) -> int:
    """Characters that `cut_text` left out."""
    found = _CUT.fullmatch(text, GRADED_CHARACTERS)
    return int(found[1]) if found else 0


def unmarked(prompt: str) -> str:
    """A prompt as a subject reads it: its values without marks and names."""
    return MARK.sub(lambda mark: mark[0][1:-1].rpartition("=")[2], prompt)


@dataclass(frozen=True, slots=True)
class Response:
    """The outcome of administering one item.

    Parameters
    ----------
    status : Status
    score : float or None
        In [0, 1] when ``status`` is ok, else None: an error is never a score.
    text : str
        The raw completion, as far as it is known.
    detail : str
        Why there is no score, or what the grader had to say.
    """

    status: Status
    score: float | None = None
    text: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.score is not None):
            raise ValueError(f"a response with status {self.status.value!r} cannot have score {self.score!r}")
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"a score lies in [0, 1], not {self.score!r}")


@dataclass(frozen=True, slots=True)
class Item:
    """A question of a bank.

    Parameters
    ----------
    id : str
        Unique in its bank: ASCII, short, without ``::``, brackets or spaces.
    prompt : str
        What the subject reads.  Empty only when `messages` is given.
    answer : str
        The expected answer, as the grader reads it.
    grader : str
        ``exact``, ``choice``, ``numeric``, ``regex``, ``contains``,
        ``python:module:function`` (only from modules that the user trusts), or
        ``task`` for a generated item that its task family grades.
    images : tuple of str
        Image files, relative to the bank's folder.
    choices : tuple of str
        Alternatives of a multiple-choice item, in the order A, B, C, ...
    category : tuple of str
        From the broadest to the finest.
    formats : tuple of str
        Modality combinations in which the item can be asked, such as
        ``image+text``, ``text``, ``image``, ``none``; the first is the default.
    messages : tuple of mappings
        A chat, as ``{"role": ..., "content": ...}``, instead of `prompt`.
    meta : mapping
        Anything else; ``max_tokens`` caps the answer, ``level`` and ``seed``
        tell a generated item, ``tolerance`` serves the numeric grader,
        ``answer_expression`` and ``marked_prompt`` make twins.
    custom : callable, optional
        The resolved function of a ``python:``, ``regex`` or ``task`` grader.
    root : str
        Folder that `images` are relative to; no part of the item's content.
    """

    id: str
    prompt: str = ""
    answer: str = ""
    grader: str = "exact"
    images: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("text",)
    messages: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    custom: Grader | None = None
    root: str = ""

    @property
    def image_paths(self) -> tuple[str, ...]:
        """The image files, joined to the bank's folder."""
        return tuple(f"{self.root}/{name}" if self.root else name for name in self.images)

    @property
    def task(self) -> str:
        """The task family that a generated item, whose id is ``task-level-seed``, is of."""
        return self.id.partition("-")[0]

    def grade(self, text: str) -> float:
        """Score of an answer, in [0, 1]."""
        text = str(text)[:GRADED_CHARACTERS]
        if self.custom is not None:
            given = self.custom(self, text)
            try:
                score = float(given)
            except (TypeError, ValueError, OverflowError):
                raise BankError(
                    f"item {self.id!r}: its grader {self.grader!r} gave {type(given).__name__}, expected a number in "
                    "[0, 1]"
                ) from None
        else:
            try:
                grader = GRADERS[self.grader]
            except KeyError:
                if self.grader == "task":
                    raise BankError(
                        f"item {self.id!r} is graded by its task family {self.task!r}, which is not known here; if it "
                        "is of a plugin, install or load that"
                    ) from None
                if self.grader == "regex":
                    raise BankError(
                        f"item {self.id!r} is graded by a pattern and was not read from a bank: read the bank, or make "
                        "the item with custom=pytest_adaptive_eval.items.grading.grade_pattern"
                    ) from None
                raise BankError(
                    f"item {self.id!r}: grader {self.grader!r} is not known; use one of "
                    f"{', '.join(GRADERS)}, regex or python:module:function from a trusted module"
                ) from None
            score = grader(self, text)
        if not 0.0 <= score <= 1.0:
            raise BankError(f"item {self.id!r}: its grader {self.grader!r} gave {score!r}, expected a number in [0, 1]")
        return score

    def readable(self, text: str) -> bool:
        """Whether a text has the form of an answer: a letter or choice, a number, for other graders anything at all."""
        text = str(text)[:GRADED_CHARACTERS]
        if self.grader == "choice":
            return _chosen(self, text) is not None
        if self.grader == "numeric":
            return _number(text) is not None
        return bool(text.strip())

    def in_format(self, name: str) -> Item:
        """The item as asked in the modality combination `name` (``none`` is the empty one)."""
        if name not in self.formats:
            raise BankError(f"item {self.id!r} has no format {name!r}, only {', '.join(self.formats)}")
        kept = set(name.split("+"))
        item = self
        if "image" not in kept:
            item = replace(item, images=())
        if "text" not in kept:
            item = replace(item, prompt="", messages=())
        return item

    def to_json(self) -> dict[str, Any]:
        """The item as one JSON object; fields at their default are left out."""
        out: dict[str, Any] = {"id": self.id}
        for name in ("prompt", "answer", "grader"):
            if getattr(self, name):
                out[name] = getattr(self, name)
        for name in ("images", "choices", "category", "messages"):
            if getattr(self, name):
                out[name] = [dict(v) if isinstance(v, Mapping) else v for v in getattr(self, name)]
        if self.formats != ("text",):
            out["formats"] = list(self.formats)
        if self.meta:
            out["meta"] = dict(self.meta)
        return out

    @property
    def content_hash(self) -> str:
        """SHA-256 (first 16 hex digits) of everything that is asked and graded."""
        return hashlib.sha256(_canonical(self.to_json()).encode("ascii")).hexdigest()[:16]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _normal(text: str) -> str:
    return _folded(text).strip(" .!,;:\"'")


def _comparable(item: Item, text: str) -> tuple[str, str]:
    """The expected answer and the given one as they are compared; punctuation counts where nothing else is expected."""
    wanted = _normal(item.answer)
    return (wanted, _normal(text)) if wanted else (_folded(item.answer), _folded(text))


def _exact(item: Item, text: str) -> float:
    """Equal after folding case and white space and dropping surrounding punctuation."""
    wanted, given = _comparable(item, text)
    return float(given == wanted)


def _contains(item: Item, text: str) -> float:
    wanted, given = _comparable(item, text)
    return float(wanted in given)


# a letter alone, wrapped, before punctuation or at the end of its line; "A" and "I" before another word are words
_LEADING = re.compile(
    r"[\"'$*(\[]*+(?:(?:option|choice|letter|answer)\s+)?[\"'$*(\[]*+"
    r"([A-Z](?=[)\]}*:,;$\"']|\.(?![A-Z]\.)|\s*$|\s+[-=(\[\u2013\u2014])"
    r"|(?-i:[B-HJ-Z])(?=\s)|(?-i:A)(?=\s+(?:is|because|since|as)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    r"\b(?:answer|option|choice)(?:\s*[:=]+|(?:\s+\w+){0,4}?\s+(?:is|would\s+be|must\s+be|should\s+be)\b\s*:?)?[\s*]*"
    r"(?=(.{1,200}))"
    r"|\\boxed\{\s*(?:\\\w+\{)?(?=(.{1,200}))",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\A(?:an?|the)\s+", re.IGNORECASE)


def _choices(item: Item) -> list[str]:
    return [_normal(choice) for choice in item.choices]


def _choice_at(choices: list[str], text: str) -> int | None:
    """Place of the choice that a text is, with or without an article, or whose letter it begins with."""
    for given in (_normal(text), _normal(_ARTICLE.sub("", text.strip(" *\"'$"))), _normal(text.strip(" *$}"))):
        if given and given in choices:
            return choices.index(given)
    letter = _LEADING.match(text)
    place = ord(letter[1].upper()) - ord("A") if letter else None
    return None if place is None or (choices and place >= len(choices)) else place


def named_choice(item: Item) -> int | None:
    """Place of the choice that an item's answer names by its text or its letter; None where there is no such one.

    Any letter will do where the item keeps its choices within its prompt.
    """
    return _choice_at(_choices(item), item.answer.strip())


def _chosen(item: Item, text: str) -> int | None:
    """Place of the choice that an answer names; None where it does not read as naming one.

    The last "answer is X" counts: what stands before may be reasoning.
    """
    choices, given = _choices(item), text.strip()
    if _normal(given) not in choices:
        for plain, boxed in reversed(_STATED.findall(given)):
            place = _choice_at(choices, plain or boxed)
            if place is not None:
                return place
    return _choice_at(choices, given)


def _choice(item: Item, text: str) -> float:
    """The letter of a choice ("B", "(B) blue", "the answer is B") or the choice's own text."""
    place = _chosen(item, text)
    return float(place is not None and place == named_choice(item))


_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:/\d+)?")


def _number(text: str) -> Fraction | None:
    from fractions import Fraction  # with decimal, a tenth of what importing numpy costs

    found = _NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))
    if not found:
        return None
    top, _, bottom = found[-1].replace(",", "").partition("/")
    try:
        exponent = re.search(r"[eE]([-+]?\d+)", top)
        if exponent and abs(int(exponent.group(1))) > 400:
            return None
        return Fraction(top) / (Fraction(bottom) if bottom else 1)
    except (ValueError, ZeroDivisionError):
        return None


def expected_number(item: Item) -> tuple[Fraction, float]:
    """The number that a numeric item expects, and how far an answer may be from it.

    Raises
    ------
    BankError
        The item's answer holds no number, or ``meta.tolerance`` is none.
    """
    wanted, tolerance = _number(item.answer), item.meta.get("tolerance", 0.0)
    if wanted is None:
        raise BankError(f"item {item.id!r}: the answer {item.answer!r:.80} holds no number that the grader can read")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0.0 <= tolerance < math.inf:
        raise BankError(f"item {item.id!r}: meta.tolerance is {tolerance!r:.80}, expected a number of at least 0")
    return wanted, tolerance


def _numeric(item: Item, text: str) -> float:
    """The last number of the answer equals the expected one exactly, or within ``meta.tolerance``."""
    wanted, tolerance = expected_number(item)
    got = _number(text)
    return float(got is not None and abs(got - wanted) <= tolerance)


#: The graders that always end, by name.  Patterns have a time limit, see `pytest_adaptive_eval.items.grading`.
GRADERS: Mapping[str, Grader] = MappingProxyType(
    {"exact": _exact, "choice": _choice, "numeric": _numeric, "contains": _contains}
)
