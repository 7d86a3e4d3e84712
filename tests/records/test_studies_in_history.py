"""The verbs about past runs where these held studies, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from climbs import bare, run
from made import made, several

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.run_files import write_run
from pytest_adaptive_eval.records.run_record import GateRecord

SCORE = {"subject": "dog", "estimate": 4.146, "low": 4.024, "high": 4.268, "rank": None}


def held(day: int, folder: Path, *, error: str = "", candidate: str = "dog") -> None:
    """A run of one study with two gates."""
    record = run(day)
    metrics = {} if error else {"score": [{"subject": "cat", "estimate": 3.0}, SCORE], "wins": [SCORE]}
    record.evaluations = [
        several("council", "t.toml::council", "peers", candidate, metrics=metrics, asked=11, size=12, error=error),
    ]
    record.gates = [made(GateRecord, f"g{n}", "t", "council", {"outcome": o}) for n, o in enumerate(("PASS", "FAIL"))]
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
    cells = ["dog", "council (peers)", "-", "score 4.146 [4.024, 4.268]", "11 of 12 rounds", "1 PASS, 1 FAIL"]
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
    assert said("history", "--drift") == [*watched, "no evaluation came to its end and measured something"]
    assert said("history", "--evaluation", "x") == [f"no run in {folder} matches"]
    write_run(folder, run(3, bare(error="void")))
    assert said("history", "--drift") == [*watched, "no evaluation came to its end and measured something"]
    for path in (folder / "runs").iterdir():
        path.unlink()
    nothing = f"no run in {folder} has an evaluation yet"
    assert said("history") == [nothing]
    assert said("history", "--drift") == [*watched, nothing]


def network(day: int, folder: Path, energy: float, subject: str, *, population: str = "p") -> None:
    """A run of a network with one node."""
    rows = {
        "energy": [{"subject": subject, "estimate": energy, "error": 0.02}],
        "auc": [{"subject": "node", "estimate": 4 * energy, "error": 0.08}],
        "last_level": [{"subject": "node", "estimate": 2.0}],
    }
    for metric in ("energy", "auc"):
        row = rows[metric][0]
        half = 1.6448536 * row["error"]  # type: ignore[operator]
        row |= {"low": row["estimate"] - half, "high": row["estimate"] + half, "confidence": 0.95, "method": "x"}  # type: ignore[operator]
    record = run(day)
    members = [{"name": subject, "checkpoint": f"c-{subject}"}]
    study = several("web", "t.toml::web", "network", subject, members, metrics=rows, asked=1, size=1, unit="nodes")
    study.population = population
    record.evaluations = [study]
    write_run(folder, record)


def test_drift_watches_energies_and_areas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(1, 15):
        network(day, tmp_path, 0.6 if day < 13 else 0.3, f"step-{day}")
    assert main(["history", "--drift", "--from", str(tmp_path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "2 series of 14 runs watched" in out
    assert "energy of web fell from .60 (12 runs) to .30" in out
    assert "auc of web in node fell from 2.40" in out


def test_compare_tells_the_changes_of_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network(1, tmp_path, 0.6, "old")
    network(2, tmp_path, 0.5, "new")
    network(3, tmp_path, 0.5, "new", population="q")
    runs = sorted(path.stem for path in (tmp_path / "runs").glob("*.json"))
    assert main(["history", "--compare", runs[0], runs[1], "--from", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "web: old -> new" in out
    half = 1.959964 * 0.02 * 2**0.5
    assert f"-.100 [{-0.1 - half:.3f}, {-0.1 + half:.3f}]".replace("-0.", "-.") in out
    assert "auc of node" in out
    assert main(["history", "--compare", runs[1], runs[2], "--from", str(tmp_path)]) == 4
    assert "its settings changed between the two (hash p, then q)" in capsys.readouterr().out


def test_correlate_takes_networks_and_panels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day, energy in enumerate((0.2, 0.3, 0.5, 0.4, 0.6), 1):
        network(day, tmp_path, energy, f"step-{day}")
    record = run(9)
    scores = [{"subject": f"step-{n}", "estimate": 3 + n / 10} for n in range(1, 6)]
    members = [{"name": f"step-{n}"} for n in range(1, 6)]
    record.evaluations = [several("council", "t", "peers", "step-1", members, metrics={"score": scores})]
    write_run(tmp_path, record)
    table = tmp_path / "scores.csv"
    table.write_text("subject,mmlu\n" + "".join(f"step-{n},{n}\n" for n in range(1, 6)))
    assert main(["history", "--correlate", str(table), "--from", str(tmp_path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "web (energy) mmlu (reference) 5 .90 .80 .083" in lines
    assert any(line.startswith("council (score) mmlu (reference) 5 1.00") for line in lines)
