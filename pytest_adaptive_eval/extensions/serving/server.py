"""A model server that this run starts, shared by all of its processes."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.serving import supervisor
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.text import clean_terminal

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

HOST = "127.0.0.1"
#: Seconds for a server to load its model.
START_TIMEOUT = 900.0
#: Seconds between two looks at a server that is starting.
PERIOD = 0.2
#: Lines of a server's output in an error.
LOG_LINES = 15
#: Logger whose warnings the terminal shows at once.
_LOGGER = logging.getLogger("pytest_adaptive_eval")


@dataclass(slots=True)
class Server:
    """A running server that this process leases.

    Processes with the same command and the same folder share one server. It ends some seconds after the last of them
    released it or was killed.
    """

    folder: Path
    port: int
    lease: IO[str]

    @classmethod
    def start(cls, command: Sequence[str], folder: Path | None, start_timeout: float = START_TIMEOUT) -> Server:
        """Lease the server of a command, starting it if it does not run, and wait until it is healthy.

        Args:
            command: Program and arguments; ``{port}`` in them is replaced by the port.
            folder: Folder for the state of servers; a new temporary one if omitted.

        Raises:
            ConfigError: The program is missing, ends, or is not healthy in time.
        """
        if fcntl is None:
            raise ConfigError(
                "a server that the run starts needs file locks of POSIX, which this system lacks: start the server "
                "yourself and name it by http://HOST:PORT/v1#MODEL"
            )
        where = Path.cwd()
        key = hashlib.sha256(json.dumps([*command, str(where)]).encode()).hexdigest()[:16]
        folder = (Path(tempfile.mkdtemp(prefix="adaptive-eval-")) if folder is None else folder / "servers") / key
        folder.mkdir(parents=True, exist_ok=True)
        lease = (folder / "lease").open("a")
        fcntl.flock(lease, fcntl.LOCK_SH)
        try:
            with (folder / "start").open("a") as start:  # one process at a time starts a server
                fcntl.flock(start, fcntl.LOCK_EX)
                if not _supervised(folder):
                    _start(command, folder, where)
                port = int(_read(folder / "command.json")["port"])
                server = cls(folder, port, lease)
                server._wait(command[0], start_timeout)
        except BaseException:
            lease.close()
            raise
        return server

    @property
    def url(self) -> str:
        """Address that ``/chat/completions`` is added to."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def log(self) -> Path:
        """File with the output of the server."""
        return self.folder / "log.txt"

    def models(self) -> list[str]:
        """Return the names of the models that the server lists."""
        code, body = self._get("/v1/models")
        if code == 200:
            listed = json.loads(body).get("data", [])
        else:
            listed = []
        return [str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry]

    def release(self) -> None:
        """End this process's use of the server; warn if the server crashed and was restarted."""
        if self.lease.closed:
            return
        starts = _read(self.folder / "status.json").get("starts", 1)
        if starts > 1:
            _LOGGER.warning(
                "the server ended and was started again, %d times; its output is in %s", starts - 1, self.log
            )
        self.lease.close()

    def _wait(self, program: str, seconds: float) -> None:
        """Return when the server is healthy.  Say once that this takes time."""
        begun = clock.elapsed()
        announced = False
        while not self._healthy():
            exit_code = _read(self.folder / "status.json").get("exit_code")
            if exit_code is not None:
                raise ConfigError(
                    f"the server {program!r} ended with exit code {exit_code} before it was healthy{self._output()}"
                )
            if clock.elapsed() - begun > seconds:
                raise ConfigError(
                    f"the server {program!r} is not healthy after {seconds:g} s: neither /health nor /v1/models of "
                    f"port {self.port} answers; raise start_timeout if it loads that long{self._output()}"
                )
            if not announced:
                announced = True
                _LOGGER.warning("starting %s at port %d, for up to %g s", program, self.port, seconds)
            clock.sleep(PERIOD)
        if announced:
            _LOGGER.warning("%s is ready after %.1f s", program, clock.elapsed() - begun)
        (self.folder / "healthy").touch()

    def _healthy(self) -> bool:
        try:
            code, _ = self._get("/health")
            if code in (404, 405, 501):  # it has no such path
                code, _ = self._get("/v1/models")
        except (OSError, http.client.HTTPException):
            return False
        return code == 200

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5.0)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read(1 << 20)
        finally:
            connection.close()

    def _output(self) -> str:
        """Return the last lines of the server's output, as the end of a message."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        except OSError:
            lines = []
        listing = "\n".join(f"  {clean_terminal(line)}" for line in lines if line.strip())
        if listing:
            return f"; it wrote ({self.log}):\n{listing}"
        return f"; it wrote nothing to {self.log}"


def _start(command: Sequence[str], folder: Path, where: Path) -> None:
    """Start a supervisor and wait until it lives."""
    for name in ("healthy", "status.json", "log.txt"):
        (folder / name).unlink(missing_ok=True)
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    filled = [part.replace("{port}", str(port)) for part in command]
    stated = {"command": filled, "port": port, "folder": str(where)}
    (folder / "command.json").write_text(json.dumps(stated), encoding="utf-8")
    with (folder / "log.txt").open("ab") as log:
        log.write(f"{shlex.join(filled)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__, os.fspath(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while not _read(folder / "status.json"):
        if process.poll() is not None:
            text = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise ConfigError(f"the server {command[0]!r} cannot be started: {clean_terminal(text[-1])}")
        clock.sleep(PERIOD / 4)
    process.returncode = 0  # it outlives this process on purpose


def _supervised(folder: Path) -> bool:
    with (folder / "supervisor").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return bool(_read(folder / "status.json"))
    return False


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        value = json.loads(read_regular(path))
        if isinstance(value, dict):
            return value
    return {}
