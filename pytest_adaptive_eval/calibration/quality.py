"""Whether a calibrated bank can be trusted: what was checked, what was found, and the sentence that refuses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.recipe import ENGINES, Recipe
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.text import counted, number

__all__ = ["Quality", "alike", "assess", "choose_dimensions", "predicted", "prior_sd"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Share of the responses held out at a time, and the seed that deals them; another chooses dimensions.
HELD_OUT, HELD_OUT_SEED, CHOOSING_SEED = 0.1, 20240601, 20240602
#: So many responses are held out in all, a tenth after the other, as long as there are so many.
ENOUGH_HELD = 5000
#: Standard errors by which a bank has to predict better than what takes its items for all alike.
CLEARLY = 1.3
#: A bank may predict held-out responses this much worse than a converged Rasch fit, in nats a response.
RASCH_MARGIN = 0.05
#: The typical posterior standard deviation of a difficulty may be so many times their spread.
SPREAD_FACTOR = 3.0
#: A slope of less, in logits per standard deviation of ability, tells nothing.
TINY_SLOPE = 0.1
#: Fewer responses an item are too few for any fit, and few enough for a warning.
FEWEST_SUBJECTS, FEW_SUBJECTS = 5, 20
#: Mean squares of the weighted residuals outside of these bounds are called misfit (Wright & Linacre 1994).
INFIT = (0.7, 1.3)


@dataclass(frozen=True, slots=True)
class Quality:
    """What the checks of a bank found.

    Parameters
    ----------
    problems : tuple of str
        Sentences that refuse the bank; it is trusted when there is none.
    warnings : tuple of str
        Sentences for its reader.
    subjects, items : int
    observed : float
        Share of the responses that is there.
    log_loss : mapping of str to float
        Held-out negative log-likelihood a response, in nats: of the ``bank``, of
        each subject's own ``mean accuracy``, see `alike`, and of a converged ``rasch`` fit.
        Empty when nothing was held out, or the fit was interrupted.
    slopes : mapping of str to float
        Share of items with ``negative`` and ``tiny`` slopes.
    extreme : int
        Items that everybody got right, or everybody wrong.
    misfit : tuple of str
        Items whose infit lies outside `INFIT`, worst first, at most twenty.
    misfits : int
        How many there are.
    details : mapping
        Of the fit: engine, iterations, convergence.
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

    @property
    def trusted(self) -> bool:
        """Whether nothing refuses the bank."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The calibration report, as the bank keeps it."""
        return {"trusted": self.trusted, **asdict(self)}


def _losses(scores: Array, p: Array) -> Array:
    """Negative log-likelihood of each response, in nats."""
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    return np.asarray(-(scores * np.log(q) + (1.0 - scores) * np.log1p(-q)))


def prior_sd(given: bool) -> float:
    """Of the abilities, in logits: the scale of given parameters is not known, so that theirs get a wide prior."""
    return 10.0 if given else 1.0


