"""Fit a bank's predictor, and choose the designs of its interviews by their error on held-out families."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.families import family_weights
from pytest_adaptive_eval.calibration.quality import predicted
from pytest_adaptive_eval.calibration.recipe import PartFits
from pytest_adaptive_eval.calibration.replay import folds, replay_items
from pytest_adaptive_eval.cat.assisted import curves, parts
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.irt.prediction import LEAST_VARIANCE, Design, Evidence, Predictor
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.ties import first_largest, first_smallest, tie_ranks
from pytest_adaptive_eval.types import Array, Ints

#: Shares of the bank at which designs are chosen.
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.2)
#: With fewer families there is no predictor.
FEWEST_FAMILIES = 5
#: Leading components that are kept of the residuals, and of the predicted scores when a form is made.
COMPONENTS = 32
#: Components whose square is a smaller share of the largest one are left out.
NEGLIGIBLE = 1e-12
#: Share of the bank up to which the form is greedy; behind it the items stand by what each would lower at that point.
GREEDY = 0.3
#: Folds of families, and their seed.
FOLDS, SEED = 5, 20240603
#: Weight of the residuals, shift, slope, and noise, from the item response model alone to the most of the residuals.
SETTINGS = ((0.0, 0.0, 0.0, 1.0), (0.2, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0), (1.0, 0.05, 1.0, 2.0))
#: Selector of the first items and share of the uniform draws.  Those that rank best come first: items that are chosen
#: for their error alone rank worse, as uniform draws differ between subjects.
DRAWS = (("variance", 0.0), ("form", 0.0), ("variance", 0.5), ("form", 0.5), ("form", 1.0))
#: Draws of the policy `form`.
FORM = DRAWS[1]
#: An earlier entry of `DRAWS` is preferred if its error is within so many standard errors, over families, of the best.
MARGIN = 1.0
#: Weights of the difference estimator.
DESIGN_WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
#: Standard deviations of a subject's own shift by which forms are made.
FORM_SHIFTS = (0.05, 0.2)


class Designs(NamedTuple):
    """Result of `choose_designs`.

    Args:
        designs: Of `estimate` and `form` at each count.
        shift: Standard deviation of a subject's own shift by which the form is made.
        apart: Choices without the families of one fold, by the remaining subjects. The errors of the chosen designs are
            the smallest of many, so a new family has larger errors. A conformal table of families that chose their own
            designs would cover too little.
    """

    designs: tuple[Design, ...]
    shift: float
    apart: Mapping[tuple[str, ...], Designs] = MappingProxyType({})

    def bank(self, fit: Calibration, responses: Responses, most: int | None = None) -> ItemBank:
        """Return a bank without texts, with the predictor of a fit to the responses; see `form_orders` for `most`.

        If these responses leave out one fold, its designs are the ones that they chose.
        """
        chosen = self.apart.get(responses.subjects, self)
        [fitted] = fit_predictors(fit, responses, [chosen.shift], most)
        predictor = replace(fitted, designs=chosen.designs)
        return replace(fit.bank("bank", responses.items), predictor=predictor)


def _leading(rows: Array) -> Array:
    """Return at most `COMPONENTS` rows, the largest first, that have nearly the same products of columns."""
    if len(rows) <= COMPONENTS:
        return rows
    few = len(rows) <= rows.shape[1]
    if few:
        products = rows @ rows.T
    else:
        products = rows.T @ rows
    squares, directions = np.linalg.eigh(products)  # in rising order
    components = np.flatnonzero(squares > NEGLIGIBLE * squares[-1])[: -COMPONENTS - 1 : -1]
    kept_directions = directions[:, components].T
    if few:
        return np.asarray(kept_directions @ rows)
    return np.asarray(np.sqrt(squares[components])[:, None] * kept_directions)


def fit_predictors(
    fit: Calibration, responses: Responses, shifts: Sequence[float], most: int | None = None
) -> list[Predictor]:
    """Return a predictor without designs for each standard deviation of a subject's own shift.

    Each family weighs as one subject. For `most` see `form_orders`.
    """
    scores = responses.scores
    w = family_weights(responses.families)
    root = np.sqrt(w / w.sum())[:, None]
    p = predicted(scores, fit)
    mean = np.asarray((root**2 * p).sum(axis=0))
    level = (mean - mean.mean()) / max(float(mean.std()), 1e-9)
    residuals = _leading(np.where(np.isnan(scores), 0.0, scores - p) * root)
    rows = np.concatenate([residuals, _leading((p - mean) * root), [np.ones_like(level), level]])
    scales = np.ones((len(shifts), len(rows)))
    scales[:, -2:] = np.asarray(shifts)[:, None]
    orders = form_orders(rows, np.maximum(mean * (1.0 - mean), LEAST_VARIANCE), scales, most)
    stored_residuals = residuals.astype("<f4").astype(float)
    stored_level = level.astype("<f4").astype(float)
    return [Predictor(stored_residuals, stored_level, order) for order in orders]


def form_orders(rows: Array, noise: Array, scales: Array, most: int | None = None) -> Ints:
    """Return all items; each most lowers the variance of the mean score after the items before it. Shape (q, n).

    Args:
        rows: Shape (m, n). Z of scores ``Z' a + e``, with a ~ N(0, I), before it is scaled.
        noise: Shape (n,). Variance of e.
        scales: Shape (q, m). Factors of the rows, for each of q orders.
        most: Length up to which the order is greedy, if that is less than a share of `GREEDY`. The items behind are
            ordered by what each would lower at that point.
    """
    n = rows.shape[1]
    greedy = max(1, round(GREEDY * n))
    if most is not None:
        greedy = min(greedy, most)
    means = rows.mean(axis=1)
    return np.stack([_form_order(rows, noise, own_scales, means, greedy) for own_scales in scales])


def _form_order(rows: Array, noise: Array, scales: Array, means: Array, greedy: int) -> Ints:
    """Return all items as `form_orders` does for one order, shape (n,); the first `greedy` are greedy."""
    n = rows.shape[1]
    spread = noise + scales**2 @ rows**2  # variance of each score
    shared = (scales**2 * means) @ rows + noise / n  # covariance with the mean
    inverse = np.eye(len(rows))
    order = np.empty(n, dtype=np.int64)
    taken = np.zeros(n, dtype=bool)
    gain = np.empty(n)
    for k in range(greedy):
        np.square(shared, out=gain)
        gain /= spread
        np.copyto(gain, -1.0, where=taken)
        order[k] = item = int(first_largest(gain))
        taken[item] = True
        root = float(spread[item]) ** 0.5
        direction = inverse @ (scales * rows[:, item] / root)
        inverse -= direction[:, None] * direction
        along = (scales * direction) @ rows
        np.multiply(along, float(shared[item]) / root, out=gain)
        shared -= gain
        spread -= np.square(along, out=along)
        np.maximum(spread, noise, out=spread)
    rest = np.flatnonzero(~taken)
    order[greedy:] = rest[tie_ranks(-(shared**2 / spread)[rest]).argsort(kind="stable")]
    return order


def _interviewed(
    bank: ItemBank, predictor: Predictor, ordered: Ints, tails: Ints, scores: Array, designs: Sequence[Design]
) -> Array:
    """Return accuracies (designs, S, 2) by the model and by the difference estimator.

    The designs have the same draws: items of `ordered` (S, t) first, then the rest in the order of `tails`.
    """
    count = designs[0].count
    estimator = POLICIES["estimate"].estimator
    chosen = designs[0].chosen(count)
    items = np.empty((len(scores), count), dtype=np.int64)
    items[:, :chosen] = ordered[:, :chosen]
    free = np.ones((len(scores), len(bank)), dtype=bool)
    np.put_along_axis(free, items[:, :chosen], values=False, axis=1)
    for s, tail in enumerate(tails):  # at most `chosen` of the first `count` are not free
        items[s, chosen:] = tail[:count][free[s, tail[:count]]][: count - chosen]
    asked = np.take_along_axis(scores, items, axis=1)
    first = curves(bank, estimator, items[:, :chosen], asked[:, :chosen])
    if chosen < count:
        estimated = curves(bank, estimator, items, asked)
    else:
        estimated = first
    whole = by_first = Evidence(predictor, designs, estimated, items, asked)
    if chosen < count:
        by_first = Evidence(predictor, designs, first, items[:, :chosen], asked[:, :chosen])
    return np.array([np.stack(parts(design, whole, by_first)[:2], axis=1) for design in designs])


def choose_designs(
    responses: Responses,
    fits_of_parts: PartFits,
    counts: Sequence[int],
    *,
    seed: int = SEED,
    progress: Tell = lambda _: None,
) -> Designs:
    """Choose the designs of `estimate` and `form` at each count, and the shift by which the form is made.

    The families of a fold are interviewed with items calibrated on the others; each weighs as one subject.

    Args:
        responses: Of at least two families; see `FEWEST_FAMILIES`.
    """
    counts = sorted(set(counts))
    scores, (S, n) = responses.scores, responses.scores.shape
    truth = np.nanmean(scores, axis=1)
    fold = folds(responses.families, min(FOLDS, len(set(responses.families))), np.random.default_rng(seed))
    accuracies: dict[tuple[float, Design], Array] = {}
    parts_of = [responses.of(np.flatnonzero(fold != f)) for f in range(fold.max() + 1)]
    calibrations = [fits_of_parts(learn) for learn in parts_of]
    banks = [fit.bank("bank", responses.items) for fit in calibrations]
    adaptive = replace(POLICIES["estimate"], assisted=False, budget=counts[-1])
    chosen_items = replay_items(banks, fold, adaptive, scores, seeds=[seed + s for s in range(S)])
    for f, (learn, fit, bank) in enumerate(zip(parts_of, calibrations, banks, strict=True)):
        progress(f"choosing the draws of estimate and form, fold {f + 1} of {len(banks)}")
        tested = np.flatnonzero(fold == f)
        tails = np.stack([np.random.default_rng([seed, int(s)]).permutation(n) for s in tested])
        predictors = fit_predictors(fit, learn, FORM_SHIFTS, most=counts[-1])
        ordered: dict[str, dict[float, Ints]] = {"variance": {FORM_SHIFTS[0]: chosen_items[tested]}, "form": {}}
        for form_shift, predictor in zip(FORM_SHIFTS, predictors, strict=True):
            ordered["form"][form_shift] = np.tile(predictor.order[: counts[-1]], (len(tested), 1))
        for count, (selector, uniform) in product(counts, DRAWS):
            designs = []
            for setting in SETTINGS:
                designs.append(Design("estimate", count, selector, uniform, *setting))
            totals = None
            for form_shift, first in ordered[selector].items():
                if totals is None or designs[0].chosen(count):  # uniform draws alone are the same with every form
                    totals = _interviewed(bank, predictors[0], first, tails, scores[tested], designs)
                for design, estimates in zip(designs, totals, strict=True):
                    accuracies.setdefault((form_shift, design), np.empty((S, 2)))[tested] = estimates
    by_subjects = {}
    for f, learn in enumerate(parts_of):
        others = fold != f
        of_others = {key: estimates[others] for key, estimates in accuracies.items()}
        by_subjects[learn.subjects] = _best(of_others, truth[others], learn.families, counts)
    return _best(accuracies, truth, responses.families, counts)._replace(apart=by_subjects)


class _Rated(NamedTuple):
    """A design, and its error in each family."""

    design: Design
    errors: Array

    @property
    def draws(self) -> tuple[str, float]:
        """The design's selector and its share of uniform draws, as in `DRAWS`."""
        return self.design.selector, self.design.uniform


