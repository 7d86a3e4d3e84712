"""Open points of a proposed mapping, and settings that decide them, each tried on the data before it is printed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_adaptive_eval.banks.expressions import as_path, key_path
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.extensions.importing.base import Imported, ImportSettings, applied
from pytest_adaptive_eval.extensions.importing.grading import yes_or_no
from pytest_adaptive_eval.extensions.importing.importer import import_items
from pytest_adaptive_eval.extensions.importing.names import (
    ANSWERING,
    ASKED,
    FILE_NAME,
    INSTRUCTING,
    MEASURED,
    MEDIA,
    NAMES,
    PLAIN,
    SHOWN,
    STANCES,
    is_about,
    is_file,
    is_needed,
    is_reference,
    normal,
    words_of,
)
from pytest_adaptive_eval.extensions.importing.proposal import Unused, is_complete, is_phrase
from pytest_adaptive_eval.extensions.importing.sources import first_records, guessed_header
from pytest_adaptive_eval.extensions.importing.undecided import (
    NO_ANSWER,
    Advice,
    Undecided,
    reason_kind,
    sentence,
)
from pytest_adaptive_eval.extensions.importing.values import as_text, fields_of, literal
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.mappings import ItemMapping, split_list

#: Records on which settings are tried, and settings that one open point tries.
_TRIED, _MOST = 2000, 6
#: Fields that one open point names, words of a text that says something, and fields above which records have no form.
_NAMED, _PHRASE, _FORMLESS = 8, 3, 40
#: A label before a key, up to its colon.
_LABEL = re.compile(r"[^\W\d][^:：\n]{0,20}[:：]\s*(?=\S)")


class OpenPoint(NamedTuple):
    """Something that a person has to decide before a proposal is accepted.

    Args:
        kind: What the points of several readings have in common.
        refuses: Whether records are left out because of it.
        even: Whether nothing speaks for one of several settings, so a person has to choose.
    """

    kind: str
    problem: str
    advice: Sequence[Advice] = ()
    refuses: bool = False
    even: bool = False

    def __str__(self) -> str:
        return sentence(self.problem, self.advice)


class Reading(NamedTuple):
    """Result of reading the data once.

    Args:
        graders: Number of items by their graders.
        unanswered: Number of records that are refused because they have no answer.
    """

    points: Sequence[OpenPoint]
    items: int
    refused: int
    mapping: ItemMapping
    graders: Counter[str]
    unanswered: int = 0

    @property
    def kinds(self) -> set[str]:
        """Kinds of the open points."""
        return {point.kind for point in self.points}

    @property
    def share(self) -> float:
        """Share of the records that are refused."""
        return self.refused / max(1, self.items + self.refused)

    @property
    def rank(self) -> tuple[int, int]:
        """Least for a reading with items, then for the one that leaves the fewest decisions."""
        return int(not self.items), sum(not point.refuses for point in self.points)

    @property
    def is_written_partly(self) -> bool:
        """Whether a bank of the other records is all that is possible."""
        is_read = 0 < self.items >= self.refused - self.unanswered
        return is_read and all(point.refuses for point in self.points)


class Plan(NamedTuple):
    """Open points with the advice that was tried, and the settings that decide all of them.

    Args:
        settings: Values of ``--set``; None where no setting leads to a bank.
        left_out: Number of records that the bank lacks.
        is_chosen: Whether each open point has a first choice; else a person has to choose.
    """

    points: Sequence[OpenPoint]
    settings: Mapping[str, str] | None
    left_out: int = 0
    is_chosen: bool = True


class Adviser:
    """Search for the settings that decide what is open about a source."""

    def __init__(self, source: str, settings: ImportSettings, importer: str) -> None:
        self._source, self._settings, self._importer = source, settings, importer

    def plan(self, imported: Imported | UsageError) -> Plan:
        """Return what is open about an import, or about one that failed, and what decides it."""
        first = self._read_with(imported)
        limit = None
        reading = first
        if isinstance(imported, Imported) and imported.read > _TRIED:
            limit = _TRIED
            reading = self._read({}, limit)
        chosen: Mapping[str, str] = {}
        if self._settings.ignore:
            chosen = {"ignore": listed(self._settings.ignore)}
        points = list(first.points)
        decided: dict[str, OpenPoint] = {}
        while advised := self._advised(reading, chosen, limit, decided):
            point, chosen, reading = advised
            decided[point.kind] = point
        if limit and chosen:
            reading = self._read(chosen, None)
        elif limit:
            reading = first
        all_points = [decided.pop(point.kind, point._replace(advice=())) for point in points]
        all_points += decided.values()
        if reading.points and not reading.is_written_partly:
            all_points += [point._replace(advice=()) for point in reading.points if point.kind not in first.kinds]
            return Plan(all_points, None)
        if is_complete(applied(self._settings, chosen)):
            chosen = {**_as_texts(reading.mapping), **chosen}
        is_chosen = not any(point.even and len(point.advice) > 1 for point in all_points)
        return Plan(all_points, chosen, reading.refused, is_chosen)

    def open_points(self, imported: Imported, *, partial: bool) -> list[OpenPoint]:
        """Return what a person has to decide about an import; `partial` accepts that records are refused."""
        points = self._read_with(imported).points
        return [point for point in points if not (partial and point.refuses)]

    def _advised(
        self, reading: Reading, chosen: Mapping[str, str], limit: int | None, decided: Mapping[str, OpenPoint]
    ) -> tuple[OpenPoint, Mapping[str, str], Reading] | None:
        """Return the first open point that settings decide, all settings with the best of them, and their reading."""
        for point in reading.points:
            if point.kind in decided:
                continue
            good = []
            for advice in point.advice[:_MOST]:
                settings = _with(chosen, advice.settings)
                after = self._read(settings, limit)
                # a grader for the records that are refused must not become that of all others
                keeps = "grader" not in advice.settings or reading.graders <= after.graders
                is_less = after.share <= reading.share and after.items + after.refused > 0
                if keeps and is_less and after.kinds.isdisjoint({"unread", point.kind}):
                    good.append((advice, settings, after))
            if good:
                best, settings, after = min(good, key=lambda entry: entry[2].rank)
                others = [advice for advice, *_ in good if advice != best]
                return point._replace(advice=(best, *others)), settings, after
        return None

    def _read(self, chosen: Mapping[str, str], limit: int | None) -> Reading:
        """Return what the data are with some settings."""
        try:
            settings = applied(self._settings, chosen)
            with import_items(self._source, settings, self._importer, limit, proposes=True) as imported:
                return self._read_with(imported, settings)
        except UsageError as error:
            return self._read_with(error)

    def _read_with(self, imported: Imported | UsageError, settings: ImportSettings | None = None) -> Reading:
        if isinstance(imported, UsageError):
            if isinstance(imported, Undecided):
                point = OpenPoint("unread", imported.problem, imported.advice)
            else:
                point = OpenPoint("unread", str(imported), guessed_header(self._source, self._settings.rows))
            return Reading([point], 0, 1, ItemMapping(), Counter())
        points = list(_open_points(imported, settings or self._settings, self._settings, self._source))
        unanswered = sum(reason == NO_ANSWER for _, reason in imported.refused)
        graders = Counter(item.grader for item in imported.items)
        return Reading(points, len(imported.items), len(imported.refused), imported.parts[0][1], graders, unanswered)


def _with(chosen: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return chosen settings with further ones; fields to ignore are added to earlier ones."""
    together = {**chosen, **settings}
    fields = dict.fromkeys(split_list(f"{chosen.get('ignore', '')},{settings.get('ignore', '')}"))
    if fields:
        together["ignore"] = listed(list(fields))
    return together


