"""The way to an OpenAI-compatible server and back: every request ends in exactly one status, in time and in bounds."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import re
import ssl
import threading
import weakref
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import httpcore2

from pytest_adaptive_eval.core.item import Status
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.endpoint_additions import Additions
from pytest_adaptive_eval.models.endpoint_limits import FIRST, Breaker, Pace, Retries, retry_after
from pytest_adaptive_eval.models.endpoint_network import Backend, Line, Stale
from pytest_adaptive_eval.models.endpoint_secrets import Redactor, Secret

__all__ = ["Delivery", "Wire", "excerpt"]

T = TypeVar("T")

#: Bytes of a reply after decompression: half a million tokens of text, and 16 at once stay within 100 MB.
MAX_BYTES = 2 << 20
#: Texts of a reply, and its bytes outside them; a million small values would take long to read, and more to hold.
TEXTS, FORM_BYTES = 10_000, 64 << 10
#: A text in JSON, also one that does not end: the pattern always matches, and in linear time.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
#: Pieces of a reply that are read before other requests have their turn.
PIECES = 256
#: Bytes read of a reply that only tells of a fault.
FAULT_BYTES = 64 << 10
#: Characters of a server's words that are shown.
SHOWN = 300
#: Failures in a row after which a server is left alone, and for how many seconds.
BREAK_AFTER, REST_SECONDS = 8, 5.0
#: Seconds that a connection is kept for the next request; servers close theirs after 5 or more.
IDLE_SECONDS = 4.0
#: Seconds that closing may take.
CLOSE_SECONDS = 5.0
NOTHING = Additions()

MEANINGS: Mapping[int, str] = {
    400: "the request is malformed, or sets what this server does not know",
    401: "the key is missing or wrong",
    402: "the account cannot pay",
    403: "the key may not do this",
    404: "no such path or model",
    405: "the path takes no such request",
    408: "the server gave up waiting",
    413: "the prompt is too large",
    415: "the server takes no JSON",
    422: "a field of the request is wrong",
    425: "too early",
    429: "too many requests",
    500: "the server failed",
    501: "the server cannot do this",
    502: "the server behind the gateway failed",
    503: "the server is overloaded or starting",
    504: "the server behind the gateway took too long",
    529: "the server is overloaded",
}
#: Worth another try; the second set is a time limit of the server's own.
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
TOO_SLOW = frozenset({408, 504})
#: Failures that say something about the server and nothing about the request.
SERVER_FAULTS = (AGAIN - {429}) | {401, 402, 403}
#: Codes by which a server says that it filtered a prompt.
FILTERED = frozenset({"content_filter", "content_policy_violation"})


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one request.

    Parameters
    ----------
    status : Status
        ``ok`` when the server replied with a JSON object.
    data : mapping
        The object; empty where the status is not ok.
    detail : str
        What happened; holds foreign text, and no secret.
    code : int
        Of HTTP; 0 when there was no reply.
    seconds : float
        From the first try to the end, the waits between tries included.
    headers : mapping
        The reply's headers that no standard defines (``x-...``, ``cf-...``), names in lower case, without secrets;
        empty where the status is not ok.
    """

    status: Status
    data: Mapping[str, Any]
    detail: str = ""
    code: int = 0
    seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Try:
    """One attempt: what it gave, whether another may help, and how soon that is welcome."""

    delivery: Delivery
    again: bool = False
    server_fault: bool = False
    wait: float = 0.0


class _Refused(Exception):
    """A reply that is not taken; the message says why."""


