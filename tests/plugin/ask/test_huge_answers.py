"""Answers of many megabytes: what is graded and kept, what is said, and that memory does not grow with them."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.items.item import GRADED_CHARACTERS, cut_text, length_note

LENGTH = 20_000_000
ASK = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade({answer})

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
#: Tells the memory that the run took at most, in KiB.
MEMORY = """
def pytest_unconfigure():
    from pathlib import Path
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2]  # of this program, unlike ru_maxrss
    log("memory.txt", peak.split()[0])
"""
#: A subject of this package, that answers batches.
BATCHES = """
from pytest_adaptive_eval.models.base import Completion, Model

class Long(Model):
    def __init__(self):
        super().__init__(SubjectIdentity("long", "hash", {{"temperature": 0}}))

    def answer(self, items):
        return [Completion("right" + " " * {length}) for _ in items]

@pytest.fixture(scope="module")
def model():
    return Long()
"""


def test_a_long_text_is_cut_once_and_tells_its_length() -> None:
    short = "x" * GRADED_CHARACTERS
    assert cut_text(short) is short
    assert length_note(short) == ""
    cut = cut_text(short + "y" * 7)
    assert cut == short + "\n[7 more characters were neither graded nor kept]"
    assert cut_text(cut) is cut
    assert length_note(cut) == "the answer has 20007 characters: the first 20000 were graded and kept"
    forged = cut + "\n[1 more characters were neither graded nor kept]"
    assert length_note(cut_text(forged)).startswith(f"the answer has {len(forged)} characters")


@pytest.mark.parametrize("grader", ["exact", "contains", pytest.param("choice", marks=pytest.mark.slow), "numeric"])
def test_a_cut_text_gets_the_score_of_the_whole(grader: str) -> None:
    item = Item("a", "?", "7", grader, choices=("5", "7") if grader == "choice" else ())
    for text in ("7" + " " * 30_000, "7 " * 30_000, "5 " * 30_000 + "7"):
        assert item.grade(cut_text(text)) == item.grade(text)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
@pytest.mark.parametrize("subject", ["function", "batches"])
def test_thirty_long_answers_take_little_memory_and_are_kept_in_part(lab: Any, subject: str) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    lab.bank(n=30)
    more = MEMORY + (BATCHES.format(length=LENGTH) if subject == "batches" else "")
    lab.toy(fault=f'return "right" + " " * {LENGTH}', more=more)
    lab.tests(ASK.format(answer="model.generate(item.prompt)"))
    result = lab.spawn("--adaptive-eval-html=page.html", "--adaptive-eval-junit=gates.xml")
    assert result.ret == 0
    answers = lab.record["interviews"][0]["administrations"]
    assert len(answers) == 30
    assert {answer["score"] for answer in answers} == {1.0}
    told = f"the answer has {LENGTH + 5} characters: the first 20000 were graded and kept"
    assert {answer["detail"] for answer in answers} == {told}
    assert max(len(answer["text"]) for answer in answers) < GRADED_CHARACTERS + 100
    assert told in (lab.path / "page.html").read_text()
    written = sum(path.stat().st_size for path in lab.path.rglob("*") if path.is_file())
    assert written < 3_000_000
    # 30 whole answers are 600 MB; a batch has 8
    assert int(lab.lines("memory.txt")[-1]) < 450 * 1024


def test_a_status_keeps_part_of_its_text(lab: Any) -> None:
    lab.bank(n=30)
    lab.toy(fault='raise Unscored("truncated", "at its cap", "x" * 1_000_000)')
    lab.tests(ASK.format(answer="model.generate(item.prompt)"))
    lab.run()
    answers = lab.record["interviews"][0]["administrations"]
    assert {answer["status"] for answer in answers} == {"truncated"}
    assert max(len(answer["text"]) for answer in answers) < GRADED_CHARACTERS + 100


@pytest.mark.slow
def test_a_long_answer_is_resumed_as_it_was_kept(lab: Any) -> None:
    lab.bank(n=30)
    lab.toy(fault="if n == 20: raise KeyboardInterrupt\nreturn 'right' + ' ' * 100_000")
    lab.tests(ASK.format(answer="model.generate(item.prompt)"))
    assert lab.run().ret == pytest.ExitCode.INTERRUPTED
    assert max(path.stat().st_size for path in lab.journals) < 19 * 25_000
    lab.toy(fault="return 'right' + ' ' * 100_000")
    assert lab.run().ret == 0
    answers = lab.record["interviews"][0]["administrations"]
    assert sum(answer["resumed"] for answer in answers) == 19
    assert {answer["detail"] for answer in answers} == {
        "the answer has 100005 characters: the first 20000 were graded and kept"
    }


@pytest.mark.slow
def test_a_servers_long_replies_are_errors_and_no_answers(lab: Any) -> None:
    pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
    from fake_server import JsonServer, completion

    def answer(body: Any, headers: Any) -> tuple[dict[str, Any], int]:
        return completion("m", "right" if body["max_tokens"] == 1 else "right" + " " * 5_000_000), 200

    lab.bank(n=30)
    with JsonServer(["m"], answer) as running:
        (lab.path / "adaptive-eval.toml").write_text(
            f'[[eval]]\nbank = "toy.jsonl"\nbudget = "100%"\nmodel = "{running.url}#m"\n'
            "model_options = { retries = 0 }\n[[eval.gate]]\nat_least = 0.6\n"
        )
        lab.run()
    assert [outcome for _, outcome in lab.outcomes()] == ["ERROR"]
    interview = lab.record["interviews"][0]
    assert "the reply has more than 2097152 bytes" in interview["error"]
    assert {answer["score"] for answer in interview["administrations"]} == {None}
