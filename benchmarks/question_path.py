"""Files of the package that a later question of a TOML evaluation enters, and how often control moves to another file.

    python benchmarks/question_path.py [--calls]

The 20th question of an interview with recorded answers is traced, from its protocol to that of the next one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pytest_adaptive_eval
from pytest_adaptive_eval.plugin.ask.question import QuestionTest

PACKAGE = Path(pytest_adaptive_eval.__file__).parent
QUESTION, ITEMS = 20, 400
EVALUATION = """
[[eval]]
name = "sums"
bank = "items.jsonl"
model = "replay:answers.jsonl"
[[eval.gate]]
metric = "accuracy"
at_least = 0.5
"""


class Trace:
    """Calls of the package's functions during one question."""

    def __init__(self) -> None:
        self.questions = 0
        self.calls: list[tuple[str, str]] = []  #: File and qualified name of each function, in order.

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note a call, as `sys.setprofile` tells it."""
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            self.calls.append((str(path.relative_to(PACKAGE)), frame.f_code.co_qualname))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Begin at one question, and end at the next."""
        if isinstance(item, QuestionTest):
            self.questions += 1
            if self.questions == QUESTION:
                sys.setprofile(self.profile)
            elif self.questions == QUESTION + 1:
                sys.setprofile(None)
        return (yield)


def write_evaluation(folder: Path) -> None:
    """Write a bank of sums, answers of which three of four are right, and the evaluation."""
    items = [{"id": f"q{n}", "prompt": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(ITEMS)]
    answers = [{"id": f"q{n}", "text": str(n + 1) if n % 4 else "0"} for n in range(ITEMS)]
    for name, rows in (("items", items), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "adaptive-eval.toml").write_text(EVALUATION)


def main() -> None:
    """Print the counts, and with ``--calls`` the functions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", action="store_true", help="print each function")
    options = parser.parse_args()
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        write_evaluation(Path(folder))
        os.chdir(folder)
        pytest.main(["--adaptive-eval", "-qq", "-p", "no:cacheprovider"], plugins=[trace])
        os.chdir("/")
    files = [file for file, _ in trace.calls]
    if options.calls:
        print("\n".join(f"{file:40} {name}" for file, name in trace.calls))
    changes = sum(first != second for first, second in itertools.pairwise(files))
    print(f"{len(files)} calls, {len(set(files))} files, {changes} changes of file")


if __name__ == "__main__":
    main()
