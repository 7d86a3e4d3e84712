"""The allow-list of system calls in the sandbox, as a program for the kernel's seccomp filter.

Everything that is not named here fails with EPERM: processes, sockets, signals, files to write, namespaces, keys, rings
and whatever the kernel learns next. Files are opened for reading only, and ``clone`` makes threads only.
"""

from __future__ import annotations

import errno
import functools
import struct
from types import MappingProxyType

#: Name: numbers on x86_64 and aarch64, -1 where the machine has no such call.
_CALLS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "mmap": (9, 222), "munmap": (11, 215), "brk": (12, 214),
    "futex": (202, 98), "fstat": (5, 80), "newfstatat": (262, 79), "lseek": (8, 62), "pread64": (17, 67),
    "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233), "getdents64": (217, 61), "stat": (4, -1),
    "lstat": (6, -1), "statx": (332, 291), "readv": (19, 65), "writev": (20, 66), "access": (21, -1),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, -1), "readlinkat": (267, 78),
    "getcwd": (79, 17), "dup": (32, 23), "dup2": (33, -1), "dup3": (292, 24), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, -1), "times": (100, 153),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "getcpu": (309, 168), "poll": (7, -1), "ppoll": (271, 73), "select": (23, -1), "pselect6": (270, 72),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128), "getrusage": (98, 165), "getrlimit": (97, 163), "sysinfo": (99, 179),
    "uname": (63, 160), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "set_robust_list": (273, 99), "set_tid_address": (218, 96),
    "rseq": (334, 293), "membarrier": (324, 283), "getrandom": (318, 278), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip

#: What an argument must be like: no bit of a mask, some bit of it, one of some numbers, or null.
_Check = tuple[str, int, int | tuple[int, ...]]

#: open: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_ASYNC, O_PATH and O_TMPFILE are refused.
_NOT_READING = 0x3 | 0x40 | 0x200 | 0x2000 | 0x200000 | 0x400000
_CLONE_THREAD = 0x10000
#: Every CLONE_NEW* flag, CLONE_PTRACE, CLONE_VFORK and CLONE_PARENT.
_NOT_THREADS = 0x7E020000 | 0x2000 | 0x4000 | 0x8000
_IOCTLS = (0x5401, 0x5450, 0x5451)  # TCGETS (isatty), FIONCLEX, FIOCLEX
_FCNTLS = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC: no owner, no signal, no pipe size
#: Name: numbers, and what its arguments must be like.
_CHECKED: dict[str, tuple[tuple[int, int], tuple[_Check, ...]]] = {
    "openat": ((257, 56), (("none of", 2, _NOT_READING),)),
    "open": ((2, -1), (("none of", 1, _NOT_READING),)),
    "clone": ((56, 220), (("none of", 0, _NOT_THREADS), ("some of", 0, _CLONE_THREAD))),
    "ioctl": ((16, 29), (("among", 1, _IOCTLS),)),
    "fcntl": ((72, 25), (("among", 1, _FCNTLS),)),
    "prlimit64": ((302, 261), (("among", 0, (0,)), ("null", 2, 0))),
}
#: clone3 hides its flags from filters; told that it does not exist, the C library takes clone.
_CLONE3 = 435

#: Machine, as ``os.uname`` says it: column in the tables, and the architecture that the kernel reports.
MACHINES = MappingProxyType({"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)})

_LOAD, _EQUAL, _SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


def _instruction(code: int, k: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, k)


def _conditions(checks: tuple[_Check, ...]) -> list[bytes]:
    """Return instructions that allow the call if all `checks` hold, and refuse it otherwise."""
    steps: list[tuple[int, int, int | None, int | None]] = []  # None: refuse
    for word, argument, operand in checks:
        low = _ARGUMENTS + 8 * argument
        steps.append((_LOAD, low, 0, 0))
        if isinstance(operand, tuple):
            for i, value in enumerate(operand[:-1]):
                steps.append((_EQUAL, value, len(operand) - 1 - i, 0))
            steps.append((_EQUAL, operand[-1], 0, None))
        elif word == "null":
            steps += [(_EQUAL, 0, 0, None), (_LOAD, low + 4, 0, 0), (_EQUAL, 0, 0, None)]
        else:
            steps.append((_SET, operand, None, 0) if word == "none of" else (_SET, operand, 0, None))
    refuse = len(steps) + 1
    out = []
    for i, (code, k, then, otherwise) in enumerate(steps):
        out.append(_instruction(code, k, *(refuse - i - 1 if jump is None else jump for jump in (then, otherwise))))
    return [*out, _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _ERRNO | errno.EPERM)]


@functools.cache
def seccomp_program(machine: str) -> bytes:
    """Return the filter for a machine, an array of ``struct sock_filter``.

    Raises:
        KeyError: The system calls of that machine are unknown.
    """
    column, architecture = MACHINES[machine]
    out = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    for numbers in _CALLS.values():
        if numbers[column] >= 0:
            out += [_instruction(_EQUAL, numbers[column], 0, 1), _instruction(_RETURN, _ALLOW)]
    for numbers, checks in _CHECKED.values():
        if numbers[column] >= 0:
            body = _conditions(checks)
            out += [_instruction(_EQUAL, numbers[column], 0, len(body)), *body]
    out += [_instruction(_EQUAL, _CLONE3, 0, 1), _instruction(_RETURN, _ERRNO | errno.ENOSYS)]
    out.append(_instruction(_RETURN, _ERRNO | errno.EPERM))
    return b"".join(out)
