"""The example on a pretrained model, with the checkpoint that it makes and a published benchmark.

``ADAPTIVE_EVAL_PRETRAINED`` names a folder in which ``examples/pretrained/checkpoint.py`` ran.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
MODEL = Path(os.environ.get("ADAPTIVE_EVAL_PRETRAINED", "no folder"))
DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data"))
BENCHMARK = DATA / "benchmarks" / "arc" / "ARC-Challenge-Test.jsonl.gz"

if not (MODEL / "smollm2").is_dir() or not BENCHMARK.is_file():
    pytest.skip("no pretrained model: ADAPTIVE_EVAL_PRETRAINED names none, or no data", allow_module_level=True)


def test_one_model_through_three_doors(tmp_path: Path) -> None:
    folder = tmp_path / "pretrained"
    shutil.copytree(ROOT / "examples" / "pretrained", folder)
    for name in ("smollm2", "smollm2.gguf"):
        (folder / name).symlink_to(MODEL / name)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": ""}
    commands = (
        ["-m", "pytest_adaptive_eval", "import", str(BENCHMARK), "-o", "benchmark.bank", "--preset", "arc"],
        ["-m", "pytest", "--adaptive-eval", "--adaptive-eval-record=record.json", "-p", "no:cacheprovider"],
    )
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr  # a small budget may not decide a gate
    record = json.loads((folder / "record.json").read_text())
    by_folder, by_server, by_likelihood = record["interviews"]
    for interview in record["interviews"]:
        assert interview["error"] == ""
        assert interview["asked"] == interview["scored"] > 0
    written = [{a["item"]: a["score"] for a in interview["administrations"]} for interview in (by_folder, by_server)]
    both = written[0].keys() & written[1].keys()
    agree = sum(written[0][item] == written[1][item] for item in both)
    assert agree >= 0.8 * len(both), "the same weights, whose arithmetic differs in the last digits"
    assert by_likelihood["administrations"][0]["likelihood"]["log_likelihoods"]
