"""The report section of an ablation: the changes of each variant with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.reports.studies import ROWS, StudySection, Table, short
from pytest_adaptive_eval.reports.words import as_list, as_mapping, number_or_dash, plottable


def _tables(study: StudyRecord) -> list[Table]:
    account = as_mapping(study.account)
    rows = [_row(as_mapping(contrast)) for contrast in as_list(account.get("contrasts"))][:ROWS]
    heads = ("variant", "quantity", "as written", "variant's", "change, 95 %", "p", "seeds")
    note = (
        "Means over seeds; Student's interval of the differences by seed, and the two-sided p-value of Welch's t-test, "
        "which takes the values as independent. No correction for several quantities."
    )
    return [Table("Changes", heads, rows, note)]


def _row(contrast: Mapping[str, Any]) -> tuple[str, ...]:
    change = as_mapping(contrast.get("change"))
    estimate, low, high = (number_or_dash(plottable(change.get(name))) for name in ("estimate", "low", "high"))
    return (
        short(contrast.get("variant")),
        short(contrast.get("quantity")),
        *(number_or_dash(plottable(contrast.get(name))) for name in ("before", "after")),
        f"{estimate} [{low}, {high}]" if change else "-",
        number_or_dash(plottable(contrast.get("p_value"))),
        number_or_dash(plottable(contrast.get("seeds")), 0),
    )


REGISTERED = (StudySection("ablation", _tables),)
