"""The sandbox: calls functions of foreign code, each time in a fresh process that has given up everything else."""

from __future__ import annotations

import functools
import marshal
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox import harness, machine
from pytest_adaptive_eval.extensions.sandbox.attestation import SPACES, faults
from pytest_adaptive_eval.extensions.sandbox.filter import seccomp_program
from pytest_adaptive_eval.extensions.sandbox.values import Failure, decode, read_answers
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.process import DeadlinePassed, Died, Flooded, Process

if TYPE_CHECKING:
    from pytest_adaptive_eval.extensions.sandbox.harness import Setup, Start

#: What the full tier consists of.  "user" matters to root only.
LAYERS = frozenset(
    {"bubblewrap", "user", "rlimits", "landlock", "seccomp", "no_new_privs", "undumpable", "descriptors", "environment"}
)
LOCKDOWN = LAYERS - {"bubblewrap"}
#: What is left when the user accepts the danger.
UNSAFE = frozenset({"rlimits", "descriptors", "environment"})
#: Processor seconds, bytes of memory, of a file, open files, core dumps; names of `resource`.
LIMITS = {"RLIMIT_CPU": 5, "RLIMIT_AS": 512 << 20, "RLIMIT_FSIZE": 16 << 20, "RLIMIT_NOFILE": 64, "RLIMIT_CORE": 0}
#: Threads: in its own namespace the process is alone, else the user's other processes count too.
_THREADS, _THREADS_BESIDES = 64, 256
#: Seconds in which a process must have locked itself up, on however busy a machine; bytes of its account.
_START, _REPORT = 30.0, 1 << 16
#: Bytes before the results in their line.
_HEAD = 64
#: Characters of foreign code.
_CODE = 1_000_000
_ACCEPT = "or accept the danger with --adaptive-eval-unsafe-code=I-accept"


