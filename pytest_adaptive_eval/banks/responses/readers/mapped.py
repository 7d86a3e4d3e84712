"""Rows of any file, by a mapping of its columns: makers' own outputs, tables of data frames, logs of other tools."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pytest_adaptive_eval.banks.expressions import hash_of, parse_expression
from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, files_that, score
from pytest_adaptive_eval.banks.responses.mapping import own_scores, suggest_mapping
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
#: Share of the rows in which a comparison has to give the log's own score.
_AGREEING = 0.95
#: Rows on which that is looked at.
_CHECKED = 5000


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


@dataclass(slots=True)
class _Counts:
    """Numbers of rows of one read."""

    rows: int = 0
    scored: int = 0
    repeated: int = 0
    seen: set[tuple[str, str]] = field(default_factory=set)


def read_mapped(path: Path, settings: ReadSettings) -> Responses:
    """Read the rows of a file, or of all files in a folder, by the mapping of the settings.

    Fields that the mapping leaves out are taken from columns with clear names; a note says which. Duplicate responses
    count as their mean. A file without any score is passed over when others have one.
    """
    files = files_that(_is_table, path, f"no file with rows; expected {', '.join(SUFFIXES)}")
    chosen = settings.mapping or ResponseMapping()
    collected, counts, skipped = Collected(str(path)), _Counts(), []
    for file in files:
        mapping = _complete(chosen, file, settings)
        reader = _Reader(mapping, settings, collected, counts)
        if not reader.read(file):
            skipped.append((file, mapping))
    if not counts.scored:
        raise _nothing_read(*skipped[0])
    for file, _ in skipped:
        settings.note(f"{file}: no row has a score; it is left out")
    if missing := counts.rows - counts.scored:
        settings.note(f"{path.name}: {missing} of {counts.rows} rows have no score, and count as missing")
    if counts.repeated:
        settings.note(
            f"{path.name}: {counts.repeated} of {counts.rows} rows repeat a subject and item; the mean of their scores "
            "counts"
        )
    collected.check_questions("give --set item=EXPRESSION that tells the questions apart")
    return collected.responses()


class LogTable(ResponseMapping, frozen=True, kw_only=True):
    """The logs of one tool as a table: the mapping of its records, and how its files are recognised.

    Their score may be an object of scores by metric. A record without a score is a missing response.
    """

    content: Annotated[str, described("files of the tool, for help and errors")]
    keys: Annotated[tuple[str, ...], described("keys of the first of the JSON lines, each of which is a record")]
    begins: Annotated[str, described("pattern of the first characters of a file of JSON, which has the rows")] = ""
    needs: Annotated[str, described("what every record has")] = ""
    metric: Annotated[str, described("name of the metric that counts, where there are several")] = ""
    metrics: Annotated[str, described("meaning of the setting metric")] = ""
    group: Annotated[str, described("begin of the ids, where the records have several")] = ""
    one_text: Annotated[str, described("advice where an item has two texts; the first counts where empty")] = ""
    note: Annotated[str, described("what is said after reading")] = ""


def reader_of(name: str, table: LogTable) -> ResponseReader:
    """Return the reader of a tool's logs."""

    def recognises(path: Path) -> bool:
        if path.suffix == ".json":
            return bool(table.begins) and re.match(table.begins, head(path)) is not None
        return first_keys(path) >= {*table.keys}

    def read(path: Path, settings: ReadSettings) -> Responses:
        files = files_that(recognises, path, f"expected {table.content}")
        collected = Collected(str(path))
        rows = (row for file in files for row in read_records(file, table.rows))
        several = bool(table.group) and len({str(_value(table.group, row)) for row in rows}) > 1
        reader = _Reader(table, settings, collected, _Counts(), grouped=several)
        for file in files:
            reader.read(file)
        if table.one_text:
            collected.check_questions(table.one_text)
        if table.note:
            settings.note(f"{path.name}: {table.note}")
        return collected.responses()

    return ResponseReader(name, table.content, recognises, read, {"metric": table.metrics} if table.metrics else {})


