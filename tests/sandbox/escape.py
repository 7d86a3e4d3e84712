"""The escape suite: every program of `hostile` in the sandbox, in a world with something to reach."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hostile import ENDLESS, PROGRAMS, source

from pytest_adaptive_eval.extensions.sandbox import Failure, Run, Sandbox, runner
from pytest_adaptive_eval.extensions.sandbox.machine import nobody
from pytest_adaptive_eval.items.item import Status

#: Errors that tell of a fault in the program and not of a wall.
_BROKEN = {"NameError", "AttributeError", "TypeError", "ImportError", "ModuleNotFoundError", "KeyError", "SyntaxError"}
#: What stands in the command line of processes that should be gone.
_MARKS = (b"3.14159", b"import marshal,os\ndef take")


class World:
    """Things to reach, and witnesses of whether they were."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(16)
        self.folder = Path(tempfile.mkdtemp(prefix="adaptive-eval-escape-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.secret = self.folder / "secret"
        self.secret.write_text(self.token)
        self.secret.chmod(0o644)
        self.open = self.folder / "open"
        self.open.mkdir()
        self.open.chmod(0o777)
        self.file = self.open / "file"
        self.file.write_text("as it was")
        self.file.chmod(0o666)
        self.before = self._files()
        self.variable = "ADAPTIVE_EVAL_TEST_SECRET"
        os.environ[self.variable] = self.token
        secret = os.open(self.secret, os.O_RDONLY)
        # inheritable, and above the numbers of which the harness draws one for its result, whatever was there before
        self.descriptor = fcntl.fcntl(secret, fcntl.F_DUPFD, 64)
        os.close(secret)
        user = nobody()
        self.victim = subprocess.Popen(
            ["/bin/sleep", "600"], user=None if user is None else user[0], start_new_session=True, cwd="/"
        )
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.path_socket, self.abstract_socket = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.path_socket.bind(str(self.folder / "socket"))
        (self.folder / "socket").chmod(0o777)
        self.abstract_socket.bind(f"\0{self.token[:8]}")
        for listener in (self.path_socket, self.abstract_socket):
            listener.listen()
        self.master, self.slave = pty.openpty()
        self.terminal = os.ttyname(self.slave)
        Path(self.terminal).chmod(0o666)

    def facts(self) -> dict[str, Any]:
        """What the programs are told: all that they could want to know, but no secret."""
        return {
            "secret_file": str(self.secret),
            "open_folder": str(self.open),
            "open_file": str(self.file),
            "variable": self.variable,
            "descriptor": self.descriptor,
            "victim": self.victim.pid,
            "parent": os.getpid(),
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "path_socket": str(self.folder / "socket"),
            "abstract_socket": self.token[:8],
            "terminal": self.terminal,
            "source": runner.__file__,
            "expected": self.token[::-1],
        }

    def _files(self) -> list[tuple[str, int, int, int, bytes]]:
        return [
            (p.name, p.lstat().st_mode, p.lstat().st_uid, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
            for p in sorted(self.open.iterdir())
        ]

    def damage(self) -> list[str]:
        """What was reached, whatever the programs say."""
        found = []
        if self.victim.poll() is not None:
            found.append("the victim is dead")
        elif os.getpriority(os.PRIO_PROCESS, self.victim.pid) != os.getpriority(os.PRIO_PROCESS, 0):
            found.append("the victim has another priority")
        if self._files() != self.before:
            found.append("files were changed")
        sockets: list[Any] = [self.tcp, self.udp, self.path_socket, self.abstract_socket]
        if select.select([*sockets, self.master], [], [], 0)[0]:
            found.append("a socket or the terminal was reached")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.victim.kill()
        self.victim.wait()
        for listener in (self.tcp, self.udp, self.path_socket, self.abstract_socket):
            listener.close()
        for fd in (self.master, self.slave, self.descriptor):
            os.close(fd)
        del os.environ[self.variable]
        shutil.rmtree(self.folder)


def escapes(name: str, run: Run, world: World, seconds: float, deadline: float) -> str:
    """Why a program was not held, or empty."""
    if run.status is Status.SANDBOX_ERROR:
        return f"was not run: {run.detail}"
    if world.token in f"{run.outputs} {run.detail}":
        return "has read the secret"
    if seconds > deadline + 5:
        return f"ran for {seconds:.1f} s"
    if run.status is not Status.OK:
        return f"is broken: {run.detail}" if run.detail.split(":")[0] in _BROKEN else ""
    (output,) = run.outputs
    if isinstance(output, Failure):
        return f"is broken: {output}" if output.kind in _BROKEN else ""
    return f"reached {str(output)[:100]}" if output is not None else ""


def running() -> dict[int, str]:
    """Processes of the sandbox by their mark: number and when it started."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes()
                started = (folder / "stat").read_text().rsplit(")", 1)[1].split()[19]
            except OSError:
                continue
            if any(mark in command for mark in _MARKS):
                found[int(folder.name)] = started
    return found


def leftovers(before: dict[int, str], patience: float) -> list[int]:
    """Processes of the suite that are still there some seconds after it."""
    now = running()
    time.sleep(patience)
    later = running()
    return [pid for pid, started in now.items() if later.get(pid) == started and before.get(pid) != started]


def suite(sandbox: Sandbox, names: Iterable[str] = tuple(PROGRAMS), *, patience: float = 1.0) -> dict[str, str]:
    """Run programs and report those that were not held, each with why."""
    before = running()

    def one(name: str) -> str:
        deadline = 0.3 if name in ENDLESS else 20.0  # the machine may be busy
        start = time.monotonic()
        run = sandbox.call(source(name), name, [[world.facts()]], deadline=deadline)
        return escapes(name, run, world, time.monotonic() - start, deadline)

    names = list(names)
    with World() as world, ThreadPoolExecutor(6) as pool:
        out = {name: why for name, why in zip(names, pool.map(one, names), strict=True) if why}
        if left := leftovers(before, patience):
            out["processes left"] = str(left)
        if damage := world.damage():
            out["witnesses"] = "; ".join(damage)
    return out


def other_interpreter() -> str | None:
    """A Python that other users may run and that can import this package, or None."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        path = Path(os.path.realpath(candidate))
        try:
            if all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents)) and (
                subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode == 0
            ):
                return str(path)
        except OSError:
            continue
    return None


def as_user(user: int, expression: str) -> Any:
    """What an expression over this module gives to another user; root only, and only with `other_interpreter`."""
    here = Path(__file__).parent
    done = subprocess.run(
        [other_interpreter() or sys.executable, "-B", "-c", f"import escape, json; print(json.dumps({expression}))"],
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{here}:{here.parents[1]}"},
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout) if done.returncode == 0 else {"the suite": done.stderr}


def suite_as(user: int, tier: str, names: Iterable[str] = tuple(PROGRAMS), *, patience: float = 1.0) -> dict[str, str]:
    """The suite by another user."""
    sandbox = f"escape.Sandbox.open(tier={tier!r})"
    return dict(as_user(user, f"escape.suite({sandbox}, {list(names)!r}, patience={patience})"))


def starts(tier: str, repeats: int) -> list[float]:
    """Milliseconds of calls that do nothing, from the request to the end of the process."""
    sandbox = Sandbox.open(tier=tier)  # type: ignore[arg-type]
    out = []
    for _ in range(repeats):
        start = time.perf_counter()
        run = sandbox.call("def f(): return 1", "f", [[]])
        out.append((time.perf_counter() - start) * 1000)
        assert run.outputs == (1,)
    return out
