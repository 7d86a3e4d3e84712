"""The reader of docs/reference/plugins.md works as a plugin: it is known to reading, help and errors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs/reference/plugins.md").read_text("utf-8")
SECTION = PAGE.partition("\n## Add a reader of responses\n")[2].partition("\n## ")[0]
BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", SECTION, re.DOTALL))


@pytest.fixture
def python(tmp_path):
    """Return a function that runs Python where the page's module is installed as a plugin."""
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "quizlog.py").write_text(BLOCKS["python"])
    metadata = tmp_path / "my_package-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1\n")
    (group,) = re.findall(r'entry-points\."([^"]+)"', SECTION)
    (metadata / "entry_points.txt").write_text(f"[{group}]\nquizlog = my_package.quizlog\n")
    (tmp_path / "model-a.json").write_text(BLOCKS["json"])

    def run(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "300"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    return run


def test_page_reader_reads_its_file_and_is_in_errors(python):
    code = (
        "from pytest_adaptive_eval.banks.responses import read_responses\n"
        "responses = read_responses('model-a.json')\n"
        "print(responses.subjects, responses.items, responses.scores.tolist())\n"
        "for settings in ({'filter': 'x'}, {'metric': 'f1'}, {'format': 'nothing'}):\n"
        "    try:\n"
        "        read_responses('model-a.json', **settings)\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    result, *errors = python("-c", code).splitlines()
    assert result == f"('model-a',) ('q-1', 'q-2', 'q-3') {[[1.0, 0.0, np.nan]]}"
    assert errors[0] == "model-a.json is read as quizlog, which takes metric; leave filter 'x' out"
    assert errors[1].startswith("model-a.json: found 'exact' and metric is 'f1'; give metric one of them")
    assert errors[2].startswith("format 'nothing' is not known; use ")
    assert errors[2].endswith("quizlog")


def test_page_reader_is_in_the_help_of_the_command(python):
    help_text = python("-c", "from pytest_adaptive_eval.cli import main; main()", "calibrate", "--help")
    assert "quizlog" in help_text
