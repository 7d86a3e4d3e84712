"""Policies: selector, budget and stopping rule of an interview, and the named ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_adaptive_eval.cat.assisted import Assistance
from pytest_adaptive_eval.cat.selection import LevelSelector, Selector, StatefulSelector
from pytest_adaptive_eval.cat.selectors import SELECTORS, Cluster, Form, Random, Spread
from pytest_adaptive_eval.cat.stopping import AnyOf, Budget, Decision, StandardError, StoppingRule, resolve_budget
from pytest_adaptive_eval.checks import check_count, check_faults
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import GATE_FLOOR
from pytest_adaptive_eval.irt.estimation import ESTIMATORS, MAP, Estimator, PseudoItems
from pytest_adaptive_eval.items.bank import ItemBank

STOPS = ("budget", "decision", "level")  #: Values of `Policy.stop`.
MIXED = 0.5  #: Share of uniform draws in interviews that choose their items, where a gate is decided by the draws.


@dataclass(frozen=True, slots=True)
class Policy:
    """Selector, budget and stopping rule of an interview.

    Args:
        floor: Share of uniform draws, in [0, 1].
        budget: A count or a share of the bank such as ``"15%"``.
        standard_error: Stop earlier when every dimension's standard error, in logits, is at most this.
        batch: Items drawn and administered together.
        stop: ``decision`` ends the interview when every gate is decided, by anytime-valid tests; ``budget`` spends it
            all, for an interval that is narrower because it is computed once; ``level`` administers a bank of levels
            until the selector stops, see `selection.LevelSelector`.
        even_budget: Whether ``stop = "budget"`` draws uniformly, see `drawing`.
        assisted: Whether the bank's predictor estimates the accuracy, and its design, if the selector is not `Form`,
            says how items are drawn. A bank without a predictor, and an interview that stops at a standard error,
            ignore this.
    """

    selector: Selector = SELECTORS["spread"]
    floor: float = 0.5
    budget: int | str = "15%"
    standard_error: float | None = None
    batch: int = 1
    estimator: Estimator = field(default_factory=MAP)
    stop: Literal["budget", "decision", "level"] = "budget"
    assisted: bool = False
    even_budget: bool = False

    def __post_init__(self) -> None:
        check_faults(self._faults())
        check_count("batch", self.batch)
        if self.standard_error is not None:
            StandardError(self.standard_error)

    @property
    def design_based(self) -> str:
        """Reason why no design-based interval is valid; empty if one is."""
        if self.standard_error is not None and self.stop != "decision":
            return (
                "the interview may stop at a standard error, which depends on the answers, and its interval is "
                "valid only at a fixed number of items: remove it, or stop at a decision"
            )
        if self.stop == "level":
            return (
                "a ladder administers items level by level, and stops by their answers: gate on auc or last_level, "
                "or draw from the task with the policy 'decide'"
            )
        if isinstance(self.selector, Random):
            return ""
        if isinstance(self.selector, Form) and self.floor < GATE_FLOOR:
            return (
                "the items of a form are chosen and not drawn, so its error rate is unknown: use the policy "
                f"'{FIXED_FORM}', which asks all checkpoints the same items, drawn uniformly, or 'decide'"
            )
        if self.floor < GATE_FLOOR:
            return (
                f"the selector {self.selector.name!r} gives items no certain propensity: floor is {self.floor:g}, "
                f"expected at least {GATE_FLOOR}; raise it or use the policy 'decide'"
            )
        return ""

    @property
    def drawing(self) -> Policy:
        """Policy by which the items are drawn, uniformly if a budget is spent by `even_budget`.

        Draws by predictions make few draws vary more if the bank is wrong, and no less by much if it is right: the
        predictions are control variates of uniform draws too, see `inference.tuning`.
        """
        if not (self.even_budget and self.stop == "budget"):
            return self
        return replace(self, selector=SELECTORS["random"], floor=0.0)

    @property
    def by_predictions(self) -> Policy:
        """Policy whose draws lean to items with an unsure prediction, on a bank without parameters."""
        return replace(self, selector=Spread(needs_calibration=False), floor=MIXED)

    def feeding_gates(self) -> Policy:
        """Return the policy with uniform draws mixed in, if its selector gives items no certain chance.

        Forms and ladders stay as they are.
        """
        if isinstance(self.selector, Random | Form) or self.floor >= GATE_FLOOR or self.stop == "level":
            return self
        return replace(self, floor=MIXED, assisted=False)

    @property
    def draws_ahead(self) -> bool:
        """Whether the first draws of a batch, and those before a budget, are the same for longer ones."""
        bound = isinstance(self.selector, StatefulSelector) or getattr(self.selector, "uses_budget", False)
        return not bound and (self.batch == 1 or self.selector.mode == "proportional")

    @property
    def levelled(self) -> LevelSelector | None:
        """Selector of levels, if the interview goes level by level."""
        selector = self.selector
        if self.stop == "level" and isinstance(selector, LevelSelector):
            return selector
        return None

    def _faults(self) -> Iterator[str]:
        """Yield settings that are out of range, or exclude each other."""
        if self.stop not in STOPS:
            yield f"stop is {self.stop!r}, expected 'decision', 'budget' or a standard error"
        if self.stop == "level" and self.levelled is None:
            yield f"stop is 'level', and the selector {self.selector.name!r} has no levels; use a ladder policy"
        if not 0.0 <= self.floor <= 1.0:
            yield f"floor is {self.floor!r}, expected a share of uniform draws in [0, 1]"

    def budget_on(self, bank: ItemBank) -> int:
        """Return the number of administrations on a bank, or raise a ConfigError if the policy does not fit it."""
        check_faults(self._faults_on(bank))
        return resolve_budget(self.budget, len(bank))

    def _faults_on(self, bank: ItemBank) -> Iterator[str]:
        """Yield what the policy needs and a bank lacks."""
        if self.selector.needs_calibration and not bank.calibrated:
            yield (
                f"selector {self.selector.name!r} needs a calibrated bank, and {bank.name!r} has no parameters: use "
                "selector 'random', or calibrate the bank"
            )
        if isinstance(self.selector, Form) and bank.predictor is None:
            yield (
                f"the policy 'form' needs a form, and the bank {bank.name!r} has none: calibrate it from responses of "
                "five families of subjects or more; parts of a bank and banks in formats have none either"
            )
        by_bisection = isinstance(self.estimator, PseudoItems)
        if by_bisection and bank.calibrated and (bank.dimensions > 1 or bank.asymptote is not None):
            yield (
                f"the estimator {self.estimator.name!r} is for one ability without guessing, and the bank "
                f"{bank.name!r} has more parameters: use the policy 'estimate'"
            )
        if self.standard_error is not None and not bank.calibrated:
            yield f"a standard error needs an ability, and the bank {bank.name!r} has no parameters; calibrate it"

    def key(self, bank: ItemBank) -> str:
        """Return a text of all settings that determine items and stop on a bank, the key of conformal tables."""
        settings = {**self.to_json(), "budget": self.budget_on(bank), "stop": None}  # replays have no gates
        named = isinstance(self.selector, StatefulSelector) or SELECTORS.get(self.selector.name) == self.selector
        if self.assisted_by(bank):
            settings["assisted"] = True
        if not named:  # the name does not determine selectors of plugins, or with other constants
            settings["selector"] = repr(self.selector)
        return ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)

    def assistance(self, bank: ItemBank) -> Assistance | None:
        """Return how the bank's predictor assists interviews by this policy, or None."""
        if not self.assisted or bank.predictor is None or self.standard_error is not None:
            return None
        count = self.budget_on(bank)
        design = bank.predictor.design("form" if isinstance(self.selector, Form) else "estimate", count)
        if design is None:
            return None
        return Assistance(bank, design, self.estimator, count)

    def assisted_by(self, bank: ItemBank) -> dict[str, str]:
        """Return the hash of the predictor that determines draws or estimates, as settings of a record; or nothing."""
        if bank.predictor is None or (self.assistance(bank) is None and not isinstance(self.selector, Cluster | Form)):
            return {}
        return {"predictor": bank.predictor.hash}

    def rule(self, count: int, claims: tuple[Claim, ...] = (), family: int = 0) -> StoppingRule:
        """Return the stopping rule for `count` administrations, see `budget_on`, and the gates of a `Session`."""
        rules: list[StoppingRule] = [Budget(count)]
        if self.standard_error is not None:
            rules.insert(0, StandardError(self.standard_error))
        if self.stop == "decision" and claims:
            rules.insert(0, Decision(claims, family))
        if (selector := self.levelled) is not None:
            rules.insert(0, selector.stopping_rule(count))
        if len(rules) == 1:
            return rules[0]
        return AnyOf(tuple(rules))

    def to_json(self) -> dict[str, Any]:
        """Return all settings that determine the items."""
        return {
            "selector": self.selector.name,
            "floor": self.floor,
            "budget": self.budget,
            "standard_error": self.standard_error,
            "batch": self.batch,
            "estimator": self.estimator.name,
            "stop": self.stop,
            **({"settings": dict(self.selector.to_json())} if isinstance(self.selector, StatefulSelector) else {}),
        }

    def identity(self) -> dict[str, Any]:
        """Return the settings that name an interview: `to_json` without settings that follow from its bank."""
        data = self.to_json()
        derived = getattr(self.selector, "derived", ())
        if derived:
            data["settings"] = {name: value for name, value in data["settings"].items() if name not in derived}
        return data


