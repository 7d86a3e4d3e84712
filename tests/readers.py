"""Every reader of files, each with a sound input, for the tests of unusual and of damaged files."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from made import made

from pytest_adaptive_eval.banks import read_bank, write_bank
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.banks.responses.formats import read_format_responses
from pytest_adaptive_eval.banks.responses.ids import rename_items
from pytest_adaptive_eval.calibration.parameters import read_parameters
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.cli.command import command_parser
from pytest_adaptive_eval.cli.settings import given_settings
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.evaluation.toml import read_toml
from pytest_adaptive_eval.extensions.studies.network.labels import read_labels
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.checkpoint.folder import preflight, preflight_open_clip
from pytest_adaptive_eval.models.replay import ReplayModel
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.records.baseline import read_baseline
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_files import read_run, write_run
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord


@dataclass(frozen=True, slots=True)
class Reader:
    """One way in which a file is read.

    Attributes:
        file: The file, relative to a folder.
        prepare: Writes sound input into a folder.
        read: Reads what is in the folder. Returns sentences about files that were left out, if there are any.
        optional: The file only saves time: a bad one is as good as none.
    """

    file: str
    prepare: Callable[[Path], object]
    read: Callable[[Path], object]
    optional: bool = False


def _record(run: str = "20310506T000000000Z-00000001", bank: str = "b1") -> RunRecord:
    interview = made(
        EvaluationRecord,
        name="text",
        nodeid="t.toml::text",
        subject={"name": "step-1", "checkpoint": "c1"},
        bank={"name": "x", "content_hash": bank, "scale": "s1"},
        policy={},
        asked=3,
        scored=3,
        size=3,
        statuses={"ok": 3},
        stop="BUDGET",
        stop_sentence="the budget is spent",
        theta=[0.1],
        standard_error=[0.2],
        accuracy={"estimate": 0.5, "low": 0.4, "high": 0.6},
        accuracy_model=None,
        administrations=[Administration(i + 1, f"q-{i}", f"h{i}", text="0", score=1.0) for i in range(3)],
    )
    return RunRecord(run, datetime(2031, 5, 6, tzinfo=UTC).isoformat(), exit_status=0, evaluations=[interview])


def _items() -> list[Item]:
    return [Item(id=f"q-{i}", prompt=f"{i}?", answer=str(i), category=("sums",)) for i in range(3)]


def _write(name: str, content: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def _bank(folder: Path) -> None:
    write_bank(folder / "x.bank", _items(), discrimination=np.ones(3), intercept=np.zeros(3), subjects=["m1"])


def _read_bank(folder: Path) -> None:
    list(read_bank(folder / "x.bank").items)


def _log(folder: Path) -> None:
    about = {"eval": {"model": "m", "task": "t", "created": "2031-05-06T00:00:00+00:00"}}
    sample = {"id": "q-0", "epoch": 1, "scores": {"match": {"value": "C"}}}
    (folder / "log.json").write_text(json.dumps({"version": 2, "status": "success", **about, "samples": [sample]}))
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", **about}))
        archive.writestr("summaries.json", json.dumps([sample]))


_SAMPLES, _TABLE = "samples_arc_2031-05-06T00-00-00.jsonl", "r.parquet"
_IMAGE = "data:image/png;base64,iVBORw0KGgo="


def _whole_log(folder: Path) -> None:
    content = [{"type": "text", "text": "What?"}, {"type": "image", "image": "attachment://a"}]
    sample = {
        "id": "q-0",
        "epoch": 1,
        "input": [{"role": "system", "content": "s"}, {"role": "user", "content": content}],
        "choices": ["x", "y"],
        "target": "A",
        "scores": {"match": {"value": "C"}},
        "output": {"choices": [{"message": {"content": "A"}}]},
        "attachments": {"a": _IMAGE},
    }
    failed = {"id": "q-1", "epoch": 1, "error": {"message": "boom"}, "scores": {}}
    about = {"version": 2, "status": "success", "eval": {"model": "m", "task": "t"}}
    (folder / "log.json").write_text(json.dumps({**about, "samples": [sample, failed]}))


def _helm(folder: Path) -> None:
    spec = {"name": "mmlu:subject=x,model=m", "adapter_spec": {"model": "org/m"}}
    stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1, "mean": 1.0}
    instance = {
        "input": {"text": "What?"},
        "references": [{"output": {"text": "x"}, "tags": ["correct"]}, {"output": {"text": "y"}, "tags": []}],
        "id": "id1",
    }
    state = {
        "instance": instance,
        "output_mapping": {"A": "x", "B": "y"},
        "result": {"completions": [{"text": " A"}]},
    }
    files = {
        "run_spec": spec,
        "per_instance_stats": [{"instance_id": "id1", "train_trial_index": 0, "stats": [stat]}],
        "scenario_state": {"request_states": [state]},
    }
    for name, data in files.items():
        (folder / f"{name}.json").write_text(json.dumps(data))


def _whole_sample(folder: Path) -> None:
    row = {
        "doc_id": 0,
        "doc_hash": "h",
        "doc": {"id": "q-0"},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " a"}, "gen_args_1": {"arg_0": "Q", "arg_1": " b"}},
        "filtered_resps": [["-1", "True"], ["-2", "False"]],
        "filter": "none",
        "acc": 1.0,
        "metrics": ["acc"],
    }
    (folder / _SAMPLES).write_text(json.dumps(row) + "\n")
    (folder / "results_2031-05-06T00-00-00.json").write_text('{"model_name": "org/m"}')


def _parquet(folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow reads parquet (extra parquet)")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([{"id": "q-0", "model": "m", "correct": True}]), folder / _TABLE)


def _workbook(folder: Path) -> None:
    pytest.importorskip("python_calamine", reason="workbooks are read by python-calamine (extra xlsx)")
    import openpyxl

    book = openpyxl.Workbook()
    for row in (("index", "prediction", "hit"), (1, "A", 1), (2, "B", 0)):
        book.active.append(row)
    book.save(folder / "m_MMBench_judged.xlsx")


def _samples(folder: Path) -> None:
    row = {"doc_id": 0, "doc": {"q": "1"}, "target": "1", "filter": "none", "acc": 1.0, "metrics": ["acc"]}
    inside = folder / "org__model"
    inside.mkdir()
    (inside / "samples_arc_2031-05-06T00-00-00.jsonl").write_text(json.dumps(row) + "\n")


def _checkpoint(folder: Path) -> None:
    pytest.importorskip("safetensors", reason="headers of weight files are read by safetensors (extra hf)")
    (folder / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "model-00001-of-00001.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)
    index = {"weight_map": {"w": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "cache").mkdir()
    preflight(folder, cache=folder / "cache")


def _clip(folder: Path) -> None:
    pytest.importorskip("safetensors", reason="headers of weight files are read by safetensors (extra hf)")
    (folder / "open_clip_config.json").write_text("{}")
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "open_clip_model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)


def _hub(folder: Path) -> None:
    inside = folder / "models--org--name" / "snapshots" / "abc"
    inside.mkdir(parents=True)
    _checkpoint(inside)
    (inside.parent / "other").mkdir()  # so that the reference is needed
    (inside.parents[1] / "refs").mkdir()
    (inside.parents[1] / "refs" / "main").write_text("abc")


def _runs(folder: Path) -> None:
    write_run(folder, _record())
    History(folder)
    write_run(folder, _record("20310507T000000000Z-00000002"))


def _bank_and_record(folder: Path) -> None:
    _bank(folder)
    record = _record(bank=read_bank(folder / "x.bank").content_hash)
    (folder / "a.json").write_text(json.dumps(record.to_json()))
    with zipfile.ZipFile(folder / "runs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "a.json", "runs/a.json")


def _archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "runs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("runs/a.json", json.dumps(_record().to_json()))


def _history(folder: Path) -> list[str]:
    """Read a history; return what could not be read."""
    return History(folder).unread


def _journal(folder: Path) -> None:
    with CompletionStore(folder / "journal" / "a.sqlite") as store:
        for number in range(9):
            store.store(f"key {number}", Completion("answer " * 100), "q-1")


def _stored(folder: Path) -> None:
    with CompletionStore(folder / "journal" / "a.sqlite") as store:
        for number in range(9):
            completion = store.lookup(f"key {number}")
            assert completion in (None, Completion("answer " * 100)), "another answer"


def _responses(name: str) -> Callable[[Path], object]:
    return lambda folder: read_responses(folder / name)


def _mapped(name: str) -> Callable[[Path], object]:
    return lambda folder: read_responses(folder / name, format="mapping")


def _baseline(name: str) -> Callable[[Path], object]:
    return lambda folder: read_baseline(name, [folder], read_bank(folder / "x.bank"), "text")


def _command(*arguments: str) -> Callable[[Path], object]:
    """Run the command in the folder: its mistakes of use are written to standard error, which the caller reads."""

    def run(folder: Path) -> None:
        code = main([argument.replace("{}", str(folder)) for argument in arguments])
        if code == 4:
            raise UsageError("said on standard error")
        if code not in (0, 1):
            raise AssertionError(f"exit code {code}")

    return run


def _with(*prepared: Callable[[Path], object]) -> Callable[[Path], object]:
    def prepare(folder: Path) -> None:
        for one in prepared:
            one(folder)

    return prepare


_MATRIX = "subject,q-0,q-1,q-2\nm1,1,0,1\nm2,0,0,1\nm3,1,1,0\nm4,0,1,0\n"
_PARAMETERS = "".join(json.dumps({"id": f"q-{i}", "difficulty": 0.5}) + "\n" for i in range(3))
_TOML = '[[eval]]\nname = "text"\nbank = "x.bank"\n\n[[eval.gate]]\nmetric = "accuracy"\nat_least = 0.5\n'
_ITEMS = "".join(json.dumps(item.to_json()) + "\n" for item in _items())
_ANSWERS = json.dumps({"id": "q-0", "text": "0"}) + "\n"
_PYIRT = json.dumps({"subject_id": "m1", "responses": {"q-0": 1, "q-1": 0}}) + "\n"
_TIDY = "subject,item,format,score\nm1,q-0,text,1\nm1,q-0,image+text,0\n"

_REVIEW = {
    "index": 1,
    "target": "3",
    "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "3"}],
    "sample_score": {"score": {"value": {"acc": 1.0}, "prediction": "3", "main_score_name": "acc"}, "group_id": 1},
}
_ROW = {
    "id": 1,
    "model": "m",
    "question": "Q",
    "options": "['a', 'b']",
    "answer": "A",
    "pred": "A",
    "image": _IMAGE,
    "correct": True,
}

READERS = {
    "items": Reader("items.jsonl", _write("items.jsonl", _ITEMS), lambda f: read_bank(f / "items.jsonl")),
    "bank.json": Reader("x.bank/bank.json", _bank, _read_bank),
    "items.jsonl of a bank": Reader("x.bank/items.jsonl", _bank, _read_bank),
    "params.npz": Reader("x.bank/params.npz", _bank, _read_bank),
    "csv": Reader("r.csv", _write("r.csv", _MATRIX), _responses("r.csv")),
    "csv.gz": Reader("r.csv.gz", _write("r.csv.gz", gzip.compress(_MATRIX.encode())), _responses("r.csv.gz")),
    "families": Reader(
        "f.csv",
        _with(_write("f.csv", "subject,family\nm1,a\nm2,a\nm3,b\nm4,b\n"), _write("r.csv", _MATRIX)),
        lambda f: read_responses(f / "r.csv", families=f / "f.csv"),
    ),
    "py-irt": Reader("r.jsonl", _write("r.jsonl", _PYIRT), _responses("r.jsonl")),
    "formats": Reader("r.csv", _write("r.csv", _TIDY), lambda f: read_format_responses([f / "r.csv"])),
    "inspect json": Reader("log.json", _log, _responses("log.json")),
    "inspect eval": Reader("log.eval", _log, _responses("log.eval")),
    "inspect json with texts": Reader("log.json", _whole_log, _responses("log.json")),
    "lm-eval with texts": Reader(_SAMPLES, _whole_sample, _responses(_SAMPLES)),
    "lm-eval results": Reader("results_2031-05-06T00-00-00.json", _whole_sample, _responses(_SAMPLES), optional=True),
    "helm statistics": Reader("per_instance_stats.json", _helm, _responses("per_instance_stats.json")),
    "helm specification": Reader("run_spec.json", _helm, _responses("per_instance_stats.json")),
    "helm requests": Reader("scenario_state.json", _helm, _responses("per_instance_stats.json")),
    "evalscope": Reader("e.jsonl", _write("e.jsonl", json.dumps(_REVIEW) + "\n"), _responses("e.jsonl")),
    "mapped parquet": Reader(_TABLE, _parquet, _mapped(_TABLE)),
    "mapped lines": Reader("r.jsonl", _write("r.jsonl", json.dumps(_ROW) + "\n"), _mapped("r.jsonl")),
    "mapped object": Reader("r.json", _write("r.json", json.dumps({"m": _ROW, "n": _ROW})), _mapped("r.json")),
    "mapped table": Reader("r.csv", _write("r.csv", "id,model,correct\n1,m,yes\n2,m,no\n"), _mapped("r.csv")),
    "mapping": Reader(
        "m.toml",
        _with(
            _write("m.toml", "item = 'id'\nsubject = 'model'\nscore = 'pred == answer'\n"),
            _write("r.jsonl", json.dumps(_ROW) + "\n"),
        ),
        lambda f: given_settings(
            command_parser().parse_args(["gate", str(f / "r.jsonl"), "--config", str(f / "m.toml")])
        ),
    ),
    "ids": Reader(
        "i.csv",
        _with(_write("i.csv", "q-0,a\nq-1,b\nq-2,c\n"), _write("r.csv", _MATRIX)),
        lambda f: rename_items(read_responses(f / "r.csv"), str(f / "i.csv")),
    ),
    "record as responses": Reader(
        "a.json", lambda f: (f / "a.json").write_text(json.dumps(_record().to_json())), _responses("a.json")
    ),
    "lm-eval": Reader(
        "org__model/samples_arc_2031-05-06T00-00-00.jsonl",
        _samples,
        _responses("org__model/samples_arc_2031-05-06T00-00-00.jsonl"),
    ),
    "tsv of judged answers": Reader(
        "m_MMBench_judged.tsv",
        _write("m_MMBench_judged.tsv", "index\tprediction\thit\n1\tA\t1\n"),
        _responses("m_MMBench_judged.tsv"),
    ),
    "replay csv": Reader("r.csv", _write("r.csv", _MATRIX), lambda f: ReplayModel.load(f / "r.csv", "m1")),
    "replay csv.gz": Reader(
        "r.csv.gz",
        _write("r.csv.gz", gzip.compress(_MATRIX.encode())),
        lambda f: ReplayModel.load(f / "r.csv.gz", "m1"),
    ),
    "replay jsonl": Reader("a.jsonl", _write("a.jsonl", _ANSWERS), lambda f: ReplayModel.load(f / "a.jsonl")),
    "baseline answers": Reader("r.csv", _with(_bank, _write("r.csv", _MATRIX)), _baseline("r.csv#m1")),
    "baseline record": Reader("a.json", _bank_and_record, _baseline("a.json")),
    "baseline archive": Reader("runs.zip", _bank_and_record, _baseline("runs.zip")),
    "record": Reader(
        "a.json", lambda f: (f / "a.json").write_text(json.dumps(_record().to_json())), lambda f: read_run(f / "a.json")
    ),
    "history": Reader("runs/20310507T000000000Z-00000002.json", _runs, _history),
    "history index": Reader("index/history.sqlite", _runs, _history, optional=True),
    "history archive": Reader("runs.zip", _archive, lambda f: _history(f / "runs.zip")),
    "journal": Reader("journal/a.sqlite", _journal, _stored),
    "toml": Reader("a.eval.toml", _write("a.eval.toml", _TOML), lambda f: read_toml(f / "a.eval.toml")),
    "labels": Reader(
        "l.jsonl",
        _write("l.jsonl", '{"node": "a", "item": "a-1-0", "fault": false}\n'),
        lambda f: bool(read_labels(f / "l.jsonl")),
    ),
    "parameters": Reader(
        "p.jsonl",
        _write("p.jsonl", _PARAMETERS),
        lambda f: read_parameters(f / "p.jsonl", ["q-0", "q-1", "q-2"]),
    ),
    "parameters.gz": Reader(
        "p.jsonl.gz",
        _write("p.jsonl.gz", gzip.compress(_PARAMETERS.encode())),
        lambda f: read_parameters(f / "p.jsonl.gz", ["q-0", "q-1", "q-2"]),
    ),
    "config.json": Reader("config.json", _checkpoint, preflight),
    "tokenizer.json": Reader("tokenizer.json", _checkpoint, preflight),
    "chat template": Reader("chat_template.jinja", _checkpoint, preflight),
    "generation config": Reader("generation_config.json", _checkpoint, preflight),
    "weights": Reader("model-00001-of-00001.safetensors", _checkpoint, preflight),
    "index of weights": Reader("model.safetensors.index.json", _checkpoint, preflight),
    "hashes of weights": Reader(
        "cache/checkpoint-hashes.json", _checkpoint, lambda f: preflight(f, cache=f / "cache"), optional=True
    ),
    "hub reference": Reader("models--org--name/refs/main", _hub, lambda f: preflight(f / "models--org--name")),
    "open_clip config": Reader("open_clip_config.json", _clip, preflight_open_clip),
    "open_clip weights": Reader("open_clip_model.safetensors", _clip, preflight_open_clip),
    "reference of a correlation": Reader(
        "s.csv",
        _with(_runs, _write("s.csv", "subject,score\nstep-1,0.5\n")),
        _command("history", "--correlate", "{}/s.csv", "--from", "{}"),
    ),
    "xlsx": Reader("m_MMBench_judged.xlsx", _workbook, _responses("m_MMBench_judged.xlsx")),
}
