"""Kinds of evaluations of plugins: registered by one hook, in one file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy  # noqa: F401 - runs within this process would load it a second time
import pytest

from pytest_adaptive_eval.gates.condition import register_metrics

KIND = '''
from dataclasses import dataclass

from pytest_adaptive_eval.evaluation import Evaluation, EvaluationKind
from pytest_adaptive_eval.evaluation.tables import KindTable
from pytest_adaptive_eval.gates.condition import Metric
from pytest_adaptive_eval.gates.quantities import Measured
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.models.base import SubjectIdentity


class WeightsTable(KindTable, frozen=True, kw_only=True):
    kilograms: float = 1.0


@dataclass
class Weights(Evaluation):
    """Weigh models on a scale."""

    name: str
    kilograms: float
    kind: str = "weights"
    candidate: str = "ann"
    subjects: tuple = ("ann", "bob")
    metrics: tuple = ("weight",)
    roles: tuple = ()
    outlook: str = "two models on one scale"

    def to_json(self):
        return {"kilograms": self.kilograms}

    def void(self, error):
        return self.void_result(error)

    def hold(self, replies, progress):
        measured = Measured([self.kilograms, 2.0], [[0.01, 0.0], [0.0, 0.01]])
        return Result(
            self.name, self.kind, self.candidate, self.subjects, self.metrics, {"weight": measured}, asked=1, size=1,
            members=(SubjectIdentity("ann"), SubjectIdentity("bob")),
        )


class Weight(Metric):
    name = "weight"
    description = "mass of a model, in kilograms"
    on_banks = False


def pytest_adaptive_eval_metrics(config):
    return [Weight()]


def build(spec, settings, context):
    return Weights(spec.name, spec.table.kilograms)


def pytest_adaptive_eval_kinds(config):
    return {"KIND": lambda: EvaluationKind(WeightsTable, ("weight",), build)}
'''
FILE = """
[[eval]]
kind = "weights"
name = "scale"
kilograms = 3.0

[[eval.gate]]
metric = "weight"
at_least = 2.5
"""


@pytest.fixture(autouse=True)
def _forget_metrics() -> Iterator[None]:
    """Leave the metric of the project unknown to later tests."""
    yield
    register_metrics([])


def write_project(pytester: Any, kind: str, toml: str = FILE) -> None:
    pytester.makeconftest(KIND.replace('KIND"', kind + '"'))
    (pytester.path / "weights.eval.toml").write_text(toml)


def test_a_kind_of_a_conftest_is_held_and_gated(pytester: Any) -> None:
    write_project(pytester, "weights")
    result = pytester.runpytest("--adaptive-eval", "-p", "no:cacheprovider")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*weight of ann*"])


def test_unknown_key_of_a_plugin_kind_is_a_usage_error(pytester: Any) -> None:
    write_project(pytester, "weights", FILE.replace("kilograms", "pounds"))
    result = pytester.runpytest("--adaptive-eval", "-p", "no:cacheprovider")
    assert result.ret == 4
    assert "pounds" in result.stdout.str() + result.stderr.str()


def test_kind_that_two_plugins_provide_is_a_usage_error(pytester: Any) -> None:
    write_project(pytester, "peers")
    result = pytester.runpytest("--adaptive-eval", "-p", "no:cacheprovider")
    assert result.ret == 4
    assert "the kind 'peers' more than once" in result.stdout.str() + result.stderr.str()
