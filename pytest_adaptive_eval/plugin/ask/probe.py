"""Run a test of questions on answers to other questions, to see whether it can fail.

What a test checks is seen by what it does: it asks, gets an answer that is wrong for its item, and has to fail. So an
assertion counts that fails, wherever it is written, and one that is forgotten, caught, never reached, constant or in
another thread does not. The test is probed before the first question, and again with each question that passed, until
`ENOUGH` items have shown that it checks them.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import pytest

from pytest_adaptive_eval.banks.code import CODE
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import RequestLog
from pytest_adaptive_eval.plugin.ask.question import (
    NOT_ASKED,
    AskedItem,
    QuestionOwner,
    QuestionTest,
    find_model_fixture,
)
from pytest_adaptive_eval.plugin.ask.random_states import drawn_so_far

_WORD = "Qzxqzzqx"  #: A word that no benchmark has as an answer; its letters show where any part of it comes from.
#: Made-up answers: words, then for tests that read other forms a number, and an object that a test may index.
_ANSWERS = (f"{_WORD} qzzx zqxxqz.", "-73051.9182640137", f'{{"answer": "{_WORD}"}}')
_MADE_UP = re.compile(rf"[qzx\W]*|.*{_WORD}.*|-?73051(?:\.9\d*)?", re.IGNORECASE | re.DOTALL)
_OVER = (KeyboardInterrupt, SystemExit, pytest.exit.Exception)
#: Items whose test accepts the answer to another question, from which on the test is unsound.
UNSOUND = 3
#: Items whose test refuses it, after which no further item is probed.
ENOUGH = 20
#: Items whose keys may be donors, and answers of the run that are kept as donors.
_KEYS, _RECENT = 20, 8

WRONG_ANSWER = '@pytest.mark.adaptive_eval(..., wrong_answer="...")'  #: How to name an answer that a test must fail.


class Donor(NamedTuple):
    """An answer that is wrong for the item that it is given to; `source` says where it comes from."""

    text: str
    source: str


class Donors:
    """Answers to other questions: answers of this run that passed, and keys of the bank."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._passed: dict[str, Item] = {}  #: Item by text, the latest last.

    @functools.cached_property
    def _keys(self) -> dict[str, Item]:
        """Item by key, of items that are spread over the bank."""
        step = max(1, len(self._items) // _KEYS)
        spread = [self._items[place] for place in range(0, len(self._items), step)]
        return {item.answer: item for item in spread if item.answer.strip()}

    def add(self, item: Item, text: str) -> None:
        """Keep an answer that passed the test of an item."""
        self._passed.pop(text, None)
        self._passed[text] = item
        if len(self._passed) > _RECENT:
            del self._passed[next(iter(self._passed))]

    def answer_for(self, item: Item) -> Donor | None:
        """Return the latest answer of the run to an item with another key; None without one."""
        for text, other in reversed(self._passed.items()):
            if other.answers != item.answers and _is_wrong(item, text):
                return Donor(text, f"the answer to {other.id!r}")
        return None

    def key_for(self, item: Item) -> Donor | None:
        """Return the key of another item; None without one."""
        for text, other in self._keys.items():
            if _is_wrong(item, text):
                return Donor(text, f"the key of {other.id!r}")
        return None


def _is_wrong(item: Item, text: str) -> bool:
    """Return whether an item's own grader refuses a text, and the text does not hold an accepted answer."""
    folded = text.casefold()
    holds_answer = any(answer.casefold() in folded for answer in item.answers if answer.strip())
    return not holds_answer and _grade(item, text) == 0.0


def _grade(item: Item, text: str) -> float | None:
    """Return the score of a text by the item's own grader; None where it cannot be graded."""
    try:
        return item.grade(text)
    except Exception:  # whatever a grader of the user raises
        return None


class _ProbedItem(AskedItem):
    """The argument ``item`` of a probe: what comes of a made-up answer is wrong, unless the user has `named` it."""

    def __init__(self, item: Item, *, named: bool, grade_of_made_up: float) -> None:
        super().__init__(item)
        self.named, self._grade = named, grade_of_made_up
        self.derived = False  #: Whether a text to grade came of the made-up answer.

    def grade(self, text: str | float) -> float:
        if self.named or _MADE_UP.fullmatch(str(text)) is None:
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

    @classmethod
    def beside(cls, node: pytest.Function, test: QuestionTest, asked: _ProbedItem, answer: str) -> Self:
        """Create a probe that has the fixtures of a question, which are still set up."""
        probe = cls.of(node, asked)
        probe.interview, probe.ihook, probe.obj = test.interview, test.ihook, test.obj
        probe.funcargs = {**test.funcargs, "item": asked}
        probe.requests = RequestLog(answer)
        return probe

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

    def run_alone(self) -> None:
        """Run the body, without the hooks that belong to a phase of a test; another plugin may fail its report."""
        reporting = self.ihook.pytest_runtest_makereport
        modules = [implementation.function.__module__ for implementation in reporting.get_hookimpls()]
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
            if not RequestLog.sees(model):  # a subject takes its answer from the log
                stand_in = self.funcargs[name] = _StandIn(model, self.requests)
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
        finally:
            attributes.update(before)

    @property
    def asks(self) -> bool:
        """Whether the test asks a model, or ends before it could."""
        return self.has_model and (self.requests.count > 0 or bool(self.error))

    @property
    def score(self) -> float:
        """Score that the test gave the answer."""
        given = self.asked.given
        return 0.0 if not self.passed else 1.0 if given is None else given

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


class TestProbes:
    """Probes of the test of one interview.

    Args:
        items: Items of the bank.
        wrong_answer: Answer that the test has to fail, from the user; None for answers to other questions.
    """

    __test__ = False

    def __init__(self, items: Sequence[Item], wrong_answer: str | None) -> None:
        self._donors, self._wrong_answer = Donors(items), wrong_answer
        self._accepted: list[str] = []
        self._refused = self._turn = 0
        self._unprobed = ""  #: Why an item was not probed.

    def note(self) -> str:
        """Return a sentence on a test that was not probed; empty for others."""
        if self._refused or self._accepted or not self._unprobed:
            return ""
        return f"the test was not probed with answers to other questions, since {self._unprobed}"

    def check_first(self, interview: QuestionOwner, node: pytest.Function, item: Item) -> str:
        """Run the test before the first question.  Return why its verdicts would mean nothing; empty if sound."""
        if self._wrong_answer is not None:
            asked = _ProbedItem(item, named=True, grade_of_made_up=0.0)
            probe = self._probe_first(interview, node, asked, self._wrong_answer)
            if probe is None or (probe.asks and not probe.passed):
                return ""
            return _fault(probe, named=True)
        partial: dict[float, str] = {}  # fault by score that a made-up answer got
        for answer, of_other_question in self._first_answers(item):
            # where a made-up answer got a part of the score, another grade has to change it
            asked = _ProbedItem(item, named=of_other_question, grade_of_made_up=float(bool(partial)))
            probe = self._probe_first(interview, node, asked, answer)
            if probe is None:
                return ""
            if not probe.asks:
                return _fault(probe, named=False)
            if probe.error:
                continue  # it cannot read this answer
            if not probe.passed:
                return ""
            if of_other_question:
                continue  # one answer may be right by chance
            score = _varying_score(probe, partial)
            if score is None:
                return _fault(probe, named=False)
            partial[score] = _fault(probe, named=False)  # such as a similarity; a constant is the same for all answers
        return next(iter(partial.values())) if len(partial) == 1 else ""

    def _first_answers(self, item: Item) -> Iterator[tuple[str, bool]]:
        """Yield the answers of the first probe, and whether each is right for another question."""
        donor = None if _why_unprobed(item) else self._donors.key_for(item)
        if donor is not None:
            yield donor.text, True
        for made_up in _ANSWERS:
            yield made_up, False

    def _probe_first(
        self, interview: QuestionOwner, node: pytest.Function, asked: _ProbedItem, answer: str
    ) -> _Probe | None:
        """Run one probe before the first question, and note what the test does.  Return None if it cannot be run."""
        probe = _run(interview, node, asked, answer)
        if isinstance(probe, str):
            self._unprobed = probe
            return None
        finding = interview.finding
        if asked.derived or (asked.named and asked.graded is not None):
            finding.methods.add("grade")
        if asked.given is not None and probe.requests.count:
            finding.methods.add("score")
        finding.asks_item = probe.requests.asks(asked.item)
        finding.grades_answer = asked.text == answer
        return probe

    def check_passed(self, node: pytest.Function, test: QuestionTest, text: str) -> str:
        """Run the test of a question that passed on other answers.  Return why it is unsound; empty if it may be sound.

        An item is accepted where the test gives another answer at least the score of the model's.

        Args:
            text: The model's answer; empty if it is unknown.
        """
        response, item = test.response, test.asked.item
        if self._refused >= ENOUGH or response is None or not response.score:
            return ""
        if reason := _why_unprobed(item):
            self._unprobed = reason
            return ""
        # part of a score may be reached by chance, such as by a similarity: then every donor has to reach it
        donors = self._donors_for(item) if response.score < 1.0 else [self._next_donor(item)]
        for donor in donors:
            asked = _ProbedItem(item, named=donor.source != _INVENTED, grade_of_made_up=0.0)
            probe = _Probe.beside(node, test, asked, donor.text)
            probe.run_alone()
            if probe.requests.count != 1:
                self._unprobed = "it asks several times, or a fixture asks"
                return ""
            if probe.score < response.score:
                self._refused += 1
                break
        else:
            self._accepted.append(f"{item.id!r} accepts {donor.text[:_SHOWN]!r} ({donor.source})")
        answer = text or response.text
        if response.score == 1.0 and answer.strip():
            self._donors.add(item, answer)
        return self._unsound(test) if len(self._accepted) >= UNSOUND else ""

    def _donors_for(self, item: Item) -> list[Donor]:
        """Return wrong answers to an item: the named one, or an answer of the run and a key, or a made-up one."""
        if self._wrong_answer is not None:
            return [Donor(self._wrong_answer, "the wrong_answer of its marker")]
        donors = [self._donors.answer_for(item), self._donors.key_for(item)]
        return [donor for donor in donors if donor is not None] or [Donor(_ANSWERS[0], _INVENTED)]

    def _next_donor(self, item: Item) -> Donor:
        """Return a wrong answer to an item: answers of the run and keys take turns."""
        self._turn += 1
        if self._wrong_answer is None:
            find = self._donors.answer_for if self._turn % 2 else self._donors.key_for
            donor = find(item)
            if donor is not None:
                return donor
        return self._donors_for(item)[0]

    def _unsound(self, test: QuestionTest) -> str:
        return (
            f"{test.nodeid.partition('[')[0]}: the test accepts answers to other questions, so a model that is always "
            f"wrong would pass: {'; '.join(self._accepted)}: write `assert item.grade(...)`, an assertion on the "
            "answer, or item.score(...); where good answers to all questions pass alike, name one that must fail: "
            f"{WRONG_ANSWER}"
        )


_INVENTED = "made up"  #: Source of a donor that is right for no question.
_SHOWN = 60  #: Characters of a donor that are shown.


def _why_unprobed(item: Item) -> str:
    """Return why the test of an item is not probed; empty if it is."""
    if item.grader in (JUDGE, CODE):
        return f"its items have the grader {item.grader!r}"
    if item.likelihood is not None or item.turns:
        return "an item takes more than one text"
    return ""


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
