"""Runs of HELM: folders with ``per_instance_stats.json``, ``run_spec.json`` and ``scenario_state.json``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, choose, files_that, named
from pytest_adaptive_eval.banks.responses.questions import texts
from pytest_adaptive_eval.banks.rows import head, load_file
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion, Responses

_STATS = "per_instance_stats.json"
#: Statistics that are no scores.
_OTHER = re.compile(r"num_|training_|inference_|finish_reason|prompt_truncated|batch_size|logprob|max_prob|predicted_")
#: The part of a run's name that tells the model.
_MODEL = re.compile(r",?model(?:_deployment)?=[^,]*")


def read_helm(path: Path, settings: ReadSettings) -> Responses:
    """Read a run's folder, its ``per_instance_stats.json``, or a folder of runs.

    An item's id is ``SCENARIO:ID``, the name of the run without its model and the instance's id. Instances that HELM
    perturbed are left out. The filter is the split, needed when a run has several. Trials with other examples in the
    prompt count as their mean.
    """
    expected = f"no {_STATS}; expected the folders that helm-run writes, with it in each"
    files = files_that(lambda file: file.name == _STATS, path, expected)
    collected = Collected(str(path), texts=settings.texts)
    runs: dict[str, list[TaskLog]] = {}
    for file in files:
        scenario, log = _read_run(file, settings)
        runs.setdefault(scenario, []).append(log)
    # a run has one split, which its reader chose
    for scenario, logs in runs.items():
        collected.add_task(logs, settings, f"{path}: scenario {scenario!r}")
    collected.check_questions("give runs of one version of the scenario")
    return collected.responses()


def _read_run(file: Path, settings: ReadSettings) -> tuple[str, TaskLog]:
    """Return the scenario of a run, and its answers."""
    model, scenario = _about(file)
    instances = load_file(file)
    if not isinstance(instances, list) or not all(isinstance(each, dict) for each in instances):
        raise ResponsesError(f"{file}: found {type(instances).__name__}, expected a list with an object an instance")
    whole = [each for each in instances if not each.get("perturbation")]
    if perturbed := len(instances) - len(whole):
        settings.note(f"{file}: {perturbed} perturbed instances are left out")
    splits = {_split(each) for each in whole}
    split = choose("filter", splits, settings.filter, f"{file}, splits") if splits else ""
    logged = {item: rest for item, *rest in _questions(file.with_name("scenario_state.json"), scenario)}
    answers = []
    for n, instance in enumerate(whole, 1):
        if _split(instance) == split:
            where = f"{file}: instance {n}"
            item = f"{scenario}:{named(instance.get('instance_id'), 'instance_id', where)}"
            answers.append(Answer(where, item, _values(instance, where), *logged.get(item, ())))
    sums = _sums(file.with_name("stats.json"), split)
    planned = round(sums["num_instances"]) if "num_instances" in sums else None
    return scenario, TaskLog(f"{file}, split {split!r}", model, answers, "", planned, "", sums)


def _sums(file: Path, split: str) -> dict[str, float]:
    """Return the means of statistics over the unperturbed instances of a split, by name."""
    stats = load_file(file) if file.exists() else None
    listed = [each for each in stats if isinstance(each, dict)] if isinstance(stats, list) else []
    plain = [(each.get("name"), each.get("mean")) for each in listed]
    return {
        name["name"]: float(mean)
        for name, mean in plain
        if isinstance(name, dict) and name.keys() == {"name", "split"} and name["split"] == split and mean is not None
    }


def _about(file: Path) -> tuple[str, str]:
    """Return the model and the scenario of a run."""
    spec_file = file.with_name("run_spec.json")
    spec = _optional_object(spec_file)
    adapter, name = spec.get("adapter_spec"), spec.get("name")
    run = name if isinstance(name, str) else file.absolute().parent.name
    match = re.search(r"model=([^,]*)", run)
    model = (adapter.get("model") if isinstance(adapter, dict) else None) or (match[1] if match else run)
    return named(model, "adapter_spec.model", str(spec_file)), _MODEL.sub("", run).rstrip(":,")


def _optional_object(file: Path) -> dict[str, Any]:
    data = load_file(file) if os.path.lexists(file) else {}
    return data if isinstance(data, dict) else {}


def _split(instance: Mapping[str, Any]) -> str:
    """Return the split that an instance's statistics name, such as ``test``; HELM sums each on its own."""
    stats = instance.get("stats")
    names = [stat.get("name") for stat in stats if isinstance(stat, dict)] if isinstance(stats, list) else []
    splits = [str(name["split"]) for name in names if isinstance(name, dict) and name.get("split")]
    return splits[0] if splits else "none"


def _values(instance: Mapping[str, Any], where: str) -> dict[str, float]:
    stats = instance.get("stats")
    if not isinstance(stats, list):
        raise ResponsesError(f"{where}: stats is {stats!r:.80}, expected a list of statistics")
    values: dict[str, float] = {}
    for stat in stats:
        logged_name = stat.get("name") if isinstance(stat, dict) else None
        name = logged_name if isinstance(logged_name, dict) else {}
        label = name.get("name")
        if not isinstance(label, str) or _OTHER.match(label) or name.get("perturbation"):
            continue
        mean = stat.get("mean")
        if stat.get("count") and isinstance(mean, int | float) and 0 <= mean <= 1:
            values[label] = float(mean)
    return values


def _questions(file: Path, scenario: str) -> Iterator[tuple[str, LoggedQuestion, Any]]:
    states = _optional_object(file).get("request_states")
    for state in states if isinstance(states, list) else ():
        instance = state.get("instance") if isinstance(state, dict) else None
        if not isinstance(instance, dict) or instance.get("perturbation") or "id" not in instance:
            continue
        if (question := _question(instance, state.get("output_mapping"))) is not None:
            result = state.get("result")
            completions = result.get("completions") if isinstance(result, dict) else None
            first = completions[0] if isinstance(completions, list) and completions else None
            yield f"{scenario}:{instance['id']}", question, _text(first)


def _question(instance: Mapping[str, Any], letters: Any) -> LoggedQuestion | None:
    """Return the question of an instance; its choices are the prompt's, by their letters."""
    text = _text(instance.get("input"))
    if not isinstance(text, str) or not text.strip():
        return None
    listed = instance.get("references")
    references = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    right = [_text(each.get("output")) for each in references if "correct" in texts(each.get("tags"))]
    if isinstance(letters, dict) and letters:
        answers = tuple(str(letter) for letter, choice in letters.items() if choice in right)
        return LoggedQuestion(text, choices=texts(list(letters.values())), answers=answers[:1])
    return LoggedQuestion(text, answers=tuple(output for output in right if isinstance(output, str)))


def _text(value: Any) -> Any:
    """Return the text of an input or output, None if there is none."""
    return value.get("text") if isinstance(value, dict) else None


REGISTERED = (
    ResponseReader(
        "helm",
        "per_instance_stats.json of HELM",
        lambda path: path.name == _STATS and '"stats"' in head(path, 4096),
        read_helm,
        {"metric": "the statistic, such as exact_match", "filter": "the split"},
    ),
)
