"""``adaptive-eval backtest``: a comparison of policies and budgets on recorded responses."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pytest_adaptive_eval.cli.options import (
    RECIPE,
    add_fit_arguments,
    add_low_quality_argument,
    add_responses_argument,
    budgets_of,
    names_of,
    parse_count,
    read,
    recipe_of,
    refuse,
    with_chosen_model,
)
from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.cli.settings import FitTable, add_reading_arguments, settings_of
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.extensions.backtests.formats import FORMAT_BUDGETS, backtest_in_formats
from pytest_adaptive_eval.extensions.backtests.processes import check_results, run_backtest
from pytest_adaptive_eval.inputs import open_text
from pytest_adaptive_eval.typed_tables import Count, described

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.backtests.backtest import Backtest, Split
    from pytest_adaptive_eval.interviewer.interviewer import Interviewer
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses
    from pytest_adaptive_eval.models.base import Model

#: Defaults for a matrix of responses.
POLICIES = "estimate,random,maximum-information"
BUDGETS = "1%,2%,5%"
SPLITS = 20


class BacktestTable(FitTable, frozen=True):
    """Settings of ``backtest``."""

    encoder: Annotated[str, described("encoder of the texts and pictures of --items, for cluster and autojudger")] = ""
    interviewer: Annotated[
        str, described("model that leads autojudger's interviews and reads the texts of --items: a folder or URL#MODEL")
    ] = ""
    test: Annotated[Count | None, described("subjects to interview in each split (a fifth of them)")] = None
    stratify: Annotated[
        str, described("CSV with models, params and unit, to split the subjects evenly by model size")
    ] = ""
    confidence: Annotated[float, described("of each one-sided bound (0.975: a 95 % interval)")] = 0.975
    repeats: Annotated[Count, described("in formats, interviews a subject of policies that draw (10)")] = 10


def _add_arguments(parser: VerbParser) -> None:
    text = "what to interview: responses (banks are calibrated in each split), or a bank with --responses"
    add_responses_argument(parser, text)
    add = parser.add_argument
    add("--responses", metavar="FILE", type=Path, help="responses of held-out subjects, where the first is a bank")
    add("--items", metavar="FILE", type=Path, help="JSONL of the items' texts, whose categories stratified needs")
    text = f"policies to compare, separated by commas, or all ({POLICIES}; in formats, all)"
    add("--policy", metavar="NAMES", help=text)
    text = f"budgets, separated by commas ({BUDGETS}; in formats, of calls, {FORMAT_BUDGETS})".replace("%", "%%")
    add("--budget", metavar="BUDGETS", help=text)
    text = f"random splits of the subjects ({SPLITS}); in formats, subjects to leave out, one at a time (all)"
    add("--splits", metavar="N", type=parse_count, help=text)
    text = "coverage and width of all intervals; calibrates several times as often"
    add("--intervals", action="store_true", help=text)
    add("--json", metavar="FILE", type=Path, help="write the table as JSON, again after every split")
    add("--plot", metavar="FILE.svg", type=Path, help="draw ranking accuracy by budget; in formats, rho and gamma")
    add("--jobs", metavar="N", type=parse_count, default=os.cpu_count() or 1, help="processes (%(default)s)")
    add_low_quality_argument(parser)
    add_fit_arguments(parser)
    parser.details += [lambda: _policies(variants=False), lambda: _policies(variants=True), _format_policies]
    add_reading_arguments(parser, lambda: BacktestTable)


def _policies(*, variants: bool) -> tuple[str, Iterator[tuple[str, str]]]:
    """Return the policies for the help, or AutoJudger's policies with one change."""
    from pytest_adaptive_eval.extensions.backtests.backtest import CONTENDERS

    title = "AutoJudger with one switch changed" if variants else "policies"
    return title, ((name, c.summary) for name, c in CONTENDERS.items() if c.variant == variants)


def _format_policies() -> tuple[str, Iterator[tuple[str, str]]]:
    from pytest_adaptive_eval.extensions.backtests.format_backtest import FORMAT_CONTENDERS

    title = "policies in formats (filtered: items that gain by all modalities)"
    return title, ((name, c.summary) for name, c in FORMAT_CONTENDERS.items())


