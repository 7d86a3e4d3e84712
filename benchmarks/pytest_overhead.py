"""What the plugin costs: whole pytest processes, user and system CPU seconds, medians of 5.

Run with ``python benchmarks/pytest_overhead.py``. Three comparisons:

1. questions: 500 and 1 000 questions with the body ``assert model.generate(...) == "yes"``, journal on, against the
   same test parametrized as often.  What the second 500 cost is the cost of a question.  For a whole run of 500, also
   one by one, the CPU of the collect-only run next to it is subtracted, of the same folder with the same options; it is
   one line long, since listing 500 tests does not belong to collecting them.
2. collection: a calibrated bank of 100 000 items against bare pytest
   collecting one test; CPU and peak memory.
3. plain pytest: one test with and without the plugin installed, and what it imports.

Each is done twice: with the other plugins of the environment, as users have them, and with no other plugin at all. The
runs take turns, a difference is taken between neighbours, and the median of the 5 differences is what is compared: a
machine with other work to do changes its speed from second to second. ``--repeats`` gives more than 5. Plain pytest
takes five times as many turns.

With ``--instructions``, valgrind counts instructions in place of seconds, once a job. Such a count varies by a
thousandth where seconds vary by a third, and needs no quiet machine. Valgrind's own memory would hide that of the runs,
so it is not shown.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from pytest_adaptive_eval import Item, write_bank

QUESTIONS = 500

ADAPTIVE = f"""
import pytest
from pytest_adaptive_eval import Completion, Model, SubjectIdentity

class Constant(Model):
    def answer(self, items):
        return [Completion("yes") for _ in items]

@pytest.fixture(scope="module")
def model():
    return Constant(SubjectIdentity("constant", "{"0" * 64}"))

@pytest.mark.adaptive_eval(bank="b.bank", budget=COUNT, wrong_answer="no")
def test_question(item, model):
    assert model.generate(item.prompt) == "yes"
"""

PARAMETRIZED = """
import pytest

class Constant:
    def generate(self, prompt):
        return "yes"

@pytest.fixture(scope="module")
def model():
    return Constant()

@pytest.mark.parametrize("item", range(COUNT))
def test_question(item, model):
    assert model.generate(str(item)) == "yes"
