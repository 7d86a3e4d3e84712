"""Sandboxes, made once: each proves itself when it is opened."""

from __future__ import annotations

import functools
from typing import Literal

import pytest

from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox import Sandbox


@functools.cache
def opened(tier: Literal["auto", "full", "lockdown"]) -> Sandbox | str:
    try:
        return Sandbox.open(tier=tier)
    except SandboxUnavailable as error:
        return str(error)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sandbox" in metafunc.fixturenames:
        metafunc.parametrize("sandbox", ["full", "lockdown"], indirect=True)


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Either tier, where it holds."""
    got = opened(request.param)
    if isinstance(got, str):
        pytest.skip(f"no sandbox here: {got}")
    return got


@pytest.fixture
def best() -> Sandbox:
    """The best tier that holds."""
    got = opened("auto")
    if isinstance(got, str):
        pytest.skip(f"no sandbox here: {got}")
    return got
