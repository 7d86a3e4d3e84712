"""Connections over asyncio that are reused only if no byte of an earlier reply can remain on them.

httpcore2 hands its own connections to the next request with whatever an earlier reply left on them. Turning off
keep-alive would also help, but takes two to three times as much processor time per request, most over TLS.
``benchmarks/endpoint_throughput.py`` measures both, and docs/methods/speed.md has the figures.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

#: Number of unread bytes above which the server has to wait.
UNREAD_BYTES = 128 << 10
#: Limit of the bytes of a head.
HEAD_LIMIT = 100 << 10


class _Ends(asyncio.Protocol):
    """The receiving end of a connection."""

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
        if len(self.arrived) > UNREAD_BYTES and not self._paused and self.transport is not None:
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
        """Return the next bytes of the connection, at most `most`, once there are any; empty after its end."""
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
        """Send bytes, and wait if the other side reads slowly; bytes that it sent before closing are kept."""
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
    """A reused connection ended without a byte, because the server had closed it."""


class CheckedStream(httpcore2.AsyncNetworkStream):
    """One connection, which counts the bytes that it hands on."""

    def __init__(self, ends: _Ends) -> None:
        self._ends = ends
        self._unsent = bytearray()
        self._head = bytearray()
        self._length = 0
        self._received = 0
        self._requests = 0
        self._request_begun = False
        self._reusable = True

    def settle(self, body: int) -> None:
        """Note the end of a reply whose body had `body` bytes as sent.

        The connection is reused only if a head and that body are all that arrived: further bytes would be read as the
        answer to the next request. Bytes that arrive while the connection is idle are detected before it is reused;
        later ones are not.
        """
        self._reusable = bool(self._length) and self._received == self._length + body

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Wait for bytes; the caller sets the deadline."""
        del timeout
        silent = self._requests > 1 and not self._received
        try:
            if self._unsent:
                request = bytes(self._unsent)
                self._unsent = bytearray()
                await self._ends.put(request)
            data = await self._ends.take(max_bytes)
        except OSError as error:
            raise (Stale if silent else httpcore2.ReadError)(error) from error
        if silent and not data:
            raise Stale("the server closed the connection")
        self._request_begun = False
        self._received += len(data)
        if not self._length and len(self._head) < HEAD_LIMIT:
            self._head += data
            self._length = self._head.find(b"\r\n\r\n") + 4
            self._length = 0 if self._length < 4 else self._length
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Buffer bytes until a reply is awaited, so a request is sent as a whole and wakes the server once."""
        del timeout
        if not self._request_begun:  # the first bytes of a request
            self._request_begun, self._reusable = True, False
            self._requests += 1
            self._head = bytearray()
            self._length = 0
            self._received = 0
        self._unsent += buffer

    async def aclose(self) -> None:
        """Close the connection without waiting for the other side."""
        if self._ends.transport is not None:
            self._ends.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Encrypt the connection."""
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
        """Return whether unrequested bytes arrived, or a fact about the encryption that the pool needs."""
        if info == "is_readable":
            return not self._reusable or self._ends.over or bool(self._ends.arrived)
        if self._ends.transport is not None:
            return self._ends.transport.get_extra_info(info)
        return None


class Backend(httpcore2.AsyncNetworkBackend):
    """A factory of connections."""

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
        return CheckedStream(ends)
