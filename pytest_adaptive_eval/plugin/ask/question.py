"""One administered question as a pytest test."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import numbers
import traceback
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, Unscored, UsageError
from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.measured import Measured
from pytest_adaptive_eval.items.item import Item, Response, Status, cut_text
from pytest_adaptive_eval.models.base import (
    Completion,
    Model,
    RequestLog,
    SubjectIdentity,
    repeated_request,
    summed_measures,
)
from pytest_adaptive_eval.plugin.ask.replies import calls_seen
from pytest_adaptive_eval.plugin.names import DETAILS, PARAMETER, PROPERTY
from pytest_adaptive_eval.plugin.state import UnrepeatableTest, name_toml_test
from pytest_adaptive_eval.records.parts import plain

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.ask.answers import Answers
    from pytest_adaptive_eval.plugin.ask.open_questions import OpenQuestion, TestFinding
    from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates
    from pytest_adaptive_eval.records.run_record import Administration

#: What is wrong with a test that passes by itself.
NOT_ASKED = (
    "the test passed without asking its model, so every answer would count as right: take the model as an argument, "
    "call it in the test and judge what it returns"
)
PLACEHOLDER = object()  #: Value of the parameter ``item`` at collection.
#: Errors of a test that reads an answer which is not whole: no answer is read.
READING_ERRORS = (ValueError, LookupError, TypeError, AttributeError, SyntaxError)


def is_placeholder(node: object) -> bool:
    """Return whether pytest collected `node` from a function of this plugin."""
    return (
        isinstance(node, pytest.Function)
        and getattr(node, "callspec", None) is not None
        and (node.callspec.params.get("item") is PLACEHOLDER)
    )


class AskedItem:
    """Value of the argument ``item`` of a test: the bank's item, and a way to score it.

    Attributes of `pytest_adaptive_eval.items.item.Item` are read through; `sample` counts the answers asked for to this
    item, from 0, such as for a seed.
    """

    def __init__(self, item: Item, sample: int = 0) -> None:
        self.item, self.sample = item, sample
        self.given: float | None = None
        self.recorded: dict[str, float] = {}
        self.graded: float | None = None
        self.text = ""
        self.read = False  #: Whether there was a text to grade, even an empty one.
        self.fault: Unscored | None = None  #: Reason why the latest answer could not be graded.

    def __getattr__(self, name: str) -> Any:
        return getattr(self.item, name)

    @property
    def probing(self) -> bool:
        """Whether no model is asked, since the test runs on an answer to another question to see whether it can fail.

        A test that reads this before it asks counts as not probed.
        """
        return False

    def __repr__(self) -> str:
        return f"<item {self.item.id}>"

    def grade(self, text: str | float) -> float:
        """Return an answer's score in [0, 1] by the item's grader, and keep the answer for the record.

        Raises:
            Unscored: The answer is neither a text nor a number for a numeric grader; it is not counted as wrong.
        """
        answer: object = text
        number = isinstance(answer, numbers.Real) and not isinstance(answer, bool)
        if not isinstance(answer, str) and not (number and self.item.grader == "numeric"):
            self.text = ""
            self.fault = Unscored(
                Status.ERROR.value,
                f"item.grade() got {type(text).__name__}, expected the text of an answer (str): see what the model's "
                "generate() returns",
            )
            raise self.fault
        self.text = cut_text(str(text))
        self.read = True
        self.fault = None
        try:
            self.graded = self.item.grade(self.text)
        except Unscored as fault:
            self.fault = fault
            raise
        return self.graded

    def score(self, value: float) -> None:
        """Set the score, in [0, 1], instead of right or wrong."""
        number = float(value)
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"item.score({value!r}): a score lies in [0, 1]")
        self.given = number

    def record(self, **fields: float) -> None:
        """Record values of this answer, such as ``record(latency=0.8)``, for gates on fields and for the record.

        Raises:
            ValueError: A value is not a finite number of at least 0, or the name is that of another metric.
        """
        for name, value in fields.items():
            number = float(value)
            if not 0.0 <= number < math.inf:
                raise ValueError(f"item.record({name}={value!r}): expected a finite number of at least 0")
            metric = registered_metric(name)
            if metric is not None and not isinstance(metric, Measured):
                raise ValueError(f"item.record({name}={value!r}): {name} is a metric of scores; choose another name")
            self.recorded[name] = number


class QuestionOwner(Protocol):
    """The interview of a question, with what the question needs."""

    nodeid: str
    skipped: str  #: Why the user's own marks or fixtures skip the interview; empty where they do not.
    reruns: int  #: Number of times that another plugin ran a question again, which asked nothing.
    generators: GeneratorStates  #: Random state that the questions share.
    finding: TestFinding  #: What made-up answers have shown of the test.
    answers: Answers  #: Completions of the requests that its tests make.

    def latest(self, taken: Sequence[tuple[Model, Completion]]) -> Completion | None:
        """Return the latest of the completions that the model under evaluation gave; None if it is no `Model`."""

    def begin(self, test: Any) -> None:
        """Have a question answered before its test runs, if the test asks its item as it is."""

    def check_passed(self, test: Any) -> None:
        """End the interview if the test of a question that passed accepts answers to other questions."""

    def give_up(self, sentence: str, *, usage: bool = False) -> None:
        """End the interview as void; the first reason is kept."""


class QuestionTest(UnrepeatableTest):
    """One administered question; a failed assertion is a wrong answer and passes."""

    asked: AskedItem
    interview: QuestionOwner | None = None  #: The interview that asks; None when the question is run alone.
    question: OpenQuestion  #: The question of the interview, if one asks.
    administration: Administration  #: Record of this administration, if an interview asks.
    response: Response | None = None
    fault = ""  #: First line of the first report that did not pass.
    running = False  #: Whether its body runs: reports made meanwhile are of its subtests.
    _begun: frozenset[str] = frozenset()  #: Phases that have begun: each is run once.
    _raised: BaseException | None = None  #: Exception of the set-up or the test.
    _subtest: BaseException | None = None  #: The first fault of its subtests.

    @classmethod
    def of(cls, template: Any, asked: AskedItem) -> Self:
        """Create the test of one item from the placeholder."""
        item = asked.item
        arguments = {}
        if asked.sample:
            name = f"{item.id}#{asked.sample + 1}"
        else:
            name = item.id
        ids = []
        for id_part in template.ids:
            ids.append(name if id_part.startswith(PARAMETER) else id_part)
        if (spec := getattr(template, "callspec", None)) is None:
            arguments = {"callobj": template.obj}
        else:
            # pytest has no public names for these; they are the same since pytest 8.0
            callspec = dataclasses.replace(spec, params={**spec.params, "item": asked}, _idlist=ids)
            arguments = {"callspec": callspec, "originalname": template.originalname}
        test: Self = cls.from_parent(
            template.parent,
            name=f"{template.originalname}[{'-'.join(ids)}]",
            fixtureinfo=template._fixtureinfo,
            **arguments,
        )
        if spec is None:
            name_toml_test(test, template.originalname)
        test.own_model, test.asks_items = template.own_model, template.asks_items
        path, line, domain = template.location  # pytest would search the source for the same lines each time
        test.location = (path, line, domain.removesuffix(template.name) + test.name)
        for mark in template.own_markers:  # marks added late, by hooks
            if mark not in test.own_markers and mark is not getattr(template, "no_timeout", None):
                test.own_markers.append(mark)
                test.keywords[mark.name] = mark
        test.asked = test.funcargs["item"] = asked  # so that pytest sets up no fixture for it
        return test

    @functools.cached_property
    def requests(self) -> RequestLog:
        """Requests of its fixtures and its body."""
        if self.interview is None:
            return RequestLog()
        return RequestLog(complete=self.interview.answers.complete)

    @functools.cached_property
    def ihook(self) -> Any:
        """Hooks of its file, which pytest would look up seven times a test."""
        return super().ihook

    def setup(self) -> None:
        """Set up the fixtures, with the interview's random state."""
        if self.interview is None:
            self._set_up()
            return
        runs_code = self.own_model is not None and not self.own_model.loaded
        for name, definitions in self._fixtureinfo.name2fixturedefs.items():
            # one of a module, without parameters, is called once
            is_called = definitions[-1].cached_result is None or definitions[-1].params is not None
            if name != "item" and is_called:
                runs_code = True
        with self._once("setup", self.interview, runs_code=runs_code) as again:
            if again:
                return
            if not runs_code:
                self._set_up()
                return
            with self.requests.active():  # a fixture may ask
                self._set_up()

    def _set_up(self) -> None:
        if self.own_model is not None and not self.config.getoption("setupplan", False):  # as of a fixture
            self.funcargs["model"] = self.own_model.get()
        super().setup()

    def runtest(self) -> None:
        """Run the test.  The first run counts."""
        self.running = True
        try:
            if self.interview is None:
                with self._sampled():
                    self._replay()
                return
            with self._once("call", self.interview) as again:
                if not again:
                    with self._sampled():
                        self._administer(self.interview)
        finally:
            self.running = False

    @contextlib.contextmanager
    def _once(self, phase: str, interview: QuestionOwner, *, runs_code: bool = True) -> Iterator[bool]:
        """Run a phase, with the interview's random state if it `runs_code`; a second time, end as the first did."""
        if phase in self._begun:
            interview.reruns += 1
            if self._raised is not None:
                raise self._raised
            yield True
            return
        self._begun |= {phase}
        try:
            if runs_code:
                interview.generators.begin(self.asked.item.id, self.asked.sample, phase)
            yield False
        except BaseException as error:
            self._raised = error
            raise

    @contextlib.contextmanager
    def _sampled(self) -> Iterator[None]:
        sample = self.asked.sample
        if sample:
            subjects = []
            for value in self.funcargs.values():
                if isinstance(value, Model):
                    subjects.append(value)
        else:
            subjects = []
        try:
            for subject in subjects:
                subject.sample = sample
            yield
        finally:
            for subject in subjects:
                subject.sample = 0

    def _administer(self, interview: QuestionOwner) -> None:
        start = clock.elapsed()
        try:
            interview.begin(self)
            self.response = self._answer(interview)
        finally:
            self.administration.seconds = clock.elapsed() - start
            self._note_measures(interview)
            self._properties()

    def _note_measures(self, interview: QuestionOwner) -> None:
        """Add the seconds of a user's own model, and the fields that the test recorded, to the measures."""
        measures = self.administration.measures
        if not measures and not self.administration.resumed:
            measured = [completion.measures for _, completion in self.requests.replies]
            measures |= summed_measures(measured)
        measures |= interview.answers.recorded_fields(self.question, self.asked.recorded)

    def _replay(self) -> None:
        """Run the question as an ordinary test; on failure, report the question and the answer."""
        try:
            self._run_test()
            if self.asked.given is not None and self.asked.given < 1:
                pytest.fail(f"score {self.asked.given:g} of 1", pytrace=False)
        finally:
            item = self.asked.item
            text = self.asked.text
            chat = "\n".join(f"{message.get('role')}: {message.get('content')}" for message in item.messages)
            choices = "\n".join(f"{chr(ord('A') + n)}. {choice}" for n, choice in enumerate(item.choices))
            sections = {
                "asked": item.prompt or chat,
                "choices": choices,
                "images": "\n".join(item.image_paths),
                "answered": text,
                "expected": item.answer and f"{item.expected} (by the grader {item.grader})",
            }
            lines = []
            for name, value in sections.items():
                if value:
                    lines.append(f"{name}: " + value.replace("\n", "\n    "))
            self.add_report_section("call", "question", "\n".join(lines))

    def run_body(self) -> None:
        """Run the test: its own failed assertions stay, the model's or grader's are Unscored, a value is a mistake."""
        with warnings.catch_warnings(), self.requests.active():
            warnings.simplefilter("error", pytest.PytestReturnNotNoneWarning)
            try:
                if self.asks_items:  # its calls are known
                    super().runtest()
                else:
                    with calls_seen(self.funcargs, find_model_fixture(self.funcargs)[0], self.requests):
                        super().runtest()
            except pytest.PytestReturnNotNoneWarning:
                raise ConfigError(
                    f"{self.nodeid}: the test returns a value, which says nothing: write `assert` before it, or "
                    "item.score(...)"
                ) from None
            except AssertionError as error:
                if self._of_the_test(error):
                    raise
                message = " ".join(str(error).split())[:200]
                raise Unscored(
                    Status.ERROR.value, f"an assertion of the model or the grader failed: {message}"
                ) from error

    def _run_test(self) -> None:
        """Run the test.  Raise if it passes without judging an answer of the model."""
        try:
            self.run_body()
        finally:
            methods = self._methods
            if self.asked.graded is not None:
                methods.add("grade")
            if self.asked.given is not None:
                methods.add("score")
        self._check_judged(methods)

    @property
    def _methods(self) -> set[str]:
        """Methods of the item by which tests of its interview have judged answers; the question adds its own."""
        if self.interview is None:
            return set()
        return self.interview.finding.methods

    def _check_judged(self, methods: Collection[str]) -> None:
        """Raise if a test that passed has judged no answer of the model."""
        asked, log = self.asked, self.requests
        if log.repeated:  # the test may have caught the refusal
            raise ConfigError(repeated_request(log.repeated))
        if asked.given != 0 and not log.count and any(map(RequestLog.sees, self.funcargs.values())):
            raise ConfigError(f"{self.nodeid}: {NOT_ASKED}")
        graded = asked.graded
        if asked.given is not None or self._subtest is not None:  # a failed subtest makes the answer wrong
            return
        if asked.fault is not None:
            raise asked.fault  # the test caught it
        if graded is None and methods:
            raise Unscored(
                Status.ERROR.value,
                "the test ended without item.grade(...) or item.score(...), by which it judges other answers",
            )
        if graded is None or graded == 1:
            return
        if graded == 0:
            raise ConfigError(
                f"{self.nodeid}: the test passed although item.grade(...) gave 0, so every answer would count as "
                "right: write `assert item.grade(...)`, or item.score(...) where the score is another"
            )
        raise ConfigError(
            f"{self.nodeid}: the test passed although item.grade(...) gave {graded:g}, and an assertion only separates "
            "right from wrong: write item.score(item.grade(...)) to count the fraction, or a rule of your own, such as "
            "item.score(item.grade(...) >= 0.5)"
        )

    def _answer(self, interview: QuestionOwner) -> Response:
        """Run the test, and return its score with the status of what the model did."""
        asked = self.asked
        score = None
        taken = self.requests.taken
        try:
            self._run_test()
            score = 1.0 if asked.given is None else asked.given
        except AssertionError:
            score = 0.0
        except Unscored as fault:
            response = self._ungraded(fault)
            if response.status is Status.NOT_RECORDED:
                return response
            subject = interview.answers.subject
            if subject is not None and subject.asks_twice:  # a limit of faults ends the interview, not one fault
                return response
            if response.status.infrastructure:
                self.response = response
                raise
            return response
        except pytest.skip.Exception as fault:
            self.response = Response(Status.NOT_RUN, None, asked.text, f"skipped: {fault.msg}")
            raise
        except pytest.fail.Exception as fault:
            if str(fault.msg).startswith("Timeout"):  # pytest-timeout's signal method
                self.response = Response(Status.TIMEOUT, None, asked.text, str(fault.msg))
            raise
        except READING_ERRORS:
            if (cut := interview.latest(taken)) is None or cut.status is Status.OK:
                raise
        completion = interview.latest(taken) or Completion(asked.text, score=None if asked.read else score)
        if completion.unread:  # also where the test caught that
            score = None
        reply = completion.text or self._last_reply
        if asked.read and completion.status is Status.OK:
            text = asked.text
        else:
            text = asked.text or reply
        return Response.of(completion.status, score, text, completion.detail)

    @property
    def _last_reply(self) -> str:
        """Last text of the model; empty where its calls are not seen."""
        if self.requests.replies:
            return self.requests.replies[-1][1].text
        return ""

    def _ungraded(self, fault: Unscored) -> Response:
        """Return the response to an answer that the model or the grader did not give a score."""
        asked = self.asked
        completion = Completion(cut_text(fault.text) or asked.text, Status(fault.status), detail=fault.detail)
        of_model = asked.fault is not fault
        if of_model and not completion.status.infrastructure:  # what it wrote is graded
            with contextlib.suppress(UsageError):
                return completion.response(asked.item)
        return Response.of(completion.status, None, completion.text, fault.detail)

    def _of_the_test(self, error: BaseException) -> bool:
        """Return whether an assertion is the test's own.  One within the model or the grading is a fault."""
        if self.asks_items:
            return False  # it asserts nothing
        models = []
        for n, v in self.funcargs.items():
            if n == "model" or hasattr(v, "identity"):
                models.append(v)
        codes = [getattr(model, "__code__", None) for model in models]
        for frame, _ in traceback.walk_tb(error.__traceback__):
            frame_self = frame.f_locals.get("self")
            if frame_self is self.asked or any(frame_self is model for model in models) or frame.f_code in codes:
                return False
        return True

    def _properties(self) -> None:
        response = self.response
        status = response.status.value if response else Status.ERROR.value
        score = response.score if response else None
        measures = self.administration.measures
        for entry in list(self.user_properties):
            if entry[0] in (PROPERTY, *DETAILS, *measures):
                self.user_properties.remove(entry)
        self.user_properties.append((PROPERTY, "unscored" if score is None else f"{score:g}"))
        for name in DETAILS[:-1]:
            value = getattr(self.administration, name)
            if value is not None:
                self.user_properties.append((name, f"{value:.6g}"))
        for name, value in measures.items():
            self.user_properties.append((name, f"{value:.6g}"))
        self.user_properties.append(("status", status))

    def take_report(self, report: pytest.TestReport, error: BaseException | None, *, of_subtest: bool) -> None:
        """Take up a report of this test, or of one of its subtests, which may change its response."""
        if of_subtest:
            if report.failed and self._subtest is None:
                self._subtest = error  # which does not reach the test
            return
        if not report.passed:
            self._note(report, error)
        if report.when == "call":
            self._contradict(report, error)

    def _note(self, report: pytest.TestReport, error: BaseException | None) -> None:
        """Keep the reason of a report that did not pass; faults that would recur end the interview."""
        if isinstance(error, AdaptiveEvalError):
            report.longrepr = str(error)  # the sentence suffices: a traceback does not help the user
        line = crash_line(report)
        self.fault = self.fault or line
        if self.interview is None:
            return
        if isinstance(error, UsageError):
            self.interview.give_up(str(error), usage=True)
        elif report.when == "setup" and report.skipped:
            self.interview.skipped = line
            self.interview.give_up(f"skipped: {line}")
        elif report.when == "setup" and self.administration.position == 1:
            self.interview.give_up(f"the fixtures of the first question could not be set up: {line}")

    def _contradict(self, report: pytest.TestReport, error: BaseException | None) -> None:
        """Mark an answer wrong if a check failed outside the test itself, and as a fault if it failed otherwise."""
        fault = self._subtest or (error if report.failed else None)
        if fault is None or self.response is None or self.response.score is None:
            return
        wrong = isinstance(fault, AssertionError)
        message = " ".join(str(fault).split())[:200]
        detail = f"a check failed beside the test's own assertions: {message}"
        status, score = (self.response.status, 0.0) if wrong else (Status.ERROR, None)
        self.response = Response(status, score, self.response.text, detail)
        self._properties()
        report.user_properties = list(self.user_properties)


