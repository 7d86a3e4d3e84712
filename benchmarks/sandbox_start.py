"""What a start of the sandbox costs: milliseconds from a call that does nothing to the end of its process.

``python benchmarks/sandbox_start.py [--repeats 100]`` prints the median and the quartiles for each tier that holds,
beside the bare interpreter, for the user who starts it and, for root, a plain user too. It means something on an idle
machine only, so the load is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "sandbox"))

from escape import as_user, other_interpreter, starts

from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox.machine import OPTIONS, find_interpreter


def bare(repeats: int) -> list[float]:
    out = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([find_interpreter().executable, *OPTIONS, "-c", "pass"], env={})
        out.append((time.perf_counter() - start) * 1000)
    return out


def show(what: str, milliseconds: list[float]) -> None:
    low, middle, high = statistics.quantiles(milliseconds, n=4)
    print(f"{what:28} median {middle:6.1f} ms   quartiles {low:6.1f} {high:6.1f}   fastest {min(milliseconds):6.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    repeats = parser.parse_args().repeats
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    show("the bare interpreter", bare(repeats))
    for tier in ("lockdown", "full"):
        who = "root" if os.getuid() == 0 else "this user"
        try:
            show(f"{tier}, {who}", starts(tier, repeats))
        except SandboxUnavailable as error:
            print(f"{tier}: {error}")
            continue
        if os.getuid() == 0 and other_interpreter():
            show(f"{tier}, plain user", as_user(12345, f"escape.starts({tier!r}, {repeats})"))


if __name__ == "__main__":
    main()
