"""Concurrent conversations with models.

A conversation is a generator: it yields calls, receives their results, and returns its result. It depends on its own
results alone, so the order of calls does not matter. Models in memory are called first. Another model is loaded only
when no conversation waits for them, and then the one with the longest waiting call. Meanwhile models behind servers are
called concurrently.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Message, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import recorded_caps
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.request_keys import draw_number
from pytest_adaptive_eval.models.store import CompletionStore

Role = Literal["interviewee", "panel", "interviewer", "supervisor"]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A chat, whose result is one completion, or items, whose result is one completion each.

    Args:
        position: Position in the network, which makes equal chats distinct.
    """

    model: str
    role: Role
    position: tuple[str | int, ...]
    messages: tuple[Message, ...] = ()
    items: tuple[Item, ...] = ()


Result = list[Completion]
#: Yields calls, receives one result per call, and returns its own result.
Conversation = Generator[Sequence[AgentCall], list[Result], Value]
#: Returns functions that start conversations, by name, given the results so far.
Ready = Callable[[Mapping[str, Any]], Mapping[str, Callable[[], Conversation[Any]]]]


class Engine:
    """Scheduler of conversations.

    Args:
        replied: Called for each reply that the store did not have.
    """

    def __init__(
        self,
        pool: ModelPool,
        store: CompletionStore,
        concurrency: int = 8,
        replied: Callable[[], object] = lambda: None,
    ) -> None:
        self.pool = pool
        self.concurrency = concurrency
        self._store = store
        self._replied = replied
        #: Replies that the store had.
        self.recalled = 0
        #: Usage by conversation and by role.
        self.usage: defaultdict[str, defaultdict[str, Usage]] = defaultdict(lambda: defaultdict(Usage))
        self.models: dict[str, SubjectIdentity] = {}
        #: Caps on the answers of each model to items.
        self.caps: defaultdict[str, set[int]] = defaultdict(set)
        #: Replies of each model in chats by whether they were truncated.
        self.truncated: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        self._clock = itertools.count()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._in_flight: dict[Future[Result], _PendingCall] = {}
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
                waiting: list[_PendingCall] = []
                for conversation in active.values():
                    waiting += conversation.waiting()
                self._make_calls(waiting, threads)
                can_go_on = any(c.complete or any(c.waiting()) for c in active.values())
                if self._in_flight and not can_go_on:
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
        local = []
        for pending in waiting:
            if pending.call.model in self.pool.remote:
                pending.submitted = True
                future = threads.submit(self._make, pending.call)
                self._in_flight[future] = pending
            else:
                local.append(pending)
        if local:
            local.sort(key=lambda pending: pending.since)
            names = dict.fromkeys(pending.call.model for pending in local)
            name, *_ = self.pool.first(names)
            for pending in local:
                if pending.call.model == name:
                    self._settle(pending, self._make(pending.call))
                    self._collect()

    def _collect(self) -> None:
        """Take finished calls, successful ones first since a failed one ends the run."""
        done = [future for future in self._in_flight if future.done()]
        for future in sorted(done, key=lambda future: future.exception() is not None):
            self._settle(self._in_flight.pop(future), future.result())

    def _start(self, ready: Ready, results: dict[str, Any], active: dict[str, _ActiveConversation]) -> None:
        """Start conversations, including ones that can start because another made no call."""
        has_new_result = True
        while has_new_result:
            has_new_result = False
            for name, start in ready(results).items():
                if name in active or name in results:
                    continue
                conversation = _ActiveConversation(name, start(), self._clock.__next__)
                if conversation.advance(None):
                    active[name] = conversation
                else:
                    results[name] = conversation.result
                    has_new_result = True

    def _advance(self, ready: Ready, results: dict[str, Any], active: dict[str, _ActiveConversation]) -> None:
        for name, conversation in list(active.items()):
            while conversation.complete:
                goes_on = conversation.advance(conversation.results())
                if not goes_on:
                    del active[name]
                    results[name] = conversation.result
                    self._start(ready, results, active)
                    break

    def _make(self, call: AgentCall) -> Result:
        model = RecordedModel(self.pool.model(call.model), self._store)
        if call.messages:
            return [model.ask(call.messages, draw=draw_number(call.role, call.position))]
        with self._locks[call.model]:  # the difference of usage must belong to these items
            if self._cancelled.is_set():
                raise CancelledError
            return model.answer(call.items)

    def _settle(self, pending: _PendingCall, result: Result) -> None:
        """Record the result of a call, and report all calls."""
        pending.result = result
        call = pending.call
        recalled = sum(completion.reused for completion in result)
        self.recalled += recalled
        for _ in range(len(result) - recalled):
            self._replied()
        facts = self.pool.facts(call.model)
        self.models[call.model] = facts.identity
        cost = sum((completion.cost for completion in result), Usage())
        self.usage[pending.conversation][call.role] += cost
        if call.messages:
            self.truncated[call.model].update(completion.status is Status.TRUNCATED for completion in result)
        elif facts.cap is not None:
            self.caps[call.model] |= recorded_caps(facts.cap, call.items)


@dataclass(slots=True)
class _PendingCall:
    """Call of a conversation; `since` orders calls by time."""

    conversation: str
    call: AgentCall
    since: int
    submitted: bool = False
    result: Result | None = None


class _ActiveConversation:
    """Conversation with the calls that it waits for."""

    def __init__(self, name: str, conversation: Conversation[Any], clock: Callable[[], int]) -> None:
        self._name = name
        self._conversation = conversation
        self._clock = clock
        self._calls: list[_PendingCall] = []
        self.result: Any = None

    def advance(self, results: list[Result] | None) -> bool:
        """Send results, or start the conversation; return False if it has ended."""
        try:
            if results is None:
                calls = next(self._conversation)
            else:
                calls = self._conversation.send(results)
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
