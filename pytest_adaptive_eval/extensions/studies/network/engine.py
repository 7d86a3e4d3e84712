"""Concurrent conversations with models.

A conversation is a generator: it yields calls, receives their results, and returns its result. It depends on its own
results alone, so the order of calls does not matter. Models in memory are called first, so that another model is loaded
only when no conversation waits for those, and then the one with the longest waiting call. Meanwhile models behind
servers are called concurrently.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Message, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import recorded_caps
from pytest_adaptive_eval.models.pool import AgentPool
from pytest_adaptive_eval.models.reuse import ReplyStore, draw_number, identity_key, request_key

Role = Literal["interviewee", "panel", "interviewer", "supervisor"]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class AgentCall:
    """Chat with an agent; its result is one completion.

    Args:
        position: Position in the network, which makes equal calls distinct.
    """

    model: str
    role: Role
    position: tuple[str | int, ...]
    messages: tuple[Message, ...]

    #: Number of completions.
    count = 1

    def prompt_key(self) -> list[Any]:
        """Return the parts of the call on which the reply depends, besides model, role and position."""
        return [[message.role, message.text] for message in self.messages]


@dataclass(frozen=True, slots=True)
class SubjectCall:
    """Items for a subject; its result is one completion per item."""

    model: str
    role: Role
    position: tuple[str | int, ...]
    items: tuple[Item, ...]

    @property
    def count(self) -> int:
        """Number of completions."""
        return len(self.items)

    def prompt_key(self) -> list[Any]:
        """Return the parts of the call on which the answers depend, besides model, role and position."""
        return [item.content_hash for item in self.items]


Call = AgentCall | SubjectCall
Result = list[Completion]
#: Yields calls, receives one result per call, and returns its own result.
Conversation = Generator[Sequence[Call], list[Result], Value]
#: Returns functions that start conversations, by name, given the results so far.
Ready = Callable[[Mapping[str, Any]], Mapping[str, Callable[[], Conversation[Any]]]]


class Engine:
    """Scheduler of conversations."""

    def __init__(self, pool: AgentPool, replies: MutableMapping[str, str], concurrency: int = 8) -> None:
        self.pool, self.replies, self.concurrency = pool, ReplyStore(replies), concurrency
        #: Usage by conversation and by role.
        self.usage: defaultdict[str, defaultdict[str, Usage]] = defaultdict(lambda: defaultdict(Usage))
        self.models: dict[str, SubjectIdentity] = {}
        #: Caps on the answers of each subject.
        self.caps: defaultdict[str, set[int]] = defaultdict(set)
        #: Replies of each agent by whether they were truncated.
        self.truncated: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        self._clock = itertools.count()
        self._subject_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._in_flight: dict[Future[tuple[Result, Usage]], _PendingCall] = {}
        self._cancelled = threading.Event()

    def run(self, ready: Ready) -> dict[str, Any]:
        """Run conversations until no more can start, and return their results by name.

        Args:
            ready: Called at the start and after each conversation, with the results so far.
        """
        results: dict[str, Any] = {}
        active: dict[str, _ActiveConversation] = {}
        threads = ThreadPoolExecutor(self.concurrency)
        try:
            self._start(ready, results, active)
            while active:
                self._make_calls([call for conversation in active.values() for call in conversation.waiting()], threads)
                if self._in_flight and not any(c.complete or any(c.waiting()) for c in active.values()):
                    wait(self._in_flight, return_when=FIRST_COMPLETED)
                self._collect()
                self._advance(ready, results, active)
        except BaseException:
            self._cancelled.set()
            raise
        finally:  # the pool ends calls in flight when it is closed
            threads.shutdown(wait=False, cancel_futures=True)
        return results

    def _make_calls(self, waiting: Sequence[_PendingCall], threads: ThreadPoolExecutor) -> None:
        """Submit all calls to servers, and make those to one local model."""
        local = [pending for pending in waiting if pending.call.model not in self.pool.remote]
        for pending in waiting:
            if pending.call.model in self.pool.remote:
                pending.submitted = True
                if not self._recall(pending):
                    self._in_flight[threads.submit(self._make, pending)] = pending
        if local:
            local.sort(key=lambda pending: pending.since)
            name = self.pool.first(dict.fromkeys(pending.call.model for pending in local))[0]
            for pending in local:
                if pending.call.model == name and not self._recall(pending):
                    self._settle(pending, *self._make(pending))
                    self._collect()

    def _collect(self) -> None:
        """Store finished calls, successful ones first since a failed one ends the run."""
        done = [future for future in self._in_flight if future.done()]
        for future in sorted(done, key=lambda future: future.exception() is not None):
            self._settle(self._in_flight.pop(future), *future.result())

    def _start(self, ready: Ready, results: dict[str, Any], active: dict[str, _ActiveConversation]) -> None:
        """Start conversations, also those that can start since another made no call."""
        while new := {name: start for name, start in ready(results).items() if name not in (active | results)}:
            for name, start in new.items():
                conversation = _ActiveConversation(name, start(), self._clock.__next__)
                if conversation.advance(None):
                    active[name] = conversation
                else:
                    results[name] = conversation.result

    def _advance(self, ready: Ready, results: dict[str, Any], active: dict[str, _ActiveConversation]) -> None:
        for name in [name for name, conversation in active.items() if conversation.complete]:
            while active[name].complete:
                if not active[name].advance(active[name].results()):
                    results[name] = active.pop(name).result
                    self._start(ready, results, active)
                    break

    def _recall(self, pending: _PendingCall) -> bool:
        """Settle a call by the stored reply, if there is one."""
        call = pending.call
        self.models[call.model] = identity = self.pool.identity(call.model)
        pending.key = request_key(*identity_key(identity), call.role, call.position, call.prompt_key())
        reply = self.replies.recall(pending.key, call.count)
        if reply is None:
            return False
        self._record(pending, *reply)
        return True

    def _make(self, pending: _PendingCall) -> tuple[Result, Usage]:
        call = pending.call
        if isinstance(call, AgentCall):
            reply = self.pool.agent(call.model).ask(call.messages, draw=draw_number(call.role, call.position))
            return [Completion(reply.text, reply.status, detail=reply.detail)], reply.usage
        subject = self.pool.subject(call.model)
        with self._subject_locks[call.model]:  # the difference of usage must belong to these items
            if self._cancelled.is_set():
                raise CancelledError
            before = subject.usage
            answers = subject.answer(call.items)
            return answers, subject.usage - before

    def _settle(self, pending: _PendingCall, result: Result, usage: Usage) -> None:
        self._record(pending, result, usage)
        self.replies.keep(pending.key, result, usage)

    def _record(self, pending: _PendingCall, result: Result, usage: Usage) -> None:
        """Record the result of a call, and what is told of all calls."""
        pending.result, call = result, pending.call
        self.usage[pending.conversation][call.role] += usage
        if isinstance(call, AgentCall):
            self.truncated[call.model].update(completion.status is Status.TRUNCATED for completion in result)
        elif (cap := self.pool.cap(call.model)) is not None:
            self.caps[call.model] |= recorded_caps(cap, call.items)


@dataclass(slots=True)
class _PendingCall:
    """Call of a conversation; `since` orders calls by time."""

    conversation: str
    call: Call
    since: int
    submitted: bool = False
    key: str = ""
    result: Result | None = None


class _ActiveConversation:
    """Conversation with the calls that it waits for."""

    def __init__(self, name: str, conversation: Conversation[Any], clock: Callable[[], int]) -> None:
        self._name, self._conversation, self._clock = name, conversation, clock
        self._calls: list[_PendingCall] = []
        self.result: Any = None

    def advance(self, results: list[Result] | None) -> bool:
        """Send results, or start the conversation; return False if it has ended."""
        try:
            calls = next(self._conversation) if results is None else self._conversation.send(results)
        except StopIteration as end:
            self.result = end.value
            return False
        self._calls = [_PendingCall(self._name, call, self._clock()) for call in calls]
        return True

    def waiting(self) -> Iterator[_PendingCall]:
        """Iterate over calls that are to be made."""
        return (pending for pending in self._calls if pending.result is None and not pending.submitted)

    @property
    def complete(self) -> bool:
        """Whether all results have arrived."""
        return all(pending.result is not None for pending in self._calls)

    def results(self) -> list[Result]:
        """Return the results in the order of the calls."""
        return [pending.result or [] for pending in self._calls]
