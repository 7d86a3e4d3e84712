"""The report of ``bank refine``: lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.reports.calibration import at_bound_lines
from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import clean_terminal, counted, wrap


def refine_lines(result: Mapping[str, Any], width: int) -> list[str]:
    """Return kept and dropped items with their reasons, and the change of the ranking.

    Args:
        result: See `Refinement.to_json`.
    """
    items = result["items"]
    lines = wrap(
        f"{counted(len(items), 'item')}, {result['form'].upper()} with q {result['bound']:g}, ROC-AUC "
        f"{number_or_dash(result['auc'])} on held-out responses",
        width,
    )
    rows = [["", "items", "", ""]]
    for reason, count in result["counts"].items():
        members = sorted(
            (item for item in items if item["reason"] == reason),
            key=lambda item: item["gain"],
            reverse=reason == "kept",
        )
        rows.append([reason, str(count), "", ""])
        rows += [
            ["", "", clean_terminal(item["item"], 40), clean_terminal(item["detail"], 120)] for item in members[:3]
        ]
    lines += ["", *aligned(rows, [1]), *_low_quality_lines(result, width), "", *_ranking_lines(result, width)]
    moved = [row for row in result["moved"] if row["rank_by_all"] != row["rank_by_kept"]][:3]
    for row in moved:
        lines.append(f"  {clean_terminal(row['subject'], 40)}: rank {row['rank_by_all']} -> {row['rank_by_kept']}")
    for line in at_bound_lines(result["parts"], result["at_bound"]):
        lines += wrap(line, width, "  ", first="")
    for text in result["warnings"]:
        lines += wrap(f"warning: {text}", width, "  ", first="")
    return lines


def _low_quality_lines(result: Mapping[str, Any], width: int) -> list[str]:
    low_quality = [item for item in result["items"] if item["low_quality"]]
    if not low_quality:
        return []
    genuine = sum(item["looks"] == "genuine" for item in low_quality)
    rows = [["", "originals", "low-quality", "Mann-Whitney U", "p", "Wasserstein", "AUC"]]
    for name, s in result["separations"].items():
        rows.append(
            [
                name,
                number_or_dash(s["original"]),
                number_or_dash(s["low_quality"]),
                f"{s['mann_whitney_u']:.0f}",
                f"{s['p']:.2g}",
                number_or_dash(s["wasserstein"]),
                number_or_dash(s["auc"]),
            ]
        )
    sentence = f"of {len(low_quality)} items known to be of low quality {genuine} look genuine"
    return ["", *wrap(sentence, width), *aligned(rows, range(1, 7))]


def _ranking_lines(result: Mapping[str, Any], width: int) -> list[str]:
    ranking = result["ranking"]
    spearman, by_chance = map(number_or_dash, (ranking["spearman"], result["ranking_by_chance"]))
    return wrap(
        f"ranking of {counted(ranking['subjects'], 'subject')} by the kept items against all originals, in the full "
        f"format: Spearman {spearman}; by as many originals drawn at random {by_chance}",
        width,
    )
