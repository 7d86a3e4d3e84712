"""A model whose completions are stored, and looked up in place of asking."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage, sample_of
from pytest_adaptive_eval.models.request_keys import chat_key, completion_key
from pytest_adaptive_eval.models.store import CompletionStore, scored
from pytest_adaptive_eval.models.wrapped import WrappedModel


class RecordedModel(WrappedModel):
    """A model whose completions are stored, and looked up in place of asking.

    Answers of other runs are reused unless `Model.no_reuse` forbids it.

    Args:
        store: Where completions are; within this object if omitted.
        name: Name of the model in place of its own.
    """

    def __init__(self, model: Model, store: CompletionStore | None = None, name: str = "") -> None:
        super().__init__(model)
        if store is None:
            self._store = CompletionStore()
        else:
            self._store = store
        self._name = name

    @functools.cached_property
    def _of_this_run(self) -> CompletionStore:
        return CompletionStore()

    @property
    def _open_store(self) -> CompletionStore:
        """Store of the completions.

        Without a checkpoint, another model may have the same name in the run that resumes this one.
        """
        if self.identity.checkpoint:
            return self._store
        return self._of_this_run

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]
        """Identity of the model, under the name that it has here."""
        identity = self._model.identity
        return replace(identity, name=self._name or identity.name)

    def ask(self, messages: Sequence[Message], **settings: Any) -> Completion:
        """Return the reply to a chat, see the base class."""
        key = chat_key(self._model, self.identity, messages, sorted(settings.items()))
        return self._recorded(key, lambda: self._model.ask(messages, **settings))

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return log-likelihoods of a label, see the base class."""

        def rate() -> Completion:
            preference = self._model.prefer(messages, candidates, label)
            scores = json.dumps(preference.scores)
            return Completion(scores, preference.status, detail=preference.detail, cost=preference.usage)

        reply = self._recorded(chat_key(self._model, self.identity, messages, list(candidates), label), rate)
        return Preference(tuple(json.loads(reply.text)), reply.status, reply.detail, reply.cost, reply.reused)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order; their costs make up that of the call.

        A request that is repeated in one call is made once.
        """
        keys = [completion_key(self._model, item, sample_of(item)) for item in items]
        requests: dict[str, Item] = {}
        for key, item in zip(keys, items, strict=True):
            requests.setdefault(key, item)
        stored = {key: scored(item, self._lookup(key)) for key, item in requests.items()}
        answers = {key: answer for key, answer in stored.items() if answer is not None}
        missing = [key for key in requests if key not in answers]
        if missing:
            asked = self._ask([requests[key] for key in missing])
        else:
            asked = []
        for key, answer in zip(missing, asked, strict=True):
            self._open_store.store(key, answer, requests[key].id, self._shared_key(key))
            answers[key] = answer
        completions = []
        for key in keys:
            completions.append(answers[key])
            answers[key] = replace(answers[key], cost=Usage())  # a repeated one costs nothing more
        return completions

    def _ask(self, items: Sequence[Item]) -> list[Completion]:
        """Return the model's answers; the first one's cost has what the call cost beyond that of each."""
        before = self._model.usage
        answers = self._model.answer(items)
        together = self._model.usage - before - sum((answer.cost for answer in answers), Usage())
        answers[0] = replace(answers[0], cost=answers[0].cost + together)
        return answers

    def _recorded(self, key: str, ask: Callable[[], Completion]) -> Completion:
        completion = self._lookup(key)
        if completion is None:
            completion = ask()
            self._open_store.store(key, completion, shared_key=self._shared_key(key))
        return completion

    def _lookup(self, key: str) -> Completion | None:
        completion = self._open_store.lookup(key, self._shared_key(key))
        if completion is None:
            return None
        return replace(completion, reused=True)

    def _shared_key(self, key: str) -> str:
        if self._store.shared is None or self._model.no_reuse:
            return ""
        return key
