"""Gates: tests that take the fixture ``adaptive_eval`` and assert on verdicts, and what they set on interviews."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.evaluation import Evaluation, Plan
from pytest_adaptive_eval.gates.bets import above_guessing
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import outlook_sentence
from pytest_adaptive_eval.gates.result import Result, SessionResult
from pytest_adaptive_eval.gates.verdict import NoVerdict, Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.plugin.names import GATE_MARKER, MARKER
from pytest_adaptive_eval.plugin.state import EvaluationNode, RunState
from pytest_adaptive_eval.records.baseline import BaselineFile
from pytest_adaptive_eval.text import number


def is_gate(item: pytest.Item) -> bool:
    """Return whether a test judges interviews: it takes the fixture, or has a mark of gates."""
    return MARKER in getattr(item, "fixturenames", ()) or item.get_closest_marker(GATE_MARKER) is not None


def gate_marks(item: pytest.Item) -> list[pytest.Mark]:
    """Return the marks that declare conditions, in the order in which they are written."""
    return list(item.iter_markers(GATE_MARKER))[::-1]


def named_evaluations(item: pytest.Item) -> set[str]:
    """Return the names of evaluations in a gate's marks."""
    return {name for mark in gate_marks(item) for name in mark.args[:1] if isinstance(name, str)}


def judges_itself(item: pytest.Item) -> ConfigError:
    """Return the error of a test that asks questions and takes the fixture of gates."""
    return ConfigError(
        f"{item.nodeid}: a test with the marker adaptive_eval asks questions and cannot judge the answers too: "
        "move what uses the fixture adaptive_eval to a test of its own"
    )


def order(items: list[pytest.Item], needs: Mapping[pytest.Item, Sequence[EvaluationNode]]) -> list[pytest.Item]:
    """Place each test directly after the last evaluation it needs, and add missing evaluations before it."""
    placed: set[pytest.Item] = {item for item in items if isinstance(item, EvaluationNode)}
    ordered: list[pytest.Item] = []
    done: set[pytest.Item] = set()
    waiting: list[pytest.Item] = []

    def place(item: pytest.Item) -> None:
        if not done.issuperset(needs.get(item, ())):
            waiting.append(item)
            return
        ordered.append(item)
        if isinstance(item, EvaluationNode):
            done.add(item)
            for ready in [test for test in waiting if done.issuperset(needs[test])]:
                if ready in waiting:
                    waiting.remove(ready)
                    place(ready)

    def place_with_needs(item: pytest.Item) -> None:
        for node in needs.get(item, ()):
            if node not in placed:
                placed.add(node)
                place_with_needs(node)
        place(item)

    for item in items:
        place_with_needs(item)
    return ordered


def failed_sentence(verdicts: Sequence[Verdict]) -> str:
    """Return the first sentence of verdicts that do not hold, with their number; empty if all hold."""
    failed = [verdict for verdict in verdicts if not verdict]
    if not failed:
        return ""
    more = f" ({len(failed)} of {len(verdicts)} verdicts do not hold)" if len(verdicts) > 1 else ""
    return f"{failed[0].sentence}{more}"


