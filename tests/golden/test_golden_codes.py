"""Runs end with the exit code of their outcome or mistake."""

from __future__ import annotations

from pathlib import Path

import golden_codes
import pytest


@pytest.mark.slow
def test_runs_end_with_the_same_exit_codes(tmp_path: Path) -> None:
    expected = {name: code for name, (_, _, code) in golden_codes.RUNS.items()}
    assert golden_codes.codes(tmp_path) == expected
