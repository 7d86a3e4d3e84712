"""``adaptive-eval gate``: verdicts on finished logs."""

import json
import os
import subprocess
import sys
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
    assert "accuracy less that of baseline .000 [.000, .000] >= -.02 required, 95 %, 10 of 10 items" in out
    assert "on questions like these: difference .000 [-.406, .406]" in out
    assert err == ""


def test_wrong_answers_come_before_the_verdict_and_the_step_that_shows_all(run, tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    logs = tmp_path / "answers.csv"
    logs.write_text("item,model,question,answer,target,score\n1,m,How much?,7,42,0\n2,m,How many?,3,3,1\n")
    mapping = ["item=item", "subject=model", "question=question", "target=target", "answer=answer", "score=score"]
    code, out, _ = run("gate", logs, "--at-least", "0.9", *(f"--set={name}" for name in mapping))
    assert code == 1
    parts = [
        "asked:    How much?",
        "answered: 7",
        "expected: 42",
        "FAIL  log-",
        "next: repeat this command with -o judged",
    ]
    places = [out.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.slow
def test_a_loss_beyond_the_margin_fails_and_an_accuracy_too_low(run, tmp_path):
    new = log(tmp_path / "new", [True] * 7 + [False] * 3, model="new")
    old = log(tmp_path / "old", [True] * 9 + [False], model="old")
    code, out, _ = run("gate", new, "--baseline", old, "--at-least", "0.7", "--json", "v.json")
    assert code == 1
    assert "accuracy .700 [.700, .700] >= .70 required" in out
    assert "accuracy less that of baseline -.200 [-.200, -.200] < -.02 required" in out
    saved = json.loads(Path("v.json").read_text())
    assert (saved["candidate"], saved["baseline"]) == ("new", "old")
    assert [gate["outcome"] for gate in saved["gates"]] == ["PASS", "FAIL"]
    assert run("gate", new, "--baseline", old, "--margin", "0.2")[0] == 0


@pytest.mark.slow
def test_like_questions_need_more_of_them(run, tmp_path):
    new, old = (log(tmp_path / name, [True, False] * 5, model=name) for name in ("new", "old"))
    code, out, _ = run("gate", new, "--baseline", old, "--like-questions")
    assert code == 1
    assert "accuracy less that of baseline .000 [-.406, .406] against -.02 required" in out
    assert run("gate", new, "--baseline", old, "--like-questions", "--on-inconclusive", "warn")[0] == 0
    new, old = (log(tmp_path / "many" / name, [True, False] * 200, model=name) for name in ("new", "old"))
    assert run("gate", new, "--baseline", old, "--like-questions")[0] == 0


@pytest.mark.slow
def test_errors_are_missing_and_items_of_one_run_alone_are_left_out(run, tmp_path):
    new = log(tmp_path / "new", [True] * 9 + [None] + [True] * 5, model="new")
    old = log(tmp_path / "old", [True] * 10, model="old", questions={0: "another?"})
    code, out, err = run("gate", new, "--baseline", old)
    assert code == 1
    assert "INCONCLUSIVE" in out
    assert "1 not_recorded" in out
    assert run("gate", new, "--at-least", "0.9")[0] == 0
    assert "left out: 5 items of new without a score of old" in err
    assert "1 item of 10 had other prompts in the two runs, such as 'arc:q-0'" in err


@pytest.mark.slow
def test_each_task_is_judged(run, tmp_path):
    for name, right in (("new", [False]), ("old", [True])):
        log(tmp_path / name, [True] * 99, task="big", model=name)
        log(tmp_path / name, right, task="small", model=name)
    both = tmp_path / "new", "--baseline", tmp_path / "old"
    assert run("gate", *both, "--each-task", "--json", "v.json")[0] == 1
    outcomes = {gate["items"]: gate["outcome"] for gate in json.loads(Path("v.json").read_text())["gates"]}
    assert outcomes == {"all tasks": "PASS", "big": "PASS", "small": "FAIL"}
    assert run("gate", *both)[0] == 0


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"the published logs are not in {DATA} (ADAPTIVE_EVAL_DATA)")
def test_published_logs_are_judged(run):
    code, out, _ = run("gate", DATA / "evalscope" / "qwen-plus", "--baseline", DATA / "evalscope" / "qwen3-max")
    assert code == 0
    assert "accuracy less that of baseline .050 [.050, .050]" in out
    helm = DATA / "helm" / "mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2"
    assert run("gate", helm, "--set", "metric=exact_match", "--set", "filter=test", "--at-least", "0.2")[0] == 1


def test_settings_of_reading_reach_the_run(run, tmp_path):
    rows = [{"n": n, "by": "m", "said": "x", "gold": "xy"[n % 2]} for n in range(10)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = [f"--set={text}" for text in ("subject=by", "item=n", "score=said == gold")]
    code, out, _ = run("gate", "r.jsonl", "--at-least", "0.5", *settings)
    assert code == 0
    assert "accuracy .500 [.500, .500] >= .50 required" in out


@pytest.mark.slow
def test_names_of_subjects_may_have_slashes(run, tmp_path):
    (tmp_path / "r.csv").write_text("subject,q1,q2\norg/a,1,1\norg/b#2,1,0\n")
    assert run("gate", "r.csv#org/a", "--baseline", "r.csv#org/b#2")[0] == 0


@pytest.mark.slow
def test_items_that_only_other_subjects_of_the_logs_were_asked_do_not_count(run, tmp_path):
    log(tmp_path / "logs", [True, False] * 5, task="small", model="new")
    log(tmp_path / "logs", [True] * 40, task="big", model="old")
    code, out, _ = run("gate", f"{tmp_path / 'logs'}#new", "--at-least", "50%")
    assert code == 0
    assert "accuracy .500 [.500, .500] >= .50 required, 95 %, 10 of 10 items" in out
    code, _, err = run("gate", f"{tmp_path / 'logs'}#new", "--baseline", f"{tmp_path / 'logs'}#old")
    assert code == 4
    assert "no item of new has a score of old" in err


@pytest.mark.slow
@pytest.mark.parametrize("named", ["arc:q-1", "arc"])
def test_a_question_that_must_pass_fails_the_gate_whatever_the_accuracy(run, tmp_path, named):
    new = log(tmp_path / "new", [True, False] + [True] * 8, model="new")
    assert run("gate", new, "--at-least", "0.8")[0] == 0
    code, out, _ = run("gate", new, "--at-least", "0.8", "--must-pass", named)
    assert code == 1
    count = {"arc:q-1": "1 of 1 must-pass item", "arc": "1 of 10 must-pass items"}[named]
    assert f"{count} wrong: arc:q-1 was answered wrong, 10 of 10 items" in out
    code, out, _ = run("gate", new, "--must-pass", "arc:q-0", "--must-pass", "arc:q-2")
    assert code == 0
    assert "2 of 2 must-pass items right" in out


@pytest.mark.slow
def test_a_question_that_must_pass_and_has_no_score_is_an_error(run, tmp_path):
    new = log(tmp_path / "new", [True] * 9 + [None], model="new")
    code, out, _ = run("gate", new, "--at-least", "0.5", "--must-pass", "arc:q-9")
    assert code == 1
    text = "1 of 1 must-pass item without a score: arc:q-9 has no score (not_recorded: the log has no score of it)"
    assert text in " ".join(out.split())


@pytest.mark.slow
def test_only_the_task_of_a_question_that_must_pass_fails_by_it(run, tmp_path):
    for task, right in (("big", [True] * 20), ("small", [True] * 9 + [False])):
        log(tmp_path / "new", right, task=task, model="new")
    new = tmp_path / "new"
    run("gate", new, "--at-least", "0.5", "--each-task", "--must-pass", "small:q-9", "--json", "v.json")
    gates = json.loads(Path("v.json").read_text())["gates"]
    assert [gate["outcome"] for gate in gates] == ["FAIL", "PASS", "FAIL"]


def test_an_unknown_question_that_must_pass_is_a_mistake(run, tmp_path):
    code, _, err = run("gate", log(tmp_path / "new", [True], model="new"), "--must-pass", "arc:q0")
    assert code == 4
    assert "--must-pass arc:q0: neither a question, a task nor a category of new; did you mean 'arc:q-0'?" in err


def answers(record):
    """What a record holds but for its id, its time and its versions."""
    data = json.loads(Path(record).read_text())
    (interview,) = data["interviews"]
    asked = [{key: entry[key] for key in entry if key != "seconds"} for entry in interview.pop("administrations")]
    for key in ("seconds", "journal", "drift"):  # what earlier runs say is of other runs
        del interview[key]
    gates = [{key: gate[key] for key in gate if key != "seconds"} for gate in data["gates"]]
    return asked, interview, gates, data["warnings"]


def test_a_gate_on_a_log_and_a_run_that_replays_it_give_equal_records(run, tmp_path):
    new = log(tmp_path / "new", [True] * 8 + [False, None], model="new")
    assert run("gate", new, "--at-least", "0.8", "-o", "kept")[0] == 0
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", "--adaptive-eval", "-p", "no:cacheprovider"]
    command += [f"--adaptive-eval-model=replay:{new}#new", "--adaptive-eval-record=again.json"]
    assert subprocess.run(command, cwd="kept", capture_output=True, check=False).returncode == 0
    assert answers("kept/again.json") == answers("kept/record.json")


def test_a_kept_evaluation_replaces_nothing(run, tmp_path):
    new = log(tmp_path / "new", [True], model="new")
    code, _, err = run("gate", new, "--at-least", "0.8", "-o", new)
    assert (code, "exists and is not an empty folder" in err) == (4, True)


def test_a_log_that_ended_early_is_judged_only_as_a_part(run, tmp_path):
    path = log(tmp_path / "new", [True] * 6, model="new") / "arc.json"
    data = json.loads(path.read_text())
    data["eval"]["dataset"] = {"sample_ids": list(range(40))}
    path.write_text(json.dumps({**data, "status": "error", "error": {"message": "out of memory"}}))
    code, _, err = run("gate", path, "--at-least", "0.8")
    assert code == 4
    assert "6 of 40 planned samples (status 'error', out of memory): the log is not whole" in err
    code, out, err = run("gate", path, "--at-least", "0.8", "--partial", "-o", "kept")
    assert code == 0
    assert "a log that is not whole was judged: " in err
    assert "6 of 40 planned samples" in " ".join(out.split())
    assert "6 of 40 planned samples" in json.loads(Path("kept/record.json").read_text())["warnings"][0]


def test_a_run_is_judged_by_its_own_evaluation(run):
    Path("run.json").write_text('{"run": "r1", "started": "2026-01-01T00:00:00+00:00", "schema_version": 3}')
    for source in ("run.json", "."):
        code, _, err = run("gate", source, "--at-least", "0.5")
        assert code == 4
        assert "is of runs, which asked what their evaluation says" in err
