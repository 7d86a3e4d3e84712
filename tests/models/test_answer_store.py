"""The store of answers: many writers, other files, and what an answer depends on."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.items.likelihood import BitsPerByte, ChoiceLikelihood
from pytest_adaptive_eval.models import reuse
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.models.replay import ReplayModel
from pytest_adaptive_eval.models.reuse import AnswerStore, Completions, InMemory, KnownAnswers, RecordedModel

GREEDY = {"temperature": 0.0}


class Own(Model):
    """A model that counts what it is asked; its answers begin with its number of calls."""

    def __init__(self, checkpoint: str = "hash", decoding: dict[str, Any] = GREEDY, **environment: Any) -> None:
        super().__init__(SubjectIdentity("m", checkpoint, decoding, environment))
        self.asked: list[str] = []
        self.done = Completion("yes")

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        self.asked += [item.id for item in items]
        return [self.done for _ in items]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = AnswerStore(tmp_path / "answers.sqlite")
    yield opened
    opened.close()


def sharing(store: AnswerStore, **model: Any) -> Own:
    subject = Own(**model)
    subject.known = KnownAnswers(store, subject)
    return subject


ITEM = Item("q", "Question?", "yes")


def test_an_answer_is_taken_by_another_run_and_counted(store: AnswerStore) -> None:
    first, second = sharing(store), sharing(store)
    assert (first.generate(ITEM), first.reused, len(store)) == ("yes", 0, 1)
    assert (second.generate(ITEM), second.reused, second.asked) == ("yes", 1, [])


def test_a_batch_asks_what_no_other_run_knows_and_notes_arrivals(store: AnswerStore) -> None:
    sharing(store).generate(ITEM)
    subject, arrived = sharing(store), []
    other = Item("p", "Other?", "yes")
    draws = [(other, 0), (ITEM, 0)]
    subject.begin(draws, lambda index, completion: arrived.append((index, completion.text, completion.reused)))
    assert (subject.asked, sorted(arrived)) == (["p"], [(0, "yes", False), (1, "yes", True)])
    assert sharing(store).complete(other).reused


@pytest.mark.parametrize(
    ("change", "item"),
    [
        ({"checkpoint": "other"}, ITEM),
        ({"decoding": {"temperature": 0.0, "template": "none"}}, ITEM),
        ({"dtype": "bfloat16"}, ITEM),
        ({}, Item("q", "Question!", "yes")),
        ({}, Item("q", "Question?", "yes", choices=("yes", "no"))),
        ({}, Item("q", "", "yes", messages=({"role": "system", "content": "Be terse."},))),
        ({}, Item("q", "Question?", "yes", meta={"sample": 1})),
    ],
)
def test_anything_else_is_asked_anew(store: AnswerStore, change: dict[str, Any], item: Item) -> None:
    sharing(store).generate(ITEM)
    subject = sharing(store, **change)
    subject.generate(item)
    assert subject.asked == ["q"]


def test_another_key_or_grader_is_no_other_request(store: AnswerStore) -> None:
    sharing(store).generate(ITEM)
    subject = sharing(store)
    assert subject.generate(Item("other", "Question?", "no", "regex", category=("new",))) == "yes"
    assert (subject.asked, subject.reused) == ([], 1)


def test_a_cap_that_an_evaluation_sets_belongs_to_the_answer(store: AnswerStore) -> None:
    for tokens, asked in ((8, 1), (8, 0), (16, 1)):
        subject = sharing(store)
        subject.cap = Cap(tokens, chosen=True)
        subject.generate(ITEM)
        assert len(subject.asked) == asked


def test_a_picture_that_changed_under_its_name_is_shown_anew(store: AnswerStore, tmp_path: Path) -> None:
    item = Item("q", "What?", "yes", images=("a.png",), root=str(tmp_path))
    asked = []
    for content in (None, b"one", b"one", b"two"):
        if content is not None:
            (tmp_path / "a.png").write_bytes(content)
        subject = sharing(store)
        subject.generate(item)
        asked.append(len(subject.asked))
    assert asked == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("done", "kept"),
    [
        (Completion("", Status.ERROR, detail="no memory"), 0),
        (Completion("", Status.TIMEOUT), 0),
        (Completion("", score=1.0), 0),
        (Completion("half an", Status.TRUNCATED), 1),
        (Completion(" ", Status.EMPTY), 1),
    ],
)
def test_faults_and_mere_scores_are_not_kept(store: AnswerStore, done: Completion, kept: int) -> None:
    subject = sharing(store)
    subject.done = done
    subject.begin([(ITEM, 0)], lambda *_: None)
    assert len(store) == kept


def test_log_likelihoods_are_kept_and_scored_anew(store: AnswerStore) -> None:
    text = Item("t", "abcd", grader="bits_per_byte", likelihood=BitsPerByte())
    choice = Item("c", "Sky?", "blue", "choice", choices=("red", "blue"), likelihood=ChoiceLikelihood("pmi"))
    for item, logs in ((text, [-2.0]), (choice, [-2.0, -1.0, -1.0, -1.0])):
        first = sharing(store)
        result = item.likelihood_result(logs)
        first.done = Completion(result.text, score=result.score, likelihood=result.facts)
        expected = first.complete(item)
        subject = sharing(store)
        assert subject.complete(item) == expected
        assert (subject.asked, subject.reused) == ([], 1)
    replies = store._connection.execute("SELECT reply FROM replies").fetchall()
    assert not any("score" in json.loads(reply) for (reply,) in replies)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Own(checkpoint=""), "no checkpoint hash"),
        (Own(decoding={"temperature": 0.7}), "samples"),
        (Own(decoding={}), "greedily"),
        (Own(decoding={"temperature": 0, "extra": {"temperature": 1.0}}), "samples"),
        (ReplayModel("r", {"q": Completion("yes")}), "recorded"),
        (Own(), ""),
    ],
)
def test_reasons_against_reuse(store: AnswerStore, model: Model, reason: str) -> None:
    assert reason in model.no_reuse
    assert bool(model.no_reuse) == bool(reason)
    KnownAnswers(store, model).keep(ITEM, Completion("yes"))
    assert len(store) == (not reason)


WRITER = """
import sys
from pathlib import Path
from pytest_adaptive_eval.models.reuse import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
for n in range(300):
    for key in (f"{sys.argv[2]}-{n}", "shared"):
        store.append(key, {"by": sys.argv[2]})
