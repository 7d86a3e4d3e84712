"""Sweeps against plain runs: the same verdicts after any kill, the cost of a cell, and a grid of 1 000 cells.

``python benchmarks/sweep_cells.py plain`` runs 24 cells (6 fixture checkpoints x 4 evaluations) as 24 plain runs, as a
sweep with one and with two cells at once, and compares times and records. ``... kills`` (needs Ray) runs them on three
Ray nodes of one core each, kills a worker, a whole node and then the driver with SIGKILL, starts the driver again, and
compares with the plain runs. ``... grid`` runs 50 recorded subjects on 20 evaluations and measures time, the driver's
memory and the page.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
CHECKPOINTS = ("early", "mid", "late", "regressed", "regressed-mild", "regressed-addition")
EVALUATIONS = {"half": (0.5, 48, 0), "strict": (0.8, 48, 1), "short": (0.3, 16, 2), "other": (0.5, 48, 3)}
COMMAND = (sys.executable, "-c", "from pytest_adaptive_eval.cli import main; raise SystemExit(main())", "sweep")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def evaluation(name: str, least: float, budget: int, seed: int) -> str:
    bank = FIXTURES / "banks" / "text.bank"
    head = f'[[eval]]\nname = "{name}"\nbank = "{bank}"\nbudget = {budget}\nbatch = 8\nseed = {seed}\n'
    return f"{head}\n[[eval.gate]]\nat_least = {least}\n"


def write_cells(folder: Path, checkpoints: Sequence[str]) -> None:
    """Write the sweep of each checkpoint on four evaluations."""
    for name, (least, budget, seed) in EVALUATIONS.items():
        (folder / f"{name}.eval.toml").write_text(evaluation(name, least, budget, seed))
    (folder / "pytest.ini").write_text("[pytest]\n")
    models = json.dumps([str(FIXTURES / "checkpoints" / f"text-{name}") for name in checkpoints])
    (folder / "sweep.toml").write_text(f'checkpoints = {models}\nevaluations = ["*.eval.toml"]\n')


def comparable(path: Path) -> list[Any]:
    """Verdicts, and all that was asked and answered, of a record."""
    record = json.loads(path.read_text())
    asked = [
        [a[key] for key in ("item_hash", "propensity", "predicted", "theta_after", "status", "score", "text")]
        for interview in record["interviews"]
        for a in interview["administrations"]
    ]
    return [[gate["verdict"]["sentence"] for gate in record["gates"]], asked]


def records(folder: Path) -> dict[tuple[str, str], Path]:
    """Records of cells by checkpoint and evaluation."""
    found = {}
    for path in folder.glob("cells/*/record.json"):
        checkpoint, name, *_ = path.parent.name.split("--")
        found[checkpoint, name] = path
    return found


def plain_runs(folder: Path, checkpoints: Sequence[str]) -> tuple[dict[tuple[str, str], Any], float, float]:
    """Run the cells as plain runs; returns what they found, wall and CPU seconds."""
    found, wall, before = {}, time.monotonic(), cpu()
    for checkpoint in checkpoints:
        for name in EVALUATIONS:
            record = folder / "plain.json"
            flags = [f"--adaptive-eval-model={FIXTURES / 'checkpoints' / f'text-{checkpoint}'}"]
            flags += [f"--adaptive-eval-record={record}", f"--adaptive-eval-dir={folder / 'plain'}"]
            flags += ["--adaptive-eval-seed=0", f"{name}.eval.toml"]
            subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval", *flags],
                cwd=folder,
                env=ENVIRONMENT,
                capture_output=True,
                check=False,
            )
            found[f"text-{checkpoint}", name] = comparable(record)
    wall, spent = time.monotonic() - wall, cpu() - before
    print(f"{len(found)} plain runs: {wall:.1f} s, {spent:.1f} s of CPU")
    return found, wall, spent


def cpu() -> float:
    """CPU seconds of ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def equal(folder: Path, expected: dict[tuple[str, str], Any]) -> int:
    """Number of cells whose record is equal to that of the plain run."""
    found = records(folder)
    return sum(comparable(path) == expected[key] for key, path in found.items())


