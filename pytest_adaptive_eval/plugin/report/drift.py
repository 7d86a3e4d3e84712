"""The test of a watched evaluation, which says whether its level fell below that of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.text import guard

_PHASES: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")


def drift_reports(evaluation: EvaluationRecord) -> Iterator[pytest.TestReport]:
    """Yield the reports of the test of an evaluation, if that is watched.

    It is reported without being collected: under xdist, only the controller has the records of all evaluations.
    """
    drift = evaluation.drift
    if not drift.state:
        return
    file = evaluation.nodeid.partition("::")[0]
    name = f"{evaluation.name}-drift"
    for phase in _PHASES:
        failed = drift.fails and phase == "call"
        yield pytest.TestReport(
            f"{file}::{name}",
            (file, None, name),
            {},
            "failed" if failed else "passed",
            guard("; ".join(drift.alarms)) if failed else None,
            phase,
            user_properties=[("drift", drift.state)],
        )
