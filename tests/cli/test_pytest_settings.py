"""Graders that a project trusts, read from its settings of pytest."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from pytest_adaptive_eval.cli.pytest_settings import trusted_graders

_OPEN = Path("/proc/self/fd")


def test_settings_are_read_without_running_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --of-conftest\nadaptive_eval_graders = mine more\n")
    (tmp_path / "conftest.py").write_text("raise AssertionError('the project was run')\n")
    monkeypatch.chdir(tmp_path)
    before = sys.stdout
    assert trusted_graders(tmp_path) == ["mine", "more"]
    assert sys.stdout is before


@pytest.mark.skipif(not _OPEN.is_dir(), reason="open files are counted in /proc")
def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nadaptive_eval_graders = mine\n")
    gc.disable()
    try:
        before = len(list(_OPEN.iterdir()))
        trusted_graders(tmp_path)
        assert len(list(_OPEN.iterdir())) == before
    finally:
        gc.enable()
