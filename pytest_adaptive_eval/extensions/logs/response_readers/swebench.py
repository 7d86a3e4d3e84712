"""Reports of SWE-bench's own harness: ``MODEL.RUN.json``, and ``report.json`` of each instance."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import (
    ItemResult,
    ReadSettings,
    ResponseReader,
    ResultSettings,
    measures_of,
)
from pytest_adaptive_eval.banks.responses.files import Collected, json_objects
from pytest_adaptive_eval.banks.responses.questions import inner
from pytest_adaptive_eval.banks.rows import head
from pytest_adaptive_eval.items.responses import Responses

RESOLVED = "resolved_ids"
#: Lists of a report whose instances are wrong, which is the agent's doing, and whose instances have no score.
LISTS = ResultSettings(
    agent_failures=("unresolved_ids", "empty_patch_ids"),
    infrastructure=("error_ids", "infra_failure_ids", "ambiguous_failure_ids", "incomplete_ids"),
)
_BEGINNING = re.compile(r'\s*\{\s*"total_instances"\s*:')
#: Where a run's report is, and those of its instances, below logs/run_evaluation/RUN/MODEL/ID.
_SUMMARIES, _INSTANCES = ("*.json", "*/*.json"), ("**/report.json",)
_TRAJECTORY = ".traj.json"  #: End of a file of mini-swe-agent; the instance is before it.
_TRAJECTORIES = (f"**/*{_TRAJECTORY}",)


def results(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the instances for which a run had predictions, with what mini-swe-agent's trajectories state of them.

    An error of the model's server ends as an empty patch there, and the trajectory has the exception: no score.
    """
    trajectories = {}
    for file, data in json_objects(folder, _TRAJECTORIES):
        trajectories[file.name.removesuffix(_TRAJECTORY)] = data.get("info")
    for result in _outcomes(folder, settings):
        about = trajectories.get(result.item)
        stated = {
            "cost": inner(about, "model_stats", "instance_cost"),
            "steps": inner(about, "model_stats", "api_calls"),
        }
        result = result._replace(measures=measures_of(stated))
        fault = inner(about, "exception_str")
        if fault and not result.score:
            result = result._replace(score=None, fault=str(fault))
        yield result


def _outcomes(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the instances for which a run had predictions, each once: by the run's report, else by their own."""
    reported = set()
    for file, data in json_objects(folder, _SUMMARIES):
        submitted = data.get("submitted_ids")
        for result in _listed(file, data, settings):
            is_asked = not isinstance(submitted, list) or result.item in submitted
            if is_asked and result.item not in reported:
                reported.add(result.item)
                yield result
    for _, data in json_objects(folder, _INSTANCES):
        for name, report in data.items():
            resolved = inner(report, "resolved")
            if name not in reported and isinstance(resolved, bool):
                reported.add(name)
                yield ItemResult(name, float(resolved))


def _listed(file: Path, data: Mapping[str, Any], settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the instances in the lists of a run's report; none of another file."""
    if not isinstance(data.get(RESOLVED), list):
        return
    subject = file.name.partition(".")[0]
    scores: list[tuple[str, float | None]] = [(name, None) for name in settings.infrastructure]
    scores += [(name, 0.0) for name in settings.agent_failures]
    for name, score in (*scores, (RESOLVED, 1.0)):
        fault = f"swebench lists it in {name}" if score is None else ""
        for instance in data.get(name) or ():
            yield ItemResult(str(instance), score, fault, subject=subject)


def read_swebench(path: Path, settings: ReadSettings) -> Responses:
    """Read one report, or a folder of reports, a subject each.

    An instance is right if it is resolved, wrong if it is not or its patch is empty, and else has no score.
    """
    collected = Collected(str(path), texts=settings.texts)
    if path.is_file():
        files = json_objects(path.parent, (path.name,))
    else:
        files = json_objects(path, _SUMMARIES)
    for file, data in files:
        for result in _listed(file, data, LISTS):
            collected.add(result.subject, result.item, math.nan if result.score is None else result.score)
    return collected.responses()


REGISTERED = (
    ResponseReader(
        "swebench",
        "MODEL.RUN.json of swebench",
        lambda path: path.suffix == ".json" and _BEGINNING.match(head(path)) is not None,
        read_swebench,
        results=results,
    ),
)
