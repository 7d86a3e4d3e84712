"""Items from drafts: the keys of a data set are read alike, then each draft becomes an item or is refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing.check import KeyCheck
from pytest_adaptive_eval.extensions.importing.grading import (
    Graded,
    GraderChoice,
    Key,
    accepted_texts,
    has_end,
    together,
    ungraded,
)
from pytest_adaptive_eval.extensions.importing.keys import are_marks, find_convention, named
from pytest_adaptive_eval.extensions.importing.reading import Draft
from pytest_adaptive_eval.extensions.importing.values import (
    as_list,
    as_text,
    is_missing,
    letters_out_of_order,
    may_be_missing,
)
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.presentation import CHOICES_SHOWN
from pytest_adaptive_eval.mappings import ItemMapping

#: Records from which a right choice at always the same place is a habit of the data set, or its answers are hidden.
_ALWAYS_SAME = 10
_INSTRUCTIONS = {
    "choice": "Answer with the letter of the right choice.",
    "several": "Answer with the letters of all right choices.",
    "yesno": "Answer yes or no.",
    "numeric": "End with a line `Answer: <number>`.",
    "math": "End with a line `Answer: <expression>`.",
    "exact_match": "Answer with a few words.",
    "exact": "End with a line `Answer: <answer>`.",
}
#: Choices that name others by their letters, and ones that name the choices above.
_NAMES_OTHERS = re.compile(r"(?:^|[\s(])[A-F]\)?\s*(?:and|or|&|,)\s*\(?[A-F](?:\W|$)")
_ABOVE = re.compile(r"(?i)\b(?:all|none|both|neither|either|any|some)\b.*\b(?:above|these|those|them|preceding)\b")
#: Characters of a choice that may name the choices above.
_SENTENCE = 500
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FIRST = frozenset({0})
Names = tuple[str, ...]


@dataclass(slots=True)
class Built:
    """Items of an import, with place and reason of each refused record."""

    items: list[Item] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, draft: Draft, reason: object) -> None:
        """Add a draft to those refused."""
        self.refused.append((draft.where, str(reason)))


@dataclass(slots=True)
class _Ids:
    """Ids that stay when records are added or reordered."""

    prefix: str
    names: Counter[str]
    _used: Counter[str] = field(default_factory=Counter)

    def next(self, name: str, content: str) -> str:
        """Return the id of a record: its name, with a hash of its content where the name repeats."""
        digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        base = re.sub(r"-{2,}", "-", re.sub(r"[^!-9;-Z\\^-~]", "-", name))[:100].strip("-")
        item_id = base if base and self.names[name] == 1 else f"{base or self.prefix}-{digest[: 6 if base else 10]}"
        self._used[item_id] += 1
        return item_id if self._used[item_id] == 1 else f"{item_id}-{self._used[item_id]}"


@dataclass(slots=True)
class _Question:
    draft: Draft
    grader: str
    answers: Names
    choices: Names = ()
    listed: bool = False
    instruction: str = ""


def build_items(forms: Sequence[tuple[list[Draft], ItemMapping]], root: str, prefix: str) -> Built:
    """Return the items of drafts, with images in the folder `root`; `prefix` begins ids that the data set lacks.

    The drafts are taken out of their lists, since a million of them take as much memory as their items.
    """
    built = Built()
    check = KeyCheck()
    questions = sorted(_questions(forms, built), key=lambda entry: -entry[0].draft.number)
    for drafts, _ in forms:
        drafts.clear()
    ids = _Ids(prefix, Counter(question.draft.name for question, _ in questions))
    while questions:
        question, mapping = questions.pop()
        try:
            item = _item(question, mapping, root, ids)
            check.check(item)
            built.items.append(item)
        except (BankError, DatasetError) as error:
            built.refuse(question.draft, re.sub(r"\A.*?: item '[^']*'(?:: | )", "", str(error)))
    built.notes += check.notes()
    return built


def file_of(where: str) -> str:
    """Return the file of a place."""
    return re.split(r", (?:line|row|record|key) ", where)[0]


def _questions(
    forms: Sequence[tuple[Sequence[Draft], ItemMapping]], built: Built
) -> Iterator[tuple[_Question, ItemMapping]]:
    """Yield the questions of all drafts; add drafts whose answers no convention fits to those refused."""
    for drafts, mapping in forms:
        # files may have conventions of their own
        groups: dict[tuple[str, bool], list[Draft]] = {}
        for draft in drafts:
            groups.setdefault((file_of(draft.where), bool(draft.choices.texts)), []).append(draft)
        for (_, has_choices), group in groups.items():
            read = _with_choices if has_choices else _without_choices
            try:
                yield from ((question, mapping) for question in read(group, mapping, built))
            except DatasetError as error:
                built.refused += [(draft.where, str(error)) for draft in group]


def _with_choices(drafts: Sequence[Draft], mapping: ItemMapping, built: Built) -> list[_Question]:
    """Return the questions with choices, whose answers name choices in one way."""
    convention = _convention(drafts, mapping)
    answered = list(_answered(drafts, convention, mapping, built))
    place = _only_place(answered)
    if place is not None and mapping.counted == "auto" and convention != "text":
        _check_not_hidden(drafts, mapping, convention)
    if place == _FIRST and not mapping.distractors:
        built.notes.append("the right choice always comes first: the choices are shuffled, each by its question")
    if mapping.distractors or place == _FIRST:
        answered = [_shuffled(draft, right) for draft, right in answered if _can_be_shuffled(draft, built)]
    several = any(len(right) > 1 and not _is_either(draft, mapping) for draft, right in answered)
    return [_chosen(draft, right, mapping, several=several) for draft, right in answered]


def _check_not_hidden(drafts: Sequence[Draft], mapping: ItemMapping, convention: str) -> None:
    """Refuse answers that name the same place everywhere, unless the choices mark the right ones."""
    unmarked = [draft for draft in drafts if draft.choices.right is None]
    if unmarked:
        raise DatasetError(
            f"the answers of {mapping.answer or 'the labels'!r} are all {unmarked[0].answer!r:.60}, as where they are "
            f"hidden; give --set answer=FIELD, or --set counted={convention} where each names the right one"
        )


def _answered(
    drafts: Sequence[Draft], convention: str, mapping: ItemMapping, built: Built
) -> Iterator[tuple[Draft, frozenset[int]]]:
    """Yield drafts with the indexes of their right choices; refuse those without."""
    for draft in drafts:
        try:
            yield draft, _right_choices(draft, convention, mapping)
        except DatasetError as error:
            built.refuse(draft, error)


def _convention(drafts: Sequence[Draft], mapping: ItemMapping) -> str:
    """Return how answers name choices, by the questions whose choices do not mark the right one."""
    if mapping.counted != "auto":
        return mapping.counted
    unmarked = [(draft.answer, draft.choices) for draft in drafts if draft.choices.right is None]
    rows = [(answer, choices) for answer, choices in unmarked if not _hides(answer)]
    return find_convention(rows, mapping.answer or "labels") if rows else "letter"


def _only_place(answered: Sequence[tuple[Draft, frozenset[int]]]) -> frozenset[int] | None:
    """Return the place of the right choice where it is the same in all of ten or more questions."""
    places = {right for _, right in answered}
    return next(iter(places)) if len(places) == 1 and len(answered) >= _ALWAYS_SAME else None


def _can_be_shuffled(draft: Draft, built: Built) -> bool:
    """Return whether no choice names others by letter; refuse a draft with such a choice."""
    names_others = any(map(_NAMES_OTHERS.search, draft.choices.texts))
    if names_others:
        built.refuse(draft, "a choice names others by letter, and they are shuffled")
    return not names_others


def _shuffled(draft: Draft, right: frozenset[int]) -> tuple[Draft, frozenset[int]]:
    """Return a draft with its choices in an order by question and choices alone, and where the right ones are.

    Choices such as "none of the above" come last.
    """
    texts = draft.choices.texts
    digests = [hashlib.sha256(f"{draft.question}\n{text}".encode("utf-8", "replace")).digest() for text in texts]
    order = sorted(range(len(texts)), key=lambda n: (bool(_ABOVE.search(texts[n][:_SENTENCE])), digests[n]))
    draft.choices = draft.choices._replace(texts=tuple(texts[n] for n in order))
    return draft, frozenset(map(order.index, right))


def _hides(answer: Any) -> bool:
    """Return whether an answer is missing, or -1, signs or a word such as NaN, where others name choices."""
    word = as_text(answer)
    return is_missing(answer) or word == "-1" or may_be_missing(word) or not re.search(r"\w", word)


def _right_choices(draft: Draft, convention: str, mapping: ItemMapping) -> frozenset[int]:
    """Return the indexes of the right choices of a draft.

    Raises:
        DatasetError: Its answer names no choice, or several without a word on what these are.
    """
    choices, answer = draft.choices, draft.answer
    letters = letters_out_of_order(choices)
    if letters:
        raise DatasetError(f"its choices have the letters {letters} of their own, so the right one is not certain")
    right = choices.right if choices.right is not None else named(answer, choices, convention)
    if not right:
        word = as_text(answer)
        none = "no answer" if _hides(answer) else f"the answer {answer!r:.60}"
        raise DatasetError(f"{none}: {word!r:.60} names none of its {len(choices.texts)} choices" if word else none)
    stated = choices.right is not None or mapping.answer_kind or are_marks(as_list(answer), len(choices.texts))
    if len(right) > 1 and not stated:
        raise DatasetError(
            f"the answer {answer!r:.60} names {len(right)} choices; give --set answer_kind=all where these are right "
            "together, or any where each of them is"
        )
    return right


def _is_either(draft: Draft, mapping: ItemMapping) -> bool:
    """Return whether one of several right choices is a right answer."""
    return mapping.answer_kind == "any" or (draft.choices.right is not None and draft.choices.either)


def _chosen(draft: Draft, right: frozenset[int], mapping: ItemMapping, *, several: bool) -> _Question:
    """Return a question with choices: its answer is a letter, of several right ones each or all together."""
    choices = draft.choices.texts
    letters = sorted(_LETTERS[n] for n in right if n < len(_LETTERS))
    answers = tuple(letters) if _is_either(draft, mapping) else ("".join(letters),)
    bare_letters = all(text.strip("(). ") == letter for text, letter in zip(choices, _LETTERS, strict=False))
    # a question may list its choices itself, each behind its letter
    shown = all(
        re.search(rf"(?<!\w)[(\[]?{letter}\s?[)\].:、．]\s*{re.escape(text)}", draft.question)
        for letter, text in zip(_LETTERS, choices, strict=False)
    )
    instruction = _INSTRUCTIONS["several" if several else "choice"]
    kept = () if bare_letters else choices
    return _Question(draft, mapping.grader or "choice", answers, kept, not (bare_letters or shown), instruction)


def _without_choices(drafts: Sequence[Draft], mapping: ItemMapping, built: Built) -> list[_Question]:
    """Return the questions without choices, each with the grader of its own answer."""
    keys: list[tuple[Draft, Key]] = []
    solved = 2 * sum(has_end(draft.answer) for draft in drafts) > len(drafts)
    for draft in drafts:
        try:
            if solved and not (has_end(draft.answer) or mapping.grader):
                raise DatasetError("its answer has no marked end, such as a box, and most have one")
            keys.append((draft, _key(draft, mapping)))
        except DatasetError as error:
            built.refuse(draft, error)
    name = mapping.answer or ", ".join(mapping.accepted)
    choice = GraderChoice([key for _, key in keys], mapping.grader, name, missing_stated=mapping.missing is not None)
    questions: list[_Question] = []
    for draft, key in keys:
        try:
            graded = together(key.answers) if mapping.answer_kind == "letters" else choice.grade(key)
        except DatasetError as error:
            built.refuse(draft, error)
            continue
        instruction = _instruction(graded, key)
        questions.append(_Question(draft, graded.grader, graded.answers, graded.choices, False, instruction))
    return questions


def _key(draft: Draft, mapping: ItemMapping) -> Key:
    """Return the key of a draft; refuse one without an answer, unless the grader needs none."""
    of_turns = draft.turns and isinstance(draft.answer, list) and len(draft.answer) == 1 + len(draft.turns)
    texts = _of_turns(draft.answer, mapping) if of_turns else accepted_texts(draft.answer, draft.accepted, mapping)
    if not (texts or ungraded(mapping.grader)):
        raise DatasetError("no answer")
    value = texts[0] if texts and draft.answer is None else draft.answer
    entries = as_list(value)
    return Key(draft.text, texts or [""], entries[0] if len(entries) == 1 else value)


def _of_turns(answers: Sequence[Any], mapping: ItemMapping) -> list[str]:
    """Return the answer to the last turn, or for a judge to all."""
    first, *others = map(as_text, answers)
    whole = first + "".join(f"\n\n[turn {n}] {text}" for n, text in enumerate(others, 2))
    text = whole if mapping.grader == JUDGE else others[-1]
    return [text] if text else []


def _instruction(graded: Graded, key: Key) -> str:
    """Return the sentence after a question without choices."""
    labels, first = graded.choices, graded.answers[0] if graded.answers else ""
    if first in labels and labels != ("yes", "no"):
        return f"Answer with one of: {', '.join(labels)}."
    if graded.grader == "yesno" and str(key.value).strip().casefold() in ("true", "false"):
        return "Answer true or false." if isinstance(key.value, str) else _INSTRUCTIONS["yesno"]
    several = graded.grader == "choice" and len(first) > 1
    return _INSTRUCTIONS.get("several" if several else graded.grader, "")


def _item(question: _Question, mapping: ItemMapping, root: str, ids: _Ids) -> Item:
    """Return the item of a question, checked as every item of a bank is."""
    draft = question.draft
    _check_letters(question)
    meta: dict[str, Any] = {"row": draft.number, **_plain(draft.meta)}
    if question.choices and not mapping.choices_shown:
        meta[CHOICES_SHOWN] = False
    if mapping.tolerance is not None and question.grader == "numeric":
        meta["tolerance"] = mapping.tolerance
    data: dict[str, Any] = {
        "answer": question.answers[0] if len(question.answers) == 1 else list(question.answers),
        "grader": question.grader,
        "choices": list(question.choices),
        "images": list(dict.fromkeys(draft.images)),
        "category": list(draft.category),
        "meta": meta,
        **_asked(question, mapping),
    }
    data = {name: value for name, value in data.items() if value not in ("", [], {})}
    content = json.dumps({**data, "meta": _plain(draft.meta)}, sort_keys=True)
    data["id"] = ids.next(draft.name, content)
    return parse_item(json.dumps(data), draft.where, root)


def _asked(question: _Question, mapping: ItemMapping) -> dict[str, Any]:
    """Return the prompt or the messages of a question, and its turns."""
    draft = question.draft
    if len(draft.messages) > 1 or (draft.messages and draft.messages[0]["role"] != "user"):
        first = [{"role": "system", "content": draft.question}] if draft.question else []
        return {"messages": [*first, *draft.messages]}
    text = "\n\n".join(filter(None, (draft.question, *(message["content"] for message in draft.messages))))
    if draft.turns:
        return {"prompt": text, "turns": [*draft.turns[:-1], _prompt(draft.turns[-1], question, mapping)]}
    return {"prompt": _prompt(text, question, mapping)}


def _check_letters(question: _Question) -> None:
    """Refuse more choices than letters, and choices that are letters in another order than their own."""
    if len(question.choices) > len(_LETTERS):
        raise DatasetError(f"{len(question.choices)} choices, at most {len(_LETTERS)} have a letter")
    of_labels = len(question.answers[0]) > 1 and question.answers[0] in question.choices
    if question.grader != "choice" or not question.choices or of_labels:
        return
    for letter in "".join(question.answers):
        text = question.choices[_LETTERS.index(letter)]
        if letter != text and (letter in question.choices or text in _LETTERS[: len(question.choices)]):
            raise DatasetError(
                f"its choices {list(question.choices)!r:.80} are letters in another order than their own"
            )


def _prompt(text: str, question: _Question, mapping: ItemMapping) -> str:
    if mapping.bare:
        return text
    parts = [text]
    if question.listed:
        lines = [f"{letter}. {choice}" for letter, choice in zip(_LETTERS, question.choices, strict=False)]
        parts.append("\n".join(lines))
    unit = "" if may_be_missing(question.draft.unit) else question.draft.unit
    if unit and not re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", text):
        parts.append(f"Give the answer in {unit}.")
    instruction = question.instruction if mapping.instruction is None else mapping.instruction
    return "\n\n".join(filter(None, [*parts, instruction]))


def _plain(meta: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(meta), default=as_text))
    return plain
