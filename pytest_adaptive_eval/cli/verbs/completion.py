"""``adaptive-eval completion``: scripts with which shells complete the command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from pytest_adaptive_eval.cli.options import PASSED
from pytest_adaptive_eval.cli.screen import put
from pytest_adaptive_eval.cli.verb import Verb

_BASH = """\
# Completion of adaptive-eval in bash.
_adaptive_eval() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} verbs="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$verbs ${{COMP_WORDS[i]}}" in
      {paths}) verbs="$verbs ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$verbs $previous" in
    {values}
    *) case "$verbs:$word" in
      {words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _adaptive_eval adaptive-eval
"""
_ZSH = """\
#compdef adaptive-eval
autoload -Uz compinit bashcompinit
(( $+functions[compdef] )) || compinit
bashcompinit
"""


def _parsers(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], _Parser]]:
    """Yield the words that lead to each parser, and what it takes."""
    found = _Parser(parser)
    yield path, found
    for name, child in found.verbs.items():
        yield from _parsers(child, (*path, name))


class _Parser:
    """The verbs, options and positional choices of one parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.verbs: dict[str, argparse.ArgumentParser] = {}
        self.options: dict[str, argparse.Action] = {}
        self.choices: list[str] = []
        for action in parser._actions:
            self.options |= dict.fromkeys(action.option_strings, action)
            if isinstance(action, argparse._SubParsersAction):
                self.verbs |= action.choices
            elif not action.option_strings and action.choices is not None:
                self.choices += map(str, action.choices)


def _bash(parser: argparse.ArgumentParser) -> str:
    paths, values, words = [], [], []
    for path, found in _parsers(parser):
        verbs = "".join(f" {verb}" for verb in path)
        if path:
            paths.append(f'"{verbs}"')
        for option, action in found.options.items():
            if action.choices is not None:
                values.append(f'"{verbs} {option}") words="{" ".join(map(str, action.choices))}" ;;')
        words.append(f'"{verbs}":-*) words="{" ".join(found.options)}" ;;')
        if found.verbs or found.choices:
            words.append(f'"{verbs}":*) words="{" ".join([*found.verbs, *found.choices])}" ;;')
    return _BASH.format(paths=" | ".join(paths), values="\n    ".join(values), words="\n      ".join(words))


def _zsh(parser: argparse.ArgumentParser) -> str:
    return _ZSH + _bash(parser)


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = ["# Completion of adaptive-eval in fish."]
    for path, found in _parsers(parser):
        seen = [f"__fish_seen_subcommand_from {verb}" for verb in path]
        if found.verbs:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(found.verbs)}")
        start = f"complete -c adaptive-eval -n {shlex.quote('; and '.join(seen))}"
        if found.verbs or found.choices:
            lines.append(f"{start} -f -a {shlex.quote(' '.join([*found.verbs, *found.choices]))}")
        for option, action in found.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            taken = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices is not None else ""
            lines.append(f"{start} {kind}{taken or (' -r' if action.nargs != 0 else '')}")
    return "\n".join([*lines, ""])


_SHELLS = {"bash": _bash, "fish": _fish, "zsh": _zsh}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=sorted(_SHELLS), help=f"one of {', '.join(sorted(_SHELLS))}")


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.cli.command import command_parser

    put(_SHELLS[options.shell](command_parser()))
    return PASSED


REGISTERED = (
    Verb(
        "completion",
        "print a script with which a shell completes this command",
        "Print a script with which bash, fish or zsh completes verbs, options and choices, as in "
        "'source <(adaptive-eval completion bash)'.",
        _add_arguments,
        _run,
        ("completion bash", "completion fish"),
    ),
)
