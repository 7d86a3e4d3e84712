"""Run a test of questions on made-up answers, to see whether anything that a model says can fail it.

What a test checks is seen by what it does: it asks, gets an answer that is right for no item, and has to fail. So an
assertion counts that fails, wherever it is written, and one that is forgotten, caught, never reached, constant or in
another thread does not.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import RequestLog
from pytest_adaptive_eval.plugin.question import NOT_ASKED, AskedItem, QuestionTest, find_model_fixture
from pytest_adaptive_eval.plugin.state import WRONG_ANSWER, QuestionOwner, drawn_so_far

_WORD = "Qzxqzzqx"  #: A word that no benchmark has as an answer; its letters show where any part of it comes from.
#: Made-up answers: words, then for tests that read other forms a number, and an object that a test may index.
_ANSWERS = (f"{_WORD} qzzx zqxxqz.", "-73051.9182640137", f'{{"answer": "{_WORD}"}}')
_MADE_UP = re.compile(rf"[qzx\W]*|.*{_WORD}.*|-?73051(?:\.9\d*)?", re.IGNORECASE | re.DOTALL)
_OVER = (KeyboardInterrupt, SystemExit, pytest.exit.Exception)


class _ProbedItem(AskedItem):
    """The argument ``item`` of a probe: what comes of a made-up answer is wrong, unless the user has `named` it."""

    def __init__(self, item: Item, *, named: bool, grade_of_made_up: float) -> None:
        super().__init__(item)
        self._named, self._grade = named, grade_of_made_up
        self.derived = False  #: Whether a text to grade came of the made-up answer.

    def grade(self, text: str | float) -> float:
        if self._named or _MADE_UP.fullmatch(str(text)) is None:
            return super().grade(text)
        self.text, self.read, self.graded, self.derived = str(text), True, self._grade, True
        return self._grade


class _Unprobed(Exception):
    """The test cannot be run without asking its model."""


class _Probe(QuestionTest):
    """A question whose model gives a made-up answer; it reports nothing."""

    asked: _ProbedItem
    has_model = False  #: Whether the test takes something that may answer.
    passed = False  #: Whether the test passed.
    error = ""  #: Exception that ended the test, other than a failed assertion.

    def setup(self) -> None:
        """Set up the fixtures, unless one of them asks a model of another package."""
        last = {name: found[-1] for name, found in self._fixtureinfo.name2fixturedefs.items() if found}
        asking = [name for name, found in last.items() if found.scope == "function" and "item" in found.argnames]
        if asking:
            wide = [name for name, found in last.items() if found.scope != "function" and not _of_pytest(found)]
            _, model, _ = find_model_fixture({name: self._request.getfixturevalue(name) for name in wide})
            if not RequestLog.sees(model):
                raise _Unprobed(f"the fixture {asking[0]!r} takes the item and may ask the model")
        super().setup()

    def runtest(self) -> None:
        """Run the body; what it raises is kept and not reported."""
        for name in self._models():
            self.has_model = True
            if not RequestLog.sees(model := self.funcargs[name]):  # a subject takes its answer from the log
                stand_in = self.funcargs[name] = _StandIn(model, self.requests)
                attributes = getattr(self.instance, "__dict__", {})  # of a class of tests, which a fixture may set
                attributes.update({n: stand_in for n, value in attributes.items() if value is model})
        if "subtests" in self.funcargs:
            self.funcargs["subtests"] = _Subtests()
        try:
            self.run_body()
            self.passed = self.asked.given != 0
        except AssertionError:
            pass
        except _OVER:
            raise
        except BaseException as error:  # whatever a test does with a text that it cannot read
            self.error = _line(error)

    def _models(self) -> list[str]:
        """Return the identified model and the fixtures that take it; without a model, all fixtures of the user's."""
        name, model, _ = find_model_fixture(self.funcargs)
        last = {n: found[-1] for n, found in self._fixtureinfo.name2fixturedefs.items() if found}
        arguments = [n for n in self._fixtureinfo.argnames if n in last and not _of_pytest(last[n])]
        if model is None:
            return arguments
        return [name, *(n for n in arguments if n != name and name in _needs(n, last))]

    def take_report(self, report: pytest.TestReport, error: BaseException | None, *, of_subtest: bool) -> None:
        """Take up a report of the body that a plugin for soft assertions failed."""
        if report.when == "call":
            self.passed &= not report.failed