def _run(options: argparse.Namespace) -> int:
    screen.begin(f"reading {options.source}")
    from pytest_adaptive_eval.banks.reader import is_bank
    from pytest_adaptive_eval.banks.responses import in_formats
    from pytest_adaptive_eval.reports.calibration import backtest_lines, backtest_svg

    if in_formats(options.source):
        return backtest_in_formats(options, settings_of(options, BacktestTable).repeats)
    _check_options(options)
    recipe, bank = recipe_of(options), None
    if is_bank(options.source):
        bank, responses = _of_bank(options)
        work = [_all_subjects(responses)]
    else:
        responses, work = _split(options)
    if responses.observed < 1:
        screen.note(
            f"{100 * responses.observed:.3g} % of the scores are there: the accuracy of a subject over all items is "
            "taken over the items it answered"
        )
    categories = _categories(options, bank, responses.items)
    budgets, names = budgets_of(options, len(responses.items)), _chosen(options, bank, categories)
    settings = {
        "budgets": budgets,
        "contenders": names,
        "recipe": recipe if bank is not None else with_chosen_model(options, recipe, responses)[0],
        "seed": options.seed,
        "confidence": settings_of(options, BacktestTable).confidence,
        "intervals": options.intervals,
        "bank": bank,
        "categories": categories,
        **_texts_settings(options, responses.items),
    }
    if bank is not None and "embeddings" not in settings and any(name.startswith("autojudger") for name in names):
        screen.note(
            "autojudger places items by the bank's parameters, which say nothing of their texts: give --items and "
            "--set encoder=NAME"
        )

    parts, shared = list(enumerate(work)), (responses, settings)
    return run_backtest(_one_split, shared, parts, options, "split", draw=backtest_svg, lines=backtest_lines)


def _check_options(options: argparse.Namespace) -> None:
    """Set the defaults for a matrix of responses, and refuse wrong options before hours of work."""
    from pytest_adaptive_eval.extensions.backtests.backtest import CONTENDERS

    given = settings_of(options, BacktestTable)
    refuse(options, ("low-quality", "repeats"), f"goes with responses in formats, and {options.source} holds none")
    options.policy, options.budget = options.policy or POLICIES, options.budget or BUDGETS
    if options.policy != "all" and (unknown := set(names_of(options, "policy")) - set(CONTENDERS)):
        raise ConfigError(f"--policy {min(unknown)}: known are {', '.join(CONTENDERS)}, and all")
    if not 0.5 < given.confidence < 1:
        raise ConfigError(f"confidence {given.confidence}: expected a number above 0.5 and below 1")
    if options.plot is not None and options.plot.suffix != ".svg":
        raise ConfigError(f"--plot {options.plot}: the picture is an SVG; name a file that ends with .svg")
    more = [Path(name) for name in (given.stratify, given.families) if name]
    check_results(options, [options.source, options.responses, options.items, *more])


def _all_subjects(responses: Responses) -> Split:
    """Return a split without calibration subjects: a bank has its own parameters."""
    import numpy as np

    from pytest_adaptive_eval.extensions.backtests.backtest import Split

    screen.note("every policy is on the bank's own parameters")
    subjects = np.arange(len(responses.subjects))
    return Split(subjects[:0], subjects)


def _split(options: argparse.Namespace) -> tuple[Responses, list[Split]]:
    """Read responses, and split their subjects."""
    from pytest_adaptive_eval.calibration.build import matched
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.extensions.backtests.backtest import conformal_possible, splits
    from pytest_adaptive_eval.text import counted

    if options.responses is not None:
        raise ConfigError(f"--responses goes with a bank, and {options.source} is none")
    ungrouped = matched(read(options, options.source), None, screen.note)
    responses = grouped(ungrouped)
    if merged := len(set(ungrouped.families)) - len(set(responses.families)):
        screen.note(
            f"near-duplicates: {counted(merged, 'subject')} answering nearly like another, on its side of each split"
        )
    given = settings_of(options, BacktestTable)
    test = given.test or max(2, round(len(responses.subjects) / 5))
    strata = _sizes(Path(given.stratify), responses) if given.stratify else None
    work = list(splits(responses, options.splits or SPLITS, test=test, seed=options.seed, strata=strata))
    if options.intervals and not conformal_possible(responses.of(work[0].train), given.confidence):
        screen.note(f"left out: conformal intervals, for which {len(work[0].train)} subjects are too few")
    return responses, work


def _sizes(path: Path, responses: Responses) -> list[float]:
    """Return the number of parameters of each subject, from a CSV with models, params and unit; NaN where unknown."""
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
            f"stratify {path}, line {line}: expected the columns models, params (a number) and unit (B, M, K)"
        ) from None
    subject_sizes = [sizes.get(subject, math.nan) for subject in responses.subjects]
    if all(map(math.isnan, subject_sizes)):
        raise ResponsesError(f"stratify {path}: no subject, such as {responses.subjects[0]!r}, has a size there")
    return subject_sizes


