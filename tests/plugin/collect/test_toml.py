"""Evaluations with no Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

LATE = Path(__file__).parents[3] / "fixtures" / "checkpoints" / "text-late"

FILE = """
[[eval]]
bank = "toy.jsonl"
model = "replay:answers.jsonl#recorded"
budget = 30
stop = "budget"

[[eval.gate]]
at_least = 0.5

[[eval.gate]]
metric = "accuracy"
at_least = 0.99
confidence = 0.9

[[eval]]
name = "again"
bank = "toy.jsonl"
model = "replay:answers.jsonl#recorded"
budget = "10%"
seed = 5
"""


@pytest.fixture
def recorded(lab: Any) -> Any:
    """A bank and the recorded answers of one subject, 9 of 10 right."""
    lab.bank()
    lab.tests("", name="conftest")
    answers = [{"id": f"q{i}", "text": "right" if i % 10 < 9 else "wrong"} for i in range(60)]
    (lab.path / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    return lab


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("name", ["adaptive-eval.toml", "x.eval.toml"])
def test_two_evaluations_in_one_file(recorded: Any, name: str) -> None:
    (recorded.path / name).write_text(FILE)
    result = recorded.run("-v")
    assert result.ret == 1
    assert [(i["name"], i["asked"], i["subject"]["name"]) for i in recorded.record["interviews"]] == [
        ("toy", 30, "recorded"),
        ("again", 6, "recorded"),
    ]
    assert recorded.outcomes() == [("toy-accuracy[at-least-0.5]", "PASS"), ("toy-accuracy[at-least-0.99]", "FAIL")]
    assert [(gate["file"], gate["line"]) for gate in recorded.record["gates"]] == [(name, 8), (name, 11)]
    result.stdout.fnmatch_lines(
        [
            f"{name}::toy?q*? RIGHT*",
            f"{name}::toy?aeval:toy? PASSED*",
            f"{name}::toy-accuracy?at-least-0.5? PASSED*",
            f"{name}::toy-accuracy?at-least-0.99? FAILED*",
            f"{name}::again?aeval:toy? PASSED*",
            "FAIL accuracy * required, 90 %, 30 of 60 items*",
        ]
    )


def test_flags_override(recorded: Any) -> None:
    (recorded.path / "adaptive-eval.toml").write_text(FILE)
    other = [{"id": f"q{i}", "text": "wrong"} for i in range(60)]
    (recorded.path / "other.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in other))
    recorded.run("--adaptive-eval-model=replay:other.jsonl", "--adaptive-eval-budget=7", "--adaptive-eval-seed=9")
    for interview in recorded.record["interviews"]:
        assert (interview["subject"]["name"], interview["asked"]) == ("other", 7)
        assert interview["policy"]["seed"] == 9
        assert {a["score"] for a in interview["administrations"]} == {0.0}


def test_recorded_scores_need_no_text(recorded: Any) -> None:
    cells = ",".join(str(int(i % 10 < 9)) for i in range(60))
    header = ",".join(f"q{i}" for i in range(60))
    (recorded.path / "scores.csv").write_text(f"subject,{header}\nsome,{cells}\n")
    (recorded.path / "adaptive-eval.toml").write_text(FILE)
    recorded.run("--adaptive-eval-model=replay:scores.csv#some", "-k", "again")
    assert recorded.record["interviews"][0]["scored"] == 6


@pytest.mark.slow
def test_the_ini_names_the_model(recorded: Any) -> None:
    recorded.ini("adaptive_eval_model = replay:answers.jsonl\nadaptive_eval_budget = 4\nadaptive_eval_seed = 2")
    (recorded.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\n')
    assert recorded.run().ret == 0
    assert recorded.record["interviews"][0]["asked"] == 4
    assert recorded.record["interviews"][0]["policy"]["seed"] == 2


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[eval]\n", "adaptive-eval.toml: not readable as TOML: *line 1*"),
        ("", "adaptive-eval.toml: no evaluation; write ??eval??*"),
        ("[other]\n", "adaptive-eval.toml:1: unknown table 'other'*"),
        (
            '\n[[eval]]\nbank = "toy.jsonl"\nbudgett = 3',
            "adaptive-eval.toml:4: unknown setting 'budgett'; did you mean *",
        ),
        ("\n\n[[eval]]\n", "adaptive-eval.toml:3: bank is missing*"),
        (
            '[[eval]]\nbank = "toy.jsonl"\nbudget = 0.5',
            'adaptive-eval.toml:3: budget is 0.5, expected a whole number or text (*"15%")',
        ),
        ('[[eval]]\nbank = "toy.jsonl"\nkind = "crowd"', "adaptive-eval.toml:3: kind 'crowd' is not known*"),
        ('[[eval]]\nbank = "toy.jsonl"\nname = "a::b"', "adaptive-eval.toml:3: name 'a::b' cannot name a test*"),
        (
            '[[eval]]\nbank = "toy.jsonl"\n[[eval]]\nbank = "toy.jsonl"',
            "adaptive-eval.toml:3: two evaluations have *",
        ),
        (
            '[[eval]]\nbank = "toy.jsonl"\n[[eval.gate]]\n',
            "adaptive-eval.toml:3: a gate has one condition of at_least, at_most, *; found none: write *",
        ),
        (
            '[[eval]]\nbank = "toy.jsonl"\n[[eval.gate]]\nat_least = 60',
            "adaptive-eval.toml:4: accuracy.at_least(60): an accuracy lies in ?0, 1?; for 60 % write *",
        ),
        (
            '[[eval]]\nbank = "toy.jsonl"\n[[eval.gate]]\nzzz = 1',
            "adaptive-eval.toml:4: unknown setting 'zzz'; known are metric, *",
        ),
        ('[[eval]]\nbank = "none.jsonl"\n', "adaptive-eval.toml:2: no bank at *none.jsonl*"),
        (
            '[[eval]]\nbank = "toy.jsonl"\n[[eval.gate]]\nat_least = 0.5\n[[eval]]\nbank = "toy.jsonl"\n'
            'name = "toy-accuracy"',
            "adaptive-eval.toml:5: another evaluation or gate of this file is called 'toy-accuracy' already",
        ),
    ],
)
def test_mistakes(recorded: Any, text: str, message: str) -> None:
    recorded.ini("adaptive_eval_model = replay:answers.jsonl")
    (recorded.path / "adaptive-eval.toml").write_text(text)
    result = recorded.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: */{message}"])
    assert not (recorded.path / ".adaptive-eval").exists()


def test_no_model_anywhere(recorded: Any) -> None:
    (recorded.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\n')
    result = recorded.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *adaptive-eval.toml:1: no model: name one with --adaptive-eval-model*"])


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("name", ["toy", "toy v0.5 a/b-c"])
def test_failed_gates_are_found_again(recorded: Any, name: str) -> None:
    (recorded.path / "adaptive-eval.toml").write_text(FILE.replace("[[eval]]", f"[[eval]]\nname = '{name}'", 1))
    recorded.tests("def test_plain(): pass")
    recorded.run()
    result = recorded.run("--lf", "-v")
    assert recorded.outcomes() == [(f"{name}-accuracy[at-least-0.99]", "FAIL")]
    assert [i["name"] for i in recorded.record["interviews"]] == [name]
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)


def test_one_gate_or_one_question_by_node_id(recorded: Any) -> None:
    (recorded.path / "adaptive-eval.toml").write_text(FILE)
    assert recorded.run("adaptive-eval.toml::toy-accuracy[at-least-0.5]").ret == 0
    assert recorded.outcomes() == [("toy-accuracy[at-least-0.5]", "PASS")]
    result = recorded.run("adaptive-eval.toml::toy[q9]")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["score 0 of 1", "*Captured question call*", "*asked: *", "*expected: *"])
    recorded.run("adaptive-eval.toml::toy[q8]").assert_outcomes(passed=1)
    assert len(recorded.records) == 1


@pytest.mark.slow
def test_errors_are_sentences(recorded: Any) -> None:
    (recorded.path / "adaptive-eval.toml").write_text(FILE)
    (recorded.path / "answers.jsonl").write_text('{"id": "q1", "text": "right"}')
    result = recorded.run()
    assert result.ret == 1
    assert "no answer of 'recorded' to " in recorded.record["interviews"][0]["error"]
    result.stdout.fnmatch_lines(
        ["*_ toy?q50? _*", "not_run: no answer of 'recorded' to 'q50' was recorded*"], consecutive=True
    )


def test_options_of_the_model(lab: Any) -> None:
    (lab.path / "answers.jsonl").write_text('{"id": "q0", "answer": "right"}\n')
    lab.bank(n=10)
    text = '[[eval]]\nbank = "toy.jsonl"\nmodel = "replay:answers.jsonl"\nmodel_options = { max_tokens = 3 }\n'
    (lab.path / "adaptive-eval.toml").write_text(text)
    assert "has no option max_tokens" in " ".join(lab.run().stderr.str().split())
    (lab.path / "adaptive-eval.toml").write_text(text.replace('model = "replay:answers.jsonl"\n', ""))
    assert "model_options needs a model" in lab.run().stderr.str()
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\n')
    lab.ini("adaptive_eval_model = replay:answers.jsonl\nadaptive_eval_model_options = max_tokens = 3\n")
    assert "has no option max_tokens" in " ".join(lab.run().stderr.str().split())
    pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")
    lab.ini(f"adaptive_eval_model = {LATE}\nadaptive_eval_model_options = cache = 'here'\n")
    assert "has no option cache here" in " ".join(lab.run().stdout.str().split())
    lab.ini("adaptive_eval_model_options = max tokens\n")
    assert "expected lines such as key_env" in lab.run().stderr.str()


@pytest.mark.slow
def test_the_flag_names_the_candidate_and_not_its_baseline(lab: Any) -> None:
    lab.bank()
    for name, right in (("old", 54), ("new", 54), ("bad", 12)):
        answers = [{"id": f"q{n}", "text": "right" if n < right else "wrong"} for n in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    head = '[[eval]]\nbank = "toy.jsonl"\nbudget = "100%"\n'
    (lab.path / "adaptive-eval.toml").write_text(
        f'{head}name = "old"\nmodel = "replay:old.jsonl"\n{head}name = "new"\nmodel = "replay:new.jsonl"\n'
        '[[eval.gate]]\nnot_worse_than = "old"\nmargin = 0.1\n'
    )
    assert lab.run().ret == 0
    assert lab.run("--adaptive-eval-model=replay:bad.jsonl").ret == 1
    assert [one["subject"]["name"] for one in lab.record["interviews"]] == ["old", "bad"]
    assert lab.outcomes() == [("new-accuracy[not-worse-than-0.1-old]", "FAIL")]
    result = lab.run("--adaptive-eval-model=replay:old.jsonl")
    assert result.ret == 0
    assert "the baseline old is the same checkpoint as the candidate" in " ".join(result.stdout.str().split())
