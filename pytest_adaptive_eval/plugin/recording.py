"""Record the answers of one interview, in its journal and for its record, also those that runs share."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_adaptive_eval.faults import FaultLimit
from pytest_adaptive_eval.gates.result import UNREADABLE_SHARE
from pytest_adaptive_eval.items.graders.kind import finding_kind
from pytest_adaptive_eval.items.graders.kinds.words import folded
from pytest_adaptive_eval.items.item import UNANSWERED, WRONG, Item, Response, Status, length_note
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.truth import truth_of
from pytest_adaptive_eval.models.base import Completion, Subject
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.plugin.names import REUSED
from pytest_adaptive_eval.records.journal import Journal, answer_key
from pytest_adaptive_eval.records.run_record import Administration, plain
from pytest_adaptive_eval.text import counted, relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.reuse import AnswerStore
    from pytest_adaptive_eval.plugin.question import Draw, Question
    from pytest_adaptive_eval.records.run_record import Administration

FEWEST, SHARE = 20, 0.95  #: Answers from which on a constant one is named, and its share of them.
LABELS, QUESTIONS_PER_LABEL = 3, 10  #: Labels of a bank at most that one guesses, and questions for each of them.
_SHOWN = 60  #: Characters of an answer that is named.


class ConstantAnswers:
    """Counts of expected and given answers, from which a constant subject and a guessing one are known."""

    def __init__(self) -> None:
        self._expected: Counter[str] = Counter()
        self._given: Counter[str] = Counter()
        self._choices: list[float] = []

    def expect(self, item: Item) -> None:
        """Count the expected answer of a question."""
        self._choices.append(1.0 / len(item.choices) if len(item.choices) > 1 else np.nan)
        label = truth_of(item.answer) if item.grader == "yesno" else None
        self._expected[label or " | ".join(map(folded, item.answers))] += 1

    def add(self, text: str) -> None:
        """Count an answer."""
        self._given[folded(text[: 2 * _SHOWN]).strip(" .*`\"'")] += 1

    @property
    def guessing(self) -> float | None:
        """Expected score of random choices, or of the best constant answer where few labels are all that is expected.

        None where neither is known.
        """
        if not self._choices:
            return None
        if not np.isnan(self._choices).any():
            return float(np.mean(self._choices))
        count = self._expected.total()
        if not 1 < len(self._expected) <= LABELS or count < QUESTIONS_PER_LABEL * len(self._expected):
            return None
        return max(self._expected.values()) / count

    def note(self) -> str:
        """Return a sentence if nearly all answers are the same, though others are expected; else empty."""
        count = self._given.total()
        text, most = self._given.most_common(1)[0] if self._given else ("", 0)
        if count < FEWEST or most < SHARE * count or not text or len(self._expected) < 2:
            return ""
        return f"{most} of {count} answers are `{text[:_SHOWN]}`: the subject says the same to every question"


_COMPLETION = " completion"  #: Suffix of the journal's keys of completions that no test has graded yet.
LIKELIHOOD = "likelihood"  #: Key of the log-likelihoods in journals and administrations.
_sorted_json = json.JSONEncoder(sort_keys=True).encode

#: Why an answer that came too late for a verdict is missing.
NOT_NEEDED = "the verdict was certain before the answer came"
FEWEST_WRONG = 3  #: Fewest wrong answers for a note that the expected answer stands in them.


class AnswerRecorder:
    """Administrations of one interview, and the journal for later runs, None where no answer may outlive the run."""

    def __init__(self, unanswered: str = WRONG) -> None:
        self._unanswered = unanswered
        self.administrations: list[Administration] = []
        self.statuses: Counter[str] = Counter()
        self.journal: Journal | None = None
        self._subject_hashes = {"checkpoint": "", "decoding": ""}
        self.constant = ConstantAnswers()
        self._texts = self._unreadable = self._wrong = 0
        self._finding: Counter[str] = Counter()

    def open(self, journal: Journal, *, checkpoint: str, decoding: str) -> None:
        """Keep answers in a journal from now on, under the hashes of the subject and its decoding settings."""
        self.journal = journal
        self._subject_hashes = {"checkpoint": checkpoint, "decoding": decoding}

    def close(self) -> None:
        """Close the journal."""
        if self.journal is not None:
            self.journal.close()

    def stored_response(self, test: Question) -> Response | None:
        """Return the response of an earlier run, graded again, if the journal has one."""
        stored = self.stored(test)
        if not isinstance(stored, Mapping) or self.journal is None:
            return None
        test.administration.resumed = True
        _note_likelihood(test, stored.get(LIKELIHOOD))
        if stored.get(REUSED):
            test.administration.extra[REUSED] = True
        return test.regraded(stored, self.journal.path)

    def keep(self, test: Question, response: Response) -> None:
        """Write a response to the journal, unless a later run should ask again.

        Raises:
            JournalError: The journal cannot be written.
        """
        storable = test.lasting or not response.status.infrastructure
        if self.journal is not None and storable and not test.administration.resumed:
            asked = test.asked
            entry = {**_journal_entry(asked.item, response), "graded": asked.graded}
            if likelihood := test.administration.extra.get(LIKELIHOOD):
                entry[LIKELIHOOD] = likelihood
            if test.administration.extra.get(REUSED):
                entry[REUSED] = True
            self.journal.append(self.key(test), entry)

    def add(self, test: Question, response: Response) -> None:
        """Add a response to the administrations and the counts."""
        administration, item = test.administration, test.asked.item
        administration.status, administration.score = response.status.value, response.score
        administration.text = plain(response.text)
        administration.detail = plain(response.detail or test.fault or length_note(response.text))
        self.administrations.append(administration)
        self.statuses[response.status.value] += 1
        if not administration.sample:
            self.constant.expect(item)
        if response.score is not None and (response.text or test.asked.read):
            self._texts += 1
            self.constant.add(response.text)
            whole = response.status is Status.OK
            self._unreadable += whole and not (item.readable(response.text) or abstains(response.text))
            if whole and response.score == 0.0:
                self._wrong += 1
                self._finding[finding_kind(item, item.grader, response.text)] += 1

    def prefetch(self, subject: Subject, questions: Sequence[Question]) -> None:
        """Have questions answered in one call, except those whose completion or response an earlier run kept.

        Each completion enters the journal as it arrives, before any test grades it.
        """
        unanswered = self.unanswered(subject, questions)
        items, samples = [test.asked.item for test in unanswered], [test.asked.sample for test in unanswered]
        subject.prefetch(items, samples, lambda index, completion: self.keep_completion(unanswered[index], completion))

    def unanswered(self, subject: Subject, questions: Sequence[Question]) -> list[Question]:
        """Return the questions without an answer in the journal.  The subject gets kept completions of the others."""
        unanswered: list[Question] = []
        for question in questions:
            stored = self.stored(question)
            if stored is None:
                unanswered.append(question)
            elif isinstance(stored, Completion):
                _note_likelihood(question, stored.likelihood)
                subject.restore(question.asked.item, question.asked.sample, stored)
        return unanswered

    def stored(self, test: Question | Draw) -> Mapping[str, Any] | Completion | None:
        """Return the response in the journal as its data, else the completion that no test graded, else None."""
        if self.journal is None:
            return None
        graded = self.journal.get(self.key(test))
        # an earlier version kept unanswered ones without the score that they now have
        if graded is not None and not (
            self._unanswered == WRONG and graded.get("score") is None and str(graded.get("status")) in UNANSWERED
        ):
            return graded
        if (entry := graded or self.journal.get(self.key(test) + _COMPLETION)) is None:
            return None
        status, facts = Status(entry["status"]), entry.get(LIKELIHOOD, {})
        reused = entry.get(REUSED, False)
        return Completion(entry["text"], status, entry["score"], entry["detail"], likelihood=facts, reused=reused)

    def keep_completion(self, question: Question | Draw, completion: Completion, *, durable: bool = True) -> None:
        """Write a completion to the journal, unless a later run should ask again; see `Journal.append`.

        Raises:
            JournalError: The journal cannot be written.
        """
        _note_likelihood(question, completion.likelihood)
        if self.journal is not None and not completion.status.infrastructure:
            entry = _journal_entry(question.asked.item, completion)
            if completion.likelihood:
                entry[LIKELIHOOD] = plain(completion.likelihood)
            if completion.reused:
                entry[REUSED] = True
            self.journal.append(self.key(question) + _COMPLETION, entry, durable=durable)

    def too_many_errors(self, budget: int) -> str:
        """Return why failed answers end the interview: too many in a row or of the budget; else empty."""
        limit, reason = FaultLimit(budget), ""
        for entry in self.administrations:
            failed = Status(entry.status).infrastructure and entry.detail != NOT_NEEDED
            reason = limit.add((entry.detail.strip() or entry.status) if failed else None)
        return reason

    def unread_answers(self) -> str:
        """Return a sentence if the expected answer stands in most wrong answers; else empty."""
        graders = {name: count for name, count in self._finding.most_common() if name}
        count = sum(graders.values())
        if self._wrong < FEWEST_WRONG or 2 * count <= self._wrong:
            return ""
        return (
            f"the expected answer stands in {count} of {self._wrong} wrong answers: use grader "
            f"{' or '.join(sorted(graders))}"
        )

    def too_many_unreadable(self) -> str:
        """Return a sentence if most answers do not have the form of an answer; else empty."""
        if self._unreadable <= UNREADABLE_SHARE * self._texts:
            return ""
        return (
            f"{self._unreadable} of {self._texts} answers hold no answer at all (no letter, choice or number): "
            "check the prompt and the chat template, since the score would say nothing about the checkpoint"
        )

    def cut(self, cap: object) -> str:
        """Return a warning where many answers were truncated, else empty; `cap` is the one that held, if known."""
        return truncation_warning(self.statuses[Status.TRUNCATED.value], len(self.administrations), cap)

    def key(self, test: Question | Draw) -> str:
        """Return the journal's key of the answer to a question."""
        if not test.key:
            item, administration = test.asked.item, test.administration
            prompt = item.prompt
            if item.messages or item.images:
                prompt = _sorted_json([prompt, [dict(m) for m in item.messages], item.images])
            test.key = answer_key(
                item_hash=administration.item_hash,
                format=administration.format,
                sample=administration.sample,
                prompt_hash=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16],
                **self._subject_hashes,
            )
        return test.key


def _note_likelihood(test: Question | Draw, facts: Mapping[str, Any] | None) -> None:
    if facts:
        test.administration.extra[LIKELIHOOD] = plain(facts)


def _journal_entry(item: Item, answer: Response | Completion) -> dict[str, Any]:
    return {
        "item": item.id,
        "status": answer.status.value,
        "score": answer.score,
        "text": plain(answer.text),
        "detail": plain(answer.detail),
    }


#: Note of studies in a run that shares answers.
STUDY_NOTE = (
    "no reply was taken from the store (--adaptive-eval-reuse): replies in studies and of agents are never shared"
)


class Reuse:
    """Answers that one interview takes from the store; without a store every answer is asked for."""

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
        return {"store": self._path, "answers": count, **({"refused": self._refusal} if self._refusal else {})}


def _sentence(count: int, asked: int, store: str) -> str:
    verb = "was" if count == 1 else "were"
    return f"{count} of {counted(asked, 'answer')} {verb} not asked for but taken from {store}"
