"""The fake harness as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_harness import Fake


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A fake harness in a folder of its own."""
    return Fake(tmp_path)
