"""``adaptive-eval view``: a page over many runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_adaptive_eval.cli.options import PASSED
from pytest_adaptive_eval.cli.runs import (
    add_pattern_arguments,
    add_source_argument,
    history_patterns,
    no_runs_text,
    open_history,
)
from pytest_adaptive_eval.cli.screen import say
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError

#: Newest runs that are listed, and those of them that get a page each.
RUNS, PAGES = 100, 10


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_pattern_arguments(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="DIR", type=Path, help="folder of the pages (SOURCE/view, or adaptive-eval-view)")
    add("--last", metavar="N", type=int, default=RUNS, help="only the newest N runs (%(default)s)")
    text = "newest runs that get a page of their own (%(default)s); it needs jinja2"
    add("--pages", metavar="N", type=int, default=PAGES, help=text)
    add("--badge", metavar="FILE", type=Path, help="write the newest run's outcome as an SVG badge")
    add("--open", action="store_true", help="open the page in the browser")
    add_source_argument(parser)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.outputs import write_whole
    from pytest_adaptive_eval.records.derived import copied_from
    from pytest_adaptive_eval.records.flicker import flickering
    from pytest_adaptive_eval.reports.index_page import badge_svg, write_index
    from pytest_adaptive_eval.reports.page import write_page
    from pytest_adaptive_eval.text import counted

    if options.last < 1 or options.pages < 0:
        raise ConfigError(f"--last {options.last} --pages {options.pages}: expected at least 1 and 0")
    history = open_history(options.source, {"--badge": options.badge})
    chosen = dict.fromkeys(record.run for record, _ in history.evaluations(**history_patterns(options)))
    runs = [history.whole(run) for run in list(chosen)[-options.last :]]
    if not runs:
        say([no_runs_text(options)])
        return PASSED
    folder = options.output or (options.source / "view" if options.source.is_dir() else Path("adaptive-eval-view"))
    folder.mkdir(parents=True, exist_ok=True)
    links = {}
    for record in runs[-options.pages :] if options.pages else []:
        links[record.run] = f"{record.run}.html"
        write_page(record, folder / links[record.run], series=history.series(until=record.started))
    own = [(record, interview) for record in runs if not copied_from(record) for interview in record.interviews]
    index = folder / "index.html"
    write_index(index, runs, flickers := flickering(own), links)
    if options.badge:
        write_whole(options.badge, [badge_svg(history.whole(history.newest.run)).encode()], "the badge")
    say([f"{index}: {counted(len(runs), 'run')}, {counted(len(flickers), 'item')} that flicker"])
    if options.open:
        import webbrowser

        webbrowser.open(index.resolve().as_uri())
    return PASSED


REGISTERED = (
    Verb(
        "view",
        "write a page over many runs",
        "Write a page over the runs of a history: a list with a filter, a comparison of two runs, the items that "
        "flicker between runs of one checkpoint, and a page for each of the newest runs. Nothing is asked.",
        _add_arguments,
        _run,
        (
            "view --open",
            "view --from artifacts.zip -o pages --badge badge.svg",
        ),
    ),
)
