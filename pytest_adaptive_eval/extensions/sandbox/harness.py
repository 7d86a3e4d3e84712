"""The program inside the sandbox: it locks itself down, reports its state, and then receives code to run.

A fresh interpreter reads this module, compiled, from its standard input, without the package. It imports little,
because every start takes that time. Once the foreign code has arrived, nothing that the process writes can be trusted:
its answers are values, which the parent parses strictly and compares with expected values that the process does not
know.
"""

from __future__ import annotations

import os
import sys
from _json import encode_basestring_ascii as _quote

TYPE_CHECKING = False  # importing typing would take longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypedDict

    class Start(TypedDict):
        """Message to a process with root's rights, which gives them up and runs a command; see `launch`."""

        command: tuple[str, ...]
        user: tuple[int, int] | None  # uid and gid to become
        folder: str  # folder that this user must be able to enter
        barrier: str  # folder above it that others may not enter, or empty

    class Setup(TypedDict):
        """Message to the harness before the lockdown."""

        layers: frozenset[str]  # protections to apply
        user: tuple[int, int] | None  # uid and gid to become
        result: int  # descriptor for messages
        keep: int  # another descriptor to keep open, or -1
        parent: int  # process whose end ends this one, or 0
        limits: tuple[tuple[str, int], ...]  # names of `resource` and values
        rules: tuple[tuple[str, bool | None], ...]  # readable: a whole folder, a file (False), a folder's list (None)
        filter: bytes  # the seccomp program


#: Limits of the characters in one message of results, and of the depth of values.
LIMIT = 4_000_000
DEPTH = 100
#: Name of this module in the child, and of the module with the foreign code.
NAME = "__sandbox__"
_ANSWER = "answer"
#: Read a length and a compiled module from standard input, and run it.
BOOT = f"""import marshal,os
def take(n):
    b=b""
    while len(b)<n:
        c=os.read(0,n-len(b))
        if not c:os._exit(3)
        b+=c
    return b
def load():
    return marshal.loads(take(int.from_bytes(take(8),"big")))
s=load()
exec(s[0],{{"__name__":"{NAME}","load":load,"setup":s[1]}})"""


def encode(value: Any, limit: int = LIMIT) -> str:
    """Return a value as JSON text with its type, the same for equal values of one type.

    Dictionaries and sets are sorted by the text of their members, negative zero becomes zero, and a subclass of a
    builtin type becomes that type.

    Raises:
        TypeError: The type has no such form.
        ValueError: More than `limit` characters, or nested deeper than `DEPTH`.
    """
    remaining = limit

    def spend(piece: str) -> str:
        nonlocal remaining
        remaining -= len(piece)
        if remaining < 0:
            raise ValueError(f"a result of more than {limit} characters")
        return piece

    def write(value: Any, depth: int) -> str:
        if value is None or value is True or value is False:
            return spend("null" if value is None else "true" if value else "false")
        if depth > DEPTH:
            raise ValueError(f"a result nested deeper than {DEPTH}")
        for kind in type(value).__mro__:
            if kind is str:
                return spend(_quote(str.__str__(value)))
            if kind in scalars:
                return spend(f'["{kind.__name__}","{scalars[kind](value)}"]')
            if kind is dict:
                pairs = []
                for k, v in dict.items(value):
                    pairs.append((write(k, depth + 1), write(v, depth + 1)))
                return spend('["dict",[') + ",".join([f"[{k},{v}]" for k, v in sorted(pairs)]) + "]]"
            if kind in collections:
                members = [write(v, depth + 1) for v in kind.__iter__(value)]
                if kind in (set, frozenset):
                    members.sort()
                return spend(f'["{kind.__name__}",[') + ",".join(members) + "]]"
        raise TypeError(f"a result of type {type(value).__name__} cannot be compared")

    scalars: dict[type, Callable[[Any], str]] = {
        int: lambda v: int.__format__(v, "x"),
        float: lambda v: float.hex(float.__add__(v, 0.0)),
        bytes: lambda v: bytes.hex(v),
    }
    collections = (list, tuple, set, frozenset)
    return write(value, 0)


def _must_be_zero(result: int, operation: str) -> None:
    if result:
        raise OSError(f"{operation} was refused")


def _landlock(rules: tuple[tuple[str, bool | None], ...], call: Callable[..., int]) -> int:
    """Return the descriptor of a Landlock ruleset that refuses everything except reading the paths in `rules`."""
    version = call(444, None, 0, 1)
    _must_be_zero(version < 1, "Landlock's version")
    files = (1 << (13, 14, 15, 15, 16)[min(version, 5) - 1]) - 1
    ports = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    attributes = b"".join(word.to_bytes(8, sys.byteorder) for word in (files, ports, scopes))
    ruleset = call(444, attributes, 8 if version < 4 else 16 if version < 6 else 24, 0)
    _must_be_zero(min(ruleset, 0), "the Landlock ruleset")
    read_file = 1 << 2
    read_folder = 1 << 3
    for path, folder in rules:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if folder is False:
            access = read_file
        elif folder is None:
            access = read_folder
        else:
            access = read_file | read_folder
        rule = access.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
        _must_be_zero(call(445, ruleset, 1, rule, 0), f"the Landlock rule for {path}")
        os.close(descriptor)
    return ruleset


