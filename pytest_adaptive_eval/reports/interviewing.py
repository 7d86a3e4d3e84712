"""The page's section on the interviewer: who chose the questions, the cost, the fallbacks and the memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.records.run_record import InterviewRecord
from pytest_adaptive_eval.reports.axes import minus
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.reports.values import as_list, as_mapping, plottable
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import counted

#: Rows of the memory table, the most asked first.
_ROWS = 40


@dataclass(frozen=True, slots=True)
class InterviewerSection:
    """Facts, and the memory table: category, questions, difficulties, share right."""

    facts: list[tuple[str, str]]
    memory: list[tuple[str, str, str, str]]


def interviewer_section(interview: InterviewRecord) -> InterviewerSection | None:
    """Return the section on the interviewer, None if a formula chose the questions."""
    account = as_mapping(interview.interviewer)
    if not account:
        return None
    interviewer = as_mapping(account.get("interviewer"))
    facts = {
        "interviewer": _name(interviewer),
        "embeddings": account.get("embeddings"),
        "window of chances": account.get("window"),
        "chose": _choices(account, interview),
        "questions": _questions(account),
        "fallbacks": _fallbacks(account, interviewer),
        "cost": _cost(as_mapping(interview.costs)),
    }
    tables = as_list(account.get("memory")) or [[]]
    memory = sorted(map(as_mapping, as_list(tables[0])), key=lambda row: -(plottable(row.get("count")) or 0.0))
    return InterviewerSection(
        [(name, clean_html(value, 300)) for name, value in facts.items() if value],
        [_row(row) for row in memory[:_ROWS] if row],
    )


def _cost(costs: Mapping[str, Any]) -> str:
    """Return ``subject 96 calls, 3100 tokens; interviewer 40 calls, 12000 tokens; 1.2e+12 FLOPs, ...``."""
    parts = []
    for role in ("subject", "interviewer"):
        usage = as_mapping(costs.get(role))
        if calls := plottable(usage.get("calls")):
            tokens = sum(plottable(usage.get(name)) or 0.0 for name in ("prompt_tokens", "completion_tokens"))
            text = f"{role} {counted(int(calls), 'call')}, {tokens:,.0f} tokens"
            parts.append(text + (f", {flops:.2g} FLOPs" if (flops := plottable(usage.get("flops"))) else ""))
    relative = plottable(costs.get("relative"))
    if relative is not None:
        parts.append(f"{100 * relative:.1f} % of the FLOPs of asking the whole bank")
    return "; ".join(parts)


def _name(interviewer: Mapping[str, Any]) -> str:
    if not interviewer:
        return "none: drawn in the window"
    name = interviewer.get("name")
    return "by code" if name == "deterministic" else str(name or "unnamed")


def _choices(account: Mapping[str, Any], interview: InterviewRecord) -> str:
    chosen, widened = plottable(account.get("chosen")), plottable(account.get("widened"))
    if chosen is None:
        return ""
    text = f"{int(chosen)} times, in {counted(interview.asked, 'question')}"
    return text + (f"; the window was empty and widened {int(widened)} times" if widened else "")


def _questions(account: Mapping[str, Any]) -> str:
    """Return how unlike the questions are, and how near their difficulties were to the ability."""
    apart, off = (_first_number(account.get(name)) for name in ("semantic_distance", "difficulty_distance"))
    parts = [] if apart is None else [f"{apart:.2f} apart on average by the embeddings (semantic distance)"]
    if off is not None:
        parts.append(f"difficulties {off:.2f} logits from the ability, past the first questions")
    return "; ".join(parts)


def _first_number(values: object) -> float | None:
    return plottable((as_list(values) or [None])[0])


def _fallbacks(account: Mapping[str, Any], interviewer: Mapping[str, Any]) -> str:
    total = plottable(account.get("fallbacks"))
    if total is None or not interviewer:
        return ""
    again = plottable(interviewer.get("asked_again"))
    text = f"choices {int(total)}" + _kinds(interviewer.get("fallbacks"))
    if unsorted := as_mapping(interviewer.get("category_fallbacks")):
        text += f"; categories {sum(int(plottable(n) or 0) for n in unsorted.values())}{_kinds(unsorted)}"
    return text + (f"; asked again {int(again)} times" if again else "")


def _kinds(counts: object) -> str:
    kinds = ", ".join(f"{name} {n}" for name, n in as_mapping(counts).items())
    return f" ({kinds})" if kinds else ""


def _row(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    low, mean, high = (plottable(row.get(name)) for name in ("lowest", "mean", "highest"))
    difficulty = "-"
    if low is not None and mean is not None and high is not None:
        difficulty = minus(f"{mean:.1f} ({low:.1f} to {high:.1f})")
    count = plottable(row.get("count"))
    return (
        clean_html(row.get("name") or "none", 100),
        "-" if count is None else f"{count:.0f}",
        difficulty,
        number_or_dash(plottable(row.get("accuracy")), 2),
    )
