"""A client of an OpenAI-compatible server: each request ends with one status, within limits of time and size."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import os
import re
import ssl
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import httpcore2

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.api_keys import Secret, hide_from_now_on, without_keys
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import sent_request
from pytest_adaptive_eval.models.endpoint.body import RefusedReply, excerpt, header, read_bytes, read_object
from pytest_adaptive_eval.models.endpoint.connections import Backend, Stale
from pytest_adaptive_eval.models.endpoint.limits import (
    FIRST,
    LONGEST,
    LONGEST_PACED,
    Backoff,
    OpenTime,
    Pace,
    Window,
)
from pytest_adaptive_eval.models.endpoint.outcome import (
    DOUBTFUL,
    FILTERED,
    MEANINGS,
    TOO_SLOW,
    WAITING,
    Attempt,
    Body,
    CallFault,
    Delivered,
    Delivery,
    Request,
)
from pytest_adaptive_eval.models.endpoint.settings import Additions
from pytest_adaptive_eval.retry_after import retry_after
from pytest_adaptive_eval.text import Tell

T = TypeVar("T")

#: Limit of a reply after decompression, in bytes: half a million tokens; 16 at the same time stay within 100 MB.
MAX_BYTES = 2 << 20
#: Limit of a reply that reports a fault, in bytes.
FAULT_BYTES = 64 << 10
#: Requests at once at first and at most, where the user sets no number.
START_CONCURRENCY, MOST_CONCURRENCY = 8, 64
#: Seconds that an idle connection is kept; servers close theirs after 5 or more.
IDLE_SECONDS = 4.0
#: Seconds between two checks for a starting server, at first and at most.
START_PAUSE, LONGEST_START_PAUSE = 0.1, 2.0
#: Time limit for closing, in seconds.
CLOSE_SECONDS = 5.0
NOTHING = Additions()
#: Words of errors that come with HTTP 200, and the status codes that they mean.
_ERROR_WORDS = (
    (r"rate.?limit|too.?many|resource.?exhausted", 429),
    (r"overloaded|unavailable", 503),
    (r"server.?error|internal", 500),
)


class _Loop(asyncio.SelectorEventLoop):
    """A loop of asyncio, whatever policy a project sets, that goes by the real clock."""

    def time(self) -> float:
        return clock.elapsed()

    def run(self) -> None:
        """Run until stopped, and close: only the thread of the loop knows when that is."""
        self.run_forever()
        self.close()


class _Slots:
    """Slots for requests at the server; retries come before new requests.

    Args:
        limit: Returns the number of slots, which may change.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._taken = 0
        self._again: deque[asyncio.Future[None]] = deque()
        self._first: deque[asyncio.Future[None]] = deque()

    async def take(self, *, again: bool) -> None:
        """Wait for a slot."""
        slot = asyncio.get_running_loop().create_future()
        (self._again if again else self._first).append(slot)
        self._hand_out()
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():  # it came at the same moment
                self.give_back()
            raise

    def give_back(self) -> None:
        """Free a slot for the next request."""
        self._taken -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._taken < self._limit() and (queue := self._again or self._first):
            if not (slot := queue.popleft()).done():
                self._taken += 1
                slot.set_result(None)


