"""Every total that a log states is compared with what it holds: a log that differs is not whole by its own account."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.errors import ResponsesError

COUNT = 8
TIME = "2031-01-01T00-00-00.000000"


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def lines(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# --- Inspect ----------------------------------------------------------------------------------------------------------


def inspect_log() -> dict[str, Any]:
    """Return header, summaries, whole samples and reductions of a run of 8 questions, 6 right."""
    ids = list(range(1, COUNT + 1))
    samples = [
        {"id": n, "epoch": 1, "input": f"{n} + 1?", "target": str(n + 1), "scores": {"match": {"value": "CI"[n > 6]}}}
        for n in ids
    ]
    scores = [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"value": 0.75}}, "scored_samples": COUNT}]
    about = {"task": "sums", "model": "m/a", "created": "2031-01-01T00:00:00+00:00", "config": {"epochs": 1}}
    about["dataset"] = {"samples": COUNT, "sample_ids": ids}
    results = {"total_samples": COUNT, "completed_samples": COUNT, "scores": scores}
    header = {"version": 2, "status": "success", "eval": about, "results": results}
    reduced = [{"sample_id": n, "value": float(n <= 6)} for n in ids]
    reductions = [{"scorer": "match", "reducer": "mean", "samples": reduced}]
    return {"header": header, "summaries": samples, "samples": copy.deepcopy(samples), "reductions": reductions}


def archive(log: dict[str, Any], folder: Path) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w") as members:
        for name in ("header", "summaries", "reductions"):
            members.writestr(f"{name}.json", json.dumps(log[name]))
        for sample in log["samples"]:
            members.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def as_json(log: dict[str, Any], folder: Path) -> Path:
    write(folder / "log.json", {**log["header"], "samples": log["samples"], "reductions": log["reductions"]})
    return folder / "log.json"


def rename(samples: list[Any], number: int, name: int) -> None:
    samples[number]["id"] = name


def set_value(samples: list[Any], number: int, value: Any) -> None:
    samples[number]["scores"] = {"match": {"value": value}} if value else {}


def of_both(change: Callable[[list[Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda log: (change(log["summaries"]), change(log["samples"]))


Change = Callable[[dict[str, Any]], object]
ARCHIVES: list[tuple[Change, str]] = [
    (lambda _: None, ""),
    (lambda log: set_value(log["samples"], 7, "C"), "1 of 8 samples have 'C' as match, and 'I' in their summaries"),
    (lambda log: [set_value(log["samples"], n, "I") for n in range(6)], "6 of 8 samples have 'I' as match, and 'C' in"),
    (lambda log: set_value(log["samples"], 0, None), "in their summaries"),
    (lambda log: set_value(log["summaries"], 0, None), "in their summaries"),
    (lambda log: log["samples"].__delitem__(slice(3, None)), "5 of 8 samples have a summary alone"),
    (lambda log: log["samples"].pop(), "1 of 8 samples have a summary alone"),
    (lambda log: log["summaries"].pop(), "7 of 8 planned samples"),
    (of_both(lambda samples: samples.pop()), "7 of 8 planned samples"),
    (of_both(lambda samples: rename(samples, 7, 99)), "1 of 8 planned items are absent, such as 'sums:8'"),
    (of_both(lambda samples: samples.append({**samples[0], "id": 99})), "1 item not planned, such as 'sums:99'"),
    (lambda log: log["header"]["results"].update(total_samples=9), "8 of 9 planned samples"),
    (lambda log: log["header"]["results"].update(completed_samples=9), "8 of 9 planned samples"),
    (lambda log: log["header"]["results"]["scores"][0].update(scored_samples=9), "8 of 9 planned samples"),
    (
        lambda log: log["header"]["eval"]["dataset"].update(sample_ids=[*range(2, 10)]),
        "1 of 8 planned items are absent",
    ),
    (lambda log: log["header"]["eval"]["dataset"].update(samples=9, sample_ids=None), "8 of 9 planned samples"),
    (lambda log: log["header"]["eval"]["config"].update(epochs=2), "8 of 16 planned samples"),
    (lambda log: log["header"].update(status="cancelled"), "status 'cancelled'"),
    (lambda log: log["reductions"][0]["samples"][7].update(value=1.0), "0 as match, and 1 in their reductions"),
]


@pytest.mark.fast_rows(4)
@pytest.mark.parametrize(("change", "fault"), ARCHIVES)
def test_an_inspect_archive_that_contradicts_itself_is_not_whole(tmp_path: Path, change: Change, fault: str) -> None:
    log = inspect_log()
    change(log)
    check(read_responses(archive(log, tmp_path)), fault)


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda _: None, ""),
        (lambda log: rename(log["samples"], 7, 99), "1 of 8 planned items are absent"),
        (lambda log: log["samples"].pop(), "7 of 8 planned samples"),
        (lambda log: set_value(log["samples"], 7, "C"), "in their reductions"),
        (lambda log: log.update(reductions=None) or set_value(log["samples"], 7, "C"), "an accuracy of 0.7500"),
    ],
)
def test_an_inspect_log_in_json_that_contradicts_itself_is_not_whole(
    tmp_path: Path, change: Change, fault: str
) -> None:
    log = inspect_log()
    change(log)
    check(read_responses(as_json(log, tmp_path)), fault)


def test_summaries_whose_samples_were_removed_are_judged_with_a_warning(tmp_path: Path) -> None:
    log = inspect_log() | {"samples": []}
    (warning,) = read_responses(archive(log, tmp_path)).check_whole("m/a", partial=False)
    assert "the samples were removed, and their summaries count" in warning


def check(responses: Any, fault: str) -> None:
    subject = responses.subjects[0]
    if not fault:
        assert responses.check_whole(subject, partial=False) == []
        return
    with pytest.raises(ResponsesError) as caught:
        responses.check_whole(subject, partial=False)
    assert fault in str(caught.value)
    assert responses.check_whole(subject, partial=True)


# --- tools with files beside their logs -------------------------------------------------------------------------------


def evalscope(folder: Path) -> None:
    for name, right in (("sums", 3), ("hard", 1)):
        score = {"main_score_name": "acc"}
        rows = [
            {"index": n, "target": "3", "sample_score": {"score": {**score, "value": {"acc": float(n < right)}}}}
            for n in range(4)
        ]
        lines(folder / "reviews" / "m" / f"{name}_main.jsonl", rows)
        subset = {"name": "main", "num": 4, "score": right / 4}
        metric = {"name": "mean_acc", "num": 4, "score": right / 4, "categories": [{"subsets": [subset]}]}
        write(folder / "reports" / "m" / f"{name}.json", {"dataset_name": name, "metrics": [metric]})


def edited(path: Path, change: Callable[[Any], object]) -> None:
    data = json.loads(path.read_text())
    change(data)
    write(path, data)


def cut(path: Path, count: int) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:count]))


def subset_of(report: Any) -> dict[str, Any]:
    found: dict[str, Any] = report["metrics"][0]["categories"][0]["subsets"][0]
    return found


@pytest.mark.fast_rows(3)
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda _: None, ""),
        (lambda run: (run / "reviews/m/hard_main.jsonl").unlink(), "'hard_main': 0 of 4 planned samples"),
        (lambda run: cut(run / "reviews/m/hard_main.jsonl", 3), "3 of 4 planned samples"),
        (lambda run: edited(run / "reports/m/sums.json", lambda d: subset_of(d).update(score=1.0)), "of 1.0000"),
        (lambda run: edited(run / "reports/m/sums.json", lambda d: subset_of(d).update(num=5)), "4 of 5 planned"),
        (lambda run: write(run / "reports/n/sums.json", json.loads((run / "reports/m/sums.json").read_text())), ""),
    ],
)
def test_evalscope_reviews_that_their_reports_contradict_are_not_whole(
    tmp_path: Path, change: Callable[[Path], object], fault: str
) -> None:
    evalscope(tmp_path)
    change(tmp_path)
    check(read_responses(tmp_path), fault)


def lm_eval(folder: Path) -> None:
    for task in ("sums", "hard"):
        rows = [
            {"doc_id": n, "doc_hash": f"{task}{n}", "metrics": ["acc"], "acc": 1.0, "filter": "none"} for n in (0, 1)
        ]
        lines(folder / f"samples_{task}_{TIME}.jsonl", rows)
    metric = {"metric": "acc", "aggregation": "mean"}
    write(
        folder / f"results_{TIME}.json",
        {
            "model_name": "m",
            "n-samples": {task: {"original": 2, "effective": 2} for task in ("sums", "hard")},
            "configs": {task: {"metric_list": [metric]} for task in ("sums", "hard")},
            "results": {task: {"acc,none": 1.0, "sample_len": 2} for task in ("sums", "hard")},
        },
    )


RESULTS = f"results_{TIME}.json"


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda _: None, ""),
        (lambda run: (run / f"samples_hard_{TIME}.jsonl").unlink(), "task 'hard': 0 of 2 planned samples"),
        (lambda run: cut(run / f"samples_hard_{TIME}.jsonl", 1), "1 of 2 planned samples"),
        (lambda run: edited(run / RESULTS, lambda d: d["configs"].update(more={})), "'more': 0 of 1 planned samples"),
        (lambda run: edited(run / RESULTS, lambda d: d["results"]["sums"].update(sample_len=3)), "2 of 3 planned"),
        (lambda run: edited(run / RESULTS, lambda d: d["results"]["sums"].update({"acc,none": 0.5})), "of 0.5000"),
    ],
)
def test_samples_of_the_harness_that_their_results_contradict_are_not_whole(
    tmp_path: Path, change: Callable[[Path], object], fault: str
) -> None:
    lm_eval(tmp_path)
    change(tmp_path)
    check(read_responses(tmp_path), fault)


def helm(folder: Path) -> None:
    stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1, "mean": 1}
    write(folder / "per_instance_stats.json", [{"instance_id": f"id{n}", "stats": [stat]} for n in range(4)])
    states = [{"instance": {"id": f"id{n}", "split": "test", "input": {"text": f"{n}?"}}} for n in range(4)]
    write(folder / "scenario_state.json", {"request_states": states})
    write(folder / "run_spec.json", {"name": "sums:model=m", "adapter_spec": {"model": "m"}})
    sums = [
        {"name": {"name": name, "split": "test"}, "mean": mean}
        for name, mean in (("exact_match", 1), ("num_instances", 4))
    ]
    write(folder / "stats.json", sums)


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda _: None, ""),
        (lambda run: edited(run / "per_instance_stats.json", lambda d: d.pop()), "3 of 4 planned samples"),
        (lambda run: edited(run / "per_instance_stats.json", lambda d: d[3].update(instance_id="id9")), "are absent"),
        (lambda run: edited(run / "scenario_state.json", lambda d: d["request_states"].pop()), "1 item not planned"),
        (lambda run: edited(run / "stats.json", lambda d: d[0].update(mean=0.5)), "an accuracy of 0.5000"),
        (lambda run: edited(run / "stats.json", lambda d: d[1].update(mean=5)), "4 of 5 planned samples"),
    ],
)
def test_a_run_of_helm_that_contradicts_itself_is_not_whole(
    tmp_path: Path, change: Callable[[Path], object], fault: str
) -> None:
    helm(tmp_path)
    change(tmp_path)
    check(read_responses(tmp_path), fault)
