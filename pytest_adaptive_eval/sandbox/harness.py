"""What runs inside the sandbox: it locks itself down, tells how it is locked, and only then is given code to run.

A fresh interpreter gets this module, compiled, over its standard input; nothing
of the package is there.  It imports as little as it can, since every start
pays for it.  Until the foreign code arrives it can be trusted, afterwards
nothing that the process says can: its answers are values, which the parent
reads strictly and compares with what it alone knows.
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
        """What the parent tells a process of root's that is to start another behind walls."""

        command: tuple[str, ...]
        user: tuple[int, int] | None  # uid and gid to become
        folder: str  # that this user must be able to reach
        barrier: str  # the folder above it which is closed to others, or empty

    class Setup(TypedDict):
        """What the parent tells the harness before anything is locked."""

        layers: frozenset[str]  # what to do
        user: tuple[int, int] | None  # uid and gid to become
        result: int  # the descriptor for messages
        keep: int  # another one to leave open, or -1
        parent: int  # the process to die with, or 0
        limits: tuple[tuple[str, int], ...]  # names of `resource` and how much
        rules: tuple[tuple[str, bool | None], ...]  # readable: a whole folder, a file (False), a folder's list (None)
        filter: bytes  # the seccomp program


__all__ = ["BOOT", "DEPTH", "LIMIT", "NAME", "encode", "launch", "main"]

#: Most characters of one message of results, and how deep values may be nested.
LIMIT = 4_000_000
DEPTH = 100
#: The name under which the child runs this module, and that of the module which the foreign code becomes.
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
    """A value as JSON text that tells types apart, the same for equal values of one type.

    Dictionaries and sets are sorted by what their members look like, negative
    zero becomes zero, and subclasses of the builtin types become these.

    Raises
    ------
    TypeError
        A type that has no such form.
    ValueError
        More than `limit` characters, or nested deeper than `DEPTH`.
    """
    left = limit

    def spend(piece: str) -> str:
        nonlocal left
        left -= len(piece)
        if left < 0:
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
                pairs = [(write(k, depth + 1), write(v, depth + 1)) for k, v in dict.items(value)]
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


def _landlock(rules: tuple[tuple[str, bool | None], ...], call: Callable[..., int]) -> int:
    """A Landlock ruleset that refuses everything the kernel can refuse but reading `rules`; its descriptor."""
    version = call(444, None, 0, 1)
    if version < 1:
        raise OSError("this kernel has no Landlock")
    files = (1 << (13, 14, 15, 15, 16)[min(version, 5) - 1]) - 1
    ports = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    attributes = b"".join(word.to_bytes(8, sys.byteorder) for word in (files, ports, scopes))
    ruleset = call(444, attributes, 8 if version < 4 else 16 if version < 6 else 24, 0)
    if ruleset < 0:
        raise OSError("the Landlock ruleset was refused")
    read_file, read_folder = 1 << 2, 1 << 3
    for path, folder in rules:
        try:
            there = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        access = read_file if folder is False else read_folder if folder is None else read_file | read_folder
        rule = access.to_bytes(8, sys.byteorder) + there.to_bytes(4, sys.byteorder)
        if call(445, ruleset, 1, rule, 0):
            raise OSError(f"the Landlock rule for {path} was refused")
        os.close(there)
    return ruleset


def _become(user: int, group: int) -> None:
    """Give up being root, for good."""
    try:
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    except OSError as error:
        why = error.strerror
        raise OSError(f"root may not become user {user} here ({why}); start as an ordinary user") from None


