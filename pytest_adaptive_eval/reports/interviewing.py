"""What a page says of the interviewer: who led, at what cost, what went otherwise than planned, what was remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.records.run_record import InterviewRecord
from pytest_adaptive_eval.reports.curves import real
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.text import counted, number

__all__ = ["Led", "led"]

#: Rows of the memory table, the most asked first.
_ROWS = 40


@dataclass(frozen=True, slots=True)
class Led:
    """Facts, and the memory table: category, questions, difficulties, share right."""

    facts: list[tuple[str, str]]
    memory: list[tuple[str, str, str, str]]


def led(interview: InterviewRecord) -> Led | None:
    """What the record says of the interviewer; None where a formula chose."""
    given = _mapping(interview.interviewer)
    if not given:
        return None
    who = _mapping(given.get("interviewer"))
    facts = {
        "interviewer": _who(who),
        "embeddings": given.get("embeddings"),
        "window of chances": given.get("window"),
        "chose": _chose(given, interview),
        "fallbacks": _fallbacks(given, who),
        "cost": _cost(_mapping(interview.costs)),
    }
    tables = given.get("memory")
    rows = tables[0] if isinstance(tables, list) and tables and isinstance(tables[0], list) else []
    known = [_mapping(row) for row in rows]
    known.sort(key=lambda row: -(real(row.get("count")) or 0.0))
    return Led(
        [(name, clean_html(value, 300)) for name, value in facts.items() if value],
        [_row(row) for row in known[:_ROWS] if row],
    )


def _cost(costs: Mapping[str, Any]) -> str:
    """``subject 96 calls, 3100 tokens; interviewer 40 calls, 12000 tokens; 1.2e+12 FLOPs, ...``."""
    parts = []
    for who in ("subject", "interviewer"):
        one = _mapping(costs.get(who))
        calls = real(one.get("calls"))
        if calls:
            tokens = sum(real(one.get(name)) or 0.0 for name in ("prompt_tokens", "completion_tokens"))
            flops = real(one.get("flops"))
            parts.append(
                f"{who} {counted(int(calls), 'call')}, {tokens:.0f} tokens" + (f", {flops:.2g} FLOPs" if flops else "")
            )
    relative = real(costs.get("relative"))
    if relative is not None:
        parts.append(f"{100 * relative:.1f} % of the FLOPs of asking the whole bank")
    return "; ".join(parts)


def _who(who: Mapping[str, Any]) -> str:
    if not who:
        return "none: drawn in the window"
    return "by code" if who.get("name") == "deterministic" else str(who.get("name") or "unnamed")


def _chose(given: Mapping[str, Any], interview: InterviewRecord) -> str:
    chosen, widened = real(given.get("chosen")), real(given.get("widened"))
    if chosen is None:
        return ""
    text = f"{int(chosen)} times, in {counted(interview.asked, 'question')}"
    return text + (f"; the window was empty and widened {int(widened)} times" if widened else "")


def _fallbacks(given: Mapping[str, Any], who: Mapping[str, Any]) -> str:
    total = real(given.get("fallbacks"))
    if total is None or not who:
        return ""
    kinds = ", ".join(f"{name} {n}" for name, n in _mapping(who.get("fallbacks")).items())
    again = real(who.get("asked_again"))
    text = f"{int(total)}" + (f" ({kinds})" if kinds else "")
    return text + (f"; asked again {int(again)} times" if again else "")


def _row(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    low, mean, high = (real(row.get(name)) for name in ("lowest", "mean", "highest"))
    difficulty = "-"
    if low is not None and mean is not None and high is not None:
        difficulty = f"{mean:.1f} ({low:.1f} to {high:.1f})".replace("-", "−")
    accuracy, count = real(row.get("accuracy")), real(row.get("count"))
    return (
        clean_html(row.get("name") or "none", 100),
        "-" if count is None else f"{count:.0f}",
        difficulty,
        "-" if accuracy is None else number(accuracy, 2),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
