"""Gates: ordinary tests that ask ``adaptive_eval[...]`` for a result and assert on it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pytest_adaptive_eval.config import GateSpec
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import KINDS, Condition, find_metric
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.gates.result import BoundMetric, SessionResult
from pytest_adaptive_eval.gates.study_result import StudyResult
from pytest_adaptive_eval.gates.verdict import NoVerdict, Verdict
from pytest_adaptive_eval.plugin.assertions import parsed
from pytest_adaptive_eval.plugin.dynamic import gets_fixture
from pytest_adaptive_eval.plugin.question import Once, is_placeholder

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.interview import Interview
    from pytest_adaptive_eval.plugin.study import Study

__all__ = [
    "Held",
    "Judged",
    "Results",
    "is_gate",
    "judges_itself",
    "known",
    "literal_conditions",
    "literal_names",
    "named",
    "needed",
    "order",
    "resolve",
    "seeks_verdict",
]

FIXTURE = "adaptive_eval"
#: What gates judge.
Held: TypeAlias = "Interview | Study"


#: Whether a test may get the fixture by its name.
_GETS_FIXTURE: pytest.StashKey[bool] = pytest.StashKey()


def is_gate(item: pytest.Item) -> bool:
    """Tell whether a test judges interviews: it takes the fixture, or its code shows that it gets it by its name."""
    if FIXTURE in getattr(item, "fixturenames", ()):
        return True
    if not isinstance(item, pytest.Function) or isinstance(item, Once) or is_placeholder(item):
        return False
    if _GETS_FIXTURE not in item.stash:
        item.stash[_GETS_FIXTURE] = gets_fixture(item, FIXTURE)
    return item.stash[_GETS_FIXTURE]


def literal_names(function: Callable[..., object]) -> list[str] | None:
    """Return the evaluations that a gate's source names as ``adaptive_eval["name"]``.

    None when the source tells nothing: no such expression, or one with a
    computed name; the gate then waits for every interview.
    """
    declared = getattr(function, "adaptive_eval_names", None)
    if declared is not None:
        return list(declared)
    if (tree := parsed(function)) is None:
        return None
    names: list[str] = []
    uses = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == FIXTURE:
            uses += 1
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == FIXTURE:
            if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)):
                return None
            names.append(node.slice.value)
            uses -= 1
    return names if names and uses == 0 else None


def literal_conditions(item: pytest.Item) -> list[tuple[str, Condition]] | None:
    """Return the conditions in a gate's source, such as ``result.accuracy.at_least(0.6)``, with evaluation names.

    Arguments may be numbers and words as written, constants of the module, and
    parameters of the test.  None when that tells not all of it: the interview
    then cannot know when the gate is decided, and asks its whole budget.
    """
    if not isinstance(item, pytest.Function):
        return None
    params = item.callspec.params if hasattr(item, "callspec") else {}
    names = literal_names(item.obj)
    if isinstance(gate := params.get("gate"), GateSpec) and names:
        return [(names[0], gate.condition)]
    if (tree := parsed(item.obj)) is None:
        return None
    constants = getattr(inspect.unwrap(item.obj), "__globals__", {})  # a decorator may be of another module
    known = {**constants, **params, **dict.fromkeys(_local(tree, params))}
    results = _assigned(tree)
    if _handed_on(tree, {name for name, value in results.items() if _subscript(value)}):
        return None
    found: list[tuple[str, Condition]] = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and node.attr in KINDS):
            continue
        call = next((c for c in ast.walk(tree) if isinstance(c, ast.Call) and c.func is node), None)
        metric, part = node.value, ""
        if isinstance(metric, ast.Subscript) and isinstance(index := metric.slice, ast.Constant):
            metric, part = metric.value, "." + str(index.value)
        if call is None or not (isinstance(metric, ast.Attribute) and _is_bank_metric(metric.attr)):
            return None
        source = metric.value
        if isinstance(source, ast.Name):
            source = results.get(source.id, source)
        name = _subscript(source) or (names[0] if names is not None and len(names) == 1 else None)
        try:
            values = [_plain(argument, known) for argument in call.args]
            keywords = {k.arg: _plain(k.value, known) for k in call.keywords if k.arg}
            condition = _recorded(metric.attr + part, node.attr, values, keywords)
        except (LookupError, TypeError):
            return None
        if name is None or len(keywords) != len(call.keywords):
            return None
        found.append((name, condition))
    return found or None


def seeks_verdict(item: pytest.Item) -> bool:
    """Return whether a gate's source asks for a verdict in any branch."""
    tree = parsed(item.obj) if isinstance(item, pytest.Function) else None
    return tree is not None and any(isinstance(node, ast.Attribute) and node.attr in KINDS for node in ast.walk(tree))


