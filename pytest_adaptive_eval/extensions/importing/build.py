"""Items from drafts: conventions are found over all records of a file, then each becomes an item or is refused."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.banks.code import CODE
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, DatasetError, Unscored
from pytest_adaptive_eval.extensions.importing.answers import find_convention, is_hidden, named, yes_or_no
from pytest_adaptive_eval.extensions.importing.choices import as_list, as_text, literal, may_be_missing, without_end
from pytest_adaptive_eval.extensions.importing.drafts import Draft
from pytest_adaptive_eval.extensions.importing.fields import PROGRAMS, normal
from pytest_adaptive_eval.extensions.importing.free import (
    Free,
    Row,
    accepted_answers,
    choose_grader,
    how_to_tell,
    is_list,
)
from pytest_adaptive_eval.items.graders.kinds.numeric import tolerance_of
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.reading.choice import choice_of
from pytest_adaptive_eval.items.reading.numbers import expected_numbers
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.text import counted

#: Graders whose right answers follow from the item's answer.
_KINDS = ("choice", "yesno", "numeric", "math", "exact", "exact_match", "contains", "f1", "literal", "json")
#: Answer of no question.
_WRONG = "qzxv wkjq"
#: Time limit of all checks of an import, in seconds.
_SECONDS = 60.0
#: Choices that a question may list itself.
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
        right = f"graders checked on {counted(self.graded, 'item')}: each accepts the key and rejects a wrong answer"
        others = self._unchecked.items()
        unchecked = [f"{count} items {why} were not graded with their own answers" for why, count in others]
        return [right, *unchecked] if self.graded else unchecked


def _check(item: Item) -> None:
    gold = _as_json(item, item.answer) if item.grader == "json" else item.answer
    for text, expected in ((f"Answer: {gold}", 1.0), (gold, 1.0), *((wrong, 0.0) for wrong in _wrong(item))):
        try:
            score = item.grade(item.transcript([""] * len(item.turns) + [text]) if item.turns else text)
        except (BankError, Unscored) as error:
            raise DatasetError(f"its grader {item.grader} cannot grade {text!r:.60}: {error!s:.120}") from None
        if score != expected:
            right = "its expected answer" if expected else "a wrong answer"
            raise DatasetError(
                f"its grader {item.grader} gives {right}, {text!r:.60}, {score:g} where {expected:g} is right; name "
                "another grader (--set grader=NAME)"
            )


def _as_json(item: Item, answer: str) -> str:
    return json.dumps({str(item.meta.get("field", "answer")): answer})


def _wrong(item: Item) -> Iterator[str]:
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
#: Answers that name one choice, for each that names several, from which the latter are mistakes.
_FEW = 10
#: Choices that name others by their letters, and those that name the ones above.
_NAMES_OTHERS = re.compile(r"(?:^|[\s(])[A-F]\)?\s*(?:and|or|&|,)\s*\(?[A-F](?:\W|$)")
_ABOVE = re.compile(r"(?i)\b(?:all|none|both|neither|either|any|some)\b.*\b(?:above|these|those|them|preceding)\b")
Names = tuple[str, ...]
#: A draft, and the indexes of its right choices.
_Answered = tuple[Draft, frozenset[int]]


@dataclass(slots=True)
class Built:
    """Items of an import and their files, with place and reason of each refused record."""

    items: list[Item] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    refused: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


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

    Raises:
        DatasetError: No convention fits the answers.
    """
    built = Built()
    gold = GoldCheck()
    questions = sorted(_questions(forms, built), key=lambda entry: -entry[0].draft.number)
    for drafts, _ in forms:
        drafts.clear()
    ids = _Ids(prefix, Counter(question.draft.name for question, _ in questions))
    while questions:
        question, mapping = questions.pop()
        try:
            item = _item(question, mapping, root, ids)
            gold.check(item)
            built.items.append(item)
            built.files.add(file_of(question.draft.where))
        except (BankError, DatasetError) as error:
            reason = re.sub(r"\A.*?: item '[^']*'(?:: | )", "", str(error))
            built.refused.append((question.draft.where, reason))
    built.notes += [*gold.notes(), *_contradictions(built.items)]
    return built


def _contradictions(items: Sequence[Item]) -> Iterator[str]:
    """Yield a note on questions that come twice, with different answers."""
    first: dict[int, int] = {}
    found = []
    for n, item in enumerate(items):
        asked = hash((item.prompt, repr(item.messages), item.turns, item.images, item.choices))
        earlier = items[first.setdefault(asked, n)]
        if earlier.answers != item.answers:
            found.append((earlier.id, item.id))
    if found:
        yield (
            f"{counted(len(found), 'question')} repeated with another answer, such as {found[0][0]!r} and "
            f"{found[0][1]!r}: one of the answers is wrong"
        )


