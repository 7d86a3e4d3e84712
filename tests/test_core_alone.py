"""The package without its extensions: the main job runs, and what needs an extension says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, of which the extensions were removed."""
    folder = tmp_path_factory.mktemp("core")
    unwanted = shutil.ignore_patterns("extensions", "__pycache__")
    shutil.copytree(ROOT / "pytest_adaptive_eval", folder / "pytest_adaptive_eval", ignore=unwanted)
    return folder


def run(core: Path, cwd: Path, *command: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(core), "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-P", "-m", *command], cwd=cwd, capture_output=True, text=True, env=environment, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_an_interview_and_its_gate_need_no_extension(core: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        "".join(
            f'{{"id": "q{n}", "prompt": "{n} + 1?", "answer": "{n + 1}", "grader": "numeric"}}\n' for n in range(40)
        )
    )
    (tmp_path / "answers.jsonl").write_text("".join(f'{{"id": "q{n}", "text": "{n + 1}"}}\n' for n in range(40)))
    (tmp_path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "q.jsonl"\n[[eval.gate]]\nat_least = 0.5\n')
    code, output = run(core, tmp_path, "pytest", "--adaptive-eval", "--adaptive-eval-model=replay:answers.jsonl")
    assert code == 0, output
    assert "PASS  q-accuracy" in output


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("import", "data.jsonl"), "invalid choice: 'import'"),
        (
            ("report", "record.json", "--export", "responses=rows.csv"),
            "this needs pytest_adaptive_eval.extensions.exports",
        ),
    ],
    ids=["verb", "option"],
)
def test_a_command_that_needs_an_extension_names_it(
    core: Path, tmp_path: Path, command: tuple[str, ...], told: str
) -> None:
    shutil.copy(next((ROOT / "tests" / "golden" / "stored" / "records").glob("*.json")), tmp_path / "record.json")
    code, output = run(core, tmp_path, "pytest_adaptive_eval", *command)
    assert code == 4, output
    assert told in output
    assert "which this installation lacks" in output or "this installation lacks pytest_adaptive_eval.ext" in output


@pytest.mark.slow
def test_an_evaluation_of_a_kind_that_an_extension_has_says_so(core: Path, tmp_path: Path) -> None:
    (tmp_path / "adaptive-eval.toml").write_text('[[eval]]\nname = "panel"\nkind = "peers"\n')
    code, output = run(core, tmp_path, "pytest", "--adaptive-eval")
    assert code == 4, output
    assert "kind 'peers' is not known" in output
    assert "this installation lacks pytest_adaptive_eval.extensions" in " ".join(output.split())


@pytest.mark.slow
def test_the_main_job_runs_without_extensions(core: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the checkpoints need the extra hf")
    code, output = run(core, ROOT, "pytest", "--adaptive-eval", f"--adaptive-eval-dir={tmp_path / 'run'}")
    assert code == 0, output
    assert output.count("PASS  ") == 3
