"""State of a run that the modules of the plugin share, its exchange between processes, and its base classes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pytest
from numpy.random.mtrand import get_bit_generator, set_bit_generator

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.outputs import replacing
from pytest_adaptive_eval.plugin.names import PARAMETER
from pytest_adaptive_eval.text import shown_address
from pytest_adaptive_eval.typed_tables import suggestion

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation import Evaluation, Plan, Settings
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.result import Result
    from pytest_adaptive_eval.gates.suite import Suite
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.models.base import Completion, Model
    from pytest_adaptive_eval.models.store import CompletionStore
    from pytest_adaptive_eval.records.run_record import EvaluationRecord


class GeneratorStates:
    """States of the generators of `random`, `numpy.random` and torch that belong to one interview.

    A sampling model may draw from a global generator. A plugin that seeds the generators before every test would give
    it the same draws for every question, so repeated answers are copies of one answer. Each question has states of its
    own. A resumed run therefore has the same, although it asks for fewer answers.

    Attributes:
        seed: Seed of all states, drawn when the interview begins, so two runs differ.
    """

    def __init__(self, key: str) -> None:
        self._key, self._place = key, ""
        self._numpy = np.random.MT19937(0)
        self._torch: tuple[Any, Any] | None = None  #: States of torch before the interview.
        self.seed = ""

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Restore at the end of this context, which holds the interview, the states that the generators have now."""
        python_state, numpy = random.getstate(), get_bit_generator()
        self.seed = str(random.Random(f"{self._key} {python_state} {np.random.get_state()}").getrandbits(64))
        try:
            yield
        finally:
            random.setstate(python_state)
            set_bit_generator(numpy)
            if self._torch is not None:
                cpu, devices = self._torch
                sys.modules["torch"].set_rng_state(cpu)
                if devices is not None:
                    sys.modules["torch"].cuda.set_rng_state_all(devices)

    def begin(self, *place: object) -> None:
        """Set the states of a question's phase."""
        self._place = repr(place)
        self._set()

    def resume(self, seed: str) -> None:
        """Use the seed of an earlier run, from now on."""
        self.seed = seed
        self._set()

    def _set(self) -> None:
        words = hashlib.sha512(f"{self.seed} {self._place}".encode()).digest()
        random.seed(words[:24])
        set_bit_generator(self._numpy)
        np.random.seed(int.from_bytes(words[24:28], "little"))  # a number is fifteen times as quick as an array
        if (torch := sys.modules.get("torch")) is not None:
            if self._torch is None:
                devices = torch.cuda.is_available() and torch.cuda.is_initialized()
                self._torch = torch.get_rng_state(), torch.cuda.get_rng_state_all() if devices else None
            torch.manual_seed(int.from_bytes(words[28:36], "little"))


def drawn_so_far() -> object:
    """Return what differs after a draw from the generators of `random` or `numpy.random`."""
    state: Any = np.random.get_state(legacy=False)
    return random.getstate(), state["state"]["pos"], state["state"]["key"].tobytes()


class PlaceGuard:
    """Process and thread of the collection, the only ones in which interviews and gates run, each once."""

    def __init__(self) -> None:
        self._process, self._thread = os.getpid(), threading.get_ident()
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
        return "for a second time" if nodeid in self._repeated else ""


_PAUSE = 0.05  #: Seconds between two checks for a result.


class Planned(NamedTuple):
    """An interview or a gate that this run must account for; the budget of a gate is 0."""

    nodeid: str
    budget: int
    needs: Sequence[str] = ()


class Selection(NamedTuple):
    """Gates that a run leaves out, and gates that the settings require.

    Args:
        chosen: Whether options such as ``-k`` deselected them, rather than a node id on the command line.
        required: Node ids of the gates that the settings require, by their names there; see `selection.required_gates`.
        near: Similar names of collected gates, for required gates that were not collected.
        shard: Options by which this run is one shard of several; else empty.
    """

    deselected: Sequence[str] = ()
    chosen: bool = False
    required: Mapping[str, list[str]] = {}
    near: Mapping[str, list[str]] = {}
    shard: str = ""


