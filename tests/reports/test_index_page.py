"""The page of a history: lines, verdicts, alarms; and in a browser the filter and the comparison."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from made import changed

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.drift import Alarm, Series, SeriesPoint
from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports.index_page import index_page
from pytest_adaptive_eval.reports.trends import MOST, Trend, trend_caption, trend_plot, trends
from tests.reports.browser import framed, scripted

#: Text that the page must show as it is, and run nowhere.
HOSTILE = "</script><script>document.title='owned'</script>"
SCRIPT = """
addEventListener("load", () => {
  const at = (id) => document.getElementById(id), told = [];
  const boxes = [...document.querySelectorAll("#runs input")];
  const shown = () => [...document.querySelectorAll("#runs tbody tr")].filter((row) => !row.hidden).length;
  const filter = (text) => {
    at("filter").value = text;
    at("filter").dispatchEvent(new Event("input"));
    told.push([text, shown(), at("shown").textContent]);
  };
  const press = (n) => boxes[n].click();
  const state = () => [boxes.map((box) => (box.checked ? "x" : box.disabled ? "-" : "o")).join(""),
    at("comparison").hidden, [...at("compared").querySelectorAll("tr")].map((row) =>
      [...row.children].map((cell) => cell.textContent))];
  filter("shop"); filter("CHAT  fail"); filter("nothing"); filter("");
  at("model").value = "0"; filter("");
  told.push([...document.querySelectorAll(".trends circle")].map((dot) => dot.classList.contains("dim")));
  at("model").value = ""; filter("");
  told.push(state());
  press(3); told.push(state());
  filter("chat"); press(0); told.push(state());
  press(1); told.push(state().slice(0, 2));
  document.body.append(Object.assign(document.createElement("pre"), { id: "told", textContent: JSON.stringify(told) }));
  document.body.append(Object.assign(document.createElement("pre"), { id: "title", textContent: document.title }));
});
"""


def record(make: SimpleNamespace, day: int, scores: dict[str, float], outcome: str) -> RunRecord:
    """A run of two evaluations, one of which has scores."""
    answers = [Administration(n, item, "h", score=score) for n, (item, score) in enumerate(scores.items(), 1)]
    shop = make.interview(name="shop", nodeid="t::shop", administrations=answers)
    chat = make.interview(name="chat", nodeid="t::chat", accuracy=make.interval(0.4 + day / 10, 0.3, 0.9))
    gates = [make.gate("PASS", name="shop-gate", of="shop"), make.gate(outcome, name="chat-gate", of="chat")]
    run: RunRecord = make.record([shop, chat], gates)
    run.run, run.started = f"r{day}", f"2031-01-0{day}T07:08:09+00:00"
    for evaluation in run.evaluations:
        evaluation.subject = changed(evaluation.subject, name=f"step-{day}")
    return run


def several(make: SimpleNamespace, count: int) -> list[RunRecord]:
    return [record(make, day, {"a": 1.0}, "FAIL" if day % 2 else "PASS") for day in range(1, count + 1)]


def test_an_evaluation_is_a_line_of_its_runs_with_what_gates_require(make: SimpleNamespace) -> None:
    first, second = trends(several(make, 3))
    assert [first.evaluation, second.evaluation] == ["shop", "chat"]
    assert [(point.subject, point.value, point.low, point.high) for point in second.points] == [
        ("step-1", 0.5, 0.3, 0.9),
        ("step-2", 0.6000000000000001, 0.3, 0.9),
        ("step-3", 0.7, 0.3, 0.9),
    ]
    assert [point.outcomes for point in second.points] == [(Outcome.FAIL,), (Outcome.PASS,), (Outcome.FAIL,)]
    assert {point.required for point in second.points} == {(0.55,)}
    assert second.points[0].sentence == "step-1, 2031-01-01: .500 [.300, .900], FAIL"


def test_names_of_settings_keep_the_line_of_an_evaluation_whose_models_change(make: SimpleNamespace) -> None:
    runs = []
    for day in (1, 2):
        run = record(make, day, {}, "PASS")
        run.evaluations[0] = changed(run.evaluations[0], name=f"shop-step-{day}", series="shop-new")
        runs.append(run)
    (trend,) = [trend for trend in trends(runs) if trend.evaluation == "shop-new"]
    assert len(trend.points) == 2
    assert trend.names == {"shop-step-1", "shop-step-2"}, "by which alarms are found"


def test_a_merged_or_void_run_has_no_point(make: SimpleNamespace) -> None:
    merged, void = several(make, 2)
    merged.merged = ["r1"]
    void.evaluations[0] = changed(void.evaluations[0], error="the server is gone")
    assert [trend.evaluation for trend in trends([merged, void])] == ["chat"]


def test_many_runs_share_points_and_alarms_stay(make: SimpleNamespace) -> None:
    (_, trend) = trends(several(make, 1))
    (point,) = trend.points
    points = [point._replace(run=f"r{n}", value=0.4 + 0.2 * (n % 2)) for n in range(5 * MOST)]
    long = Trend("chat", "accuracy", points)
    assert trend_caption(long) == f"accuracy, {5 * MOST} runs, each point the mean of 5 in a row"
    picture = trend_plot(long, {"r7", "r9"}, {}, "h")
    assert picture.count('class="alarm"') == 1, "two runs of one point"
    assert picture.count('class="point"') == 0
    assert picture.count("L") < 4 * MOST
    assert trend_plot(Trend("chat", "accuracy", points[:20]), {"r7", "r9"}, {}, "h").count('class="alarm"') == 2


def test_a_line_ends_where_another_bank_begins(make: SimpleNamespace) -> None:
    (_, trend) = trends(several(make, 4))
    points = [point._replace(population="ab"[n // 2]) for n, point in enumerate(trend.points)]
    assert trend_plot(trend._replace(points=points), set(), {}, "h").count('class="band"') == 2


def test_the_head_of_the_page_names_alarms_that_last_and_the_next_step(make: SimpleNamespace) -> None:
    runs = several(make, 3)
    points = tuple(SeriesPoint(run.run, run.started, "", "", 0.5, 0.1) for run in runs)
    alarm = Alarm(Series("chat", "b", "h", "", "accuracy", "", points), 2, 1, None, 0.7, 0.5, "chat fell")
    page = index_page(runs, {"r3": "r3.html"}, alarms=[alarm], lasting=[alarm])
    assert "1 alarm of a drop: chat" in page
    assert "adaptive-eval history --drift" in page
    assert page.count('class="alarm"') == 2, "in the legend and at its run"
    assert 'href="r3.html"' in page
    quiet = index_page(runs, {}, alarms=[alarm])
    assert "No alarm lasts" in quiet
    assert "1 alarm ended" in quiet


def test_a_history_without_runs_says_so() -> None:
    assert "The history has no run yet." in index_page([], {})


@pytest.fixture
def page(make: SimpleNamespace) -> str:
    first = record(make, 1, {"a": 1.0, HOSTILE: 0.0, "same": 1.0}, "FAIL")
    second = record(make, 2, {"a": 0.0, HOSTILE: 1.0, "same": 1.0}, "PASS")
    return index_page([first, second], {})


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_filter_and_comparison(page: str, in_chromium: Callable[[str], str]) -> None:
    seen = in_chromium(scripted(page, SCRIPT))
    text = seen.partition('<pre id="told">')[2].partition("</pre>")[0]
    for name, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(name, character)
    assert json.loads(text) == [
        ["shop", 2, "2 of 4 rows"],
        ["CHAT  fail", 1, "1 of 4 rows"],
        ["nothing", 0, "0 of 4 rows"],
        ["", 4, ""],
        ["", 2, "2 of 4 rows"],
        [False, True, False, True],
        ["", 4, ""],
        ["oooo", True, []],
        ["ooxx", True, []],
        ["chat", 2, "2 of 4 rows"],
        [
            "xxxx",
            False,
            [
                ["", "2031-01-01 07:08:09", "2031-01-02 07:08:09"],
                ["shop", ".612 [.551, .671]", ".612 [.551, .671]"],
                ["item a", "1", "0"],
                [f"item {HOSTILE}", "0", "1"],
                ["chat", ".500 [.300, .900]", ".600 [.300, .900]"],
                ["gate shop-gate", "PASS", "PASS"],
                ["gate chat-gate", "FAIL", "PASS"],
            ],
        ],
        ["ooxx", True],
    ]
    assert '<pre id="title">Runs</pre>' in seen


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_phone_shows_a_run_in_a_block_without_scrolling(page: str, tmp_path: Path) -> None:
    told = """addEventListener("load", () => parent.postMessage(
      [...document.querySelectorAll("section")].map((s) => s.scrollWidth - s.clientWidth).join(), "*"));"""
    assert framed(page, told, tmp_path, 390) == "0,0,0"
