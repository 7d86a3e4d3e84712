"""Bodies of replies: their limits, to the byte, and what they are refused for, without a connection."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from pytest_adaptive_eval.models.endpoint.body import (
    EXCERPT_LENGTH,
    RefusedReply,
    excerpt,
    header,
    read_bytes,
    read_object,
)
from pytest_adaptive_eval.models.endpoint.connections import CheckedStream

MOST = 1 << 20
JSON = {"content-type": "application/json"}


def reply(body: bytes, headers: Mapping[str, str] = JSON, chunk: int = 1 << 16) -> Any:
    """What the readers take of a response of httpcore2."""

    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(body), chunk):
            yield body[start : start + chunk]

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return SimpleNamespace(headers=pairs, aiter_stream=stream, extensions={"network_stream": None})


def read(body: bytes, headers: Mapping[str, str] = JSON, chunk: int = 1 << 16) -> Mapping[str, Any]:
    return asyncio.run(read_object(reply(body, headers, chunk), MOST))


def test_an_excerpt_has_three_hundred_characters() -> None:
    assert EXCERPT_LENGTH == 300
    assert excerpt("x" * 300) == repr("x" * 300)
    assert excerpt("x" * 301) == repr("x" * 300 + "…")
    assert excerpt(" two\n words ") == "'two words'"
    assert excerpt(" \n") == ""


def test_a_header_that_comes_twice_is_joined() -> None:
    response = SimpleNamespace(headers=[(b"Retry-After", b" 1 "), (b"retry-after", b"2"), (b"Other", b"3")])
    assert header(response, "retry-after") == "1, 2"  # type: ignore[arg-type]
    assert header(response, "none") == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"])
def test_types_of_json_are_read(kind: str) -> None:
    assert read(b'{"a": 1}', {"content-type": kind}) == {"a": 1}


@pytest.mark.parametrize("length", [MOST, MOST + 1])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_reply_may_have_that_many_bytes_after_decompression(length: int, encoding: str) -> None:
    plain = b'"' + b"x" * (length - 2) + b'"'
    response = reply(gzip.compress(plain) if encoding else plain, {"content-encoding": encoding})
    raw = asyncio.run(read_bytes(response, MOST))
    assert raw == (plain if length == MOST else None)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_compressed_reply_is_read(encoding: str, pack: Any) -> None:
    headers = {**JSON, "content-encoding": encoding}
    assert read(pack(b'{"a": 1}'), headers, chunk=3) == {"a": 1}
    with pytest.raises(RefusedReply, match="it ends early"):
        read(pack(b'{"a": 1}')[:-3], headers)
    with pytest.raises(RefusedReply, match="there is more behind its end"):
        read(pack(b'{"a": 1}') + b"more", headers)
    with pytest.raises(RefusedReply, match="cannot be decompressed"):
        read(b'{"a": 1}', headers)


class Counted(CheckedStream):
    """A connection that notes how long the body of its reply was."""

    body = -1

    def __init__(self) -> None:
        """Without a socket."""

    def settle(self, body: int) -> None:
        self.body = body


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_the_connection_is_told_the_bytes_of_a_body_as_they_were_sent(encoding: str) -> None:
    body, line = gzip.compress(b'{"a": 1}') if encoding else b'{"a": 1}', Counted()
    response = reply(body, {**JSON, "content-encoding": encoding}, chunk=5)
    response.extensions["network_stream"] = line
    assert asyncio.run(read_object(response, MOST)) == {"a": 1}
    assert line.body == len(body)


def test_a_character_beyond_ascii_is_read_as_it_is() -> None:
    assert read(json.dumps({"a": "é \\ ü"}, ensure_ascii=False).encode()) == {"a": "é \\ ü"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [("text/html", b"<b>sign in</b>"), ("text/plain", b"sign in"), ("application/json", b'["sign in"]')],
)
def test_a_reply_that_holds_no_object_is_shown(kind: str, body: bytes) -> None:
    with pytest.raises(RefusedReply, match=r"it says .*sign in"):
        read(body, {"content-type": kind})
