"""Read the body of a reply within limits of size, time and memory."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from typing import Any

import httpcore2

from pytest_adaptive_eval.api_keys import without_keys
from pytest_adaptive_eval.models.endpoint.connections import CheckedStream

#: Number of chunks that are read before other requests get a turn.
PIECES = 256
#: Number of characters of a server's text that are shown.
EXCERPT_LENGTH = 300


class RefusedReply(Exception):
    """A refused reply; the message gives the reason."""


async def read_object(response: httpcore2.Response, most: int) -> Mapping[str, Any]:
    """Return the JSON object that a reply holds; raise RefusedReply if it holds none, or one that is refused."""
    kind = header(response, "content-type").partition(";")[0].strip().lower()
    is_json = kind in ("application/json", "text/plain") or kind.endswith("+json")  # some servers name no JSON
    if kind == "text/event-stream":  # it may have no end, so its first piece is all that is read
        begin = await anext(aiter(response.aiter_stream()), b"")
        raise RefusedReply(f"the reply is {kind!r}, expected application/json{_said(begin)}")
    raw = await read_bytes(response, most)
    if raw is None:
        raise RefusedReply(f"the reply has more than {most} bytes, after decompression")
    said = _said(raw)
    if not is_json:
        raise RefusedReply(f"the reply is {excerpt(kind) or 'of no type'}, expected application/json{said}")
    try:
        data = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedReply(f"the reply is not JSON in UTF-8: {excerpt(str(error))}{said}") from None
    if not isinstance(data, dict):
        raise RefusedReply(f"the reply is a JSON {type(data).__name__}, expected an object{said}")
    return data


def _said(raw: bytes | bytearray) -> str:
    """Return the begin of a body in words, to follow the reason why it is refused."""
    text = raw[:EXCERPT_LENGTH].decode(errors="ignore").replace(chr(0), "")
    return f"; it says {excerpt(text) or 'nothing'}"


def _unpacker(response: httpcore2.Response) -> Any:
    """Return what decompresses a reply, or None for a plain one."""
    name = header(response, "content-encoding").lower()
    if name in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either header
    if name not in ("", "identity"):
        raise RefusedReply(f"unexpected content encoding {excerpt(name)}")
    return None


async def read_bytes(response: httpcore2.Response, most: int) -> bytearray | None:
    """Return the body of a reply, decompressed, or None when it has more than `most` bytes."""
    unpack = _unpacker(response)
    raw = bytearray()
    sent = pieces = 0
    async for chunk in response.aiter_stream():
        sent += len(chunk)
        try:
            raw += unpack.decompress(chunk, most + 1 - len(raw)) if unpack else chunk
        except zlib.error as error:
            raise RefusedReply(f"the reply cannot be decompressed: {error}") from None
        if len(raw) > most:
            return None
        pieces += 1
        if pieces % PIECES == 0:
            await asyncio.sleep(0)
    if unpack and (unpack.unused_data or not unpack.eof):
        raise RefusedReply("the reply cannot be decompressed: it ends early, or there is more behind its end")
    line = response.extensions["network_stream"]
    if isinstance(line, CheckedStream):
        line.settle(sent)
    return raw


def excerpt(text: str) -> str:
    """Return foreign text quoted, escaped, cut and without keys, for use in a sentence."""
    text = without_keys(" ".join(text.split()))
    if text:
        return repr(text if len(text) <= EXCERPT_LENGTH else f"{text[:EXCERPT_LENGTH]}…")
    return ""


def header(response: httpcore2.Response, name: str) -> str:
    """Return a header's value; several values are joined, and no reader accepts them."""
    values = []
    for key, value in response.headers:
        if key.lower() == name.encode():
            values.append(value.decode("latin-1").strip())
    return ", ".join(values)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")
