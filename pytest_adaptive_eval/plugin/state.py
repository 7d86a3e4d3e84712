"""State of a run that the rooms of the plugin share, and the base classes of its tests."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation import GatePlan
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.models.store import CompletionStore, is_of_earlier_version, remove_store
from pytest_adaptive_eval.plugin.exchange import ResultExchange
from pytest_adaptive_eval.plugin.names import MOST_BYTES, PARAMETER
from pytest_adaptive_eval.text import clean_xml, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation import Evaluation, Settings
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.result import Result
    from pytest_adaptive_eval.records.history import History
    from pytest_adaptive_eval.records.run_record import EvaluationRecord


class PlaceGuard:
    """Process and thread of the collection, the only ones in which interviews and gates run, each once."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._begun: set[str] = set()
        self._repeated: set[str] = set()

    def begin(self, nodeid: str) -> bool:
        """Record that a test begins.  Return whether it may run."""
        if nodeid in self._begun:
            self._repeated.add(nodeid)
        self._begun.add(nodeid)
        return not self._refusal(nodeid)

    def check(self, nodeid: str) -> None:
        """Refuse a test that runs a second time or elsewhere.

        Raises:
            ConfigError: Another plugin does that.
        """
        if refusal := self._refusal(nodeid):
            raise ConfigError(
                f"{nodeid}: another plugin runs this test {refusal}; interviews and gates are run once, in the process "
                "and thread that collected them: leave that plugin out of a run with --adaptive-eval"
            )

    def _refusal(self, nodeid: str) -> str:
        if os.getpid() != self._process:
            return "in another process"
        if threading.get_ident() != self._thread:
            return "in another thread"
        if nodeid in self._repeated:
            return "for a second time"
        return ""


class Declared(NamedTuple):
    """A condition that a gate declares before the run."""

    node: EvaluationTest
    condition: Condition


RERUN_MARKERS = ("flaky",)  #: Markers by which plugins are told to run a failed test again.


@dataclass(eq=False)
class RunState:
    """State of a run in one process.  Under xdist, the controller and each worker have their own.

    Args:
        evaluations: Every evaluation that collection met, selected or not.
        needs: Evaluations that must precede a gate, or an interview whose baseline is another interview.
        declared: Conditions of gates with marks, and of TOML files.
        family: Number of claims that FAIL verdicts are corrected for: conditions that draws decide, and thresholds of
            other kinds.
    """

    config: pytest.Config
    settings: Settings
    exchange: ResultExchange
    places: PlaceGuard = field(default_factory=PlaceGuard)
    evaluations: list[EvaluationTest] = field(default_factory=list)
    needs: dict[pytest.Item, list[EvaluationTest]] = field(default_factory=dict)
    declared: dict[pytest.Item, list[Declared]] = field(default_factory=dict)
    family: int = 0

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.settings.folder

    @functools.cached_property
    def answers(self) -> CompletionStore | None:
        """Answers that runs share, opened when first asked for; None where every answer is asked for.

        The file that no flag names begins again above `MOST_BYTES` and after one of an earlier version, and is done
        without where it cannot be opened.

        Raises:
            ConfigError: The file that a flag names cannot be opened.
        """
        path = self.settings.reuse
        named = self.settings.names_reuse
        if path is None:
            return None
        try:
            if not named and path.is_file() and (path.stat().st_size > MOST_BYTES or is_of_earlier_version(path)):
                remove_store(path)
            store = CompletionStore(path, exclusive=False)
        except (ConfigError, OSError):
            if named:
                raise
            return None
        self.config.add_cleanup(store.close)
        return store

    @functools.cached_property
    def history(self) -> History | None:
        """Runs that are in the run folder when first asked for, None if there is none."""
        if not (self.folder / "runs").is_dir():
            return None
        from pytest_adaptive_eval.records.history import History

        return History(self.folder)

    def journal_path(self, key: str) -> Path:
        """Return the file of the answers of an evaluation, from the hash of all that makes it the same evaluation."""
        return self.folder / "journal" / f"{key[:24]}.sqlite"

    @property
    def worker(self) -> bool:
        """Whether this process is a worker of xdist."""
        return hasattr(self.config, "workerinput")

    def lookup(self, name: str) -> tuple[EvaluationTest, Result]:
        """Return the evaluation of a name or a node id, and its result."""
        node = resolve(name, self.evaluations)
        if node.result is None and (data := self.exchange.result(node.nodeid)):
            node.restore(data)
        if node.result is None:
            raise ConfigError(f"adaptive_eval[{name!r}]: the evaluation {node.nodeid} gave no result in this run")
        return node, node.result


