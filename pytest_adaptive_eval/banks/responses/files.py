"""Files of a folder, choice among names and collection of scores, shared by the response readers."""

from __future__ import annotations

import contextlib
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pytest_adaptive_eval.banks.responses.base import ReadSettings
from pytest_adaptive_eval.banks.rows import load_file
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.items.responses import FormatResponses, LoggedQuestion, Reply, Responses, Stated
from pytest_adaptive_eval.tables import SUBJECT_WORDS, read_rows
from pytest_adaptive_eval.text import counted

#: Levels of folders searched below the path; the tools' own layouts have three.
_DEPTH = 5
#: Answers kept of an item, and the longest.
_REPLIES, _REPLY_LENGTH = 4, 8000
SUMMARY_ALONE = "a summary alone"  #: Fault of an answer whose sample is absent.
#: Verdicts in words, in lower case; C, P, I and N are the grades of Inspect.
_VERDICTS: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(("true", "correct", "right", "yes", "pass", "passed", "success", "resolved", "c", "1"), 1.0),
        **dict.fromkeys(
            ("false", "incorrect", "wrong", "no", "fail", "failed", "failure", "unresolved", "i", "n"), 0.0
        ),
        **dict.fromkeys(("", "na", "n/a", "nan", "none", "null"), math.nan),
        "p": 0.5,
    }
)


def files_of(folder: Path) -> list[Path]:
    """Return files in a folder and `_DEPTH` levels below, sorted by path.  Links are followed, each folder once."""
    paths = []
    visited = set()
    for base, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(base)) in visited or len(Path(base).relative_to(folder).parts) > _DEPTH:
            folders.clear()
            continue
        visited.add(real)
        folders.sort()
        # Excel and macOS create files with the same suffix and other content next to open ones.
        for name in names:
            if not name.startswith(("~$", "._")):
                paths.append(Path(base) / name)
    return sorted(path for path in paths if path.is_file())


def files_that(recognised: Callable[[Path], bool], path: Path, expected: str) -> list[Path]:
    """Return the file, or the recognised files of a folder.

    Raises:
        ResponsesError: There is none; the message ends with what is expected.
    """
    if path.is_dir():
        files = []
        for file in files_of(path):
            if recognised(file):
                files.append(file)
    else:
        files = [path]
    if not files:
        raise ResponsesError(f"{path}: {expected}")
    return files


