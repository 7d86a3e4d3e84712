"""Runs of HELM: folders with ``per_instance_stats.json``, ``run_spec.json`` and ``scenario_state.json``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, choose, files_that, named
from pytest_adaptive_eval.banks.responses.questions import as_question, inner, texts
from pytest_adaptive_eval.banks.rows import head, load_file
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion, Responses

_STATS = "per_instance_stats.json"
#: Statistics that are no scores.
_OTHER = re.compile(r"num_|training_|inference_|finish_reason|prompt_truncated|batch_size|logprob|max_prob|predicted_")
#: The part of a run's name that tells the model.
_MODEL = re.compile(r",?model(?:_deployment)?=([^,]*)")


def read_helm(path: Path, settings: ReadSettings) -> Responses:
    """Read a run's folder, its ``per_instance_stats.json``, or a folder of runs.

    An item's id is ``SCENARIO:ID``, the name of the run without its model and the instance's id. Instances that HELM
    perturbed are left out. The filter is the split, needed when a run has several. Trials with other examples in the
    prompt count as their mean.
    """
    expected = f"no {_STATS}; expected the folders that helm-run writes, with it in each"
    collected = Collected(str(path), texts=settings.texts)
    runs: dict[str, list[TaskLog]] = {}
    for file in files_that(lambda file: file.name == _STATS, path, expected):
        scenario, log = _read_run(file, settings)
        runs.setdefault(scenario, []).append(log)
    for scenario, logs in runs.items():
        collected.add_task(logs, settings, f"{path}: scenario {scenario!r}")
    return collected.responses()


def _read_run(file: Path, settings: ReadSettings) -> tuple[str, TaskLog]:
    """Return the scenario of a run, and its answers of one split."""
    model, scenario = _about(file)
    instances = load_file(file)
    if not isinstance(instances, list) or not all(isinstance(each, dict) for each in instances):
        raise ResponsesError(f"{file}: found {type(instances).__name__}, expected a list with an object an instance")
    whole = []
    for each in instances:
        if not each.get("perturbation"):
            whole.append(each)
    if perturbed := len(instances) - len(whole):
        settings.note(f"{file}: {perturbed} perturbed instances are left out")
    splits = {_split(each) for each in whole}
    if splits:
        split = choose("filter", splits, settings.filter, f"{file}, splits")
    else:
        split = ""
    states = list(_states(file.with_name("scenario_state.json")))
    logged = dict(_questions(states, file))
    answers = []
    for n, instance in enumerate(whole, 1):
        if _split(instance) == split:
            where = f"{file}: instance {n}"
            name = named(instance.get("instance_id"), "instance_id", where)
            answers.append(Answer(where, f"{scenario}:{name}", _values(instance, where), *logged.get(name, ())))
    sums = _sums(file.with_name("stats.json"), split)
    planned = None
    if "num_instances" in sums:
        planned = round(sums["num_instances"])
    of_split = [instance for instance, _ in states if (inner(instance, "split") or split) == split]
    items = tuple(dict.fromkeys(f"{scenario}:{instance['id']}" for instance in of_split))
    return scenario, TaskLog(f"{file}, split {split!r}", model, answers, "", planned, "", sums, items=items)


def _sums(file: Path, split: str) -> dict[str, float]:
    """Return the means of statistics over the unperturbed instances of a split, by name."""
    sums = {}
    for stat in _objects(_loaded(file)):
        name = stat.get("name")
        mean = stat.get("mean")
        if isinstance(mean, int | float) and name == {"name": inner(name, "name"), "split": split}:
            sums[str(inner(name, "name"))] = mean
    return sums


def _about(file: Path) -> tuple[str, str]:
    """Return the model and the scenario of a run."""
    spec = _loaded(file.with_name("run_spec.json"))
    run = inner(spec, "name")
    if isinstance(run, str):
        run = run
    else:
        run = file.absolute().parent.name
    match = _MODEL.search(run)
    model = inner(spec, "adapter_spec", "model") or (match[1] if match else run)
    return named(model, "adapter_spec.model", f"run of {file}"), _MODEL.sub("", run).rstrip(":,")


def _loaded(file: Path) -> Any:
    """Return the content of a file; None without one."""
    if os.path.lexists(file):
        return load_file(file)
    return None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list; none of any other value."""
    if isinstance(value, list):
        return [each for each in value if isinstance(each, Mapping)]
    return []


def _split(instance: Mapping[str, Any]) -> str:
    """Return the split that an instance's statistics name, such as ``test``; HELM sums each on its own."""
    splits = (inner(stat, "name", "split") for stat in _objects(instance.get("stats")))
    for split in splits:
        if split:
            return str(split)
    return "none"


def _values(instance: Mapping[str, Any], where: str) -> dict[str, float]:
    stats = instance.get("stats")
    if not isinstance(stats, list):
        raise ResponsesError(f"{where}: stats is {stats!r:.80}, expected a list of statistics")
    values = {}
    for stat in _objects(stats):
        label = inner(stat, "name", "name")
        mean = stat.get("mean")
        is_score = isinstance(label, str) and not _OTHER.match(label) and not inner(stat, "name", "perturbation")
        if is_score and stat.get("count") and isinstance(mean, int | float) and 0 <= mean <= 1:
            values[label] = float(mean)
    return values


def _states(file: Path) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield each unperturbed instance with the state of its request."""
    for state in _objects(inner(_loaded(file), "request_states")):
        instance = inner(state, "instance")
        if inner(instance, "id") is not None and not inner(instance, "perturbation"):
            yield instance, state


def _questions(
    states: Iterable[tuple[Any, Mapping[str, Any]]], file: Path
) -> Iterator[tuple[str, tuple[LoggedQuestion | None, Any]]]:
    """Yield question and reply of each instance, by its id."""
    for instance, state in states:
        completions = _objects(inner(state, "result", "completions"))
        reply = None
        if completions:
            reply = inner(completions[0], "text")
        yield str(instance["id"]), (_question(instance, state.get("output_mapping"), file), reply)


def _question(instance: Mapping[str, Any], letters: Any, file: Path) -> LoggedQuestion | None:
    """Return the question of an instance; its choices are the prompt's, by their letters."""
    references = _objects(instance.get("references"))
    right = []
    for each in references:
        if "correct" in texts(each.get("tags")):
            right.append(inner(each, "output", "text"))
    if isinstance(letters, Mapping):
        choices = letters
    else:
        choices = {}
    if choices:
        answers = [letter for letter, choice in choices.items() if choice in right][:1]
    else:
        answers = right
    fields = {"question": inner(instance, "input", "text"), "choices": list(choices.values()), "target": answers}
    return as_question(fields, file)


REGISTERED = (
    ResponseReader(
        "helm",
        "per_instance_stats.json of HELM",
        lambda path: path.name == _STATS and '"stats"' in head(path, 4096),
        read_helm,
        {"metric": "the statistic, such as exact_match", "filter": "the split"},
    ),
)
