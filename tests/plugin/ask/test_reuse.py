"""Runs that share answers ask each question of a checkpoint once, and say so."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from typing import Any

import pytest

CONFTEST = """
import os, pytest
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

class Own(Model):
    def answer(self, items):
        out = []
        for item in items:
            if os.environ.get("KILL") and len(open("asked.txt").read().split()) == 16:
                os._exit(9)
            with open(os.path.join(os.path.dirname(__file__), "asked.txt"), "a") as file:
                file.write((item.id or "bare") + "\\n")
            out.append(Completion("right" if int(item.prompt.split()[-1]) % 10 < 9 else "wrong"))
        return out

@pytest.fixture(scope="session")
def model():
    return Own(SubjectIdentity("m", "checkpoint", {DECODING}))
"""
EVAL = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=24, batch=BATCH, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(ITEM))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
STORE = "--adaptive-eval-reuse=shared/answers.sqlite"


@pytest.fixture
def shared(lab: Any) -> Any:
    """A project whose model is a subject; `set_up` writes its files."""

    def set_up(*, batch: int = 8, item: str = "item", decoding: str = '{"temperature": 0}') -> None:
        lab.bank(n=24)
        lab.tests(CONFTEST.replace("{DECODING}", decoding), "conftest")
        lab.tests(EVAL.replace("BATCH", str(batch)).replace("ITEM", item))

    set_up()
    lab.set_up = set_up
    return lab


def answers(lab: Any) -> list[tuple[str, float | None]]:
    asked = lab.record["interviews"][0]["administrations"]
    return sorted((entry["item"], entry["score"]) for entry in asked)


def reused(lab: Any) -> list[bool]:
    return [entry.get("reused", False) for entry in lab.record["interviews"][0]["administrations"]]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("item", ["item", "item.prompt"])
def test_a_second_run_asks_nothing_and_says_so_everywhere(shared: Any, batch: int, item: str) -> None:
    shared.set_up(batch=batch, item=item)
    assert shared.run(STORE).ret == 0
    first = answers(shared)
    assert (len(shared.asked), reused(shared)) == (24, [False] * 24)
    reports = ("--adaptive-eval-html=page.html", "--adaptive-eval-junit=gates.xml", "--adaptive-eval-seed=0")
    result = shared.run(STORE, *reports)
    assert result.ret == 0
    assert (len(shared.asked), reused(shared), answers(shared)) == (24, [True] * 24, first)
    assert shared.record["interviews"][0]["reuse"] == {"store": "shared/answers.sqlite", "answers": 24, "refused": ""}
    sentence = "24 of 24 answers were not asked for but taken from shared/answers.sqlite"
    assert sentence in " ".join(result.stdout.str().split())
    assert any(sentence in note for note in shared.record["gates"][0]["verdict"]["notes"])
    page = (shared.path / "page.html").read_text()
    assert sentence in page
    assert "from the store" in page
    assert sentence in (shared.path / "gates.xml").read_text()
    from pytest_adaptive_eval.records.run_record import RunRecord
    from pytest_adaptive_eval.reports.markdown import summary_markdown

    assert sentence in summary_markdown(RunRecord.from_json(shared.record))


def test_off_by_default(shared: Any) -> None:
    shared.run(STORE)
    result = shared.run()
    assert len(shared.asked) == 48
    assert shared.record["interviews"][0]["reuse"] is None
    result.stdout.no_fnmatch_line("*not asked for*")


def test_a_grader_that_changed_grades_the_answers_anew(shared: Any) -> None:
    shared.run(STORE)
    test = shared.path / "test_it.py"
    test.write_text(re.sub(r"assert item\.grade\((.*)\)", r"item.score(0.25 * known(\1))", test.read_text()))
    test.write_text(test.read_text() + "def known(text): return text in ('right', 'wrong', 'yes', 'no')\n")
    shared.run(STORE)
    assert (len(shared.asked), reused(shared)) == (24, [True] * 24)
    assert {score for _, score in answers(shared)} == {0.25}


def test_only_the_questions_that_no_run_asked_are_asked(shared: Any) -> None:
    shared.run(STORE, "--adaptive-eval-budget=10")
    shared.run(STORE)
    assert len(shared.asked) == len(set(shared.asked)) == 24
    assert sum(reused(shared)) == 10


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 8])
def test_a_killed_run_goes_on_and_knows_which_answers_were_taken(shared: Any, monkeypatch: Any, batch: int) -> None:
    shared.run(STORE, "--adaptive-eval-budget=10", "--adaptive-eval-seed=1")
    taken = set(shared.asked)
    shared.set_up(batch=batch)
    monkeypatch.setenv("KILL", "1")
    shared.spawn(STORE)
    assert shared.kept > 0
    monkeypatch.delenv("KILL")
    shared.run(STORE)
    asked = shared.record["interviews"][0]["administrations"]
    assert {entry["item"] for entry in asked if entry.get("reused")} >= taken
    assert any(entry["resumed"] and entry.get("reused") for entry in asked)
    assert len(asked) == 24


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("decoding", "reason"),
    [
        ('{"temperature": 0.5}', "decoding samples"),
        ("{}", "the model does not say that it decodes greedily"),
    ],
)
def test_answers_of_models_that_sample_are_asked_anew_and_the_reason_told(
    shared: Any, decoding: str, reason: str
) -> None:
    shared.set_up(decoding=decoding)
    shared.ini("adaptive_eval_details = false\n")
    for _ in range(2):
        result = shared.run(STORE)
    assert set(reused(shared)) == {False}
    said = f"WARNING: toy: no answer was taken from the store (--adaptive-eval-reuse): {reason}"
    assert said in " ".join(result.stdout.str().split())
    assert shared.record["interviews"][0]["reuse"]["answers"] == 0


@pytest.mark.slow
def test_a_model_of_the_users_own_class_is_asked_anew(project: Any) -> None:
    result = project.run(STORE)
    assert result.ret == 0
    assert "the model is not a Model of this package" in " ".join(result.stdout.str().split())


@pytest.mark.slow
def test_repeated_questions_are_asked_although_the_first_answers_are_known(shared: Any) -> None:
    test = shared.path / "test_it.py"
    test.write_text(test.read_text().replace('stop="budget"', 'stop="budget", samples=2'))
    shared.run(STORE)
    shared.run(STORE)
    asked = shared.record["interviews"][0]["administrations"]
    assert {entry["sample"] for entry in asked if entry.get("reused")} == {0}
    assert len(shared.asked) == 24 * 2 + 24


@pytest.mark.slow
def test_workers_share_the_store(shared: Any) -> None:
    pytest.importorskip("xdist", reason="workers need pytest-xdist (extra xdist)")
    for name in ("one", "two"):
        test = EVAL.replace("BATCH", "8").replace("ITEM", "item").replace('toy.jsonl"', f'toy.jsonl", name="{name}"')
        shared.tests(test.replace('adaptive_gate("toy"', f'adaptive_gate("{name}"'), f"test_{name}")
    shared.tests("", "test_it")
    assert shared.spawn(STORE, "-n2").ret == 0
    assert shared.spawn(STORE, "-n2").ret == 0
    assert len(shared.record["interviews"]) == 2
    for interview in shared.record["interviews"]:
        assert all(entry.get("reused") for entry in interview["administrations"])
    assert len(set(shared.asked)) == 24
    assert len(shared.asked) <= 48


@pytest.mark.slow
def test_the_default_store_lies_in_the_run_folder(shared: Any) -> None:
    shared.run("--adaptive-eval-reuse")
    store = shared.path / ".adaptive-eval" / "answers.sqlite"
    with sqlite3.connect(store) as connection:
        rows = connection.execute("SELECT reply FROM completions").fetchall()
    connection.close()
    assert len(rows) == 24
    assert {json.loads(reply)["score"] for (reply,) in rows} == {None}


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--adaptive-eval-reuse", "test_it.py"), r"would keep answers in test_it\.py: put the flag after"),
        (("--adaptive-eval-reuse=."), r"would keep answers in \.: put the flag after"),
        ((STORE, "--adaptive-eval-fresh"), "--adaptive-eval-fresh asks everything again"),
        (
            ("--adaptive-eval-reuse=toy.jsonl",),
            r"the store of answers cannot be used \(file is not a database\): name another file",
        ),
        (("--adaptive-eval-reuse=",), "--adaptive-eval-reuse is empty"),
    ],
)
def test_a_place_that_is_no_store_is_refused_before_any_question(shared: Any, arguments: Any, message: str) -> None:
    before = (shared.path / "toy.jsonl").read_bytes()
    result = shared.run(*([arguments] if isinstance(arguments, str) else arguments))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(message, " ".join(result.stderr.str().split()))
    assert (shared.asked, (shared.path / "toy.jsonl").read_bytes()) == ([], before)


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is not one of CI."""
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.usefixtures("at_home")
def test_a_second_run_on_ones_own_machine_asks_nothing(shared: Any) -> None:
    assert shared.run().ret == 0
    assert len(shared.asked) == 24
    first = answers(shared)
    result = shared.run("--adaptive-eval-seed=5")
    assert len(shared.asked) == 24
    assert sorted(answers(shared)) == sorted(first)
    result.stdout.fnmatch_lines(["reuse: 24 of 24 answers from .adaptive-eval/answers.sqlite;*"])
    shared.run("--adaptive-eval-fresh")
    assert len(shared.asked) == 48


