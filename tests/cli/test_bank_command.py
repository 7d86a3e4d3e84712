"""``adaptive-eval bank``: what a bank is, whether it is whole, what changed, and a folder to share."""

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.irt.prediction import Predictor
from pytest_adaptive_eval.items.item import Item

BANKS = Path(__file__).parents[2] / "fixtures" / "banks"


def write_items(path, answers):
    rows = [{"id": name, "prompt": f"{name}?", "answer": answer} for name, answer in answers.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_info_tells_source_fit_and_margins(run):
    code, out, _ = run("bank", "info", BANKS / "text.bank")
    assert code == 0
    assert "graders          360 numeric, 264 exact" in out
    assert "2pl, 1 dimension, scale 6eaec207453fa9bd, of 52 subjects with accuracies from .083 to .806" in out
    assert "a margin of .100 from a threshold, in 4 of 5 runs" in out


def test_margin_of_the_card_is_what_plan_says(run):
    _, out, _ = run("plan", BANKS / "text.bank", "--at-least", "0.5", "--margin", "0.1", "--budget", "20%")
    assert float(out.partition("verdict with probability ")[2].split()[0]) >= 0.8
    _, out, _ = run("plan", BANKS / "text.bank", "--at-least", "0.5", "--margin", "0.09", "--budget", "20%")
    assert float(out.partition("verdict with probability ")[2].split()[0]) < 0.8


def test_check_finds_repeated_questions(run, tmp_path):
    lines = [
        {"id": "a", "prompt": "How much?", "answer": "12", "grader": "numeric"},
        {"id": "b", "prompt": "How much?", "answer": "12", "grader": "numeric"},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, _ = run("bank", "check", "q.jsonl")
    assert code == 0
    assert "1 question that another item asks already, such as 'b' like 'a'" in out
    assert "q.jsonl: 2 items read, whole" in out


def test_check_names_prompts_that_show_the_answer_of_contains(run, tmp_path):
    lines = [
        {"id": "a", "prompt": "Cat or dog?", "answer": "cat", "grader": "contains"},
        {"id": "b", "prompt": "Which animal?", "answer": "cat", "grader": "contains"},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, _ = run("bank", "check", "q.jsonl")
    assert code == 0
    assert "1 prompt with the expected answer of 'contains' in it, such as 'a': use 'choice' with choices" in out


@pytest.mark.slow
def test_check_finds_a_missing_and_a_changed_image(run, tmp_path):
    run("bank", "export", BANKS / "vision.bank", "-o", "copy")
    image = next((tmp_path / "copy" / "vision-images").iterdir())
    content = image.read_bytes()
    image.write_bytes(content + b" ")
    code, out, _ = run("bank", "check", "copy")
    assert code == 1
    assert "an image was changed" in out
    image.unlink()
    code, out, _ = run("bank", "check", "copy")
    assert code == 1
    assert f"missing image, such as copy/vision-images/{image.name}" in out
    assert run("bank", "export", "copy", "-o", "again")[0] == 4


def test_diff_lists_what_changed(run, tmp_path):
    write_items(tmp_path / "old.jsonl", {"a": "1", "b": "2", "c": "3"})
    write_items(tmp_path / "new.jsonl", {"a": "1", "b": "4", "d": "3"})
    code, out, _ = run("bank", "diff", "old.jsonl", "new.jsonl")
    assert code == 1
    assert out.splitlines() == ["1 items are the same", "1 added: d", "1 removed: c", "1 changed: b"]
    assert run("bank", "diff", "old.jsonl", "old.jsonl")[0] == 0


def test_exported_folder_is_a_data_set_and_the_same_bank(run, tmp_path):
    code, out, _ = run("bank", "export", BANKS / "vision.bank", "-o", "shared")
    assert code == 0
    assert "pull:  hf download OWNER/vision --repo-type dataset --local-dir vision.bank" in out
    assert run("bank", "diff", BANKS / "vision.bank", "shared")[0] == 0
    assert read_bank(tmp_path / "shared").scale == read_bank(BANKS / "vision.bank").scale
    assert (tmp_path / "shared" / "README.md").read_text().startswith("---\nlicense: unknown\n")


def test_exported_folder_has_the_predictor(run, tmp_path):
    items = [Item(f"q{i}", prompt=f"question {i}?", answer="1") for i in range(4)]
    predictor = Predictor(np.ones((2, 4)), np.arange(4.0), np.arange(4)[::-1].copy())
    write_bank(tmp_path / "p.bank", items, discrimination=np.ones(4), intercept=np.zeros(4), predictor=predictor)
    assert run("bank", "export", "p.bank", "-o", "shared")[0] == 0
    assert read_bank(tmp_path / "shared").predictor.hash == predictor.hash


@pytest.mark.slow
def test_exported_folder_is_read_by_datasets(run, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="(extra datasets)")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    run("bank", "export", BANKS / "text.bank", "-o", "shared")
    loaded = datasets.load_dataset(str(tmp_path / "shared"), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"]["id"] == list(read_bank(BANKS / "text.bank").ids)


def test_exported_items_carry_the_licence_of_their_source(run, tmp_path):
    (tmp_path / "q.csv").write_text("question,answer\nWhat is 1 + 1?,2\nWhat is 2 + 2?,4\n")
    run("import", "q.csv", "-o", "q.bank", "--yes", "--set", "licence=CC-BY-4.0", "--set", "source=made up | <b>")
    _, out, _ = run("bank", "export", "q.bank", "-o", "shared")
    text = (tmp_path / "shared" / "README.md").read_text()
    assert "license: cc-by-4.0\n" in text
    assert "| source | made up \\| \\<b\\> |" in text
    assert "licence CC-BY-4.0" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["diff", "a.jsonl"], "required: NEW"),
        (["info", "a.jsonl", "b.jsonl"], "unrecognized arguments: b.jsonl"),
        (["export", "a.jsonl"], "required: -o/--output"),
        (["info", "none.bank"], "no bank at none.bank"),
    ],
)
def test_mistakes_of_use(run, tmp_path, arguments, message):
    write_items(tmp_path / "a.jsonl", {"a": "1"})
    code, _, err = run("bank", *arguments)
    assert code == 4
    assert message in err


def test_check_names_items_that_need_a_judge(run, tmp_path):
    rows = [
        {"id": "a", "prompt": "Why?", "grader": "judge"},
        {"id": "b", "prompt": "2?", "answer": "2", "grader": "numeric"},
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = run("bank", "check", str(tmp_path / "items.jsonl"))
    assert code == 0
    assert "warning: 1 item that a judge grades, such as 'a': the evaluation needs one" in out
