"""Suites in TOML and by marks: k of n gates pass, as one gate with one verdict."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_adaptive_eval.cli.command import main

TOML = """
[[eval]]
name = "easy"
bank = "toy.jsonl"
budget = 60

[[eval]]
name = "other"
bank = "toy.jsonl"
budget = 60
seed = 1

[[suite]]
name = "both"
at_least = {k}
[[suite.gate]]
eval = "easy"
at_least = 0.5
[[suite.gate]]
eval = "easy"
at_least = 0.99
[[suite.gate]]
eval = "other"
at_least = 0.5
"""
MARKS = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", name="easy", budget=60)
def test_easy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_eval("toy.jsonl", name="other", budget=60, seed=1)
def test_other(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_suite(at_least={k})
@pytest.mark.adaptive_gate("easy", at_least=0.5)
@pytest.mark.adaptive_gate("easy", at_least=0.99)
@pytest.mark.adaptive_gate("other", at_least=0.5)
def test_both(adaptive_eval):
    assert adaptive_eval.verdicts
"""


@pytest.fixture
def toy(lab: Any) -> Any:
    """A bank, and a model with 9 of 10 right."""
    lab.bank()
    lab.toy(9)
    return lab


def write(lab: Any, form: str, k: int) -> None:
    if form == "toml":
        (lab.path / "adaptive-eval.toml").write_text(TOML.format(k=k))
    else:
        lab.tests(MARKS.format(k=k))


@pytest.mark.parametrize(("k", "outcome", "status"), [(2, "PASS", 0), (3, "FAIL", 1)])
@pytest.mark.parametrize("form", ["toml", "marks"])
def test_a_suite_has_one_verdict_in_every_report(toy: Any, form: str, k: int, outcome: str, status: int) -> None:
    write(toy, form, k)
    result = toy.run("--adaptive-eval-junit=gates.xml", "--adaptive-eval-html=page.html")
    assert result.ret == status
    (gate,) = toy.record["gates"]
    assert (gate["name"], gate["verdict"]["outcome"]) == ("both" if form == "toml" else "test_both", outcome)
    parts = [(part["interview"], part["verdict"]["outcome"]) for part in gate["gates"]]
    assert parts == [("easy", "PASS"), ("easy", "FAIL"), ("other", "PASS")]
    confidences = [part["verdict"]["condition"].get("confidence", 0.95) for part in gate["gates"]]
    assert confidences == pytest.approx([1 - 0.05 / (3 - k + 1)] * 3)
    said = f"2 of 3 gates passed, 1 failed, {k} required"
    assert said in " ".join(result.stdout.str().split())
    assert said in (toy.path / "page.html").read_text()
    cases = ElementTree.parse(toy.path / "gates.xml").iter("testcase")
    (case,) = (case for case in cases if "both" in case.get("name", ""))
    assert said in "".join(case.itertext())
    assert (case.find("failure") is not None) == (outcome == "FAIL")


def test_both_forms_ask_the_same_questions(toy: Any) -> None:
    write(toy, "marks", 2)
    toy.run()
    asked, before = list(toy.asked), len(toy.asked)
    (toy.path / "test_it.py").unlink()
    write(toy, "toml", 2)
    toy.run("--adaptive-eval-fresh")
    assert toy.asked[before:] == asked


def test_the_history_shows_a_suite_with_each_of_its_evaluations(toy: Any, monkeypatch: Any, capsys: Any) -> None:
    write(toy, "toml", 2)
    toy.run()
    monkeypatch.chdir(toy.path)
    assert main(["history"]) == 0
    assert capsys.readouterr().out.count("1 PASS") == 2


@pytest.mark.slow
@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_workers_give_the_same_verdict(toy: Any) -> None:
    write(toy, "toml", 2)
    assert toy.spawn("-n2").ret == 0
    (gate,) = toy.record["gates"]
    assert (gate["verdict"]["outcome"], len(gate["gates"])) == ("PASS", 3)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("at_least = 2\n[[suite.gate]]", "[[suite.gate]]", "how many of its gates must pass: write at_least = 2"),
        ("at_least = 2\n", "at_least = 4\n", "at_least between 1 and their number"),
        ('name = "both"\n', "", 'as in name = "knowledge"'),
        ('eval = "other"\n', "", 'write eval = "name"'),
        ('eval = "other"\n', 'eval = "othr"\n', "othr"),
        ('eval = "other"\n', 'eval = "other"\nconfidence = 0.9\n', "confidence is of the suite: write it there"),
        ('name = "both"\n', 'name = "easy"\n', "another evaluation or gate of this file is called 'easy' already"),
        ('name = "both"\n', 'name = "both"\nsize = 2\n', "unknown setting 'size'"),
    ],
)
def test_mistakes_in_a_file_are_named(toy: Any, before: str, after: str, message: str) -> None:
    text = TOML.format(k=2)
    assert text.count(before) == 1
    (toy.path / "adaptive-eval.toml").write_text(text.replace(before, after))
    result = toy.run()
    assert result.ret == 4
    assert message in " ".join((result.stdout.str() + result.stderr.str()).split())


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("adaptive_suite(2)", "write at_least=2"),
        ("adaptive_suite(at_least=2, gate=[])", "gate is for [[suite]] in TOML"),
        ("adaptive_suite(at_least=2, on_inconclusive='ignore')", "expected fail, warn or pass"),
    ],
)
def test_mistakes_in_a_mark_are_named(toy: Any, mark: str, message: str) -> None:
    toy.tests(MARKS.format(k=2).replace("adaptive_suite(at_least=2)", mark))
    result = toy.run()
    assert result.ret == 4
    assert message in " ".join((result.stdout.str() + result.stderr.str()).split())


def test_a_suite_without_gates_is_refused(toy: Any) -> None:
    lines = [line for line in MARKS.format(k=1).splitlines() if "adaptive_gate" not in line]
    toy.tests("\n".join(lines))
    result = toy.run()
    assert result.ret == 4
    assert "a suite requires at_least = 1 of 0 gates" in " ".join((result.stdout.str() + result.stderr.str()).split())
