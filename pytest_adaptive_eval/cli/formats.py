"""Responses in formats: their reading, their items of low quality, and backtests."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import RECIPE, budgets_of, check_writable, names_of, refuse
from pytest_adaptive_eval.cli.processes import run_backtest
from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.cli.settings import FitTable
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pytest_adaptive_eval.calibration.format_backtest import FormatBacktest
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import FormatResponses

    Bools = NDArray[np.bool_]

__all__ = ["FORMAT_BUDGETS", "REPEATS", "backtest_in_formats", "read_formats", "read_in_formats"]

#: Default budgets of a backtest in formats, and interviews of each subject by policies that draw.
FORMAT_BUDGETS = "5%,10%,30%,50%"
REPEATS = 10


def read_in_formats(sources: Sequence[Path], bank: str | None = None, families: Path | None = None) -> FormatResponses:
    """Read responses in formats, for a fit of M2 or M3; `bank` and `families` as in `read_format_responses`."""
    from pytest_adaptive_eval.banks.responses import in_formats, read_format_responses

    try:
        import torch  # noqa: F401
    except ImportError:
        raise ConfigError("fits of M2 and M3 need torch: pip install pytest-adaptive-eval[hf]") from None
    if bank is not None and all(map(in_formats, sources)):
        raise ConfigError(f"--filter {bank}: the bank of recorded runs, and {sources[0]} is a table; leave it out")
    screen.progress(f"reading {sources[0]}")
    return read_format_responses(sources, bank=bank, families=families, note=screen.note)


def read_formats(
    sources: Sequence[Path],
    low_quality: Sequence[Path],
    items: Sequence[Item] | None,
    bank: str | None = None,
    families: Path | None = None,
) -> tuple[FormatResponses, Bools]:
    """Read responses in formats, and mark those of their items that are of low quality.

    Parameters
    ----------
    sources : sequence of Path
    low_quality : sequence of Path
        Responses to items all of which are of low quality.
    items : sequence of Item, optional
        Texts, some of them marked as of low quality.
    bank : str, optional
    families : Path, optional
        See `read_format_responses`.
    """
    import numpy as np

    from pytest_adaptive_eval.banks.responses import read_format_responses
    from pytest_adaptive_eval.items.contamination import LOW_QUALITY

    responses = read_in_formats([*sources, *low_quality], bank, families)
    bad = {item.id for item in items or () if LOW_QUALITY in item.meta}
    for path in low_quality:
        bad |= set(read_format_responses([path], bank=bank).items)
    low = np.array([name in bad for name in responses.items])
    observed = ~np.isnan(responses.scores)
    if not (answered := observed.any(axis=(0, 2))).all():
        screen.note(f"left out: {int((~answered).sum())} items without a response")
        responses, low = responses.at(answered), low[answered]
    return responses, low


def backtest_in_formats(options: argparse.Namespace, given: FitTable, repeats: int) -> int:
    """Leave each subject out, interview it in formats, print the tables; returns the exit code.

    Args:
        given: Settings of the verb.
        repeats: Interviews of each subject by policies that draw.
    """
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.calibration.format_backtest import FORMAT_CONTENDERS
    from pytest_adaptive_eval.reports.calibration import format_backtest_svg
    from pytest_adaptive_eval.reports.formats import format_backtest_lines

    others = ("encoder", "interviewer", "responses", "test", "stratify", "orientation", "format", "metric", "intervals")
    refuse(options, (*others, "confidence", *RECIPE), f"is not for responses in formats, which {options.source} holds")
    options.budget = options.budget or FORMAT_BUDGETS
    names = list(FORMAT_CONTENDERS) if options.policy in (None, "all") else names_of(options, "policy")
    if unknown := [name for name in names if name not in FORMAT_CONTENDERS]:
        raise ConfigError(
            f"--policy {unknown[0]}: with responses in formats known are {', '.join(FORMAT_CONTENDERS)}, and all"
        )
    families = Path(given.families) if given.families else None
    inputs = [options.source, options.items, families, *options.low_quality]
    for flag, path in (("--json", options.json), ("--plot", options.plot)):
        if path is not None:
            check_writable(flag, path, inputs)
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
    }

    return run_backtest(
        _one_target, shared, targets, options, "subject", draw=format_backtest_svg, lines=format_backtest_lines
    )


def _one_target(shared: dict[str, Any], target: int) -> FormatBacktest:
    from pytest_adaptive_eval.calibration.format_backtest import format_backtest

    return format_backtest(**shared, targets=[target])
