"""Fields of a record that follow from an interview's answers alone, and whether the bank's model describes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_adaptive_eval.claims.categories import by_category
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.inference.sampling import standard_error
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.person_fit import PersonFit, lz_star
from pytest_adaptive_eval.text import number


def findings(result: SessionResult, abilities: Sequence[Sequence[float]] | None) -> dict[str, Any]:
    """Return the fields of an `InterviewRecord` that follow from the answers; abilities have shape (t, D)."""
    log, bank = result.log, result.bank
    drawn = bool(len(log)) and not result.invalid
    interval, model, conformal = result.interval(), result.model, result.conformal
    return {
        "asked": result.asked,
        "scored": result.scored,
        "size": len(bank),
        "statuses": dict(result.statuses),
        "stop": result.stop.name if result.stop else "",
        "stop_sentence": result.stop.value if result.stop else "",
        "theta": result.theta,
        "standard_error": result.standard_error,
        "accuracy": interval.to_json() if interval else None,
        "accuracy_error": standard_error(log) if drawn else None,
        "accuracy_model": model.to_json() if model else None,
        "accuracy_conformal": conformal.to_json() if conformal else None,
        "categories": [category.to_json() for category in by_category(bank, log, abilities, drawn=drawn)],
        "levels": _levels(result),
        "error": result.error,
    }


def _levels(result: SessionResult) -> dict[str, Any] | None:
    ladder, ladder_policy = result.ladder, result.climb
    if ladder is None or ladder_policy is None or result.fault:
        return None
    from pytest_adaptive_eval.ladder.result import crossing

    fields: dict[str, Any] = {
        "queries": ladder_policy.queries,
        "cap": ladder.cap,
        "asked": [len(level) for level in ladder.scores],
        "accuracy": [None if np.isnan(a) else a for a in ladder.accuracies.tolist()],
        "last_level": None,
    }
    if not ladder_policy.last_level_fault:
        fields |= {"last_level": ladder.last_level, "climb": str(ladder)}
    if guess := ladder_policy.floors(len(ladder.scores)):
        fields["guess"] = guess
    with suppress(ConfigError):  # a policy that ends levels early measures no area
        fields["auc"] = ladder_policy.area(ladder, 0.95).to_json()
        if ladder_policy.paired:
            fields["half"] = crossing(ladder).to_json()
    return fields


CONFIDENCE = 0.995  #: Confidence of the draws' bounds outside which the bank's projection is refuted.


def misfit_reason(result: SessionResult) -> str:
    """Return why the bank's model does not describe this subject; empty if nothing contradicts it."""
    if result.projected is None or not result.asked:
        return ""
    interval = None if result.invalid else result.interval_of(result.log, CONFIDENCE)
    if interval is not None and not interval.low <= result.projected[0] <= interval.high:
        low, high = number(interval.low), number(interval.high)
        return f"the bank projects an accuracy of {number(result.projected[0])}, and the draws show [{low}, {high}]"
    fit = person_fit(result)
    if fit is not None and bool(fit.flag()[0]):
        return (
            "the answers do not look like those of the bank's population (person fit lz* "
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
