"""Hostile programs are held: each of them in each tier that this machine has."""

from __future__ import annotations

import os

import pytest
from escape import other_interpreter, suite, suite_as
from hostile import NOT_HELD_BY_LOCKDOWN, PROGRAMS

from conftest import opened  # type: ignore[attr-defined]  # mypy reads the conftest of the root
from pytest_adaptive_eval.extensions.sandbox import Sandbox

pytestmark = pytest.mark.slow

EVERYTHING = bool(os.environ.get("ADAPTIVE_EVAL_SANDBOX_ALL"))


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 54
    assert len(NOT_HELD_BY_LOCKDOWN) <= 1


def test_every_program_is_held(sandbox: Sandbox) -> None:
    out = suite(sandbox)
    expected = NOT_HELD_BY_LOCKDOWN if sandbox.tier == "lockdown" else frozenset()
    assert set(out) == expected, out


def test_the_suite_tells_when_a_program_gets_out(best: Sandbox) -> None:
    """Harmless ones, without a sandbox; what they do is undone with their world."""
    names = ["secret_file", "append", "tcp", "make_folder", "kill", "password_file", "inherited_descriptors", "threads"]
    out = suite(Sandbox.unsafe(), names)
    assert {"secret_file", "append", "tcp", "make_folder", "kill", "password_file"} <= set(out)
    assert out["secret_file"] == "has read the secret"
    assert out["witnesses"] == "the victim is dead; files were changed; a socket or the terminal was reached"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start it as somebody else")
@pytest.mark.parametrize("tier", ["full", "lockdown"])
@pytest.mark.parametrize("user", [65534, 12345], ids=lambda uid: f"uid{uid}")
def test_programs_are_held_for_others(tier: str, user: int) -> None:
    """A few of them, or all with ADAPTIVE_EVAL_SANDBOX_ALL set."""
    if other_interpreter() is None:
        pytest.skip("no interpreter that other users may run")
    if isinstance(opened(tier), str):
        pytest.skip(f"no sandbox here: {opened(tier)}")
    few = (
        "fork_bomb",
        "daemon",
        "kill",
        "trace",
        "secret_file",
        "size_of_the_secret_file",
        "append",
        "udp",
        "own_limits",
    )
    out = suite_as(user, tier) if EVERYTHING else suite_as(user, tier, few, patience=0.3)
    assert set(out) == (NOT_HELD_BY_LOCKDOWN if tier == "lockdown" else set()), out
