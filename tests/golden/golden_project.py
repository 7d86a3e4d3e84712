"""Projects of the golden files: how they are written, run, and compared with what is stored."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Of `fake_server`, when this is imported without pytest.
sys.path.append(str(HERE.parent))
STORED = HERE / "stored"
ROOT = HERE.parent.parent
FIXTURES = ROOT / "fixtures"
DRIVER = HERE / "golden_driver.py"
#: Numbers that differ by no more than this share are the same: on other processors, libraries round differently and
#: searches end at other last digits.
RELATIVE = 1e-7
ABSOLUTE = 1e-12

#: A subject ``table:SHARE`` that answers by a hash of the item's id, and writes down each question that it is asked.
CONFTEST = '''
import hashlib
import os
import signal
from pathlib import Path

from pytest_adaptive_eval import Completion, Status, Model, SubjectIdentity

ASKED = Path(__file__).parent / "asked.txt"


class Table(Model):
    """Right in SHARE of 100 answers, 15 fewer for each level of a task."""

    def __init__(self, share):
        super().__init__(SubjectIdentity(f"table-{share}", f"checkpoint of table-{share}"))
        self.share = share

    def answer(self, items):
        return [self.one(item) for item in items]

    def one(self, item):
        with ASKED.open("a") as file:
            file.write(f"{item.id}\\n")
        stop, what = os.environ.get("GOLDEN_STOP", "").partition(":")[::2]
        if stop and len(ASKED.read_text().split()) == int(stop):
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise KeyboardInterrupt
        if self.share < 0:
            return Completion("", Status.ERROR, detail="no answer")
        image = "" if item.images or not item.formats[1:] else " without the image"
        words = f"{item.id} {item.meta.get('sample', 0)}{image} {bool(item.prompt)}"
        drawn = int(hashlib.sha256(words.encode()).hexdigest(), 16) % 100
        lost = 15 * (item.meta.get("level", 1) - 1) if "seed" in item.meta else 0
        right = drawn < self.share - lost - (30 if image else 0)
        return Completion(item.answer or "yes" if right else "no")


def pytest_adaptive_eval_subject(spec):
    kind, _, share = spec.partition(":")
    return Table(int(share)) if kind == "table" else None
'''


def environment() -> dict[str, str]:
    """Return the environment of a run, without what this process was told and without other plugins."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "GITHUB_", "COV_"))}
    (plugin,) = entry_points(group="pytest11", name="adaptive_eval")
    return {
        **kept,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": plugin.value,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "COLUMNS": "120",
        "PYTHONPATH": "",
    }


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a project, with an empty configuration of pytest and the subject ``table:SHARE``."""
    for name, text in {"pytest.ini": "[pytest]\n", "conftest.py": CONFTEST, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, runs: Sequence[tuple[Path, str, Sequence[str]]], **more: str) -> list[int]:
    """Run commands in one process and return their exit codes.

    Args:
        folder: Takes the list of exit codes.
        runs: The folder, ``pytest`` or ``adaptive-eval``, and the arguments.
        **more: Environment variables.
    """
    told = [
        {
            "folder": str(where),
            "command": command,
            "arguments": ["-p", "no:cacheprovider", *arguments] if command == "pytest" else [*arguments],
        }
        for where, command, arguments in runs
    ]
    done = subprocess.run(
        [sys.executable, str(DRIVER)],
        input=json.dumps(told),
        cwd=folder,
        env={**environment(), **more},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"the driver ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    codes: list[int] = json.loads((folder / "exit-codes.json").read_text())
    return codes


def records(folder: Path) -> list[dict[str, Any]]:
    """Return all records of a project, from the earliest."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob(".adaptive-eval/runs/*.json"))]


def asked_items(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the interviews of a record."""
    return [evaluation for evaluation in record["interviews"] if evaluation["kind"] in ("bank", "ladder")]


def measured(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the evaluations of several models of a record."""
    return [evaluation for evaluation in record["interviews"] if evaluation["kind"] not in ("bank", "ladder")]


def printed(folder: Path) -> str:
    """Return what the commands of a project printed, for a message of a failure."""
    return "\n".join(path.read_text() for path in sorted(folder.glob("printed-*.txt")))[-6000:]


def items(count: int, **more: Any) -> str:
    """Return a plain bank of that many items, as JSON lines."""
    rows = ({"id": f"q{n}", "prompt": f"question {n}", "answer": "yes", **more} for n in range(count))
    return "".join(json.dumps(row) + "\n" for row in rows)


def chances(subjects: int, count: int, seed: int) -> list[list[float]]:
    """Return chances of right answers of a Rasch model, from Python's own generator, which is the same everywhere."""
    rng = random.Random(seed)
    difficulties = [rng.gauss(0.0, 1.0) for _ in range(count)]
    abilities = [rng.gauss(0.0, 1.2) for _ in range(subjects)]
    return [[1 / (1 + math.exp(b - a)) for b in difficulties] for a in abilities]


def matrix(subjects: int = 24, count: int = 60, seed: int = 5) -> str:
    """Return a synthetic CSV matrix of responses, a row a subject."""
    rng = random.Random(seed + 1)
    rows = [",".join(["subject", *(f"q{n}" for n in range(count))])]
    for number, row in enumerate(chances(subjects, count, seed)):
        rows.append(",".join([f"s{number}", *(str(int(rng.random() < p)) for p in row)]))
    return "\n".join(rows) + "\n"


def format_responses(subjects: int = 10, count: int = 16, seed: int = 9) -> str:
    """Return synthetic responses to items in four formats, as a CSV."""
    rng = random.Random(seed + 1)
    losses = {"image+text": 0.0, "text": 0.25, "image": 0.35, "none": 0.5}
    rows = ["subject,item,format,score"]
    for number, row in enumerate(chances(subjects, count, seed)):
        for place, p in enumerate(row):
            for name, loss in losses.items():
                rows.append(f"s{number},q{place},{name},{int(rng.random() < max(p - loss, 0.05))}")
    return "\n".join(rows) + "\n"


def text_of(data: Mapping[str, Any]) -> str:
    """Return the text of a stored file: an object with one line an entry."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(data.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def stored(name: str) -> dict[str, Any]:
    """Read a stored file."""
    data: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    return data


def differences(before: Any, now: Any, place: str = "", relative: float = RELATIVE) -> list[str]:
    """Return where two JSON values differ; numbers with a fraction may differ in the last digits."""
    if isinstance(before, dict) and isinstance(now, dict):
        found = [f"{place}: {key!r} is gone" for key in before if key not in now]
        found += [f"{place}: {key!r} is new" for key in now if key not in before]
        for key in before:
            if key in now:
                found += differences(before[key], now[key], f"{place}/{key}", relative)
        return found
    if isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            return [f"{place}: {len(now)} entries, and {len(before)} before"]
        pairs = zip(before, now, strict=True)
        return [
            text for n, (one, other) in enumerate(pairs) for text in differences(one, other, f"{place}/{n}", relative)
        ]
    if isinstance(before, float) and isinstance(now, int | float) and not isinstance(now, bool):
        same = math.isclose(before, now, rel_tol=relative, abs_tol=ABSOLUTE)
    else:
        same = type(before) is type(now) and before == now
    return [] if same else [f"{place}: {now!r:.300}, and {before!r:.300} before"]


def check(name: str, now: Mapping[str, Any], relative: float = RELATIVE) -> None:
    """Compare data with the stored file of that name."""
    found = differences(stored(name), json.loads(json.dumps(now)), relative=relative)
    assert not found, f"stored/{name}.json does not hold any more:\n" + "\n".join(found[:40])
