"""Rows of any file, by a mapping of its columns: makers' own outputs, tables of data frames, logs of other tools."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pytest_adaptive_eval.banks.expressions import hash_of, parse_expression
from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, files_that
from pytest_adaptive_eval.banks.responses.mapping import clear_names
from pytest_adaptive_eval.banks.responses.questions import as_question, grade_reply
from pytest_adaptive_eval.banks.rows import SUFFIXES, TableRecord, first_keys, head, read_records, suffix_of
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.typed_tables import described

#: Verdicts in words, in lower case.
_VERDICTS: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(("true", "correct", "right", "yes", "pass", "passed", "success", "resolved", "c", "1"), 1.0),
        **dict.fromkeys(
            ("false", "incorrect", "wrong", "no", "fail", "failed", "failure", "unresolved", "i", "0"), 0.0
        ),
        **dict.fromkeys(("", "na", "n/a", "nan", "none", "null"), math.nan),
    }
)
#: Keys listed in an error.
_KEYS = 12


def verdict(value: Any) -> float:
    """Return a score in [0, 1], truth value or verdict in words as a number, NaN if missing; or raise ValueError."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _VERDICTS:
            return _VERDICTS[text]
        value = float(text)
    if not isinstance(value, int | float) or not (0 <= value <= 1 or math.isnan(value)):
        raise ValueError(value)
    return float(value)


def read_mapped(path: Path, settings: ReadSettings) -> Responses:
    """Read the rows of a file, or of all files in a folder, by the mapping of the settings.

    Fields that the mapping leaves out are taken from columns with clear names; a note says which. Duplicate responses
    count as their mean. A file without any score is passed over when others have one.
    """
    files = files_that(is_table, path, f"no file with rows; expected {', '.join(SUFFIXES)}")
    chosen = settings.mapping or ResponseMapping()
    collected = Collected(str(path), texts=settings.texts)
    rows = scored = 0
    for file in files:
        reader = _Reader(_complete(chosen, file, settings))
        before = scored
        for row, values in reader.rows(file):
            rows += 1
            value = math.nan if values.get("error") else _score(values, row, reader.mapping, settings)
            if value is not None:
                scored += 1
                subject, item = reader.name(values, "subject", row), reader.name(values, "item", row)
                collected.add(subject, item, value, values.get("answer"))
                if (question := as_question(values, file)) is not None:
                    collected.ask(item, question, row.where)
        if scored == before:
            settings.note(f"{file}: no row has a score; it is left out")
    if not scored:
        raise _nothing_read(files[0], reader.mapping)
    if missing := rows - scored:
        settings.note(f"{path.name}: {missing} of {rows} rows have no score, and count as missing")
    if repeated := collected.repeated:
        settings.note(
            f"{path.name}: {repeated} of {rows} rows repeat a subject and item; the mean of their scores counts"
        )
    collected.check_questions("give --set item=EXPRESSION that tells the questions apart")
    return collected.responses()


def _score(values: Mapping[str, Any], row: TableRecord, mapping: ResponseMapping, settings: ReadSettings) -> Any:
    """Return the score of a row, NaN where it is missing; None for a row that is no response."""
    if not mapping.score:
        return grade_reply(values, settings.items)
    try:
        return None if values["score"] is None else verdict(values["score"])
    except ValueError:
        raise ResponsesError(
            f"{row.where}: the score {mapping.score} is {values['score']!r:.80}, expected a number in [0, 1], a truth "
            "value or a verdict such as correct; write it with a function, such as --set score="
            f"\"lookup({mapping.score}, 'good=1,bad=0')\" or 'scale({mapping.score}, `1`, `10`)'"
        ) from None


class LogTable(ResponseMapping, frozen=True, kw_only=True):
    """The logs of one tool as a table: the mapping of its records, and how its files are recognised.

    Their score may be an object of scores by metric. A record without a score is a missing response.
    """

    content: Annotated[str, described("files of the tool, for help and errors")]
    keys: Annotated[tuple[str, ...], described("keys of the first of the JSON lines, each of which is a record")]
    begins: Annotated[str, described("pattern of the first characters of a file of JSON, which has the rows")] = ""
    metric: Annotated[str, described("name of the metric that counts, where there are several")] = ""
    metrics: Annotated[str, described("meaning of the setting metric")] = ""
    note: Annotated[str, described("what is said after reading")] = ""
    stated: Annotated[str, described("rows of a file of JSON in which the tool states its sums, by subject")] = ""
    planned: Annotated[str, described("in such a row, the number of samples")] = ""
    total: Annotated[str, described("in such a row, the sum of the scores")] = ""


def reader_of(name: str, table: LogTable) -> ResponseReader:
    """Return the reader of a tool's logs."""

    def recognises(path: Path) -> bool:
        if path.suffix == ".json":
            return bool(table.begins) and re.match(table.begins, head(path)) is not None
        return first_keys(path) >= {*table.keys}

    def read(path: Path, settings: ReadSettings) -> Responses:
        collected = Collected(str(path), texts=settings.texts)
        for file in files_that(recognises, path, f"expected {table.content}"):
            collected.add_task(_logs(table, file, settings), settings, str(file))
        collected.check_questions("give runs on one version of the data, with the same limit and seed")
        if table.note:
            settings.note(f"{path.name}: {table.note}")
        return collected.responses()

    return ResponseReader(name, table.content, recognises, read, {"metric": table.metrics} if table.metrics else {})


