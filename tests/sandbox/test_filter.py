"""The seccomp filter, run by a small model of the kernel's machine, for both processors."""

from __future__ import annotations

import errno
import os
import re
import struct
from pathlib import Path

import pytest

from pytest_adaptive_eval.extensions.sandbox.filter import _CALLS, _CHECKED, MACHINES, seccomp_program

ALLOW, KILL, REFUSE, MISSING = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
COLUMN = {"x86_64": 0, "aarch64": 1}


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter answers."""
    program = list(struct.iter_unpack("=HBBI", seccomp_program(machine)))
    words = [*(a & (2**64 - 1) for a in arguments), *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture or MACHINES[machine][1], 0, *words)
    at = accumulator = 0
    while True:
        code, then, otherwise, k = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif code == 0x15:
            at += then if accumulator == k else otherwise
        elif code == 0x45:
            at += then if accumulator & k else otherwise
        else:
            assert code == 0x06
            return int(k)


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def number(machine: str, name: str) -> int:
    return (_CALLS.get(name) or _CHECKED[name][0])[COLUMN[machine]]


def test_only_what_is_listed_is_allowed(machine: str) -> None:
    allowed = {numbers[COLUMN[machine]] for numbers in _CALLS.values()} - {-1}
    checked = {numbers[COLUMN[machine]] for numbers, _ in _CHECKED.values()} - {-1}
    for n in (*range(700), 2**31 - 1, 0x40000000, 0x40000001, 2**32 - 1):
        if n in checked:
            continue
        assert verdict(machine, n) == (ALLOW if n in allowed else MISSING if n == 435 else REFUSE), n
    assert len(seccomp_program(machine)) // 8 < 4096


def test_other_architectures_end_the_process(machine: str) -> None:
    for architecture in (0x40000003, 0x40000028, *(a for _, a in MACHINES.values() if a != MACHINES[machine][1])):
        assert verdict(machine, number(machine, "read"), architecture=architecture) == KILL


@pytest.mark.parametrize("flags", [0, os.O_CLOEXEC, os.O_NONBLOCK, 0o200000, os.O_NOCTTY])
def test_files_are_opened_for_reading(machine: str, flags: int) -> None:
    assert verdict(machine, number(machine, "openat"), -100, 0, flags) == ALLOW


@pytest.mark.parametrize(
    "flags",
    [os.O_WRONLY, os.O_RDWR, 3, os.O_CREAT, os.O_TRUNC, os.O_APPEND | os.O_WRONLY, 0o20200000, os.O_PATH, 0x2000],
)
def test_files_are_not_opened_for_writing(machine: str, flags: int) -> None:
    assert verdict(machine, number(machine, "openat"), -100, 0, flags | os.O_CLOEXEC) == REFUSE
    if machine == "x86_64":
        assert verdict(machine, number(machine, "open"), 0, flags) == REFUSE


def test_clone_makes_threads_only(machine: str) -> None:
    clone = number(machine, "clone")
    assert verdict(machine, clone, 0x3D0F00) == ALLOW
    assert verdict(machine, clone, 0x7D0F00) == ALLOW
    for flags in (17, 0, 0x4111, 0x3C0F00):
        assert verdict(machine, clone, flags) == REFUSE
    for bit in (0x20000, *(1 << n for n in range(25, 31)), 0x2000, 0x4000, 0x8000):
        assert verdict(machine, clone, 0x3D0F00 | bit) == REFUSE


def test_descriptors_send_no_signals(machine: str) -> None:
    for command in range(2000):
        expected = ALLOW if command in (0, 1, 2, 3, 1030) else REFUSE
        assert verdict(machine, number(machine, "fcntl"), 0, command) == expected
    for command in (0x5412, 0x5414, 0x540E, 0x5421, 0x5452, 0):
        assert verdict(machine, number(machine, "ioctl"), 0, command) == REFUSE
    assert verdict(machine, number(machine, "ioctl"), 0, 0x5401) == ALLOW


def test_limits_are_read_only(machine: str) -> None:
    limits = number(machine, "prlimit64")
    assert verdict(machine, limits, 0, 7, 0, 1) == ALLOW
    assert verdict(machine, limits, 1, 7, 0, 1) == REFUSE
    assert verdict(machine, limits, 0, 7, 1, 0) == REFUSE
    assert verdict(machine, limits, 0, 7, 1 << 32, 0) == REFUSE


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        seccomp_program("riscv64")


@pytest.mark.parametrize(
    ("column", "header"),
    [(0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (1, "/usr/include/asm-generic/unistd.h")],
)
def test_the_numbers_are_those_of_the_kernels_headers(column: int, header: str) -> None:
    if not Path(header).is_file():
        pytest.skip("no kernel headers")
    found = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", Path(header).read_text(), re.MULTILINE))
    found.setdefault("newfstatat", found.get("fstatat", ""))
    ours = {**_CALLS, **{name: numbers for name, (numbers, _) in _CHECKED.items()}}
    for name, numbers in ours.items():
        assert found.get(name, "-1") == str(numbers[column]), name
