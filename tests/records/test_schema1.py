"""Records of schema 1 are read as the present schema has them, and nothing of them is lost."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.baseline import read_baseline
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_files import read_run, write_record
from pytest_adaptive_eval.records.run_record import UNKNOWN, RunRecord
from pytest_adaptive_eval.records.schema1 import upgraded
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.terminal import summary_lines

STORED = Path(__file__).parents[1] / "golden" / "stored"
KEPT = sorted([*(Path(__file__).parent / "schema1").glob("*.json"), *(STORED / "records").glob("*.json")])
#: Values that the present schema leaves out.
EMPTY: tuple[Any, ...] = ("", None, [], {})


def lost(old: Any, new: Any, where: str = "") -> list[str]:
    """Places whose value is another one, or is gone."""
    if isinstance(old, dict) and isinstance(new, dict):
        kept = {name: value for name, value in old.items() if name in new or value not in EMPTY}
        return [place for name, value in kept.items() for place in lost(value, new.get(name), f"{where}.{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [place for n, (a, b) in pairs for place in lost(a, b, f"{where}[{n}]")]
    return [] if old == new else [where]


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_a_kept_record_is_read_whole_and_written_in_the_present_schema(path: Path, tmp_path: Path) -> None:
    old, record = json.loads(path.read_text()), read_run(path)
    assert old["schema_version"] == 1
    told = {**old, "interviews": [*old["interviews"], *old["studies"]]}
    new = record.to_json()
    del told["studies"], told["schema_version"]
    for evaluation in told["interviews"]:
        if "candidate" in evaluation:
            evaluation["subject"] = {"name": evaluation.pop("candidate")}
    assert lost(told, new) == []
    write_record(tmp_path / "new.json", record)
    again = read_run(tmp_path / "new.json")
    assert again.to_json() == record.to_json()
    assert json.loads((tmp_path / "new.json").read_text())["schema_version"] == 2
    lines = ["".join(text for text, _ in line) for line in summary_lines(record, 10_000)]
    for gate in old["gates"]:
        assert any(line.startswith(gate["verdict"]["outcome"]) and gate["name"] in line for line in lines)
    assert summary_markdown(again) == summary_markdown(record)


def test_kept_records_have_what_runs_can_record() -> None:
    records = [read_run(path) for path in KEPT]
    interviews = [interview for record in records for interview in record.interviews]
    for name in ("judge", "baselines", "reuse", "interviewer", "decoding_noise", "levels", "conditions", "journal"):
        assert any(getattr(interview, name) for interview in interviews), name
    for name in ("likelihood", "reused", "request", "resumed"):
        assert any(getattr(asked, name) for i in interviews for asked in i.administrations), name
    assert {study.kind for record in records for study in record.evaluations} == {
        "bank", "ladder", "network", "peers", "ablation"
    }  # fmt: skip
    assert any(record.copied_from and record.required and record.deselected for record in records)


def of(**run: Any) -> RunRecord:
    return RunRecord.from_json({"run": "r", "started": "2031-05-06", "schema_version": 1, **run})


def test_a_verdict_without_a_known_outcome_is_an_error() -> None:
    verdicts: list[Any] = [{}, {"outcome": "MAYBE"}, {"outcome": None, "sentence": None, "notes": None}]
    gates = [{"name": "g", "nodeid": "t::g", "interview": "", "verdict": verdict} for verdict in verdicts]
    record = of(gates=gates)
    assert [gate.outcome for gate in record.gates] == [Outcome.ERROR] * 3
    assert {gate.verdict.sentence for gate in record.gates} == {"the record holds no verdict for this gate"}
    with pytest.raises(TypeError, match=r"gates\[0\]\.verdict\.outcome: Expected `str`, got `array`"):
        of(gates=[{**gates[0], "verdict": {"outcome": ["PASS"]}}])


def test_a_merged_record_of_a_shard_is_still_one() -> None:
    record = of(shard=True, deselected=["t::g"], exit_status=0)
    assert record.left_to_shards
    assert not record.promote


def test_what_an_earlier_version_asked_unseen_compares_with_anything() -> None:
    data = json.loads((STORED / "records" / "first.json").read_text())
    data["interviews"][0]["prompt"] = "hash of a test's source"
    before, after = of(**data).interviews[:2]
    assert {asked.request for asked in before.administrations} == {UNKNOWN}
    assert {asked.request for asked in after.administrations} == {""}


def test_only_its_own_types_are_converted() -> None:
    junk = {"interviews": [3], "gates": [None], "studies": "x", "schema_version": 1}
    assert upgraded(junk) == {"interviews": "x", "gates": [None], "schema_version": 2}
    with pytest.raises(TypeError, match=r"interviews\[0\]: Expected `object`, got `int`"):
        of(interviews=[3])


def test_a_baseline_gives_the_same_verdict_and_the_hash_that_runs_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(STORED / "toy.bank", "toy.bank")
    for name in ("first", "second"):
        data = json.loads((STORED / "records" / f"{name}.json").read_text())
        Path(f"{name}.json").write_text(json.dumps({**data, "interviews": data["interviews"][:1], "gates": []}))
    (old,) = json.loads(Path("first.json").read_text())["interviews"]
    file = read_baseline("first.json", [tmp_path], read_bank(Path("toy.bank")), "toy")
    assert file.source.hash == hashlib.sha256(json.dumps(old, sort_keys=True).encode()).hexdigest()[:16]
    scores = file.baseline.scores
    assert np.nansum(scores) == sum(asked["score"] for asked in old["administrations"])
    Path("gates.toml").write_text(
        '[[eval]]\nname = "toy"\nbank = "toy.bank"\n[[eval.gate]]\nnot_worse_than = "first.json"\nmargin = 0.05\n'
    )
    arguments = ["second.json", "--gates", "gates.toml", "--bank", "toy=toy.bank", "-o", "judged.json"]
    assert main(["gate", "--rescore", *arguments]) == 1
    capsys.readouterr()
    (gate,) = read_run(Path("judged.json")).gates
    # as the version that wrote schema 1 judged it
    assert gate.verdict.sentence.startswith(
        "INCONCLUSIVE accuracy less that of first.json -.307 [-.607, .091] against -.05 required, 95 %, 16 of 40 "
        "items, anytime-valid; the baseline table-85 holds answers to only 16 of 40 items"
    )


def test_a_history_of_both_schemas_is_one_series(tmp_path: Path) -> None:
    shutil.copyfile(STORED / "records" / "first.json", tmp_path / "1.json")
    write_record(tmp_path / "2.json", read_run(STORED / "records" / "second.json"))
    found = {(s.evaluation, s.metric, s.category): [p.value for p in s.points] for s in History(tmp_path).series()}
    assert len(found["plain", "accuracy", ""]) == 2
    assert len(found["climb", "auc", ""]) == 2
