"""Attempt forbidden operations; the sandbox's self-check runs this module as foreign code."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the C library that returns -1 on failure."""
    if getattr(_LIBC, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _environment() -> None:
    if not os.environ:
        raise OSError


def _socket(family: int, kind: int) -> Callable[[], None]:
    return lambda: socket.socket(family, kind).close()


def _open(path: str, flags: int = os.O_RDONLY) -> Callable[[], None]:
    return lambda: os.close(os.open(path, flags))


def attempts(parent: int) -> list[str]:
    """Return the names of the forbidden operations that succeeded."""
    tries: dict[str, Callable[[], Any]] = {
        "list the root folder": lambda: os.listdir("/"),
        "read /etc/passwd": _open("/etc/passwd"),
        "read /proc/self/environ": _open("/proc/self/environ"),
        "read the parent's memory map": _open(f"/proc/{parent}/maps"),
        "open /dev/tty": _open("/dev/tty"),
        "make a file in /tmp": _open("/tmp/adaptive-eval-probe", os.O_CREAT | os.O_WRONLY),
        "make a file in the working folder": _open("adaptive-eval-probe", os.O_CREAT | os.O_WRONLY),
        "make a nameless file": _open("/tmp", getattr(os, "O_TMPFILE", 0o20200000) | os.O_WRONLY),
        "make a folder": lambda: os.mkdir("/tmp/adaptive-eval-probe-folder"),
        "make a link": lambda: os.symlink("/", "/tmp/adaptive-eval-probe-link"),
        "change a mode": lambda: os.chmod("/", 0o755),
        "change a time": lambda: os.utime("/"),
        "fork": _fork,
        "execute": lambda: os.execv("/usr/bin/env", ["env"]),
        "signal the parent": lambda: os.kill(parent, 0),
        "signal its group": lambda: os.killpg(0, 0),
        "speak TCP": _socket(socket.AF_INET, socket.SOCK_STREAM),
        "speak UDP": _socket(socket.AF_INET, socket.SOCK_DGRAM),
        "speak to local processes": _socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "a pair of sockets": socket.socketpair,
        "unshare a namespace": lambda: _call("unshare", 0x10000000),
        "mount": lambda: _call("mount", b"none", b"/", None, ctypes.c_ulong(0x44000), None),
        "trace": lambda: _call("ptrace", ctypes.c_long(16), ctypes.c_long(parent), None, None),
        "become root": lambda: os.setuid(0),
        "a file in memory": lambda: _call("memfd_create", b"probe", 0),
        "make a ring": lambda: _call("syscall", ctypes.c_long(425), ctypes.c_long(4), ctypes.create_string_buffer(120)),
        "change the limits": lambda: _call("setrlimit", 0, (ctypes.c_ulong * 2)(1, 1)),
        "read the environment": _environment,
    }
    done = []
    for name, attempt in tries.items():
        try:
            attempt()
        except OSError:
            continue
        done.append(name)
    return done
