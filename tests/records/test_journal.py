"""The journal loses nothing that it acknowledged, and says so when it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import JournalError, UsageError
from pytest_adaptive_eval.records import journal as journal_module
from pytest_adaptive_eval.records.journal import Journal, interview_key

#: Any text, lone surrogates included.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
DATA = st.dictionaries(
    TEXTS, st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=4), max_size=3
)
RECORDS = st.lists(st.tuples(TEXTS, DATA), min_size=1, max_size=6)


def line(key: str, data: dict[str, Any]) -> bytes:
    """A record, written down here a second time so that the format cannot change unseen."""
    payload = json.dumps({"key": key, "data": data}, separators=(",", ":")).encode("ascii")
    return f"{zlib.crc32(payload):08x} ".encode() + payload + b"\n"


def held(journal: Journal, keys: list[str]) -> list[Any]:
    return [journal.get(key) for key in keys]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder shared by the examples of one property."""
    return tmp_path_factory.mktemp("journals")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the platter turned cannot be seen from here, so no test waits for it."""
    monkeypatch.setattr("pytest_adaptive_eval.records.journal.sync", lambda fd: None)


@given(records=RECORDS)
def test_what_was_appended_is_read_back(place: Path, records: list[tuple[str, dict[str, Any]]]) -> None:
    path = place / "round.jsonl"
    expected = dict(records)
    with Journal(path, fresh=True) as journal:
        for key, data in records:
            journal.append(key, data)
        assert held(journal, list(expected)) == list(expected.values())
    assert path.read_bytes() == b"".join(line(*record) for record in records)
    with Journal(path) as journal:
        assert len(journal) == len(expected)
        assert held(journal, list(expected)) == list(expected.values())
        assert journal.repaired == 0


@given(records=RECORDS, data=st.data())
def test_a_cut_anywhere_loses_only_what_comes_after(
    place: Path, records: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    lines = [line(*record) for record in records]
    whole = b"".join(lines)
    at = data.draw(st.integers(0, len(whole)), "cut at")
    path = place / "cut.jsonl"
    path.write_bytes(whole[:at])
    kept = 0
    while kept < len(lines) and len(b"".join(lines[: kept + 1])) <= at:
        kept += 1
    with Journal(path) as journal:
        expected = dict(records[:kept])
        assert len(journal) == len(expected)
        assert held(journal, list(expected)) == list(expected.values())
        assert journal.repaired == at - len(b"".join(lines[:kept]))
        journal.append("next", {"n": 1})
    assert path.read_bytes() == b"".join(lines[:kept]) + line("next", {"n": 1})


@given(records=RECORDS, data=st.data())
def test_a_flipped_byte_is_mended_in_the_last_record_and_refused_before_it(
    place: Path, records: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    lines = [line(*record) for record in records]
    whole = bytearray(b"".join(lines))
    last = len(whole) - len(lines[-1])
    # The ends of records are where a mistake would hide, so they are tried as often as all the rest.
    ends = [len(b"".join(lines[: n + 1])) - 1 for n in range(len(lines))]
    at = data.draw(st.sampled_from(ends) | st.integers(0, len(whole) - 1), "byte")
    whole[at] ^= data.draw(st.integers(1, 255), "bits")
    path = place / "flip.jsonl"
    path.write_bytes(bytes(whole))
    if at >= last:
        with Journal(path) as journal:
            expected = dict(records[:-1])
            assert held(journal, list(expected)) == list(expected.values())
            assert journal.repaired == len(lines[-1])
    else:
        number = sum(end < at for end in ends) + 1
        with pytest.raises(JournalError, match=rf"flip\.jsonl, line {number}: .*--adaptive-eval-fresh"):
            Journal(path)
        assert path.read_bytes() == bytes(whole)


def test_zeros_after_a_power_cut_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(line("a", {"n": 1}) + bytes(4096))
    with Journal(path) as journal:
        assert journal.get("a") == {"n": 1}
        assert journal.repaired == 4096


def test_a_blank_line_before_whole_records_is_damage_and_no_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"\n" + line("a", {"x": 1}))
    with pytest.raises(JournalError, match="line 1: the record is damaged and others follow it"):
        Journal(path)
    assert path.read_bytes() == b"\n" + line("a", {"x": 1})


def test_a_record_of_another_shape_is_damage(tmp_path: Path) -> None:
    payload = b'{"key":1,"data":[]}'
    path = tmp_path / "j.jsonl"
    path.write_bytes(f"{zlib.crc32(payload):08x} ".encode() + payload + b"\n" + line("a", {}))
    with pytest.raises(JournalError, match="line 1"):
        Journal(path)


def test_the_last_of_two_answers_with_one_key_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append("a", {"n": 1})
        journal.append("a", {"n": 2})
        assert journal.get("a") == {"n": 2}
    with Journal(path) as journal:
        assert journal.get("a") == {"n": 2}
        assert journal.get("b") is None


def test_what_is_handed_out_cannot_change_what_is_kept(tmp_path: Path) -> None:
    data = {"list": [1]}
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", data)
        data["list"].append(2)
        first = journal.get("a")
        assert first is not None
        first["list"].append(3)
        assert journal.get("a") == {"list": [1]}


def test_an_answer_that_need_not_be_durable_is_in_the_file_and_waits_for_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    with Journal(tmp_path / "j.jsonl") as journal:
        monkeypatch.setattr(journal_module, "sync", synced.append)
        journal.append("a", {"score": 1}, durable=False)
        assert not synced
        assert b'"score":1' in (tmp_path / "j.jsonl").read_bytes().replace(b" ", b"")
        journal.append("b", {"score": 0})
        assert len(synced) == 1
    assert len(synced) == 2  # at the end


def test_fresh_forgets_and_mends(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"damaged\n" + line("a", {"n": 1}))
    with pytest.raises(JournalError, match="--adaptive-eval-fresh"):
        Journal(path)
    with Journal(path, fresh=True) as journal:
        assert len(journal) == 0
    assert path.read_bytes() == b""


def test_only_the_journal_folder_is_hidden_from_version_control(tmp_path: Path) -> None:
    with Journal(tmp_path / "run" / "journal" / "j.jsonl"):
        pass
    assert (tmp_path / "run" / "journal" / ".gitignore").read_text() == "*\n"
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["journal"]
    (tmp_path / "mine").mkdir()
    with Journal(tmp_path / "mine" / "j.jsonl"):
        pass
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["j.jsonl"]


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), float("inf"), b"bytes"])
def test_data_that_are_no_json_are_refused_and_nothing_is_written(tmp_path: Path, value: object) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append("a", {"n": 1})
        with pytest.raises(JournalError, match="the answer b cannot be kept"):
            journal.append("b", {"value": value})
        journal.append("c", {"n": 3})
        assert journal.get("b") is None
    assert path.read_bytes() == line("a", {"n": 1}) + line("c", {"n": 3})


def test_endless_data_are_refused(tmp_path: Path) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with Journal(tmp_path / "j.jsonl") as journal, pytest.raises(JournalError, match="cannot be kept"):
        journal.append("a", endless)


def test_a_lone_surrogate_comes_back_as_it_was(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", {"text": "\ud800 \x00 \u2028"})
    assert (tmp_path / "j.jsonl").read_bytes().isascii()
    with Journal(tmp_path / "j.jsonl") as journal:
        assert journal.get("a") == {"text": "\ud800 \x00 \u2028"}


def test_a_closed_journal_refuses(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="cannot write"):
        journal.append("a", {})


def test_a_journal_whose_file_got_descriptor_0_is_open(tmp_path: Path) -> None:
    saved = os.dup(0)
    os.close(0)  # as under a service manager that gives no standard input
    try:
        with Journal(tmp_path / "x.jsonl") as journal:
            journal.append("k", {"score": 1})
            assert len(journal) == 1
        with Journal(tmp_path / "x.jsonl") as journal:  # it was given back, with its lock
            assert journal.get("k") == {"score": 1}
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_a_second_writer_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path):
        with pytest.raises(JournalError, match=r"another process .* wait for that run to end.*--adaptive-eval-dir"):
            Journal(path)
        code = f"from pathlib import Path\nfrom {Journal.__module__} import Journal\nJournal(Path({str(path)!r}))"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another process is writing this journal" in other.stderr
    Journal(path).close()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    read, write = os.pipe()
    journal = Journal(path)
    if (child := os.fork()) == 0:
        os.read(read, 1)
        os._exit(0)
    try:
        journal.close()
        Journal(path).close()
    finally:
        os.write(write, b"x")
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


def test_links_and_devices_are_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(JournalError, match="cannot open"):
        Journal(tmp_path / "link.jsonl", fresh=True)
    assert (tmp_path / "target").read_text() == "mine"
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(JournalError, match="not a regular file"):
        Journal(tmp_path / "pipe.jsonl")


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "j.jsonl", tmp_path / "file" / "deeper" / "j.jsonl"):
        with pytest.raises(JournalError, match="cannot open the journal"):
            Journal(path)


def test_the_probe_leaves_nothing_but_folders(tmp_path: Path) -> None:
    journal_module.probe(tmp_path / "a" / "b")
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == [
        "a",
        "a/b",
        "a/b/journal",
        "a/b/journal/.gitignore",
        "a/b/runs",
    ]
    journal_module.probe(tmp_path / "a" / "b")


def test_the_probe_says_what_cannot_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot make the folder: .*--adaptive-eval-dir"):
        journal_module.probe(tmp_path / "file")

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    for name, step in (("lock", "lock a file"), ("write_all", "write to it"), ("sync", "sync to the disk")):
        with monkeypatch.context() as patch:
            patch.setattr(journal_module, name, fails)
            with pytest.raises(JournalError, match=f"cannot {step}.*: Input/output error"):
                journal_module.probe(tmp_path / "dir")
    assert sorted(p.name for p in (tmp_path / "dir").iterdir()) == ["journal", "runs"]


INTERVIEW = {
    "name": "n",
    "bank": "b",
    "scale": "s",
    "policy": {"x": 1, "y": None},
    "seed": 0,
    "subject": ["name", "kind", "checkpoint", "decoding"],
}


def test_keys_are_stable() -> None:
    """A journal outlives the release that wrote it: a change here forgets every answer."""
    assert interview_key(**INTERVIEW) == "e804d537ef06f7ee2b182427"  # type: ignore[arg-type]
    assert interview_key(**{**INTERVIEW, "policy": {"y": None, "x": 1}}) == interview_key(**INTERVIEW)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", [*INTERVIEW, "schema"])
def test_every_part_of_an_interview_counts(part: str) -> None:
    other = {"seed": 1, "policy": {"x": 2}, "schema": 99}.get(part, "other")
    assert interview_key(**{**INTERVIEW, part: other}) != interview_key(**INTERVIEW)  # type: ignore[arg-type]


def test_an_append_costs_little_besides_the_disk(tmp_path: Path) -> None:
    """Well under the 100 us that the whole plugin's time budget leaves it; loose, for busy machines."""
    data = {"status": "ok", "score": 1.0, "text": "The answer is B, since " + "x" * 400, "seconds": 0.25}
    with Journal(tmp_path / "j.jsonl") as journal:
        best = float("inf")
        for turn in range(5):
            start = time.process_time()
            for n in range(200):
                journal.append(f"{turn}-{n}", data)
            best = min(best, (time.process_time() - start) / 200)
    assert best < 100e-6
