"""Checks of a calibrated bank against its responses, and the sentences that refuse it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.recipe import ENGINES, Recipe
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.text import Tell, counted, number
from pytest_adaptive_eval.ties import first_smallest, tie_ranks
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Share of the responses held out at a time, its seed, and the seed of the choice of dimensions.
HELD_OUT, HELD_OUT_SEED, CHOOSING_SEED = 0.1, 20240601, 20240602
#: Number of responses held out in all, one tenth after the other, if there are so many.
ENOUGH_HELD_OUT = 5000
#: Standard errors by which a bank has to predict better than equal items would.
CLEARLY = 1.3
#: Numbers of an array that are computed at once, at most.
CELLS = 1 << 22
#: A bank may predict held-out responses this much worse than a converged Rasch fit, in nats a response.
RASCH_MARGIN = 0.05
#: Largest typical posterior standard deviation of a difficulty, in units of their spread.
SPREAD_FACTOR = 3.0
#: Smaller slopes, in logits per standard deviation of ability, do not separate subjects.
TINY_SLOPE = 0.1
#: Above this share of negative slopes their reason is given.
MANY_NEGATIVE = 0.05
#: A correlation of so many standard errors is not due to chance.
CLEAR_CORRELATION = 2.0
#: Suspects named in a warning.
SHOWN = 5
#: Numbers of subjects per item below which a fit is refused, and below which a warning is given.
FEWEST_SUBJECTS, FEW_SUBJECTS = 5, 20
#: Mean squares of the weighted residuals outside of these bounds are misfit (Wright & Linacre 1994).
INFIT = (0.7, 1.3)
#: They must also differ from 1 by this many standard errors under the model.
INFIT_ERRORS = 3.0


@dataclass(frozen=True, slots=True)
class Quality:
    """Result of the checks of a bank.

    Args:
        problems: Sentences that refuse the bank; a bank without any is trusted.
        observed: Share of the responses that are not missing.
        log_loss: Held-out negative log-likelihood per response, in nats: of the ``bank``, of each subject's own ``mean
            accuracy``, see `alike`, and of a converged ``rasch`` fit. Empty if nothing was held out, or the fit was
            interrupted.
        slopes: Share of items with ``negative`` and ``tiny`` slopes.
        extreme: Number of items that all subjects got right, or all wrong.
        misfit: Items of scores 0 or 1 whose infit lies clearly outside `INFIT`, worst first, at most twenty.
        details: Engine, iterations and convergence of the fit.
        suspects: Items whose correlation with the others is negative beyond chance, as with wrong keys, and the
            standard errors of that, the clearest first.
    """

    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    subjects: int
    items: int
    observed: float
    log_loss: dict[str, float]
    slopes: dict[str, float]
    extreme: int
    misfit: tuple[str, ...]
    misfits: int
    details: dict[str, Any] = field(default_factory=dict)
    suspects: dict[str, float] = field(default_factory=dict)

    @property
    def trusted(self) -> bool:
        """Whether the bank has passed every check."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Return the calibration report of the bank."""
        return {"trusted": self.trusted, **asdict(self)}


def losses(scores: Array, p: Array) -> Array:
    """Return the negative log-likelihood of each response, in nats."""
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    return np.asarray(-(scores * np.log(q) + (1.0 - scores) * np.log1p(-q)))


def prior_sd(given_parameters: bool) -> float:
    """Return the ability prior's standard deviation, in logits; wide for given parameters of unknown scale."""
    if given_parameters:
        return 10.0
    return 1.0


