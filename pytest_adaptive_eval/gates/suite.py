"""Suites: k of n gates must pass, with one error rate for the suite.

A suite claims that at least k of its n requirements hold (a partial conjunction, Benjamini and Heller 2008). Each of
its gates is judged at the error rate ``a = alpha / (n - k + 1)``.

PASS: k gates pass. Let only m < k requirements hold. At least k - m of the other n - m gates must then pass, and each
does with a probability of at most a. Their expected number is at most (n - m) a. By Markov's inequality, k - m of them
pass with a probability of at most (n - m) a / (k - m). That is largest for m = k - 1, where it is alpha.

FAIL: n - k + 1 gates fail. If k requirements hold, one of these denials is false. All denials of a run are corrected
together (Holm 1979), so one of them is false with a probability of at most a, and a suite with k < n fails falsely less
often than alpha.

Both hold for any dependence between gates, which may share an evaluation, and at whatever moment each is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import ON_INCONCLUSIVE, Condition
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.text import counted


@dataclass(frozen=True, slots=True)
class Suite:
    """Requirement that at least `at_least` of `size` gates pass.

    Args:
        confidence: 1 - alpha of each verdict on the suite.
        on_inconclusive: Effect of an undecided suite: fail, warn or pass.

    Raises:
        ConfigError: A value is out of range.
    """

    at_least: int
    size: int
    confidence: float = 0.95
    on_inconclusive: str = "fail"

    def __post_init__(self) -> None:
        if self.size < 2 or not 1 <= self.at_least <= self.size:
            raise ConfigError(
                f"a suite requires at_least = {self.at_least} of {counted(self.size, 'gate')}, expected two gates or "
                "more, and at_least between 1 and their number"
            )
        if not 0.5 <= self.confidence < 1:
            raise ConfigError(f"confidence is {self.confidence!r}, expected a number in [0.5, 1) such as 0.95")
        if self.on_inconclusive not in ON_INCONCLUSIVE:
            expected = f"{', '.join(ON_INCONCLUSIVE[:-1])} or {ON_INCONCLUSIVE[-1]}"
            raise ConfigError(f"on_inconclusive is {self.on_inconclusive!r}, expected {expected}")

    @property
    def gate_confidence(self) -> float:
        """Confidence of each gate."""
        return 1.0 - (1.0 - self.confidence) / (self.size - self.at_least + 1)

    def gate(self, condition: Condition) -> Condition:
        """Return a gate's condition at the suite's confidence for it.

        Raises:
            ConfigError: The condition is on ranks of a panel or network, whose probabilities are not error rates.
        """
        if condition.by_rank:
            raise ConfigError(
                f"{condition.kind} has a probability, and a suite an error rate: remove it from the suite, or use "
                "at_least or not_worse_than"
            )
        return replace(condition, confidence=self.gate_confidence)

    def judge(self, verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
        """Return the verdict on the suite, with its gates' verdicts as notes.

        Args:
            verdicts: The evaluation's name and the verdict of each gate. Several gates may share an evaluation.
        """
        outcomes = [verdict.outcome for _, verdict in verdicts]
        passed = outcomes.count(Outcome.PASS)
        failed = outcomes.count(Outcome.FAIL)
        outcome = Outcome.ERROR if Outcome.ERROR in outcomes else Outcome.INCONCLUSIVE
        if passed >= self.at_least:
            outcome = Outcome.PASS
        elif failed > self.size - self.at_least:
            outcome = Outcome.FAIL
        without_baseline = sum(verdict.notice for _, verdict in verdicts)
        if failed:
            rest = f", {failed} failed"
        else:
            rest = ""
        evaluations = dict(verdicts).values()
        units = {verdict.unit for verdict in evaluations}
        condition = {"metric": "suite", "kind": "at_least", "value": self.at_least}
        asked = sum(verdict.asked for verdict in evaluations)
        size = sum(verdict.size for verdict in evaluations)
        worst_first = sorted(verdicts, key=lambda pair: _decided(pair[1]))
        return Verdict(
            outcome,
            "passing gates",
            f">= {self.at_least} of {self.size}",
            None,
            self.confidence,
            asked,
            size,
            tuple(_note(name, verdict) for name, verdict in worst_first),
            self.on_inconclusive,
            stated=f"{passed} of {self.size} gates passed{rest}, {self.at_least} required, "
            f"{100 * self.confidence:.4g} % (each gate {100 * self.gate_confidence:.4g} %)",
            condition=condition | {"confidence": self.confidence, "on_inconclusive": self.on_inconclusive},
            notice=outcome is Outcome.INCONCLUSIVE and passed + without_baseline >= self.at_least,
            unit=units.pop() if len(units) == 1 else "questions",
        )


def _decided(verdict: Verdict) -> bool:
    return verdict.outcome in (Outcome.PASS, Outcome.FAIL)


def _note(name: str, verdict: Verdict) -> str:
    """Return a gate's outcome, with the reason if it is undecided."""
    if _decided(verdict):
        claim = f"{verdict.outcome.value} {verdict.claim}"
    else:
        claim = verdict.sentence
    return f"{name}: {claim}"
