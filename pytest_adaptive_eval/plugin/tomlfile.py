"""Collect ``adaptive-eval.toml`` and ``*.eval.toml``: evaluations and gates without Python.

A file becomes a module with one function per evaluation and one per gate, with the marker and the fixtures that users
have.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation import GateSpec, Settings, StudyKind, StudySpec, TomlEval, merge_kinds, read_toml
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.models.base import Model
from pytest_adaptive_eval.plugin.fixtures import subject
from pytest_adaptive_eval.plugin.names import GATE_MARKER
from pytest_adaptive_eval.plugin.notices import told_lines
from pytest_adaptive_eval.plugin.question import AskedItem

_PARAMETERS: pytest.StashKey[Any] = pytest.StashKey()  #: Parameters of a test of a TOML file until it runs.


def hide_parameters(item: pytest.Item) -> None:
    """Remove the attribute `callspec` of a test of a TOML file.

    Editors and other plugins take a test that has it for a parametrized function of a Python file. VS Code's runner
    then looks for ".py" in the node id, and finds no test of the whole workspace where one has none.
    """
    if hasattr(item, "callspec"):
        item.stash[_PARAMETERS] = item.callspec
        del item.callspec


def restore_parameters(item: pytest.Item) -> None:
    """Restore the attribute `callspec`, which pytest needs to set up fixtures."""
    if _PARAMETERS in item.stash:
        item.callspec = item.stash[_PARAMETERS]  # type: ignore[attr-defined]  # of functions, as these are


def _ask(item: AskedItem, model: Any) -> None:
    """Ask one question of a subject, or of an object with ``generate(prompt)``."""
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


def _function(function: Callable[..., None]) -> types.FunctionType:
    assert isinstance(function, types.FunctionType)
    return function


def _interview(model: str) -> types.FunctionType:
    """Create a test function with the arguments ``item`` and `model`."""

    @_function
    def run(item: AskedItem, **fixtures: Any) -> None:
        _ask(item, fixtures[model])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # pytest reads the arguments from it
        [inspect.Parameter("item", kind), inspect.Parameter(model, kind)]
    )
    return run


def _study(spec: StudySpec) -> types.FunctionType:
    """Create a function that represents a study."""

    @_function
    def run() -> None:
        raise AssertionError("the plugin runs studies itself, and does not call this function")

    run.adaptive_eval_study = spec  # type: ignore[attr-defined]  # read when it is collected
    return run


def _gate() -> types.FunctionType:
    """Create a test function that reads the verdict on the argument ``gate``, which a mark declares."""

    @_function
    def run(adaptive_eval: Any, gate: GateSpec, pytestconfig: pytest.Config) -> None:  # noqa: ARG001 - names the test
        if not adaptive_eval.verdicts:
            pytest.fail("\n".join(told_lines(pytestconfig, repr(adaptive_eval.verdicts))), pytrace=False)

    return run


def _parameter(gate: GateSpec, nodeid: str) -> Any:
    """Return a gate on the evaluation with this node id as a parameter."""
    mark = getattr(pytest.mark, GATE_MARKER)(nodeid, gate.condition)
    return pytest.param(gate, id=gate.name.removeprefix(f"{gate.condition.metric}-"), marks=mark)


def _model(spec: str, base: Path, name: str, options: Mapping[str, Any]) -> Any:
    def model(request: pytest.FixtureRequest) -> Any:
        yield from subject(request.config, spec, base, options)

    model.adaptive_eval_model = spec, base, options  # type: ignore[attr-defined]  # read before anything is asked
    return pytest.fixture(scope="module", name=name)(model)


class EvalFile(pytest.Module):
    """The collector of one TOML file."""

    settings: Settings
    kinds: Sequence[Mapping[str, Callable[[], StudyKind]]]  #: Loaders of study kinds by name, of each plugin.
    mistake: Callable[[ConfigError], None]  #: Takes errors of the user.
    names: set[str]  #: Names of the evaluations of all files.
    require: Callable[[Sequence[str]], None]  #: Takes the names of required gates.

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Collect evaluations and gates, each gate with its line in the file."""
        for node in super().collect():
            gate = node.callspec.params.get("gate") if hasattr(node, "callspec") else None
            if isinstance(node, pytest.Item) and isinstance(gate, GateSpec):  # gates of one metric share a function
                path, _, name = node.location
                node.location = path, gate.line - 1, name
            yield node

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType(self.path.stem.replace(".", "_"))
        module.__file__ = str(self.path)
        self.lines: dict[str, int] = {}  #: Line of each function, since they have no source.
        #: Name of the fixture of each model, by its text and its options.
        self.models: dict[tuple[str, str, str], str] = {}
        try:
            evaluations, required = read_toml(self.path, merge_kinds(self.kinds))
            self.require(required)
            #: Evaluations that gates compare with; --adaptive-eval-model does not replace their models.
            gates = [gate.condition for evaluation in evaluations for gate in evaluation.gates]
            self.compared = {
                gate.name for gate in gates if isinstance(gate, Condition) and gate.kind == "not_worse_than"
            }
            for evaluation in evaluations:
                self._add(module, evaluation)
        except ConfigError as error:
            self.mistake(error)
        return module

    def _add(self, module: types.ModuleType, evaluation: TomlEval) -> None:
        spec = evaluation.spec
        self.names.add(spec.name)
        if isinstance(spec, StudySpec):
            self._put(module, spec.name, _study(spec), evaluation.line)
            self._judge(module, evaluation, f"{self.nodeid}::{spec.name}")
            return
        fixture = "model"
        if (named := self.settings.models.get(spec.name)) is not None:
            fixture = self._model_fixture(module, named, self.settings.model_options, self.settings.root)
        elif evaluation.model is not None and (self.settings.model is None or spec.name in self.compared):
            fixture = self._model_fixture(module, evaluation.model, evaluation.model_options, self.path.parent)
        run = pytest.mark.adaptive_eval(**spec.data)(_interview(fixture))
        run.adaptive_eval_where = spec.where
        self._put(module, spec.name, run, evaluation.line)
        self._judge(module, evaluation, f"{self.nodeid}::{spec.name}[{spec.parameter_id}]")

    def _model_fixture(self, module: types.ModuleType, spec: str, options: Mapping[str, Any], base: Path) -> str:
        """Add the fixture of a model, which evaluations with the same options share, and return its name."""
        fixture = self.models.setdefault((spec, str(base), repr(sorted(options.items()))), f"_model_{len(self.models)}")
        if not hasattr(module, fixture):
            setattr(module, fixture, _model(spec, base, fixture, options))
        return fixture

    def _judge(self, module: types.ModuleType, evaluation: TomlEval, nodeid: str) -> None:
        """Add the gates of an evaluation, one function per metric."""
        for metric in dict.fromkeys(gate.condition.metric for gate in evaluation.gates):
            gates = [gate for gate in evaluation.gates if gate.condition.metric == metric]
            judge = pytest.mark.parametrize("gate", [_parameter(gate, nodeid) for gate in gates])(_gate())
            self._put(module, f"{evaluation.spec.name}-{metric}", judge, gates[0].line)

    def _put(self, module: types.ModuleType, name: str, function: types.FunctionType, line: int) -> None:
        if name in self.lines:
            raise ConfigError(f"{self.path}:{line}: another evaluation or gate of this file is called {name!r} already")
        function.__name__ = name
        function.__qualname__ = name
        # pytest reads a test's location from the code
        function.__code__ = function.__code__.replace(co_filename=str(self.path), co_firstlineno=line)
        function.__module__ = module.__name__
        # plugins that check types could not resolve them
        function.__annotations__ = {}
        setattr(module, name, function)
        self.lines[name] = line

    def istestfunction(self, obj: object, name: str) -> bool:
        """Return whether the file defines the function, regardless of the naming rules for Python."""
        return name in self.lines
