"""The verbs about past runs where these held studies, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from climbs import bare, run

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.run_record import GateRecord, StudyRecord
from pytest_adaptive_eval.records.runs import write_run

SCORE = {"subject": "dog", "estimate": 4.146, "low": 4.024, "high": 4.268, "rank": None}


def held(day: int, folder: Path, *, error: str = "", candidate: str = "dog") -> None:
    """A run of one study with two gates."""
    record = run(day)
    metrics = {} if error else {"score": [{"subject": "cat", "estimate": 3.0}, SCORE], "wins": [SCORE]}
    record.studies = [
        StudyRecord("council", "t.toml::council", "peers", candidate, [], metrics, 11, 12, error=error),
    ]
    record.gates = [GateRecord(f"g{n}", "t", "council", {"outcome": o}) for n, o in enumerate(("PASS", "FAIL"))]
    write_run(folder, record)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    held(1, tmp_path)
    held(2, tmp_path, error="a judge was gone", candidate="\x1b[31m::error::x")
    return tmp_path


def test_history_tells_of_studies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(folder, run(3, bare()))
    assert main(["history", "--from", str(folder)]) == 0
    out = capsys.readouterr().out
    _, first, void, interview = out.splitlines()
    cells = ["dog", "council (peers)", "-", "score 4.146 [4.024, 4.268]", "11/12 rounds", "1 PASS, 1 FAIL"]
    assert [cell.strip() for cell in first.split("  ") if cell.strip()][2:] == cells
    assert "void" in void
    assert "\x1b" not in out
    assert "::error::" not in out
    assert " text " in interview
    assert main(["history", "--from", str(folder), "--subject", "dog", "--evaluation", "c*", "--last", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_what_there_is_nothing_of_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> list[str]:
        assert main([*arguments, "--from", str(folder)]) == 0
        return capsys.readouterr().out.splitlines()

    watched = ["0 series of 0 runs watched", "no alarm"]
    assert said("drift") == [*watched, "studies are not watched, and the runs held nothing else"]
    assert said("drift", "--bank", "x") == [*watched, f"no run in {folder} is like that"]
    assert said("history", "--bank", "x") == [f"no run in {folder} is like that"]
    write_run(folder, run(3, bare(error="void")))
    assert said("drift") == [*watched, "no interview came to its end and measured something"]
    for path in (folder / "runs").iterdir():
        path.unlink()
    nothing = f"no run in {folder} has held an interview or a study yet"
    assert said("history") == [nothing]
    assert said("drift") == [*watched, nothing]
