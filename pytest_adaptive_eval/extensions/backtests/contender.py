"""Declaration of a contender of backtests: a way to interview and to estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array

#: Makes a policy from the scores (S, n) of the calibration subjects, embeddings (n, E) of the items or None, the budget
#: in items, and a seed.
PolicyMaker = Callable[[Array, Array | None, int, int], Policy]
Need = Literal["categories", "responses", "one dimension", "form"] | None


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to interview and to estimate.

    Args:
        name: Value of ``--policy``.
        model: Item response model of the bank, ``bank`` for that of ``--model``, or ``none``.
        policy: A maker makes one for every split and budget.
        variant: Whether it is another contender with one setting changed, or takes much longer; ``all`` leaves it out.
    """

    name: str
    model: str
    policy: Policy | PolicyMaker
    estimate: Literal["projection", "mean", "ability"]
    summary: str
    needs: Need = None
    variant: bool = False

    def missing_requirement(self, bank: ItemBank | None, categories: Sequence[str]) -> str:
        """Return the reason why the contender cannot take part, or an empty text.

        Args:
            bank: Bank that is backtested in place of one calibrated on each split.
        """
        if self.needs == "categories" and not categories:
            return "the items have no categories; give --items with texts that have some"
        if self.needs == "responses" and bank is not None:
            return "it is made of the calibration subjects' responses, which a bank does not hold"
        if self.needs == "form" and bank is not None and bank.predictor is None:
            return "the bank has no form; calibrate it from responses of five families of subjects or more"
        if self.needs == "one dimension" and bank is not None and bank.dimensions > 1:
            return f"the bank has {bank.dimensions} dimensions, and it needs one"
        return ""