class Wire:
    """A client of one server, with a synchronous face.

    Requests run in an event loop of the wire's own, in a thread of its own, so
    that a loop of the caller is not in the way.  Nothing is followed, stored or
    taken from the environment: below is a bare pool of connections.

    Parameters
    ----------
    url : str
        What paths are added to.
    key : Secret, optional
        Sent as a bearer token.
    timeout : float
        Seconds from the first byte sent to the last one received, all tries included.
    concurrency : int
        Requests at once.
    rate : float, optional
        Requests begun per second.
    retries : int
        Of one request.
    proxy : str, optional
        URL; those of the environment are not used.
    additions : Additions
        Headers and query of each request.
    seed : int
        Of the jitter between retries.
    max_bytes : int
        Of a reply, after decompression.
    backoff, rest : float
        Seconds before the first retry at most; seconds that a failing server is left alone.
    """

    def __init__(
        self,
        url: str,
        *,
        key: Secret | None = None,
        timeout: float = 120.0,
        concurrency: int = 16,
        rate: float | None = None,
        retries: int = 3,
        proxy: str | None = None,
        additions: Additions = NOTHING,
        seed: int = 0,
        max_bytes: int = MAX_BYTES,
        backoff: float = FIRST,
        rest: float = REST_SECONDS,
    ) -> None:
        self.url = url
        self._key, self._timeout, self._most = key, timeout, max_bytes
        self._redactor = Redactor(key, proxy, additions.secrets)
        self._query = f"?{additions.query}" if additions.query else ""
        self._headers: dict[bytes | str, bytes | str] = {
            "Host": urlsplit(url).netloc,
            "Accept-Encoding": "identity",
        }
        self._headers.update(additions.headers)
        self._retries, self._pace = Retries(retries, seed, backoff), Pace(rate)
        self._breaker = Breaker(BREAK_AFTER, rest)
        self._slots = asyncio.Semaphore(concurrency)
        self._pool = _pool(url, proxy)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="adaptive-eval: endpoint", daemon=True)
        self._thread.start()
        self._redactor.listen()
        self._end = weakref.finalize(self, _shut, os.getpid(), self._loop, self._thread, self._pool, self._redactor)

    def get(self, path: str) -> Delivery:
        """Fetch a JSON object."""
        return self._run(self._deliver("GET", path, None))

    def post(self, path: str, bodies: Sequence[bytes | Callable[[], bytes]]) -> list[Delivery]:
        """Send JSON, all at once as far as the limits allow; the deliveries are in order.

        A body that takes long to make, or much memory, is made when its turn
        has come; what goes wrong there is the delivery's error.
        """
        return self._run(self._deliver_all(path, bodies))

    def close(self) -> None:
        """End all connections."""
        self._end()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._end.alive or not self._thread.is_alive():
            work.close()
            raise ConfigError(f"the connection to {self.url!r} was closed; load the model again")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:  # an interrupt, or a time limit of the test
            future.cancel()
            raise

    async def _deliver_all(self, path: str, bodies: Sequence[bytes | Callable[[], bytes]]) -> list[Delivery]:
        return list(await asyncio.gather(*(self._deliver("POST", path, body) for body in bodies)))

    async def _deliver(self, method: str, path: str, body: bytes | Callable[[], bytes] | None) -> Delivery:
        async with self._slots:
            try:
                content = await asyncio.to_thread(body) if callable(body) else body
            except Exception as error:
                return Delivery(Status.ERROR, {}, self._clean(f"{type(error).__name__}: {error}"))
            await self._keep_pace()
            self._retries.begin()
            start = self._loop.time()
            tries: list[_Try] = []
            try:
                async with asyncio.timeout(self._timeout):
                    delivery = await self._persist(method, path, content, start + self._timeout, tries)
            except TimeoutError:
                self._breaker.note(failed=True, now=self._loop.time())
                before = f"; before that: {tries[-1].delivery.detail}" if tries else ""
                detail = f"no complete reply within {self._timeout:g} s{before}"
                delivery = Delivery(Status.TIMEOUT, {}, detail)
            return replace(delivery, seconds=self._loop.time() - start)

    async def _persist(
        self, method: str, path: str, content: bytes | None, deadline: float, tries: list[_Try]
    ) -> Delivery:
        """Try until there is a reply, or no use in another try."""
        while True:
            if rest := self._breaker.closed(self._loop.time()):
                why = tries[-1].delivery.detail if tries else f"its last {BREAK_AFTER} replies were failures"
                detail = f"{why}; the server is left alone for {rest:.1f} s"
                return replace(tries[-1].delivery, detail=detail) if tries else Delivery(Status.ERROR, {}, detail)
            last = None
            while last is None:
                with contextlib.suppress(Stale):  # no fault: on to another connection, in the end a new one
                    last = await self._attempt(method, path, content)
            tries.append(last)
            self._breaker.note(last.server_fault, self._loop.time())
            if not last.again:
                return last.delivery
            delay = self._retries.take(len(tries) - 1)
            if delay is None:
                return replace(last.delivery, detail=f"{last.delivery.detail}; given up after {_times(len(tries))}")
            delay = max(delay, last.wait)
            if self._loop.time() + delay >= deadline:
                detail = f"{last.delivery.detail}; the next try, {delay:.3g} s later, would end too late"
                return replace(last.delivery, detail=detail)
            await asyncio.sleep(delay)
            await self._keep_pace()

    async def _keep_pace(self) -> None:
        if (wait := self._pace.wait(self._loop.time())) > 0.0:
            await asyncio.sleep(wait)

    async def _attempt(self, method: str, path: str, content: bytes | None) -> _Try:
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
                    data = await self._object(response)
                    return _Try(Delivery(Status.OK, data, code=code, headers=self._own_headers(response)))
                return await self._fault(response)
        except Stale:
            raise
        except _Refused as error:
            return _Try(Delivery(Status.ERROR, {}, str(error), code))
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError, httpcore2.ProxyError) as error:
            again = not isinstance(error, httpcore2.ProxyError) and not _is_tls(error)
            return _Try(Delivery(Status.ERROR, {}, self._words(error), code), again, server_fault=True)
        except Exception as error:  # whatever else a hostile reply sets off in the libraries below
            return _Try(Delivery(Status.ERROR, {}, self._words(error), code))

    async def _object(self, response: httpcore2.Response) -> Mapping[str, Any]:
        """The JSON object that a reply holds."""
        kind = _header(response, "content-type").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise _Refused(f"the reply is {excerpt(self._clean(kind)) or 'of no type'}, expected application/json")
        raw = await self._read(response, self._most)
        if raw is None:
            raise _Refused(f"the reply has more than {self._most} bytes, after decompression")
        if len(raw) > FORM_BYTES and not _is_plain(raw):
            raise _Refused("the reply has thousands of small values")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Refused(f"the reply is not UTF-8: {error.reason} at byte {error.start}") from None
        try:
            data = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise _Refused(f"the reply is not JSON: {excerpt(str(error))}") from None
        if not isinstance(data, dict):
            raise _Refused(f"the reply is a JSON {type(data).__name__}, expected an object")
        if self._redactor.found(text):
            raise _Refused("the reply holds the API key; an answer that does is not taken")
        return data

    async def _read(self, response: httpcore2.Response, most: int) -> bytearray | None:
        """Read the body, decompressed, or None when it is too long."""
        name = _header(response, "content-encoding").lower()
        unpack: Any = None
        if name in ("gzip", "x-gzip", "deflate"):
            unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either header
        elif name not in ("", "identity"):
            raise _Refused(f"the reply is encoded as {excerpt(self._clean(name))}, which was not asked for")
        raw, sent, pieces = bytearray(), 0, 0
        async for chunk in response.aiter_stream():
            sent += len(chunk)
            try:
                raw += unpack.decompress(chunk, most + 1 - len(raw)) if unpack else chunk
            except zlib.error as error:
                raise _Refused(f"the reply cannot be decompressed: {error}") from None
            if len(raw) > most:
                return None
            if unpack and unpack.unused_data:
                raise _Refused("the reply cannot be decompressed: there is more behind its end")
            pieces += 1
            if pieces % PIECES == 0:
                await asyncio.sleep(0)
        if unpack and not unpack.eof:
            raise _Refused("the reply cannot be decompressed: it ends early")
        line = response.extensions["network_stream"]
        if isinstance(line, Line):
            line.settle(sent)
        return raw

    async def _fault(self, response: httpcore2.Response) -> _Try:
        """Say what a reply that is no answer means."""
        code = response.status
        what = f"HTTP {code}"
        if 300 <= code < 400:
            place = excerpt(self._clean(_header(response, "location")))
            what += f": the server redirects to {place or 'nowhere'}, which is not followed; give the final address"
            return _Try(Delivery(Status.ERROR, {}, what, code))
        if code in MEANINGS:
            what += f": {MEANINGS[code]}"
        said, error_code = "", ""
        with contextlib.suppress(
            _Refused, httpcore2.NetworkError, httpcore2.ProtocolError
        ):  # the code alone says enough
            said, error_code = _complaint(await self._read(response, FAULT_BYTES))
        if said := self._clean(said).strip():
            what += f"; it says {excerpt(said)}"
        if code in (400, 403) and error_code in FILTERED:
            return _Try(Delivery(Status.REFUSED, {}, what, code))
        status = Status.TIMEOUT if code in TOO_SLOW else Status.ERROR
        wait = retry_after(_header(response, "retry-after"), datetime.datetime.now(datetime.UTC))
        return _Try(Delivery(status, {}, what, code), code in AGAIN, code in SERVER_FAULTS, wait)

    def _own_headers(self, response: httpcore2.Response) -> dict[str, str]:
        names = {name.decode("latin-1").lower() for name, _ in response.headers}
        return {name: self._clean(_header(response, name)) for name in names if name.startswith(("x-", "cf-"))}

    def _clean(self, text: str) -> str:
        return self._redactor.clean(text)

    def _words(self, error: Exception) -> str:
        """Say what went wrong below, with the system's own words where the library has none."""
        said = next((str(link) for link in _chain(error) if str(link)), "")
        for link in _chain(error):
            number = None if isinstance(link, ssl.SSLError) else getattr(link, "errno", None)
            if number is not None and number > 0:  # below are those of names that are not known
                said = os.strerror(number)
        return f"{type(error).__name__}: {excerpt(self._clean(said))}".removesuffix(": ")