class Wire:
    """A client of one server with a synchronous interface.

    Requests run in an event loop and thread of their own, independent of the caller's loop. Redirects are not followed,
    cookies are not stored, and nothing is read from the environment.

    Args:
        url: Address that paths are added to.
        key: Sent as a bearer token.
        timeout: Seconds from the first byte sent to the last one received, with all tries and the waits
            between them.
        concurrency: Requests at the server at once; by default 8 at first, and up to 64 while throughput grows.
        retries: Retries of a request that fails while the server answers others.
        proxy: URL of a proxy; the environment's are not used.
        backoff: Upper limit of the seconds before the first retry.
    """

    def __init__(
        self,
        url: str,
        *,
        key: Secret | None = None,
        timeout: float = 120.0,
        concurrency: int | None = None,
        rate: float | None = None,
        retries: int = 3,
        proxy: str | None = None,
        additions: Additions = NOTHING,
        seed: int = 0,
        backoff: float = FIRST,
    ) -> None:
        self.url = url
        self._key = key
        self._timeout = timeout
        self._most_retries = retries
        if proxy:
            self._proxy = urlsplit(proxy).netloc.rpartition("@")[2]
        else:
            self._proxy = ""
        if proxy and (password := urlsplit(proxy).password):
            hide_from_now_on(password)
            hide_from_now_on(unquote(password))
        if additions.query:
            self._query = f"?{additions.query}"
        else:
            self._query = ""
        self._headers: dict[bytes | str, bytes | str] = {"Host": urlsplit(url).netloc, "Accept-Encoding": "identity"}
        self._headers.update(additions.headers)
        self._backoff = Backoff(seed, backoff)
        self._pace = Pace(rate)
        self._open_time = OpenTime()
        self._window = Window(concurrency or START_CONCURRENCY, concurrency or MOST_CONCURRENCY)
        self._slots = _Slots(lambda: self._window.limit)
        #: Requests that were sent and not answered yet, and those that wait for their next try.
        self._under_way = self._resting = 0
        self._queue = asyncio.Lock()
        self._last_answer = -math.inf
        #: Path and body of the latest answered request.
        self._sound: tuple[str, bytes] | None = None
        self._pool = _pool(url, proxy)
        self._loop = _Loop()
        self._thread = threading.Thread(target=self._loop.run, name="adaptive-eval: endpoint", daemon=True)
        self._thread.start()
        self._end = weakref.finalize(self, _shut, os.getpid(), self._loop, self._thread, self._pool)

    @property
    def concurrency(self) -> int:
        """Number of requests to have begun now: the ones that may be at the server, and at most as many waiting."""
        limit = self._window.limit
        return limit + min(self._resting, limit)

    def get(self, path: str, *, start_timeout: float = 0.0, tell: Tell | None = None) -> Delivery:
        """Fetch a JSON object; wait `start_timeout` seconds for a starting server, after `tell` got the reason."""
        if start_timeout and (delivery := self._run(self._await_start(path, start_timeout, tell))) is not None:
            return delivery
        return self._run(self._deliver("GET", path, None))

    def post(
        self,
        path: str,
        bodies: Sequence[Body],
        arrived: Delivered | None = None,
    ) -> list[Delivery]:
        """Send JSON, at the same time within the limits, and return the deliveries in order.

        A body that is a function is created at its turn, to save memory; its exception is the delivery's error.
        `arrived` is called with the index and the delivery of each request as soon as it is there, in the thread of the
        connections.
        """
        return self._run(self._deliver_all(path, bodies, arrived))

    def begin(self, path: str, bodies: Sequence[Body], arrived: Delivered) -> Future[list[Delivery]]:
        """Send JSON like `post`, without waiting for the deliveries."""
        return self._begin(self._deliver_all(path, bodies, arrived))

    def close(self) -> None:
        """Close all connections."""
        self._end()

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._end.alive or not self._thread.is_alive():
            work.close()
            raise ConfigError(f"the connection to {self.url!r} was closed; load the model again")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        if self._end.peek() is None:  # another thread closed it meanwhile, and the loop may not come to this request
            future.cancel()
        return future

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._begin(work)
        try:
            return future.result()
        except BaseException:  # an interrupt, or a time limit of the test
            future.cancel()
            raise

    async def _await_start(self, path: str, seconds: float, tell: Tell | None) -> Delivery | None:
        """Return the final reply of a server once it has started; None if it has not, or if another try may help."""
        end = self._loop.time() + seconds
        pause = START_PAUSE
        while True:
            try:
                async with asyncio.timeout(self._timeout):
                    last = await self._attempt("GET", path, None)
            except TimeoutError:
                return None
            starting = last.fault is CallFault.ABSENT or last.delivery.code == 503
            if not starting or self._proxy or self._loop.time() + pause > end:
                if last.fault is CallFault.FINAL:
                    return last.delivery
                return None
            if tell is not None:
                tell(f"waiting up to {seconds:g} s for {self.url} to start: {last.delivery.detail}")
                tell = None
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, LONGEST_START_PAUSE)

    async def _deliver_all(
        self,
        path: str,
        bodies: Sequence[Body],
        arrived: Delivered | None,
    ) -> list[Delivery]:
        async def deliver(index: int, body: Body) -> Delivery:
            delivery = await self._deliver("POST", path, body)
            if arrived is not None:
                arrived(index, delivery)
            return delivery

        async with asyncio.TaskGroup() as group:  # a failure of `arrived` ends the others
            tasks = []
            for numbered in enumerate(bodies):
                tasks.append(group.create_task(deliver(*numbered)))
        return [task.result() for task in tasks]

    async def _deliver(self, method: str, path: str, body: Body | None) -> Delivery:
        request = Request(method, path)
        await self._take_slot(request)
        try:
            return await self._deliver_from_slot(request, body)
        finally:
            self._leave_slot(request)

    async def _deliver_from_slot(self, request: Request, body: Body | None) -> Delivery:
        try:
            if callable(body):
                request.content = await asyncio.to_thread(body)
            else:
                request.content = body
        except Exception as error:
            return Delivery(Status.ERROR, {}, without_keys(f"{type(error).__name__}: {error}"))
        start = self._loop.time()
        request.deadline = start + self._timeout
        self._open_time.begin(start)
        try:
            async with asyncio.timeout_at(request.deadline):
                delivery = await self._persist(request)
        except TimeoutError:
            delivery = self._too_late(request)
        finally:
            ended = self._loop.time()
            seconds = self._open_time.end(ended)
        took = ended - request.begun
        return replace(delivery, seconds=seconds, took=took, sent=sent_request((request.content or b"").decode()))

    async def _take_slot(self, request: Request) -> None:
        await self._slots.take(again=bool(request.tries))
        request.in_slot = True

    def _leave_slot(self, request: Request) -> None:
        if request.in_slot:
            request.in_slot = False
            self._slots.give_back()

    async def _rest(self, request: Request, seconds: float) -> None:
        """Wait for the next try; others use the slot meanwhile."""
        self._resting += 1
        self._leave_slot(request)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._resting -= 1
        await self._take_slot(request)

    def _too_late(self, request: Request) -> Delivery:
        """Return the delivery of a request whose deadline passed."""
        detail = f"no complete reply within {self._timeout:g} s"
        if request.last is None:
            return Delivery(Status.TIMEOUT, {}, f"{detail}: raise timeout, or lower max_tokens")
        last = request.last.delivery
        if request.sent:
            return Delivery(Status.TIMEOUT, {}, f"{detail}; before that: {last.detail}")
        return replace(last, detail=f"{last.detail}; {detail}, in {_times(request.tries)}")

    async def _persist(self, request: Request) -> Delivery:
        """Try until there is a reply, or a fault that no further try can fix."""
        while True:
            last = await self._try(request.method, request.path, request.content, request)
            if last.fault is CallFault.FINAL:
                return last.delivery
            if last.too_many or last.fault is CallFault.ABSENT:
                longest = LONGEST_PACED
            else:
                longest = LONGEST
            delay = max(self._backoff.seconds(request.tries, longest), last.wait)
            if last.fault is CallFault.DOUBTFUL or (last.fault is CallFault.ABSENT and self._sound is None):
                request.doubtful += 1
            if request.doubtful > self._most_retries:
                if self._sound is None or request.answered_before > request.previous_fault:
                    tried = f"given up after {_times(request.tries)}"
                    return replace(last.delivery, detail=f"{last.delivery.detail}; {tried}")
                await self._try("POST", *self._sound)  # check whether the server answers what it answered before
            if last.wait and self._loop.time() + last.wait >= request.deadline:
                detail = f"{last.delivery.detail}; the server asks to wait {last.wait:.3g} s, longer than the timeout"
                return replace(last.delivery, detail=detail)
            await self._rest(request, delay)

    async def _try(self, method: str, path: str, content: bytes | None, request: Request | None = None) -> Attempt:
        """Send a request at its turn, and fit the window to its result."""
        await self._take_turn()
        begun = self._loop.time()
        if request is not None:
            request.sent, request.answered_before, request.begun = True, self._last_answer, begun
        last = None
        self._under_way += 1
        self._window.begin(begun, self._under_way)
        try:
            while last is None:
                with contextlib.suppress(Stale):  # not a fault: another connection follows, in the end a new one
                    last = await self._attempt(method, path, content)
        except asyncio.CancelledError:
            self._window.shrink(begun, self._loop.time())
            raise
        finally:
            self._under_way -= 1
        now = self._loop.time()
        if last.too_many or last.delivery.code in TOO_SLOW:
            self._window.shrink(begun, now)
        elif last.fault is CallFault.FINAL and last.delivery.code:
            self._window.accept(begun, now)
        if last.delivery.status is Status.OK:
            self._last_answer = now
            if content is not None:
                self._sound = path, content
        if request is not None:
            request.note(last, now)
        return last

    async def _take_turn(self) -> None:
        """Wait for the turn of a request, first come, first served."""
        async with self._queue:
            while (wait := self._pace.wait(now := self._loop.time())) > 0.0:
                await asyncio.sleep(wait)
            self._pace.begin(now, self._window.gap)

    async def _attempt(self, method: str, path: str, content: bytes | None) -> Attempt:
        headers = dict(self._headers)
        code = 0
        try:
            if self._key is not None:
                headers["Authorization"] = f"Bearer {self._key.reveal()}"
            if content is not None:
                headers |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
            async with self._pool.stream(
                method, self.url + path + self._query, headers=headers, content=content
            ) as response:
                code = response.status
                if code == 200:
                    data = await read_object(response, MAX_BYTES)
                    names = {name.decode("latin-1").lower() for name, _ in response.headers}
                    if method == "POST" and not data.get("choices"):
                        return self._error_in_success(data, response)
                    limits = {}
                    for x in names:
                        if x.startswith(("x-", "cf-")):
                            limits[x] = without_keys(header(response, x))
                    return Attempt(Delivery(Status.OK, data, code=code, headers=limits))
                return await self._fault(response)
        except Stale:
            raise
        except RefusedReply as error:
            return Attempt(Delivery(Status.ERROR, {}, str(error), code))
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError, httpcore2.ProxyError) as error:
            return Attempt(Delivery(Status.ERROR, {}, self._describe(error), code), self._cause(error))
        except Exception as error:  # whatever else a hostile reply sets off in the libraries below
            return Attempt(Delivery(Status.ERROR, {}, self._describe(error), code))

    def _cause(self, error: Exception) -> CallFault:
        if _is_tls(error):
            return CallFault.FINAL
        if isinstance(error, httpcore2.ProxyError):
            passing = str(error)[:3].isdigit() and int(str(error)[:3]) in WAITING
            if passing:
                return CallFault.WAITING
            return CallFault.FINAL
        refused = any(getattr(link, "errno", None) == errno.ECONNREFUSED for link in _chain(error))
        if refused:
            return CallFault.ABSENT
        return CallFault.DOUBTFUL

    async def _fault(self, response: httpcore2.Response) -> Attempt:
        """Return the meaning of a reply that is not an answer."""
        code = response.status
        detail = f"HTTP {code}"
        if 300 <= code < 400:
            target = excerpt(header(response, "location"))
            detail += f": the server redirects to {target or 'nowhere'}, which is not followed; give the final address"
            return Attempt(Delivery(Status.ERROR, {}, detail, code))
        if code in MEANINGS:
            detail += f": {MEANINGS[code]}"
        message, error_code = "", ""
        # the code alone says enough
        with contextlib.suppress(RefusedReply, httpcore2.NetworkError, httpcore2.ProtocolError):
            message, error_code = _error_message(await read_bytes(response, FAULT_BYTES))
        if message := message.strip():
            detail += f"; it says {excerpt(message)}"
        if code in (400, 403) and error_code in FILTERED:
            return Attempt(Delivery(Status.REFUSED, {}, detail, code))
        status = Status.TIMEOUT if code in TOO_SLOW else Status.ERROR
        wait = retry_after(header(response, "retry-after"), clock.now()) or 0.0
        return Attempt(Delivery(status, {}, detail, code), _fault_of(code), wait)

    def _error_in_success(self, data: Mapping[str, Any], response: httpcore2.Response) -> Attempt:
        """Return the meaning of an error that came with HTTP 200, by the status code that its body names or means."""
        message, error_code = _error_of(data, json.dumps(data))
        error = data.get("error")
        code = error_code_of(f"{error_code} {_field(error, 'status')} {_field(error, 'type')}")
        detail = f"an error came as a success: {excerpt(message)}"
        wait = retry_after(header(response, "retry-after"), clock.now()) or 0.0
        return Attempt(
            Delivery(Status.TIMEOUT if code in TOO_SLOW else Status.ERROR, {}, detail, code), _fault_of(code), wait
        )

    def _describe(self, error: Exception) -> str:
        """Return the description of a library's error, with that of the system if the library has none."""
        message = next((str(link) for link in _chain(error) if str(link)), "")
        for link in _chain(error):
            if isinstance(link, ssl.SSLError):
                number = None
            else:
                number = getattr(link, "errno", None)
            if number is not None and number > 0:  # negative numbers are of unknown host names
                message = os.strerror(number)
        words = f"{type(error).__name__}: {excerpt(message)}".removesuffix(": ")
        if self._proxy and isinstance(error, httpcore2.ConnectError | httpcore2.ProxyError) and not _is_tls(error):
            return f"the proxy {self._proxy} (option proxy) does not give a connection: {words}; check the proxy"
        return words


