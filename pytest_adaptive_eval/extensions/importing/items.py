"""Items from drafts: the keys of a data set are read alike, then each draft becomes an item or is refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing.base import Imported
from pytest_adaptive_eval.extensions.importing.check import MOST_CHECKED, KeyCheck, spread
from pytest_adaptive_eval.extensions.importing.choices import LETTERS, find_convention, named, ordered
from pytest_adaptive_eval.extensions.importing.grading import (
    INSTRUCTIONS,
    Graded,
    GraderChoice,
    Key,
    accepted_texts,
    has_end,
    ungraded,
)
from pytest_adaptive_eval.extensions.importing.reading import Draft, paragraphs
from pytest_adaptive_eval.extensions.importing.undecided import NO_ANSWER, Advice, Undecided
from pytest_adaptive_eval.extensions.importing.values import as_list, as_text, is_missing, may_be_missing
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.presentation import CHOICES_SHOWN
from pytest_adaptive_eval.mappings import ItemMapping

#: Records from which a right choice at always the same place is a habit of the data set, or its answers are hidden.
_ALWAYS_SAME = 10
#: Of so many answers of several choices, one in another order than the choices shows that the order counts.
_SHUFFLED = 4
#: Choices that name others by their letters, and ones that name the choices above in so many characters.
_NAMES_OTHERS = re.compile(r"(?:^|[\s(])[A-F]\)?\s*(?:and|or|&|,)\s*\(?[A-F](?:\W|$)")
_ABOVE = re.compile(r"(?i)\b(?:all|none|both|neither|either|any|some)\b.*\b(?:above|these|those|them|preceding)\b")
_SENTENCE = 500
_T = TypeVar("_T")


def build_items(
    forms: Sequence[tuple[list[Draft], ItemMapping]], imported: Imported, prefix: str, most: int = MOST_CHECKED
) -> None:
    """Add the items of drafts to an import.

    The drafts are taken out of their lists, since a million of them take as much memory as their items.

    Args:
        prefix: Begin of ids that the data set lacks.
        most: Items whose graders are checked.
    """
    check = KeyCheck()
    locations: list[str] = []
    graded = sorted(_graded(forms, imported), key=lambda entry: -entry[0].number)
    for drafts, _ in forms:
        drafts.clear()
    names = Counter(entry[0].name for entry in graded)
    used = Counter[str]()
    while graded:
        draft, question, mapping = graded.pop()
        try:
            data = _data(draft, question, mapping)
            name = re.sub(r"-{2,}", "-", re.sub(r"[^!-9;-Z\\^-~]", "-", draft.name))[:100].strip("-")
            if not name or names[draft.name] > 1:
                content = json.dumps({**data, "meta": _plain(draft.meta)}, sort_keys=True)
                digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
                if name:
                    name = f"{name}-{digest[:6]}"
                else:
                    name = f"{prefix}-{digest[:10]}"
            used[name] += 1
            data["id"] = name if used[name] == 1 else f"{name}-{used[name]}"
            if draft.images:
                root = str(imported.store.target)
            else:
                root = ""
            item = parse_item(json.dumps(data), draft.where, root)
            imported.items.append(item)
            locations.append(draft.where)
        except (BankError, DatasetError) as error:
            imported.refuse(draft.where, error)
    wrong = set()
    for number in spread(imported.items, most):
        try:
            check.check(imported.items[number])
        except DatasetError as error:
            imported.refuse(locations[number], error)
            wrong.add(number)
    imported.items[:] = [item for number, item in enumerate(imported.items) if number not in wrong]
    imported.notes += check.notes()


def _mapped(
    entries: Iterable[tuple[Draft, *tuple[Any, ...]]], read: Callable[..., _T], imported: Imported
) -> list[tuple[Draft, _T]]:
    """Return drafts with what a function gives for each; those for which it raises are refused."""
    drafts: list[tuple[Draft, _T]] = []
    for draft, *more in entries:
        try:
            drafts.append((draft, read(draft, *more)))
        except DatasetError as error:
            imported.refuse(draft.where, error)
    return drafts


def _graded(
    forms: Sequence[tuple[Sequence[Draft], ItemMapping]], imported: Imported
) -> Iterator[tuple[Draft, Graded, ItemMapping]]:
    """Yield all drafts that have a key with their grading; files may have conventions of their own."""
    for drafts, mapping in forms:
        groups: dict[tuple[str, bool], list[Draft]] = {}
        for draft in drafts:
            groups.setdefault((draft.file, bool(draft.choices.texts)), []).append(draft)
        for (_, has_choices), group in groups.items():
            read = _with_choices if has_choices else _without_choices
            try:
                yield from ((draft, graded, mapping) for draft, graded in read(group, mapping, imported))
            except DatasetError as error:
                for draft in group:
                    imported.refuse(draft.where, error)


def _with_choices(drafts: Sequence[Draft], mapping: ItemMapping, imported: Imported) -> list[tuple[Draft, Graded]]:
    """Return drafts with their right choices, which all answers name in one way."""
    unmarked = [draft for draft in drafts if draft.choices.right is None]
    convention: str = mapping.counted
    if convention == "auto" and mapping.answer_kind != "list":
        rows = [(draft.answer, draft.choices) for draft in unmarked if not _hides(draft.answer)]
        if rows:
            convention = find_convention(rows, mapping.answer or "labels", mapping.choices)
        else:
            convention = "letter"
    if mapping.answer_kind == "list":
        return _mapped(((draft,) for draft in drafts), lambda draft: _in_order(draft, mapping), imported)
    orders = []
    for draft in unmarked:
        order = ordered(draft.answer, draft.choices, convention)
        if len(order) > 1:
            orders.append(order)
    matches = sum(order != sorted(order) for order in orders) * _SHUFFLED > len(orders)
    rights = _mapped(
        ((draft,) for draft in drafts),
        lambda draft: _right_choices(draft, convention, mapping, matches=matches),
        imported,
    )
    rights_by_place = {right for _, right in rights}
    always_same = len(rights_by_place) == 1 and len(rights) >= _ALWAYS_SAME
    if always_same and unmarked and mapping.counted == "auto" and convention != "text":
        raise Undecided(
            f"the answers of {mapping.answer or 'the labels'!r} are all {unmarked[0].answer!r:.60}, as where they are "
            "hidden",
            Advice({"counted": convention}, "where each names the right choice"),
        )
    if mapping.distractors or (always_same and rights_by_place == {frozenset({0})}):
        if not mapping.distractors:
            imported.notes.append("the right choice always comes first: the choices are shuffled, each by its question")
        others = [draft.where for draft, _ in rights if any(map(_NAMES_OTHERS.search, draft.choices.texts))]
        for where in others:
            imported.refuse(where, DatasetError("a choice names others by letter, and they are shuffled"))
        rights = [_shuffled(*entry) for entry in rights if entry[0].where not in others]
    several = any(len(right) > 1 and not _is_either(draft, mapping) for draft, right in rights)
    return [(draft, _of_choices(draft, right, mapping, several=several)) for draft, right in rights]


def _shuffled(draft: Draft, right: frozenset[int]) -> tuple[Draft, frozenset[int]]:
    """Return a draft with its choices in an order by question and choices alone, and where the right ones are.

    Choices such as "none of the above" come last.
    """
    texts = draft.choices.texts
    digests = []
    for text in texts:
        digests.append(hashlib.sha256(f"{draft.question}\n{text}".encode("utf-8", "replace")).digest())
    order = sorted(range(len(texts)), key=lambda n: (bool(_ABOVE.search(texts[n][:_SENTENCE])), digests[n]))
    draft.choices = draft.choices._replace(texts=tuple(texts[n] for n in order))
    return draft, frozenset(map(order.index, right))


def _hides(answer: Any) -> bool:
    """Return whether an answer is missing, or -1, signs or a word such as NaN, where others name choices."""
    word = as_text(answer)
    return is_missing(answer) or word == "-1" or may_be_missing(word) or not re.search(r"\w", word)


def _right_choices(draft: Draft, convention: str, mapping: ItemMapping, *, matches: bool) -> frozenset[int]:
    """Return the indexes of the right choices of a draft.

    Args:
        matches: Whether answers of several choices say which fits first, second and so on.

    Raises:
        DatasetError: Its answer names no choice, or several without a word on what these are.
    """
    choices, answer = draft.choices, draft.answer
    if choices.right is not None:
        right = choices.right
    else:
        right = named(answer, choices, convention)
    if not right:
        word = as_text(answer)
        if _hides(answer):
            none = NO_ANSWER
        else:
            none = f"the answer {answer!r:.60}"
        raise DatasetError(f"{none}: {word!r:.60} names none of its {len(choices.texts)} choices" if word else none)
    several = len(right) > 1 and choices.right is None
    if several and matches:
        raise DatasetError(
            f"the answer {answer!r:.60} names {len(right)} choices in an order of its own, as where each fits one of "
            "several texts; write --set answer='sort(FIELD)' where they are right together"
        )
    if several and not mapping.answer_kind:
        raise Undecided(
            f"the answer {answer!r:.60} names {len(right)} choices",
            Advice({"answer_kind": "all"}, "where these are right together"),
            Advice({"answer_kind": "any"}, "where each of them is right"),
        )
    if len(choices.texts) > len(LETTERS):
        raise DatasetError(f"{len(choices.texts)} choices, at most {len(LETTERS)} have a letter")
    letters = LETTERS[: len(choices.texts)]
    for n in right:
        if choices.texts[n] != letters[n] and (letters[n] in choices.texts or choices.texts[n] in letters):
            raise DatasetError(f"its choices {list(choices.texts)!r:.80} are letters in another order than their own")
    return right


def _in_order(draft: Draft, mapping: ItemMapping) -> Graded:
    """Return the grading of a question whose answer puts choices in order.

    Raises:
        DatasetError: The answer does not name choices by letters.
    """
    order = ordered(draft.answer, draft.choices, "letter")
    if not order:
        raise DatasetError(f"the answer {draft.answer!r:.60} is not the letters of choices in order")
    answer = ", ".join(LETTERS[n] for n in order)
    return Graded(mapping.grader or "exact", (answer,), draft.choices.texts, True, INSTRUCTIONS["order"])


def _is_either(draft: Draft, mapping: ItemMapping) -> bool:
    """Return whether one of several right choices is a right answer."""
    return mapping.answer_kind == "any" or (draft.choices.right is not None and draft.choices.either)


def _of_choices(draft: Draft, right: frozenset[int], mapping: ItemMapping, *, several: bool) -> Graded:
    """Return the grading of a question with choices: a letter, of several right ones each or all together."""
    choices = draft.choices.texts
    letters = sorted(LETTERS[n] for n in right)
    if _is_either(draft, mapping):
        answers = tuple(letters)
    else:
        answers = ("".join(letters),)
    bare_letters = all(text.strip("(). ") == letter for text, letter in zip(choices, LETTERS, strict=False))
    # a question may list its choices itself, each behind its letter
    lists_choices = all(
        re.search(rf"(?<!\w)[(\[]?{letter}\s?[)\].:、．]\s*{re.escape(text)}", draft.question)
        for letter, text in zip(LETTERS, choices, strict=False)
    )
    return Graded(
        mapping.grader or "choice",
        answers,
        () if bare_letters else choices,
        not (bare_letters or lists_choices),
        INSTRUCTIONS["several" if several else "choice"],
    )


def _without_choices(drafts: Sequence[Draft], mapping: ItemMapping, imported: Imported) -> list[tuple[Draft, Graded]]:
    """Return drafts without choices, each with the grader of its own answer."""
    solved = 2 * sum(has_end(draft.answer) for draft in drafts) > len(drafts) and not mapping.grader
    lacking = sum(draft.answer is None and not draft.accepted for draft in drafts)
    needed = 2 * lacking < len(drafts) or not ungraded(mapping.grader)
    keys = _mapped(((draft,) for draft in drafts), lambda draft: _key(draft, mapping, solved, needed), imported)
    choice = GraderChoice([key for _, key in keys], mapping)
    return _mapped(keys, lambda _, key: choice.grade(key), imported)


def _key(draft: Draft, mapping: ItemMapping, solved: bool, needed: bool) -> Key:
    """Return the key of a draft; refuse one without an answer where it is needed."""
    answer = draft.answer
    if solved and not has_end(answer):
        raise DatasetError("its answer has no marked end, such as a box, and most have one")
    if draft.turns and isinstance(answer, list) and len(answer) == 1 + len(draft.turns):
        # the answer to the last turn, or for a judge to all
        if any(isinstance(entry, list | Mapping) for entry in answer):
            raise DatasetError(f"each turn has an answer of several parts, {answer!r:.60}, and no grader compares them")
        first, *others = map(as_text, answer)
        whole = first + "".join(f"\n\n[turn {n}] {text}" for n, text in enumerate(others, 2))
        texts = list(filter(None, [whole if mapping.grader == JUDGE else others[-1]]))
    else:
        texts = accepted_texts(answer, draft.accepted, mapping)
    if needed and not texts:
        raise DatasetError(NO_ANSWER)
    entries = as_list(texts[0] if texts and answer is None else answer)
    return Key(draft.question, texts or [""], entries[0] if len(entries) == 1 else answer)


def _data(draft: Draft, question: Graded, mapping: ItemMapping) -> dict[str, Any]:
    """Return the item of a question as JSON data, without its id."""
    meta = {"row": draft.number, **_plain(draft.meta)}
    if question.choices and not mapping.choices_shown:
        meta[CHOICES_SHOWN] = False
    if mapping.tolerance is not None and question.grader == "numeric":
        meta["tolerance"] = mapping.tolerance
    data = {
        "answer": question.answers[0] if len(question.answers) == 1 else list(question.answers),
        "grader": question.grader,
        "choices": list(question.choices),
        "images": list(dict.fromkeys(draft.images)),
        "category": list(draft.category),
        "tools": draft.tools,
        "meta": meta,
        **_asked(draft, question, mapping),
    }
    return {name: value for name, value in data.items() if value not in ("", [], {})}


def _asked(draft: Draft, question: Graded, mapping: ItemMapping) -> dict[str, Any]:
    """Return the prompt or the messages of a question, and its turns."""
    if draft.messages:
        return {"messages": draft.messages}
    lines = []
    for letter, choice in zip(LETTERS, question.choices, strict=False):
        lines.append(f"{letter}. {choice}")
    instruction = question.instruction if mapping.instruction is None else mapping.instruction
    if mapping.bare:
        ends = []
    else:
        ends = ["\n".join(lines) if question.listed else "", instruction]
    *first, last = draft.question, *draft.turns
    asked = [*first, paragraphs(last, *ends)]
    return {"prompt": asked[0], "turns": asked[1:]}


def _plain(meta: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(meta, default=as_text))
    return plain