def _become(user: int, group: int) -> None:
    """Change to an ordinary user for good."""
    try:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    except OSError as error:
        why = error.strerror
        raise OSError(f"root may not become user {user} here ({why}); start as an ordinary user") from None


def _open_descriptors(excluded: set[int]) -> list[int]:
    """Return the open descriptors below 256, except for the harness's own."""
    descriptors = []
    for number in set(range(256)) - excluded:
        try:
            os.fstat(number)
        except OSError:
            continue
        descriptors.append(number)
    return sorted(descriptors)


def _refusals() -> dict[str, int]:
    """Return the error number with which the kernel refuses each forbidden operation, 0 where it does not."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    operations: dict[str, Callable[[], Any]] = {
        "read": lambda: os.open("/", os.O_RDONLY),
        "write": lambda: os.open("/", os.O_WRONLY),
        "socket": lambda: libc.socket(2, 1, 0),
        "signal": lambda: libc.kill(os.getpid(), 0),
        "execute": lambda: os.execv("/nothing", ["nothing"]),
        "fork": fork,
    }
    errors = {}
    for name, operation in operations.items():
        ctypes.set_errno(0)
        try:
            if operation() == -1:
                errors[name] = ctypes.get_errno()
            else:
                errors[name] = 0
        except OSError as error:
            errors[name] = error.errno or 0
    return errors


def _set_limits(limits: tuple[tuple[str, int], ...]) -> None:
    """Set resource limits, by the names of `resource`, or lower ones if the hard limits are lower."""
    import resource

    for name, limit in limits:
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        if hard == resource.RLIM_INFINITY:
            limit = limit
        else:
            limit = min(limit, hard)
        resource.setrlimit(number, (limit, limit))


def _restrict(setup: Setup, prctl: Callable[..., int]) -> None:
    """Set the attributes of the process that `prctl` sets, and tie its life to the parent's."""
    if "undumpable" in setup["layers"]:
        _must_be_zero(prctl(4, 0), "PR_SET_DUMPABLE")
    if setup["parent"]:
        prctl(1, 9)
        if os.getppid() != setup["parent"]:
            os._exit(3)
    if "no_new_privs" in setup["layers"]:
        _must_be_zero(prctl(38, 1), "PR_SET_NO_NEW_PRIVS")


def _move_result(descriptor: int, used: set[int]) -> int:
    """Duplicate the descriptor for messages to a random free number from 10 to 63, and return that."""
    number: int = next(n for n in (*os.urandom(64), 63, 62, 61, 60, 59, 58, 57) if 9 < n < 64 and n not in used)
    os.dup2(descriptor, number, inheritable=False)
    return number


def _close_others(needed: set[int]) -> None:
    kept_open = sorted({2, *needed} - {-1})
    for low, high in zip(kept_open, [*kept_open[1:], 1 << 20], strict=True):
        os.closerange(low + 1, high)


def _filter_calls(program: bytes, prctl: Callable[..., int]) -> None:
    """Apply a seccomp filter to the system calls of this process."""
    import ctypes

    memory = ctypes.create_string_buffer(program, len(program))
    head = (len(program) // 8).to_bytes(8, sys.byteorder) + ctypes.addressof(memory).to_bytes(8, sys.byteorder)
    _must_be_zero(prctl(22, 2, head), "the seccomp filter")


def _lock(setup: Setup) -> tuple[int, str]:
    """Apply the protections in `setup`; return the descriptor for messages, and the report of the state as text."""
    import ctypes
    import resource

    layers = setup["layers"]
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: Any) -> int:
        """Make a system call with whole machine words, which truncates no argument."""
        words = []
        for a in arguments:
            words.append(ctypes.c_long(a) if isinstance(a, int) else a)
        return int(libc.syscall(ctypes.c_long(number), *words))

    def prctl(option: int, *arguments: Any) -> int:
        words = []
        for a in arguments:
            words.append(ctypes.c_ulong(a) if isinstance(a, int) else a)
        return int(libc.prctl(option, *words, *[ctypes.c_ulong(0)] * (4 - len(words))))

    status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
    spaces = {}
    for name in ("ipc", "mnt", "net", "pid", "user", "uts"):
        spaces[name] = os.readlink(f"/proc/self/ns/{name}")
    if "landlock" in layers:
        ruleset = _landlock(setup["rules"], call)
    else:
        ruleset = -1
    if setup["user"] is not None:
        _become(*setup["user"])
    _restrict(setup, prctl)
    dumpable = prctl(3)
    result = _move_result(setup["result"], {0, 1, 2, status, ruleset, setup["keep"], setup["result"]})
    if "descriptors" in layers:
        _close_others({status, ruleset, setup["keep"], result})
    if "rlimits" in layers:
        _set_limits(setup["limits"])
    if "landlock" in layers:
        _must_be_zero(call(446, ruleset, 0), "Landlock")
        os.close(ruleset)
    if "seccomp" in layers:
        _filter_calls(setup["filter"], prctl)

    report = {
        "status": os.pread(status, 1 << 16, 0).decode("ascii", "replace"),
        "descriptors": _open_descriptors({status, result, setup["keep"]}),
        "environment": sorted(os.environ),
        "limits": {name: resource.getrlimit(getattr(resource, name))[0] for name, _ in setup["limits"]},
        "spaces": spaces,
        "dumpable": dumpable,
        "refused": _refusals(),
    }
    os.close(status)
    os.environ.clear()
    return result, encode(report)


