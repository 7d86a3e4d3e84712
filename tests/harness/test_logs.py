"""Harnesses as rows of data, their logs as recorded responses, and the sizes of calls."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from fake_harness import Fake, items

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.extensions.harness.logs import results_of
from pytest_adaptive_eval.extensions.harness.row import Harness, find_harness, harnesses
from pytest_adaptive_eval.extensions.harness.sizes import CallTimes


def put(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def test_jobs_of_harbor_are_responses(tmp_path: Path) -> None:
    def trial(task: str, reward: float | None, exception: str | None = None) -> dict[str, Any]:
        return {
            "task_name": task,
            "trial_name": f"{task}__1",
            "agent_info": {"name": "agent", "model_info": {"name": "gpt"}},
            "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
            "exception_info": exception and {"exception_type": exception, "exception_message": ""},
            "finished_at": "2026-01-01T00:00:00Z",
        }

    for number, (task, reward, exception) in enumerate(
        [("a", 1.0, None), ("b", 0.0, "AgentTimeoutError"), ("c", 0.0, "APIError"), ("d", 1.0, None), ("d", 0.0, None)]
    ):
        put(tmp_path / f"jobs/job/{task}__{number}/result.json", trial(task, reward, exception))
    put(tmp_path / "jobs/job/result.json", {"n_total_trials": 5})
    responses = read_responses(tmp_path / "jobs")
    scores = responses.scores_of("agent gpt")
    assert math.isnan(scores.pop("c"))
    assert scores == {"a": 1.0, "b": 0.0, "d": 0.5}


def test_reports_of_swebench_are_responses_of_a_subject_each(tmp_path: Path) -> None:
    report = {"total_instances": 4, "resolved_ids": ["a"], "unresolved_ids": ["b"], "empty_patch_ids": ["c"]}
    put(tmp_path / "one.run.json", {**report, "error_ids": ["d"]})
    put(tmp_path / "two.run.json", {**report, "unresolved_ids": ["b", "d"]})
    responses = read_responses(tmp_path)
    assert responses.subjects == ("one", "two")
    assert responses.scores_of("two") == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
    assert math.isnan(responses.scores_of("one")["d"])
    assert read_responses(tmp_path / "one.run.json").subjects == ("one",)


@pytest.mark.parametrize("name", sorted(harnesses()))
def test_every_row_has_a_format_that_reads_item_by_item(name: str) -> None:
    assert results_of(find_harness(name).format)


def test_a_plugin_adds_a_harness_as_a_row(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Harness(name="mine", format="command", files="*.jsonl", option="--task", separator=" ")
    found = {**harnesses(), "mine": mine}
    monkeypatch.setattr("pytest_adaptive_eval.extensions.harness.row.harnesses", lambda: found)
    command = fake.write("(here / 'given.txt').write_text(' '.join(sys.argv[3:])); [write(item) for item in ids]")
    model = fake.model(name="mine", command=f"{command} {{items}}")
    assert [each.score for each in model.answer(items(["a", "b"]))] == [1.0, 1.0]
    assert fake.lines("given") == ["--task a --task b"]


def test_unknown_harnesses_and_formats_are_refused(fake: Fake) -> None:
    with pytest.raises(ConfigError, match="harness 'harbour' is not known; did you mean 'harbor'"):
        fake.model(name="harbour")
    with pytest.raises(ConfigError, match="has the format 'helm', expected one of command"):
        results_of("helm")


def test_a_line_of_a_bank_may_be_an_id_alone(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b", "category": "hard", "meta": {"repo": "x"}}\n')
    bank = read_bank(path)
    assert [(item.id, item.category, dict(item.meta)) for item in bank.items] == [
        ("a", (), {"textless": True}),
        ("b", ("hard",), {"repo": "x", "textless": True}),
    ]
    assert bank.report["textless"] is True
    path.write_text('{"id": "a", "answer": "4"}\n')
    with pytest.raises(BankError, match="no prompt, messages or images"):
        read_bank(path)


def test_a_call_holds_as_many_ids_as_fit_into_one_argument(fake: Fake) -> None:
    names = [f"{number}{'.' * 5000}" for number in range(60)]
    model = fake.model(command=f"{fake.write()} {{regex}}", parallel=60)
    model.prepare(items(names))
    size = model.call_size(60)
    assert 2 < size < 60
    assert {each.score for each in model.answer(items(names[:size]))} == {1.0}
    short = fake.model(parallel=60)
    short.prepare(items(["a"]))
    assert short.call_size(60) == 60


def test_a_call_grows_with_its_start_and_never_beyond_what_is_expected() -> None:
    times = CallTimes(parallel=16)
    assert [times.size(expected) for expected in (1, 8, 32, 500)] == [1, 8, 32, 32]
    times.note(32, first=22.0, last=22.0 + 31 * 1.3)
    assert (times.size(500), times.size(20)) == (68, 20)
    quick = CallTimes(parallel=1)
    quick.note(8, first=0.1, last=8.0)
    assert quick.size(500) == 8


def test_small_calls_that_bring_no_verdict_grow() -> None:
    times = CallTimes(parallel=4)
    sizes = []
    for _ in range(6):
        sizes.append(times.size(1))
        times.note(sizes[-1], first=1.0, last=1.0)
    assert sizes == [1, 2, 4, 8, 8, 8]
    times.note(32, first=1.0, last=9.0)
    assert times.size(1) == 1


def test_calls_grow_where_all_results_come_at_the_end_until_two_sizes_show_the_start() -> None:
    times = CallTimes(parallel=1)
    sizes = []
    for _ in range(4):
        sizes.append(times.size(500))
        seconds = 20.0 + 0.5 * sizes[-1]
        times.note(sizes[-1], first=seconds, last=seconds)
    assert sizes == [8, 32, 160, 160], "a start of 20 s may take a fourth of the time of 160 items"
    assert times.size(12) == 12
    slow = CallTimes(parallel=1)
    for size in (8, 32):
        slow.note(size, first=1.0 + 60.0 * size, last=1.0 + 60.0 * size)
    assert slow.size(500) == 8