def _value(expression: str, row: TableRecord) -> Any:
    return parse_expression(expression)(row.data, row.names) if expression else None


def _is_table(file: Path) -> bool:
    return file.name.removesuffix(".gz").lower().endswith(SUFFIXES)


def _complete(chosen: ResponseMapping, file: Path, settings: ReadSettings) -> ResponseMapping:
    """Return the mapping with the fields that the names of a file's columns show."""
    suggested = suggest_mapping(read_records(file, chosen.rows), verdict)
    if chosen.score or (chosen.answer and (chosen.target or settings.items)):
        suggested = ResponseMapping(**{k: v for k, v in suggested.given.items() if k != "score"})
    mapping = chosen.with_defaults(suggested)
    if "score" not in chosen.given and (fault := _fault(file, mapping)):
        raise ResponsesError(f"{file}: {fault}")
    if added := {k: v for k, v in mapping.given.items() if k not in chosen.given}:
        settings.note(f"{file.name}: by the names of its columns, {ResponseMapping(**added).options}")
    return mapping


def _fault(file: Path, mapping: ResponseMapping) -> str:
    """Return why the scores of a suggested comparison differ from the log's; empty if nothing says so."""
    if " == " not in mapping.score:
        return ""
    compared = parse_expression(mapping.score)
    rows = equal = 0
    own: dict[str, list[bool]] = {}
    for row in islice(read_records(file, mapping.rows), _CHECKED):
        if (value := compared(row.data, row.names)) is not None:
            rows, equal = rows + 1, equal + bool(value)
            for path, score in own_scores(row.data, verdict).items():
                own.setdefault(path, []).append(score == float(value))
    agreed = {path: sum(agrees) / len(agrees) for path, agrees in own.items() if len(agrees) >= _AGREEING * rows}
    best = max(agreed, key=lambda path: agreed[path], default="")
    if best and agreed[best] < _AGREEING:
        return (
            f"{mapping.score} holds in {equal} of {rows} rows, and its own score {best} is another in "
            f"{100 * (1 - agreed[best]):.0f} % of them; give --set score={best}, or a score with a filter"
        )
    return "" if equal else f"{mapping.score} holds in none of {rows} rows; give --set score=COLUMN with its own scores"


