"""Recorded responses in the layouts that evaluation tools write."""

from __future__ import annotations

import json
import sys
import zipfile

import numpy as np
import pytest
from made import made

from pytest_adaptive_eval import tables
from pytest_adaptive_eval.banks import rows
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.extensions.logs.response_readers import inspectlog
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord

NAN = float("nan")


def refused(path, **settings):
    with pytest.raises(ResponsesError) as caught:
        read_responses(path, **settings)
    return str(caught.value)


def not_whole(path, **settings):
    """Why the log of the first subject is not whole, empty if it is."""
    found = read_responses(path, **settings)
    return "; ".join(found.check_whole(found.subjects[0], partial=True))


def table(responses):
    """{subject: {item: score}}, None where missing."""
    return {
        subject: {item: None if np.isnan(v) else float(v) for item, v in zip(responses.items, row, strict=True)}
        for subject, row in zip(responses.subjects, responses.scores, strict=True)
    }


# --- lm-evaluation-harness --------------------------------------------------------------------------------------------


def sample(doc, filter="none", metrics=("acc",), hash=None, **values):
    return {
        "doc_id": doc,
        "doc": {"question": "?" * 50, "answer": 1},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {"until": []}}},
        "resps": [["1"]],
        "filtered_resps": ["1"],
        "filter": filter,
        "metrics": list(metrics),
        "doc_hash": hash or f"h{doc}",
        "prompt_hash": "p",
        "target_hash": "t",
        **values,
    }


