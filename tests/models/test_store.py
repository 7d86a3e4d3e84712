"""The store of completions loses nothing that it took, and says so when it cannot."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.errors import ConfigError, JournalError, UsageError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.items.likelihood import BitsPerByte, ChoiceLikelihood
from pytest_adaptive_eval.models import store as store_module
from pytest_adaptive_eval.models.base import Completion, Usage, sent_request
from pytest_adaptive_eval.models.store import CompletionStore, remove_store, scored

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "a.sqlite"


def edited(path: Path, *statements: str) -> None:
    """Change a closed store by SQL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


texts = st.text(st.characters(exclude_categories=()), max_size=20)
completions = st.builds(
    Completion,
    texts,
    st.sampled_from([Status.OK, Status.TRUNCATED, Status.REFUSED]),
    score=st.none() | st.floats(allow_nan=False),
    detail=texts,
    cost=st.builds(Usage, calls=st.integers(0, 9), seconds=st.floats(0, 9)),
    reused=st.booleans(),
    reasoning=texts,
)


@given(st.lists(st.tuples(st.sampled_from("abc"), completions), max_size=6))
def test_the_latest_completion_of_each_key_is_found_again_as_it_was(stored: list[tuple[str, Completion]]) -> None:
    expected = dict(stored)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.sqlite")
        with CompletionStore(file) as store:
            for key, completion in stored:
                store.store(key, completion)
            assert len(store) == len(expected)
            assert not any(map(store.is_earlier, expected))
        with CompletionStore(file) as store:
            found = {key: store.lookup(key) for key in "abc"}
            assert all(map(store.is_earlier, expected))
    for key, completion in found.items():
        assert completion == expected.get(key)
        if completion is not None:
            other = expected[key]
            assert (completion.cost, completion.reused, completion.reasoning) == (
                (other.cost, other.reused, other.reasoning)
            )


@pytest.mark.parametrize("status", [Status.ERROR, Status.TIMEOUT, Status.NOT_RUN])
def test_a_fault_of_the_infrastructure_is_not_stored(status: Status) -> None:
    store = CompletionStore()
    store.store("key", Completion("", status))
    assert store.lookup("key") is None


def test_a_completion_of_an_earlier_run_that_is_replaced_is_one_of_this_run(path: Path) -> None:
    with CompletionStore(path) as store:
        store.store("key", Completion("one"))
    with CompletionStore(path) as store:
        assert store.is_earlier("key")
        store.store("key", Completion("two"))
        assert not store.is_earlier("key")


@pytest.mark.parametrize(
    ("item", "logs"),
    [
        (Item("t", "abcd", grader="bits_per_byte", likelihood=BitsPerByte()), [-2.0]),
        (
            Item("c", "Sky?", "blue", "choice", choices=("red", "blue"), likelihood=ChoiceLikelihood("pmi")),
            [-2.0, -1.0, -1.0, -1.0],
        ),
    ],
)
def test_likelihoods_are_stored_without_their_score_which_is_computed_again(item: Item, logs: list[float]) -> None:
    result = item.likelihood_result(logs)
    whole = Completion(result.text, score=result.score, likelihood=result.facts)
    store = CompletionStore()
    store.store("key", whole)
    stored = store.lookup("key")
    assert stored is not None
    assert stored.score is None
    assert scored(item, stored) == whole
    assert scored(item, replace(stored, likelihood={"log_likelihoods": ["x"]})) is None


def test_facts_are_those_of_the_run_that_began(path: Path) -> None:
    for fresh, value, kept in ((False, "1", "1"), (False, "2", "1"), (True, "3", "3")):
        with CompletionStore(path, fresh=fresh) as store:
            store.keep_fact("seed", value)
            assert (store.fact("seed"), store.fact("other")) == (kept, "")


def test_fresh_forgets_all_and_replaces_a_damaged_file(path: Path) -> None:
    with CompletionStore(path) as store:
        store.store("key", Completion("one"))
    with CompletionStore(path, fresh=True) as store:
        assert (len(store), store.lookup("key")) == (0, None)
    path.write_bytes(b"no database " * 1000)
    with pytest.raises(JournalError, match=r"a\.sqlite: .*file is not a database.*--adaptive-eval-fresh"):
        CompletionStore(path)
    with CompletionStore(path, fresh=True) as store:
        store.store("key", Completion("two"))
    with CompletionStore(path) as store:
        assert len(store) == 1


