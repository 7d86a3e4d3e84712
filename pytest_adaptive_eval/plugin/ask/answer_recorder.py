"""Record the answers of one interview, for its record and in its journal, from which a later run resumes it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.items.item import Item, Response, cut_text, length_note
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.request_keys import (
    Request,
    completion_key,
    identity_key,
    request_key,
    shared_item_key,
)
from pytest_adaptive_eval.models.store import scored
from pytest_adaptive_eval.records.parts import ReuseRecord, plain
from pytest_adaptive_eval.text import counted, relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.store import CompletionStore
    from pytest_adaptive_eval.plugin.ask.question import Draw, QuestionTest
    from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates
    from pytest_adaptive_eval.records.run_record import Administration

SENT_KEY = 24  #: Characters of the key of a request as it was sent.
#: Why an answer that came too late for a verdict is missing.
NOT_NEEDED = "the verdict was certain before the answer came"


class AnswerRecorder:
    """Administrations of one interview, and its journal, None where no answer may outlive the run.

    A later run takes the completions from the journal, runs its tests again and grades by its own code.

    Attributes:
        subject: Model under evaluation, None while it is unknown or is not a `Model`.
        current: Question whose fixtures and test run now.
        unkept: Sentence on a model whose answers cannot be kept; empty for others.
        sent: Requests as they were sent, by their keys in the administrations.
    """

    def __init__(self) -> None:
        self.administrations: list[Administration] = []
        self.journal: CompletionStore | None = None
        self.subject: Model | None = None
        self.current: QuestionTest | None = None
        self.unkept = ""
        self.sent: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()  #: Of equal calls of a watched function within one question.
        self._release: Callable[[], object] = lambda: None

    def close(self) -> None:
        """Close the journal, and give a user's model its own method back."""
        self._release()
        if self.journal is not None:
            self.journal.close()

    def add(self, test: QuestionTest, response: Response) -> None:
        """Add a response to the administrations."""
        administration = test.administration
        administration.status, administration.score = response.status.value, response.score
        detail = response.detail or test.fault or length_note(response.text)
        administration.text, administration.detail = plain([response.text, detail])
        self.administrations.append(administration)

    def request(self, test: QuestionTest | Draw) -> Request:
        """Return the request of a question whose test asks its item as it is."""
        if test.request is None:
            assert self.subject is not None
            test.request = self._request(test, self.subject, test.asked.item)
        return test.request

    def key(self, test: QuestionTest | Draw) -> str:
        """Return the key of the answer to a question's item."""
        return self.request(test).key

    def lookup(self, test: QuestionTest | Draw, request: Request) -> Completion | None:
        """Return the completion of a request from the journal, or from other runs, or None.

        Raises:
            UsageError: A file is damaged.
        """
        if self.journal is None:
            return None
        completion = scored(request.item, self.journal.lookup(request.key, request.shared_key))
        if completion is not None:
            test.administration.resumed |= self.journal.is_earlier(request.key)
        return completion

    def store(self, test: QuestionTest | Draw, request: Request, completion: Completion) -> None:
        """Store a completion in the journal, unless a later run should ask again.

        Raises:
            JournalError: The journal cannot be written.
        """
        if self.journal is not None:
            self.journal.store(request.key, completion, test.asked.item.id, request.shared_key)

    def restore(self, question: QuestionTest, completion: Completion | None = None) -> bool:
        """Let the test of a question find its completion with the subject; by default the stored one, if there is one.

        Raises:
            UsageError: A file is damaged.
        """
        assert self.subject is not None
        if completion is None:
            completion = self.lookup(question, self.request(question))
        if completion is not None:
            self.subject.restore(question.asked.item, question.asked.sample, completion)
        return completion is not None

    def complete(self, subject: Model, item: Item) -> Completion:
        """Return the completion of a request of the current test: prefetched, stored, or asked for and then stored."""
        test, completion = self.current, subject.pop_completion(item)
        if completion is None and test is not None and subject.identity.checkpoint:
            request = self._request(test, subject, item)
            completion = self.lookup(test, request)
            if completion is None:
                completion = subject.complete_anew(item)
                self.store(test, request, completion)
        if completion is None:
            completion = subject.complete_anew(item)
        if test is not None and subject is self.subject:
            test.administration.reused |= completion.reused
            self._note_sent(test, completion.request)
        if test is not None and completion.likelihood:
            test.administration.likelihood = plain(completion.likelihood)
        return completion

    def _note_sent(self, test: QuestionTest, sent: str) -> None:
        if sent:
            test.administration.sent = request_key(sent)[:SENT_KEY]
            self.sent[test.administration.sent] = sent

    def keep_sent(self, store: CompletionStore | None) -> None:
        """Keep the requests as they were sent in the store that runs share, if there is one."""
        if store is not None and self.sent:
            store.keep_requests(self.sent)

    def share_seed(self, generators: GeneratorStates) -> None:
        """Go on with the random states of the run that began the journal, by which its tests may have asked."""
        seed = generators.seed if self.journal is None else self.journal.share_seed(generators.seed)
        if seed != generators.seed:
            generators.resume(seed)

    def watch(self, model: Any, identity: SubjectIdentity) -> bool:
        """Store what `generate` of a user's own model returns, until `close`.  Return whether that is possible.

        Texts are stored, for arguments that are JSON data or items.
        """
        try:
            function, own = model.generate, "generate" in vars(model)
            stored = functools.partial(self._generate, function, identity_key(model, identity))
            model.generate = functools.wraps(function)(stored)
        except (AttributeError, TypeError):  # it has no such method, or the object is closed to changes
            self.unkept = (
                f"answers of {identity.name!r} are not kept for a later run, since it is asked by other ways than a "
                "method generate: give the model one, or make it a Model"
            )
            return False
        self._release = lambda: setattr(model, "generate", function) if own else delattr(model, "generate")
        return True

    def _generate(self, function: Callable[..., Any], identity: list[str], *args: Any, **kwargs: Any) -> Any:
        """Return what a watched function returns, or what it returned to the same call of the same question."""
        test, arguments = self.current, _to_json([args, kwargs])
        if test is None or not arguments:
            return function(*args, **kwargs)
        alone = _item_of(args[0]) if len(args) == 1 and not kwargs else arguments
        test.requests.note(alone if isinstance(alone, Item) else Item("", alone if type(alone) is str else arguments))
        draw = request_key(identity, test.administration.item, test.administration.sample, arguments)
        self._numbers[draw] += 1
        request = Request(test.asked.item, request_key(draw, self._numbers[draw]))
        stored = self.lookup(test, request)
        if stored is not None:
            return stored.text
        reply = function(*args, **kwargs)
        if type(reply) is str:
            self.store(test, request, Completion(cut_text(reply)))
        return reply

    def _request(self, test: QuestionTest | Draw, subject: Model, item: Item) -> Request:
        place = test.administration.item, test.administration.sample  # equal requests are drawn apart
        key = request_key(completion_key(subject, item), place)
        shares = self.journal is not None and self.journal.shared is not None and subject is self.subject
        return Request(item, key, shared_item_key(subject, item) if shares and not place[1] else "")


