"""A small project with a logged model, run with exactly the plugins that a test names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.reports.words import promoted

#: Seconds after which a run counts as hung.
DEADLINE = 60

#: Bodies of ``generate(self, prompt)`` by the name of a model; ``n`` counts the calls for this prompt.
MODELS = {
    "sound": 'return "right" if draw < 0.9 else "wrong"',
    "weak": 'return "right" if draw < (0.9 if prompt.startswith("sums") else 0.1) else "wrong"',
    "unreadable": 'return "right" if draw < 0.35 else "no answer in here"',
    "wrong": 'return "wrong"',
    "slow": 'import time; time.sleep(0.3); return "right"',
    "dead": 'raise ConnectionError("the server is down")',
    # uses Python's own generator, as a sampling model does that draws without a seed
    "coin": 'import random; return "right" if random.random() < 0.5 else "wrong"',
}

CONFTEST = """
import hashlib
import os
from collections import Counter
from pathlib import Path

import pytest

from pytest_adaptive_eval import SubjectIdentity

CALLS = Path(__file__).parent / "calls.txt"


class Model:
    identity = SubjectIdentity("small", "hash of its weights")

    def __init__(self):
        self.calls = Counter()

    def generate(self, prompt):
        descriptor = os.open(CALLS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, (prompt + chr(10)).encode())  # one write: several processes may append
        os.close(descriptor)
        self.calls[prompt] += 1
        n = self.calls[prompt]
        draw = hashlib.sha256(f"{{prompt}}, call {{n}}".encode()).digest()[0] / 256
        {answer}


@pytest.fixture(scope="session")
def model():
    return Model()
"""

TESTS = """
import pytest


@pytest.mark.adaptive_eval("sums.jsonl", budget=10, stop="budget", samples=2)
def test_sums(item, model):
    answer = model.generate(item.prompt)
    if answer not in ("right", "wrong"):
        raise ValueError(f"cannot be read: {answer}")
    assert item.grade(answer)


@pytest.mark.adaptive_gate("sums", at_least=0.3)
def test_sums_gate(adaptive_eval):
    assert adaptive_eval.verdicts


@pytest.mark.adaptive_gate("sums", at_least=0.2)
@pytest.mark.adaptive_gate("words", at_least=0.2)
def test_both_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""

EVALUATION = """
[[eval]]
bank = "words.jsonl"
budget = 8
stop = "budget"

[[eval.gate]]
at_least = 0.3
"""


def write_project(path: Path, model: str = "sound", ini: str = "", files: Mapping[str, str] | None = None) -> Path:
    """Write two interviews (Python and TOML), three gates and a logged model; `files` adds or replaces files."""
    path.mkdir(parents=True, exist_ok=True)
    for bank, size in (("sums", 30), ("words", 20)):
        lines = [
            json.dumps({"id": f"{bank}{n}", "prompt": f"{bank} {n}", "answer": "right"}) + "\n" for n in range(size)
        ]
        (path / f"{bank}.jsonl").write_text("".join(lines))
    written = {
        "conftest.py": CONFTEST.format(answer=MODELS[model]),
        "test_small.py": TESTS,
        "words.eval.toml": EVALUATION,
        "pytest.ini": f"[pytest]\naddopts = --strict-markers\n{ini}",
        **(files or {}),
    }
    for name, text in written.items():
        (path / name).write_text(text)
    return path


