"""Conversations that wait for models, and what asks the models for all of them.

A conversation is a generator: it gives calls, is sent their results, and ends with what it found.  It
depends on its own results alone, so that nothing depends on the order in which calls are made.  Calls to a model that
is in memory come first, so that a model is loaded only when nobody waits for one that is there, and then the one that
was waited for longest, by when many do; models behind servers are asked meanwhile, many at once.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.studies.network.roles import Interviewee, Interviewer
from pytest_adaptive_eval.subjects.agent import Message
from pytest_adaptive_eval.subjects.base import Completion, SubjectIdentity, Usage
from pytest_adaptive_eval.subjects.pool import AgentPool

__all__ = ["Answering", "Asking", "Conversation", "Engine"]

Role = Literal["interviewee", "panel", "interviewer", "supervisor"]
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Asking:
    """An agent is asked; its result is one `Completion`, as if of one item.

    Parameters
    ----------
    model : str
    role : str
    place : tuple
        Where in the network: two places may ask the same, and mean to hear something new.
    messages : tuple of Message
    max_tokens : int
    """

    model: str
    role: Role
    place: tuple[str | int, ...]
    messages: tuple[Message, ...]
    max_tokens: int

    def told(self) -> list[Any]:
        """All that the reply depends on besides who is asked."""
        return [[[message.role, message.text] for message in self.messages], self.max_tokens]


@dataclass(frozen=True, slots=True)
class Answering:
    """A subject answers items; its result is one completion an item.

    Parameters
    ----------
    model, role, place
        As of `Asking`.
    items : tuple of Item
    """

    model: str
    role: Role
    place: tuple[str | int, ...]
    items: tuple[Item, ...]

    def told(self) -> list[Any]:
        """All that the answers depend on besides who is asked."""
        return [item.content_hash for item in self.items]


Call = Asking | Answering
Result = list[Completion]
#: Gives calls, is sent a result a call, and ends with what it found.
Conversation = Generator[Sequence[Call], list[Result], Found]
#: Given what has been found so far, by name, what begins the conversations that may begin.
Ready = Callable[[Mapping[str, Any]], Mapping[str, Callable[[], Conversation[Any]]]]


class Engine:
    """Holds conversations.

    Parameters
    ----------
    pool : AgentPool
    replies : mutable mapping of str to str
        Replies by a hash of the model, the place and all that was asked.
    concurrency : int
        Calls to models behind servers at once.
    """

    def __init__(self, pool: AgentPool, replies: MutableMapping[str, str], concurrency: int = 8) -> None:
        self.pool, self.replies, self.concurrency = pool, replies, concurrency
        self.recalled = 0
        #: By the conversation's name, and by role.
        self.usage: defaultdict[str, defaultdict[str, Usage]] = defaultdict(lambda: defaultdict(Usage))
        self.models: dict[str, SubjectIdentity] = {}
        self._clock = itertools.count()
        self._alone: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._flying: dict[Future[tuple[Result, Usage]], _Open] = {}
        self._over = threading.Event()

    def hold(self, ready: Ready) -> dict[str, Any]:
        """Hold conversations until there are no more.

        Parameters
        ----------
        ready : callable
            Given what has been found so far, by name, what begins those that may begin; called after each that ends.
        """
        found: dict[str, Any] = {}
        held: dict[str, _Held] = {}
        threads = ThreadPoolExecutor(self.concurrency)
        try:
            self._begin(ready, found, held)
            while held:
                waiting = [one for talk in held.values() for one in talk.waiting()]
                for one in [one for one in waiting if one.call.model in self.pool.remote]:
                    one.flies = True
                    if not self._recall(one):
                        self._flying[threads.submit(self._make, one)] = one
                near = [one for one in waiting if not one.flies]
                if near:
                    self._ask_one_model(near)
                elif self._flying and not any(talk.complete for talk in held.values()):
                    wait(self._flying, return_when=FIRST_COMPLETED)
                self._land()
                self._go_on(ready, found, held)
        except BaseException:
            self._over.set()
            raise
        finally:  # nobody waits for what is under way where the run ends early: closing the pool ends it
            threads.shutdown(wait=False, cancel_futures=True)
        return found

    def _land(self) -> None:
        """Keep what came, before a call that failed ends the run."""
        done = [future for future in self._flying if future.done()]
        for future in sorted(done, key=lambda future: future.exception() is not None):
            self._settle(self._flying.pop(future), *future.result())

    def _begin(
        self,
        ready: Ready,
        found: dict[str, Any],
        held: dict[str, _Held],
    ) -> None:
        """Begin those that may, and those that may since one had nothing to ask."""
        while left := {name: begin for name, begin in ready(found).items() if name not in held and name not in found}:
            for name, begin in left.items():
                one = _Held(name, begin(), self._clock.__next__)
                if one.go_on(None):
                    held[name] = one
                else:
                    found[name] = one.found

    def _go_on(
        self,
        ready: Ready,
        found: dict[str, Any],
        held: dict[str, _Held],
    ) -> None:
        for name in [name for name, talk in held.items() if talk.complete]:
            while held[name].complete:
                if not held[name].go_on(held[name].results()):
                    found[name] = held.pop(name).found
                    self._begin(ready, found, held)
                    break

    def _ask_one_model(self, near: Sequence[_Open]) -> None:
        """All waiting calls to one of the models that need no load, else to the one that was waited for longest."""
        oldest = sorted(near, key=lambda one: one.since)
        name = self.pool.first(dict.fromkeys(one.call.model for one in oldest))[0]
        for one in [one for one in oldest if one.call.model == name]:
            if not self._recall(one):
                self._settle(one, *self._make(one))
                self._land()

    def _recall(self, one: _Open) -> bool:
        """Take the reply of an earlier run, where there is a whole one."""
        self.models[one.call.model] = identity = self.pool.identity(one.call.model)
        told = [identity.name, identity.checkpoint, identity.decoding_hash, one.call.role, one.call.place]
        one.key = hashlib.sha256(json.dumps([*told, one.call.told()]).encode()).hexdigest()
        kept = _read(self.replies.get(one.key), len(one.call.items) if isinstance(one.call, Answering) else 1)
        if kept is None:
            return False
        self.recalled += 1
        one.result = kept[0]
        self.usage[one.talk][one.call.role] += kept[1]
        return True

    def _make(self, one: _Open) -> tuple[Result, Usage]:
        call = one.call
        if isinstance(call, Asking):
            agent: Interviewer = self.pool.agent(call.model)
            reply = agent.ask(call.messages, max_tokens=call.max_tokens)
            return [Completion(reply.text, reply.status, detail=reply.detail)], reply.usage
        subject: Interviewee = self.pool.subject(call.model)
        with self._alone[call.model]:  # so that its usage is that of these items
            if self._over.is_set():
                raise CancelledError
            before = subject.usage
            answers = subject.answer(call.items)
            return answers, subject.usage - before

    def _settle(self, one: _Open, result: Result, usage: Usage) -> None:
        one.result = result
        self.usage[one.talk][one.call.role] += usage
        if not any(done.status.infrastructure for done in result):
            told = [[done.text, done.status.value, done.score, done.detail] for done in result]
            self.replies[one.key] = json.dumps({"result": told, "usage": usage.to_json()})


class _Open:
    """A call that waits for its result."""

    def __init__(self, talk: str, call: Call, since: int) -> None:
        self.talk, self.call, self.since = talk, call, since
        self.flies, self.key = False, ""
        self.result: Result | None = None


class _Held:
    """A conversation with the calls that it waits for; `since` counts up, and tells how long."""

    def __init__(self, name: str, talk: Conversation[Any], since: Callable[[], int]) -> None:
        self.name, self.talk, self._since = name, talk, since
        self.open: list[_Open] = []
        self.found: Any = None

    def go_on(self, results: list[Result] | None) -> bool:
        """Send results; False where the conversation has ended."""
        try:
            calls = next(self.talk) if results is None else self.talk.send(results)
        except StopIteration as end:
            self.found = end.value
            return False
        self.open = [_Open(self.name, call, self._since()) for call in calls]
        return True

    def waiting(self) -> Iterator[_Open]:
        """Calls that nobody has made."""
        return (one for one in self.open if one.result is None and not one.flies)

    @property
    def complete(self) -> bool:
        """Whether all results are there."""
        return all(one.result is not None for one in self.open)

    def results(self) -> list[Result]:
        """In the order of the calls."""
        return [one.result or [] for one in self.open]


def _read(text: str | None, count: int) -> tuple[Result, Usage] | None:
    """A result of an earlier run; one that cannot be read is asked for anew."""
    if text is None:
        return None
    try:
        kept = json.loads(text)
        result = []
        for said, status, score, detail in kept["result"]:
            if not isinstance(said, str) or not isinstance(detail, str) or not isinstance(score, float | int | None):
                return None
            result.append(Completion(said, Status(status), score, detail))
        usage = Usage(**kept["usage"])
    except (ValueError, TypeError, KeyError):
        return None
    return (result, usage) if len(result) == count else None
