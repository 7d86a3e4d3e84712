"""Plan the gates of a run before it starts: the evaluations, conditions and baselines that they need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import BaselineError, BaselineMissing, ConfigError, UsageError
from pytest_adaptive_eval.evaluation import read_gate
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gone import refuse_gone_setting
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.plugin.collect.tomlfile import TomlGate
from pytest_adaptive_eval.plugin.gates import gate_marks, judges_itself
from pytest_adaptive_eval.plugin.names import GATE_MARKER, MARKER, SUITE_MARKER
from pytest_adaptive_eval.plugin.state import Declared, EvaluationTest, RunState, resolve, resolve_all
from pytest_adaptive_eval.records.baseline import baseline_path, is_tracked, locate_baseline

#: What to do where the baseline that the options name is not there.
_ADVICE = (
    "correct the path that --adaptive-eval-baseline or adaptive_eval_baseline names; in a first run, "
    "--adaptive-eval-missing-baseline=record makes the run's record the baseline"
)


def plan_gate(gate: pytest.Item, state: RunState) -> None:
    """Add a gate's needs and conditions to the run's state.

    Raises:
        UsageError: The gate names no evaluation of the run, or sets a condition that its evaluation cannot decide.
    """
    declared = _declared(gate, state.evaluations)
    state.needs[gate] = _needs(gate, declared, state.evaluations)
    if not declared:
        state.family += len(state.needs[gate])  # it probably asks each for one verdict
        for node in state.needs[gate]:
            node.gate_plan.undeclared.append(gate.name)
        return
    state.declared[gate] = declared
    try:
        for node, condition in declared:
            node.evaluation.check(condition)
            if condition.kind != "not_worse_than" or _find_baseline(condition.name, node, state):
                _check_comparable(condition, node)
                node.gate_plan.conditions.append(condition)
                state.family += condition.denials(node.evaluation.question_bank)
    except UsageError as error:
        raise type(error)(f"{_location(gate, str(error))}: {error}") from None


def _check_comparable(condition: Condition, node: EvaluationTest) -> None:
    """Refuse a recorded baseline that the condition cannot be compared with."""
    recorded = node.gate_plan.recorded.get(condition.name)
    bank = node.evaluation.question_bank
    if recorded is not None and bank is not None:
        condition.claims(bank, {condition.name: recorded.baseline})


def _location(gate: pytest.Item, message: str) -> str:
    """Return the node id of a gate, or in a TOML file the line of the key that an error message names."""
    if not isinstance(gate, TomlGate):
        return gate.nodeid
    return f"{gate.path}:{gate.lines.named_in(message) or gate.line}"


def count_fail_claims(gate: pytest.Item, state: RunState) -> int:
    """Return how many FAIL verdicts a deselected gate may give elsewhere, such as in another shard."""
    try:
        declared = _declared(gate, state.evaluations)
        needs = _needs(gate, declared, state.evaluations)
    except UsageError:  # only a run of this gate needs to report the mistake
        return 1
    if declared:
        return sum(condition.denials(node.evaluation.question_bank) for node, condition in declared)
    return len(needs)


def _needs(gate: pytest.Item, declared: Sequence[Declared], nodes: Sequence[EvaluationTest]) -> list[EvaluationTest]:
    """Return what a gate waits for: what its marks name, else what its file evaluates, else all.

    Raises:
        ConfigError: Evaluations are missing.
    """
    if not nodes:
        raise ConfigError(
            f"{gate.nodeid}: the test takes the fixture {MARKER}, and no evaluation is among the collected tests: "
            "check that its file is part of this run"
        )
    named = dict.fromkeys(node for node, _ in declared)
    return [*named] or [node for node in nodes if node.path == gate.path] or list(nodes)


def _declared(gate: pytest.Item, nodes: Sequence[EvaluationTest]) -> list[Declared]:
    """Return the conditions of a gate's marks.

    Raises:
        ConfigError: The test asks questions itself, does not take the fixture, or a mark is wrong.
    """
    if gate in nodes:
        raise judges_itself(gate)
    if gate.get_closest_marker(SUITE_MARKER) is not None:
        refuse_gone_setting(SUITE_MARKER, gate.nodeid)
    if isinstance(gate, TomlGate):
        with _of_gate(gate):
            return [Declared(resolve(gate.evaluation, nodes), gate.condition)]
    marks = gate_marks(gate)
    if marks and MARKER not in getattr(gate, "fixturenames", ()):
        raise ConfigError(
            f"{gate.nodeid}: the test has the mark {GATE_MARKER} and does not read its verdict: give it the argument "
            f"`{MARKER}`, and write `assert {MARKER}.verdicts` into it"
        )
    declared: list[Declared] = []
    for mark in marks:
        declared += _declared_by(mark, gate, nodes)
    if len(set(declared)) < len(declared):
        raise ConfigError(f"{gate.nodeid}: two marks {GATE_MARKER} are the same: remove one")
    return declared


def _declared_by(mark: pytest.Mark, gate: pytest.Item, nodes: Sequence[EvaluationTest]) -> list[Declared]:
    """Return the condition of a mark on each evaluation that it names."""
    names_one = len(mark.args) == 1 and isinstance(mark.args[0], str)
    if not names_one:
        raise ConfigError(
            f"{gate.nodeid}: the mark {GATE_MARKER} has the arguments {mark.args!r:.80}, expected the name of one "
            f'evaluation, and keywords: write @pytest.mark.{GATE_MARKER}("name", at_least=0.6)'
        )
    with _of_gate(gate):
        named = resolve_all(mark.args[0], nodes)
    declared = []
    for node in named:
        declared.append(Declared(node, read_gate(dict(mark.kwargs), gate.nodeid, node.evaluation.metrics)))
    return declared


@contextlib.contextmanager
def _of_gate(gate: pytest.Item) -> Iterator[None]:
    """Name the gate in an error about the evaluation that it names."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{gate.nodeid}: {error}") from None


