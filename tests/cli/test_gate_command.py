"""``adaptive-eval gate``: verdicts on finished logs."""

import json
import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "logs"


def log(folder, right, *, task="arc", model="m", questions=None):
    """Write a JSON log of Inspect with a sample for each truth value; None is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = [
        {
            "id": f"q-{n}",
            "epoch": 1,
            "input": (questions or {}).get(n, f"{n}?"),
            "scores": {} if value is None else {"match": {"value": "C" if value else "I"}},
            **({"error": {"message": "boom"}} if value is None else {}),
        }
        for n, value in enumerate(right)
    ]
    about = {"version": 2, "status": "success", "eval": {"model": model, "task": task}}
    (folder / f"{task}.json").write_text(json.dumps({**about, "samples": samples}))
    return folder


def test_identical_runs_pass(run, tmp_path):
    new, old = (log(tmp_path / name, [True, False] * 5, model=name) for name in ("new", "old"))
    code, out, err = run("gate", new, "--baseline", old)
    assert code == 0
    assert "new: accuracy .5000 (5 of 10)" in out
    assert "old: accuracy .5000 (5 of 10); the candidate is better on 0 and worse on 0" in out
    assert "PASS accuracy less that of old .000 [.000, .000] >= -.02 required" in out
    assert err == ""


def test_a_loss_beyond_the_margin_fails_and_an_accuracy_too_low(run, tmp_path):
    new = log(tmp_path / "new", [True] * 7 + [False] * 3, model="new")
    old = log(tmp_path / "old", [True] * 9 + [False], model="old")
    code, out, _ = run("gate", new, "--baseline", old, "--at-least", "0.7", "--json", "v.json")
    assert code == 1
    assert "PASS accuracy .700" in out
    assert "FAIL accuracy less that of old -.200" in out
    assert "better on 0 and worse on 2" in out
    saved = json.loads(Path("v.json").read_text())
    assert (saved["candidate"], saved["baseline"]) == ("new", "old")
    assert [gate["outcome"] for gate in saved["gates"]] == ["PASS", "FAIL"]
    assert run("gate", new, "--baseline", old, "--margin", "0.2")[0] == 0


def test_like_questions_need_more_of_them(run, tmp_path):
    new, old = (log(tmp_path / name, [True, False] * 5, model=name) for name in ("new", "old"))
    code, out, _ = run("gate", new, "--baseline", old, "--like-questions")
    assert code == 1
    assert "INCONCLUSIVE accuracy less that of old .000" in out
    assert run("gate", new, "--baseline", old, "--like-questions", "--on-inconclusive", "warn")[0] == 0
    new, old = (log(tmp_path / "many" / name, [True, False] * 200, model=name) for name in ("new", "old"))
    assert run("gate", new, "--baseline", old, "--like-questions")[0] == 0


def test_errors_are_missing_and_items_of_one_run_alone_are_left_out(run, tmp_path):
    new = log(tmp_path / "new", [True] * 9 + [None] + [True] * 5, model="new")
    old = log(tmp_path / "old", [True] * 10, model="old", questions={0: "another?"})
    code, out, err = run("gate", new, "--baseline", old)
    assert code == 1
    assert "new: accuracy 1.0000 (9 of 9), 1 without a score" in out
    assert "INCONCLUSIVE" in out
    assert "left out: 5 items of new without a score of old" in err
    assert "1 item of 10 had other prompts in the two runs, such as 'arc:q-0'" in err


def test_each_task_is_judged(run, tmp_path):
    for name, right in (("new", [False]), ("old", [True])):
        log(tmp_path / name, [True] * 99, task="big", model=name)
        log(tmp_path / name, right, task="small", model=name)
    code, out, _ = run("gate", tmp_path / "new", "--baseline", tmp_path / "old", "--each-task")
    assert code == 1
    assert "all tasks: new: accuracy .9900 (99 of 100)" in out
    assert out.count("PASS") == 2
    assert "small: new: accuracy .0000 (0 of 1)" in out
    assert out.count("FAIL") == 1
    assert run("gate", tmp_path / "new", "--baseline", tmp_path / "old")[0] == 0


def test_one_subject_of_several_is_named_after_the_path(run, tmp_path):
    Path("r.csv").write_text("subject,q1,q2\na,1,1\nb,1,0\n")
    code, _, err = run("gate", "r.csv", "--baseline", "r.csv#b")
    assert code == 4
    assert "r.csv: 2 subjects; give r.csv#NAME with one of a, b" in err
    assert run("gate", "r.csv#a", "--baseline", "r.csv#b")[0] == 0
    assert run("gate", "r.csv#b", "--baseline", "r.csv#a")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["r.csv#a"], "nothing to judge: give --baseline LOGS, --at-least X, --must-pass NAME, or several"),
        (["r.csv#a", "--at-least", "0.5", "--margin", "0.1"], "--margin 0.1 is a loss against a baseline"),
        (["r.csv#a", "--baseline", "other.csv"], "no item of a has a score of c: the ids are such as 'q1' and 'z1'"),
        (["r.csv#c", "--at-least", "0.5"], "no subject 'c'; give r.csv#NAME with one of a, b"),
        (["r.csv#a", "--at-least", "half"], "'half', expected a number such as 0.6, or a share such as 60%"),
        (["r.csv#a", "--at-least", "half%"], "expected a number such as 0.6"),
        (["r.csv#a", "--at-least", "2"], "an accuracy lies in [0, 1]"),
        (["nowhere", "--at-least", "0.5"], "nowhere does not exist"),
    ],
)
def test_mistakes(run, arguments, part):
    Path("r.csv").write_text("subject,q1,q2\na,1,1\nb,1,0\n")
    Path("other.csv").write_text("subject,z1\nc,1\n")
    code, _, err = run("gate", *arguments)
    assert code == 4
    assert part in err


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the published logs are not in {DATA} (ADAPTIVE_EVAL_DATA)")
def test_published_logs_are_judged(run):
    code, out, _ = run("gate", DATA / "evalscope" / "qwen-plus", "--baseline", DATA / "evalscope" / "qwen3-max")
    assert code == 0
    assert "better on 2 and worse on 0" in out
    assert "PASS accuracy less that of qwen3-max .050" in out
    helm = DATA / "helm" / "mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2"
    assert run("gate", helm, "--set", "metric=exact_match", "--set", "filter=test", "--at-least", "0.2")[0] == 1


def test_names_of_subjects_may_have_slashes(run, tmp_path):
    (tmp_path / "r.csv").write_text("subject,q1,q2\norg/a,1,1\norg/b#2,1,0\n")
    assert run("gate", "r.csv#org/a", "--baseline", "r.csv#org/b#2")[0] == 0


def test_items_that_only_other_subjects_of_the_logs_were_asked_do_not_count(run, tmp_path):
    log(tmp_path / "logs", [True, False] * 5, task="small", model="new")
    log(tmp_path / "logs", [True] * 40, task="big", model="old")
    code, out, _ = run("gate", f"{tmp_path / 'logs'}#new", "--at-least", "50%")
    assert code == 0
    assert "new: accuracy .5000 (5 of 10)\n" in out
    code, _, err = run("gate", f"{tmp_path / 'logs'}#new", "--baseline", f"{tmp_path / 'logs'}#old")
    assert code == 4
    assert "no item of new has a score of old" in err


@pytest.mark.parametrize("named", ["arc:q-1", "arc"])
def test_a_question_that_must_pass_fails_the_gate_whatever_the_accuracy(run, tmp_path, named):
    new = log(tmp_path / "new", [True, False] + [True] * 8, model="new")
    assert run("gate", new, "--at-least", "0.8")[0] == 0
    code, out, _ = run("gate", new, "--at-least", "0.8", "--must-pass", named)
    assert code == 1
    count = {"arc:q-1": "1 of 1 must-pass item", "arc": "1 of 10 must-pass items"}[named]
    assert f"FAIL {count} wrong: arc:q-1 was answered wrong, 10 of 10 items" in out
    code, out, _ = run("gate", new, "--must-pass", "arc:q-0", "--must-pass", "arc:q-2")
    assert code == 0
    assert "PASS accuracy .900" in out
    assert "2 of 2 must-pass items right" in out


def test_a_question_that_must_pass_and_has_no_score_is_an_error(run, tmp_path):
    new = log(tmp_path / "new", [True] * 9 + [None], model="new")
    code, out, _ = run("gate", new, "--at-least", "0.5", "--must-pass", "arc:q-9")
    assert code == 1
    assert "ERROR 1 of 1 must-pass item without a score: arc:q-9 has no score (the log has none)" in out


def test_only_the_task_of_a_question_that_must_pass_fails_by_it(run, tmp_path):
    for task, right in (("big", [True] * 20), ("small", [True] * 9 + [False])):
        log(tmp_path / "new", right, task=task, model="new")
    _, out, _ = run("gate", tmp_path / "new", "--at-least", "0.5", "--each-task", "--must-pass", "small:q-9")
    outcomes = [line.split()[0] for line in out.splitlines() if line.split()[0] in ("PASS", "FAIL", "ERROR")]
    assert outcomes == ["FAIL", "PASS", "FAIL"]


def test_an_unknown_question_that_must_pass_is_a_mistake(run, tmp_path):
    code, _, err = run("gate", log(tmp_path / "new", [True], model="new"), "--must-pass", "arc:q0")
    assert code == 4
    assert "--must-pass arc:q0: neither a question, a task nor a category of new; did you mean 'arc:q-0'?" in err
