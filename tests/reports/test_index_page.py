"""The script of the page over many runs, in a browser: filter and comparison."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports.index_page import index_page
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
    return run


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
    assert framed(page, told, tmp_path, 390) == "0,0"