def _questions(
    forms: Sequence[tuple[Sequence[Draft], ItemMapping]], built: Built
) -> list[tuple[_Question, ItemMapping]]:
    """Return the questions of all drafts; add drafts whose answers no convention fits to those refused."""
    questions: list[tuple[_Question, ItemMapping]] = []
    errors: list[DatasetError] = []
    for drafts, mapping in forms:
        by_file: dict[str, list[Draft]] = {}
        for draft in drafts:
            by_file.setdefault(file_of(draft.where), []).append(draft)
        # files may have conventions of their own
        for group in by_file.values() if len(by_file) > 1 and mapping.counted == "auto" else [drafts]:
            with_choices = [draft for draft in group if draft.choices.texts]
            without = [draft for draft in group if not draft.choices.texts]
            free = partial(_without, mixed=bool(with_choices))
            for part, read in ((with_choices, _with_choices), (without, free)):
                try:
                    questions += [(question, mapping) for question in read(part, mapping, built)]
                except DatasetError as error:
                    errors.append(error)
                    built.refused += [(draft.where, str(error)) for draft in part]
    if errors and not questions:
        raise errors[0]
    return questions


def file_of(where: str) -> str:
    """Return the file of a place."""
    return re.split(r", (?:line|row|record|key) ", where)[0]


def _with_choices(drafts: Sequence[Draft], mapping: ItemMapping, built: Built) -> list[_Question]:
    convention = _convention(drafts, mapping)
    answered = _with_right_choices(drafts, convention, built)
    if mapping.counted == "auto":
        answered = _with_usual_counts(answered, built)
    if mapping.missing is None:
        answered = _with_told_choices(answered, built)
    first = answered[0][1] if answered else frozenset()
    same = len(answered) >= _ALWAYS_SAME and all(right == first for _, right in answered)
    by_place = mapping.counted == "auto" and convention != "text"
    if same and by_place and any(draft.choices.right is None for draft, _ in answered):
        raise DatasetError(
            f"the answers of {mapping.answer or 'the labels'!r} are all {answered[0][0].answer!r:.60}, as where they "
            f"are hidden; give --set answer=FIELD, or --set counted={convention} where each names the right one"
        )
    always_first = same and first == {0}
    if always_first and not mapping.distractors:
        built.notes.append("the right choice always comes first: the choices are shuffled, each by its question")
    shuffled = bool(mapping.distractors) or always_first
    if shuffled:
        answered = _without_named(answered, built)
    several = any(
        len(right) > 1 and (not draft.choices.either or draft.choices.right is None) for draft, right in answered
    )
    return [_chosen(draft, right, mapping, shuffled, several) for draft, right in answered]


def _convention(drafts: Sequence[Draft], mapping: ItemMapping) -> str:
    """Return how answers name choices, by the questions whose choices do not mark the right one."""
    if mapping.counted != "auto":
        return mapping.counted
    unmarked = [(draft.answer, draft.choices) for draft in drafts if draft.choices.right is None]
    rows = [(answer, choices) for answer, choices in unmarked if not is_hidden(answer, choices)]
    return find_convention(rows, mapping.answer or "labels") if rows else "letter"


def _without_named(answered: Sequence[_Answered], built: Built) -> list[_Answered]:
    """Return the drafts without choices that name others by letter, which cannot be shuffled; refuse these."""
    kept: list[_Answered] = []
    for draft, right in answered:
        if any(map(_NAMES_OTHERS.search, draft.choices.texts)):
            built.refused.append((draft.where, "a choice names others by letter, and they are shuffled"))
        else:
            kept.append((draft, right))
    return kept


def _with_right_choices(drafts: Sequence[Draft], convention: str, built: Built) -> list[_Answered]:
    """Return the drafts with the indexes of their right choices; add drafts without any to those refused."""
    found: list[_Answered] = []
    for draft in drafts:
        right = draft.choices.right
        hidden = is_hidden(draft.answer, draft.choices)
        if right is None:
            right = frozenset() if hidden else named(draft.answer, draft.choices, convention)
        count = len(draft.choices.texts)
        if right:
            found.append((draft, right))
        elif hidden:
            word = as_text(draft.answer)
            built.refused.append(
                (draft.where, f"no answer: {word!r} names none of its choices" if word else "no answer")
            )
        else:
            built.refused.append((draft.where, f"the answer {draft.answer!r:.60} names none of its {count} choices"))
    return found


