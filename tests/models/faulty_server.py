"""A server on loopback that speaks the chat protocol, and breaks it on demand.

A prompt of the form ``fault:NAME`` is replied to as `FAULTS` says; any other is answered with ``echo PROMPT``. ``python
tests/models/faulty_server.py`` serves until its input ends and prints its port first.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import socketserver
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

MODEL = "tiny"
PROMPT = "fault:"


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else content[-1].get("text", "")

    @property
    def pictures(self) -> int:
        content = self.body["messages"][-1]["content"]
        return 0 if isinstance(content, str) else sum(part["type"] == "image_url" for part in content)

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


Handler = Callable[[socket.socket, Request], None]


def completion(text: Any = "blue", finish: Any = "stop", usage: Any = ..., **message: Any) -> dict[str, Any]:
    told = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12} if usage is ... else usage
    return {
        "id": "x",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": told,
    }


def without(name: str, **kwargs: Any) -> dict[str, Any]:
    made = completion(**kwargs)
    del made[name]
    return made


def choice(**changes: Any) -> dict[str, Any]:
    """A completion whose choice is changed; None as a value is sent as null, ... leaves the field out."""
    made = completion()
    for name, value in changes.items():
        if value is ...:
            del made["choices"][0][name]
        else:
            made["choices"][0][name] = value
    return made


def head(code: int, length: int | None, kind: str = "application/json", **more: str) -> bytes:
    lines = [f"HTTP/1.1 {code} Whatever"]
    if kind:
        lines.append(f"Content-Type: {kind}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


def send(connection: socket.socket, payload: Any, code: int = 200, kind: str = "application/json", **more: str) -> None:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    connection.sendall(head(code, len(body), kind, **more) + body)


def reset(connection: socket.socket) -> None:
    """Close with a reset instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def replies(payload: Any, code: int = 200, kind: str = "application/json", **more: str) -> Handler:
    return lambda connection, _: send(connection, payload, code, kind, **more)


def sends(raw: bytes, *, then: Callable[[socket.socket], None] | None = None) -> Handler:
    def handle(connection: socket.socket, _: Request) -> None:
        connection.sendall(raw)
        if then:
            then(connection)

    return handle


def repeats(first: bytes, again: bytes, pause: float = 0.0) -> Handler:
    """Send something and then something else, until the client has had enough."""

    def handle(connection: socket.socket, _: Request) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(again)
            time.sleep(pause)

    return handle


def says(code: int, message: str = "no", **more: str) -> Handler:
    return replies({"error": {"message": message, "type": "t", "code": None}}, code, **more)


def echoes(where: str) -> Handler:
    """Give the key back somewhere."""

    def handle(connection: socket.socket, request: Request) -> None:
        key = request.key
        match where:
            case "refusal":
                send(connection, completion(None, refusal=key))
            case "error":
                send(connection, {"error": {"message": f"{'x' * 290} wrong key {key}"}}, 401)
            case "page":
                send(connection, f"<html>{'y' * 280}{key}".encode(), 500, "text/html")
            case "header":
                send(connection, completion(None), 200, X_Echo=key)
            case "type":
                send(connection, completion(), 200, kind=f"text/{key}")
            case "encoding":
                send(connection, completion(), 200, Content_Encoding=key)
            case "location":
                send(connection, b"", 307, Location=f"/v1?key={key}")
            case "status line":
                connection.sendall(f"HTTP/1.1 {key} no\r\n\r\n".encode())
            case "reason":
                connection.sendall(f"HTTP/1.1 500 {key}\r\nContent-Length: 0\r\n\r\n".encode())
            case "bearer":
                import base64

                send(connection, {"error": base64.b64encode(key.encode()).decode()}, 403)

    return handle


def _slowly(connection: socket.socket, raw: bytes) -> None:
    for at in range(0, len(raw), 997):
        connection.sendall(raw[at : at + 997])


