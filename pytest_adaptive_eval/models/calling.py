"""Any callable as a subject: a function, a chain of LangChain, a completion of LiteLLM."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status, items_naming
from pytest_adaptive_eval.models.arrivals import Arrivals
from pytest_adaptive_eval.models.base import Arrived, Completion, Model, SubjectIdentity, sent_request

_log = logging.getLogger(__name__)
_Function = Callable[[Any], Any]
ASYNC_CONCURRENCY = 8  #: Number of items at once of an ``async def``.


class CallableModel(Model):
    """A subject that asks a callable: a plain one item by item, and an ``async def`` up to eight items at once.

    A callable takes the prompt as a text, or the item's messages as a list of objects with role and content. It returns
    a text, or an object that holds one as LangChain's messages (``content``) and OpenAI's and LiteLLM's completions
    (``choices[0].message.content``) do. An exception is a fault of the item.

    Args:
        checkpoint: Version of everything that determines the model, which changes with it. Without it no answer is
            kept for a later run.
        concurrency: Number of items at once. A plain function runs in as many threads, so it must not mix what it
            keeps of one item with another.
    """

    def __init__(
        self,
        function: _Function,
        name: str,
        *,
        checkpoint: str = "",
        messages: bool = False,
        concurrency: int | None = None,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"subject {name!r}: {function!r:.80} is not callable; give a function of the prompt")
        super().__init__(SubjectIdentity(name, checkpoint, {"messages": messages}))
        self._messages = messages
        self._noted = False
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
        if is_async:
            self._function = _timed_coroutine(function)
        else:
            self._function = _timed(function)
        if concurrency is None:
            self._concurrency = ASYNC_CONCURRENCY if is_async else 1
        else:
            self._concurrency = concurrency
        check_count("concurrency", self._concurrency)
        self.waits_apart = self._concurrency > 1
        self._arrivals = Arrivals()
        self._calls: _Threads | _EventLoop | None = None  # a plain function is called in the thread that asks
        if is_async:
            self._calls = _EventLoop(self._concurrency)
        elif self.waits_apart:
            self._calls = _Threads(self._concurrency, "adaptive-eval-callable")

    @property
    def shared_batch(self) -> int:
        """Number of items to have begun now."""
        if self.waits_apart:
            return self._concurrency
        return 0

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
        if self.unkept and not self._noted:
            _log.warning("%s", self.unkept)
            self._noted = True
        for item in items_naming(items, "images", "tools"):
            if item.images or item.tools:
                raise ConfigError(
                    f"item {item.id!r} has {'an image' if item.images else 'tools'}, and the callable "
                    f"{self.identity.name!r} takes texts: leave such items out, or write a Model"
                )

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        return self.answer_each(items, lambda _index, _completion: None)

    def answer_each(self, items: Sequence[Item], arrived: Arrived) -> list[Completion]:
        """Answer like `answer`, and call `arrived` with index and completion of each item, in order."""
        calls: list[tuple[Any, Callable[[], Any]]] = []
        if self._calls is None:
            for item in items:
                argument = self._input(item)
                calls.append((argument, partial(self._function, argument)))
        else:
            calls = [(argument, reply.result) for argument, reply in self._submit(self._calls, items)]
        completions = []
        for index, (argument, call) in enumerate(calls):
            completion = _completion(call, argument)
            completions.append(completion)
            arrived(index, completion)
        return completions

    def request(self, item: Item) -> bytes:
        """Return the prompt or the chat that the callable gets; see the base class."""
        return _written(self._input(item)).encode("utf-8", "surrogatepass")

    def _submit(self, calls: _Threads | _EventLoop, items: Sequence[Item]) -> list[tuple[Any, Future[Any]]]:
        """Begin the calls of items; return each argument with its reply."""
        inputs = [self._input(item) for item in items]
        return [(argument, calls.submit(self._function, argument)) for argument in inputs]

    def _input(self, item: Item) -> Any:
        messages = [dict(message) for message in item.messages] or [{"role": "user", "content": item.prompt}]
        if item.messages or self._messages:
            return messages
        return item.prompt

    def _send(self, items: Sequence[Item], arrived: Arrived, keep: Arrived) -> Callable[[], object]:
        assert self._calls is not None
        replies = self._submit(self._calls, items)

        def note(index: int, argument: Any, reply: Future[Any]) -> None:
            if not reply.cancelled():
                completion = _completion(reply.result, argument)
                keep(index, completion)
                self._arrivals.put(lambda: arrived(index, completion))

        for index, (argument, reply) in enumerate(replies):
            reply.add_done_callback(partial(note, index, argument))
        return lambda: [reply.cancel() for _, reply in replies]

    def take_arrived(self, *, wait: bool) -> None:
        """Call `arrived` for the answers of `begin` that are there; see the base class."""
        self._arrivals.take(wait=wait)

    def wake(self) -> None:
        """End a wait of `take_arrived`; see the base class."""
        self._arrivals.wake()

    def close(self) -> None:
        """End the threads, without the calls that have not begun."""
        super().close()
        if self._calls is not None:
            self._calls.close()


class _Threads(ThreadPoolExecutor):
    """Calls of a plain function, in threads of their own."""

    def close(self) -> None:
        """End the threads as they become free."""
        self.shutdown(wait=False, cancel_futures=True)


class _EventLoop:
    """Calls of an ``async def`` in one event loop, since its clients belong to one."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._free = asyncio.Semaphore(count)
        threading.Thread(target=self._run, name="adaptive-eval-callable", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def submit(self, function: _Function, argument: Any) -> Future[Any]:
        """Begin a call when few enough are open."""
        return asyncio.run_coroutine_threadsafe(self._call(function, argument), self._loop)

    async def _call(self, function: _Function, argument: Any) -> Any:
        async with self._free:
            return await function(argument)

    def close(self) -> None:
        """Stop the loop."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)


def _timed(function: _Function) -> _Function:
    """Return a function that returns what another one does, and the seconds that it took."""

    def call(argument: Any) -> tuple[Any, float]:
        begun = clock.elapsed()
        return function(argument), clock.elapsed() - begun

    return call


def _timed_coroutine(function: _Function) -> _Function:
    """Return `_timed` for an ``async def``."""

    async def call(argument: Any) -> tuple[Any, float]:
        begun = clock.elapsed()
        return await function(argument), clock.elapsed() - begun

    return call


def _completion(reply: Callable[[], Any], argument: Any) -> Completion:
    """Return the completion of a call with a text or a chat; its exception is a fault of the item."""
    request = sent_request(_written(argument))
    try:
        answer, seconds = reply()
        return Completion(_text(answer), request=request, measures={"seconds": seconds})
    except Exception as error:  # of any library
        if isinstance(error, TimeoutError):
            status = Status.TIMEOUT
        else:
            status = Status.ERROR
        return Completion("", status, detail=f"{type(error).__name__}: {error}", request=request)


def _written(argument: Any) -> str:
    if isinstance(argument, str):
        return argument
    return json.dumps(argument, default=str)


_MISSING = object()  #: In place of a content that a reply does not have.


def _text(reply: Any) -> str:
    """Return the text in a reply, empty where a message has none; raise TypeError for other replies."""
    if isinstance(reply, str):
        return reply
    if choices := _field(reply, "choices"):
        reply = _field(choices[0], "message")
    content = _field(reply, "content", _MISSING)
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _field(part, "text") for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    raise TypeError(
        f"the callable returned {type(reply).__name__}, expected a text, or an object with content or "
        "choices[0].message.content"
    )


def _field(value: Any, name: str, default: Any = None) -> Any:
    if isinstance(value, Mapping):
        return value.get(name, default)
    return getattr(value, name, default)
