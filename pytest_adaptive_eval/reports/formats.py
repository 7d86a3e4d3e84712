"""The reports of ``refine``, and of ``backtest`` with responses in formats: lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.text import clean_terminal, counted, number, wrap

__all__ = ["format_backtest_lines", "refine_lines"]

#: What a test compares, in words.
_TESTED = {"together_all": "together, all", "together_fullest": "together, full", "gamma": "gamma"}


def format_backtest_lines(result: Mapping[str, Any], width: int = 80) -> list[str]:
    """The tables of a backtest in formats.

    Parameters
    ----------
    result : mapping
        See `FormatBacktest.to_json`.
    width : int
        Columns of a sentence; the tables need 100.
    """
    low = result["low_quality"]
    told = f"{number(low)} of the items are known to be of low quality" if low else "no item is known to be bad"
    lines = wrap(
        f"{counted(result['subjects'], 'subject')}, {result['left_out']} left out one at a time, {result['pairs']} "
        f"pairs of an item and a format, a call each; {told}. Rank correlations with the mean over all formats and in "
        f"the full one, of the other items: together, by the raw means of everybody on the pairs that the one left out "
        f"was asked, mean and s.d.; alone, by each one's own interview. The two truths correlate by "
        f"{_shown(result['truths_agree'])}",
        width,
    )
    heads = ["policy", "budget", "calls", "together: all", "s.d.", "full", "alone: all", "full", "gamma", "x random"]
    table = [heads]
    for row in result["rows"]:
        values = [row[key] for key in ("together_all", "together_all_sd", "together_fullest")]
        values += [row[key] for key in ("alone_all", "alone_fullest", "gamma", "gamma_of_random")]
        table.append([row["policy"], clean_terminal(row["budget"], 10), str(row["calls"]), *map(_shown, values)])
    lines += ["", *aligned(table, list(range(2, len(heads))))]
    if result["tests"]:
        lines += ["", *_tests(result["tests"], width)]
    if result["seconds"]:
        times = ", ".join(f"{name} {s['mean']:.1f} (most {s['most']:.1f})" for name, s in result["seconds"].items())
        lines += ["", *wrap(f"seconds of processor time a fit: {times}", width)]
    return lines


def _tests(tests: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """A row a contender and budget, W and p of each quantity."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for t in tests:
        key = (t["against"], clean_terminal(t["budget"], 10))
        found.setdefault(key, {})[t["of"]] = f"{t['w']:g} {t['p']:.2g}"
    rows = [["against", "budget", *_TESTED.values()]]
    rows += [[*key, *(cells.get(what, "-") for what in _TESTED)] for key, cells in found.items()]
    sentence = (
        f"Wilcoxon's signed-rank test over those left out, one-sided: W and p of {tests[0]['policy']} being better, in "
        "rho and in gamma"
    )
    return [*wrap(sentence, width), *aligned(rows, [2, 3, 4])]


def _shown(value: float | None) -> str:
    return "-" if value is None else number(value)


def refine_lines(result: Mapping[str, Any], width: int = 80, examples: int = 3) -> list[str]:
    """What was kept and dropped, why, and how far the ranking moved.

    Parameters
    ----------
    result : mapping
        See `Refinement.to_json`.
    width : int
        Columns of a sentence.
    examples : int
        Items shown of each reason.
    """
    items = result["items"]
    lines = wrap(
        f"{counted(len(items), 'item')}, {result['form'].upper()} with q {result['bound']:g}, ROC-AUC "
        f"{_shown(result['auc'])} on held-out responses",
        width,
    )
    rows = [["", "items", "", ""]]
    for reason, count in result["counts"].items():
        mine = sorted((one for one in items if one["reason"] == reason), key=lambda one: one["gain"])
        some = mine[::-1] if reason == "kept" else mine
        rows.append([reason, str(count), "", ""])
        rows += [
            ["", "", clean_terminal(one["item"], 40), clean_terminal(one["detail"], 120)] for one in some[:examples]
        ]
    lines += ["", *aligned(rows, [1])]
    bad = [one for one in items if one["low_quality"]]
    if bad:
        genuine = sum(one["looks"] == "genuine" for one in bad)
        lines += ["", *wrap(f"of {len(bad)} items known to be of low quality {genuine} look genuine", width)]
        rows = [["", "originals", "low-quality", "Mann-Whitney U", "p", "Wasserstein", "AUC"]]
        rows += [
            [
                name,
                _shown(s["original"]),
                _shown(s["low_quality"]),
                f"{s['mann_whitney_u']:.0f}",
                f"{s['p']:.2g}",
                _shown(s["wasserstein"]),
                _shown(s["auc"]),
            ]
            for name, s in result["separations"].items()
        ]
        lines += aligned(rows, [1, 2, 3, 4, 5, 6])
    ranking = result["ranking"]
    told = ranking["spearman"]
    words = (
        f"{_shown(told['estimate'])} [{_shown(told['low'])}, {_shown(told['high'])}]"
        if told
        else f"- ({ranking['why']})"
    )
    lines += [
        "",
        *wrap(
            f"ranking of {counted(ranking['subjects'], 'subject')} by the kept items against all originals, in the "
            f"full format: Spearman {words}; by as many originals drawn at random "
            f"{_shown(result['ranking_by_chance'])}",
            width,
        ),
    ]
    moved = [row for row in result["moved"] if row["rank_by_all"] != row["rank_by_kept"]][:examples]
    lines += [
        f"  {clean_terminal(row['subject'], 40)}: rank {row['rank_by_all']} -> {row['rank_by_kept']}" for row in moved
    ]
    for text in result["warnings"]:
        lines += wrap(f"warning: {text}", width, "  ", first="")
    return lines
