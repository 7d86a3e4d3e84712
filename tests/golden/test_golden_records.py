"""Records and banks of earlier versions are read and shown, and killed runs are resumed."""

from __future__ import annotations

import json
import sys
from html import unescape
from pathlib import Path
from typing import Any

import golden_records
import pytest
from golden_project import check

from pytest_adaptive_eval import RunRecord
from pytest_adaptive_eval.cli.command import main

posix = pytest.mark.skipif(sys.platform == "win32", reason="runs are killed by POSIX signals")


@pytest.mark.parametrize("name", list(golden_records.RUNS))
def test_a_record_keeps_fields_of_a_later_version(name: str) -> None:
    data = json.loads((golden_records.RECORDS / f"{name}.json").read_text())
    data["of_a_later_version"] = {"kept": True}
    assert json.loads(json.dumps(RunRecord.from_json(data).to_json()))["of_a_later_version"] == {"kept": True}


def test_banks_and_items_keep_their_hashes() -> None:
    check("banks", golden_records.bank_hashes())


def test_gates_of_kinds_that_are_gone_are_shown_as_they_were_judged(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("junit_xml", reason="JUnit reports need junit-xml (extra junit)")
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    path = golden_records.STORED / "cut-gates.json"
    outputs = {name: tmp_path / f"out.{name}" for name in ("html", "markdown", "junit")}
    flags = [part for name, output in outputs.items() for part in (f"--{name}", str(output))]
    assert main(["report", str(path), *flags]) == 0
    assert main(["merge", str(path), "-o", str(tmp_path / "merged.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    texts = [shown, *(" ".join(unescape(output.read_text()).split()) for output in outputs.values())]
    for text in texts:
        assert "2 of 3 gates passed, 1 failed, 2 required" in text
    assert "ability .372 [-.484, 1.227] >= -1.00 required" in texts[-1]
    merged = RunRecord.from_json(json.loads((tmp_path / "merged.json").read_text()))
    assert [gate.verdict.sentence for gate in merged.gates] == [
        gate["verdict"]["sentence"] for gate in json.loads(path.read_text())["gates"]
    ]


@pytest.mark.slow
def test_the_command_tells_the_same_of_stored_records(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    check("records", golden_records.told(tmp_path))


@pytest.mark.slow
@posix
def test_a_run_goes_on_from_a_killed_one_and_asks_only_the_rest(tmp_path: Path) -> None:
    resumed = golden_records.evaluations(tmp_path / "killed", killed=True)
    whole = golden_records.evaluations(tmp_path / "whole", killed=False)
    assert resumed["journals"] == 4
    assert resumed["resumed"] > 30
    assert len(resumed["asked"]) == len(whole["asked"]) - resumed["resumed"]
    assert whole["asked"][-len(resumed["asked"]) :] == resumed["asked"]
    for same in ("code", "verdicts", "metrics", "left"):
        assert resumed[same] == whole[same]
    assert resumed["left"] == 0


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", list(golden_records.KILLED_REPLY))
def test_a_study_goes_on_from_a_killed_one_and_asks_only_the_rest(tmp_path: Path, name: str) -> None:
    pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
    resumed = golden_records.study(tmp_path / "killed", name, killed=True)
    whole = golden_records.study(tmp_path / "whole", name, killed=False)
    assert resumed["calls"] < whole["calls"]
    for same in ("code", "verdicts", "metrics", "left"):
        assert resumed[same] == whole[same]
    assert resumed["left"] == 0
