"""Whether an interview takes answers from the store that runs share, and how many it took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.models.base import Subject
from pytest_adaptive_eval.plugin.names import REUSED
from pytest_adaptive_eval.text import counted, relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.reuse import AnswerStore
    from pytest_adaptive_eval.records.run_record import Administration

#: Note of studies in a run that shares answers.
STUDY_NOTE = (
    "no reply was taken from the store (--adaptive-eval-reuse): replies in studies and of agents are never shared"
)


class Reuse:
    """Answers that one interview takes from the store.

    Args:
        store: None where every answer is asked for.
        root: Folder that the store's path is told relative to.
    """

    def __init__(self, store: AnswerStore | None, root: Path) -> None:
        self._store = store
        self._path = relative(store.path, root) if store is not None else ""
        self._subject: Subject | None = None
        self._taken = 0
        self._refusal = "the model is no Subject of this package" if store is not None else ""

    def bind(self, subject: object) -> None:
        """Let a subject take answers from the store, unless there is a reason against it."""
        if not isinstance(subject, Subject):
            return
        self._subject, self._taken = subject, subject.reused
        if self._store is None:
            return
        from pytest_adaptive_eval.models.reuse import KnownAnswers

        self._refusal = subject.no_reuse
        subject.known = None if self._refusal else KnownAnswers(self._store, subject)

    def mark(self, administration: Administration) -> None:
        """Mark a question whose test took an answer from the store."""
        if self._subject is not None and self._subject.reused > self._taken:
            administration.extra[REUSED], self._taken = True, self._subject.reused

    def notes(self, administrations: list[Administration], *, judged: bool) -> list[str]:
        """Return what to tell with any verdict: the number of such answers, or why there is none."""
        count = sum(bool(entry.extra.get(REUSED)) for entry in administrations)
        if self._store is None:  # an interrupted run may have taken some
            return [_sentence(count, len(administrations), "a store of earlier ones")] if count else []
        if self._refusal:
            return [f"no answer was taken from the store (--adaptive-eval-reuse): {self._refusal}"]
        anew = "; its judge graded them anew" if judged and count else ""
        notes = [_sentence(count, len(administrations), self._path) + anew]
        return [*notes, self._store.fault] if self._store.fault else notes

    def to_json(self, administrations: list[Administration]) -> dict[str, Any]:
        """Return the facts for the record; empty where nothing was to be reused."""
        if self._store is None:
            return {}
        count = sum(bool(entry.extra.get(REUSED)) for entry in administrations)
        return {
            "store": self._path,
            "answers": count,
            **({"refused": self._refusal} if self._refusal else {}),
        }


def _sentence(count: int, asked: int, store: str) -> str:
    verb = "was" if count == 1 else "were"
    return f"{count} of {counted(asked, 'answer')} {verb} not asked for but taken from {store}"
