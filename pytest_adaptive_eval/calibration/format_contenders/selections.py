"""Register adaptive interviews in formats, and the selections of pairs that they are compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.format_contender import (
    Fold,
    FormatContender,
    FormatInterviewResult,
    mean_score,
)
from pytest_adaptive_eval.calibration.subsets import anchors, evolved, item_total
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.multimodal import Form, Information
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview

__all__ = ["REGISTERED"]

Array = NDArray[np.float64]
Results = dict[str, FormatInterviewResult]

#: An adaptive interview estimates anew after so many answers, or after this part of the answers so far if larger.
STEP, PART = 4, 25


def _in_formats(form: Form, *, adaptive: bool, whole: bool) -> Callable[[Fold], Results]:
    """Return an interview by a fit of items in formats."""

    def interview(fold: Fold) -> Results:
        fit, quality = fold.multimodal_fit(form), fold.quality()
        better = quality.value >= np.median(quality.value)
        results = {}
        for name, budget in fold.budgets.items():
            worth = quality.worth(-(-budget // fold.formats))
            session = FormatInterview(fit.items, fit.population, whole=whole, adaptive=adaptive, worth=worth)
            _administer(session, fold.target_scores, budget)
            p = fit.items.probability(session.abilities.theta)[0, better]
            results[name] = FormatInterviewResult(
                session.pairs, float(p.mean()), float(p[:, fold.modalities.fullest].mean())
            )
        return results

    return interview


def _administer(session: FormatInterview, scores: Array, budget: int) -> None:
    """Administer pairs until the budget is spent or the session has no more."""
    while (remaining := min(budget, scores.size) - session.calls) > 0:
        batch: list[int] = []
        while len(batch) < min(remaining, max(STEP, session.calls // PART)):
            pairs = session.ask(remaining - len(batch)).tolist()
            if not pairs:
                break
            batch += pairs
        if not batch:
            return
        session.tell(scores[batch])


def _by_pair_model(model: str) -> Callable[[Fold], Results]:
    """Return an interview that takes a pair for an item: most information, D-optimal in more dimensions."""

    def interview(fold: Fold) -> Results:
        fit = fold.pair_fit(model)
        A, d, scores = fit.discrimination, fit.intercept, fold.target_scores[fold.answered_pairs]
        estimator, D = MAP(), A.shape[1]
        state, estimated = estimator.prior(1, D), 0
        information = Information.start(np.eye(D))
        order: list[int] = []
        remaining = np.ones(len(d), dtype=bool)
        sizes = {name: min(budget, len(d)) for name, budget in fold.budgets.items()}
        results: Results = {}
        for size in sorted(set(sizes.values())):
            while len(order) < size:
                w = irt.weight(irt.probability(state.theta, A, d))[0]
                for _ in range(min(max(STEP, estimated // PART), size - len(order))):
                    best = int(np.where(remaining, information.gain(w, A), -1.0).argmax())
                    remaining[best] = False
                    information.add(w[[best]], A[[best]])
                    order.append(best)
                estimated = len(order)
                state = estimator.estimate(scores[None, order], A[None, order], d[None, order], None, state)
            p = irt.probability(state.theta, A, d)[0]
            result = FormatInterviewResult(
                fold.answered_pairs[order], float(p.mean()), float(p[fold.in_fullest(fold.answered_pairs)].mean())
            )
            results |= {name: result for name, budget in sizes.items() if budget == size}
        return results

    return interview


def _random(fold: Fold) -> Results:
    rng = np.random.default_rng([fold.seed, fold.target])
    return fold.means(lambda budget: rng.choice(fold.target_scores.size, budget, replace=False))


def _item_total(fold: Fold) -> Results:
    value = item_total(fold.train_pairs)
    return fold.means(lambda budget: np.argsort(-value, kind="stable")[:budget])


def _anchors(fold: Fold) -> Results:
    fit = fold.pair_fit("mirt")
    points = np.c_[fit.discrimination, fit.intercept]
    results = {}
    for name, budget in fold.budgets.items():
        chosen, weight = anchors(points, min(budget, len(points)), fold.seed)
        pairs = fold.answered_pairs[chosen]
        fullest, scores = fold.in_fullest(pairs), fold.target_scores[pairs]
        results[name] = FormatInterviewResult(
            pairs, mean_score(scores, weight), mean_score(scores[fullest], weight[fullest])
        )
    return results


def _evolved(fold: Fold) -> Results:
    rng = np.random.default_rng([fold.seed, fold.target, 1])
    return fold.means(lambda budget: evolved(fold.train_pairs, budget, rng))


def _fitted(
    name: str, summary: str, form: Form, *, adaptive: bool, whole: bool, precedence: int = 1
) -> FormatContender:
    interview = _in_formats(form, adaptive=adaptive, whole=whole)
    return FormatContender(name, summary, interview, precedence=precedence)


REGISTERED = (
    FormatContender("random", "uniform draws of pairs, mean score", _random, drawn=True, uniform=True),
    FormatContender("irt", "2PL, a pair for an item, most information", _by_pair_model("2pl")),
    FormatContender("mirt", "MIRT, a pair for an item, D-optimal", _by_pair_model("mirt")),
    FormatContender("anchors", "near centres of clusters of MIRT items (tinyBenchmarks)", _anchors),
    FormatContender("flasheval", "evolutionary search of pairs (FlashEval)", _evolved),
    FormatContender("item-total", "pairs that correlate most with the subjects' means", _item_total),
    _fitted("m2-static", "M2, items in all formats, one form for all", "m2", adaptive=False, whole=True),
    _fitted("m2-adaptive", "M2, items in all formats", "m2", adaptive=True, whole=True),
    _fitted("m3-static", "M3, items in all formats, one form for all", "m3", adaptive=False, whole=True),
    _fitted("m3-adaptive", "M3, items in all formats", "m3", adaptive=True, whole=True, precedence=2),
    _fitted("m2-pairs", "M2, single pairs, one form for all", "m2", adaptive=False, whole=False),
    _fitted("m3-pairs", "M3, single pairs, one form for all", "m3", adaptive=False, whole=False),
)
