"""Costs of interviews, as in AutoJudger's paper."""

from __future__ import annotations


def relative_cost(
    share: float, model: float, step: float, *, first: float = 0.0, firsts: int = 0, items: int | None = None
) -> float:
    """Return the cost of an interview relative to the whole bank, R(alpha) of the paper's appendix H.

    Args:
        share: Share alpha of the bank that is administered.
        model: Cost of an answer by the subject, in any unit.
        step: Cost of a choice by the interviewer, in the same unit.
        first: One-time cost of the embeddings and the first summary.
        firsts: Number beta of first items, which no interviewer chooses.
        items: Size of the bank. When omitted, the result is the paper's simple form alpha (1 + step / model) without
            first items.
    """
    cost = share * (1.0 + step / model)
    if items is not None:
        cost += (first - firsts * step) / (items * model)
    return cost
