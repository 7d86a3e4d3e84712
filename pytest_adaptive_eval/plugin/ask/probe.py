"""Run a test of questions on answers to other questions, to see whether it can fail.

What a test checks is seen by what it does: it asks, gets replies that are wrong for its item, and has to fail. So an
assertion counts that fails, wherever it is written, and one that is forgotten, caught, never reached, constant or in
another thread does not. No probe asks a model.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

import pytest

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import RequestLog
from pytest_adaptive_eval.plugin.ask.question import (
    AskedItem,
    QuestionOwner,
    QuestionTest,
    find_model_fixture,
)
from pytest_adaptive_eval.plugin.ask.random_states import drawn_so_far
from pytest_adaptive_eval.plugin.ask.replies import Replies, giving

_WORD = "Qzxqzzqx"  #: A word that no benchmark has as an answer; its letters show where any part of it comes from.
#: Made-up answers: words, then for tests that read other forms a number, and an object that a test may index.
MADE_UP = (f"{_WORD} qzzx zqxxqz.", "-73051.9182640137", f'{{"answer": "{_WORD}"}}')
_FROM_MADE_UP = re.compile(rf"[qzx\W]*|.*{_WORD}.*|-?73051(?:\.9\d*)?", re.IGNORECASE | re.DOTALL)
_OVER = (KeyboardInterrupt, SystemExit, pytest.exit.Exception)


class ProbedItem(AskedItem):
    """The argument ``item`` of a probe: what comes of a made-up answer is wrong, unless the user has `named` it."""

    requests: RequestLog  #: Requests of the probe.

    def __init__(self, item: Item, *, named: bool = True, grade_of_made_up: float = 0.0, sample: int = 0) -> None:
        super().__init__(item, sample)
        self.named, self.grade_of_made_up = named, grade_of_made_up
        self.derived = False  #: Whether a text to grade came of the made-up answer.
        self.known: dict[str, float | None] = {}  #: Grades by text, as graders may be slow, or ask.
        self.told = False  #: Whether the test learned that it is probed before it asked.

    @property
    def probing(self) -> bool:
        """See `AskedItem`."""
        self.told |= not self.requests.count
        return True

    def grade(self, text: str | float) -> float:
        """Return an answer's score; 0 for what comes of a made-up answer, or the grade that the probe gives it."""
        grade = self.known.get(str(text))
        if grade is not None:
            self.text = str(text)
            self.read = True
            self.graded = grade
            return grade
        if self.named or _FROM_MADE_UP.fullmatch(str(text)) is None:
            return super().grade(text)
        self.text = str(text)
        self.read = True
        self.graded = self.grade_of_made_up
        self.derived = True
        return self.grade_of_made_up


class _Unprobed(Exception):
    """The test cannot be run without asking its model."""


