"""Torch and torchvision of different builds, in a process of their own: what was imported once cannot be undone."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="needs torch (extra clip)")

CODE = """
import importlib.util, sys
from pytest_adaptive_eval.models.builds import allow_mixed_builds
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None
assert allow_mixed_builds() is None, "nothing to do without torchvision"
assert "torch" not in sys.modules
allow_mixed_builds.cache_clear()
importlib.util.find_spec = find
library = allow_mixed_builds()
import torch, torchvision
assert (library is None) == torchvision.extension._has_ops(), "only where its operators are of another build"
import transformers.image_utils
from torchvision.transforms import Resize
assert Resize(2)(torch.zeros(3, 4, 4)).shape == (3, 2, 2)
boxes = torch.tensor([[0.0, 0, 1, 1]]), torch.ones(1)
try:
    torchvision.ops.nms(*boxes, 0.5)
except (RuntimeError, NotImplementedError):
    assert library is not None
else:
    assert library is None
print("fine")
"""


def test_torchvision_can_be_imported_beside_another_build_of_torch() -> None:
    pytest.importorskip("torchvision", reason="needs torchvision (extra clip)")
    run = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "fine", run.stderr
