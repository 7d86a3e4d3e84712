"""Whether a bank's model describes the answers of an interview, and what is predicted of a subject that it does not."""

from __future__ import annotations

import math

import numpy as np

from pytest_adaptive_eval.inference.betting import excludes, interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.person_fit import PersonFit, lz_star, refitted
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import counted, number

CONFIDENCE = 0.995  #: Confidence of the draws' bounds outside which the bank's projection is refuted.
#: Level at which the answers are too unlikely. At .01, ordinary models of public matrices are flagged 1 in 10 times.
LEVEL = 1e-4
#: Largest distance of an ability from the mean of the bank's population, in its standard deviations. An interview that
#: chooses items by the ability of a reversed subject ends with items that are all right, or all wrong, and fit it.
FURTHEST = 3.0
#: Multiple of the standard error that an ability beyond `FURTHEST` has to exceed it by (one-sided .05) ..
EXCESS = 1.645
#: .. unless its standard error is above this, since answers that are all alike give an ability no end.
WIDEST = 0.5


def misfit_reason(
    bank: ItemBank,
    log: DesignLog,
    theta: list[float],
    standard_error: list[float],
    projected: float,
    *,
    drawn: bool,
    has_prior: bool = True,
) -> str:
    """Return why the bank's model does not describe a subject; empty if nothing contradicts it.

    Args:
        log: All answers, at least one.
        theta, standard_error: Ability and its standard error, length D each.
        projected: Accuracy by the bank's model.
        drawn: Whether the items were drawn with known chances.
        has_prior: Whether the ability has a prior. Without one, a few answers that are all right or all wrong put it at
            the estimator's bound, and its distance from the population's mean says nothing.
    """
    if drawn and excludes(log, projected, CONFIDENCE):
        interval = interval_of_draws(log, CONFIDENCE)
        low = number(interval.low)
        high = number(interval.high)
        return f"the bank projects an accuracy of {number(projected)}, and the draws show [{low}, {high}]"
    unlike = "the answers are unlike the bank's population"
    fit = person_fit(bank, log, theta)
    if bool(fit.flag(LEVEL)[0]):
        rarity = 1 / max(float(fit.p_value[0]), 1e-6)
        return f"{unlike} (person fit lz* {fit.statistic[0]:.1f}, one in {rarity:.0f} is so low)"
    if not has_prior:
        return ""
    for ability, error in zip(theta, standard_error, strict=True):
        beyond = abs(ability) - FURTHEST
        if beyond > EXCESS * error or (beyond > 0 and error > WIDEST):
            distance = f"{number(abs(ability), 1)} ± {number(error, 1)} standard deviations"
            return f"{unlike} (the ability is {distance} {'above' if ability > 0 else 'below'} its mean)"
    return ""


def misfit_note(reason: str, answers: int, *, drawn: bool) -> str:
    """Return the note on a subject that the bank's model does not describe, by the reason."""
    basis = f"its accuracy and ability rest on {counted(answers, 'answer')}, by a model that does not describe them"
    return f"{reason}; {'verdicts by draws hold all the same' if drawn else basis}"


def person_fit(bank: ItemBank, log: DesignLog, theta: list[float]) -> PersonFit:
    """Return the person fit at the final ability on a calibrated bank."""
    items = log.items
    A = bank.discrimination[items][None]
    d = bank.intercept[items][None]
    c = None if bank.asymptote is None else bank.asymptote[items][None]
    return lz_star(log.scores[None], irt.probability(np.array([theta]), A, d, c), A, c)


def refitted_projection(bank: ItemBank, log: DesignLog, theta: list[float]) -> tuple[float, float]:
    """Return the accuracy of a subject that the bank's model does not describe, and its standard error.

    Answered items count with their scores. The other items count with predictions that fit the answers better than the
    bank's, see `refitted`. The error is the one of as many uniform draws, with the variance of the answers about the
    predictions.
    """
    items = log.items[None]
    scores = log.scores[None]
    predicted = refitted(bank.probability(np.array([theta])), items, scores)
    wrong = (scores - np.take_along_axis(predicted, items, axis=1))[~np.isnan(scores)]
    total = float(predicted.sum()) + float(wrong.sum())
    rest = 1.0 - len(wrong) / len(bank)
    spread = (float(wrong @ wrong) + 0.25) / (len(wrong) + 1)  # one surprise more than there was
    return min(max(total / len(bank), 0.0), 1.0), math.sqrt(spread / max(len(wrong), 1) * rest)
