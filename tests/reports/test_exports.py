"""Exports: every value has its promised type, nothing is a formula, and other tools' schemas hold."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.extensions.exports.rows import (
    every_eval_ever,
    responses_csv,
    responses_jsonl,
    studies_csv,
    studies_jsonl,
    write_export,
)
from pytest_adaptive_eval.extensions.exports.trackers import mlflow_metrics
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.parts import BankRecord, QuantityRecord, SubjectRecord
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
        "decoding_hash": "d" * 16,
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
    run.interviews[0].subject = SubjectRecord(data.draw(TEXT), data.draw(TEXT), {data.draw(TEXT): data.draw(TEXT)})
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


# --- Every Eval Ever --------------------------------------------------------------------------------------------------

#: The part of its two schemas, version 0.3.0, that an export touches: required keys and types.  A key that ends in ?
#: may be missing; a set is an enumeration; a type may be followed by None.
DETAILS = {"*": str}
RESULT = {
    "evaluation_result_id": str,
    "evaluation_name": str,
    "source_data": {"dataset_name": str, "source_type": {"other"}, "additional_details?": DETAILS},
    "metric_config": {
        "evaluation_description?": str,
        "metric_id?": str,
        "metric_name?": str,
        "metric_kind?": str,
        "metric_unit?": str,
        "lower_is_better": bool,
        "score_type": {"continuous"},
        "min_score": (float, {"-Infinity"}),
        "max_score": (float, {"Infinity"}),
    },
    "score_details": {
        "score": float,
        "uncertainty?": {
            "standard_error?": {"value": float},
            "confidence_interval?": {"lower": float, "upper": float, "confidence_level?": float, "method?": str},
            "num_samples?": int,
        },
    },
    "generation_config?": {
        "generation_args?": {"temperature?": float, "max_tokens?": int},
        "additional_details?": DETAILS,
    },
}
AGGREGATE = {
    "schema_version": {"0.3.0"},
    "evaluation_id": str,
    "evaluation_timestamp?": str,
    "retrieved_timestamp": str,
    "source_metadata": {
        "source_name?": str,
        "source_type": {"evaluation_run"},
        "source_organization_name": str,
        "evaluator_relationship": {"first_party", "third_party", "collaborative", "other"},
    },
    "eval_library": {"name": str, "version": str},
    "model_info": {"name": str, "id": str, "developer?": str, "additional_details": DETAILS},
    "evaluation_results": [RESULT],
    "detailed_evaluation_results?": {
        "format": {"jsonl"},
        "file_path": str,
        "hash_algorithm?": {"sha256"},
        "checksum?": str,
        "total_rows?": int,
    },
}
SAMPLE = {
    "schema_version": {"0.3.0"},
    "evaluation_id": str,
    "model_id": str,
    "evaluation_name": str,
    "evaluation_result_id?": str,
    "sample_id": str,
    "sample_hash?": (str, None),
    "interaction_type": {"single_turn"},
    "input": {"raw": str, "reference": [str], "choices?": [str]},
    "output": {"raw": [str]},
    "answer_attribution": [
        {"turn_idx": int, "source": str, "extracted_value": str, "extraction_method": str, "is_terminal": bool}
    ],
    "evaluation": {"score": float, "is_correct": bool},
    "performance?": ({"latency_ms?": float}, None),
    "metadata?": DETAILS,
}
FILE = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(\.json|_samples\.jsonl)"
)


def check(value: Any, schema: Any, where: str = "") -> None:
    """Fails where a value is not what the schema says."""
    if isinstance(schema, tuple):
        if value is None and None in schema:
            return
        kinds = [kind for kind in schema if kind is not None]
        schema = (
            next((kind for kind in kinds if isinstance(kind, set) and value in kind), kinds[0])
            if (isinstance(value, str))
            else kinds[0]
        )
    if isinstance(schema, set):
        assert value in schema, where
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for n, one in enumerate(value):
            check(one, schema[0], f"{where}[{n}]")
    elif isinstance(schema, dict):
        assert isinstance(value, dict), where
        if "*" in schema:
            assert all(isinstance(one, schema["*"]) for one in value.values()), where
            return
        names = {name.rstrip("?"): kind for name, kind in schema.items()}
        assert set(value) <= set(names), where
        assert {name for name in schema if not name.endswith("?")} <= set(value), where
        for name, one in value.items():
            check(one, names[name], f"{where}.{name}")
    else:
        assert type(value) is schema, where


def exported(run: RunRecord, folder: Path, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One interview's aggregate and samples, checked against the schemas and against each other."""
    whole, samples = {}, []
    paths = every_eval_ever(run, folder, **more)
    assert sorted(paths) == sorted(p for p in folder.rglob("*") if p.is_file())
    for path in paths:
        where = path.relative_to(folder).as_posix()
        assert FILE.fullmatch(where)
        if path.suffix == ".json":
            whole = json.loads(path.read_text())
            check(whole, AGGREGATE)
            for result in whole["evaluation_results"]:
                metric, score = result["metric_config"], result["score_details"]["score"]
                assert float(metric["min_score"]) <= score <= float(metric["max_score"])
            details = whole["model_info"]["additional_details"]
            assert details["deployment_type"] in ("self_deployed", "externally_managed", "unknown")
            assert details["model_availability"] in ("open_weights", "closed_weights", "unknown")
        else:
            samples = [json.loads(line) for line in path.read_text().splitlines()]
            for sample in samples:
                check(sample, SAMPLE)
    if samples:
        link = whole["detailed_evaluation_results"]
        data = (folder / link["file_path"]).read_bytes()
        assert link["checksum"] == hashlib.sha256(data).hexdigest()
        assert link["total_rows"] == len(samples)
        assert {s["evaluation_id"] for s in samples} == {whole["evaluation_id"]}
        assert {s["model_id"] for s in samples} == {whole["model_info"]["id"]}
        ids = [result["evaluation_result_id"] for result in whole["evaluation_results"]]
        assert {s["evaluation_result_id"] for s in samples} <= set(ids)
        assert len(set(ids)) == len(ids)
    return whole, samples


