"""Finished logs of tools, and records of runs, as models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.banks.responses.files import files_of
from pytest_adaptive_eval.banks.responses.ids import rename_items, with_item_ids
from pytest_adaptive_eval.banks.responses.readers.runs import is_record
from pytest_adaptive_eval.cli.settings import ReadingTable
from pytest_adaptive_eval.errors import BankError, ConfigError, ResponsesError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.presentation import Presentation, with_choices
from pytest_adaptive_eval.items.responses import Reply, Responses, Stated
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.images import question_hash
from pytest_adaptive_eval.models.replay import ReplayModel, grades_text
from pytest_adaptive_eval.records.parts import PresentationRecord
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord
from pytest_adaptive_eval.text import Tell, counted
from pytest_adaptive_eval.typed_tables import read_table

_NO_SCORE = Completion("", Status.NOT_RECORDED, detail="the log has no score of it")
_TEXTLESS = Completion("", Status.NOT_RECORDED, detail="the item changed since, and the answer's text is not kept")
_EDITED = Completion("", Status.NOT_RECORDED, detail="the question was edited since the answer was recorded")
_EDITED_SINCE = "edited since the record: recorded answers count with model_options = { edited = true } alone"
_BY_ID = "joined by id alone: the record's version did not keep what was asked"
_OTHERWISE = "asked with another system text, template or examples than in the record"
_OF_TOOL = "answers join the bank's items by their ids alone: a log of another tool does not say what they were asked"


class ReplayTable(ReadingTable, frozen=True):
    """Options of a model that replays logs.

    Args:
        ids: Prefix, pattern, field or file that gives the items' ids in the bank.
        partial: Judge a log that is not whole too, with a warning.
        edited: Take the answers to questions that were edited since a record was written, with a warning.
    """

    ids: str | None = None
    partial: bool = False
    edited: bool = False


class LoggedAnswer(NamedTuple):
    """An answer in a log, with its recorded score.

    Args:
        item_hash, question: Hashes of its item as it was asked, and of what the bank's item asks; empty if unknown.
        presentation: How its item was asked.
    """

    completion: Completion
    item_hash: str = ""
    question: str = ""
    presentation: PresentationRecord | None = None

    def asked_otherwise(self, item: Item) -> bool:
        """Return whether the item is asked with another system text, template or examples."""
        plain = item.plain or item
        try:
            if self.presentation is None:
                before = with_choices(plain)
            else:
                before = Presentation.from_json(self.presentation.to_json()).present(plain)
        except (BankError, KeyError, TypeError, ValueError):
            return True
        return (before.prompt, before.messages, before.turns) != (item.prompt, item.messages, item.turns)


class LogReplay(ReplayModel):
    """Answers in a log, graded by the items' graders of today.

    The recorded score counts where the answer has no text, the item has no grader, or the item has several answers,
    whose mean counts. An answer to a question that was edited since is not taken.

    Args:
        warnings: Why the log is not whole.
        notes: How its answers join items.
        edited: Whether answers to edited questions are taken too.
    """

    def __init__(
        self,
        name: str,
        answers: Mapping[str, Sequence[LoggedAnswer]],
        source: str,
        warnings: Sequence[str],
        notes: Sequence[str] = (),
        *,
        edited: bool = False,
    ) -> None:
        flat = {}
        for item, logged in answers.items():
            for n, each in enumerate(logged):
                flat[f"{item} {n}"] = each.completion
        super().__init__(name, flat, source)
        self._logged = answers
        self._warnings = list(warnings)
        self._notes = list(notes)
        self._takes_edited = edited
        self._items: dict[str, set[str]] = {sentence: set() for sentence in (_EDITED_SINCE, _BY_ID, _OTHERWISE)}

    @property
    def warnings(self) -> list[str]:
        """Reasons why the log is not whole, and the number of questions edited since."""
        return [*self._warnings, *self._counted(_EDITED_SINCE)]

    @property
    def notes(self) -> list[str]:
        """Sentences on how answers join items, and on answers to another form of the question."""
        return [*self._notes, *self._counted(_BY_ID), *self._counted(_OTHERWISE)]

    def _counted(self, sentence: str) -> list[str]:
        """Return a sentence with the number of questions that it holds for; none without any."""
        items = self._items[sentence]
        if items:
            return [f"{counted(len(items), 'question')} {sentence}"]
        return []

    def find(self, item: Item) -> Completion:
        """Return the answer to an item; of several to questions of one id those to its present text."""
        logged = self._logged.get(item.id)
        if not logged:
            return super().find(item)
        question = question_hash(item)
        matching = [each for each in logged if each.question in ("", question)]
        if not matching:
            self._items[_EDITED_SINCE].add(item.id)
            if not self._takes_edited:
                return _EDITED
            matching = list(logged)
        same = []
        for each in matching:
            if each.item_hash in ("", item.content_hash):
                same.append(each)
        if not same and not matching[0].question:
            self._items[_BY_ID].add(item.id)
        elif not same and matching[0].asked_otherwise(item):
            self._items[_OTHERWISE].add(item.id)
        return _today(item, [each.completion for each in same or matching], unchanged=bool(same))


def _today(item: Item, completions: Sequence[Completion], *, unchanged: bool) -> Completion:
    """Return the answer to an item by its grader; by recorded scores where texts do not serve and it is unchanged."""
    readable = grades_text(item)
    if len(completions) > 1:
        if readable and not unchanged:
            responses = [replace(each, score=None).response(item) for each in completions]
            completions = []
            for each in responses:
                if each.score is not None:
                    completions.append(Completion("", score=each.score))
        return _mean_of(completions)
    (completion,) = completions
    if readable and completion.text.strip():
        return replace(completion, score=None)
    if unchanged or item.meta.get("textless") or completion.score is None:
        return completion
    return _TEXTLESS


def _mean_of(completions: Sequence[Completion]) -> Completion:
    """Return the mean of the recorded scores that are there."""
    scores = [each.score for each in completions if each.score is not None]
    if scores:
        return Completion("", score=sum(scores) / len(scores))
    return _NO_SCORE


def replay_log(path: Path, subject: str | None, options: Mapping[str, Any]) -> LogReplay:
    """Return the answers of a subject in a run's record, or in logs of another tool.

    Raises:
        ConfigError, ResponsesError: The log cannot be read, is not whole, or has no such subject.
    """
    table = read_table(ReplayTable, dict(options), f"options of replay:{path}")
    if path.is_file() and is_record(path):
        return _replay_record(path, subject or "", table)
    responses, name = read_subject(path, subject or "", table, texts=True)
    warnings = responses.check_whole(name, partial=table.partial)
    replies: dict[str, list[Reply]] = {}
    for item, replies_to_item in responses.replies.items():
        replies[item] = [reply for reply in replies_to_item if reply.subject == name]
    scores = responses.scores_of(name)
    answers = {item: [LoggedAnswer(_completion(replies.get(item, ()), score))] for item, score in scores.items()}
    return LogReplay(name, answers, str(path), warnings, [_OF_TOOL])


def _completion(replies: Sequence[Reply], score: float) -> Completion:
    """Return an answer with its score; of several answers the mean score alone."""
    if math.isnan(score):
        return _NO_SCORE
    if len(replies) != 1:
        return Completion("", score=score)
    (reply,) = replies
    return Completion(reply.text, score=score, measures=reply.measures, steps=tuple(reply.steps))


def read_subject(
    path: Path, name: str, table: ReplayTable, note: Tell = lambda _: None, *, texts: bool = False
) -> tuple[Responses, str]:
    """Return the responses in logs, under ids that items of a bank can have, and the name of one subject.

    Args:
        name: One subject of several; the only one if empty.
        note: Called with sentences on what is left out.
        texts: Whether all answers are kept as texts.

    Raises:
        ConfigError: The subject is unknown, or not named among several; or the log is of runs.
    """
    if path.is_dir():
        files = files_of(path)
    else:
        files = [path]
    if any(is_record(file) for file in files if file.exists()):
        raise ConfigError(
            f"{path} is of runs, which asked what their evaluation says: run that again with "
            "pytest --adaptive-eval --adaptive-eval-model=replay:RECORD.json"
        )
    responses = read_responses(path, texts=texts, note=note, **table.arguments)
    if table.ids:
        responses, left_out = rename_items(responses, table.ids)
        if left_out:
            note(f"left out: {left_out} items to which ids = {table.ids!r} gives no id")
    if name not in responses.subjects:
        if name or len(responses.subjects) > 1:
            if name:
                count = f"no subject {name!r}"
            else:
                count = f"{len(responses.subjects)} subjects"
            names = ", ".join(responses.subjects[:12])
            raise ConfigError(f"{path}: {count}; give {path}#NAME with one of {names}")
        name = responses.subjects[0]
    return with_item_ids(responses, note), name


def _replay_record(path: Path, name: str, table: ReplayTable) -> LogReplay:
    """Return the answers of a run's interviews: of a subject, or in the evaluation of a name."""
    interviews = []
    for each in read_run(path).interviews:
        if name in ("", each.subject.name, each.name):
            interviews.append(each)
    subjects = list(dict.fromkeys(interview.subject.name for interview in interviews))
    if len(subjects) != 1:
        if subjects:
            subjects_text = f"subjects {', '.join(subjects)}"
        else:
            subjects_text = f"no subject or evaluation {name!r}"
        raise ConfigError(f"{path}: the record has {subjects_text}; give {path}#NAME with the name of one")
    stated = []
    for each in interviews:
        stated.append(
            Stated(subjects[0], f"{path}: evaluation {each.name!r}", len(each.by_item()), each.asked, each.error)
        )
    warnings = [part.fault for part in stated if part.fault]
    if warnings and not table.partial:
        raise ResponsesError(f"{warnings[0]}: ask again, or replay what there is with partial = true in model_options")
    answers: dict[str, list[LoggedAnswer]] = {}
    for interview in interviews:
        for entry in interview.administrations:
            logged = LoggedAnswer(_recorded(entry), entry.item_hash, entry.question, interview.bank.presentation)
            answers.setdefault(entry.item, []).append(logged)
    model = LogReplay(subjects[0], answers, str(path), warnings, edited=table.edited)
    model.identity = replace(model.identity, decoding=_decoding(interviews))
    return model


def _recorded(entry: Administration) -> Completion:
    """Return a recorded answer; what an unanswered item scores follows from the evaluation of today."""
    status = Status(entry.status)
    if status is Status.NOT_AWAITED:
        return _NO_SCORE
    return Completion(entry.text, status, entry.score if status is Status.OK else None, entry.detail)


def _decoding(interviews: Sequence[EvaluationRecord]) -> dict[str, Any]:
    """Return the decoding settings that all interviews had; none if they differ."""
    first = interviews[0].subject.decoding
    if all(each.subject.decoding == first for each in interviews):
        return dict(first)
    return {}
