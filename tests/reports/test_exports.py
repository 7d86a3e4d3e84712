"""Exports: every value has its promised type, nothing is a formula, and other tools' schemas hold."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.extensions.exports.rows import (
    responses_csv,
    responses_jsonl,
    write_export,
)
from pytest_adaptive_eval.extensions.exports.trackers import mlflow_metrics
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.parts import BankRecord, QuantityRecord
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord

CATEGORIES = [
    {
        "category": "algebra",
        "size": 300,
        "asked": 40,
        "scored": 40,
        "accuracy": {"estimate": 0.7, "low": 0.6, "high": 0.8, "confidence": 0.95, "method": "design-based"},
        "standard_error": 0.06,
    },
    {"category": "logic", "size": 40, "asked": 0, "scored": 0, "accuracy": None, "standard_error": None},
]
HOSTILE = [
    "=1+1",
    "+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\u00a0=1",
    "＝1+1",
    "－1",
    '"=1","',
    "'=1",
    "a\r\nb,c;=d",
    "\x00\x07\x1b[31mred",
    "\u202eevil\u2028",
    "=" * 40_000,
    "x" * 32_767 + "=1",
    "",
]


def asked(position: int = 1, **changes: Any) -> Administration:
    values: dict[str, Any] = {
        "item": f"q{position}",
        "item_hash": "a" * 16,
        "propensity": 0.01,
        "predicted": 0.6,
        "theta_before": [-0.5],
        "theta_after": [-0.25],
        "score": 1.0,
        "text": "42",
        "reason": "drawn by spread",
        "difficulty": -0.75,
        "category": ["algebra"],
        "seconds": 0.5,
    }
    return Administration(position, **{**values, **changes})


def record(make: SimpleNamespace, *questions: Administration, **changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "administrations": list(questions) or [asked(1), asked(2, score=0.0), asked(3, score=None, status="timeout")],
        "categories": CATEGORIES,
        "accuracy_error": 0.03,
    }
    interview = make.interview(**{**values, **changes})
    return make.record([interview], [make.gate("PASS"), make.gate("FAIL")])


# --- responses --------------------------------------------------------------------------------------------------------


def test_every_answer_is_a_line_with_the_same_columns(make: SimpleNamespace) -> None:
    lines = [json.loads(line) for line in responses_jsonl(record(make))]
    assert len(lines) == 3
    assert len({tuple(line) for line in lines}) == 1
    assert lines[0] == {
        "schema_version": 1,
        "run": "20310506T070809000Z-00000000",
        "started": "2031-05-06T07:08:09Z",
        "evaluation": "mmmu",
        "subject": "vlm-2b-step-4000",
        "checkpoint": "c" * 16,
        "decoding_hash": SubjectIdentity("").decoding_hash,
        "bank": "mmmu",
        "bank_hash": "b" * 16,
        "scale": "5" * 12,
        "position": 1,
        "item": "q1",
        "item_hash": "a" * 16,
        "format": "text",
        "sample": 0,
        "category": ["algebra"],
        "difficulty": -0.75,
        "status": "ok",
        "score": 1.0,
        "text": "42",
        "detail": "",
        "reason": "drawn by spread",
        "propensity": 0.01,
        "predicted": 0.6,
        "rest": None,
        "variance": None,
        "down": None,
        "up": None,
        "theta_before": [-0.5],
        "theta_after": [-0.25],
        "seconds": 0.5,
        "resumed": False,
    }
    assert lines[2]["score"] is None
    assert lines[2]["status"] == "timeout"
    assert not list(responses_jsonl(make.record([])))


def test_the_documented_columns_are_those_written(make: SimpleNamespace) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/exports.md").read_text().partition("## The same as CSV")[0]
    documented = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert documented == list(json.loads(next(responses_jsonl(record(make)))))


def test_csv_has_the_same_answers(make: SimpleNamespace) -> None:
    run = record(make, asked(1, theta_after=[0.5, -1.0], category=["a", "b"]), asked(2, category=[], seconds=None))
    rows = list(csv.DictReader(io.StringIO(responses_csv(run), newline="")))
    assert list(rows[0]) == list(json.loads(next(responses_jsonl(run))))
    assert rows[0]["theta_before"] == "-0.5"  # numbers stay numbers
    assert rows[0]["theta_after"] == "[0.5, -1.0]"
    assert rows[0]["category"] == '["a", "b"]'
    assert rows[0]["resumed"] == "false"
    assert rows[1]["category"] == rows[1]["seconds"] == ""
    assert rows[1]["score"] == "1.0"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_cell_is_a_formula(make: SimpleNamespace, text: str) -> None:
    question = asked(1, item=text, text=text, detail=text, reason=text, category=[text], status=text)
    data = responses_csv(record(make, question, subject={"name": text}, name=text)).encode("utf-8").decode("utf-8")
    head, *rows = csv.reader(io.StringIO(data, newline=""))
    assert len(rows) == 1
    assert len(rows[0]) == len(head)
    for name, cell in zip(head, rows[0], strict=True):
        assert len(cell) <= 32_767
        assert "\x00" not in cell
        if name in ("difficulty", "theta_before", "theta_after"):
            assert math.isfinite(float(cell))
        else:
            assert cell.lstrip()[:1] not in tuple("=+-@＝＋－＠") or cell == ""
            assert cell[:1] not in ("\t", "\r", "\n")
    assert json.loads(next(responses_jsonl(record(make, question))))["text"] == text.encode("utf-8", "replace").decode()


TEXT = st.text(max_size=8) | st.sampled_from(HOSTILE)
NUMBER = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@given(st.data())
def test_no_value_breaks_an_export(make: SimpleNamespace, data: st.DataObject) -> None:
    numbers = {name: data.draw(NUMBER) for name in ("propensity", "score", "seconds", "difficulty")}
    texts = {name: data.draw(TEXT) for name in ("item", "text", "reason")}
    question = asked(1, **numbers, **texts, category=[data.draw(TEXT)], theta_after=[0.5])
    run = record(make, question, accuracy_error=data.draw(NUMBER))
    run.interviews[0].subject = SubjectIdentity(data.draw(TEXT), data.draw(TEXT), {data.draw(TEXT): data.draw(TEXT)})
    run.interviews[0].bank = BankRecord(data.draw(TEXT), content_hash=data.draw(TEXT))
    run.interviews[0].name = data.draw(TEXT)
    [line] = responses_jsonl(run)
    found = json.loads(line, parse_constant=pytest.fail)
    line.encode("ascii")
    for name in ("propensity", "score", "seconds", "difficulty"):
        assert found[name] is None or isinstance(found[name], float)
    assert found["sample"] is None or isinstance(found["sample"], int)
    assert isinstance(found["item"], str)
    assert all(isinstance(name, str) for name in found["category"])
    assert len(list(csv.reader(io.StringIO(responses_csv(run), newline="")))) == 2
    assert all(math.isfinite(value) for value in mlflow_metrics(run).values())


# --- files ------------------------------------------------------------------------------------------------------------


def test_exports_are_written_whole(make: SimpleNamespace, tmp_path: Path) -> None:
    run, path = record(make), tmp_path / "new" / "out.jsonl"
    write_export(run, path, "jsonl")
    assert path.read_text().splitlines() == list(responses_jsonl(run))
    write_export(run, tmp_path / "out.csv", "csv")
    assert (tmp_path / "out.csv").read_bytes().decode() == responses_csv(run)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["new", "out.csv", "out.jsonl"]


def test_what_cannot_be_written_is_told(make: SimpleNamespace, tmp_path: Path) -> None:
    run = record(make)
    with pytest.raises(UsageError, match="unknown export 'xls'"):
        write_export(run, tmp_path / "x", "xls")
    with pytest.raises(UsageError, match="not a regular file"):
        write_export(run, tmp_path, "csv")
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError, match="cannot write the answers"):
        write_export(run, tmp_path / "file" / "out.csv", "csv")
    assert [p.name for p in tmp_path.rglob("*")] == ["file"]


# --- MLflow -----------------------------------------------------------------------------------------------------------


def test_metrics_have_names_that_mlflow_takes(make: SimpleNamespace) -> None:
    found = mlflow_metrics(record(make))
    assert found["mmmu/accuracy"] == 0.612
    assert found["mmmu/accuracy_low"] == 0.551
    assert found["mmmu/ability"] == 1.234
    assert found["mmmu/category/algebra"] == 0.7
    assert "mmmu/category/logic" not in found
    assert (found["gates/pass"], found["gates/fail"], found["promote"]) == (1.0, 1.0, 0.0)
    assert mlflow_metrics(record(make, accuracy=None))["mmmu/accuracy_projected"] == 0.605
    run = record(make, name="../é:\n/x")
    run.evaluations *= 2
    names = list(mlflow_metrics(run))
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_. /-]{1,250}", name)
        assert not {"", ".", ".."} & set(name.split("/"))


# --- studies ----------------------------------------------------------------------------------------------------------


def studied(make: SimpleNamespace, *studies: EvaluationRecord) -> RunRecord:
    run: RunRecord = make.record([], [])
    run.evaluations = list(studies) or [make.study(), make.network()]
    return run


def test_metrics_of_studies(make: SimpleNamespace) -> None:
    found = mlflow_metrics(studied(make))
    expected = {
        "council/rounds": 8.0,
        "council/score": 3.8,
        "council/score_standard_error": 0.06,
        "council/score_rank": 1.0,
        "council/score/ant": 3.0,
        "council/score_rank/bee": 2.0,
        "web/nodes": 2.0,
        "web/energy": 0.4,
        "web/energy_low": 0.4 - 0.1,
        "web/auc/second": 2.5,
        "web/last_level/first": 2.0,
    }
    assert {name: found.get(name) for name in expected} == expected
    void = mlflow_metrics(studied(make, make.study(error="nobody agrees")))
    assert [name for name in void if name.startswith("council")] == ["council/rounds"]


@given(st.data())
def test_no_study_breaks_an_export(make: SimpleNamespace, data: st.DataObject) -> None:
    numbers: dict[str, Any] = {name: data.draw(NUMBER) for name in ("estimate", "low", "confidence", "error")}
    row = QuantityRecord(data.draw(TEXT), method=data.draw(TEXT), **numbers)
    run = studied(make, make.study(metrics={data.draw(TEXT): [row], "energy": [row]}, candidate=data.draw(TEXT)))
    run.evaluations[0].kind = data.draw(st.sampled_from(["peers", "network"]))
    run.evaluations[0].name = data.draw(TEXT)
    assert all(math.isfinite(value) for value in mlflow_metrics(run).values())
