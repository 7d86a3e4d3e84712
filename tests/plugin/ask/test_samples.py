"""Items that are asked several times: tests of their own, one item to every inference, and the noise they measure."""

from __future__ import annotations

import json
import math
import signal
from collections import Counter
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from pytest_adaptive_eval.extensions.exports.rows import responses_jsonl
from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
from pytest_adaptive_eval.records.run_files import read_run

#: Right in some share of its answers to each question, by the count of its calls.
NOISY = "return 'right' if n * 0.618 % 1 < (number % 10) / 10 else 'wrong'"
ASK = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", {settings})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.1)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
#: A subject of this package, that answers batches and counts its draws.
BATCHED = """
import pytest
from pytest_adaptive_eval import SubjectIdentity
from pytest_adaptive_eval.models.base import Completion, Model

class Drawn(Model):
    def __init__(self):
        super().__init__(SubjectIdentity("drawn", "hash", {{"temperature": {temperature}}}))

    def answer(self, items):
        with open("batches.txt", "a") as file:
            print(*(item.meta.get("sample", 0) for item in items), file=file)
        return [Completion(f"{{item.prompt}}, draw {{item.meta.get('sample', 0)}}") for item in items]

@pytest.fixture(scope="module")
def model():
    return Drawn()
"""


def project(lab: Any, settings: str, **toy: Any) -> Any:
    lab.bank()
    lab.toy(**{"fault": NOISY, **toy})
    lab.tests(ASK.format(settings=settings))
    return lab


def interview(lab: Any) -> dict[str, Any]:
    found: dict[str, Any] = lab.record["interviews"][0]
    return found


def notes(lab: Any) -> list[str]:
    found: list[str] = lab.record["gates"][0]["verdict"]["notes"]
    return found


