"""Records, banks and journals of earlier versions are read, told and resumed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import golden_records
import pytest
from golden_project import check

from pytest_adaptive_eval import RunRecord

posix = pytest.mark.skipif(sys.platform == "win32", reason="journals were made with POSIX signals and addresses")


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
def test_a_run_goes_on_from_a_stored_journal_and_asks_only_the_rest(tmp_path: Path) -> None:
    now = golden_records.resumed(tmp_path / "now")
    check("journals", now)
    whole = golden_records.resumed(tmp_path / "whole", journals=False)["evaluations"]
    found = now["evaluations"]
    assert sum(found["journals"].values()) >= sum(found["resumed"]) > 30
    assert len(found["asked"]) == len(whole["asked"]) - sum(found["resumed"])
    assert whole["asked"][-len(found["asked"]) :] == found["asked"]
    assert found["verdicts"] == whole["verdicts"]
    assert found["left"] == []


@pytest.mark.slow
@posix
def test_studies_go_on_from_stored_journals_and_ask_only_the_rest(tmp_path: Path) -> None:
    pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
    now = golden_records.resumed_studies(tmp_path / "now")
    check("study-journals", now)
    for name, found in now.items():
        assert sum(found["journals"].values()) >= 2, name
        assert found["left"] == [], name
