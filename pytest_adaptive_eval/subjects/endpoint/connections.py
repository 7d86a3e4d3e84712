"""Connections over asyncio that are used again only when nothing of an earlier reply can be left on them.

httpcore2's own connections are handed to the next request with whatever an earlier reply left on them.  To turn its
keep-alive off would be the other remedy, and costs two to three times as much of a processor for a request, most over
TLS: ``benchmarks/endpoint_throughput.py`` measures both, and docs/endpoints.md has the figures.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

__all__ = ["Backend", "Line", "Stale"]

#: Bytes that may lie unread before the other side has to wait.
HELD_BYTES = 128 << 10
#: Bytes in which a head must end to be known.
HEAD_BYTES = 100 << 10


class _Ends(asyncio.Protocol):
    """What arrives at one end of a connection."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.arrived = bytearray()
        self.over = False
        self.error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.arrived += data
        if len(self.arrived) > HELD_BYTES and not self._paused and self.transport is not None:
            self.transport.pause_reading()
            self._paused = True
        self._wake()

    def eof_received(self) -> None:
        self.over = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.over, self.error = True, error
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def take(self, most: int) -> bytes:
        """Wait for bytes; none are the end."""
        while not self.arrived and not self.over:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        if not self.arrived and self.error is not None:
            raise self.error
        data = bytes(self.arrived[:most])
        del self.arrived[:most]
        if self._paused and self.transport is not None and not self.over:
            self.transport.resume_reading()
            self._paused = False
        return data

    async def put(self, data: bytes) -> None:
        """Send bytes, and wait where the other side is slow to take them; what it said before it closed is kept."""
        if self.transport is None or self.transport.is_closing() or self.over:
            if self.arrived:
                return
            raise ConnectionResetError("the server closed the connection")
        self.transport.write(data)
        await self._writable.wait()
        if self.error is not None and not self.arrived:
            raise self.error

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class Stale(httpcore2.ReadError):
    """A connection that was used before ended without a word, as when the server had closed it already."""


class Line(httpcore2.AsyncNetworkStream):
    """One connection, which counts what it hands on.

    Parameters
    ----------
    ends : _Ends
    """

    def __init__(self, ends: _Ends) -> None:
        self._ends = ends
        self._held = bytearray()
        self._head = bytearray()
        self._length = 0
        self._handed = 0
        self._requests = 0
        self._asked = False
        self._again = True

    def settle(self, body: int) -> None:
        """Say that a reply ended, with a body of so many bytes as sent.

        The connection is used again only when a head and that body are all that
        came: bytes of a reply that nobody asked for would be taken for the
        answer to the next question.  Those that come while the connection is
        idle are seen before it is used; those that come later still are not.
        """
        self._again = bool(self._length) and self._handed == self._length + body

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Wait for bytes; the deadline is the caller's."""
        del timeout
        silent = self._requests > 1 and not self._handed
        try:
            if self._held:
                request, self._held = bytes(self._held), bytearray()
                await self._ends.put(request)
            data = await self._ends.take(max_bytes)
        except OSError as error:
            raise (Stale if silent else httpcore2.ReadError)(error) from error
        if silent and not data:
            raise Stale("the server closed the connection")
        self._asked = False
        self._handed += len(data)
        if not self._length and len(self._head) < HEAD_BYTES:
            self._head += data
            self._length = self._head.find(b"\r\n\r\n") + 4
            self._length = 0 if self._length < 4 else self._length
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Hold bytes until a reply is waited for: a request goes out as a whole, and wakes the server once."""
        del timeout
        if not self._asked:  # the first bytes of a request
            self._asked, self._again = True, False
            self._requests += 1
            self._head, self._length, self._handed = bytearray(), 0, 0
        self._held += buffer

    async def aclose(self) -> None:
        """End the connection without waiting for the other side."""
        if self._ends.transport is not None:
            self._ends.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Go on encrypted."""
        del timeout
        assert self._ends.transport is not None
        try:
            self._ends.transport = await asyncio.get_running_loop().start_tls(
                self._ends.transport, self._ends, ssl_context, server_hostname=server_hostname
            )
        except OSError as error:  # errors of TLS are among them
            await self.aclose()
            raise httpcore2.ConnectError(error) from error
        except BaseException:
            await self.aclose()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        """Tell whether something came that nobody asked for, and what the pool wants to know of the encryption."""
        if info == "is_readable":
            return not self._again or self._ends.over or bool(self._ends.arrived)
        return self._ends.transport.get_extra_info(info) if self._ends.transport is not None else None


class Backend(httpcore2.AsyncNetworkBackend):
    """Makes connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a server."""
        del timeout, local_address, socket_options
        try:
            _, ends = await asyncio.get_running_loop().create_connection(_Ends, host, port)
        except OSError as error:
            raise httpcore2.ConnectError(error) from error
        return Line(ends)
