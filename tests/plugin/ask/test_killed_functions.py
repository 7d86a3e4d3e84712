"""Runs whose model is a function are ended by signals at any moment, and go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "kill_functions.py"


@pytest.mark.slow
def test_no_answer_that_came_is_asked_for_again() -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "9"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert "0 asked again after they had returned" in done.stdout
    assert "0 records that differ" in done.stdout
