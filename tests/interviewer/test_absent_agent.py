"""An interviewer whose model cannot be loaded is named by its path."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.interviewing import _InterviewingModel
from pytest_adaptive_eval.evaluation.tables import InterviewTable
from pytest_adaptive_eval.models.store import CompletionStore


def test_agent_that_cannot_be_loaded_has_a_name_and_still_reports_the_error(tmp_path: Path) -> None:
    open_store = partial(CompletionStore, tmp_path / "decisions")
    agent = _InterviewingModel(InterviewTable(), "no/such/folder", tmp_path, open_store)
    assert agent.name == "no/such/folder"
    assert agent.account() == {}
    with pytest.raises(ConfigError, match="no/such/folder"):
        agent.categorise([], [])
