"""Join the ids of logs to the ids of one's own items."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.banks.items import is_item_id
from pytest_adaptive_eval.banks.rows import suffix_of
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import reading
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.tables import read_rows
from pytest_adaptive_eval.text import Tell, counted

#: Value of ``ids`` that joins by the text of the question.
QUESTION = "question"


def rename_items(responses: Responses, ids: str, items: Sequence[Item] = ()) -> tuple[Responses, int]:
    """Return the responses under other ids, and the number of items that are left out since `ids` gives them none.

    Args:
        ids: A table with the id in the log and the other id in each row; a field of the logs, such as
            ``doc.id``; ``question``, for items with the same text; a regular expression for a whole id, whose first
            group is the other id; or a prefix to strip.

    Raises:
        ResponsesError: `ids` fits no item, or gives two items the same id.
    """
    rename = _renamer(responses, ids, items)
    names = {}
    for item in responses.items:
        if name := rename(item):
            names[item] = name
    if not names:
        raise ResponsesError(
            f"--ids {ids!r:.80} fits none of the items of {responses.source}, such as {responses.items[0]!r:.80}; "
            "expected a prefix, a regular expression with a group, a field of the logs, or a file of pairs"
        )
    twice, count = Counter(names.values()).most_common(1)[0]
    if count > 1:
        first, second = [item for item, name in names.items() if name == twice][:2]
        raise ResponsesError(
            f"--ids {ids!r:.80} gives {first!r:.80} and {second!r:.80} the same id {twice!r:.80}; keep more of the id"
        )
    return _with_names(responses, names), len(responses.items) - len(names)


def _with_names(responses: Responses, names: Mapping[str, str]) -> Responses:
    """Return the responses to some items, under other names."""
    is_named = np.array([item in names for item in responses.items])
    administered = responses.administered
    return replace(
        responses,
        items=tuple(names.values()),
        scores=responses.scores[:, is_named],
        questions={name: responses.questions[item] for item, name in names.items() if item in responses.questions},
        replies={name: responses.replies[item] for item, name in names.items() if item in responses.replies},
        administered=None if administered is None else administered[:, is_named],
    )


def _renamer(responses: Responses, ids: str, items: Sequence[Item]) -> Callable[[str], str | None]:
    """Return the function from an id to another one, or None."""
    questions = responses.questions
    if suffix_of(Path(ids)):
        return _read_pairs(Path(ids)).get
    if ids == QUESTION:
        by_text = {}
        for item in items:
            if item.prompt:
                by_text[" ".join(item.prompt.split())] = item.id
        texts = {name: " ".join(question.prompt.split()) for name, question in questions.items()}
        return lambda name: by_text.get(texts.get(name, ""))
    if any(ids in question.names for question in questions.values()):
        return lambda name: questions[name].names.get(ids) if name in questions else None
    try:
        pattern = re.compile(ids if "(" in ids else f"{re.escape(ids)}(.*)", re.DOTALL)
    except re.error as error:
        raise ResponsesError(f"--ids {ids!r:.80} is not a regular expression ({error})") from None
    if not pattern.groups:
        raise ResponsesError(f"--ids {ids!r:.80} has no group; put the part of the id that is kept in parentheses")
    return lambda name: match[1] if (match := pattern.fullmatch(name)) else None


def _read_pairs(path: Path) -> dict[str, str]:
    """Return the other id of each id in a table of two columns."""
    pairs: dict[str, str] = {}
    with reading(path, ResponsesError):
        rows = list(read_rows(path))
    for number, row in rows:
        old, *others = map(str.strip, row)
        if len(others) != 1 or pairs.setdefault(old, others[0]) != others[0]:
            raise ResponsesError(
                f"{path}, line {number}: {', '.join(row)!r:.80}, expected the id in the log and one other id"
            )
    return pairs


def with_item_ids(responses: Responses, note: Tell) -> Responses:
    """Return the responses with ids that items of a bank can have; other ids are replaced."""
    names = {}
    for name in responses.items:
        if is_item_id(name):
            names[name] = name
        else:
            names[name] = _item_id(name)
    changed = [(old, new) for old, new in names.items() if old != new]
    if not changed:
        return responses
    example = f"{changed[0][0]!r:.60}, now {changed[0][1]}"
    note(f"{counted(len(changed), 'id')} cannot name tests and became others, such as {example}")
    return _with_names(responses, names)


def _item_id(name: str) -> str:
    """Return an id that names a test, different for different names."""
    plain = re.sub(r":{2,}", ":", re.sub(r"[^!-Z\\^-~]+", "_", name))
    return f"{plain[:100].strip('_')}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
