"""Families of subjects: near-duplicates, and the number of subjects that a family counts for in a fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import pdtr

from pytest_adaptive_eval.calibration.quality import predicted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.types import Array, Bools

#: Cohen's kappa above which two subjects count as one model under two names.
SAME_MODEL = 0.75
#: Least number of common items for that: with fewer, different models may agree by chance.
FEWEST_COMMON = 30
#: Copies differ on at most this share of the items on which different models are expected to differ by the
#: difficulties, and such a small number has at most this probability.
ALIKE, LUCK = 0.5, 1e-6
#: Scores are rounded to this part of 1 for comparison.
STEPS = 20
#: Answers that correlate less with those of others do not follow the items' difficulties: those of networks that are
#: not trained yet reach .08 on 1100 items, those of weakly trained ones .24.
UNEXPLAINED = 0.15
#: Smallest variance of a response in a standardised residual.
VARIANCE_FLOOR = 0.02


def copies(responses: Responses) -> tuple[str, ...]:
    """Return for each subject the first one that answers nearly alike; itself if none does.

    Subjects are compared on the items that both have answered, `FEWEST_COMMON` or more; scores between 0 and 1 disagree
    by their distance (kappa with linear weights). If nearly all subjects are right on some items and wrong on others,
    all answers are alike. Copies must therefore also agree far beyond the agreement expected from the difficulties, see
    `ALIKE` and `LUCK`.
    """
    answered = ~np.isnan(responses.scores)
    complete = bool(answered.all())
    S = len(answered)
    number = np.full((S, S), float(answered.shape[1]))
    if not complete:
        number = _counts(answered, answered)
    common = np.maximum(number, 1.0)
    scores = np.round(responses.scores * STEPS) / STEPS
    levels = np.unique(scores[answered])
    disagreement, by_chance = np.zeros((2, *common.shape))
    for low, high in pairwise(levels):  # a distance is the sum of the widths of the levels between
        above = scores >= high
        # [i, j]: number of items on which i is above, of those that j has answered too
        if complete:
            alone = above.sum(axis=1, dtype=np.float64)[:, None]
        else:
            alone = _counts(above, answered)
        disagreement += (high - low) * (alone + alone.T - 2.0 * _counts(above, above)) / common
        mean = alone / common
        by_chance += (high - low) * (mean * (1.0 - mean.T) + (1.0 - mean) * mean.T)
    alike = by_chance - disagreement > SAME_MODEL * np.maximum(by_chance, 1e-9)
    same = np.triu(alike & (number >= FEWEST_COMMON), 1)
    names = list(responses.subjects)
    if same.any():
        fit = Recipe("1pl").fit_completely(responses.scores, _component_weights(same))
        right = np.where(answered, predicted(responses.scores, fit), 0.0)
        wrong = answered - right
        observed = disagreement * number
        expected = right @ wrong.T + wrong @ right.T
        same &= (observed < ALIKE * expected) & (pdtr(np.floor(observed), expected) < LUCK)
    for i, j in zip(*np.nonzero(same), strict=True):
        old = names[j]
        new = names[i]
        names = [new if name == old else name for name in names]
    return tuple(names)


def _counts(of: Bools, by: Bools) -> Array:
    """Return the number of columns in which a row of `of` (S, n) and one of `by` (S, n) are true, shape (S, S)."""
    first = of.astype(np.float32)  # single precision holds such numbers exactly
    second = first
    if by is not of:
        second = by.astype(np.float32)
    return (first @ second.T).astype(np.float64)


def _component_weights(same: Bools) -> Array | None:
    """Return weights, of mean 1, with which subjects that are linked by `same`, shape (S, S), weigh as one."""
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(same, directed=False)
    weights = family_weights(list(map(str, labels)))
    return _unless_one(weights / weights.mean())


def grouped(responses: Responses, firsts: Sequence[str] | None = None) -> Responses:
    """Return the responses with near-duplicate subjects in one family, and with weights; `firsts` are their `copies`.

    One model under two names, used for both calibration and test, makes every backtest look better than it is. Two
    subjects whose answers do not follow the difficulties, such as the untrained checkpoints of two training runs, may
    both give one constant answer, and do not merge families of several members.
    """
    families = list(responses.families)
    if firsts is None:
        firsts = copies(responses)
    for s, first in _duplicates(responses, firsts):
        old = families[s]
        new = families[first]
        families = [new if name == old else name for name in families]
    together = replace(responses, families=tuple(families))
    return replace(together, weights=effective_weights(together))


def _duplicates(responses: Responses, firsts: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of subjects that merge their families."""
    families = responses.families
    members = Counter(families)
    pairs = []
    for s, name in enumerate(firsts):
        first = responses.subjects.index(name)
        if s != first:
            pairs.append((s, first))
    unexplained: set[int] = set()
    if any(families[s] != families[first] for s, first in pairs):
        unexplained = _unexplained(responses)
    merging = []
    for s, first in pairs:
        several = min(members[families[s]], members[families[first]]) > 1
        if not several or s not in unexplained:
            merging.append((s, first))
    return merging