def _reveal(folder: str, barrier: str) -> None:
    """Make `folder` accessible to this process alone, in a mount namespace where `barrier` contains nothing else."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int) -> None:
        if result:
            why = os.strerror(ctypes.get_errno())
            raise OSError(
                f"{barrier} is closed to others ({why}); open it (chmod o+x), or use an interpreter elsewhere"
            )

    def mount(source: str, target: str, kind: bytes | None, flags: int, data: bytes | None = None) -> None:
        check(libc.mount(source.encode(), target.encode(), kind, ctypes.c_ulong(flags), data))

    check(libc.unshare(0x20000))  # CLONE_NEWNS
    mount("none", "/", None, 0x44000)  # MS_REC | MS_PRIVATE
    inside = os.open(folder, os.O_PATH)
    mount("tmpfs", barrier, b"tmpfs", 0x6, b"mode=755,size=64k")  # MS_NOSUID | MS_NODEV
    os.makedirs(folder, exist_ok=True)
    mount(f"/proc/self/fd/{inside}", folder, None, 0x5000)  # MS_BIND | MS_REC
    os.close(inside)


def launch(start: Start) -> None:
    """Change to an ordinary user and become bubblewrap's command, which reads the rest of the input.

    Args:
        start: A dictionary. An interpreter in a folder that only root may enter, such as ``/root/.pyenv``, is made
            accessible first.
    """
    if start["barrier"]:
        _reveal(start["folder"], start["barrier"])
    if start["user"] is not None:
        _become(*start["user"])
    os.execv(start["command"][0], start["command"])


def _text(value: Any, most: int) -> str:
    """Return the text of an object, or ``?`` if that raises an exception."""
    try:
        return str.__str__(str(value))[:most]
    except BaseException:
        return "?"


def _outcome(code: str, function: str, arguments: list[bytes]) -> str:
    """Run foreign code, call its function, and return ``["answers",[..]]`` or ``["broken",kind,message]`` as JSON."""
    import marshal

    def failed(word: str, error: BaseException) -> str:
        return encode((word, _text(type(error).__name__, 100), _text(error, 500)))

    module = type(sys)(_ANSWER)
    sys.modules[_ANSWER] = module
    try:
        exec(compile(code, f"<{_ANSWER}>", "exec", dont_inherit=True), module.__dict__)
        called = module.__dict__.get(function)
        if not callable(called):
            raise NameError(f"missing function {function}")
    except BaseException as error:
        return failed("broken", error)
    out = []
    remaining = LIMIT
    for packed in arguments:
        try:
            piece = f'["tuple",["value",{encode(called(*marshal.loads(packed)), max(remaining, 0))}]]'
        except BaseException as error:
            piece = failed("failure", error)
        remaining -= len(piece)
        out.append(piece)
    text = f'["tuple",["answers",["list",[{",".join(out)}]]]]'
    if len(text) <= LIMIT:
        return text
    return encode(("broken", "ValueError", f"results of more than {LIMIT} characters"))


def main(setup: Setup, load: Callable[[], Any]) -> None:
    """Lock the process, report its state, read the code, run it, answer, and exit."""
    leave, write = os._exit, os.write
    result, report = _lock(setup)

    def send(line: str) -> None:
        rest = line.encode("ascii") + b"\n"
        while rest:
            rest = rest[write(result, rest) :]

    send(report)
    nonce, code, function, arguments = load()
    os.dup2(1, 0)
    os.dup2(1, 2)
    try:
        send(nonce + " " + _outcome(code, function, arguments))
    finally:
        leave(0)


if __name__ == NAME:  # BOOT defines the two names
    if "command" in setup:  # type: ignore[name-defined]  # noqa: F821
        launch(setup)  # type: ignore[name-defined]  # noqa: F821
    main(setup, load)  # type: ignore[name-defined]  # noqa: F821
