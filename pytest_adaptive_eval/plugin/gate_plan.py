"""Conditions that the gates of a run set on one interview, and the baselines that they compare with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.evaluation import Evaluation
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import outlook_sentence
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.items.item import unanswered_sentence
from pytest_adaptive_eval.plugin.state import EvaluationNode, RunState
from pytest_adaptive_eval.records.baseline import BaselineFile


@dataclass
class GatePlan:
    """Conditions of gates on one interview, as far as their source shows them.

    Args:
        evaluation: The interview's evaluation.
        unread_gates: Names of the gates whose conditions could not be read.
        sources: Baselines by the name that gates use: an interview of this run, or a file.
        missing: Sentences on baselines that do not exist yet, by name.
    """

    state: RunState
    evaluation: Evaluation
    conditions: list[Condition] = field(default_factory=list)
    unread_gates: list[str] = field(default_factory=list)
    sources: dict[str, EvaluationNode | BaselineFile] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    #: Baselines with scores, once `baselines` has read them.
    loaded: dict[str, BaselineFile] = field(default_factory=dict)

    @property
    def judged(self) -> bool:
        """Whether a gate judges the interview, whether its condition could be read or not."""
        return bool(self.conditions or self.unread_gates)

    def set_budget(self) -> None:
        """Set the budget by what the gates need, if nobody has written one."""
        known = {name: source.baseline for name, source in self.sources.items() if isinstance(source, BaselineFile)}
        self.evaluation = self.evaluation.with_default_budget(self.conditions, known)

    def baselines(self) -> dict[str, BaselineFile]:
        """Return the baselines by name, including other interviews of this run."""
        if not self.loaded:
            self.loaded = {
                name: source if isinstance(source, BaselineFile) else self._interview_baseline(name, source)
                for name, source in self.sources.items()
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
        twins = result.bank.content_hash != self.evaluation.bank.content_hash
        baseline = Baseline(
            subject.get("name") or name, scores, result.log, climbed=result.climb is not None, twins=twins
        )
        assert isinstance(node.evaluation, Evaluation)
        unanswered = node.evaluation.unanswered if unanswered_sentence(result.statuses) else ""
        # no prompt hash: two tests of one run may differ, and the reader sees both
        where, decoding = f"evaluation {name!r}", subject.get("decoding", "")
        checkpoint = subject.get("checkpoint", "")
        return BaselineFile(baseline, where, decoding, unanswered=unanswered, checkpoint=checkpoint)

    def result_arguments(self) -> dict[str, Any]:
        """Return keyword arguments of `SessionResult` that come from the gates."""
        return {
            "planned": tuple(self.conditions),
            "family": self.state.family,
            "baselines": {name: file.baseline for name, file in self.baselines().items()},
            "absent": self.missing,
        }

    def session_arguments(self) -> dict[str, Any]:
        """Return keyword arguments of `Session`: claims that may end it early, and the baseline that it follows."""
        bank = self.evaluation.bank
        baselines = {name: file.baseline for name, file in self.baselines().items()}
        claims = [claim for c in self.conditions if c.by_draws for claim in c.claims(bank, baselines)]
        cuts = [cut for c in self.conditions for cut in c.measure.cuts(c, bank)]
        may_stop = not (self.unread_gates or self.missing or any(c.whole for c in self.conditions))
        return {
            "claims": claims if may_stop else (),
            "cuts": cuts if may_stop else (),
            "family": self.state.family,
            "baseline": self._followed_baseline(list(baselines.values())),
            "take_all": self.evaluation.must_pass,
        }

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
        """Return a sentence on each gate's expected result with the budget; the first tells of a budget by default."""
        evaluation = self.evaluation
        told = [self._outlook(condition) for condition in self.conditions if condition.by_draws]
        if told and evaluation.open_budget and evaluation.policy.budget == evaluation.budget:
            told[0] += ". No budget is written: this one follows from the gates"
        return told

    def _outlook(self, condition: Condition) -> str:
        evaluation = self.evaluation
        source = self.sources.get(condition.name)
        baseline = source.baseline if isinstance(source, BaselineFile) else None
        return outlook_sentence(
            condition,
            evaluation.bank,
            evaluation.policy,
            evaluation.budget,
            evaluation.name,
            baseline,
            must_pass=len(evaluation.must_pass),
        )
