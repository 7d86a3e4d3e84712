"""Small expressions that reach a value in a row of a foreign file.

::

    question                     a column, or a key of an object
    doc.question, options[0]     a key of an object in it, an entry of a list
    choices[answer_index]        the entry that another value names
    messages[*].content          a value of each entry of a list
    *.is_correct                 a key for each subject: see `Expression.keys`
    doc."a.b"                    a key with a point, a bracket or a bar in it
    $key, $value, $parent, $file, $folder, $line     where the row stands
    'a text', 0.5                a constant
    {context} {question}         a text with values in it
    options | parse | first      filters
    pred == answer, verdict != 'F'          true or false

Nothing in an expression calls code, reads a file or loops without end.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.errors import ConfigError

Value = Callable[[Any, Mapping[str, Any]], Any]
Step = Callable[[Any, Any, Mapping[str, Any]], Any]

#: Key of the names under which a wildcard is bound.
_WILD = "*"
#: Upper limit of the characters that ``parse`` and patterns read, and of the seconds of one search.
_LONGEST, _SECONDS = 1_000_000, 2.0
#: Numbers from here on are none: whole ones of thousands of digits fit no float.
_LARGEST = 1e300
_STEP = re.compile(r"\.?(?:\"([^\"]+)\"|([^.\[\]\"]+))|\[([^\[\]]*)\]")
_FILTER = re.compile(r"\s*([a-z]+)(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression.

    Args:
        wild: Keys before and after the ``*``; empty if there is none.
    """

    text: str
    value: Value
    wild: tuple[str, ...] = ()

    def __call__(self, row: Any, names: Mapping[str, Any]) -> Any:
        """Return the value in a row, or None; `names` has ``$key`` and the like, and the key of ``*``."""
        is_key = isinstance(row, Mapping) and self.text in row
        return row[self.text] if is_key else self.value(row, names)

    def keys(self, row: Any, names: Mapping[str, Any]) -> Iterator[str]:
        """Yield the keys of a row that ``*`` may stand for, those at which the expression has a value."""
        if not self.wild:
            return
        before = _path(self.wild[0])(row, names) if self.wild[0] else row
        if not isinstance(before, Mapping):
            return
        for key in before:
            if self.value(row, {**names, _WILD: key}) is not None:
                yield key


def parse_expression(text: str, where: str = "") -> Expression:
    """Parse an expression; raise ConfigError with the option `where`, what is not understood and what is."""
    try:
        sides = _split(text, ("==", "!="))
        parts = [_pipeline(side) for side in sides[::2]]
        if len(parts) > 2:
            raise ConfigError("has several comparisons; expected one == or !=")
        value = parts[0] if len(parts) == 1 else _comparison(parts[0], parts[1], sides[1] == "==")
    except ConfigError as error:
        raise ConfigError(f"{where or 'expression'} {text!r:.120}: {error}") from None
    wild = _wild(sides[0]) if len(sides) == 1 else ()
    return Expression(text, value, wild)


def _wild(text: str) -> tuple[str, ...]:
    """Return the path before and after a wildcard key, without filters."""
    path = _split(text, ("|",))[0].strip()
    steps = path.split(".")
    if path[:1] == "'" or "{" in path or _WILD not in steps:
        return ()
    at = steps.index(_WILD)
    return ".".join(steps[:at]), ".".join(steps[at + 1 :])


#: Change of the depth at each bracket.
_BRACKETS = {**dict.fromkeys("({[", 1), **dict.fromkeys(")}]", -1)}


def _split(text: str, marks: tuple[str, ...]) -> list[str]:
    """Return the parts between marks and the marks themselves, outside of quotes, braces and parentheses."""
    parts, start, depth, quote, at = [], 0, 0, "", 0
    while at < len(text):
        character = text[at]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"" and not depth and text[start:at].rstrip()[-1:] in ("", "."):
            quote = character
        elif character in _BRACKETS:
            depth += _BRACKETS[character]
        elif not depth and (mark := next((mark for mark in marks if text.startswith(mark, at)), "")):
            parts += [text[start:at], mark]
            start = at = at + len(mark)
            continue
        at += 1
    if quote or depth:
        raise ConfigError(f"a {'quote' if quote else 'bracket'} is not closed")
    return [*parts, text[start:]]


def _pipeline(text: str) -> Value:
    """Return the value of a path, constant or template with its filters."""
    first, *rest = _split(text, ("|",))[::2]
    value = _atom(first.strip())
    for part in rest:
        value = _filtered(value, part)
    return value


