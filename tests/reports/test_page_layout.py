"""How the page looks: types of one size, whole words, compact facts, numbers at the right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made import changed, made

from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.records.drift import Series, SeriesPoint
from pytest_adaptive_eval.records.parts import LevelsRecord
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.figures import history_panels
from pytest_adaptive_eval.reports.markup import Markup, unbroken
from pytest_adaptive_eval.reports.page import html_page
from pytest_adaptive_eval.reports.sections import Table
from tests.reports.browser import framed
from tests.reports.held import bank, held, items, run

pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")

#: Words of tables that stand on more than one line.
BROKEN = """
addEventListener("load", () => {
  const broken = [];
  for (const cell of document.querySelectorAll("table th, table td")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const word of node.data.matchAll(/[\\p{L}\\d.]+/gu)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
      }
    }
  }
  parent.postMessage(broken.length ? broken.join(" ") : "none", "*");
});
"""
#: Columns of the table of wrong answers that lie beyond the edge, and names of columns beside their values.
BEYOND = """
addEventListener("load", () => {
  const cells = [...document.querySelectorAll("[id^=answers] td")];
  const beyond = cells.filter((cell) => cell.getBoundingClientRect().right > document.documentElement.clientWidth);
  const heads = new Set(cells.map((cell) => getComputedStyle(cell, "::before").content));
  parent.postMessage(JSON.stringify([cells.length > 0, beyond.length, [...heads]]), "*");
});
"""
#: Smallest and largest letters of the pictures, in pixels.
SIZES = """
addEventListener("load", () => {
  const sizes = [...document.querySelectorAll("figure svg[role] text")].map(
    (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a);
  parent.postMessage(JSON.stringify([sizes.length, Math.min(...sizes), Math.max(...sizes)]), "*");
});
"""


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize(("width", "heads"), [(390, ["question", "answer", "expected"]), (1280, None)])
def test_no_column_of_the_wrong_answers_lies_beyond_the_edge(
    tmp_path: Path, width: int, heads: list[str] | None
) -> None:
    whole = bank(items(60))
    page = html_page(run(held(whole)), banks={"sums": whole})
    found = json.loads(framed(page, BEYOND, tmp_path, width).replace("&quot;", '"'))
    assert found[:2] == [True, 0]
    assert [name.strip('" ') for name in found[2]] == (heads or ["none"])


def climbed(make: SimpleNamespace) -> RunRecord:
    """A run of one ladder, which has one picture."""
    interview = held(bank(items(60)))
    interview.theta = interview.standard_error = interview.accuracy = interview.accuracy_model = None
    interview.bank.calibrated = False
    auc, half = make.interval(2.5, 2.1, 2.9, "by levels"), make.interval(2.8, 2.0, 4.0)
    levels = {"asked": [10, 10, 10], "accuracy": [1.0, 0.9, 0.4], "last_level": 3, "auc": auc, "half": half}
    interview.levels = made(LevelsRecord, cap=3, **levels)
    for asked in interview.administrations:
        asked.propensity = asked.rest = asked.variance = asked.theta_before = asked.theta_after = None
        asked.difficulty = None
    return run(interview)


def series(values: list[float], metric: str = "accuracy", error: float = 0.2) -> Series:
    points = tuple(SeriesPoint(f"r{n}", f"2031-05-0{n}T00:00:00Z", "s", "c", v, error) for n, v in enumerate(values, 1))
    return Series("sums", "sums", "c", "s", metric, "", points)


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("width", [390, 1280])
def test_no_word_of_a_table_is_broken(make: SimpleNamespace, tmp_path: Path, width: int) -> None:
    interview = held(bank(items(60)))
    names = ("unscrambling", "multiplication")
    interview.categories = [replace(row, category=n) for row, n in zip(interview.categories, names, strict=False)]
    study = make.study(("candidate", "counterpart", "challenger", "competitor", "contestant"))
    record = run(interview)
    record.evaluations = [study]
    assert framed(html_page(record), BROKEN, tmp_path, width) == "none"


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_single_picture_has_letters_as_small_as_the_others(make: SimpleNamespace, tmp_path: Path) -> None:
    count, least, most = json.loads(framed(html_page(climbed(make)), SIZES, tmp_path, 1280))
    assert count > 5
    assert 9 < least <= most < 16


def test_a_ladder_s_facts_are_short(make: SimpleNamespace) -> None:
    facts = re.findall(r"<dt>([^<]*)</dt><dd[^>]*>([^<]*)</dd>(?:<dd[^>]*>([^<]*)</dd>)?", html_page(climbed(make)))
    value, more = next((value, more) for name, value, more in facts if name == "Area under the accuracy by level")
    assert value == "2.50 [2.10,\u00a02.90]"
    assert more.startswith("last level 3, half right at level 2.8")


def test_costs_are_a_table() -> None:
    interview = held(bank(items(60)))
    interview.costs.subject = Usage(142, 1_000, 704, seconds=3.6)
    page = unescape(html_page(run(interview)))
    table = page[page.index(">Cost of this run</h3>") :].partition("</table>")[0]
    row = ["subject", "142", "1,000", "704", "3.6"]
    assert re.findall(r"<(?:th scope=\"row\"><bdi|td[^>]*)>([^<]*)<", table) == row


def test_tokens_that_nothing_counted_are_not_shown_as_0_and_a_column_without_values_is_left_out() -> None:
    interview = held(bank(items(60)))
    interview.costs.subject = Usage(142, 0, 0, seconds=3.6)
    page = unescape(html_page(run(interview)))
    table = page[page.index(">Cost of this run</h3>") :].partition("</table>")[0]
    assert re.findall(r"<th scope=\"col\"[^>]*><bdi>([^<]*)<", table) == ["cost of", "calls", "seconds"]
    assert Table("t", ("a", "b"), []).filled.rows == []


def test_a_page_names_the_subjects_that_did_not_pass_and_then_the_others(make: SimpleNamespace) -> None:
    interviews = [make.interview(name=name, subject={"name": name}) for name in ("ant", "bee", "owl")]
    gates = [make.gate("FAIL", of="ant"), make.gate("INCONCLUSIVE", of="bee"), make.gate(of="owl")]
    record = make.record(interviews, gates)
    page = unescape(html_page(record))
    assert "<title>Not to be promoted: ant, bee</title>" in page
    assert "Not to be promoted: <bdi>ant</bdi>, <bdi>bee</bdi></h1>" in page
    assert "Passed: owl.</p>" in page
    interviews += [make.interview(name=f"n{n}", subject={"name": f"n{n}"}) for n in range(5)]
    assert "<title>Not to be promoted: ant, bee, n0, n1, n2, and 2 more</title>" in unescape(html_page(record))


def test_settings_read_as_text_and_not_as_python() -> None:
    values = {
        "rounds": 12,
        "topics": ["math", "art"],
        "judge": None,
        "settle": False,
        "fields": {"top_p": 1.0},
        "a": {},
    }
    assert words.settings(values) == "rounds 12, topics (math, art), settle no, fields (top_p 1.0)"
    interview = held(bank(items(60)))
    interview.policy = changed(interview.policy, must_pass=["q1"], settings={"settle": True})
    text = unescape(html_page(run(interview)))
    assert "must_pass (q1)" in text
    assert "settings (settle yes)" in text
    assert "['q1']" not in text


def test_a_note_stands_once_and_the_end_has_a_readable_time(make: SimpleNamespace) -> None:
    record = run(held(bank(items(60))), make.gate("FAIL", of="sums", notes=("its note", "its note")))
    record.started, record.seconds = "2031-05-06T07:08:09.123+00:00", 5.961
    page = html_page(record)
    assert page.count("its note</li>") == 1
    assert "started 2031-05-06 07:08 UTC, 6.0 s;" in page


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (["2.00 [1.63, 2.91]", "-", ".5", "−3"], True),
        (["addition", "12"], False),
        (["", "-"], True),
        ([Markup("<svg/>"), ""], False),
    ],
)
def test_columns_of_numbers_alone_stand_at_the_right(cells: list[Any], numeric: bool) -> None:
    rows = [("1 name", cell) for cell in cells]
    assert Table("t", ("name", "value"), rows).numeric == [False, numeric]


def test_a_history_of_one_run_is_not_drawn() -> None:
    record = run(held(bank(items(60))))
    assert '<div class="panels">' not in html_page(record, series=[series([0.5])])
    assert '<div class="panels">' in html_page(record, series=[series([0.5, 0.75])])


def test_the_axis_and_the_error_bars_of_shares_stay_within_0_and_1() -> None:
    (panel,) = history_panels("r1", [series([0.9, 0.95, 0.97])], [])
    labels = re.findall(r'class="end"[^>]*>([^<]+)<', panel.picture)
    assert all(float(label) <= 1 for label in labels[:-1]), labels
    (panel,) = history_panels("r1", [series([0.9, 2.5, 3.5], "ability")], [])
    assert float(re.findall(r'class="end"[^>]*>([^<]+)<', panel.picture)[-2]) > 1, "an ability may"


def test_a_panel_of_nearly_equal_values_is_one_unit_high() -> None:
    (panel,) = history_panels("r1", [series([1.5, 1.5, 1.5], "ability", error=0.0)], [])
    assert re.findall(r'class="end"[^>]*>([^<]+)<', panel.picture)[:-1] == ["1", "1.2", "1.4", "1.6", "1.8", "2"]


def test_intervals_signs_and_units_stay_on_their_line() -> None:
    text = "score .512 [.401, .623] >= .55 required, 95 %, 2.4 s, ± .3, of [a long list, of words here]"
    told = unbroken(text)
    assert told.replace("\u00a0", " ") == text
    assert told.count("\u00a0") == 6
    assert unbroken(Markup("<b> ± 1</b>")) == "<b> ± 1</b>"
