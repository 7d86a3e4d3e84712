"""State of a run that the modules of the plugin share: plain data, and the base class of interviews and studies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.plugin.places import PlaceGuard

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation import Evaluation, Settings, StudyPlan
    from pytest_adaptive_eval.gates.result import SessionResult
    from pytest_adaptive_eval.gates.study_result import StudyResult
    from pytest_adaptive_eval.items.item import Response
    from pytest_adaptive_eval.models.base import Completion, Subject, Usage
    from pytest_adaptive_eval.models.reuse import AnswerStore
    from pytest_adaptive_eval.plugin.exchange import Exchange
    from pytest_adaptive_eval.plugin.randomness import GeneratorStates
    from pytest_adaptive_eval.records.journal import Journal
    from pytest_adaptive_eval.records.run_record import InterviewRecord, StudyRecord

#: How to name an answer that a test must fail.
WRONG_ANSWER = '@pytest.mark.adaptive_eval(..., wrong_answer="...")'
#: Markers by which plugins are told to run a failed test again.
RERUN_MARKERS = ("flaky",)


@dataclass(eq=False)
class RunState:
    """State of a run in one process.  Under xdist, the controller and each worker have their own.

    Args:
        exchange: Results of other processes.
        evaluations: Every interview and study that collection met, selected or not.
        needs: Evaluations that must precede a gate, or an interview whose baseline is another interview.
        family: Number of claims that FAIL verdicts are corrected for: conditions that draws decide, and thresholds of
            studies.
        companions: Other interviews whose questions are asked in the same calls; None where each interview is asked by
            itself.
        answers: Answers that runs share; None where every answer is asked for.
    """

    config: pytest.Config
    settings: Settings
    exchange: Exchange
    places: PlaceGuard = field(default_factory=PlaceGuard)
    evaluations: list[EvaluationNode] = field(default_factory=list)
    needs: dict[pytest.Item, list[EvaluationNode]] = field(default_factory=dict)
    family: int = 0
    companions: Companions | None = None
    answers: AnswerStore | None = None

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.settings.folder

    @property
    def worker(self) -> bool:
        """Whether this process is a worker of xdist."""
        return hasattr(self.config, "workerinput")

    def owns(self, item: pytest.Item) -> bool:
        """Return whether a test is a question, an interview, a study or a gate."""
        return isinstance(item, Once) or item in self.needs

    def lookup(self, name: str) -> tuple[EvaluationNode, SessionResult | StudyResult]:
        """Return the interview or study of a name or a node id, and its result."""
        node = resolve(name, self.evaluations)
        if node.result is None and (data := self.exchange.result(node.nodeid)):
            node.restore(data)
        if node.result is None:
            raise ConfigError(f"adaptive_eval[{name!r}]: the {node.noun} {node.nodeid} gave no result in this run")
        return node, node.result


def sets_up_only(config: pytest.Config) -> bool:
    """Return whether fixtures are set up and no test is called; pytest's plugin of that option may be off."""
    return bool(config.getoption("setuponly", False))


#: Key of the run's state in ``config.stash``.
STATE: pytest.StashKey[RunState] = pytest.StashKey()


class Once(pytest.Function):
    """A test that plugins for flaky tests leave alone, since asking again would be another administration."""

    def iter_markers_with_node(self, name: str | None = None) -> Iterator[tuple[Any, pytest.Mark]]:
        """Yield markers of the test, except those that request another run of it."""
        for node, mark in super().iter_markers_with_node(name):
            if mark.name not in RERUN_MARKERS:
                yield node, mark


class EvaluationNode(Once):
    """An interview or a study: a test whose result gates judge."""

    #: Word for messages, and the key of its record in a report.
    noun: str
    evaluation: Evaluation | StudyPlan
    state: RunState
    record: InterviewRecord | StudyRecord | None = None
    result: SessionResult | StudyResult | None = None
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
        return {self.evaluation.name, self.nodeid}

    def setup(self) -> None:
        """Do nothing: fixtures belong to the questions, and some of them would read the placeholder."""

    def administer(self) -> None:
        """Run the evaluation, and set its result and its record."""
        raise NotImplementedError

    def restore(self, data: dict[str, Any]) -> None:
        """Set the result from the JSON data of the process that ran the evaluation."""
        raise NotImplementedError


class Companions(Protocol):
    """Other interviews of a run that ask the same subject, as far as an interview needs them."""

    def prefetch(self, loop: Any, subject: Subject, questions: Sequence[Any]) -> None:
        """Have questions of an interview answered, and questions of others in the same call."""

    def advance(self, loop: Any) -> None:
        """Take answers that came while a test of an interview ran, and begin further questions."""

    def hand_over(self, nodeid: str, path: Path) -> tuple[Journal | None, Usage]:
        """Return the open journal at `path` of an interview that begins, if any, and what its answers cost so far."""

    def close(self) -> None:
        """Close the journals of interviews that did not begin."""


class Finding:
    """What answers have shown of a test.

    Attributes:
        methods: Methods of the item by which the test has judged an answer: ``grade``, ``score``.
        fault: Exception that ended the test on each made-up answer before it could fail; empty where one has failed it.
    """

    def __init__(self) -> None:
        self.methods: set[str] = set()
        self.fault = ""

    @property
    def doubt(self) -> str:
        """Why a test that no answer has failed may check nothing; empty where it is known to judge answers."""
        if self.methods or not self.fault:
            return ""
        return (
            "every answer passed, and it cannot be seen whether the test checks any, since made-up ones end it with an "
            f"error ({self.fault}): write `assert item.grade(...)`, or name an answer that it has to fail: "
            f"{WRONG_ANSWER}"
        )


class QuestionOwner(Protocol):
    """The interview of a question, as far as the question needs it."""

    nodeid: str
    #: Why the user's own marks or fixtures skip the interview; empty where they do not.
    skipped: str
    #: Number of times that another plugin ran a question again, which asked nothing.
    reruns: int
    #: Random state that the questions share.
    generators: GeneratorStates
    #: What made-up answers have shown of the test.
    finding: Finding

    @property
    def unanswered(self) -> str:
        """What an unanswered question counts as, see `items.item.Response.of`."""

    def latest(self, taken: Sequence[tuple[Subject, Completion]]) -> Completion | None:
        """Return the latest of the completions that the model under evaluation gave; None if it is no `Subject`."""

    def recall(self, test: Any) -> Response | None:
        """Return the answer that an earlier, killed run left to a question, if any."""

    def give_up(self, sentence: str, *, usage: bool = False) -> None:
        """End the interview as void; the first reason stands."""


def resolve(name: str, nodes: Iterable[EvaluationNode]) -> EvaluationNode:
    """Return the one interview or study named `name`.

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