def test_an_interview_becomes_an_aggregate_and_samples(make: SimpleNamespace, tmp_path: Path) -> None:
    run = record(make)
    whole, samples = exported(run, tmp_path)
    assert [r["evaluation_name"] for r in whole["evaluation_results"]] == ["mmmu", "mmmu.ability", "mmmu.algebra"]
    accuracy, ability, algebra = (result["score_details"] for result in whole["evaluation_results"])
    assert accuracy["score"] == 0.612
    assert accuracy["uncertainty"]["standard_error"]["value"] == 0.03
    assert accuracy["uncertainty"]["confidence_interval"] == {
        "lower": 0.551,
        "upper": 0.671,
        "confidence_level": 0.9,  # the record's .95 is that of each bound
        "method": "design-based",
    }
    assert ability["score"] == 1.234
    assert algebra["score"] == 0.7
    assert whole["model_info"]["id"] == "local/vlm-2b-step-4000"
    assert float(whole["retrieved_timestamp"]) == 1935817689.0
    assert [s["evaluation"] for s in samples] == [
        {"score": 1.0, "is_correct": True},
        {"score": 0.0, "is_correct": False},
    ]  # the answer without a score is neither right nor wrong
    assert "/" not in json.dumps(whole["evaluation_results"][0]["source_data"])


def test_the_same_record_gives_the_same_files(make: SimpleNamespace, tmp_path: Path) -> None:
    run = record(make)
    paths = every_eval_ever(run, tmp_path)
    before = [path.read_bytes() for path in paths]
    assert every_eval_ever(run, tmp_path) == paths
    assert [path.read_bytes() for path in paths] == before
    run.run = "another"
    assert not set(every_eval_ever(run, tmp_path)) & set(paths)
    run.evaluations *= 2
    assert len(set(every_eval_ever(run, tmp_path / "twice"))) == 4


def test_a_bank_at_hand_adds_what_was_asked(make: SimpleNamespace, tmp_path: Path) -> None:
    items = [
        Item("q1", "2 + 2?", "4", category=("algebra",)),
        Item("q2", "", "B", grader="choice", choices=("x", "y"), messages=({"role": "user", "content": "x or y?"},)),
        Item("q3", "changed since", "1"),
    ]
    bank = ItemBank("mmmu", [item.id for item in items], items, np.ones((3, 1)), np.zeros(3))
    questions = [asked(n, item=item.id, item_hash=item.content_hash) for n, item in enumerate(items, start=1)]
    questions[2].item_hash = "another"
    _, samples = exported(record(make, *questions), tmp_path, banks={"mmmu": bank})
    assert samples[0]["input"] == {"raw": "2 + 2?", "reference": ["4"]}
    assert json.loads(samples[1]["input"]["raw"]) == [{"role": "user", "content": "x or y?"}]
    assert samples[1]["input"]["choices"] == ["x", "y"]
    assert samples[2]["input"] == {"raw": "", "reference": []}
    canonical = b'{"raw":"2 + 2?","reference":["4"]}'
    assert [s["sample_hash"] for s in samples[::2]] == [hashlib.sha256(canonical).hexdigest(), None]


