"""Recorded answers as a subject, to try a policy or a gate without a model.

Two formats are read here:

* a matrix, CSV or gzipped CSV, with one row per subject and one column per
  item.  The first column is ``subject``; ``run`` and ``step`` may follow.  A
  cell holds a score in [0, 1], or nothing for an item without an answer;
* JSON lines, one answer per line: ``{"id": ..., "text": ..., "score": ...,
  "status": ..., "detail": ...}``, with a text, a score or a status.  The score
  of an answer with a text counts for items without a grader.

Records of runs, and logs of tools, are read by the extension ``logs``.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.inputs import StrPath
from pytest_adaptive_eval.items.grading import needs_judge
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.tables import ITEM_WORDS, SUBJECT_WORDS, Cells, MatrixRow, MatrixTable, read_lines


class ReplayModel(Model):
    """Recorded answers, looked up by item id.

    Created by `load`. An item without a recorded answer gets the status ``not_run``, and one whose recorded answer has
    no score ``not_recorded``.

    Args:
        source: File of the answers, for the record.
    """

    varies = False
    rates_texts = True  # recorded answers may come from likelihoods

    def __init__(self, name: str, answers: Mapping[str, Completion], source: str = "") -> None:
        content = {}
        for key, a in answers.items():
            content[key] = [a.text, a.score, a.status.value, a.detail]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        super().__init__(SubjectIdentity(name, digest, environment={"source": source}, hashes_files=True))
        self._answers = dict(answers)

    @classmethod
    def load(cls, path: StrPath, subject: str | None = None, /, **options: Any) -> ReplayModel:
        """Read recorded answers.

        Args:
            path: A matrix (``.csv``, ``.csv.gz``), JSON lines of answers, a run's record, or logs of another tool.
            subject: Row of a matrix, or subject of the logs; optional if there is only one. For JSON lines of answers
                it is the subject's name, by default that of the file.
            options: Settings by which logs are read, see `extensions.logs.replay.ReplayTable`.

        Raises:
            ConfigError: The file is missing, malformed or not whole, or has no such subject.
        """
        file = Path(path)
        with _reporting(file):
            if options or not _is_own(file):
                logged: ReplayModel = service("replay_log", "logs")(file, subject, options)
                return logged
            if file.suffix == ".jsonl":
                name = subject or file.stem
                answers = _read_json_lines(file)
            else:
                name, answers = _read_matrix(file, subject)
        return cls(name, answers, str(file))

    @property
    def notes(self) -> list[str]:
        """Sentences on how the answers join items."""
        return []

    @property
    def no_reuse(self) -> str:
        """Recorded answers are never asked for."""
        return "the answers are recorded ones"

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order; raise ConfigError for a bare prompt, which has no id."""
        if any(not item.id for item in items):
            raise ConfigError(
                f"recorded answers of {self.identity.name!r} are looked up by item id, and a bare prompt has none; "
                "pass the item: `model.generate(item)` or `item.score(model.score(item))`"
            )
        return [self.find(item) for item in items]

    def request(self, item: Item) -> bytes:
        """Return the id, by which the answer is found, with what is asked; see the base class."""
        return item.id.encode() + super().request(item)

    def find(self, item: Item) -> Completion:
        """Return the recorded answer to an item; its text counts where there is a grader, else its score."""
        recorded = self._answers.get(item.id)
        if recorded is None:
            problem = f"no answer of {self.identity.name!r} to {item.id!r} was recorded"
            detail = f"{problem}: record it, or ask a bank of recorded items"
            return Completion("", Status.NOT_RUN, detail=detail)
        if recorded.text.strip() and grades_text(item):
            return replace(recorded, score=None)
        return recorded


def grades_text(item: Item) -> bool:
    """Return whether an item has a grader of texts here."""
    return item.likelihood is None and not item.meta.get("textless") and item.custom is not needs_judge


def _is_own(file: Path) -> bool:
    """Return whether a file is a matrix with subjects in rows, or JSON lines of answers; by its first line."""
    if not file.name.endswith((".csv", ".csv.gz", ".jsonl")):
        return False
    if file.suffix != ".jsonl":
        return MatrixTable(file).corner not in (*ITEM_WORDS, "index")
    try:
        first = json.loads(next(read_lines(file), ""))
    except (ValueError, RecursionError):
        return True
    keys: set[str] = set()
    if isinstance(first, dict):
        keys = set(first)
    return not keys or "id" in keys or bool(keys & {"text", "status"})


@contextlib.contextmanager
def _reporting(file: Path) -> Iterator[None]:
    """Raise ConfigError in place of the errors of readers."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"recorded answers {str(file)!r} cannot be read: {error.strerror or error}; give the path of a file"
        ) from error
    except ResponsesError as error:
        raise ConfigError(str(error)) from error


def _read_matrix(file: Path, subject: str | None) -> tuple[str, dict[str, Completion]]:
    """Return the name of a subject in a matrix, and its answers by item id."""
    table = MatrixTable(file)
    if table.corner not in SUBJECT_WORDS:
        raise ConfigError(f"{file}, line 1: the first column is {table.corner!r}, expected 'subject', then item ids")
    chosen = _row_of(table, file, subject)
    cells = Cells()
    try:
        scores = [cells[cell] for cell in chosen.cells]
    except ValueError:
        raise table.bad_cell(chosen, cells) from None
    missing = Completion("", Status.NOT_RECORDED, detail="no answer was recorded")
    answers = {}
    for item, score in zip(table.columns, scores, strict=True):
        if math.isnan(score):
            answers[item] = missing
        else:
            answers[item] = Completion("", score=score)
    return chosen.identity, answers


def _row_of(table: MatrixTable, file: Path, subject: str | None) -> MatrixRow:
    """Return the row of a subject, or the only row without a name."""
    chosen = None
    names = []
    for row in table:
        names.append(row.identity)
        if subject in (None, row.identity):
            chosen = row
    if chosen is None or (subject is None and len(names) > 1):
        near = difflib.get_close_matches(subject or "", names, 5, 0.0)
        if subject is None:
            fault = f"{len(names)} subjects"
        else:
            fault = f"no subject {subject!r}"
        raise ConfigError(f"{file} has {fault}; choose one, such as {', '.join(map(repr, near)) or 'none'}")
    return chosen


def _read_json_lines(file: Path) -> dict[str, Completion]:
    """Return the answers of a JSON lines file by item id."""
    answers = {}
    for number, line in enumerate(read_lines(file), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            answer = msgspec.json.decode(line, type=_Answer)
        except (ValueError, RecursionError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"{where}: {error}; expected one JSON object with the item's id, and a text, a score in [0, 1] or a "
                "status"
            ) from error
        if answer.id in answers:
            raise ConfigError(f"{where}: item {answer.id!r} is there twice; keep one answer per item")
        unfit = answer.score is not None
        if not answer.status.infrastructure:
            unfit = answer.status is Status.OK and answer.text is None and answer.score is None
        if unfit:
            if answer.prompt is not None:
                raise ConfigError(
                    f"{where}: expected an answer, found a question; name a file of recorded answers, or a run's record"
                )
            raise ConfigError(
                f"{where}: status {answer.status.value!r} with score {answer.score!r} and text {answer.text!r:.80}; "
                "an answer that is ok has a text or a score, and one that failed has no score"
            )
        answers[answer.id] = Completion(answer.text or "", answer.status, answer.score, answer.detail)
    return answers


class _Answer(msgspec.Struct):
    """One line of recorded answers."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    text: str | None = None
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    status: Status = Status.OK
    detail: str = ""
    prompt: Any = None