def samples(path, *entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


TIME = "2026-05-06T07-08-09.123456"


def test_harness_samples_of_several_models_and_tasks(tmp_path):
    for model, right in (("org__big", 1.0), ("org__small", 0.0)):
        samples(tmp_path / model / f"samples_arc_easy_{TIME}.jsonl", sample(0, acc=right), sample(1, acc=1.0))
        samples(
            tmp_path / model / f"samples_gsm8k_{TIME}.jsonl", sample(0, metrics=["exact_match"], exact_match=1 - right)
        )
        (tmp_path / model / f"results_{TIME}.json").write_text('{"results": {}}')
    assert table(read_responses(tmp_path)) == {
        "org__big": {"arc_easy:h0": 1, "arc_easy:h1": 1, "gsm8k:h0": 0},
        "org__small": {"arc_easy:h0": 0, "arc_easy:h1": 1, "gsm8k:h0": 1},
    }
    alone = read_responses(tmp_path / "org__small")
    assert alone.subjects == ("org__small",)
    one = read_responses(tmp_path / "org__small" / f"samples_gsm8k_{TIME}.jsonl")
    assert table(one) == {"org__small": {"gsm8k:h0": 1}}


def test_harness_filters_are_chosen_by_name(tmp_path):
    for model in ("a", "b"):
        samples(
            tmp_path / model / f"samples_gsm8k_{TIME}.jsonl",
            sample(0, "strict-match", ["exact_match"], exact_match=0),
            sample(0, "flexible-extract", ["exact_match"], exact_match=1),
        )
        samples(tmp_path / model / f"samples_arc_{TIME}.jsonl", sample(0, acc=True))
    message = refused(tmp_path)
    assert "task 'gsm8k', filters: found 'flexible-extract', 'strict-match'" in message
    assert "give filter one of them" in message
    assert "task 'arc', filters: found 'none' and filter is 'strict-match'" in refused(tmp_path, filter="strict-match")
    found = table(read_responses(tmp_path, filter="flexible-extract, none"))
    assert found["a"] == {"arc:h0": 1, "gsm8k:h0": 1}


def test_harness_metrics_are_chosen_by_name(tmp_path):
    entries = [sample(i, metrics=["acc", "acc_norm", "f1"], acc=0.0, acc_norm=1.0, f1=["x", "y"]) for i in range(2)]
    samples(tmp_path / "a" / f"samples_arc_{TIME}.jsonl", *entries)
    assert "metrics: found 'acc', 'acc_norm' and no choice between them" in refused(tmp_path)
    assert "metric is 'f1'" in refused(tmp_path, metric="f1")
    assert read_responses(tmp_path, metric="acc_norm,none").scores.tolist() == [[1, 1]]


def test_harness_files_from_before_filters_and_metrics(tmp_path):
    old = [{"doc_id": i, "doc": {}, "target": 3, "resps": [], "acc": i} for i in range(2)]
    samples(tmp_path / "a" / "samples_arc.jsonl", *old)
    notes: list[str] = []
    assert table(read_responses(tmp_path, note=notes.append)) == {"a": {"arc:0": 0, "arc:1": 1}}
    assert "task 'arc' has lines without doc_hash" in notes[0]


def test_harness_ids_of_two_kinds_do_not_part_the_models(tmp_path):
    samples(tmp_path / "old" / f"samples_arc_{TIME}.jsonl", {"doc_id": 0, "acc": 1})
    samples(tmp_path / "new" / f"samples_arc_{TIME}.jsonl", sample(0, acc=0))
    assert table(read_responses(tmp_path)) == {"new": {"arc:0": 0}, "old": {"arc:0": 1}}


def test_the_newest_harness_run_counts_and_that_is_said(tmp_path):
    samples(tmp_path / "a" / "samples_arc_2026-05-06T07-08-09.jsonl", sample(0, acc=0))
    samples(tmp_path / "a" / f"samples_arc_{TIME}.jsonl", sample(0, acc=1))
    samples(tmp_path / "a" / "samples_arc_2025-12-31T23-59-59.9.jsonl", sample(0, acc=0))
    notes: list[str] = []
    assert read_responses(tmp_path, note=notes.append).scores.tolist() == [[1]]
    assert "3 logs of a; for each item the newest score counts" in notes[0]


def test_equal_documents_are_one_item_and_no_score_is_missing(tmp_path):
    entries = [sample(0, hash="x", acc=1), sample(1, hash="x", acc=0), sample(2, acc=None), sample(3, acc=NAN)]
    samples(tmp_path / "a" / f"samples_t_{TIME}.jsonl", *entries)
    assert table(read_responses(tmp_path)) == {"a": {"t:x": 0.5, "t:h2": None, "t:h3": None}}


@pytest.mark.parametrize(
    ("entries", "part"),
    [
        ([sample(0, acc=3.5)], "line 1, metric 'acc': found 3.5, expected a score in [0, 1]"),
        ([sample(0, acc=1), sample(0, acc=0)], "1 documents occur twice"),
        ([sample(0, metrics=["x"], x=["a"])], "none of its samples has a score"),
        ([{"a": 1}], "line 1: an object with the keys a, expected a logged sample"),
        ([{"doc_id": None}], "doc_id is None"),
        ([], "empty; remove it"),
    ],
)
def test_malformed_harness_samples(tmp_path, entries, part):
    path = samples(tmp_path / "a" / f"samples_arc_{TIME}.jsonl", *entries)
    message = refused(tmp_path)
    assert part in message
    assert str(path) in message or "task 'arc'" in message


def test_a_harness_file_without_the_chosen_metric(tmp_path):
    samples(tmp_path / "a" / f"samples_arc_{TIME}.jsonl", sample(0, acc=1))
    path = samples(tmp_path / "b" / f"samples_arc_{TIME}.jsonl", sample(0, metrics=["em"], em=1))
    message = refused(tmp_path, metric="acc")
    assert f"{path}, task 'arc': no score 'acc', which the other logs of the task have" in message


def test_a_harness_file_with_fewer_samples_than_its_results_state_is_refused(tmp_path):
    time = "2026-05-06T00-00-00"
    samples(tmp_path / f"samples_arc_{time}.jsonl", sample(0, acc=1), sample(1, acc=0))
    results = tmp_path / f"results_{time}.json"
    results.write_text(json.dumps({"n-samples": {"arc": {"original": 9, "effective": 3}}}))
    assert "samples_arc_2026-05-06T00-00-00.jsonl, task 'arc': 2 of 3 planned samples" in not_whole(tmp_path)
    results.write_text(json.dumps({"n-samples": {"arc": {"original": 9, "effective": 2}}}))
    assert not_whole(tmp_path) == ""


def test_no_harness_samples(tmp_path):
    assert "no samples_TASK_TIME.jsonl" in refused(tmp_path, format="lm-eval")


# --- Inspect ----------------------------------------------------------------------------------------------------------


def summary(id, value="C", epoch=1, scorer="match", **more):
    scores = None if value is ... else {scorer: {"value": value}}
    return {"id": id, "epoch": epoch, "input": "?", "target": "1", "scores": scores, "completed": True, **more}


def header(model, task="arc", created="2026-05-06T07:08:09+00:00", **about):
    spec = {"task": task, "model": model, "created": created, "dataset": {}, "config": {}, **about}
    return {"version": 2, "status": "success", "eval": spec, "plan": {}}


def log(path, about, entries, method=zipfile.ZIP_DEFLATED):
    path.parent.mkdir(parents=True, exist_ok=True)
    with inspectlog._zip_module().ZipFile(path, "w", method) as archive:
        archive.writestr("_journal/start.json", "{}")
        for entry in entries:
            if isinstance(entry, dict):
                name = f"{entry.get('id')}_epoch_{entry.get('epoch')}"
                archive.writestr(f"samples/{name}.json", json.dumps(entry))
        archive.writestr("summaries.json", json.dumps(entries))
        archive.writestr("header.json", json.dumps(about))
    return path


@pytest.fixture
def zstandard():
    """The number of the method; the package, or a Python that has it."""
    if sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd", reason="backports.zstd is not installed (extra inspect)")
    return 93


def test_inspect_logs_compressed_with_zstandard(tmp_path, zstandard):
    log(tmp_path / "a.eval", header("org/a"), [summary("x", "C"), summary("y", "I")], zstandard)
    log(tmp_path / "b.eval", header("org/b"), [summary("x", "P"), summary("y", "N")], zstandard)
    expected = {"org/a": {"arc:x": 1, "arc:y": 0}, "org/b": {"arc:x": 0.5, "arc:y": 0}}
    assert table(read_responses(tmp_path)) == expected
    assert read_responses(tmp_path / "a.eval").subjects == ("org/a",)


def test_inspect_values_epochs_and_errors(tmp_path):
    entries = [
        *(summary(1, v, epoch=e) for e, v in enumerate(["C", "I", NAN, "C"], 1)),
        summary(2, 0.25),
        summary(3, True, limit="token"),
        summary(4, NAN),
        summary(5, None),
        summary(6, "C", error="it broke"),
        summary(7, ...),
    ]
    log(tmp_path / "a.eval", header("m"), entries)
    values = {"arc:1": 2 / 3, "arc:2": 0.25, "arc:3": 1} | dict.fromkeys(["arc:4", "arc:5", "arc:6", "arc:7"])
    assert table(read_responses(tmp_path))["m"] == pytest.approx(values)


def test_inspect_logs_as_json(tmp_path):
    entries = [{**summary("x"), "messages": [], "error": None}, {**summary("y"), "error": {"message": "broke"}}]
    (tmp_path / "a.json").write_text(json.dumps({**header("m"), "samples": entries}, indent=2))
    (tmp_path / "logs.json").write_text("{}")
    assert table(read_responses(tmp_path)) == {"m": {"arc:x": 1, "arc:y": None}}
    (tmp_path / "a.json").write_text(json.dumps(header("m")))
    assert "no samples, only a header" in refused(tmp_path / "a.json")


def test_inspect_scorers_are_chosen_by_name(tmp_path):
    entry = {**summary(1), "scores": {"match": {"value": "C"}, "judge": {"value": {"style": 0.5, "fact": 1}}}}
    log(tmp_path / "a.eval", header("m"), [entry])
    assert "task 'arc', metrics: found 'judge/fact', 'judge/style', 'match'" in refused(tmp_path)
    assert read_responses(tmp_path, metric="judge/style").scores.tolist() == [[0.5]]


@pytest.mark.parametrize("status", ["error", "cancelled", "started", "success"])
def test_an_inspect_run_that_broke_off_is_no_whole_log(tmp_path, status):
    about = {"dataset": {"sample_ids": ["1", "2"]}, "config": {"epochs": 2}}
    log(tmp_path / "a.eval", header("m", **about) | {"status": status, "error": {"message": "CUDA"}}, [summary("1")])
    ended = "" if status == "success" else f" (status '{status}', CUDA)"
    assert f"task 'arc': 1 of 4 planned samples{ended}" in not_whole(tmp_path)
    every = [summary(name, epoch=epoch) for name in "12" for epoch in (1, 2)]
    log(tmp_path / "b.eval", header("m", created="2026-05-06T09:00:00+00:00", **about), every)
    assert not_whole(tmp_path) == ""


def test_an_inspect_run_of_a_task_without_samples_is_missed(tmp_path):
    log(tmp_path / "a.eval", header("m"), [summary("1")])
    assert not_whole(tmp_path) == ""
    log(tmp_path / "b.eval", header("m", task="sums", dataset={"sample_ids": [1, 2, 3]}), [])
    assert "b.eval, task 'sums': 0 of 3 planned samples" in not_whole(tmp_path)


@pytest.mark.parametrize(("stated", "fault"), [(0.5, ""), (1.0, "it states an accuracy of 1.0000, and its samples")])
def test_an_inspect_log_that_disagrees_with_its_accuracy_is_no_whole_log(tmp_path, stated, fault):
    scores = [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"value": stated}}}]
    results = {"results": {"total_samples": 2, "scores": scores}}
    log(tmp_path / "a.eval", header("m") | results, [summary(1, "C"), summary(2, "I")])
    assert fault in not_whole(tmp_path)
    assert bool(not_whole(tmp_path)) == bool(fault)


