"""A model that asks another one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import Cap


class WrappedModel(Model):
    """A model that forwards all requests to another one; a subclass has what it changes.

    Args:
        model: It is closed with this one.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def _using(self) -> AbstractContextManager[Model]:
        """Return a context in which the model may be asked."""
        return contextlib.nullcontext(self._model)

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]  # a model may be loaded for it
        """Identity of the model."""
        return self._model.identity

    @property
    def cap(self) -> Cap | None:  # type: ignore[override]  # likewise
        """Cap of the model."""
        return self._model.cap

    @property
    def waits_apart(self) -> bool:  # type: ignore[override]
        """Whether several threads may ask at once; answers to items are waited for."""
        return self._model.waits_apart

    @property
    def usage(self) -> Usage:
        """Cost of all answers so far."""
        return self._model.usage

    @property
    def no_reuse(self) -> str:
        """Reason why answers may not take the place of asking in other runs; empty if they may."""
        with self._using() as model:
            return model.no_reuse

    @property
    def rates(self) -> bool:
        """Whether `prefer` works."""
        with self._using() as model:
            return model.rates

    def prepare_chats(self) -> None:
        """Raise ConfigError or CheckpointError if the model holds no chats."""
        with self._using() as model:
            model.prepare_chats()

    def ask(self, messages: Sequence[Message], **settings: Any) -> Completion:
        """Return the reply to a chat, see the base class."""
        with self._using() as model:
            return model.ask(messages, **settings)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return log-likelihoods of a label, see the base class."""
        with self._using() as model:
            return model.prefer(messages, candidates, label)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        with self._using() as model:
            return model.answer(items)

    def close(self) -> None:
        """Close the model."""
        self._model.close()
