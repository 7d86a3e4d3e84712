"""A plugin of somebody else's: each hook once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval import Item, ItemBank, Model, Outcome, Selector, SubjectIdentity, Verdict
from pytest_adaptive_eval.models.base import Completion


class Parrot(Model):
    """Answers everything alike."""

    def __init__(self, word: str) -> None:
        super().__init__(SubjectIdentity(f"parrot-{word}", f"hash of {word}"))
        self.word = word

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        return [Completion(self.word) for _ in items]

    def close(self) -> None:
        Path("closed.txt").write_text(self.word)


class First:
    """Prefers the items at the beginning of the bank."""

    name, mode, needs_calibration = "first", "top", False

    def criterion(self, view: Any) -> Any:
        return np.tile(1.0 / (1 + np.arange(len(view.bank))), (len(view.theta), 1))


def pytest_adaptive_eval_subject(spec: str, config: pytest.Config) -> Model | None:
    return Parrot(spec.removeprefix("parrot:")) if spec.startswith("parrot:") else None


def pytest_adaptive_eval_selector(name: str, config: pytest.Config) -> Selector | None:
    return First() if name == "first" else None


def pytest_adaptive_eval_items(path: Path, config: pytest.Config) -> ItemBank | None:
    if path.suffix != ".count":
        return None
    items = [Item(f"n{i}", prompt=f"number {i}", answer="yes") for i in range(int(path.read_text()))]
    return ItemBank.uncalibrated(path.stem, items, content_hash="counted")


def pytest_adaptive_eval_verdict(verdict: Verdict, nodeid: str, config: pytest.Config) -> Verdict | None:
    if "veto" not in nodeid:
        return None
    return dataclasses.replace(verdict, outcome=Outcome.FAIL, notes=(*verdict.notes, "vetoed by sample"))


def pytest_adaptive_eval_report(record: dict[str, Any], config: pytest.Config) -> None:
    Path("sample.json").write_text(json.dumps([gate["verdict"]["outcome"] for gate in record["gates"]]))
