"""Checks of a whole bank, and the differences between two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.item import items_naming
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.items.item import Item

#: Graders whose keys are answers that they accept.
_OWN_KEY = {"exact", "choice", "numeric", "contains", "math"}
#: Kinds of warnings: what is counted, and the rest of the sentence.
_REFUSED = "item|whose grader does not accept the key, SUCH"
_SHOWN = "prompt|with the expected answer of 'contains' in it, SUCH: use 'choice' with choices, or 'exact_match'"
_COMPARED = (
    "key|of the grader 'exact' that are letters, yes or no, numbers or choices, SUCH: use 'choice', 'yesno' or "
    "'numeric', which read whole answers"
)
_JUDGED = "item|that a judge grades, SUCH: the evaluation needs one (judge = { model = ... })"
_REPEATED = "question|that another item asks already, SUCH"


def faults(bank: ItemBank) -> Iterator[str]:
    """Yield faults that keep a bank from being asked as written; reads every image.

    Raises:
        BankError: An item is malformed, or the texts were edited.
    """
    from pytest_adaptive_eval.banks.hashes import content_hash

    images = []
    for item in items_naming(bank.items, "images"):
        for path in item.image_paths:
            images.append((item.id, path))
    missing = []
    for name, path in images:
        if not Path(path).is_file():
            missing.append((name, path))
    if missing:
        yield f"{counted(len(missing), 'missing image')}, such as {missing[0][1]} of item {missing[0][0]!r}"
    elif images and bank.content_hash and (digest := content_hash(bank.items)) != bank.content_hash:
        yield f"the content is {digest}, and {bank.content_hash} when the bank was written: an image was changed"


def warnings(bank: ItemBank) -> Iterator[str]:
    """Yield warnings about a bank."""
    if bank.report.get("textless") and bank.report.get("ready"):
        yield f"it has ids alone, which a harness asks; {bank.report['ready']}"
    elif bank.report.get("textless"):
        yield "it has ids alone, which a harness asks: calibrate it with --items for other models"
    ids_by_kind: dict[str, list[str]] = {}
    first: dict[int, str] = {}
    for item in bank.items:
        if item.meta.get("textless"):
            continue
        for kind in _kinds_of_doubt(item):
            ids_by_kind.setdefault(kind, []).append(repr(item.id))
        asked = hash((item.prompt, str(item.messages), item.images, item.choices))
        if first.setdefault(asked, item.id) != item.id:
            ids_by_kind.setdefault(_REPEATED, []).append(f"{item.id!r} like {first[asked]!r}")
    for kind, ids in ids_by_kind.items():
        subject, predicate = kind.split("|")
        yield f"{counted(len(ids), subject)} {predicate.replace('SUCH', f'such as {ids[0]}')}"
    if bank.report.get("trusted") is False:
        yield "the calibration failed its checks, and the bank was written by force"


def _kinds_of_doubt(item: Item) -> Iterator[str]:
    """Yield the kinds of warnings that an item gives rise to."""
    from pytest_adaptive_eval.items.graders.kinds.words import shows_answer

    if item.grader in _OWN_KEY and not _accepts_own_key(item):
        yield _REFUSED
    if item.grader == "contains" and shows_answer(item):
        yield _SHOWN
    if item.grader == "exact" and any(_names_kind(item, key) for key in item.answers):
        yield _COMPARED
    if item.grader == JUDGE:
        yield _JUDGED


def _names_kind(item: Item, key: str) -> bool:
    """Return whether a key is a letter, yes or no, a number, or one of the choices."""
    from pytest_adaptive_eval.items.reading.numbers import is_lone_number
    from pytest_adaptive_eval.items.reading.truth import truth_of

    text = key.strip()
    return (
        text.isdecimal()
        or text in item.choices
        or (len(text) == 1 and text.isalpha())
        or truth_of(text) is not None
        or is_lone_number(text)
    )


def _accepts_own_key(item: Item) -> bool:
    one_line = item.answer == item.answer.strip() and "\n" not in item.answer
    if (item.grader == "exact" and one_line) or (item.grader == "numeric" and item.answer.isdecimal()):
        return True  # reading it would take most of the time that a large bank takes
    try:
        return all(item.grade(answer) > 0 for answer in item.answers[:1])
    except AdaptiveEvalError:
        return False


@dataclass(frozen=True, slots=True)
class Differences:
    """Changes from one bank to another.

    Args:
        added, removed, changed: Item ids.
        same: Number of items with the same content.
        moved: Largest change of a discrimination or an intercept of these; None if either bank has no parameters, or
            the dimensions differ.
    """

    added: list[str]
    removed: list[str]
    changed: list[str]
    same: int
    moved: float | None

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed or self.moved)


def compare(old: ItemBank, new: ItemBank) -> Differences:
    """Return the changes from `old` to `new`, by item id and content."""
    before = {}
    for n, item in enumerate(old.items):
        before[item.id] = (n, item.content_hash)
    after = {}
    for n, item in enumerate(new.items):
        after[item.id] = (n, item.content_hash)
    same = []
    for name in after:
        if name in before and before[name][1] == after[name][1]:
            same.append(name)
    positions = np.array([(before[name][0], after[name][0]) for name in same]).T
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    changed = []
    for name in after:
        if name in before and before[name][1] != after[name][1]:
            changed.append(name)
    return Differences(
        added,
        removed,
        changed,
        len(same),
        _largest_change(old, new, positions) if same else None,
    )


def _largest_change(old: ItemBank, new: ItemBank, positions: NDArray[np.intp]) -> float | None:
    """Return the largest change of a parameter of the items at `positions`, shape (2, n), of both banks."""
    if not (old.calibrated and new.calibrated and old.dimensions == new.dimensions):
        return None
    slopes = np.abs(old.discrimination[positions[0]] - new.discrimination[positions[1]]).max()
    intercepts = np.abs(old.intercept[positions[0]] - new.intercept[positions[1]]).max()
    return float(max(slopes, intercepts))
