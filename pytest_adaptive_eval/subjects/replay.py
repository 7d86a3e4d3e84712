"""Recorded answers as a subject: no model is needed to try a policy or a gate.

Two formats are read:

* a matrix, CSV or gzipped CSV, a row a subject and a column an item.  The
  first column is ``subject``; ``run`` and ``step`` may follow.  A cell holds a
  score in [0, 1], or nothing where the item was not asked;
* JSON lines, a line an answer: ``{"id": ..., "text": ..., "score": ...,
  "status": ..., "detail": ...}``, with a text, a score or a status.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.subjects.base import Completion, Subject, SubjectIdentity

__all__ = ["ReplaySubject"]

#: Columns that may stand between ``subject`` and the items.
_ABOUT = ("run", "step")

#: Characters of a line; a hundred thousand items take about 2 million.
_LINE = 64_000_000


class ReplaySubject(Subject):
    """Answers that were recorded before, found by item id.

    Made by `load`.  An item without a recorded answer gets the status
    ``not_run``.

    Parameters
    ----------
    name : str
        Of the subject that gave the answers.
    answers : mapping of str to Completion
        By item id.
    source : str
        Where they come from, for the record.
    """

    varies = False

    def __init__(self, name: str, answers: Mapping[str, Completion], source: str = "") -> None:
        content = {key: [a.text, a.score, a.status.value, a.detail] for key, a in answers.items()}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        super().__init__(SubjectIdentity(name, digest, environment={"source": source}))
        self._answers = dict(answers)

    @classmethod
    def load(cls, path: str | os.PathLike[str], subject: str | None = None) -> ReplaySubject:
        """Read recorded answers.

        Parameters
        ----------
        path : path
            A ``.csv``, ``.csv.gz`` or ``.jsonl`` file.
        subject : str, optional
            Which row of a matrix; may be left out when there is only one.  For
            JSON lines it is only a name, by default the file's.

        Raises
        ------
        ConfigError
            The file is missing or malformed, or has no such subject.
        """
        file = Path(path)
        if file.name.endswith((".csv", ".csv.gz")):
            name, answers = _matrix(file, subject)
        elif file.suffix == ".jsonl":
            name, answers = subject or file.stem, _lines(file)
        else:
            raise ConfigError(f"recorded answers {str(file)!r}: expected a file .csv, .csv.gz or .jsonl")
        return cls(name, answers, str(file))

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """One completion an item, in order.

        Raises
        ------
        ConfigError
            An item has no id, as a bare prompt has none.
        """
        if any(not item.id for item in items):
            raise ConfigError(
                f"recorded answers of {self.identity.name!r} are found by item id, and a bare prompt has none; "
                "pass the item: `model.generate(item)` or `item.score(model.score(item))`"
            )
        return [self._answers.get(item.id) or self._missing(item) for item in items]

    def _missing(self, item: Item) -> Completion:
        return Completion("", Status.NOT_RUN, detail=f"no answer of {self.identity.name!r} to {item.id!r} was recorded")


def _read(file: Path) -> Iterator[str]:
    """Read the lines of a file, of bounded length."""
    number = 0
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(open_text(file))
        except OSError as error:
            raise ConfigError(
                f"recorded answers {str(file)!r} cannot be read: {error.strerror or error}; give the path of a file"
            ) from error
        try:
            while line := stream.readline(_LINE):
                number += 1
                if len(line) == _LINE:
                    raise ConfigError(f"{file}, line {number}: more than {_LINE} characters; split the file")
                yield line
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise ConfigError(f"{file}, after line {number}: {error}; expected UTF-8 text, whole") from error


def _matrix(file: Path, subject: str | None) -> tuple[str, dict[str, Completion]]:
    """One row of a matrix."""
    rows = csv.reader(_read(file), strict=True)
    chosen: tuple[int, list[str]] | None = None
    names: list[str] = []
    try:
        header = next(rows, [])
        if not header or header[0] != "subject":
            found = repr(header[0]) if header else "nothing"
            raise ConfigError(f"{file}, line 1: the first column is {found}, expected 'subject' and then the item ids")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise ConfigError(
                    f"{file}, line {rows.line_num}: {len(row)} columns, expected {len(header)} as in line 1"
                )
            if row[0] in names:
                raise ConfigError(
                    f"{file}, line {rows.line_num}: subject {row[0]!r} is there twice; rename or drop one"
                )
            names.append(row[0])
            if subject in (None, row[0]):
                chosen = rows.line_num, row
    except csv.Error as error:
        raise ConfigError(f"{file}, line {rows.line_num}: {error}; expected comma-separated values") from error
    if chosen is None or (subject is None and len(names) > 1):
        near = difflib.get_close_matches(subject or "", names, 5, 0.0)
        what = f"no subject {subject!r}" if names and subject is not None else f"{len(names)} subjects"
        raise ConfigError(f"{file} has {what}; choose one{', such as ' + ', '.join(map(repr, near)) if near else ''}")
    return chosen[1][0], _cells(file, header, *chosen)


def _cells(file: Path, header: list[str], line: int, row: list[str]) -> dict[str, Completion]:
    first = 1
    while first < len(header) and header[first] in _ABOUT:
        first += 1
    answers: dict[str, Completion] = {}
    for item, cell in zip(header[first:], row[first:], strict=True):
        if not item or item in answers:
            raise ConfigError(f"{file}, line 1: item id {item!r} is empty or there twice; ids are unique")
        if not cell.strip():
            answers[item] = Completion("", Status.NOT_RUN, detail="no answer was recorded")
            continue
        try:
            score = float(cell)
        except ValueError:
            score = float("nan")
        if not 0.0 <= score <= 1.0:
            raise ConfigError(f"{file}, line {line}, column {item!r}: {cell!r}, expected a number in [0, 1] or nothing")
        answers[item] = Completion("", score=score)
    return answers


def _lines(file: Path) -> dict[str, Completion]:
    """All answers of a JSON lines file."""
    answers: dict[str, Completion] = {}
    for number, line in enumerate(_read(file), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{where}: not JSON ({error}); expected one object a line") from error
        if not isinstance(data, dict) or not isinstance(data.get("id"), str) or not data["id"]:
            raise ConfigError(f"{where}: no `id`, expected an object with the item's id as text")
        if data["id"] in answers:
            raise ConfigError(f"{where}: item {data['id']!r} is there twice; keep one answer an item")
        answers[data["id"]] = _answer(where, data)
    return answers


def _answer(where: str, data: Mapping[str, Any]) -> Completion:
    text, score, detail = data.get("text"), data.get("score"), data.get("detail", "")
    if not isinstance(text, (str, type(None))) or not isinstance(detail, str):
        raise ConfigError(f"{where}: `text` is {text!r} and `detail` {detail!r}, expected text")
    if score is not None and (type(score) not in (int, float) or not 0.0 <= score <= 1.0):
        raise ConfigError(f"{where}: `score` is {score!r}, expected a number in [0, 1], or none")
    blank = text is not None and not text.strip() and score is None
    try:
        status = Status(data.get("status", Status.EMPTY if blank else Status.OK))
    except ValueError:
        raise ConfigError(
            f"{where}: `status` is {data['status']!r}, expected one of {', '.join(status.value for status in Status)}"
        ) from None
    if (text is None and score is None) if status is Status.OK else score is not None:
        raise ConfigError(
            f"{where}: status {status.value!r} with score {score!r} and {'no' if text is None else 'a'} text; "
            "an answer that is ok has a text or a score, and no other has a score"
        )
    return Completion(text or "", status, None if score is None else float(score), detail)
