"""Files of a folder, choice among names and collection of scores, shared by the response readers."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pytest_adaptive_eval.banks.responses.base import ReadSettings
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import FormatResponses, LoggedQuestion, Reply, Responses, Stated
from pytest_adaptive_eval.tables import SUBJECT_WORDS, read_rows

#: Levels of folders searched below the path; the tools' own layouts have three.
_DEPTH = 5
#: Answers kept of an item, and the longest.
_REPLIES, _REPLY_LENGTH = 4, 8000


def files_of(folder: Path) -> list[Path]:
    """Return files in a folder and `_DEPTH` levels below, sorted by path.  Links are followed, each folder once."""
    paths: list[Path] = []
    visited: set[str] = set()
    for base, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(base)) in visited or len(Path(base).relative_to(folder).parts) > _DEPTH:
            folders.clear()
            continue
        visited.add(real)
        folders.sort()
        # Excel and macOS create files with the same suffix and other content next to open ones.
        paths += [Path(base) / name for name in names if not name.startswith(("~$", "._"))]
    return sorted(path for path in paths if path.is_file())


def files_that(recognised: Callable[[Path], bool], path: Path, expected: str) -> list[Path]:
    """Return the file, or the recognised files of a folder.

    Raises:
        ResponsesError: There is none; the message ends with what is expected.
    """
    files = [file for file in files_of(path) if recognised(file)] if path.is_dir() else [path]
    if not files:
        raise ResponsesError(f"{path}: {expected}")
    return files


def score(value: Any, where: str) -> float:
    """Return a score as a number, NaN where it is missing; refuse what is not in [0, 1], a truth value, None or NaN.

    Raises:
        ResponsesError: The value is not a number in [0, 1], a truth value, None or NaN.
    """
    if value is None:
        return math.nan
    if isinstance(value, int | float) and (0 <= value <= 1 or math.isnan(value)):
        return float(value)
    raise ResponsesError(
        f"{where}: found {value!r:.80}, expected a score in [0, 1], true, false, or null where missing"
    )


def named(value: Any, field: str, where: str) -> str:
    """Return an id as text; whole numbers are ids too; raise ResponsesError for other values."""
    if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value).strip()):
        return text
    raise ResponsesError(f"{where}: {field} is {value!r:.80}, expected a text or a whole number")


def choose(setting: str, names_present: Collection[str], requested: str | None, where: str) -> str:
    """Choose one of several names.  An ambiguous choice is an error, never a guess.

    Args:
        setting: Name of the setting that `requested` is from, for messages.
        requested: One name, or several separated by commas. The first of them in `names_present` is used. So tasks with
            different names can be read together.

    Raises:
        ResponsesError: Several names and no request, or no requested name is present.
    """
    if requested is None:
        if len(names_present) == 1:
            return next(iter(names_present))
        problem = "and no choice between them"
    else:
        for name in requested.split(","):
            if name.strip() in names_present:
                return name.strip()
        problem = f"and {setting} is {requested!r}"
    names = sorted(names_present)
    raise ResponsesError(
        f"{where}: found {', '.join(map(repr, names[:12])) or 'none'} {problem}; give {setting} one of them, or "
        "several with commas, of which the first one present counts"
    )


class Answer(NamedTuple):
    """One answer in a log.

    Args:
        values: Scores by metric, as they are logged; empty where it was not scored.
        sample: What tells several answers to the item apart, such as an epoch.
        filter: How the answer was read, where a tool logs it several times.
    """

    where: str
    item: str
    values: Mapping[str, Any]
    question: LoggedQuestion | None = None
    reply: Any = None
    sample: str = ""
    filter: str = ""


class TaskLog(NamedTuple):
    """The answers of a subject to the questions of a task, in one log.

    Args:
        created: Number or text that sorts logs by time.
        planned, status: As in `Stated`.
        accuracies: Mean scores that the log states, by metric, or by metric and filter with a comma.
        unscored: Why none of the answers has a score; empty otherwise.
    """

    where: str
    subject: str
    answers: Sequence[Answer]
    created: Any = ""
    planned: int | None = None
    status: str = ""
    accuracies: Mapping[str, Any] = MappingProxyType({})
    unscored: str = ""

    @property
    def filters(self) -> set[str]:
        """Names of all filters."""
        return {answer.filter for answer in self.answers}

    @property
    def metrics(self) -> set[str]:
        """Names of all metrics that some answer has a value of."""
        return {name for answer in self.answers for name, value in answer.values.items() if value is not None}

    def only(self, filter_name: str) -> TaskLog:
        """Return the log with the answers of one filter."""
        return self._replace(answers=[answer for answer in self.answers if answer.filter == filter_name])

    def stated(self, held: int, metric: str, filter_name: str, measured: float | None) -> Stated:
        """Return what the log states, besides what it holds."""
        accuracy = self.accuracies.get(f"{metric},{filter_name}" if filter_name else metric)
        known = float(accuracy) if isinstance(accuracy, int | float) else None
        planned = (self.planned or 1) if self.unscored else self.planned
        return Stated(self.subject, self.where, held, planned, self.status, known, measured)


class Collected:
    """Accumulator of scores.  Several scores of one subject on one item count as their mean.

    Args:
        texts: Whether all answers are kept as texts, or a few of each item.

    Attributes:
        stated: What the logs state about themselves.
    """

    def __init__(self, source: str, *, texts: bool = False) -> None:
        self._source, self._texts = source, texts
        self._items: dict[str, int] = {}
        self._scores: dict[str, tuple[array[int], array[float]]] = {}
        self._questions: dict[str, tuple[LoggedQuestion, str]] = {}
        self._replies: dict[str, list[Reply]] = {}
        self._changed: dict[str, str] = {}
        self.stated: list[Stated] = []

    @property
    def repeated(self) -> int:
        """Number of scores of a subject on an item that it has a score on already."""
        return sum(len(positions) - len(set(positions)) for positions, _ in self._scores.values())

    def add(self, subject: str, item: str, score: float, text: object = None) -> None:
        """Add one score, with its answer if that is a text; NaN means that the item is present without a score."""
        positions, scores = self._scores.setdefault(subject, (array("q"), array("d")))
        positions.append(self._items.setdefault(item, len(self._items)))
        scores.append(score)
        if isinstance(text, str):
            self._add_reply(item, Reply(subject, text, score))

    def _add_reply(self, item: str, reply: Reply) -> None:
        replies = self._replies.setdefault(item, [])
        is_example = len(replies) < _REPLIES and len(reply.text) <= _REPLY_LENGTH and not math.isnan(reply.score)
        if self._texts or is_example:
            replies.append(reply)

    def ask(self, item: str, question: LoggedQuestion, where: str) -> None:
        """Add what a log holds of an item; of several logs the first counts."""
        first, _ = self._questions.setdefault(item, (question, where))
        if _words(first) != _words(question):
            self._changed.setdefault(item, where)

    def add_task(self, logs: Sequence[TaskLog], settings: ReadSettings, where: str) -> None:
        """Add the logs of all subjects on a task, by one filter and one metric.

        Of several logs of a subject, each item's score is that of the newest log that has one.

        Raises:
            ResponsesError: There are several filters or metrics and none is requested, a log lacks the metric, or a
                value is not a score.
        """
        scored = [log for log in logs if not log.unscored]
        filters = set[str]().union(*(log.filters for log in scored))
        filter_name = choose("filter", filters, settings.filter, f"{where}, filters") if filters - {""} else ""
        chosen = [log.only(filter_name) for log in scored]
        metrics = set[str]().union(*(log.metrics for log in chosen))
        metric = choose("metric", metrics, settings.metric, f"{where}, metrics") if scored else ""
        for subject in dict.fromkeys(log.subject for log in logs):
            own = _newest_first(chosen, subject)
            if len(own) > 1:
                settings.note(f"{where}: {len(own)} logs of {subject}; for each item the newest score counts")
            latest = _newest_first(logs, subject)[0]
            self.stated.append(latest.stated(*self._add_logs(own, metric, filter_name)))

    def _add_logs(self, logs: Sequence[TaskLog], metric: str, filter_name: str) -> tuple[int, str, str, float | None]:
        """Add a subject's logs, the newest first; return their number of samples, and the mean of the newest."""
        means: list[float | None] = []
        held: set[tuple[str, str]] = set()
        settled: set[str] = set()
        for log in logs:
            if metric not in log.metrics:
                raise ResponsesError(
                    f"{log.where}: no score {metric!r}, which the other logs of the task have; score it, run it again, "
                    "or remove it"
                )
            scores = [score(each.values.get(metric), f"{each.where}, metric {metric!r}") for each in log.answers]
            means.append(mean_score(scores))
            for answer, value in zip(log.answers, scores, strict=True):
                held.add((answer.item, answer.sample))
                if answer.item not in settled:
                    self.add(log.subject, answer.item, value, answer.reply)
                if answer.question is not None:
                    self.ask(answer.item, answer.question, answer.where)
            settled |= {answer.item for answer in log.answers if answer.values.get(metric) is not None}
        return len(held), metric, filter_name, means[0] if means else None

    def check_questions(self, fix: str) -> None:
        """Refuse items whose question differs between logs; the error names the first one, both places, and `fix`.

        Raises:
            ResponsesError: Names the first such item, both places, and `fix`.
        """
        if self._changed:
            item, where = next(iter(self._changed.items()))
            raise ResponsesError(
                f"{where}: the item {item!r:.80} has another question than in {self._questions[item][1]}, and so have "
                f"{len(self._changed)} of {len(self._questions)} items; {fix}"
            )

    def responses(self) -> Responses:
        """Return all scores, subjects and items in the order of their first score."""
        n = len(self._items)
        table = np.full((len(self._scores), n), np.nan)
        administered = np.zeros(table.shape, dtype=np.bool_)
        for row, asked, (positions, scores) in zip(table, administered, self._scores.values(), strict=True):
            columns, values = np.array(positions, dtype=np.int64), np.array(scores)
            asked[columns] = True
            scored = ~np.isnan(values)
            counts = np.bincount(columns[scored], minlength=n)
            sums = np.bincount(columns[scored], weights=values[scored], minlength=n)
            # Rounding can make a mean of thirds 1 + 2e-16.
            row[counts > 0] = np.minimum(sums[counts > 0] / counts[counts > 0], 1.0)
        questions = {item: question for item, (question, _) in self._questions.items() if item in self._items}
        return Responses(
            tuple(self._scores),
            tuple(self._items),
            table,
            source=self._source,
            questions=questions,
            administered=administered,
            replies=self._replies,
            stated=tuple(self.stated),
        )