def _as_texts(mapping: ItemMapping) -> dict[str, str]:
    """Return a mapping as values of ``--set``."""
    texts = {}
    for key, value in mapping.given().items():
        if isinstance(value, list):
            texts[key] = listed(value)
        else:
            texts[key] = as_text(value)
    return texts


def listed(expressions: Sequence[str]) -> str:
    """Return expressions as one value of ``--set``, in which commas separate them."""
    texts = []
    for text in expressions:
        is_one = split_list(text) == (text,)
        texts.append(text if is_one else json.dumps(text))
    return ",".join(texts)


def _open_points(
    imported: Imported, settings: ImportSettings, given: ImportSettings, source: str
) -> Iterator[OpenPoint]:
    """Yield what a person has to decide before a proposed mapping can be accepted.

    Args:
        given: The settings of the person, without ones that are tried.
    """
    mapping = imported.parts[0][1]
    if not (mapping.question or mapping.messages):
        advice = [Advice({"question": name}) for name in (*_asking(imported.unused), *mapping.context)]
        problem = "no field has the name of a question"
        advice += guessed_header(source, settings.rows)
        if all(field.name == "value" and isinstance(literal(field.example), str) for field in imported.unused):
            yield OpenPoint(
                "question",
                "records that are lines of text have no fields: write a line of JSON for each question and its answer",
            )
            return
        if not advice:
            problem += ": write --set question=FIELD, or --set question='QUESTION {FIELD}' where no field asks"
        asking = sum(field.asks for field in imported.unused)
        has_others = any("column" in setting.settings.get("header", "") for setting in advice)
        yield OpenPoint("question", problem, advice, even=asking > 1 or has_others)
    if not (mapping.answer or mapping.accepted or mapping.distractors or settings.labels or imported.items):
        answers = [field.expression for field in imported.unused if _may_answer(field)]
        advice = [*_labels(source), *(Advice({"answer": answer}) for answer in answers)]
        measured = any(words_of(field.name) & {"score", "rating"} for field in imported.unused)
        if not (answers or measured) and normal(mapping.question) in PLAIN:
            asked = [name for name in mapping.category if normal(name) in ("category", "topic", "intent")]
            advice += [Advice({"answer": name}, "where it is asked for") for name in asked]
        if mapping.messages:
            for name in ("content", "value"):
                last = f"{as_path(mapping.messages)}[-1].{name}"
                advice.append(Advice({"messages": mapping.messages, "answer": last}, "where the chat ends with it"))
        problem = "no field has the name of an answer"
        if not advice:
            problem += ": write --set answer=FIELD, or --labels FILE, or --set grader=judge where none is needed"
        yield OpenPoint("answer", problem, advice, even=len(answers) > 1)
    yield from _needed_fields(imported, settings, source)
    if imported.items and _says_nothing(imported.items, mapping, settings, given):
        problem = (
            f"{mapping.question!r} asks nothing by itself, and no field says what is asked: give --set question="
            "'QUESTION {..}', or --set instruction=SENTENCE"
        )
        yield OpenPoint("plain", problem)
    yield from _labelled_keys(imported, mapping)
    if imported.items and not settings.category:
        yield from _topics(imported.items[0], mapping)
    for field in imported.unused:
        if field.is_rival and not settings.answer:
            advice = [Advice({"answer": field.expression}), Advice({"answer": mapping.answer})]
            problem = f"{mapping.answer!r} and {field.name!r} have the names of answers, and differ in some records"
            yield OpenPoint("rival", problem, advice, even=True)
    if not (mapping.question or mapping.messages):
        return  # all records are refused for that
    for count, reason, first_places in imported.reasons():
        problem = imported.problem(reason)
        kind = reason_kind(problem)
        alike = [error for error in imported.undecided.values() if reason_kind(error.problem) == kind]
        whole = f"{len(imported.refused)} of {imported.read} records are refused, {count} because {problem}"
        even = any(error.even for error in alike)
        yield OpenPoint(f"refused: {kind}", f"{whole} ({first_places})", _of_all(alike), refuses=True, even=even)


