"""The history: any place that holds records, in the order of time, whatever happens to its index."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest
from climbs import climb, run
from made import made, several

from pytest_adaptive_eval.errors import ConfigError, JournalError
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.records.history import LATEST, History
from pytest_adaptive_eval.records.run_files import parse_run, write_record, write_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord, merged


def record(day: int, *, theta: list[float] | None = None, **changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "name": "text",
        "nodeid": "t.toml::text",
        "subject": {"name": f"step-{day}", "checkpoint": f"c{day}"},
        "bank": {"name": "text", "content_hash": "b1", "scale": "s1"},
        "policy": {},
        "asked": 1,
        "scored": 1,
        "size": 10,
        "statuses": {"ok": 1},
        "stop": "BUDGET",
        "stop_sentence": "the budget is spent",
        "theta": [0.1 * day] if theta is None else theta,
        "standard_error": [0.2],
        "accuracy": {"estimate": 0.5, "low": 0.4, "high": 0.6},
        "accuracy_model": None,
        "accuracy_error": 0.03,
        "categories": [
            {"category": "sums", "accuracy": {"estimate": 0.25}, "standard_error": 0.1},
            {"category": "never asked", "accuracy": None, "standard_error": None},
        ],
        "administrations": [Administration(1, "i", "h", text="a secret answer")],
    }
    run = f"203105{day:02d}T000000000Z-{day:08x}"
    started = f"2031-05-{day:02d}T00:00:00+00:00"
    return RunRecord(run, started, exit_status=0, evaluations=[made(EvaluationRecord, **{**values, **changes})])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with five runs, written out of order."""
    for day in (3, 1, 5, 2, 4):
        write_run(tmp_path, record(day))
    return tmp_path


def days(history: History) -> list[str]:
    return [run.started[8:10] for run in history.runs]


def test_runs_come_in_the_order_of_time_and_whole_when_asked(folder: Path) -> None:
    history = History(folder)
    assert days(history) == ["01", "02", "03", "04", "05"]
    assert all(not interview.administrations for run in history.runs for interview in run.interviews)
    whole = history.whole(history.runs[2].run)
    assert whole.to_json() == record(3).to_json()
    assert history.find(LATEST).run == record(5).run
    assert history.find("20310502").run == record(2).run
    with pytest.raises(ConfigError, match="several runs '203105'"):
        history.find("203105")
    with pytest.raises(ConfigError, match="no run 'x'"):
        history.find("x")


def test_every_source_gives_the_same_runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("elsewhere")
    committed = place / "evals" / "2031"
    shutil.copytree(folder / "runs", committed)
    (committed / "notes.json").write_text('{"not": "a record"}')
    (committed / "package.json").write_text("{")
    (place / "evals" / "node_modules").mkdir()
    shutil.copy(folder / "runs" / f"{record(1).run}.json", place / "evals" / "node_modules" / "x.json")
    archive = Path(shutil.make_archive(str(place / "artifact"), "zip", folder))
    single = place / "one.json"
    write_record(single, record(4))
    expected = [run.to_json() for run in History(folder).runs]
    for source in (place / "evals", archive):
        history = History(source)
        assert [run.to_json() for run in history.runs] == expected
        assert history.whole(record(2).run).to_json() == record(2).to_json()
        assert not history.unread
    assert days(History(single)) == ["04"]


def test_a_copy_is_the_same_run_and_a_damaged_record_is_told(folder: Path) -> None:
    path = folder / "runs" / f"{record(1).run}.json"
    shutil.copy(path, folder / "runs" / "copy.json")
    broken = folder / "runs" / f"{record(2).run}.json"
    broken.write_text(broken.read_text()[:-20])
    history = History(folder)
    assert days(history) == ["01", "03", "04", "05"]
    assert len(history.unread) == 1
    assert broken.name in history.unread[0]


def index(folder: Path) -> Path:
    return folder / "index" / "history.sqlite"


