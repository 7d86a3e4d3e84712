"""Collect ``adaptive-eval.toml`` and ``*.eval.toml``: evaluations and gates without Python."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError, UsageError
from pytest_adaptive_eval.evaluation import (
    EvalSpec,
    EvaluationKind,
    GateSpec,
    Settings,
    TomlEval,
    merge_kinds,
)
from pytest_adaptive_eval.evaluation.lines import Lines
from pytest_adaptive_eval.evaluation.side_by_side import variants
from pytest_adaptive_eval.evaluation.toml import read_toml
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.plugin.ask.question import ask, ask_own
from pytest_adaptive_eval.plugin.names import GATE_MARKER, MARKER
from pytest_adaptive_eval.plugin.notices import told_lines
from pytest_adaptive_eval.plugin.state import EvaluationTest, OwnModel, name_toml_test


def _hold() -> None:
    """Do nothing: the plugin runs the evaluation itself."""


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
        if parameter:
            name = f"{function}[{parameter}]"
        else:
            name = function
        test = cls.from_parent(file, name=name, callobj=body)
        test.line = line
        name_toml_test(test, function)
        return test

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place in the file."""
        return self.path, self.line - 1, self.name


class TomlEvaluation(_TomlItem, EvaluationTest):
    """One ``[[eval]]``."""


class TomlGate(_TomlItem):
    """One ``[[eval.gate]]``."""

    evaluation: str  #: Node id of the evaluation that it judges.
    condition: Condition
    lines = Lines()  #: Of its keys.


class EvalFile(pytest.Module):
    """The collector of one TOML file."""

    obj = sys.modules[__name__]  # that of the bodies of its tests, for fixtures and plugins that look at it
    settings: Settings
    kinds: Sequence[Mapping[str, Callable[[], EvaluationKind]]]  #: Loaders of kinds by name, of each plugin.
    mistake: Callable[[UsageError], None]  #: Takes errors of the user.
    names: set[str]  #: Names of the evaluations of all files.
    require: Callable[[Sequence[str]], None]  #: Takes the names of required gates.
    notice: Callable[[Sequence[pytest.Item]], None]  #: Takes the tests, selected or not.
    #: Read the settings of an evaluation; questions that the command line names are returned.
    plan: Callable[[EvaluationTest, EvalSpec], Sequence[pytest.Item]]
    own_model: Callable[[EvalSpec, str, Path, Mapping[str, Any], pytest.Module], OwnModel]

    def collect(self) -> Sequence[pytest.Item]:
        """Collect evaluations, each with its gates."""
        items: list[pytest.Item] = []
        try:
            written, required = read_toml(self.path, merge_kinds(self.kinds))
            models = self.settings.side_by_side
            evaluations = [variant for evaluation in written for variant in variants(evaluation, models)]
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
        self._claim(spec.name, spec.lines.line)
        own_model = self._own_model(spec)
        body: Callable[..., None] = _hold
        parameter = ""
        if spec.asks_items:
            body = ask if own_model is None else ask_own
            parameter = spec.parameter_id
        test: TomlEvaluation = TomlEvaluation.make(self, spec.name, parameter, body, spec.lines.line)
        test.own_model, test.asks_items = own_model, spec.asks_items
        test.add_marker(getattr(pytest.mark, MARKER)(**{key: spec.data[key] for key in spec.data if key != "gate"}))
        yield test
        with self._reported():
            yield from self.plan(test, spec)
        nodeid = test.nodeid
        metrics = dict.fromkeys(gate.condition.metric for gate in evaluation.gates)
        for metric in metrics:
            gates = []
            for gate in evaluation.gates:
                if gate.condition.metric == metric:
                    gates.append(gate)
            self._claim(f"{spec.name}-{metric}", gates[0].lines.line)
            yield from (self._gate(gate, f"{spec.name}-{metric}", nodeid) for gate in gates)

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Report mistakes, of a test that is collected: else pytest would only say that a named test does not exist."""
        try:
            yield
        except UsageError as error:
            self.mistake(error)

    def _claim(self, function: str, line: int) -> None:
        if function in self._functions:
            raise ConfigError(
                f"{self.path}:{line}: another evaluation or gate of this file is called {function!r} already"
            )
        self._functions.add(function)

    def _gate(self, gate: GateSpec, function: str, evaluation: str) -> TomlGate:
        """Return the test of a gate on the evaluation with this node id."""
        parameter = gate.name.removeprefix(f"{gate.condition.metric}-")
        test: TomlGate = TomlGate.make(self, function, parameter, _read_verdict, gate.lines.line)
        test.lines = gate.lines
        test.evaluation, test.condition = evaluation, gate.condition
        test.add_marker(getattr(pytest.mark, GATE_MARKER)(evaluation))  # for `-m`; its condition is the test's own
        return test

    def _own_model(self, spec: EvalSpec) -> OwnModel | None:
        """Return the model that the command line or the file names for an evaluation; equal ones are loaded once."""
        settings, written = self.settings, spec.table.model
        named = settings.models.get(spec.name)
        if named is None and written is not None and (settings.model is None or spec.name in self._compared):
            return self.own_model(spec, written, spec.base, spec.table.model_options, self)
        model = named or settings.model
        options: Mapping[str, Any] = {}
        if model is not None:
            options = spec.model_options(model, self.config.invocation_params.dir, settings.root)
        if model is None or not (named or options):
            return None
        return self.own_model(spec, model, settings.root, {**options, **settings.model_options}, self)