class _Reader:
    """Reading of files by one mapping, which may be a tool's table."""

    def __init__(
        self,
        mapping: ResponseMapping,
        settings: ReadSettings,
        collected: Collected,
        counts: _Counts,
        *,
        grouped: bool = False,
    ) -> None:
        self._mapping, self._settings, self._collected, self._counts = mapping, settings, collected, counts
        self._tool, self._grouped = mapping if isinstance(mapping, LogTable) else None, grouped
        self._metrics: dict[str, str] = {}
        self._fields = {name: parse_expression(text, name) for name, text in mapping.given.items() if name != "rows"}

    def read(self, file: Path) -> bool:
        """Read one file; return whether any row has a score."""
        before = self._counts.scored
        plain = any("$value" in text for text in self._mapping.given.values())
        # a tool with files of JSON as well writes one record of them a line
        lines = self._tool is not None and bool(self._tool.begins) and suffix_of(file) == ".jsonl"
        for row in read_records(file, "" if lines else self._mapping.rows):
            if plain or isinstance(row.names["value"], Mapping):  # beside objects there may be values, as in rows = "*"
                self._read_row(row, file)
        return self._counts.scored > before

    def _read_row(self, row: TableRecord, file: Path) -> None:
        counts = self._counts
        counts.rows += 1
        values = {name: expression(row.data, row.names) for name, expression in self._fields.items()}
        values["score"] = math.nan if values.get("error") else self._score(values, row)
        if values["score"] is None:
            return
        counts.scored += 1
        subject = self._name(values.get("subject", row.names["file"]), "subject", row)
        item_id = values.get("item")
        if item_id is None and isinstance(values.get("question"), str | list):
            item_id = hash_of(values["question"])  # logs without ids join by content
        item = self._name(item_id, "item", row)
        if self._tool and self._grouped:
            item = f"{_value(self._tool.group, row)}:{item}"
        counts.repeated += (subject, item) in counts.seen
        counts.seen.add((subject, item))
        self._collected.add(subject, item, values["score"])
        question = as_question(values, file)
        if question is not None:
            self._collected.ask(item, question, row.where)
        self._collected.reply(item, values.get("answer"), values["score"])

    def _score(self, values: Mapping[str, Any], row: TableRecord) -> float | None:
        """Return the score of a row; None where it has none, NaN where it is missing."""
        if "score" not in self._fields:
            return grade_reply(values, self._settings.items)
        value = values["score"]
        if self._tool:
            if self._tool.needs and (found := _value(self._tool.needs, row)) in (None, [], {}):
                raise ResponsesError(
                    f"{row.where}: {self._tool.needs} is {found!r:.80}, expected a value as in {self._tool.content}"
                )
            value = self._of_metric(value, row) if isinstance(value, Mapping) else value
            return math.nan if value is None else score(value, f"{row.where}, {self._mapping.score}")
        if value is None:
            return None
        try:
            return verdict(value)
        except ValueError:
            raise ResponsesError(
                f"{row.where}: the score {self._mapping.score} is {value!r:.80}, expected a number in [0, 1], a truth "
                "value or a verdict such as correct; write it with a function, such as --set score="
                f"\"lookup({self._mapping.score}, 'good=1,bad=0')\" or 'scale({self._mapping.score}, `1`, `10`)'"
            ) from None

    def _of_metric(self, values: Mapping[str, Any], row: TableRecord) -> Any:
        """Return the value of the metric that the settings or the tool name, the same in all rows of a file."""
        assert self._tool is not None
        main = _value(self._tool.metric, row)
        requested = self._settings.metric or (main if main in values else None)
        name = choose("metric", values, requested, f"{row.where}, metrics")
        first = self._metrics.setdefault(str(row.names["file"]), name)
        if name != first:
            raise ResponsesError(f"{row.where}: the metric {name!r}, and {first!r} before; give metric one of them")
        return values[name]

    def _name(self, value: Any, field: str, row: TableRecord) -> str:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value).strip()):
            return text
        expression = self._mapping.given.get(field)
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
    """Return a sentence on the options that read a file or folder of no format, or why none do; empty if no reason."""
    files = [file for file in files_of(path) if _is_table(file)] if path.is_dir() else [path] if _is_table(path) else []
    faults: list[str] = []
    for file in files[:_KEYS]:
        if text := _proposal(file, faults):
            return f"Its rows can be read by a mapping: {text}"
    return f"No mapping of its columns is proposed: {faults[0]}" if faults else ""


def _proposal(file: Path, faults: list[str]) -> str:
    """Return the suggested options for one file; empty if they read no score, or others than `faults` then says."""
    try:
        mapping = suggest_mapping(read_records(file), verdict)
        if not mapping.item:
            return ""
        if not mapping.score:
            is_text = all(isinstance(row.names.get("value"), str) for row in read_records(file))
            options = "--set item='$key' --set answer='$value' --items ITEMS.jsonl"
            return f"{options} grades its answers by your own items" if is_text and mapping.item == "$key" else ""
        if fault := _fault(file, mapping):
            faults.append(f"in {file.name}, {fault}")
            return ""
        counts = _Counts()
        _Reader(mapping, ReadSettings(), Collected(str(file)), counts).read(file)
    except ResponsesError:
        return ""
    is_plain = "$value" in mapping.score
    if not counts.scored or (is_plain and counts.scored < counts.rows):
        return ""
    return f"{mapping.options} reads {counts.scored} of {counts.rows} rows of {file.name}"


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