def test_a_harness_task_that_the_results_name_and_no_file_has_is_missed(tmp_path):
    samples(tmp_path / "a" / f"samples_arc_{TIME}.jsonl", sample(0, acc=1), sample(1, acc=0))
    stated = {"n-samples": {"arc": {"effective": 2}, "gsm8k": {"effective": 9}}}
    (tmp_path / "a" / f"results_{TIME}.json").write_text(json.dumps(stated))
    assert "task 'gsm8k': 0 of 9 planned samples (no samples file)" in not_whole(tmp_path)
    assert not_whole(tmp_path / "a" / f"samples_arc_{TIME}.jsonl") == ""


@pytest.mark.parametrize(
    ("stated", "aggregation", "fault"),
    [
        (0.5, "mean", ""),
        (0.9, "mean", "it states an accuracy of 0.9000, and its samples have 0.5000 (2 samples)"),
        (0.9, "f1", ""),  # no mean of its samples
    ],
)
def test_harness_samples_that_disagree_with_their_results_are_no_whole_log(tmp_path, stated, aggregation, fault):
    samples(tmp_path / "a" / f"samples_arc_{TIME}.jsonl", sample(0, acc=1), sample(1, acc=0))
    configs = {"arc": {"metric_list": [{"metric": "acc", "aggregation": aggregation}]}}
    results = {"results": {"arc": {"acc,none": stated}}, "configs": configs}
    (tmp_path / "a" / f"results_{TIME}.json").write_text(json.dumps(results))
    assert fault in not_whole(tmp_path)
    assert bool(not_whole(tmp_path)) == bool(fault)


