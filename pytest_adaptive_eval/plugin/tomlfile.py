"""``adaptive-eval.toml`` and ``*.eval.toml``: evaluations and gates with no Python.

A file becomes a module with one function an evaluation and one a gate, written
against the same marker and fixtures that users write against.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval.config import EvalSpec, GateSpec, TomlEval, read_toml
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.base import Subject
from pytest_adaptive_eval.plugin.fixtures import subject
from pytest_adaptive_eval.plugin.interview import AskedItem

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.run import AdaptiveEval

__all__ = ["EvalFile"]


def ask(item: AskedItem, model: Any) -> None:
    """Put one question to a subject, or to anything that has ``generate(prompt)``."""
    if not isinstance(model, Subject):
        item.score(item.grade(model.generate(item.prompt)))
        return
    completion = model.complete(item.item)
    item.text = completion.text
    item.score(item.grade(completion.text) if completion.score is None else completion.score)


def _interview(model: str) -> Callable[..., None]:
    """A test function with the arguments ``item`` and `model`."""

    def run(item: AskedItem, **fixtures: Any) -> None:
        ask(item, fixtures[model])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # pytest reads the arguments from it
        [inspect.Parameter("item", kind), inspect.Parameter(model, kind)]
    )
    return run


def _gate(evaluation: str, gate: GateSpec) -> Callable[..., None]:
    def run(adaptive_eval: Any) -> None:
        metric = getattr(adaptive_eval[evaluation], gate.metric)
        verdict = metric.at_least(gate.at_least, confidence=gate.confidence)
        if not verdict:
            pytest.fail(verdict.sentence, pytrace=False)

    return run


def _model(spec: str, base: Path, name: str) -> Any:
    @pytest.fixture(scope="module", name=name)
    def model(request: pytest.FixtureRequest) -> Any:
        yield from subject(request.config, spec, base)

    return model


class EvalFile(pytest.Module):
    """The collector of one TOML file."""

    state: AdaptiveEval

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType(self.path.stem.replace(".", "_"))
        module.__file__ = str(self.path)
        #: Line of each function, since they have no source.
        self.lines: dict[str, int] = {}
        try:
            for evaluation in read_toml(self.path):
                self._add(module, evaluation)
        except ConfigError as error:
            self.state.mistakes.append(str(error))
        return module

    def _add(self, module: types.ModuleType, evaluation: TomlEval) -> None:
        spec: EvalSpec = evaluation.spec
        fixture = "model"
        if evaluation.model is not None and self.state.settings.model is None:
            fixture = f"model_{len(self.lines)}"
            setattr(module, fixture, _model(evaluation.model, self.path.parent, fixture))
        run = pytest.mark.adaptive_eval(**spec.data)(_interview(fixture))
        run.adaptive_eval_where = spec.where
        self._put(module, spec.name, run, evaluation.line)
        for gate in evaluation.gates:
            nodeid = f"{self.nodeid}::{spec.name}[{spec.parameter_id}]"
            judge = _gate(nodeid, gate)
            judge.adaptive_eval_names = [nodeid]  # type: ignore[attr-defined]  # read by the gates' ordering
            self._put(module, f"{spec.name}-{gate.name}", judge, gate.line)

    def _put(self, module: types.ModuleType, name: str, function: Callable[..., None], line: int) -> None:
        function.__name__ = name
        function.__qualname__ = name
        function.__module__ = module.__name__
        setattr(module, name, function)
        self.lines[name] = line

    def istestfunction(self, obj: object, name: str) -> bool:
        """Every function of the file is a test, whatever the naming rules for Python say."""
        return name in self.lines
