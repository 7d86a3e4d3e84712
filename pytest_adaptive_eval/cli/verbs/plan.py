"""``adaptive-eval plan``: forecasts of the questions that a gate takes."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import PASSED
from pytest_adaptive_eval.cli.screen import say
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.ties import first_largest, tie_ranks

if TYPE_CHECKING:
    from pytest_adaptive_eval.claims.paired import Baseline
    from pytest_adaptive_eval.gates.outlook import Outlook
    from pytest_adaptive_eval.items.bank import ItemBank


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("bank", metavar="BANK", type=Path, help="a bank folder, or a JSONL of items")
    text = "distance of the truth from the threshold, or the margin of a paired gate (%(default)s)"
    add("--margin", metavar="SHARE", type=float, default=0.1, help=text)
    add("--alpha", metavar="A", type=float, default=0.05, help="error rate of each one-sided verdict (%(default)s)")
    add("--power", metavar="P", type=float, default=0.8, help="required probability of a verdict (%(default)s)")
    names = ", ".join(metric_names())
    text = f"metric of the threshold, one of {names} (%(default)s)"
    add("--metric", metavar="NAME", default="accuracy", choices=metric_names(), help=text)
    add("--at-least", metavar="X", type=float, help="threshold; the accuracy of average ability when omitted")
    text = "budget of an evaluation, for its probability of a verdict (the default budget)"
    add("--budget", metavar="N|N%", help=text)
    text = "an earlier run that predicts the answers: a record, a history, or recorded answers"
    add("--predict-from", metavar="FILE", help=text)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.gates.planning import DEFAULT_CHANCE
    from pytest_adaptive_eval.text import number

    for name in ("margin", "alpha", "power"):
        if not 0 < getattr(options, name) < 1:
            raise ConfigError(f"--{name} {getattr(options, name):g}: expected a number in (0, 1), such as 0.1 for 10 %")
    bank = read_bank(options.bank)
    rows = _forecasts(options, bank)
    budget = _budget(options, max(outlook.quantile(DEFAULT_CHANCE) for outlook in rows[0][1]), bank)
    chance = min(outlook.chance(budget) for outlook in rows[0][1])
    say(
        [
            f"questions to a verdict on {bank.name}, {len(bank)} items; truth {number(options.margin)} from the "
            f"threshold, alpha {number(options.alpha)} a side",
            *_table(rows, options.power, len(bank)),
            f"{'a' if options.budget else 'the default'} budget of {budget} questions gives the first a verdict with "
            f"probability {chance:.2f}",
            f"fixed size: of a test that looks once, at the end, with power {number(options.power)}",
            *_errors_without_gate(bank, budget),
        ]
    )
    return PASSED


def _errors_without_gate(bank: ItemBank, budget: int) -> list[str]:
    """Return a line on the errors of policies without gates, if the bank's predictor knows them."""
    from pytest_adaptive_eval.text import number

    if bank.predictor is None:
        return []
    designs = []
    for policy in ("estimate", "form"):
        designs.append(bank.predictor.design(policy, budget))
    measured = []
    for design in designs:
        if design is not None and math.isfinite(design.error):
            measured.append(design)
    if not measured:
        return []
    errors = " and ".join(f"{number(design.error)} by {design.policy}" for design in measured)
    return [
        f"no gate, accuracy alone: wrong by {errors} on average, at {measured[0].count} questions, on held-out subjects"
    ]


