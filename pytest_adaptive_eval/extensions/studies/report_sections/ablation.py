"""The report section of an ablation: the changes of each variant with their intervals."""

from __future__ import annotations

import msgspec

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.sections import ROWS, Section, Table, short
from pytest_adaptive_eval.reports.words import number_or_dash


class _Contrast(msgspec.Struct):
    """See `extensions.studies.network.ablation_kind.Contrast`."""

    variant: str
    quantity: str
    before: float | None
    after: float | None
    change: Interval | None
    p_value: float | None
    seeds: int


class _Account(msgspec.Struct):
    contrasts: list[_Contrast] = []


def _tables(_: EvaluationRecord, account: _Account) -> list[Table]:
    rows = [_row(contrast) for contrast in account.contrasts[:ROWS]]
    heads = ("variant", "quantity", "as written", "variant's", "change, 95 %", "p", "seeds")
    note = (
        "Means over seeds; Student's interval of the differences by seed, and the two-sided p-value of Welch's t-test, "
        "which takes the values as independent. No correction for several quantities."
    )
    return [Table("Changes", heads, rows, note)]


def _row(contrast: _Contrast) -> tuple[str, ...]:
    return (
        short(contrast.variant),
        short(contrast.quantity),
        number_or_dash(contrast.before),
        number_or_dash(contrast.after),
        contrast.change.in_words() if contrast.change else "-",
        number_or_dash(contrast.p_value),
        number_or_dash(contrast.seeds, 0),
    )


SECTION = Section(_Account, _tables)
