"""Records that are made from others: how they are called, and the names in merged ones."""

from __future__ import annotations

from climbs import bare, run
from made import made, several
from msgspec.structs import replace

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
