"""Examples of the public names run, and the members that the page lists are there."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pytest_adaptive_eval
from pytest_adaptive_eval import AdaptiveEvalError, Unscored
from pytest_adaptive_eval.cat.selectors import SELECTORS

ROOT = Path(__file__).parents[2]
PUBLIC: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "docs/_build/api.toml").read_text("utf-8"))


def test_every_public_name_has_a_short_example_and_members_that_exist() -> None:
    assert sorted(PUBLIC) == pytest_adaptive_eval.__all__
    for name, described in PUBLIC.items():
        assert len(described["example"].strip().splitlines()) <= 6, name
        kind = getattr(pytest_adaptive_eval, name)
        fields = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
        known = {*dir(kind), *fields}
        assert set(described.get("members", ())) <= known, name
        assert ("members" in described) == (inspect.isclass(kind) and not issubclass(kind, Exception)), name


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="checkpoints need transformers (extra hf)")
    names: dict[str, Any] = {name: getattr(pytest_adaptive_eval, name) for name in PUBLIC}
    names |= {"numpy": np, "Path": Path, "SELECTORS": SELECTORS}
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    for name, described in PUBLIC.items():
        if described.get("asks"):
            continue
        try:
            exec(described["example"], names)
        except (AdaptiveEvalError, Unscored):
            assert described.get("raises"), name
