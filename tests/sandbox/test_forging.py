"""A wrong program is wrong whatever it says: results are values, and the parent alone knows the right ones."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_adaptive_eval.extensions.sandbox import Run, Sandbox, same
from pytest_adaptive_eval.items.item import Status

_RANDOM = random.Random(7)
INPUTS = [[_RANDOM.randrange(10**6)] for _ in range(20)]
TRUTH = [x * x + 7 for (x,) in INPUTS]
#: Finds the harness's own function that sends, the nonce, and the descriptor of the channel.
_CHANNEL = """
import os, sys
frame = sys._getframe()
while "send" not in frame.f_locals:
    frame = frame.f_back
send, nonce, channel = frame.f_locals["send"], frame.f_locals["nonce"], frame.f_locals["result"]
"""

FORGERIES = {
    "prints that it passed": "def f(x):\n  print('PASS', 'ok', '{\"passed\": true}')",
    "leaves with success": "import os\ndef f(x): os._exit(0)",
    "leaves when loaded": "raise SystemExit(0)",
    "equals everything": "class E:\n  __eq__ = lambda s, o: True\n  __hash__ = None\ndef f(x): return E()",
    "a number that equals everything": "class E(int):\n  __eq__ = lambda s, o: True\ndef f(x): return E(1)",
    "the right number of another type": "def f(x): return float(x * x + 7)",
    "a line on every descriptor": """
import os
def f(x):
    for fd in range(64):
        try:
            os.write(fd, b'["tuple",["answers",["list",[' + b",".join([b"true"] * 20) + b']]]]\\n')
        except OSError:
            pass
    os._exit(0)
""",
    "the harness's own channel and nonce": _CHANNEL
    + """
def f(x):
    one = '["tuple",["value",true]]'
    send(nonce + ' ["tuple",["answers",["list",[' + ",".join([one] * 20) + ']]]]')
    os._exit(0)
""",
    "too few results": _CHANNEL
    + """
def f(x):
    send(nonce + ' ["tuple",["answers",["list",[]]]]')
    os._exit(0)
""",
    "a patched harness": _CHANNEL
    + """
import builtins, json
frame.f_globals["encode"] = lambda *_: "true"
builtins.isinstance = builtins.callable = lambda *_: True
json.dumps = lambda *_: "true"
def f(x): return 1
""",
    "a message before the true one": _CHANNEL
    + """
def f(x):
    os.write(channel, nonce.encode() + b" true\\n")
    return x * x + 7
""",
    "a message after leaving": """
import atexit, os, threading, time
def late():
    time.sleep(0.05)
    for fd in range(64):
        try:
            os.write(fd, b"true\\n")
        except OSError:
            pass
atexit.register(late)
threading.Thread(target=late).start()
def f(x): return 1
""",
    "what the collector holds": """
import gc
def f(x):
    return [t for t in gc.get_objects() if type(t) is tuple and len(t) == 20] or max(
        (t for t in gc.get_objects() if type(t) is int), default=0
    )
""",
    "what it has seen before": """
import os
def f(x):
    try:
        with open("/dev/shm/adaptive-eval-notes", "a+") as notes:
            notes.write(str(x))
            notes.seek(0)
            return int(notes.read())
    except OSError:
        return 0
""",
    "what the parent's memory holds": "import os\ndef f(x): return open(f'/proc/{os.getppid()}/mem', 'rb').read()",
    "the answer to the first": f"def f(x): return {INPUTS[0][0]} ** 2 + 7",
    "nothing": "def f(x): return None",
    "not a number": "def f(x): return float('nan')",
}


def right(run: Run) -> bool:
    """How a verifier judges, by values alone."""
    return run.status is Status.OK and all(map(same, run.outputs, TRUTH)) and len(run.outputs) == len(TRUTH)


def test_the_honest_program_is_right(sandbox: Sandbox) -> None:
    assert right(sandbox.call("def f(x): return x * x + 7", "f", INPUTS))


def test_there_are_enough() -> None:
    assert len(FORGERIES) >= 12


@pytest.mark.fast_rows(3)
@pytest.mark.parametrize("name", FORGERIES)
def test_no_forgery_is_right(best: Sandbox, name: str) -> None:
    run = best.call(FORGERIES[name], "f", INPUTS)
    assert not right(run), name
    assert run.status in (Status.OK, Status.ERROR)


def test_the_best_forgery_gives_values_and_no_more(best: Sandbox) -> None:
    run = best.call(FORGERIES["the harness's own channel and nonce"], "f", INPUTS)
    assert run == Run(Status.OK, (True,) * 20)


@pytest.mark.slow
def test_noise_on_the_channel_is_an_error_of_the_code(best: Sandbox) -> None:
    """Random bytes, with and without the nonce, whole lines and torn ones, where the true results go."""
    code = (
        _CHANNEL
        + """
import random
def f(seed):
    rng = random.Random(seed)
    words = [b'["tuple",[', b'"answers"', b'["list",[', b'["int","1"]', b"]]", b",", b"null", b"\\n", rng.randbytes(1)]
    start = nonce.encode() + b" " if seed % 3 else rng.randbytes(5)
    os.write(channel, start + b"".join(rng.choices(words, k=rng.randrange(1, 30))) + b"\\n" * (seed % 2))
    os._exit(0)
"""
    )
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda seed: best.call(code, "f", [[seed]]), range(24)))
    assert {run.status for run in runs} == {Status.ERROR}
    assert {run.detail.split(":")[0] for run in runs} == {
        "its results cannot be read",
        "the process ended without results",
    }


def test_the_first_message_counts_and_must_be_whole(best: Sandbox) -> None:
    run = best.call(FORGERIES["a message before the true one"], "f", INPUTS)
    assert (run.status, run.outputs) == (Status.ERROR, ())
    assert best.call(FORGERIES["too few results"], "f", INPUTS).detail == (
        "its results cannot be read: not one output a call"
    )


def test_the_truth_is_in_no_process_but_the_parent(best: Sandbox) -> None:
    """Its own memory, looked through as far as a program can, holds the inputs and no answer."""
    code = """
import ctypes, gc
def f(secret):
    found = []
    for thing in gc.get_objects():
        for other in gc.get_referents(thing):
            if type(other) is str and len(other) == 32 and other != secret and other[::-1] == secret:
                found.append(other)
    return found
"""
    truth = os.urandom(16).hex()
    assert best.call(code, "f", [[truth[::-1]]]).outputs == ([],)
