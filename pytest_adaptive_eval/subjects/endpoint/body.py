"""Reading the body of a reply within bounds of size, time and memory."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

import httpcore2

from pytest_adaptive_eval.subjects.endpoint.connections import Line
from pytest_adaptive_eval.subjects.endpoint.secrets import Redactor

__all__ = ["RefusedReply", "excerpt", "header", "read_bytes", "read_object"]

#: Texts of a reply, and its bytes outside them; a million small values would take long to read, and more to hold.
TEXTS, FORM_BYTES = 40_000, 256 << 10
#: A text in JSON, also one that does not end: the pattern always matches, and in linear time.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
#: Pieces of a reply that are read before other requests have their turn.
PIECES = 256
#: Characters of a server's words that are shown.
SHOWN = 300


class RefusedReply(Exception):
    """A reply that is not taken; the message says why."""


async def read_object(response: httpcore2.Response, most: int, redactor: Redactor) -> Mapping[str, Any]:
    """Return the JSON object that a reply holds.

    Raises
    ------
    RefusedReply
        It holds none, or one that is not taken.
    """
    kind = header(response, "content-type").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise RefusedReply(f"the reply is {excerpt(redactor.clean(kind)) or 'of no type'}, expected application/json")
    raw = await read_bytes(response, most, redactor)
    if raw is None:
        raise RefusedReply(f"the reply has more than {most} bytes, after decompression")
    if len(raw) > FORM_BYTES and not _is_plain(raw):
        raise RefusedReply("the reply has thousands of small values")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedReply(f"the reply is not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedReply(f"the reply is not JSON: {excerpt(str(error))}") from None
    if not isinstance(data, dict):
        raise RefusedReply(f"the reply is a JSON {type(data).__name__}, expected an object")
    if redactor.found(text) or ("\\" in text and redactor.found(json.dumps(data, ensure_ascii=False))):
        raise RefusedReply("the reply holds the API key; an answer that does is not taken")
    return data


async def read_bytes(response: httpcore2.Response, most: int, redactor: Redactor) -> bytearray | None:
    """Return the body of a reply, decompressed, or None when it has more than `most` bytes."""
    name = header(response, "content-encoding").lower()
    unpack: Any = None
    if name in ("gzip", "x-gzip", "deflate"):
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either header
    elif name not in ("", "identity"):
        raise RefusedReply(f"the reply is encoded as {excerpt(redactor.clean(name))}, which was not asked for")
    raw, sent, pieces = bytearray(), 0, 0
    async for chunk in response.aiter_stream():
        sent += len(chunk)
        try:
            raw += unpack.decompress(chunk, most + 1 - len(raw)) if unpack else chunk
        except zlib.error as error:
            raise RefusedReply(f"the reply cannot be decompressed: {error}") from None
        if len(raw) > most:
            return None
        if unpack and unpack.unused_data:
            raise RefusedReply("the reply cannot be decompressed: there is more behind its end")
        pieces += 1
        if pieces % PIECES == 0:
            await asyncio.sleep(0)
    if unpack and not unpack.eof:
        raise RefusedReply("the reply cannot be decompressed: it ends early")
    line = response.extensions["network_stream"]
    if isinstance(line, Line):
        line.settle(sent)
    return raw


def excerpt(text: str) -> str:
    """Foreign words, quoted, escaped and cut, as part of a sentence."""
    text = " ".join(text.split())
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…") if text else ""


def header(response: httpcore2.Response, name: str) -> str:
    """A header's value; where there are several, all of them, which no reader below takes."""
    values = [value.decode("latin-1").strip() for key, value in response.headers if key.lower() == name.encode()]
    return ", ".join(values)


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
