"""``adaptive-eval plan``: how many questions a gate will take."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import PASSED, put
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.claims.paired import Baseline
    from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["plan_command"]


def plan_command(options: argparse.Namespace) -> int:
    """Print a table of gates on a bank; returns the exit code."""
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cat.selectors import SELECTORS
    from pytest_adaptive_eval.cat.session import POLICIES
    from pytest_adaptive_eval.claims.paired import FLIPS
    from pytest_adaptive_eval.claims.projection import accuracy_at
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.outlook import fixed_size
    from pytest_adaptive_eval.gates.planning import outlooks
    from pytest_adaptive_eval.text import number

    for name in ("margin", "alpha", "power"):
        if not 0 < getattr(options, name) < 1:
            raise ConfigError(f"--{name} {getattr(options, name)}: expected a number in (0, 1)")
    bank = read_bank(options.bank)
    confidence, margin, size = 1.0 - options.alpha, options.margin, len(bank)
    target = options.at_least
    if target is None:
        target = accuracy_at(bank, 0.0) if bank.calibrated else 0.5
    if not (target - margin > 0 or target + margin < 1):
        raise ConfigError(
            f"--margin {margin}: no accuracy lies so far from the threshold {number(target)}: give a smaller margin, "
            "or another --at-least"
        )
    threshold = Condition("accuracy", "at_least", target, confidence=confidence)
    decide, uniform = POLICIES["decide"], replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0)
    plain = replace(bank, calibrated=False) if bank.calibrated else bank
    rows = []
    if bank.calibrated:
        rows.append((f"accuracy >= {number(target)}", outlooks(threshold, bank, decide, margin=margin)))
    rows.append((f"accuracy >= {number(target)}, uniform draws", outlooks(threshold, plain, uniform, margin=margin)))
    paired = Condition("accuracy", "not_worse_than", margin, "baseline", confidence=confidence)
    baseline = _baseline(bank, target)
    rows.append(
        (
            f"not worse than a baseline by {number(margin)}, {FLIPS:.0%} of answers differ",
            outlooks(paired, bank, decide if bank.calibrated else uniform, baseline),
        )
    )
    away, alpha, power = number(margin), number(options.alpha), f"{options.power:.0%} within"
    table: list[tuple[str, ...]] = [("", "expected", "90% within", power, "fixed size")]
    for label, ahead in rows:
        worst = max(ahead, key=lambda outlook: outlook.expected)
        counts = (round(worst.expected), worst.quantile(0.9), worst.quantile(options.power))
        table.append((label, *map(str, counts), str(fixed_size(worst, options.power))))
    wide = [max(map(len, column)) for column in zip(*table, strict=True)]
    budget, which = _budget(options, decide.budget, size), "a" if options.budget else "the default"
    chance = min(outlook.chance(budget) for outlook in rows[0][1])
    lines = [
        f"questions to a verdict on {bank.name}, {size} items; truth {away} from the threshold, alpha {alpha} a side",
        *("  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]).rstrip() for row in table),
        f"{which} budget of {budget} questions gives the first a verdict with probability {chance:.2f}",
        f"fixed size: of a test that looks once, at the end, with power {options.power:.0%}",
    ]
    put("\n".join(lines) + "\n")
    return PASSED


def _budget(options: argparse.Namespace, default: int | str, items: int) -> int:
    """Questions of the budget given, or of the default."""
    from pytest_adaptive_eval.cat.stopping import resolve_budget

    try:
        return resolve_budget(default if options.budget is None else options.budget, items)
    except ConfigError as error:
        raise ConfigError(f"--{error}") from None


def _baseline(bank: ItemBank, accuracy: float) -> Baseline:
    """A baseline of some accuracy that answers the easier items right."""
    import numpy as np

    from pytest_adaptive_eval.claims.paired import Baseline
    from pytest_adaptive_eval.claims.projection import ability_at

    scores = np.zeros(len(bank))
    theta = np.zeros((1, bank.dimensions))
    if bank.calibrated:
        theta[0, 0] = ability_at(bank, accuracy)
    p = bank.probability(theta)[0]
    scores[np.argsort(-p, kind="stable")[: round(accuracy * len(bank))]] = 1.0
    return Baseline("baseline", scores)
