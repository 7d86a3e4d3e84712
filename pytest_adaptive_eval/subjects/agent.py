"""Agents: models that are given work by this package, as interviewers, supervisors or judges, not under evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.subjects.base import SubjectIdentity, Usage

__all__ = ["Agent", "Message", "Preference", "Reply", "added"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat.

    Parameters
    ----------
    role : {"system", "user", "assistant"}
    text : str
    images : tuple of str
        Image files.
    root : str
        Folder that the images must lie in.
    """

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    root: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent said.

    Parameters
    ----------
    text : str
        Without its reasoning.
    status : Status
        ``ok`` when the agent ended its reply by itself; else there is no use in the text.
    detail : str
        What happened when the status is not ok.
    reasoning : str
        What it thought before, where the model shows it.
    usage : Usage
    """

    text: str
    status: Status = Status.OK
    detail: str = ""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Preference:
    """How an agent rates continuations.

    Parameters
    ----------
    scores : tuple of float
        Log-likelihood of the label behind each candidate, in nats; not finite where `status` is not ok.
    status : Status
    detail : str
    usage : Usage
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
        """Who it is, as far as its replies depend on it."""

    @property
    def rates(self) -> bool:
        """Whether `prefer` works: likelihoods can be had, and trusted."""

    def ask(
        self, messages: Sequence[Message], *, max_tokens: int = 512, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Reply to a chat; `schema` is a JSON schema that a back end may or may not honour.  A fault is a status."""

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Log-likelihood of `label` as the reply to the chat with each candidate added, the others unseen."""

    def close(self) -> None:
        """Give back memory, devices and connections."""


def added(messages: Sequence[Message], candidate: str) -> list[Message]:
    """The chat with a candidate at its end, in the user's last message."""
    if messages and messages[-1].role == "user":
        return [*messages[:-1], replace(messages[-1], text=messages[-1].text + candidate)]
    return [*messages, Message("user", candidate)]