class Verdicts:
    """Verdicts of the conditions that a gate's marks declare, in the order of the marks; true if all hold."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self._verdicts = tuple(verdicts)
        #: Positions of verdicts that the test has not looked at.
        self.unread = set(range(len(verdicts)))

    def __bool__(self) -> bool:
        self.unread.clear()
        return all(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __getitem__(self, position: int) -> Verdict:
        verdict = self._verdicts[position]
        self.unread.discard(range(len(self))[position])
        return verdict

    def __iter__(self) -> Iterator[Verdict]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return failed_sentence(self._verdicts) or "; ".join(verdict.sentence for verdict in self._verdicts)


class Results(NoVerdict):
    """The fixture ``adaptive_eval``: results of evaluations by name; `on_verdict` may replace a verdict."""

    def __init__(
        self,
        lookup: Callable[[str], tuple[EvaluationNode, Result]],
        on_verdict: Callable[[EvaluationNode, Verdict], Verdict],
        on_any: Callable[[Sequence[Verdict]], object],
        declared: Callable[[], Verdicts],
    ) -> None:
        self._lookup, self._on_verdict, self._on_any, self._declared = lookup, on_verdict, on_any, declared

    @property
    def verdicts(self) -> Verdicts:
        """Verdicts of the conditions that the test's marks declare.

        Raises:
            ConfigError: The test has no mark ``adaptive_gate``.
        """
        return self._declared()

    def __getitem__(self, name: str) -> Any:
        node, result = self._lookup(name)
        return replace(result, on_verdict=lambda verdict: self._on_verdict(node, verdict))

    def any_of(self, *verdicts: Verdict) -> bool:
        """Return whether one of the verdicts holds, which is all that the gate asks of them.

        Raises:
            ConfigError: There is none, or something else than verdicts.
        """
        if not verdicts or not all(isinstance(verdict, Verdict) for verdict in verdicts):
            raise ConfigError("any_of takes verdicts, such as *adaptive_eval.verdicts")
        self._on_any(verdicts)
        return any(verdicts)

    def __repr__(self) -> str:
        return "adaptive_eval"


@dataclass
class GatePlan:
    """Conditions of gates on one evaluation, which their marks and TOML files declare.

    Args:
        undeclared: Names of gates without marks, whose conditions are not known before they run.
        sources: Baselines by the name that gates use: another evaluation of this run, or a recorded one.
        missing: Sentences on baselines that do not exist yet, by name.
    """

    state: RunState
    evaluation: Evaluation | Plan
    conditions: list[Condition] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    sources: dict[str, EvaluationNode | BaselineFile | Result] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    #: Baselines of an interview with scores, once `baselines` has read them.
    loaded: dict[str, BaselineFile] = field(default_factory=dict)

    @property
    def interview(self) -> Evaluation:
        """The evaluation, which is an interview."""
        assert isinstance(self.evaluation, Evaluation)
        return self.evaluation

    @property
    def judged(self) -> bool:
        """Whether a gate judges the interview, with declared conditions or its own."""
        return bool(self.conditions or self.undeclared)

    @property
    def undeclared_warning(self) -> str:
        """What conditions that only the bodies of gates know cost, and the mark to write; empty if nothing."""
        evaluation = self.evaluation
        if not self.undeclared or not isinstance(evaluation, Evaluation):
            return ""
        if evaluation.policy.stop != "decision" or not self._may_stop:
            return ""
        gates = f"{self.undeclared[0]}{f' and {len(self.undeclared) - 1} more' * (len(self.undeclared) > 1)}"
        return (
            f"the condition of {gates} is in the test's body, which runs after the interview: it asks its whole "
            f"budget, {evaluation.budget * evaluation.samples} questions. To stop at the verdict, put "
            f'@pytest.mark.{GATE_MARKER}("{evaluation.name}", at_least=...) on the test, and '
            "`assert adaptive_eval.verdicts` into it"
        )

    @property
    def _may_stop(self) -> bool:
        """Whether declared conditions and baselines allow the interview to end early."""
        return not (self.missing or any(condition.whole for condition in self.conditions))

    def baselines(self) -> dict[str, BaselineFile]:
        """Return the baselines by name, including other interviews of this run."""
        if not self.loaded:
            self.loaded = {
                name: self._interview_baseline(name, source) if isinstance(source, EvaluationNode) else source
                for name, source in self.sources.items()
                if not isinstance(source, Result)
            }
        return self.loaded

    def _interview_baseline(self, name: str, node: EvaluationNode) -> BaselineFile:
        _, result = self.state.lookup(node.nodeid)
        assert isinstance(result, SessionResult)
        if result.fault:
            raise BaselineError(f"the baseline {name!r} gave no answers to compare with: {result.fault}")
        scores = np.full(len(result.bank), np.nan)
        scores[result.log.items] = result.log.scores
        subject = result.subject
        baseline = Baseline(subject.get("name") or name, scores, result.log, climbed=result.climb is not None)
        assert isinstance(node.evaluation, Evaluation)
        # without requests: two tests of one run may differ, and the reader sees both
        where, decoding = f"evaluation {name!r}", subject.get("decoding", "")
        checkpoint = subject.get("checkpoint", "")
        return BaselineFile(baseline, where, decoding, checkpoint=checkpoint)

    def result_arguments(self) -> dict[str, Any]:
        """Return keyword arguments of a result that come from the gates."""
        baselines: dict[str, Baseline | Result]
        if isinstance(self.evaluation, Evaluation):
            baselines = {name: file.baseline for name, file in self.baselines().items()}
        else:
            baselines = {
                name: self.state.lookup(source.nodeid)[1] if isinstance(source, EvaluationNode) else source
                for name, source in self.sources.items()
                if not isinstance(source, BaselineFile)
            }
        family, planned = self.state.family, tuple(self.conditions)
        return {"planned": planned, "family": family, "baselines": baselines, "absent": self.missing}

    def session_arguments(self) -> dict[str, Any]:
        """Return keyword arguments of `Session`: claims that may end it early, and the baseline that it follows."""
        bank = self.interview.bank
        baselines = {name: file.baseline for name, file in self.baselines().items()}
        claims = [claim for c in self.conditions if c.by_draws for claim in c.claims(bank, baselines)]
        claims += self._above_guessing(baselines)
        cuts = [cut for c in self.conditions for cut in c.measure.cuts(c, bank)]
        may_stop = self._may_stop and not self.undeclared
        return {
            "claims": claims if may_stop else (),
            "cuts": cuts if may_stop else (),
            "family": self.state.family,
            "baseline": self._followed_baseline(list(baselines.values())),
            "take_all": self.interview.must_pass,
        }

    def _above_guessing(self, baselines: Mapping[str, Baseline]) -> list[Claim]:
        """Return the claim of an accuracy above guessing for each threshold below it, whose PASS needs both."""
        bank = self.interview.bank
        thresholds = [c for c in self.conditions if c.metric == "accuracy" and c.kind != "not_worse_than"]
        claims = [claim for c in thresholds for claim in c.claims(bank, baselines) if claim.total <= len(bank) / 2.0]
        if not claims or not all(len(item.choices) > 1 for item in bank.items):
            return []
        total = sum(1.0 / len(item.choices) for item in bank.items)
        return [above_guessing(claim, total) for claim in claims if claim.total <= total]

    def _followed_baseline(self, baselines: list[Baseline]) -> Baseline | None:
        """Return the baseline by whose draws the session selects items."""
        drawn = [baseline for baseline in baselines if not baseline.climbed]
        partial = [baseline for baseline in drawn if not baseline.complete]
        if partial and len(drawn) > 1:
            raise BaselineError(
                f"{self.evaluation.name}: several baselines, of which {partial[0].name!r} answered some items only, "
                "cannot be followed at once: record it on the whole bank, or compare in evaluations of their own"
            )
        return drawn[0] if drawn else None

    def outlooks(self) -> list[str]:
        """Return a sentence on each gate's expected result with the budget; the first mentions a default budget."""
        evaluation = self.interview
        sentences = []
        for condition in filter(lambda condition: condition.by_draws, self.conditions):
            source = self.sources.get(condition.name)
            sentences.append(
                outlook_sentence(
                    condition,
                    evaluation.bank,
                    evaluation.policy,
                    evaluation.budget,
                    evaluation.name,
                    source.baseline if isinstance(source, BaselineFile) else None,
                    must_pass=len(evaluation.must_pass),
                )
            )
        if sentences and evaluation.open_budget and evaluation.policy.budget == evaluation.budget:
            sentences[0] += ". No budget is written: this one follows from the gates"
        if claims := self._above_guessing({}):
            floor = number(claims[0].total / len(evaluation.bank))
            sentences.append(
                f"WARNING: {evaluation.name}: guessing scores {floor}, and PASS needs an accuracy above that too: set "
                f"at_least above {floor}"
            )
        return sentences
