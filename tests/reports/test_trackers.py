"""Runs in MLflow and Weights & Biases: what is logged, and the record that comes back as a baseline."""

import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.errors import BaselineError, BaselineMissing, UsageError
from pytest_adaptive_eval.extensions.exports.trackers import fetch_run, log_mlflow, log_wandb, mlflow_metrics
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.baseline import is_tracked, read_baseline
from pytest_adaptive_eval.records.run_record import RunRecord

TAGS = {
    "adaptive_eval.subject": "vlm-2b-step-4000",
    "adaptive_eval.checkpoint": "c" * 16,
    "adaptive_eval.bank": "mmmu",
    "adaptive_eval.bank_hash": "b" * 16,
}


@pytest.fixture
def record(make: SimpleNamespace) -> RunRecord:
    return make.record([make.interview()], [make.gate("PASS")])


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Stand for the package: it notes calls, and keeps artifacts in a folder."""
    module: Any = ModuleType("mlflow")
    module.calls = []
    module.active = None
    module.active_run = lambda: module.active
    module.start_run = lambda run_name: module.calls.append(("start", run_name)) or nullcontext()
    module.log_metrics = lambda metrics: module.calls.append(("metrics", metrics))
    module.set_tags = lambda tags: module.calls.append(("tags", tags))

    def log_artifact(path: str, folder: str) -> None:
        module.calls.append(("artifact", folder))
        (tmp_path / folder).mkdir()
        shutil.copy(path, tmp_path / folder)

    def download_artifacts(run_id: str, artifact_path: str, dst_path: str) -> str:
        if run_id != "r1":
            raise RuntimeError("no such run at https://user:SECRET@mlflow.example.com")
        return shutil.copy(tmp_path / artifact_path, dst_path)

    module.log_artifact = log_artifact
    module.artifacts = SimpleNamespace(download_artifacts=download_artifacts)
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


@pytest.mark.parametrize("active", [None, "a run of the caller"])
def test_a_run_is_logged_to_mlflow_and_comes_back(mlflow: Any, record: RunRecord, active: str | None) -> None:
    mlflow.active = active
    log_mlflow(record)
    tags = {"adaptive_eval.run": record.run, **TAGS}
    expected = [("metrics", mlflow_metrics(record)), ("tags", tags), ("artifact", "adaptive-eval")]
    assert mlflow.calls == (expected if active else [("start", record.run), *expected])
    assert fetch_run("mlflow:r1").to_json() == record.to_json()
    bank = ItemBank.uncalibrated("mmmu", [Item("q-1", "?", "a")])
    with pytest.raises(BaselineMissing, match="mlflow:r1: the run asked no item of the bank"):
        read_baseline("mlflow:r1", [Path()], bank, "mmmu")  # its interview has no answers
    with pytest.raises(BaselineError, match="adaptive-eval report --export mlflow") as caught:
        fetch_run("mlflow:r2")
    assert "no such run at https://mlflow.example.com" in str(caught.value)


def test_mlflows_complaints_are_told_without_a_password(
    mlflow: Any, record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("API request to https://user:SECRET@mlflow.example.com failed")

    mlflow.active_run = fail
    with pytest.raises(UsageError, match=r"API request to https://mlflow\.example\.com failed") as caught:
        log_mlflow(record)
    assert "SECRET" not in str(caught.value)
    for name, log in (("mlflow", log_mlflow), ("wandb", log_wandb)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError, match="pip install"):
            log(record)
        with pytest.raises(BaselineError, match=rf"pytest-adaptive-eval\[{name}\]"):
            fetch_run(f"{name}:a/b/c")


@pytest.mark.parametrize("mine", [True, False])
def test_a_run_is_logged_to_wandb_and_comes_back(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mine: bool
) -> None:
    calls: list[Any] = []

    class Artifact:
        def __init__(self, name: str, type: str) -> None:
            self.name, self.type = name, type

        def add_file(self, path: str, name: str) -> None:
            shutil.copy(path, tmp_path / name)

        def download(self, root: str) -> str:
            shutil.copy(tmp_path / "record.json", root)
            return root

    kept: dict[str, Artifact] = {}
    run = SimpleNamespace(
        id="r1",
        entity="team",
        project="models",
        config=SimpleNamespace(update=lambda tags, allow_val_change: calls.append(tags)),
        log=calls.append,
        log_artifact=lambda artifact: kept.update({f"team/models/{artifact.name}:latest": artifact}),
        finish=lambda: calls.append("finished"),
    )
    wandb: Any = ModuleType("wandb")
    wandb.run = None if mine else run
    wandb.init = lambda name: run
    wandb.Artifact = Artifact
    wandb.Api = lambda: SimpleNamespace(artifact=lambda name, type: kept[name])
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    spec = log_wandb(record)
    assert spec == "wandb:team/models/r1"
    assert calls == [{"adaptive_eval.run": record.run, **TAGS}, mlflow_metrics(record), *["finished"] * mine]
    assert fetch_run(spec).to_json() == record.to_json()
    with pytest.raises(BaselineError, match="adaptive-eval report --export wandb"):
        fetch_run("wandb:team/models/r2")


def test_only_names_of_trackers_are_taken_for_runs() -> None:
    assert is_tracked("mlflow:3f2a")
    assert not is_tracked("mlflow")
    assert not is_tracked("runs/a.json")
    assert not is_tracked("replay:a.jsonl")
