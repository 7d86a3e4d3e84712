"""``adaptive-eval study autojudger``: Table 1 of AutoJudger's paper, and its variants."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import INTERRUPTED, PASSED, check_writable, names_of, parse_count, read
from pytest_adaptive_eval.cli.screen import say, screen, width
from pytest_adaptive_eval.cli.settings import ReadingTable, add_reading_arguments
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.verbs.backtest import first_categories

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.papers.judger_results import Benchmark

#: Runs of the paper's split, as many as in the paper.
SEEDS = 5
#: How ties are counted, by the kind of splits: as AutoJudger's authors do for their split, and as half.
TIES = {"paper": ("autojudger", "half"), "random": ("half",)}


def _add_arguments(parser: VerbParser) -> None:
    text = "AI2D or MMMU, from the folder in ADAPTIVE_EVAL_DATA, or a file of responses (both when omitted)"
    parser.add_argument("source", metavar="RESPONSES", nargs="*", default=["AI2D", "MMMU"], help=text)
    add = parser.add_argument
    text = "rows, separated by commas (all that the data allow)"
    add("--only", metavar="NAMES", help=text)
    text = "runs of the split in train_models.json and test_models.json beside the file, with other seeds (5)"
    add("--seeds", metavar="N", type=parse_count, help=text)
    add("--splits", metavar="N", type=parse_count, help="random splits in place of that one")
    add("--items", metavar="FILE", type=Path, help="JSONL of the items' texts, for their categories")
    text = "keep results as JSON lines; results that are there are not measured again"
    add("--out", metavar="FILE", type=Path, help=text)
    add("--jobs", metavar="N", type=parse_count, default=os.cpu_count() or 1, help="processes (%(default)s)")
    parser.details.append(_rows)
    parser.named.add("rows")
    add_reading_arguments(parser, lambda: ReadingTable)


def _rows() -> tuple[str, Iterator[tuple[str, str]]]:
    """Return the rows for the help."""
    from pytest_adaptive_eval.extensions.papers.judger import ROWS

    return "rows", ((name, row.contender.summary) for name, row in ROWS.items())


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.extensions.papers.judger_results import results_of, table_lines

    if options.seeds is not None and options.splits is not None:
        raise ConfigError("--seeds are runs of the paper's split, and --splits are random ones: give one of them")
    if options.out is not None:
        check_writable("--out", options.out, [options.items, *map(Path, options.source)])
    asked = _asked(options)
    for source in options.source:
        benchmark = _benchmark(options, source)
        rows = _rows_of(benchmark, asked)
        count = options.splits or options.seeds or SEEDS
        try:
            results = results_of(benchmark, rows, count, options.out, options.jobs, screen.progress)
        except KeyboardInterrupt:
            if options.out is None:
                raise
            screen.say(f"adaptive-eval: interrupted; {options.out} has the splits so far: run the command again")
            return INTERRUPTED
        for ties in TIES[benchmark.kind]:
            say([*table_lines(results, ties, width()), ""])
    return PASSED


def _asked(options: argparse.Namespace) -> list[str] | None:
    """Return the rows of ``--only``; None for all that the data allow."""
    from pytest_adaptive_eval.extensions.papers.judger import ABSENT, ROWS

    if options.only is None:
        return None
    names = names_of(options, "only")
    for name in names:
        if name in ABSENT:
            raise ConfigError(f"--only {name}: {ABSENT[name]}")
        if name not in ROWS:
            raise ConfigError(f"--only {name}: known are {', '.join(ROWS)}")
    return names


def _benchmark(options: argparse.Namespace, source: str) -> Benchmark:
    """Read one benchmark, by its name or its file."""
    from pytest_adaptive_eval.banks.responses import read_responses
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.extensions.papers.judger_results import Benchmark
    from pytest_adaptive_eval.extensions.papers.published import AUTOJUDGER, PaperSplit, published

    if source in AUTOJUDGER:
        (path,) = published(source, AUTOJUDGER)
        screen.progress(f"reading {path}")
        responses = read_responses(path, orientation="items-by-subjects")
    else:
        path = Path(source)
        responses = read(options, path)
    paper = PaperSplit.beside(path)
    if paper is None and options.splits is None:
        raise ConfigError(
            f"{path}: train_models.json and test_models.json are not beside it, which list the subjects of the paper's "
            "split; give --splits 20 for random splits"
        )
    name = path.name.partition(".")[0]
    released = path.with_name(f"{name}_released_difficulty.jsonl.gz")
    return Benchmark(
        name,
        grouped(responses),
        paper,
        options.splits is not None,
        first_categories(options.items, responses.items),
        released if released.is_file() else None,
    )


def _rows_of(benchmark: Benchmark, asked: list[str] | None) -> list[str]:
    """Return the rows of ``--only``, or all that the data allow, with a note on the others."""
    from pytest_adaptive_eval.extensions.papers.judger import ROWS

    names = []
    for name in asked or ROWS:
        why = benchmark.excluded(name)
        if not why:
            names.append(name)
        elif asked is not None:
            raise ConfigError(f"--only {name}: {benchmark.name}: {why}")
        else:
            screen.note(f"{benchmark.name}: left out: {name}: {why}")
    return names


REGISTERED = (
    Verb(
        "study autojudger",
        "AutoJudger's Table 1 and its variants on recorded responses",
        "Interview recorded subjects by AutoJudger, its variants and other policies, and print the ranking accuracy at "
        "1 to 5 % of the bank beside the paper's.",
        _add_arguments,
        _run,
        ("study autojudger", "study autojudger responses.csv --splits 20 --only random,autojudger,a2-judger"),
    ),
)
