"""What the sandbox gives back, and when it refuses."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from escape import running

from pytest_adaptive_eval.errors import SandboxUnavailable, UsageError
from pytest_adaptive_eval.extensions.sandbox import Failure, Run, Sandbox, machine, runner, same
from pytest_adaptive_eval.items.item import Status

#: What answers commonly import, and something of each that needs the rest of the module.
COMMON = """
import abc, array, base64, bisect, calendar, cmath, collections, contextlib, copy, csv, dataclasses, datetime, decimal
import enum, fractions, functools, hashlib, heapq, inspect, io, itertools, json, logging, math, operator, pprint, queue
import random, re, statistics, string, struct, sys, textwrap, threading, time, timeit, traceback, types, typing
import unicodedata, unittest, uuid, warnings, weakref, zlib, zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Dict, List, NamedTuple, Optional

@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: "int" = field(default=2)

class Colour(Enum):
    RED = auto()

class Pair(NamedTuple):
    a: int

def f(n):
    heap = [3, 1, 2]
    heapq.heapify(heap)
    print("printed", file=sys.stderr)
    with ThreadPoolExecutor(4) as pool:
        squares = list(pool.map(lambda x: x * x, range(4)))
    return [
        heapq.heappop(heap), re.findall(r"[0-9]+", "a1b22"), str(decimal.Decimal(1) / 3), str(fractions.Fraction(n)),
        json.loads(json.dumps({"a": [1, None]})), statistics.median([1, 2, 3]), bisect.bisect([1, 2, 3], 2),
        dataclasses.asdict(Point(n)), Colour.RED.name, Pair(1), dict(Counter("aab")), list(itertools.chain("ab")),
        math.comb(n, 2), random.Random(1).randint(1, 10**9), datetime.date(2024, 2, 29).isoformat(), string.digits,
        hashlib.sha256(b"x").hexdigest()[:8], deque([1]).pop(), functools.reduce(operator.mul, range(1, n)), squares,
        copy.deepcopy([[1]]), cmath.sqrt(4).real, zlib.crc32(b"x"), unicodedata.name("a"), textwrap.dedent("  a"),
        defaultdict(int, a=1), OrderedDict(a=1), struct.pack("<i", 1), base64.b64encode(b"x"), time.time() > 0,
    ]
