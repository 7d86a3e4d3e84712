"""Find the interpreter, kernel features, bubblewrap and user that the sandbox needs on this machine."""

from __future__ import annotations

import ast
import ctypes
import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox.filter import MACHINES

#: All that a program in the sandbox finds in its environment at first; the order of sets of strings is fixed.
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
#: No site packages, nothing from the working directory or the user, no compiled files written.
OPTIONS = ("-s", "-S", "-P", "-B")
#: Modules of the standard library that load other libraries, which must then be readable.
_LINKED = (
    "_bz2", "_ctypes", "_decimal", "_elementtree", "_hashlib", "_lzma", "_sqlite3", "_ssl", "_uuid", "_zstd", "zlib",
)  # fmt: skip
_SURVEY = f"""
import importlib, sys
for name in {_LINKED}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
with open("/proc/self/maps") as maps:
    files = {{line.split(None, 5)[5].strip() for line in maps if "/" in line}}
print(repr((sys.path, sys.prefix, sorted(files))))
"""
_NOT_THE_LIBRARY = frozenset({"site-packages", "dist-packages", "test", "idlelib", "ensurepip"})
_LANDLOCK_CREATE, _LANDLOCK_VERSION = 444, 1


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs foreign code: the one that runs this, without its packages.

    Args:
        rules: What it must be able to read: files (False), whole folders (True) and the lists of folders (None).
        barrier: The first folder above it that other users may not enter, or empty.
    """

    executable: str
    prefix: str
    rules: tuple[tuple[str, bool | None], ...]
    barrier: str
    environment: tuple[tuple[str, str], ...]


@functools.cache
def find_interpreter() -> Interpreter:
    """Return the base interpreter, outside any virtual environment, and the files that it reads.

    Raises:
        SandboxUnavailable: It does not start without its environment, or the sandbox's user cannot reach its library.
    """
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    # the loader finds a shared libpython by this variable
    lines = Path("/proc/self/maps").read_text().splitlines()
    shared = []
    for line in lines:
        if "/libpython" in line:
            shared.append(line.split(None, 5)[5].strip())
    if shared:
        environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": str(Path(shared[0]).parent)}
    else:
        environment = ENVIRONMENT
    module_path, prefix, files = _survey(executable, environment)
    above = (*reversed(Path(prefix).parents), Path(prefix))
    barrier = next((str(folder) for folder in above if not folder.stat().st_mode & 0o001), "")
    if barrier and nobody() is not None and not Path(executable).is_relative_to(prefix):
        raise SandboxUnavailable(
            f"others may not enter {barrier}, where the library of {executable} lies; chmod o+x {barrier}, "
            "or use an interpreter whose program and library lie in one folder"
        )
    rules = tuple(_reading_rules(module_path, files).items())
    return Interpreter(executable, prefix, rules, barrier, tuple(environment.items()))


def _survey(executable: str, environment: dict[str, str]) -> tuple[list[str], str, list[str]]:
    """Return the interpreter's module path, its prefix, and the files that it maps."""
    try:
        process = subprocess.run(
            [executable, *OPTIONS, "-c", _SURVEY],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        module_path, prefix, files = ast.literal_eval(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError, SyntaxError) as error:
        stderr = (getattr(error, "stderr", "") or "").strip().splitlines()
        raise SandboxUnavailable(
            f"the interpreter {executable} does not start with an empty environment "
            f"({stderr[-1] if stderr else error}); install one that does"
        ) from error
    return module_path, prefix, files


def _reading_rules(module_path: list[str], files: list[str]) -> dict[str, bool | None]:
    """Return the paths that the interpreter must read, as in `Interpreter.rules`."""
    rules: dict[str, bool | None] = {}
    for folder in map(Path, module_path):
        if folder.is_file():
            rules[str(folder)] = False
        elif folder.is_dir() and str(folder) not in rules:
            rules[str(folder)] = None
            rules |= {str(p): p.is_dir() for p in sorted(folder.iterdir()) if p.name not in _NOT_THE_LIBRARY}
    rules |= {name: False for name in files if Path(name).is_file()}
    if Path("/usr/share/zoneinfo").is_dir():
        rules["/usr/share/zoneinfo"] = True
    if Path("/etc/ld.so.cache").is_file():
        rules["/etc/ld.so.cache"] = False
    return rules


def require_linux() -> None:
    """Check that this is Linux.

    Raises:
        SandboxUnavailable: It is not.
    """
    if sys.platform != "linux":
        raise SandboxUnavailable(
            f"running code from a model needs Linux, not {sys.platform}; use a Linux machine or container"
        )


def require_kernel(advice: str) -> None:
    """Check that this system can lock a process up at all.

    Args:
        advice: What to do where it cannot.

    Raises:
        SandboxUnavailable: Not a machine whose system calls are known, or no Landlock.
    """
    machine = os.uname().machine
    if machine not in MACHINES or sys.maxsize < 2**32 or sys.byteorder != "little":
        raise SandboxUnavailable(
            f"unknown system calls on {machine}; expected a machine of type {' or '.join(MACHINES)}; {advice}"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), None, ctypes.c_long(0), ctypes.c_long(_LANDLOCK_VERSION)) < 1:
        raise SandboxUnavailable(
            f"the kernel offers no Landlock ({os.strerror(ctypes.get_errno())}); it needs Linux 5.13 or newer with "
            f"landlock in the boot option lsm=, and a container runtime that lets it through; {advice}"
        )


def nobody() -> tuple[int, int] | None:
    """Return the uid and gid to switch to, or None if this process is not root."""
    import pwd

    if os.geteuid() != 0 and os.getuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return 65534, 65534
    if entry.pw_uid and entry.pw_gid:
        return (entry.pw_uid, entry.pw_gid)
    return (65534, 65534)


def tasks_of(user: int) -> int:
    """Count the visible threads of all processes of a user."""
    count = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if folder.stat().st_uid == user:
                    count += (folder / "task").stat().st_nlink - 2
            except OSError:
                continue
    return count


def _libraries() -> list[str]:
    """Return the options that show the system's libraries."""
    options = []
    for name in ("/lib", "/lib32", "/lib64"):
        if Path(name).is_symlink():
            options += ["--symlink", str(Path(name).readlink()), name]
        elif Path(name).is_dir():
            options += ["--ro-bind", name, name]
    return options


@functools.cache
def bubblewrap(interpreter: Interpreter) -> tuple[str, ...]:
    """Return the bubblewrap command of the full tier; append the command to isolate.

    The file system is read-only as a whole: ``/usr``, the interpreter, a fresh ``/proc``, and nothing else.

    Raises:
        SandboxUnavailable: It is not installed.
    """
    program = shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin:/bin")
    if program is None:
        raise SandboxUnavailable("bubblewrap is not installed; install it (apt-get install bubblewrap)")
    command = [os.path.realpath(program), "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net"]
    command += ["--unshare-uts", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr"]
    command += _libraries()
    bound = ["/usr", "/lib", "/lib32", "/lib64"]
    needed = [interpreter.prefix, *sorted({str(Path(path).parent) for path, _ in interpreter.rules})]
    for folder in (*needed, str(Path(interpreter.executable).parent)):
        if folder != "/etc" and not any(Path(folder).is_relative_to(there) for there in bound):
            command += ["--ro-bind", folder, folder]
            bound.append(folder)
    if Path("/etc/ld.so.cache").is_file():
        command += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    return (*command, "--proc", "/proc", "--remount-ro", "/", "--chdir", "/", "--")