def _pool(url: str, proxy: str | None) -> httpcore2.AsyncConnectionPool:
    parts = urlsplit(proxy or "")
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    auth = None
    if "@" in parts.netloc:
        auth = (unquote(parts.username or ""), unquote(parts.password or ""))
    return httpcore2.AsyncConnectionPool(
        ssl_context=httpcore2.default_ssl_context() if url.startswith("https:") else None,
        proxy=httpcore2.Proxy(address, auth=auth) if proxy else None,
        max_connections=None,
        keepalive_expiry=IDLE_SECONDS,
        network_backend=Backend(),
    )


def _error_message(raw: bytearray | None) -> tuple[str, str]:
    """Return message and code of an error reply, in any of the forms in use, or else its text."""
    text = (raw or bytearray()).decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    return _error_of(data, text)


def _error_of(data: Any, text: str = "") -> tuple[str, str]:
    """Return message and code of an error; `text` is the message of one without."""
    if isinstance(data, Mapping):
        inner = data.get("error", data)
    else:
        inner = data
    if isinstance(inner, str):
        return inner, ""
    if not isinstance(inner, Mapping):
        return text, ""
    message = next((inner[key] for key in ("message", "detail", "msg") if isinstance(inner.get(key), str)), text)
    return message, str(inner.get("code", ""))


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return None


