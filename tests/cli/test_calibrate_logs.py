"""Logs of a harness to a bank in one command, and joined to one's own items."""

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks import read_bank

PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="


@pytest.fixture
def harness():
    """Write samples of lm-evaluation-harness of 12 models on 30 sums, with the ids of one's own items in them."""
    chance = np.random.default_rng(3)
    right = chance.random((12, 30)) < 1 / (1 + np.exp(-np.linspace(-2, 2, 12)[:, None] + chance.normal(size=30)))
    for model, row in enumerate(right):
        folder = Path("results") / f"model-{model}"
        folder.mkdir(parents=True)
        with (folder / "samples_sums_2031-05-06T00-00-00.jsonl").open("w") as file:
            for n, value in enumerate(row):
                sample = {
                    "doc_id": n,
                    "doc_hash": f"hash{n}",
                    "doc": {"id": f"sum {n}"},
                    "target": str(2 * n),
                    "arguments": {"gen_args_0": {"arg_0": f"What is {n} + {n}?", "arg_1": {"until": ["."]}}},
                    "filtered_resps": [f"It is {2 * n + (not value)}."],
                    "filter": "none",
                    "metrics": ["exact_match"],
                    "exact_match": float(value),
                }
                file.write(json.dumps(sample) + "\n")
    return right


@pytest.mark.slow
def test_logs_become_a_bank_that_can_be_asked(run, harness):
    code, out, err = run("calibrate", "results", "-o", "sums.bank", "--policy", "none", "--model", "1pl", "--force")
    assert code in (0, 1)
    assert "wrote sums.bank: 30 items" in out
    assert "it has no texts" not in out
    assert "grader numeric, which agrees with the logged score of 120 of 120 answers" in err
    bank = read_bank("sums.bank")
    item = next(item for item in bank.items if item.id == "sums:hash7")
    assert (item.prompt, item.answer, item.grade("so 14"), item.grade("15")) == ("What is 7 + 7?", "14", 1.0, 0.0)
    assert bank.accuracies == pytest.approx(
        [harness[int(name.removeprefix("model-"))].mean() for name in bank.subjects]
    )


@pytest.mark.slow
def test_ids_of_logs_are_joined_to_own_items_as_the_error_says(run, harness):
    items = [{"id": f"sum-{n}", "prompt": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(30)]
    Path("own.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    command = (
        "calibrate",
        "results",
        "--items",
        "own.jsonl",
        "-o",
        "own.bank",
        "--policy",
        "none",
        "--model",
        "1pl",
        "--force",
    )
    code, _, err = run(*command)
    assert code == 4
    assert "give --ids a prefix to strip, a field such as doc_id, doc.id, or question to join by texts" in err
    code, out, _ = run(*command, "--ids", "question")
    assert "wrote own.bank: 30 items" in out
    assert read_bank("own.bank").ids[7] == "sum-7"


@pytest.mark.slow
def test_images_of_logs_are_in_the_bank(run):
    picture = {"type": "image", "image": PNG}
    for model in range(5):
        folder = Path("logs") / str(model)
        folder.mkdir(parents=True)
        samples = [
            {
                "id": f"a b {n}",
                "epoch": 1,
                "input": [{"role": "user", "content": [{"type": "text", "text": f"{n}?"}, picture]}],
                "target": "cat",
                "scores": {"match": {"value": "CI"[(n + model) % 2]}},
            }
            for n in range(6)
        ]
        about = {"version": 2, "status": "success", "eval": {"model": f"m{model}", "task": "pets"}}
        (folder / "log.json").write_text(json.dumps({**about, "samples": samples}))
    code, out, err = run("calibrate", "logs", "-o", "pets.bank", "--policy", "none", "--model", "1pl", "--force")
    assert code in (0, 1)
    assert "wrote pets.bank: 6 items" in out
    assert "6 ids cannot name tests and became others" in err
    item = read_bank("pets.bank").items[0]
    assert Path(item.image_paths[0]).read_bytes().startswith(b"\x89PNG")
    assert item.formats == ("image+text",)


@pytest.mark.slow
def test_a_mapping_and_its_file(run):
    rows = [{"id": n, "by": f"m{s}", "verdict": "yes" if (n + s) % 3 else "no"} for s in range(5) for n in range(8)]
    Path("r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("m.toml").write_text("subject = 'by'\nscore = 'verdict'\n")
    code, out, err = run("calibrate", "r.jsonl", "--config", "m.toml", "--model", "1pl")
    assert code in (0, 1)
    assert "5 subjects, 8 items" in out
    assert "by the names of its columns, --set item=id" in err
    code, _, err = run("calibrate", "r.jsonl", "--set", "subject=by |", "--set", "score=verdict")
    assert code == 4
    assert "subject 'by |'" in err


def test_one_log_becomes_a_bank_without_parameters(run, harness):
    code, _, err = run("calibrate", "results/model-0", "-o", "sums.bank")
    assert code == 4
    assert "With one, judge the log itself (adaptive-eval gate LOG --at-least X), or write its questions" in err
    Path("results/LICENSE").write_text("MIT License")
    code, out, _ = run("calibrate", "results/model-0", "--uncalibrated", "-o", "sums.bank", "--set", "source=our sums")
    assert code == 0
    assert "wrote sums.bank: 30 items without parameters" in out
    bank = read_bank("sums.bank")
    assert not bank.calibrated
    assert bank.report["source"] == {"source": "our sums", "licence": "MIT", "responses": "model-0"}
    assert bank.items[7].grade("so 14") == 1.0
    code, _, err = run("calibrate", "results", "--uncalibrated", "--model", "1pl", "-o", "other.bank")
    assert (code, "--model is not for --uncalibrated" in err) == (4, True)
    code, _, err = run("calibrate", "results", "--uncalibrated")
    assert (code, "--uncalibrated writes a bank: give -o NAME.bank" in err) == (4, True)


def test_a_log_without_texts_becomes_a_bank_of_ids_for_a_harness(run, tmp_path):
    report = {"total_instances": 3, "resolved_ids": ["c"], "unresolved_ids": ["a"], "error_ids": ["b"]}
    (tmp_path / "m.run.json").write_text(json.dumps(report))
    code, out, _ = run("calibrate", "m.run.json", "--uncalibrated", "-o", "ids.bank")
    assert code == 0
    assert "it has no texts: a harness can be asked by its ids" in out
    bank = read_bank("ids.bank")
    assert sorted(bank.ids) == ["a", "b", "c"]
    assert bank.report["textless"] is True
    assert not bank.calibrated
    code, out, _ = run("bank", "check", "ids.bank")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("warning")] == [
        "warning: it has ids alone, which a harness asks: calibrate it with --items for other models"
    ]


@pytest.mark.slow
def test_source_and_licence_of_an_imported_bank_stay_when_it_is_calibrated(run, harness):
    rows = [{"id": f"hash{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(30)]
    Path("data").mkdir()
    Path("data/sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("import", "data/sums.jsonl", "-o", "own.bank", "--yes", "--set", "licence=CC-BY-4.0")[0] == 0
    known = read_bank("own.bank").report["source"]
    command = ("calibrate", "results", "--items", "own.bank", "--ids", "sums:", "-o", "fit.bank", "--force")
    assert run(*command, "--policy", "none", "--model", "1pl")[0] in (0, 1)
    bank = read_bank("fit.bank")
    assert bank.calibrated
    assert bank.report["source"] == {**known, "responses": "results"}
    assert bank.report["source"]["licence"] == "CC-BY-4.0"
