"""Tables of settings declared as types: the checks, error messages and documentation of their keys.

A table is a subclass of `Table` whose fields are its keys. Types say which values a key takes, and editors and the
documentation show the meanings that the table's docstring lists under ``Args:``.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import inspect

from pytest_adaptive_eval.errors import ConfigError

#: A number that keeps its type, since names of gates and records show it as it was written.
Number = int | float
#: A whole number of at least 1, one that multiplies a run, and one of at least 0.
Count = Annotated[int, msgspec.Meta(ge=1)]
FewTimes = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Index = Annotated[int, msgspec.Meta(ge=0)]
#: A number of at least 0, one that is not endless either, and one above 0 and at most 1.
Size = Annotated[float, msgspec.Meta(ge=0.0)]
FiniteSize = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]

#: Values of the types without parameters, in words.
_WORDS = {
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.BoolType: "true or false",
}

V = TypeVar("V")


def named(names: Iterable[str], *, closed: bool = True) -> msgspec.Meta:
    """Return the annotation of a key that takes names.

    Args:
        closed: Whether only these names are allowed. Otherwise plugins may add names.
    """
    return msgspec.Meta(extra_json_schema={"enum" if closed else "examples": list(names)})


def hinted(text: str) -> msgspec.Meta:
    """Return the annotation of a key whose errors end with a text."""
    return msgspec.Meta(extra={"hint": text})


def find_named(kind: str, name: str, options: Mapping[str, V]) -> V:
    """Return the option of a name.

    Raises:
        ConfigError: There is none; the message suggests a similar name.
    """
    if name not in options:
        raise ConfigError(f"{kind} {name!r} is not known; {suggestion(name, options)}")
    return options[name]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all tables of settings; `gone` says of keys that were cut what to do instead."""

    gone: ClassVar[Mapping[str, str]] = {}


T = TypeVar("T", bound=Table)


def replaced(table: T, **values: Any) -> T:
    """Return a copy of a table with other values of some keys."""
    return msgspec.structs.replace(table, **values)


def read_table(table: type[T], data: Mapping[str, Any], where: str, *, strict: bool = True) -> T:
    """Convert settings as the user wrote them to a typed table.

    Args:
        table: A subclass of `Table`.
        where: File and line, for errors.
        strict: Whether a text such as ``"4"`` is refused where a number is expected.

    Raises:
        ConfigError: Names the place, the key, its value and the values that it takes.
    """
    # None stands for keys that were not written; a written None becomes a value that no type takes
    builtins = {}
    for key, value in data.items():
        if value is None:
            builtins[key] = ...
        else:
            builtins[key] = _builtin(value, f"{where}: {key}")
    try:
        return msgspec.convert(builtins, table, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_sentence(table, data, str(error))}") from None


def read_options(table: type[T], options: Mapping[str, Any], of: str) -> T:
    """Return the options of a model. An option of None has its default; errors as of `read_table`."""
    given = {}
    for name, value in options.items():
        if value is not None:
            given[name] = value
    return read_table(table, given, f"options of {of}")


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """Begin the message of a `ConfigError` with file and line, unless it does already."""
    try:
        yield
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if text.startswith(f"{where}:") else f"{where}: {text}") from None


def refuse_keys(data: Mapping[str, Any], keys: Iterable[str], reason: str) -> None:
    """Raise a ConfigError if a key was written that does not apply."""
    for key in keys:
        if key in data:
            raise ConfigError(f"{key} {reason}")


