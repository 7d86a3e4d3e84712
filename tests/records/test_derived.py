"""Records that are made from others: how they are called, and the names in merged ones."""

from __future__ import annotations

from typing import Any

import pytest
from climbs import bare, run
from made import made, several
from msgspec.structs import replace

from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.records.run_record import GateRecord, RunRecord, merged


def test_what_was_made_from_others_says_so() -> None:
    first = run(1, bare())
    assert (first.copied_from, first.merged) == ("", [])
    both = merged([first, run(2, bare())], "m")
    assert RunRecord.from_json(both.to_json()).copied_from == "merged of 2"
    assert both.merged == [first.run, run(2, bare()).run]


def test_names_that_several_runs_share_become_readable() -> None:
    records = [run(day, bare(subject={"name": who})) for day, who in enumerate(("one", "two", "two", ""), 1)]
    records.append(run(4, bare(subject={"name": "two"})))
    records[-1].run = "another"
    for record in records:
        record.evaluations.append(several("council", "t.toml::council", "peers", "cat"))
        record.gates = [made(GateRecord, "g", "t", of, {"outcome": "PASS"}) for of in ("text", "t.toml::council")]
    found = merged(records, "m")
    texts = ["text", "text (two)", "text (2031-05-03 00:00)", "text (2031-05-04 00:00)", "text (another)"]
    assert [interview.name for interview in found.interviews] == texts
    councils = [evaluation.name for evaluation in found.evaluations if evaluation in found.others]
    assert councils[:3] == ["council", "council (cat)", "council (2031-05-03 00:00)"]
    assert len(set(councils)) == 5
    judged = [gate.interview for gate in found.gates]
    assert (judged[::2], judged[1::2]) == (texts, councils)


def test_a_gate_that_one_job_left_out_and_another_judged_is_not_missed() -> None:
    halves = [run(day, bare()) for day in (1, 2)]
    for record, mine, others in zip(halves, ("a", "b"), (["b", "c"], ["a"]), strict=True):
        record.exit_status, record.deselected = 0, others
        record.gates = [made(GateRecord, mine, mine, "text", {"outcome": "PASS"})]
        record.warn()
        assert f": {', '.join(others)};" in record.warnings[0]
    both = merged(halves, "m")
    assert both.deselected == ["c"]
    assert ": c;" in both.warnings[0]
    both = merged([halves[0], replace(halves[1], exit_status=1)], "m")
    assert both.deselected == ["c"]
    assert ": c;" in both.warnings[0], "named although nothing is promoted"


ALL = ("a", "b", "c", "d")


def shard(options: str, judged: str, *, status: int = 0, outcome: Outcome = Outcome.PASS) -> RunRecord:
    """Return the record of a shard that judged some of four gates."""
    gates = [GateRecord(name, f"test_it.py::{name}", "", Verdict(outcome, stated="it holds")) for name in judged]
    record = RunRecord(f"run {options} {judged}", "2031-05-06T07:08:09+00:00", exit_status=status, gates=gates)
    record.shard = options
    record.deselected = [f"test_it.py::{name}" for name in ALL if name not in judged]
    return record


def split(group: int, judged: str, count: int = 3, **facts: Any) -> RunRecord:
    return shard(f"--splits={count} --group={group}", judged, **facts)


def counted_from_zero(number: int, judged: str) -> RunRecord:
    return shard(f"--num-shards=3 --shard-id={number}", judged)


def grouped(number: int, judged: str) -> RunRecord:
    return shard(f"--test-group-count=2 --test-group={number}", judged)


@pytest.mark.fast_rows(5)
@pytest.mark.parametrize(
    ("records", "left", "named"),
    [
        ([split(1, "ab"), split(2, "c")], "d", ["--group=3"]),
        ([split(1, "ab"), split(3, "d")], "c", ["--group=2"]),
        ([split(2, "c"), split(3, "d")], "ab", ["--group=1"]),
        ([split(1, "ab"), split(2, "c"), split(3, "d")], "", []),
        ([split(3, "d"), split(1, "ab"), split(2, "c")], "", []),
        ([split(1, "ab")], "cd", ["--group=2", "--group=3"]),
        ([split(2, "")], "abcd", ["--group=1", "--group=3"]),
        ([split(1, "ab"), split(1, "ab")], "cd", ["--group=2", "--group=3"]),
        ([split(1, "abcd"), split(2, "")], "", []),
        ([split(1, "ab"), split(2, ""), split(3, "c")], "d", ["every shard left it to another"]),
        ([split(1, "ab", status=1, outcome=Outcome.FAIL), split(2, "c")], "d", ["--group=3"]),
        ([split(1, "ab"), split(2, "c", outcome=Outcome.INCONCLUSIVE)], "d", ["--group=3"]),
        ([split(n, "", count=12) for n in range(1, 12)], "abcd", ["--splits=12 --group=12"]),
        ([split(n, ALL[n - 1], count=4) for n in (1, 2, 3, 4)], "", []),
        ([counted_from_zero(0, "a"), counted_from_zero(1, "b")], "cd", ["--num-shards=3 --shard-id=2"]),
        ([counted_from_zero(1, "b"), counted_from_zero(2, "cd")], "a", ["--shard-id=0"]),
        ([counted_from_zero(0, "a"), counted_from_zero(1, "b"), counted_from_zero(2, "cd")], "", []),
        ([grouped(1, "ab")], "cd", ["--test-group-count=2 --test-group=2"]),
        ([grouped(1, "ab"), grouped(2, "cd")], "", []),
        ([split(1, "ab", count=2), grouped(1, "c")], "d", ["--group=2", "--test-group=2"]),
        ([split(1, "ab"), shard("", "cd")], "", []),
        ([shard("", "ab"), shard("", "ab")], None, []),
    ],
)
def test_gates_of_shards_that_were_not_merged_are_errors(
    records: list[RunRecord], left: str | None, named: list[str]
) -> None:
    whole = merged(records, "whole")
    errors = {gate.name: gate.verdict.stated for gate in whole.gates if gate.outcome is Outcome.ERROR}
    assert list(errors) == list(left or "")
    assert all(text in stated for stated in errors.values() for text in named)
    passed = max(record.exit_status or 0 for record in records) == 0
    assert whole.exit_status == (0 if passed and not left else 1)
    assert whole.promote is (whole.exit_status == 0 and all(g.outcome is Outcome.PASS for g in whole.gates))
    absent = merged([whole, shard("", left or "")], "later")  # the rest, merged later
    assert not [gate for gate in absent.gates if gate.outcome is Outcome.ERROR]
    assert absent.exit_status == (0 if passed else 1)
