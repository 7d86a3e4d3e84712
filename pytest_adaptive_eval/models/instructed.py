"""A model that gets a system message before each of its chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.presentation import Presentation
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, Usage


class InstructedModel(Model):
    """A model under a system message, which belongs to its identity.

    Args:
        model: It is closed with this one.
    """

    def __init__(self, model: Model, system: str) -> None:
        super().__init__(replace(model.identity, decoding={**model.identity.decoding, "system": system}))
        self.cap, self.waits_apart = model.cap, model.waits_apart
        self._model, self._system = model, system

    @property
    def usage(self) -> Usage:
        """Cost of all answers so far."""
        return self._model.usage

    @property
    def rates(self) -> bool:
        """Whether `prefer` works."""
        return self._model.rates

    def prepare_chats(self) -> None:
        """Raise ConfigError or CheckpointError if the model holds no chats."""
        self._model.prepare_chats()

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Completion:
        """Return the reply to a chat, see the base class."""
        return self._model.ask(self._instructed(messages), max_tokens=max_tokens, schema=schema, draw=draw)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return log-likelihoods of a label, see the base class."""
        return self._model.prefer(self._instructed(messages), candidates, label)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        presentation = Presentation(system=self._system)
        return self._model.answer([presentation.present(item) for item in items])

    def close(self) -> None:
        """Close the model."""
        self._model.close()

    def _instructed(self, messages: Sequence[Message]) -> list[Message]:
        return [Message("system", self._system), *messages]
