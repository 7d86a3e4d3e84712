"""The example and the README's way in, on the real fixture checkpoints, as a user would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
EXAMPLE = ROOT / "examples" / "promotion"

pytest.importorskip("transformers", reason="the checkpoints need the extra hf")


def run(cwd: Path, tmp_path: Path, *args: str) -> tuple[int, str, dict[str, Any]]:
    record = tmp_path / "record.json"
    places = ["--adaptive-eval-dir", str(tmp_path / "run"), "--adaptive-eval-record", str(record)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--adaptive-eval", "-p", "no:cacheprovider", *places, *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "PYTEST_ADDOPTS": ""},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, json.loads(record.read_text()) if record.exists() else {}


def test_the_late_checkpoint_is_promoted(tmp_path: Path) -> None:
    junit = tmp_path / "gates.xml"
    code, output, record = run(EXAMPLE, tmp_path, "--adaptive-eval-junit", str(junit))
    assert code == 0, output
    interview, led = record["interviews"]
    assert interview["subject"]["name"] == led["subject"]["name"] == "text-late"
    assert len(interview["subject"]["checkpoint"]) == 64
    assert interview["asked"] == interview["scored"] == len(interview["administrations"])
    assert (interview["size"], interview["stop"]) == (624, "DECISION")
    assert interview["asked"] < 125, "the truth is far above the threshold, so that the budget need not be spent"
    assert "text: accuracy >= .60: " in output
    told = " ".join(output.split())
    assert "% chance of a verdict within 170 of 624 questions if the truth is 10 points away, " in told
    assert {gate["verdict"]["outcome"] for gate in record["gates"]} == {"PASS"}
    first = interview["administrations"][0]
    assert first["text"]
    assert 0 < first["propensity"] < 0.1
    assert 'failures="0"' in junit.read_text()
    said = led["interviewer"]
    assert said["interviewer"]["model"] == "interviewer"
    assert said["interviewer"]["usage"]["calls"] > said["chosen"] > 0
    assert said["fallbacks"] < said["chosen"] / 10
    assert said["embeddings"].startswith("open_clip")
    reasons = [a["reason"] for a in led["administrations"]]
    assert sum(reason.startswith("chosen because interviewer") for reason in reasons) > 0
    assert led["costs"]["interviewer"]["prompt_tokens"] > led["costs"]["subject"]["prompt_tokens"] > 0
    assert "interviewed: interviewer " in output


def test_the_regressed_checkpoint_is_refused(tmp_path: Path) -> None:
    model = str(FIXTURES / "checkpoints" / "text-regressed")
    code, output, record = run(EXAMPLE, tmp_path, "adaptive-eval.toml", "--adaptive-eval-model", model)
    assert code == 1, output
    outcomes = {gate["name"]: gate["verdict"]["outcome"] for gate in record["gates"]}
    assert outcomes["text-accuracy[at-least-0.6]"] in ("FAIL", "INCONCLUSIVE")
    sentence = next(gate["verdict"]["sentence"] for gate in record["gates"] if gate["verdict"]["outcome"] != "PASS")
    assert sentence in " ".join(output.split())


def test_the_root_gates_a_fixture_checkpoint(tmp_path: Path) -> None:
    recorded = f"replay:{FIXTURES / 'responses' / 'released-text.csv.gz'}#text-mid"
    code, output, record = run(ROOT, tmp_path, "--adaptive-eval-model", recorded, "-k", "not interviewed")
    assert code == 1, output
    assert "collected 5 items / 2 deselected" in output
    assert record["interviews"][0]["subject"]["name"] == "text-mid"


def test_a_plain_file_of_questions_and_a_checkpoint_are_enough(tmp_path: Path) -> None:
    items = (FIXTURES / "banks" / "text.items.jsonl").read_text().splitlines()[::2][:300]
    (tmp_path / "questions.jsonl").write_text("\n".join(items) + "\n")
    (tmp_path / "adaptive-eval.toml").write_text(
        '[[eval]]\nbank = "questions.jsonl"\nbudget = "30%"\nbatch = 16\n[[eval.gate]]\nat_least = 0.6\n'
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    model = str(FIXTURES / "checkpoints" / "text-late")
    code, output, record = run(tmp_path, tmp_path, "-v", "--adaptive-eval-model", model)
    assert code == 0, output
    [interview] = record["interviews"]
    assert (interview["size"], interview["stop"]) == (300, "DECISION")
    assert interview["asked"] < 90
    assert record["gates"][0]["verdict"]["interval"]["method"] == "anytime-valid"
    assert "uncalibrated bank, uniform draws" in " ".join(output.split())


def test_an_image_and_text_checkpoint_is_interviewed(tmp_path: Path) -> None:
    bank, checkpoints = FIXTURES / "banks" / "vision.bank", FIXTURES / "checkpoints"
    evaluation = '[[eval]]\nname = "{name}"\nmodel = "{model}"\nbank = "{bank}"\nbudget = "20%"\nbatch = 16\n'
    (tmp_path / "adaptive-eval.toml").write_text(
        "".join(
            evaluation.format(name=name, model=checkpoints / name, bank=bank) + "[[eval.gate]]\nat_least = 0.5\n"
            for name in ("vision-late", "vision-regressed")
        )
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    code, output, record = run(tmp_path, tmp_path)
    assert code == 1, output
    late, regressed = (gate["verdict"]["outcome"] for gate in record["gates"])
    assert late == "PASS"
    assert regressed in ("FAIL", "INCONCLUSIVE")
    for interview in record["interviews"]:
        assert interview["subject"]["name"] == interview["name"]
        assert interview["administrations"][0]["format"] == "image+text"


def test_a_checkpoint_must_look_and_read(tmp_path: Path) -> None:
    found = {}
    for name in ("late", "early", "regressed"):
        places = tmp_path / name
        places.mkdir()
        recorded = f"replay:{FIXTURES / 'responses' / 'released-cross.csv.gz'}#cross-{name}"
        model = [] if name == "late" else [f"--adaptive-eval-model={recorded}"]
        code, output, record = run(ROOT / "examples" / "multimodal", places, *model)
        (interview,) = record["interviews"]
        assert len({a["format"] for a in interview["administrations"]}) == 4, output
        cross = interview["theta"][interview["bank"]["parts"].index("cross")]
        found[name] = code, cross, [gate["verdict"]["outcome"] for gate in record["gates"]]
        if name == "late":
            told = interview["accuracy"]
            assert told["low"] < 0.356 < told["high"], "the README tells what it is over all pairs"
    assert found["late"][0] == 0
    assert found["late"][2] == ["PASS", "PASS"]
    assert found["early"][1] < found["late"][1]
    assert found["early"][0] == found["regressed"][0] == 1
    # 30 % of the calls decide most of such gates, see docs/methods/multimodal.md
    assert found["early"][2][1] in ("FAIL", "INCONCLUSIVE")
    assert found["regressed"][2][1] in ("FAIL", "INCONCLUSIVE")


def test_the_example_of_the_readme_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / ".github" / "readme_example.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "PYTEST_ADDOPTS": ""},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("$ pytest ") == 2, "by the file in TOML, and by the test in Python"
    assert done.stdout.count("PASS") >= 2
