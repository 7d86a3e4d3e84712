"""Work that holds the interpreter is killed, and the next call is answered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.deadline import Overdue


def call(function: str, *arguments: Any, seconds: float = 1.0) -> Any:
    return worker.call(function, *arguments, seconds=seconds, description="the work")


def pid() -> int:
    number: int = call("os:getpid")
    return number


def test_one_process_answers_calls_of_many_threads_each_with_its_own_result() -> None:
    first, results = pid(), {}

    def ask(n: int) -> None:
        results[n] = [call("operator:add", n, k) for k in range(20)]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: list(range(n, n + 20)) for n in range(8)}
    assert pid() == first != os.getpid()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "arguments", "why"),
    [
        ("operator:pow", (9, 9**9), "took longer than 1 s"),
        ("builtins:eval", ("[0 for _ in iter(int, 1)]",), "took longer than 1 s|needed more than 4 GiB of memory"),
        ("operator:mul", ("a", 10**11), "needed more than 4 GiB of memory"),
        ("operator:mul", ("a", 10**8), "gave more than 32 MiB"),
    ],
)
def test_work_beyond_its_limits_is_given_up(function: str, arguments: tuple[Any, ...], why: str) -> None:
    before, start = pid(), time.monotonic()
    with pytest.raises(Overdue, match=f"the work ({why}) and was given up"):
        call(function, *arguments)
    assert time.monotonic() - start < 9
    assert call("operator:add", 1, 1) == 2
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


@pytest.mark.slow
def test_a_machine_that_is_busy_or_stops_costs_nothing_until_ten_times_the_limit() -> None:
    assert call("time:sleep", 1.5) is None
    with pytest.raises(Overdue):
        call("time:sleep", 30, seconds=0.1)


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        ("no_such_module:name", (), "ModuleNotFoundError"),
        ("math:no_such_name", (), "AttributeError"),
        ("operator:truediv", (1, 0), "ZeroDivisionError: division by zero"),
        ("builtins:object", (), "TypeError: .*not JSON"),
        ("sys:exit", ("away",), "SystemExit: away"),
    ],
)
def test_what_a_function_raises_comes_back_and_the_worker_stays(
    function: str, arguments: tuple[Any, ...], kind: str
) -> None:
    before = pid()
    with pytest.raises(worker.Raised, match=kind):
        call(function, *arguments)
    assert pid() == before


@pytest.mark.slow
def test_a_worker_that_dies_is_a_fault_of_the_run_and_another_follows() -> None:
    with pytest.raises(worker.WorkerFault, match="the work: the worker process ends with exit status 3"):
        call("os:_exit", 3)
    assert call("operator:add", 1, 1) == 2


def test_an_interrupt_leaves_no_answer_for_the_next_call() -> None:
    before = pid()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call("time:sleep", 20, seconds=30)
    assert call("operator:add", 2, 2) == 4
    assert pid() != before


def test_a_forked_process_has_a_worker_of_its_own() -> None:
    before = pid()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, str(pid()).encode())
        worker._CALLER.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 100)) != before
    os.close(read), os.close(write)
    assert pid() == before


def test_it_has_no_secret_no_torch_and_no_file_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('of the project')\n")
    (tmp_path / "of_the_project.py").write_text("def name(): return __name__\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("API_KEY", "secret")
    worker._CALLER.close()
    assert "secret" not in call("builtins:eval", "[*__import__('os').environ.values()]")
    assert call("of_the_project:name") == "of_the_project"
    with pytest.raises(worker.Raised, match="torch"):
        call("torch:ones", 3)
    worker._CALLER.close()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    "end", ["pass", "import os; os._exit(0)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
)
@pytest.mark.parametrize("busy", [False, True])
def test_no_process_is_left_behind(end: str, busy: bool) -> None:
    code = f"""
import os, threading, time
from pytest_adaptive_eval import worker
print(worker.call("os:getpid", seconds=1, description="w"), flush=True)
def work():
    try: worker.call("operator:pow", 9, 9 ** 9, seconds=1, description="w")
    except Exception: pass
if {busy}:
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
{end}
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    number, latest = int(done.stdout), time.monotonic() + 10
    while time.monotonic() < latest and Path(f"/proc/{number}").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{number}").exists()
