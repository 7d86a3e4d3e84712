"""Gate conditions, checked before the first item is administered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.claims.projection import ABILITY_BOUND, accuracy_at
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import number

__all__ = ["KINDS", "LEVEL_METRICS", "METRICS", "ON_INCONCLUSIVE", "PLANNING_MARGIN", "Condition"]

METRICS = ("accuracy", "ability", "gain", "auc", "last_level")
#: Prefix of the metric of one ability component, such as ``ability.cross``.
PART = "ability."
#: Metrics of a ladder over the levels of a task.
LEVEL_METRICS = ("auc", "last_level")
#: Condition kinds, each with the name of its argument.
KINDS: Mapping[str, str] = {
    "at_least": "target",
    "not_worse_than": "margin",
    "rank_within": "k",
    "above": "name",
}
ON_INCONCLUSIVE = ("fail", "warn", "pass")
METHODS = ("draws", "likelihood-ratio")
#: Distance from the threshold, in accuracy, at which a gate without a margin forecasts its verdict.
PLANNING_MARGIN = 0.10


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement on one metric.

    Parameters
    ----------
    metric : str
        One of `METRICS`, or ``ability.PART`` on a bank administered in formats.
    kind : str
        A key of `KINDS`.
    value : float
        Target, margin or k; 0 for ``above``.
    name : str
        The baseline or the reference subject.
    confidence : float
        1 - alpha of each one-sided decision, in [0.5, 1).
    probability : float
        Required probability of a rank condition, in (0.5, 1).
    on_inconclusive : {"fail", "warn", "pass"}
    method : {"draws", "likelihood-ratio"}
        Test of an ability: bets on the draws, at the accuracy that the ability
        implies, or a likelihood ratio, see `claims.classification`.

    Raises
    ------
    ConfigError
        A value is out of range, or the metric has no such condition.
    """

    metric: str
    kind: str
    value: float = 0.0
    name: str = ""
    confidence: float = 0.95
    probability: float = 0.95
    on_inconclusive: str = "fail"
    method: str = "draws"

    def __post_init__(self) -> None:
        self._check_metric_and_kind()
        self._check_range()
        if self.kind in ("not_worse_than", "rank_within", "above"):
            self._check_comparison()
        self._check_decision()

    def _check_metric_and_kind(self) -> None:
        if self.metric not in METRICS and not self.part:
            raise ConfigError(f"metric {self.metric!r} is not known; use {', '.join(METRICS)} or {PART}PART")
        if self.kind not in KINDS:
            raise ConfigError(f"condition {self.kind!r} is not known; use {', '.join(KINDS)}")

    def _check_range(self) -> None:
        """Refuse a value that is not a number, or outside the metric's range."""
        call = f"{self.metric}.{self.kind}({self.value!r})"
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise ConfigError(f"{call}: expected a number")
        if self.kind == "at_least" and self.metric == "accuracy" and not 0 <= self.value <= 1:
            raise ConfigError(f"{call}: an accuracy lies in [0, 1]")
        if self.metric == "gain" and not -1 < self.value < 1:
            raise ConfigError(f"{call}: a gain is a difference of accuracies, in (-1, 1)")

    def _check_comparison(self) -> None:
        """Refuse a metric without comparisons, a wrong margin or rank, and a missing subject."""
        paired_area = (self.metric, self.kind) == ("auc", "not_worse_than")
        if self.metric != "accuracy" and not paired_area:
            raise ConfigError(f"{self.metric}.{self.kind}: only accuracy has this condition")
        if paired_area and self.value <= 0:
            raise ConfigError(f"margin is {self.value!r}, expected a number of levels above 0 such as 0.5")
        if self.kind == "not_worse_than" and not paired_area and not 0 < self.value < 1:
            raise ConfigError(f"margin is {self.value!r}, expected a share of the bank in (0, 1) such as 0.02")
        if self.kind == "rank_within" and (self.value != int(self.value) or self.value < 1):
            raise ConfigError(f"rank_within({self.value!r}): expected a whole number of at least 1")
        if self.kind != "rank_within" and not self.name:
            raise ConfigError(f"{self.kind}: expected the name of a subject to compare with")

    def _check_decision(self) -> None:
        """Refuse settings of the test that are out of range, or a method that the metric lacks."""
        if not isinstance(self.confidence, float) or not 0.5 <= self.confidence < 1:
            raise ConfigError(f"confidence is {self.confidence!r}, expected a number in [0.5, 1) such as 0.95")
        if not isinstance(self.probability, float) or not 0.5 < self.probability < 1:
            raise ConfigError(f"probability is {self.probability!r}, expected a number in (0.5, 1) such as 0.95")
        if self.on_inconclusive not in ON_INCONCLUSIVE:
            raise ConfigError(
                f"on_inconclusive is {self.on_inconclusive!r}, expected {', '.join(ON_INCONCLUSIVE[:-1])} or "
                f"{ON_INCONCLUSIVE[-1]}"
            )
        if self.method == "likelihood-ratio" and self.confidence <= 0.5:
            raise ConfigError(f"confidence is {self.confidence!r}, expected above 0.5 for method 'likelihood-ratio'")
        if self.method not in METHODS or (
            self.method != "draws" and (self.metric, self.kind) != ("ability", "at_least")
        ):
            raise ConfigError(
                f"method is {self.method!r}, expected 'draws' or, for ability.at_least alone, 'likelihood-ratio'"
            )

    @property
    def label(self) -> str:
        """Name of the gate's test, such as ``accuracy-at-least-0.6``."""
        words = self.kind.replace("_", "-")
        value = "" if self.kind == "above" else f"-{self.value:g}"
        return f"{self.metric}-{words}{value}" + (f"-{self.name}" if self.name else "")

    @property
    def requirement(self) -> str:
        """Requirement as shown in verdicts, such as ``>= .60``."""
        if self.kind == "not_worse_than":
            return f">= {_short(-self.value)}"
        if self.kind == "rank_within":
            return f"within the first {int(self.value)}"
        if self.kind == "above":
            return f"above {self.name}"
        return f">= {_short(self.value)}"

    @property
    def quantity(self) -> str:
        """Name of the measured quantity, as shown in verdicts."""
        metric = f"{self.part} ability" if self.part else self.metric.replace("_", " ")
        return f"{metric} less that of {self.name}" if self.kind == "not_worse_than" else metric

    @property
    def part(self) -> str:
        """Ability component, such as ``cross``; empty for other metrics."""
        return self.metric.removeprefix(PART) if self.metric.startswith(PART) else ""

    @property
    def by_draws(self) -> bool:
        """True if bets on the draws decide the condition."""
        is_claim = self.kind in ("at_least", "not_worse_than") and self.method == "draws"
        return is_claim and not self.by_level and not self.part

    @property
    def by_level(self) -> bool:
        """True if a ladder decides the condition, level by level."""
        return self.metric in LEVEL_METRICS

    @property
    def by_rank(self) -> bool:
        """True if the condition requires a probability of ranks."""
        return self.kind in ("rank_within", "above")

    @property
    def whole(self) -> bool:
        """True if the condition needs the whole budget, since no stopping rule serves it."""
        return self.by_rank or bool(self.part)

    def denials(self, bank: ItemBank) -> int:
        """Return the number of claims whose denial is corrected for all claims of the run."""
        if self.by_rank:
            return 0
        return len(self._gains(bank)) if self.metric == "gain" else 1

    def check(self, bank: ItemBank, *, climbed: bool = False) -> None:
        """Refuse a bank that lacks the data of the condition.

        Parameters
        ----------
        bank : ItemBank
        climbed : bool
            True if a ladder of a task is administered.

        Raises
        ------
        ConfigError
            The bank has no ability scale, no levels, or no such reference subject.
        """
        if self.by_level and not climbed:
            raise ConfigError(
                f"{self.metric} is of a task that is climbed: write task= and no policy, or gate on accuracy"
            )
        if self.part and self.part not in bank.parts:
            parts = ", ".join(bank.parts) or "none: set formats, on a bank that was calibrated with answers in formats"
            raise ConfigError(f"the bank {bank.name!r} has no part of ability {self.part!r}; it has {parts}")
        if self.metric == "gain":
            self._gains(bank)
        if self.metric == "ability":
            self._check_ability(bank)
        if self.by_rank:
            self._check_ranks(bank)

    def _check_ability(self, bank: ItemBank) -> None:
        """Refuse a bank without a single ability scale, or a target beyond the scale."""
        if bank.parts:
            parts = ", ".join(f"{PART}{part}" for part in bank.parts)
            raise ConfigError(f"the bank {bank.name!r} is asked in formats, and has abilities in parts: use {parts}")
        if not bank.calibrated:
            raise ConfigError(f"the bank {bank.name!r} has no ability scale: gate on accuracy or calibrate it")
        if abs(self.value) > ABILITY_BOUND:
            raise ConfigError(
                f"ability.at_least({self.value:g}): expected a target that a bank can measure, among abilities from "
                f"-{ABILITY_BOUND:g} to {ABILITY_BOUND:g} logits"
            )

    def _check_ranks(self, bank: ItemBank) -> None:
        """Refuse a bank without the reference subjects that the condition ranks."""
        if not bank.accuracies:
            raise ConfigError(
                f"the bank {bank.name!r} has no reference subjects to rank among: calibrate it again, from responses "
                "of several subjects"
            )
        if self.kind == "rank_within" and self.value > len(bank.accuracies):
            raise ConfigError(
                f"rank_within({int(self.value)}) holds for every model: the bank {bank.name!r} has "
                f"{len(bank.accuracies)} reference subjects, so ask for a rank of at most that"
            )
        if self.kind == "above" and self.name not in bank.subjects:
            raise ConfigError(
                f"the bank {bank.name!r} has no reference subject {self.name!r}; known are {', '.join(bank.subjects)}"
            )

    def target(self, bank: ItemBank) -> float:
        """Return the accuracy that ``at_least`` requires."""
        return accuracy_at(bank, self.value) if self.metric == "ability" else self.value

    def claims(self, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claims that must all hold for a PASS. Rank conditions have none."""
        if self.metric == "gain":
            return self._gains(bank)
        if self.kind == "not_worse_than":
            return (PairedClaim.of(baselines[self.name], self.value, self.confidence),)
        return (Claim(self.target(bank) * len(bank), self.confidence),)

    def _gains(self, bank: ItemBank) -> tuple[Claim, ...]:
        """Return the claims of a gain. Few gates need them, so the import is lazy."""
        from pytest_adaptive_eval.claims.gain import gap_claims

        return gap_claims(bank, self.value, self.confidence)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their default, for the record."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}


def _short(value: float) -> str:
    return number(value, 2) if round(value, 2) == value else number(value)
