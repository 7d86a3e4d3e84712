"""Killed processes and full disks, with true processes and true disks."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_adaptive_eval.records.journal import Journal

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and limits")]

#: Appends numbered answers for ever, and says so after each; now and then a long one, to be killed within.
WRITER = """
import os, sys
from pathlib import Path
from pytest_adaptive_eval.records.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    n = len(journal)
    while True:
        journal.append(str(n), {"n": n, "pad": "x" * (1_000_000 if n % 7 == 3 else 10)})
        n += 1
        os.write(1, b"%d\\n" % n)
"""


def test_kill_9_loses_no_acknowledged_answer(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    chance = random.Random(20)
    acknowledged = 0
    for _ in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline()]
            try:
                writer.wait(chance.uniform(0.0, 0.08))
            except subprocess.TimeoutExpired:
                writer.kill()
            said += writer.stdout.readlines()
        acknowledged = int([text for text in said if text.endswith(b"\n")][-1])
        with Journal(path) as journal:
            assert acknowledged <= len(journal) <= acknowledged + 1
            assert all((journal.get(str(n)) or {}).get("n") == n for n in range(len(journal)))
    assert acknowledged >= 6


#: Fills the disk with answers, then tries once more, and tells what happened.
FILLER = """
import json, sys
from pathlib import Path
from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.records.journal import Journal
LIMIT
path, n, errors = Path(sys.argv[1]), 0, []
with Journal(path) as journal:
    try:
        while n < 1000:
            journal.append(str(n), {"n": n, "pad": "x" * 1000})
            n += 1
    except JournalError as error:
        errors.append(str(error))
    try:
        journal.append("small", {})
    except JournalError as error:
        errors.append(str(error))
size = path.stat().st_size
with Journal(path) as journal:
    kept = all((journal.get(str(i)) or {}).get("n") == i for i in range(n)) and len(journal) == n
    print(json.dumps({"n": n, "errors": errors, "kept": kept, "repaired": journal.repaired, "size": size}))
"""


def check(output: str, limit: int, reason: str) -> None:
    """The journal holds as many whole answers as fit, and refused twice for the same reason."""
    told = json.loads(output)
    assert told["kept"]
    assert told["repaired"] == 0, "the half-written record was not cut off at once"
    assert 0 <= limit - told["size"] < 1100
    assert told["n"] > 10
    first, second = told["errors"]
    assert f"disk full ({reason}): {told['n']} answers are safe" in first
    assert second == first


def test_a_limit_on_file_size_keeps_every_whole_answer(tmp_path: Path) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
    done = subprocess.run(
        [sys.executable, "-c", FILLER.replace("LIMIT", limit), str(tmp_path / "j.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, 50_000, "File too large")


def test_a_full_disk_keeps_every_whole_answer(tmp_path: Path) -> None:
    """On a disk of 64 KiB, made in a name space of its own where the system allows it."""
    unshare = shutil.which("unshare")
    alone = [unshare or "unshare", "--map-root-user", "--mount", "sh", "-ec"]
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}\n"
    if unshare is None or subprocess.run([*alone, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system allows no mounts of one's own")
    command = f'{mount}exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        [*alone, command, sys.executable, FILLER.replace("LIMIT", ""), str(tmp_path / "j.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The system gives space by the page, so the last one may stay empty but for what was cut off.
    told = json.loads(done.stdout)
    check(done.stdout, told["size"], "No space left on device")
    assert 60_000 < told["size"] <= 65_536
