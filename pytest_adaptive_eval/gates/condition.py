"""What gates ask for, known before the first question is asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.claims.projection import ABILITY_BOUND, accuracy_at
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import number

__all__ = ["KINDS", "LEVEL_METRICS", "METRICS", "ON_INCONCLUSIVE", "PLANNING_MARGIN", "Condition"]

METRICS = ("accuracy", "ability", "gain", "auc", "last_level")
#: How the name of a part of ability begins, such as ``ability.cross``.
PART = "ability."
#: Those of a climb over the levels of a task.
LEVEL_METRICS = ("auc", "last_level")
#: The conditions, and the name of the number or subject that each takes.
KINDS: Mapping[str, str] = {
    "at_least": "target",
    "not_worse_than": "margin",
    "rank_within": "k",
    "above": "name",
}
ON_INCONCLUSIVE = ("fail", "warn", "pass")
METHODS = ("draws", "likelihood-ratio")
#: Distance from its threshold, in accuracy, at which a gate without a margin of its own states its chances.
PLANNING_MARGIN = 0.10


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement on one metric.

    Parameters
    ----------
    metric : str
        One of `METRICS`, or ``ability.PART`` on a bank that is asked in formats.
    kind : str
        A key of `KINDS`.
    value : float
        Target, margin or k; 0 for ``above``.
    name : str
        The baseline or the reference subject.
    confidence : float
        1 - alpha of each one-sided decision, in [0.5, 1).
    probability : float
        That rank conditions ask for, in (0.5, 1).
    on_inconclusive : {"fail", "warn", "pass"}
    method : {"draws", "likelihood-ratio"}
        How an ability is decided: by the draws, at the accuracy that it
        implies, or by the model's likelihood, see `claims.classification`.

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
        call = f"{self.metric}.{self.kind}({self.value!r})"
        if self.metric not in METRICS and not self.part:
            raise ConfigError(f"metric {self.metric!r} is not known; use {', '.join(METRICS)} or {PART}PART")
        if self.kind not in KINDS:
            raise ConfigError(f"condition {self.kind!r} is not known; use {', '.join(KINDS)}")
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise ConfigError(f"{call}: expected a number")
        if self.kind == "at_least" and self.metric == "accuracy" and not 0 <= self.value <= 1:
            raise ConfigError(f"{call}: an accuracy lies in [0, 1]")
        if self.metric == "gain" and not -1 < self.value < 1:
            raise ConfigError(f"{call}: a gain is a difference of accuracies, in (-1, 1)")
        paired = (self.metric, self.kind) == ("auc", "not_worse_than")
        if self.kind != "at_least" and self.metric != "accuracy" and not paired:
            raise ConfigError(f"{self.metric}.{self.kind}: only accuracy has this condition")
        if paired and self.value <= 0:
            raise ConfigError(f"margin is {self.value!r}, expected a number of levels above 0 such as 0.5")
        if self.kind == "not_worse_than" and not paired and not 0 < self.value < 1:
            raise ConfigError(f"margin is {self.value!r}, expected a share of the bank in (0, 1) such as 0.02")
        if self.kind == "rank_within" and (self.value != int(self.value) or self.value < 1):
            raise ConfigError(f"rank_within({self.value!r}): expected a whole number of at least 1")
        if self.kind in ("not_worse_than", "above") and not self.name:
            raise ConfigError(f"{self.kind}: expected the name of a subject to compare with")
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
            raise ConfigError("the likelihood ratio decides at a confidence above .5")
        if self.method not in METHODS or (
            self.method != "draws" and (self.metric, self.kind) != ("ability", "at_least")
        ):
            raise ConfigError(
                f"method is {self.method!r}, expected 'draws' or, for ability.at_least alone, 'likelihood-ratio'"
            )

    @property
    def label(self) -> str:
        """As the gate's test is called: ``accuracy-at-least-0.6``."""
        words = self.kind.replace("_", "-")
        value = "" if self.kind == "above" else f"-{self.value:g}"
        return f"{self.metric}-{words}{value}" + (f"-{self.name}" if self.name else "")

    @property
    def requirement(self) -> str:
        """As a person would write it: ``>= .60``."""
        if self.kind == "not_worse_than":
            return f">= {_short(-self.value)}"
        if self.kind == "rank_within":
            return f"within the first {int(self.value)}"
        if self.kind == "above":
            return f"above {self.name}"
        return f">= {_short(self.value)}"

    @property
    def quantity(self) -> str:
        """What is measured, as verdicts name it."""
        metric = f"{self.part} ability" if self.part else self.metric.replace("_", " ")
        return f"{metric} less that of {self.name}" if self.kind == "not_worse_than" else metric

    @property
    def part(self) -> str:
        """The part of ability, such as ``cross``; empty for other metrics."""
        return self.metric.removeprefix(PART) if self.metric.startswith(PART) else ""

    @property
    def by_draws(self) -> bool:
        """Whether bets on the draws decide it."""
        decided = self.kind in ("at_least", "not_worse_than") and self.method == "draws"
        return decided and not self.by_level and not self.part

    @property
    def by_level(self) -> bool:
        """Whether a climb decides it, level by level."""
        return self.metric in LEVEL_METRICS

    @property
    def by_rank(self) -> bool:
        """Whether it asks for a probability of ranks."""
        return self.kind in ("rank_within", "above")

    @property
    def whole(self) -> bool:
        """Whether no interview stops for it, so that the whole budget is asked."""
        return self.by_rank or bool(self.part)

    def denials(self, bank: ItemBank) -> int:
        """Claims whose denial is corrected for all those of the run."""
        if self.by_rank:
            return 0
        return len(self._gains(bank)) if self.metric == "gain" else 1

    def check(self, bank: ItemBank, *, climbed: bool = False) -> None:
        """Refuse a bank on which the condition means nothing.

        Parameters
        ----------
        bank : ItemBank
        climbed : bool
            Whether the levels of a task are climbed.

        Raises
        ------
        ConfigError
            No ability scale, no levels, or no such reference subject.
        """
        if self.by_level and not climbed:
            raise ConfigError(
                f"{self.metric} is of a task that is climbed: write task= and no policy, or gate on accuracy"
            )
        if self.part and self.part not in bank.parts:
            known = ", ".join(bank.parts) or "none: set formats, on a bank that was calibrated with answers in formats"
            raise ConfigError(f"the bank {bank.name!r} has no part of ability {self.part!r}; it has {known}")
        if self.metric == "gain":
            self._gains(bank)
        if self.metric == "ability" and bank.parts:
            parts = ", ".join(f"{PART}{part}" for part in bank.parts)
            raise ConfigError(f"the bank {bank.name!r} is asked in formats, and has abilities in parts: use {parts}")
        if self.metric == "ability" and not bank.calibrated:
            raise ConfigError(f"the bank {bank.name!r} has no ability scale: gate on accuracy or calibrate it")
        if self.by_rank and not bank.accuracies:
            raise ConfigError(
                f"the bank {bank.name!r} knows no reference subjects to rank among: calibrate it again, from responses "
                "of several subjects"
            )
        if self.kind == "rank_within" and self.value > len(bank.accuracies):
            raise ConfigError(
                f"rank_within({int(self.value)}) holds for every model: the bank {bank.name!r} knows "
                f"{len(bank.accuracies)} reference subjects, so ask for a rank of at most that"
            )
        if self.metric == "ability" and abs(self.value) > ABILITY_BOUND:
            raise ConfigError(
                f"ability.at_least({self.value:g}): the answers to a bank tell abilities from -{ABILITY_BOUND:g} to "
                f"{ABILITY_BOUND:g} logits apart, and none beyond"
            )
        if self.kind == "above" and self.name not in bank.subjects:
            raise ConfigError(
                f"the bank {bank.name!r} has no reference subject {self.name!r}; known are {', '.join(bank.subjects)}"
            )

    def target(self, bank: ItemBank) -> float:
        """Accuracy that ``at_least`` asks for."""
        return accuracy_at(bank, self.value) if self.metric == "ability" else self.value

    def claims(self, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """What the draws must show, all of it; not for ranks."""
        if self.metric == "gain":
            return self._gains(bank)
        if self.kind == "not_worse_than":
            return (PairedClaim.of(baselines[self.name], self.value, self.confidence),)
        return (Claim(self.target(bank) * len(bank), self.confidence),)

    def _gains(self, bank: ItemBank) -> tuple[Claim, ...]:
        """The claims of a gain, imported for the few gates that ask for one."""
        from pytest_adaptive_eval.claims.gain import gap_claims

        return gap_claims(bank, self.value, self.confidence)

    def to_json(self) -> dict[str, Any]:
        """For the record; fields at their default are left out."""
        kept = {f.name for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: value for name, value in asdict(self).items() if name in kept}


def _short(value: float) -> str:
    return number(value, 2) if round(value, 2) == value else number(value)
