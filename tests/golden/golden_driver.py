"""Run commands of projects in one process, each in a folder of its own, and write their exit codes.

Standard input is a JSON list of ``{"folder": PATH, "command": "pytest" or "adaptive-eval", "arguments": [...]}``. What
each one printed goes to ``printed-NUMBER.txt`` in its folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

CODES = "exit-codes.json"


def run(command: str, arguments: list[str]) -> int:
    """Return the exit code of one command, as the process would end with it."""
    if command == "pytest":
        return int(pytest.main(arguments))
    (entry,) = entry_points(group="console_scripts", name="adaptive-eval")
    try:
        return int(entry.load()(arguments))
    except SystemExit as error:
        return int(error.code or 0)


def main() -> None:
    """Run all commands of standard input in order."""
    runs: list[dict[str, Any]] = json.load(sys.stdin)
    here = Path.cwd()
    codes = []
    for number, one in enumerate(runs):
        os.chdir(one["folder"])
        with contextlib.ExitStack() as stack:
            printed = stack.enter_context(Path(f"printed-{number}.txt").open("w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(printed))
            stack.enter_context(contextlib.redirect_stderr(printed))
            codes.append(run(one["command"], one["arguments"]))
    (here / CODES).write_text(json.dumps(codes))


if __name__ == "__main__":
    main()
