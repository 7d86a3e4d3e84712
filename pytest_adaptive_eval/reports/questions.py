"""The questions of a run as a page shows them, with their texts where the bank is at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.run_record import Administration, InterviewRecord
from pytest_adaptive_eval.reports.curves import Kind, kind_of, real
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.reports.pictures import THUMBNAIL, Thumbnail, thumbnail
from pytest_adaptive_eval.text import number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["AskedItems", "Picture", "Question", "QuestionList", "asked_text", "expected_answer", "question_lists"]

#: What all texts and thumbnails of a page may take, in bytes, so that 2 000 questions stay below 3 MB.
_TEXTS, _IMAGES = 2_800_000, 1_100_000
#: Bytes of a question besides its texts.
_AROUND = 500
#: Shortest and longest cut of a text, in characters.
_SHORT, _LONG = 120, 1_500
#: Thumbnails do not shrink below this, in bytes.
_LEAST = 1_500
#: Images narrower than this are shown twice as large.
_TINY = 96
#: Answer and expected answer that share a line, in characters together.
_BRIEF = 60
_WORDS = {Kind.RIGHT: "right", Kind.WRONG: "wrong", Kind.PARTLY: "partly"}


@dataclass(frozen=True, slots=True)
class Picture:
    """A thumbnail with its name, and the size it is shown in."""

    name: str
    thumbnail: Thumbnail
    width: int = 0
    height: int = 0
    tiny: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One administration; `text` is None where the question cannot be shown, and `sentence` says why."""

    position: object
    kind: Kind
    word: str
    item: str
    category: str
    broad: str
    text: str | None
    sentence: str
    pictures: list[Picture]
    answer: str
    detail: str
    expected: str
    facts: str
    brief: bool


@dataclass(frozen=True, slots=True)
class QuestionList:
    """The questions of one interview, and what must be said of all of them."""

    title: str
    sentence: str
    questions: list[Question] = field(default_factory=list)


