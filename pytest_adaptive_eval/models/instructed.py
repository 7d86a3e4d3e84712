"""A model that gets a system message before each of its chats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.presentation import Presentation
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity
from pytest_adaptive_eval.models.wrapped import WrappedModel


class InstructedModel(WrappedModel):
    """A model under a system message, which belongs to its identity.

    Args:
        model: It is closed with this one.
    """

    def __init__(self, model: Model, system: str) -> None:
        super().__init__(model)
        self._system = system

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]
        """Identity of the model, with the system message among its decoding settings."""
        identity = self._model.identity
        return replace(identity, decoding={**identity.decoding, "system": self._system})

    def ask(self, messages: Sequence[Message], **settings: Any) -> Completion:
        """Return the reply to a chat, see the base class."""
        return super().ask(self._instructed(messages), **settings)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return log-likelihoods of a label, see the base class."""
        return super().prefer(self._instructed(messages), candidates, label)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        presentation = Presentation(system=self._system)
        return super().answer([presentation.present(item) for item in items])

    def _instructed(self, messages: Sequence[Message]) -> list[Message]:
        return [Message("system", self._system), *messages]
