"""Completions of a batch in the journal: each is kept as it arrives, before any test grades it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.plugin.recording import journaled
from pytest_adaptive_eval.subjects.base import Completion, Subject

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.question import Question
    from pytest_adaptive_eval.records.journal import Journal

__all__ = ["prefetch"]

#: Suffix of the journal's keys of completions.
_SUFFIX = " completion"


def prefetch(
    subject: Subject, questions: Sequence[Question], journal: Journal | None, key: Callable[[Question], str]
) -> None:
    """Have questions answered in one call, except those whose completion or response an earlier run kept.

    Parameters
    ----------
    subject : Subject
    questions : sequence of Question
    journal : Journal or None
        None where no answer may outlive the run.
    key : callable
        Gives the key of a question's response in the journal.
    """
    asked: list[Question] = []
    for question in questions:
        if journal is not None and journal.get(key(question)) is not None:
            continue
        stored = journal.get(key(question) + _SUFFIX) if journal is not None else None
        if stored is None:
            asked.append(question)
        else:
            completion = Completion(stored["text"], Status(stored["status"]), stored["score"], stored["detail"])
            subject.restore(question.asked.item, question.asked.sample, completion)

    def keep(index: int, completion: Completion) -> None:
        if journal is not None and not completion.status.infrastructure:
            journal.append(key(asked[index]) + _SUFFIX, journaled(asked[index].asked.item, completion))

    subject.prefetch([question.asked.item for question in asked], [question.asked.sample for question in asked], keep)