def _atom(text: str) -> Value:
    """Return the value of a constant, a template or a path."""
    if not text:
        raise ConfigError("a value is missing")
    if text[0] == "'" and text[-1] == "'" and text.count("'") == 2:
        constant = text[1:-1]
        return lambda _row, _names: constant
    if re.fullmatch(r"-?\d+(?:\.\d+)?", text):
        number = float(text) if "." in text else int(text)
        return lambda _row, _names: number
    if "{" in text:
        return _template(text)
    return _path(text)


def _template(text: str) -> Value:
    """Return the text with values in braces; None where one of them is missing."""
    parts: list[Value] = []
    for at, part in enumerate(re.split(r"\{([^{}]*)\}", text)):
        if at % 2:
            parts.append(_pipeline(part))
        elif "{" in part or "}" in part:
            raise ConfigError("a brace is not closed")
        else:
            constant = _unescaped(part)
            parts.append(lambda _row, _names, constant=constant: constant)  # type: ignore[misc]

    def value(row: Any, names: Mapping[str, Any]) -> str | None:
        values = [part(row, names) for part in parts]
        return None if any(each is None for each in values) else "".join(map(_as_text, values))

    return value


def _unescaped(text: str) -> str:
    return text.replace(r"\n", "\n").replace(r"\t", "\t")


def _path(text: str) -> Value:
    """Return the value at a path."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (at and match[0][0] not in ".["):
            raise ConfigError(f"{text[at:]!r:.60} is not understood; expected .KEY, [NUMBER], [KEY] or [*]")
        quoted, key, index = match.groups()
        name = quoted if quoted is not None else (key or "").strip()
        if index is None and not name:
            raise ConfigError("a key is missing")
        at = match.end()
        if index is not None and index.strip() == _WILD:
            rest = text[at:]
            steps.append(_each(_path(rest)) if rest else lambda value, _row, _names: value)
            break
        steps.append(_entry(index.strip()) if index is not None else _key(name, first=not steps, quoted=bool(quoted)))

    def value(row: Any, names: Mapping[str, Any]) -> Any:
        reached: Any = row
        for step in steps:
            reached = step(reached, row, names)
            if reached is None:
                return None
        return reached

    return value


def _key(name: str, *, first: bool, quoted: bool) -> Step:
    """Return the step to a key, to a name with a dollar, or to the key that ``*`` stands for."""
    if first and name.startswith("$") and not quoted:
        return lambda _value, _row, names: names.get(name[1:])
    if name == _WILD and not quoted:
        return lambda value, _row, names: value.get(names.get(_WILD)) if isinstance(value, Mapping) else None
    return lambda value, _row, _names: value.get(name) if isinstance(value, Mapping) else None


def _entry(index: str) -> Step:
    """Return the step to an entry by its number, or by the value of another expression."""
    if re.fullmatch(r"-?\d+", index):
        number = int(index)
        return lambda value, _row, _names: _at(value, number)
    inner = _pipeline(index)
    return lambda value, row, names: _at(value, inner(row, names))


def _at(value: Any, index: Any) -> Any:
    """Return an entry of a list by number or letter, or of an object by key; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(index, value.get(str(index)))
    if not isinstance(value, list):
        return None
    if isinstance(index, str) and re.fullmatch(r"-?\d{1,9}", index):
        index = int(index)
    if isinstance(index, str) and len(index) == 1 and index.isalpha():
        index = ord(index.upper()) - ord("A")
    is_number = isinstance(index, int) and not isinstance(index, bool)
    return value[index] if is_number and -len(value) <= index < len(value) else None


def _each(rest: Value) -> Step:
    """Return the step to the values of a path in each entry of a list."""

    def step(value: Any, _row: Any, names: Mapping[str, Any]) -> Any:
        entries = list(value.values()) if isinstance(value, Mapping) else value
        if not isinstance(entries, list):
            return None
        values = [rest(entry, names) if isinstance(entry, Mapping) else None for entry in entries]
        return [each for each in values if each is not None]

    return step


def _comparison(left: Value, right: Value, equal: bool) -> Value:
    """Return whether two values are equal as texts; None where either is missing."""

    def value(row: Any, names: Mapping[str, Any]) -> bool | None:
        first, second = left(row, names), right(row, names)
        if first is None or second is None:
            return None
        return (first == second or _as_text(first).strip() == _as_text(second).strip()) is equal

    return value


