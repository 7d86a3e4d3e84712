"""Baselines from files of recorded answers: where they are found, what is kept of them, and how old they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from climbs import bare, run
from msgspec.structs import replace

from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError, BaselineMissing
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.baseline import STALE, BaselineFile, read_baseline
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.records.run_files import write_run
from pytest_adaptive_eval.records.run_record import Administration, GateRecord, RunRecord

BANK = ItemBank.uncalibrated("toy", [Item(f"q{i}", "?", "a") for i in range(1, 5)])
MATRIX = "subject,q1,q2,q3,q4\nearly,1,0,0,0.25\nlate,1,1,1,1.0\n"


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "rundir", tmp_path / "root"]
    for folder in found:
        folder.mkdir()
    return found


def test_the_path_is_kept_as_given_in_the_first_folder_and_in_full_elsewhere(folders: list[Path]) -> None:
    for folder, path in ((folders[1], str(folders[1] / "old.csv")), (folders[0], "old.csv")):
        (folder / "old.csv").write_text(MATRIX)
        file = read_baseline("old.csv#late", folders, BANK, "toy")
        assert file.source.path == path
        assert file.source.subject == "late"
        assert len(file.source.hash) == 16
        assert file.baseline.name == "late"
        np.testing.assert_array_equal(file.baseline.scores, [1, 1, 1, 1])


def test_items_with_another_score_than_the_baseline_s_are_lost_or_gained() -> None:
    file = BaselineFile(Baseline("main", np.array([1.0, 0.0, 0.5, 1.0])), "x")
    scores = {"q4": 0.5, "q2": 1.0, "q3": 0.5, "q1": None}
    answers = [Administration(n, item, "h", score=score) for n, (item, score) in enumerate(scores.items(), 1)]
    source = file.compared(BANK, answers)
    assert (source.common, source.lost, source.gained) == (3, ["q4"], ["q2"])


def test_a_missing_file_names_every_folder_tried_once(folders: list[Path]) -> None:
    with pytest.raises(BaselineError, match="name another evaluation") as raised:
        read_baseline("none.csv", [*folders, folders[0]], BANK, "toy")
    for folder in folders:
        assert str(raised.value).count(str(folder / "none.csv")) == 1


def test_answers_to_other_items_are_no_baseline(folders: list[Path]) -> None:
    (folders[0] / "old.csv").write_text("subject,x1\na,1\n")
    with pytest.raises(BaselineError, match="it has no answer to any item of the bank 'toy'"):
        read_baseline("old.csv", folders, BANK, "toy")


def test_age_is_told_from_thirty_days_on() -> None:
    now = datetime(2031, 5, 6, tzinfo=UTC)
    baseline = Baseline("main", np.ones(4))
    for age, told in ((timedelta(days=STALE), True), (timedelta(days=STALE, seconds=-1), False)):
        said = BaselineFile(baseline, "x", started=(now - age).isoformat()).age(now)
        assert said.startswith("the baseline main was recorded 30 days ago") == told
        assert bool(said) == told
    for unknown in ("", "yesterday", "2020-01-01T00:00:00"):
        assert BaselineFile(baseline, "x", started=unknown).age(now) == ""


def test_a_change_of_decoding_is_refused_where_both_are_known() -> None:
    file = BaselineFile(Baseline("main", np.ones(4)), "run.json", decoding="d1")
    file.check(decoding="d1")
    file.check(decoding="")
    BaselineFile(file.baseline, "run.json").check(decoding="d1")
    with pytest.raises(BaselineError, match=r"run\.json: the decoding settings changed .*\(hash d1 then, d2 now\)"):
        file.check(decoding="d2")


def asked(item: str, request: str = "") -> Administration:
    return Administration(1, item, "hash", request=request)


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        ("", "", False),
        ("", "r2", True),
        ("r1", "", True),
        ("r1", "r1", False),
        ("r1", "r2", True),
        ("r1", "unknown", False),
        ("unknown", "", False),
    ],
)
def test_another_request_for_a_common_item_is_refused_where_both_are_known(
    before: str, now: str, refused: bool
) -> None:
    requests = {entry.place: entry.request for entry in (asked("a"), asked("b", before))}
    file = BaselineFile(Baseline("main", np.ones(4)), "run.json", requests=requests)
    candidate = [asked("a"), asked("b", now), asked("c", "r3")]
    if not refused:
        file.check_requests(candidate)
        return
    with pytest.raises(BaselineError, match=r"run\.json: the test asks 1 of 2 common items otherwise, such as 'b':"):
        file.check_requests(candidate)


def test_the_answers_of_the_model_are_no_baseline_of_it(folders: list[Path]) -> None:
    (folders[0] / "old.csv").write_text(MATRIX)
    early = read_baseline("old.csv#early", folders, BANK, "toy")
    late = read_baseline("old.csv#late", folders, BANK, "toy")
    early.check(decoding="", checkpoint=late.checkpoint)
    with pytest.raises(BaselineError, match="the baseline holds the same answers as the model"):
        early.check(decoding="", checkpoint=early.checkpoint)


def run_of(day: int, scores: list[float], **facts: Any) -> RunRecord:
    """A run of four questions, with a gate that passed."""
    asked = [Administration(n + 1, f"q{n + 1}", "h", score=score) for n, score in enumerate(scores)]
    bank = {"name": "toy", "content_hash": BANK.content_hash}
    interview = bare(name="toy", nodeid="t::toy", bank=bank, administrations=plain(asked), stop="BUDGET")
    gate = GateRecord("g", "t::g", "toy", Verdict(Outcome.PASS, stated="it holds"))
    record = replace(run(day, interview), gates=[gate], exit_status=0)
    return replace(record, **facts)


@pytest.mark.parametrize(
    ("facts", "taken", "refusal"),
    [
        ({}, 1.0, ""),
        ({"exit_status": 1}, 0.0, "exit status 1"),
        ({"exit_status": 2}, 0.0, "exit status 2"),
        ({"exit_status": None}, 0.0, "exit status None"),
        ({"exit_status": 1, "only_baselines_missing": True}, 0.0, ""),
        ({"exit_status": 3, "only_baselines_missing": True}, 0.0, "exit status 3"),
    ],
)
def test_a_run_that_did_not_pass_is_no_baseline_of_a_history_and_is_doubted_as_a_file(
    folders: list[Path], facts: dict[str, Any], taken: float, refusal: str
) -> None:
    earlier, later = run_of(1, [0.0] * 4), run_of(2, [1.0] * 4, **facts)
    for record in (earlier, later):
        write_run(folders[0], record)
    chosen = read_baseline(".", folders, BANK, "toy")
    assert chosen.baseline.scores.tolist() == [taken] * 4
    named = read_baseline(f"runs/{later.run}.json", folders, BANK, "toy")
    assert named.refusal == refusal
    doubts = [text for text in named.doubts(SubjectIdentity("candidate", "other")) if "did not pass" in text]
    assert len(doubts) == bool(refusal)


def test_a_history_of_failed_runs_alone_has_no_baseline(folders: list[Path]) -> None:
    write_run(folders[0], run_of(1, [1.0] * 4, exit_status=1))
    with pytest.raises(BaselineMissing, match="of its 1 runs none has passed"):
        read_baseline(".", folders, BANK, "toy")
