"""Calls that an interview does not need any more end with it, without a run of pytest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.plugin.ask.pipeline import PendingInterview, Pipeline


def interview() -> tuple[Pipeline, Any, list[str]]:
    """A pipeline with an interview whose two calls are open and one answer has come; and what is broken off."""
    cancelled: list[str] = []
    loop: Any = SimpleNamespace(nodeid="n", respondent=SimpleNamespace(subject=SimpleNamespace()))
    loop.respondent.subject.take_arrived = lambda **_: None
    pipeline, ahead = Pipeline(shares=True), PendingInterview(loop)
    for key in ("one", "two"):
        ahead.begun[key] = lambda key=key: cancelled.append(key)  # type: ignore[misc]
    ahead.arrived["three"] = Completion("right")
    pipeline._ahead[loop.nodeid] = ahead
    pipeline._open[id(loop.respondent.subject)] = 2
    return pipeline, loop, cancelled


def test_open_calls_are_broken_off_and_counted_with_answers_that_came_for_nothing() -> None:
    pipeline, loop, cancelled = interview()
    assert pipeline.finish(loop) == 3
    assert cancelled == ["one", "two"]
    assert pipeline._open[id(loop.respondent.subject)] == 0
    assert pipeline.finish(loop) == 0
    assert cancelled == ["one", "two"]


@pytest.mark.parametrize("nodeid", ["n", "other"])
def test_the_calls_of_another_interview_stay(nodeid: str) -> None:
    pipeline, loop, cancelled = interview()
    other: Any = SimpleNamespace(nodeid=nodeid, respondent=loop.respondent)
    assert pipeline.finish(other) == 0
    assert cancelled == []