def _local(tree: ast.AST, params: Mapping[str, Any]) -> Iterator[str]:
    """Yield names whose value in the test is neither a parameter nor the module's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg not in params:
            yield node.arg
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _assigned(tree: ast.AST) -> dict[str, ast.expr]:
    """Return the values of names that are assigned exactly once."""
    assignments: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assignments.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in assignments.items() if len(values) == 1}


def _handed_on(tree: ast.AST, results: Collection[str]) -> bool:
    """Return whether code outside the test gets the fixture, a result or a metric, such as a helper."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == FIXTURE:
            if not isinstance(subscript := parents[node], ast.Subscript):
                return True
            use: ast.AST = subscript
        elif isinstance(node, ast.Name) and node.id in results and isinstance(node.ctx, ast.Load):
            use = node
        else:
            continue
        parent = parents[use]
        if isinstance(parent, ast.Attribute) and _is_bank_metric(parent.attr):
            parent = parents[parent]
            while isinstance(parent, ast.Subscript):
                parent = parents[parent]
        is_printed = isinstance(parent, ast.FormattedValue) or (isinstance(parent, ast.Call) and _prints(parent))
        if not (isinstance(parent, ast.Attribute | ast.Assign) or is_printed):
            return True
    return False


def _is_bank_metric(name: str) -> bool:
    return name in metric_names() and find_metric(name).on_banks