def json_schema(tables: Sequence[type[Table]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a reference to each table, and the definitions that the references name, as JSON Schema without null."""
    references, definitions = msgspec.json.schema_components(tables, ref_template="#/$defs/{name}")
    for table in _kinds_of(Table):
        if table.__name__ in definitions:
            properties = definitions[table.__name__]["properties"]
            for key, meaning in _meanings(table).items():
                properties[key]["description"] = meaning
    return list(references), _without_null(definitions)


def _kinds_of(table: type[Table]) -> Iterator[type[Table]]:
    """Yield all tables that are derived from a table."""
    for kind in table.__subclasses__():
        yield kind
        yield from _kinds_of(kind)


def _meanings(table: type[Table]) -> dict[str, str]:
    """Return the meaning of each key, by the docstrings of a table and of its bases."""
    meanings = {}
    for base in reversed(table.__mro__):
        listed = cleandoc(base.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", listed, re.MULTILINE):
            meaning = " ".join(text.split()).removesuffix(".")
            is_acronym = meaning[1:2].isupper()
            if is_acronym:
                meanings[name] = meaning
            else:
                meanings[name] = meaning[0].lower() + meaning[1:]
    return meanings


def describe(table: type[Table]) -> Iterator[tuple[str, str, Any, str]]:
    """Yield name, values in words, default and meaning of each key; the default is None where the key has none."""
    info = inspect.type_info(table)
    assert isinstance(info, inspect.StructType)
    meanings = _meanings(table)
    for field in info.fields:
        if isinstance(field.type, inspect.Metadata):
            schema = field.type.extra_json_schema or {}
        else:
            schema = {}
        names = schema.get("enum") or schema.get("examples")
        if names:
            words = " or ".join(map(repr, names))
        else:
            words = type_words(field.type)
        if "examples" in schema:
            words += " or a plugin's"
        if field.default is msgspec.NODEFAULT and not field.required:
            default = field.default_factory()
        else:
            default = field.default
        yield field.name, words, None if default is msgspec.NODEFAULT else default, meanings.get(field.name, "")


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message about an unknown word: the most similar known word, or all of them."""
    words = list(words)
    close = difflib.get_close_matches(word, words, 1, 0.7)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(words)}"


def type_words(kind: inspect.Type) -> str:
    """Return the values that a type takes, in words."""
    match kind:
        case inspect.Metadata():
            return type_words(kind.type)
        case inspect.UnionType():
            number = any(isinstance(option, inspect.FloatType) for option in kind.types)
            dropped = (inspect.NoneType, inspect.IntType) if number else inspect.NoneType
            return " or ".join(type_words(option) for option in kind.types if not isinstance(option, dropped))
        case inspect.IntType(ge=int(least), le=int(most)):
            return f"a whole number of at least {least} and at most {most}"
        case inspect.IntType(ge=int(least)):
            return f"a whole number of at least {least}"
        case inspect.FloatType(ge=float(least)):
            return f"a number of at least {least:g}"
        case inspect.FloatType(gt=float(least), le=float(most)):
            return f"a number above {least:g} and at most {most:g}"
        case inspect.LiteralType():
            return " or ".join(json.dumps(value) if isinstance(value, bool) else repr(value) for value in kind.values)
        case inspect.TupleType():
            return f"a list of {len(kind.item_types)} ({type_words(kind.item_types[0])} each)"
        case inspect.ListType() | inspect.VarTupleType():
            return f"a list ({type_words(kind.item_type)} each)"
        case inspect.DictType() if not isinstance(kind.value_type, inspect.AnyType):
            return f"a table ({type_words(kind.value_type)} under each name)"
        case _:
            return _WORDS.get(type(kind), "a table")


def _builtin(value: Any, name: str) -> Any:
    """Return a copy in built-in types, without subclasses of float such as numpy's.

    Raises:
        ConfigError: An integer is larger than TOML allows.
    """
    if isinstance(value, Mapping):
        return {key: _builtin(entry, f"{name}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_builtin(entry, name) for entry in value]
    if isinstance(value, int) and value.bit_length() > 63:
        raise ConfigError(f"{name} is too large: numbers in TOML have 64 bits")
    if isinstance(value, float):
        return float(value)
    return value


def _without_null(schema: Any) -> Any:
    """Return a JSON Schema for values that are never null, with the first line of each description."""
    if isinstance(schema, list | tuple):
        return [_without_null(entry) for entry in schema if entry not in ({"type": "null"}, None)]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _without_null(value) for key, value in schema.items() if value is not None}
    if len(schema.get("anyOf", ())) == 1:
        schema |= schema.pop("anyOf")[0]
    if isinstance(schema.get("description"), str):
        schema["description"] = schema["description"].partition("\n")[0]
    return schema


def _sentence(table: type[Table], data: Any, message: str) -> str:
    """Return a sentence on the first value that msgspec refused, from its message and the path in it."""
    problem, _, path = message.partition(" - at `$")
    kind = inspect.type_info(table)
    table_prefix = name = hint = ""
    for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", path.partition("[...]")[0]):
        if key:
            kind = next(fields[key] for fields in map(_fields, _alternatives(kind)) if key in fields)
            data = data[key]
            name = f"{name}.{key}".lstrip(".")
        else:
            sequences = (inspect.ListType, inspect.VarTupleType, inspect.TupleType)
            items = []
            for option in _alternatives(kind):
                if isinstance(option, sequences):
                    items.append(option)
            if isinstance(items[0], inspect.TupleType):
                kind = items[0].item_types[0]
            else:
                kind = items[0].item_type
            data = data[int(index)]
            table_prefix = f"{table_prefix}{name} {int(index) + 1}: "
            name = ""
        if isinstance(kind, inspect.Metadata) and kind.extra:
            hint = kind.extra["hint"]
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        fields = next(filter(None, map(_fields, _alternatives(kind))))
        classes = []
        for option in _alternatives(kind):
            if isinstance(option, inspect.StructType):
                classes.append(option.cls)
        if fix := getattr(classes[0], "gone", {}).get(unknown[1]):
            return f"{table_prefix}{unknown[1]} is gone: {fix}"
        return f"{table_prefix}unknown setting {f'{name}.{unknown[1]}'.lstrip('.')!r}; {suggestion(unknown[1], fields)}"
    return f"{f'{table_prefix}{name}'.removesuffix(': ')} is {data!r:.80}, expected {type_words(kind)}{hint}"


def _alternatives(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """Return the members of a union, or the type alone; of a table by names, the members of its values."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.DictType):
        kind = kind.value_type
    if isinstance(kind, inspect.UnionType):
        return kind.types
    return (kind,)


def _fields(kind: inspect.Type) -> dict[str, inspect.Type]:
    """Return the types of a table's keys; empty for any other type."""
    if isinstance(kind, inspect.StructType):
        return {field.name: field.type for field in kind.fields}
    return {}
