"""Sentences on what an interviewer did not do itself, from its account in a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.text import counted


def fallback_counts(account: object) -> tuple[int, int]:
    """Return how many choices, and how many questions to sort, code made or sorted in place of the interviewer.

    Args:
        account: See `cat.selection.SelectorSession.account`; anything else has none.
    """
    return sum(_kinds(account, "fallbacks").values()), sum(_kinds(account, "category_fallbacks").values())


def interviewer_faults(account: object) -> list[str]:
    """Return a sentence on the choices by code, one on unsorted questions, and one on pictures that were not shown."""
    faults = []
    choices, unsorted = fallback_counts(account)
    if choices:
        faults.append(
            f"the interviewer made no choice of its own {counted(choices, 'time')}{_listed(account, 'fallbacks')}: the "
            "most distant candidate was asked"
        )
    if unsorted:
        faults.append(
            f"the interviewer sorted {counted(unsorted, 'question')} into no category"
            f"{_listed(account, 'category_fallbacks')}: they count as other"
        )
    hidden = _interviewer(account).get("images_not_shown")
    if isinstance(hidden, int) and hidden > 0:
        faults.append(
            f"the interviewer did not see {counted(hidden, 'picture')} of its candidates: mode rate compares texts; "
            'set mode = "reply" with a model that reads images'
        )
    return faults


def _interviewer(account: object) -> Mapping[str, Any]:
    usage = account.get("interviewer") if isinstance(account, Mapping) else None
    return usage if isinstance(usage, Mapping) else {}


def _kinds(account: object, name: str) -> dict[str, int]:
    """Return counts by kind; those that are none are left out."""
    counts = _interviewer(account).get(name)
    if not isinstance(counts, Mapping):
        return {}
    return {str(kind): n for kind, n in counts.items() if isinstance(n, int) and n > 0}


def _listed(account: object, name: str) -> str:
    return f" ({', '.join(f'{kind} {n}' for kind, n in _kinds(account, name).items())})"
