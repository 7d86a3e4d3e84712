"""The table of what each model and each role of a panel or network cost."""

from __future__ import annotations

from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.sections import ROWS, Table, short
from pytest_adaptive_eval.text import money, number


def members_table(study: EvaluationRecord) -> Table:
    """Return calls, tokens, seconds per call and price by model, then by role where there are several."""
    costs = study.costs
    spent = dict(list(costs.members.items())[:ROWS])
    roles = {f"as {role}": usage for role, usage in costs.roles.items() if usage.calls}
    if len(roles) > 1:
        spent |= roles
    rows = []
    for name, usage in spent.items():
        cost = costs.prices.get(name)
        if cost is None:
            price = "-"
        else:
            price = money(cost.money, cost.currency)
        tokens = (f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}")
        seconds_per_call = usage.seconds / max(usage.calls, 1)
        rows.append((short(name), f"{usage.calls:,}", *tokens, number(seconds_per_call, 3), price))
    heads = ("model or role", "calls", "tokens read", "tokens written", "seconds per call", "price")
    return Table("Cost by model", heads, rows, "Replies of an earlier run count with their original cost.")
