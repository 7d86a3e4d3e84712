"""Record the answers of one interview, in its journal and for its record, also the ones that runs share."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.faults import FaultLimit
from pytest_adaptive_eval.gates.result import UNREADABLE_SHARE
from pytest_adaptive_eval.items.graders.kind import finding_kind
from pytest_adaptive_eval.items.graders.kinds.words import folded
from pytest_adaptive_eval.items.item import Item, Response, Status, cut_text, length_note
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.truth import truth_of
from pytest_adaptive_eval.models.base import AnswerSource, Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.models.reuse import completion_key, from_entry, identity_key, request_key, scored, to_entry
from pytest_adaptive_eval.records.journal import SEED, Journal
from pytest_adaptive_eval.records.parts import ReuseRecord, plain
from pytest_adaptive_eval.records.run_record import Administration
from pytest_adaptive_eval.text import counted, relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.reuse import AnswerStore, Completions
    from pytest_adaptive_eval.plugin.ask.question import Draw, QuestionTest
    from pytest_adaptive_eval.plugin.state import GeneratorStates

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


_ABSENT = object()

#: Why an answer that came too late for a verdict is missing.
NOT_NEEDED = "the verdict was certain before the answer came"
FEWEST_WRONG = 3  #: Fewest wrong answers for a note that the expected answer stands in them.


class AnswerRecorder:
    """Administrations of one interview, and the journal of completions, None where no answer may outlive the run.

    A later run takes the completions from the journal, runs its tests again and grades by its own code.

    Attributes:
        subject: Model under evaluation, None while it is unknown or is no `Model`.
        current: Question whose fixtures and test run now.
        fault: Why an answer could not be kept; None if all were.
        unkept: Sentence on a model whose answers cannot be kept; empty for others.
    """

    def __init__(self) -> None:
        self.administrations: list[Administration] = []
        self.statuses: Counter[str] = Counter()
        self.journal: Journal | None = None
        self.subject: Model | None = None
        self.current: QuestionTest | None = None
        self.fault: JournalError | None = None
        self.unkept = ""
        self.constant = ConstantAnswers()
        self._texts = self._unreadable = self._wrong = 0
        self._finding: Counter[str] = Counter()
        self._seed = ""
        self.shared: Completions | None = None  # for what a judge says, see `CompletionStore`
        self._writing = threading.Lock()  # a test may ask from several threads
        self._watched: _WatchedModel | None = None

    def close(self) -> None:
        """Close the journal."""
        if self._watched is not None:
            self._watched.release()
            self._watched = None
        if self.journal is not None:
            self.journal.close()

    def add(self, test: QuestionTest, response: Response) -> None:
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

    def unanswered(self, subject: Model, questions: Sequence[QuestionTest]) -> list[QuestionTest]:
        """Return the questions without an answer in the journal.  The subject gets the kept completions of others."""
        unanswered: list[QuestionTest] = []
        for question in questions:
            completion = self.recall(question, question.asked.item, self.key(question))
            if completion is None:
                unanswered.append(question)
            else:
                self.hand(subject, question, completion)
        return unanswered

    def hand(self, subject: Model, question: QuestionTest, completion: Completion) -> None:
        """Let the test of a question find its completion with the subject."""
        _note_likelihood(question, completion.likelihood)
        subject.restore(question.asked.item, question.asked.sample, completion)

    def knows(self, test: QuestionTest | Draw) -> bool:
        """Return whether the journal has the answer to a question."""
        return self.journal is not None and self.journal.get(self.key(test)) is not None

    def recall(self, test: QuestionTest | Draw, item: Item, key: str) -> Completion | None:
        """Return the completion of a request of a question from the journal, or None.

        Raises:
            JournalError: See `find`.
        """
        if (found := self.find(key)) is None or (completion := scored(item, found)) is None:
            return None
        assert self.journal is not None
        test.administration.resumed |= key in self.journal.earlier
        _note_likelihood(test, completion.likelihood)
        return completion

    def keep_completion(self, test: QuestionTest | Draw, completion: Completion, key: str = "") -> None:
        """Write a completion to the journal, unless a later run should ask again.

        Args:
            key: Key of a request that the test makes; by default that of its item.

        Raises:
            JournalError: See `keep`.
        """
        _note_likelihood(test, completion.likelihood)
        self.keep(key or self.key(test), completion, test.asked.item.id)

    def find(self, key: str) -> Completion | None:
        """Return the completion of a key from the journal, or None.

        Raises:
            JournalError: The entry is not an answer.
        """
        if self.journal is None or (entry := self.journal.get(key)) is None:
            return None
        try:
            return from_entry(entry)
        except (TypeError, ValueError, KeyError) as error:
            raise JournalError(
                f"{self.journal.path}: the answer to {entry.get('item')!r} cannot be read ({error}): start again with "
                "--adaptive-eval-fresh, which forgets the answers of this interview"
            ) from None

    def keep(self, key: str, completion: Completion, item: str = "") -> None:
        """Write a completion to the journal, unless a later run should ask again; `item` is for its readers.

        Raises:
            JournalError: The journal cannot be written.
        """
        if self.journal is None or completion.status.infrastructure:
            return
        entry = {"item": item, **plain(to_entry(completion)), "text": completion.text}
        try:
            with self._writing:
                if self._seed:  # before the first answer that may depend on it
                    self.journal.append(SEED, {"seed": self._seed}, durable=False)
                    self._seed = ""
                self.journal.append(key, entry)
        except JournalError as error:
            self.fault = error
            raise

    def share_seed(self, generators: GeneratorStates) -> None:
        """Go on with the random states of the run that began the journal, by which its tests may have asked."""
        entry = None if self.journal is None else self.journal.get(SEED)
        if entry is None:
            self._seed = generators.seed
        else:
            generators.resume(str(entry["seed"]))

    def answers_of(self, subject: Model) -> AnswerSource | None:
        """Return the kept answers of a subject to the requests of the current question; None where none may be kept."""
        if self.journal is None or self.current is None or not subject.identity.checkpoint:
            return None
        return _KeptAnswers(self, self.current, subject)

    def watch(self, model: Any, identity: SubjectIdentity) -> bool:
        """Keep what `generate` of a user's own model returns, until `close`.  Return whether that is possible."""
        try:
            self._watched = _WatchedModel(self, model, identity)
        except (AttributeError, TypeError):  # it has no such method, or the object is closed to changes
            self.unkept = (
                f"answers of {identity.name!r} are not kept for a later run, since it is asked by other ways than a "
                "method generate: give the model one, or make it a Model"
            )
        return not self.unkept

    def too_many_errors(self, budget: int) -> str:
        """Return why failed answers end the interview: too many in a row or of the budget; else empty."""
        limit, reason = FaultLimit(budget), ""
        for entry in self.administrations:
            fault = entry.detail.strip() or entry.status
            reason = limit.add(fault if Status(entry.status).fault else None)
        return reason

    def unread_answers(self) -> str:
        """Return a sentence if the expected answer is in most wrong answers; else empty."""
        graders = {name: count for name, count in self._finding.most_common() if name}
        count = sum(graders.values())
        if self._wrong < FEWEST_WRONG or 2 * count <= self._wrong:
            return ""
        return (
            f"the expected answer is in {count} of {self._wrong} wrong answers: use grader "
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

    def key(self, test: QuestionTest | Draw) -> str:
        """Return the key of the answer to a question's item, if the test asks that as it is."""
        if not test.key:
            assert self.subject is not None
            test.key = completion_key(self.subject, test.asked.item, *_place(test))
        return test.key


def _place(test: QuestionTest | Draw) -> tuple[str, int]:
    """Return what distinguishes draws of equal requests."""
    return test.administration.item, test.administration.sample


class _KeptAnswers:
    """Answers of a subject to the requests of one question, in the journal; see `AnswerSource`."""

    def __init__(self, recorder: AnswerRecorder, test: QuestionTest, subject: Model) -> None:
        self._recorder, self._test, self._subject = recorder, test, subject

    def find(self, item: Item) -> Completion | None:
        return self._recorder.recall(self._test, item, self._key(item))

    def keep(self, item: Item, completion: Completion) -> None:
        self._recorder.keep_completion(self._test, completion, self._key(item))

    def _key(self, item: Item) -> str:
        return completion_key(self._subject, item, *_place(self._test))


class _WatchedModel:
    """A user's model that is no `Model`.  The journal answers for its `generate`, which is replaced on the object.

    Texts are kept, for arguments that are JSON data or items.
    """

    def __init__(self, recorder: AnswerRecorder, model: Any, identity: SubjectIdentity) -> None:
        self._recorder, self._model = recorder, model
        self._identity = identity_key(model, identity)
        self._numbers: Counter[str] = Counter()  # of equal requests within one question
        self._own = vars(model).get("generate", _ABSENT)
        self._function: Callable[..., Any] = model.generate
        model.generate = functools.wraps(self._function)(lambda *args, **kwargs: self._generate(*args, **kwargs))

    def release(self) -> None:
        """Give the object its own method back."""
        if self._own is _ABSENT:
            del self._model.generate
        else:
            self._model.generate = self._own

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        recorder, test = self._recorder, self._recorder.current
        if test is None:
            return self._function(*args, **kwargs)
        try:
            request = json.dumps([args, kwargs], sort_keys=True, default=_content)
        except (TypeError, ValueError):
            return self._function(*args, **kwargs)
        alone = args[0] if len(args) == 1 and not kwargs else None
        prompt = getattr(alone, "item", alone)  # a test's `item` wraps that of the bank
        test.requests.note(prompt if isinstance(prompt, Item) else Item("", prompt if type(prompt) is str else request))
        draw = request_key(*self._identity, *_place(test), request)
        number, self._numbers[draw] = self._numbers[draw], self._numbers[draw] + 1
        key = request_key(draw, number)
        if (kept := recorder.recall(test, test.asked.item, key)) is not None:
            return kept.text
        reply = self._function(*args, **kwargs)
        if type(reply) is str:
            recorder.keep_completion(test, Completion(cut_text(reply)), key)
        return reply


def _content(argument: Any) -> Any:
    """Return an item as JSON data; raise TypeError for other objects."""
    item = getattr(argument, "item", argument)  # a test's `item` wraps that of the bank
    if isinstance(item, Item):
        return item.to_json()
    raise TypeError


def _note_likelihood(test: QuestionTest | Draw, facts: Mapping[str, Any] | None) -> None:
    if facts:
        test.administration.likelihood = plain(facts)


#: Note of evaluations of several models in a run that shares answers.
SHARED_NOTE = (
    "--adaptive-eval-reuse shares replies of models that decode greedily and have a checkpoint "
    "hash or a revision; others are asked"
)


class Reuse:
    """Answers that one interview takes from the store; without a store every answer is asked for."""

    def __init__(self, store: AnswerStore | None, root: Path) -> None:
        self._store = store
        self._path = relative(store.path, root) if store is not None else ""
        self._subject: Model | None = None
        self._taken = 0
        self._refusal = "the model is no Model of this package" if store is not None else ""

    def bind(self, subject: object) -> None:
        """Let a subject take answers from the store, unless there is a reason against it."""
        if not isinstance(subject, Model):
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
            administration.reused, self._taken = True, self._subject.reused

    def notes(self, administrations: list[Administration], *, judged: bool) -> list[str]:
        """Return notes for any verdict: the number of such answers."""
        count = sum(entry.reused for entry in administrations)
        if self._store is None:  # an interrupted run may have taken some
            return [_sentence(count, len(administrations), "a store of earlier ones")] if count else []
        if self._refusal:
            return []  # a warning of the run says so
        anew = "; its judge graded them again" if judged and count else ""
        notes = [_sentence(count, len(administrations), self._path) + anew]
        return [*notes, self._store.fault] if self._store.fault else notes

    def record(self, administrations: list[Administration]) -> ReuseRecord | None:
        """Return the facts for the record; None where nothing was to be reused."""
        if self._store is None:
            return None
        count = sum(entry.reused for entry in administrations)
        return ReuseRecord(self._path, count, self._refusal)


def _sentence(count: int, asked: int, store: str) -> str:
    verb = "was" if count == 1 else "were"
    return f"{count} of {counted(asked, 'answer')} {verb} not asked for but taken from {store}"