def _as_text(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _parsed(value: Any, _argument: str) -> Any:
    """Return the value of a text that is JSON or a Python literal."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _number(value: Any, _argument: str) -> float | int | None:
    """Return the number that a text is, with thousands separators and a percent sign; None where it is not finite."""
    if not isinstance(value, int | float):
        text = str(value).strip().replace(",", "")
        try:
            value = float(text[:-1]) / 100 if text.endswith("%") else int(text) if text.isdecimal() else float(text)
        except ValueError:
            return None
    return value if abs(value) < _LARGEST else None


def _mean(value: Any, _argument: str) -> float | None:
    """Return the mean of numbers and truth values; None for an empty list, or another value in it."""
    entries = value if isinstance(value, list) else [value]
    if not entries or not all(isinstance(entry, int | float) and abs(entry) < _LARGEST for entry in entries):
        return None
    return float(sum(entries)) / len(entries)


def _scaled(value: Any, argument: str) -> float | None:
    """Return where a number lies between two others: ``scale(1,10)``."""
    bounds = [_number(part, "") for part in argument.split(",")]
    number = _number(value, "")
    if len(bounds) != 2 or bounds[0] is None or bounds[1] is None or bounds[0] == bounds[1]:
        raise ConfigError(f"scale({argument}): expected the lowest and the highest value, such as scale(0,100)")
    return None if number is None else (number - bounds[0]) / (bounds[1] - bounds[0])


def _letter(value: Any, argument: str) -> Any:
    """Return the letter of an index, counted from 0 or from the number in the argument."""
    number = _number(value, "")
    index = None if number is None else int(number) - int(argument or 0)
    return chr(ord("A") + index) if index is not None and 0 <= index < 26 else value


def _lettered(value: Any, _argument: str) -> str | None:
    if not isinstance(value, list):
        return None
    return "\n".join(f"{chr(ord('A') + index)}. {_as_text(entry)}" for index, entry in enumerate(value[:26]))


def _search(value: Any, pattern: str) -> Any:
    """Return the last match of a pattern in a text, as a match of the package ``regex``, else None."""
    import regex

    try:
        matches = list(regex.finditer(pattern, _as_text(value)[:_LONGEST], timeout=_SECONDS))
    except TimeoutError:
        raise ConfigError(f"the search for {pattern!r:.80} does not end in time; write a simpler pattern") from None
    return matches[-1] if matches else None


def _mapped(value: Any, argument: str) -> Any:
    """Return what the argument gives for a value: ``map(C=1,I=0)``; None for any other value."""
    pairs = dict(pair.split("=", 1) for pair in argument.split(",") if "=" in pair)
    text = pairs.get("true" if value is True else "false" if value is False else _as_text(value).strip())
    return None if text is None else _parsed(text, "") if _parsed(text, "") is not None else text


def _split_text(value: Any, argument: str) -> list[str]:
    parts = _as_text(value).split(_unescaped(argument) or None)
    return [part.strip() for part in parts if part.strip()]


#: Filters by name, each from a value and the text in its parentheses.
FILTERS: Mapping[str, Callable[[Any, str], Any]] = MappingProxyType(
    {
        "parse": _parsed,
        "number": _number,
        "text": lambda value, _: _as_text(value),
        "strip": lambda value, _: _as_text(value).strip(),
        "lower": lambda value, _: _as_text(value).lower(),
        "upper": lambda value, _: _as_text(value).upper(),
        "first": lambda value, _: (value[0] if value else None) if isinstance(value, list) else value,
        "last": lambda value, _: (value[-1] if value else None) if isinstance(value, list) else value,
        "mean": _mean,
        "length": lambda value, _: len(value) if isinstance(value, list | str | Mapping) else None,
        "values": lambda value, _: list(value.values()) if isinstance(value, Mapping) else value,
        "keys": lambda value, _: list(value) if isinstance(value, Mapping) else value,
        "not": lambda value, _: not value,
        "scale": _scaled,
        "letter": _letter,
        "lettered": _lettered,
        "match": lambda value, pattern: _search(value, pattern) is not None,
        "extract": lambda value, pattern: match[bool(match.re.groups)] if (match := _search(value, pattern)) else None,
        "map": _mapped,
        "split": _split_text,
        "join": lambda value, mark: _unescaped(mark).join(map(_as_text, value if isinstance(value, list) else [value])),
        "default": lambda value, argument: argument if value is None else value,
        "hash": lambda value, _: hashlib.sha256(_as_text(value).encode("utf-8", "replace")).hexdigest()[:12],
    }
)


def _filtered(value: Value, text: str) -> Value:
    """Return a value through a filter; a missing value stays missing."""
    match = _FILTER.fullmatch(text)
    if match is None or match[1] not in FILTERS:
        raise ConfigError(f"the filter {text.strip()!r:.60} is not known; known are {', '.join(FILTERS)}")
    name, argument = match[1], match[2] or ""
    if name in ("match", "extract"):
        import regex

        try:
            regex.compile(argument)
        except (regex.error, ValueError, OverflowError) as error:
            raise ConfigError(f"{argument!r:.60} is no regular expression ({error})") from None
    apply = FILTERS[name]

    def filtered(row: Any, names: Mapping[str, Any]) -> Any:
        unfiltered = value(row, names)
        return apply(unfiltered, argument) if unfiltered is not None or name == "default" else None

    return filtered