def _item_of(argument: Any) -> Any:
    return getattr(argument, "item", argument)  # a test's `item` wraps that of the bank


def _to_json(arguments: Any) -> str:
    """Return arguments as JSON, items by their content; empty if they are something else."""
    try:
        return json.dumps(arguments, sort_keys=True, default=lambda argument: _item_of(argument).to_json())
    except (AttributeError, TypeError, ValueError):
        return ""


#: Note of evaluations of several models in a run that shares answers.
SHARED_NOTE = (
    "--adaptive-eval-reuse shares replies of models that decode greedily and have a checkpoint "
    "hash or a revision; others are asked"
)


class Reuse:
    """Answers that one interview takes from other runs.

    Args:
        store: Store of other runs; None where every answer is asked for.
        root: Folder that the store's path is shown from.
        named: Whether a flag names the store; else nothing is said where no answer was taken.

    Attributes:
        refusal: Why the subject is always asked; empty if it is not.
    """

    def __init__(self, store: CompletionStore | None, root: Path, *, named: bool = True) -> None:
        self._store, self.refusal, self._named = store, "the model is no Model of this package", named
        self._path = "" if store is None else relative(store.path, root)

    def notes(self, administrations: Sequence[Administration], *, judged: bool) -> list[str]:
        """Return notes for any verdict: the number of such answers, and why others were not stored."""
        count = sum(entry.reused for entry in administrations)
        if not count and (self._store is None or self.refusal or not self._named):  # a warning has the reason
            return []
        verb, source = "was" if count == 1 else "were", self._path or "a store of earlier ones"
        sentence = f"{count} of {counted(len(administrations), 'answer')} {verb} not asked for but taken from {source}"
        if self._store is None:
            return [sentence]
        anew = "; its judge graded them again" if judged and count else ""
        return [sentence + anew, *filter(None, [self._store.fault])]

    def record(self, administrations: Sequence[Administration]) -> ReuseRecord | None:
        """Return the facts for the record; None where nothing was to be reused."""
        count = sum(entry.reused for entry in administrations)
        if self._store is None or not (self._named or count):
            return None
        return ReuseRecord(self._path, count, self.refusal)
