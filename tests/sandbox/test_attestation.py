"""The account that a locked process gives of itself: every part of it counts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_adaptive_eval.extensions.sandbox.attestation import SPACES, faults

STATUS = """Name:\tpython
Uid:\t{uid}\t{uid}\t{uid}\t{uid}
Gid:\t{uid}\t{uid}\t{uid}\t{uid}
Groups:\t
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t000001ffffffffff
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
Threads:\t1
"""
REPORT: dict[str, Any] = {
    "status": STATUS.format(uid=65534),
    "descriptors": [0, 1, 2],
    "environment": ["LC_ALL", "PYTHONHASHSEED", "PYTHONUTF8"],
    "limits": {"RLIMIT_CPU": 5, "RLIMIT_AS": 1000},
    "spaces": {name: f"{name}:[2]" for name in SPACES},
    "dumpable": 0,
    "refused": {"read": 13, "write": 1, "socket": 1, "signal": 1, "execute": 1, "fork": 1},
}
OURS = {name: f"{name}:[1]" for name in SPACES}
LIMITS = {"RLIMIT_CPU": 5, "RLIMIT_AS": 2000}


def judged(report: Any, user: tuple[int, int] | None = (65534, 65534), spaces: Any = OURS) -> list[str]:
    return faults(report, limits=LIMITS, user=user, spaces=spaces)


def test_a_locked_process_has_no_faults() -> None:
    assert judged(REPORT) == []
    assert judged(REPORT | {"status": STATUS.format(uid=1000)}, user=None) == []
    assert judged(REPORT | {"spaces": OURS}, spaces=None) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Seccomp:\t2", "Seccomp:\t0", "Seccomp is 0, not 2"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "NoNewPrivs is 0, not 1"),
        ("Threads:\t1", "Threads:\t2", "Threads is 2, not 1"),
        ("CapEff:\t0000000000000000", "CapEff:\t0000000000000001", "it has capabilities (CapEff)"),
        ("Uid:\t65534", "Uid:\t0", "it runs as uid [0, 65534]"),
        ("Gid:\t65534", "Gid:\t0", "gid [0, 65534]"),
        ("Groups:\t", "Groups:\t998", "groups ['998']"),
        ("Seccomp:", "Other:", "its report is not complete"),
    ],
)
def test_the_kernels_word_counts(old: str, new: str, fault: str) -> None:
    (found,) = judged(REPORT | {"status": REPORT["status"].replace(old, new, 1)})
    assert fault in found


def test_root_is_a_fault_even_where_nobody_must_be_become() -> None:
    assert judged(REPORT | {"status": STATUS.format(uid=0)}, user=None) == ["it runs as root"]


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("descriptors",), [0, 1, 2, 7], "it has descriptors [0, 1, 2, 7]"),
        (("descriptors",), [0, 1], "it has descriptors [0, 1]"),
        (("environment",), ["SECRET"], "its environment has 1 other names"),
        (("limits", "RLIMIT_CPU"), 6, "RLIMIT_CPU is 6, not 5"),
        (("limits", "RLIMIT_AS"), -1, "RLIMIT_AS is -1, not 2000"),
        (("dumpable",), 1, "it can be dumped"),
        (("refused", "read"), 0, "read gives error 0, not 13"),
        (("refused", "fork"), 0, "fork gives error 0, not 1"),
        (("refused", "write"), 13, "write gives error 13, not 1"),
        (("spaces", "net"), "net:[1]", "it shares the net namespace"),
    ],
)
def test_every_part_counts(path: tuple[str, ...], value: Any, fault: str) -> None:
    report: Any = copy.deepcopy(REPORT)
    inner = report
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert judged(report) == [fault]


@pytest.mark.parametrize(
    "report", [None, [], {}, "x", {"status": 1}, {**REPORT, "limits": []}, {**REPORT, "refused": {}}]
)
def test_half_an_account_is_a_fault(report: Any) -> None:
    assert judged(report)
    assert "not complete" in judged(report)[-1]
