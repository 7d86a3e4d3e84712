"""Type I error of each way to stop, with the truth right at the threshold. A new policy or stop adds its row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import pytest

from benchmarks import error_rates
from benchmarks.budget_verdicts import HAIR, parameters, sheets
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.betting import Claim, decide

SEEDS = 2000
MOST = 0.05 + 3 * (0.05 * 0.95 / SEEDS) ** 0.5
CLIMBS = "last_level at_least, climb of 20 a level"  #: Cell of `benchmarks.error_rates` that stops by levels.


@dataclass(frozen=True)
class Row:
    """Interviews of `budget` items of a bank, see `benchmarks.budget_verdicts`, under a policy."""

    bank: str
    model: str
    policy: str
    stop: Literal["budget", "decision"]
    size: int = 100
    budget: int = 40

    def __str__(self) -> str:
        return f"{self.bank}, {self.model}, {self.policy}, {self.stop}"


ROWS = [
    Row("good", "ordinary", "decide", "decision"),
    Row("slopes x4", "at random", "decide", "decision"),
    Row("annotated", "near-perfect", "decide", "decision"),
    Row("none", "easiest", "decide", "decision"),
    Row("good", "easiest", "decide", "budget", 400, 100),
    Row("annotated", "at random", "decide", "budget", 400, 30),
    Row("slopes x4", "ordinary", "decide", "budget", 400, 100),
    Row("slopes x10", "ordinary", "decide", "budget"),
    Row("none", "at random", "decide", "budget"),
    Row("good", "ordinary", "estimate", "budget"),
    Row("slopes x4", "near-perfect", "estimate", "budget"),
    Row("good", "at random", "fixed-form", "budget", 400, 100),
]


def errors(row: Row, side: int, rng: np.random.Generator) -> float:
    """Return the share of false PASS (side 1) or FAIL (-1)."""
    bank, slope, intercept = parameters(row.bank, row.size)
    scores = sheets(row.model, slope, intercept, SEEDS, rng)
    changes: dict[str, Any] = {} if bank.calibrated else {"selector": SELECTORS["random"], "floor": 0.0}
    policy = replace(POLICIES[row.policy].feeding_gates(), budget=row.budget, stop=row.stop, batch=8, **changes)
    claim = Claim(float(scores[0].sum()) + (HAIR if side > 0 else 0.0))
    session = Session(bank, policy, seed=rng.integers(2**62, size=SEEDS).tolist(), subjects=SEEDS, claims=[claim])
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return float((decide(session.logs(), [claim]).outcome[:, 0] == side).mean())


@pytest.mark.slow
@pytest.mark.parametrize("side", [1, -1], ids=["PASS", "FAIL"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_false_verdicts_are_as_rare_as_promised(row, side):
    assert errors(row, side, np.random.default_rng([ROWS.index(row), 1 + side])) <= MOST


@pytest.mark.slow
def test_false_verdicts_of_climbs_are_as_rare_as_promised():
    for _, wrong, trials in error_rates.measure(CLIMBS, SEEDS, 1):
        assert wrong / trials <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("name", error_rates.answer_gates())
def test_false_verdicts_on_values_of_answers_are_as_rare_as_promised(name):
    for _, wrong, trials in error_rates.measure(name, SEEDS, 1):
        assert wrong / trials <= MOST


def test_every_stop_and_every_policy_that_feeds_gates_has_its_row():
    stops = set(get_args(get_type_hints(Policy)["stop"]))
    assert {row.stop for row in ROWS} == stops - {"level"}
    assert CLIMBS in {cell.name for cell in error_rates.cells()}
    feeding = {name for name, policy in POLICIES.items() if not policy.feeding_gates().design_based}
    assert {row.policy for row in ROWS} == feeding