def _rated(
    accuracies: dict[tuple[float, Design], Array], truth: Array, families: Sequence[str]
) -> dict[tuple[float, int], list[_Rated]]:
    """Return designs of every weight with their errors, by the shift of the form and the count."""
    weights = family_weights(families)
    _, of = np.unique(list(families), return_inverse=True)
    rated: dict[tuple[float, int], list[_Rated]] = {}
    for (form_shift, design), estimates in accuracies.items():
        for weight in DESIGN_WEIGHTS if design.uniform else (0.0,):
            mixed = np.clip(estimates[:, 0] + weight * (estimates[:, 1] - estimates[:, 0]), 0.0, 1.0)
            errors = np.asarray(np.bincount(of, weights * np.abs(mixed - truth)), dtype=np.float64)
            chosen = replace(design, weight=weight, error=float(errors.mean()))
            rated.setdefault((form_shift, design.count), []).append(_Rated(chosen, errors))
    return rated


def _best(
    accuracies: dict[tuple[float, Design], Array], truth: Array, families: Sequence[str], counts: Sequence[int]
) -> Designs:
    """Return the best designs at each count, and the shift of the form."""
    rated = _rated(accuracies, truth, families)
    forms: dict[float, list[_Rated]] = {}
    for form_shift, count in product(FORM_SHIFTS, counts):
        of_form = []
        for candidate in rated[form_shift, count]:
            if candidate.draws == FORM:
                of_form.append(candidate)
        forms.setdefault(form_shift, []).append(_smallest(of_form))

    def relative_error(form_shift: float) -> float:
        """Return the sum of errors relative to the first form's, which weighs every count the same."""
        pairs = zip(forms[form_shift], forms[FORM_SHIFTS[0]], strict=True)
        return sum(candidate.design.error / max(other.design.error, 1e-12) for candidate, other in pairs)

    shift = FORM_SHIFTS[int(first_smallest(list(map(relative_error, FORM_SHIFTS))))]
    designs = []
    for candidate in forms[shift]:
        designs.append(replace(candidate.design, policy="form"))
    for count in counts:
        adaptive = []
        for candidate in rated[FORM_SHIFTS[0], count]:
            if candidate.design.selector == "variance":
                adaptive.append(candidate)
        fixed = []
        for candidate in rated[shift, count]:
            if candidate.design.selector == "form":
                fixed.append(candidate)
        designs.append(_preferred([*adaptive, *fixed]))
    return Designs(tuple(designs), shift)


def _smallest(rated: Iterable[_Rated]) -> _Rated:
    candidates = list(rated)
    return candidates[int(first_smallest([candidate.design.error for candidate in candidates]))]


def _preferred(rated: Sequence[_Rated]) -> Design:
    """Return the best design of the first of `DRAWS` whose error is within `MARGIN` standard errors of the smallest."""
    least = _smallest(rated)
    for draws in DRAWS:
        best = _smallest(candidate for candidate in rated if candidate.draws == draws)
        more = best.errors - least.errors
        if more.mean() <= MARGIN * more.std(ddof=1) / len(more) ** 0.5:
            return best.design
    return least.design
