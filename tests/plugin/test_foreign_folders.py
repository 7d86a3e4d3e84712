"""Python files in folders of checkpoints and banks are not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import BankError

MARK = "from pathlib import Path\nPath({!r}).write_text('ran')\ndef test_evil(): pass\n"


def checkpoint(folder: Path, mark: Path, *files: str) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"")
    for file in files:
        (folder / file).write_text(MARK.format(str(mark)))


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("flags", [(), ("--adaptive-eval", "--adaptive-eval-model=models/named")])
@pytest.mark.parametrize("by_name", [False, True])
def test_a_walk_leaves_them_out_and_says_so(lab: Any, flags: tuple[str, ...], by_name: bool) -> None:
    mark = lab.path / "mark"
    checkpoint(lab.path / "models" / "late", mark, "conftest.py", "test_evil.py", "__init__.py")
    (lab.path / "models" / "named").mkdir()
    (lab.path / "models" / "named" / "conftest.py").write_text(MARK.format(str(mark)) if flags else "")
    lab.calibrated("toy")
    (lab.path / "toy.bank" / "test_evil.py").write_text(MARK.format(str(mark)))
    (lab.path / "test_own.py").write_text("def test_own(): pass\n")
    result = lab.pytester.runpytest_subprocess(*flags, *(["."] if by_name else []))
    result.stdout.fnmatch_lines(
        ["adaptive-eval: no test of a checkpoint or bank folder is run: *late (__init__.py, conftest.py, *.py)*"]
    )
    result.assert_outcomes(passed=1)
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["models/late", "models/late/test_evil.py", "models/late/test_evil.py::test_evil"])
def test_such_an_argument_is_refused_before_anything_is_imported(lab: Any, argument: str) -> None:
    checkpoint(lab.path / "models" / "late", lab.path / "mark", "conftest.py", "test_evil.py")
    result = lab.pytester.runpytest_subprocess(argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*late is a checkpoint or bank folder, and pytest would run its conftest.py*"])
    assert not (lab.path / "mark").exists()


@pytest.mark.slow
def test_pytest_looks_into_folders_named_test_by_itself(lab: Any) -> None:
    checkpoint(lab.path / "test-model", lab.path / "mark", "conftest.py")
    assert lab.pytester.runpytest_subprocess().ret == pytest.ExitCode.USAGE_ERROR
    assert not (lab.path / "mark").exists()


@pytest.mark.slow
def test_a_folder_of_tests_with_like_named_data_is_collected(lab: Any) -> None:
    folder = lab.path / "tests"
    folder.mkdir()
    for name in ("config.json", "bank.json"):
        (folder / name).write_text("{}")
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    lab.pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_bank_with_such_a_file_is_refused(lab: Any) -> None:
    path = lab.calibrated("toy")
    (path / "conftest.py").write_text("")
    with pytest.raises(BankError, match=r"conftest.py would be run by pytest and does not belong in a bank"):
        read_bank(path)
    assert json.loads((path / "bank.json").read_text())