def _bomb(megabytes: int, wbits: int) -> bytes:
    """So many megabytes of nothing, in one compressed stream that is quickly made."""
    packer = zlib.compressobj(9, wbits=wbits)
    first, again = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * (megabytes - 1)


def _when(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


def _late(connection: socket.socket) -> None:
    time.sleep(30)


GOOD = json.dumps(completion()).encode()
OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OPEN + b"Transfer-Encoding: chunked\r\n\r\n"
HUGE = GOOD.replace(b"blue", b"x" * (4 << 20))
BOMB, DEFLATE_BOMB = _bomb(256, 31), _bomb(256, 15)
SURROGATE = json.dumps(completion("x\ud800y")).encode()
#: What a TLS server says to a client that does not speak TLS, and the other way round.
ALERT = b"\x15\x03\x03\x00\x02\x02\x46"
HELLO = b"\x16\x03\x01\x00\x50\x01" + bytes(80)

#: By name: the status that the question must end with, and what the server does.
FAULTS: dict[str, tuple[str, Handler]] = {
    # time
    "silence": ("timeout", lambda c, _: _late(c)),
    "slow trickle": ("timeout", repeats(head(200, 10**6), b" ", 0.02)),
    "slow chunks": ("timeout", repeats(CHUNKED, b"1\r\n \r\n", 0.02)),
    "slow headers": ("timeout", repeats(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.02)),
    "headers and silence": ("timeout", sends(head(200, 100), then=_late)),
    "all but the last byte": ("timeout", sends(head(200, len(GOOD)) + GOOD[:-1], then=_late)),
    "endless continue": ("timeout", repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001)),
    "error that never ends": ("timeout", repeats(head(500, 10**6), b" ", 0.02)),
    # size
    "never-ending body": ("error", repeats(CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n")),
    "never-ending without length": ("error", repeats(OPEN + b"\r\n", b" " * 65536)),
    "huge body": ("error", repeats(head(200, 10**10), b" " * 65536)),
    "huge error": ("error", repeats(head(400, 10**10), b" " * 65536)),
    "huge text": ("error", lambda c, _: send(c, HUGE)),
    "gzip bomb": ("error", lambda c, _: send(c, BOMB, Content_Encoding="gzip")),
    "deflate bomb": ("error", lambda c, _: send(c, DEFLATE_BOMB, Content_Encoding="deflate")),
    "gzip bomb slowly": ("error", lambda c, _: _slowly(c, head(200, None, Content_Encoding="gzip") + BOMB)),
    "tiny chunks": ("timeout", repeats(CHUNKED, b"2\r\n  \r\n" * 10_000)),
    "many small members": ("error", lambda c, _: send(c, b"{" + b'"":0,' * 300_000 + b'"":0}')),
    "very deep json": ("error", replies(b"[" * 10**6)),
    "many quotes": ("error", lambda c, _: send(c, b'"' * (2 << 20))),
    "many escapes": ("error", lambda c, _: send(c, b'"' + b'\\"' * ((2 << 19) - 9))),
    "gzip bomb as an error": ("error", lambda c, _: send(c, BOMB, 400, Content_Encoding="gzip")),
    "headers flood": ("error", repeats(OPEN, b"X-Many: " + b"y" * 1000 + b"\r\n")),
    "one huge header": ("error", repeats(OPEN + b"X: ", b"y" * 65536)),
    "huge chunk header": ("error", repeats(CHUNKED, b"0" * 65536)),
    "trailers flood": ("error", repeats(CHUNKED + b"0\r\n", b"X-Many: " + b"y" * 1000 + b"\r\n")),
    "many small values": ("error", lambda c, _: send(c, b'{"choices": [' + b"{}," * 600_000 + b"{}]}")),
    "many numbers": ("error", lambda c, _: send(c, b'{"choices": [' + b"1.5," * 400_000 + b"0]}")),
    # form
    "web page": ("error", replies(b"<html>not here</html>", kind="text/html")),
    "no content type": ("error", replies(GOOD, kind="")),
    "events": ("error", sends(head(200, None, "text/event-stream") + b"data: " + GOOD + b"\n\ndata: [DONE]\n\n")),
    "events as json": ("error", replies(b"data: " + GOOD + b"\n\n")),
    "endless events": ("error", repeats(head(200, None, "text/event-stream"), b"data: {}\n\n", 0.02)),
    "garbage json": ("error", replies(b"{]" * 100)),
    "truncated json": ("error", replies(GOOD[:-9])),
    "two jsons": ("error", replies(GOOD + GOOD)),
    "json lines": ("error", replies(b'{"a": 1}\n{"b": 2}\n')),
    "nothing": ("error", replies(b"")),
    "white space": ("error", replies(b" " * 1000)),
    "nan": ("error", replies(GOOD.replace(b'"prompt_tokens": 7', b'"prompt_tokens": NaN'))),
    "infinity": ("error", replies(GOOD.replace(b'"prompt_tokens": 7', b'"prompt_tokens": -Infinity'))),
    "a number of a million digits": ("error", replies(GOOD.replace(b": 7", b": " + b"7" * 10**6))),
    "deep json": ("error", replies(b"[" * 50_000)),
    "deep objects": ("error", replies(b'{"a":' * 9000 + b"1" + b"}" * 9000)),
    "json null": ("error", replies(b"null")),
    "json list": ("error", replies([completion()])),
    "json text": ("error", replies(b'"blue"')),
    "not utf-8": ("error", replies(GOOD.replace(b"blue", b"bl\xff\xfee"))),
    "utf-16": ("error", replies(GOOD.decode().encode("utf-16"))),
    "half a surrogate pair": ("error", replies(SURROGATE)),
    "half a pair in reasoning": ("error", lambda c, _: send(c, completion(reasoning_content="\udfff"))),
    "gzip garbage": ("error", replies(b"\x1f\x8b" + b"garbage", Content_Encoding="gzip")),
    "gzip with more behind": ("error", replies(gzip.compress(GOOD) + b" " * (1 << 20), Content_Encoding="gzip")),
    "two gzip members": ("error", replies(gzip.compress(GOOD) * 2, Content_Encoding="gzip")),
    "gzip that ends early": ("error", replies(gzip.compress(GOOD)[:-12], Content_Encoding="gzip")),
    "unasked encoding": ("error", replies(GOOD, Content_Encoding="br")),
    # fields
    "no choices": ("error", replies(without("choices"))),
    "choices null": ("error", replies(completion() | {"choices": None})),
    "choices text": ("error", replies(completion() | {"choices": "blue"})),
    "empty choices": ("error", replies(completion() | {"choices": []})),
    "two choices": ("error", replies(completion() | {"choices": completion()["choices"] * 2})),
    "choice null": ("error", replies(completion() | {"choices": [None]})),
    "no message": ("error", replies(choice(message=...))),
    "message text": ("error", replies(choice(message="blue"))),
    "delta": ("error", replies(choice(message=..., delta={"content": "blue"}))),
    "content number": ("error", replies(completion(7))),
    "content true": ("error", replies(completion(True))),
    "content of other parts": ("error", replies(completion([{"type": "image_url", "text": "blue"}]))),
    "content object": ("error", replies(completion({"text": "blue"}))),
    "refusal number": ("error", replies(completion(refusal=1))),
    "finish number": ("error", replies(choice(finish_reason=1))),
    "finish unknown": ("error", replies(choice(finish_reason="abort"))),
    "finish list": ("error", replies(choice(finish_reason=["stop"]))),
    "tool calls": ("error", replies(completion(None, "tool_calls", tool_calls=[{"id": "1", "type": "function"}]))),
    "tool calls beside text": ("error", replies(completion(tool_calls=[{"id": "1"}]))),
    "function call": ("error", replies(completion(None, function_call={"name": "f"}))),
    "error as a success": ("error", replies({"error": {"message": "overloaded", "code": 502}})),
    "error beside choices": ("error", replies(completion() | {"error": "half done"})),
    # what a model does
    "content null": ("empty", replies(completion(None))),
    "content empty": ("empty", replies(completion(""))),
    "content blank": ("empty", replies(completion(" \n\t"))),
    "reasoning alone": ("empty", replies(completion(None, reasoning_content="hm"))),
    "think alone": ("empty", replies(completion("<think>it is blue</think>"))),
    "think without end": ("empty", replies(completion("<think>it is blue"))),
    "think without end, cut": ("truncated", replies(completion("<think>it is blue", "length"))),
    "cut": ("truncated", replies(completion("blu", "length"))),
    "cut before a word": ("truncated", replies(completion(None, "length"))),
    "refusal": ("refused", replies(completion(None, refusal="I will not"))),
    "filter": ("refused", replies(completion("bl", "content_filter"))),
    "filtered prompt": ("refused", replies({"error": {"message": "no", "code": "content_filter"}}, 400)),
    # codes
    **{f"http {code}": ("error", says(code)) for code in (400, 401, 402, 403, 404, 405, 409, 413, 415, 418, 422, 425)},
    **{f"http {code}": ("error", says(code)) for code in (429, 500, 501, 502, 503, 529, 599)},
    "http 408": ("timeout", says(408)),
    "http 504": ("timeout", says(504)),
    "http 500 page": ("error", replies(b"<html>\x1b[31m::error::</html>", 500, kind="text/html")),
    "http 500 garbage": ("error", replies(b'{"error": [[', 500)),
    "http 500 with an answer": ("error", replies(completion(), 500)),
    "http 201": ("error", replies(completion(), 201)),
    "http 204": ("error", sends(b"HTTP/1.1 204 No Content\r\n\r\n")),
    "http 206": ("error", replies(completion(), 206)),
    "http 101": ("error", sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")),
    "http 304": ("error", sends(b"HTTP/1.1 304 Not Modified\r\n\r\n")),
    "http 999": ("error", replies(completion(), 999)),
    "http 429 number": ("error", says(429, Retry_After="60")),
    "http 429 fraction": ("error", says(429, Retry_After="60.5")),
    "http 429 date": ("error", lambda c, r: says(429, Retry_After=_when(60))(c, r)),
    "http 429 past date": ("error", lambda c, r: says(429, Retry_After=_when(-60))(c, r)),
    "http 429 garbage": ("error", says(429, Retry_After="soon; or later")),
    "http 429 huge": ("error", says(429, Retry_After="9" * 400)),
    "http 429 negative": ("error", says(429, Retry_After="-5")),
    "http 429 nan": ("error", says(429, Retry_After="nan")),
    "redirect": ("error", says(302, Location="/elsewhere")),
    "redirect elsewhere": ("error", says(308, Location="http://127.0.0.2:1/v1/chat/completions")),
    "redirect nowhere": ("error", says(307)),
    "redirect garbage": ("error", says(301, Location="http://[::")),
    # connections
    "reset at once": ("error", lambda c, _: reset(c)),
    "reset in the head": ("error", sends(OPEN[:20], then=reset)),
    "reset after the head": ("error", sends(head(200, 100), then=reset)),
    "reset in the body": ("error", sends(head(200, len(GOOD)) + GOOD[:50], then=reset)),
    "closed at once": ("error", lambda c, _: c.close()),
    "closed in the head": ("error", sends(OPEN[:20])),
    "closed in the body": ("error", sends(head(200, len(GOOD)) + GOOD[:50])),
    "closed in a chunk": ("error", sends(CHUNKED + b"ff\r\n" + GOOD[:50])),
    "closed before the last chunk": ("error", sends(CHUNKED + b"%x\r\n" % len(GOOD) + GOOD + b"\r\n")),
    "half closed": ("error", sends(b"", then=lambda c: (c.shutdown(socket.SHUT_WR), _late(c))[0])),
    "half closed in the body": (
        "error",
        sends(head(200, 500) + GOOD[:50], then=lambda c: (c.shutdown(socket.SHUT_WR), _late(c))[0]),
    ),
    "length too long": ("error", sends(head(200, len(GOOD) + 9) + GOOD)),
    "length too short": ("error", sends(head(200, len(GOOD) - 9) + GOOD)),
    "length negative": ("error", sends(head(200, -5) + GOOD)),
    "length garbage": ("error", sends(OPEN + b"Content-Length: many\r\n\r\n" + GOOD)),
    "two lengths": ("error", sends(OPEN + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + GOOD)),
    "chunked garbage": ("error", sends(CHUNKED + b"zz\r\n" + GOOD)),
    "unknown transfer": ("error", sends(OPEN + b"Transfer-Encoding: rot13\r\n\r\n" + GOOD)),
    "http 0.9": ("error", sends(GOOD)),
    "noise": ("error", sends(bytes(range(256)) * 4)),
    "old protocol": ("error", sends(b"ICY 200 OK\r\n\r\n" + GOOD)),
    "http 2": ("error", sends(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18))),
    "tls alert": ("error", sends(ALERT)),
    "tls hello": ("error", sends(HELLO)),
    "nul in a header": ("error", sends(OPEN + b"X: \x00\r\n\r\n" + GOOD)),
    "line feed in a header name": ("error", sends(OPEN + b"X y: z\r\n\r\n" + GOOD)),
    # the key comes back
    **{
        f"key in {where}": (status, echoes(where))
        for where, status in {
            "refusal": "refused",
            **dict.fromkeys(("error", "page", "type", "encoding", "location", "status line", "bearer"), "error"),
            "reason": "error",
            "header": "empty",
        }.items()
    },
}


@dataclass
class FaultyServer:
    """Serves from a thread.

    Args:
        handle: Replies to chats instead of `FAULTS`.
        listing: Replies to ``/models``.
        seconds: That a sound answer takes.
        port: A free one when 0.
    """

    handle: Handler | None = None
    listing: Handler | None = None
    seconds: float = 0.0
    seen: list[Request] = field(default_factory=list)
    together: int = 0
    most: int = 0
    port: int = 0

    def __enter__(self) -> FaultyServer:
        outer = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    outer._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", self.port), Connection)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def chats(self) -> list[Request]:
        return [request for request in self.seen if request.method == "POST"]

    def _serve(self, connection: socket.socket) -> None:
        # one request a connection, unless the handler goes on
        request = read_request(connection)
        if request is None:
            return
        self.seen.append(request)
        if request.method == "GET":
            (self.listing or replies({"object": "list", "data": [{"id": MODEL, "created": int(time.time())}]}))(
                connection, request
            )
            return
        self.together += 1
        self.most = max(self.most, self.together)
        try:
            self._reply(connection, request)
        finally:
            self.together -= 1

    def _reply(self, connection: socket.socket, request: Request) -> None:
        if self.handle is not None:
            self.handle(connection, request)
        elif request.prompt.startswith(PROMPT):
            FAULTS[request.prompt.removeprefix(PROMPT)][1](connection, request)
        else:
            time.sleep(self.seconds)
            usage = {"prompt_tokens": 7 + 64 * request.pictures, "completion_tokens": 5}
            send(connection, completion(f"echo {request.prompt}", usage=usage))


def read_request(connection: socket.socket) -> Request | None:
    raw = b""
    while b"\r\n\r\n" not in raw:
        if not (more := connection.recv(65536)):
            return None
        raw += more
        if raw[:1] == b"\x16":  # TLS
            return None
    first, _, rest = raw.partition(b"\r\n\r\n")
    start, *lines = first.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(rest) < int(headers.get("content-length", 0)):
        if not (more := connection.recv(65536)):
            return None
        rest += more
    method, path, _ = start.split(" ")
    return Request(method, path, headers, json.loads(rest) if rest else {})


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[FaultyServer]:
    with FaultyServer(**options) as server:
        yield server


if __name__ == "__main__":
    with serving() as running:
        sys.stdout.write(f"{running.port}\n")
        sys.stdout.flush()
        sys.stdin.read()