class Probe(QuestionTest):
    """A question whose model gives known replies; it reports nothing."""

    asked: ProbedItem
    has_model = False  #: Whether the test takes something that may answer.
    passed = False  #: Whether the test passed.
    scored = False  #: Whether the test gave the answer a score, a failed assertion included.
    error = ""  #: Exception that ended the test, other than a failed assertion.

    @classmethod
    def beside(cls, node: pytest.Function, test: QuestionTest, asked: ProbedItem, replies: Replies) -> Self:
        """Create a probe that has the fixtures of a question, which are still set up."""
        probe = cls.of(node, asked)
        probe.interview = test.interview
        probe.ihook = test.ihook
        probe.obj = test.obj
        probe.funcargs = {**test.funcargs, "item": asked}
        probe.given(replies)
        probe._give_to_fixtures(test.requests.replies)
        return probe

    def _give_to_fixtures(self, asked: Replies) -> None:
        """Put the reply of the probe in place of each reply that is a fixture's value."""
        for content, completion in asked:
            names = [
                name for name, value in self.funcargs.items() if isinstance(value, str) and value == completion.text
            ]
            if not names:
                continue
            given = self.requests.next_given(content)
            assert given is not None
            self.funcargs |= dict.fromkeys(names, given.text)

    def given(self, replies: Replies) -> None:
        """Give these replies to its calls."""
        self.requests = self.asked.requests = RequestLog(giving(replies))

    def setup(self) -> None:
        """Set up the fixtures, unless one of them asks a model of another package."""
        last = {n: overrides[-1] for n, overrides in self._fixtureinfo.name2fixturedefs.items() if overrides}
        asking = []
        for name, fixture in last.items():
            if fixture.scope == "function" and "item" in fixture.argnames:
                asking.append(name)
        if asking:
            wide = []
            for name, fixture in last.items():
                if fixture.scope != "function" and not _of_pytest(fixture):
                    wide.append(name)
            _, model, _ = find_model_fixture({name: self._request.getfixturevalue(name) for name in wide})
            if not RequestLog.sees(model):
                raise _Unprobed(f"the fixture {asking[0]!r} takes the item and may ask the model")
        super().setup()

    def run_alone(self) -> None:
        """Run the body, without the hooks that belong to a phase of a test; another plugin may fail its report."""
        reporting = self.ihook.pytest_runtest_makereport
        modules = []
        for implementation in reporting.get_hookimpls():
            modules.append(implementation.function.__module__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = pytest.CallInfo.from_call(self.runtest, "call", reraise=_OVER)
            if not all(module.startswith(("_pytest", "pytest_adaptive_eval")) for module in modules):
                reporting(item=self, call=call)

    def runtest(self) -> None:
        """Run the body; what it raises is kept and not reported."""
        attributes = getattr(self.instance, "__dict__", {})  # of a class of tests, which a fixture may set
        before = dict(attributes)
        for name in self._models():
            self.has_model = True
            model = self.funcargs[name]
            if not (RequestLog.sees(model) or isinstance(model, str)):  # a subject takes its answer from the log
                stand_in = self.funcargs[name] = _StandIn(model, self.requests)
                attributes.update({n: stand_in for n, value in attributes.items() if value is model})
        if "subtests" in self.funcargs:
            self.funcargs["subtests"] = _Subtests()
        try:
            self.run_body()
            self.passed = self.asked.given != 0
            self.scored = True
        except AssertionError:
            self.scored = True
        except _OVER:
            raise
        except BaseException as error:  # whatever a test does with a text that it cannot read
            self.error = _line(error)
        finally:
            attributes.update(before)

    @property
    def another_model(self) -> str:
        """Name of a fixture that a probe would ask for real, such as a judge of the user's own; empty without one."""
        stood_in = self._models()
        for name in self._fixtureinfo.argnames:
            value = self.funcargs.get(name)
            if name not in stood_in and hasattr(value, "generate") and not RequestLog.sees(value):
                return name
        return ""

    @property
    def asks(self) -> bool:
        """Whether the test asks a model, or ends before it could."""
        return self.has_model and (self.requests.count > 0 or bool(self.error))

    @property
    def score(self) -> float:
        """Score that the test gave the answer."""
        score = self.asked.given
        if not self.passed:
            return 0.0
        if score is None:
            return 1.0
        return score

    def _models(self) -> list[str]:
        """Return the identified model and the fixtures that take it; without a model, all fixtures of the user's."""
        name, model, _ = find_model_fixture(self.funcargs)
        last = {n: overrides[-1] for n, overrides in self._fixtureinfo.name2fixturedefs.items() if overrides}
        arguments = []
        for n in self._fixtureinfo.argnames:
            if n in last and not _of_pytest(last[n]):
                arguments.append(n)
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
    """Stand-in for a user's model. Each call of it, or of anything it holds, returns the made-up answer."""

    def __init__(self, model: object, log: RequestLog) -> None:
        self._parts = model, log

    @property  # type: ignore[misc]  # a test may ask for the type of its model
    def __class__(self) -> Any:
        return type(self._parts[0])

    def __getattr__(self, name: str) -> Any:
        model, log = self._parts
        value = getattr(model, name)
        plain = value is None or isinstance(value, str | bytes | int | float | list | tuple | dict)
        if plain or name.startswith("__"):
            return value
        return _StandIn(value, log)

    def __call__(self, *_args: object, **_kwargs: object) -> Any:
        completion = self._parts[1].next_given()
        assert completion is not None
        return _Reply(completion.text)


class _Reply(str):
    """The made-up answer, also where a test looks for it in a reply's attributes, keys or elements."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return super().__getitem__(key)
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(str(self))

    def __call__(self, *_args: object, **_kwargs: object) -> Any:
        return self


def run_apart(interview: QuestionOwner, node: pytest.Function, asked: ProbedItem, replies: Replies) -> Probe | str:
    """Run one probe without the reports of pytest's protocol.  Return a text if its fixtures fail."""
    probe = Probe.of(node, asked)
    probe.interview = interview
    probe.given(replies)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fault = _run_phase(probe, "setup")
            if fault is None and (other := probe.another_model):
                fault = _Unprobed(f"the fixture {other!r} may ask another model")
            if fault is None:
                before = drawn_so_far()
                _run_phase(probe, "call")
                interview.finding.random |= drawn_so_far() != before
        finally:
            _run_phase(probe, "teardown", nextitem=node)
    if fault is None:
        return probe
    return _line(fault)


def _run_phase(probe: Probe, phase: Literal["setup", "call", "teardown"], **arguments: Any) -> BaseException | None:
    """Run a phase, and make its report, which plugins of pytest itself rely on.  Return the exception that ended it."""
    hook = probe.ihook
    run = getattr(hook, f"pytest_runtest_{phase}")
    call = pytest.CallInfo.from_call(lambda: run(item=probe, **arguments), phase, reraise=_OVER)
    hook.pytest_runtest_makereport(item=probe, call=call)
    if call.excinfo:
        return call.excinfo.value
    return None
