"""Hooks that other plugins may implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_adaptive_eval.cat.selection import Selector
    from pytest_adaptive_eval.evaluation.spec import EvaluationKind
    from pytest_adaptive_eval.gates.condition import Metric
    from pytest_adaptive_eval.gates.verdict import Verdict
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.models.base import Model
    from pytest_adaptive_eval.tasks import TaskFamily


@pytest.hookspec(firstresult=True)
def pytest_adaptive_eval_subject(spec: str, config: pytest.Config) -> Model | None:
    """Make a subject from the text of ``--adaptive-eval-model`` or of ``model`` in a TOML file.

    Returns:
        None leaves it to the next plugin, in the end to the built-in kinds.
    """


@pytest.hookspec(firstresult=True)
def pytest_adaptive_eval_selector(name: str, config: pytest.Config) -> Selector | None:
    """Provide a selector by the name used in a marker or a TOML file."""


@pytest.hookspec
def pytest_adaptive_eval_task_families(config: pytest.Config) -> Sequence[TaskFamily]:  # type: ignore[empty-body]
    """Provide task families, which evaluations name as ``task``.

    Returns:
        Each name is unique among all families, built-in ones included.
    """


@pytest.hookspec
def pytest_adaptive_eval_metrics(config: pytest.Config) -> Sequence[Metric[Any]]:  # type: ignore[empty-body]
    """Provide metrics of gates, which results have as attributes and TOML files name as ``metric``.

    Returns:
        Each name is unique among all metrics, built-in ones included.
    """


@pytest.hookspec
def pytest_adaptive_eval_kinds(  # type: ignore[empty-body]
    config: pytest.Config,
) -> Mapping[str, Callable[[], EvaluationKind]]:
    """Provide kinds of evaluations, which TOML files name as ``kind``.

    Returns:
        Loaders by kind. A loader is called when an evaluation of its kind is read.
    """


@pytest.hookspec(firstresult=True)
def pytest_adaptive_eval_items(path: Path, config: pytest.Config) -> ItemBank | None:
    """Read a bank, or make one, from what is at `path`.

    Returns:
        None leaves it to the built-in formats.
    """


@pytest.hookspec(firstresult=True)
def pytest_adaptive_eval_verdict(verdict: Verdict, nodeid: str, config: pytest.Config) -> Verdict | None:
    """See each verdict as the gate `nodeid` asks for it, and replace it if need be.

    Returns:
        None keeps the verdict.
    """


@pytest.hookspec
def pytest_adaptive_eval_report(record: dict[str, Any], config: pytest.Config) -> None:
    """Write a report of one's own from the run's record (`RunRecord.to_json`), after the run."""
