"""Guess the mapping of a data set from the names and values of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.banks.code import CODE
from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.banks.rows import Record
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing import fields
from pytest_adaptive_eval.extensions.importing.answers import find_convention, is_hidden
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
from pytest_adaptive_eval.extensions.importing.fields import keys_of, matching, normal, series
from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.pictures import looks_like_image
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.typed_tables import replaced

#: Records from which a mapping is guessed.
SAMPLE = 400
#: Share of the questions that contain a field's text, from which they do not need the field.
_CONTAINED = 0.9
#: Pairs of texts that are one question.
_PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"), ("text1", "text2"))


@dataclass(slots=True)
class _Sample:
    """Records and the values of expressions in them; the answer that the user names, and the fields in use."""

    records: Sequence[Record]
    keys: list[str]
    given: str = ""
    used: set[str] = field(default_factory=set)

    def values(self, expression: str) -> list[Any]:
        read = parse_expression(expression)
        return [read(record.data, record.names) for record in self.records]

    def filled(self, expression: str, share: float = 0.5) -> bool:
        """Return whether an expression has a value in a share of the records."""
        values = self.values(expression)
        return sum(not is_missing(value) for value in values) >= max(1.0, share * len(values))

    def matching(self, names: Sequence[str]) -> Iterable[str]:
        return (key for key in matching(self.keys, names) if key not in self.used)


def guess_mapping(records: Sequence[Record], given: ItemMapping, labelled: bool = False) -> ItemMapping:
    """Return a mapping with the fields that were not given guessed from names and values.

    Args:
        labelled: Whether the answers stand in a second file.

    Raises:
        DatasetError: No question or no answer is found; the message lists the fields and the option.
    """
    sample = _Sample(records, keys_of([record.data for record in records]), given.answer)
    mapping = _guessed(sample, given, labelled)
    if not (mapping.question or mapping.messages):
        raise DatasetError(f"no question is found among the fields {_listed(sample.keys)}; give --set question=FIELD")
    marked = any(choices_of(mapping.choices)(record).right for record in records) if mapping.choices else False
    if not (mapping.answer or mapping.accepted or labelled or marked or mapping.grader):
        raise DatasetError(
            f"no answer is found among the fields {_listed(sample.keys)}; give --set answer=FIELD, or "
            "labels=FILE, or grader=NAME for one that needs none"
        )
    return mapping


def unused_fields(records: Sequence[Record], mapping: ItemMapping) -> list[str]:
    """Return the fields that questions may need by name, and that neither a mapping uses nor they contain."""
    sample = _Sample(records, keys_of([record.data for record in records]))
    used = {name.partition(".")[0].partition("[")[0] for name in _names(mapping)} | {mapping.id, *mapping.meta}
    expressions = filter(None, (mapping.context, mapping.question, mapping.messages))
    asked = [" ".join(map(as_text, texts)) for texts in zip(*map(sample.values, expressions), strict=True)]
    unused = []
    for key in sample.keys:
        if "." in key or key in used or not fields.may_be_needed(key):
            continue
        filled = [
            (text, question)
            for value, question in zip(sample.values(key), asked, strict=True)
            if not (is_missing(value) or may_be_missing(text := as_text(value)))
        ]
        if filled and sum(text in question for text, question in filled) < _CONTAINED * len(filled):
            unused.append(key)
    return unused


def _guessed(sample: _Sample, mapping: ItemMapping, labelled: bool) -> ItemMapping:
    """Return a mapping with what it lacks guessed, field after field; what one takes is not guessed for the next."""
    sample.used.update(_names(mapping))
    if not (mapping.messages or mapping.question):
        mapping = replaced(mapping, **_question(sample))
        sample.used.update({mapping.question, mapping.messages} - {""})
    if not mapping.images:
        mapping = replaced(mapping, images=_images(sample))
        sample.used.update(mapping.images)
    mapping = replaced(mapping, **_alternatives(sample, mapping, labelled))
    if not (mapping.context or mapping.messages):
        mapping = replaced(mapping, context=_context(sample, mapping))
    mapping = _with_accepted(sample, mapping)
    if not mapping.category:
        # the file's name where there are several
        sets = ("$set",) if len({record.names.get("set") for record in sample.records}) > 1 else ()
        mapping = replaced(mapping, category=_categories(sample, mapping.answer) or sets)
    return mapping if mapping.id else replaced(mapping, id=_id(sample))


def _names(mapping: ItemMapping) -> Iterable[str]:
    single = (mapping.question, mapping.context, mapping.answer, mapping.messages)
    for value in (*single, *mapping.accepted, *mapping.choices, *mapping.images, *mapping.distractors):
        yield value
        yield from re.findall(r"\{([^{}|]*)", value)


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(repr(key) for key in keys[:24]) + (", .." if len(keys) > 24 else "")


def _question(sample: _Sample) -> dict[str, str]:
    """Return the expression of the question, or of the chat, and of both where some records have no chat."""
    for key in sample.matching(fields.MESSAGES):
        values = [value for value in map(literal, sample.values(key)) if value]
        if values and all(_is_chat(value, key) for value in values):
            if len(values) == len(sample.records):
                return {"messages": key}
            sample.used.add(key)
            return {"messages": key, **_question(sample)}
    # a pair of texts, such as a premise and a hypothesis
    for names in () if any(map(sample.filled, sample.matching(("question",)))) else _PAIRS:
        pair = [key for name in names for key in sample.matching((name,)) if sample.filled(key)]
        if len(pair) == 2:
            return {"question": f"{{{pair[0]}}}\n\n{{{pair[1]}}}"}
    # a text, or lists of one text, that half of the records have
    for key in sample.matching(fields.QUESTIONS):
        values = [value for value in sample.values(key) if not is_missing(value)]
        if len(values) * 2 < len(sample.records):
            continue
        if all(isinstance(value, str) for value in values):
            return {"question": key}
        if all(isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) for value in values):
            return {"question": f"{key}[0]"}
    return {}


def _is_chat(value: Any, key: str) -> bool:
    if not isinstance(value, list) or not value:
        return False
    if normal(key) == "turns" and all(isinstance(part, str) for part in value):
        return True
    return all(
        isinstance(part, dict) and ({"role", "content"} <= part.keys() or {"from", "value"} <= part.keys())
        for part in value
    )


def _images(sample: _Sample) -> tuple[str, ...]:
    """Return the expressions of images: by their names, and by values that look like images."""
    numbered = sorted(
        (key for key in sample.keys if re.fullmatch(r"(?i)(image|img)(path)?[ _]?\d{1,2}", key)),
        key=lambda key: int(re.sub(r"\D", "", key)),
    )
    for keys in [[key] for key in sample.matching(fields.IMAGES)] + ([numbered] if numbered else []):
        values = [part for key in keys for value in sample.values(key) for part in as_list(value)]
        if values and sum(map(looks_like_image, values)) * 2 > len(values):
            return tuple(keys)
    return ()


def _alternatives(sample: _Sample, mapping: ItemMapping, labelled: bool) -> dict[str, Any]:
    """Return the expressions of alternatives and answer that fit together, else of an answer alone."""
    if mapping.choices or mapping.distractors:
        return {"answer": mapping.answer or _fitting(sample, mapping.choices) or _first_answer(sample)}
    by_field = {key: [read_choices(value) for value in sample.values(key)] for key in sample.matching(fields.CHOICES)}
    shares = {key: sum(len(choices.texts) > 1 for choices in rows) / len(rows) for key, rows in by_field.items()}
    for key, rows in by_field.items() if not mapping.answer else ():
        marks = [choices.right for choices in rows if choices.texts]  # of the right ones
        if shares[key] >= 1 / 2 and None not in marks and any(marks):
            sample.used.add(key)
            return {"choices": (key,), "answer": _first_answer(sample)}
    numbered = series(sample.keys)
    least = {key: 1 / 2 if normal(key) == "answers" else 1 / 20 for key in by_field}
    columns: list[tuple[str, ...]] = [(key,) for key in by_field if shares[key] >= least[key]]
    columns += numbered
    if labelled:
        return {"choices": columns[0]} if columns else {}
    for column in columns:
        answer = mapping.answer or _fitting(sample, column)
        if answer and (not mapping.answer or _fits(sample, column, answer)):
            return {"choices": column, "answer": answer}
    named_choices = [key for key in by_field if normal(key.rpartition(".")[2]) in fields.SURE_CHOICES]
    sure: list[tuple[str, ...]] = [(key,) for key in named_choices if shares[key] >= 1 / 2]
    sure += [run for run in numbered if fields.may_be_needed(run[0]) or all(len(key) == 1 for key in run)]
    if sure:  # which no answer names: each record is refused with its reason
        return {"choices": sure[0], "answer": mapping.answer or _first_answer(sample, besides=sure[0])}
    wrong = tuple(key for key in sample.keys if fields.DISTRACTORS.fullmatch(normal(key)) and sample.filled(key))
    answer = mapping.answer or ("" if mapping.accepted else _first_answer(sample))
    return {"distractors": wrong, "answer": answer} if wrong and answer else {"answer": answer}


def _check_not_hidden(sample: _Sample, found: str) -> str:
    """Return the field, unless one that names the answer better is empty, as where answers are hidden."""
    better = next((key for key in sample.matching(fields.ANSWERS) if "." not in key or key == found), "")
    if better and better != found.partition(".")[0] and not sample.filled(better, 0.02):
        other = f"; give --set answer={found} if that is the answer" if found else ""
        raise DatasetError(f"the answers of {better!r} are empty, as where they are hidden{other}")
    return found


def _first_answer(sample: _Sample, besides: Sequence[str] = ()) -> str:
    found = next((key for key in _answers(sample) if key.partition(".")[0] not in besides), "")
    return _check_not_hidden(sample, found)


def _with_accepted(sample: _Sample, mapping: ItemMapping) -> ItemMapping:
    """Return a mapping with the fields whose entries are each an accepted answer, where there are no alternatives."""
    if mapping.accepted or mapping.choices or mapping.distractors or mapping.grader in (JUDGE, CODE):
        return mapping
    named = normal(mapping.answer.rpartition(".")[2])
    if named in fields.ACCEPTED and mapping.answer != sample.given:
        mapping = replaced(mapping, answer="", accepted=(mapping.answer,))
    aliases = [key for key in sample.matching(fields.ALIASES) if sample.filled(key, 0.02) and key != mapping.answer]
    return replaced(mapping, accepted=(*mapping.accepted, *aliases)) if aliases else mapping


def _answers(sample: _Sample) -> Iterable[str]:
    for key in sample.matching(fields.ANSWERS):
        if sample.filled(key, 0.02):
            inner = [other for other in sample.matching(fields.ANSWERS) if other.startswith(f"{key}.")]
            yield key
            yield from inner


def _fitting(sample: _Sample, columns: Sequence[str]) -> str:
    """Return the first field whose values name the alternatives in the columns, empty if there is none."""
    outside = (key for key in _answers(sample) if key.partition(".")[0] not in columns)
    found = next((key for key in outside if _fits(sample, columns, key)), "")
    return _check_not_hidden(sample, found) if normal(found) in fields.REPLIES else found


def _fits(sample: _Sample, columns: Sequence[str], answer: str) -> bool:
    alternatives = choices_of(columns)
    rows: list[tuple[Any, Choices]] = []
    for record, value in zip(sample.records, sample.values(answer), strict=True):
        choices = alternatives(record)
        if choices.texts and not is_hidden(value, choices):
            rows.append((value, choices))
    if not rows:
        return False
    try:
        find_convention(rows, answer)
    except DatasetError as error:
        return "--set counted" in str(error)  # the numbers fit, and the user is asked where they begin
    return True


def _context(sample: _Sample, mapping: ItemMapping) -> str:
    question, answer, columns = mapping.question, mapping.answer, (*mapping.choices, *mapping.distractors)
    for key in sample.matching(fields.CONTEXTS):
        outer = key.partition(".")[0]
        if key in (question, answer) or f"{{{key}}}" in question or outer in (answer, *columns):
            continue
        values = [value for value in sample.values(key) if not is_missing(value)]
        if not values or question.startswith(f"{key}."):
            continue
        if all(isinstance(value, str) for value in values) or all(
            isinstance(value, list) and all(isinstance(part, str) for part in value) for value in values
        ):
            return key
    return ""


def _categories(sample: _Sample, answer: str) -> tuple[str, ...]:
    """Return at most two fields that sort the records."""
    chosen: list[str] = []
    for key in sample.matching(fields.CATEGORIES):
        values = [as_text(value) for value in sample.values(key) if isinstance(value, str | int)]
        kinds = set(values)
        if (
            key.partition(".")[0] == answer.partition(".")[0]
            or len(values) < 0.9 * len(sample.records)
            or len(kinds) < (2 if chosen else 1)
        ):
            continue
        if max(map(len, kinds)) <= 60 and len(kinds) <= max(2, len(values) // 2):
            chosen.append(key)
        if len(chosen) == 2:
            break
    return tuple(chosen)


def _id(sample: _Sample) -> str:
    """Return the field that names the records; their keys where they stand in an object."""
    if all(record.names.get("key") for record in sample.records):
        return "$key"
    for key in sample.matching(fields.IDS):
        values = [value for value in sample.values(key) if isinstance(value, str | int) and not isinstance(value, bool)]
        if len(values) == len(sample.records) and len(set(values)) * 10 >= len(values) * 9:
            return key
    return ""
