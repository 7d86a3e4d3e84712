"""The interface of agents: models that work for a run as interviewers, supervisors or judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import SubjectIdentity, Usage


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat.

    Args:
        images: Image files.
        root: Folder that must contain the images.
    """

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    root: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of an agent.

    Args:
        text: Reply without the reasoning.
        status: ``ok`` if the agent ended its reply by itself; otherwise the text is unusable.
        detail: Reason for a status other than ok.
        reasoning: Reasoning before the reply, if the model shows it.
    """

    text: str
    status: Status = Status.OK
    detail: str = ""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Preference:
    """Ratings of continuations by an agent.

    Args:
        scores: Log-likelihood of the label after each candidate, in nats; NaN if `status` is not ok.
    """

    scores: tuple[float, ...]
    status: Status = Status.OK
    detail: str = ""
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class Agent(Protocol):
    """A model that works for the run."""

    @property
    def identity(self) -> SubjectIdentity:
        """Identity: everything that its replies depend on."""

    @property
    def rates(self) -> bool:
        """Whether `prefer` works: likelihoods are available and plausible."""

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Reply:
        """Return the reply to a chat, with the model's own cap by default.  A fault is a status.

        A back end may ignore the JSON schema `schema`. `draw` numbers equal requests: a model that samples draws anew
        for each number, and a greedy one may give one reply to all.
        """

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return the log-likelihood of `label` as the reply to the chat, with each candidate added on its own."""

    def close(self) -> None:
        """Release memory, devices and connections."""


def added(messages: Sequence[Message], candidate: str) -> list[Message]:
    """Return the chat with a candidate added to the user's last message."""
    if messages and messages[-1].role == "user":
        return [*messages[:-1], replace(messages[-1], text=messages[-1].text + candidate)]
    return [*messages, Message("user", candidate)]
