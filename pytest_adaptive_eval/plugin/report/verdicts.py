"""Verdicts that gates ask for: keep them for the record, and fail gates whose verdicts do not hold."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.evaluation import gate_keys
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.plugin.ask.question import crash_line
from pytest_adaptive_eval.plugin.gates import Results, Verdicts, failed_sentence
from pytest_adaptive_eval.plugin.names import GATE_MARKER
from pytest_adaptive_eval.plugin.state import EvaluationTest, RunState, UnrepeatableTest, resolve
from pytest_adaptive_eval.records.run_record import GateRecord
from pytest_adaptive_eval.text import relative

_NO_VERDICT = (
    "the test takes the fixture adaptive_eval and asked for no verdict: assert one, such as "
    'adaptive_eval["name"].accuracy.at_least(0.6); to read results, write the hook pytest_adaptive_eval_report'
)
_UNREAD = "the test did not read the verdicts of its marks: write `assert adaptive_eval.verdicts` into it"
_ADVICE = "; where one of them suffices, write `assert adaptive_eval.any_of(first, second)`"


class _Entry(NamedTuple):
    """A verdict of an evaluation."""

    evaluation: str
    verdict: Verdict


class VerdictLog:
    """Verdicts and outcomes of the gates of this process; reports made while one is `running` are of its subtests."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self.running = ""
        self._entries: dict[str, list[_Entry]] = {}
        self._declared: dict[str, Verdicts] = {}  #: Verdicts on the conditions of marks, by node id of the gate.
        self._records: dict[str, list[GateRecord]] = {}
        #: Exception with which each gate ended, None where it passed: a gate is judged once.
        self._endings: dict[str, BaseException | None] = {}
        self.over: set[str] = set()  #: Tests that have run, and are being torn down.

    @contextlib.contextmanager
    def absent(self) -> Iterator[None]:
        """Leave the hooks of gates out while an interview asks, of whose questions none is a gate."""
        manager = self._state.config.pluginmanager
        name = manager.get_name(self)
        manager.unregister(self)
        try:
            yield
        finally:
            manager.register(self, name)

    def results(self, gate: pytest.Item) -> Results:
        """Return the results for a gate, whose verdicts are kept."""
        return Results(
            lambda name: self._lookup(gate, name),
            lambda node, verdict: self._add_own(gate, node, verdict),
            lambda verdicts: self._choose(gate, verdicts),
            lambda: self._judge_declared(gate),
        )

    def _lookup(self, gate: pytest.Item, name: str) -> tuple[EvaluationTest, Result]:
        """Return an evaluation that the gate waits for, and its result."""
        node = resolve(name, self._state.evaluations)
        needed = self._state.needs[gate]
        if node not in needed:
            awaited = ", ".join(node.evaluation.name for node in needed)
            raise ConfigError(
                f"adaptive_eval[{name!r}]: {gate.nodeid} waits for {awaited} only: name all that it reads in marks "
                f'such as @pytest.mark.{GATE_MARKER}("{name}", at_least=0.6)'
            )
        return self._state.lookup(name)

    def _judge_declared(self, gate: pytest.Item) -> Verdicts:
        """Return the verdicts on the conditions of the gate's marks, which are judged once."""
        if gate not in self._state.declared:
            raise ConfigError(
                f"{gate.nodeid}: adaptive_eval.verdicts has the verdicts on conditions of marks, and the test has "
                f'none: put @pytest.mark.{GATE_MARKER}("name", at_least=0.6) on it'
            )
        if gate.nodeid not in self._declared:
            judged = []
            for node, condition in self._state.declared[gate]:
                judged.append((node.evaluation.name, self._state.lookup(node.nodeid)[1].judge(condition)))
            verdicts = [self._add(gate, name, verdict) for name, verdict in judged]
            self._declared[gate.nodeid] = Verdicts(verdicts)
        return self._declared[gate.nodeid]

    def _add_own(self, gate: pytest.Item, node: EvaluationTest, verdict: Verdict) -> Verdict:
        """Keep a verdict on a condition of the test's body, with the mark that would declare it."""
        condition = Condition(**verdict.condition)
        keywords = "".join(f", {key}={value!r}" for key, value in gate_keys(condition).items())
        mark = f'@pytest.mark.{GATE_MARKER}("{node.evaluation.name}"{keywords})'
        if gate in self._state.declared:
            raise ConfigError(
                f"{gate.nodeid}: the test has marks, and its body sets a condition that the interview did not know: "
                f"write {mark} on the test, and read adaptive_eval.verdicts"
            )
        if node.evaluation.undeclared_warning(node.gate_plan) and not condition.whole:
            note = (
                f"the whole budget was asked, since no mark declares the condition; write {mark} to stop at the verdict"
            )
            verdict = replace(verdict, notes=(*verdict.notes, note))
        return self._add(gate, node.evaluation.name, verdict)

    def _add(self, gate: pytest.Item, evaluation: str, verdict: Verdict) -> Verdict:
        """Keep a verdict for the record, as other plugins leave it."""
        if gate.nodeid in self.over:
            raise ConfigError(f"{gate.nodeid}: a verdict was asked for after the test was over; ask for it in the test")
        config = self._state.config
        changed = config.hook.pytest_adaptive_eval_verdict(verdict=verdict, nodeid=gate.nodeid, config=config)
        if changed is not None and not isinstance(changed, Verdict):
            raise ConfigError(f"a plugin made {changed!r} of a verdict; pytest_adaptive_eval_verdict gives a Verdict")
        final = verdict if changed is None else changed
        if final.allowed and not final.notice and final.on_inconclusive == "warn":
            gate.warn(AdaptiveEvalWarning(final.sentence))
        self._entries.setdefault(gate.nodeid, []).append(_Entry(evaluation, final))
        return final

    def _choose(self, gate: pytest.Item, verdicts: Sequence[Verdict]) -> None:
        """Keep the alternative verdicts that hold; the first of them names the others."""
        failed = [verdict for verdict in verdicts if not verdict]
        if not failed or len(failed) == len(verdicts):
            return
        first = next(verdict for verdict in verdicts if verdict)
        note = "one of several verdicts suffices; not held: " + "; ".join(verdict.sentence for verdict in failed)
        failed_ids = {id(verdict) for verdict in failed}
        entries = []
        for entry in self._entries.get(gate.nodeid, ()):
            if id(entry.verdict) not in failed_ids:
                entries.append(entry)
        self._entries[gate.nodeid] = [
            e._replace(verdict=replace(first, notes=(*first.notes, note))) if e.verdict is first else e for e in entries
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """Judge a gate once.  If another plugin runs it again, it ends as it did the first time."""
        if pyfuncitem.nodeid not in self._endings:
            return None
        if (error := self._endings[pyfuncitem.nodeid]) is not None:
            raise error
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a gate whose verdicts do not hold, whatever its body does, and remember how it ended."""
        __tracebackhide__ = True
        self.running = item.nodeid
        try:
            try:
                yield
            except (pytest.skip.Exception, pytest.xfail.Exception):
                self._check_verdicts(item)
                raise
            __tracebackhide__ = False
            if item.nodeid not in self._endings:
                self._check_verdicts(item)
                self._check_read(item)
        except BaseException as error:
            self._end(item, error)
            raise
        finally:
            self.running = ""
        self._end(item, None)

    def _end(self, item: pytest.Item, error: BaseException | None) -> None:
        if item in self._state.needs or item.nodeid in self._entries:
            self._endings.setdefault(item.nodeid, error)

    def _check_verdicts(self, item: pytest.Item) -> None:
        entries = self._entries.get(item.nodeid, ())
        if entries and (failed := failed_sentence([entry.verdict for entry in entries])):
            pytest.fail(failed + _ADVICE * (len(entries) > 1), pytrace=False)

    def _check_read(self, item: pytest.Item) -> None:
        """Fail a gate that asked for no verdict, or left one of its marks unread."""
        if item in self._state.declared:
            verdicts = self._declared.get(item.nodeid)
            if verdicts is None or verdicts.unread:
                pytest.fail(_UNREAD, pytrace=False)
        elif item in self._state.needs and not isinstance(item, UnrepeatableTest) and item.nodeid not in self._entries:
            pytest.fail(_NO_VERDICT, pytrace=False)

    def records(self, item: pytest.Item, report: pytest.TestReport) -> list[GateRecord] | None:
        """Return a gate's records, or None if the test is not a gate or was skipped before it asked."""
        nodeid = item.nodeid
        if nodeid not in self._records:
            if nodeid not in self._entries and (item not in self._state.needs or report.skipped):
                return None
            self._records[nodeid] = self._new_records(item, report)
        return self._records[nodeid]

    def _new_records(self, item: pytest.Item, report: pytest.TestReport) -> list[GateRecord]:
        """Return one record per verdict, and one more if the gate failed for another reason."""
        entries = self._entries.pop(item.nodeid, [])
        verdicts = [(entry.evaluation, entry.verdict) for entry in entries]
        ending = self._endings.get(item.nodeid)
        broken = ending is not None and not isinstance(ending, (pytest.skip.Exception, pytest.xfail.Exception))
        # a hook may have made another report of it
        if (report.failed or broken) and all(entry.verdict for entry in entries):
            nodes = self._state.needs.get(item, [])
            if len(nodes) == 1:
                name = nodes[0].evaluation.name
            else:
                name = ""
            verdicts.append((name, Verdict(Outcome.ERROR, stated=crash_line(report))))
        where = relative(item.reportinfo()[0], self._state.config.rootpath)
        line = (item.location[1] or 0) + 1
        return [
            GateRecord(item.name, item.nodeid, name, verdict, where, line, report.duration)
            for name, verdict in verdicts
        ]


VERDICTS: pytest.StashKey[VerdictLog] = pytest.StashKey()  #: Key of the run's verdicts in ``config.stash``.
