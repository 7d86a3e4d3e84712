"""Fields of a record that follow from an interview's answers alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_adaptive_eval.claims.categories import by_category
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.inference.sampling import sampling_error, standard_error
from pytest_adaptive_eval.records.parts import LevelsRecord


def findings(result: SessionResult, abilities: Sequence[Sequence[float]] | None) -> dict[str, Any]:
    """Return the fields of an interview's record that follow from the answers; abilities have shape (t, D)."""
    log, bank = result.log, result.bank
    drawn = bool(len(log)) and not result.invalid
    scored = bool(result.scored)
    estimates = {
        "theta": result.theta,
        "standard_error": result.standard_error,
        "accuracy": result.interval(),
        "ability_sampling_error": result.sampling_error,
        "accuracy_error": standard_error(log) if drawn else None,
        "accuracy_sampling_error": sampling_error(log.scores) if scored else None,
        "accuracy_model": result.model,
        "accuracy_conformal": result.conformal,
        "levels": _levels(result),
    }
    if not scored:  # without any score, estimates repeat the prior
        estimates = dict.fromkeys(estimates)
    return estimates | {
        "asked": result.asked,
        "scored": result.scored,
        "size": len(bank),
        "statuses": dict(result.statuses),
        "stop": result.stop.name if result.stop else "",
        "stop_sentence": result.stop.value if result.stop else "",
        "categories": [
            row if row.scored else replace(row, accuracy=None, standard_error=None)
            for row in by_category(bank, log, abilities, drawn=drawn)
        ],
        "misfit": result.misfit,
        "error": result.error,
    }


def _levels(result: SessionResult) -> LevelsRecord | None:
    ladder, ladder_policy = result.ladder, result.climb
    if ladder is None or ladder_policy is None or result.fault:
        return None
    from pytest_adaptive_eval.ladder.result import crossing

    accuracies = []
    for accuracy in ladder.accuracies.tolist():
        accuracies.append(None if np.isnan(accuracy) else accuracy)
    asked = [len(level) for level in ladder.scores]
    levels = LevelsRecord(
        ladder.cap,
        accuracies,
        asked,
        ladder_policy.queries,
        guess=list(ladder_policy.floors(len(ladder.scores))),
    )
    if not ladder_policy.last_level_fault:
        levels.last_level = ladder.last_level
        levels.climb = str(ladder)
    with suppress(ConfigError):  # a policy that ends levels early measures no area
        levels.auc = ladder_policy.area(ladder, 0.95)
        if ladder_policy.paired:
            levels.half = crossing(ladder)
    return levels
