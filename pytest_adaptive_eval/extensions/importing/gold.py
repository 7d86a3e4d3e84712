"""Check of imported items: their own grader takes the expected answer, and no wrong one."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import BankError, DatasetError, Unscored
from pytest_adaptive_eval.extensions.importing.answers import yes_or_no
from pytest_adaptive_eval.extensions.importing.choices import as_list, as_text, literal
from pytest_adaptive_eval.items.graders.kinds.numeric import tolerance_of
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.reading.choice import choice_of
from pytest_adaptive_eval.items.reading.numbers import expected_numbers

#: Graders whose right answers follow from the item's answer.
_KINDS = ("choice", "yesno", "numeric", "math", "exact", "exact_match", "contains", "f1", "literal", "json")
#: Answer of no question.
_WRONG = "qzxv wkjq"
#: Time limit of all checks of an import, in seconds.
_SECONDS = 60.0
#: Letters of choices, and how many a question may list itself.
_SHOWN = 10
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(slots=True)
class GoldCheck:
    """Grading of the items of one import with their own answers."""

    graded: int = 0
    _unchecked: Counter[str] = field(default_factory=Counter)
    _spent: float = 0.0

    def check(self, item: Item) -> None:
        """Grade "Answer: GOLD", the gold alone and wrong answers.

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
        try:
            _check(item)
        finally:
            self._spent += clock.elapsed() - start
        self.graded += 1

    def notes(self) -> list[str]:
        """Return what was checked, and what was not."""
        notes = []
        if self.graded:
            notes.append(f"{self.graded} items grade their own answer right, stated and bare, and a wrong one wrong")
        return notes + [
            f"{count} items {why} were not graded with their own answers" for why, count in self._unchecked.items()
        ]


def _check(item: Item) -> None:
    gold = _as_json(item, item.answer) if item.grader == "json" else item.answer
    for text, expected in ((f"Answer: {gold}", 1.0), (gold, 1.0), *((wrong, 0.0) for wrong in _wrong(item))):
        score = _score(item, text)
        if score != expected:
            right = "its expected answer" if expected else "a wrong answer"
            raise DatasetError(
                f"its grader {item.grader} gives {right}, {text!r:.60}, {score:g} where {expected:g} is right; name "
                "another grader (--set grader=NAME)"
            )


def _score(item: Item, text: str) -> float:
    try:
        return item.grade(item.transcript([""] * len(item.turns) + [text]) if item.turns else text)
    except (BankError, Unscored) as error:
        raise DatasetError(f"its grader {item.grader} cannot grade {text!r:.60}: {error!s:.120}") from None


def _as_json(item: Item, answer: str) -> str:
    return json.dumps({str(item.meta.get("field", "answer")): answer})


def _wrong(item: Item) -> Iterator[str]:
    """Yield answers that are wrong."""
    if item.grader == "choice":
        right = [choice_of(answer, item.choices) for answer in item.answers]
        letters = _LETTERS[: len(item.choices) or _SHOWN]
        yield from [letter for n, letter in enumerate(letters) if (n,) not in right][:1]
    elif item.grader == "yesno":
        yield "no" if yes_or_no(item.answer) == "yes" else "yes"
    elif item.grader == "numeric":
        largest = max(number for answer in item.answers for number in expected_numbers(answer))
        yield str(math.ceil(abs(largest)) + math.ceil(tolerance_of(item)) + 1)
    else:
        yield _as_json(item, _WRONG) if item.grader == "json" else _WRONG
        if len(entries := as_list(literal(item.answer))) > 1:
            yield as_text(entries[0])