def by_item(record: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for answer in record["administrations"]:
        found.setdefault(answer["item"], []).append(answer)
    return found


def test_each_sample_is_a_test_and_each_item_counts_once(lab: Any) -> None:
    project(lab, 'budget=12, stop="budget", samples=3')
    result = lab.run("-v")
    assert result.ret == 0
    result.stdout.re_match_lines([r"test_it.py::test_toy\[q\d+\] ", r".*q\d+#2\] ", r".*q\d+#3\] "], consecutive=True)
    result.stdout.fnmatch_lines(["*[[]100%]*", "*toy  * 12 of 60", "*decoding noise .0*, by 36 answers to 12 items)"])
    found = interview(lab)
    assert (found["asked"], found["scored"], found["samples"]) == (12, 12, 3)
    assert found["statuses"] == {"ok": 36}
    assert len(lab.asked) == 36
    assert [a["sample"] for a in found["administrations"]] == [0, 1, 2] * 12
    assert [a["position"] for a in found["administrations"]] == list(range(1, 37))
    scores = [np.mean([a["score"] for a in answers]) for answers in by_item(found).values()]
    noise = np.mean([np.var([a["score"] for a in answers], ddof=1) for answers in by_item(found).values()])
    assert found["decoding_noise"]["variance"] == pytest.approx(noise)
    assert found["decoding_noise"]["error"] == pytest.approx(math.sqrt(12 * noise / 3) / 60)
    assert found["accuracy"]["estimate"] == pytest.approx(np.mean(scores), abs=0.1)
    assert 0.1 < np.mean(scores) < 0.9


@pytest.mark.slow
def test_the_same_items_are_drawn_however_often_they_are_asked(lab: Any) -> None:
    project(lab, 'budget=12, stop="budget"')
    lab.run()
    once = [a["item"] for a in interview(lab)["administrations"]]
    project(lab, 'budget=12, stop="budget", samples=2, repeat=5')
    lab.run()
    assert list(by_item(interview(lab))) == once


def test_repeats_measure_and_count_for_nothing_else(lab: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    project(lab, 'budget=30, stop="budget", repeat="20%"')
    result = lab.run("--adaptive-eval-junit=gates.xml", "--adaptive-eval-html=page.html")
    assert result.ret == 0
    found = interview(lab)
    *drawn, last = (found["administrations"][:30], found["administrations"][30:])
    assert [a["sample"] for a in last] == [1] * 6
    assert {a["item"] for a in last} < {a["item"] for a in drawn[0]}
    assert all(a["propensity"] is None and "asked again" in a["reason"] for a in last)
    assert (found["asked"], found["scored"]) == (30, 30)
    noise = found["decoding_noise"]
    assert (noise["items"], noise["answers"], noise["samples"]) == (6, 12, 1)
    right = sum(a["score"] for a in drawn[0])
    half = (math.sqrt(2 * math.log(160) * 30 * noise["allowed"]) + math.log(160) / 3) / 60
    project(lab, 'budget=30, stop="budget", repeat=0')
    lab.run()
    plain = interview(lab)
    assert [a["score"] for a in plain["administrations"]] == [a["score"] for a in drawn[0]]
    assert plain["decoding_noise"] is None
    for end, sign in (("low", -1), ("high", 1)):
        assert found["accuracy"][end] == pytest.approx(plain["accuracy"][end] + sign * half, abs=1e-4)
    assert plain["accuracy"]["estimate"] == found["accuracy"]["estimate"] == pytest.approx(right / 30)
    suite = ElementTree.parse(lab.path / "gates.xml").getroot()[0]
    told = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert float(str(told["decoding_noise"])) == pytest.approx(noise["error"], rel=1e-4)
    page = (lab.path / "page.html").read_text()
    assert "Decoding noise" in page
    assert "sample 2" in page


@pytest.mark.slow
def test_a_batch_gives_each_sample_its_own_answer_to_bare_prompts(lab: Any) -> None:
    lab.bank()
    lab.tests(BATCHED.format(temperature=0.7), "conftest")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=8, batch=4, stop="budget", samples=2, repeat=6)
        def test_toy(item, model):
            text = model.generate(item.prompt)
            item.grade(text)
            item.score(1)
            assert text == f"{item.prompt}, draw {item.sample}"
            assert model.generate("else " + item.prompt).endswith(f"draw {item.sample}")
        """
    )
    assert lab.run().ret == 0
    found = interview(lab)
    assert found["scored"] == 8
    assert {a["score"] for a in found["administrations"]} == {1.0}
    batches = [line for line in lab.lines("batches.txt") if len(line) > 1]
    assert batches == ["0 1 0 1 0 1 0 1"] * 2 + ["2 2 2 2", "2 2"]


def test_greedy_decoding_is_said(lab: Any) -> None:
    lab.bank()
    lab.tests(BATCHED.format(temperature=0), "conftest")
    lab.tests(ASK.format(settings="budget=8, samples=2, wrong_answer=''").replace("assert item.grade(", "assert ("))
    assert lab.run().ret == 0
    assert any("greedy" in note and "device" in note for note in notes(lab))


def test_an_item_whose_samples_were_cut_off_has_no_score() -> None:
    evaluation = SimpleNamespace(evaluation=SimpleNamespace(samples=3))
    scores = AskingLoop.item_scores(evaluation, [1.0, 0.0, 0.5, 1.0, 1.0])  # type: ignore[arg-type]
    assert scores == [0.5, None]
    assert AskingLoop.item_scores(evaluation, [1.0] * 6) == [1.0, 1.0]  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_item_without_one_of_its_samples_has_no_score(lab: Any) -> None:
    project(lab, 'budget=12, stop="budget", samples=2', fault="if n == 6: raise Unscored('timeout', 'no')")
    lab.run()
    found = interview(lab)
    assert (found["asked"], found["scored"]) == (12, 11)
    assert found["statuses"] == {"ok": 23, "timeout": 1}


def test_an_item_that_a_stop_left_without_its_last_sample_has_no_score(lab: Any) -> None:
    project(lab, 'budget=12, stop="budget", samples=3', fault="if n == 5: raise OSError('down')")
    lab.run("-x")
    found = interview(lab)
    assert (found["asked"], found["scored"], found["statuses"]) == (2, 1, {"ok": 4, "error": 1})
    assert "interrupted" in found["error"]


def test_gates_stop_the_interview_and_the_noise_is_added(lab: Any) -> None:
    project(lab, 'budget="100%", repeat=10', fault="", tenths=9)
    lab.run()
    found = interview(lab)
    assert found["stop"] == "DECISION"
    assert len(found["administrations"]) == found["asked"] + min(found["asked"], 10)
    assert lab.outcomes() == [("test_gate", "PASS")]
    assert any("decoding noise .0000 of the accuracy" in note for note in notes(lab))
    assert found["decoding_noise"]["allowed"] > 0  # ten pairs that agree are no proof


@pytest.mark.slow
@pytest.mark.parametrize("at", [5, 33])
def test_an_interrupted_interview_goes_on(lab: Any, comparable: Any, at: int) -> None:
    """In the midst of an item, and of the repeats."""
    settings = 'budget=15, stop="budget", samples=2, repeat=6'
    noisy = "return 'right' if (len((HERE / 'asked.txt').read_text().split()) * 7) % 10 < 6 else 'wrong'"
    project(lab, settings, fault=noisy)
    lab.run()
    whole = comparable(lab.record, "resumed")
    (lab.path / "asked.txt").unlink()
    stop = f"if n == {at} and not (HERE / 'stopped').exists():\n    log('stopped', 1); raise KeyboardInterrupt\n"
    project(lab, settings, fault=stop + noisy)
    assert lab.run().ret == pytest.ExitCode.INTERRUPTED
    asked = (lab.path / "asked.txt").read_text().split()
    (lab.path / "asked.txt").write_text("".join(f"{n}\n" for n in asked[:-1]))
    assert lab.run().ret == 0
    assert comparable(lab.record, "resumed") == whole
    assert [a["resumed"] for a in interview(lab)["administrations"]] == [n < at - 1 for n in range(36)]
    assert lab.journals == []


@pytest.mark.slow
def test_a_repeat_is_never_an_answer_of_the_journal(lab: Any) -> None:
    project(lab, 'budget=10, stop="budget", repeat="100%"', fault="", tenths=5)
    lab.run()
    counts = Counter(lab.asked)
    assert len(counts) == 10
    assert set(counts.values()) == {2}
    lab.run("--adaptive-eval-fresh")
    assert len(lab.asked) == 40


@pytest.mark.slow
def test_a_stop_before_the_repeats_is_no_result(lab: Any) -> None:
    project(lab, 'budget=30, stop="budget", repeat=5', fault="if n == 31: raise OSError('down')")
    lab.run("-x")
    found = interview(lab)
    assert "asked again" in found["error"]
    assert lab.outcomes() in ([], [("test_gate", "ERROR")])


def test_repeats_that_all_change_the_same_way_end_the_interview(lab: Any) -> None:
    """Behind one address another model answers from the repeats on."""
    project(lab, 'budget=60, stop="budget", repeat=12', tenths=10, fault="if n > 60: return 'wrong'")
    assert lab.run().ret == 1
    error = interview(lab)["error"]
    assert error.startswith("12 of 12 repeated items went from right to wrong (q")
    assert " and 2 more). Noise goes both ways" in error
    assert lab.outcomes() == [("test_gate", "ERROR")]


def test_repeats_that_change_both_ways_are_noise(lab: Any) -> None:
    project(lab, 'budget=60, stop="budget", repeat=30', fault="return 'right' if n % 2 else 'wrong'")
    lab.run()
    assert interview(lab)["error"] == ""
    assert interview(lab)["decoding_noise"]["variance"] > 0.1


def test_errors_of_repeats_end_the_interview(lab: Any) -> None:
    project(lab, 'budget=10, stop="budget", repeat=5', fault="if n > 10: raise OSError('down')")
    assert lab.run().ret == 1
    assert "1 of the answers failed" in interview(lab)["error"]
    assert lab.outcomes() == [("test_gate", "ERROR")]


def test_ladders_recordings_and_nonsense_are_refused(lab: Any) -> None:
    lab.bank()
    lab.toy()
    for settings, sentence in (
        ('"toy.jsonl", samples=0', "samples is 0, expected a whole number of at least 1"),
        ('"toy.jsonl", repeat="much"', "repeat is 'much', expected a count such as 20"),
        ('"toy.jsonl", samples=10**12', "samples is 1000000000000, expected a whole number of at least 1 and at most"),
        ('"toy.jsonl", samples="3"', "samples is '3', expected a whole number"),
        (
            'task="addition", samples=2',
            "samples does not go with a ladder*draw from the task with the policy",
        ),
        ('task="addition", repeat=2', "repeat does not go with a ladder*draw from the task"),
    ):
        lab.tests(ASK.replace('"toy.jsonl", {settings}', settings))
        result = lab.run()
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"*test_it.py*{sentence}*".replace("[", "[[]")])
    (lab.path / "toy.jsonl").write_text('{"id": "a", "prompt": "1", "answer": "right", "meta": {"sample": 1}}\n')
    lab.tests(ASK.format(settings="samples=2"))
    result = lab.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*item 'a' sets meta.sample, which samples and repeat count by*"])


def test_recorded_answers_cannot_be_asked_again(lab: Any) -> None:
    lab.bank()
    (lab.path / "answers.csv").write_text("subject," + ",".join(f"q{i}" for i in range(60)) + "\nm" + ",1" * 60 + "\n")
    text = '[[eval]]\nbank = "toy.jsonl"\nrepeat = 3\n[[eval.gate]]\nat_least = 0.5\n'
    (lab.path / "adaptive-eval.toml").write_text(text)
    assert lab.run("--adaptive-eval-model=replay:answers.csv").ret == 4
    assert "has one recorded answer to it: remove samples and repeat" in interview(lab)["error"]


def test_a_sample_by_its_id(lab: Any) -> None:
    lab.bank()
    lab.tests(BATCHED.format(temperature=0.7), "conftest")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", samples=3)
        def test_toy(item, model):
            assert item.sample == 1
            assert model.generate(item) == "question 7, draw 1"
        """
    )
    lab.run("test_it.py::test_toy[q7#2]").assert_outcomes(passed=1)
    lab.run("test_it.py::test_toy[q7#x]").assert_outcomes(errors=1)


