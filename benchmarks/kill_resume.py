"""kill -9 at random moments of a run, and what is left of it.

``python benchmarks/kill_resume.py`` interviews two models of 5 ms an answer at once, in batches of 8, with ``-n2`` (or
without xdist, by turns), kills the whole process group at random moments until the run ends, and counts: answers that
a journal held and the resumed run asked again (must be none), questions asked twice after a kill (at most one batch),
and whether the verdicts are those of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

#: Questions that are answered together, items of the bank, seconds that one answer takes, and right answers in 100.
BATCH, SIZE, SECONDS = 8, 600, 0.005
CHECKPOINTS = {"late": 80, "regressed": 60}

CONFTEST = f'''
import time
from pathlib import Path

import pytest
from pytest_adaptive_eval import Completion, Model, SubjectIdentity

class Noting(Model):
    """A model that notes every question before it answers, by the number in its id."""

    def __init__(self, name, share, waits):
        super().__init__(SubjectIdentity(name, name, {{"temperature": 0}}))
        self.file, self.share, self.waits = Path(__file__).parent / f"{{name}}.asked", share, waits

    def answer(self, items):
        return self.answer_each(items, lambda *_: None)

    def answer_each(self, items, arrived):
        completions = []
        for index, item in enumerate(items):
            with self.file.open("a") as file:
                file.write(item.id + "\\n")
            time.sleep(self.waits)
            right = int(item.id[1:]) * 7 % 100 < self.share
            completions.append(Completion("yes" if right else "no"))
            arrived(index, completions[-1])
        return completions

{
    "".join(
        f"""
@pytest.fixture(scope="module")
def model_{number}():
    return Noting({name!r}, {share}, {SECONDS})
"""
        for number, (name, share) in enumerate(CHECKPOINTS.items())
    )
}
'''

TESTS = "".join(
    f'''
@pytest.mark.adaptive_eval(bank="b.jsonl", name="{name}", budget=96, batch={BATCH})
def test_{number}(item, model_{number}):
    assert item.grade(model_{number}.generate(item))

@pytest.mark.adaptive_gate("{name}", at_least=0.5)
def test_gate_{number}(adaptive_eval):
    assert adaptive_eval.verdicts
'''
    for number, name in enumerate(CHECKPOINTS)
)


def command(folder: Path, workers: int) -> list[str]:
    """The pytest command of one run."""
    many = ["-n", str(workers)] if workers else ["-p", "no:xdist"]
    record = ["--adaptive-eval-record", str(folder / "record.json")]
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval", *record, *many]


def verdicts(folder: Path) -> list[tuple[str, str]]:
    """Gate and sentence of each verdict of the last run."""
    record: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return sorted((gate["name"], gate["verdict"]["sentence"]) for gate in record["gates"])


def journalled(folder: Path, before: dict[str, list[str]]) -> dict[str, list[str]]:
    """Items whose answers are in a journal, by checkpoint.

    A journal belongs to the checkpoint that was asked all its items, and the fewest others.
    """
    kept: dict[str, list[str]] = {name: [] for name in CHECKPOINTS}
    for path in (folder / ".adaptive-eval" / "journal").glob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            made = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'completions'").fetchall()
            items = {item for (item,) in connection.execute("SELECT item FROM completions")} if made else set()
        others = {
            name: len(set(asked_items) - items) for name, asked_items in before.items() if items <= {*asked_items}
        }
        if items:
            kept[min(others, key=lambda name: others[name])] = sorted(items)
    return kept


def asked(folder: Path) -> dict[str, list[str]]:
    """Items that each model was asked, in order."""
    return {
        name: path.read_text().split() if (path := folder / f"{name}.asked").exists() else [] for name in CHECKPOINTS
    }


def interrupted_run(
    folder: Path,
    workers: int,
    whole: dict[int, float],
    rng: random.Random,
    expected: list[tuple[str, str]],
    seen: collections.Counter[str],
) -> None:
    """Kill a run at random moments until it ends, and count what each start asked again of what the journals held."""
    before = asked(folder)
    kept: dict[str, list[str]] = {name: [] for name in CHECKPOINTS}
    ended = False
    while not ended:
        process = subprocess.Popen(
            command(folder, workers),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(rng.uniform(0.3, 0.9) * whole[workers])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            seen["kills"] += 1
        after, ended = asked(folder), (folder / "record.json").exists()
        for name in CHECKPOINTS:
            again = after[name][len(before[name]) :]
            seen["acknowledged and asked again"] += len(set(kept[name]) & set(again))
            twice = len(set(before[name]) & set(again))
            seen["most asked twice after a kill"] = max(seen["most asked twice after a kill"], twice)
        before, kept = after, journalled(folder, after)
        seen["acknowledged answers"] += sum(map(len, kept.values()))
    seen["runs"] += 1
    seen["runs with the verdicts of an undisturbed one"] += verdicts(folder) == expected
    shutil.rmtree(folder / ".adaptive-eval", ignore_errors=True)  # it may be killed before it deletes its journals
    for path in (*folder.glob("*.asked"), folder / "record.json"):
        path.unlink(missing_ok=True)


def main() -> None:
    """Kill, resume, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "conftest.py").write_text(CONFTEST)
        lines = [{"id": f"q{n}", "prompt": f"{n}?", "answer": "yes", "grader": "exact"} for n in range(SIZE)]
        (folder / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / "test_it.py").write_text("import pytest\n" + TESTS)
        whole = {}
        for workers in (0, 2):
            start = time.monotonic()
            subprocess.run(command(folder, workers), cwd=folder, capture_output=True, check=False)
            whole[workers] = time.monotonic() - start
        expected = verdicts(folder)
        for path in (*folder.glob("*.asked"), folder / "record.json"):
            path.unlink()
        seen: collections.Counter[str] = collections.Counter()
        while seen["kills"] < options.kills:
            interrupted_run(folder, (0, 2)[seen["runs"] % 2], whole, rng, expected, seen)
        for label, count in seen.items():
            print(f"{label:50} {count}")
        print(*(sentence for _, sentence in expected), sep="\n")


if __name__ == "__main__":
    main()
