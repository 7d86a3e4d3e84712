"""Whether a bank's model describes the answers of an interview."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.person_fit import PersonFit, lz_star
from pytest_adaptive_eval.text import number

CONFIDENCE = 0.995  #: Confidence of the draws' bounds outside which the bank's projection is refuted.


def misfit_reason(result: SessionResult) -> str:
    """Return why the bank's model does not describe this subject; empty if nothing contradicts it."""
    if result.projected is None or not result.asked:
        return ""
    interval = None if result.invalid else interval_of_draws(result.log, CONFIDENCE)
    if interval is not None and not interval.low <= result.projected[0] <= interval.high:
        low, high = number(interval.low), number(interval.high)
        return f"the bank projects an accuracy of {number(result.projected[0])}, and the draws show [{low}, {high}]"
    fit = person_fit(result)
    if fit is not None and bool(fit.flag()[0]):
        return (
            "the answers are unlike the bank's population (person fit lz*  "
            f"{fit.statistic[0]:.1f}, one in {1 / max(float(fit.p_value[0]), 1e-6):.0f} is so low)"
        )
    return ""


def with_misfit_note(result: SessionResult) -> SessionResult:
    """Return the result with a note on the reason of `misfit_reason`."""
    if not (reason := misfit_reason(result)):
        return result
    return replace(result, notes=(*result.notes, f"{reason}; verdicts by draws hold all the same"))


def person_fit(result: SessionResult) -> PersonFit | None:
    """Return the person fit at the final ability; None on an uncalibrated bank."""
    if result.theta is None:
        return None
    bank, items = result.bank, result.log.items
    A, d = bank.discrimination[items][None], bank.intercept[items][None]
    c = None if bank.asymptote is None else bank.asymptote[items][None]
    return lz_star(result.log.scores[None], irt.probability(np.array([result.theta]), A, d, c), A, c)
