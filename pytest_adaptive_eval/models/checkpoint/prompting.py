"""Turn items into prompts of local models: text with image placeholders."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Chat

#: Date for templates that print one, so that a prompt does not depend on the day of the run.
TEMPLATE_DATE = datetime.date(2025, 1, 1)

#: Macro that replaces the templates' date function; the newline belongs to the block and is not printed.
_FIXED_DATE = (
    "{%- macro strftime_now(form) -%}{{ form"
    + "".join(
        f" | replace('{code}', '{TEMPLATE_DATE.strftime(code)}')" for code in ("%d", "%b", "%B", "%m", "%Y", "%y")
    )
    + " }}{%- endmacro %}\n"
)

#: Time limit for rendering, in seconds of processor time.  It usually takes milliseconds.
RENDER_SECONDS = 3.0
_RENDER = "pytest_adaptive_eval.models.checkpoint.tokenizers:render"


@dataclass(frozen=True, slots=True)
class Prompter:
    """A writer of prompts for a tokenizer or processor.

    With a chat template an item is a conversation: its messages, or one user message. Without one its prompt is used
    unchanged, and images without a placeholder in the prompt come first.

    Args:
        image_token: Placeholder of one image; None for a text model.
    """

    tokenizer: Any
    template: str | None
    image_token: str | None = None

    @property
    def style(self) -> str:
        """Style of prompts: ``chat`` or ``raw``."""
        if self.template:
            return "chat"
        return "raw"

    def text(self, item: Item) -> str:
        """Return the prompt of an item.

        Raises:
            BankError: The item has images for a text model, messages for a model without a chat template, or other
                placeholders than images.
            TimeoutError: The chat template did not end.
        """
        if item.images and self.image_token is None:
            raise BankError(f"item {item.id!r} has images, and this checkpoint reads text only; ask it as text")
        if item.tools and "tools" not in (self.template or ""):
            raise BankError(f"item {item.id!r} has tools, and the checkpoint's chat template shows none to the model")
        try:
            if self.template:
                text = self.render(self.conversation(item), item.tools)
            else:
                text = self._raw(item)
        except worker.Raised as error:
            if not item.messages or item.messages[0].get("role") != "system":
                raise
            raise BankError(
                f"item {item.id!r} has a system message, which the chat template refuses ({error}): write it into the "
                "prompts, for example by a template, in place of system"
            ) from None
        if not text or not self.tokenizer(text, add_special_tokens=self.adds_special_tokens(text))["input_ids"]:
            # even without a prompt the model needs one token to begin with
            return str(self.tokenizer.bos_token or self.tokenizer.eos_token or self.tokenizer.pad_token)
        return text

    def adds_special_tokens(self, text: str) -> bool:
        """Return whether the tokenizer adds its special tokens, which a template may contain already."""
        if self.image_token is None:
            return self.template is None
        bos = self.tokenizer.bos_token
        return bos is None or not text.startswith(bos)

    def render(self, messages: Chat, tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """Return a conversation rendered by the chat template in the worker, up to the beginning of the answer."""
        template = self.template or ""
        if "strftime_now" in template:
            template = _FIXED_DATE + template
        folder = str(self.tokenizer.name_or_path)
        return str(
            worker.call(
                _RENDER,
                folder,
                messages,
                template,
                list(map(dict, tools)) or None,
                seconds=RENDER_SECONDS,
                description="rendering the chat template",
            )
        )

    def _raw(self, item: Item) -> str:
        if item.messages:
            raise BankError(
                f"item {item.id!r} has messages, and this checkpoint no chat template; give it a prompt, without system"
            )
        if self.image_token is None:
            return item.prompt
        missing = len(item.images) - item.prompt.count(self.image_token)
        if missing < 0:
            raise BankError(
                f"item {item.id!r} has {len(item.images)} images and {len(item.images) - missing} placeholders "
                f"{self.image_token!r} in its prompt; give each placeholder its image"
            )
        return self.image_token * missing + item.prompt

    def conversation(self, item: Item) -> Chat:
        """Return an item as a chat: its messages, or one user message, with image parts if the model reads images."""
        pictures: list[dict[str, Any]] = [{"type": "image"} for _ in item.images]
        if not item.messages:
            if self.image_token is None:
                return [{"role": "user", "content": item.prompt}]
            text = [{"type": "text", "text": item.prompt}] if item.prompt else []
            return [{"role": "user", "content": pictures + text}]
        if self.image_token is None:
            return [dict(message) for message in item.messages]
        messages = []
        for message in item.messages:
            messages.append({**message, "content": _parts(item, message.get("content"))})
        placed = sum(part["type"] == "image" for message in messages for part in message["content"])
        if not placed and pictures:
            _first_by_user(messages)["content"][:0] = pictures
        elif placed != len(pictures):
            raise BankError(
                f"item {item.id!r} has {len(pictures)} images and {placed} image parts in its messages; "
                "name each file in `images` and place it with a part {'type': 'image'}"
            )
        return messages


def _first_by_user(messages: Chat) -> dict[str, Any]:
    """Return the user's first message, else the first."""
    for message in messages:
        if message.get("role") == "user":
            return message
    return messages[0]


def _parts(item: Item, content: object) -> list[dict[str, Any]]:
    """Return the parts of a message; an image part marks the position of an image of the item."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list | tuple):
        written = list(content)
    else:
        written = [None]
    parts = [_part(part) for part in written]
    if all(parts):
        return parts
    raise BankError(
        f"item {item.id!r} has message content {str(content)[:80]!r}, expected text or a list of "
        "{'type': 'text', 'text': ...} and {'type': 'image'}"
    )


def _part(part: object) -> dict[str, Any]:
    """Return a part with the keys that it needs alone; an empty one for other parts than texts and images."""
    if isinstance(part, Mapping) and part.get("type") == "image":
        return {"type": "image"}
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    return {}