def _logs(table: LogTable, file: Path, settings: ReadSettings) -> list[TaskLog]:
    """Return the log of each subject in a file of a tool, with what a file of JSON states of it."""
    reader = _Reader(table)
    answers: dict[str, list[Answer]] = {}
    for row, values in reader.rows(file):
        value = None if values.get("error") else values.get("score")
        scores = value if isinstance(value, Mapping) else {} if value is None else {"score": value}
        main = _value(table.metric, row)
        if main in scores and settings.metric is None:
            scores = {main: scores[main]}
        item, question = reader.name(values, "item", row), as_question(values, file)
        answer = Answer(row.where, item, scores, question, values.get("answer"), row.where)
        answers.setdefault(reader.name(values, "subject", row), []).append(answer)
    sums = _sums(table, file, reader)
    logs = []
    for subject, own in answers.items():
        stated = sums.get(subject)
        scored = sum(bool(answer.values) for answer in own)  # a failed sample adds nothing to the tool's sum
        accuracies = {"score": stated["total"] / scored} if scored and stated else {}
        unscored = "" if scored else f"{file}: no answer of {subject} has a score"
        planned = stated["planned"] if stated else None
        logs.append(TaskLog(str(file), subject, own, "", planned, "", accuracies, unscored))
    return logs


def _sums(table: LogTable, file: Path, reader: _Reader) -> dict[str, Counter[str]]:
    """Return the number of samples and the sum of scores that a file of JSON states, by subject."""
    sums: dict[str, Counter[str]] = {}
    if not table.stated or suffix_of(file) != ".json":
        return sums
    for row in read_records(file, table.stated):
        planned, total = _value(table.planned, row), _value(table.total, row)
        if planned is not None and total is not None:
            subject = reader.name({"subject": _value(table.subject, row)}, "subject", row)
            sums.setdefault(subject, Counter()).update(planned=planned, total=total)
    return sums


def _value(expression: str, row: TableRecord) -> Any:
    return parse_expression(expression)(row.data, row.names) if expression else None


def is_table(file: Path) -> bool:
    """Return whether the name of a file is that of a table or of JSON."""
    return file.name.removesuffix(".gz").lower().endswith(SUFFIXES)


def _complete(chosen: ResponseMapping, file: Path, settings: ReadSettings) -> ResponseMapping:
    """Return the mapping with the fields that the names of a file's columns show."""
    named = clear_names(read_records(file, chosen.rows)).given
    if chosen.score or (chosen.answer and (chosen.target or settings.items)):
        named.pop("score", None)
    mapping = chosen.with_defaults(ResponseMapping(**named))
    if added := {k: v for k, v in mapping.given.items() if k not in chosen.given}:
        settings.note(f"{file.name}: by the names of its columns, {ResponseMapping(**added).options}")
    return mapping


class _Reader:
    """Fields of the rows of a file, by a mapping."""

    def __init__(self, mapping: ResponseMapping) -> None:
        self.mapping = mapping
        self._fields = {name: parse_expression(text, name) for name, text in mapping.given.items() if name != "rows"}

    def rows(self, file: Path) -> Iterator[tuple[TableRecord, dict[str, Any]]]:
        """Yield each row with its fields."""
        plain = any("$value" in text for text in self.mapping.given.values())
        # a tool with files of JSON as well writes one record of them a line
        lines = isinstance(self.mapping, LogTable) and bool(self.mapping.begins) and suffix_of(file) == ".jsonl"
        for row in read_records(file, "" if lines else self.mapping.rows):
            if plain or isinstance(row.names["value"], Mapping):  # beside objects there may be values, as in rows = "*"
                yield row, {name: expression(row.data, row.names) for name, expression in self._fields.items()}

    def name(self, values: Mapping[str, Any], field: str, row: TableRecord) -> str:
        """Return the subject, by default the file, or the id of the item, by default a hash of its question."""
        value = values.get(field, row.names["file"] if field == "subject" else None)
        if value is None and isinstance(values.get("question"), str | list):
            value = hash_of(values["question"])  # logs without ids join by content
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value).strip()):
            return text
        expression = self.mapping.given.get(field)
        problem = f"{expression} is {value!r:.80}" if expression else "none of its columns names it"
        raise ResponsesError(
            f"{row.where}: no {field}: {problem}; give --set {field}=COLUMN with it; there are "
            f"{_keys(row)}, $file, $folder, $line"
        )


def _keys(row: TableRecord) -> str:
    keys = [*row.data][:_KEYS] or [name for name in ("$key", "$value") if name[1:] in row.names]
    return ", ".join(map(str, keys)) + (", .." if len(row.data) > _KEYS else "")


def _nothing_read(file: Path, mapping: ResponseMapping) -> ResponsesError:
    """Return the error for files without any score."""
    row = next(iter(read_records(file, mapping.rows)), None)
    keys = "no rows" if row is None else _keys(row)
    problem = f"no row has a value at score {mapping.score!r:.80}" if mapping.score else "no column holds scores"
    return ResponsesError(
        f"{file}: {problem}; give --set score=COLUMN, or answer and target to compare; the first record has {keys}"
    )


def propose(path: Path) -> str:
    """Return a sentence on the options that read a file of no format by the names of its columns; empty if none do."""
    try:
        mapping = clear_names(read_records(path)) if is_table(path) else ResponseMapping()
    except ResponsesError:
        return ""
    if not mapping.item or not (mapping.score or (mapping.answer and mapping.target)):
        return ""
    return f"The names of its columns suggest: {mapping.options}"


REGISTERED = (
    ResponseReader(
        "mapping",
        "rows of JSON lines, JSON, CSV, TSV or parquet whose columns are named by the settings item, score and so on",
        lambda _: False,
        read_mapped,
        {"mapping": "the columns"},
        generality=9,
    ),
)
