"""``adaptive-eval history --compare``: two runs side by side."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import PASSED, USAGE
from pytest_adaptive_eval.cli.runs import open_run
from pytest_adaptive_eval.cli.screen import save, say, width
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.comparison import Comparison
    from pytest_adaptive_eval.records.run_record import RunRecord


def _compare_runs(before: RunRecord, after: RunRecord) -> list[Comparison]:
    """Return the changes of all evaluations that both runs have."""
    from pytest_adaptive_eval.records.comparison import compare

    old = {evaluation.name: evaluation for evaluation in before.evaluations}
    comparisons = [compare(old[new.name], new) for new in after.evaluations if new.name in old]
    if not comparisons:
        first, second = (
            ", ".join(evaluation.name for evaluation in run.evaluations) or "none" for run in (before, after)
        )
        raise ConfigError(f"the two runs have no evaluation in common: the first has {first}, the second {second}")
    return comparisons


def compare(options: argparse.Namespace) -> int:
    """Show the change from one run to another; returns the exit code."""
    from pytest_adaptive_eval.reports.history import comparison_lines

    writes = {"--json": options.json}
    before, after = (open_run(name, options.source, writes) for name in options.compare)
    comparisons = _compare_runs(before, after)
    if options.json:
        runs = {"before": before.run, "after": after.run}
        save(options.json, {**runs, "evaluations": [comparison.to_json() for comparison in comparisons]})
    say([f"{before.run} -> {after.run}, change with its 95 % interval"])
    for comparison in comparisons:
        say(comparison_lines(comparison, width()))
    return USAGE if all(comparison.refused for comparison in comparisons) else PASSED