def test_a_projection_serves_where_nothing_was_drawn_and_nothing_is_left_out_silently(
    make: SimpleNamespace, tmp_path: Path
) -> None:
    run = record(make, accuracy=None)
    whole, _ = exported(run, tmp_path)
    accuracy = whole["evaluation_results"][0]["score_details"]
    assert accuracy["score"] == 0.605
    assert accuracy["uncertainty"]["confidence_interval"]["method"] == "model-based"
    assert "standard_error" not in accuracy["uncertainty"]
    void = make.interview(accuracy=None, accuracy_model=None, theta=None, standard_error=None)
    assert every_eval_ever(make.record([void]), tmp_path / "void") == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B"),
        ("../../../etc/passwd", "_.._.._etc/passwd"),
        ("/", "local/unnamed"),
        ("..", "local/_"),
        ("a\\b:c*?", "local/a_b_c_"),
        ("CON/nul.bin", "CON_/nul.bin_"),
        ("data", "local/data_"),
        ("é\x00", "local/_"),
        ("x" * 500, "local/" + "x" * 100),
        ("", "local/unnamed"),
    ],
)
def test_names_stay_within_the_folder(make: SimpleNamespace, tmp_path: Path, name: Any, folder: str) -> None:
    whole, _ = exported(record(make, subject={"name": name}), tmp_path / "in")
    assert whole["model_info"]["id"] == folder
    assert whole["detailed_evaluation_results"]["file_path"].startswith(f"data/mmmu/{folder}/")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@given(st.data())
def test_hostile_records_keep_the_schemas(
    make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    question = asked(1, item=data.draw(TEXT), text=data.draw(TEXT), score=data.draw(NUMBER), seconds=data.draw(NUMBER))
    changes = {"name": data.draw(st.text(max_size=5)), "policy": {"stream": data.draw(TEXT)}}
    subject = {"name": data.draw(TEXT), "decoding": {"temperature": data.draw(NUMBER | TEXT)}}
    run = record(make, question, asked(2), subject=subject, **changes)
    run.started = data.draw(st.text(max_size=5) | st.just("2031-05-06T07:08:09"))
    exported(run, tmp_path_factory.mktemp("export"))


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


def test_a_study_has_a_row_a_subject_and_quantity(make: SimpleNamespace) -> None:
    rows = [json.loads(line) for line in studies_jsonl(studied(make))]
    peers, network = rows[:3], rows[3:]
    assert [(row["subject"], row["estimate"], row["rank"]) for row in peers] == [
        ("ant", 3.0, 3.0),
        ("bee", 3.4, 2.0),
        ("cat", 3.8, 1.0),
    ]
    assert peers[2] == {
        "schema_version": 1,
        "run": "20310506T070809000Z-00000000",
        "started": "2031-05-06T07:08:09Z",
        "evaluation": "council",
        "kind": "peers",
        "candidate": "cat",
        "metric": "score",
        "subject": "cat",
        "node": "",
        "checkpoint": "c" * 64,
        "estimate": 3.8,
        "low": 3.8 - 0.1,
        "high": 3.8 + 0.1,
        "confidence": 0.95,
        "method": "model-based",
        "standard_error": 0.06,
        "rank": 1.0,
        "rank_best": 1,
        "rank_worst": 1,
        "asked": 8,
        "size": 9,
        "unit": "rounds",
        "void": "",
    }
    assert {(row["subject"], row["checkpoint"]) for row in network} == {("pupil", "p" * 64)}
    assert [(row["metric"], row["node"], row["estimate"]) for row in network] == [
        ("energy", "", 0.4),
        ("auc", "first", 1.7),
        ("auc", "second", 2.5),
        ("last_level", "first", 2.0),
        ("last_level", "second", 3.0),
    ]
    assert not list(studies_jsonl(record(make)))
    assert not list(responses_jsonl(studied(make)))
    (void,) = {json.loads(line)["void"] for line in studies_jsonl(studied(make, make.study(error="nobody agrees")))}
    assert void == "nobody agrees"


def test_the_documented_columns_of_studies_are_those_written(make: SimpleNamespace, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/exports.md").read_text().partition("## Panels and networks")[2]
    documented = re.findall(r"^\| `(\w+)` \|", page.partition("\n## ")[0], re.MULTILINE)
    run = studied(make)
    assert documented == list(json.loads(next(studies_jsonl(run))))
    write_export(run, tmp_path / "s.csv", "csv", studies=True)
    write_export(run, tmp_path / "s.jsonl", "jsonl", studies=True)
    assert (tmp_path / "s.jsonl").read_text().splitlines() == list(studies_jsonl(run))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_bytes().decode(), newline="")))
    assert list(rows[0]) == documented
    assert [row["estimate"] for row in rows[:3]] == ["3.0", "3.4", "3.8"]
    assert rows[3]["standard_error"] == rows[3]["rank"] == ""


