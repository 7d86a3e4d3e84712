"""Records of runs: whole or not there, never overwritten, errors that name the file."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.records.run_files import new_run_id, read_run, write_record, write_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, GateRecord, RunRecord

NOW = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)


def record(run: str = "run-1") -> RunRecord:
    asked = Administration(position=1, item="a", item_hash="h", status="timeout", detail="60 s", theta_after=[0.5])
    interview = made(
        EvaluationRecord,
        name="m",
        nodeid="t.py::m",
        subject={"name": "s"},
        bank={"name": "b"},
        policy={"seed": 1},
        asked=1,
        scored=1,
        size=9,
        statuses={"ok": 1},
        stop="BUDGET",
        stop_sentence="the budget is spent",
        theta=None,
        standard_error=None,
        accuracy=None,
        accuracy_model=None,
        administrations=[asked],
    )
    gate = made(GateRecord, "g", "t.py::g", "m", {"outcome": "ERROR"})
    return RunRecord(run, NOW.isoformat(), evaluations=[interview], gates=[gate])


def replace_account(run: RunRecord, account: dict[str, Any]) -> RunRecord:
    """The record with another account of its evaluation."""
    run.evaluations[0].account = account
    return run


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", record())
    assert path == tmp_path / "run" / "runs" / "run-1.json"
    assert read_run(path) == record()
    assert [p.name for p in path.parent.iterdir()] == ["run-1.json"]


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    path = write_run(tmp_path, record())
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"run-1\.json exists, and runs are never overwritten"):
        write_run(tmp_path, record())
    assert path.read_bytes() == before


def test_a_record_may_be_replaced_at_a_path_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "record.json"
    write_record(path, record("one"))
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_record(link, record("two"))
    assert link.is_symlink()
    assert read_run(path).run == "two"
    assert [p.name for p in path.parent.iterdir()] == ["record.json"]


def test_a_record_has_the_rights_of_an_ordinary_file(tmp_path: Path) -> None:
    write_record(tmp_path / "record.json", record())
    (tmp_path / "ordinary").write_text("")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_failed_write_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    write_record(path, record("old"))

    def fails(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(JournalError, match=r"record\.json: cannot write the run record: No space left on device"):
        write_record(path, record("new"))
    assert read_run(path).run == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


def test_devices_and_folders_are_not_replaced(tmp_path: Path) -> None:
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(JournalError, match="not a regular file"):
            write_record(path, record())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b'{"run": NaN}', "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "expected a JSON object with the key 'run', found list"),
        (b'{"b": 1, "a": 2}', "found an object with the keys a, b"),
        (b'{"run": "x", "schema_version": 99}', "schema_version 99"),
        (b'{"run": "x", "schema_version": 3, "started": "", "seconds": 1' + b"0" * 400 + b"}", "damaged: .*seconds"),
        (b'{"run": "x", "schema_version": 3}', "damaged: .*started"),
        (b'{"run": "x", "started": "", "schema_version": 3, "gates": [1]}', "damaged"),
        (b'{"run": "x", "started": "", "schema_version": 3, "interviews": [{"name": "a"}]}', "damaged"),
        (b'{"run": "x", "started": "", "schema_version": 3, "interviews": 3}', "damaged"),
    ],
)
def test_a_file_that_is_no_record_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=rf"some\.json.*{message}"):
        read_run(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((), {"started": 5}, "started: Expected `str`, got `int`"),
        ((), {"started": "yesterday"}, "Invalid isoformat string: 'yesterday'"),
        ((), {"exit_status": True}, r"exit_status: Expected `int \| null`, got `bool`"),
        (("interviews", 0), {"subject": None}, r"interviews\[0\]\.subject: Expected `object`, got `null`"),
        (("interviews", 0), {"theta": "x"}, r"interviews\[0\]\.theta: Expected `array \| null`, got `str`"),
        (("interviews", 0), {"categories": [1]}, r"interviews\[0\]\.categories\[0\]: Expected `object`, got `int`"),
        (
            ("interviews", 0),
            {"statuses": {"ok": "1"}},
            r"interviews\[0\]\.statuses\[\.\.\.\]: Expected `int`, got `str`",
        ),
        (
            ("interviews", 0, "administrations", 0),
            {"score": []},
            r"\.administrations\[0\]\.score: Expected `float \| null`, got `array`",
        ),
        (
            ("interviews", 0),
            {"accuracy": {"estimate": "x"}},
            r"accuracy.estimate: Expected `float`, got `str`",
        ),
        (
            ("interviews", 0, "administrations", 0),
            {"score": -1.5},
            r"administrations\[0\]\.score of m is -1\.5, expected a number in \[0, 1\] or null",
        ),
        (("interviews", 0, "bank"), {"scale": {"a": 1}}, r"bank\.scale: Expected `str`, got `object`"),
        (
            ("interviews", 0),
            {"categories": [{"accuracy": 5}]},
            r"categories\[0\]\.accuracy: Expected `object \| null`, got `int`",
        ),
        (
            ("interviews", 0),
            {"levels": {"cap": 1, "accuracy": [1.0], "auc": {"low": []}}},
            r"levels\.auc\.low: Expected `float`",
        ),
        (("interviews", 0), {"levels": {"cap": 3}}, r"levels: Object missing required field `accuracy`"),
        (("interviews", 0), {"levels": {"accuracy": [None]}}, r"levels: Object missing required field `cap`"),
        (("gates", 0, "verdict"), {"outcome": ["PASS"]}, r"verdict\.outcome: Expected `str`, got `array`"),
        (("gates", 0), {"line": 1.5}, r"gates\[0\]\.line: Expected `int`, got `float`"),
    ],
)
def test_a_value_of_another_type_is_named(tmp_path: Path, place: Any, value: Any, message: str) -> None:
    data = record().to_json()
    part = data
    for key in place:
        part = part[key]
    part.update(value)
    (tmp_path / "some.json").write_text(json.dumps(data))
    with pytest.raises(JournalError, match=rf"some\.json: the run record is damaged: .*{message}"):
        read_run(tmp_path / "some.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"none\.json: cannot be read: No such file"):
        read_run(tmp_path / "none.json")


def test_what_cannot_be_json_is_made_plain(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"odd": object, "nan": float("nan"), "\ud800": "\ud800", "é": np.arange(2)}
    path = write_run(tmp_path, replace_account(record(), odd))
    written = json.loads(path.read_bytes())["interviews"][0]["account"]
    assert written == {"odd": str(object), "nan": None, "?": "?", "é": [0, 1]}


def test_a_record_that_cannot_be_json_is_refused(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (endless, 10**5000):
        with pytest.raises(JournalError, match=r"run-1\.json: the run record is not JSON"):
            write_run(tmp_path / "run", replace_account(record(), {"value": value}))
    assert list(tmp_path.iterdir()) == []


@given(
    st.lists(st.datetimes(datetime(2000, 1, 1), timezones=st.just(UTC)), min_size=2, max_size=2),
    st.binary(min_size=4, max_size=16),
)
def test_run_ids_sort_by_time(times: list[datetime], entropy: bytes) -> None:
    early, late = sorted(times)
    if late - early >= timedelta(milliseconds=1):
        assert new_run_id(early, entropy) < new_run_id(late, bytes(4))


def test_run_ids() -> None:
    assert new_run_id(NOW, b"\xab\xcd\xef\x01\x02") == "20310506T070809123Z-abcdef01"
    assert new_run_id(NOW.astimezone(timezone(timedelta(hours=2))), bytes(4)) == "20310506T070809123Z-00000000"