def test_the_folder_of_an_interviews_file_is_hidden_from_version_control(tmp_path: Path) -> None:
    with (
        CompletionStore(tmp_path / "run" / "journal" / "a.sqlite"),
        CompletionStore(tmp_path / "reuse" / "b.sqlite", exclusive=False),
    ):
        pass
    assert (tmp_path / "run" / "journal" / ".gitignore").read_text() == "*\n"
    assert [file.name for file in (tmp_path / "reuse").iterdir()] == ["b.sqlite"]


# Another process, and files that are none


def test_one_process_at_a_time_has_the_file_of_an_interview(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "OPEN_SECONDS", 0.01)
    code = f"from pathlib import Path\nfrom {store_module.__name__} import *\nCompletionStore(Path({str(path)!r}))"
    with CompletionStore(path) as store:
        store.store("key", Completion("one"))
        for fresh in (False, True):
            with pytest.raises(JournalError, match=r"another process .* wait for that run to end.*--adaptive-eval-dir"):
                CompletionStore(path, fresh=fresh)
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another process is writing this journal" in other.stderr
        store.store("next", Completion("two"))
    with CompletionStore(path) as store:
        assert len(store) == 2


@posix
def test_a_forked_child_that_ends_takes_no_lock_along(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "OPEN_SECONDS", 0.01)
    with CompletionStore(path) as store:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(JournalError, match="another process"):
            CompletionStore(path)
        store.store("key", Completion("one"))
    with CompletionStore(path) as store:
        assert len(store) == 1


@posix
def test_links_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real.sqlite").touch()
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "real.sqlite")
    (tmp_path / "loose.sqlite").symlink_to(tmp_path / "none.sqlite")
    os.mkfifo(tmp_path / "pipe.sqlite")
    (tmp_path / "folder.sqlite").mkdir()
    for name in ("link", "loose", "pipe", "folder"):
        with pytest.raises(JournalError, match=rf"{name}\.sqlite: not a regular file: remove it"):
            CompletionStore(tmp_path / f"{name}.sqlite", fresh=True)
    assert (tmp_path / "real.sqlite").read_bytes() == b""


def test_requests_are_found_by_their_keys(tmp_path: Path) -> None:
    with CompletionStore(tmp_path / "shared.sqlite", exclusive=False) as store:
        store.keep_requests({"a": "one", "b": "two"})
        store.keep_requests({"b": "two, later"})
        assert store.find_requests(["a", "b", "c"]) == {"a": "one", "b": "two, later"}
    store.keep_requests({"c": "three"})  # it is closed, which loses the request and nothing else


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("short", "short"),
        ('{"url":"data:image/png;base64,iVBORw0KGgo=="}', '{"url":"data:image/png;base64,[...]"}'),
        ("x" * 20_000, "x" * 20_000),
        ("x" * 20_007, "x" * 20_000 + "\n[7 more characters]"),
        (";base64," * 5_000, None),
    ],
)
def test_a_request_is_kept_without_files_up_to_a_length(text: str, kept: str | None) -> None:
    assert kept is None or sent_request(text) == kept
    assert len(sent_request(text)) < 20_050