def predicted(scores: Array, bank: Calibration, sd: float = 1.0) -> Array:
    """Predicted scores (S, n) at the posterior modes that `scores` give, with `sd` of the abilities' normal prior."""
    S, n = scores.shape
    A, d = bank.discrimination, bank.intercept
    c = bank.guess if bank.guess.any() else None
    prior = MAP(sd=sd)
    rows = max(1, (1 << 22) // (n * A.shape[1]))
    out = np.empty((S, n))
    for s in range(0, S, rows):
        part = scores[s : s + rows]
        k = len(part)
        found = prior.estimate(
            part,
            np.broadcast_to(A, (k, *A.shape)),
            np.broadcast_to(d, (k, n)),
            None if c is None else np.broadcast_to(c, (k, n)),
            prior.prior(k, A.shape[1]),
        )
        out[s : s + rows] = irt.probability(found.theta, A, d, c)
    return out


def alike(scores: Array) -> Array:
    """Predicted scores (S, 1) that take all items for alike: subjects' mean scores, shrunk towards that of all.

    By as much as responses of chance differ (beta-binomial, by moments), so that it has no more to learn than a bank
    has of abilities.
    """
    count = (~np.isnan(scores)).sum(axis=1)
    right = np.nansum(scores, axis=1)
    mean = right.sum() / count.sum()
    chance = mean * (1.0 - mean)
    own = right / count
    real = max(float(((own - mean) ** 2).mean()) - chance * float((1.0 / count).mean()), 1e-9)
    worth = max(chance / real - 1.0, 0.0)  # of the mean, in responses
    return np.asarray((right + worth * mean) / (count + worth))[:, None]


def _held_out(scores: Array, copies: Sequence[Hashable] | None = None, seed: int = HELD_OUT_SEED) -> Iterator[Bools]:
    """Tenths of the responses to hold out, one after the other; nobody and nothing loses all.

    Near-copies lose the same items, lest one tells what another is to be predicted by.
    """
    seen = ~np.isnan(scores)
    dealt = np.random.default_rng(seed).random(scores.shape)
    if copies is not None:
        first = {name: s for s, name in reversed(list(enumerate(copies)))}
        dealt = dealt[[first[name] for name in copies]]
    total, tenths = 0, round(1.0 / HELD_OUT)
    for tenth in range(tenths):
        held = seen & (np.floor(dealt * tenths) == tenth)
        for axis in (0, 1):
            bare = seen.any(axis=axis) & ~(seen & ~held).any(axis=axis)
            held &= ~np.expand_dims(bare, axis)
        if held.any():
            yield held
        total += int(held.sum())
        if total >= ENOUGH_HELD:
            return


def _gain(better: Array, worse: Array, held: Bools) -> tuple[float, float]:
    """By how much losses (S, n) are smaller than others, a response held out, and the standard error over items."""
    each = np.where(held, worse - better, 0.0).sum(axis=0)
    count = held.sum(axis=0)
    mean = float(each.sum() / count.sum())
    n = int((count > 0).sum())
    off = each - mean * count
    return mean, float(np.sqrt((off**2).sum() * n / max(n - 1, 1)) / count.sum())


def assess(
    scores: Array,
    bank: Calibration,
    recipe: Recipe | None,
    items: Sequence[str],
    progress: Callable[[str], None] | None = None,
    copies: Sequence[Hashable] | None = None,
) -> Quality:
    """Check a bank against the responses it came from.

    Parameters
    ----------
    scores : array, shape (S, n)
        NaN where missing.
    bank : Calibration
    recipe : Recipe or None
        Makes the bank anew without the held-out responses; None for given
        parameters, which are checked as they are.  An interrupted bank is
        refused for that, and nothing is fitted for it.
    items : sequence of str
        Ids, for sentences.
    progress : callable, optional
        Takes what is being done.
    copies : sequence of hashable, length S, optional
        Names that near-copies of one subject share: they count once, and are held out together.
    """
    say = progress or (lambda _: None)
    seen = ~np.isnan(scores)
    S, n = scores.shape
    names = range(S) if copies is None else copies
    loss: dict[str, float] = {}
    gain = (0.0, 0.0)
    if not bank.interrupted:
        loss, gain = _held_out_losses(scores, bank, recipe, names, say)
    sd = prior_sd(given=recipe is None)
    main = bank.discrimination[:, 0]
    strength = main if bank.discrimination.shape[1] == 1 else np.sqrt((bank.discrimination**2).sum(axis=1))
    slopes = {"negative": float((main < -TINY_SLOPE).mean()), "tiny": float((np.abs(strength) <= TINY_SLOPE).mean())}
    p = predicted(scores, bank, sd)
    w = np.where(seen, p * (1.0 - p), 0.0)
    infit = np.where(seen, (np.nan_to_num(scores) - p) ** 2, 0.0).sum(axis=0) / np.maximum(w.sum(axis=0), 1e-9)
    infit = np.where(w.sum(axis=0) > 0.5, infit, 1.0)  # too little expected to vary: nothing can be said
    off = np.flatnonzero((infit < INFIT[0]) | (infit > INFIT[1]))
    off = off[np.argsort(-np.abs(np.log(np.maximum(infit[off], 1e-9))))]
    right, count = np.nansum(scores, axis=0), seen.sum(axis=0)
    place = {name: k for k, name in enumerate(dict.fromkeys(names))}
    apart = np.zeros((len(place), n), dtype=bool)
    for name, answered in zip(names, seen, strict=True):
        apart[place[name]] |= answered
    subjects = apart.sum(axis=0)
    extreme = int(((right == 0) | (right == count)).sum())
    return Quality(
        (*_problems(bank, loss, gain, slopes, subjects), *_unlinked(seen, items)),
        _warnings(slopes, subjects, extreme, len(off), n),
        S,
        n,
        float(seen.mean()),
        {name: round(value, 4) for name, value in loss.items()},
        {name: round(value, 4) for name, value in slopes.items()},
        extreme,
        tuple(items[i] for i in off[:20]),
        len(off),
        {**bank.about, "model": bank.model, "converged": bank.converged, "interrupted": bank.interrupted},
    )


def _held_out_losses(
    scores: Array, bank: Calibration, recipe: Recipe | None, copies: Sequence[Hashable], say: Callable[[str], None]
) -> tuple[dict[str, float], tuple[float, float]]:
    """Losses of responses held out by what predicts them, and the bank's gain over items all alike, see `_gain`."""
    tenths = list(_held_out(scores, copies))
    if not tenths:
        return {}, (0.0, 0.0)
    if recipe is not None and ENGINES[recipe.engine].slow:
        tenths = tenths[:1]
    found = {name: np.zeros(scores.shape) for name in ("bank", "mean accuracy", "rasch")}
    held = np.zeros(scores.shape, dtype=bool)
    for at, tenth in enumerate(tenths):
        say(f"checking against held-out responses, {at + 1} of {len(tenths)}")
        kept = np.where(tenth, np.nan, scores)
        shown = recipe.fit_completely(kept) if recipe is not None else bank
        by = {
            "bank": predicted(kept, shown, prior_sd(given=recipe is None)),
            "mean accuracy": np.broadcast_to(alike(kept), scores.shape),
            "rasch": predicted(kept, Recipe("1pl").fit_completely(kept)),
        }
        for name, p in by.items():
            found[name][tenth] = _losses(scores[tenth], p[tenth])
        held |= tenth
    losses = {name: float(loss[held].mean()) for name, loss in found.items()}
    return losses, _gain(found["bank"], found["mean accuracy"], held)


def _unlinked(seen: Bools, items: Sequence[str]) -> list[str]:
    """A sentence where the responses fall apart into parts without a subject in common: nothing links their scales."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    S, n = seen.shape
    subject, item = np.nonzero(seen)
    links = csr_array((np.ones(len(item)), (subject, S + item)), shape=(S + n, S + n))
    of_item = connected_components(links, directed=False)[1][S:]
    parts = [np.flatnonzero(of_item == one) for one in np.unique(of_item)]
    if len(parts) == 1:
        return []
    told = ", ".join(f"{counted(len(own), 'item')} such as {items[own[0]]!r}" for own in parts[:3])
    more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
    return [
        f"its items fall into {len(parts)} parts that no subject has answered both of ({told}{more}), so that nothing "
        "tells how their difficulties compare: collect responses of some subjects to items of all parts, or calibrate "
        "each part by itself"
    ]


def _spread(values: Array) -> float:
    """Standard deviation from the quartiles, which outliers do not move."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.349


def _problems(
    bank: Calibration, loss: dict[str, float], gain: tuple[float, float], slopes: dict[str, float], count: Array
) -> tuple[str, ...]:
    out = []
    if bank.interrupted:
        out.append("the fit was interrupted before it converged: run it again to the end")
    elif not bank.converged:
        out.append(
            f"the fit did not converge in {counted(bank.about.get('iterations', 0), 'iteration')}: raise --limit, or "
            "use a simpler model"
        )
    if not loss and not bank.interrupted:
        out.append(
            "there are too few responses, or too few subjects that differ, to hold some out and check it by them: "
            "collect more"
        )
    if loss and gain[0] <= CLEARLY * gain[1]:
        how = "worse" if gain[0] < 0 else "not clearly better"
        out.append(
            f"it predicts held-out responses {how} ({number(loss['bank'], 4)} nats each) than each subject's own mean "
            f"accuracy does ({number(loss['mean accuracy'], 4)}; {number(CLEARLY * gain[1], 4)} less is needed to be "
            "sure): its difficulties say nothing"
        )
    if loss and loss["bank"] > loss["rasch"] + RASCH_MARGIN:
        out.append(
            f"it predicts held-out responses {number(loss['bank'] - loss['rasch'])} nats worse than a converged Rasch "
            f"fit of the same responses ({number(loss['bank'])} against {number(loss['rasch'])}; "
            f"{number(RASCH_MARGIN, 2)} are allowed): calibrate it anew"
        )
    length = np.sqrt((bank.discrimination**2).sum(axis=1))
    telling = np.isfinite(bank.difficulty_sd) & (length > TINY_SLOPE)
    if telling.any():
        slope = bank.discrimination[:, 0] if bank.discrimination.shape[1] == 1 else length
        typical = float(np.median(bank.difficulty_sd[telling]))
        spread = _spread(-bank.intercept[telling] / slope[telling])
        if typical > SPREAD_FACTOR * spread:
            out.append(
                f"its difficulties are not known: their posterior standard deviation is {number(typical, 2)} logits, "
                f"and their spread {number(spread, 2)} ({SPREAD_FACTOR:g} times that are allowed); the fit has not "
                "converged, or there are too few subjects"
            )
    if slopes["negative"] + slopes["tiny"] > 0.5:
        out.append(
            f"{100 * (slopes['negative'] + slopes['tiny']):.0f} % of the items do not tell strong subjects from weak: "
            "look at their keys, or collect responses of more different subjects"
        )
    if np.median(count) < FEWEST_SUBJECTS:
        out.append(
            f"half of the items have fewer than {FEWEST_SUBJECTS} subjects, near-copies counted once: collect more "
            "responses"
        )
    return tuple(out)


def _warnings(slopes: dict[str, float], count: Array, extreme: int, misfits: int, n: int) -> tuple[str, ...]:
    out = []
    if slopes["negative"] > 0:
        out.append(
            f"{round(slopes['negative'] * n)} of {counted(n, 'item')}: stronger subjects answer worse; look for wrong "
            "keys"
        )
    if extreme:
        out.append(
            f"{extreme} of {counted(n, 'item')}: right for everybody, or wrong for everybody; kept, and tell little"
        )
    if (few := int((count < FEW_SUBJECTS).sum())) > 0:
        out.append(
            f"{few} of {counted(n, 'item')}: fewer than {FEW_SUBJECTS} subjects, so that the parameters are uncertain"
        )
    if misfits > 0.1 * n:
        out.append(
            f"{misfits} of {counted(n, 'item')}: not as the model has it (infit outside {number(INFIT[0], 1)} to "
            f"{number(INFIT[1], 1)})"
        )
    return tuple(out)


def choose_dimensions(
    scores: Array,
    recipe: Callable[[int], Recipe],
    candidates: Sequence[int] = (1, 2, 3, 4, 6),
    progress: Callable[[str], None] | None = None,
    copies: Sequence[Hashable] | None = None,
) -> tuple[int, dict[int, float]]:
    """The number of dimensions to use, and the loss of held-out responses with each, in nats a response.

    It is the smallest one that predicts no more than a standard error worse than the best.

    Raises
    ------
    ResponsesError
        There are too few responses to hold some out.
    """
    say = progress or (lambda _: None)
    tenths = list(_held_out(scores, copies, CHOOSING_SEED))
    if not tenths:
        raise ResponsesError("too few responses to hold some out and choose the dimensions by them: give their number")
    held = np.logical_or.reduce(tenths)
    losses = {}
    for D in candidates:
        if len(scores) > D:
            say(f"choosing the number of dimensions: {D}")
            losses[D] = np.zeros(scores.shape)
            for tenth in tenths:
                kept = np.where(tenth, np.nan, scores)
                losses[D][tenth] = _losses(scores[tenth], predicted(kept, recipe(D).fit_completely(kept))[tenth])
    means = {D: float(loss[held].mean()) for D, loss in losses.items()}
    best = min(means, key=lambda D: means[D])
    gains = {D: _gain(losses[best], loss, held) for D, loss in losses.items()}  # none of the best over itself
    chosen = next(D for D, (gain, error) in gains.items() if gain <= error)
    return chosen, {D: round(mean, 4) for D, mean in means.items()}
