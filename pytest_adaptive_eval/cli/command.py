"""The command line: its parser, errors and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.cli.options import INTERRUPTED, NOT_PASSED, USAGE
from pytest_adaptive_eval.cli.screen import open_streams, put, screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError
from pytest_adaptive_eval.registry import registered


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0 passed, 1 not passed (a refused bank), 2 interrupted, 4 a usage error.
    """
    open_streams()
    screen.start()
    try:
        parser = command_parser()
        try:
            options = parser.parse_args(arguments)
        finally:
            put("")  # flush: the reader of --help and --version too may have gone
        if "run_verb" not in options:
            parser.print_help(sys.stderr)
            return USAGE
        code: int = options.run_verb(options)
    except UsageError as error:
        screen.say(f"adaptive-eval: error: {error}")
        return USAGE
    except AdaptiveEvalError as error:
        screen.say(f"adaptive-eval: {error}")
        return NOT_PASSED
    except KeyboardInterrupt:
        screen.say("adaptive-eval: interrupted; nothing was written")
        return INTERRUPTED
    except OSError as error:
        screen.say(f"adaptive-eval: error: {error.filename or 'a file'}: {error.strerror or error}; check the path")
        return USAGE
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.exit(USAGE, f"{self.prog}: error: {message}\nadaptive-eval COMMAND --help lists the options\n")


#: First line of the examples at the end of a help.
_EXAMPLES = "examples:"


class _HelpFormatter(argparse.HelpFormatter):
    """Formatter that keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)


def _examples(examples: Sequence[str]) -> str:
    return "\n".join([_EXAMPLES, *(f"  adaptive-eval {example}" for example in examples)]) if examples else ""


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command, with all verbs."""
    parser = _Parser(
        prog="adaptive-eval",
        description="Adaptive evaluation of model checkpoints: banks of items, and results of runs. Interviews run in "
        "pytest --adaptive-eval, and not here.",
    )
    parser.add_argument("--version", action="version", version=f"pytest-adaptive-eval {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for verb in registered("pytest_adaptive_eval.cli.verbs", "adaptive_eval.verbs", Verb).values():
        verb_parser = commands.add_parser(
            verb.name, help=verb.summary, description=verb.description, formatter_class=_HelpFormatter
        )
        verb.add_arguments(verb_parser)
        verb_parser.epilog = "\n\n".join(filter(None, [verb_parser.epilog, _examples(verb.examples)])) or None
        verb_parser.set_defaults(run_verb=verb.run)
    return parser