"""


def environment(root: Path, alone: bool) -> dict[str, str]:
    """One in which modules are compiled once, as in any installation; `alone`, no other plugin loads by itself."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(root / "compiled"), "PYTEST_ADDOPTS": "", "COLUMNS": "80"}
    env["PYTHONHASHSEED"] = "0"  # else the order of sets varies the count by a hundredth
    return {**env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if alone else env


COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def run(folder: Path, alone: bool, counted: bool, *args: str) -> tuple[float, int]:
    """CPU seconds, or billions of instructions if `counted`, and peak memory in KiB of one pytest process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import re, sys, pytest\n"
        "status = pytest.main(sys.argv[1:])\n"
        "print('PEAK', re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [*(COUNTER if counted else ()), sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *args],
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
    if counted:
        found = re.search(r"I +refs: +([\d,]+)", done.stderr)
        if found is None:
            raise SystemExit(f"valgrind told no count of instructions:\n{done.stderr}")
        return int(found[1].replace(",", "")) / 1e9, peak
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


Result = dict[str, list[tuple[float, int]]]


def measure(jobs: dict[str, tuple[Path, tuple[str, ...]]], alone: bool, repeats: int, counted: bool) -> Result:
    """Cost and peak KiB of each run by job; the jobs take turns, after one run each to warm up."""
    seen: Result = {name: [] for name in jobs}
    for repeat in range(repeats + 1):
        for name, (folder, args) in jobs.items():
            result = run(folder, alone, counted and repeat > 0, *args)
            if repeat:
                seen[name].append(result)
    return seen


def more(seen: Result, one: str, other: str) -> float:
    """Median over the turns of what `one` cost more than `other`."""
    return statistics.median(a - b for (a, _), (b, _) in zip(seen[one], seen[other], strict=True))


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--instructions", action="store_true", help="count instructions, by valgrind")
    options = parser.parse_args()
    if options.instructions and shutil.which(COUNTER[0]) is None:
        parser.error("--instructions needs valgrind (apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folders = {
            kind: root / kind for kind in ("adaptive", "single", "longer", "parametrized", "more", "large", "plain")
        }
        for folder in folders.values():
            folder.mkdir()
            (folder / "pytest.ini").write_text("[pytest]\n")
        asked = ADAPTIVE.replace("COUNT", str(QUESTIONS))
        tests = {
            "adaptive": asked,
            "large": asked,
            "single": asked.replace("budget=", "batch=1, budget="),
            "longer": ADAPTIVE.replace("COUNT", str(2 * QUESTIONS)),
            "parametrized": PARAMETRIZED.replace("COUNT", str(QUESTIONS)),
            "more": PARAMETRIZED.replace("COUNT", str(2 * QUESTIONS)),
        }
        for kind, text in tests.items():
            (folders[kind] / "test_it.py").write_text(text)
        for kind, size in (("adaptive", 2000), ("single", 2000), ("longer", 2000), ("large", 100_000)):
            make_bank(folders[kind], size)
        (folders["plain"] / "test_it.py").write_text("def test_it():\n    assert True\n")
        for alone in (False, True):
            report(folders, alone, options.repeats, options.instructions)
        check = "import sys, pytest_adaptive_eval.plugin.entry; print(sorted({'numpy', 'torch'} & set(sys.modules)))"
        imported = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    print(f"of numpy and torch, plain pytest imports: {imported.strip()}")


def report(folders: dict[str, Path], alone: bool, repeats: int, counted: bool) -> None:
    """Measure with the other plugins that are installed, or `alone`, and print."""
    off, on = ((), ("-p", "pytest_adaptive_eval.plugin.entry")) if alone else (("-p", "no:adaptive_eval"), ())
    active, collect = (*on, "--adaptive-eval", "--adaptive-eval-fresh"), ("-q", "--collect-only")
    seen = measure(
        {
            "questions": (folders["adaptive"], active),
            "questions, collection": (folders["adaptive"], (*active, *collect)),
            "questions, one by one": (folders["single"], active),
            "questions, twice as many": (folders["longer"], active),
            "parametrized": (folders["parametrized"], off),
            "parametrized, twice as many": (folders["more"], off),
            "parametrized, collection": (folders["parametrized"], (*off, *collect)),
            "100 000 items, collection": (folders["large"], (*active, *collect)),
            "one test, collection": (folders["plain"], (*off, *collect)),
        },
        alone,
        1 if counted else repeats,
        counted,
    )
    plain: dict[str, tuple[Path, tuple[str, ...]]] = {
        "one test, without the plugin": (folders["plain"], off),
        "one test, with the plugin": (folders["plain"], on),
    }
    seen |= measure(
        plain, alone, 1 if counted else 5 * repeats, counted
    )  # a difference of milliseconds, which noise would hide
    print("\nno other plugin loaded" if alone else "\nwith the other plugins of this environment")
    cost = {name: statistics.median(amount for amount, _ in rows) for name, rows in seen.items()}
    peak = {name: statistics.median(kib for _, kib in rows) / 1024 for name, rows in seen.items()}
    unit = "billion instructions" if counted else "s CPU"
    for name in seen:
        print(f"{name:32} {cost[name]:7.3f} {unit}" + ("" if counted else f" {peak[name]:8.1f} MiB"))
    ours, theirs = (more(seen, f"{name}, twice as many", name) for name in ("questions", "parametrized"))
    print(f"a further question: {ours / theirs:.2f}x a further parametrized test (bar: 1.6x)")
    theirs = more(seen, "parametrized", "parametrized, collection")
    for name in ("questions", "questions, one by one"):
        ours = more(seen, name, "questions, collection")
        print(f"{QUESTIONS} {name}: {ours / theirs:.2f}x the parametrized test, collection excluded")
    large, bare = "100 000 items, collection", "one test, collection"
    memory = "" if counted else f", {peak[large] - peak[bare]:+.1f} MiB (bar: +30)"
    print(f"100 000 items: {cost[large] / cost[bare]:.2f}x (bar: 2x){memory}")
    added = 1000 * more(seen, "one test, with the plugin", "one test, without the plugin")
    print(f"plain pytest: {added:+.1f} {'million instructions' if counted else 'ms (bar: +10)'}")


if __name__ == "__main__":
    main()