def test_ci_asks_again(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    for asked in (24, 48):
        assert shared.run().ret == 0
        assert len(shared.asked) == asked
    assert not (shared.path / ".adaptive-eval" / "answers.sqlite").exists()


@pytest.mark.fast_rows(1)
@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("kept", ["large", "damaged", "earlier"])
def test_a_store_of_ones_own_is_begun_anew_or_done_without(
    shared: Any, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    path = shared.path / ".adaptive-eval" / "answers.sqlite"
    assert shared.run().ret == 0
    if kept == "large":
        monkeypatch.setattr("pytest_adaptive_eval.plugin.state.MOST_BYTES", 1)
    elif kept == "earlier":
        with contextlib.closing(sqlite3.connect(path)) as store:
            store.execute("PRAGMA user_version = 2")
    else:
        path.write_bytes(b"no store")
    assert shared.run().ret == 0
    assert len(shared.asked) == 48
    if kept == "earlier":  # it is a store of this version now, from which the next run takes its answers
        assert shared.run().ret == 0
        assert len(shared.asked) == 48


@pytest.mark.usefixtures("at_home")
def test_a_model_that_samples_is_asked_again_in_silence(shared: Any) -> None:
    shared.set_up(decoding='{"temperature": 0.7}')
    for _ in range(2):
        result = shared.run("-v")
        assert "reuse" not in result.stdout.str()
        assert "no answer was taken" not in result.stdout.str()
    assert len(shared.asked) > 24
