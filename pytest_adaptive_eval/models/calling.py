"""Any callable as a subject: a function, a chain of LangChain, a completion of LiteLLM."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status, items_naming
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

_log = logging.getLogger(__name__)


class CallableModel(Model):
    """A subject that asks a callable, one item at a time.

    A callable takes the prompt as a text, or the item's messages as a list of objects with role and content. It returns
    a text, or an object that holds one as LangChain's messages (``content``) and OpenAI's and LiteLLM's completions
    (``choices[0].message.content``) do. An exception is a fault of the item.

    Args:
        checkpoint: Version of everything that determines the model, which changes with it. Without it no answer is
            kept for a later run.
    """

    def __init__(
        self, function: Callable[[Any], Any], name: str, *, checkpoint: str = "", messages: bool = False
    ) -> None:
        if not callable(function):
            raise ConfigError(f"subject {name!r}: {function!r:.80} is not callable; give a function of the prompt")
        super().__init__(SubjectIdentity(name, checkpoint, {"messages": messages}))
        self._function, self._messages, self._said = function, messages, False

    @property
    def unkept(self) -> str:
        """Sentence on why an interrupted run cannot continue; empty if it can."""
        if self.identity.checkpoint:
            return ""
        return (
            f"answers of {self.identity.name!r} are not kept, since nothing identifies the model: give "
            'CallableModel a checkpoint="...", a version that you change with the model'
        )

    def prepare(self, items: Sequence[Item]) -> None:
        """Refuse pictures, which a callable has no place for, and say once that answers are not kept."""
        if self.unkept and not self._said:
            _log.warning("%s", self.unkept)
            self._said = True
        if pictured := next((item for item in items_naming(items, "images") if item.images), None):
            raise ConfigError(
                f"item {pictured.id!r} has an image, and the callable {self.identity.name!r} takes texts: leave such "
                "items out, or write a Model"
            )

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        return [self._answer(item) for item in items]

    def _answer(self, item: Item) -> Completion:
        messages = [dict(message) for message in item.messages] or [{"role": "user", "content": item.prompt}]
        try:
            text = _text(self._function(messages if item.messages or self._messages else item.prompt))
        except Exception as error:  # of any library
            status = Status.TIMEOUT if isinstance(error, TimeoutError) else Status.ERROR
            return Completion("", status, detail=f"{type(error).__name__}: {error}")
        return Completion(text)


def _text(reply: Any) -> str:
    """Return the text in a reply; raise TypeError where there is none."""
    if isinstance(reply, str):
        return reply
    if choices := _field(reply, "choices"):
        reply = _field(choices[0], "message")
    content = _field(reply, "content")
    if isinstance(content, str):
        return content
    raise TypeError(
        f"the callable returned {type(reply).__name__}, expected a text, or an object with content or "
        "choices[0].message.content"
    )


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
