"""The table of what each model of a panel or network cost."""

from __future__ import annotations

from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.sections import ROWS, Table, short
from pytest_adaptive_eval.text import money, number


def members_table(study: EvaluationRecord) -> Table:
    """Return calls, tokens, seconds per call and price by model."""
    rows = []
    for name, spent in list(study.costs.members.items())[:ROWS]:
        price = "-" if spent.money is None else money(spent.money, spent.currency)
        tokens = (f"{spent.prompt_tokens:,}", f"{spent.completion_tokens:,}")
        rows.append((short(name), f"{spent.calls:,}", *tokens, number(spent.seconds / max(spent.calls, 1), 2), price))
    heads = ("model", "calls", "tokens read", "tokens written", "seconds per call", "price")
    return Table("Cost by model", heads, rows, "Replies of an earlier run count with their original cost.")
