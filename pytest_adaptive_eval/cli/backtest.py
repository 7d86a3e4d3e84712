"""``adaptive-eval backtest``: which policy and which budget."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.formats import format_backtest_command
from pytest_adaptive_eval.cli.options import (
    PASSED,
    RECIPE,
    budgets_of,
    names_of,
    put,
    read,
    recipe_of,
    refuse,
    screen,
    width,
    with_dimensions,
    writable,
)
from pytest_adaptive_eval.cli.processes import merged_parts
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.inputs import open_text

if TYPE_CHECKING:
    from pytest_adaptive_eval.calibration.backtest import Backtest, Split
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses

__all__ = ["BUDGETS", "CONFIDENCE", "POLICIES", "SPLITS", "backtest_command"]

#: Unless told otherwise, of subjects x items.
POLICIES = "estimate,random,maximum-information"
BUDGETS = "1%,2%,5%"
SPLITS = 20
CONFIDENCE = 0.975


def _sizes(path: Path, responses: Responses) -> list[float]:
    """Parameters of each subject from a CSV with models, params and unit; NaN where unknown."""
    import csv
    import math

    units = {"B": 1e9, "M": 1e6, "K": 1e3, "": 1.0}
    sizes: dict[str, float] = {}
    line = 1
    try:
        with open_text(path) as file:
            for row in csv.DictReader(file):
                line += 1
                value = (row["params"] or "").strip()
                unit = (row.get("unit") or "").strip().upper()
                sizes[row["models"]] = float(value) * units[unit] if value else math.nan
    except (KeyError, ValueError, TypeError, csv.Error):
        raise ResponsesError(
            f"--stratify {path}, line {line}: expected the columns models, params (a number) and unit (B, M, K)"
        ) from None
    subject_sizes = [sizes.get(subject, math.nan) for subject in responses.subjects]
    if all(map(math.isnan, subject_sizes)):
        raise ResponsesError(f"--stratify {path}: no subject, such as {responses.subjects[0]!r}, has a size there")
    return subject_sizes


def _of_bank(options: argparse.Namespace) -> tuple[ItemBank, Responses]:
    """The bank, and responses to its items by subjects that it has not seen."""
    import numpy as np

    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.items.responses import Responses

    if options.responses is None:
        raise ConfigError(f"{options.source} is a bank: give --responses with the answers of subjects to interview")
    refuse(
        options,
        ("test", "stratify", "splits"),
        "is for splits of responses, and with a bank all other subjects are interviewed",
    )
    refuse(options, RECIPE, f"is for banks that are calibrated here, and {options.source} has its parameters")
    bank = read_bank(options.source)
    responses = read(options, options.responses)
    columns = {name: i for i, name in enumerate(responses.items)}
    ids = tuple(bank.ids)
    if lacking := [name for name in ids if name not in columns]:
        raise ResponsesError(
            f"{options.responses}: no responses to {len(lacking)} of the bank's {len(ids)} items, the first "
            f"{lacking[0]!r}"
        )
    scores = responses.scores[:, [columns[name] for name in ids]]
    calibration_subjects = set(bank.subjects)
    rows = [
        s
        for s, name in enumerate(responses.subjects)
        if name not in calibration_subjects and not np.isnan(scores[s]).all()
    ]
    if len(rows) < 2:
        raise ResponsesError(f"{options.responses}: fewer than two subjects that the bank was not calibrated on")
    if len(rows) < len(responses.subjects):
        screen.note(f"{len(rows)} of {len(responses.subjects)} subjects are interviewed: the bank has not seen them")
    selected = responses.of(rows)
    return replace(bank, items=(), ids=ids), Responses(
        selected.subjects, ids, scores[rows], selected.families, selected.source
    )


def _categories(options: argparse.Namespace, bank: ItemBank | None, ids: Sequence[str]) -> list[str]:
    """The category of each item, empty where it has none; nothing where no item has one."""
    from pytest_adaptive_eval.banks.reader import read_bank

    if options.items is None:
        categories = list(bank.categories) if bank is not None else []
    else:
        items: Sequence[Item] = read_bank(options.items).items
        by_id = {item.id: item.category[0] if item.category else "" for item in items}
        if not any(name in by_id for name in ids):
            raise ConfigError(f"--items {options.items}: no text for any item, such as {ids[0]!r}")
        categories = [by_id.get(name, "") for name in ids]
    return categories if any(categories) else []


def _chosen(options: argparse.Namespace, bank: ItemBank | None, categories: Sequence[str]) -> list[str]:
    """The policies to compare; of ``all`` those that can be."""
    from pytest_adaptive_eval.calibration.backtest import CONTENDERS

    missing = {name: contender.missing_requirement(bank, categories) for name, contender in CONTENDERS.items()}
    if options.policy == "all":
        names = [name for name, contender in CONTENDERS.items() if not contender.variant]
        for name in names:
            if missing[name]:
                screen.note(f"left out: {name}: {missing[name]}")
        return [name for name in names if not missing[name]]
    names = names_of(options, "policy")
    for name in names:
        if missing[name]:
            raise ConfigError(f"--policy {name}: {missing[name]}")
    return names


def backtest_command(options: argparse.Namespace) -> int:
    """Interview subjects that are held out, print the tables; returns the exit code."""
    import numpy as np

    from pytest_adaptive_eval.banks.reader import is_bank
    from pytest_adaptive_eval.banks.responses import in_formats
    from pytest_adaptive_eval.calibration.backtest import CONTENDERS, Split, conformal_possible, splits
    from pytest_adaptive_eval.calibration.build import matched
    from pytest_adaptive_eval.calibration.replay import grouped
    from pytest_adaptive_eval.reports.calibration import backtest_lines, backtest_svg
    from pytest_adaptive_eval.text import counted

    if in_formats(options.source):
        return format_backtest_command(options)
    refuse(options, ("low-quality", "repeats"), f"goes with responses in formats, and {options.source} holds none")
    options.policy, options.budget = options.policy or POLICIES, options.budget or BUDGETS
    if options.confidence is None:
        options.confidence = CONFIDENCE
    if options.policy != "all" and (unknown := set(names_of(options, "policy")) - set(CONTENDERS)):
        raise ConfigError(f"--policy {min(unknown)}: known are {', '.join(CONTENDERS)}, and all")
    if not 0.5 < options.confidence < 1:
        raise ConfigError(f"--confidence {options.confidence}: expected a number above 0.5 and below 1")
    if options.plot is not None and options.plot.suffix != ".svg":
        raise ConfigError(f"--plot {options.plot}: the picture is an SVG; name a file that ends with .svg")
    for flag in ("json", "plot"):
        if (path := getattr(options, flag)) is not None:
            read_here = (options.source, options.responses, options.items, options.stratify, options.families)
            writable(f"--{flag}", path, read_here)
    recipe = recipe_of(options)
    bank = None
    if is_bank(options.source):
        bank, responses = _of_bank(options)
        everybody = np.arange(len(responses.subjects))
        work = [Split(everybody[:0], everybody)]
        screen.note("every policy is on the bank's own parameters")
    else:
        if options.responses is not None:
            raise ConfigError(f"--responses goes with a bank, and {options.source} is none")
        matched_responses = matched(read(options, options.source), None, screen.note)
        responses = grouped(matched_responses)
        if merged := len(set(matched_responses.families)) - len(set(responses.families)):
            screen.note(f"near-duplicates: {counted(merged, 'subject')} on the same side as another")
        test = options.test if options.test is not None else max(2, round(len(responses.subjects) / 5))
        strata = None if options.stratify is None else _sizes(options.stratify, responses)
        work = list(splits(responses, options.splits or SPLITS, test=test, seed=options.seed, strata=strata))
        if options.intervals and not conformal_possible(responses.of(work[0].train), options.confidence):
            screen.note(f"left out: conformal intervals, for which {len(work[0].train)} subjects are too few")
    if responses.observed < 1:
        screen.note(
            f"{100 * responses.observed:.3g} % of the scores are there: what is taken for a subject's accuracy over "
            "all items is that over the items it answered"
        )
    budgets = budgets_of(options, len(responses.items))
    categories = _categories(options, bank, responses.items)
    names = _chosen(options, bank, categories)
    settings = {
        "contenders": names,
        "budgets": budgets,
        "recipe": recipe if bank is not None else with_dimensions(options, recipe, responses),
        "seed": options.seed,
        "confidence": options.confidence,
        "intervals": options.intervals,
        "bank": bank,
        "categories": categories,
    }
    result = merged_parts(_one_split, (responses, settings), list(enumerate(work)), options.jobs, "split").to_json()
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    if options.plot is not None:
        options.plot.write_text(backtest_svg(result), encoding="utf-8")
    put("\n".join(backtest_lines(result, width())) + "\n")
    return PASSED


def _one_split(shared: tuple[Responses, dict[str, Any]], numbered: tuple[int, Split]) -> Backtest:
    from pytest_adaptive_eval.calibration.backtest import CONTENDERS, backtest

    responses, settings = shared
    number, split = numbered
    split_settings = {**settings, "seed": 1000 * settings["seed"] + number}
    contenders = [CONTENDERS[name] for name in split_settings.pop("contenders")]
    return backtest(responses, split, contenders, split_settings.pop("budgets"), **split_settings)