def test_the_newest_inspect_score_of_each_item_counts(tmp_path):
    log(tmp_path / "1.eval", header("m", created="2026-05-06T09:00:00+02:00"), [summary(1, "I"), summary(2, "I")])
    log(tmp_path / "2.eval", header("m", created="2026-05-06T08:00:00+00:00"), [summary(1, "C"), summary(2, NAN)])
    log(tmp_path / "0.eval", header("m", created="long ago"), [summary(1, "P"), summary(3, "P")])
    notes: list[str] = []
    found = read_responses(tmp_path, note=notes.append)
    assert table(found) == {"m": {"arc:1": 1, "arc:2": 0, "arc:3": 0.5}}
    assert "3 logs of m" in notes[0]


def test_checkpoints_that_run_as_one_model_are_told_apart(tmp_path):
    for step in (100, 200):
        arguments = {"model_path": f"ckpt-{step}", "device": 0}
        log(tmp_path / f"{step}.eval", header("hf/local", model_args=arguments), [summary(1, "C")])
    assert read_responses(tmp_path).subjects == ("hf/local(model_path=ckpt-100)", "hf/local(model_path=ckpt-200)")


@pytest.mark.parametrize(
    ("entries", "part"),
    [
        ([summary(1, "maybe")], "sample 1 (id '1', epoch 1), metric 'match': found 'maybe', expected a score"),
        ([summary(1, 7)], "found 7, expected a score in [0, 1]"),
        ([summary(1, [1])], "found [1], expected a score"),
        ([summary(None)], "sample 1: id is None"),
        ([3], "sample 1: found int"),
        ([{"id": 1, "scores": [1]}], "scores is [1]"),
        ([summary(1, ...)], "has a score; score the log: inspect score"),
        ([], "no samples, only a header"),
    ],
)
def test_malformed_inspect_samples(tmp_path, entries, part):
    path = log(tmp_path / "a.eval", header("m"), entries)
    assert part in refused(path)