def missing(distributions: Iterable[str]) -> list[str]:
    """Return the distributions that are not installed."""
    return [name for name in distributions if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def entry_points(name: str) -> list[str]:
    """Return the pytest plugins that a distribution registers, to be loaded with ``-p``."""
    return [point.name for point in distribution(name).entry_points if point.group == "pytest11"]


@dataclass(frozen=True, slots=True)
class Observed:
    """What one run did, as far as two runs are compared.

    Attributes:
        exit_code: Exit code of pytest.
        verdicts: Gate, interview, outcome and value of each verdict of the record.
        administrations: Interview, position, item, sample, status and score of each administration of the record.
        calls: Calls of the model by prompt.
        cases: Class, name and outcome of each test case of pytest's JUnit file, sorted.
        promote: Whether the outputs for later jobs promote the checkpoint.
        recorded: Administrations and further tries in the records of all runs, since a plugin may run pytest several
            times.
        output: What the run printed.
    """

    exit_code: int
    verdicts: tuple[tuple[Any, ...], ...]
    administrations: tuple[tuple[Any, ...], ...]
    calls: Counter[str]
    cases: tuple[tuple[str, str, str], ...]
    promote: bool
    recorded: int
    output: str

    def differences(self, other: Observed) -> dict[str, tuple[Any, Any]]:
        """Return what differs from another run, by name, except the output."""
        names = ("exit_code", "verdicts", "administrations", "calls", "cases", "promote")
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def faults(self) -> list[str]:
        """Return what no plugin may cause: a pass without PASS, or calls that the record does not have."""
        outcomes = [verdict[2] for verdict in self.verdicts]
        found = []
        if self.exit_code == 0 and (not outcomes or set(outcomes) != {"PASS"}):
            found.append(f"exit 0 with the verdicts {outcomes}")
        if self.promote and (self.exit_code != 0 or set(outcomes) != {"PASS"}):
            found.append(f"promote=true with exit code {self.exit_code} and the verdicts {outcomes}")
        if self.calls.total() > self.recorded:
            found.append(f"{self.calls.total()} calls of the model for {self.recorded} recorded administrations")
        gates = [verdict[:2] for verdict in self.verdicts]
        found += [f"{gate} stands {times} times in the record" for gate, times in Counter(gates).items() if times > 1]
        if self.exit_code not in (0, 1, 4, 5):  # 5: a plugin left no test
            found.append(f"exit code {self.exit_code}")
        if "INTERNALERROR" in self.output:
            found.append("INTERNALERROR")
        return found


def run_pytest(
    path: Path,
    distributions: Iterable[str] = (),
    switches: Iterable[str] = (),
    active: bool = True,
    **environ: str,
) -> tuple[int, str]:
    """Run pytest in a process of its own, with the plugins of `distributions` and none besides.

    Returns:
        Exit code, and what was printed.
    """
    loaded = ["adaptive_eval", *(point for name in distributions for point in entry_points(name))]
    if any(switch.startswith("-n") for switch in switches):
        pytest.importorskip("xdist", reason="workers need pytest-xdist (extra xdist)")
        loaded.append("xdist")
    plugins = [word for name in dict.fromkeys(loaded) for word in ("-p", name)]
    hidden = ("CI", "GITHUB_", "PYTEST_", "TEAMCITY_")  # other plugins read them, and this run's own must not matter
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1", **environ}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *["--adaptive-eval"][:active], "--junitxml=junit.xml", *switches],
        cwd=path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode, done.stdout


def observe(path: Path, distributions: Iterable[str] = (), switches: Iterable[str] = (), **environ: str) -> Observed:
    """Run the project in `path` and return what it did."""
    exit_code, output = run_pytest(path, tuple(distributions), tuple(switches), active=True, **environ)
    runs = sorted((path / ".adaptive-eval" / "runs").glob("*.json"))
    record = read_run(runs[-1]) if runs else None
    data = json.loads(runs[-1].read_text()) if runs else {"interviews": [], "gates": []}
    administrations = [(talk["name"], entry) for talk in data["interviews"] for entry in talk["administrations"]]
    calls = path / "calls.txt"
    return Observed(
        exit_code=exit_code,
        verdicts=tuple(
            sorted(
                (gate["name"], gate["interview"], gate["verdict"]["outcome"], str(gate["verdict"].get("value")))
                for gate in data["gates"]
            )
        ),
        administrations=tuple(
            (name, *(entry[key] for key in ("position", "item", "sample", "status", "score")))
            for name, entry in sorted(administrations, key=lambda pair: (pair[0], pair[1]["position"]))
        ),
        calls=Counter(calls.read_text().splitlines() if calls.exists() else ()),
        cases=_cases(path / "junit.xml"),
        promote=record is not None and promoted(record),
        recorded=sum(
            entry.get("tries", 1)
            for run in runs
            for talk in json.loads(run.read_text())["interviews"]
            for entry in talk["administrations"]
        ),
        output=output,
    )


def _cases(path: Path) -> tuple[tuple[str, str, str], ...]:
    if not path.exists():
        return ()
    found = []
    for case in ElementTree.parse(path).iter("testcase"):
        outcome = next((part.tag for part in case if part.tag in ("failure", "error", "skipped")), "passed")
        found.append((case.get("classname", ""), case.get("name", ""), outcome))
    return tuple(sorted(found))