def _newest_first(logs: Sequence[TaskLog], subject: str) -> list[TaskLog]:
    """Return the logs of a subject, the newest first."""
    return sorted((log for log in logs if log.subject == subject), key=attrgetter("created"), reverse=True)


def mean_score(scores: Sequence[float]) -> float | None:
    """Return the mean of the scores that are not missing; None without any."""
    known = [value for value in scores if not math.isnan(value)]
    return sum(known) / len(known) if known else None


def _words(question: LoggedQuestion) -> list[str]:
    """Return the words of a question, by which two logs' questions are compared."""
    return str(question.prompt or question.messages).split()


Matrix = TypeVar("Matrix", Responses, FormatResponses)


def with_families(responses: Matrix, path: Path) -> Matrix:
    """Return a copy of the responses with the families of a two-column CSV.

    Args:
        path: CSV with the header ``subject,family`` and a row for each subject. A subject with an empty family has a
            family of its own. Subjects without responses are ignored.

    Raises:
        ResponsesError: Wrong columns, a duplicate subject, or a subject of the responses without a row.
    """
    families = _read_families(path)
    if missing := [subject for subject in responses.subjects if subject not in families]:
        raise ResponsesError(
            f"{path}: no family for {len(missing)} of {len(responses.subjects)} subjects of {responses.source}, the "
            f"first {missing[0]!r}; add a row for each, with an empty family where it stands alone"
        )
    return replace(responses, families=tuple(families[subject] for subject in responses.subjects))


def _read_families(path: Path) -> dict[str, str]:
    """Return the family of each subject in the file."""
    rows = read_rows(path)
    _, header = next(rows, (0, []))
    words = [word.strip().lower() for word in header]
    if len(words) != 2 or words[0] not in SUBJECT_WORDS or words[1] not in ("family", "families", "run"):
        raise ResponsesError(f"{path}, line 1: found {','.join(header)!r:.80}, expected 'subject,family'")
    families: dict[str, str] = {}
    for number, row in rows:
        subject = row[0].strip()
        if len(row) != 2 or not subject:
            raise ResponsesError(
                f"{path}, line {number}: found {','.join(row)!r:.80}, expected a subject and its family"
            )
        if subject in families:
            raise ResponsesError(f"{path}, line {number}: the subject {subject!r} stands twice; keep one row")
        families[subject] = row[1].strip() or subject
    return families
