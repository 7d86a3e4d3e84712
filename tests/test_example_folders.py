"""Each command in the README of an example runs as it is printed, in a copy of the folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
COMMAND = re.compile(r"(?:<!-- exit (\d) -->\n)?^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Examples whose commands take longer are run by ``test_examples.py`` and ``test_pretrained.py``.
FOLDERS = {folder.parent.name for folder in (ROOT / "examples").glob("*/README.md")} - {
    "multimodal",
    "pretrained",
    "promotion",
}
#: Packages of extras that an example needs.
NEEDS = {"likelihood": "transformers", **dict.fromkeys(("served", "network", "panel"), "httpcore2")}


def test_examples_cover_the_main_uses() -> None:
    assert len(FOLDERS) >= 7
    table = (ROOT / "examples" / "README.md").read_text("utf-8")
    linked = set(re.findall(r"\]\((\w+)\)", table))
    assert linked == FOLDERS | {"multimodal", "pretrained", "promotion"}
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert set(re.findall(r"`examples/(\w+)`", page)) == linked, "the site lists them too"
    assert "(examples/README.md)" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_commands_of_an_example_run_as_printed(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"the example needs {NEEDS[name]} (extra hf or endpoint)")
    folder = tmp_path / "examples" / name
    shutil.copytree(ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns(".adaptive-eval*", "__pycache__"))
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    commands = COMMAND.findall((folder / "README.md").read_text("utf-8"))
    assert commands
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_", "GITHUB_"))
    }
    for code, text in commands:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=folder,
            env={**environment, "PATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == int(code or 0), f"{text}\n{done.stdout}\n{done.stderr}"