def _with_usual_counts(answered: Sequence[_Answered], built: Built) -> list[_Answered]:
    """Return the drafts without answers that name all choices, or several where nearly all name one; refuse these."""
    together = [(draft, right) for draft, right in answered if draft.choices.right is None and len(right) > 1]
    few = len(together) * _FEW < len(answered)
    only_whole = all(len(right) == len(draft.choices.texts) for draft, right in together)
    usual: list[_Answered] = []
    for draft, right in answered:
        whole = len(right) == len(draft.choices.texts)
        if draft.choices.right is None and len(right) > 1 and (few or only_whole):
            count = "all of its" if whole else "several"
            built.refused.append((draft.where, f"the answer {draft.answer!r:.60} names {count} choices"))
        else:
            usual.append((draft, right))
    return usual


def _with_told_choices(answered: Sequence[_Answered], built: Built) -> list[_Answered]:
    """Return the drafts without choices that mean a missing value, such as ``nan``; refuse unclear ones.

    Such a word is a text if it is the right choice of some question, and no value if some question has it twice.
    """
    words = {text for draft, _ in answered for text in draft.choices.texts if may_be_missing(text) and text != "None"}
    right_ones = {draft.choices.texts[n] for draft, right in answered for n in right} & words
    repeated = {word for word in words if any(draft.choices.texts.count(word) > 1 for draft, _ in answered)}
    missing, unclear = repeated - right_ones, words - (repeated ^ right_ones)
    told: list[_Answered] = []
    for draft, right in answered:
        texts = draft.choices.texts
        draft.choices = without_end(draft.choices._replace(texts=tuple("" if t in missing else t for t in texts)))
        holes = {text for text, kept in zip(texts, draft.choices.texts, strict=False) if not kept}
        if word := next((text for text in texts if text in unclear | holes), ""):
            built.refused.append((draft.where, f"the choice {word!r} may stand for no value: {how_to_tell(word)}"))
        elif len(draft.choices.texts) == 1:
            built.refused.append((draft.where, f"{draft.choices.texts[0]!r:.60} is its only choice"))
        else:
            told.append((draft, right))
    return told


def _chosen(draft: Draft, right: frozenset[int], mapping: ItemMapping, shuffled: bool, several: bool) -> _Question:
    """Return a question with choices: its answer is a letter, of several right ones each or all together."""
    texts = draft.choices.texts
    order = list(range(len(texts)))
    if shuffled:  # by question and choices alone; choices such as "none of the above" come last
        digests = [hashlib.sha256(f"{draft.question}\n{text}".encode("utf-8", "replace")).digest() for text in texts]
        order.sort(key=lambda n: (bool(_ABOVE.search(texts[n])), digests[n]))
    letters = sorted(_LETTERS[order.index(n)] for n in right if order.index(n) < len(_LETTERS))
    together = draft.choices.right is None or not draft.choices.either
    answers = ("".join(letters),) if together else tuple(letters)
    choices = tuple(texts[n] for n in order)
    bare_letters = all(text.strip("(). ") == letter for text, letter in zip(choices, _LETTERS, strict=False))
    # a question may list its choices itself, each behind its letter
    shown = all(
        re.search(rf"(?<!\w)[(\[]?{letter}\s?[)\].:、．]\s*{re.escape(text)}", draft.question)
        for letter, text in zip(_LETTERS, choices, strict=False)
    )
    listed = not (bare_letters or shown)
    word = "several" if several else "choice"
    return _Question(
        draft, mapping.grader or "choice", answers, () if bare_letters else choices, listed, _INSTRUCTIONS[word]
    )


def _without(drafts: Sequence[Draft], mapping: ItemMapping, built: Built, *, mixed: bool) -> list[_Question]:
    ungraded = mapping.grader in (CODE, JUDGE) or mapping.grader.startswith("python:")
    rows = _rows(drafts, mapping, built, ungraded=ungraded)
    lists = sum(isinstance(row.value, list) and any(map(is_list, row.answers)) for _, row in rows)
    if lists and not mapping.accepted:
        built.notes.append(
            f"{lists} answers of {mapping.answer or '$label'!r} are lists, each one value, all of it wanted in its "
            f"order; give --set accepted={mapping.answer or '$label'} where any entry is right"
        )
    told = ungraded or mapping.missing is not None
    name = mapping.answer or ", ".join(mapping.accepted)
    of_code = any(normal(word) in PROGRAMS for word in re.findall(r"\w+", f"{mapping.context} {mapping.question}"))
    graded = [row for _, row in rows]
    chosen = choose_grader(graded, mapping.grader, name, told=told, mixed=mixed, of_code=of_code)
    built.refused += [(draft.where, why) for (draft, _), why in zip(rows, chosen, strict=True) if isinstance(why, str)]
    return [
        _Question(draft, free.grader, free.answers, free.classes, False, _instruction(free, draft))
        for (draft, _), free in zip(rows, chosen, strict=True)
        if isinstance(free, Free)
    ]