class ResultExchange:
    """A folder of results by node id, on a worker the controller's; there is none if the run has one process."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = Path(folder) if folder else None
        self._owns_folder = False
        self._plan: list[Planned] = []
        self._selection: Selection | None = None

    def make(self) -> str:
        """Make the folder, on the controller, and return its path."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="adaptive-eval-"))
            self._owns_folder = True
        return str(self._folder)

    def close(self) -> None:
        """Remove the folder if this process made it."""
        if self._owns_folder and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder, self._owns_folder = None, False

    def _path(self, name: str) -> Path | None:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json" if self._folder else None

    def _put(self, name: str, data: Any) -> None:
        if path := self._path(name):
            with replacing(path) as file:
                file.write(json.dumps(data).encode())

    def _get(self, name: str) -> Any:
        path = self._path(name)
        return json.loads(path.read_text()) if path is not None and path.exists() else None

    def plan(self, planned: list[Planned], selection: Selection) -> None:
        """Publish the interviews and gates that this run must account for, in their order, and its selection."""
        self._plan, self._selection = planned, selection
        self._put("plan", planned)
        self._put("selection", selection)

    def planned(self) -> list[Planned]:
        """Return the planned tests, as `plan` published them."""
        return self._plan or [Planned(*entry) for entry in self._get("plan") or ()]

    def selection(self) -> Selection:
        """Return the selection, as `plan` published it."""
        return self._selection or Selection(*self._get("selection") or ())

    def publish_lines(self, lines: list[str]) -> None:
        """Publish lines for the controller to print."""
        self._put("lines", lines)

    def lines(self) -> list[str]:
        """Return the lines that a worker published by `publish_lines`."""
        lines: list[str] = self._get("lines") or []
        return lines

    def publish(self, nodeid: str, result: dict[str, Any]) -> None:
        """Publish a result."""
        self._put(nodeid, result)

    def result(self, nodeid: str) -> dict[str, Any] | None:
        """Return a published result, or None."""
        data: dict[str, Any] | None = self._get(nodeid)
        return data

    def break_off(self) -> None:
        """Publish that a worker died, so no process waits for its results."""
        self._put("broken", True)

    def wait(self, nodeids: Iterable[str]) -> None:
        """Wait until every result is published, a worker has died, or the controller has ended."""
        missing = set(nodeids)
        while missing and self._folder is not None and self._folder.exists() and not self._get("broken"):
            missing = {nodeid for nodeid in missing if self.result(nodeid) is None}
            if missing:
                clock.sleep(_PAUSE)


class Declared(NamedTuple):
    """A condition that a gate declares before the run."""

    node: EvaluationNode
    condition: Condition


WRONG_ANSWER = '@pytest.mark.adaptive_eval(..., wrong_answer="...")'  #: How to name an answer that a test must fail.
RERUN_MARKERS = ("flaky",)  #: Markers by which plugins are told to run a failed test again.


@dataclass(eq=False)
class RunState:
    """State of a run in one process.  Under xdist, the controller and each worker have their own.

    Args:
        evaluations: Every evaluation that collection met, selected or not.
        needs: Evaluations that must precede a gate, or an interview whose baseline is another interview.
        declared: Conditions of gates with marks, and of TOML files.
        suites: Requirements of gates that need some of their conditions.
        family: Number of claims that FAIL verdicts are corrected for: conditions that draws decide, and thresholds of
            other kinds.
        pipeline: `pipeline.Pipeline`, which imports this module.
        answers: Answers that runs share; None where every answer is asked for.
    """

    config: pytest.Config
    settings: Settings
    exchange: ResultExchange
    places: PlaceGuard = field(default_factory=PlaceGuard)
    evaluations: list[EvaluationNode] = field(default_factory=list)
    needs: dict[pytest.Item, list[EvaluationNode]] = field(default_factory=dict)
    declared: dict[pytest.Item, list[Declared]] = field(default_factory=dict)
    suites: dict[pytest.Item, Suite] = field(default_factory=dict)
    family: int = 0
    pipeline: Any = None
    answers: CompletionStore | None = None

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.settings.folder

    def journal_path(self, key: str) -> Path:
        """Return the file of the answers of an evaluation, from the hash of all that makes it the same evaluation."""
        return self.folder / "journal" / f"{key[:24]}.sqlite"

    @property
    def worker(self) -> bool:
        """Whether this process is a worker of xdist."""
        return hasattr(self.config, "workerinput")

    def lookup(self, name: str) -> tuple[EvaluationNode, Result]:
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
        return [*self.callspec._idlist] if hasattr(self, "callspec") else [self.name.partition("[")[2][:-1]]

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


class EvaluationNode(UnrepeatableTest):
    """An evaluation: a test whose result gates judge."""

    evaluation: Evaluation | Plan
    gate_plan: Any  #: `gates.GatePlan`, which imports this module.
    state: RunState
    is_interview = True  #: Whether it asks one subject items.
    shared_name = ""  #: Name before it was renamed, see `name_apart`.
    record: EvaluationRecord | None = None
    result: Result | None = None
    #: Marker that keeps pytest-timeout from this test; an interview's questions do not inherit it.
    no_timeout: pytest.Mark | None = None

    def register(self, state: RunState) -> None:
        """Add the test to the evaluations of a run."""
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

    def setup(self) -> None:
        """Do nothing: fixtures belong to the questions, and some of them would read the placeholder."""

    def rename(self, name: str) -> None:
        """Give an interview another name; its draws stay the same."""
        raise NotImplementedError

    def administer(self) -> None:
        """Run the evaluation, and set its result and its record."""
        raise NotImplementedError

    def restore(self, data: dict[str, Any]) -> None:
        """Set the result from the JSON data of the process that ran the evaluation."""
        raise NotImplementedError