def sets_up_only(config: pytest.Config) -> bool:
    """Return whether fixtures are set up and no test is called; pytest's plugin of that option may be off."""
    return bool(config.getoption("setuponly", False))


STATE: pytest.StashKey[RunState] = pytest.StashKey()  #: Key of the run's state in ``config.stash``.


class UnrepeatableTest(pytest.Function):
    """A test that plugins for flaky tests leave alone, since asking again would be another administration."""

    own_model: OwnModel | None = None  #: Model of a TOML file, in place of the fixture `model`.
    asks_items = False  #: Whether its questions do nothing but ask their items and grade the answers.

    @property
    def ids(self) -> list[str]:
        """Ids of the parameters."""
        # pytest has no public name for these; it is the same since pytest 8.0
        if hasattr(self, "callspec"):
            return [*self.callspec._idlist]
        return [self.name.partition("[")[2][:-1]]

    def iter_markers_with_node(self, name: str | None = None) -> Iterator[tuple[Any, pytest.Mark]]:
        """Yield markers of the test, except ones that request another run of it."""
        for node, mark in super().iter_markers_with_node(name):
            if mark.name not in RERUN_MARKERS:
                yield node, mark


def name_toml_test(test: pytest.Function, function: str) -> None:
    """Give a test without `callspec` the attributes that pytest derives from it, such as for ``--last-failed``."""
    test.originalname = function
    if hasattr(test, "id"):  # since pytest 9.2
        test._id = type(test.id).parse(test.nodeid)


@dataclass(eq=False)
class OwnModel:
    """A model of evaluations of one file, in place of the fixture `model`, loaded at their first question.

    Args:
        load: Generator function that yields the model and closes it, at the end of `file`.
        loaded: The model, once it is loaded.
        located: Context that adds the place of the evaluation to errors.
    """

    spec: str
    base: Path
    options: Mapping[str, Any]
    load: Callable[[], Iterator[Any]]
    file: pytest.Collector
    located: Callable[[], contextlib.AbstractContextManager[None]]
    loaded: list[Any] = field(default_factory=list)

    def get(self) -> Any:
        """Return the model, for a test of the file that is set up."""
        if not self.loaded:
            opened = self.load()
            self.loaded.append(next(opened))
            self.file.addfinalizer(self.loaded.clear)
            self.file.addfinalizer(lambda: next(opened, None))
        return self.loaded[0]