def _rows(drafts: Sequence[Draft], mapping: ItemMapping, built: Built, *, ungraded: bool) -> list[tuple[Draft, Row]]:
    """Return the drafts with their accepted answers; refuse those without any, unless the grader needs none."""
    rows: list[tuple[Draft, Row]] = []
    texts = accepted_answers([draft.answer for draft in drafts], [draft.accepted for draft in drafts])
    for draft, accepted in zip(drafts, texts, strict=True):
        of_turns = _of_turns(draft, mapping)
        answers = accepted if of_turns is None else of_turns
        if answers or ungraded:
            value = answers[0] if answers and draft.answer is None else draft.answer
            text = draft.question or "\n".join(message["content"] for message in draft.messages)
            rows.append((draft, Row(text, answers or [""], value)))
        else:
            built.refused.append((draft.where, "no answer"))
    return rows


def _of_turns(draft: Draft, mapping: ItemMapping) -> list[str] | None:
    """Return the answer to the last turn, or for a judge to all; None where a draft has no answer for each."""
    if not (draft.turns and isinstance(draft.answer, list) and len(draft.answer) == 1 + len(draft.turns)):
        return None
    first, *others = map(as_text, draft.answer)
    whole = first + "".join(f"\n\n[turn {n}] {text}" for n, text in enumerate(others, 2))
    text = whole if mapping.grader == JUDGE else others[-1]
    return [text] if text else []


def _instruction(free: Free, draft: Draft) -> str:
    if free.grader == "yesno" and isinstance(draft.answer, str):
        truth = draft.answer.strip().casefold() in ("true", "false")
        return "Answer true or false." if truth else _INSTRUCTIONS["yesno"]
    if free.classes and free.grader != "yesno":
        return f"Answer with one of: {', '.join(free.classes)}."
    return _INSTRUCTIONS.get(free.grader, "")


def _item(question: _Question, mapping: ItemMapping, root: str, ids: _Ids) -> Item:
    """Return the item of a question, checked as every item of a bank is."""
    draft = question.draft
    if len(question.choices) > len(_LETTERS):
        raise DatasetError(f"{len(question.choices)} choices, at most {len(_LETTERS)} have a letter")
    for letter in "".join(question.answers) if question.grader == "choice" and question.choices else "":
        text = question.choices[_LETTERS.index(letter)]
        if letter != text and (letter in question.choices or text in _LETTERS[: len(question.choices)]):
            raise DatasetError(
                f"its choices {list(question.choices)!r:.80} are letters in another order than their own"
            )
    meta: dict[str, Any] = {"row": draft.number, **_plain(draft.meta)}
    if mapping.tolerance is not None and question.grader == "numeric":
        meta["tolerance"] = mapping.tolerance
    data: dict[str, Any] = {
        "answer": question.answers[0] if len(question.answers) == 1 else list(question.answers),
        "grader": question.grader,
        "choices": list(question.choices),
        "images": list(dict.fromkeys(draft.images)),
        "category": list(draft.category),
        "meta": meta,
    }
    if len(draft.messages) > 1 or (draft.messages and draft.messages[0]["role"] != "user"):
        first = [{"role": "system", "content": draft.question}] if draft.question else []
        data["messages"] = [*first, *draft.messages]
    else:
        text = "\n\n".join(filter(None, (draft.question, *(message["content"] for message in draft.messages))))
        data["prompt"] = text if draft.turns else _prompt(text, question, mapping)
    if draft.turns:
        data["turns"] = [*draft.turns[:-1], _prompt(draft.turns[-1], question, mapping)]
    data = {name: value for name, value in data.items() if value not in ("", [], {})}
    content = json.dumps({**data, "meta": _plain(draft.meta)}, sort_keys=True)
    data["id"] = ids.next(draft.name, content)
    return parse_item(json.dumps(data), draft.where, root)


def _prompt(text: str, question: _Question, mapping: ItemMapping) -> str:
    if mapping.bare:
        return text
    parts = [text]
    if question.listed:
        parts.append(
            "\n".join(f"{letter}. {choice}" for letter, choice in zip(_LETTERS, question.choices, strict=False))
        )
    instruction = question.instruction if mapping.instruction is None else mapping.instruction
    unit = "" if may_be_missing(question.draft.unit) else question.draft.unit
    if unit and not re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", text):
        parts.append(f"Give the answer in {unit}.")
    return "\n\n".join(filter(None, [*parts, instruction]))


def _plain(meta: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(meta), default=as_text))
    return plain