def question_lists(
    interviews: Sequence[tuple[str, InterviewRecord]], banks: Mapping[str, ItemBank]
) -> list[QuestionList]:
    """The questions of each interview.

    Parameters
    ----------
    interviews : sequence of (title, interview)
    banks : mapping of str to ItemBank
        By the interview's name, where at hand.
    """
    found = [
        (title, interview, AskedItems(interview, banks.get(interview.name)))
        for title, interview in interviews
        if interview.administrations
    ]
    asked = [(items, *items.find(a), a) for _, interview, items in found for a in interview.administrations]
    names = [(item.root, name) for _, item, _, _ in asked if item is not None for name in item.images]
    limit = max(_LEAST, min(THUMBNAIL, _IMAGES * 3 // 4 // max(len(names), 1)))
    pictures = {(root, name): _picture(name, root, limit) for root, name in dict.fromkeys(names)}
    bytes_left = _TEXTS - sum(len(pictures[name].thumbnail.source) for name in names)
    # a question and its answer share what is left
    cut = max(_SHORT, min(_LONG, (bytes_left // max(len(asked), 1) - _AROUND) // 2))
    lists = {id(items): QuestionList(title, items.sentence) for title, _, items in found}
    for items, item, sentence, a in asked:
        lists[id(items)].questions.append(_question(a, item, sentence, pictures, cut))
    return list(lists.values())


class AskedItems:
    """The bank's items as they were when asked.

    Parameters
    ----------
    interview : InterviewRecord
    bank : ItemBank or None
        Where at hand.
    """

    def __init__(self, interview: InterviewRecord, bank: ItemBank | None) -> None:
        self._bank = bank
        self._place = {} if bank is None else {name: n for n, name in enumerate(bank.ids)}
        self.sentence = ""
        if bank is None:
            self.sentence = "The bank was not at hand: questions are shown by their ids."
        elif bank.content_hash != interview.bank.get("content_hash"):
            self.sentence = "The bank has changed since the run: only questions that are still the same are shown."

    def find(self, asked: Administration) -> tuple[Item | None, str]:
        """The item in the format asked, or why it cannot be shown."""
        if self._bank is None:
            return None, ""
        place = self._place.get(str(asked.item))
        if place is None:
            return None, "The bank at hand has no such item."
        try:
            item = self._bank.items[place]
            if item.content_hash == asked.item_hash:
                return (item.in_format(asked.format) if asked.format in item.formats else item), ""
        except AdaptiveEvalError:
            return None, "The bank's texts were edited, so the question is not shown."
        return None, "The item changed since, so the question is not shown."


def _picture(name: str, root: str, limit: int) -> Picture:
    made = thumbnail(name, root, limit)
    tiny = 0 < made.width <= _TINY and made.height <= _TINY
    scale = 2 if tiny else 1
    return Picture(name.rsplit("/", 1)[-1], made, scale * made.width, scale * made.height, tiny)


def _question(
    asked: Administration, item: Item | None, sentence: str, pictures: Mapping[tuple[str, str], Picture], cut: int
) -> Question:
    kind = kind_of(asked)
    word = _WORDS.get(kind) or (str(asked.status) if asked.status != "ok" else "no score")
    if kind is Kind.PARTLY:
        word = f"{word} {_shown(asked.score, 2)}"
    categories = asked.category if isinstance(asked.category, list) else [asked.category]
    answer, expected = (
        clean_html(asked.text, cut),
        "" if item is None else clean_html(expected_answer(item), min(cut, 600)),
    )
    return Question(
        position=asked.position,
        kind=kind,
        word=clean_html(word, 40),
        item=clean_html(asked.item, 130),
        category=clean_html(" / ".join(map(str, categories)), 120),
        broad=clean_html(categories[0], 60) if categories else "",
        text=None if item is None else clean_html(asked_text(item), cut),
        sentence=sentence,
        pictures=[] if item is None else [pictures[item.root, name] for name in item.images],
        answer=answer,
        detail=clean_html(asked.detail, min(cut, 600)),
        expected=expected,
        facts=clean_html(_facts(asked), 400),
        brief=bool(expected)
        and not asked.detail
        and len(answer) + len(expected) < _BRIEF
        and "\n" not in answer + expected,
    )


def asked_text(item: Item) -> str:
    """What was asked, as one text."""
    parts = [item.prompt] if item.prompt else [f"{m.get('role')}: {_content(m.get('content'))}" for m in item.messages]
    return "\n".join([*parts, *(f"{chr(65 + n)}. {choice}" for n, choice in enumerate(item.choices))])


def _content(content: Any) -> str:
    """The text of a message; its other parts as JSON."""
    if isinstance(content, list):
        return "\n".join(_content(part) for part in content)
    if isinstance(content, Mapping):
        return str(content["text"]) if "text" in content else json.dumps(dict(content), default=str)
    return str(content)


def expected_answer(item: Item) -> str:
    """The expected answer; the choice that its letter stands for goes with it."""
    letter = item.answer.strip().upper()
    place = ord(letter) - 65 if len(letter) == 1 else -1
    if item.grader == "choice" and 0 <= place < len(item.choices):
        return f"{letter}. {item.choices[place]}"
    return item.answer


def _shown(value: Any, digits: int) -> str | None:
    known = real(value)
    return None if known is None else number(known, digits)


def _facts(asked: Administration) -> str:
    """Numbers and reasons in one line."""
    chance = real(asked.propensity)
    before = asked.theta_before
    facts = {
        "difficulty": _shown(asked.difficulty, 2),
        "ability before": _shown(before[0], 2) if isinstance(before, list) and len(before) == 1 else None,
        "predicted": _shown(asked.predicted, 2),
        "chance": None if chance is None else f"{chance:.2g}".removeprefix("0"),
        "sample": asked.sample + 1 if isinstance(asked.sample, int) and asked.sample else None,
        "format": asked.format if asked.format != "text" else None,
    }
    parts = [f"{name} {value}" for name, value in facts.items() if value is not None]
    return " · ".join([*parts, *filter(None, [str(asked.reason)]), *(["from the journal"] if asked.resumed else [])])
