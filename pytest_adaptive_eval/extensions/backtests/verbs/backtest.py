"""``adaptive-eval backtest``: a comparison of policies and budgets on recorded responses."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import (
    INTERRUPTED,
    PASSED,
    add_fit_arguments,
    add_responses_argument,
    budgets_of,
    check_writable,
    names_of,
    parse_count,
    read,
    recipe_of,
    refuse,
    with_chosen_model,
)
from pytest_adaptive_eval.cli.screen import save, say, screen, width
from pytest_adaptive_eval.cli.settings import FitTable, add_reading_arguments, settings_of
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.processes import in_processes
from pytest_adaptive_eval.typed_tables import Count

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.backtests.backtest import Backtest, Split
    from pytest_adaptive_eval.items.responses import Responses


class BacktestTable(FitTable, frozen=True):
    """Settings of ``backtest``.

    Args:
        test: Subjects to interview in each split (a fifth of them).
    """

    test: Count | None = None


def _add_arguments(parser: VerbParser) -> None:
    add_responses_argument(parser, "recorded responses; banks are calibrated in each split")
    add = parser.add_argument
    add("--items", metavar="FILE", type=Path, help="JSONL of the items' texts, whose categories stratified needs")
    policies, budgets = "estimate,random,maximum-information", "1%,2%,5%"
    text = "policies to compare, separated by commas, or all (%(default)s)"
    add("--policy", metavar="NAMES", default=policies, help=text)
    add("--budget", metavar="BUDGETS", default=budgets, help="budgets, separated by commas (%(default)s)")
    add("--splits", metavar="N", type=parse_count, default=20, help="random splits of the subjects (%(default)s)")
    text = "coverage and width of all intervals; calibrates several times as often"
    add("--intervals", action="store_true", help=text)
    add("--json", metavar="FILE", type=Path, help="write the table as JSON, again after every split")
    add("--jobs", metavar="N", type=parse_count, default=os.cpu_count() or 1, help="processes (%(default)s)")
    add_fit_arguments(parser)
    parser.details.append(_policies)
    parser.named.add("policies")
    add_reading_arguments(parser, lambda: BacktestTable)


def _policies() -> tuple[str, Iterator[tuple[str, str]]]:
    """Return the policies for the help."""
    from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS

    return "policies", ((name, contender.summary) for name, contender in CONTENDERS.items())


def _run(options: argparse.Namespace) -> int:
    screen.begin(f"reading {options.source}")
    names = _names(options)
    recipe = recipe_of(options)
    responses, work = _split(options)
    if responses.observed < 1:
        screen.note(
            f"{100 * responses.observed:.3g} % of the scores are there: the accuracy of a subject over all items is "
            "taken over the items it answered"
        )
    categories = first_categories(options.items, responses.items)
    if "stratified" in names and not categories:
        missing = "the items have no categories; give --items with texts that have some"
        if options.policy != "all":
            raise ConfigError(f"--policy stratified: {missing}")
        screen.note(f"left out: stratified: {missing}")
        names.remove("stratified")
    settings = {
        "contenders": names,
        "budgets": budgets_of(options, len(responses.items)),
        "recipe": with_chosen_model(options, recipe, responses)[0],
        "seed": options.seed,
        "intervals": options.intervals,
        "categories": categories,
    }
    return _backtest_splits(options, (responses, settings), list(enumerate(work)))


def _names(options: argparse.Namespace) -> list[str]:
    """Return the policies to compare, and refuse wrong options before hours of work."""
    from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS

    if options.policy == "all":
        names = list(CONTENDERS)
    else:
        names = names_of(options, "policy")
    if unknown := set(names) - set(CONTENDERS):
        raise ConfigError(f"--policy {min(unknown)}: known are {', '.join(CONTENDERS)}, and all")
    if options.json is not None:
        families = settings_of(options, BacktestTable).families
        inputs = [options.source, options.items, Path(families) if families else None]
        check_writable("--json", options.json, inputs)
    return names


def _split(options: argparse.Namespace) -> tuple[Responses, list[Split]]:
    """Read responses, and split their subjects."""
    from pytest_adaptive_eval.calibration.build import matched
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.extensions.backtests.backtest import conformal_possible, splits
    from pytest_adaptive_eval.text import counted

    ungrouped = matched(_read(options), None, screen.note)
    responses = grouped(ungrouped)
    if merged := len(set(ungrouped.families)) - len(set(responses.families)):
        screen.note(
            f"near-duplicates: {counted(merged, 'subject')} answering nearly like another, on its side of each split"
        )
    test = settings_of(options, BacktestTable).test or max(2, round(len(responses.subjects) / 5))
    work = list(splits(responses, options.splits, test=test, seed=options.seed))
    if options.intervals and not conformal_possible(responses.of(work[0].train)):
        screen.note(f"left out: conformal intervals, for which {len(work[0].train)} subjects are too few")
    return responses, work


def _read(options: argparse.Namespace) -> Responses:
    """Read responses; of responses in formats, those to the items with all their parts."""
    from pytest_adaptive_eval.banks.responses import in_formats, read_format_responses

    if not in_formats(options.source):
        return read(options, options.source)
    refuse(options, ("format", "orientation", "metric", "filter"), "is not for responses in formats")
    responses = read_format_responses([options.source], families=settings_of(options, BacktestTable).families)
    fullest = responses.modalities.formats[responses.modalities.fullest]
    screen.note(f"of the responses in formats, the ones to {fullest} are interviewed")
    return responses.whole


def first_categories(path: Path | None, ids: Sequence[str]) -> list[str]:
    """Return the broadest category of each item by the texts of ``--items``; an empty list if no item has one.

    Raises:
        ConfigError: The file has a text for none of the items.
    """
    from pytest_adaptive_eval.banks.reader import read_bank

    if path is None:
        return []
    by_id = {}
    for item in read_bank(path).items:
        by_id[item.id] = item.category[0] if item.category else ""
    if not any(name in by_id for name in ids):
        raise ConfigError(f"--items {path}: no text for any item, such as {ids[0]!r}")
    categories = [by_id.get(name, "") for name in ids]
    if any(categories):
        return categories
    return []


def _backtest_splits(
    options: argparse.Namespace, shared: tuple[Responses, dict[str, Any]], work: Sequence[tuple[int, Split]]
) -> int:
    """Backtest every split, and keep and print the merged result; Ctrl-C ends it after the first split."""
    from pytest_adaptive_eval.reports.calibration import backtest_lines

    def keep(total: Backtest) -> None:
        if options.json is not None:
            complete = total.splits == len(work)
            save(options.json, {**total.to_json(), "complete": complete}, complete=complete)

    results = in_processes(_one_split, shared, work, options.jobs)
    screen.progress(f"interviewing, split 1 of {len(work)}")
    total = next(results)
    keep(total)
    try:
        while total.splits < len(work):
            screen.progress(f"interviewing, split {total.splits + 1} of {len(work)}")
            total.merge(next(results))
            keep(total)
    except KeyboardInterrupt:
        screen.say(f"adaptive-eval: interrupted; the results are of {total.splits} of {len(work)} splits")
    say(backtest_lines(total.to_json(), width()))
    if total.splits == len(work):
        return PASSED
    return INTERRUPTED


def _one_split(shared: tuple[Responses, dict[str, Any]], numbered: tuple[int, Split]) -> Backtest:
    from pytest_adaptive_eval.extensions.backtests.backtest import backtest
    from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS

    responses, settings = shared
    number, split = numbered
    contenders = [CONTENDERS[name] for name in settings["contenders"]]
    split_settings = {**settings, "contenders": contenders, "seed": 1000 * settings["seed"] + number}
    return backtest(responses, split, **split_settings)


REGISTERED = (
    Verb(
        "backtest",
        "replay interviews of recorded subjects to choose a policy and a budget",
        "Interview held-out subjects whose every answer is recorded, by several policies and budgets, and say how "
        "well each ranks and estimates them. Subjects of one family, and near-duplicates, stay on one side.",
        _add_arguments,
        _run,
        ("backtest responses.csv --budget 5%,20%", "backtest responses.csv --policy estimate,decide --intervals"),
    ),
)
