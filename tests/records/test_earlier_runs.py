"""The earlier run that predicts: how its items are joined, and what its hash and stream depend on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import changed, made

from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.earlier import FEWEST, EarlierRun, earlier_run, newest_of_another, read_earlier
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.parts import PredictionRecord
from pytest_adaptive_eval.records.run_files import write_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord

ITEMS = [Item(f"q{i}", f"question {i}", "a") for i in range(40)]
BANK = ItemBank.uncalibrated("toy", ITEMS)


def run_of(items: list[tuple[str, str, float | None]], name: str = "main", **interview: Any) -> RunRecord:
    """A run of one interview with the id, the hash and the score of each item."""
    asked = [Administration(n, item, digest, score=score) for n, (item, digest, score) in enumerate(items, 1)]
    bank = {"name": "toy", "content_hash": BANK.content_hash, "size": 40}
    fields = {"asked": len(asked), "scored": len(asked), "size": 40, "stop": "DECISION", **interview}
    record = made(
        EvaluationRecord, "toy", "t.py::toy", {"name": name, "checkpoint": f"hash-{name}"}, bank, {}, **fields
    )
    record.administrations = asked
    return RunRecord(run=f"run-{name}", started="2026-05-12T08:00:00+00:00", evaluations=[record])


def whole(score: float = 1.0) -> list[tuple[str, str, float | None]]:
    return [(item.id, item.content_hash, score) for item in ITEMS]


def joined(items: list[tuple[str, str, float | None]]) -> EarlierRun:
    run = run_of(items)
    return earlier_run(run, run.interviews[0], BANK)


def test_items_are_joined_by_the_hash_of_id_and_content() -> None:
    found = joined([("q3", ITEMS[3].content_hash, 0.5), ("q4", "changed", 1.0), ("q5", ITEMS[5].content_hash, None)])
    assert (found.scores, found.source.by_id, found.source.answers) == ({"q3": 0.5}, False, 1)


def test_items_without_a_hash_are_joined_by_id_and_it_is_said() -> None:
    found = joined([("q1", "", 1.0), ("none", "", 1.0), ("q2", ITEMS[2].content_hash, 0.0)])
    assert found.scores == {"q1": 1.0, "q2": 0.0}
    assert ", joined by id" in found.source.sentence


def test_scores_are_in_the_bank_s_order() -> None:
    scores = joined([("q2", ITEMS[2].content_hash, 0.0), ("q0", ITEMS[0].content_hash, 1.0)]).on(BANK).scores
    assert scores[:3].tolist()[::2] == [1.0, 0.0]
    assert np.isnan(scores).sum() == 38


def test_hash_and_stream_are_of_the_pairs_and_not_of_the_run_or_its_time() -> None:
    one = EarlierRun.of(PredictionRecord("main", "r1", "2026-05-12"), {"a": 1.0, "b": 0.0})
    same = EarlierRun.of(PredictionRecord("other", "r2", "2027-01-01", "x"), {"b": 0.0, "a": 1.0})
    assert (one.source.hash, one.stream(7)) == (same.source.hash, same.stream(7))
    for scores in ({"a": 1.0, "b": 1.0}, {"a": 1.0}, {"a": 1.0, "c": 0.0}):
        assert EarlierRun.of(PredictionRecord("main"), scores).stream(7) != one.stream(7)
    assert one.stream(8) != one.stream(7) != 7


def test_it_travels_as_json_and_names_itself() -> None:
    found = joined(whole())
    assert EarlierRun.from_json(found.to_json()) == found
    assert found.source.sentence == f"predicted by main of 2026-05-12: 40 answers (hash {found.source.hash})"


def test_a_void_interview_predicts_nothing() -> None:
    run = run_of(whole(), error="the server went away")
    with pytest.raises(BaselineError, match="is void"):
        earlier_run(run, run.interviews[0], BANK)


@pytest.mark.parametrize(
    ("checkpoint", "environment", "decoding", "reason"),
    [
        ("hash-main", {}, "", "it is the candidate itself"),
        ("hash-main", {"weights": "not known"}, "", ""),
        ("other", {}, "another", "its decoding settings were others"),
        ("other", {}, "", ""),
    ],
)
def test_own_answers_and_another_decoding_say_nothing(
    checkpoint: str, environment: dict[str, str], decoding: str, reason: str
) -> None:
    found = joined(whole())
    assert found.decoding
    identity = SubjectIdentity("new", checkpoint, environment=environment, hashes_files=True)
    assert found.refusal(identity, decoding).startswith(reason)
    assert bool(found.refusal(identity, decoding)) == bool(reason)


def test_the_newest_run_of_another_subject_with_enough_answers(tmp_path: Path) -> None:
    runs = {
        "old": run_of(whole(), "old"),
        "main": run_of(whole(0.0), "main"),
        "few": run_of(whole()[: FEWEST - 1], "few"),
        "void": run_of(whole(), "void", error="x"),
        "own": run_of(whole(), "own"),
    }
    for day, (name, run) in enumerate(runs.items(), 1):
        write_run(
            tmp_path, changed(run, run=f"2026051{day}T000000000Z-{name}", started=f"2026-05-1{day}T00:00:00+00:00")
        )
    history = History(tmp_path)
    found = newest_of_another(history, "t.py::toy", BANK, "hash-own")
    assert found is not None
    assert (found.source.subject, set(found.scores.values())) == ("main", {0.0})
    own = newest_of_another(history, "t.py::toy", BANK, "")
    assert own is not None
    assert own.source.subject == "own"
    assert newest_of_another(history, "t.py::other", BANK, "") is None


def test_recorded_answers_are_joined_by_id(tmp_path: Path) -> None:
    (tmp_path / "main.csv").write_text("subject,q1,q2,q3\nlate,1,0,\n")
    found = read_earlier("main.csv", [tmp_path], BANK, "toy")
    assert (found.scores, found.source.path, found.source.by_id) == ({"q1": 1.0, "q2": 0.0}, "main.csv", True)