def _lock(setup: Setup) -> tuple[int, str]:
    """Give up everything that `setup` names; the descriptor for messages, and how the process is locked now."""
    import ctypes
    import resource

    layers = setup["layers"]
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: Any) -> int:
        """A system call; whole machine words, so that no argument is cut."""
        words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
        return int(libc.syscall(ctypes.c_long(number), *words))

    def prctl(option: int, *arguments: Any) -> int:
        words = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
        return int(libc.prctl(option, *words, *[ctypes.c_ulong(0)] * (4 - len(words))))

    status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
    spaces = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "mnt", "net", "pid", "user", "uts")}
    ruleset = _landlock(setup["rules"], call) if "landlock" in layers else -1
    if setup["user"] is not None:
        _become(*setup["user"])
    if "undumpable" in layers and prctl(4, 0):
        raise OSError("PR_SET_DUMPABLE was refused")
    if setup["parent"]:
        prctl(1, 9)
        if os.getppid() != setup["parent"]:
            os._exit(3)
    if "no_new_privs" in layers and prctl(38, 1):
        raise OSError("PR_SET_NO_NEW_PRIVS was refused")
    dumpable = prctl(3)

    taken = {0, 1, 2, status, ruleset, setup["keep"], setup["result"]}
    result = next(n for n in (*os.urandom(64), 63, 62, 61, 60, 59, 58, 57) if 9 < n < 64 and n not in taken)
    os.dup2(setup["result"], result, inheritable=False)
    if "descriptors" in layers:
        kept = sorted({2, status, ruleset, setup["keep"], result} - {-1})
        for low, high in zip(kept, [*kept[1:], 1 << 20], strict=True):
            os.closerange(low + 1, high)
    if "rlimits" in layers:
        for name, most in setup["limits"]:
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (most, most))
    if "landlock" in layers:
        if call(446, ruleset, 0):
            raise OSError("Landlock was refused")
        os.close(ruleset)
    if "seccomp" in layers:
        program = ctypes.create_string_buffer(setup["filter"], len(setup["filter"]))
        head = (len(setup["filter"]) // 8).to_bytes(8, sys.byteorder) + ctypes.addressof(program).to_bytes(
            8, sys.byteorder
        )
        if prctl(22, 2, head):
            raise OSError("the seccomp filter was refused")

    def fails(act: Callable[[], Any]) -> int:
        """The error number with which the kernel refuses, 0 where it does not."""
        ctypes.set_errno(0)
        try:
            done = act()
        except OSError as error:
            return error.errno or 0
        return ctypes.get_errno() if done == -1 else 0

    def is_open(fd: int) -> bool:
        return not fails(lambda: os.fstat(fd))

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    report = {
        "status": os.pread(status, 1 << 16, 0).decode("ascii", "replace"),
        "descriptors": [n for n in range(256) if n not in (status, result, setup["keep"]) and is_open(n)],
        "environment": sorted(os.environ),
        "limits": {name: resource.getrlimit(getattr(resource, name))[0] for name, _ in setup["limits"]},
        "spaces": spaces,
        "dumpable": dumpable,
        "refused": {
            "read": fails(lambda: os.open("/", os.O_RDONLY)),
            "write": fails(lambda: os.open("/", os.O_WRONLY)),
            "socket": fails(lambda: libc.socket(2, 1, 0)),
            "signal": fails(lambda: libc.kill(os.getpid(), 0)),
            "execute": fails(lambda: os.execv("/nothing", ["nothing"])),
            "fork": fails(fork),
        },
    }
    os.close(status)
    os.environ.clear()
    return result, encode(report)


def _reveal(folder: str, barrier: str) -> None:
    """Make `folder` reachable, for this process only, in a view of the files in which `barrier` holds nothing else."""
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
    """Stop being root and become the command that builds the walls of the full tier, which takes the rest of the input.

    Parameters
    ----------
    start : Start
        As a dictionary.  An interpreter in a folder that only root may enter,
        such as ``/root/.pyenv``, is made visible first.
    """
    if start["barrier"]:
        _reveal(start["folder"], start["barrier"])
    if start["user"] is not None:
        _become(*start["user"])
    os.execv(start["command"][0], start["command"])


def _text(value: Any, most: int) -> str:
    """What an object says about itself, whatever it does when asked."""
    try:
        return str.__str__(str(value))[:most]
    except BaseException:
        return "?"


def _outcome(code: str, function: str, arguments: list[bytes]) -> str:
    """Run the foreign code and call its function: ``["answers",[..]]`` or ``["broken",kind,message]`` as JSON."""
    import marshal

    def failed(word: str, error: BaseException) -> str:
        return encode((word, _text(type(error).__name__, 100), _text(error, 500)))

    module = type(sys)(_ANSWER)
    sys.modules[_ANSWER] = module
    try:
        exec(compile(code, f"<{_ANSWER}>", "exec", dont_inherit=True), module.__dict__)
        wanted = module.__dict__.get(function)
        if not callable(wanted):
            raise NameError(f"there is no function {function}")
    except BaseException as error:
        return failed("broken", error)
    out = []
    left = LIMIT
    for packed in arguments:
        try:
            piece = f'["tuple",["value",{encode(wanted(*marshal.loads(packed)), max(left, 0))}]]'
        except BaseException as error:
            piece = failed("failure", error)
        left -= len(piece)
        out.append(piece)
    text = f'["tuple",["answers",["list",[{",".join(out)}]]]]'
    return text if len(text) <= LIMIT else encode(("broken", "ValueError", f"results of more than {LIMIT} characters"))


def main(setup: Setup, load: Callable[[], Any]) -> None:
    """Lock, tell, take the code, run it, answer, and leave without a trace.

    Parameters
    ----------
    setup : Setup
        What to give up.
    load : callable
        Reads the next object from the parent.
    """
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


if __name__ == NAME:  # with these two names, as BOOT has put them there
    if "command" in setup:  # type: ignore[name-defined]  # noqa: F821
        launch(setup)  # type: ignore[name-defined]  # noqa: F821
    main(setup, load)  # type: ignore[name-defined]  # noqa: F821