"""


def ask(sandbox: Sandbox, code: str, *arguments: Any, **options: Any) -> Run:
    return sandbox.call(code, "f", [list(arguments)], **options)


def test_values_come_back_with_their_types(sandbox: Sandbox) -> None:
    values = [
        1, 1.0, True, "1", (1,), [1], None, {"a": {1: 2}}, {1, 2}, frozenset({"x"}), b"\x00\xff", -(10**5000), math.inf,
        -0.5, "\ud800 \N{SNOWMAN}", {(1, 2): [()]}, 5e-324,
    ]  # fmt: skip
    run = sandbox.call("def f(x): return x", "f", [[value] for value in values])
    assert (run.status, run.detail) == (Status.OK, "")
    assert all(same(a, b) and type(a) is type(b) for a, b in zip(run.outputs, values, strict=True))
    assert math.isnan(ask(sandbox, "def f(): return float('nan')").outputs[0])


def test_what_answers_commonly_import_works(sandbox: Sandbox) -> None:
    run = ask(sandbox, COMMON, 5)
    assert run.status is Status.OK, run.detail
    scope: dict[str, Any] = {"__name__": "here"}
    exec("import sys, types\nsys.modules['here'] = types.ModuleType('here')\n" + COMMON, scope)
    assert same(run.outputs[0], scope["f"](5)), run.outputs


def test_exceptions_of_one_call_are_told_apart_from_those_of_the_module(best: Sandbox) -> None:
    run = best.call("def f(x): return 6 // x", "f", [[2], [0], [3], ["x"], []])
    assert run.outputs[:3] == (3, Failure("ZeroDivisionError", "integer division or modulo by zero"), 2)
    assert [out.kind for out in run.outputs[3:]] == ["TypeError", "TypeError"]
    for code, detail in {
        "def f(:": "SyntaxError: invalid syntax (<answer>, line 1)",
        "1 / 0": "ZeroDivisionError: division by zero",
        "x = 1": "NameError: missing function f",
        "f = 1": "NameError: missing function f",
        "raise KeyError('k')": "KeyError: 'k'",
        "raise SystemExit(0)": "SystemExit: 0",
        "import os; os._exit(0)": "the process ended without results",
        "\0": "",
        "\ud800": "",
        "import numpy": "ModuleNotFoundError: No module named 'numpy'",
        "#" * 1_000_001: "code of more than 1000000 characters",
    }.items():
        run = ask(best, code)
        assert (run.status, run.outputs) == (Status.ERROR, ()), code
        assert run.detail == detail or not detail


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("def f(): return object()", "TypeError"),
        ("def f(): return (x for x in [])", "TypeError"),
        ("def f(): return 'x' * 5_000_000", "ValueError"),
        ("def f():\n  x = []\n  x.append(x)\n  return x", "ValueError"),
        ("def f():\n  raise type('E' * 1000, (Exception,), {})('m' * 10**6)", "E" * 100),
        ("class E(Exception):\n  def __str__(self): raise E\ndef f(): raise E", "E"),
        ("def f(): raise ValueError('\\ud800')", "ValueError"),
        ("import sys\ndef f(): sys.exit(0)", "SystemExit"),
        ("def f(): raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_what_cannot_be_compared_is_a_failure_of_the_call(best: Sandbox, code: str, kind: str) -> None:
    (output,) = ask(best, code).outputs
    assert isinstance(output, Failure)
    assert output.kind == kind
    assert len(output.message) <= 500
    output.message.encode()


def test_results_that_are_too_much_together(best: Sandbox) -> None:
    run = best.call("def f(): return 'x' * 900_000", "f", [[]] * 4)
    assert [len(out) for out in run.outputs] == [900_000] * 4
    run = best.call("def f(): return 'x' * 900_000", "f", [[]] * 5)
    assert run.outputs[4] == Failure("ValueError", run.outputs[4].message)
    run = best.call("def f(): raise ValueError('\U0001f600' * 500)", "f", [[]] * 1000)
    assert (run.status, run.detail) == (Status.ERROR, "ValueError: results of more than 4000000 characters")


def test_calls_share_nothing_but_the_module(best: Sandbox) -> None:
    code = "seen = []\ndef f(x):\n  x.append(1)\n  seen.append(x)\n  return len(seen), x"
    same_list: list[int] = []
    run = best.call(code, "f", [[same_list], [same_list]])
    assert run.outputs == ((1, [1]), (2, [1]))
    assert same_list == []
    assert best.call(code, "f", [[[]]]).outputs == ((1, [1]),)


def test_a_run_is_the_same_every_time(best: Sandbox) -> None:
    code = "def f(): return list({'a', 'b', 'c', 'd', 'e', 'f'}), hash('x')"
    assert len({str(ask(best, code).outputs) for _ in range(3)}) == 1


def test_long_code_and_large_arguments_arrive_whole(best: Sandbox) -> None:
    code = "#" * 900_000 + "\ndef f(x): return len(x), x[-1]"
    assert ask(best, code, [7] * 200_000).outputs == ((200_000, 7),)


def test_no_calls_are_no_outputs(best: Sandbox) -> None:
    assert best.call("f = len", "f", []) == Run(Status.OK, ())


@pytest.mark.slow
def test_time_is_up(sandbox: Sandbox) -> None:
    start = time.monotonic()
    run = ask(sandbox, "import time\ndef f(): time.sleep(60)", deadline=0.3)
    assert (run.status, run.outputs, run.detail) == (Status.TIMEOUT, (), "no results within 0.3 s")
    assert time.monotonic() - start < 10


@pytest.mark.slow
def test_processor_time_is_up_whatever_signals_are_ignored(best: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(runner.LIMITS, "RLIMIT_CPU", 1)
    code = "import signal\ndef f():\n  signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n  while True: pass"
    run = ask(best, code, deadline=60)
    assert (run.status, run.detail) == (Status.TIMEOUT, "no results within 1 s of processor time")


@pytest.mark.slow
def test_many_at_once(best: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda n: ask(best, "def f(n): return n * n", n), range(24)))
    assert [run.outputs for run in runs] == [(n * n,) for n in range(24)]
    assert threading.active_count() < 20


@pytest.mark.slow
def test_nothing_outlives_a_parent_that_is_killed(sandbox: Sandbox) -> None:
    code = (
        "from pytest_adaptive_eval.extensions.sandbox import Sandbox, runner\n"
        f"s = Sandbox({sandbox.tier!r}, {sandbox.layers!r})\n"
        "s.call('import time\\ndef f(): time.sleep(60)', 'f', [[]], deadline=60)"
    )
    before = running()
    parent = subprocess.Popen([sys.executable, "-c", code])
    end = time.monotonic() + 30
    while not (began := set(running().items()) - set(before.items())) or time.sleep(0.5):
        assert time.monotonic() < end, "it did not start"
    parent.kill()
    parent.wait()
    while began & set(running().items()):
        assert time.monotonic() < end, "still there"
        time.sleep(0.05)


@pytest.mark.slow
def test_threads_are_few_but_there_whatever_else_the_user_runs(sandbox: Sandbox) -> None:
    code = """
