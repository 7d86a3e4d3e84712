"""Tests of this project, and the `model` of its examples: one of the committed fixture checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent
CHECKPOINT = ROOT / "fixtures" / "checkpoints" / "text-late"


@pytest.fixture(scope="session")
def model(pytestconfig: pytest.Config) -> Iterator[Any]:
    """The checkpoint that --adaptive-eval-model names, else the late one of the fixtures."""
    from pytest_adaptive_eval.evaluation import load_model

    named = pytestconfig.getoption("adaptive_eval_model", None)
    subject = load_model(
        named or str(CHECKPOINT), (pytestconfig.invocation_params.dir, ROOT), ROOT / ".adaptive-eval" / "cache"
    )
    yield subject
    subject.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --adaptive-eval only the examples run; the project's own tests start pytest with it themselves."""
    if config.getoption("adaptive_eval", False) and collection_path.is_relative_to(ROOT / "tests"):
        return True
    return None
