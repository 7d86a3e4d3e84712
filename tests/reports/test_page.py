"""The HTML page: what a reader finds in it, and that no text of a record can do anything but be read."""

from __future__ import annotations

import base64
import copy
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import changed, made

from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.errors import BankError, UsageError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.presentation import Example, Presentation, presented
from pytest_adaptive_eval.models.exchange import Exchange
from pytest_adaptive_eval.records.drift import Alarm, Series, SeriesPoint
from pytest_adaptive_eval.records.parts import LevelsRecord, Pair, PolicyRecord
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import page as module
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page, write_page
from pytest_adaptive_eval.reports.questions import asked_text
from tests.reports.browser import framed, scripted
from tests.reports.held import bank, held, items, run

pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")

PAYLOADS = {
    "script": "<script>document.title='owned'</script>",
    "end of script": "</script><script>document.title='owned'</script></style><style>*{display:none}</style>",
    "end of attribute": "\" onmouseover=\"document.title='owned'\" x=\"' onfocus='alert(1)' autofocus x='`",
    "tags": "<img src=x onerror=alert(1)><svg onload=alert(1)><iframe srcdoc='<script>alert(1)</script>'>",
    "svg": "</title></desc></text></svg><foreignObject><body onload=alert(1)></foreignObject><!-- --><![CDATA[ ]]>",
    "address": "javascript:alert(1) data:text/html,<script>alert(1)</script> https://example.org/x.png //example.org",
    "css": "}</style>*{background:url(https://example.org)} expression(alert(1)) @import 'x';",
    "template": "{{ 7*'7' }}{% for x in range(9) %}x{% endfor %}{# #}${7*7}#{7*7}",
    "entities": "&lt;script&gt;&#60;b&#62;&quot;&NotAnEntity;&#0;&#x110000;",
    "control": "a\x00b\x08c\x1bd\x7f\x85e\ud800f\udfffg\ufffe\r\n\u2028h",
    "direction": "\u202egnp.exe\u202c \u2066x\u2069 \u200f \u061c \u2067",
    "colours": "\x1b[31mred\x1b]8;;https://example.org\x07link",
}