def _says_nothing(items: Sequence[Item], mapping: ItemMapping, settings: ImportSettings, given: ImportSettings) -> bool:
    """Return whether most questions do not say what is asked, and nothing that a person set does."""
    if settings.answer != given.answer and normal(mapping.answer) in NAMES["category"]:
        return not all(item.choices for item in items)
    named = (mapping.question, *mapping.context)
    are_plain = PLAIN.issuperset(map(normal, named)) or (normal(mapping.question) in PLAIN and _are_coded(items))
    is_guessed = settings.question != given.question or settings.header != given.header
    is_plain = not mapping.instruction and (is_guessed or are_plain)
    return is_plain and sum(map(_asks, items)) * 2 <= len(items)


def _topics(item: Item, mapping: ItemMapping) -> Iterator[OpenPoint]:
    """Yield the categories that may name what answers such as ``pro`` are about."""
    stances = STANCES.intersection(map(str.casefold, item.choices))
    for name in mapping.category if stances else ():
        topic = Advice({"context": listed([*mapping.context, name])}, "where they are about it")
        whole = Advice({"category": name}, "where they are whole without it")
        yield OpenPoint("topic", f"answers such as {min(stances)!r} may be about {name!r}", [topic, whole])


def _asks(item: Item) -> bool:
    """Return whether an item says what is asked: by a question mark, or by choices that are more than yes and no."""
    in_words = [choice for choice in item.choices if len(choice) > 1 and not yes_or_no(choice)]
    return bool(in_words) or "?" in item.prompt or "？" in item.prompt


