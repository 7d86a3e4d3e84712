"""Whether a calibrated bank can be trusted: what was checked, what was found, and the sentence that refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engines import Calibration, Recipe
from pytest_adaptive_eval.core import irt
from pytest_adaptive_eval.core.estimation import MAP
from pytest_adaptive_eval.core.responses import counted
from pytest_adaptive_eval.core.verdict import number
from pytest_adaptive_eval.errors import ResponsesError

__all__ = ["Quality", "assess", "choose_dimensions", "predicted", "prior_sd"]

Array = NDArray[np.float64]

#: Share of the responses held out, and the seed that chooses them.
HELD_OUT, HELD_OUT_SEED = 0.1, 20240601
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
        each model's own ``mean accuracy``, and of a converged ``rasch`` fit.
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


def _loss(scores: Array, p: Array, cells: NDArray[np.bool_]) -> float:
    q = np.clip(p[cells], 1e-6, 1.0 - 1e-6)
    r = scores[cells]
    return float(-(r * np.log(q) + (1.0 - r) * np.log1p(-q)).mean())


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


def _masked(scores: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Scores with a tenth of the responses taken out, and where; nobody and nothing loses all."""
    seen = ~np.isnan(scores)
    held = seen & (np.random.default_rng(HELD_OUT_SEED).random(scores.shape) < HELD_OUT)
    for axis in (0, 1):
        bare = seen.any(axis=axis) & ~(seen & ~held).any(axis=axis)
        held &= ~np.expand_dims(bare, axis)
    return np.where(held, np.nan, scores), held


def assess(
    scores: Array,
    bank: Calibration,
    recipe: Recipe | None,
    items: Sequence[str],
    progress: Callable[[str], None] | None = None,
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
    """
    say = progress or (lambda _: None)
    seen = ~np.isnan(scores)
    S, n = scores.shape
    sd = prior_sd(given=recipe is None)
    kept, held = _masked(scores)
    loss: dict[str, float] = {}
    if held.any() and not bank.interrupted:
        say("checking against held-out responses")
        shown = recipe.finished(kept) if recipe is not None else bank
        own = np.broadcast_to(np.nanmean(kept, axis=1, keepdims=True), scores.shape)
        loss = {
            "bank": _loss(scores, predicted(kept, shown, sd), held),
            "mean accuracy": _loss(scores, own, held),
            "rasch": _loss(scores, predicted(kept, Recipe("1pl").finished(kept)), held),
        }
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
    extreme = int(((right == 0) | (right == count)).sum())
    return Quality(
        _problems(bank, loss, slopes, count),
        _warnings(slopes, count, extreme, len(off), n),
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


def _spread(values: Array) -> float:
    """Standard deviation from the quartiles, which outliers do not move."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.349


def _problems(bank: Calibration, loss: dict[str, float], slopes: dict[str, float], count: Array) -> tuple[str, ...]:
    out = []
    if bank.interrupted:
        out.append("the fit was interrupted before it converged: run it again to the end")
    elif not bank.converged:
        out.append(
            f"the fit did not converge in {counted(bank.about.get('iterations', 0), 'iteration')}: raise --limit, or "
            "use a simpler model"
        )
    if not loss and not bank.interrupted:
        out.append("there are too few responses to hold some out and check it by them: collect more")
    if loss and loss["bank"] > loss["mean accuracy"]:
        out.append(
            f"it predicts held-out responses worse ({number(loss['bank'], 4)} nats each) than each model's own mean "
            f"accuracy does ({number(loss['mean accuracy'], 4)}): its difficulties say nothing"
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
        out.append(f"half of the items have fewer than {FEWEST_SUBJECTS} subjects: collect more responses")
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
) -> tuple[int, dict[int, float]]:
    """The number of dimensions that predicts held-out responses best, and the loss of each, in nats a response.

    Raises
    ------
    ResponsesError
        There are too few responses to hold some out.
    """
    say = progress or (lambda _: None)
    kept, held = _masked(scores)
    if not held.any():
        raise ResponsesError("too few responses to hold some out and choose the dimensions by them: give their number")
    losses = {}
    for D in candidates:
        if len(scores) > D:
            say(f"choosing the number of dimensions: {D}")
            losses[D] = _loss(scores, predicted(kept, recipe(D).finished(kept)), held)
    return min(losses, key=lambda D: losses[D]), {D: round(loss, 4) for D, loss in losses.items()}
