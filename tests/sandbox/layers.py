"""Takes each layer away in turn, and asks what notices: the self-check, or programs that are no longer held."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from escape import suite

from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox import Sandbox, harness
from pytest_adaptive_eval.extensions.sandbox.runner import LAYERS, LOCKDOWN
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.process import Process

#: Programs that a tier no longer holds without a layer; harmless ones, since they do get through here.
PROGRAMS_WITHOUT = {
    ("full", "bubblewrap"): ("size_of_the_secret_file",),
    ("full", "rlimits"): ("memory", "shared_memory", "many_descriptors"),
    ("full", "landlock"): ("password_file", "files_of_others"),
    ("full", "seccomp"): ("raw_clone", "new_session", "pair_of_sockets"),
    ("full", "descriptors"): ("inherited_descriptors",),
    ("lockdown", "rlimits"): ("memory", "shared_memory", "many_descriptors"),
    ("lockdown", "landlock"): ("secret_file", "the_projects_sources", "password_file"),
    ("lockdown", "seccomp"): ("raw_clone", "udp", "daemon"),
    ("lockdown", "descriptors"): ("inherited_descriptors",),
}


def doubled(tier: str) -> set[str]:
    """Layers that another one brings along, so that their absence changes nothing."""
    out = {"no_new_privs"} if tier == "full" else set()  # bubblewrap sets it too
    if os.getuid() == 0 and tier == "lockdown":
        out.add("undumpable")  # the kernel does it to whoever gives up being root
    if os.getuid() != 0:
        out.add("user")  # there is nothing to give up
    return out


def _reduced(tier: str, layer: str) -> list[str]:
    """What notices that a layer of the process is missing."""
    layers = (LAYERS if tier == "full" else LOCKDOWN) - {layer}
    noticed = []
    try:
        Sandbox(tier, layers).check()  # type: ignore[arg-type]
    except SandboxUnavailable as error:
        noticed.append(f"self-check: {error}")
    # the programs are run all the same, by a sandbox that does not look at its own account
    programs = PROGRAMS_WITHOUT.get((tier, layer), ())
    return [*noticed, *suite(Sandbox("unsafe", layers), programs, patience=0.2)] if programs else noticed


def _deadline(tier: str) -> list[str]:
    """What notices that nothing is ended when its time is over."""
    sandbox = Sandbox.open(tier=tier)  # type: ignore[arg-type]
    line = Process.line

    def patient(self: Process, most: int, deadline: float) -> bytes:
        return line(self, most, deadline + 60)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Process, "line", patient)
        start = time.monotonic()
        run = sandbox.call("import time\ndef f():\n    time.sleep(0.6)", "f", [[]], deadline=0.1)
        late = time.monotonic() - start
    return [f"sleeper: {run.status} after {late:.1f} s"] if run.status is not Status.TIMEOUT or late > 0.5 else []


_FLOOD = """
import os
def f():
    for fd in range(64):
        try:
            os.write(fd, b"x" * 8_000_000)
        except OSError:
            pass
"""


def _size(tier: str) -> list[str]:
    """What notices that results of any size are read."""
    sandbox = Sandbox.open(tier=tier)  # type: ignore[arg-type]
    got = []
    line = Process.line

    def greedy(self: Process, most: int, deadline: float) -> bytes:
        out = line(self, 1 << 40, deadline)
        got.append(len(out))
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Process, "line", greedy)
        sandbox.call(_FLOOD, "f", [[]])
    return [f"flood: {max(got)} bytes were kept"] if max(got) > harness.LIMIT + 100_000 else []


def without(tier: str, *layers: str) -> dict[str, list[str]]:
    """For each layer, or those named, who noticed that it is missing."""
    special: dict[str, Any] = {"deadline": _deadline, "size": _size}
    names = layers or (*sorted((LAYERS if tier == "full" else LOCKDOWN) - doubled(tier)), *special)
    return {name: special[name](tier) if name in special else _reduced(tier, name) for name in names}