FIXED_FORM = "fixed-form"  #: Name of the policy with the same items for every checkpoint.
FORM = "form"  #: Name of the policy with the bank's own form.

#: Named policies for a bank: ``estimate`` ranks and estimates, one item at a time.  ``decide`` feeds gates; its batches
#: save seven of eight calls of a model, at little cost, since answers affect its random draws less.  ``fixed-form``
#: draws uniformly, once for all checkpoints.
#: ``form`` asks every checkpoint the items that the bank's predictor has chosen.
POLICIES: dict[str, Policy] = {
    "estimate": Policy(selector=SELECTORS["variance"], floor=0.0, estimator=ESTIMATORS["map-wide"](), assisted=True),
    FORM: Policy(selector=Form(), floor=0.0, estimator=ESTIMATORS["map-wide"](), batch=8, assisted=True),
    "decide": Policy(budget="20%", batch=8, stop="decision", even_budget=True),
    FIXED_FORM: Policy(selector=SELECTORS["random"], floor=0.0, budget="20%", batch=8),
}

AUTOJUDGER_PAPER = "autojudger-paper"  #: Name of the policy of AutoJudger's first version (arXiv 2505.21389).
A2_JUDGER = "a2-judger"  #: Name of the policy of its version at ACL 2026, which estimates abilities by category.
INTERVIEWING = (AUTOJUDGER_PAPER, A2_JUDGER)  #: Policies whose selector is an interviewer.
#: Policies of papers, with the papers' estimators. AutoJudger (arXiv 2505.21389): likelihood by bisection on [-30, 30]
#: (appendix C); its selector is made with the interviewer. Its IRT baseline: nearest difficulty, with a prior of five
#: answers at difficulty 0, of which 2.5 are right (appendix D.1). A2-Judger (2026.acl-long.685): the estimator is
#: ours, since only its abstract could be read. M3-IRT (equations 10 and 11): the determinant of the
#: cumulative information, and the maximum of the likelihood.
PAPERS: dict[str, Policy] = {
    AUTOJUDGER_PAPER: Policy(floor=0.0, budget="5%", estimator=ESTIMATORS["bisection"]()),
    A2_JUDGER: Policy(floor=0.0, budget="5%", estimator=ESTIMATORS["map-wide"]()),
    "irt-paper": Policy(SELECTORS["nearest-difficulty"], 0.0, "5%", estimator=ESTIMATORS["pseudo-items"]()),
    "m3irt-paper": Policy(SELECTORS["maximum-information"], 0.0, "5%", estimator=ESTIMATORS["mle"]()),
}