def whole_studies(run: RunRecord, folder: Path) -> dict[str, dict[str, Any]]:
    """By model what its one file holds, checked against the schema."""
    found: dict[str, dict[str, Any]] = {}
    for path in every_eval_ever(run, folder):
        assert FILE.fullmatch(path.relative_to(folder).as_posix())
        whole = json.loads(path.read_text())
        check(whole, AGGREGATE)
        for result in whole["evaluation_results"]:
            metric, score = result["metric_config"], result["score_details"]["score"]
            assert float(metric["min_score"]) <= score <= float(metric["max_score"])
        found[whole["model_info"]["id"]] = whole
    return found


def test_a_study_becomes_an_aggregate_of_each_model(make: SimpleNamespace, tmp_path: Path) -> None:
    found = whole_studies(studied(make), tmp_path)
    assert list(found) == ["local/ant", "local/bee", "local/cat", "local/pupil"]
    assert len(list((tmp_path / "data" / "council").rglob("*.json"))) == 3
    (score,) = found["local/cat"]["evaluation_results"]
    assert score["evaluation_name"] == "council.score"
    assert score["score_details"] == {
        "score": 3.8,
        "uncertainty": {
            "standard_error": {"value": 0.06},
            "num_samples": 8,
            "confidence_interval": {
                "lower": 3.8 - 0.1,
                "upper": 3.8 + 0.1,
                "method": "model-based",
                "confidence_level": 0.9,
            },
        },
    }
    pupil = found["local/pupil"]["evaluation_results"]
    names = ["web.energy", "web.auc.first", "web.auc.second", "web.last_level.first", "web.last_level.second"]
    assert [one["evaluation_name"] for one in pupil] == names
    assert len({one["evaluation_result_id"] for one in pupil}) == 5
    assert pupil[0]["metric_config"]["max_score"] == 1.0
    assert pupil[0]["generation_config"]["generation_args"] == {"temperature": 0.5}
    assert whole_studies(studied(make, make.study(error="nobody agrees")), tmp_path / "void") == {}


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
def test_no_study_breaks_an_export(
    make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    numbers: dict[str, Any] = {name: data.draw(NUMBER) for name in ("estimate", "low", "confidence", "error")}
    row = QuantityRecord(data.draw(TEXT), method=data.draw(TEXT), **numbers)
    run = studied(make, make.study(metrics={data.draw(TEXT): [row], "energy": [row]}, candidate=data.draw(TEXT)))
    run.evaluations[0].kind = data.draw(st.sampled_from(["peers", "network"]))
    run.evaluations[0].name = data.draw(TEXT)
    for line in studies_jsonl(run):
        found = json.loads(line, parse_constant=pytest.fail)
        line.encode("ascii")
        assert found["estimate"] is None or isinstance(found["estimate"], float)
        assert isinstance(found["subject"], str)
    head, *cells = csv.reader(io.StringIO(studies_csv(run), newline=""))
    assert all(len(one) == len(head) and not one[head.index("subject")].startswith(tuple("=+-@\t\r")) for one in cells)
    whole_studies(run, tmp_path_factory.mktemp("export"))
    assert all(math.isfinite(value) for value in mlflow_metrics(run).values())