def ask(item: AskedItem, model: Any) -> None:
    """Ask one question of a subject, or of an object with ``generate(prompt)``."""
    __tracebackhide__ = True
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


def ask_own(item: AskedItem, request: pytest.FixtureRequest) -> None:
    """Ask one question of the model that the file names."""
    __tracebackhide__ = True
    ask(item, request.node.funcargs["model"])


def crash_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the first line of a report's text, without the traceback."""
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(plain(report.longrepr[2].removeprefix("Skipped: ")))
    crash = getattr(report.longrepr, "reprcrash", None)
    unknown = getattr(report.longrepr, "errorstring", None)  # of a fixture that is not there
    text = getattr(crash, "message", None) or unknown or str(report.longrepr or "")
    return str(plain(next((line for line in text.splitlines() if line.strip()), report.outcome)))


WIDE_SCOPES = ("session", "package", "module", "class")  #: Fixture scopes that outlive a question.


def check_scope(node: pytest.Function, name: str, where: str) -> None:
    """Refuse a fixture that would load the model for every question.

    Raises:
        ConfigError: The fixture `name` has the scope of a function.
    """
    definitions = node._fixtureinfo.name2fixturedefs.get(name, ())
    if definitions and definitions[-1].scope not in WIDE_SCOPES:
        raise ConfigError(
            f"{where}: the fixture {name!r} has scope {definitions[-1].scope!r} and would load the model for every "
            'question: write @pytest.fixture(scope="module") or a wider one'
        )


def find_model_fixture(funcargs: Mapping[str, Any]) -> tuple[str, Any, SubjectIdentity]:
    """Return the name, value and identity of the question's model fixture."""
    identified = {}
    for n, v in funcargs.items():
        if isinstance(getattr(v, "identity", None), SubjectIdentity):
            identified[n] = v
    if "model" in identified:
        name = "model"
    else:
        name = next(iter(identified), "model")
    subject = funcargs.get(name)
    if name in identified:
        return name, subject, identified[name].identity
    return (
        name,
        subject,
        SubjectIdentity("" if subject is None else getattr(subject, "__name__", type(subject).__name__)),
    )