assert not store.fault, store.fault
"""


@pytest.mark.slow
def test_many_processes_make_and_write_one_store(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "answers.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    store = AnswerStore(path)
    assert len(store) == 4 * 300 + 1
    store.close()


@pytest.mark.parametrize("pragma", ["application_id", "user_version"])
def test_a_store_that_another_process_makes_meanwhile_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pragma: str
) -> None:
    path, read = tmp_path / "answers.sqlite", AnswerStore._number

    def read_late(store: AnswerStore, name: str) -> int:
        number = read(store, name)
        if name == pragma:
            monkeypatch.undo()
            AnswerStore(path).close()
        return number

    monkeypatch.setattr(AnswerStore, "_number", read_late)
    store = AnswerStore(path)
    store.append("key", {"text": "reply"})
    assert (store.get("key"), store.fault) == ({"text": "reply"}, "")
    store.close()


def test_files_of_other_kinds_are_refused_and_stay(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("These are notes, and no database, of more than a hundred characters. " * 20)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()
    newer = tmp_path / "newer.sqlite"
    AnswerStore(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    for path, sentence in (
        (text, "no store of answers, or a damaged one"),
        (other, "a database of something else"),
        (newer, "expected a store of answers of schema 1"),
        (tmp_path, "cannot be opened"),
        (text / "below", "cannot be opened"),
    ):
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(ConfigError, match=sentence) as caught:
            AnswerStore(path)
        assert "--adaptive-eval-reuse=FILE" in str(caught.value)
        assert not before or path.read_bytes() == before


def test_damage_that_shows_late_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    store = AnswerStore(path)
    for n in range(2000):
        store.append(f"{n:05}", {"text": "x" * 50})
    store.close()
    content = bytearray(path.read_bytes())
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="a damaged one"):
        _read_all(path)


def _read_all(path: Path) -> None:
    store = AnswerStore(path)
    try:
        for n in range(2000):
            store.get(f"{n:05}")
    finally:
        store.close()


def test_a_store_that_cannot_be_written_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "BUSY_SECONDS", 0.05)
    store, blocker = AnswerStore(tmp_path / "a.sqlite"), AnswerStore(tmp_path / "a.sqlite")
    blocker._connection.execute("BEGIN IMMEDIATE")
    for key in ("one", "two"):
        store.append(key, {"text": "yes"})
    assert "further answers are not stored there (database is locked)" in store.fault
    blocker._connection.execute("ROLLBACK")
    assert store.get("one") is None
    store.close()
    blocker.close()


def test_a_shared_file_system_gets_no_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    for shared in (False, True):
        monkeypatch.setattr(reuse, "_is_shared", lambda _path, shared=shared: shared)
        store = AnswerStore(tmp_path / f"{shared}.sqlite")
        modes.append(store._connection.execute("PRAGMA journal_mode").fetchone()[0])
        store.close()
    assert modes == ["wal", "delete"]


def test_the_first_data_of_a_key_stay_and_others_are_missing(store: AnswerStore) -> None:
    store.append("key", {"text": "one"})
    store.append("key", {"text": "two"})
    assert store.get("key") == {"text": "one"}
    store._connection.execute("INSERT INTO replies VALUES ('list', '[1]'), ('none', 'no JSON')")
    assert store.get("list") is store.get("none") is store.get("other") is None


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"text": "yes"},
        {"text": 1, "status": "ok", "cost": {}},
        {"text": "", "status": "?", "cost": {}},
        {"text": "yes", "status": "ok"},
        {"text": "yes", "status": "ok", "cost": {"cats": 3}},
        {"text": "yes", "status": "ok", "cost": {}, "score": "1"},
    ],
)
def test_data_of_another_form_are_no_completion(entry: dict[str, Any]) -> None:
    data = InMemory({"key": entry})
    assert Completions(data).find("key") is None


class Talking(Own):
    """Holds chats by its number of calls, and rates by length."""

    rates = True
    spent = Usage()

    @property
    def usage(self) -> Usage:
        return self.spent

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        answers = super().answer(items)
        self.spent += Usage(len(items), seconds=2.0)
        return [replace(answer, cost=Usage(1)) for answer in answers]

    def ask(self, messages: Sequence[Message], **_: Any) -> Completion:
        self.asked.append(messages[-1].text)
        return Completion(
            f"{len(self.asked)}", Status.ERROR if "fail" in messages[-1].text else Status.OK, cost=Usage(1)
        )

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        self.asked.append(label)
        return Preference(tuple(-float(len(candidate)) for candidate in candidates), usage=Usage(1))


def test_a_recorded_model_asks_once_for_each_draw_and_again_after_a_fault() -> None:
    model, data = Talking(), InMemory()
    recorded = RecordedModel(model, Completions(data), "sue")
    chat = [Message("user", "hello")]
    first = recorded.ask(chat)
    assert (recorded.identity.name, first.reused, first.cost.calls) == ("sue", False, 1)
    for other in (recorded.ask(chat, draw=1), recorded.ask(chat, max_tokens=3), recorded.ask(chat, schema={"a": 1})):
        assert not other.reused
    again = RecordedModel(Talking(), Completions(data), "sue").ask(chat)
    assert (again.text, again.reused, again.cost) == ("1", True, first.cost)
    assert len(model.asked) == 4
    for count in (5, 6):
        assert recorded.ask([Message("user", "fail")]).status is Status.ERROR
        assert len(model.asked) == count
    assert RecordedModel(Talking(checkpoint="other"), Completions(data)).ask(chat).reused is False


def test_ratings_are_recorded_too() -> None:
    model, data = Talking(), InMemory()
    chat = [Message("user", "which?")]
    first = RecordedModel(model, Completions(data)).prefer(chat, ["a", "bb"], "yes")
    again = RecordedModel(model, Completions(data)).prefer(chat, ["a", "bb"], "yes")
    assert (first.scores, first.reused, again.scores, again.reused) == ((-1.0, -2.0), False, (-1.0, -2.0), True)
    assert not RecordedModel(model, Completions(data)).prefer(chat, ["a"], "yes").reused
    for key in data:
        data[key] = {"text": "spoilt", "status": "ok", "cost": {}}
    assert RecordedModel(model, Completions(data)).prefer(chat, ["a", "bb"], "yes") == first


def test_items_are_recorded_one_by_one_with_the_cost_of_their_call() -> None:
    model, data = Talking(), InMemory()
    items = [Item("a", "A?"), Item("b", "B?")]
    first = RecordedModel(model, Completions(data)).answer(items[:1])
    both = RecordedModel(model, Completions(data)).answer(items)
    assert (first[0].cost, model.asked) == (Usage(1, seconds=2.0), ["a", "b"])
    assert [answer.reused for answer in both] == [True, False]
    assert sum((answer.cost for answer in both), Usage()) == model.usage


def test_replies_of_other_runs_cost_nothing_and_are_taken_of_models_that_may_be_reused(store: AnswerStore) -> None:
    chat, taken = [Message("user", "hello")], {}
    models: list[dict[str, Any]] = [{}, {"checkpoint": ""}, {"decoding": {"temperature": 0.7}}]
    for settings in models:
        for _ in range(2):
            model = Talking(**settings)
            reply = RecordedModel(model, Completions(None, store)).ask(chat)
            taken[str(settings)] = (reply.reused, reply.cost.calls, len(model.asked))
    assert list(taken.values()) == [(True, 0, 0), (False, 1, 1), (False, 1, 1)]
    assert len(store) == 1