def _needs(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """Return all fixtures that a fixture takes, also by way of others."""
    needed: set[str] = set()
    pending = [name]
    while pending:
        arguments = {*getattr(definitions.get(pending.pop()), "argnames", ())} - needed
        needed |= arguments
        pending += arguments
    return needed


def _of_pytest(definition: Any) -> bool:
    return str(getattr(definition.func, "__module__", "")).startswith("_pytest")


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


class _Subtests:
    """Fixture ``subtests`` of a probe, whose failures end it."""

    def test(self, *_args: object, **_kwargs: object) -> Any:
        return warnings.catch_warnings()

    subtest = test


class _StandIn:
    """In place of a user's model: each call of it, or of anything it holds, returns the made-up answer."""

    def __init__(self, model: object, log: RequestLog) -> None:
        self._parts = model, log

    @property  # type: ignore[misc]  # a test may ask for the type of its model
    def __class__(self) -> Any:
        return type(self._parts[0])

    def __getattr__(self, name: str) -> Any:
        model, log = self._parts
        value = getattr(model, name)
        plain = value is None or isinstance(value, str | bytes | int | float | list | tuple | dict)
        return value if plain or name.startswith("__") else _StandIn(value, log)

    def __call__(self, *_args: object, **_kwargs: object) -> Any:
        return _Reply(self._parts[1].next_made_up())


class _Reply(str):
    """The made-up answer, also where a test looks for it in a reply's attributes, keys or elements."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, slice) else self

    def __iter__(self) -> Iterator[str]:
        return iter(str(self))

    def __call__(self, *_args: object, **_kwargs: object) -> Any:
        return self


def check_test(interview: QuestionOwner, node: pytest.Function, item: Item, wrong_answer: str | None) -> str:
    """Run the test of an interview on made-up answers.  Return why its verdicts would mean nothing; empty if sound."""
    named, finding, partial = wrong_answer is not None, interview.finding, dict[float, str]()
    for answer in _ANSWERS if wrong_answer is None else (wrong_answer,):
        # where a made-up answer got a part of the score, another grade has to change it
        asked = _ProbedItem(item, named=named, grade_of_made_up=float(bool(partial)))
        probe = _run(interview, node, asked, answer)
        if isinstance(probe, str):
            finding.fault = probe
            return ""
        finding.methods |= {"grade"} if asked.derived or (named and asked.graded is not None) else set()
        finding.methods |= {"score"} if asked.given is not None and probe.requests.count else set()
        finding.asks_item, finding.grades_answer = probe.requests.asks(item), asked.text == answer
        if probe.error and not named:
            finding.fault = probe.error
        elif not probe.passed:
            finding.fault = ""
            return ""
        elif not named and (score := _varying_score(probe, partial)) is not None:
            # such as a similarity; a constant is the same for every answer
            partial[score] = _fault(probe, named=False)
        else:
            return _fault(probe, named=named)
    return next(iter(partial.values())) if len(partial) == 1 else ""


def _varying_score(probe: _Probe, partial: Mapping[float, str]) -> float | None:
    """Return the score of a made-up answer that another one, or another grade, may change; else None."""
    given = probe.asked.given
    varies = given is not None and probe.requests.count and (partial or given < 1 or probe.asked.derived)
    return given if varies else None


def _run(interview: QuestionOwner, node: pytest.Function, asked: _ProbedItem, answer: str) -> _Probe | str:
    """Run one probe without the reports of pytest's protocol.  Return a text if its fixtures fail."""
    probe = _Probe.of(node, asked)
    probe.interview, probe.requests = interview, RequestLog(answer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if (fault := _run_phase(probe, "setup")) is None:
                before = drawn_so_far()
                _run_phase(probe, "call")
                interview.finding.random |= drawn_so_far() != before
        finally:
            _run_phase(probe, "teardown", nextitem=node)
    return probe if fault is None else _line(fault)


def _run_phase(probe: _Probe, phase: Literal["setup", "call", "teardown"], **arguments: Any) -> BaseException | None:
    """Run a phase, and make its report, which plugins of pytest itself rely on.  Return the exception that ended it."""
    hook = probe.ihook
    run = getattr(hook, f"pytest_runtest_{phase}")
    call = pytest.CallInfo.from_call(lambda: run(item=probe, **arguments), phase, reraise=_OVER)
    hook.pytest_runtest_makereport(item=probe, call=call)
    return call.excinfo.value if call.excinfo else None


def _fault(probe: _Probe, *, named: bool) -> str:
    """Return why a test that passed on a made-up answer judges nothing."""
    asked, test = probe.asked, probe.nodeid.partition("[")[0]
    if not probe.has_model:
        return (
            f"{test}: the test takes no model, so nobody can see whether it asks one: give it a fixture that answers, "
            "such as `model`"
        )
    if not probe.requests.count:
        return f"{test}: {NOT_ASKED}"
    if asked.derived and asked.given is None:
        how = "although item.grade(...) gave 0"
    elif asked.graded is not None and not named:
        how = "since item.grade(...) got a text that does not come from the model"
    else:
        how = "and checked nothing"
    answer = "on the wrong_answer of its marker" if named else f"on the made-up answer {probe.requests.made_up!r}"
    hint = "" if named else f"; if such an answer is right, name a wrong one: {WRONG_ANSWER}"
    return (
        f"{test}: the test passed {answer} {how}, so every answer would count as right: write `assert "
        f"item.grade(...)`, an assertion on the answer, or item.score(...){hint}"
    )
