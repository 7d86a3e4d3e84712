"""The command line: its verbs, errors and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.api_keys import hide_addresses
from pytest_adaptive_eval.cli.options import INTERRUPTED, NOT_PASSED, USAGE
from pytest_adaptive_eval.cli.parser import PrintCompletion, VerbParser
from pytest_adaptive_eval.cli.screen import open_streams, put, screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError
from pytest_adaptive_eval.gone import refuse_gone
from pytest_adaptive_eval.registry import registered

#: Line in the list of verbs and head of the help, by the first word of verbs of two words.
_GROUPS = {
    "bank": (
        "show, check, compare, share or refine a bank",
        "Show, check, compare, share or refine banks.",
    ),
    "study": (
        "repeat experiments of papers on recorded responses",
        "Repeat experiments of the AutoJudger and M3-IRT papers on recorded responses, without a model.",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0 passed, 1 not passed (a refused bank), 2 interrupted, 4 a usage error.
    """
    open_streams()
    screen.start()
    arguments = sys.argv[1:] if arguments is None else arguments
    hide_addresses("\n".join(arguments))
    try:
        refuse_gone(arguments)
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


def command_parser() -> VerbParser:
    """Return the parser of the command, with all verbs."""
    parser = VerbParser(
        prog="adaptive-eval",
        description="Adaptive evaluation of model checkpoints: banks of questions, and results of runs. "
        "pytest --adaptive-eval runs the interviews.",
    )
    parser.add_argument("--version", action="version", version=f"pytest-adaptive-eval {__version__}")
    text = "print the script by which a shell completes this command (bash, fish, zsh); it needs shtab"
    parser.add_argument("--print-completion", metavar="SHELL", action=PrintCompletion, help=text)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    groups = {}
    verbs = registered("pytest_adaptive_eval.cli.verbs", "adaptive_eval.verbs", Verb)
    for verb in (verbs[name] for name in sorted(verbs)):
        group, _, name = verb.name.rpartition(" ")
        if group and group not in groups:
            summary, description = _GROUPS.get(group, (f"verbs of {group}", ""))
            whole = commands.add_parser(group, help=summary, description=description)
            groups[group] = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
        verb_parser = groups.get(group, commands).add_parser(name, help=verb.summary, description=verb.description)
        verb.add_arguments(verb_parser)
        verb_parser.examples = verb.examples
        verb_parser.set_defaults(run_verb=verb.run)
    return parser