def test_a_baseline_of_samples_and_a_candidate_with_repeats(lab: Any) -> None:
    lab.bank()
    lab.toy(fault=NOISY)
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", name="old", budget="100%", stop="budget", samples=2)
        def test_old(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval("toy.jsonl", name="new", budget="100%", repeat=20)
        def test_new(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("new", not_worse_than="old", margin=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    assert lab.run().ret == 0
    assert lab.outcomes() == [("test_gate", "PASS")]
    old, new = lab.record["interviews"]
    assert old["decoding_noise"]["answers"] == 120
    assert new["decoding_noise"]["items"] == new["asked"] < 20


def test_exports_know_samples(lab: Any) -> None:
    project(lab, 'budget=12, stop="budget", samples=2, repeat=4')
    lab.run("--adaptive-eval-record=run.json")
    rows = [json.loads(line) for line in responses_jsonl(read_run(lab.path / "run.json"))]
    assert Counter(row["sample"] for row in rows) == {0: 12, 1: 12, 2: 4}


@pytest.mark.slow
def test_with_workers(lab: Any, comparable: Any) -> None:
    pytest.importorskip("xdist")
    project(lab, 'budget=10, stop="budget", samples=2, repeat=4', fault="")
    lab.run()
    alone = comparable(lab.record, "resumed", "versions")
    result = lab.spawn("-n2")
    assert result.ret == 0
    assert comparable(lab.record, "resumed", "versions") == alone
    result.stdout.fnmatch_lines(["* [[]100%]"])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_kill_9_in_the_repeats(lab: Any, comparable: Any) -> None:
    settings = 'budget=10, stop="budget", samples=2, repeat=8'
    project(lab, settings, fault="")
    lab.run()
    whole = comparable(lab.record, "resumed")
    lab.toy(fault="if n == 24: os.kill(os.getpid(), signal.SIGKILL)")
    assert lab.spawn().ret == -signal.SIGKILL
    lab.toy()
    assert lab.run().ret == 0
    assert comparable(lab.record, "resumed") == whole
    assert sum(a["resumed"] for a in interview(lab)["administrations"]) == 23
