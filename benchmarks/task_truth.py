"""The generated items, all of them right: truth by another method, speed, and the same items on another Python.

``python -m benchmarks.task_truth`` draws 10 000 items of every task family (1 000 where answers are programs, 500 about
pictures in colour), works each answer out from the text or picture by the solvers of the tests, has the family mark it,
and prints how many were right, how many items a second were drawn, and the hash of them all. ``--compare PYTHON`` draws
them again with another interpreter, which needs numpy alone, and compares the hashes. The programs that are run are the
solvers', made from the words of the questions: in this process, or with ``--sandbox`` where a model's would run.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pytest_adaptive_eval.tasks import FAMILIES, TaskFamily, families


def complexity(source: str) -> int:
    """Return the cyclomatic complexity (McCabe 1976) of the only function that `source` defines.

    It is one, and one more for every branch, loop, exception handler, assertion, further operand of ``and`` and ``or``,
    and loop or condition of a comprehension.
    """
    count = 1
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If() | ast.IfExp() | ast.ExceptHandler() | ast.Assert():
                count += 1
            case ast.For() | ast.While() | ast.AsyncFor():
                count += 1 + bool(node.orelse)
            case ast.BoolOp():
                count += len(node.values) - 1
            case ast.comprehension():
                count += 1 + len(node.ifs)
    return count


def plan(family: TaskFamily, items: int) -> list[tuple[int, int]]:
    """Levels and seeds, evenly over the levels."""
    levels = itertools.cycle(range(1, family.levels + 1))
    return [(next(levels), n // family.levels) for n in range(items)]


def number(family: TaskFamily, items: int) -> int:
    """A tenth of the items where answers are programs, and a twentieth where pictures are in colour."""
    return items // (20 if family.pixels else 10 if family.name.startswith("code") else 1)


def digest(family: TaskFamily, items: int) -> tuple[str, float]:
    """Hash over all items and their pictures, and items a second without the pictures."""
    total = hashlib.sha256()
    pairs = plan(family, items)
    start = time.perf_counter()
    drawn = [family.item(level, seed) for level, seed in pairs]
    speed = items / (time.perf_counter() - start)
    for item, (level, seed) in zip(drawn, pairs, strict=True):
        total.update(json.dumps(item.to_json(), sort_keys=True).encode())
        if family.pictorial:
            total.update(family.picture(level, seed).tobytes())
    return total.hexdigest()[:16], speed


def main() -> None:
    """Draw, solve, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--compare", metavar="PYTHON", help="another interpreter")
    parser.add_argument("--sandbox", action="store_true", help="run the answers that are programs in the sandbox")
    parser.add_argument("--hashes", action="store_true", help="print nothing but the hashes, as JSON")
    parser.add_argument("family", nargs="*", help="all when none is named")
    options = parser.parse_args()
    names = options.family or list(FAMILIES)
    if options.hashes:
        print(json.dumps({name: digest(FAMILIES[name], number(FAMILIES[name], options.items))[0] for name in names}))
        return
    others = {}
    if options.compare:
        command = [options.compare, "-m", "benchmarks.task_truth", "--hashes", f"--items={options.items}", *names]
        others = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)
        version = subprocess.run([options.compare, "-V"], capture_output=True, check=True, text=True).stdout.strip()
        print(f"compared with {version}, this is Python {sys.version.split()[0]}")

    from pytest_adaptive_eval.extensions.sandbox import Sandbox
    from tests.tasks.solvers import InProcess, solve

    known = families(runner=Sandbox.open() if options.sandbox else InProcess())
    print(f"{'family':16} {'items':>6} {'right':>6} {'items/s':>8} {'hash':>16}{'  same' if others else ''}")
    for name in names:
        family = known[name]
        items = number(family, options.items)
        found, speed = digest(family, items)
        right = 0
        for level, seed in plan(family, items):
            mark = family.verify(family.item(level, seed), solve(family, level, seed))
            right += mark.score == 1.0
            if name == "code_generation":
                assert complexity(family.question(level, seed).answer) == level + 1
        same = f"  {'yes' if others[name] == found else 'NO'}" if others else ""
        print(f"{name:16} {items:6} {right:6} {speed:8.0f} {found:>16}{same}", flush=True)


if __name__ == "__main__":
    main()
