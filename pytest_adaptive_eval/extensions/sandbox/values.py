"""Read values that foreign code returned, strictly, and compare them type by type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.extensions.sandbox.harness import DEPTH, LIMIT, encode

#: Most members of one set or dictionary that may have the same hash: more of them are made to take long.
_COLLISIONS = 32


@dataclass(frozen=True, slots=True)
class Failure:
    """Output of a call that raised, or that returned a value of no comparable type.

    Args:
        kind: Name of the exception's class, as reported by the foreign code.
    """

    kind: str
    message: str


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal, with equal types at every depth.

    ``1``, ``1.0`` and ``True`` differ, and so do ``[1]`` and ``(1,)``; NaN equals NaN, and the order of dictionaries
    and sets does not matter. A value of a type that could not come out of the sandbox equals nothing.
    """
    try:
        return encode(first) == encode(second)
    except (TypeError, ValueError):
        return False


def _refuse(_: Any) -> Any:
    raise ValueError("a number or an object")


#: Reads only what `encode` writes: strings, arrays, true, false and null.
_json = json.JSONDecoder(parse_int=_refuse, parse_float=_refuse, parse_constant=_refuse, object_pairs_hook=_refuse)


def _scalar(kind: str, text: str) -> Any:
    """Read a number or bytes; refuse a spelling that `encode` does not write."""
    value: Any
    if kind == "int":
        value = int(text, 16)
        written = f"{value:x}"
    else:
        value = (float if kind == "float" else bytes).fromhex(text)
        written = value.hex()
    if written != text:
        raise ValueError(f"not as {kind} is written")
    return value


def _distinct(members: list[Any], build: Any) -> Any:
    """Build a collection of `members`; refuse equal members and many with the same hash."""
    alike = max(Counter(map(hash, members)).values(), default=0)
    if alike > _COLLISIONS or len(set(members)) != len(members):
        raise ValueError(f"members that are equal, or more than {_COLLISIONS} with one hash")
    return build(members)


def _value(node: Any, depth: int) -> Any:
    """Return the value of a JSON tree, nested no deeper than `depth`."""
    if node is None or isinstance(node, bool | str):
        return node
    if depth < 0:
        raise ValueError("nested too deep")
    match node:
        case ["int" | "float" | "bytes" as kind, str(text)]:
            return _scalar(kind, text)
        case ["dict", list(pairs)]:
            return _dictionary(pairs, depth)
        case ["list" | "tuple" | "set" | "frozenset" as kind, list(content)]:
            members = [_value(member, depth - 1) for member in content]
            return _COLLECTIONS[kind](members)
    raise ValueError("no value")


def _dictionary(pairs: list[Any], depth: int) -> dict[Any, Any]:
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise ValueError("no pair")
    keys = [_value(key, depth - 1) for key, _ in pairs]
    values = [_value(value, depth - 1) for _, value in pairs]
    return dict(zip(_distinct(keys, list), values, strict=True))


#: Builds a collection of its members, by the name of its type.
_COLLECTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": lambda members: _distinct(members, set),
    "frozenset": lambda members: _distinct(members, frozenset),
}


def decode(text: str, depth: int = DEPTH) -> Any:
    """Return the value that `encode` wrote, nested no deeper than `depth`.

    Raises:
        ValueError: Anything else, however it is made.
    """
    if len(text) > LIMIT:
        raise ValueError(f"more than {LIMIT} characters")
    try:
        return _value(_json.decode(text), depth)
    except (TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"no value: {error}") from error


def read_answers(line: bytes, nonce: str, count: int) -> tuple[Any, ...] | Failure:
    """Return the outputs in a line from the sandbox, or the failure of the whole code.

    Raises:
        ValueError: The line is not of the form that the harness writes.
    """
    text = line.decode("ascii")
    if not text.startswith(f"{nonce} "):
        raise ValueError("the line does not begin with the harness's secret")
    match decode(text[len(nonce) + 1 :], DEPTH + 4):  # the four that the harness wraps around a value
        case ("broken", str(kind), str(message)):
            return Failure(_clean(kind), _clean(message))
        case ("answers", list(outcomes)) if len(outcomes) == count:
            return tuple(_output(outcome) for outcome in outcomes)
    raise ValueError("not one output a call")


def _clean(text: str) -> str:
    """Shorten a text and escape surrogates, which UTF-8 files cannot hold."""
    return text[:500].encode("utf-8", "backslashreplace").decode("utf-8")


def _output(outcome: Any) -> Any:
    match outcome:
        case ("value", value):
            return value
        case ("failure", str(kind), str(message)):
            return Failure(_clean(kind), _clean(message))
    raise ValueError("neither a value nor a failure")
