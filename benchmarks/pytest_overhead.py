"""What the plugin costs: whole pytest processes, user and system CPU seconds, median of 5.

Run with ``python benchmarks/pytest_overhead.py``.  Three comparisons:

1. questions: 500 questions with the body ``assert True``, journal on, against the
   same test parametrized 500 times; the CPU of a collect-only run is subtracted
   from both.
2. collection: a calibrated bank of 100 000 items against bare pytest
   collecting one test; CPU and peak memory.
3. plain pytest: one test with and without the plugin installed, and what it imports.

Each is done twice: with the other plugins of the environment, as users have them, and with no other plugin at all.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from pytest_adaptive_eval import Item, write_bank

REPEATS = 5
QUESTIONS = 500

ADAPTIVE = f"""
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Model:
    identity = SubjectIdentity("constant", "{"0" * 64}")

@pytest.fixture(scope="module")
def model():
    return Model()

@pytest.mark.adaptive_eval(bank="b.bank", budget={QUESTIONS}, batch=BATCH)
def test_question(item, model):
    assert True
"""

PARAMETRIZED = f"""
import pytest

class Model:
    pass

@pytest.fixture(scope="module")
def model():
    return Model()

@pytest.mark.parametrize("item", range({QUESTIONS}))
def test_question(item, model):
    assert True
"""


def environment(root: Path, alone: bool) -> dict[str, str]:
    """One in which modules are compiled once, as in any installation; `alone`, no other plugin loads by itself."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(root / "compiled"), "PYTEST_ADDOPTS": "", "COLUMNS": "80"}
    return {**env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if alone else env


def run(folder: Path, alone: bool, *args: str) -> tuple[float, int]:
    """CPU seconds and peak memory in KiB of one pytest process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import re, sys, pytest\n"
        "status = pytest.main(sys.argv[1:])\n"
        "print('PEAK', re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(folder.parent, alone),
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 5):
        raise SystemExit(f"{args} in {folder} exited with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    peak = int(next(line for line in done.stdout.splitlines() if line.startswith("PEAK")).split()[1])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def medians(jobs: dict[str, tuple[Path, tuple[str, ...]]], alone: bool) -> dict[str, tuple[float, float]]:
    """Median CPU seconds and peak MiB by job; the jobs are interleaved, after one run each to warm up."""
    seen: dict[str, list[tuple[float, int]]] = {name: [] for name in jobs}
    for repeat in range(REPEATS + 1):
        for name, (folder, args) in jobs.items():
            result = run(folder, alone, *args)
            if repeat:
                seen[name].append(result)
    return {
        name: (statistics.median(cpu for cpu, _ in rows), statistics.median(peak for _, peak in rows) / 1024)
        for name, rows in seen.items()
    }


def make_bank(folder: Path, size: int) -> None:
    """A calibrated bank with parameters drawn at random."""
    rng = np.random.default_rng(0)
    items = [
        Item(id=f"question-{i}", prompt=f"What is {i} plus 1? " + "Give the number alone. " * 5, answer=str(i + 1))
        for i in range(size)
    ]
    slopes, intercepts = rng.lognormal(0, 0.35, size), rng.normal(size=size)
    write_bank(folder / "b.bank", items, discrimination=slopes, intercept=intercepts)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folders = {kind: root / kind for kind in ("adaptive", "single", "parametrized", "large", "plain")}
        for folder in folders.values():
            folder.mkdir()
            (folder / "pytest.ini").write_text("[pytest]\n")
        (folders["adaptive"] / "test_it.py").write_text(ADAPTIVE.replace("BATCH", "8"))
        (folders["single"] / "test_it.py").write_text(ADAPTIVE.replace("BATCH", "1"))
        make_bank(folders["single"], 2000)
        make_bank(folders["adaptive"], 2000)
        (folders["parametrized"] / "test_it.py").write_text(PARAMETRIZED)
        (folders["large"] / "test_it.py").write_text(ADAPTIVE.replace("BATCH", "1"))
        make_bank(folders["large"], 100_000)
        (folders["plain"] / "test_it.py").write_text("def test_it():\n    assert True\n")
        for alone in (False, True):
            report(folders, alone)
        check = "import sys, pytest_adaptive_eval.plugin.entry; print(sorted({'numpy', 'torch'} & set(sys.modules)))"
        imported = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    print(f"of numpy and torch, plain pytest imports: {imported.strip()}")


def report(folders: dict[str, Path], alone: bool) -> None:
    """Measure with the other plugins that are installed, or `alone`, and print."""
    off, on = ((), ("-p", "pytest_adaptive_eval.plugin.entry")) if alone else (("-p", "no:adaptive_eval"), ())
    active = (*on, "--adaptive-eval")
    fresh = (*active, "--adaptive-eval-fresh")
    m = medians(
        {
            "questions, batches of 8": (folders["adaptive"], fresh),
            "questions, one by one": (folders["single"], fresh),
            "questions, collection": (folders["adaptive"], (*active, "--collect-only")),
            "parametrized": (folders["parametrized"], off),
            "parametrized, collection": (folders["parametrized"], (*off, "--collect-only")),
            "100 000 items, collection": (folders["large"], (*active, "--collect-only")),
            "one test, collection": (folders["plain"], (*off, "--collect-only")),
            "one test, without the plugin": (folders["plain"], off),
            "one test, with the plugin": (folders["plain"], on),
        },
        alone,
    )
    print("\nno other plugin loaded" if alone else "with the other plugins of this environment")
    for label, (cpu, peak) in m.items():
        print(f"{label:32} {cpu:7.3f} s CPU {peak:8.1f} MiB")
    theirs = m["parametrized"][0] - m["parametrized, collection"][0]
    for label in ("questions, batches of 8", "questions, one by one"):
        ours = m[label][0] - m["questions, collection"][0]
        print(f"{QUESTIONS} {label}: {ours / theirs:.2f}x the parametrized test, collection excluded (bar: 1.5x)")
    large, bare = m["100 000 items, collection"], m["one test, collection"]
    print(f"100 000 items: {large[0] / bare[0]:.2f}x CPU (bar: 2x), {large[1] - bare[1]:+.1f} MiB (bar: +30)")
    plain = m["one test, with the plugin"][0] - m["one test, without the plugin"][0]
    print(f"plain pytest: {1000 * plain:+.1f} ms (bar: +20)")


if __name__ == "__main__":
    main()
