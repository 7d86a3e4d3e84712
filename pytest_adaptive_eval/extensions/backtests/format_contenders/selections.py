"""Register adaptive interviews in formats, and the selections of pairs that they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pytest_adaptive_eval.calibration.subsets import anchors, evolved, item_total
from pytest_adaptive_eval.extensions.backtests.format_contender import (
    Fold,
    FormatContender,
    FormatInterviewResult,
    mean_score,
)
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.multimodal import CumulativeInformation, Form
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview
from pytest_adaptive_eval.ties import first_largest, tie_ranks
from pytest_adaptive_eval.types import Array

Results = dict[str, FormatInterviewResult]

#: An adaptive interview estimates anew after so many answers, or after this part of the answers so far if larger.
STEP, PART = 4, 25


def _in_formats(form: Form, *, adaptive: bool, whole: bool, worth: bool, likelihood: bool) -> Callable[[Fold], Results]:
    """Return the function that interviews a left-out subject by the M2 or M3 fit to the other subjects."""

    def interview(fold: Fold) -> Results:
        fit = fold.multimodal_fit(form, likelihood=likelihood)
        rated = np.ones(len(fold.items), dtype=bool)  # items over which accuracies are estimated
        if worth:
            rated = fold.quality().value >= np.median(fold.quality().value)
        results = {}
        for name, budget in fold.budgets.items():
            weights = fold.quality().worth(-(-budget // fold.formats)) if worth else None
            session = FormatInterview(fit.items, fit.population, whole=whole, adaptive=adaptive, worth=weights)
            _administer(session, fold.target_scores, budget)
            p = fit.items.probability(session.abilities.theta)[0, rated]
            results[name] = FormatInterviewResult(
                session.pairs, float(p.mean()), float(p[:, fold.modalities.fullest].mean())
            )
        return results

    return interview


def _administer(session: FormatInterview, scores: Array, budget: int) -> None:
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
        information = CumulativeInformation.start(np.eye(D))
        order: list[int] = []
        remaining = np.ones(len(d), dtype=bool)
        sizes = {name: min(budget, len(d)) for name, budget in fold.budgets.items()}
        results: Results = {}
        for size in sorted(set(sizes.values())):
            while len(order) < size:
                w = irt.weight(irt.probability(state.theta, A, d))[0]
                for _ in range(min(max(STEP, estimated // PART), size - len(order))):
                    best = int(first_largest(np.where(remaining, information.gain(w, A), -1.0)))
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
    order = tie_ranks(-item_total(fold.train_pairs)).argsort(kind="stable")
    return fold.means(lambda budget: order[:budget])


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


def _fitted(name: str, summary: str, **settings: bool) -> Iterator[FormatContender]:
    """Yield a contender of M2 and one of M3, each as it is and with the filter of items."""
    settings = {"adaptive": True, "whole": True, "likelihood": False} | settings
    forms: tuple[tuple[Form, str], ...] = (("m2", "Fisher, Eq. 9"), ("m3", "D-optimal, Eq. 11"))
    for form, rule in forms:
        for suffix, filtered in (("", ""), ("+worth", ", filtered")):
            interview = _in_formats(form, worth=bool(suffix), **settings)
            text = f"{form.upper()}, {rule}{summary}{filtered}"
            yield FormatContender(f"{form}{name}{suffix}", text, interview, tested=True)


REGISTERED = (
    FormatContender("random", "uniform draws of pairs, mean score", _random, drawn=True, uniform=True),
    FormatContender("irt", "2PL, a pair for an item, most information", _by_pair_model("2pl")),
    FormatContender("mirt", "MIRT, a pair for an item, D-optimal", _by_pair_model("mirt")),
    FormatContender("anchors", "near centres of clusters of MIRT items (tinyBenchmarks)", _anchors),
    FormatContender("flasheval", "evolutionary search of pairs (FlashEval)", _evolved),
    FormatContender("item-total", "pairs that correlate most with the subjects' means", _item_total),
    *_fitted("", ", whole items"),
    *_fitted("-likelihood", ", fitted without priors", likelihood=True),
    *_fitted("-static", ", one form for all", adaptive=False),
    *_fitted("-pairs", ", single pairs, one form", adaptive=False, whole=False),
)
