"""Write command.md and api.md from the command's parser and the public names: ``python docs/reference_pages.py``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import pytest_adaptive_eval
from pytest_adaptive_eval.cli.command import command_parser

FOLDER = Path(__file__).parent


def command_page() -> str:
    """Return the page with the help of every verb."""
    return "\n".join(_command_lines())


def _command_lines() -> Iterator[str]:
    os.environ["COLUMNS"] = "100"
    yield "# The command\n\nThis page is written by `python docs/reference_pages.py` from the command's own help.\n"
    yield "| verb | what it does |\n| --- | --- |"
    parser = command_parser()
    (verbs,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for choice in verbs._choices_actions:
        yield f"| [`{choice.dest}`](#{choice.dest}) | {choice.help} |"
    yield ""
    for name, verb in verbs.choices.items():
        yield f"## {name}\n\n```text\n{verb.format_help().rstrip()}\n```\n"


def api_page() -> str:
    """Return the page with the docstring of every public name."""
    lines = ["# Python", "", "All names are imported from `pytest_adaptive_eval`.", ""]
    for name, module in sorted(pytest_adaptive_eval._NAMES.items()):
        lines.append(f"::: pytest_adaptive_eval.{module}.{name}\n")
    return "\n".join(lines)


if __name__ == "__main__":
    (FOLDER / "command.md").write_text(command_page(), "utf-8")
    (FOLDER / "api.md").write_text(api_page(), "utf-8")
