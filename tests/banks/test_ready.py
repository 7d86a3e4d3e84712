"""Ready banks: parameters of public benchmarks, which cost questions where they are wrong, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.banks import ready
from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cli.command import main
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.gates.condition import Condition

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(file.stem for file in ready.FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_a_ready_bank_predicts_the_accuracies_of_its_subjects(name: str) -> None:
    about, bank = ready.read_ready(name), read_bank(f"ready:{name}")
    assert [item.id for item in bank.items] == list(bank.ids) == list(about.items)
    abilities = np.array([[subject.ability] for subject in about.subjects])
    predicted = bank.probability(abilities).mean(axis=1)
    assert np.abs(predicted - bank.accuracies).max() < 0.1
    assert np.corrcoef(predicted, bank.accuracies)[0, 1] > 0.97
    assert len(set(bank.subjects)) == len(bank.subjects) >= 25
    assert about.questions < about.uniform < len(bank.ids)
    assert about.newest in bank.report["ready"]


def test_ready_banks_are_small_and_hold_no_texts_and_no_responses() -> None:
    texts = [file.read_bytes() for file in sorted(ready.FOLDER.glob("*.json"))]
    assert sum(len(zlib.compress(text)) for text in texts) < 300_000
    for text in texts:
        parts = json.loads(text)
        assert {len(parameters) for parameters in parts["items"].values()} == {2}
        assert {len(subject) for subject in parts["subjects"]} == {4}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        BankError, match=r"no ready bank 'swe-bench': there are .*swe-bench-verified.*adaptive-eval banks"
    ):
        read_bank("ready:swe-bench")


def test_a_public_submission_can_be_named_in_a_gate() -> None:
    bank = read_bank("ready:swe-bench-verified")
    best = int(np.argmax(bank.accuracies))
    (claim,) = Condition("accuracy", "above", name=bank.subjects[best]).claims(bank, {})
    assert claim.total == pytest.approx(bank.accuracies[best] * len(bank), abs=1.0)


def imported(path: Path, ids: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Import questions with these ids and the parameters of a ready bank; return the exit code and the output."""
    lines = [json.dumps({"task": name, "question": f"{name}?", "answer": "yes"}) + "\n" for name in ids]
    (path / "published.jsonl").write_text("".join(lines))
    settings = ["--set", "id=task", "--set", "question=question", "--set", "answer=answer", "--set", "grader=exact"]
    file, bank = str(path / "published.jsonl"), str(path / "own.bank")
    code = main(["import", file, "-o", bank, "--ready", "terminal-bench-2", "--replace", *settings])
    out, err = capsys.readouterr()
    return code, " ".join((out + err).split())


def test_texts_join_their_parameters_by_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready_bank = read_bank("ready:terminal-bench-2")
    ids = list(ready_bank.ids)
    code, said = imported(tmp_path, ids, capsys)
    assert code == 0
    assert f"{len(ids)} of {len(ids)} items have parameters of terminal-bench-2" in said
    bank = read_bank(tmp_path / "own.bank")
    assert bank.scale == ready_bank.scale
    assert bank.subjects == ready_bank.subjects
    assert bank.items[3].prompt.startswith(f"{ids[3]}?")
    _, said = imported(tmp_path, [*ids[:20], "another"], capsys)
    assert "20 of 21 items have parameters" in said
    part = read_bank(tmp_path / "own.bank")
    assert part.subjects == ()  # their accuracies are of the whole benchmark
    assert part.intercept[20] == np.median(ready_bank.intercept)


def test_ids_of_another_form_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = imported(tmp_path, ["1", "2"], capsys)
    assert code == 4
    assert "none of the items, such as '1', is in the ready bank 'terminal-bench-2'" in said
    assert not (tmp_path / "own.bank").exists()


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that brings a ready bank with changed content."""

    def bring(entry_name: str, **changed: Any) -> None:
        content = json.loads((ready.FOLDER / "terminal-bench-2.json").read_text())
        (tmp_path / "own.json").write_text(json.dumps({**content, **changed}))
        (tmp_path / "brought.py").write_text(f"FILE = {str(tmp_path / 'own.json')!r}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "brought", raising=False)
        entry = EntryPoint(entry_name, "brought:FILE", ready.GROUP)
        monkeypatch.setattr(ready, "entry_points", lambda group: [entry] if group == ready.GROUP else [])

    return bring


def test_an_installed_package_brings_a_bank(packaged: Any) -> None:
    packaged("own", name="own", title="Own")
    assert ready.read_ready("own").title == "Own"
    assert read_bank("ready:own").ids[0] == read_bank("ready:terminal-bench-2").ids[0]


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("own", {}, r"own.json: the bank calls itself 'terminal-bench-2', expected 'own'"),
        ("own", {"name": "own", "items": {"a": [1.0]}}, r"own.json: not a ready bank: .*items"),
        ("swe-bench-verified", {}, r"brought:FILE brings a ready bank 'swe-bench-verified', which exists"),
    ],
)
def test_a_wrong_file_of_a_package_is_refused(packaged: Any, name: str, changed: Any, message: str) -> None:
    packaged(name, **changed)
    with pytest.raises(BankError, match=message):
        ready.read_ready(name)


@pytest.mark.slow
def test_the_recipe_gives_the_shipped_bank() -> None:
    data = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data"))
    if not (data / "matrices" / "terminalbench2_mean").is_dir():
        pytest.skip("no public response matrices: set ADAPTIVE_EVAL_DATA")
    command = [sys.executable, "ready_banks.py", "terminal-bench-2", "swe-bench-verified"]
    out = subprocess.run(command, cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True).stdout
    assert out.count(", equal") == 2
