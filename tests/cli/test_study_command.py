"""``adaptive-eval study``: tables, the file of results, and mistakes, on small responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.banks.writer import write_items
from pytest_adaptive_eval.items.item import LOW_QUALITY, Item

SUBJECTS = [f"m{s}" for s in range(20)]
ITEMS = [f"q{i}" for i in range(240)]


@pytest.fixture
def responses(place: Path) -> Path:
    """Responses of twenty subjects on a Rasch scale, a row for each."""
    rng = np.random.default_rng(3)
    ability = np.linspace(-2.0, 2.0, len(SUBJECTS))[:, None]
    p = 1.0 / (1.0 + np.exp(rng.normal(size=len(ITEMS)) - ability))
    rows = [",".join(["subject", *ITEMS])]
    for name, scores in zip(SUBJECTS, rng.random(p.shape) < p, strict=True):
        rows.append(",".join([name, *(str(int(score)) for score in scores)]))
    path = place / "toy.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cells(out: str, name: str) -> list[str]:
    return next(line.split() for line in out.splitlines() if line.startswith(f"{name} "))


def test_random_splits_give_a_row_for_each_way_to_interview(command, responses):
    names = "random,cluster,nearest-difficulty,autojudger,autojudger-paper,a2-judger"
    code, out, err = command(
        "study", "autojudger", responses, "--splits", 2, "--only", names, "--out", "r.jsonl", "--jobs", 1
    )
    assert (code, err) == (0, "")
    assert "toy: ranking accuracy" in out
    found = results(Path("r.jsonl"))
    assert [result["row"] for result in found] == [*names.split(","), *names.split(",")]
    assert [result["number"] for result in found] == [0] * 6 + [1] * 6
    for result in found:
        assert len(result["subjects"]) == 4  # 17 of 77
        assert all(0 <= value <= 100 for value in result["half"])
    values = [result["half"][-1] for result in found if result["row"] == "a2-judger"]
    error = abs(values[0] - values[1]) / 2
    assert cells(out, "a2-judger")[5] == f"{np.mean(values):.2f}±{error:.2f}"


def test_results_that_the_file_has_are_not_measured_again(command, responses):
    arguments = ["study", "autojudger", responses, "--splits", 1, "--out", "r.jsonl", "--only"]
    command(*arguments, "random")
    (kept,) = results(Path("r.jsonl"))
    kept["half"] = [1.0, 2.0, 3.0, 4.0, 5.0]
    Path("r.jsonl").write_text(json.dumps(kept) + "\n")
    code, out, _ = command(*arguments, "random,one-form")
    assert code == 0
    assert cells(out, "random")[5] == "5.00"
    assert [result["row"] for result in results(Path("r.jsonl"))] == ["random", "one-form"]


def test_an_interrupted_study_names_the_file_that_has_its_results(command, responses, monkeypatch):
    import pytest_adaptive_eval.extensions.papers.judger_results as module

    def interrupted(benchmark, part):
        if part[0] == 1:
            raise KeyboardInterrupt
        return module_results(benchmark, part)

    module_results = module.results_of_split
    monkeypatch.setattr(module, "results_of_split", interrupted)
    arguments = ["study", "autojudger", responses, "--splits", 2, "--only", "random", "--jobs", 1]
    code, out, err = command(*arguments, "--out", "r.jsonl")
    assert (code, out) == (2, "")
    assert "interrupted; r.jsonl has the splits so far: run the command again" in err
    assert len(results(Path("r.jsonl"))) == 1
    assert "nothing was written" in command(*arguments)[2]


def test_other_responses_of_the_same_name_are_measured(command, responses):
    arguments = ["study", "autojudger", responses, "--splits", 1, "--out", "r.jsonl", "--only", "random"]
    command(*arguments)
    responses.write_text(responses.read_text().replace("m0,0", "m0,1").replace("m1,1", "m1,0"))
    assert command(*arguments)[0] == 0
    first, second = results(Path("r.jsonl"))
    assert first["digest"] != second["digest"]


def test_the_papers_split_beside_the_file_is_run_with_several_seeds(command, responses):
    Path("train_models.json").write_text(json.dumps(SUBJECTS[:8] + SUBJECTS[12:]))
    Path("test_models.json").write_text(json.dumps(SUBJECTS[8:12]))
    responses.rename("AI2D_toy.csv")
    arguments = ["study", "autojudger", "AI2D_toy.csv", "--seeds", 2, "--out", "r.jsonl", "--jobs", 1]
    code, out, _ = command(*arguments, "--only", "one-form,nearest-difficulty")
    assert code == 0
    assert out.count("ranking accuracy") == 2  # ties as the authors count them, and as half
    assert cells(out, "one-form")[-1] == "93.82±3.71"  # the paper's
    assert {tuple(result["subjects"]) for result in results(Path("r.jsonl"))} == {tuple(SUBJECTS[8:12])}
    spread = cells(out, "nearest-difficulty")[5].partition("±")[2]
    assert spread == "0.00"  # without draws


def test_categories_of_texts_allow_stratified_draws(command, responses):
    items = [{"id": name, "prompt": "?", "answer": "x", "category": f"c{i % 3}"} for i, name in enumerate(ITEMS)]
    Path("items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    arguments = ["study", "autojudger", responses, "--splits", 1, "--only", "stratified"]
    assert command(*arguments, "--items", "items.jsonl", "--out", "r.jsonl")[0] == 0
    others = [{**item, "category": f"c{i % 2}"} for i, item in enumerate(items)]
    Path("other.jsonl").write_text("".join(json.dumps(item) + "\n" for item in others))
    assert command(*arguments, "--items", "other.jsonl", "--out", "r.jsonl")[0] == 0
    assert len(results(Path("r.jsonl"))) == 2
    code, _, err = command(*arguments)
    assert code == 4
    assert "--only stratified: toy: the items have no categories; give --items" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toy.csv"], "train_models.json and test_models.json are not beside it"),
        (["toy.csv", "--splits", "2", "--seeds", "2"], "--seeds are runs of the paper's split"),
        (["toy.csv", "--splits", "2", "--only", "Random"], "--only Random: known are random, one-form"),
        (["toy.csv", "--splits", "2", "--only", "without-visual"], "responses have no pictures"),
        (["toy.csv", "--splits", "2", "--only", "released"], "toy_released_difficulty.jsonl.gz, is beside"),
        (["toy.csv", "--splits", "2", "--out", "toy.csv"], "--out toy.csv is a file that is read"),
        (["toy.csv", "--splits", "2", "--out", "old.jsonl"], "old.jsonl, line 1: not a result of a study"),
        (["MMMU"], "MMMU: ADAPTIVE_EVAL_DATA is not set, expected the folder with autojudger/MMMU_DEV_VAL.csv.gz"),
    ],
)
def test_mistakes_are_named_before_any_interview(command, responses, monkeypatch, arguments, message):
    monkeypatch.delenv("ADAPTIVE_EVAL_DATA", raising=False)
    Path("old.jsonl").write_text("{}\n")
    code, out, err = command("study", "autojudger", *arguments)
    assert (code, out) == (4, "")
    assert message in err


def test_a_folder_without_the_published_file_is_named(command, monkeypatch):
    monkeypatch.setenv("ADAPTIVE_EVAL_DATA", "elsewhere")
    code, _, err = command("study", "m3irt", "mathvista")
    assert code == 4
    assert "mathvista: ADAPTIVE_EVAL_DATA is elsewhere, which lacks elsewhere/m3irt/normal_mathvista.csv.gz" in err


# M3-IRT


def tidy(path: str, names: list[str], level: float) -> str:
    """Responses of eight subjects in two formats, by a share of right answers that rises with the subject."""
    rng = np.random.default_rng(5)
    rows = ["subject,item,format,score"]
    for s in range(8):
        for name in names:
            for form in ("image+text", "text"):
                rows.append(f"m{s},{name},{form},{int(rng.random() < level + 0.05 * s)}")
    Path(path).write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.slow
def test_the_ranking_keeps_the_wanted_share_of_low_quality(command):
    pytest.importorskip("torch", reason="responses in formats need torch (extra hf)")
    genuine = tidy("a.csv", [f"q{i}" for i in range(42)], 0.3)
    low = tidy("b.csv", [f"d{i}" for i in range(30)], 0.1)
    arguments = ["study", "m3irt", genuine, "--low-quality", low, "--budget", "25%", "--only", "random,item-total"]
    code, out, _ = command(*arguments, "--seeds", 2, "--out", "t.json", "--jobs", 1)
    assert code == 0
    assert ".300 of the items are known to be of low quality" in " ".join(out.split())
    table = json.loads(Path("t.json").read_text())
    assert (table["complete"], table["subjects"], table["left_out"], table["pairs"]) == (True, 8, 8, 120)
    assert [row["policy"] for row in table["rows"]] == ["random", "item-total"]
    code, _, err = command(*arguments, "--share", 0.5)
    assert code == 4
    assert "30 of 72 items are of low quality, and a share of 0.5 needs 42" in err


@pytest.mark.slow
def test_an_interrupted_ranking_shows_the_subjects_so_far(command, monkeypatch):
    pytest.importorskip("torch", reason="responses in formats need torch (extra hf)")
    import pytest_adaptive_eval.extensions.papers.verbs.m3irt as module

    def interrupted(shared, target):
        if target == 2:
            raise KeyboardInterrupt
        return one_subject(shared, target)

    one_subject = module._one_subject
    monkeypatch.setattr(module, "_one_subject", interrupted)
    genuine = tidy("a.csv", [f"q{i}" for i in range(42)], 0.3)
    low = tidy("b.csv", [f"d{i}" for i in range(30)], 0.1)
    arguments = ["study", "m3irt", genuine, "--low-quality", low, "--budget", "25%", "--only", "random"]
    code, out, err = command(*arguments, "--out", "t.json", "--jobs", 1)
    assert code == 2
    assert "8 subjects, 2 left out one at a time" in " ".join(out.split())
    assert "interrupted; the results are of 2 of 8 subjects" in err
    assert json.loads(Path("t.json").read_text())["complete"] is False


def test_an_unknown_contender_is_refused(command):
    code, _, err = command("study", "m3irt", "a.csv", "--only", "m4")
    assert code == 4
    assert "--only m4: known are random, irt" in err


# Decoys


def test_decoys_are_added_to_a_bank(command):
    Path("i").mkdir()
    for n in range(6):
        Path(f"i/{n}.png").write_bytes(f"picture {n}".encode())
    items = [Item(f"q{n}", f"What {n}?", f"a{n}", "exact", images=(f"i/{n}.png",)) for n in range(6)]
    write_items("bank.jsonl", items)
    code, out, _ = command("study", "decoys", "bank.jsonl", "-o", "twin.jsonl", "--share", "0.4")
    assert (code, out) == (0, "wrote twin.jsonl: 4 of 10 items are of low quality\n")
    twins = read_bank("twin.jsonl").items
    assert [LOW_QUALITY in item.meta for item in twins] == [False] * 6 + [True] * 4
    code, _, err = command("study", "decoys", "bank.jsonl", "-o", "twin2.jsonl", "--share", "0.9")
    assert code == 4
    assert "share of low-quality items is 0.9" in err
