"""A torchvision that does not fit torch, in processes of their own: an import cannot be undone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

torch: Any = pytest.importorskip("torch", reason="needs torch (extra hf)")
pytest.importorskip("transformers", reason="needs transformers (extra hf)")

CHECKPOINT = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints" / "text-late"
LOAD = """
import sys
sys.path.insert(0, sys.argv[1])
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models import load_model
try:
    print(load_model(sys.argv[2]).identity.checkpoint)
except ConfigError as error:
    print(error)
"""


def load(folder: Path) -> str:
    command = [sys.executable, "-c", LOAD, str(folder), str(CHECKPOINT)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def install(folder: Path, requirement: str, code: str) -> None:
    """Install a torchvision that has only `code` and one requirement."""
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(code)
    info = folder / "torchvision-0.99.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torchvision\nVersion: 0.99.0\nRequires-Dist: {requirement}\n"
    )


NMS = "raise RuntimeError('operator torchvision::nms does not exist')"


def test_torchvision_for_another_torch_release_names_the_fitting_pair(tmp_path: Path) -> None:
    install(tmp_path, "torch (==99.1.0)", NMS)
    message = load(tmp_path)
    assert f"torch {torch.__version__} is installed beside torchvision 0.99.0, which needs torch==99.1.0" in message
    assert "operator torchvision::nms does not exist" in message
    assert "pip install 'torch==99.1.0' 'torchvision==0.99.0'" in message
    assert "where only text is read: pip uninstall torchvision" in message


def test_torchvision_of_another_build_is_to_be_reinstalled_with_torch(tmp_path: Path) -> None:
    release = torch.__version__.partition("+")[0]
    install(tmp_path, f"torch (=={release})", NMS)
    assert f"pip install --force-reinstall 'torch=={release}' 'torchvision==0.99.0'" in load(tmp_path)


def test_text_checkpoint_loads_without_torchvision() -> None:
    program = (
        """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name.partition(".")[0] == "torchvision" else find(name, *more)
"""
        + LOAD
    )
    command = [sys.executable, "-c", program, ".", str(CHECKPOINT)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert len(found.strip()) == 64
