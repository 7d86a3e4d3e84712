"""Rare settings of verbs, which a TOML file holds or ``--set`` gives one by one."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.typed_tables import Count, Table, describe, read_table, suggestion

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser

#: Settings that name files, which in a TOML file are relative to it.
_PATHS = {"families", "image_root", "labels"}

T = TypeVar("T", bound=Table)


class ReadingTable(ResponseMapping, frozen=True):
    """Settings by which recorded responses are read, beside the mapping of their fields.

    Args:
        format: Format of the responses; recognised when omitted.
        orientation: What a CSV's rows and columns are.
        metric: Metric, scorer or statistic, where the logs have several.
        filter: Answer filter, data set or bank, where the logs have several.
        families: CSV with the family or training run of each subject.
    """

    format: str | None = None
    orientation: Literal["items-by-subjects", "subjects-by-items"] | None = None
    metric: str | None = None
    filter: str | None = None
    families: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `banks.responses.read_responses` that say how a source is read."""
        mapping = None
        if self.given:
            mapping = ResponseMapping(**self.given)
        named = {}
        for name in ("format", "orientation", "metric", "filter"):
            named[name] = getattr(self, name)
        return {**named, "mapping": mapping}


class FitTable(ReadingTable, frozen=True):
    """Settings of calibration, in addition to the settings of reading.

    Args:
        dimensions: Abilities of mirt (4), or auto by held-out likelihood.
        engine: Map (the default), svi (AutoJudger's, by Pyro), svi-sd (by its code's prior), or a plugin's.
        device: Torch device such as cuda (numpy on the processor).
        limit: Largest number of iterations of a fit; in formats, of steps for each q.
    """

    dimensions: Count | Literal["auto"] | None = None
    engine: str | None = None
    device: str | None = None
    limit: Count | None = None


class CalibrateTable(FitTable, frozen=True):
    """Settings of ``calibrate``.

    Args:
        source: Where the data come from, for the record (the name of the data).
        licence: Licence of the data, for the record (read from files beside them).
    """

    source: str = ""
    licence: str = ""


def add_settings_arguments(parser: VerbParser, table: Callable[[], type[Table]], common: Iterable[str] = ()) -> None:
    """Add ``--config`` and ``--set`` for the keys of a table, which the end of the help lists.

    Args:
        common: Keys that are options too, such as ``--question`` for ``question``.
    """
    add = parser.add_argument_group("settings").add_argument
    flags = {name: f"--{name.replace('_', '-')}" for name in common}
    for name, flag in flags.items():
        add(flag, metavar="VALUE", dest=f"key_{name}", help=argparse.SUPPRESS)
    add("--config", metavar="TOML", type=Path, help="file of settings")
    text = "a setting, in place of the file's; may be repeated"
    if flags:
        *others, last = flags.values()
        text += f"; {', '.join(others)} and {last} give the keys of these names"
    add("--set", metavar="KEY=VALUE", action="append", default=[], help=text)
    parser.set_defaults(table=table)
    parser.details.append(
        lambda: ("keys of --config and --set", [(name, meaning) for name, _, _, meaning in describe(table())])
    )


def add_reading_arguments(parser: VerbParser, table: Callable[[], type[ReadingTable]]) -> None:
    """Add the settings of a table by which responses are read, and list the formats at the end of the help."""
    parser.details.append(_formats)
    parser.named.add("formats of responses")
    add_settings_arguments(parser, table)


def _formats() -> tuple[str, Iterator[tuple[str, str]]]:
    from pytest_adaptive_eval.banks.responses import FORMATS

    rows = []
    for name, reader in FORMATS.items():
        settings = [f"{key}: {text}" for key, text in reader.settings.items()]
        rows.append((name, "; ".join([reader.content, *settings])))
    return "formats of responses", iter(rows)


def given_settings(options: argparse.Namespace, *, files: bool = True) -> dict[str, Any]:
    """Return the settings of the file and of ``--set``, which comes first; values of ``--set`` are texts.

    Args:
        files: Whether the file's settings count.
    """
    data = {}
    path = getattr(options, "config", None)
    if files and path is not None:
        try:
            data = tomllib.loads(read_regular(path).decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            text = f"{path}: not a readable TOML file ({error}); write lines such as key = 'value'"
            raise ConfigError(text) from None
        read_table(options.table(), data, str(path))
        data |= {name: str(path.parent / data[name]) for name in _PATHS & data.keys()}
    named = {
        name.removeprefix("key_"): value
        for name, value in vars(options).items()
        if name.startswith("key_") and value is not None
    }
    for entry in getattr(options, "set", ()):
        name, sign, value = entry.partition("=")
        fields = options.table().__struct_fields__
        if not sign:
            raise ConfigError(f"--set {entry!r}: expected KEY=VALUE, such as --set {fields[0]}=...")
        if name not in fields:
            raise ConfigError(f"--set {name}: unknown setting; {suggestion(name, fields)}")
        if name in named:
            raise ConfigError(f"--set {name}: given twice; give it once")
        named[name] = value
    return data | named


def settings_of(options: argparse.Namespace, table: type[T]) -> T:
    """Return the settings of a verb, whose table is of the class `table`.

    Raises:
        ConfigError: The file cannot be read, or a key or value is wrong.
    """
    settings = read_table(options.table(), given_settings(options), "--set", strict=False)
    assert isinstance(settings, table)
    return settings