def predicted(scores: Array, bank: Calibration, sd: float = 1.0) -> Array:
    """Return predicted scores (S, n) at the posterior modes, with standard deviation `sd` of the ability prior."""
    S, n = scores.shape
    A = bank.discrimination
    d = bank.intercept
    c = None
    if bank.guess.any():
        c = bank.guess
    prior = MAP(sd=sd)
    rows = max(1, CELLS // (n * A.shape[1]))
    out = np.empty((S, n))
    for s in range(0, S, rows):
        part = scores[s : s + rows]
        answered = np.flatnonzero(~np.isnan(part).all(axis=0))  # items that anybody answered
        k = len(part), len(answered)
        guess = None
        if c is not None:
            guess = np.broadcast_to(c[answered], k)
        estimate = prior.estimate(
            part[:, answered],
            np.broadcast_to(A[answered], (*k, A.shape[1])),
            np.broadcast_to(d[answered], k),
            guess,
            prior.prior(len(part), A.shape[1]),
        )
        out[s : s + rows] = irt.probability(estimate.theta, A, d, c)
    return out


def alike(scores: Array, weights: Array | None = None) -> Array:
    """Return predicted scores (S, 1) with equal items: subjects' mean scores, shrunk towards the overall mean.

    The shrinkage follows from the variance of random responses (beta-binomial, by moments), so these predictions are as
    well regularised as a bank's. The subjects' weights have shape (S,).
    """
    w = weights
    if w is None:
        w = np.ones(len(scores))
    count = (~np.isnan(scores)).sum(axis=1)
    right = np.nansum(scores, axis=1)
    mean = (w * right).sum() / (w * count).sum()
    chance = mean * (1.0 - mean)  # variance of a random response
    spread = np.average((right / count - mean) ** 2, weights=w)
    noise = chance * np.average(1.0 / count, weights=w)
    between = max(float(spread - noise), 1e-9)
    prior_responses = max(chance / between - 1.0, 0.0)
    return np.asarray((right + prior_responses * mean) / (count + prior_responses))[:, None]


def _held_out(scores: Array, copies: Sequence[Hashable] | None = None, seed: int = HELD_OUT_SEED) -> Iterator[Bools]:
    """Yield tenths of the responses to hold out; every subject and item keeps some.

    Near-copies lose the same items, because one would predict the other.
    """
    observed = ~np.isnan(scores)
    dealt = np.random.default_rng(seed).random(scores.shape)
    if copies is not None:
        first: dict[Hashable, int] = {}
        rows = [first.setdefault(name, s) for s, name in enumerate(copies)]
        dealt = dealt[rows]
    total = 0
    tenths = round(1.0 / HELD_OUT)
    for tenth in range(tenths):
        held_out = observed & (np.floor(dealt * tenths) == tenth)
        for axis in (0, 1):
            bare = observed.any(axis=axis) & ~(observed & ~held_out).any(axis=axis)
            held_out &= ~np.expand_dims(bare, axis)
        if held_out.any():
            yield held_out
        total += int(held_out.sum())
        if total >= ENOUGH_HELD_OUT:
            return


def _gain(better: Array, worse: Array, weight: Array) -> tuple[float, float]:
    """Return the mean difference of two losses per held-out response, and its standard error over items.

    All have shape (S, n); `weight` is 0 for responses that were not held out.
    """
    each = np.where(weight > 0, worse - better, 0.0)
    each = (weight * each).sum(axis=0)
    count = weight.sum(axis=0)
    mean = float(each.sum() / count.sum())
    n = int((count > 0).sum())
    residual = each - mean * count
    error = np.sqrt((residual**2).sum() * n / max(n - 1, 1)) / count.sum()
    return mean, float(error)


def assess(
    scores: Array,
    bank: Calibration,
    recipe: Recipe | None,
    items: Sequence[str],
    progress: Tell | None = None,
    copies: Sequence[Hashable] | None = None,
    weights: Array | None = None,
    answered: Bools | None = None,
) -> Quality:
    """Check a bank against the responses it came from.

    Args:
        scores: Shape (S, n). NaN where missing.
        recipe: Recipe of the fits without the held-out responses; None for given parameters, which are checked as they
            are. An interrupted bank is refused, and nothing is fitted for it.
        copies: Names that near-copies of one subject share: they count once, and are held out together.
        weights: Shape (S,). Number of subjects that each one counts for.
        answered: Shape (S, n). Whether each subject answered each item, in any format; in that of `scores` when
            omitted.
    """
    say = progress or (lambda _: None)
    observed = ~np.isnan(scores)
    S, n = scores.shape
    if copies is None:
        copies = range(S)
    if answered is None:
        answered = observed
    loss: dict[str, float] = {}
    gain = (0.0, 0.0)
    if not bank.interrupted:
        loss, gain = _held_out_losses(scores, bank, recipe, copies, weights, say)
    sd = prior_sd(given_parameters=recipe is None)
    main = bank.discrimination[:, 0]
    strength = main
    if bank.discrimination.shape[1] > 1:
        strength = np.sqrt((bank.discrimination**2).sum(axis=1))
    negative = float((main < -TINY_SLOPE).mean())
    tiny = float((np.abs(strength) <= TINY_SLOPE).mean())
    slopes = {"negative": negative, "tiny": tiny}
    p = predicted(scores, bank, sd)
    share: Array | float = 1.0
    if weights is not None:
        share = weights[:, None]
    counted = share * observed
    w = counted * p * (1.0 - p)
    total = np.maximum(w.sum(axis=0), 1e-9)
    infit = (counted * (np.nan_to_num(scores) - p) ** 2).sum(axis=0) / total
    # the square of a residual of a score of 0 or 1 has variance v (1 - 4 v), with v = p (1 - p)
    v = p * (1.0 - p)
    error = np.sqrt((share**2 * observed * v * (1.0 - 4.0 * v)).sum(axis=0)) / total
    fractional = (observed & (scores > 0.0) & (scores < 1.0)).any(axis=0)  # whose residuals are smaller than v
    stated = ~fractional & (np.abs(infit - 1.0) > INFIT_ERRORS * error)
    misfits = np.flatnonzero(stated & ((infit < INFIT[0]) | (infit > INFIT[1])))
    distance = np.abs(np.log(np.maximum(infit[misfits], 1e-9)))
    misfits = misfits[tie_ranks(-distance).argsort(kind="stable")]
    right = np.nansum(scores, axis=0)
    count = observed.sum(axis=0)
    subjects = _different_subjects(answered, copies)
    extreme = int(((right == 0) | (right == count)).sum())
    suspects = _suspects(scores, main, weights, items)
    problems = [*_problems(bank, loss, gain, slopes, subjects), *_unlinked(observed, items)]
    warnings = list(_warnings(slopes, suspects, subjects, extreme, len(misfits), n))
    warnings += _why_negative(scores, main, weights)
    details = {**bank.about, "model": bank.model, "converged": bank.converged, "interrupted": bank.interrupted}
    return Quality(
        problems=tuple(problems),
        warnings=tuple(warnings),
        subjects=S,
        items=n,
        observed=float(observed.mean()),
        log_loss={name: round(value, 4) for name, value in loss.items()},
        slopes={name: round(value, 4) for name, value in slopes.items()},
        extreme=extreme,
        misfit=tuple(items[i] for i in misfits[:20]),
        misfits=len(misfits),
        details=details,
        suspects=suspects,
    )


def _different_subjects(answered: Bools, names: Sequence[Hashable]) -> Array:
    """Return how many subjects answered each item, shape (n,). Subjects of one name count once."""
    row = {name: k for k, name in enumerate(dict.fromkeys(names))}
    answered_by_any = np.zeros((len(row), answered.shape[1]), dtype=bool)
    for name, of_subject in zip(names, answered, strict=True):
        answered_by_any[row[name]] |= of_subject
    return np.asarray(answered_by_any.sum(axis=0), dtype=np.float64)


def _held_out_losses(
    scores: Array,
    bank: Calibration,
    recipe: Recipe | None,
    copies: Sequence[Hashable],
    weights: Array | None,
    say: Tell,
) -> tuple[dict[str, float], tuple[float, float]]:
    """Return held-out losses by predictor, and the bank's gain over equal items, see `_gain`."""
    tenths = list(_held_out(scores, copies))
    if not tenths:
        return {}, (0.0, 0.0)
    if recipe is not None and ENGINES[recipe.engine].slow:
        tenths = tenths[:1]
    losses_by_predictor = {name: np.zeros(scores.shape) for name in ("bank", "mean accuracy", "rasch")}
    held_out = np.zeros(scores.shape, dtype=bool)
    for at, tenth in enumerate(tenths):
        say(f"checking against held-out responses, {at + 1} of {len(tenths)}")
        remaining = np.where(tenth, np.nan, scores)
        if recipe is not None:
            fit = recipe.fit_completely(remaining, weights)
        else:
            fit = bank
        rasch = Recipe("1pl").fit_completely(remaining, weights)
        by = {
            "bank": predicted(remaining, fit, prior_sd(given_parameters=recipe is None)),
            "mean accuracy": np.broadcast_to(alike(remaining, weights), scores.shape),
            "rasch": predicted(remaining, rasch),
        }
        for name, p in by.items():
            losses_by_predictor[name][tenth] = losses(scores[tenth], p[tenth])
        held_out |= tenth
    weight = _held_out_weights(held_out, weights)
    means = {name: float((weight * loss).sum() / weight.sum()) for name, loss in losses_by_predictor.items()}
    return means, _gain(losses_by_predictor["bank"], losses_by_predictor["mean accuracy"], weight)


def _held_out_weights(held_out: Bools, weights: Array | None) -> Array:
    """Return the weight of each held-out response, 0 for the others; shape (S, n)."""
    if weights is None:
        return held_out.astype(np.float64)
    return np.asarray(held_out * weights[:, None])


def _unlinked(observed: Bools, items: Sequence[str]) -> list[str]:
    """Return a sentence if the items fall into parts without a common subject, whose scales nothing links."""
    if observed.all(axis=1).any():
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    S, n = observed.shape
    subject, item = np.nonzero(observed)
    links = csr_array((np.ones(len(item)), (subject, S + item)), shape=(S + n, S + n))
    _, labels = connected_components(links, directed=False)
    of_item = labels[S:]
    parts = [np.flatnonzero(of_item == label) for label in np.unique(of_item)]
    if len(parts) == 1:
        return []
    examples = ", ".join(f"{counted(len(part), 'item')} such as {items[part[0]]!r}" for part in parts[:3])
    if len(parts) > 3:
        examples += f" and {len(parts) - 3} more"
    return [
        f"its items fall into {len(parts)} parts, and no subject has answered items of two of them ({examples}), so "
        "their difficulties are not comparable: collect responses of some subjects to items of all parts, or "
        "calibrate each part by itself"
    ]


def _spread(values: Array) -> float:
    """Return the standard deviation by the quartiles, which outliers do not affect."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.349


def _predicts_badly(loss: dict[str, float], gain: tuple[float, float]) -> Iterator[str]:
    """Yield how a bank predicts held-out responses worse than it should."""
    mean, error = gain
    needed = CLEARLY * error
    if mean <= needed:
        how = "worse" if mean < 0 else "not clearly better"
        yield (
            f"it predicts held-out responses {how} ({number(loss['bank'], 4)} nats each) than each subject's own mean "
            f"accuracy does ({number(loss['mean accuracy'], 4)}; {number(needed, 4)} less is needed to be sure): its "
            "difficulties say nothing"
        )
    if loss["bank"] > loss["rasch"] + RASCH_MARGIN:
        yield (
            f"it predicts held-out responses {number(loss['bank'] - loss['rasch'])} nats worse than a converged Rasch "
            f"fit of the same responses ({number(loss['bank'])} against {number(loss['rasch'])}; "
            f"{number(RASCH_MARGIN, 2)} are allowed): calibrate it again"
        )


def _unknown_difficulties(bank: Calibration) -> Iterator[str]:
    """Yield a problem if the errors of difficulties are large beside their spread."""
    length = np.sqrt((bank.discrimination**2).sum(axis=1))
    telling = np.isfinite(bank.difficulty_sd) & (length > TINY_SLOPE)
    if not telling.any():
        return
    slope = length
    if bank.discrimination.shape[1] == 1:
        slope = bank.discrimination[:, 0]
    typical = float(np.median(bank.difficulty_sd[telling]))
    spread = _spread(-bank.intercept[telling] / slope[telling])
    if typical > SPREAD_FACTOR * spread:
        yield (
            f"its difficulties are not known: their posterior standard deviation is {number(typical, 2)} logits, and "
            f"their spread {number(spread, 2)} ({SPREAD_FACTOR:g} times that are allowed); the fit has not converged, "
            "or there are too few subjects"
        )


def _problems(
    bank: Calibration, loss: dict[str, float], gain: tuple[float, float], slopes: dict[str, float], count: Array
) -> tuple[str, ...]:
    out = []
    if bank.interrupted:
        out.append("the fit was interrupted before it converged: run it again to the end")
    elif not bank.converged:
        out.append(
            f"the fit did not converge in {counted(bank.about.get('iterations', 0), 'iteration')}: raise limit, or "
            "use a simpler model"
        )
    if loss:
        out += _predicts_badly(loss, gain)
    elif not bank.interrupted:
        out.append(
            "there are too few responses, or too few subjects that differ, to hold some out and check it by them: "
            "collect more"
        )
    out += _unknown_difficulties(bank)
    if slopes["negative"] + slopes["tiny"] > 0.5:
        out.append(
            f"{100 * (slopes['negative'] + slopes['tiny']):.0f} % of the items do not separate strong from weak "
            "subjects: look at their keys, or collect responses of more different subjects"
        )
    if np.median(count) < FEWEST_SUBJECTS:
        out.append(
            f"half of the items have fewer than {FEWEST_SUBJECTS} subjects, near-copies counted once: collect more "
            "responses"
        )
    return tuple(out)


def _warnings(
    slopes: dict[str, float], suspects: dict[str, float], count: Array, extreme: int, misfits: int, n: int
) -> tuple[str, ...]:
    out = []
    if slopes["negative"] > 0:
        look = "none is clearer than chance among so many"
        if suspects:
            clearest = list(suspects.items())[:SHOWN]
            named = ", ".join(f"{item!r} ({number(-z, 1)})" for item, z in clearest)
            if len(suspects) > SHOWN:
                named += f" and {len(suspects) - SHOWN} more"
            look = f"look for wrong keys, the clearest first, with their standard errors: {named}"
        out.append(f"{round(slopes['negative'] * n)} of {counted(n, 'item')}: stronger subjects answer worse; {look}")
    if extreme:
        out.append(
            f"{extreme} of {counted(n, 'item')}: right for everybody, or wrong for everybody; kept, with little "
            "information"
        )
    few = int((count < FEW_SUBJECTS).sum())
    if few:
        out.append(f"{few} of {counted(n, 'item')}: fewer than {FEW_SUBJECTS} subjects; the parameters are uncertain")
    if misfits > 0.1 * n:
        out.append(
            f"{misfits} of {counted(n, 'item')}: misfit of the model (infit outside {number(INFIT[0], 1)} to "
            f"{number(INFIT[1], 1)})"
        )
    return tuple(out)


def _against_the_rest(scores: Array, slopes: Array, weights: Array | None) -> tuple[Ints, Array, Array]:
    """Return the items of negative slopes (m,), their correlation with the others (m,), and the others' mean (S, 1)."""
    negative = np.flatnonzero(slopes < -TINY_SLOPE)
    other = slopes >= -TINY_SLOPE
    w, centred, observed = _centred(scores, weights)
    count = np.maximum(observed[:, other].sum(axis=1, keepdims=True), 1)
    rest = centred[:, other].sum(axis=1, keepdims=True) / count
    rest -= np.average(rest, axis=0, weights=w)
    correlation = _correlations(centred[:, negative], np.where(observed[:, negative], rest, 0.0), w)
    return negative, correlation, rest


def _centred(scores: Array, weights: Array | None) -> tuple[Array, Array, Bools]:
    """Return the weights (S,), the scores less their item's mean, 0 where missing, and where there are scores."""
    w = weights
    if w is None:
        w = np.ones(len(scores))
    observed = ~np.isnan(scores)
    count = np.maximum((w[:, None] * observed).sum(axis=0), 1e-9)
    mean = (w[:, None] * np.nan_to_num(scores)).sum(axis=0) / count
    return w, np.where(observed, scores - mean, 0.0), observed


def _correlations(x: Array, y: Array, w: Array) -> Array:
    """Return the weighted correlation of each column of `x` and `y`, which are centred."""
    power = (w[:, None] * x**2).sum(axis=0) * (w[:, None] * y**2).sum(axis=0)
    return np.asarray((w[:, None] * x * y).sum(axis=0) / np.sqrt(np.maximum(power, 1e-12)))


def _suspects(scores: Array, slopes: Array, weights: Array | None, items: Sequence[str]) -> dict[str, float]:
    """Return the items that may have a wrong key, and the standard errors of their correlation, clearest first.

    An item is left out if its negative correlation with the other items is one that chance would bring about in one or
    more of as many items.
    """
    from scipy.special import ndtr, ndtri, stdtr

    negative, correlation, _ = _against_the_rest(scores, slopes, weights)
    w, _, observed = _centred(scores, weights)
    freedom = np.maximum((w[:, None] * observed[:, negative]).sum(axis=0) - 2.0, 1.0)
    errors = correlation * np.sqrt(freedom / np.maximum(1.0 - correlation**2, 1e-6))
    evidence = ndtri(np.maximum(stdtr(freedom, errors), 1e-300))
    clearest = tie_ranks(evidence).argsort(kind="stable")
    suspects = {}
    for k in clearest:
        if ndtr(evidence[k]) * len(slopes) < 1.0:
            item = items[negative[k]]
            suspects[item] = round(float(evidence[k]), 2)
    return suspects


def _why_negative(scores: Array, slopes: Array, weights: Array | None) -> list[str]:
    """Return a sentence about negative slopes, shape (n,), if they are more than `MANY_NEGATIVE`."""
    if (slopes < -TINY_SLOPE).sum() <= MANY_NEGATIVE * len(slopes):
        return []
    negative, correlation, rest = _against_the_rest(scores, slopes, weights)
    w, centred, _ = _centred(scores, weights)
    part = centred[:, negative]
    subjects = float(w.sum())
    unclear = float((correlation * np.sqrt(subjects) > -CLEAR_CORRELATION).mean())
    slope = (w[:, None] * part * rest).sum(axis=0) / max(float((w[:, None] * rest**2).sum()), 1e-12)
    residual = part - rest * slope
    agreement = float(np.median(_correlations(residual, residual.sum(axis=1, keepdims=True) - residual, w)))
    agreement *= np.sqrt(subjects)
    if unclear > 0.5:
        why = f"most of these may be chance among what counts as {number(subjects, 1)} different subjects; collect more"
    elif agreement > CLEAR_CORRELATION:
        why = "these items agree with each other, so they measure something else; try --model mirt"
    else:
        why = "these items disagree with each other too, as wrong keys do; look at their keys"
    return [f"{100 * len(negative) / len(slopes):.0f} % of the slopes are negative: {why}"]


def choose_dimensions(
    scores: Array,
    recipe: Callable[[int], Recipe],
    candidates: Sequence[int] = (1, 2, 3, 4, 6),
    progress: Tell | None = None,
    copies: Sequence[Hashable] | None = None,
    weights: Array | None = None,
) -> tuple[int, dict[int, float]]:
    """Return the number of dimensions to use, and the held-out loss of each candidate, in nats per response.

    It is the smallest number whose loss is at most a standard error above the best. Raises ResponsesError if there are
    too few responses to hold some out.
    """
    say = progress or (lambda _: None)
    tenths = list(_held_out(scores, copies, CHOOSING_SEED))
    if not tenths:
        raise ResponsesError(
            "too few responses to hold some out and choose the number of dimensions by them: give dimensions"
        )
    held_out = np.logical_or.reduce(tenths)
    by_dimensions = {}
    for D in candidates:
        if len(scores) <= D:
            continue
        say(f"choosing the number of dimensions: {D}")
        loss = np.zeros(scores.shape)
        for tenth in tenths:
            remaining = np.where(tenth, np.nan, scores)
            fit = recipe(D).fit_completely(remaining, weights)
            p = predicted(remaining, fit)
            loss[tenth] = losses(scores[tenth], p[tenth])
        by_dimensions[D] = loss
    weight = _held_out_weights(held_out, weights)
    means = {D: float((weight * loss).sum() / weight.sum()) for D, loss in by_dimensions.items()}
    index = int(first_smallest(list(means.values())))
    best = list(means)[index]
    gains = {D: _gain(by_dimensions[best], loss, weight) for D, loss in by_dimensions.items()}
    chosen = next(D for D, (gain, error) in gains.items() if gain <= error)
    return chosen, {D: round(mean, 4) for D, mean in means.items()}