class Page(HTMLParser):
    """A page as a browser takes it apart."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self._open = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style"):
            self.blocks.append((self._open, data))
            self._open = ""
        else:
            self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def shape(self) -> Counter[tuple[str, ...]]:
        """Elements with the names of their attributes."""
        return Counter((tag, *sorted(attrs)) for tag, attrs in self.elements)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and all(attrs.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]


def read(record: RunRecord, **more: Any) -> Page:
    """The page of a record, after the checks that hold for every page."""
    source = html_page(record, **more)
    source.encode("utf-8")
    return checked(source)


def checked(source: str) -> Page:
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\ufffe]", source
    )
    page = Page(source)
    assert [tag for tag, _ in page.blocks] == ["style", "script"]
    (policy,) = (attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy")
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for _, text in page.blocks]
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(set(ids)) == len(ids)
    for tag, attrs in page.elements:
        assert tag not in ("form", "iframe", "object", "embed", "link", "base", "foreignobject", "use", "image")
        for name, value in attrs.items():
            assert not name.startswith("on"), name
            assert name not in ("style", "srcset", "action", "formaction", "background", "ping", "xlink:href", "srcdoc")
            if name == "href":
                assert value is not None
                assert value.startswith("#")
                assert value[1:] in ids, f"{value} leads nowhere"
            if name == "src":
                assert re.fullmatch(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+", value or "")
            if name in ("aria-labelledby", "aria-describedby"):
                assert set((value or "").split()) <= set(ids)
    return page


@pytest.fixture(scope="module")
def sums() -> ItemBank:
    return bank(items(60))


@pytest.fixture
def record(sums: ItemBank, make: SimpleNamespace) -> RunRecord:
    gate = make.gate("FAIL", of="sums", notes=("a note",))
    gate.verdict = changed(gate.verdict, condition=Condition("accuracy", "at_least", 0.55).to_json())
    result = run(held(sums, missing=(5,)), make.gate(of="sums"), gate)
    result.exit_status = 1
    return result


def history(record: RunRecord) -> list[Series]:
    points = [SeriesPoint(f"r{n}", f"2031-05-0{n}T00:00:00Z", "s", "c", 0.5 + n / 10, 0.1) for n in range(1, 5)]
    points.append(SeriesPoint(record.run, record.started, "s", "c", 0.1, 0.1))
    return [Series("sums", "sums", "c", "s", metric, "", tuple(points)) for metric in ("ability", "accuracy")]


# what a reader finds


def test_the_verdict_comes_first(record: RunRecord, sums: ItemBank) -> None:
    page = read(record, banks={"sums": sums})
    text = page.text
    assert text.startswith("Not to be promoted: adder-2")
    order = [
        "Not to be promoted: adder-2 1 gate failed; the run ended with exit status 1.",
        "✕ FAIL test_promotion 61 % right, between 55.1 % and 67.1 %; at least 55 % required "
        "accuracy .612 [.551, .671] < .55 required, 95 %, 96 of 640 items, design-based a note",
        "✓ PASS test_promotion 61 % right, between 55.1 % and 67.1 %; at least 55 % required "
        "accuracy .612 [.551, .671] >= .55 required, 95 %, 96 of 640 items, design-based",
        "tests/test_eval.py:12",
        "Next: read the answers adaptive-eval report 20310506T070809000Z --html report.html",
        "adder-2 on sums",
        "Ability",
        "no score: 1 timeout",
        "Ended because the budget is spent",
        "Accuracy by category",
        "Answers and the bank's predictions",
        "Questions",
        "Question 1 ",
        "Question 30 ",
        "Run 20310506T070809000Z-00000000",
    ]
    at = 0
    for part in order:
        assert part in text[at:], f"{part!r} is missing, or not in its place"
        at = text.index(part, at)


def test_the_first_table_has_wrong_answers_with_their_questions(make: SimpleNamespace) -> None:
    sums = ItemBank.uncalibrated("sums", [Item(f"sum-{n}", f"What is {n} + {n}?", str(2 * n)) for n in range(20)])
    about = {"name": "sums", "calibrated": False, "content_hash": sums.content_hash}
    asked = [Administration(n, i.id, i.content_hash, score=0.0, text="no & no") for n, i in enumerate(sums.items, 1)]
    record = make.record([make.interview(name="sums", bank=about, administrations=asked)])
    shown = html_page(record, banks={"sums": sums})
    table = shown[shown.index("<table") :].partition("</table>")[0]
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", table)
    assert cells[:4] == ["item", "question", "answer", "expected"]
    assert cells[4:8] == ["<bdi>sum-0</bdi>", "What is 0 + 0?", "no &amp; no", "0"]
    assert len(cells) == 44
    assert "Wrong answers, the first 10 of 20" in shown
    record.interviews[0].administrations = [changed(entry, score=1.0) for entry in asked]
    assert "Wrong answers" not in html_page(record, banks={"sums": sums})


def test_the_question_column_shows_the_item_and_no_text_that_all_questions_have(make: SimpleNamespace) -> None:
    shown = Presentation(examples=(Example("What is 90 + 1?", (), "91"),), system="You are a calculator.")
    chat = (
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "So?"},
    )
    for item, presentation, text in (
        (Item("a", "What is 1 + 1?", "2"), shown, "What is 1 + 1?"),
        (Item("a", "What is 1 + 1?", "2"), replace(shown, system=""), "What is 1 + 1?"),
        (Item("a", messages=chat, answer="2"), replace(shown, examples=()), "So?"),
    ):
        bank = presented(ItemBank.uncalibrated("sums", [item]), presentation)
        about = {"name": "sums", "content_hash": bank.content_hash, "presentation": presentation.to_json()}
        asked = [Administration(1, "a", bank.items[0].content_hash, score=0.0, text="no")]
        interview = make.interview(name="sums", bank=about, administrations=asked)
        page = html_page(make.record([interview]), banks={"sums": bank})
        assert f'data-head="question" dir="auto">{text}</td>' in page
        assert "90 + 1" not in page


def test_what_a_baseline_had_right_is_listed_before_other_wrong_answers(make: SimpleNamespace) -> None:
    sums = ItemBank.uncalibrated("sums", [Item(f"sum-{n}", f"What is {n} + {n}?", str(2 * n)) for n in range(20)])
    about = {"name": "sums", "calibrated": False, "content_hash": sums.content_hash}
    asked = [Administration(n, i.id, i.content_hash, score=n % 2, text="no") for n, i in enumerate(sums.items, 1)]
    ids = [entry.item for entry in asked]
    source = {"common": 20, "lost": ids[1:17:2], "gained": [ids[0]]}
    interview = make.interview(name="sums", bank=about, administrations=asked, baselines={"baseline": source})
    shown = html_page(make.record([interview]), banks={"sums": sums})
    titles = re.findall(r"<h2 id=\"answers[^>]*>(.*?)</h2>", shown)
    assert titles == [
        "Lost against the baseline: 8 of 20 common questions",
        "Gained against the baseline: 1 of 20 common questions",
        "Other wrong answers",
    ]
    others = shown[shown.index(">Other wrong answers") :].partition("</table>")[0]
    assert re.findall(r"<bdi>(sum-\d+)</bdi>", others) == ["sum-17", "sum-19"]
    assert "What is 1 + 1?" in shown[shown.index("Lost against") :].partition("</table>")[0]
    summary = summary_markdown(make.record([interview]), banks={"sums": sums})
    assert "Lost against the baseline: 8 of 20 common questions, the first 5" in summary
    interview.baselines["baseline"].lost.append("an item of nobody")
    assert "9 of 20 common questions, the first 8<" in html_page(make.record([interview]))


@pytest.mark.parametrize(
    ("outcome", "decided_after", "low", "high", "said"),
    [
        (Outcome.PASS, None, 0.6, 0.8, ""),
        (Outcome.FAIL, None, 0.2, 0.4, ""),
        (Outcome.INCONCLUSIVE, None, 0.4, 0.6, ""),
        (Outcome.PASS, 40, 0.4, 0.6, "the interval is of all answers"),
        (Outcome.INCONCLUSIVE, None, 0.6, 0.8, "the interval by itself would be PASS"),
        (Outcome.FAIL, None, 0.4, 0.6, "the interval by itself would be INCONCLUSIVE"),
    ],
)
def test_a_verdict_and_its_bar_agree_or_a_note_says_why_not(
    make: SimpleNamespace, outcome: Outcome, decided_after: int | None, low: float, high: float, said: str
) -> None:
    gate = make.gate(outcome.value, condition={"metric": "accuracy", "kind": "at_least", "value": 0.5})
    interval = Interval(0.5, low, high, 0.95, "anytime-valid")
    gate.verdict = changed(gate.verdict, interval=interval, decided_after=decided_after)
    shown = html_page(make.record(gates=[gate]))
    assert ("the interval " in shown) == bool(said)
    assert said in shown


def test_landmarks_and_names(record: RunRecord, sums: ItemBank) -> None:
    page = read(record, banks={"sums": sums}, series=history(record))
    tags = Counter(tag for tag, _ in page.elements)
    assert [tags[name] for name in ("h1", "main", "header", "footer", "nav")] == [1, 1, 1, 1, 1]
    assert page.all("a", class_="skip", href="#main")
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    assert all(attrs.get("aria-label") for tag in ("input", "select") for attrs in page.all(tag))
    pictures = page.all("svg")
    assert sum(attrs.get("role") == "img" for attrs in pictures) == 3
    assert all("aria-labelledby" in attrs or attrs.get("aria-hidden") == "true" for attrs in pictures)
    assert page.all("p", id="count")[0]["aria-live"] == "polite"
    # without scripts, what needs them is not there
    assert "hidden" in page.all("div", id="find")[0]
    assert "hidden" in page.all("button", id="theme")[0]
    assert page.all("html", lang="en")


def test_a_question_is_told_in_full(record: RunRecord, sums: ItemBank) -> None:
    asked = record.interviews[0].administrations[0]
    page = read(record, banks={"sums": sums})
    item = sums.items[list(sums.ids).index(asked.item)]
    word = "right" if asked.score else "wrong"
    shown = re.search(r"Question 1 .*?(?= Question 2 )", page.text)
    assert shown
    for part in (
        f"Question 1 {word} {item.id} {item.category[0]} {item.prompt}",
        f"Answer {asked.text}",
        f"Expected {item.answer}",
        "ability before .00",
        "drawn by spread",
        f"chance {asked.propensity:.2g}".replace("0.", "."),
    ):
        assert part in shown[0]
    fifth = re.search(r"Question 5 .*?(?= Question 6 )", page.text)
    assert fifth
    assert "Question 5 timeout" in fifth[0]
    assert "Answer no text in the record Detail no answer in 30 s" in fifth[0]
    kinds = Counter(
        (attrs["class"] or "").split()[1] for attrs in page.all("li") if (attrs.get("class") or "").startswith("q ")
    )
    assert kinds.total() == 30
    assert kinds["none"] == 1
    assert "partly" not in kinds
    assert f"right ({kinds['right']})" in page.text


@pytest.mark.parametrize(
    ("outcomes", "status", "title", "why"),
    [
        ([], 0, "Not to be promoted", "No gate judged the checkpoint."),
        (["PASS"], 0, "May be promoted", "1 of 1 gate passed."),
        (["PASS"], 1, "Not to be promoted", "The run ended with exit status 1."),
        (["PASS"], None, "Not to be promoted", "The run did not come to its end."),
        (["PASS", "INCONCLUSIVE"], 1, "Not to be promoted", "1 gate could not be decided; the run ended"),
        (["PASS", "FAIL"], 0, "Not to be promoted", "1 gate failed."),
        (["ERROR", "FAIL"], 1, "Not to be promoted", "1 gate failed; 1 gate could not be judged;"),
        (["let through"], 0, "Not to be promoted", "No gate passed."),
        (["PASS", "let through"], 0, "May be promoted", "1 of 2 gates passed, and 1 undecided was let through."),
        (["PASS", "notice"], 0, "Not to be promoted", "1 gate had nothing to compare with yet."),
    ],
)
def test_may_it_be_promoted(
    make: SimpleNamespace, outcomes: list[str], status: int | None, title: str, why: str
) -> None:
    gates = []
    for outcome in outcomes:
        gate = make.gate(outcome if outcome.isupper() else "INCONCLUSIVE")
        allowed = "warn" if outcome == "let through" else "fail"
        gate.verdict = changed(gate.verdict, on_inconclusive=allowed, notice=outcome == "notice")
        gates.append(gate)
    record = make.record(gates=gates)
    record.exit_status = status
    text = read(record).text
    assert text.startswith(title)
    assert why in text
    if title == "May be promoted":
        assert record.promote


def test_an_error_is_counted(make: SimpleNamespace) -> None:
    gate = make.gate()
    gate.verdict = Verdict(Outcome.ERROR)
    text = read(make.record(gates=[gate])).text
    assert "! ERROR" in text
    assert "1 gate could not be judged" in text


def test_what_does_not_exist_is_said(record: RunRecord, make: SimpleNamespace) -> None:
    text = read(record).text
    assert "The bank was not at hand: questions are shown by their ids." in text
    assert "What is" not in text
    assert "History:" not in text
    empty = read(make.record()).text
    assert "Search" not in empty
    assert read(RunRecord("r", "t")).text.startswith("Not to be promoted: adaptive evaluation")
    void = make.interview(stop="ERRORS", error="3 errors in a row")
    assert "Void: 3 errors in a row" in read(make.record([void])).text


def test_an_uncalibrated_bank(make: SimpleNamespace) -> None:
    on = ItemBank.uncalibrated("sums", items(60), content_hash="c" * 16)
    interview = held(on, selector=SELECTORS["random"])
    interview.theta = interview.standard_error = None
    interview.bank.calibrated = False
    for asked in interview.administrations:
        asked.theta_before = asked.theta_after = asked.difficulty = None
    text = read(run(interview), banks={"sums": on}).text
    assert "Answers and the bank's predictions" not in text
    assert " predicted " not in text
    assert "the bank is not calibrated: items were drawn uniformly, and no ability is estimated" in text


class Edited(list[Item]):
    """Items whose file was edited."""

    def __getitem__(self, index: Any) -> Any:
        raise BankError("the texts were edited")


def test_only_questions_that_are_the_same_are_shown(record: RunRecord, sums: ItemBank) -> None:
    asked = record.interviews[0].administrations
    changed = [replace(item, prompt="CHANGED") if item.id == asked[0].item else item for item in sums.items]
    text = read(record, banks={"sums": replace(sums, items=changed, content_hash="d")}).text
    assert "CHANGED" not in text
    assert text.count("The item changed since, so the question is not shown.") == 1
    assert "The bank has changed since the run: only questions that are still the same are shown." in text
    asked[1].item = "gone"
    text = read(record, banks={"sums": sums}).text
    assert re.search(r"gone (even|odd) The bank at hand has no such item\.", text)
    assert "The bank has changed" not in text
    text = read(record, banks={"sums": replace(sums, items=Edited(sums.items))}).text
    assert "The bank's texts were edited, so the question is not shown." in text


def test_chats_choices_and_formats(sums: ItemBank) -> None:
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Which?"}, {"type": "image"}]},
    ]
    asked = Item("chat", messages=tuple(chat), choices=("red", "blue"), answer="b", grader="choice")
    picture = Item("picture", prompt="What is it?", answer="x", images=("no.png",), formats=("image+text", "text"))
    on = bank([replace(item, category=("a",)) for item in (asked, picture)])
    interview = held(sums, budget=4)
    for entry, item in zip(interview.administrations, (asked, picture, picture), strict=False):
        entry.item, entry.item_hash = item.id, on.items[list(on.ids).index(item.id)].content_hash
    interview.administrations[1].format = "text"
    interview.administrations[2].format = "image+text"
    source = html_page(run(interview), banks={"sums": on})
    page = checked(source)
    assert 'Which? {"type": "image"} A. red B. blue' in page.text
    assert "Expected B. blue" in page.text
    assert source.count("no.png: its file is missing.") == 1, "asked once with its picture and once without"
    assert "format image+text" in page.text


def test_fractions_samples_and_resumed_answers(record: RunRecord, sums: ItemBank) -> None:
    one = record.interviews[0].administrations[0]
    one.score, one.sample, one.resumed = 0.25, 1, True
    page = read(record, banks={"sums": sums})
    assert "Question 1 partly .25" in page.text
    assert "partly right (1)" in page.text
    assert "sample 2 · drawn by spread · from the journal" in page.text


def test_history(record: RunRecord) -> None:
    series = history(record)
    alarm = Alarm(series[0], 4, 4, None, 0.75, 0.1, "sums: ability fell from .75 to .10")
    page = read(record, series=series, alarms=[alarm])
    assert "History a run this run raised an alarm" in page.text
    assert page.text.count("sums: ability fell from .75 to .10") == 2, (
        "below the panel, and for those who cannot see it"
    )
    assert sum((attrs.get("class") or "") == "now" for attrs in page.all("circle")) == 3, "two panels and the legend"
    broken = replace(series[0], points=(replace(series[0].points[0], value=float("nan")),))
    assert "History:" not in read(record, series=[broken, replace(series[0], points=())]).text
    many = [replace(series[1], category=f"c{n}") for n in range(30)]
    page = read(record, series=[*many, series[0]])
    assert "7 more series are not shown." in page.text
    assert page.text.index("sums: whole bank") < page.text.index("sums: c0")


def test_several_interviews_keep_their_questions_apart(sums: ItemBank) -> None:
    one, two = held(sums, budget=12), held(sums, budget=12, seed=9)
    two.name, two.bank = "again", changed(two.bank, name="again")
    record = run(one)
    record.evaluations = [one, two]
    page = read(record, banks={"sums": sums})
    assert page.text.count("The bank was not at hand") == 1
    assert page.text.count("adder-2 on again") == 2
    assert page.all("li", id="q2-12")
    assert page.all("section", id="i2")


def test_what_went_between_model_and_run_is_shown_with_time_and_tokens(record: RunRecord, sums: ItemBank) -> None:
    (interview,) = record.evaluations
    asked = interview.administrations[0]
    asked.sent = "key"
    exchange = Exchange(
        {"seconds": 1.25, "input_tokens": 1200.0, "output_tokens": 45.0, "reasoning_tokens": 30.0, "steps": 2.0},
        "let me think",
        ["<rank>4</rank>"],
        [AgentStep("assistant", "ls()"), AgentStep("tool", "a.txt")],
    )
    requests = {"key": '{"prompt":"hi"}', interview.exchange_key(asked): exchange.to_text()}
    text = read(record, banks={"sums": sums}, requests=requests).text
    assert (
        'Request as sent, thought, steps, reply of the judge request as sent { "prompt": "hi" } thought let me think '
        "steps: assistant ls() steps: tool a.txt reply of the judge <rank>4</rank>"
    ) in text
    assert "1.2 s · 1,200 tokens read · 45 tokens written · 30 of thought · 2 steps · " in text


def test_side_by_side_lists_the_answers_of_all_with_different_results_first(make: SimpleNamespace) -> None:
    interviews = []
    for name, second in (("alpha", 1.0), ("beta", 0.0), ("gamma", None)):
        scores = {"same": 1.0, "second": second}
        answers = []
        for n, (item, score) in enumerate(scores.items(), 1):
            if score is not None:
                answers.append(Administration(n, item, "h", score=score, text=f"{name} says {score:g}"))
        interviews.append(
            make.interview(name=f"q-{name}", group="q", variant=name, administrations=answers, nodeid=f"t::{name}")
        )
    record = make.record(interviews, [])
    bounds = Interval(0.3, 0.1, 0.5, 0.95, "")
    record.differences = [Pair("q", ("alpha", "beta"), bounds, 2), Pair("q", ("alpha", "gamma"), None, 0, "too few")]
    page = read(record)
    start = page.text.index("Answers to each question")
    assert page.text[start:].startswith(
        "Answers to each question 1 of 2 questions got different results; these come first. "
        "question expected alpha beta gamma "
        "second - alpha says 1 beta says 0 not asked same - alpha says 1 beta says 1 gamma says 1"
    )
    assert sum(attrs.get("class") == "target" for attrs in page.all("line")) == 1, "a bar for the pair that compares"
    assert page.text.count("the bank is not calibrated") <= 1


def test_long_texts_are_cut_and_say_so(record: RunRecord, sums: ItemBank) -> None:
    record.interviews[0].administrations[0].text = "long " * 2_000
    record.interviews[0].notes = ["n" * 5_000]
    record.gates[0].name = "g" * 5_000
    text = read(record, banks={"sums": sums}).text
    assert "… (8,500 more characters)" in text
    assert "… (4,400 more characters)" in text
    assert "… (4,800 more characters)" in text


@pytest.mark.slow
def test_a_large_run_stays_below_three_megabytes(sums: ItemBank) -> None:
    interview = held(sums, budget=40)
    interview.administrations = [
        Administration(
            n, f"item-{n}", "h", text="word & word " * 400, reason="drawn", score=1.0, category=[f"c{n % 300}"]
        )
        for n in range(2_000)
    ]
    for entry in interview.administrations[::2]:
        entry.sent = entry.item
    requests = {entry.item: "a request & more " * 200 for entry in interview.administrations}
    source = html_page(run(interview), requests=requests)
    assert 1e6 < len(source.encode()) < 3e6
    assert source.count("<summary>Request as sent</summary>") == 1_000
    assert 'class="list many"' in source


def test_the_same_arguments_give_the_same_page(record: RunRecord, sums: ItemBank) -> None:
    assert html_page(record, banks={"sums": sums}) == html_page(copy.deepcopy(record), banks={"sums": sums})


# hostile texts


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all strings in JSON data, and of all keys as ``(..., key, None)``; of lists the first entries only."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for n, value in enumerate(data[:2]):
            yield from leaves(value, (*path, n))
    elif isinstance(data, str) and path[-1] != "outcome":  # one of four words, or the record is refused
        yield path


def put(data: Any, path: tuple[Any, ...], value: str) -> RunRecord:
    """The record with another text at one place."""
    data = copy.deepcopy(data)
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return RunRecord.from_json(data)


def full(make: SimpleNamespace, sums: ItemBank) -> dict[str, Any]:
    """A record with a text wherever there may be one."""
    interview = held(sums, budget=4, missing=(2,))
    interview.notes, interview.error = ["note"], "error"
    interview.statuses["timeout"] = 1
    interview.subject = changed(interview.subject, environment={"device": "cpu"})
    interview.accuracy_model = make.interval(0.5, 0.4, 0.6, "model-based")
    interview.conditions = [Condition("accuracy", "at_least", 0.5).to_json()]
    gate = make.gate("FAIL", of="sums", notes=("a note",))
    condition = Condition("accuracy", "not_worse_than", 0.02, "main")
    gate.verdict = changed(gate.verdict, condition=condition.to_json())
    data = run(interview, gate, make.gate(of="")).to_json()
    for asked in data["interviews"][0]["administrations"]:
        asked["detail"] = "detail"
    return data


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_no_text_of_a_record_makes_an_element(make: SimpleNamespace, sums: ItemBank, payload: str) -> None:
    data = full(make, sums)
    paths = list(leaves(data))
    assert len(paths) > 60
    hostile, harmless = copy.deepcopy(data), copy.deepcopy(data)
    for path in paths:  # all of them at once, against a record that says "x" there
        for text, whole in ((payload, hostile), ("x", harmless)):
            at = whole
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = text
    shapes = [
        read(RunRecord.from_json(whole), banks={"sums": sums, "x": sums, payload: sums}).shape
        for whole in (hostile, harmless)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.slow
def test_no_single_text_makes_an_element(make: SimpleNamespace, sums: ItemBank) -> None:
    data = full(make, sums)
    unchanged = read(RunRecord.from_json(data), banks={"sums": sums}).shape
    payload = "".join(PAYLOADS.values())
    for path in leaves(data):
        hostile = read(put(data, path, payload), banks={"sums": sums}).shape
        if hostile != unchanged:  # as where a status is no longer a known one: then any text must do the same
            assert hostile == read(put(data, path, "x"), banks={"sums": sums}).shape, path


def test_no_key_makes_an_element(make: SimpleNamespace, sums: ItemBank) -> None:
    shapes = []
    for text in ("".join(PAYLOADS.values()), "x"):
        record = RunRecord.from_json(full(make, sums))
        held_with = record.interviews[0]
        held_with.statuses[text] = 1
        held_with.policy.settings = {text: text}
        held_with.subject = changed(held_with.subject, decoding={text: text}, environment={text: text})
        record.versions[text] = text
        shapes.append(read(record, banks={"sums": sums}).shape)
    assert shapes[0] == shapes[1]


def test_no_text_of_a_bank_or_a_history_makes_an_element() -> None:
    shapes = []
    for text in ("".join(PAYLOADS.values()), "x"):
        hostile = [
            replace(item, prompt=text, answer=text, choices=(text,), images=(f"{text}.png",), category=(text, text))
            for item in items(20)
        ]
        hostile[3] = replace(
            hostile[3], prompt="", messages=({"role": text, "content": [{"text": text}, {text: text}]},)
        )
        on = bank(hostile)
        record = run(held(on, budget=20))
        series = [replace(one, evaluation=text, bank=text, category=text) for one in history(record)]
        alarm = Alarm(series[0], 4, 4, None, 0.75, 0.1, text)
        shapes.append(read(record, banks={"sums": on}, series=series, alarms=[alarm]).shape)
    assert shapes[0] == shapes[1]


@given(text=st.text(st.characters(exclude_categories=()), min_size=1))
@settings(max_examples=25)
def test_any_text_is_only_read(make: SimpleNamespace, text: str) -> None:
    gate = make.gate("FAIL", name=text, notes=(text,))
    interview = make.interview(subject={"name": text}, notes=[text], error=text)
    interview.administrations = [Administration(1, text, "h", text=f"{text}x", detail=f"{text}x", category=[text])]
    page = read(make.record([interview], [gate]))
    assert Counter(tag for tag, _ in page.elements)["script"] == 1


def test_templates_in_texts_are_texts(make: SimpleNamespace) -> None:
    text = read(make.record([make.interview(notes=[PAYLOADS["template"]])])).text
    assert "{{ 7*'7' }}{% for x in range(9) %}x{% endfor %}{# #}${7*7}#{7*7}" in text


def test_the_blocks_load_nothing() -> None:
    package = Path(sys.modules["pytest_adaptive_eval.reports"].__path__[0])
    style, script = ((package / name).read_text("utf-8") for name in ("page.css", "page.js"))
    for block in (style, script):
        assert "</" not in block
        assert not re.search(r"url\(|@import|https?:|//\w|fetch|XMLHttpRequest|WebSocket|innerHTML|eval\(", block)
    template = (package / "page.html.jinja").read_text("utf-8")
    assert "|safe" not in template.replace(" ", "")
    assert "autoescape" not in template
    assert "http" not in template.replace("http-equiv", "")


# colours


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_in_both_themes(theme: int) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    style = (Path(sys.modules["pytest_adaptive_eval.reports"].__path__[0]) / "page.css").read_text("utf-8")
    colours = {
        name: (one, two)[theme] for name, one, two in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    }
    grounds = [name for name in colours if name in ("page", "panel") or name.endswith("tint")]
    assert len(grounds) == 5
    for text in ("ink", "soft", "blue", "pass", "fail", "unsure"):
        for ground in grounds:
            assert contrast(colours[text], colours[ground]) >= 4.5, f"{text} on {ground}"
    assert contrast(colours["ink"], colours["found"]) >= 4.5


# writing


def test_written_whole_or_not_at_all(record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "page.html"
    write_page(record, path)
    whole = path.read_bytes()
    assert whole.decode("utf-8") == html_page(record)
    record.run = "another"

    def full_disk(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(UsageError, match=r"page\.html: cannot write the page: No space left on device"):
        write_page(record, path)
    assert path.read_bytes() == whole
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]


def test_a_folder_is_not_replaced(record: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a regular file"):
        write_page(record, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write the page"):
        write_page(record, tmp_path / "file" / "page.html")


def test_without_jinja2(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    module._template.cache_clear()
    with pytest.raises(UsageError, match=r'pip install "pytest-adaptive-eval\[html\]"'):
        html_page(record)


# in a browser


def hostile_page(make: SimpleNamespace, payloads: list[str]) -> str:
    """A page with these texts in its questions, answers, gates and notes."""
    whole = [
        replace(item, prompt="".join(payloads), category=(payloads[n % len(payloads)],))
        for n, item in enumerate(items(20))
    ]
    interview = held(bank(whole), budget=20)
    interview.name, interview.notes, interview.error = payloads[0], payloads, "".join(payloads)
    for n, asked in enumerate(interview.administrations):
        asked.text = asked.detail = asked.reason = payloads[n % len(payloads)]
    rows = zip(interview.categories, payloads, strict=False)
    interview.categories = [replace(row, category=text) for row, text in rows]
    gates = [make.gate("FAIL", name=text, notes=(text,)) for text in payloads]
    return html_page(run(interview, *gates), banks={payloads[0]: bank(whole)})


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_hostile_page_in_a_browser(make: SimpleNamespace, in_chromium: Callable[[str], str]) -> None:
    attack = "document.title='owned';document.documentElement.dataset.owned='yes'"
    payloads = [
        *PAYLOADS.values(),
        f"<script>{attack}</script>",
        f"</script><script>{attack}</script>",
        f'<img src=x onerror="{attack}"><svg onload="{attack}"><details open ontoggle="{attack}">',
        f'" autofocus onfocus="{attack}" x="',
    ]
    script = """
    addEventListener("load", () => {
      const root = document.documentElement;
      root.dataset.scripts = document.scripts.length;
      root.dataset.images = document.images.length;
      root.dataset.handlers = [...document.querySelectorAll("*")].filter((e) =>
        [...e.attributes].some((a) => a.name.startsWith("on") || a.name === "style")).length;
      root.dataset.frames = frames.length;
      document.body.append(Object.assign(document.createElement("p"), { id: "end", textContent: document.title }));
    });
    """
    seen = in_chromium(scripted(hostile_page(make, payloads), script))
    (opening,) = re.findall(r"<html [^>]*>", seen)
    assert 'data-scripts="2" data-images="0" data-handlers="0" data-frames="0"' in opening
    assert "owned" not in opening
    assert '<p id="end">Not to be promoted: adder-2</p>' in seen


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_searching_in_a_browser(record: RunRecord, sums: ItemBank, in_chromium: Callable[[str], str]) -> None:
    script = """
    addEventListener("load", () => {
      const at = (id) => document.getElementById(id), told = [];
      const tell = (name) => told.push(name + ": " + at("count").textContent + "; " +
        [...document.querySelectorAll(".q:not([hidden])")].length + " shown, " + document.activeElement.id);
      const set = (id, value) => { at(id).value = value; at(id).dispatchEvent(new Event("input")); };
      const press = (key) => (document.activeElement ?? document.body).dispatchEvent(
        new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
      tell("start");
      press("/"); tell("slash");
      set("words", "  What is TEXT + "); tell("text");
      set("words", "no such text"); tell("nothing");
      press("Escape"); tell("escape");
      set("kind", "none"); tell("none");
      set("kind", ""); set("category", "2"); tell("category");
      told.push("hidden list: " + document.querySelector(".list").hidden);
      location.hash = "#q1-1";
      const was = document.documentElement.dataset.theme;
      at("theme").click(); told.push("theme: " + was + " " + document.documentElement.dataset.theme);
      at("theme").click();
      told.push("theme: " + document.documentElement.dataset.theme + " " + at("theme").textContent);
      document.body.append(Object.assign(document.createElement("pre"), { id: "told", textContent: told.join("\\n") }));
    });
    """
    asked = record.interviews[0].administrations
    number = asked[0].item.split("-")[1]
    odd = sum(int(a.item.split("-")[1]) % 2 for a in asked)
    seen = in_chromium(scripted(html_page(record, banks={"sums": sums}), script.replace("TEXT", number)))
    (told,) = re.findall(r'<pre id="told">(.*?)</pre>', seen, re.DOTALL)
    assert told.splitlines() == [
        "start: 30 questions; 30 shown, ",
        "slash: 30 questions; 30 shown, words",
        "text: 1 of 30 questions; 1 shown, words",
        "nothing: 0 of 30 questions; 0 shown, words",
        "escape: 30 questions; 30 shown, words",
        "none: 1 of 30 questions; 1 shown, words",
        f"category: {odd} of 30 questions; {odd} shown, words",
        "hidden list: false",
        "theme: undefined dark",
        "theme: light Dark theme",
    ]


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_narrow_page_does_not_scroll_sideways(make: SimpleNamespace, tmp_path: Path) -> None:
    payloads = [*PAYLOADS.values(), "x" * 3_000, "模型" * 300, "Z\u0301\u0302\u0303" * 300, "https://example.org/" * 50]
    told = "const e = document.documentElement; parent.postMessage([innerWidth, e.scrollWidth - e.clientWidth], '*');"
    assert framed(hostile_page(make, payloads), told, tmp_path, 360) == "360,0"


def climbed(make: SimpleNamespace, **changes: Any) -> EvaluationRecord:
    on = ItemBank.uncalibrated("sums", items(60), content_hash="c" * 16)
    interview = held(on, selector=SELECTORS["random"])
    interview.theta = interview.standard_error = interview.accuracy = None
    interview.bank.calibrated = False
    interview.policy = PolicyRecord("climb", stop="level")
    auc, half = make.interval(2.5, 2.1, 2.9, "by levels"), make.interval(2.8, 2.0, 4.0)
    levels = {"asked": [10, 10, 10, 10], "accuracy": [1.0, 0.9, 0.4, 0.2], "last_level": 4, "auc": auc, "half": half}
    interview.levels = made(LevelsRecord, cap=4, **{**levels, **changes})
    for asked in interview.administrations:
        asked.propensity = asked.rest = asked.variance = asked.theta_before = asked.theta_after = None
    return interview


def test_categories_without_intervals_say_why(record: RunRecord) -> None:
    assert "Each interval holds by itself" in read(record).text
    rows = record.interviews[0].categories
    record.interviews[0].categories = [replace(row, accuracy=None, standard_error=None) for row in rows]
    text = read(record).text
    assert "Each interval holds by itself" not in text
    assert "Categories have no intervals here: as for the whole bank, the draws of this interview allow none." in text


def test_approximate_categories_of_an_interview_that_ended_at_its_verdict_have_counts_alone(record: RunRecord) -> None:
    interview = record.interviews[0]
    approximate = [replace(row, accuracy=replace(row.accuracy, method="approximate")) for row in interview.categories]
    interview.categories = approximate
    interview.stop = "BUDGET"
    assert "Each interval holds by itself" in read(record).text
    interview.stop = "DECISION"
    text = read(record).text
    assert "Each interval holds by itself" not in text
    assert "miss too often, since the interview ended at its verdict" in text


def test_a_climb_is_drawn_by_level(make: SimpleNamespace) -> None:
    text = read(run(climbed(make))).text.replace("\u00a0", " ")
    assert "Area under the accuracy by level" in text
    assert "2.50 [2.10, 2.90] last level 4, half right at level 2.8 [2.0, 4.0]; by levels" in text
    assert "level 1: 1.00 right of 10; level 2: .90 right of 10; level 3: .40 right of 10" in text
    assert "crosses one half" in text
    assert "drawn uniformly" not in text
    assert "Accuracy by category" not in text


def test_a_climb_that_never_crosses_one_half_does_not_say_where(make: SimpleNamespace) -> None:
    text = read(run(climbed(make, accuracy=[1.0, 1.0, 0.9, 0.8]))).text.replace("\u00a0", " ")
    assert "last level 4; by levels" in text
    assert "one half" not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": []},
        {"accuracy": [float("nan"), 7, None]},
        {"asked": [0, -3]},
    ],
)
def test_a_forged_climb_draws_nothing(make: SimpleNamespace, changes: dict[str, Any]) -> None:
    assert "Accuracy at each level asked" not in read(run(climbed(make, **changes))).text


def test_choices_that_the_prompt_lists_are_shown_once() -> None:
    listed = Item("a", "Which?\nA. red\nB. blue\nAnswer with the letter.", choices=("red", "blue"))
    assert asked_text(listed) == listed.prompt
    assert asked_text(Item("b", "Is 12 even?", choices=("1", "2"))) == "Is 12 even?\nA. 1\nB. 2"
    assert asked_text(Item("c", "Why?")) == "Why?"