class EvaluationTest(UnrepeatableTest):
    """The test of an evaluation of any kind, whose result gates judge: it fails if the evaluation is void.

    An interview costs one collected item whatever its bank's size. When its turn comes it asks its session for
    questions, runs each through pytest's own protocol as an ordinary parametrized test, and then lets pytest run this
    test. Questions and test have the same parent, so module- and session-scoped fixtures (the model) are set up once.
    """

    evaluation: Evaluation
    gate_plan: GatePlan
    state: RunState
    shared_name = ""  #: Name before it was renamed, see `name_apart`.
    record: EvaluationRecord | None = None
    result: Result | None = None
    drift = ""  #: Action of the run where a level fell below that of earlier runs.
    skipped = ""  #: Why the user's own marks or fixtures skip this interview.
    predictions: str | None = None  #: File to keep the answers in that predict for an interview; None for no file.
    fault: Exception | None = None  #: An error that is not of this package, such as in a grader of the user's.
    #: Marker that keeps pytest-timeout from this test; an interview's questions do not inherit it.
    no_timeout: pytest.Mark | None = None

    def plan(self, evaluation: Evaluation, state: RunState) -> None:
        """Set the evaluation, and add the test to the tests of a run."""
        self.evaluation = evaluation
        self.gate_plan = GatePlan()
        self.state = state
        state.evaluations.append(self)
        if self.config.pluginmanager.hasplugin("timeout"):  # which would tear the model down
            self.add_marker(pytest.mark.timeout(0), append=False)
            self.no_timeout = self.own_markers[0]

    @property
    def aliases(self) -> set[str]:
        """Names by which a gate may ask for this evaluation."""
        return {self.shared_name or self.nodeid, self.nodeid, *self.evaluation.aliases}

    @property
    def place(self) -> tuple[str, ...]:
        """File, names within the file, and parameters, without the placeholder's."""
        path, _, names = self.nodeid.partition("[")[0].partition("::")
        return path, names, *(part for part in self.ids if not part.startswith(PARAMETER))

    @property
    def test_name(self) -> str:
        """Name of its function, with the user's own parameters, such as ``test_sums[german]``."""
        parameters = "-".join(self.place[2:])
        if parameters:
            return f"{self.originalname}[{parameters}]"
        return str(self.originalname)

    def setup(self) -> None:
        """Do nothing: fixtures belong to the questions, and some of them would read the placeholder."""

    def rename(self, name: str) -> None:
        """Give an interview another name; its draws stay the same."""
        self.shared_name = self.evaluation.name
        self.evaluation = self.evaluation.changed(name=name)

    def restore(self, data: dict[str, Any]) -> None:
        """Set the result from the JSON data of the process that ran the evaluation."""
        self.set_result(self.evaluation.restore(data))

    def set_result(self, result: Result) -> None:
        """Set the result, with what gates need to judge it."""
        self.result = replace(result, **self.gate_plan.result_arguments(self.evaluation, self.state.family))

    def runtest(self) -> None:
        """Fail when the evaluation is void, or failed items that must pass with no gate to say so.

        Wrong answers to other items never fail it.
        """
        if self.skipped:
            pytest.skip(self.skipped)
        if self.record is None:
            pytest.fail("the evaluation did not take place", pytrace=False)
        for name, value in self.record.facts().items():
            if value is not None:
                if isinstance(value, float):
                    text = number(value)
                else:
                    text = str(value)
                self.user_properties.append((name, clean_xml(text, 200)))
        if self.fault is not None:
            raise self.fault
        if self.record.error:
            pytest.fail(f"ERROR {self.record.name}: {self.record.error}", pytrace=False)
        answers = self.result.must_pass if self.result is not None else ()
        if not self.gate_plan.judged and any(answer.failed for answer in answers):
            pytest.fail(f"FAIL {self.record.name}: {must_pass_sentence(answers)}; no gate judges it", pytrace=False)


def resolve(name: str, nodes: Iterable[EvaluationTest]) -> EvaluationTest:
    """Return the one evaluation named `name`: by its name or node id, else by its bank, else by its test's function.

    Raises:
        ConfigError: No evaluation has that name, or several have it.
    """
    nodes = list(nodes)
    matches = []
    for node in nodes:
        if name in (node.evaluation.name, node.nodeid):
            matches.append(node)
    matches = matches or [node for node in nodes if name in node.aliases]
    matches = matches or [node for node in nodes if name == node.originalname]
    if len(matches) == 1:
        return matches[0]
    if matches:
        nodeids = ", ".join(node.nodeid for node in matches)
        raise ConfigError(
            f"adaptive_eval[{name!r}] could mean {nodeids}: name the evaluations apart (name=...), use a node id, or "
            f"judge all of them by a gate on {name + '[*]'!r}"
        )
    raise _unknown(name, nodes)


def resolve_all(name: str, nodes: Iterable[EvaluationTest]) -> list[EvaluationTest]:
    """Return the evaluations that a name means; each `*` in it matches any text.

    Raises:
        ConfigError: No evaluation has such a name, or several have one without a `*`.
    """
    nodes = list(nodes)
    if "*" not in name or any(name == node.evaluation.name for node in nodes):
        return [resolve(name, nodes)]
    pattern = re.compile(re.escape(name).replace(r"\*", ".*"), re.DOTALL)
    matches = []
    for node in nodes:
        if pattern.fullmatch(node.evaluation.name) or pattern.fullmatch(node.test_name):
            matches.append(node)
    if not matches:
        raise _unknown(name, nodes)
    return matches


def _unknown(name: str, nodes: Iterable[EvaluationTest]) -> ConfigError:
    """Return the error of a name that no evaluation has."""
    names = ", ".join(sorted({node.evaluation.name for node in nodes})) or "none"
    return ConfigError(
        f"adaptive_eval[{name!r}]: not among the collected evaluations ({names}); check the name, and "
        "that the file of the evaluation is part of this run"
    )
