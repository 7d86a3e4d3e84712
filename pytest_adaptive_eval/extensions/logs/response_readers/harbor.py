"""Jobs of Harbor: ``JOBS/JOB/TRIAL/result.json``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import (
    ItemResult,
    ReadSettings,
    ResponseReader,
    ResultSettings,
    checked_score,
    measures_of,
)
from pytest_adaptive_eval.banks.responses.files import Collected, json_objects
from pytest_adaptive_eval.banks.responses.questions import inner
from pytest_adaptive_eval.banks.rows import head
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

#: Exceptions of an agent whose trial counts as wrong; any other one leaves no score.
AGENT_FAILURES = ("AgentTimeoutError",)
#: Where trials are below a folder of jobs, a job's own folder, and a trial's.
_PLACES = ("result.json", "*/result.json", "*/*/result.json")
REWARD = "reward"  #: The usual name of a reward.


def results(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the trials that have ended.

    Raises:
        ResponsesError: A reward is not a number in [0, 1], or there are several and none has the metric's name.
    """
    for file, data in json_objects(folder, _PLACES):
        if "task_name" in data and data.get("finished_at") is not None:
            score, fault = _outcome(data, _reward(file, data, settings.metric or REWARD), settings.agent_failures)
            yield ItemResult(str(data["task_name"]), score, fault, "", _measures(data), _subject(data))


def _reward(file: Path, data: dict[str, Any], metric: str) -> float | None:
    rewards = inner(data, "verifier_result", "rewards")
    if not isinstance(rewards, dict) or not rewards:
        return None
    if metric not in rewards and len(rewards) > 1:
        raise ResponsesError(
            f"{file}: rewards are {', '.join(sorted(rewards))}, and none is {metric!r}; name one as the metric"
        )
    value = rewards.get(metric, next(iter(rewards.values())))
    return checked_score(value, f"{file}: reward {metric!r}")


def _outcome(data: dict[str, Any], reward: float | None, failures: tuple[str, ...]) -> tuple[float | None, str]:
    """Return the score of a trial, and what Harbor says on a missing one."""
    exceptions = [data.get("exception_info")]
    exceptions += [inner(step, "exception_info") for step in data.get("step_results") or ()]
    kinds = set()
    words = []
    for each in filter(None, exceptions):
        kinds.add(inner(each, "exception_type"))
        words.append(f"{inner(each, 'exception_type')}: {inner(each, 'exception_message')}")
    if not words and reward is None:
        return None, "the verifier gave no reward"
    if kinds <= {*failures}:
        return reward or 0.0, "; ".join(words)
    return None, "; ".join(words)


def _measures(data: dict[str, Any]) -> dict[str, float]:
    """Return cost, tokens and seconds of a trial, the sums over its steps."""
    parts = [data]
    if not data.get("agent_result"):
        parts = data.get("step_results") or []
    measures: dict[str, float] = {}
    for part in parts:
        agent = inner(part, "agent_result")
        stated = {
            "cost": inner(agent, "cost_usd"),
            "input_tokens": inner(agent, "n_input_tokens"),
            "output_tokens": inner(agent, "n_output_tokens"),
            "seconds": _seconds(inner(part, "agent_execution")),
        }
        for name, value in measures_of(stated).items():
            measures[name] = measures.get(name, 0.0) + value
    return measures


def _seconds(timing: Any) -> float | None:
    times = [inner(timing, name) for name in ("started_at", "finished_at")]
    if None in times:
        return None
    start, end = (datetime.fromisoformat(str(time)) for time in times)
    return (end - start).total_seconds()


def _subject(data: dict[str, Any]) -> str:
    """Return the agent and its model."""
    named = [inner(data, "agent_info", "name") or "agent", inner(data, "agent_info", "model_info", "name")]
    return " ".join(map(str, filter(None, named)))


def is_trial(path: Path) -> bool:
    """Return whether a file looks like the result of a trial."""
    return path.name == "result.json" and '"trial_name"' in head(path)


def read_harbor(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder of jobs, a job, a trial's folder, or one result.

    The subject is the agent with its model. Several trials of a task count as their mean. A trial without a reward, or
    with an exception that is not the agent's, has no score.
    """
    collected = Collected(str(path), texts=settings.texts)
    if path.is_dir():
        folder = path
    else:
        folder = path.parent
    for result in results(folder, ResultSettings(settings.metric, agent_failures=AGENT_FAILURES)):
        collected.add(result.subject, result.item, math.nan if result.score is None else result.score)
    return collected.responses()


REGISTERED = (
    ResponseReader(
        "harbor",
        "result.json of Harbor's trials",
        is_trial,
        read_harbor,
        {"metric": "the reward"},
        results=results,
    ),
)
