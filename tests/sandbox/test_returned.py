"""Whatever a program returns is right or wrong: never a fault of the run."""

from __future__ import annotations

import pytest

from pytest_adaptive_eval.extensions.sandbox import Sandbox
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.tasks.coding import by_calls

#: Bodies of a function, and whether what it returns is the number 4.
BODIES = (
    "return 4",
    "return int('4')",
    "return 2 + 2",
    *(
        "return 7**9000",
        "return -7**9000",
        "return [7**9000]",
        "return {'a': 7**9000}",
        "return 10**4299",
        "return 1 << 10**6",
    ),
    *(
        "return 1 << 10**8",
        "return 4.0",
        "return True",
        "return None",
        "return '4'",
        "return b'4'",
        "return float('nan')",
    ),
    *(
        "return float('inf')",
        "return -0.0",
        "return 4+0j",
        "return ...",
        "return NotImplemented",
        "return len",
        "return int",
    ),
    *(
        "return object()",
        "return type",
        "return lambda: 4",
        "return (x for x in [4])",
        "return iter([4])",
        "return range(4)",
    ),
    *(
        "return (yield 4)",
        "return memoryview(b'4')",
        "return bytearray(b'4')",
        "return slice(4)",
        "return __builtins__",
    ),
    "a = []; a.append(a); return a",
    "a = {}; a[1] = a; return a",
    "a = []\n for _ in range(99): a = [a]\n return a",
    "a = []\n for _ in range(10**5): a = [a]\n return a",
    "a = ()\n for _ in range(10**6): a = (a,)\n return a",
    "return 'x' * 10**8",
    "return b'x' * 10**8",
    "return ['x' * 10**6] * 200",
    "return [4] * 10**7",
    "return '\\ud800' * 9",
    "return '\\0' * 9 + '\\x1b[2J'",
    "return list(range(10**6))",
    "return {x: x for x in range(10**5)}",
    "return {float('nan') for _ in range(99)}",
    "return {k * (2**61 - 1) for k in range(1000)}",
    "return frozenset({frozenset({4})})",
    "class A:\n  def __repr__(s): raise ValueError\n return A()",
    "class A:\n  def __repr__(s): return 4\n return A()",
    "class A:\n  def __eq__(s, o): return True\n  __hash__ = None\n return A()",
    "class A(int):\n  def __eq__(s, o): return True\n  __hash__ = int.__hash__\n return A(5)",
    "class A(int):\n  def __format__(s, f): return '4'\n return A(5)",
    "class A(int):\n  def __repr__(s): raise SystemExit\n return A(5)",
    "class A(int):\n  def __index__(s): return 4\n return A(5)",
    "class A(str):\n  def __str__(s): return '4'\n return A('x')",
    "class A(list):\n  def __iter__(s): raise MemoryError\n return A([5])",
    "class A(list):\n  def __len__(s): return -1\n return A([5])",
    "class A(dict):\n  def items(s): raise KeyError\n return A({5: 5})",
    "class A(dict):\n  __class__ = int\n return A()",
    "class A:\n  __class__ = int\n return A()",
    "class A:\n  def __hash__(s): raise OSError\n return {1: A()}",
    "class A:\n  def __reduce__(s): raise OSError\n return A()",
    "class A:\n  def __getattribute__(s, n): raise SystemExit\n return A()",
    "class M(type):\n  __mro__ = property(lambda c: 4)\n class A(metaclass=M): pass\n return A()",
    "class M(type):\n  def __hash__(c): raise OSError\n class A(metaclass=M): pass\n return A()",
    "class M(type):\n  __name__ = property(lambda c: 1 / 0)\n class A(Exception, metaclass=M): pass\n raise A",
    "class A(Exception):\n  def __str__(s): raise s\n raise A",
    "class A(Exception):\n  def __str__(s): return 7**9000\n raise A",
    "raise ValueError(7**9000)",
    "raise ExceptionGroup('x', [ValueError()])",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "raise StopIteration(4)",
    "import sys; sys.exit(4)",
    "import sys; sys.exit('x' * 10**6)",
    "import sys; sys.stdout.close(); sys.stderr.close(); return 5",
    "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); return 5",
    "return solve(values, k)",
    "import sys; sys.setrecursionlimit(10**5); return [solve(values, k)]",
    "assert False",
    "return 1 / 0",
    "raise MemoryError",
    "return values.no",
)
#: Programs that end the process, or whose module does not load.
WHOLE = (
    "import os\ndef solve(values, k):\n os._exit(0)\n",
    "import os\ndef solve(values, k):\n os.closerange(0, 256)\n return 4\n",
    "def solve(values, k):\n while True: pass\n",
    "def solve(values, k:\n",
    "import sys\nsys.exit(0)\ndef solve(values, k):\n return 4\n",
    "def solve(values, k):\n return '\\ud800'\n\ud800\n",
    "def solve(values, k):\n return 4\n\0\n",
    "raise BaseException\ndef solve(values, k): return 4\n",
    "def solve(values, k):\n return 4\nsolve = 4\n",
    "def solve(values, k): return 4\ndef " + "(" * 500 + "\n",
)


@pytest.fixture(scope="module")
def runner() -> Sandbox:
    return Sandbox.unsafe()  # what is returned is read in the same way behind every wall


def cases() -> list[tuple[str, float]]:
    return [(body, float(n < 3)) for n, body in enumerate(BODIES)]


@pytest.mark.fast_rows(3)
@pytest.mark.parametrize(("body", "score"), cases(), ids=[str(n) for n in range(len(BODIES))])
def test_what_a_program_returns_is_right_or_wrong(runner: Sandbox, body: str, score: float) -> None:
    code = f"def solve(values, k):\n {body}\n"
    mark = by_calls([([1], 2)], [4])(f"```python\n{code}```", runner)
    assert mark.score == score, mark
    assert len(mark.why) < 1000


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("code", WHOLE, ids=[str(n) for n in range(len(WHOLE))])
def test_a_program_that_does_not_return_is_wrong(runner: Sandbox, code: str) -> None:
    assert by_calls([([1], 2)], [4])(f"```python\n{code}```", runner).score == 0


def test_values_of_one_start_do_not_touch_each_other(runner: Sandbox) -> None:
    run = runner.call("def f(n):\n return [7**9000, 4, float('nan'), 'x'][n]", "f", [[n] for n in range(4)])
    assert run.status is Status.OK
    assert (run.outputs[0], run.outputs[1], run.outputs[3]) == (7**9000, 4, "x")
