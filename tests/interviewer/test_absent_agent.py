"""An interviewer whose model cannot be loaded is named by its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.interviewing import _Agent
from pytest_adaptive_eval.evaluation.reply_cache import ReplyCache
from pytest_adaptive_eval.evaluation.tables import InterviewTable


def test_agent_that_cannot_be_loaded_has_a_name_and_still_reports_the_error(tmp_path: Path) -> None:
    agent = _Agent(InterviewTable(), "no/such/folder", tmp_path, ReplyCache(tmp_path / "decisions", False))
    assert agent.name == "no/such/folder"
    assert agent.account() == {}
    with pytest.raises(ConfigError, match="no/such/folder"):
        agent.categorise([], [])
