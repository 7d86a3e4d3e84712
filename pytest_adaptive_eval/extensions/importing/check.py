"""Check of the graders on all items: each accepts its own key and refuses another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import BankError, DatasetError, Unscored
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.reading.choice import choice_of
from pytest_adaptive_eval.items.reading.truth import truth_of
from pytest_adaptive_eval.text import counted

#: Graders whose right answers follow from the item's answer.
_KINDS = ("choice", "yesno", "numeric", "math", "exact", "exact_match", "contains", "f1", "literal", "json")
#: Answer of no question.
_NONSENSE = "qzxv wkjq"
#: Time limit of all checks of an import, in seconds.
_SECONDS = 60.0
#: Choices that a question may list itself.
_LISTED = 10
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(slots=True)
class KeyCheck:
    """Grading of the items of one import with their own keys and with others."""

    graded: int = 0
    _unchecked: Counter[str] = field(default_factory=Counter)
    _spent: float = 0.0
    _keys: dict[str, list[str]] = field(default_factory=dict)

    def check(self, item: Item) -> None:
        """Grade "Answer: KEY", the key alone and wrong answers, such as another item's key.

        Raises:
            DatasetError: They do not give 1, 1 and 0.
        """
        if item.grader not in _KINDS:
            self._unchecked[f"of the grader {item.grader}"] += 1
            return
        if self._spent > _SECONDS:
            self._unchecked[f"after {_SECONDS:g} s of grading"] += 1
            return
        start = clock.elapsed()
        keys = self._keys.setdefault(item.grader, [])
        try:
            _check(item, keys)
        finally:
            self._spent += clock.elapsed() - start
        self.graded += 1
        if item.answer not in keys:
            keys[:] = [*keys[-1:], item.answer]

    def notes(self) -> list[str]:
        """Return what was checked, and what was not."""
        right = f"graders checked on {counted(self.graded, 'item')}: each accepts the key and rejects another item's"
        others = self._unchecked.items()
        unchecked = [f"{count} items {why} were not graded with their own answers" for why, count in others]
        return [right, *unchecked] if self.graded else unchecked


def _check(item: Item, others: Sequence[str]) -> None:
    key = _as_json(item, item.answer) if item.grader == "json" else item.answer
    for text in (f"Answer: {key}", key):
        if (score := _score(item, text)) != 1:
            raise _misgraded(item, f"its expected answer, {text!r:.60}, {score:g} where 1 is right")
    for text in _wrong(item, others):
        if (score := _score(item, text)) == 1 or (score > 0 and item.grader != "f1"):
            raise _misgraded(item, f"a wrong answer, {text!r:.60}, {score:g} where 0 is right")


def _misgraded(item: Item, problem: str) -> DatasetError:
    return DatasetError(f"its grader {item.grader} gives {problem}; name another grader (--set grader=NAME)")


def _score(item: Item, text: str) -> float:
    """Return the score of an answer, to the last turn of an item with several."""
    try:
        return item.grade(item.transcript([""] * len(item.turns) + [text]) if item.turns else text)
    except (BankError, Unscored) as error:
        raise DatasetError(f"its grader {item.grader} cannot grade {text!r:.60}: {error!s:.120}") from None


def _as_json(item: Item, answer: str) -> str:
    return json.dumps({str(item.meta.get("field", "answer")): answer})


def _wrong(item: Item, others: Sequence[str]) -> Iterator[str]:
    """Yield answers that are wrong: nonsense, another choice, and the keys of other items."""
    if item.grader == "choice":
        right = [choice_of(answer, item.choices) for answer in item.answers]
        letters = _LETTERS[: len(item.choices) or _LISTED]
        yield from [letter for n, letter in enumerate(letters) if (n,) not in right][:1]
    elif item.grader == "yesno":
        yield "no" if truth_of(item.answer) == "yes" else "yes"
    elif item.grader == "json":
        yield _as_json(item, _NONSENSE)
    else:
        yield from [_NONSENSE, *(other for other in others if not _may_be_equal(item, other))]


def _may_be_equal(item: Item, other: str) -> bool:
    """Return whether a key may be the same answer in other words: as a number, or by a word that both have."""
    if item.grader in ("numeric", "math"):
        return replace(item, answer=other, others=(), turns=()).grade(item.answer) > 0
    own = " ".join(item.answers).casefold()
    other = other.casefold()
    return bool(set(other.split()) & set(own.split())) or other in own or own in other
