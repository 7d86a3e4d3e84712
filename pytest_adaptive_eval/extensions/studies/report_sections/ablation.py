"""The report section of an ablation: the changes of each variant with their intervals."""

from __future__ import annotations

from operator import sub
from statistics import fmean

import msgspec

from pytest_adaptive_eval.extensions.studies.network.ablation_kind import AS_WRITTEN, CONFIDENCE, over_seeds
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.sections import ROWS, Section, Table, short
from pytest_adaptive_eval.text import number


class AblationAccount(msgspec.Struct):
    """Values by variant, quantity and seed, of the network as written first."""

    values: dict[str, dict[str, list[float]]] = {}


def tables(_: EvaluationRecord, account: AblationAccount) -> list[Table]:
    """Return the table of the changes of quantities that both have."""
    before = account.values.get(AS_WRITTEN, {})
    rows = []
    for variant, values in [*account.values.items()][1:]:
        for quantity, new in values.items():
            old = before.get(quantity, ())
            if len(old) == len(new) > 1:
                change = over_seeds([*map(sub, new, old)], CONFIDENCE).in_words()
                rows.append((short(variant), short(quantity), number(fmean(old)), number(fmean(new)), change))
    heads = ("variant", "quantity", "as written", "variant's", "change, 95 %")
    note = "Means over seeds, and Student's interval of the differences by seed, not corrected for several."
    return [Table("Changes", heads, rows[:ROWS], note)]


SECTION = Section(AblationAccount, tables)