def test_other_databases_are_refused_and_stay(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "notes.txt", tmp_path / "other.sqlite", tmp_path / "newer.sqlite"
    text.write_text("These are notes, and no database, of more than a hundred characters. " * 20)
    edited(other, "CREATE TABLE cats (name TEXT)")
    CompletionStore(newer, exclusive=False).close()
    edited(newer, "PRAGMA user_version = 7")
    for path, sentence in (
        (text, "not a database"),
        (other, "expected a store of schema 4"),
        (newer, "expected a store of schema 4"),
        (tmp_path, "cannot be used"),
        (text / "below", "cannot be used"),
    ):
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(ConfigError, match=rf"{sentence}.*--adaptive-eval-reuse=FILE"):
            CompletionStore(path, exclusive=False)
        assert not before or path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "reply = '[1]', checksum = 4091948036",
        "reply = 'no JSON'",
        "reply = replace(reply, 'one', 'two')",
        "reply = x'00ff'",
        "reply = NULL",
        "checksum = 'x'",
    ],
)
def test_a_changed_row_is_refused_in_one_file_and_missing_in_a_shared_one(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.sqlite"
    with CompletionStore(path) as store:
        store.store("key", Completion("one"), "q7")
    edited(path, f"UPDATE completions SET {change}")
    with CompletionStore(path) as store, pytest.raises(JournalError, match="the answer to 'q7' cannot be read"):
        store.lookup("key")
    with CompletionStore(path, exclusive=False) as store:
        assert store.lookup("key") is None
        store.store("key", Completion("two"))
        assert store.lookup("key") == Completion("two")


def look_up_all(path: Path, exclusive: bool) -> None:
    with CompletionStore(path, exclusive=exclusive) as store:
        for number in range(300):
            store.lookup(f"{number:05}")


@pytest.mark.parametrize("exclusive", [True, False])
def test_damage_that_shows_late_is_one_sentence(tmp_path: Path, exclusive: bool) -> None:
    path = tmp_path / "a.sqlite"
    with CompletionStore(path, exclusive=exclusive) as store:
        for number in range(300):
            store.store(f"{number:05}", Completion("x" * 50))
    content = bytearray(path.read_bytes())
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    path.write_bytes(content)
    with pytest.raises(UsageError, match="malformed") as caught:
        look_up_all(path, exclusive)
    assert type(caught.value) is (JournalError if exclusive else ConfigError)


# Faults of the disk


class Failing(sqlite3.Connection):
    """A connection that fails at one kind of statement."""

    fails = ""
    error: sqlite3.Error = sqlite3.OperationalError("disk I/O error")

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if self.fails and sql.startswith(self.fails):
            raise self.error
        return super().execute(sql, *values)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Failing))
    monkeypatch.setattr(Failing, "fails", "")
    monkeypatch.setattr(Failing, "error", sqlite3.OperationalError("disk I/O error"))
    return Failing


@pytest.mark.parametrize(
    "reason", ["database or disk is full", "disk I/O error", "attempt to write a readonly database"]
)
def test_a_failed_write_is_one_sentence_for_this_and_every_further_answer(
    path: Path, failing: type[Failing], reason: str
) -> None:
    with CompletionStore(path) as store:
        store.store("one", Completion("1"))
        failing.fails, failing.error = "INSERT OR REPLACE", sqlite3.OperationalError(reason)
        faults = []
        for key in ("two", "three"):
            with pytest.raises(JournalError) as caught:
                store.store(key, Completion("2"), "q2")
            faults.append(str(caught.value))
            failing.fails = ""
        assert faults == [store.fault] * 2
        assert f"cannot store the answer to 'q2' ({reason}), and no later one" in store.fault
        assert "--adaptive-eval-dir" in store.fault
        assert store.lookup("one") == Completion("1")
    with CompletionStore(path) as store:
        assert (len(store), store.fault) == (1, "")


def test_what_a_shared_store_cannot_take_is_left_out(path: Path, failing: type[Failing]) -> None:
    with CompletionStore(path, exclusive=False) as store:
        store.store("one", Completion("1"))
        failing.fails = "INSERT OR REPLACE"
        store.store("two", Completion("2"), "q2")
        failing.fails = ""
        store.store("three", Completion("3"), "q3")
        assert (len(store), "cannot store the answer to 'q2' (disk I/O error)" in store.fault) == (1, True)


@pytest.mark.parametrize("statement", ["PRAGMA locking_mode", "PRAGMA journal_mode", "BEGIN", "CREATE", "COMMIT"])
def test_locks_and_logs_that_the_file_system_lacks_are_one_sentence(
    path: Path, failing: type[Failing], statement: str
) -> None:
    failing.fails = statement
    failing.error = sqlite3.OperationalError("locking protocol")
    with pytest.raises(JournalError, match=r"cannot be used \(locking protocol\): .*--adaptive-eval-dir"):
        CompletionStore(path)


def test_an_answer_that_is_no_json_data_is_refused() -> None:
    store = CompletionStore()
    with pytest.raises(JournalError, match="cannot store the answer to 'q'"):
        store.store("key", Completion("one", likelihood={"facts": object()}), "q")


def test_a_closed_store_refuses(path: Path) -> None:
    store = CompletionStore(path)
    store.close()
    store.close()
    with pytest.raises(JournalError, match="closed"):
        store.store("key", Completion("one"))


def test_a_folder_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "a.sqlite", tmp_path / "file" / "below" / "a.sqlite"):
        with pytest.raises(JournalError, match="cannot be used"):
            CompletionStore(path)


