"""Records and banks of earlier versions are read and shown, and killed runs are resumed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import golden_records
import pytest
from golden_project import check

from pytest_adaptive_eval import RunRecord

posix = pytest.mark.skipif(sys.platform == "win32", reason="runs are killed by POSIX signals")


@pytest.mark.parametrize("name", list(golden_records.RUNS))
def test_a_record_keeps_fields_of_a_later_version(name: str) -> None:
    data = json.loads((golden_records.RECORDS / f"{name}.json").read_text())
    data["of_a_later_version"] = {"kept": True}
    assert json.loads(json.dumps(RunRecord.from_json(data).to_json()))["of_a_later_version"] == {"kept": True}


def test_banks_and_items_keep_their_hashes() -> None:
    check("banks", golden_records.bank_hashes())


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