def test_an_inspect_log_without_the_chosen_scorer(tmp_path):
    log(tmp_path / "a.eval", header("a"), [summary(1)])
    path = log(tmp_path / "b.eval", header("b"), [summary(1, scorer="judge")])
    assert f"{path}, task 'arc': no score 'match', which the other logs" in refused(tmp_path, metric="match")


def test_archives_that_are_no_inspect_logs(tmp_path):
    path = tmp_path / "a.eval"
    path.write_bytes(b"no zip")
    assert "not a zip archive" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    assert "no eval.model and eval.task" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
    assert "no summaries.json in it" in refused(path)
    log(path, {"version": 2}, [summary(1)])
    assert "no eval.model and eval.task" in refused(path)
    path.unlink()
    assert "no log; expected .eval" in refused(tmp_path, format="inspect")


def test_damaged_members_are_named(tmp_path):
    path = log(tmp_path / "a.eval", header("m"), [summary(i) for i in range(200)])
    info = zipfile.ZipFile(path).getinfo("summaries.json")
    data = bytearray(path.read_bytes())
    at = info.header_offset + 60
    data[at : at + 20] = b"\xff" * 20
    path.write_bytes(data)
    assert "summaries.json cannot be unpacked" in refused(path)


def test_members_that_claim_too_much_are_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(inspectlog, "FILE_LIMIT", 1000)
    monkeypatch.setattr(rows, "FILE_LIMIT", 1000)
    path = log(tmp_path / "a.eval", header("m"), [summary(i) for i in range(200)])
    assert "summaries.json claims" in refused(path)
    (tmp_path / "a.json").write_text(json.dumps({**header("m"), "samples": [summary(i) for i in range(200)]}))
    assert "at most 1000 are read" in refused(tmp_path / "a.json")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads zstandard by itself")
def test_without_the_package_zstandard_is_an_instruction(tmp_path, zstandard, monkeypatch):
    path = log(tmp_path / "a.eval", header("m"), [summary(1)], zstandard)
    monkeypatch.setitem(sys.modules, "backports.zstd.zipfile", None)
    message = refused(path)
    assert "pytest-adaptive-eval[inspect]" in message
    assert "inspect log dump a.eval > a.json" in message
    assert read_responses(log(tmp_path / "b.eval", header("m"), [summary(1)])).items == ("arc:1",)


# --- VLMEvalKit -------------------------------------------------------------------------------------------------------


COLUMNS = ["index", "question", "A", "B", "answer", "category", "prediction", "hit", "log"]


def row(index, hit, answer="A", prediction="A", log="Match Log: ok", **more):
    values = {"question": "?", "A": "x", "B": "y", "category": "c"}
    return {"index": index, "hit": hit, "answer": answer, "prediction": prediction, "log": log, **values, **more}