def json_objects(folder: Path, patterns: Sequence[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the JSON objects in files below a folder, in order of their paths.

    A file that is not JSON is left out: its tool may be writing it, or was killed meanwhile.
    """
    files = {file for pattern in patterns for file in folder.glob(pattern)}
    for file in sorted(files):
        with contextlib.suppress(OSError, ResponsesError):
            data = load_file(file)
            if isinstance(data, dict):
                yield file, data


def score(value: Any, where: str) -> float:
    """Return a number in [0, 1], a truth value or a verdict in words as a score, NaN where it is missing.

    Raises:
        ResponsesError: The value is something else.
    """
    value = "" if value is None else value
    try:
        number = None
        if isinstance(value, str):
            number = _VERDICTS.get(value.strip().lower())
        if number is None:
            number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not (math.isnan(number) or 0.0 <= number <= 1.0):
        raise ResponsesError(
            f"{where}: found {value!r:.80}, expected a score in [0, 1], a truth value, a verdict such as correct, or "
            "null; in a mapping, lookup(..) or scale(..) make one"
        )
    return number


def named(value: Any, field: str, where: str) -> str:
    """Return an id as text; whole numbers are ids too; raise ResponsesError for other values."""
    if isinstance(value, float) and value.is_integer():
        whole = int(value)
    else:
        whole = value
    if isinstance(whole, (str, int)) and not isinstance(whole, bool):
        text = str(whole).strip()
    else:
        text = ""
    if text:
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
    if requested is not None:
        names = [name.strip() for name in requested.split(",")]
    else:
        names = sorted(names_present)
    present = [name for name in names if name in names_present]
    if len(present) == 1 or (present and requested is not None):
        return present[0]
    if requested is None:
        problem = "no choice between them"
    else:
        problem = f"{setting} is {requested!r}"
    listed = ", ".join(map(repr, sorted(names_present)[:12])) or "none"
    raise ResponsesError(
        f"{where}: found {listed} and {problem}; give {setting} one of them, or several with commas; the first one "
        "present counts"
    )


class Answer(NamedTuple):
    """One answer in a log.

    Args:
        values: Scores by metric, as they are logged; empty where it was not scored.
        steps: Messages of an agent; empty for a model that only answers.
        measures: See `models.base.Completion`.
        sample: Label of one of several answers to the item, such as an epoch.
        fault: What the sample has, where its scores are there twice and differ; empty for most.
    """

    where: str
    item: str
    values: Mapping[str, Any]
    question: LoggedQuestion | None = None
    reply: Any = None
    sample: str = ""
    fault: str = ""
    steps: Sequence[AgentStep] = ()
    measures: Mapping[str, float] = {}


class TaskLog(NamedTuple):
    """The answers of a subject to the questions of a task, in one log.

    Args:
        created: Number or text that sorts logs by time.
        planned, status: As in `Stated`.
        accuracies: Mean scores that the log states, by metric.
        unscored: Why none of its answers has a score, if so.
        items: Items that the run was to ask, each in so many `epochs`; empty if the log does not say.
    """

    where: str
    subject: str
    answers: Sequence[Answer]
    created: Any = ""
    planned: int | None = None
    status: str = ""
    accuracies: Mapping[str, Any] = MappingProxyType({})
    unscored: str = ""
    items: Sequence[str] = ()
    epochs: int = 1

    @property
    def unplanned(self) -> list[str]:
        """Items that it has and was not to ask."""
        if self.items:
            return sorted({answer.item for answer in self.answers} - {*self.items})
        return []

    @property
    def metrics(self) -> set[str]:
        """Names of all metrics that some answer has a value of."""
        return {name for answer in self.answers for name, value in answer.values.items() if value is not None}

    def stated(self, metric: str, samples: Collection[tuple[str, str]], logs: Sequence[TaskLog], mean: Any) -> Stated:
        """Return what the log states, beside the samples of all logs of the task, and its mean score."""
        if samples:
            planned = self.planned
        else:
            planned = self.planned or 1
        accuracy = self.accuracies.get(metric)
        stated_accuracy = None
        if isinstance(accuracy, int | float):
            stated_accuracy = float(accuracy)
        contradictions = []
        samples_by_item = Counter(item for item, _ in samples)
        if absent := [item for item in self.items if samples_by_item[item] < self.epochs]:
            contradictions.append(f"{len(absent)} of {len(self.items)} planned items are absent, such as {absent[0]!r}")
        if unplanned := [item for log in logs for item in log.unplanned]:
            contradictions.append(f"{counted(len(unplanned), 'item')} not planned, such as {unplanned[0]!r}")
        answers = [answer for log in logs for answer in log.answers]
        faulty = [answer for answer in answers if answer.fault]
        note = ""
        if answers and all(answer.fault == SUMMARY_ALONE for answer in answers):
            note = "the samples were removed, and their summaries count"
        elif faulty:
            faulty.sort(key=lambda answer: answer.fault == SUMMARY_ALONE)
            counts = f"{len(faulty)} of {len(answers)} samples"
            contradictions.append(f"{counts} have {faulty[0].fault}, such as {faulty[0].item!r}")
        ended = planned, self.status, stated_accuracy, mean
        return Stated(self.subject, self.where, len(samples), *ended, contradictions, note)


class Collected:
    """Accumulator of scores.  Several scores of one subject on one item count as their mean.

    Args:
        texts: Whether all answers are kept as texts, or a few of each item.

    Attributes:
        stated: What the logs state about themselves.
    """

    def __init__(self, source: str, *, texts: bool = False) -> None:
        self._source = source
        self._texts = texts
        self._items: dict[str, int] = {}
        self._scores: dict[str, tuple[array[int], array[float]]] = {}
        self._questions: dict[str, tuple[LoggedQuestion, str]] = {}
        self._replies: dict[str, list[Reply]] = {}
        self._unscored: list[str] = []
        self.stated: list[Stated] = []

    @property
    def repeated(self) -> int:
        """Number of scores of a subject on an item that it has a score on already."""
        return sum(len(positions) - len(set(positions)) for positions, _ in self._scores.values())

    def add(
        self,
        subject: str,
        item: str,
        score: float,
        text: object = None,
        steps: Sequence[AgentStep] = (),
        measures: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Add one score, with its answer if that is a text; NaN means that the item is present without a score."""
        positions, scores = self._scores.setdefault(subject, (array("q"), array("d")))
        positions.append(self._items.setdefault(item, len(self._items)))
        scores.append(score)
        if isinstance(text, str):
            replies = self._replies.setdefault(item, [])
            is_example = len(replies) < _REPLIES and len(text) <= _REPLY_LENGTH and not math.isnan(score)
            if self._texts or is_example:
                replies.append(Reply(subject, text, score, steps, dict(measures)))

    def ask(self, item: str, question: LoggedQuestion | None, where: str) -> None:
        """Add what a log holds of an item.

        Raises:
            ResponsesError: Another log has another question of the item.
        """
        if question is None:
            return
        first, first_log = self._questions.setdefault(item, (question, where))
        if first is not question and _words(first) != _words(question):
            raise ResponsesError(
                f"{where}: the item {item!r:.80} has another question than in {first_log}; give runs of one version of "
                "the data, or an item that separates the questions, such as --set item=EXPRESSION"
            )

    def add_task(self, logs: Sequence[TaskLog], settings: ReadSettings, where: str) -> None:
        """Add the logs of all subjects on a task, by one metric.

        Of several logs of a subject, each item's score is that of the newest log that has one. Logs without scores are
        left out.

        Raises:
            ResponsesError: There are several metrics and none is requested, a log lacks the metric, or a value is not a
                score.
        """
        newest_first = sorted(logs, key=attrgetter("created"), reverse=True)
        scored = [(log, metrics) for log in newest_first if (metrics := log.metrics)]
        for log in logs:
            self._note_unscored(log, [each for each, _ in scored], settings)
        metrics = set[str]().union(*(metrics for _, metrics in scored))
        if scored:
            metric = choose("metric", metrics, settings.metric, f"{where}, metrics")
        else:
            metric = ""
        for subject in dict.fromkeys(log.subject for log in logs):
            scored_logs = [log for log, _ in scored if log.subject == subject]
            if len(scored_logs) > 1:
                settings.note(f"{where}: {len(scored_logs)} logs of {subject}; for each item the newest score counts")
            self._add_logs(next(log for log in newest_first if log.subject == subject), scored_logs, metric)

    def _note_unscored(self, log: TaskLog, scored: Sequence[TaskLog], settings: ReadSettings) -> None:
        if not any(log is each for each in scored):
            self.leave_out(log.unscored or f"{log.where}: none of its samples has a score; score the log", settings)

    def _add_logs(self, latest: TaskLog, logs: Sequence[TaskLog], metric: str) -> None:
        """Add a subject's logs, the newest first, and what the latest of all states."""
        samples: set[tuple[str, str]] = set()
        settled = set()
        measured: list[float] = []
        for log in logs:
            if all(answer.values.get(metric) is None for answer in log.answers):
                raise ResponsesError(
                    f"{log.where}: no score {metric!r}, which the other logs of the task have; score it, run it again, "
                    "or remove it"
                )
            scores = []
            for each in log.answers:
                scores.append(score(each.values.get(metric), f"{each.where}, metric {metric!r}"))
            measured = measured or [value for value in scores if not math.isnan(value)]
            for answer, value in zip(log.answers, scores, strict=True):
                if answer.item not in settled:
                    self.add(log.subject, answer.item, value, answer.reply, answer.steps, answer.measures)
                self.ask(answer.item, answer.question, answer.where)
            samples |= {(answer.item, answer.sample) for answer in log.answers}
            settled |= {answer.item for answer, value in zip(log.answers, scores, strict=True) if not math.isnan(value)}
        mean = None
        if measured:
            mean = sum(measured) / len(measured)
        self.stated.append(latest.stated(metric, samples, logs, mean))

    def leave_out(self, reason: str, settings: ReadSettings) -> None:
        """Note a log without any score."""
        self._unscored.append(reason)
        settings.note(f"left out: {reason}")

    def responses(self) -> Responses:
        """Return all scores, subjects and items in the order of their first score.

        Raises:
            ResponsesError: No log has a score.
        """
        if self._unscored and not self._scores:
            raise ResponsesError(self._unscored[0])
        n = len(self._items)
        table = np.full((len(self._scores), n), np.nan)
        administered = np.zeros(table.shape, dtype=np.bool_)
        for row, asked, (positions, scores) in zip(table, administered, self._scores.values(), strict=True):
            columns = np.asarray(positions, dtype=np.int64)
            values = np.asarray(scores)
            asked[columns] = True
            scored = ~np.isnan(values)
            counts = np.bincount(columns[scored], minlength=n)
            sums = np.bincount(columns[scored], weights=values[scored], minlength=n)
            means = np.divide(sums, counts, out=row, where=counts > 0)
            np.minimum(means, 1.0, out=row)  # rounding can make a mean of thirds 1 + 2e-16
        questions = {}
        for item, (question, _) in self._questions.items():
            if item in self._items:
                questions[item] = question
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
    families = {}
    for number, row in read_rows(path):
        subject, *others = (cell.strip() for cell in row)
        if len(others) != 1 or not subject or subject in families:
            raise ResponsesError(
                f"{path}, line {number}: found {','.join(row)!r:.80}, expected 'subject,family', one row for "
                "each subject"
            )
        families[subject] = others[0] or subject
    head = next(iter(families.items()), ("", ""))
    if head[0].lower() not in SUBJECT_WORDS or head[1].lower() not in ("family", "families", "run"):
        raise ResponsesError(f"{path}, line 1: found {','.join(head)!r:.80}, expected 'subject,family'")
    return families