class TestFinding:
    """What answers have shown of a test.

    Attributes:
        methods: Methods of the item by which the test has judged an answer: ``grade``, ``score``.
        asks_item: Whether the test asked for an answer to its item as it is, and for nothing else; None if unknown.
        grades_answer: Whether the test gave made-up answers to ``item.grade`` as they are, and all real ones so far.
        random: Whether the test drew from the generators of `random` or `numpy.random`, as for a part of its prompt.
    """

    def __init__(self) -> None:
        self.methods: set[str] = set()
        self.asks_item: bool | None = None
        self.grades_answer = False
        self.random = False


class QuestionOwner(Protocol):
    """The interview of a question, with what the question needs."""

    nodeid: str
    skipped: str  #: Why the user's own marks or fixtures skip the interview; empty where they do not.
    reruns: int  #: Number of times that another plugin ran a question again, which asked nothing.
    generators: GeneratorStates  #: Random state that the questions share.
    finding: TestFinding  #: What made-up answers have shown of the test.

    def latest(self, taken: Sequence[tuple[Model, Completion]]) -> Completion | None:
        """Return the latest of the completions that the model under evaluation gave; None if it is no `Model`."""

    def begin(self, test: Any) -> None:
        """Have a question answered before its test runs, if the test asks its item as it is."""

    def complete(self, subject: Model, item: Item) -> Completion:
        """Return the completion of a request that the test of the current question makes."""

    def check_passed(self, test: Any) -> None:
        """End the interview if the test of a question that passed accepts answers to other questions."""

    def give_up(self, sentence: str, *, usage: bool = False) -> None:
        """End the interview as void; the first reason is kept."""


def resolve(name: str, nodes: Iterable[EvaluationNode]) -> EvaluationNode:
    """Return the one evaluation named `name`.

    Raises:
        ConfigError: No evaluation has that name, or several have it.
    """
    nodes = list(nodes)
    matches = [node for node in nodes if name in (node.evaluation.name, node.nodeid)]
    matches = matches or [node for node in nodes if name in node.aliases]
    if len(matches) == 1:
        return matches[0]
    if matches:
        nodeids = ", ".join(node.nodeid for node in matches)
        raise ConfigError(
            f"adaptive_eval[{name!r}] could mean {nodeids}: name the evaluations apart (name=...) or use a node id"
        )
    names = ", ".join(sorted({node.evaluation.name for node in nodes})) or "none"
    raise ConfigError(
        f"adaptive_eval[{name!r}]: there is no such evaluation among those collected ({names}); check the name, and "
        "that the file of the evaluation is part of this run"
    )


def empty_flag(flag: str) -> ConfigError:
    """Return the refusal of a flag with an empty value."""
    return ConfigError(f"{flag} is empty: give it a value (is a variable of the shell unset?) or leave it out")


def name_apart(nodes: Iterable[EvaluationNode]) -> None:
    """Rename evaluations that share a name, such as those from a parametrized test, by what differs in their node ids.

    Raises:
        ConfigError: One of them is not an interview, whose plan contains its name, or a test is collected twice.
    """
    groups: dict[str, list[EvaluationNode]] = {}
    for node in nodes:
        groups.setdefault(node.evaluation.name, []).append(node)
    for name, group in groups.items():
        if len(group) == 1:
            continue
        if len({node.nodeid for node in group}) < len(group):
            raise ConfigError(f"{group[0].nodeid} is collected twice: leave out --keep-duplicates")
        if not all(node.is_interview for node in group):
            nodeids = " and ".join(node.nodeid for node in group)
            raise ConfigError(f"{nodeids} have the name {name!r}: rename one of them (name = ...)")
        parts_by_place = itertools.zip_longest(*(node.place for node in group), fillvalue="")
        differing = [parts for parts in parts_by_place if len(set(parts)) > 1]
        for node, parts in zip(group, zip(*differing, strict=True), strict=True):
            node.rename(f"{name}[{'-'.join(filter(None, parts))}]")


FLAG = "--adaptive-eval-model"
#: ``NAME=MODEL``; a URL, a path and a kind such as ``replay:`` have other signs before the first ``=``.
_NAMED = re.compile(r"([\w. -]+)=(.*)", re.DOTALL)


def split_models(values: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """Return the model of all evaluations, if there is one, and the models of single evaluations by name.

    A value that is a file or a folder as a whole names that, whatever signs it has. Of several the last counts.

    Raises:
        ConfigError: A value or a model is empty.
    """
    whole: str | None = None
    named: dict[str, str] = {}
    for value in values:
        match = None if Path(value).exists() else _NAMED.fullmatch(value)
        name, model = (match[1], match[2]) if match else ("", value)
        if not model:
            raise empty_flag(FLAG)
        if name:
            named[name] = model
        else:
            whole = model
    return whole, named


def check_named(models: Mapping[str, str], used: Collection[str]) -> None:
    """Refuse models of evaluations that no file of the run has.

    Raises:
        ConfigError: The message suggests a name.
    """
    for name, model in models.items():
        if name not in used:
            raise ConfigError(
                f"{FLAG}={name}={shown_address(model)}: no TOML file of this run has an evaluation {name!r}; "
                f"{suggestion(name, sorted(used))}; tests in Python take their models from fixtures"
            )
