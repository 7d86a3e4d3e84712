"""Guess the mapping of a data set from the names and values of its fields, each with a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from pytest_adaptive_eval.banks.code import CODE
from pytest_adaptive_eval.banks.expressions import as_path, parse_expression
from pytest_adaptive_eval.banks.images import looks_like_image
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing import fields
from pytest_adaptive_eval.extensions.importing.answers import find_convention, is_hidden, named, yes_or_no
from pytest_adaptive_eval.extensions.importing.choices import (
    Choices,
    as_list,
    as_text,
    is_missing,
    literal,
    may_be_missing,
    read_choices,
)
from pytest_adaptive_eval.extensions.importing.drafts import choices_of
from pytest_adaptive_eval.extensions.importing.fields import normal
from pytest_adaptive_eval.extensions.importing.free import holds_answer
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import replaced

#: Records from which a mapping is guessed.
SAMPLE = 400
#: Share of the questions that contain a field's text, from which they do not need the field.
_CONTAINED = 0.9
#: Share of the records in which two fields with the answer may disagree.
_DISAGREE = 0.02
#: Records with as many different texts each, from which these may be choices.
_ALL_DIFFERENT = 10
#: Pairs of texts that are one question.
_PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"), ("text1", "text2"))
#: Words, in the middle, of a field that is a question by its values alone, and of one that only names a kind.
_LONG, _SHORT = 4, 2


@dataclass(frozen=True, slots=True)
class Guess:
    """A whole mapping, and why each field was guessed that was not given."""

    mapping: ItemMapping
    reasons: Mapping[str, str]


@dataclass(slots=True)
class _Sample:
    """Records, and the paths of their fields by expression; the answer that the user names, and the fields in use."""

    records: Sequence[TableRecord]
    given: str = ""
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for record in self.records:
            for key, value in record.data.items():
                self.paths.setdefault(_text_of(key), (key,))
                if isinstance(value, Mapping) and len(value) <= 12:
                    for inner in map(str, value):
                        self.paths.setdefault(f"{as_path(key)}.{as_path(inner)}", (key, inner))
            if len(self.paths) > 400:
                break

    def values(self, expression: str) -> list[Any]:
        read = parse_expression(expression)
        return [read(record.data, record.names) for record in self.records]

    def filled(self, expression: str, share: float = 0.5) -> bool:
        """Return whether an expression has a value in a share of the records."""
        values = self.values(expression)
        return sum(not is_missing(value) for value in values) >= max(1.0, share * len(values))

    def matching(self, names: Sequence[str]) -> Iterator[str]:
        """Yield unused fields that have one of the names, in the order of the names; whole fields before inner ones."""
        for name in names:
            for length in (1, 2):
                for text, path in self.paths.items():
                    if len(path) == length and normal(path[-1]) == name and text not in self.used:
                        yield text

    def outer(self, expression: str) -> str:
        """Return the whole field that an expression of a field is in."""
        return self.paths.get(expression, (expression,))[0]

    def listed(self) -> str:
        keys = [text for text in self.paths if len(self.paths[text]) == 1]
        return ", ".join(map(repr, keys[:24])) + (", .." if len(keys) > 24 else "")

    def words(self, expression: str) -> float:
        """Return the words of a field's texts, in the middle; 0 if a value is not a text."""
        values = [value for value in self.values(expression) if not is_missing(value)]
        if not values or not all(isinstance(value, str) for value in values):
            return 0
        return median(len(value.split()) + sum(ord(letter) >= 0x2E80 for letter in value) // 2 for value in values)


def _text_of(key: str) -> str:
    """Return the expression of a whole field: its bare name if that is plain."""
    return key if re.fullmatch(r"[\w \-?:,]+", key) and key == key.strip() else json.dumps(key, ensure_ascii=False)


def guess_mapping(records: Sequence[TableRecord], given: ItemMapping, labelled: bool = False) -> Guess:
    """Return a mapping with the fields that were not given guessed from names and values.

    Args:
        labelled: Whether the answers are in a second file.

    Raises:
        DatasetError: No question or no answer is found, or one that may be wrong; the message lists the fields and the
            option.
    """
    guesser = _Guesser(_Sample(records, given.answer), given, labelled)
    mapping = guesser.guess()
    if not (mapping.question or mapping.messages):
        raise DatasetError(
            f"no question is found among the fields {guesser.sample.listed()}; give --set question=FIELD"
        )
    marked = any(choices_of(mapping.choices)(record).right for record in records) if mapping.choices else False
    if not (mapping.answer or mapping.accepted or labelled or marked or mapping.grader):
        raise DatasetError(
            f"no answer is found among the fields {guesser.sample.listed()}; give --set answer=FIELD, or "
            "labels=FILE, or grader=NAME for one that needs none"
        )
    return Guess(mapping, guesser.reasons)


def nested_rows(records: Sequence[TableRecord]) -> str:
    """Return the place of questions in a list within each record, or in lists side by side; empty if there is none."""
    first = [record.data for record in records[:20]]
    for key in first[0] if first else ():
        if _holds_questions([data.get(key) for data in first]):
            return as_path(key)
    for key in first[0] if first else ():
        beside = _beside(key, first) if normal(key.removesuffix("s")) in fields.QUESTIONS else []
        if len(beside) > 1:
            return ",".join(map(as_path, beside))
    return ""


def _holds_questions(values: Sequence[Any]) -> bool:
    """Return whether values are lists of objects that have a question each, with another field."""
    lists = [value for value in values if isinstance(value, list) and value]
    if len(lists) < len(values) or not all(isinstance(part, Mapping) for entry in lists for part in entry):
        return False
    keys = {normal(str(name)) for entry in lists for name in entry[0]}
    return bool(keys & fields.INNER_QUESTIONS) and len(keys) > 1


def _beside(key: str, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields whose lists are as long as the list of texts in a field; none where that has no such list."""
    asked = [data.get(key) for data in records]
    lists = [value for value in asked if isinstance(value, list) and all(isinstance(part, str) for part in value)]
    if len(lists) < len(asked):
        return []
    lengths = list(map(len, lists))
    return [
        other
        for other in records[0]
        if [len(data[other]) if isinstance(data.get(other), list) else -1 for data in records] == lengths
    ]


def unaskable(records: Sequence[TableRecord]) -> Callable[[TableRecord], str] | None:
    """Return the function from a record to why its question cannot be asked, or ""; None where no field may say so.

    A field may say that a question has no answer, or name a file where only some records have one.
    """
    keys = {key: normal(key) for key in dict.fromkeys(key for record in records for key in record.data)}
    flags = {key: name in fields.IMPOSSIBLE for key, name in keys.items() if name in fields.UNANSWERABLE}
    some = [key for key, name in keys.items() if name in fields.ATTACHED]
    some = [key for key in some if len({is_missing(record.data.get(key)) for record in records}) > 1]

    def reason(record: TableRecord) -> str:
        data = record.data
        if key := next((key for key, bad in flags.items() if str(data.get(key)).lower() == str(bad).lower()), ""):
            return f"{key!r} is {data[key]!r}, which says that it has no answer"
        key = next((key for key in some if not is_missing(data.get(key))), "")
        return f"its {key!r} is {data[key]!r:.60}, which a bank does not have" if key else ""

    return reason if flags or some else None


def unused_fields(records: Sequence[TableRecord], mapping: ItemMapping) -> list[str]:
    """Return the fields that questions may need by name, and that neither a mapping uses nor they contain."""
    sample = _Sample(records)
    used = {name.partition(".")[0].partition("[")[0] for name in _names(mapping)} | {mapping.id, *mapping.meta}
    expressions = filter(None, (mapping.context, mapping.question, mapping.messages))
    asked = [" ".join(map(as_text, texts)) for texts in zip(*map(sample.values, expressions), strict=True)]
    unused = []
    for key, path in sample.paths.items():
        if len(path) > 1 or key in used or not fields.may_be_needed(key):
            continue
        filled = [
            (text, question)
            for value, question in zip(sample.values(key), asked, strict=True)
            if not (is_missing(value) or may_be_missing(text := as_text(value)))
        ]
        if filled and sum(text in question for text, question in filled) < _CONTAINED * len(filled):
            unused.append(key)
    return unused


def _names(mapping: ItemMapping) -> Iterable[str]:
    single = (mapping.question, mapping.context, mapping.answer, mapping.messages, mapping.unit)
    for value in (*single, *mapping.accepted, *mapping.choices, *mapping.images, *mapping.distractors):
        yield value
        yield from re.findall(r"[\w$]+", value)


class _Guesser:
    """Guesses of the fields that a mapping lacks, one after the other; what one takes is not guessed for the next."""

    def __init__(self, sample: _Sample, given: ItemMapping, labelled: bool) -> None:
        self.sample, self.mapping, self.labelled = sample, given, labelled
        self.reasons: dict[str, str] = {}
        sample.used.update(_names(given))

    def guess(self) -> ItemMapping:
        sample = self.sample
        if not (self.mapping.messages or self.mapping.question):
            self._question()
        if not self.mapping.images:
            self._take("images", self._images(), "its values are images")
        self._alternatives()
        self._last_message()
        if not (self.mapping.messages or self.mapping.question):
            self._only_text()
        if not (self.mapping.context or self.mapping.messages):
            self._take("context", self._context(), "its name, beside a question")
        self._accepted()
        if not self.mapping.unit and not (self.mapping.choices or self.mapping.distractors):
            units = [key for key in sample.matching(fields.UNITS) if any(map(as_text, sample.values(key)))]
            self._take("unit", next(iter(units), ""), "its name")
        self._check_asked()
        self._check_not_candidates()
        if not self.mapping.category:
            several = len({record.names.get("set") for record in sample.records}) > 1
            self._take("category", self._categories() or (("$set",) if several else ()), "its few values")
        if not self.mapping.id:
            self._take("id", self._id(), "its distinct values")
        return self.mapping

    def _take(self, name: str, value: Any, reason: str) -> None:
        if value:
            self.mapping = replaced(self.mapping, **{name: value})
            self.reasons[name] = reason
            self.sample.used.update([value] if isinstance(value, str) else value)

    def _question(self) -> None:
        """Take the question, or the chat, and both where some records have no chat."""
        if not self._take_chat() and not self._take_pair():
            self._take_text()

    def _take_chat(self) -> bool:
        """Take the chat; return whether all records have one."""
        sample = self.sample
        for key in list(sample.matching(fields.MESSAGES)):
            values = [value for value in map(literal, sample.values(key)) if value]
            nested = bool(values) and all(isinstance(each, list) and len(each) == 1 for each in values)
            if nested and all(_is_chat(each[0], key) for each in values):
                self._take("messages", f"{as_path(key)}[0]", "its values are a chat each, in a list")
                sample.used.add(key)
                return True
            if values and all(_is_chat(value, key) for value in values):
                self._take("messages", key, "its values are chats")
                return len(values) == len(sample.records)
        return False

    def _take_pair(self) -> bool:
        """Take a pair of texts, such as a premise and a hypothesis; return whether there is one."""
        sample = self.sample
        for names in () if any(map(sample.filled, sample.matching(("question",)))) else _PAIRS:
            pair = [key for name in names for key in sample.matching((name,)) if sample.filled(key)]
            if len(pair) == 2:
                self._take("question", f"{{{pair[0]}}}\n\n{{{pair[1]}}}", "two texts that belong together")
                return True
        return False

    def _take_text(self) -> None:
        """Take a text, or lists of one text, that half of the records have."""
        for key in self.sample.matching(fields.QUESTIONS):
            values = [value for value in self.sample.values(key) if not is_missing(value)]
            if len(values) * 2 < len(self.sample.records):
                continue
            if all(isinstance(value, str) for value in values):
                self._take("question", key, "its name")
                return
            if all(isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) for value in values):
                self._take("question", f"{as_path(key)}[0]", "its name")
                return

    def _chats(self) -> list[list[Any]]:
        values = self.sample.values(self.mapping.messages or "$none")
        return [chat for chat in map(literal, values) if isinstance(chat, list) and chat]

    def _last_message(self) -> None:
        """Take the last message of chats that all end with the assistant's as the answer, where there is no other."""
        mapping = self.mapping
        if mapping.answer or mapping.accepted or mapping.choices or self.labelled or not mapping.messages:
            return
        last = [chat[-1] for chat in self._chats()]
        roles = {str(part.get("role", part.get("from"))) if isinstance(part, Mapping) else "" for part in last}
        if last and roles <= {"assistant", "gpt"}:
            key = "content" if all("content" in part for part in last) else "value"
            self._take("answer", f"{as_path(mapping.messages)}[-1].{key}", "the chats end with it")

    def _only_text(self) -> None:
        """Take the only field with texts of several words as the question of alternatives that an answer names."""
        if not (self.mapping.choices and (self.mapping.answer or self.labelled)):
            return
        texts = [
            key
            for key, path in self.sample.paths.items()
            if len(path) == 1 and key not in self.sample.used and self.sample.words(key) >= _LONG
        ]
        if len(texts) == 1 and self.sample.filled(texts[0], 0.9):
            self._take("question", texts[0], "the only text beside the choices")

    def _check_asked(self) -> None:
        """Refuse a guessed question that asks nothing by itself."""
        question, mapping = self.mapping.question, self.mapping
        if "question" not in self.reasons or mapping.messages:
            return
        asks = sum("?" in as_text(value) for value in self.sample.values(question)) * 2 > len(self.sample.records)
        if not asks:
            self._check_not_input(question)
        self._check_not_kind(question)
        if asks:
            return
        if parts := self._filled(fields.PARTS):
            raise DatasetError(
                f"{question!r} asks nothing alone, and {parts[0]!r} is a part of it; give --set question="
                f"'{{{question}}}\\n\\n.. {{{parts[0]}}} ..?' with the words between"
            )
        if not (mapping.choices or mapping.distractors or mapping.grader or mapping.instruction):
            self._check_not_rated(question)

    def _filled(self, names: Collection[str]) -> list[str]:
        """Return the fields of one of the names that most records have."""
        return [key for key in self.sample.paths if normal(key) in names and self.sample.filled(key)]

    def _check_not_input(self, question: str) -> None:
        """Refuse the input of a program as a question."""
        programs = self._filled(fields.PROGRAMS) if normal(question) in fields.PROGRAM_INPUTS else []
        if programs:
            raise DatasetError(
                f"{question!r} is what {programs[0]!r} is given, and no field asks a question; give --set question="
                f"'{{{programs[0]}}}\\n\\nWhat does this return for {{{question}}}?'"
            )

    def _check_not_kind(self, question: str) -> None:
        """Refuse a field of a few short texts, which only says of what kind a question is."""
        sample = self.sample
        kinds = {as_text(value) for value in sample.values(question)}
        few = len(kinds) <= 3 and len(sample.records) >= 10 and max(map(len, kinds)) <= 40
        if few and sample.words(question) <= _SHORT:
            listed = ", ".join(map(repr, sorted(kinds)))
            others = [key for key in sample.paths if sample.words(key) >= _LONG] or ["FIELD"]
            raise DatasetError(
                f"{question!r} only says {listed:.120}, which asks nothing alone; give --set question="
                f"'{{{others[0]}}} .. {{{question}}}' with the words between"
            )

    def _check_not_rated(self, question: str) -> None:
        """Refuse a plain text whose answers are all ratings, or all yes or no: what is asked is not said."""
        plain = "{" in question or normal(question) in fields.PLAIN_TEXTS
        answers = [value for value in self.sample.values(self.mapping.answer or "$none") if not is_missing(value)]
        rated = all(isinstance(number := _parsed(answer), float) and 0 <= number <= 1 for answer in answers)
        if plain and answers and (rated or all(map(yes_or_no, answers))):
            told = "is a number from 0 to 1 for" if rated else "says yes or no to"
            raise DatasetError(
                f"{self.mapping.answer!r} {told} {question.replace(chr(10), ' ')!r}, and no field says what "
                f"is asked; give --set question='QUESTION {{..}}' with it"
            )

    def _check_not_candidates(self) -> None:
        """Refuse a guessed answer beside a field that says of each record whether its answer is right."""
        sample, mapping = self.sample, self.mapping
        if mapping.choices or mapping.distractors or mapping.where or not self.reasons.keys() & {"answer", "accepted"}:
            return
        answer = mapping.answer or mapping.accepted[0]
        for key in sample.matching(fields.FLAGS):
            kinds = {as_text(value).casefold() for value in sample.values(key)}
            if key != answer and kinds in ({"0", "1"}, {"true", "false"}):
                raise DatasetError(
                    f"{key!r} is {' or '.join(sorted(kinds))} beside {answer!r}, as where each record is an answer "
                    f"that may be wrong; give --set where=\"{key} == '{max(kinds)}'\" where that marks the right ones, "
                    f"or --set meta={key} where all are right"
                )

    def _images(self) -> tuple[str, ...]:
        """Return the expressions of images: by their names, and by values that look like images."""
        sample = self.sample
        numbered = sorted(
            (key for key in sample.paths if re.fullmatch(r"(?i)(image|img)(path)?[ _]?\d{1,2}", key)),
            key=lambda key: int(re.sub(r"\D", "", key)),
        )
        for keys in [[key] for key in sample.matching(fields.IMAGES)] + ([numbered] if numbered else []):
            values = [part for key in keys for value in sample.values(key) for part in as_list(value)]
            if values and sum(map(looks_like_image, values)) * 2 > len(values):
                return tuple(keys)
        return ()

    def _alternatives(self) -> None:
        """Take alternatives and an answer that fit together, else an answer alone."""
        mapping = self.mapping
        if mapping.choices or mapping.distractors:
            if not mapping.answer:
                self._answer(self._fitting(mapping.choices) or self._first_answer())
            return
        by_field = self._listed()
        shares = {key: sum(len(choices.texts) > 1 for choices in rows) / len(rows) for key, rows in by_field.items()}
        if not mapping.answer and self._take_marked(by_field, shares):
            return
        numbered = self._series()
        least = {key: 1 / 2 if normal(key) == "answers" else 1 / 20 for key in by_field}
        columns: list[tuple[str, ...]] = [(key,) for key in by_field if shares[key] >= least[key]] + numbered
        if self.labelled:
            self._take("choices", columns[0] if columns else (), "its values are choices")
        elif not self._take_fitting(columns):
            self._take_named(shares, numbered)

    def _listed(self) -> dict[str, list[Choices]]:
        """Return the choices in fields that are named so, without spellings of the answer."""
        sample = self.sample
        by_field = {
            key: [read_choices(value) for value in sample.values(key)] for key in sample.matching(fields.CHOICES)
        }
        spellings = [key for key in by_field if normal(key) in fields.ALIASES and self._always_first(by_field[key])]
        return {key: rows for key, rows in by_field.items() if key not in spellings}

    def _take_marked(self, by_field: Mapping[str, Sequence[Choices]], shares: Mapping[str, float]) -> bool:
        """Take choices that mark the right ones; return whether there are some."""
        for key, rows in by_field.items():
            marks = [choices.right for choices in rows if choices.texts]
            if shares[key] >= 1 / 2 and None not in marks and any(marks):
                self._take("choices", (key,), "its values mark the right choices")
                self._answer(self._first_answer())
                return True
        return False

    def _take_fitting(self, columns: Sequence[tuple[str, ...]]) -> bool:
        """Take choices that an answer names; return whether there are some."""
        given = self.mapping.answer
        for column in columns:
            answer = given or self._fitting(column)
            if answer and (not given or self._fits(column, answer)):
                self._take("choices", column, "their values are choices")
                self._answer(answer)
                return True
        for column in columns if not given else ():
            if found := self._by_value(column):
                self._take("choices", column, "their values are choices")
                self._answer(found, "each of its values names a choice")
                return True
        return False

    def _take_named(self, shares: Mapping[str, float], numbered: Sequence[tuple[str, ...]]) -> None:
        """Take what is surely choices by its name, else wrong alternatives, else an answer alone."""
        sample, mapping = self.sample, self.mapping
        named_choices = [key for key in shares if normal(sample.paths[key][-1]) in fields.SURE_CHOICES]
        sure: list[tuple[str, ...]] = [(key,) for key in named_choices if shares[key] >= 1 / 2]
        sure += [run for run in numbered if fields.may_be_needed(run[0]) or all(len(key) == 1 for key in run)]
        if sure:  # which no answer names: each record is refused with its reason
            self._take("choices", sure[0], "their names")
            self._answer(mapping.answer or self._first_answer(besides=sure[0]))
            return
        wrong = tuple(key for key in sample.paths if fields.DISTRACTORS.fullmatch(normal(key)) and sample.filled(key))
        answer = mapping.answer or ("" if mapping.accepted else self._first_answer())
        if wrong and answer:
            self._take("distractors", wrong, "their names")
        self._answer(answer)

    def _always_first(self, rows: Sequence[Choices]) -> bool:
        """Return whether some field is the first of the texts in each row."""
        firsts = [next(iter(choices.texts), None) for choices in rows]
        columns = (map(as_text, self.sample.values(key)) for key in self.sample.paths)
        return any(all(first in (None, text) for first, text in zip(firsts, c, strict=True)) for c in columns)

    def _answer(self, answer: str, reason: str = "its name") -> None:
        """Take the answer, and another field with it where each has what the other lacks."""
        if not answer or answer == self.mapping.answer:
            return
        values = self.sample.values(answer)
        for other in self.sample.matching(fields.ANSWERS):
            pairs = list(zip(values, self.sample.values(other), strict=True))
            lacking = sum(is_missing(first) for first, _ in pairs)
            exclusive = sum(is_missing(first) != is_missing(second) for first, second in pairs)
            if other != answer and 0 < lacking < len(pairs) and exclusive >= (1 - _DISAGREE) * len(pairs):
                self._take("answer", f"{as_path(answer)} || {as_path(other)}", "each has what the other lacks")
                return
            if other != answer and normal(self.sample.outer(other)) not in fields.REPLIES:
                self._check_agreement(answer, other, pairs)
        self._take("answer", answer, reason)

    @staticmethod
    def _check_agreement(answer: str, other: str, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Refuse two fields of answers that agree in most records and not in all: one of them is wrong."""
        texts = [(as_text(a), as_text(b)) for a, b in pairs if not (is_missing(a) or is_missing(b))]
        differing = [(a, b) for a, b in texts if a.casefold() != b.casefold()]
        if differing and 2 * len(differing) < len(texts):
            count = f"{len(differing)} of {counted(len(texts), 'record')}"
            values = " and ".join(f"{text!r:.40}" for text in differing[0])
            raise DatasetError(f"{answer!r} and {other!r} differ in {count}, such as {values}; give --set answer=FIELD")

    def _series(self) -> list[tuple[str, ...]]:
        """Return groups of columns that count from 0, 1 or A, such as ``A, B, C, D`` or ``option1, option2``."""
        groups: dict[str, dict[str, str]] = {}
        for text, path in self.sample.paths.items():
            match = fields.SERIES.fullmatch(path[0])
            if (
                match
                and len(path) == 1
                and normal(match[1]) not in fields.OTHER_SERIES
                and text not in self.sample.used
            ):
                groups.setdefault(f"{normal(match[1])}{'#' if match[2].isdigit() else ''}", {})[match[2].upper()] = text
        runs = []
        for members in groups.values():
            label: str = next((name for name in ("0", "1", "A") if name in members), "")
            run: list[str] = []
            while label in members:
                run.append(members[label])
                label = str(int(label) + 1) if label.isdigit() else chr(ord(label) + 1)
            if len(run) > 1:
                runs.append(tuple(run))
        return sorted(runs, key=len, reverse=True)

    def _answers(self) -> Iterator[str]:
        for key in self.sample.matching(fields.ANSWERS):
            if self.sample.filled(key, 0.02):
                yield key
                yield from (other for other in self.sample.matching(fields.ANSWERS) if other.startswith(f"{key}."))

    def _check_not_hidden(self, found: str) -> str:
        """Return the field, unless one that names the answer better is empty, as where answers are hidden."""
        sample = self.sample
        better = next((k for k in sample.matching(fields.ANSWERS) if len(sample.paths[k]) == 1 or k == found), "")
        if better and better != sample.outer(found) and not sample.filled(better, 0.02):
            values = zip(sample.values(better), sample.values(found) if found else [], strict=False)
            if not any(is_missing(first) != is_missing(second) for first, second in values):
                found = ""
            other = f"; give --set answer={found} if that is the answer" if found else ""
            raise DatasetError(f"the answers of {better!r} are empty, as where they are hidden{other}")
        return found

    def _first_answer(self, besides: Sequence[str] = ()) -> str:
        found = next((key for key in self._answers() if self.sample.outer(key) not in besides), "")
        return self._check_not_hidden(found)

    def _rows(self, columns: Sequence[str], answer: str) -> list[tuple[Any, Choices]]:
        alternatives = choices_of(columns)
        return [
            (v, alternatives(record)) for record, v in zip(self.sample.records, self.sample.values(answer), strict=True)
        ]

    def _fitting(self, columns: Sequence[str]) -> str:
        """Return the first field whose values name the alternatives in the columns, empty if there is none."""
        keys = (key for key in self._answers() if self.sample.outer(key) not in columns and key not in columns)
        fitting = [key for key in keys if self._fits(columns, key)]
        if not fitting:
            return ""
        first = [self._indexes(columns, key) for key in fitting[:1]]
        for other in fitting[1:]:
            pairs = [(a, b) for a, b in zip(*first, self._indexes(columns, other), strict=True) if a and b]
            different = sum(a != b for a, b in pairs)
            if different > _DISAGREE * len(pairs) and normal(other) not in (*fields.REPLIES, *fields.ACCEPTED):
                raise DatasetError(
                    f"{fitting[0]!r} and {other!r} name different choices in {different} of {len(pairs)} records; give "
                    f"--set answer={fitting[0]} or {other}"
                )
        found = fitting[0]
        return self._check_not_hidden(found) if normal(found) in fields.REPLIES else found

    def _indexes(self, columns: Sequence[str], answer: str) -> list[frozenset[int]]:
        """Return the indexes of the choices that an answer names in each record; empty where that is not sure."""
        rows = self._rows(columns, answer)
        shown = [(value, choices) for value, choices in rows if choices.texts and not is_hidden(value, choices)]
        try:
            convention = find_convention(shown, answer)
        except DatasetError:
            return [frozenset()] * len(rows)
        return [named(value, choices, convention) if choices.texts else frozenset() for value, choices in rows]

    def _fits(self, columns: Sequence[str], answer: str) -> bool:
        rows = [(v, c) for v, c in self._rows(columns, answer) if c.texts and not is_hidden(v, c)]
        if not rows:
            return False
        try:
            find_convention(rows, answer)
        except DatasetError as error:
            return "--set counted" in str(error)  # the numbers fit, and the user is asked where they begin
        return True

    def _by_value(self, columns: Sequence[str]) -> str:
        """Return the only field, whatever its name, whose texts name choices by letter, label or text."""
        found = []
        for key, path in self.sample.paths.items():
            values = self.sample.values(key)
            if (
                self.sample.outer(key) in columns
                or key in self.sample.used
                or normal(path[-1]) in (*fields.CATEGORIES, *fields.IDS[:-4])
            ):
                continue
            kinds = {as_text(value) for value in values if isinstance(value, str | int)}
            labels = {label for _, choices in self._rows(columns, key)[:1] for label in choices.labels}
            # a number says nothing unless it is a choice's own
            if len(kinds) < 2 or (any(kind.isdigit() for kind in kinds) and not kinds <= labels):
                continue
            if all(self._indexes(columns, key)):
                found.append(key)
        return found[0] if len(found) == 1 else ""

    def _accepted(self) -> None:
        """Take fields whose entries are accepted answers, if alternatives are missing."""
        mapping, sample = self.mapping, self.sample
        if mapping.accepted or mapping.choices or mapping.distractors or mapping.grader in (JUDGE, CODE):
            return
        name = normal(sample.paths.get(mapping.answer, ("",))[-1])
        if name in fields.ACCEPTED and mapping.answer != sample.given:
            self.mapping = mapping = replaced(mapping, answer="", accepted=(mapping.answer,))
            self.reasons["accepted"] = self.reasons.pop("answer", "its name")
            self._check_not_choices(mapping.accepted[0])
        elif "answer" in self.reasons:
            self._check_one_value(mapping.answer)
        aliases = [k for k in sample.matching(fields.ALIASES) if sample.filled(k, 0.02) and k != mapping.answer]
        if aliases:
            self._take("accepted", (*mapping.accepted, *aliases), "their names")

    def _check_not_choices(self, accepted: str) -> None:
        """Refuse guessed lists of accepted answers that may be choices, or objects that are not answers."""
        lists = [value for value in map(literal, self.sample.values(accepted)) if not is_missing(value)]
        objects = [part for value in lists for part in as_list(value) if isinstance(part, Mapping)]
        if other := next((part for part in objects if not holds_answer(part)), None):
            raise DatasetError(_no_comparison(accepted, other))
        texts = [] if objects else [list(map(as_text, value)) for value in lists if isinstance(value, list)]
        counts = {len(each) for each in texts}
        different = all(len(set(each)) == len(each) for each in texts)
        if len(texts) == len(lists) >= _ALL_DIFFERENT and counts <= {3, 4, 5} and len(counts) == 1 and different:
            raise DatasetError(
                f"the answers of {accepted!r} are {counts.pop()} different texts in each record, as choices are, and "
                f"no field says which is right; give --set choices={accepted} and the answers with --set answer=FIELD "
                f"or labels=FILE, or --set accepted={accepted} where each is right"
            )

    def _check_one_value(self, answer: str) -> None:
        """Refuse a guessed answer that is several values, or an object without one that is the answer."""
        values = [value for value in self.sample.values(answer) if not is_missing(value)]
        of_turns = any(isinstance(chat, list) and isinstance(chat[0], str) for chat in self._chats())
        lists = [v for v in values if isinstance(v, list) and any(isinstance(part, str) for part in v) and not of_turns]
        if sum(len(value) > 1 for value in lists) * 10 > len(values):
            raise DatasetError(
                f"the answers of {answer!r} are lists such as {max(lists, key=len)!r:.80}; give --set "
                f"accepted={answer} where any entry is right, or --set "
                f"answer='to_string({as_path(answer)})' where the whole list is wanted"
            )
        objects = [value for value in values if isinstance(value, Mapping) and not holds_answer(value)]
        if objects:
            raise DatasetError(_no_comparison(answer, objects[0]))

    def _context(self) -> str:
        sample, mapping = self.sample, self.mapping
        taken = {sample.outer(text) for text in (mapping.answer, *mapping.choices, *mapping.distractors)}
        for key in sample.matching(fields.CONTEXTS):
            question = mapping.question
            if f"{{{key}}}" in question or sample.outer(key) in taken or question.startswith(f"{key}."):
                continue
            values = [value for value in sample.values(key) if not is_missing(value)]
            parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
            if parts and all(isinstance(part, str) for part in parts):
                return key
        return ""

    def _categories(self) -> tuple[str, ...]:
        """Return at most two fields that sort the records."""
        sample, chosen = self.sample, list[str]()
        for key in sample.matching(fields.CATEGORIES):
            values = [as_text(value) for value in sample.values(key) if isinstance(value, str | int)]
            kinds = set(values)
            least = 2 if chosen else 1
            if len(values) < 0.9 * len(sample.records) or len(kinds) < least:
                continue
            if sample.outer(key) == sample.outer(self.mapping.answer):
                continue
            if max(map(len, kinds)) <= 60 and len(kinds) <= max(2, len(values) // 2):
                chosen.append(key)
            if len(chosen) == 2:
                break
        return tuple(chosen)

    def _id(self) -> str:
        """Return the field that names the records; their keys if they are in an object."""
        if all(record.names.get("key") for record in self.sample.records):
            return "$key"
        for key in self.sample.matching(fields.IDS):
            values = [v for v in self.sample.values(key) if isinstance(v, str | int) and not isinstance(v, bool)]
            if len(values) == len(self.sample.records) and len(set(values)) * 10 >= len(values) * 9:
                return key
        return ""


def _parsed(value: Any) -> Any:
    """Return the number that a text is; other values as they are."""
    try:
        return float(value) if isinstance(value, str) and "." in value else value
    except ValueError:
        return value


def _no_comparison(answer: str, found: Any) -> str:
    return (
        f"the answers of {answer!r} are objects such as {found!r:.80}, which no grader compares; give --set "
        f"answer={answer}.KEY, or another field"
    )


def _is_chat(value: Any, key: str) -> bool:
    if not isinstance(value, list) or not value:
        return False
    if normal(key) == "turns" and all(isinstance(part, str) for part in value):
        return True
    return all(
        isinstance(part, dict) and ({"role", "content"} <= part.keys() or {"from", "value"} <= part.keys())
        for part in value
    )