def test_an_answer_is_synced_unless_another_was_less_than_50_ms_ago(
    path: Path, failing: type[Failing], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, levels = [100.0], []
    monkeypatch.setattr("pytest_adaptive_eval.clock.elapsed", lambda: seconds[0])
    with CompletionStore(path) as store:
        for pause in (0.0, 0.02, 0.02, 0.02, 0.06):
            seconds[0] += pause
            execute = failing.execute
            monkeypatch.setattr(
                failing,
                "execute",
                lambda self, sql, *values: levels.append(sql) or execute(self, sql, *values),  # noqa: B023
            )
            store.store(f"{seconds[0]}", Completion("x"))
            monkeypatch.setattr(failing, "execute", execute)
    synced = "".join("F" if "FULL" in sql else "i" if "INSERT" in sql else "" for sql in levels)
    assert synced == "FiiiFiFi"


# Several runs


def test_answers_of_other_runs_are_copied_and_marked_where_a_key_among_runs_is_given(tmp_path: Path) -> None:
    with CompletionStore(tmp_path / "answers.sqlite", exclusive=False) as shared:
        first, second = CompletionStore(shared=shared), CompletionStore(shared=shared)
        first.store("own", Completion("one", cost=Usage(1)), shared_key="any")
        assert second.lookup("own") is second.lookup("own", "other") is None
        found = second.lookup("own", "any")
        assert found is not None
        assert (found.text, found.reused, found.cost) == ("one", True, Usage())
        again = second.lookup("own")
        assert again is not None
        assert (again.reused, second.is_earlier("own"), len(shared)) == (True, False, 1)


@pytest.mark.parametrize(
    ("completion", "shared_key", "stored"),
    [
        (Completion("text"), "any", 1),
        (Completion("half an", Status.TRUNCATED), "any", 1),
        (Completion(" ", Status.EMPTY), "any", 1),
        (Completion("", score=0.5, likelihood={"log_likelihoods": [-1.0]}), "any", 1),
        (Completion("text"), "", 0),
        (Completion("", score=1.0), "any", 0),
        (Completion("text", reused=True), "any", 0),
        (Completion("", Status.ERROR, detail="no memory"), "any", 0),
    ],
)
def test_other_runs_get_answers_that_they_can_grade(completion: Completion, shared_key: str, stored: int) -> None:
    shared = CompletionStore(exclusive=False)
    CompletionStore(shared=shared).store("own", completion, shared_key=shared_key)
    assert len(shared) == stored


def test_a_shared_file_that_another_process_locks_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.01)
    path = tmp_path / "a.sqlite"
    with (
        CompletionStore(path, exclusive=False) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as blocker,
    ):
        blocker.execute("BEGIN IMMEDIATE")
        store.store("one", Completion("1"), "q1")
        assert "cannot store the answer to 'q1' (database is locked)" in store.fault


def test_a_store_that_another_process_makes_meanwhile_is_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                monkeypatch.undo()
                CompletionStore(path, exclusive=False).close()
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Late))
    with CompletionStore(path, exclusive=False) as store:
        store.store("key", Completion("one"))
        assert (len(store), store.fault) == (1, "")


@pytest.mark.parametrize(
    ("kind", "exclusive", "mode"), [("ext4", False, "wal"), ("nfs4", False, "delete"), ("nfs4", True, "wal")]
)
def test_only_a_shared_file_on_a_network_file_system_has_no_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, exclusive: bool, mode: str
) -> None:
    mounts = f"none / overlay rw 0 0\nserver:/x {tmp_path.resolve()} {kind} rw 0 0\nnone /proc proc rw 0 0\n"
    read_text = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda self, *a, **k: mounts if str(self) == "/proc/self/mounts" else read_text(self, *a, **k),
    )
    path = tmp_path / "a.sqlite"
    with CompletionStore(path, exclusive=exclusive):
        pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == mode


def test_several_threads_store_and_look_up(path: Path) -> None:
    with CompletionStore(path) as store:

        def work(name: int) -> None:
            for number in range(50):
                store.store(f"{name} {number}", Completion(f"{name}"))
                assert store.lookup(f"{name} {number}") == Completion(f"{name}")

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store) == 200


