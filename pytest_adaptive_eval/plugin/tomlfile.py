"""Collect ``adaptive-eval.toml`` and ``*.eval.toml``: evaluations and gates without Python."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError, UsageError
from pytest_adaptive_eval.evaluation import EvalSpec, GateSpec, Settings, StudyKind, StudySpec, TomlEval, merge_kinds
from pytest_adaptive_eval.evaluation.toml import read_toml
from pytest_adaptive_eval.models.base import Model
from pytest_adaptive_eval.plugin.interview import Interview, Study
from pytest_adaptive_eval.plugin.names import GATE_MARKER, MARKER
from pytest_adaptive_eval.plugin.notices import told_lines
from pytest_adaptive_eval.plugin.question import AskedItem
from pytest_adaptive_eval.plugin.state import OwnModel, name_toml_test


def _ask(item: AskedItem, model: Any) -> None:
    """Ask one question of a subject, or of an object with ``generate(prompt)``."""
    __tracebackhide__ = True
    if not isinstance(model, Model):
        if item.turns:
            raise ConfigError(
                f"item {item.id!r} has turns, which only a subject of this package asks, and the model is "
                f"{type(model).__name__}: derive it from pytest_adaptive_eval.Model"
            )
        item.score(item.grade(model.generate(item.prompt)))
        return
    completion = model.complete(item.item)
    item.text = completion.text
    item.score(item.grade(completion.text) if completion.score is None else completion.score)


def _ask_own(item: AskedItem, request: pytest.FixtureRequest) -> None:
    """Ask one question of the model that the file names."""
    __tracebackhide__ = True
    _ask(item, request.node.funcargs["model"])


def _run_study() -> None:
    """Do nothing: the plugin runs studies itself."""


def _read_verdict(adaptive_eval: Any, pytestconfig: pytest.Config) -> None:
    """Read the verdict on the condition of a mark."""
    if not adaptive_eval.verdicts:
        pytest.fail("\n".join(told_lines(pytestconfig, repr(adaptive_eval.verdicts))), pytrace=False)


class _TomlItem(pytest.Function):
    """A test of a TOML file, without the attribute `callspec`.

    Editors and other plugins take a test that has it for a parametrized function of a Python file. VS Code's runner
    then looks for ".py" in the node id, and finds no test of the whole workspace where one has none.
    """

    line = 0  #: Line in the file, from 1.

    @classmethod
    def make(cls, file: EvalFile, function: str, parameter: str, body: Callable[..., None], line: int) -> Any:
        """Create the test `function`, or ``function[parameter]``."""
        name = f"{function}[{parameter}]" if parameter else function
        test = cls.from_parent(file, name=name, callobj=body)
        test.line = line
        name_toml_test(test, function)
        return test

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place in the file."""
        return self.path, self.line - 1, self.name


class TomlInterview(_TomlItem, Interview):
    """The interview of one ``[[eval]]``."""

    asks_items = True


class TomlStudy(_TomlItem, Study):
    """The study of one ``[[eval]]``."""


class TomlGate(_TomlItem):
    """One ``[[eval.gate]]``."""