def test_the_index_spares_reading_and_follows_what_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    History(folder)
    assert index(folder).is_file()
    assert (folder / "index" / ".gitignore").read_text() == "*\n"
    reads: list[str] = []
    reader = "pytest_adaptive_eval.records.history.read_regular"
    monkeypatch.setattr(reader, lambda path: reads.append(path.name) or read_regular(path))
    assert days(History(folder)) == ["01", "02", "03", "04", "05"]
    assert reads == []
    write_run(folder, record(6))
    (folder / "runs" / f"{record(1).run}.json").unlink()
    assert days(History(folder)) == ["02", "03", "04", "05", "06"]
    assert reads == [f"{record(6).run}.json"]
    with sqlite3.connect(index(folder)) as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (5,)
        assert "a secret answer" not in str(connection.execute("SELECT * FROM run").fetchall())
    connection.close()


@pytest.mark.parametrize("fault", ["garbage", "another version", "another table", "a folder", "locked"])
def test_an_index_that_is_of_no_use_is_built_anew_or_done_without(folder: Path, fault: str) -> None:
    expected = [run.to_json() for run in History(folder).runs]
    holder = None
    if fault == "garbage":
        index(folder).write_bytes(b"\x00garbage" * 1000)
    elif fault == "a folder":
        index(folder).unlink()
        index(folder).mkdir()
    else:
        holder = sqlite3.connect(index(folder))
        if fault == "another version":
            holder.execute("PRAGMA user_version = 99")
            holder.commit()
            holder.close()
        elif fault == "another table":
            holder.execute("DROP TABLE run")
            holder.execute("CREATE TABLE run (x)")
            holder.commit()
            holder.close()
        else:
            holder.execute("BEGIN EXCLUSIVE")
    try:
        assert [run.to_json() for run in History(folder).runs] == expected
    finally:
        if holder is not None:
            holder.close()


def test_what_is_no_history_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no history at"):
        History(tmp_path / "none")
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(JournalError, match="no history at"):
        History(tmp_path / "x.txt")
    empty = History(tmp_path)
    assert empty.runs == []
    with pytest.raises(ConfigError, match="holds no record of a run"):
        empty.find(LATEST)


def test_a_packed_bomb_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_adaptive_eval.records.history._LARGEST", 10_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("runs/big.json", '{"schema_version": 1, "interviews": []' + " " * 20_000 + "}")
        archive.writestr("runs/../../evil.json", json.dumps(record(1).to_json()))
    assert days(History(tmp_path / "a.zip")) == ["01"]
    assert not list(tmp_path.parent.glob("evil.json"))


def test_interviews_are_chosen_by_subject_bank_and_scale(folder: Path) -> None:
    write_run(folder, record(8, bank={"name": "text", "content_hash": "b2", "scale": "s2"}))
    history = History(folder)
    assert len(list(history.evaluations())) == 6
    assert [i.subject.name for _, i in history.evaluations(subject="step-[12]")] == ["step-1", "step-2"]
    assert len(list(history.evaluations(bank="b1"))) == 5
    assert len(list(history.evaluations(bank="text"))) == 6
    assert len(list(history.evaluations(scale="s2"))) == 1
    assert not list(history.evaluations(evaluation="other"))


def test_series_keep_banks_scales_and_categories_apart(folder: Path) -> None:
    write_run(folder, record(6, error="the model was gone"))
    write_run(folder, record(7, stop=""))
    write_run(folder, record(8, bank={"name": "text", "content_hash": "b2", "scale": "s2"}))
    write_run(folder, record(9, theta=[], standard_error=None, bank={"name": "plain", "content_hash": "b3"}))
    found = {(s.bank_hash, s.metric, s.category): s for s in History(folder).series()}
    assert set(found) == {
        ("b1", "ability", ""),
        ("b1", "accuracy", "sums"),
        ("b2", "ability", ""),
        ("b2", "accuracy", "sums"),
        ("b3", "accuracy", ""),
        ("b3", "accuracy", "sums"),
    }
    ability = found["b1", "ability", ""]
    assert [point.value for point in ability.points] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert {point.standard_error for point in ability.points} == {0.2}
    assert [point.checkpoint for point in ability.points] == ["c1", "c2", "c3", "c4", "c5"]
    plain = found["b3", "accuracy", ""]
    assert [(point.value, point.standard_error) for point in plain.points] == [(0.5, 0.03)]
    some = History(folder).series(until="2031-05-02T12", bank="b1")
    assert [[point.started[8:10] for point in s.points] for s in some] == [["01", "02"], ["01", "02"]]
    of_run = History(folder).series_of(record(9, bank={"name": "text", "content_hash": "b2", "scale": "s2"}))
    assert [(s.bank_hash, s.metric) for s in of_run] == [("b2", "ability"), ("b2", "accuracy")]