def _prints(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("print", "repr", "str")


def _subscript(node: ast.expr) -> str | None:
    """Return the name in ``adaptive_eval["name"]``, or None."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == FIXTURE:
        index = node.slice
        return index.value if isinstance(index, ast.Constant) and isinstance(index.value, str) else None
    return None


def _plain(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """Return the value of an argument.  Raise LookupError if it would have to be computed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_plain(node.operand, variables)
    if isinstance(node, ast.Name) and isinstance(variables.get(node.id), int | float | str):
        return variables[node.id]
    raise LookupError


def _recorded(metric: str, kind: str, values: list[Any], keywords: dict[str, Any]) -> Condition:
    """Return the condition that a call creates, by making the call on a result that records it."""
    noted: list[Condition] = []

    class Note:
        on_metric = None

        @staticmethod
        def verdict(condition: Condition) -> Any:
            noted.append(condition)

    getattr(BoundMetric(metric, Note()), kind)(*values, **keywords)  # type: ignore[arg-type]  # all that a metric asks of it
    return noted[0]


def resolve(name: str, interviews: Iterable[Held]) -> Held:
    """Return the one interview or study named `name`.

    Raises
    ------
    ConfigError
        None does, or more than one.
    """
    interviews = list(interviews)
    matches = [i for i in interviews if name in (i.evaluation.name, i.nodeid)]
    matches = matches or [i for i in interviews if name in i.aliases]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(i.nodeid for i in matches)
        raise ConfigError(
            f"adaptive_eval[{name!r}] could mean {ids}: name the evaluations apart (name=...) or use a node id"
        )
    names = ", ".join(sorted({i.evaluation.name for i in interviews})) or "none"
    raise ConfigError(
        f"adaptive_eval[{name!r}]: there is no such evaluation among those collected ({names}); check the name, and "
        "that the file of the evaluation is part of this run"
    )


def known(interviews: Iterable[Held]) -> set[str]:
    """Return all names that gates may use."""
    return set().union(*(interview.aliases for interview in interviews))


def named(item: pytest.Item) -> list[str] | None:
    """See `literal_names`; of a gate that is no function nothing is told."""
    return literal_names(item.obj) if isinstance(item, pytest.Function) else None


def judges_itself(item: pytest.Item) -> ConfigError:
    """Return the error of a test that asks questions and takes the fixture of gates."""
    return ConfigError(
        f"{item.nodeid}: a test with the marker adaptive_eval asks questions and cannot judge the answers too: "
        "move what uses the fixture adaptive_eval to a test of its own"
    )


def needed(item: pytest.Item, interviews: Sequence[Held]) -> list[Held]:
    """Return the interviews and studies that a gate waits for.

    Raises
    ------
    ConfigError
        It names an unknown or ambiguous evaluation, or asks questions itself.
    """
    if item in interviews:
        raise judges_itself(item)
    if (names := named(item)) is None:
        return list(interviews)
    try:
        return [resolve(name, interviews) for name in names]
    except ConfigError as error:
        raise ConfigError(f"{item.nodeid}: {error}") from None


def order(items: list[pytest.Item], wants: Mapping[pytest.Item, Sequence[Held]]) -> list[pytest.Item]:
    """Place each test directly after the last interview it needs, and add missing interviews before it."""
    from pytest_adaptive_eval.plugin.interview import Interview
    from pytest_adaptive_eval.plugin.study import Study

    placed: set[pytest.Item] = {i for i in items if isinstance(i, Interview | Study)}
    out: list[pytest.Item] = []
    done: set[pytest.Item] = set()
    waiting: list[pytest.Item] = []

    def place(item: pytest.Item) -> None:
        if any(interview not in done for interview in wants.get(item, ())):
            waiting.append(item)
            return
        out.append(item)
        if isinstance(item, Interview | Study):
            done.add(item)
            for other in [other for other in waiting if done.issuperset(wants[other])]:
                if other in waiting:
                    waiting.remove(other)
                    place(other)

    def bring(item: pytest.Item) -> None:
        for interview in wants.get(item, ()):
            if interview not in placed:
                placed.add(interview)
                bring(interview)
        place(item)

    for item in items:
        bring(item)
    return out


class Judged(Verdict):
    """A verdict as a gate gets it, which knows whether its truth or its outcome was asked for."""

    __slots__ = ("_told",)

    @classmethod
    def of(cls, verdict: Verdict) -> Judged:
        """Create from a verdict whose outcome has not been read."""
        return cls(**_parts(verdict))

    def __getattribute__(self, name: str) -> Any:
        if name == "outcome":
            object.__setattr__(self, "_told", True)
        return super().__getattribute__(name)

    @property
    def told(self) -> bool:
        """Whether anybody asked; to show it is not enough."""
        return hasattr(self, "_told")

    @property
    def sentence(self) -> str:
        """One line that can be read alone."""
        return Verdict(**_parts(self)).sentence


def _parts(verdict: Verdict) -> dict[str, Any]:
    return {part.name: object.__getattribute__(verdict, part.name) for part in fields(Verdict)}


class Results(NoVerdict):
    """The fixture ``adaptive_eval``: results of interviews and studies by name.

    Parameters
    ----------
    lookup : callable
        Gives the interview or study of a name, with its result.
    note : callable
        Told of each verdict asked for, and of whom; gives the one to use.
    expect : callable
        Told when a metric is taken, of which a verdict is to be asked for.
    """

    def __init__(
        self,
        lookup: Callable[[str], tuple[Held, SessionResult | StudyResult]],
        note: Callable[[Held, Verdict], Verdict],
        expect: Callable[[], object],
    ) -> None:
        self._lookup, self._note, self._expect = lookup, note, expect

    def __getitem__(self, name: str) -> Any:
        source, result = self._lookup(name)
        return replace(result, on_verdict=lambda verdict: self._note(source, verdict), on_metric=self._expect)

    def __repr__(self) -> str:
        return "adaptive_eval"
