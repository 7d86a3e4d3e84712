"""Join the ids of logs to the ids of one's own items."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_adaptive_eval.banks.items import is_item_id
from pytest_adaptive_eval.banks.rows import load_file, suffix_of
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.tables import read_rows
from pytest_adaptive_eval.text import counted

#: Value of ``ids`` that joins by the text of the question.
QUESTION = "question"


def rename_items(responses: Responses, ids: str, items: Sequence[Item] = ()) -> tuple[Responses, int]:
    """Return the responses under other ids, and the number of items that are left out since `ids` gives them none.

    Args:
        ids: A file with the id in the log and the other id in each row or record; a field of the logs, such as
            ``doc.id``; ``question``, for items with the same text; a regular expression for a whole id, whose first
            group is the other id; or a prefix to strip.

    Raises:
        ResponsesError: `ids` fits no item, or gives two items the same id.
    """
    rename = _renamer(responses, ids, items)
    renamed = [rename(item) for item in responses.items]
    columns = [column for column, name in enumerate(renamed) if name]
    if not columns:
        raise ResponsesError(
            f"--ids {ids!r:.80} fits none of the items of {responses.source}, such as {responses.items[0]!r:.80}; "
            "expected a prefix, a regular expression with a group, a field of the logs, or a file of pairs"
        )
    names = [name for name in renamed if name]
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        first, second = [item for item, name in zip(responses.items, renamed, strict=True) if name == twice][:2]
        raise ResponsesError(
            f"--ids {ids!r:.80} gives {first!r:.80} and {second!r:.80} the same id {twice!r:.80}; keep more of the id"
        )
    return _with_names(responses, columns, names), len(renamed) - len(columns)


def _with_names(responses: Responses, columns: Sequence[int], names: Sequence[str]) -> Responses:
    """Return the responses to the items at some positions, under other names."""
    by_name = {name: responses.items[column] for column, name in zip(columns, names, strict=True)}
    questions = {name: responses.questions[old] for name, old in by_name.items() if old in responses.questions}
    replies = {name: responses.replies[old] for name, old in by_name.items() if old in responses.replies}
    positions = np.asarray(columns, int)
    return replace(
        responses,
        items=tuple(names),
        scores=responses.scores[:, positions],
        questions=questions,
        replies=replies,
        administered=None if responses.administered is None else responses.administered[:, positions],
    )


def _renamer(responses: Responses, ids: str, items: Sequence[Item]) -> Callable[[str], str | None]:
    """Return the function from an id to another one, or None."""
    questions = responses.questions
    if suffix_of(Path(ids)):
        return _read_pairs(Path(ids)).get
    if ids == QUESTION:
        by_text = {_folded(item.prompt): item.id for item in items if item.prompt}
        return lambda name: by_text.get(_folded(questions[name].prompt)) if name in questions else None
    if any(ids in question.names for question in questions.values()):
        return lambda name: questions[name].names.get(ids) if name in questions else None
    if "(" in ids:
        pattern = _pattern(ids)
        return lambda name: match[1] if (match := pattern.fullmatch(name)) else None
    return lambda name: name.removeprefix(ids) if name.startswith(ids) else None


def _pattern(ids: str) -> re.Pattern[str]:
    """Return a regular expression with a group."""
    try:
        pattern = re.compile(ids)
    except re.error as error:
        raise ResponsesError(f"--ids {ids!r:.80} is no regular expression ({error})") from None
    if not pattern.groups:
        raise ResponsesError(f"--ids {ids!r:.80} has no group; put the part of the id that is kept in parentheses")
    return pattern


def _read_pairs(path: Path) -> dict[str, str]:
    """Return the other id of each id in a table of two columns, or an object of JSON."""
    pairs: dict[str, str] = {}
    try:
        rows = list(load_file(path).items() if path.suffix == ".json" else (row for _, row in read_rows(path)))
    except OSError as error:
        raise ResponsesError(f"{path}: cannot be read: {error.strerror or error}; check the path of --ids") from None
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise ResponsesError(f"{path}, row {number}: {len(row)} cells, expected the id in the log and the other id")
        old, new = (str(cell).strip() for cell in row)
        if pairs.setdefault(old, new) != new:
            raise ResponsesError(f"{path}, row {number}: duplicate key {old!r:.80} with different ids; keep one row")
    return pairs


def _folded(text: str) -> str:
    return " ".join(text.split())


def with_item_ids(responses: Responses, note: Callable[[str], Any]) -> Responses:
    """Return the responses with ids that items of a bank can have; other ids are replaced."""
    names = [name if is_item_id(name) else _item_id(name) for name in responses.items]
    changed = [(old, new) for old, new in zip(responses.items, names, strict=True) if old != new]
    if not changed:
        return responses
    example = f"{changed[0][0]!r:.60}, now {changed[0][1]}"
    note(f"{counted(len(changed), 'id')} cannot name tests and became others, such as {example}")
    return _with_names(responses, range(len(names)), names)


def _item_id(name: str) -> str:
    """Return an id that names a test, different for different names."""
    plain = re.sub(r":{2,}", ":", re.sub(r"[^!-Z\\^-~]+", "_", name))
    return f"{plain[:100].strip('_')}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
