"""A project whose model is a harness: a script that runs the items of a file, and a log of what it did."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.extensions.harness.model import HarnessModel
from pytest_adaptive_eval.items.item import Item

#: A harness that notes each item it begins, waits, and writes the result.  ``SCRIPT`` changes what it does.
HARNESS = """
import json, os, signal, sys, time
from pathlib import Path

ids, output = [Path(ids_file).read_text().split() for ids_file in sys.argv[1:2]], Path(sys.argv[2])
here = Path(__file__).parent
assert not any(output.iterdir()), "each call has a folder of its own"

def begin(item):
    with (here / "begun.txt").open("a") as file:
        file.write(item + chr(10))
    time.sleep({seconds})

def write(item, **more):
    with (output / "results.jsonl").open("a") as file:
        file.write(json.dumps({{"id": item, "score": 1.0, **more}}) + chr(10))

(ids,) = ids
with (here / "calls.txt").open("a") as file:
    file.write(json.dumps(ids) + chr(10))
{script}
"""
ALL = """
for item in ids:
    begin(item)
    write(item)
"""


class Fake:
    """A fake harness in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, script: str = ALL, seconds: float = 0.0) -> str:
        """Write the harness, and return the command that runs it."""
        file = self.path / "harness.py"
        file.write_text(HARNESS.format(seconds=seconds, script=script))
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(file))} {{ids_file}} {{output}}"

    def model(self, script: str = ALL, *, seconds: float = 0.0, name: str = "command", **options: Any) -> HarnessModel:
        """Return the harness as a model; files of its calls are in ``run/harness``."""
        if "command" not in options:
            options["command"] = self.write(script, seconds)
        return HarnessModel.load(name, cache=self.path / "run" / "cache", **options)

    def lines(self, name: str) -> list[str]:
        """Lines of one of the harness's own notes."""
        file = self.path / f"{name}.txt"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def begun(self) -> list[str]:
        """Items that the harness began, in order."""
        return self.lines("begun")

    @property
    def calls(self) -> list[list[str]]:
        """Items of each call."""
        return [json.loads(line) for line in self.lines("calls")]


def items(names: Sequence[str]) -> list[Item]:
    """Items of which only the id is known."""
    return [Item(name, meta={"textless": True}) for name in names]
