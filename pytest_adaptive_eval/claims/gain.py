"""Whether accuracy with everything given exceeds accuracy with less: by the draws alone, whatever the bank's quality.

A shortcut is what a subject does that answers questions about a picture without the picture.  The *gain* of a format
over a smaller one is the difference of the two accuracies over the bank, and a gate on the gain asks it of every
smaller format that was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim, anytime_valid
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import mean_of_draws, merge_missing_bounds, with_missing_bounded
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["GapClaim", "fullest", "gap_claims"]

Array = NDArray[np.float64]

#: A format's accuracy before it was asked, and the answers that this guess is worth.
GUESS, WORTH = 0.5, 2.0
#: No running accuracy is taken to be nearer to 0 or 1.
NEAREST = 0.02


def fullest(bank: ItemBank) -> str:
    """The format with most modalities, of a bank that is asked in formats."""
    formats: Sequence[str] = bank.report.get("formats", ())
    return max(formats, key=lambda form: 0 if form == "none" else 1 + form.count("+"), default="")


@dataclass(frozen=True, slots=True)
class GapClaim(Claim):
    """The claim that accuracy in one format exceeds that in another by an amount.

    Tested on ``(1 + c score) / 2`` of every pair of item and format, with c = 1 in the larger format, -1 in the smaller
    and 0 in others, which lies in [0, 1] like a score.  Predictions are the format's accuracy so far.

    Parameters
    ----------
    signs : array, shape (n,)
        c of every pair of the bank.
    codes : array of int, shape (n,)
        The format of every pair.
    items : int
        Pairs in each of the two formats.
    form : str
        The smaller one.
    """

    signs: Array = field(default_factory=lambda: np.empty(0))
    codes: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    items: int = 0
    form: str = ""

    @property
    def sought(self) -> float | None:
        """None: it is about differences."""
        return None

    def view(self, log: DesignLog) -> DesignLog:
        """The draws of the signed scores."""
        signs, codes = self.signs[log.items], self.codes[log.items]
        kinds, counts = np.arange(self.codes.max() + 1), np.bincount(self.codes)
        of_kind = np.array([self.signs[self.codes == kind][0] for kind in kinds])
        mine = codes[..., None] == kinds
        answered = mine & ~np.isnan(log.scores)[..., None]
        right = np.where(answered, np.nan_to_num(log.scores)[..., None], 0.0)

        def before(x: Array) -> Array:
            return np.asarray(x.cumsum(axis=-2) - x)

        share = (before(right) + GUESS * WORTH) / (before(answered.astype(float)) + WORTH)
        share = np.clip(share, NEAREST, 1.0 - NEAREST)
        left = counts - before(mine.astype(float))
        predicted = 0.5 + 0.5 * of_kind * share
        reach = (log.down + log.up) / 2.0
        spread = 0.25 * np.abs(of_kind) * share * (1.0 - share)
        return replace(
            log,
            scores=np.where(signs == 0.0, 0.5, 0.5 + 0.5 * signs * log.scores),
            predictions=np.take_along_axis(predicted, codes[..., None], axis=-1)[..., 0],
            rest=(left * predicted).sum(axis=-1),
            variance=left.sum(axis=-1) * (left * spread).sum(axis=-1),
            down=reach,
            up=reach,
            noise=log.noise * (0.25 * signs**2).mean(axis=-1),
            low=0.5 + 0.5 * np.minimum(signs, 0.0),
            high=0.5 + 0.5 * np.maximum(signs, 0.0),
        )

    def gap(self, log: DesignLog, confidence: float, *, sequential: bool) -> Interval:
        """The difference of the two accuracies, with an interval as gates use it."""
        seen = self.view(log)
        if sequential:
            found = anytime_valid(seen, mean_of_draws(seen), confidence, self.unit)
        else:
            found = merge_missing_bounds(*with_missing_bounded(seen, confidence))

        def difference(mean: float) -> float:
            return (2.0 * mean - 1.0) * log.size / self.items

        low, high = difference(found.low), difference(found.high)
        return replace(found, estimate=difference(found.estimate), low=max(low, -1.0), high=min(high, 1.0))


def gap_claims(bank: ItemBank, gain: float, confidence: float) -> tuple[GapClaim, ...]:
    """The claims that accuracy in the fullest format exceeds that in each smaller one by `gain`.

    Raises
    ------
    ConfigError
        The bank is not asked in formats, or not all its items in all of them.
    """
    full = fullest(bank)
    formats = [form for form in bank.report.get("formats", ()) if form != full]
    if not formats:
        raise ConfigError(f'the bank {bank.name!r} is not asked in formats, so there is no gain: set formats = "all"')
    names, codes, counts = np.unique(np.asarray(bank.categories, dtype=object), return_inverse=True, return_counts=True)
    if len(set(counts.tolist())) > 1:
        told = ", ".join(f"{count} as {name}" for name, count in zip(names, counts, strict=True))
        raise ConfigError(
            f"the items of the bank {bank.name!r} have different formats ({told}), so that accuracies do not compare: "
            "list formats that all items have"
        )
    size, items = len(bank), int(counts[0])
    place = {str(name): n for n, name in enumerate(names)}
    out = []
    for form in formats:
        signs = np.where(codes == place[full], 1.0, np.where(codes == place[form], -1.0, 0.0))
        total = size / 2.0 + gain * items / 2.0
        unit = max(0.1 * items / size, 1e-3) / 2.0
        out.append(GapClaim(total, confidence, unit, signs=signs, codes=codes, items=items, form=form))
    return tuple(out)
