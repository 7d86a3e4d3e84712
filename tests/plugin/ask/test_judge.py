"""``judge``: a model on loopback grades the answers of an evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

# loaded once: an in-process run forgets the modules that it loads
from fake_server import PeerServer

from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page

CONFTEST = """
import pytest
class Pupil:
    def generate(self, prompt):
        number = int(prompt.split()[-1].strip("?"))
        return f"I think that it is {number}" if number % 4 else "banana"
@pytest.fixture(scope="module")
def model():
    return Pupil()
"""
TEST = """
import pytest
@pytest.mark.adaptive_eval(bank="free.jsonl", budget="100%", stop="budget", judge={"model": "URL#sol"})
def test_free(item, model):
    assert item.grade(model.generate(item.prompt)) >= 0.75
@pytest.mark.adaptive_gate("free", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def said(model: str, text: str) -> str:
    """A judge that finds no banana right."""
    return f"<rank>{1 if 'banana' in text else 5}</rank>"


@pytest.fixture
def server() -> Iterator[PeerServer]:
    with PeerServer({"sol": 0.0}, said) as running:
        yield running


def write(lab: Any, server: PeerServer) -> None:
    lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
    items = "".join(
        f'{{"id": "i{n}", "prompt": "Say the number {n}?", "answer": "{n}", "grader": "contains"}}\n'
        for n in range(1, 41)
    )
    (lab.path / "free.jsonl").write_text(items)
    lab.pytester.makeconftest(CONFTEST)
    lab.tests(TEST.replace("URL", server.url))


def test_a_judge_grades_and_its_agreement_and_noise_are_told(lab: Any, server: PeerServer) -> None:
    write(lab, server)
    lab.run()
    (interview,) = lab.record["interviews"]
    assert interview["accuracy"]["estimate"] == pytest.approx(0.75)
    counts = interview["judged"]
    assert (counts["answers"], counts["coded"], counts["agreed"]) == (40, 40, 40)
    assert (counts["repeated"], counts["same"]) == (20, 20)
    (note,) = [note for note in interview["notes"] if "judgments by sol" in note]
    assert "it agrees with code on 40 of 40 answers" in note
    assert lab.outcomes() == [("test_gate", "PASS")]
    assert any("all gates that passed are on answers that a judge graded" in text for text in lab.record["warnings"])


def test_a_judge_without_scores_ends_the_run_before_a_question_is_asked(lab: Any, server: PeerServer) -> None:
    server.reply = lambda model, text: "I would rather not say."
    write(lab, server)
    result = lab.run()
    assert result.ret == 4
    (interview,) = lab.record["interviews"]
    assert "the judge sol gave no score to any of 4 answers" in interview["error"]
    assert sum(server.asked.values()) < 12


def test_a_judge_without_a_model_is_refused(lab: Any, server: PeerServer) -> None:
    write(lab, server)
    lab.tests(TEST.replace('{"model": "URL#sol"}', "{}"))
    result = lab.run()
    assert result.ret == 4
    assert "judge has no model" in " ".join((result.stderr.str() + result.stdout.str()).split())


@pytest.mark.slow
def test_calls_tokens_and_money_of_a_judge_are_told(lab: Any, server: PeerServer) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    write(lab, server)
    lab.tests(TEST.replace("URL", server.url).replace('#sol"}', '#sol", "price": {"prompt": 1000, "currency": "EUR"}}'))
    out = " ".join(lab.run().stdout.str().split())
    whole = lab.record["interviews"][0]["costs"]
    costs, price = whole["judge"], whole["prices"]["judge"]
    assert costs["calls"] == 64  # 40 answers, 20 of them twice, and 4 before the first question
    assert price["money"] == pytest.approx(costs["prompt_tokens"] / 1000)
    assert price["money"] > 0
    assert price["currency"] == "EUR"
    tokens = costs["prompt_tokens"] + costs["completion_tokens"]
    told = f"judge 64 calls, {tokens:,} tokens, {costs['seconds']:.1f} s, €{price['money']:.2f}"
    assert f"cost: {told}" in out
    record = RunRecord.from_json(lab.record)
    assert told in summary_markdown(record)
    page = html_page(record).replace("\u00a0", " ")
    table = page[page.index(">Cost of this run</h3>") :].partition("</table>")[0]
    assert re.findall(r'<th scope="row"><bdi>(\w+)<', table) == ["judge"], "a fixture does not tell its calls"
    assert ">64<" in table
    assert "€0.45" in table


@pytest.mark.slow
def test_an_interrupted_run_leaves_the_ranks_of_its_judge_too(lab: Any, server: PeerServer, comparable: Any) -> None:
    write(lab, server)
    known = CONFTEST.replace(
        "class Pupil:",
        'from pytest_adaptive_eval import SubjectIdentity\nclass Pupil:\n    identity = SubjectIdentity("p", "1")',
    )
    lab.tests(known, "conftest")
    lab.run()
    whole, ranks = comparable(lab.record, "resumed", "costs", "journal"), server.asked["sol"]
    stop = known.replace("        number =", "        if prompt.endswith(' 7?'): pytest.exit('stop')\n        number =")
    lab.tests(stop, "conftest")
    lab.run()
    before = server.asked["sol"]
    assert ranks < before < 2 * ranks
    lab.tests(known, "conftest")
    lab.run()
    assert comparable(lab.record, "resumed", "costs", "journal") == whole
    checks = ranks - 40 - 20  # before the first question of each run; 20 answers are judged twice
    assert server.asked["sol"] == 3 * checks + 2 * (40 + 20)


def test_an_item_of_a_judge_without_one_is_a_mistake_before_any_question(lab: Any) -> None:
    lab.toy()
    lines = [*lab.items(20), {"id": "poem", "prompt": "question 99", "grader": "judge"}]
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\nbudget = 2\n')
    for flags in ((), ("--collect-only",)):
        result = lab.run(*flags)
        assert result.ret == 4
        assert "item 'poem' is graded by a judge, and the evaluation names none" in result.stderr.str()
    assert lab.asked == []