class EvalFile(pytest.Module):
    """The collector of one TOML file."""

    obj = sys.modules[__name__]  # that of the bodies of its tests, for fixtures and plugins that look at it
    settings: Settings
    kinds: Sequence[Mapping[str, Callable[[], StudyKind]]]  #: Loaders of study kinds by name, of each plugin.
    mistake: Callable[[UsageError], None]  #: Takes errors of the user.
    names: set[str]  #: Names of the evaluations of all files.
    require: Callable[[Sequence[str]], None]  #: Takes the names of required gates.
    notice: Callable[[Sequence[pytest.Item]], None]  #: Takes the tests, selected or not.
    #: Read bank and settings of an evaluation; questions that the command line names are returned.
    plan_interview: Callable[[Interview, EvalSpec], Sequence[pytest.Item]]
    plan_study: Callable[[Study, StudySpec], None]
    own_model: Callable[[EvalSpec, str, Path, Mapping[str, Any], pytest.Module], OwnModel]

    def collect(self) -> Sequence[pytest.Item]:
        """Collect evaluations, each with its gates."""
        items: list[pytest.Item] = []
        try:
            evaluations, required = read_toml(self.path, merge_kinds(self.kinds))
            self.require(required)
            gates = [gate.condition for evaluation in evaluations for gate in evaluation.gates]
            #: Evaluations that gates compare with; --adaptive-eval-model does not replace their models.
            self._compared = {gate.name for gate in gates if gate.kind == "not_worse_than"}
            self._functions: set[str] = set()
            for evaluation in evaluations:
                items += self._evaluation(evaluation)
        except ConfigError as error:
            self.mistake(error)
        self.notice(items)
        return items

    def _evaluation(self, evaluation: TomlEval) -> Iterator[pytest.Item]:
        """Yield an evaluation, its questions that the command line names, and its gates, metric by metric."""
        spec = evaluation.spec
        self.names.add(spec.name)
        self._claim(spec.name, evaluation.line)
        if isinstance(spec, StudySpec):
            study: TomlStudy = TomlStudy.make(self, spec.name, "", _run_study, evaluation.line)
            yield study
            with self._reported():
                self.plan_study(study, spec)
        else:
            interview = self._interview(spec, self._own_model(evaluation), evaluation.line)
            yield interview
            with self._reported():
                yield from self.plan_interview(interview, spec)
        nodeid = f"{self.nodeid}::{spec.name}" + (f"[{spec.parameter_id}]" if isinstance(spec, EvalSpec) else "")
        metrics = dict.fromkeys(gate.condition.metric for gate in evaluation.gates)
        for metric in metrics:
            gates = [gate for gate in evaluation.gates if gate.condition.metric == metric]
            self._claim(f"{spec.name}-{metric}", gates[0].line)
            yield from (self._gate(gate, f"{spec.name}-{metric}", nodeid) for gate in gates)

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Report mistakes, of a test that is collected: else pytest would only say that a named test does not exist."""
        try:
            yield
        except UsageError as error:
            self.mistake(error)

    def _interview(self, spec: EvalSpec, own: OwnModel | None, line: int) -> TomlInterview:
        body = _ask if own is None else _ask_own
        interview: TomlInterview = TomlInterview.make(self, spec.name, spec.parameter_id, body, line)
        interview.own_model = own
        interview.add_marker(getattr(pytest.mark, MARKER)(**spec.data))
        return interview

    def _claim(self, function: str, line: int) -> None:
        if function in self._functions:
            raise ConfigError(
                f"{self.path}:{line}: another evaluation or gate of this file is called {function!r} already"
            )
        self._functions.add(function)

    def _gate(self, gate: GateSpec, function: str, evaluation: str) -> TomlGate:
        """Return the test of a gate on the evaluation with this node id."""
        parameter = gate.name.removeprefix(f"{gate.condition.metric}-")
        test: TomlGate = TomlGate.make(self, function, parameter, _read_verdict, gate.line)
        test.add_marker(getattr(pytest.mark, GATE_MARKER)(evaluation, gate.condition))
        return test

    def _own_model(self, evaluation: TomlEval) -> OwnModel | None:
        """Return the model that the command line or the file names for an evaluation; equal ones are loaded once."""
        spec, settings = evaluation.spec, self.settings
        if (model := settings.models.get(spec.name)) is not None:
            options, base = settings.model_options, settings.root
        elif evaluation.model is not None and (settings.model is None or spec.name in self._compared):
            model, options, base = evaluation.model, evaluation.model_options, self.path.parent
        else:
            return None
        assert isinstance(spec, EvalSpec)
        return self.own_model(spec, model, base, options, self)