import threading, time
def f(most):
    n = 0
    try:
        for n in range(most):
            threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    except RuntimeError:
        pass
    return n
"""
    release = threading.Event()
    others = [threading.Thread(target=release.wait) for _ in range(100)]
    for thread in others:
        thread.start()
    try:
        assert 10 < ask(sandbox, code, 2000).outputs[0] < 1000
    finally:
        release.set()


def test_arguments_are_values(best: Sandbox) -> None:
    with pytest.raises(TypeError, match="object"):
        ask(best, "f = len", object())


def test_the_unsafe_mode_says_so(tmp_path: Any) -> None:
    unsafe = Sandbox.unsafe()
    assert unsafe.tier == "unsafe"
    code = f"def f(): return open({str(tmp_path / 'file')!r}, 'w').write('x')"
    assert ask(unsafe, code).outputs == (1,)
    assert (tmp_path / "file").read_text() == "x"
    assert isinstance(ask(unsafe, "def f(): return bytearray(1 << 30)").outputs[0], Failure)


def test_a_machine_without_landlock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(advice: str) -> None:
        raise SandboxUnavailable(f"the kernel offers no Landlock; {advice}")

    monkeypatch.setattr(machine, "require_kernel", refuse)
    with pytest.raises(UsageError, match=r"no Landlock; or accept .* --adaptive-eval-unsafe-code=I-accept"):
        Sandbox.open()


def test_without_bubblewrap_the_lockdown_is_taken(best: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    machine.bubblewrap.cache_clear()
    sandbox = Sandbox.open()
    assert (sandbox.tier, ask(sandbox, "f = str", 1).outputs) == ("lockdown", ("1",))
    assert "apt-get install bubblewrap" in sandbox.note
    with pytest.raises(SandboxUnavailable, match="tier full: bubblewrap is not installed; install it"):
        Sandbox.open(tier="full")


def test_a_bubblewrap_that_fails_is_quoted(best: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "bubblewrap", lambda _: ("/bin/sh", "-c", "echo no namespaces here >&2; exit 1", "--"))
    with pytest.raises(SandboxUnavailable, match="tier full: it was not locked up: no namespaces here"):
        Sandbox.open(tier="full")
    monkeypatch.setattr(machine, "bubblewrap", lambda _: ("/nothing/bwrap",))
    with pytest.raises(SandboxUnavailable, match="No such file"):
        Sandbox.open(tier="full")


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    for start in (Sandbox.open, Sandbox.unsafe):
        with pytest.raises(SandboxUnavailable, match="needs Linux, not darwin"):
            start()
