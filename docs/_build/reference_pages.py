"""Write the reference pages that the code knows: ``python docs/_build/reference_pages.py``."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import pytest_adaptive_eval
from pytest_adaptive_eval.cli import options
from pytest_adaptive_eval.cli.command import command_parser
from pytest_adaptive_eval.plugin import hooks

PUBLIC = tomllib.loads((Path(__file__).parent / "api.toml").read_text("utf-8"))
FOLDER = Path(__file__).parents[1] / "reference"
WRITTEN = "This page is written by `python docs/_build/reference_pages.py`"


def command_page() -> str:
    """Return the page with the help of every verb, and the exit codes of pytest and of the command."""
    return "\n".join([*_command_lines(), *_exit_code_lines()])


def _command_lines() -> Iterator[str]:
    os.environ["COLUMNS"] = "100"
    verbs = dict(command_verbs(command_parser()))
    yield f"# The command\n\n{WRITTEN} from the command's own help.\n"
    yield f"{count_verbs(verbs)}.  An option is given once, in full.  What may be repeated says so.\n"
    yield "| verb | what it does |\n| --- | --- |"
    for name, (summary, _) in verbs.items():
        yield f"| [`{name}`](#{name.replace(' ', '-')}) | {summary} |"
    yield ""
    places: dict[str, str] = {}
    for name, (_, parser) in verbs.items():
        yield f"## {name}\n\n```text\n{shorten_help(parser, name, places)}\n```\n"


def shorten_help(parser: Any, name: str, places: dict[str, str]) -> str:
    """Return a verb's help without ``--help`` and options in its usage.  `places` has the first verb of each long list."""
    usage = parser._get_formatter()
    usage.add_usage(None, [action for action in parser._actions if not action.option_strings], [])
    sections = [usage.format_help().strip().replace(parser.prog, f"{parser.prog} [OPTIONS]")]
    for section in parser.format_help(meanings=True).rstrip().split("\n\n")[1:]:
        section = re.sub(r"\n  -h, --help .*", "", section)
        first = places.setdefault(section, name)
        long_and_repeated = first != name and section.count("\n") > 4
        sections.append(f"{section.partition(':')[0]}: see {first}" if long_and_repeated else section)
    return "\n\n".join(section for section in sections if "\n" in section or not section.endswith(":"))


def command_verbs(parser: argparse.ArgumentParser, start: str = "") -> Iterator[tuple[str, tuple[str, Any]]]:
    """Yield the verbs of a parser with their line in the list and their parsers, those of two words too."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                child = action.choices[choice.dest]
                deeper = list(command_verbs(child, f"{choice.dest} "))
                yield from deeper or [(f"{start}{choice.dest}", (choice.help or "", child))]


def count_verbs(verbs: Mapping[str, tuple[str, Any]]) -> str:
    """Return the number of verbs, by their first words, and of all their options but ``--help``."""
    options = [
        action
        for _, parser in verbs.values()
        for action in parser._actions
        if action.option_strings and not isinstance(action, argparse._HelpAction)
    ]
    return f"{len({name.split()[0] for name in verbs})} verbs, {len(options)} options"


def _exit_code_lines() -> Iterator[str]:
    yield "## Exit codes\n\nThe command `adaptive-eval` ends with 0, 1, 2 or 4.\n\n| code | meaning |\n| --- | --- |"
    codes = {
        options.PASSED: "all gates passed, and no other test failed",
        options.NOT_PASSED: "a gate did not pass, a required gate gave no result, or a test failed",
        options.INTERRUPTED: "interrupted, as by Ctrl-C",
        int(pytest.ExitCode.INTERNAL_ERROR): "an internal error of pytest or of a plugin",
        options.USAGE: "a mistake of use, such as a wrong path, key or option",
        int(pytest.ExitCode.NO_TESTS_COLLECTED): "no test was collected",
    }
    yield from (f"| {code} | {meaning} |" for code, meaning in codes.items())
    yield "\n[When a run promotes](../how-to/require-gates.md#when-a-run-promotes) is more than the exit code 0.\n"


def api_page() -> str:
    """Return the page with an example and the docstring of every public name, and with every hook."""
    lines = ["# Python and hooks", "", f"{WRITTEN}.  All names are imported from `pytest_adaptive_eval`.", ""]
    for name, module in sorted(pytest_adaptive_eval._NAMES.items()):
        described = PUBLIC[name]
        lines += [f"## {name}\n", f"```python\n{described['example'].strip()}\n```\n"]
        lines.append(f"::: pytest_adaptive_eval.{module}.{name}")
        if "members" in described:
            lines.append(f"    options:\n      members: {json.dumps(described['members'])}")
        lines.append("")
    return "\n".join([*lines, *_hook_lines()])


def _hook_lines() -> Iterator[str]:
    yield "## Hooks\n\nA `conftest.py` or a plugin may implement each hook.\n"
    for name, hook in inspect.getmembers(hooks, inspect.isfunction):
        if name.startswith("pytest_adaptive_eval_"):
            signature = inspect.signature(hook)
            text = re.sub(r"``([^`]+)``", r"`\1`", inspect.getdoc(hook) or "")
            text, _, returned = text.partition("Returns:\n")
            summary = text.partition("\n\n")[0].strip()
            arguments = ", ".join(signature.parameters)
            yield f"### `{name}`\n\n    def {name}({arguments})\n\n{summary}\n"
            if signature.return_annotation != "None":
                yield f"Returns `{signature.return_annotation}`.  {' '.join(returned.split())}".strip() + "\n"


PAGES = {"command.md": command_page, "api.md": api_page}

if __name__ == "__main__":
    for page, text in PAGES.items():
        (FOLDER / page).write_text(text(), "utf-8")
    print(count_verbs(dict(command_verbs(command_parser()))))
