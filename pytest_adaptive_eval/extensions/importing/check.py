"""Check of the graders on all items: each accepts its own key and refuses another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import BankError, DatasetError, Unscored
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.text import counted

#: Forms of a right answer that each grader reads, beside the key and "Answer: KEY".
_FORMS = {
    "choice": ("({key})", "The answer is {key}.", "\\boxed{{{key}}}"),
    "yesno": ("The answer is {key}.",),
    "numeric": ("The answer is {key}.", "\\boxed{{{key}}}", "Thus:\n\n**{key}**"),
    "math": ("So it follows.\n\n$\\boxed{{{key}}}$", "The answer is \\({key}\\)."),
    "exact": ("The answer is {key}",),
    "exact_match": ("The answer is {key}.", "\\boxed{{{key}}}"),
    "contains": ("I am sure that it is {key}.",),
    "f1": (),
    "literal": ("The answer is {key}",),
}
#: Items of an import that are checked.
MOST_CHECKED = 2000
#: Characters of a key by which its form is known.
_FORM = 80
#: Answer of no question.
_NONSENSE = "qzxv wkjq"
#: Time limit of all checks of an import, in seconds.
_SECONDS = 30.0


@dataclass(slots=True)
class KeyCheck:
    """Grading of the items of one import with their own keys and with others."""

    graded: int = 0
    _unchecked: Counter[str] = field(default_factory=Counter)
    _spent: float = 0.0
    _keys: dict[str, list[str]] = field(default_factory=dict)

    def check(self, item: Item) -> None:
        """Grade the key in the forms that its grader reads, and another item's key.

        Raises:
            DatasetError: A right answer does not get 1, or the wrong one does not get 0.
        """
        if item.grader not in _FORMS:
            self._unchecked[f"of the grader {item.grader}"] += 1
        elif self._spent > _SECONDS:
            self._unchecked[f"after {_SECONDS:g} s of grading"] += 1
        else:
            start = clock.elapsed()
            keys = self._keys.setdefault(item.grader, [])
            try:
                check_faults(_faults(item, keys), f"its grader {item.grader}", DatasetError)
            finally:
                self._spent += clock.elapsed() - start
            self.graded += 1
            if item.answer not in keys:
                keys[:] = [*keys[-1:], item.answer]

    def notes(self) -> list[str]:
        """Return what was checked, and what was not."""
        right = f"graders checked on {counted(self.graded, 'item')}: each accepts the key and rejects another item's"
        others = self._unchecked.items()
        unchecked = []
        for why, count in others:
            unchecked.append(f"{count} items {why} were not graded with their own answers")
        if self.graded:
            return [right, *unchecked]
        return unchecked


def spread(items: Sequence[Item], most: int) -> list[int]:
    """Return the numbers of at most so many items, spread over graders and forms of keys."""
    counts = Counter[tuple[str, str]]()
    ranks = []
    for number, item in enumerate(items):
        kind = (item.grader, re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", item.answer[:_FORM])))
        counts[kind] += 1
        ranks.append((counts[kind], number))
    return sorted(number for _, number in sorted(ranks)[:most])


def _faults(item: Item, others: Sequence[str]) -> Iterator[str]:
    """Yield what a grader does wrong."""
    key = item.answer
    wrong = next((other for other in reversed(others) if not _may_be_equal(item, other)), _NONSENSE)
    gradable = _with_placeholders(item, f"answer {key} {wrong}")
    texts = [(form.format(key=key), True) for form in ("Answer: {key}", "{key}", *_FORMS[item.grader])]
    for text, right in (*texts, (wrong, False)):
        try:
            score = gradable.grade(item.transcript([""] * len(item.turns) + [text]) if item.turns else text)
        except (BankError, Unscored) as error:
            yield f"cannot grade {text!r:.60}: {error!s:.120}"
            return
        partial = item.grader == "f1" and not right and score < 1
        if score != right and not partial:
            answer = "its expected answer" if right else "a wrong answer"
            yield f"gives {answer}, {text!r:.60}, {score:g} where {right:d} is right; name another (--set grader=NAME)"


def _with_placeholders(item: Item, text: str) -> Item:
    """Return an item with a placeholder for each choice whose words a text does not have.

    No grader can find such a choice in the text, and equal choices are prepared once for all items.
    """
    words = set(_words(text)) | {"a", "an", "the"}
    choices = []
    for n, choice in enumerate(item.choices):
        choices.append(choice if words.issuperset(_words(choice)) else f"placeholder{n}")
    if item.grader == "choice" and len(item.answer) == 1:
        return replace(item, choices=tuple(choices))
    return item


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _may_be_equal(item: Item, other: str) -> bool:
    """Return whether a key may be the same answer in other words: as a number, or by a word that both have."""
    if item.grader in ("numeric", "math"):
        return replace(item, answer=other, others=(), turns=()).grade(item.answer) > 0
    own_answers = " ".join(item.answers).casefold()
    other = other.casefold()
    return bool(set(other.split()) & set(own_answers.split())) or other in own_answers or own_answers in other