def excerpt(text: str) -> str:
    """Foreign words, quoted, escaped and cut, as part of a sentence."""
    text = " ".join(text.split())
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…") if text else ""


def _pool(url: str, proxy: str | None) -> httpcore2.AsyncConnectionPool:
    parts = urlsplit(proxy or "")
    place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    auth = (unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else None
    return httpcore2.AsyncConnectionPool(
        ssl_context=httpcore2.default_ssl_context() if url.startswith("https:") else None,
        proxy=httpcore2.Proxy(place, auth=auth) if proxy else None,
        max_connections=None,
        keepalive_expiry=IDLE_SECONDS,
        network_backend=Backend(),
    )


def _header(response: httpcore2.Response, name: str) -> str:
    """A header's value; where there are several, all of them, which no reader below takes."""
    values = [value.decode("latin-1").strip() for key, value in response.headers if key.lower() == name.encode()]
    return ", ".join(values)


def _complaint(raw: bytearray | None) -> tuple[str, str]:
    """Give the words and the code of an error reply, in any of the forms in use, or else its text."""
    text = (raw or bytearray()).decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    inner = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(inner, str):
        return inner, ""
    if not isinstance(inner, dict):
        return text, ""
    said = next((inner[key] for key in ("message", "detail") if isinstance(inner.get(key), str)), text)
    return said, str(inner.get("code", ""))


def _is_plain(raw: bytearray) -> bool:
    """Whether JSON is mostly text, as replies are."""
    outside, at = 0, 0
    for number, found in enumerate(_STRING.finditer(raw)):
        outside, at = outside + found.start() - at, found.end()
        if number >= TEXTS or outside > FORM_BYTES:
            return False
    return outside + len(raw) - at <= FORM_BYTES


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_tls(error: BaseException) -> bool:
    return any(isinstance(link, ssl.SSLError) for link in _chain(error))


def _times(count: int) -> str:
    return f"{count} tries" if count > 1 else "one try"


def _shut(
    process: int,
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    pool: httpcore2.AsyncConnectionPool,
    redactor: Redactor,
) -> None:
    """End the loop and its connections; a child that was forked has neither."""
    redactor.leave()
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
    if not thread.is_alive():
        loop.close()