def error_code_of(words: str) -> int:
    """Return the HTTP status code that an error's code, status and type name or mean; 200 if they say nothing."""
    if number := re.search(r"\b[45]\d\d\b", words):
        return int(number[0])
    for pattern, code in _ERROR_WORDS:
        if re.search(pattern, words, re.IGNORECASE):
            return code
    return 200


def _fault_of(code: int) -> CallFault:
    if code in WAITING:
        return CallFault.WAITING
    if code in DOUBTFUL:
        return CallFault.DOUBTFUL
    return CallFault.FINAL


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_tls(error: BaseException) -> bool:
    return any(isinstance(link, ssl.SSLError) for link in _chain(error))


def _times(count: int) -> str:
    if count > 1:
        return f"{count} tries"
    return "one try"


def _shut(
    process: int,
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    pool: httpcore2.AsyncConnectionPool,
) -> None:
    """End the loop and its connections; a forked child has neither."""
    if os.getpid() != process or not thread.is_alive():
        return

    async def end() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await pool.aclose()
        await asyncio.sleep(0)  # for the sockets to close

    ending = asyncio.run_coroutine_threadsafe(end(), loop)
    ending.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
    if threading.current_thread() is thread:  # the last reference went there
        return
    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        ending.result(CLOSE_SECONDS)
    thread.join(CLOSE_SECONDS)
