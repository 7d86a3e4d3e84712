"""The parser of the command and of its verbs."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from pytest_adaptive_eval.cli.screen import put
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.registry import lacking

#: Columns of a name in a list of settings.
_NAME = 22
#: Page with the lists of names and their meanings.
_PAGE = "docs/reference/command.md"


class VerbParser(argparse.ArgumentParser):
    """A parser that raises usage errors, and refuses an option that is repeated or shortened.

    Attributes:
        examples: Commands at the end of the help, without ``adaptive-eval``.
        details: Functions that return the title of a list of names with meanings, such as keys of ``--set``. The help
            names the lists, and the page of the command has them.
        named: Titles of lists whose names the help shows too.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": _HelpFormatter, **options})
        for name, action in (("store", _StoreOnce), ("store_true", _TrueOnce)):
            self.register("action", name, action)
        self.register("action", None, _StoreOnce)
        self.given: set[str] = set()
        self.examples: tuple[str, ...] = ()
        self.details: list[Callable[[], tuple[str, Iterable[tuple[str, str]]]]] = []
        self.named: set[str] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, as the base class does; no option has been given before."""
        self.given.clear()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> Any:
        """Raise a UsageError that names the verb's help."""
        raise UsageError(f"{message}{lacking()}; {self.prog} --help lists the options")

    def format_help(self, *, meanings: bool = False) -> str:
        """Return the help with the titles of the details, or with their rows, and with the examples."""
        details = [detail() for detail in self.details]
        parts = []
        if meanings:
            for title, rows in details:
                lines = [f"{name}\t{meaning}" for name, meaning in rows]
                parts.append("\n".join([f"{title}:", *lines]))
        elif details:
            lines = [f"see {_PAGE} for:"]
            others = []
            for title, rows in details:
                if title in self.named:
                    names = ", ".join(name for name, _ in rows)
                    lines.append(f"\t{title}: {names}")
                else:
                    others.append(title)
            if others:
                lines.append(f"\t{', '.join(others)}")
            parts.append("\n".join(lines))
        if self.examples:
            parts.append("\n".join(["examples:", *(f"  adaptive-eval {example}" for example in self.examples)]))
        self.epilog = "\n\n".join(parts) or None
        return super().format_help()


class _Once(argparse.Action):
    """An option whose second value would replace the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if option_string is not None:
            if self.dest in parser.given:
                raise argparse.ArgumentError(self, "given twice; give it once")
            parser.given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class _StoreOnce(_Once, argparse._StoreAction):
    pass


class _TrueOnce(_Once, argparse._StoreTrueAction):
    pass


class PrintCompletion(argparse.Action):
    """Print the script by which a shell completes the command, made by ``shtab``."""

    def __call__(self, parser: Any, _namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Print the script and exit."""
        try:
            import shtab
        except ImportError:
            parser.error(f"{option_string} needs shtab: pip install shtab")
        if values not in shtab.SUPPORTED_SHELLS:
            parser.error(f"{option_string} {values}: known are {', '.join(shtab.SUPPORTED_SHELLS)}")
        _complete_files(parser, shtab.FILE)
        put(shtab.complete(parser, values))
        parser.exit()


def _complete_files(parser: argparse.ArgumentParser, files: Any) -> None:
    """Complete every text argument to file names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _complete_files(child, files)
        elif action.nargs != 0 and action.choices is None:
            action.complete = files  # type: ignore[attr-defined] # the attribute that shtab reads


class _HelpFormatter(argparse.HelpFormatter):
    """Formatter that keeps the lines of an epilog, and sets the lines of a list in two columns."""

    def add_usage(self, usage: Any, actions: Any, _groups: Any, prefix: str | None = None) -> None:
        """Show the arguments alone: the sections below list the options."""
        if prefix is None:  # else it makes the name of a verb
            self._prog += " [options]"
        super().add_usage(usage, [action for action in actions if not action.option_strings], [], prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(self._row(*line.split("\t"), width=width) for line in text.splitlines())

    def _row(self, name: str, meaning: str = "", *, width: int) -> str:
        if not meaning:
            return name
        if not name:
            return textwrap.fill(meaning, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        indent = " " * (_NAME + 2)
        text = textwrap.fill(meaning, width, initial_indent=indent, subsequent_indent=indent)
        if len(name) >= _NAME:
            return f"  {name}\n{text}"
        return f"  {name:{_NAME}}{text[_NAME + 2 :]}"
