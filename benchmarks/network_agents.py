"""Agents by code for networks: interviewers that write well or badly, by what they are asked alone."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.words import compose

COST = Usage(1, 10, 5, 0, 0.25, 100.0)


def chance(*parts: object) -> float:
    """A number from 0 to 1 that these determine."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6]) / 2**48


@dataclass
class CodedAgent(Model):
    """Replies by a function, or always the same."""

    name: str
    replies: Callable[[str], str | Completion] | str | Completion = ""
    rates: bool = False
    asked: list[str] = field(default_factory=list)

    @property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]
        """Who it is."""
        return SubjectIdentity(self.name, self.name * 3)

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,  # noqa: ARG002
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002
        draw: int = 0,  # noqa: ARG002
    ) -> Completion:
        """Return the reply."""
        text = messages[-1].text
        self.asked.append(text)
        said = self.replies(text) if callable(self.replies) else self.replies
        return said if isinstance(said, Completion) else Completion(said, cost=COST)

    def answer(self, items: Sequence[Item]) -> list[Completion]:  # noqa: ARG002
        """Never asked for."""
        raise AssertionError("agents of a network are only asked in chats")

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:  # noqa: ARG002
        """Never asked for."""
        raise AssertionError("agents of a network are only asked")

    def close(self) -> None:
        """Nothing to give back."""


def writer(
    wrong: float = 0.0, broken: float = 0.0, repeats: float = 0.0, attentive: float = 1.0
) -> Callable[[str], str]:
    """Writes questions of any family that can be written.

    Args:
        wrong: Chance of a wrong answer along with it.
        broken: Chance of a reply that is no question.
        repeats: Chance of a question that was asked before.
        attentive: Factor of `broken` where it is told what was examined before.
    """

    def write(text: str) -> str:
        if chance("broken", text) < broken * (attentive if "examined before" in text else 1.0):
            return "I would rather talk about the weather."
        earlier = re.findall(r"^- (.*)$", text, re.MULTILINE)
        if earlier and chance("repeats", text) < repeats:
            return f"Question: {earlier[-1]}\nAnswer: 1"
        level = int(re.findall(r"of level (\d+)", text)[-1])
        form = re.findall(r"exactly this form: (.*)", text)
        if not form:
            return " ".join(" ".join(words) + "." for words in compose(random.Random(text), 4))
        knob = re.findall(r"the level is: (.*)\.\n", text)[-1]
        family = next(
            family
            for family in chain(FAMILIES.values(), filter(None, (family.terse for family in FAMILIES.values())))
            if family.content is not None and family.content.form == form[-1] and family.knob == knob
        )
        drawn = family.draw(random.Random(text), level)
        claim = "4444444444444" if chance("wrong", text) < wrong else drawn.answer
        return f"Sure!\nQuestion: {drawn.prompt}\nAnswer: {claim}"

    return write
