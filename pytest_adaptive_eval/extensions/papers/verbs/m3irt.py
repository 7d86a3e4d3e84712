"""``adaptive-eval study m3irt``: the ranking of the M3-IRT paper with items of low quality."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.formats import read_formats
from pytest_adaptive_eval.cli.options import INTERRUPTED, PASSED, budgets_of, check_writable, names_of, parse_count
from pytest_adaptive_eval.cli.screen import save, say, screen, width
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.processes import in_processes

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.papers.format_backtests import FormatBacktest

#: Share of items of low quality in the paper, whose uniform draws spend .30 of the calls on them.
SHARE = 0.3


def _add_arguments(parser: VerbParser) -> None:
    text = "mmmu or mathvista, from the folder in ADAPTIVE_EVAL_DATA, or files of responses in formats (mmmu)"
    parser.add_argument("source", metavar="RESPONSES", nargs="*", default=["mmmu"], help=text)
    add = parser.add_argument
    text = "responses in formats to items that are all of low quality"
    add("--low-quality", metavar="FILE", type=Path, action="append", default=[], help=text)
    add("--items", metavar="BANK", type=Path, help="the items' texts, some of them marked as of low quality")
    add("--share", metavar="N", type=float, default=SHARE, help="share of low-quality items that is kept (%(default)s)")
    add("--only", metavar="NAMES", default="all", help="contenders, separated by commas (%(default)s)")
    text = "calls of each subject, separated by commas (%(default)s)"
    add("--budget", metavar="BUDGETS", default="5%,10%,30%,50%", help=text)
    add("--subjects", metavar="N", type=parse_count, help="leave out the first N subjects, one at a time (all)")
    add("--seeds", metavar="N", type=parse_count, default=10, help="runs of contenders that draw (%(default)s)")
    add("--out", metavar="FILE", type=Path, help="write the table as JSON, again after every subject")
    add("--jobs", metavar="N", type=parse_count, default=os.cpu_count() or 1, help="processes (%(default)s)")
    parser.details.append(_contenders)
    parser.named.add("contenders")


def _contenders() -> tuple[str, Iterator[tuple[str, str]]]:
    """Return the contenders for the help."""
    from pytest_adaptive_eval.extensions.papers.format_backtests import FORMAT_CONTENDERS

    return "contenders", ((name, contender.summary) for name, contender in FORMAT_CONTENDERS.items())


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.extensions.papers.format_backtests import FORMAT_CONTENDERS, with_low_quality
    from pytest_adaptive_eval.extensions.papers.format_lines import format_backtest_lines

    names = list(FORMAT_CONTENDERS)
    if options.only != "all":
        names = names_of(options, "only")
    if unknown := set(names) - set(FORMAT_CONTENDERS):
        raise ConfigError(f"--only {min(unknown)}: known are {', '.join(FORMAT_CONTENDERS)}, and all")
    sources, low_quality = _files(options)
    if options.out is not None:
        check_writable("--out", options.out, [*sources, *low_quality, options.items])
    responses, low = with_low_quality(*read_formats(sources, low_quality, _items(options.items), None), options.share)
    budgets = budgets_of(options, responses.scores[0].size)
    shared = {"responses": responses, "low": low, "contenders": names, "budgets": budgets, "repeats": options.seeds}
    targets = range(min(options.subjects or len(responses.subjects), len(responses.subjects)))

    def keep(total: FormatBacktest, done: int) -> None:
        complete = done == len(targets)
        if options.out is not None:
            save(options.out, {**total.to_json(), "complete": complete}, complete=complete)
        screen.progress(f"{done} of {len(targets)} subjects were left out")

    screen.progress(f"leaving out subject 1 of {len(targets)}")
    parts = in_processes(_one_subject, shared, targets, options.jobs)
    total = next(parts)
    done = 1
    keep(total, done)
    try:
        for part in parts:
            total.merge(part)
            done += 1
            keep(total, done)
    except KeyboardInterrupt:
        screen.say(f"adaptive-eval: interrupted; the results are of {done} of {len(targets)} subjects")
    say(format_backtest_lines(total.to_json(), width()))
    if done == len(targets):
        return PASSED
    return INTERRUPTED


def _files(options: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """Return the files of responses, and those to items of low quality."""
    from pytest_adaptive_eval.extensions.papers.published import M3IRT, published

    sources: list[Path] = []
    low_quality = list(options.low_quality)
    for source in options.source:
        if source in M3IRT:
            normal, shuffled = published(source, M3IRT)
            sources.append(normal)
            low_quality.append(shuffled)
        else:
            sources.append(Path(source))
    return sources, low_quality


def _items(path: Path | None) -> Any:
    """Return the items of a bank, or none."""
    from pytest_adaptive_eval.banks.reader import read_bank

    if path is None:
        return ()
    return read_bank(path).items


def _one_subject(shared: dict[str, Any], target: int) -> FormatBacktest:
    """Return the backtest with one subject left out."""
    import torch

    from pytest_adaptive_eval.extensions.papers.format_backtests import format_backtest

    torch.set_num_threads(1)  # sums of several threads differ in their last digits
    return format_backtest(**shared, targets=[target])


REGISTERED = (
    Verb(
        "study m3irt",
        "M2-IRT's and M3-IRT's ranking with items of low quality, beside other ways to choose",
        "Leave out each subject, fit M2 and M3 to the others, and interview it by every contender with as many calls. "
        "The table has rank correlations, the share of calls on items of low quality, and Wilcoxon's tests.",
        _add_arguments,
        _run,
        (
            "study m3irt mmmu --only random,irt,m2,m3 --budget 5%",
            "study m3irt responses.csv --low-quality decoys.csv --out table.json",
        ),
    ),
)
