"""Difficulties and abilities of an interview, by the bank's calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_adaptive_eval.cat.selection import View
from pytest_adaptive_eval.interviewer.retrieval import proximity
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array

Difficulty = Literal["irt", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Relation of the items to the abilities of S subjects.

    Args:
        ability: Shape (S,). Abilities on the scale of the difficulties, in logits; None for several dimensions.
        probability: Shape (S, n).
        proximity: Shape (S, n). See `retrieval.proximity`, in [0, 1].
    """

    ability: Array | None
    probability: Array
    proximity: Array


def why_unscaled(kind: Difficulty, bank: ItemBank) -> str:
    """Return the reason why the difficulties of a bank are not used, or an empty text."""
    if kind == "none":
        return "difficulties are not used"
    if bank.calibrated:
        return ""
    return "the bank is not calibrated"


def relate(view: View, deviation: Array | None = None) -> Sight:
    """Return the relation of the items of a calibrated bank to the current abilities.

    Args:
        deviation: Shape (S, n). Of the ability in each item's dimension from the whole one, on a bank of one ability.
    """
    bank = view.bank
    intercept = bank.intercept
    if deviation is not None:
        intercept = intercept + bank.discrimination[:, 0] * deviation
    p = irt.probability(view.theta, bank.discrimination, intercept, bank.asymptote)
    near = proximity(bank, irt.logits(view.theta, bank.discrimination, intercept))
    return Sight(view.theta[:, 0] if bank.dimensions == 1 else None, p, near)
