"""Logs of further tools, made by hand in their layouts, and the published ones in the data folder."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.mappings import ResponseMapping

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "logs"
published = pytest.mark.skipif(not DATA.is_dir(), reason=f"the published logs are not in {DATA} (ADAPTIVE_EVAL_DATA)")


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def table(responses):
    return {
        subject: {item: None if np.isnan(v) else float(v) for item, v in zip(responses.items, row, strict=True)}
        for subject, row in zip(responses.subjects, responses.scores, strict=True)
    }


def refused(path, **settings):
    with pytest.raises(ResponsesError) as caught:
        read_responses(path, **settings)
    return str(caught.value)


def means(responses):
    return dict(zip(responses.subjects, np.nanmean(responses.scores, axis=1).round(4).tolist(), strict=True))


# --- HELM -------------------------------------------------------------------------------------------------------------


def stat(name, mean, count=1, **more):
    return {"name": {"name": name, "split": "test", **more}, "count": count, "sum": mean, "mean": mean}


def helm_run(folder, model, *instances):
    write(folder / "run_spec.json", {"name": f"mmlu:subject=law,model={model}", "adapter_spec": {"model": model}})
    write(folder / "per_instance_stats.json", list(instances))
    shown = {
        "input": {"text": "Which?"},
        "references": [{"output": {"text": "x"}, "tags": []}, {"output": {"text": "y"}, "tags": ["correct"]}],
    }
    reply = {"output_mapping": {"A": "x", "B": "y"}, "result": {"completions": [{"text": " B"}]}}
    names = dict.fromkeys(each["instance_id"] for each in instances)
    states = [{"instance": {**shown, "id": name}, **reply} for name in names]
    write(folder / "scenario_state.json", {"request_states": states})


def instance(name, *stats, **more):
    return {"instance_id": name, "train_trial_index": 0, "stats": list(stats), **more}


def test_helm_runs(tmp_path):
    perturbed = instance("id1", stat("exact_match", 0.0), perturbation={"name": "typos"})
    helm_run(
        tmp_path / "one",
        "org/a",
        instance("id1", stat("exact_match", 1.0), stat("num_references", 2)),
        instance("id2", stat("exact_match", 0.0)),
        instance("id2", stat("exact_match", 1.0), train_trial_index=1),
        perturbed,
    )
    helm_run(
        tmp_path / "two", "org/b", instance("id1", stat("exact_match", 0.0)), instance("id3", stat("exact_match", 0, 0))
    )
    notes: list[str] = []
    found = read_responses(tmp_path, note=notes.append)
    assert table(found) == {
        "org/a": {"mmlu:subject=law:id1": 1, "mmlu:subject=law:id2": 0.5, "mmlu:subject=law:id3": None},
        "org/b": {"mmlu:subject=law:id1": 0, "mmlu:subject=law:id2": None, "mmlu:subject=law:id3": None},
    }
    question = found.questions["mmlu:subject=law:id1"]
    assert (question.prompt, question.choices, question.answers) == ("Which?", ("x", "y"), ("B",))
    assert [reply[:3] for reply in found.replies["mmlu:subject=law:id1"]] == [
        ("org/a", " B", 1.0),
        ("org/b", " B", 0.0),
    ]
    assert "1 perturbed instances are left out" in notes[0]


def test_helm_metrics_are_chosen_by_name(tmp_path):
    helm_run(tmp_path / "one", "m", instance("id1", stat("exact_match", 1.0), stat("f1_score", 0.4)))
    assert "metrics: found 'exact_match', 'f1_score' and no choice" in refused(tmp_path)
    assert read_responses(tmp_path, metric="f1_score").scores.tolist() == [[0.4]]


def test_a_helm_run_of_two_splits_asks_for_one(tmp_path):
    one = [instance(f"id{n}", stat("exact_match", float(n == 0), split=s)) for n, s in enumerate(["test", "valid"])]
    helm_run(tmp_path, "m", *one)
    assert "splits: found 'test', 'valid' and no choice between them; give filter" in refused(tmp_path)
    assert table(read_responses(tmp_path, filter="test")) == {"m": {"mmlu:subject=law:id0": 1}}


@pytest.mark.parametrize(
    ("planned", "accuracy", "fault"),
    [(2, 0.5, ""), (3, 0.5, "2 of 3 planned samples"), (2, 0.9, "it states an accuracy of 0.9000")],
)
def test_a_helm_run_that_disagrees_with_its_sums_is_no_whole_log(tmp_path, planned, accuracy, fault):
    helm_run(tmp_path, "m", *(instance(f"id{n}", stat("exact_match", float(n))) for n in range(2)))
    write(tmp_path / "stats.json", [stat("num_instances", planned), stat("exact_match", accuracy)])
    found = read_responses(tmp_path)
    (reason,) = found.check_whole("m", partial=True) or [""]
    assert fault in reason
    assert bool(reason) == bool(fault)


# --- evalscope --------------------------------------------------------------------------------------------------------


def review(index, main=None, **values):
    scored = {"value": values, "prediction": "It is 3", "main_score_name": main}
    chat = [{"role": "user", "content": f"{index}?"}, {"role": "assistant", "content": "It is 3"}]
    return {"index": index, "target": "3", "messages": chat, "sample_score": {"score": scored, "group_id": index}}


def test_evalscope_reviews(tmp_path):
    for model, right in (("big", 1.0), ("small", 0.0)):
        folder = tmp_path / "out" / "reviews" / model
        lines(folder / "gsm8k_main.jsonl", review(1, acc=right), review(2, acc=1.0))
        lines(folder / "ifeval_default.jsonl", review(1, "strict", strict=right, loose=1.0))
        lines(tmp_path / "out" / "predictions" / model / "gsm8k_main.jsonl", {"index": 1, "model_output": {}})
    found = read_responses(tmp_path)
    assert table(found) == {
        "big": {"gsm8k_main:1": 1, "gsm8k_main:2": 1, "ifeval_default:1": 1},
        "small": {"gsm8k_main:1": 0, "gsm8k_main:2": 1, "ifeval_default:1": 0},
    }
    assert found.questions["gsm8k_main:1"].prompt == "1?"
    assert read_responses(tmp_path, metric="loose,acc").scores.tolist() == [[1, 1, 1], [0, 1, 1]]


def test_an_evalscope_log_that_was_cut_is_no_whole_log(tmp_path):
    rows = [review(n, acc=1.0) for n in range(3)]
    subsets = [{"name": "main", "num": 3, "score": 1.0}, {"name": "other", "num": 9, "score": 0.0}]
    stated = {"dataset_name": "gsm8k", "metrics": [{"name": "acc", "num": 12, "categories": [{"subsets": subsets}]}]}
    (tmp_path / "reports" / "big").mkdir(parents=True)
    write(tmp_path / "reports" / "big" / "gsm8k.json", stated)
    file = tmp_path / "reviews" / "big" / "gsm8k_main.jsonl"
    lines(file, *rows)
    assert read_responses(file).check_whole("big", partial=False) == []
    with pytest.raises(ResponsesError, match=r"gsm8k.json: 'gsm8k_other': 0 of 9 planned samples"):
        read_responses(tmp_path).check_whole("big", partial=False)
    lines(file, *rows[:2])
    for place in (tmp_path, file):
        with pytest.raises(ResponsesError, match="2 of 3 planned samples"):
            read_responses(place).check_whole("big", partial=False)


def test_evalscope_runs_on_different_samples_are_not_one_item(tmp_path):
    lines(tmp_path / "a" / "g.jsonl", review(1, acc=1.0))
    other = review(1, acc=1.0)
    other["messages"][0]["content"] = "another question"
    lines(tmp_path / "b" / "g.jsonl", other)
    assert "the item 'g:1' has another question than in" in refused(tmp_path)


# --- promptfoo --------------------------------------------------------------------------------------------------------


def promptfoo_result(number, provider, reason):
    return {
        "promptIdx": 0,
        "testIdx": number,
        "testCase": {
            "vars": {"n": number},
            "assert": [{"type": "latency"}, {"type": "equals", "value": f"{number + 1}"}],
        },
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"What is {number} + 1?", "label": "p"},
        "response": {"output": f"{number + 1 - reason}"},
        "success": not reason,
        "score": float(not reason),
        "failureReason": reason,
        "error": "Expected other" if reason else None,
    }


def test_promptfoo_results_are_read_from_json_and_from_json_lines(tmp_path):
    results = [promptfoo_result(n, f"openai:{name}", (n + k) % 3) for n in range(3) for k, name in enumerate("ab")]
    whole = {"evalId": "e-1", "results": {"version": 3, "prompts": [{"raw": "What"}], "results": results}, "config": {}}
    write(tmp_path / "json" / "out.json", whole)
    lines(tmp_path / "lines" / "out.jsonl", *results)
    for folder in ("json", "lines"):
        found = read_responses(tmp_path / folder)
        assert found.subjects == ("openai:a", "openai:b")
        # a failed assertion is wrong, an error is missing
        assert [[None if np.isnan(v) else v for v in row] for row in found.scores] == [[1, 0, None], [0, None, 1]]
        question = found.questions[found.items[1]]
        assert (question.prompt, question.answers) == ("What is 1 + 1?", ("2",))


def test_promptfoo_results_that_were_cut_are_no_whole_log(tmp_path):
    results = [promptfoo_result(n, "a", int(n == 2)) for n in range(3)]
    sums = {"testPassCount": 2, "testFailCount": 1, "testErrorCount": 0, "score": 2.0}
    whole = {"version": 3, "prompts": [{"raw": "?", "provider": "a", "metrics": sums}], "results": results}
    write(tmp_path / "out.json", {"evalId": "e-1", "results": whole})
    assert read_responses(tmp_path / "out.json").check_whole("a", partial=False) == []
    write(tmp_path / "out.json", {"evalId": "e-1", "results": {**whole, "results": results[:2]}})
    with pytest.raises(ResponsesError, match="2 of 3 planned samples"):
        read_responses(tmp_path / "out.json").check_whole("a", partial=False)


# --- published logs ---------------------------------------------------------------------------------------------------


@published
@pytest.mark.parametrize(
    ("folder", "settings", "items", "expected"),
    [
        (
            "helm",
            {"metric": "exact_match", "filter": "test,valid"},
            19,
            {"eleutherai/pythia-1b-v0": 0.3, "openai/gpt2": 0.1111},
        ),
        ("evalscope/qwen-plus", {}, 40, {"qwen-plus": 0.9}),
        (
            "mathvision/Gemini-Pro.jsonl",
            {"mapping": ResponseMapping(score="correct")},
            3040,
            {"gemini-pro-vision": 0.1766},
        ),
    ],
)
def test_published_logs_have_the_accuracies_that_they_state(folder, settings, items, expected):
    found = read_responses(DATA / folder, **settings)
    assert means(found) == expected
    assert len(found.items) == items


@published
def test_published_folders_of_inspect_leave_out_what_has_no_scores():
    notes: list[str] = []
    assert len(read_responses(DATA / "inspect" / "every_eval_ever", note=notes.append).items) == 9
    assert any("data_with_llm_scoring.json: no samples, only a header" in note for note in notes)
    assert any("data_cvebench_empty_choices.json" in note and "No services started" in note for note in notes)
    logs = read_responses(DATA / "inspect" / "inspect_ai", note=notes.append)
    assert len(logs.items) == 18
    assert any("no-samples.json: no samples, only a header (status 'cancelled')" in note for note in notes)
    (image,) = logs.questions["images:1"].images
    assert str(image).startswith("data:image/png;base64,")


@published
def test_a_published_excerpt_of_samples_is_refused_by_its_own_results():
    (subject,) = (found := read_responses(DATA / "lm_eval")).subjects
    with pytest.raises(ResponsesError, match=r"task 'math_rephrased_full': 0 of 5000 planned samples.*, and 1 more"):
        found.check_whole(subject, partial=False)


@published
def test_published_sums_are_refused_with_the_way_to_samples():
    assert "looks like summed results; calibration needs the answer" in refused(DATA / "lm_eval_results_only")