def test_areas_of_climbs_are_one_series_whatever_their_seeds(tmp_path: Path) -> None:
    rounds = [
        climb([10, 7, 0]),
        climb([10, 6, 0], seed=1),
        climb([0]),
        climb([10, 6, 0], cap=5),
        climb([9, 5, 0], seed=2),
    ]
    for day, one in enumerate(rounds, 1):
        write_run(tmp_path, run(day, one))
    found = History(tmp_path).series()
    assert [(s.evaluation, s.metric, s.category, s.bank, s.bank_hash) for s in found] == [
        ("addition", "auc", "", "addition", "b2"),
        ("addition", "auc", "", "addition", "b0"),
    ]
    assert [point.value for point in found[0].points] == pytest.approx([1.7, 1.6, 0.0, 1.4])
    assert [point.value for point in found[1].points] == pytest.approx([1.6])
    assert all(0.05 < point.standard_error < 0.25 for s in found for point in s.points)


def test_copies_are_no_runs_of_their_own(folder: Path) -> None:
    before = History(folder).series()
    write_run(folder, merged([record(4), record(5)], "20310509T000000000Z-00000009"))
    history = History(folder)
    assert history.series() == before
    assert len(list(history.evaluations())) == 7
    assert history.find(LATEST).run == record(5).run
    assert history.find("20310509").merged == [record(4).run, record(5).run]


def test_studies_stand_beside_interviews(folder: Path) -> None:
    held = record(6)
    held.evaluations = [several("council", "t.toml::council", "peers", "step-6")]
    write_run(folder, held)
    history = History(folder)
    assert [one.name for _, one in history.evaluations()] == ["text"] * 5 + ["council"]
    assert [run.run for run, _ in history.evaluations(subject="step-6")] == [held.run]
    assert not list(history.evaluations(evaluation="council", bank="text"))


def test_a_run_kept_elsewhere_counts_once(folder: Path) -> None:
    history = History(folder)
    history.add(record(2))
    history.add(record(9))
    assert days(history) == ["01", "02", "03", "04", "05", "09"]


def test_a_record_whose_time_has_no_zone_is_named_and_skipped(folder: Path) -> None:
    path = folder / "runs" / f"{record(2).run}.json"
    path.write_text(path.read_text().replace("T00:00:00+00:00", "T00:00:00"))
    history = History(folder)
    assert days(history) == ["01", "03", "04", "05"]
    (note,) = history.unread_notes()
    assert note.startswith(f"1 file of earlier runs skipped: {path}")
    assert "expected a time with a zone" in note


def test_whatever_a_foreign_file_sets_off_is_named_and_the_others_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = folder / "runs" / "foreign.json"
    foreign.write_text('{"run": 1, "gates": []}')
    read = parse_run

    def fail(content: bytes, where: str) -> RunRecord:
        if where == str(foreign):
            raise RecursionError("too deep")
        return read(content, where)

    monkeypatch.setattr(f"{History.__module__}.parse_run", fail)
    history = History(folder)
    assert days(history) == ["01", "02", "03", "04", "05"]
    assert history.unread == [f"{foreign} cannot be read: RecursionError: too deep: restore or remove it"]


def test_a_copied_record_with_the_size_and_the_time_of_another_is_read_again(folder: Path) -> None:
    (first,) = folder.glob("runs/20310501*.json")
    before = first.stat()
    assert next(run.exit_status for run in History(folder).runs) == 0
    first.write_bytes(first.read_bytes().replace(b'"exit_status":0', b'"exit_status":1'))
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert first.stat().st_size == before.st_size
    assert next(run.exit_status for run in History(folder).runs) == 1
