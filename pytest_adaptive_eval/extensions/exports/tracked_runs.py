"""Records that are kept in runs of MLflow and Weights & Biases."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.records.runs import read_run

#: Folder of a run's artifacts, or name and type of an artifact, and the record's file in it.
FOLDER, RECORD = "adaptive-eval", "record.json"


def without_password(error: Exception) -> str:
    """Return an error of a tracker without the password and the query that an address may hold."""
    return re.sub(r"(://)(?:[^/\s@]*@)?([^\s?]*)(?:\?\S*)?", r"\1\2", str(error))[:500]


def fetch_run(spec: str) -> RunRecord:
    """Return the record that a run of a tracker keeps.

    Raises:
        BaselineError: The tracker has no such run, the run no record, or the package of the tracker is not installed.
    """
    name, _, run = spec.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = _TRACKERS[name](run, folder)
        except ImportError as error:
            raise BaselineError(f'{spec}: pip install "pytest-adaptive-eval[{name}]"') from error
        except Exception as error:  # any exception of the server or its client
            raise BaselineError(
                f"{spec}: its record cannot be had ({without_password(error)}); log a run with adaptive-eval report "
                f"--export {name}, and give its id"
            ) from None
        return read_run(path)


def _mlflow(run: str, folder: str) -> Path:
    import mlflow

    return Path(mlflow.artifacts.download_artifacts(run_id=run, artifact_path=f"{FOLDER}/{RECORD}", dst_path=folder))


def _wandb(run: str, folder: str) -> Path:
    import wandb

    project, _, name = run.rpartition("/")
    artifact = wandb.Api().artifact(f"{project}/{FOLDER}-{name}:latest", type=FOLDER)
    return Path(artifact.download(root=folder)) / RECORD


_TRACKERS: dict[str, Callable[[str, str], Path]] = {"mlflow": _mlflow, "wandb": _wandb}