def _unexplained(responses: Responses) -> set[int]:
    """Return the subjects whose answers correlate at most `UNEXPLAINED` with the mean answers of other families."""
    scores = responses.scores
    families = np.array(responses.families)
    out = set()
    for s in range(len(scores)):
        others = scores[families != families[s]]
        if len(others):
            both = ~np.isnan(scores[s]) & ~np.isnan(others).all(axis=0)
        else:
            both = np.zeros(0, dtype=np.bool_)
        if both.sum() < FEWEST_COMMON:
            continue
        scored = scores[s, both]
        mean = np.nanmean(others[:, both], axis=0)
        spread = scored.std() * mean.std()
        if ((scored - scored.mean()) * (mean - mean.mean())).mean() <= UNEXPLAINED * spread:
            out.add(s)
    return out


def family_weights(families: Sequence[str]) -> Array:
    """Return the weight of each subject, shape (S,), with which every family weighs as one subject."""
    _, of, sizes = np.unique(list(families), return_inverse=True, return_counts=True)
    return np.asarray(1.0 / sizes[of])


def effective_weights(responses: Responses) -> Array | None:
    """Return the weight of each subject, shape (S,), with which a family weighs as its effective number of subjects.

    That number is ``m / (1 + (m - 1) r)`` for m members (Kish 1965), with r the mean correlation, over pairs of
    members, of the residuals of a Rasch fit in which each family weighs as one subject: near 1 for copies, and m for
    members that have nothing in common but their ability. None if every subject weighs 1.
    """
    weights = family_weights(responses.families)
    if _unless_one(weights) is None:
        return None
    scores = responses.scores
    p = predicted(scores, Recipe("1pl").fit_completely(scores, weights))
    answered = ~np.isnan(scores)
    residual = np.where(answered, scores - p, 0.0) / np.sqrt(np.maximum(p * (1.0 - p), VARIANCE_FLOOR))
    families = np.array(responses.families)
    for family in np.unique(families[weights < 1.0]):
        members = np.flatnonzero(families == family)
        e = residual[members]
        indicator = answered[members].astype(np.float64)
        pairs = np.triu_indices(len(members), 1)
        square = (e**2) @ indicator.T  # [i, j]: of i on the items that j has answered too
        correlation = (e @ e.T)[pairs] / np.sqrt(np.maximum((square * square.T)[pairs], 1e-12))
        alike = float(np.clip(correlation.mean(), 0.0, 1.0))
        weights[members] = 1.0 / (1.0 + (len(members) - 1) * alike)
    return weights


def _unless_one(weights: Array) -> Array | None:
    """Return the weights, or None if all are 1."""
    if (weights == 1.0).all():
        return None
    return weights