def _of_bank(options: argparse.Namespace) -> tuple[ItemBank, Responses]:
    """Return the bank, and responses to its items by subjects that it was not calibrated on."""
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
    unseen = np.array([name not in set(bank.subjects) for name in responses.subjects])
    rows = np.flatnonzero(unseen & ~np.isnan(scores).all(axis=1)).tolist()
    if len(rows) < 2:
        raise ResponsesError(f"{options.responses}: fewer than two subjects that the bank was not calibrated on")
    if len(rows) < len(responses.subjects):
        screen.note(
            f"{len(rows)} of {len(responses.subjects)} subjects are interviewed: the others calibrated the bank, or "
            "answered none of its items"
        )
    selected = responses.of(rows)
    held_out = Responses(selected.subjects, ids, scores[rows], selected.families, selected.source)
    return replace(bank, items=(), ids=ids), held_out


def _categories(options: argparse.Namespace, bank: ItemBank | None, ids: Sequence[str]) -> list[str]:
    """Return the category of each item, empty for an item without one; an empty list if no item has one."""
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


def _texts_settings(options: argparse.Namespace, ids: Sequence[str]) -> dict[str, Any]:
    """Return the requested ones of the items' texts, their embeddings, and the interviewer's name."""
    given = settings_of(options, BacktestTable)
    if not (given.encoder or given.interviewer):
        return {}
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.items.bank import ItemBank

    if options.items is None:
        flag = "encoder" if given.encoder else "interviewer"
        raise ConfigError(f"{flag} reads texts: give them with --items")
    by_id = {item.id: item for item in read_bank(options.items).items}
    if lacking := [name for name in ids if name not in by_id]:
        raise ConfigError(
            f"--items {options.items}: no text for {len(lacking)} of {len(ids)} items, such as {lacking[0]!r}; an "
            "encoder and an interviewer need all"
        )
    items = [by_id[name] for name in ids]
    settings: dict[str, Any] = {"items": items, "interviewer": given.interviewer or None}
    if given.encoder:
        from pytest_adaptive_eval.interviewer.embeddings import load_embedder

        screen.progress(f"embedding by {given.encoder}")
        embedder = load_embedder(given.encoder)
        settings["embeddings"] = embedder.embed(ItemBank.uncalibrated("backtest", items))
        screen.note(f"embeddings by {embedder.name}")
    return settings


def _interviewer(spec: str) -> Interviewer:
    """Return an interviewer by the model `spec`, which each process loads once."""
    from pytest_adaptive_eval.interviewer.agent import AgentInterviewer

    model = _interviewing_model(spec)
    return AgentInterviewer(model, mode="rate" if model.rates else "reply")


@lru_cache(maxsize=1)
def _interviewing_model(spec: str) -> Model:
    from pytest_adaptive_eval.models import load_model

    return load_model(spec, chats=True)


def _chosen(options: argparse.Namespace, bank: ItemBank | None, categories: Sequence[str]) -> list[str]:
    """Return the policies to compare; ``all`` means all that the data allow."""
    from pytest_adaptive_eval.extensions.backtests.backtest import CONTENDERS

    missing = {name: contender.missing_requirement(bank, categories) for name, contender in CONTENDERS.items()}
    if options.policy == "all":
        names = [name for name, contender in CONTENDERS.items() if not contender.variant]
    else:
        names = names_of(options, "policy")
    for name in names:
        if missing[name] and options.policy == "all":
            screen.note(f"left out: {name}: {missing[name]}")
        elif missing[name]:
            raise ConfigError(f"--policy {name}: {missing[name]}")
    return [name for name in names if not missing[name]]


def _one_split(shared: tuple[Responses, dict[str, Any]], numbered: tuple[int, Split]) -> Backtest:
    from pytest_adaptive_eval.extensions.backtests.backtest import CONTENDERS, backtest

    responses, settings = shared
    number, split = numbered
    split_settings = {**settings, "seed": 1000 * settings["seed"] + number}
    contenders = [CONTENDERS[name] for name in split_settings.pop("contenders")]
    if spec := split_settings.get("interviewer"):
        split_settings["interviewer"] = partial(_interviewer, spec)
    return backtest(responses, split, contenders, split_settings.pop("budgets"), **split_settings)


REGISTERED = (
    Verb(
        "backtest",
        "replay interviews of recorded subjects to choose a policy and a budget",
        "Interview held-out subjects whose every answer is recorded, by several policies and budgets, and say how "
        "well each ranks and estimates them. Subjects of one family, and near-duplicates, stay on one side.",
        _add_arguments,
        _run,
        (
            "backtest responses.csv --budget 5%,20%",
            "backtest my.bank --responses more.csv --policy estimate,decide",
        ),
    ),
)
