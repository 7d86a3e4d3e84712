"""Backtests on responses in formats."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.formats import read_formats
from pytest_adaptive_eval.cli.options import RECIPE, budgets_of, names_of, refuse
from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.cli.settings import FitTable, settings_of
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.processes import check_results, run_backtest

if TYPE_CHECKING:
    from pytest_adaptive_eval.extensions.backtests.format_backtest import FormatBacktest

#: Default budgets of a backtest in formats.
FORMAT_BUDGETS = "5%,10%,30%,50%"


def backtest_in_formats(options: argparse.Namespace, repeats: int) -> int:
    """Leave each subject out, interview it in formats, print the tables; returns the exit code.

    `repeats` is the number of interviews of each subject by policies that draw.
    """
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.extensions.backtests.format_backtest import FORMAT_CONTENDERS
    from pytest_adaptive_eval.extensions.backtests.format_lines import format_backtest_lines
    from pytest_adaptive_eval.reports.calibration import format_backtest_svg

    others = ("encoder", "interviewer", "responses", "test", "stratify", "orientation", "format", "metric", "intervals")
    fits = (name for name in RECIPE if name != "limit")
    refuse(options, (*others, "confidence", *fits), f"is not for responses in formats, which {options.source} holds")
    options.budget = options.budget or FORMAT_BUDGETS
    names = list(FORMAT_CONTENDERS) if options.policy in (None, "all") else names_of(options, "policy")
    if unknown := [name for name in names if name not in FORMAT_CONTENDERS]:
        raise ConfigError(
            f"--policy {unknown[0]}: with responses in formats known are {', '.join(FORMAT_CONTENDERS)}, and all"
        )
    given = settings_of(options, FitTable)
    families = Path(given.families) if given.families else None
    check_results(options, [options.source, options.items, families, *options.low_quality])
    items = None if options.items is None else list(read_bank(options.items).items)
    responses, low = read_formats([options.source], options.low_quality, items, given.filter, families)
    responses = replace(responses, families=grouped(responses.whole).families)
    if (count := len(set(responses.families))) < len(responses.subjects):
        screen.note(
            f"{len(responses.subjects)} subjects of {count} families: a family is left out of the fits together"
        )
    budgets = budgets_of(options, responses.scores[0].size)
    targets = list(range(len(responses.subjects)))[: options.splits]
    shared = {
        "responses": responses,
        "low": low,
        "contenders": names,
        "budgets": budgets,
        "repeats": repeats,
        "seed": options.seed,
        "limit": given.limit,
    }

    return run_backtest(
        _one_target, shared, targets, options, "subject", draw=format_backtest_svg, lines=format_backtest_lines
    )


def _one_target(shared: dict[str, Any], target: int) -> FormatBacktest:
    from pytest_adaptive_eval.extensions.backtests.format_backtest import format_backtest

    return format_backtest(**shared, targets=[target])