@dataclass(frozen=True, slots=True)
class Run:
    """Result of calling a function of foreign code.

    Args:
        status: ``ok``; ``timeout`` or ``error`` if the code took too long, did not load, died or answered in no
            readable form; ``sandbox_error`` if it was not run because the lockdown was not on.
        outputs: One value a call, in order: None, bool, int, float, str, bytes, list, tuple, dict, set or frozenset, or
            a `Failure`. Compare by `pytest_adaptive_eval.extensions.sandbox.same`. Empty unless ``ok``.
        detail: Reason for missing outputs; may hold words of the foreign code.
    """

    status: Status
    outputs: tuple[Any, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs foreign code; made by `Sandbox.open`.

    The object holds nothing open and may be used by several threads at once.

    Args:
        note: Why it is not the full tier.
    """

    tier: Literal["full", "lockdown", "unsafe"]
    layers: frozenset[str]
    note: str = ""

    @classmethod
    def open(cls, *, tier: Literal["auto", "full", "lockdown"] = "auto") -> Self:
        """Return the strongest tier that passes the self-check on this machine.

        Args:
            tier: ``full`` is lockdown behind bubblewrap; ``lockdown`` works without namespaces, as in containers;
                ``auto`` takes the first that holds.

        Raises:
            SandboxUnavailable: None holds; the message says why and what to do.
        """
        machine.require_linux()
        machine.require_kernel(_ACCEPT)
        refused: list[str] = []
        for name, layers in (("full", LAYERS), ("lockdown", LOCKDOWN)):
            if tier in ("auto", name):
                sandbox = cls(name, layers, "; ".join(refused))  # type: ignore[arg-type]
                try:
                    sandbox.check()
                except SandboxUnavailable as error:
                    refused.append(f"tier {name}: {error}")
                else:
                    return sandbox
        raise SandboxUnavailable(f"code from a model cannot be locked up here: {'; '.join(refused)}; {_ACCEPT}")

    @classmethod
    def unsafe(cls) -> Self:
        """No sandbox: a process with limits on time and memory that can do all that the user can.

        Raises:
            SandboxUnavailable: This is not Linux.
        """
        machine.require_linux()
        return cls("unsafe", UNSAFE, "no sandbox, as the user accepts")

    def check(self) -> None:
        """Run code that tries the forbidden things, and see each refused.

        Raises:
            SandboxUnavailable: The process could not be locked up, or something was possible after all.
        """
        run = self.call(Path(__file__).with_name("probe.py").read_text(), "attempts", [[os.getpid()]], deadline=_START)
        if run.outputs != ([],):
            raise SandboxUnavailable(run.detail or f"it holds not everything: {run.outputs[0]}")

    def call(self, code: str, function: str, arguments: Sequence[Sequence[Any]], *, deadline: float = 10.0) -> Run:
        """Load foreign code in a fresh process and call one of its functions.

        Args:
            code: A module in Python; what it prints goes nowhere.
            arguments: Positional arguments of each call; of the types that `Run.outputs` has.
            deadline: Seconds for loading and all calls together.

        Raises:
            TypeError, ValueError: Arguments of another type, or too large.
        """
        for call_arguments in arguments:
            harness.encode(tuple(call_arguments))
        if len(code) > _CODE:
            return Run(Status.ERROR, (), f"code of more than {_CODE} characters")
        packed = [marshal.dumps(tuple(call_arguments)) for call_arguments in arguments]
        nonce = secrets.token_hex(16)
        try:
            process = self._process()
        except OSError as error:
            return Run(Status.SANDBOX_ERROR, (), f"the process could not be started: {error}")
        with process:
            fault = self._locked_up(process)
            if fault:
                return Run(Status.SANDBOX_ERROR, (), fault)
            start = clock.elapsed()
            try:
                process.send(_frame((nonce, code, function, packed)))
                line = process.line(harness.LIMIT + _HEAD, start + deadline)
            except DeadlinePassed:
                return Run(Status.TIMEOUT, (), f"no results within {deadline:g} s")
            except Flooded:
                return Run(Status.ERROR, (), f"results of more than {harness.LIMIT} bytes")
            except Died:
                if clock.elapsed() - start > LIMITS["RLIMIT_CPU"] - 0.2:  # the kernel ended it
                    return Run(Status.TIMEOUT, (), f"no results within {LIMITS['RLIMIT_CPU']} s of processor time")
                return Run(Status.ERROR, (), "the process ended without results")
        # only now, with the process gone, is anything made of what it said
        try:
            answers = read_answers(line, nonce, len(packed))
        except ValueError as error:
            return Run(Status.ERROR, (), f"its results cannot be read: {error}")
        if isinstance(answers, Failure):
            return Run(Status.ERROR, (), f"{answers.kind}: {answers.message}")
        return Run(Status.OK, answers)

    def _locked_up(self, process: Process) -> str:
        """Lock a process up, and return why it is not; empty if it is."""
        try:
            process.send(_frame((_program(), self._setup(process))))
            report = process.line(_REPORT, clock.elapsed() + _START)
        except (DeadlinePassed, Died, Flooded):
            return f"it was not locked up: {process.complaint() or f'no account within {_START:.0f} s'}"
        open_still = self._faults(report)
        if open_still:
            return f"the lockdown is not on: {'; '.join(open_still)}"
        return ""

    def _user(self) -> tuple[int, int] | None:
        if "user" in self.layers:
            return machine.nobody()
        return None

    def _process(self) -> Process:
        """Start a process that waits for its `Setup`."""
        interpreter = machine.find_interpreter()
        user = self._user()
        program, keep = interpreter.executable, ""
        walls: tuple[str, ...] = ()
        if "bubblewrap" in self.layers:
            walls = machine.bubblewrap(interpreter)
        elif user is not None and interpreter.barrier:
            keep = interpreter.prefix
            program = f"/proc/self/fd/{{keep}}/{Path(program).relative_to(keep)}"
        environment: Mapping[str, str] = dict(interpreter.environment)
        if "environment" not in self.layers:
            environment = {**os.environ, **environment}
        boot = (program, *machine.OPTIONS, "-c", harness.BOOT)
        # bubblewrap must not run as root: then another interpreter comes first, to become nobody and find the way
        first = walls and user is not None
        command = boot if first else (*walls, *boot)
        process = Process(command, environment, keep=keep, close="descriptors" in self.layers)
        if first:
            start: Start = {
                "command": (*walls, *boot),
                "user": user,
                "folder": interpreter.prefix,
                "barrier": interpreter.barrier,
            }
            process.send(_frame((_program(), start)))
        return process

    def _limits(self) -> dict[str, int]:
        alone = "bubblewrap" in self.layers
        return {**LIMITS, "RLIMIT_NPROC": _THREADS if alone else _others(self._user()) + _THREADS_BESIDES}

    def _setup(self, process: Process) -> Setup:
        walled = "bubblewrap" in self.layers
        return {
            "layers": self.layers,
            "user": None if walled else self._user(),
            "result": process.result,
            "keep": process.keep,
            "parent": 0 if walled else os.getpid(),
            "limits": tuple(self._limits().items()),
            "rules": machine.find_interpreter().rules,
            "filter": seccomp_program(os.uname().machine) if "seccomp" in self.layers else b"",
        }

    def _faults(self, report: bytes) -> list[str]:
        """Return the protections of the tier that the harness's report lacks."""
        if self.tier == "unsafe":
            return []
        try:
            account = decode(report.decode("ascii"))
        except ValueError as error:
            return [f"its report cannot be read ({error})"]
        spaces = None
        if self.tier == "full":
            spaces = {}
            for name in SPACES:
                spaces[name] = str(Path(f"/proc/self/ns/{name}").readlink())
        return faults(account, limits=self._limits(), user=machine.nobody(), spaces=spaces)


def _frame(value: Any) -> bytes:
    data = marshal.dumps(value)
    return len(data).to_bytes(8, "big") + data


@functools.cache
def _program() -> Any:
    """Return the compiled harness; the same interpreter runs it."""
    return compile(Path(harness.__file__).read_text(), "<harness>", "exec", dont_inherit=True)


@functools.cache
def _others(user: tuple[int, int] | None) -> int:
    """Count, once per run, the threads of the user that runs the code."""
    return machine.tasks_of(user[0] if user is not None else os.getuid())
