"""Rows of any file, by a mapping of its columns: makers' own outputs, tables of data frames, logs of other tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.expressions import hash_of, parse_expression
from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, files_that, named, score
from pytest_adaptive_eval.banks.responses.mapping import clear_names
from pytest_adaptive_eval.banks.responses.questions import as_question, grade_reply
from pytest_adaptive_eval.banks.rows import SUFFIXES, TableRecord, first_keys, head, read_records, suffix_of
from pytest_adaptive_eval.errors import ResponsesError, UsageError
from pytest_adaptive_eval.items.responses import Responses, Stated
from pytest_adaptive_eval.mappings import ResponseMapping

#: Keys listed in an error.
_KEYS = 12


class LogTable(ResponseMapping, frozen=True, kw_only=True):
    """The logs of one tool as a table: the mapping of its records, and how its files are recognised.

    Their score may be an object of scores by metric. A record without a score is a missing response.

    Args:
        content: Files of the tool, for help and errors.
        keys: Keys of the first JSON line; each line is a record.
        begins: Pattern of the first characters of a file of JSON, which has the rows.
        metric: Name of the metric that counts, where there are several.
        metrics: Meaning of the setting metric.
        stated: Rows in which the tool states its sums, by subject.
        stated_in: Files with those rows, three folders above a log; the log itself if empty.
        log: In such a row, the name of the log's file; any if empty.
        planned: In such a row, the number of samples.
        total: In such a row, the sum of the scores.
        mean, measure: In such a row, the mean score, and the name of its metric, which may begin with ``mean_``.
    """

    content: str
    keys: tuple[str, ...]
    begins: str = ""
    metric: str = ""
    metrics: str = ""
    stated: str = ""
    stated_in: str = ""
    log: str = ""
    planned: str = ""
    total: str = ""
    mean: str = ""
    measure: str = ""


def read_mapped(path: Path, settings: ReadSettings) -> Responses:
    """Read the rows of a file, or of all files in a folder, by the mapping of the settings.

    Fields that the mapping leaves out are taken from columns with clear names; a note says which. Duplicate responses
    count as their mean. A file without any score is passed over when others have one.
    """
    collected = Collected(str(path), texts=settings.texts)
    for file in files_that(
        lambda file: bool(suffix_of(file)), path, f"no file with rows; expected {', '.join(SUFFIXES)}"
    ):
        mapping = _complete(settings.mapping or ResponseMapping(), file, settings)
        scored = 0
        for row, values, scores in _responses(mapping, file, settings):
            scored += 1
            item = _name(values, "item", row)
            value = score(scores.get("score"), row.where)
            collected.add(_name(values, "subject", row), item, value, values.get("answer"))
            collected.ask(item, as_question(values, file), row.where)
        if not scored:
            collected.leave_out(_nothing_read(file, mapping), settings)
    if repeated := collected.repeated:
        settings.note(f"{path.name}: {repeated} rows repeat a subject and item; the mean of their scores counts")
    return collected.responses()


def reader_of(name: str, table: LogTable) -> ResponseReader:
    """Return the reader of a tool's logs."""

    def recognises(path: Path) -> bool:
        if path.suffix == ".json":
            return bool(table.begins) and re.match(table.begins, head(path)) is not None
        return first_keys(path) >= {*table.keys}

    def read(path: Path, settings: ReadSettings) -> Responses:
        collected = Collected(str(path), texts=settings.texts)
        read: set[tuple[str, str]] = set()
        unread: dict[tuple[str, str], _Sums] = {}
        for file in files_that(recognises, path, f"expected {table.content}"):
            answers: dict[str, list[Answer]] = {}
            for row, values, scores in _responses(table, file, settings):
                item = _name(values, "item", row)
                question = as_question(values, file)
                answer = Answer(row.where, item, scores, question, values.get("answer"), row.where)
                answers.setdefault(_name(values, "subject", row), []).append(answer)
            if table.stated:
                sums = _sums(table, file)
            else:
                sums = {}
            named_sums = []
            for subject in answers:
                named_sums.append((subject, sums.get((subject, file.stem if table.log else ""), {})))
            logs = []
            for subject, stated in named_sums:
                logs.append(_log(str(file), subject, answers[subject], stated))
            collected.add_task(logs, settings, str(file))
            read |= {(subject, file.stem) for subject in answers}
            unread |= sums
        if path.is_dir() and table.log:
            collected.stated += _absent({key: stated for key, stated in unread.items() if key not in read})
        return collected.responses()

    return ResponseReader(name, table.content, recognises, read, {"metric": table.metrics} if table.metrics else {})


def _responses(
    mapping: ResponseMapping, file: Path, settings: ReadSettings
) -> Iterator[tuple[TableRecord, dict[str, Any], Mapping[str, Any]]]:
    """Yield each row of a file that is a response, with its fields, and its scores by metric."""
    without = 0
    for row, values in _rows(mapping, file):
        scores = _scores(values, mapping, settings)
        if scores is None:
            without += 1
        else:
            yield row, values, scores
    if without:
        settings.note(f"{file.name}: {without} rows have no score and are left out")


#: What a tool states about the answers of a subject in a log, by the keys of `LogTable`.
_Sums = Mapping[str, Any]


