"""Collect marked tests and TOML files as evaluations, put gates after them, and report mistakes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.ready import ready_name
from pytest_adaptive_eval.errors import ConfigError, UsageError
from pytest_adaptive_eval.evaluation import CodeRunner, Context, EvalSpec, TaskGraders, evaluation_kinds
from pytest_adaptive_eval.evaluation.tables import TOML_KEYS
from pytest_adaptive_eval.gates.condition import register_metrics
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.plugin.ask.question import (
    PLACEHOLDER,
    AskedItem,
    QuestionTest,
    check_scope,
    crash_line,
    is_placeholder,
)
from pytest_adaptive_eval.plugin.collect.coded_items import write_items
from pytest_adaptive_eval.plugin.collect.fixtures import NO_MODEL, check_models, may_read_flags, model_function, subject
from pytest_adaptive_eval.plugin.collect.gate_planning import (
    check_baseline,
    count_fail_claims,
    plan_gate,
    unused_baseline,
)
from pytest_adaptive_eval.plugin.collect.named_models import check_named
from pytest_adaptive_eval.plugin.collect.predictions import choose_predictions
from pytest_adaptive_eval.plugin.collect.refusals import check_collected, near_names, required_gates, shard_of
from pytest_adaptive_eval.plugin.collect.tomlfile import EvalFile
from pytest_adaptive_eval.plugin.exchange import Planned, Selection
from pytest_adaptive_eval.plugin.gates import is_gate, named_evaluations, order
from pytest_adaptive_eval.plugin.names import MARKER, PARAMETER, is_eval_file, refuse
from pytest_adaptive_eval.plugin.notices import told_lines
from pytest_adaptive_eval.plugin.state import (
    EvaluationTest,
    OwnModel,
    UnrepeatableTest,
    sets_up_only,
)
from pytest_adaptive_eval.records.folder import probe
from pytest_adaptive_eval.text import guard, relative
from pytest_adaptive_eval.typed_tables import located, refuse_keys

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation import EvaluationKind
    from pytest_adaptive_eval.plugin.state import RunState
    from pytest_adaptive_eval.tasks import TaskFamily


class Collection:
    """Hooks of collection, in every process that collects."""

    def __init__(self, state: RunState) -> None:
        self.state, self.config = state, state.config
        self._mistakes: list[str] = []
        self._mistaken: set[object] = set()  #: Functions of evaluations with a mistake, which need no second message.
        self._banks: dict[Path, ItemBank] = {}
        self._marked: set[pytest.Item] = set()  #: Gates and evaluations that got the marker here.
        self._gates: dict[str, pytest.Item] = {}  #: Every gate that collection met, by node id, selected or not.
        self._own_models: dict[tuple[str, ...], OwnModel] = {}
        self._toml_names: set[str] = set()  #: Names of the evaluations of TOML files.
        self._required = list(state.settings.required_gates)  #: Names of required gates.

    def mistake(self, error: UsageError) -> None:
        """Keep an error of the user until collection has found all of them."""
        self._mistakes.append(str(error))

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect TOML evaluations."""
        if not is_eval_file(file_path):
            return None
        self._register_metrics()
        file = EvalFile.from_parent(parent, path=file_path)
        file.settings = self.state.settings
        file.mistake = self.mistake
        file.require = self._required.extend
        file.names, file.notice = self._toml_names, self._notice
        file.plan, file.own_model = self._plan, self._own_model
        file.kinds = self.config.hook.pytest_adaptive_eval_kinds(config=self.config)
        return file

    def _register_metrics(self) -> None:
        """Register the metrics of plugins, including a conftest file that was just collected."""
        with self._keep_mistake():
            register_metrics(self.config.hook.pytest_adaptive_eval_metrics(config=self.config))

    @pytest.hookimpl(tryfirst=True)
    def pytest_adaptive_eval_kinds(self) -> Mapping[str, Callable[[], EvaluationKind]]:
        """Provide the built-in kinds of evaluations."""
        return evaluation_kinds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_adaptive_eval_task_families(self) -> Sequence[TaskFamily]:
        """Provide the built-in task families."""
        from pytest_adaptive_eval.tasks import FAMILIES

        return list(FAMILIES.values())

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a marked function with one placeholder."""
        mark = metafunc.definition.get_closest_marker(MARKER)
        if mark is None:
            return
        try:
            spec = self._spec(metafunc.definition, mark)
        except UsageError as error:
            self.mistake(error)
            self._mistaken.add(metafunc.function)
            return
        metafunc.parametrize("item", [PLACEHOLDER], ids=[spec.parameter_id])

    def _where(self, node: pytest.Item) -> str:
        path, line, name = node.reportinfo()
        return f"{path}:{(line or 0) + 1}: {name}"

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
        if "items" in data:
            data["bank"] = self._written(node, where, data)
        with located(where):
            refuse_keys(data, TOML_KEYS, "is for TOML: a marker's model is the fixture, its gates are of adaptive_gate")
        spec = EvalSpec(data, where, node.path.parent)
        if "item" not in getattr(node, "fixturenames", ()):
            raise ConfigError(f"{where}: the test takes no argument `item`, which is the question it asks; add it")
        if inspect.iscoroutinefunction(getattr(node, "obj", None)):
            raise ConfigError(f"{where}: an async test cannot ask adaptively; write `def` and run the coroutine in it")
        return spec

    def _written(self, node: pytest.Item, where: str, data: dict[str, Any]) -> str:
        """Return the bank file of a marker's `items`, which is written once in a run; `data` loses them."""
        items = data.pop("items")
        for other in ("bank", "task"):
            if other in data:
                raise ConfigError(f"{where}: items and {other} exclude each other; remove one")
        path, line, _ = node.reportinfo()
        name = getattr(node, "originalname", node.name).removeprefix("test_")
        file = self.state.folder / "items" / f"{name}.jsonl"
        with located(where):
            return self.state.exchange.once(
                f"items {path}:{line}", lambda: os.fspath(write_items(items, file, node.path.parent))
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Collect an interview for each placeholder, and the questions named on the command line."""
        collected = yield
        if not isinstance(collected, list):
            return collected
        self._notice(collected)
        out: list[pytest.Item | pytest.Collector] = []
        for node in collected:
            if not is_placeholder(node):
                out.append(node)
                continue
            try:
                out += self._interview(node)
            except UsageError as error:
                self.mistake(error)
                self._mistaken.add(node.function)
                out.append(node)  # else pytest would only report that a test named on the command line does not exist
        return out

    def _notice(self, nodes: Iterable[object]) -> None:
        """Keep the gates among collected nodes, before a selection deselects some."""
        gates = (node for node in nodes if isinstance(node, pytest.Item) and is_gate(node))
        self._gates |= {gate.nodeid: gate for gate in gates}

    def _interview(self, node: pytest.Function) -> list[pytest.Item]:
        """Return an interview in place of a function of a Python file, and questions that the command line names."""
        mark = node.get_closest_marker(MARKER)
        assert mark is not None
        interview: EvaluationTest = EvaluationTest.from_parent(
            node.parent,
            name=node.name,
            callspec=node.callspec,
            fixtureinfo=node._fixtureinfo,
            originalname=node.originalname,
        )
        return [interview, *self._plan(interview, self._spec(node, mark))]

    def _plan(self, test: EvaluationTest, spec: EvalSpec) -> list[QuestionTest]:
        """Read the settings of an evaluation.  Return the questions of an interview that the command line names."""
        settings = self.state.settings
        if spec.name in settings.models:
            settings = dataclasses.replace(settings, model=settings.models[spec.name])
        find = self.config.hook.pytest_adaptive_eval_selector
        folders = (self.config.invocation_params.dir, self.config.rootpath)
        context = Context(folders, lambda: self._tasks, self._bank, lambda name: find(name=name, config=self.config))
        evaluation = spec.build(settings, context)
        bank = evaluation.question_bank
        if bank is None:
            test.plan(evaluation, self.state)
            return []
        notes = (*evaluation.notes, *self._model_notes(test, spec))
        test.plan(evaluation.changed(notes=notes), self.state)
        test.drift = spec.table.drift or ""
        return self._named(test, bank)

    def _model_notes(self, interview: EvaluationTest, spec: EvalSpec) -> list[str]:
        """Check the model of an interview.  Return a note on a model that flags do not name."""
        notes = []
        definitions = interview._fixtureinfo.name2fixturedefs.get("model", ())
        if definitions and definitions[-1].func is model_function and self.state.settings.model is None:
            raise ConfigError(f"{spec.where}: {NO_MODEL}")
        named = bool(self.config.getoption("adaptive_eval_model")) and self.state.settings.model is not None
        if definitions and named and not may_read_flags(definitions, interview._fixtureinfo):
            home = relative(inspect.getfile(definitions[-1].func), self.config.rootpath)
            notes.append(
                f"the model is of the fixture `model` in {home}, and not the --adaptive-eval-model that was named"
            )
        check_scope(interview, "model", spec.where)
        several = []
        for name, overrides in interview._fixtureinfo.name2fixturedefs.items():
            if overrides[-1].params:
                several.append(name)
        if several and interview.asks_items:
            raise ConfigError(
                f"{spec.where}: the fixture {several[0]!r} has params, and an evaluation in TOML asks one model: write "
                "one [[eval]] per model (model = ...), or the evaluation in Python"
            )
        return notes

    def _own_model(
        self, spec: EvalSpec, model: str, base: Path, options: Mapping[str, Any], file: pytest.Module
    ) -> OwnModel:
        """Return a model for an evaluation; equal models of a file are loaded once."""
        load = functools.partial(subject, self.config, model, base, options)
        key = (file.nodeid, model, str(base), repr(sorted(options.items())))
        return self._own_models.setdefault(
            key, OwnModel(model, base, options, load, file, functools.partial(spec.located, "model"))
        )

    @functools.cached_property
    def _tasks(self) -> Mapping[str, TaskFamily]:
        """Task families by name, with those from plugins; loaded when the first evaluation needs one."""
        from pytest_adaptive_eval.tasks import families

        provided = self.config.hook.pytest_adaptive_eval_task_families(config=self.config)
        runner = CodeRunner(unsafe=self.state.settings.unsafe_code)
        return families(itertools.chain.from_iterable(provided), runner)

    def _bank(self, path: Path) -> ItemBank:
        if not ready_name(path):
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

    def _named(self, interview: EvaluationTest, bank: ItemBank) -> list[QuestionTest]:
        """Return the questions that the command line names, such as ``file::test[item-id]``."""
        ids = interview.ids
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
            return [QuestionTest.of(interview, AskedItem(*self._sample(bank, name))) for name in item_names]
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
        """Refuse files that skip themselves and contain evaluations: nothing else would report their missing gates."""
        path = self.config.rootpath / report.nodeid
        if report.skipped and path.is_file() and MARKER.encode() in path.read_bytes():
            self.mistake(
                ConfigError(
                    f"{report.nodeid} contains {MARKER} and is skipped as a whole ({crash_line(report)}): its gates "
                    "would be missing; leave the file out with --ignore if they are not to count"
                )
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Put each gate after its interviews, restore interviews that a selection dropped, and report mistakes."""
        self._register_metrics()
        for item in items:  # so that -m selects interviews and gates alike
            if (is_gate(item) or isinstance(item, EvaluationTest)) and item.get_closest_marker(MARKER) is None:
                item.add_marker(MARKER)
                self._marked.add(item)
        self._notice(items)
        collected = {item.nodeid for item in items}
        yield
        with self._keep_mistake():
            name_apart(self.state.evaluations)
        self._plan_gates(items)
        if not self._mistakes:
            with self._keep_mistake():
                self._arrange(items, collected)
        if not self._mistakes and self.state.exchange.planned():
            with self._keep_mistake():
                for test in items:
                    if isinstance(test, EvaluationTest):
                        test.evaluation.check_gradable(asks_items=test.asks_items)
        if not self._mistakes and self.state.exchange.planned() and not self.config.option.collectonly:
            with self._keep_mistake():
                self._check_run(items)
        if self._mistakes:
            refuse(self.config, items, "\n".join(dict.fromkeys(self._mistakes)))

    @contextlib.contextmanager
    def _keep_mistake(self) -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            self.mistake(error)

    def _plan_gates(self, items: Sequence[pytest.Item]) -> None:
        """Check all tests, and find the needs and conditions of the gates."""
        names: set[str] | None = None
        if self._mistakes:  # a gate's evaluation may be one of those with a mistake
            names = set().union(*(node.aliases for node in self.state.evaluations))
        for item in items:
            with self._keep_mistake():
                self._check(item)
                if is_gate(item) and (names is None or named_evaluations(item) <= names):
                    plan_gate(item, self.state)
        with self._keep_mistake():
            check_named(self.state.settings.models, self._toml_names)
        if not self._mistakes:
            with self._keep_mistake():
                check_baseline(self.state)
        for node in self.state.evaluations:
            node.evaluation = node.evaluation.for_gates(node.gate_plan)
            if not self._mistakes:
                with self._keep_mistake():
                    choose_predictions(node, self.state)

    def _arrange(self, items: list[pytest.Item], collected: set[str]) -> None:
        state = self.state
        selected = set(items)
        nodeids = {item.nodeid for item in items}
        left_out = []
        for nodeid, gate in self._gates.items():
            if nodeid not in nodeids:
                left_out.append(gate)
        state.family += sum(count_fail_claims(gate, state) for gate in left_out)
        items[:] = order(items, state.needs)
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and (restored := set(items) - selected):
            deselected = reporter.stats.get("deselected", [])
            deselected[:] = [item for item in deselected if item not in restored]
        if state.worker:  # a worker prints nothing
            state.exchange.publish_lines(self.pytest_report_collectionfinish(items))
        planned = []
        for item in items:
            if isinstance(item, EvaluationTest) or item in state.needs:
                if isinstance(item, EvaluationTest):
                    questions = item.evaluation.most_questions
                else:
                    questions = 0
                needed = [node.nodeid for node in state.needs.get(item, ())]
                planned.append(Planned(item.nodeid, questions, needed))
        state.exchange.plan(planned, self._selection(left_out, collected))

    def _check_run(self, items: Sequence[pytest.Item]) -> None:
        evaluations = []
        for item in items:
            if isinstance(item, EvaluationTest):
                evaluations.append(item)
        planned = []
        for item in items:
            if isinstance(item, EvaluationTest) or item in self.state.needs:
                planned.append(item)
        check_collected(self.config, planned, any(item.evaluation.most_questions for item in evaluations))
        for bank in filter(None, (item.evaluation.question_bank for item in evaluations)):
            _ = bank.items[0]  # checks the hash of all texts
        probe(self.state.folder)
        if not sets_up_only(self.config):
            check_models(self.config, evaluations)

    def _selection(self, left_out: Sequence[pytest.Item], collected: set[str]) -> Selection:
        """Return what the run leaves out, and which gates the settings require."""
        functions = {}
        for nodeid, gate in self._gates.items():
            functions[nodeid] = f"{nodeid.removesuffix(gate.name)}{getattr(gate, 'originalname', None) or gate.name}"
        required = required_gates(self._required, functions)
        near = {name: near_names(name, functions) for name, nodeids in required.items() if not nodeids}
        nodeids = [gate.nodeid for gate in left_out]
        return Selection(nodeids, not collected.isdisjoint(nodeids), required, near, shard_of(self.config))

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Report the expected result of each gate before the first question."""
        planned = [item for item in items if item in self.state.evaluations]  # without those that have a mistake
        lines = _outlooks([item for item in planned if isinstance(item, EvaluationTest)])
        if planned and (unused := unused_baseline(self.state)):
            lines.append(f"WARNING: {unused}")
        quiet = self.config.get_verbosity() < 0
        shown_lines = []
        for line in lines:
            if not quiet or "WARNING" in line:
                shown_lines.append(guard(f"adaptive-eval: {line}"))
        if not items and (keyword := self.config.option.keyword):
            for node in self.state.evaluations:
                shown_lines.append(guard(f"adaptive-eval: {_unselected(keyword, node)}"))
        return [part for line in shown_lines for part in told_lines(self.config, line)]

    def _check(self, item: pytest.Item) -> None:
        """Refuse a marker that would have no effect, and an interview whose outcome another marker changes."""
        if item.get_closest_marker(MARKER) is None:
            return
        if item in self._marked:
            return
        if not isinstance(item, UnrepeatableTest):
            if getattr(item, "function", None) in self._mistaken:
                return
            raise ConfigError(
                f"{item.nodeid}: the marker {MARKER} has no effect on this kind of test; use a plain function, or a "
                "method of a class that is not a unittest.TestCase"
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


def _unselected(keyword: str, node: EvaluationTest) -> str:
    """Return how ``-k`` names an evaluation, and the command line its questions."""
    bank = node.evaluation.question_bank
    sentence = f"-k {keyword!r} selects nothing: it takes names such as {node.name}"
    if bank is None:
        return sentence
    placeholder = next(part for part in node.ids if part.startswith(PARAMETER))
    example = node.nodeid.replace(placeholder, str(bank.ids[0]))
    return f"{sentence}, and a question is asked by its id, as '{example}'; the ids are {bank.shown_ids}"


def _outlooks(nodes: Iterable[EvaluationTest]) -> list[str]:
    """Return the lines of all evaluations, each once with the names of the models that it is about."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        begin = f"{node.evaluation.name}: "
        for line in _outlook(node):
            about = names.setdefault(line.removeprefix(begin), [])
            if line.startswith(begin):
                about.append(node.evaluation.name)
    return [": ".join(filter(None, [", ".join(about), line])) for line, about in names.items()]


def _outlook(node: EvaluationTest) -> Iterator[str]:
    """Yield lines on missing baselines, and on an evaluation's expected cost and results."""
    evaluation, plan = node.evaluation, node.gate_plan
    for sentence in plan.missing.values():
        yield f"WARNING: {evaluation.name}: {sentence}"
    yield from plan.remarks
    yield from evaluation.outlooks(plan)


def name_apart(nodes: Iterable[EvaluationTest]) -> None:
    """Rename evaluations that share a name, such as those from a parametrized test, by what differs in their node ids.

    Raises:
        ConfigError: One of them is not an interview, whose name is a part of it, or a test is collected twice.
    """
    groups: dict[str, list[EvaluationTest]] = {}
    for node in nodes:
        groups.setdefault(node.evaluation.name, []).append(node)
    for name, group in groups.items():
        if len(group) == 1:
            continue
        if len({node.nodeid for node in group}) < len(group):
            raise ConfigError(f"{group[0].nodeid} is collected twice: leave out --keep-duplicates")
        if not all(node.evaluation.most_questions for node in group):
            nodeids = " and ".join(node.nodeid for node in group)
            raise ConfigError(f"{nodeids} have the name {name!r}: rename one of them (name = ...)")
        parts_by_place = itertools.zip_longest(*(node.place for node in group), fillvalue="")
        differing = [parts for parts in parts_by_place if len(set(parts)) > 1]
        for node, parts in zip(group, zip(*differing, strict=True), strict=True):
            node.rename(f"{name}[{'-'.join(filter(None, parts))}]")