def _are_coded(items: Sequence[Item]) -> bool:
    """Return whether all answers are labels of one sign, whose meaning no question says."""
    return bool(items) and all(len(item.answer) == 1 and item.answer in item.choices for item in items)


def _of_all(errors: Sequence[Undecided]) -> Sequence[Advice]:
    """Return the advice of the first of like errors, for the words of all that may mean no value."""
    if not (errors and errors[0].advice):
        return ()
    first, *others = errors[0].advice
    if "missing" in first.settings:
        words = dict.fromkeys(error.advice[0].settings["missing"] for error in errors)
        first = first._replace(settings={"missing": ",".join(words)})
    return [first, *others]


def _asking(unused: Sequence[Unused]) -> list[str]:
    """Return fields that may be the question, the likeliest first."""
    fields = []
    within = []
    for field in unused:
        if is_about(field.name) or field.constant:
            continue
        entries = fields_of(literal(field.example))
        for key, entry in entries.items():
            if is_phrase(entry):
                within.append(f"{as_path(field.name)}.{key_path(str(key))}")
        if not entries and (field.asks or (field.words >= 2 and normal(field.name) not in PLAIN)):
            fields.append(field)
    in_order = list(fields)
    fields.sort(key=lambda field: (0, 0, 0) if field.asks else (1, -field.varied, -field.words))
    if fields and not fields[0].asks:
        # of texts with like names, such as two sentences, the last one is asked about
        last = [field for field in in_order if words_of(field.name) & words_of(fields[0].name)][-1]
        fields.remove(last)
        fields.insert(0, last)
    return [*(field.expression for field in fields), *within]


def _may_answer(field: Unused) -> bool:
    words = words_of(field.name)
    return bool(words & ANSWERING - {"key", "keys"}) and not (words & MEASURED or field.constant)


def _labels(source: str) -> Iterator[Advice]:
    """Yield files beside the source that may have its answers, a line or a record each."""
    for path, record in first_records(source):
        if not words_of(Path(path).stem) & ANSWERING:
            continue
        if not isinstance(record, Mapping):
            yield Advice({"labels": path})
        for name in fields_of(record):
            if normal(name) in NAMES["answer"]:
                yield Advice({"labels": path, "answer": f"$label.{key_path(name)}"})


def _needed_fields(imported: Imported, settings: ImportSettings, source: str) -> Iterator[OpenPoint]:
    """Yield the fields that questions may need: names of records in another file, and texts."""
    mapping = imported.parts[0][1]
    fields = [field for field in imported.unused if field.needed and not (field.is_flag and mapping.images)]
    references = {field.expression: field.example for field in fields if is_reference(field.name)}
    if mapping.id and imported.items:
        references[mapping.id] = imported.items[0].id
    if settings.labels:
        references.clear()
    for key, name in references.items():
        joined = list(_joined(name, key, mapping, source))
        if joined:
            whole = Advice({"ignore": key}, "where questions are whole without it")
            yield OpenPoint(f"record {key}", f"{key!r} names records of another file", [*joined, whole])
            fields = [field for field in fields if field.expression != key]
    if len(fields) > _FORMLESS:
        named = ", ".join(repr(field.name) for field in fields[:_NAMED])
        problem = f"questions may need {len(fields)} fields, such as {named}: the records have no common form"
        yield OpenPoint(
            "needed", f"{problem}; name the file, or by --set rows=KEY the records, that hold the questions"
        )
        return
    for field in list(fields):
        point = _unasked(field, settings)
        if point:
            fields.remove(field)
            yield point
    if fields:
        yield _material(fields, mapping)