@posix
def test_the_file_follows_the_mask_and_a_removed_one_leaves_nothing(path: Path) -> None:
    CompletionStore(path).close()
    Path(f"{path}-wal").touch()
    assert not stat.S_IMODE(path.stat().st_mode) & 0o111
    remove_store(path)
    remove_store(path)
    assert [file.name for file in path.parent.iterdir()] == [".gitignore"]


# True processes and true disks

WRITER = """
import sys
from pathlib import Path
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.store import CompletionStore
store = CompletionStore(Path(sys.argv[1]), exclusive=False)
for n in range(300):
    for key in (f"{sys.argv[2]}-{n}", "shared"):
        store.store(key, Completion(sys.argv[2]))
assert not store.fault, store.fault
store.close()
"""


@pytest.mark.slow
def test_many_processes_make_and_write_one_store(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "answers.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    with CompletionStore(path, exclusive=False) as store:
        assert len(store) == 4 * 300 + 1


#: Stores numbered answers for ever, and says so after each; now and then a long one, to be killed within.
STORING = """
import os, sys
from pathlib import Path
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.store import CompletionStore
store = CompletionStore(Path(sys.argv[1]))
n = len(store)
while True:
    store.store(str(n), Completion("x" * (100_000 if n % 7 == 3 else 10) + str(n)))
    n += 1
    os.write(1, b"%d\\n" % n)
"""


@pytest.mark.slow
@posix
def test_kill_9_loses_no_acknowledged_answer(path: Path) -> None:
    chance, acknowledged = random.Random(20), 0
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", STORING, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline()]
            try:
                writer.wait(chance.uniform(0.0, 0.08))
            except subprocess.TimeoutExpired:
                writer.kill()
            said += writer.stdout.readlines()
        acknowledged = int([text for text in said if text.endswith(b"\n")][-1])
        with CompletionStore(path) as store:
            assert acknowledged <= len(store) <= acknowledged + 1
            assert all(store.lookup(str(n)).text.endswith(f"x{n}") for n in range(len(store)))
    assert acknowledged >= 10


#: Fills the disk with answers, then tries once more, and prints what happened.
FILLER = """
import json, sys
from contextlib import closing
from pathlib import Path
from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.store import CompletionStore
LIMIT
path, n, errors = Path(sys.argv[1]), 0, []
with CompletionStore(path) as store:
    try:
        while n < 1000:
            store.store(str(n), Completion("x" * 1000 + str(n)))
            n += 1
    except JournalError as error:
        errors.append(str(error))
    try:
        store.store("small", Completion("x"))
    except JournalError as error:
        errors.append(str(error))
    kept = all(store.lookup(str(i)).text.endswith(f"x{i}") for i in range(n)) and len(store) == n
with CompletionStore(path) as store:
    again = all(store.lookup(str(i)).text.endswith(f"x{i}") for i in range(n)) and len(store) == n
print(json.dumps({"n": n, "errors": errors, "kept": kept, "again": again}))
"""


def check(done: subprocess.CompletedProcess[str], reason: str) -> None:
    """Every answer that was taken is there, and the others were refused twice for the same reason."""
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["kept"]
    assert said["again"]
    assert said["n"] > 10
    first, second = said["errors"]
    assert f"cannot store the answer to '' ({reason})" in first
    assert second == first


@pytest.mark.slow
@posix
def test_a_limit_on_file_size_keeps_every_whole_answer(path: Path) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))"
    command = [sys.executable, "-c", FILLER.replace("LIMIT", limit), str(path)]
    check(subprocess.run(command, capture_output=True, text=True, check=False), "disk I/O error")


@pytest.mark.slow
@posix
def test_a_full_disk_keeps_every_whole_answer(tmp_path: Path) -> None:
    """On a disk of 256 KiB, made in a name space of its own where the system allows it."""
    unshare = shutil.which("unshare")
    alone = [unshare or "unshare", "--map-root-user", "--mount", "sh", "-ec"]
    mount = f"mount -t tmpfs -o size=256k tmpfs {tmp_path}\n"
    if unshare is None or subprocess.run([*alone, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system allows no mounts of one's own")
    command = [*alone, f'{mount}exec "$0" -c "$1" "$2"', sys.executable]
    command += [FILLER.replace("LIMIT", ""), str(tmp_path / "a.sqlite")]
    check(subprocess.run(command, capture_output=True, text=True, check=False), "database or disk is full")
