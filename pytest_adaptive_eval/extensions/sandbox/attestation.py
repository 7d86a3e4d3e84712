"""Check the harness's report that each layer of the lockdown is on."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.extensions.sandbox.machine import ENVIRONMENT

#: Namespaces that bubblewrap makes anew.
SPACES = ("ipc", "mnt", "net", "pid", "user", "uts")
#: With which error each forbidden call must fail: Landlock says EACCES, the filter EPERM.
_REFUSED = {
    "read": errno.EACCES, "write": errno.EPERM, "socket": errno.EPERM, "signal": errno.EPERM, "execute": errno.EPERM,
    "fork": errno.EPERM,
}  # fmt: skip
#: Set by bubblewrap, by the interpreter for the C locale, and for an interpreter in a shared library.
_HARMLESS = frozenset({"PWD", "LC_CTYPE", "LD_LIBRARY_PATH"})


def faults(
    report: Any, *, limits: Mapping[str, int], user: tuple[int, int] | None, spaces: Mapping[str, str] | None
) -> list[str]:
    """Return one sentence per missing protection; empty if foreign code may run in the process.

    Args:
        limits: Resource limits, by their names in `resource`.
        user: The uid and gid that it must have; None for any but root.
        spaces: Namespaces of this process, which the other must not share; None if it shares them.
    """
    try:
        status = dict(line.split(":", 1) for line in report["status"].splitlines() if ":" in line)
        status = {name: value.split() for name, value in status.items()}
        return [*_kernel(status), *_identity(status, user), *_rest(report, limits, spaces)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return [f"its report is not complete ({error!r})"]


def _kernel(status: Mapping[str, list[str]]) -> list[str]:
    expected = {"Seccomp": "2", "NoNewPrivs": "1", "Threads": "1"}
    different = [
        f"{name} is {status[name][0]}, not {value}" for name, value in expected.items() if status[name] != [value]
    ]
    capabilities = []
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(status[name][0], 16):
            capabilities.append(name)
    return [*different, *(f"it has capabilities ({name})" for name in capabilities)]


def _identity(status: Mapping[str, list[str]], user: tuple[int, int] | None) -> list[str]:
    users = set(map(int, status["Uid"]))
    groups = set(map(int, status["Gid"]))
    if user is None:
        if 0 in users:
            return ["it runs as root"]
        return []
    if users != {user[0]} or groups != {user[1]} or status["Groups"]:
        return [f"it runs as uid {sorted(users)}, gid {sorted(groups)}, groups {status['Groups']}, not as {user}"]
    return []


def _rest(report: Mapping[str, Any], limits: Mapping[str, int], spaces: Mapping[str, str] | None) -> list[str]:
    missing = []
    if report["descriptors"] != [0, 1, 2]:
        missing.append(f"it has descriptors {report['descriptors']}")
    more = set(report["environment"]) - set(ENVIRONMENT) - _HARMLESS
    if more:
        missing.append(f"its environment has {len(more)} other names")
    for name, most in limits.items():
        if not 0 <= report["limits"][name] <= most:
            missing.append(f"{name} is {report['limits'][name]}, not {most}")
    if report["dumpable"] != 0:
        missing.append("it can be dumped")
    for name, number in _REFUSED.items():
        if report["refused"][name] != number:
            missing.append(f"{name} gives error {report['refused'][name]}, not {number}")
    return missing + ([] if spaces is None else _shared(report["spaces"], spaces))


def _shared(inside: Mapping[str, str], outside: Mapping[str, str]) -> list[str]:
    return [f"it shares the {name} namespace" for name in SPACES if inside[name] == outside[name]]
