"""The table of what each model of a panel or network cost."""

from __future__ import annotations

from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.sections import ROWS, Table, short
from pytest_adaptive_eval.text import money, number


def members_table(study: EvaluationRecord) -> Table:
    """Return calls, tokens, seconds per call and price by model."""
    rows = []
    for name, usage in list(study.costs.members.items())[:ROWS]:
        cost = study.costs.prices.get(name)
        price = "-" if cost is None else money(cost.money, cost.currency)
        tokens = (f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}")
        rows.append((short(name), f"{usage.calls:,}", *tokens, number(usage.seconds / max(usage.calls, 1), 2), price))
    heads = ("model", "calls", "tokens read", "tokens written", "seconds per call", "price")
    return Table("Cost by model", heads, rows, "Replies of an earlier run count with their original cost.")
