"""torchvision beside a torch that it was not built for: one sentence, and no need of torchvision for text."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs torch (extra hf)")
pytest.importorskip("transformers", reason="needs transformers (extra hf)")

from pytest_adaptive_eval.errors import ConfigError  # noqa: E402
from pytest_adaptive_eval.models import loading  # noqa: E402


def refused(monkeypatch: pytest.MonkeyPatch, version: str, requires: list[str]) -> str:
    """Return the message where the import of torchvision fails as that of another build does."""

    def broken(name: str) -> types.ModuleType:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: types.SimpleNamespace(name=name))
    monkeypatch.setattr(importlib, "import_module", broken)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requires)
    with pytest.raises(ConfigError) as caught:
        loading.check_torchvision()
    return str(caught.value)


def test_another_release_of_torch_is_named_with_the_pair_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refused(monkeypatch, "0.99.0", ["numpy", "torch==9.9.9"])
    assert f"torch {torch.__version__} is installed beside torchvision 0.99.0, which needs torch==9.9.9" in message
    assert "pip install 'torch==9.9.9' 'torchvision==0.99.0'" in message
    assert "operator torchvision::nms does not exist" in message


def test_another_build_of_the_same_release_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    release = torch.__version__.partition("+")[0]
    message = refused(monkeypatch, "0.99.0", [f"torch=={release}"])
    assert "of another build" in message
    assert f"--force-reinstall 'torch=={release}'" in message


def test_no_torchvision_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    loading.check_torchvision()
