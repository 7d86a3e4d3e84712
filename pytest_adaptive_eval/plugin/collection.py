"""Collection: marked tests and TOML files become interviews, gates find their place, mistakes end the run."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.config import STUDIES, CodeRunner, EvalSpec, StudyContext, StudySpec, TaskGraders
from pytest_adaptive_eval.errors import BaselineError, BaselineMissing, ConfigError, UsageError
from pytest_adaptive_eval.gates.condition import Condition, register_metrics
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.policy import AdaptiveClimb, Climb
from pytest_adaptive_eval.plugin import gates as gate_rules
from pytest_adaptive_eval.plugin.exchange import Planned, Selection
from pytest_adaptive_eval.plugin.fixtures import NO_MODEL, check_models, may_read_flags, model_function
from pytest_adaptive_eval.plugin.gate_parameters import hide_parameters
from pytest_adaptive_eval.plugin.interview import Interview
from pytest_adaptive_eval.plugin.model_fixture import check_scope
from pytest_adaptive_eval.plugin.names import MARKER, is_eval_file, refuse
from pytest_adaptive_eval.plugin.question import PARAMETER, PLACEHOLDER, Question, crash_line, is_placeholder, question
from pytest_adaptive_eval.plugin.refusals import check_collected, marker_fault
from pytest_adaptive_eval.plugin.selection import near_names, required_gates, shard_of
from pytest_adaptive_eval.plugin.study import Study
from pytest_adaptive_eval.plugin.tomlfile import EvalFile
from pytest_adaptive_eval.records.baseline import read_baseline
from pytest_adaptive_eval.records.files import probe
from pytest_adaptive_eval.text import guard, relative

if TYPE_CHECKING:
    from pytest_adaptive_eval.config.study import StudyKind
    from pytest_adaptive_eval.plugin.run import AdaptiveEval
    from pytest_adaptive_eval.tasks import TaskFamily

__all__ = ["Collection"]


class Collection:
    """Hooks of collection, in every process that collects.

    Parameters
    ----------
    state : AdaptiveEval
        Gets the interviews, and what each gate waits for.
    """

    def __init__(self, state: AdaptiveEval) -> None:
        self.state, self.config = state, state.config
        self._mistakes: list[str] = []
        #: Functions of evaluations with a mistake: that these are no interviews is no second one.
        self._mistaken: set[object] = set()
        self._banks: dict[Path, ItemBank] = {}
        #: Gates and studies, which got the marker here.
        self._marked: set[pytest.Item] = set()
        #: Every gate that collection met, by node id, selected or not.
        self._gates: dict[str, pytest.Item] = {}
        #: Names of required gates.
        self._required = list(state.settings.required_gates)

    def mistake(self, error: UsageError) -> None:
        """Keep an error of the user until collection has found all of them."""
        self._mistakes.append(str(error))

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect TOML evaluations."""
        if not is_eval_file(file_path):
            return None
        self._register_metrics()
        file = EvalFile.from_parent(parent, path=file_path)
        file.settings, file.mistake, file.require = self.state.settings, self.mistake, self._required.extend
        file.kinds = self.config.hook.pytest_adaptive_eval_study_kinds(config=self.config)
        return file

    def _register_metrics(self) -> None:
        """Register the metrics of plugins, including those of a conftest file that was just collected."""
        try:
            register_metrics(self.config.hook.pytest_adaptive_eval_metrics(config=self.config))
        except ConfigError as error:
            self.mistake(error)

    @pytest.hookimpl(tryfirst=True)
    def pytest_adaptive_eval_study_kinds(self) -> Mapping[str, Callable[[], StudyKind]]:
        """Provide the built-in kinds of studies."""
        return STUDIES

    @pytest.hookimpl(tryfirst=True)
    def pytest_adaptive_eval_task_families(self) -> Sequence[TaskFamily]:
        """Provide the built-in task families."""
        from pytest_adaptive_eval.tasks import FAMILIES

        return list(FAMILIES.values())

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give a marked function its one placeholder."""
        mark = metafunc.definition.get_closest_marker(MARKER)
        if mark is None:
            return
        try:
            spec = self._spec(metafunc.definition, mark)
        except UsageError as error:
            self.mistake(error)
            self._mistaken.add(metafunc.function)
            if "item" in metafunc.fixturenames:
                metafunc.parametrize("item", [], ids=[])
            return
        metafunc.parametrize("item", [PLACEHOLDER], ids=[spec.parameter_id])

    def _where(self, node: pytest.Item) -> str:
        declared: str | None = getattr(getattr(node, "obj", None), "adaptive_eval_where", None)
        path, line, name = node.reportinfo()
        return declared or f"{path}:{(line or 0) + 1}: {name}"

    def _spec(self, node: pytest.Item, mark: pytest.Mark) -> EvalSpec:
        where = self._where(node)
        data = dict(mark.kwargs)
        if sum(marker.name == MARKER for marker in node.own_markers) > 1:
            raise ConfigError(f"{where}: two markers {MARKER} on one test; write one test a bank")
        if len(mark.args) > 1 or (mark.args and "bank" in data):
            raise ConfigError(f"{where}: the marker {MARKER} takes one bank and keywords, got {mark.args!r}")
        if mark.args:
            data["bank"] = mark.args[0]
        if isinstance(data.get("bank"), os.PathLike):
            data["bank"] = os.fspath(data["bank"])
        spec = EvalSpec(data, where, node.path.parent)
        if "item" not in getattr(node, "fixturenames", ()):
            raise ConfigError(f"{where}: the test takes no argument `item`, which is the question it asks; add it")
        if inspect.iscoroutinefunction(getattr(node, "obj", None)):
            raise ConfigError(f"{where}: an async test cannot ask adaptively; write `def` and run the coroutine in it")
        return spec

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Make an interview of each placeholder, and questions of those named on the command line; notice gates."""
        collected = yield
        if not isinstance(collected, list):
            return collected
        self._notice(collected)
        out: list[pytest.Item | pytest.Collector] = []
        for node in collected:
            try:
                if isinstance(spec := getattr(getattr(node, "obj", None), "adaptive_eval_study", None), StudySpec):
                    out.append(self._study(node, spec))
                    continue
                if not is_placeholder(node):
                    out.append(node)
                    continue
                out.append(interview := self._interview(node))
                out.extend(self._named(interview))
            except UsageError as error:
                self.mistake(error)
                self._mistaken.add(node.function)
                out.append(node)  # or pytest would only say that a test named on the command line is not there
        return out

    def _notice(self, nodes: Iterable[object]) -> None:
        """Keep the gates among collected nodes, some of which a selection drops later."""
        gates = (node for node in nodes if isinstance(node, pytest.Item) and gate_rules.is_gate(node))
        self._gates |= {gate.nodeid: gate for gate in gates}

    def _study(self, node: pytest.Function, spec: StudySpec) -> Study:
        folders = (self.config.invocation_params.dir, self.config.rootpath)
        plan = spec.build(self.state.settings, StudyContext(folders, lambda: self._tasks, self._bank))
        study: Study = Study.from_parent(node.parent, name=node.name, callobj=node.obj, fixtureinfo=node._fixtureinfo)
        study.evaluation, study.state, study.kind = plan, self.state, spec.data["kind"]
        if self.config.pluginmanager.hasplugin("timeout"):
            study.add_marker(pytest.mark.timeout(0), append=False)
        self.state.studies.append(study)
        return study

    def _interview(self, node: pytest.Function) -> Interview:
        mark = node.get_closest_marker(MARKER)
        assert mark is not None
        where = self._where(node)
        evaluation = self._spec(node, mark).build(
            self.state.settings,
            read=self._bank,
            selector=lambda name: self.config.hook.pytest_adaptive_eval_selector(name=name, config=self.config),
            tasks=lambda: self._tasks,
        )
        definitions = node._fixtureinfo.name2fixturedefs.get("model", ())
        if definitions and definitions[-1].func is model_function and self.state.settings.model is None:
            raise ConfigError(f"{where}: {NO_MODEL}")
        named = self.config.getoption("adaptive_eval_model")
        if definitions and named is not None and not may_read_flags(definitions, node._fixtureinfo):
            home = relative(inspect.getfile(definitions[-1].func), self.config.rootpath)
            note = f"the model is of the fixture `model` in {home}, and not the --adaptive-eval-model that was named"
            evaluation = dataclasses.replace(evaluation, notes=(*evaluation.notes, note))
        check_scope(node, "model", where)
        interview: Interview = Interview.from_parent(
            node.parent,
            name=node.name,
            callspec=node.callspec,
            fixtureinfo=node._fixtureinfo,
            originalname=node.originalname,
        )
        interview.evaluation, interview.state = evaluation, self.state
        interview.planned, interview.unplanned, interview.sources, interview.absent = [], [], {}, {}
        if self.config.pluginmanager.hasplugin("timeout"):
            interview.add_marker(pytest.mark.timeout(0), append=False)
            interview.untimed = interview.own_markers[0]
        self.state.interviews.append(interview)
        return interview

    @functools.cached_property
    def _tasks(self) -> Mapping[str, TaskFamily]:
        """Task families by name, with those of plugins; loaded when the first evaluation wants one."""
        from pytest_adaptive_eval.tasks import families

        provided = self.config.hook.pytest_adaptive_eval_task_families(config=self.config)
        runner = CodeRunner(unsafe=self.state.settings.unsafe_code)
        return families(itertools.chain.from_iterable(provided), runner)

    def _bank(self, path: Path) -> ItemBank:
        path = path.resolve()
        if path not in self._banks:
            bank = self.config.hook.pytest_adaptive_eval_items(path=path, config=self.config)
            if bank is None:
                tasks = TaskGraders(lambda: self._tasks)
                bank = read_bank(path, graders=self.state.settings.graders, tasks=tasks)
            elif not isinstance(bank, ItemBank):
                raise ConfigError(f"a plugin made {bank!r} of {path}, and pytest_adaptive_eval_items gives an ItemBank")
            self._banks[path] = bank
        return self._banks[path]

    def _named(self, interview: Interview) -> list[Question]:
        """Return the questions that the command line names, such as ``file::test[item-id]``."""
        bank, ids = interview.evaluation.bank, interview.callspec._idlist
        at = next(n for n, part in enumerate(ids) if part.startswith(PARAMETER))
        before = "".join(f"{part}-" for part in ids[:at])
        after = "".join(f"-{part}" for part in ids[at + 1 :])
        names = interview.nodeid.partition("[")[0].split("::")[1:]
        item_names: dict[str, None] = {}
        for argument in self.config.args:
            test, _, parameters = argument.partition("[")
            path, *rest = test.split("::")
            name = parameters.removesuffix("]").removeprefix(before).removesuffix(after)
            same_test = (
                rest == names and (self.config.invocation_params.dir / path).resolve() == interview.path.resolve()
            )
            if same_test and name not in ("", ids[at]) and parameters == f"{before}{name}{after}]":
                item_names[name] = None
        try:
            return [question(interview, *self._sample(bank, name)) for name in item_names]
        except UsageError as error:
            raise pytest.Collector.CollectError(f"{interview.nodeid}: {error}") from None

    @staticmethod
    def _sample(bank: ItemBank, name: str) -> tuple[Item, int]:
        """Return the item that an id such as ``ITEM#2`` names, and its sample, from 0."""
        item, sign, number = name.rpartition("#")
        if sign and number.isdecimal() and int(number) > 1 and item in bank.ids and name not in bank.ids:
            return bank.items[bank.index(item)], int(number) - 1
        return bank.items[bank.index(name)], 0

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Refuse files that skip themselves and speak of evaluations: their gates would not be missed."""
        path = self.config.rootpath / report.nodeid
        if report.skipped and path.is_file() and MARKER.encode() in path.read_bytes():
            self.mistake(
                ConfigError(
                    f"{report.nodeid} speaks of {MARKER} and is skipped as a whole ({crash_line(report)}): its gates "
                    "would be missing; leave the file out with --ignore if they are not to count"
                )
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Put each gate after its interviews, and those back that a selection dropped; report mistakes."""
        self._register_metrics()
        for item in items:  # -m takes or leaves interviews and gates alike
            if (gate_rules.is_gate(item) or isinstance(item, Study)) and item.get_closest_marker(MARKER) is None:
                item.add_marker(MARKER)
                self._marked.add(item)
        self._notice(items)
        collected = {item.nodeid for item in items}
        yield
        state = self.state
        # an evaluation that a gate names may be one of those with a mistake
        doubtful = gate_rules.known(state.held) if self._mistakes else None
        for item in items:
            try:
                self._check(item)
                if gate_rules.is_gate(item) and (doubtful is None or doubtful.issuperset(gate_rules.named(item) or ())):
                    state.wants[item] = gate_rules.needed(item, state.held)
                    self._plan(item)
            except UsageError as error:
                self.mistake(error)
        if not self._mistakes:
            kept, run = set(items), {item.nodeid for item in items}
            left_out = [gate for nodeid, gate in self._gates.items() if nodeid not in run]
            state.family += sum(map(self._denials_of, left_out))
            items[:] = gate_rules.order(items, state.wants)
            self._not_deselected(set(items) - kept)
            ours = [i for i in items if isinstance(i, Interview | Study) or i in state.wants]
            try:
                state.exchange.plan([self._planned(item) for item in ours], self._selection(left_out, collected))
            except UsageError as error:
                self.mistake(error)
            if state.worker:  # whose output nobody sees
                state.exchange.tell(self.pytest_report_collectionfinish(items))
            if state.exchange.planned() and not self.config.option.collectonly:
                interviews = [item for item in items if isinstance(item, Interview)]
                try:
                    check_collected(self.config, ours, bool(interviews))
                    for interview in interviews:
                        _ = interview.evaluation.bank.items[0]  # checks the hash of all texts, before any call
                    probe(state.folder)
                    if not self.config.getoption("setuponly", False):
                        check_models(self.config, interviews, [i for i in items if isinstance(i, Study)])
                except UsageError as error:
                    self.mistake(error)
        if self._mistakes:
            refuse(self.config, items, "\n".join(dict.fromkeys(self._mistakes)))
        for item in items:
            if isinstance(item.parent, EvalFile):
                hide_parameters(item)

    def _selection(self, left_out: Sequence[pytest.Item], collected: set[str]) -> Selection:
        """Tell what the run leaves out, and which gates the settings require."""
        functions = {
            nodeid: f"{nodeid.removesuffix(gate.name)}{getattr(gate, 'originalname', None) or gate.name}"
            for nodeid, gate in self._gates.items()
        }
        required = required_gates(self._required, functions)
        near = {name: near_names(name, functions) for name, nodeids in required.items() if not nodeids}
        nodeids = [gate.nodeid for gate in left_out]
        return Selection(nodeids, not collected.isdisjoint(nodeids), required, near, shard_of(self.config))

    def _plan(self, gate: pytest.Item) -> None:
        """Add a gate's conditions to its interviews."""
        try:
            conditions = gate_rules.literal_conditions(gate)
            for name, condition in conditions or ():
                interview = gate_rules.resolve(name, self.state.held)
                if isinstance(interview, Study):
                    interview.evaluation.check(condition)
                    self.state.family += _denials(condition, interview)
                    continue
                condition.check(interview.evaluation.bank, climbed=interview.evaluation.policy.stop == "level")
                if isinstance(ladder := interview.evaluation.policy.selector, Climb | AdaptiveClimb):
                    condition.measure.check_ladder(ladder)
                why = interview.evaluation.policy.design_based
                if why and not condition.by_level and not condition.by_rank:
                    raise ConfigError(f"{interview.evaluation.name}: this interview cannot feed a gate: {why}")
                if condition.kind == "not_worse_than" and not self._baseline(interview, condition.name):
                    continue
                interview.planned.append(condition)
                self.state.family += _denials(condition, interview)
        except UsageError as error:
            raise type(error)(f"{gate.nodeid}: {error}") from None
        if conditions is None:
            self.state.family += len(self.state.wants[gate])  # it asks each for a verdict, as far as can be known
            for interview in self.state.wants[gate]:
                if isinstance(interview, Interview):
                    interview.unplanned.append(gate.name)

    def _denials_of(self, gate: pytest.Item) -> int:
        """Return how many FAIL verdicts a deselected gate may give elsewhere, such as in another shard."""
        try:
            interviews = gate_rules.needed(gate, self.state.held)
            if (conditions := gate_rules.literal_conditions(gate)) is None:
                return len(interviews)
            return sum(_denials(condition, gate_rules.resolve(name, self.state.held)) for name, condition in conditions)
        except UsageError:  # a mistake that only a run of this gate needs to mend
            return 1

    def _baseline(self, interview: Interview, name: str) -> bool:
        """Find what a paired gate compares with: another interview of this run, or a file; whether there is one yet."""
        others = [other for other in self.state.interviews if other is not interview]
        if any(name in other.aliases for other in others):
            other = gate_rules.resolve(name, others)
            assert isinstance(other, Interview)
            if not other.evaluation.bank.comparable(interview.evaluation.bank):
                raise BaselineError(
                    f"the evaluations {interview.evaluation.name!r} and {name!r} ask different banks: a comparison "
                    "needs the same items"
                )
            if interview in self._before(other):
                raise BaselineError(f"{interview.evaluation.name!r} and {name!r} are each other's baseline")
            interview.sources[name] = other
            self.state.wants.setdefault(interview, []).append(other)
            return True
        settings, evaluation = self.state.settings, interview.evaluation
        spec = settings.baseline if name == "baseline" else name
        folders = (self.config.invocation_params.dir, interview.path.parent, self.config.rootpath)
        try:
            if spec is None:
                raise BaselineMissing(
                    "there is no baseline: name one with --adaptive-eval-baseline=FILE or the ini setting "
                    "adaptive_eval_baseline, a run's record (--adaptive-eval-record writes one) or a file of answers"
                )
            interview.sources[name] = read_baseline(spec, folders, evaluation.bank, evaluation.name)
        except BaselineMissing as error:
            if name != "baseline" or settings.missing_baseline == "fail":
                raise
            interview.absent[name] = str(error)
        return name not in interview.absent

    def _before(self, interview: Interview) -> set[Interview]:
        """Return an interview and all interviews that it waits for."""
        interviews = {interview}
        for other in self.state.wants.get(interview, ()):
            if isinstance(other, Interview):
                interviews |= self._before(other)
        return interviews

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Report the expected result of each gate before the first question."""
        lines = [
            f"adaptive-eval: {item.evaluation.name}: {item.evaluation.outlook}"
            for item in items
            if isinstance(item, Study)
        ]
        for interview in (item for item in items if isinstance(item, Interview)):
            lines += [
                f"adaptive-eval: WARNING: {interview.evaluation.name}: {why}" for why in interview.absent.values()
            ]
            if lead := interview.evaluation.lead:
                lines.append(f"adaptive-eval: {interview.evaluation.name}: {lead}")
            for condition in interview.planned:
                if condition.by_draws and interview.evaluation.policy.stop == "decision":
                    lines.append(f"adaptive-eval: {interview.outlook(condition)}")
        return [guard(line) for line in lines if self.config.get_verbosity() >= 0 or "WARNING" in line]

    def _check(self, item: pytest.Item) -> None:
        """Refuse what would quietly be no interview, or one whose outcome means something else."""
        if item.get_closest_marker(MARKER) is None:
            return
        if fault := marker_fault(item):
            raise ConfigError(fault)
        if item in self._marked:
            return
        if not isinstance(item, Interview | Question):
            if getattr(item, "function", None) in self._mistaken:
                return
            raise ConfigError(
                f"{item.nodeid}: the marker {MARKER} has no effect on this kind of test; use a plain function, or a "
                "method of a class that is no unittest.TestCase"
            )
        for mark in item.iter_markers("xfail"):
            if mark.kwargs.get("strict", self._strict):
                raise ConfigError(
                    f"{self._where(item)}: a strict xfail fails every question that is answered; remove it, or write "
                    "strict=False"
                )

    @property
    def _strict(self) -> bool:
        """Whether the ini settings make every xfail strict; pytest 9 has two names for it."""
        if self.config.getini("xfail_strict"):
            return True
        try:
            return bool(self.config.getini("strict"))
        except (KeyError, ValueError):
            return False

    def _planned(self, item: pytest.Item) -> Planned:
        if isinstance(item, Interview):
            return Planned(item.nodeid, item.evaluation.questions, [i.nodeid for i in self.state.wants.get(item, ())])
        return Planned(item.nodeid, 0, [source.nodeid for source in self.state.wants.get(item, ())])

    def _not_deselected(self, restored: set[pytest.Item]) -> None:
        """Take interviews that a gate brought back out of the count of deselected tests."""
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and restored:
            counted = reporter.stats.get("deselected", [])
            counted[:] = [item for item in counted if item not in restored]


def _denials(condition: Condition, source: gate_rules.Held) -> int:
    """Return how many FAIL verdicts a condition may give that FAIL corrections count."""
    return int(not condition.by_rank) if isinstance(source, Study) else condition.denials(source.evaluation.bank)