def judged(path, *entries, columns=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [*COLUMNS, *columns]
    cells = [columns, *([entry.get(name) for name in columns] for entry in entries)]
    if path.suffix == ".xlsx":
        pytest.importorskip("python_calamine", reason="needs python-calamine (extra xlsx)")
        openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl (group test)")
        book = openpyxl.Workbook()
        for line in cells:
            book.active.append(line)
        book.save(path)
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        path.write_text("".join(mark.join("" if c is None else str(c) for c in line) + "\n" for line in cells))
    return path


@pytest.mark.parametrize("suffix", [".xlsx", ".csv", ".tsv"])
def test_judged_tables_in_the_folders_of_the_toolkit(tmp_path, suffix):
    for model, hit in (("Qwen2_VL", 1), ("GPT4o", 0)):
        judged(
            tmp_path / model / "T20260506_G0a1b2c3d" / f"{model}_MMMU_DEV_VAL_exact_matching_result{suffix}",
            row(1, hit),
            row(2, 1.0),
            row(3, 0, prediction="Failed to obtain answer via API."),
            row(4, 0, log="Judge: failed to obtain answer via API"),
            row(5, None),
        )
        judged(tmp_path / model / f"{model}_MMMU_DEV_VAL{suffix}", columns=())
        (tmp_path / model / f"{model}_MMMU_DEV_VAL_acc.csv").write_text("split,Overall\nval,0.5\n")
        (tmp_path / model / f"{model}_MMMU_DEV_VAL_result.pkl").write_bytes(b"\x80")
        (tmp_path / model / f"{model}_MMMU_DEV_VAL{suffix}").unlink()
    found = table(read_responses(tmp_path))
    assert found == {
        "GPT4o": {"1": 0, "2": 1, "3": None, "4": None, "5": None},
        "Qwen2_VL": {"1": 1, "2": 1, "3": None, "4": None, "5": None},
    }
    folder = tmp_path / "GPT4o" / "T20260506_G0a1b2c3d"
    assert read_responses(next(folder.iterdir())).subjects == ("GPT4o",)


def test_judged_tables_in_one_folder(tmp_path):
    judged(tmp_path / "a_chat_AI2D_TEST_result.csv", row(1, 1), row(2, 0))
    judged(tmp_path / "b_AI2D_TEST_result.csv", row(1, 0))
    found = table(read_responses(tmp_path, filter="AI2D_TEST"))
    assert found == {"a_chat": {"1": 1, "2": 0}, "b": {"1": 0, "2": None}}
    assert read_responses(tmp_path).subjects == ("a_chat_AI2D_TEST_result", "b_AI2D_TEST_result")
    assert read_responses(tmp_path / "b_AI2D_TEST_result.csv", filter="AI2D_TEST").subjects == ("b",)
    assert read_responses(tmp_path / "b_AI2D_TEST_result.csv").subjects == ("b_AI2D_TEST_result",)
    assert "no judged table of MMMU" in refused(tmp_path, filter="MMMU")


def test_circular_questions_are_right_only_when_every_order_is(tmp_path):
    failed = "Failed to obtain answer via API."
    judged(
        tmp_path / "a_MMBench_result.csv",
        *(row(index, hit, g_index=index % 1000, prediction=p) for index, hit, p in (
            (1, 1, "A"), (1001, 1, "A"), (2, 1, "A"), (1002, 0, "B"), (3, 1, "A"), (1003, 1, failed), (4, 0, "A"),
            (1004, 0, failed),
        )),
        columns=["g_index"],
    )  # fmt: skip
    found = read_responses(tmp_path / "a_MMBench_result.csv")
    assert list(table(found).values()) == [{"1": 1, "2": 0, "3": None, "4": 0}]


def test_tables_of_different_data_sets_do_not_mix(tmp_path):
    judged(tmp_path / "a" / "a_AI2D_result.csv", row(1, 1, answer="A"))
    judged(tmp_path / "b" / "b_MMMU_result.csv", row(1, 1, answer="B"))
    assert "the answer to index 1 is 'B'" in refused(tmp_path)
    assert read_responses(tmp_path, filter="MMMU").subjects == ("b",)
    judged(tmp_path / "b" / "b_MMMU_gpt_result.csv", row(1, 0, answer="B"))
    assert "'b' has judged tables 'b_MMMU_gpt_result' and 'b_MMMU_result'" in refused(tmp_path, filter="MMMU")
    assert read_responses(tmp_path, filter="MMMU_gpt_result").scores.tolist() == [[0]]


def test_links_to_the_newest_table_are_one_table_and_older_ones_are_left_out(tmp_path):
    name = "m_AI2D_result.csv"
    judged(tmp_path / "m" / "T20260101_Ga" / name, row(1, 0))
    newest = judged(tmp_path / "m" / "T20260202_Gb" / name, row(1, 1))
    (tmp_path / "m" / name).symlink_to(newest)
    notes: list[str] = []
    assert read_responses(tmp_path, note=notes.append).scores.tolist() == [[1]]
    assert "the one in T20260202_Gb counts" in notes[0]


@pytest.mark.parametrize(
    ("entries", "part"),
    [
        ([row(1, 2)], "line 2, column 'hit': found '2', expected a score"),
        ([row(1, "maybe")], "found 'maybe'"),
        ([row(1, 1), row(1, 0)], "line 3: index is '1', expected another one in each row"),
        ([row(None, 1)], "line 2: index is '', expected another one"),
        ([], "no responses"),
    ],
)
def test_malformed_judged_tables(tmp_path, entries, part):
    assert part in refused(judged(tmp_path / "a_X_result.csv", *entries))


def test_predictions_are_no_judged_table(tmp_path):
    path = tmp_path / "a_X.tsv"
    path.write_text("index\tprediction\n1\tA\n")
    for place in (path, tmp_path):
        assert "no judged table of any data set, with the columns index and hit" in refused(place, format="vlmevalkit")
    path.write_text("index\thit\n1\n")
    assert "line 2: 1 cells, expected 2" in refused(path)


def test_workbooks_that_cannot_be_read(tmp_path, monkeypatch):
    path = tmp_path / "a_X_result.xlsx"
    path.write_bytes(b"PK no workbook")
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert "pytest-adaptive-eval[xlsx]" in refused(path)
    monkeypatch.undo()
    pytest.importorskip("python_calamine", reason="needs python-calamine (extra xlsx)")
    assert "not a readable workbook" in refused(path)
    judged(path, *(row(i, 1) for i in range(50)))
    monkeypatch.setattr(tables, "FILE_LIMIT", 1000)
    assert "bytes unpacked, at most 1000 are read" in refused(path)


# --- recorded runs ----------------------------------------------------------------------------------------------------


def interview(answers, name="m", checkpoint="c1", bank="b", decoding="d", format="text", hash="h", **more):
    asked = [
        Administration(
            i,
            item,
            hash,
            format=format,
            sample=[name for name, _ in answers[: i - 1]].count(item),
            status="ok" if isinstance(s, int | float) else s or "error",
            score=s if isinstance(s, int | float) else None,
        )
        for i, (item, s) in enumerate(answers, 1)
    ]
    subject = {"name": name, "checkpoint": checkpoint, "decoding": {"setting": decoding}, "environment": {}}
    return made(
        EvaluationRecord,
        name="e", nodeid="t.py::e", subject=subject, bank={"name": bank, "size": 9}, policy={}, asked=len(asked),
        scored=0, size=9, statuses={}, stop="", stop_sentence="", theta=None, standard_error=None, accuracy=None,
        accuracy_model=None, administrations=asked, **more,
    )  # fmt: skip


def record(folder, run, *interviews, started="2026-05-06T07:08:09+00:00", **extra):
    path = folder / "runs" / f"{run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RunRecord(run, started, evaluations=list(interviews), **extra).to_json()))
    return path


def test_a_run_that_failed_at_its_start_is_left_out(tmp_path):
    folder = tmp_path / ".adaptive-eval"
    record(folder, "1", interview([("q1", 1), ("q2", 0)], "step-100", "c1"))
    record(folder, "2", interview([("q1", "error")], "", ""))
    told: list[str] = []
    responses = read_responses(folder, note=told.append)
    assert list(responses.subjects) == ["step-100"]
    assert told == [".adaptive-eval: 1 interview without an answer that has a score left out"]


def test_runs_of_several_checkpoints(tmp_path):
    folder = tmp_path / ".adaptive-eval"
    record(folder, "1", interview([("q1", 1), ("q2", 0), ("q3", "truncated")], "step-100", "c1"))
    path = record(folder, "2", interview([("q1", 0.5), ("q4", "refused")], "step-200", "c2"), interview([]))
    (folder / "journal").mkdir()
    (folder / "journal" / "x.jsonl").write_text("{}\n")
    (folder / "cache").mkdir()
    (folder / "cache" / "x.json").write_text('{"hash": 1}')
    path.with_name("copy.json").write_bytes(path.read_bytes())  # as --adaptive-eval-record writes it
    expected = {
        "step-100": {"q1": 1, "q2": 0, "q3": None, "q4": None},
        "step-200": {"q1": 0.5, "q2": None, "q3": None, "q4": None},
    }
    for place in (tmp_path, folder, folder / "runs"):
        assert table(read_responses(place)) == expected
    assert read_responses(path).subjects == ("step-200",)


def test_several_answers_count_as_their_mean(tmp_path):
    record(tmp_path, "1", interview([("q1", 1), ("q2", 1), ("q2", 0)]))
    record(tmp_path, "2", interview([("q1", 0), ("q1", "timeout")], "renamed"))
    record(tmp_path, "3", interview([("q1", 1)]))
    found = table(read_responses(tmp_path))
    assert found == {"m": {"q1": pytest.approx(2 / 3), "q2": 0.5}}


def test_copies_of_runs_that_are_there_are_left_out(tmp_path):
    record(tmp_path, "1", interview([("q1", 1)]))
    record(tmp_path, "2", interview([("q1", 0), ("q2", 1)]))
    record(tmp_path, "both", interview([("q1", 1), ("q1", 0)]), merged=["1", "2"])
    record(tmp_path, "other", interview([("q2", 0)]), merged=["2", "elsewhere"])
    notes: list[str] = []
    assert table(read_responses(tmp_path, note=notes.append)) == {"m": {"q1": 0.5, "q2": 0.5}}
    assert notes == ["both.json: merged of runs that are read themselves, and left out"]


def test_namesakes_are_told_apart_by_their_hashes(tmp_path):
    record(
        tmp_path,
        "1",
        interview([("q", 1)], "last", "aaaaaaaaaa"),
        interview([("q", 0)], "last", "bbbbbbbbbb", decoding="greedy-123"),
        interview([("q", 0)], "last", "bbbbbbbbbb", decoding="sampled-456"),
        interview([("q", 1)], "alone", ""),
    )
    settings = ("d", "greedy-123", "sampled-456")
    hashes = [SubjectIdentity("", "", {"setting": setting}).decoding_hash[:8] for setting in settings]
    first, *others = read_responses(tmp_path).subjects
    assert first == f"last@aaaaaaaa+{hashes[0]}"
    assert others == [*(f"last@bbbbbbbb+{one}" for one in hashes[1:]), "alone"]


def test_banks_are_chosen_by_name(tmp_path):
    record(tmp_path, "1", interview([("q", 1)], bank="math"), interview([("q", 0)], bank="code"))
    assert "banks: found 'code', 'math'" in refused(tmp_path)
    assert read_responses(tmp_path, filter="math").scores.tolist() == [[1]]


def test_answers_to_an_earlier_text_are_left_out(tmp_path):
    record(tmp_path, "b", interview([("q1", 0)], hash="old"), started="2026-05-06T07:00:00+00:00")
    record(tmp_path, "a", interview([("q1", 1)], hash="new"), started="2026-05-06T08:00:00+00:00")
    notes: list[str] = []
    assert read_responses(tmp_path, note=notes.append).scores.tolist() == [[1]]
    assert "1 answers to earlier texts" in notes[0]


def test_formats_of_an_item_do_not_mix(tmp_path):
    record(tmp_path, "1", interview([("q1", 1)], format="image+text"), interview([("q1", 0)], format="text"))
    assert "item 'q1' was administered as 'text' and elsewhere as 'image+text'" in refused(tmp_path)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"run": "1", ', "not JSON"),
        ('{"run": "1", "started": "x", "schema_version": 99}', "schema_version 99, this version reads 3"),
        ('{"run": "1", "schema_version": 3}', "the run record is damaged"),
        ('{"run": "1", "started": "x", "schema_version": 3}', "no run record with answers"),
    ],
)
def test_malformed_records(tmp_path, text, part):
    path = tmp_path / "r.json"
    path.write_text(text)
    assert part in refused(path)


def test_records_with_fields_of_another_kind(tmp_path, monkeypatch):
    path = record(tmp_path, "1", interview([("q1", 1)]))
    good = json.loads(path.read_text())
    for change, part in (
        ({"subject": {"name": ""}}, "the subject's name is ''"),
        ({"bank": {}}, "the bank is ''"),
        (
            {"administrations": [{"position": 1, "item": None, "item_hash": "h", "score": 1}]},
            "administrations[0].item: Expected `str`",
        ),
        (
            {"administrations": [{"position": 1, "item": "q", "item_hash": "h", "score": "1"}]},
            "administrations[0].score: Expected `float | null`",
        ),
    ):
        path.write_text(json.dumps({**good, "interviews": [{**good["interviews"][0], **change}]}))
        assert part in refused(path)
    assert "no run record; expected" in refused(samples(tmp_path / "x.json", {"a": 1}), format="runs")
    monkeypatch.setattr(rows, "FILE_LIMIT", 10)
    assert "at most 10 are read" in refused(path)