def _material(fields: Sequence[Unused], mapping: ItemMapping) -> OpenPoint:
    """Return the question whether fields are part of what is asked."""
    texts = [field for field in fields if field.is_text]
    likely = texts
    if any(not words_of(text) & INSTRUCTING for text in mapping.context):
        # beside a passage, a further text behind the question is more often a remark than a second passage
        likely = [field for field in texts if _is_second(field, mapping.context)]
    others = [field for field in fields if field not in texts]
    advice = [Advice(_ignoring(fields), "where they are whole without it")]
    attached = [field for field in fields if is_file(field.name) and field.partly]
    if attached:
        where = " && ".join(f"not_null({as_path(field.name)}, '') == ''" for field in attached)
        others = [field for field in others if field not in attached]
        advice.insert(0, Advice({"where": where, **_ignoring(others)}, "for the questions without a file"))
    if texts:
        context = listed([*mapping.context, *(text for field in texts for text in field.texts)])
        advice.insert(
            0 if likely else 1, Advice({"context": context, **_ignoring(others)}, "where they are asked about")
        )
    for field in fields:
        if field.holds_question:
            others = [each for each in fields if each != field]
            whole_prompt = {"question": field.expression, **_ignoring(others)}
            advice.append(Advice(whole_prompt, "where it is the whole prompt"))
    named = [repr(field.name) for field in fields]
    if len(named) > _NAMED:
        named[_NAMED:] = [f"{len(named) - _NAMED} others"]
    listing = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
    if len(fields) == 1:
        pronoun = "it"
    else:
        pronoun = "them"
    problem = f"questions may need {listing}, and do not use {pronoun}"
    return OpenPoint("needed", problem, advice, even=bool(texts) and not likely)


def _is_second(field: Unused, context: Sequence[str]) -> bool:
    """Return whether a field is a second passage: by its name or place, and no other version of the first one."""
    words = words_of(field.name) - {normal(field.name)}
    is_version = any(words_of(text) < words for text in context)
    return not is_version and (field.precedes or (is_needed(field.name) and field.words >= _PHRASE))


def _unasked(field: Unused, settings: ImportSettings) -> OpenPoint | None:
    """Return the question what to do about a field that no prompt can show; None for other fields."""
    whole = Advice(_ignoring([field]), "where all are whole without it")
    if field.is_flag and not SHOWN.isdisjoint(words_of(field.name)):
        shown = f"lower({as_path(field.expression)})"
        where = Advice({"where": f"{shown} == 'false' || {shown} == '0'"}, "for the questions without one")
        return OpenPoint(f"record {field.name}", f"{field.name!r} is true of some records", [where, whole])
    what = _not_asked(field, settings)
    if not what:
        return None
    advised = f"write --set where=EXPRESSION for records that are whole without it, or {whole}"
    return OpenPoint(f"record {field.name}", f"{field.name!r} {what}: {advised}")


def _not_asked(field: Unused, settings: ImportSettings) -> str:
    """Return why no prompt can have what a field is about; empty for other fields."""
    if field.is_flag:
        return "is true of some records"
    if words_of(field.name) & MEDIA:
        return "names sound or video, which cannot be asked"
    if FILE_NAME.fullmatch(field.example) and not is_file(field.name):
        return "names files, whose content no record has"
    if is_reference(field.name) and not is_file(field.name) and field.is_shared and not settings.labels:
        return "names what several records share, and no file beside the data has it"
    return ""


def _ignoring(fields: Sequence[Unused]) -> dict[str, str]:
    """Return the setting that ignores further fields; empty if there are none."""
    if not fields:
        return {}
    return {"ignore": listed([field.name for field in fields])}


def _joined(name: str, key: str, mapping: ItemMapping, source: str) -> Iterator[Advice]:
    """Yield the texts in files beside the source that have a record of a name, which a key of the mapping gives."""
    for path, record in first_records(source, name):
        fields = fields_of(record)
        asks = mapping.question in fields or not ASKED.isdisjoint(map(normal, fields))
        if asks or words_of(Path(path).stem) & ANSWERING:  # another split, or answers
            continue
        texts = []
        if is_phrase(record):
            texts.append("$label")
        for field, value in fields.items():
            if is_phrase(value) and not is_about(field):
                texts.append(f"$label.{key_path(field)}")
        if texts:
            context = listed([*mapping.context, *texts])
            yield Advice({"labels": path, "labels_by": key, "context": context})


def _labelled_keys(imported: Imported, mapping: ItemMapping) -> Iterator[OpenPoint]:
    """Yield a label that all keys begin with and that no question asks for."""
    matches = [_LABEL.match(key) for key in {item.answer for item in imported.items}]
    labels = {match[0] if match else "" for match in matches}
    label = min(labels, default="")
    is_common = label and len(labels) == 1 < len(matches)
    if is_common and not any(label.strip() in item.prompt for item in imported.items):
        begin = re.sub(r"([.^$*+?{}()|\[\]\\])", r"\\\1", label.strip())
        key = f"extract({as_path(mapping.answer or 'FIELD')}, '{begin} *(.*[^ .。])')"
        problem = f"every key begins with {label!r}, which an answer may leave out"
        yield OpenPoint("label", problem, [Advice({"answer": key})])