def into(results: Path) -> str:
    """Write a sweep file whose results go to a folder beside it; returns its name."""
    path = results.with_suffix(".toml")
    path.write_text(f'folder = "{results.name}"\n{(path.parent / "sweep.toml").read_text()}')
    return path.name


def plain(folder: Path, checkpoints: Sequence[str]) -> None:
    """One and two cells at once, against plain runs."""
    write_cells(folder, checkpoints)
    expected, wall, spent = plain_runs(folder, checkpoints)
    walls = {}
    for jobs in (1, 2):
        results = folder / f"jobs-{jobs}"
        begun, before = time.monotonic(), cpu()
        arguments = [into(results), "--jobs", str(jobs)]
        subprocess.run([*COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
        walls[jobs] = time.monotonic() - begun
        print(
            f"sweep, {jobs} at once: {walls[jobs]:.1f} s, {cpu() - before:.1f} s of CPU; "
            f"{equal(results, expected)} of {len(expected)} records equal"
        )
        if jobs == 1:
            more = (cpu() - before - spent) / len(expected)
            longer = (walls[1] - wall) / len(expected)
            print(f"  over a plain run: {longer:+.2f} s ({100 * (walls[1] / wall - 1):+.1f} %), {more:+.2f} s of CPU")
    print(f"two at once are {walls[1] / walls[2]:.2f} times as fast as one; load average {os.getloadavg()[0]:.1f}")


def journalled(folder: Path) -> dict[str, int]:
    """Answers on the disk of each cell without a record."""
    counts = {}
    for cell in folder.glob("cells/*"):
        if not (cell / "record.json").exists():
            counts[cell.name] = sum(map(answers, cell.glob("journal/*.jsonl")))
    return counts


def answers(journal: Path) -> int:
    """Number of lines of a journal that hold an answer."""
    try:
        return sum(b'"item":' in line for line in journal.read_bytes().splitlines())
    except FileNotFoundError:  # the interview has just ended
        return 0


def wait_until(folder: Path, ended: int, asked: int) -> dict[str, int]:
    """Wait for so many finished cells, and an unfinished one with so many answers; returns answers on the disk."""
    while len(records(folder)) < ended or max(journalled(folder).values(), default=0) < asked:
        time.sleep(0.02)
    return journalled(folder)


def cell_workers(folder: Path) -> list[int]:
    """Ids of the processes that started cells of this folder: Ray's workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in (text := path.read_bytes()) and b"cell_process" in text:
                found.append(int((path.parent / "stat").read_text().rpartition(")")[2].split()[1]))
        except OSError:
            continue
    return found


def kills(folder: Path, checkpoints: Sequence[str]) -> None:
    """Kill a worker, a node and the driver of a sweep on Ray."""
    write_cells(folder, checkpoints)
    expected, _, _ = plain_runs(folder, checkpoints)
    nodes = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "sweeps" / "ray_nodes.py"), "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert nodes.stdin is not None
    assert nodes.stdout is not None
    address = nodes.stdout.readline().strip()
    results = folder / "ray"
    command = [*COMMAND, into(results), "--ray", address]
    begun, kept = time.monotonic(), {}
    driver = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    whole = len(expected)
    kept["worker"] = wait_until(results, whole // 8, 8)
    os.kill(cell_workers(results)[0], signal.SIGKILL)
    kept["node"] = wait_until(results, whole // 3, 8)
    nodes.stdin.write("kill\n")
    nodes.stdin.flush()
    nodes.stdout.readline()
    kept["driver"] = wait_until(results, whole // 2, 8)
    driver.kill()
    said = driver.communicate()[0].decode()
    before = {path: path.stat().st_mtime_ns for path in records(results).values()}
    out = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False).stdout
    wall = time.monotonic() - begun
    nodes.communicate()
    untouched = sum(path.stat().st_mtime_ns == changed for path, changed in before.items())
    print(f"three Ray nodes, a worker, a node and the driver killed: {wall:.1f} s")
    print(f"  {equal(results, expected)} of {len(records(results))} records equal to plain runs")
    print(
        f"  processes that died and were run again: {said.count('run again, number') + out.count('run again, number')}"
    )
    print(f"  finished before the driver was killed: {len(before)}, of which not touched again: {untouched}")
    lost = checked = 0
    for counts in kept.values():
        for name, count in counts.items():
            record = json.loads((results / "cells" / name / "record.json").read_text())
            done = [a["resumed"] for interview in record["interviews"] for a in interview["administrations"]]
            if any(done):  # the kill hit this cell
                checked += 1
                lost += max(0, count - sum(done))
    print(f"  cells that went on from their journal: {checked}; answers on disk that were asked again: {lost}")


def grid(folder: Path, subjects: int, evaluations: int, every: int) -> None:
    """Fifty recorded subjects on twenty evaluations; each `every`th cell is run, and copied to those that follow."""
    with gzip.open(FIXTURES / "responses" / "text.csv.gz", "rt") as file:
        rows = list(csv.reader(file))
    rng = random.Random(0)
    chosen = rows[1:][:: max(1, (len(rows) - 1) // subjects)][:subjects]
    with (folder / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *chosen])
    for number in range(evaluations):
        least = round(rng.uniform(0.2, 0.9), 2)
        text = evaluation(f"task-{number:02}", least, 40, number)
        (folder / f"task-{number:02}.eval.toml").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    models = json.dumps([f"replay:answers.csv#{row[0]}" for row in chosen])
    (folder / "sweep.toml").write_text(f'checkpoints = {models}\nevaluations = ["*.eval.toml"]\n')
    measure(folder, "cells that were run", "--shard", f"1/{every}")
    if every > 1:
        copy_cells(folder)
        measure(folder, "cells that had ended")


def measure(folder: Path, what: str, *arguments: str) -> None:
    """Run the command of the sweep, and print its time, memory and results."""
    code = (
        "import resource, time; from pytest_adaptive_eval.cli import main; main(); "
        "print('memory', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, time.process_time())"
    )
    begun, before = time.monotonic(), cpu()
    out = subprocess.run(
        [sys.executable, "-c", code, "sweep", "sweep.toml", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    wall, results, lines = time.monotonic() - begun, folder / ".adaptive-eval-sweep", out.splitlines()
    memory, own = lines[-1].split()[1:]
    sizes = [(results / name).stat().st_size / 1e6 for name in ("sweep.html", "record.json")]
    print(f"{lines[0].split(';')[0]}, {what}: {wall:.0f} s, {cpu() - before:.0f} s of CPU, of the driver {own} s")
    print(f"  driver's memory {memory} MiB, page {sizes[0]:.2f} MB, record {sizes[1]:.1f} MB; {lines[-5]}")


def copy_cells(folder: Path) -> None:
    """Give cells that were not run the files of those that were, for the size of a whole grid."""
    from pytest_adaptive_eval.extensions.sweeps.cells import read_end, write_end
    from pytest_adaptive_eval.extensions.sweeps.checks import Signatures
    from pytest_adaptive_eval.extensions.sweeps.driver import job_of
    from pytest_adaptive_eval.extensions.sweeps.settings import read_sweep

    sweep = read_sweep(folder / "sweep.toml")
    signatures, source = Signatures(sweep.base), Path()
    for cell in sweep.cells:
        job = job_of(sweep, cell, signatures)
        if (job.folder / "record.json").exists():
            source = job.folder
        else:
            shutil.copytree(source, job.folder)
            if end := read_end(source):
                write_end(job.folder, replace(end, key=job.key, fingerprint=job.fingerprint))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("plain", "kills", "grid"))
    parser.add_argument("--checkpoints", type=int, default=len(CHECKPOINTS), help="fewer cells, for a slow machine")
    parser.add_argument("--subjects", type=int, default=50)
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument("--every", type=int, default=1, help="run each Nth cell of the grid alone, and copy the others")
    parser.add_argument("--folder", type=Path, help="keep the files there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if options.part == "grid":
            grid(folder, options.subjects, options.evaluations, options.every)
        else:
            {"plain": plain, "kills": kills}[options.part](folder, CHECKPOINTS[: options.checkpoints])


if __name__ == "__main__":
    main()
