"""``adaptive-eval history --compare``: two runs side by side, or all pairs of subjects."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import PASSED, USAGE
from pytest_adaptive_eval.cli.past_runs import NamedRuns
from pytest_adaptive_eval.cli.screen import save, say, width
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.comparison import Comparison
    from pytest_adaptive_eval.records.parts import Pair
    from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord


def _compare_runs(before: RunRecord, after: RunRecord) -> list[Comparison]:
    """Return the changes of all evaluations that both runs have."""
    from pytest_adaptive_eval.records.comparison import compare

    old = {evaluation.name: evaluation for evaluation in before.evaluations}
    comparisons = []
    for new in after.evaluations:
        if new.name in old:
            comparisons.append(compare(old[new.name], new))
    if not comparisons:
        first = ", ".join(evaluation.name for evaluation in before.evaluations) or "none"
        second = ", ".join(evaluation.name for evaluation in after.evaluations) or "none"
        raise ConfigError(f"the two runs have no evaluation in common: the first has {first}, the second {second}")
    return comparisons


def compare(options: argparse.Namespace) -> int:
    """Show the change from one run to another, or all pairs of subjects of other runs; returns the exit code."""
    from pytest_adaptive_eval.reports.history import comparison_lines

    writes = {"--json": options.json}
    named = NamedRuns(options.source, writes)
    runs = [named.open(name) for name in options.compare]
    if len(runs) != 2:
        return _compare_all(runs, options)
    before, after = runs
    comparisons = _compare_runs(before, after)
    if options.json:
        ids = {"before": before.run, "after": after.run}
        save(options.json, {**ids, "evaluations": [comparison.to_json() for comparison in comparisons]})
    say([f"{before.run} -> {after.run}, change with its 95 % interval"])
    for comparison in comparisons:
        say(comparison_lines(comparison, width()))
    if all(comparison.refused for comparison in comparisons):
        return USAGE
    return PASSED


def _compare_all(runs: Sequence[RunRecord], options: argparse.Namespace) -> int:
    """Show all pairs of subjects, each with an interval that holds together with the others."""
    from pytest_adaptive_eval.records.pairs import CONFIDENCE, all_pairs

    pairs = all_pairs(interview for run in runs for interview in run.interviews)
    changes = _changes_of_climbs_and_studies(runs)
    if not pairs and not changes:
        raise ConfigError(
            "no two subjects answered one evaluation with one seed, on items drawn at random: name the record of a "
            "sweep, or the runs of several checkpoints"
        )
    if options.json:
        ids = [run.run for run in runs]
        data = {"runs": ids, "confidence": CONFIDENCE, "pairs": [pair.to_json() for pair in pairs]}
        save(options.json, {**data, "evaluations": [change.to_json() for change in changes]})
    _say_all(pairs, changes)
    refusals = [*(pair.refused for pair in pairs), *(change.refused for change in changes)]
    if all(refusals):
        return USAGE
    return PASSED


def _say_all(pairs: Sequence[Pair], changes: Sequence[Comparison]) -> None:
    from pytest_adaptive_eval.reports.history import comparison_lines
    from pytest_adaptive_eval.reports.side_by_side import pair_lines

    if pairs:
        say(pair_lines(pairs))
    if changes:
        say(["ladders, networks and panels: change with its 95 % interval, each by itself"])
    for change in changes:
        say(comparison_lines(change, width()))


def _changes_of_climbs_and_studies(runs: Sequence[RunRecord]) -> list[Comparison]:
    """Return the changes between all pairs of results of one test that has no bank."""
    from pytest_adaptive_eval.records.comparison import compare

    by_test: dict[str, list[EvaluationRecord]] = {}
    for run in runs:
        for evaluation in run.evaluations:
            if evaluation.levels or not evaluation.bank:
                by_test.setdefault(evaluation.nodeid, []).append(evaluation)
    return [compare(*pair) for records in by_test.values() for pair in combinations(records, 2)]