def _find_baseline(name: str, node: EvaluationTest, state: RunState) -> bool:
    """Add the baseline of a paired gate to its evaluation.  Return whether there is one yet."""
    if _follow(name, node, state):
        return True
    folders = (state.config.invocation_params.dir, node.path.parent, state.config.rootpath)
    try:
        node.gate_plan.recorded[name] = node.evaluation.read_baseline(_baseline_spec(name, folders, state), folders)
    except BaselineMissing as error:
        if name != "baseline" or state.settings.missing_baseline == "fail":
            raise
        node.gate_plan.missing[name] = str(error)  # the first run of a project goes on without it
    return name not in node.gate_plan.missing


def _follow(name: str, node: EvaluationTest, state: RunState) -> bool:
    """Make another evaluation of the run the baseline `name` of this one.  Return whether there is one."""
    evaluation = node.evaluation
    others = []
    for o in state.evaluations:
        if type(o.evaluation) is type(evaluation) and o is not node:
            others.append(o)
    if not any(name in other.aliases for other in others):
        return False
    other = resolve(name, others)
    if not evaluation.comparable(other.evaluation):
        raise BaselineError(
            f"the evaluations {evaluation.name!r} and {name!r} ask different questions: a comparison needs the same "
            "items, or the same settings"
        )
    if node in _with_needs(other, state):
        raise BaselineError(f"{evaluation.name!r} and {name!r} are each other's baseline")
    node.gate_plan.followed[name] = lambda: state.lookup(other.nodeid)[1]
    state.needs.setdefault(node, []).append(other)
    return True


def _baseline_spec(name: str, folders: Sequence[Path], state: RunState) -> str:
    """Return the file of a baseline: `name` itself, or the one that the options name for ``baseline``."""
    if name != "baseline":
        return name
    spec = state.settings.baseline
    if spec is None:
        raise BaselineMissing(
            "no baseline: name one with --adaptive-eval-baseline=FILE or the ini setting "
            "adaptive_eval_baseline, a run's record (--adaptive-eval-record writes one), or a file of answers"
        )
    path, _ = baseline_path(spec)
    if state.settings.missing_baseline == "record" and find_input(path, folders) is None:
        raise BaselineMissing(f"no baseline at {path} yet: the record of this run becomes the baseline")
    if not is_tracked(spec):
        locate_baseline(path, folders, _ADVICE)
    return spec


def check_baseline(state: RunState) -> None:
    """Refuse a baseline that the options name and that is not there, whatever the gates compare with.

    Raises:
        BaselineError: It is not there, and this run is not to record it.
    """
    spec = state.settings.baseline
    if spec is None or is_tracked(spec) or state.settings.missing_baseline == "record" or not state.evaluations:
        return
    path, _ = baseline_path(spec)
    folders = (state.config.invocation_params.dir, *(node.path.parent for node in state.evaluations))
    locate_baseline(path, list(dict.fromkeys((*folders, state.config.rootpath))), _ADVICE)


def unused_baseline(state: RunState) -> str:
    """Return a sentence on a baseline that the options name and nothing of this run uses; else empty."""
    if any(getattr(node.evaluation, "predictions", None) or node.gate_plan.remarks for node in state.evaluations):
        return ""
    plans = [node.gate_plan for node in state.evaluations]
    used = any("baseline" in names for plan in plans for names in (plan.recorded, plan.missing))
    if state.settings.baseline is None or used or not plans:
        return ""
    return (
        f"no gate of this run compares with the baseline {state.settings.baseline}: write not_worse_than = "
        '"baseline" and a margin into a gate, or leave the baseline out'
    )


def _with_needs(node: EvaluationTest, state: RunState) -> set[EvaluationTest]:
    """Return an interview and all interviews that it waits for."""
    return {node}.union(*(_with_needs(other, state) for other in state.needs.get(node, ())))