def _log(where: str, subject: str, answers: Sequence[Answer], sums: _Sums) -> TaskLog:
    scored = sum(bool(answer.values) for answer in answers)  # a failed sample adds nothing to the tool's sum
    if scored and "total" in sums:
        accuracies = {"score": sums["total"] / scored}
    else:
        accuracies = {}
    if isinstance(sums.get("measure"), str):
        accuracies[sums["measure"].removeprefix("mean_")] = sums.get("mean")
    return TaskLog(where, subject, answers, planned=sums.get("planned"), accuracies=accuracies)


def _absent(sums: Mapping[tuple[str, str], _Sums]) -> Iterator[Stated]:
    """Yield the logs that a tool states sums of and that are not there."""
    for (subject, log), stated in sums.items():
        planned = stated.get("planned") or 1
        yield Stated(subject, f"{stated['where']}: {log!r}", 0, planned, "no file of this name")


def _rows(mapping: ResponseMapping, file: Path) -> Iterator[tuple[TableRecord, dict[str, Any]]]:
    """Yield each row with its fields."""
    texts = {"subject": "$file", **mapping.given, "metric": getattr(mapping, "metric", "")}
    fields = {}
    for name, text in texts.items():
        if text and name != "rows":
            fields[name] = parse_expression(text, name)
    plain = any("$value" in text for text in texts.values())
    # a tool with files of JSON as well writes one record of them a line
    lines = getattr(mapping, "begins", "") and suffix_of(file) == ".jsonl"
    for row in read_records(file, "" if lines else mapping.rows):
        if plain or isinstance(row.names["value"], Mapping):  # beside objects there may be values, as in rows = "*"
            yield row, {name: expression(row.data, row.names) for name, expression in fields.items()}


def _scores(values: Mapping[str, Any], mapping: ResponseMapping, settings: ReadSettings) -> Mapping[str, Any] | None:
    """Return the scores of a row by metric, none for a missing one; None for a row without a response."""
    if mapping.score:
        value = values.get("score")
    else:
        value = grade_reply(values, settings.items)
    if values.get("error") or (value is None and isinstance(mapping, LogTable)):
        return {}
    if not (isinstance(mapping, LogTable) and isinstance(value, Mapping)):
        if value is None:
            return None
        return {"score": value}
    main = str(values.get("metric"))
    if main in value and settings.metric is None:
        return {main: value[main]}
    return value


def _name(values: Mapping[str, Any], field: str, row: TableRecord) -> str:
    """Return the subject, or the id of the item, by default a hash of its question."""
    value = values.get(field)
    if value is None and field == "item" and isinstance(values.get("question"), str | list):
        value = hash_of(values["question"])  # logs without ids join by content
    try:
        return named(value, field, row.where)
    except ResponsesError as error:
        raise ResponsesError(f"{error}; give --set {field}=COLUMN with it; there are {_keys(row)}, $file") from None


def _sums(table: LogTable, file: Path) -> Mapping[tuple[str, str], _Sums]:
    """Return what a tool states about each subject and log; of several rows of one the numbers are added."""
    if table.stated_in:
        stating = sorted(file.absolute().parent.parent.parent.glob(table.stated_in))
    else:
        stating = [file]
    names = ("subject", "log", "planned", "total", "mean", "measure")
    fields = {name: parse_expression(text) for name in names if (text := getattr(table, name))}
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for file_of_sums in stating:
        for row in read_records(file_of_sums, table.stated) if suffix_of(file_of_sums) == ".json" else ():
            values = {name: expression(row.data, row.names) for name, expression in fields.items()}
            if values.get("planned") is None:
                continue
            log = str(values.pop("log", ""))
            of_log = sums.setdefault((_name(values, "subject", row), log), {"where": file_of_sums})
            for name in ("planned", "total"):
                if values.get(name) is not None:
                    of_log[name] = of_log.get(name, 0) + values[name]
            of_log |= {name: values[name] for name in ("mean", "measure") if name in values}
    return sums


def _complete(chosen: ResponseMapping, file: Path, settings: ReadSettings) -> ResponseMapping:
    """Return the mapping with the fields that the names of a file's columns show."""
    by_names = clear_names(read_records(file, chosen.rows)).given
    if chosen.score or (chosen.answer and (chosen.target or settings.items)):
        by_names.pop("score", None)
    added = ResponseMapping(**{field: text for field, text in by_names.items() if field not in chosen.given})
    if added.given:
        settings.note(f"{file.name}: by the names of its columns, {added.options}")
    return chosen.with_defaults(added)


def _keys(row: TableRecord) -> str:
    keys = [*row.data][:_KEYS] or ["$key", "$value"]
    return ", ".join(map(str, keys)) + (", .." if len(row.data) > _KEYS else "")


def _nothing_read(file: Path, mapping: ResponseMapping) -> str:
    """Return the sentence on a file without any score."""
    row = next(iter(read_records(file, mapping.rows)), None)
    if mapping.score:
        problem = f"no row has a value at score {mapping.score!r:.80}"
    else:
        problem = "no column holds scores"
    return (
        f"{file}: {problem}; give --set score=COLUMN, or answer and target to compare; the first record has "
        f"{'no rows' if row is None else _keys(row)}"
    )


def propose(path: Path) -> str:
    """Return a sentence on the options by which a file of no format was read on trial; empty if there are none."""
    if suffix_of(path):
        mapping = clear_names(read_records(path))
    else:
        mapping = ResponseMapping()
    scored = mapping.score or (mapping.answer and mapping.target)
    if not ((mapping.item or mapping.question) and scored):
        return ""
    try:
        read_mapped(path, ReadSettings(mapping=mapping))
    except UsageError:
        return ""
    return f". The names of its columns suggest: {mapping.options}"


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