def _forecasts(options: argparse.Namespace, bank: ItemBank) -> list[tuple[str, Sequence[Outlook]]]:
    """Return the forecasts of gates on a bank, each with its label."""
    from pytest_adaptive_eval.cat.policy import POLICIES
    from pytest_adaptive_eval.cat.selectors import SELECTORS
    from pytest_adaptive_eval.claims.paired import FLIPS
    from pytest_adaptive_eval.claims.projection import accuracy_at
    from pytest_adaptive_eval.gates.condition import Condition, find_metric
    from pytest_adaptive_eval.gates.planning import outlooks, predicted_outlooks
    from pytest_adaptive_eval.records.earlier import read_earlier
    from pytest_adaptive_eval.text import number

    confidence = 1.0 - options.alpha
    margin = options.margin
    target = options.at_least
    measure = find_metric(options.metric)
    if target is None and not measure.is_share:
        raise ConfigError(f"--metric {options.metric}: expected a threshold: give --at-least")
    if target is None:
        if bank.calibrated:
            target = accuracy_at(bank, 0.0)
        else:
            target = 0.5
    if measure.is_share and not (target - margin > 0 or target + margin < 1):
        raise ConfigError(
            f"--margin {margin}: no accuracy lies so far from the threshold {number(target)}: give a smaller margin, "
            "or another --at-least"
        )
    threshold = Condition(options.metric, "at_least", target, confidence=confidence)
    threshold.check(bank)
    decide = POLICIES["decide"]
    uniform = replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0)
    if bank.calibrated:
        plain = replace(bank, calibrated=False)
    else:
        plain = bank
    label = f"{threshold.quantity} >= {number(target)}"
    rows: list[tuple[str, Sequence[Outlook]]] = []
    if bank.calibrated:
        rows.append((label, outlooks(threshold, bank, decide, margin=margin)))
    rows.append((f"{label}, uniform draws", outlooks(threshold, plain, uniform, margin=margin)))
    if options.predict_from is not None:
        earlier = read_earlier(options.predict_from, [Path.cwd()], bank, bank.name)
        policy = decide if bank.calibrated else uniform.by_predictions
        forecasts = predicted_outlooks(threshold, bank, policy, earlier.on(bank), margin)
        rows.append((f"{label}, {earlier.source.sentence}, {100 * FLIPS:.0f} % of answers differ", forecasts))
    if "not_worse_than" not in measure.kinds or not measure.is_share:  # margins here are of an accuracy
        return rows
    paired = Condition(options.metric, "not_worse_than", margin, "baseline", confidence=confidence)
    policy = decide if bank.calibrated else uniform
    paired_label = f"not worse than a baseline by {number(margin)}, {100 * FLIPS:.0f} % of answers differ"
    rows.append((paired_label, outlooks(paired, bank, policy, _baseline(bank, target))))
    return rows


def _table(rows: Sequence[tuple[str, Sequence[Outlook]]], power: float, size: int) -> list[str]:
    """Return the lines of a table with the least favourable forecast of each gate."""
    from pytest_adaptive_eval.gates.outlook import fixed_size

    table = [("", "expected", "90 % within", f"{100 * power:.0f} % within", "fixed size")]
    for label, forecasts in rows:
        worst = forecasts[int(first_largest([outlook.expected for outlook in forecasts]))]
        sequential = (round(worst.expected), worst.quantile(0.9), worst.quantile(power))
        counts = (*(min(count, size) for count in sequential), fixed_size(worst, power))
        table.append((label, *map(str, counts)))  # type: ignore[arg-type]  # as many as in the head
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table]


def _budget(options: argparse.Namespace, needed: int, bank: ItemBank) -> int:
    """Return the number of items of the budget, by default as many as the first gate needs, see `default_budget`."""
    from pytest_adaptive_eval.cat.policy import POLICIES
    from pytest_adaptive_eval.cat.stopping import resolve_budget

    if options.budget is None:
        return min(max(resolve_budget(POLICIES["decide"].budget, len(bank)), needed), len(bank))
    try:
        return resolve_budget(options.budget, len(bank))
    except ConfigError as error:
        raise ConfigError(f"--{error}") from None


def _baseline(bank: ItemBank, accuracy: float) -> Baseline:
    """Return a baseline of a given accuracy that answers the easier items right."""
    import numpy as np

    from pytest_adaptive_eval.claims.paired import Baseline
    from pytest_adaptive_eval.claims.projection import ability_at

    scores = np.zeros(len(bank))
    theta = np.zeros((1, bank.dimensions))
    if bank.calibrated:
        theta[0, 0] = ability_at(bank, accuracy)
    p = bank.probability(theta)[0]
    scores[tie_ranks(-p).argsort(kind="stable")[: round(accuracy * len(bank))]] = 1.0
    return Baseline("baseline", scores)


REGISTERED = (
    Verb(
        "plan",
        "how many questions a gate will take on a bank",
        "Print the questions that gates take on a bank: expected, for nine verdicts in ten, and for a required power, "
        "and for a test of fixed size. Nothing is asked.",
        _add_arguments,
        _run,
        (
            "plan my.bank --at-least 0.6",
            "plan questions.jsonl --margin 0.05 --power 0.9",
        ),
    ),
)
