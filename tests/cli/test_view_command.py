"""The page over many runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made import made

from pytest_adaptive_eval.cli.command import main
from pytest_adaptive_eval.cli.verbs import report
from pytest_adaptive_eval.records import history as history_module
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_files import read_run, write_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports.index_page import index_page


def run(number: int, scores: dict[str, float], *, checkpoint: str = "c1", outcome: str = "PASS") -> RunRecord:
    answers = [
        Administration(n, item, "h", score=score, text=f"text <b>{score}")
        for n, (item, score) in enumerate(scores.items(), 1)
    ]
    interview = made(
        EvaluationRecord,
        name="shop",
        nodeid="t.toml::shop[aeval:shop]",
        subject={"name": "model<script>", "checkpoint": checkpoint},
        bank={"name": "shop", "content_hash": "b", "size": 10},
        policy={},
        asked=len(scores),
        scored=len(scores),
        size=10,
        statuses={"ok": len(scores)},
        stop="BUDGET",
        stop_sentence="the budget is spent",
        theta=None,
        standard_error=None,
        accuracy={"estimate": 0.5, "low": 0.4, "high": 0.6},
        accuracy_model=None,
        administrations=answers,
    )
    gate = made(GateRecord, "gate", "t.toml::gate", "shop", {"outcome": outcome, "notes": []}, "t.toml", 1)
    name = f"2031010{number}T000000000Z-0000000{number}"
    started = f"2031-01-0{number}T00:00:00+00:00"
    return RunRecord(name, started, evaluations=[interview], gates=[gate], exit_status=0)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for record in (run(1, {"a": 1, "b": 0}), run(2, {"a": 0, "b": 0}), run(3, {"a": 1, "b": 1}, checkpoint="c2")):
        write_run(tmp_path / ".adaptive-eval", record)
    return tmp_path


def test_a_page_over_the_runs_links_their_pages(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    assert main(["report", "--index", "pages"]) == 0
    assert "index: pages/index.html, 3 runs" in capsys.readouterr().err
    folder = history / "pages"
    page = (folder / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', page)
    assert len(links) == 3
    assert all((folder / link).is_file() for link in links)
    assert page.count("data-run=") == 3
    assert "model&lt;script&gt;" in page
    assert "model<script>" not in page


def test_the_page_of_a_history_opens_it_once_and_reads_only_listed_runs_again(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    assert main(["report", "--index", "pages"]) == 0
    opened: list[Path] = []
    read: list[Path] = []
    begin = History.__init__
    monkeypatch.setattr(History, "__init__", lambda self, source: (opened.append(source), begin(self, source))[1])
    monkeypatch.setattr(history_module, "read_regular", read.append)
    monkeypatch.setattr(report, "_RUNS", 2)
    whole = []
    monkeypatch.setattr(history_module, "read_run", lambda path: (whole.append(path.stem[:8]), read_run(path))[1])
    assert main(["report", "--index", "pages"]) == 0
    assert opened == [Path(".adaptive-eval")]
    assert read == [], "the index has all runs"
    assert whole == ["20310103", "20310102", "20310103"], "the shown run, and the listed ones"


def test_the_data_of_the_comparison_have_scores_and_cannot_end_the_script() -> None:
    page = index_page([run(1, {"</script>": 1.0})], {})
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)[0]["evaluations"]["shop"]["scores"] == {"</script>": 1.0}
