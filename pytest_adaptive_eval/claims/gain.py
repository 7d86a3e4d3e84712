"""Claims that accuracy in the fullest format exceeds accuracy in smaller ones, tested by draws on any bank.

A subject takes a shortcut if it answers questions about a picture without the picture. The *gain* of a format over a
smaller one is the difference of the two accuracies over the bank. A gate on the gain requires it over every smaller
format of the bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim, interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array

GUESS, WORTH = 0.5, 2.0  #: Prior accuracy of a format, and the number of answers with the same weight.
NEAREST = 0.02  #: Minimum distance of a running accuracy from 0 and from 1.


def fullest(bank: ItemBank) -> str:
    """Return the format with most modalities, of a bank that is administered in formats."""
    formats: Sequence[str] = bank.report.get("formats", ())
    return max(formats, key=lambda form: 0 if form == "none" else 1 + form.count("+"), default="")


@dataclass(frozen=True, slots=True)
class GapClaim(Claim):
    """The claim that accuracy in one format exceeds that in another by an amount.

    The bets are on ``(1 + c score) / 2`` of every item-format pair, which lies in [0, 1] like a score. The sign c is 1
    in the larger format, -1 in the smaller and 0 in others. Predictions are the format's accuracy so far.

    Args:
        signs: Shape (n,). Sign c of every pair of the bank.
        codes: Shape (n,). Number of the format of every pair.
        items: Number of pairs in each of the two formats.
        form: The smaller format.
    """

    signs: Array = field(default_factory=lambda: np.empty(0))
    codes: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    items: int = 0
    form: str = ""

    @property
    def sought(self) -> float | None:
        """None: the claim is on differences."""
        return None

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of the signed scores."""
        signs = self.signs[log.items]
        codes = self.codes[log.items]
        formats = np.arange(self.codes.max() + 1)
        counts = np.bincount(self.codes)
        format_signs = np.array([self.signs[self.codes == code][0] for code in formats])
        in_format = codes[..., None] == formats
        answered = in_format & ~np.isnan(log.scores)[..., None]
        scores = np.where(answered, np.nan_to_num(log.scores)[..., None], 0.0)

        def before(x: Array) -> Array:
            return np.asarray(x.cumsum(axis=-2) - x)

        accuracy = (before(scores) + GUESS * WORTH) / (before(answered.astype(float)) + WORTH)
        accuracy = np.clip(accuracy, NEAREST, 1.0 - NEAREST)
        pairs_left = counts - before(in_format.astype(float))
        predicted = 0.5 + 0.5 * format_signs * accuracy
        reach = (log.down + log.up) / 2.0
        spread = 0.25 * np.abs(format_signs) * accuracy * (1.0 - accuracy)
        return replace(
            log,
            scores=np.where(signs == 0.0, 0.5, 0.5 + 0.5 * signs * log.scores),
            predictions=np.take_along_axis(predicted, codes[..., None], axis=-1)[..., 0],
            rest=(pairs_left * predicted).sum(axis=-1),
            variance=pairs_left.sum(axis=-1) * (pairs_left * spread).sum(axis=-1),
            down=reach,
            up=reach,
            noise=log.noise * (0.25 * signs**2).mean(axis=-1),
            low=0.5 + 0.5 * np.minimum(signs, 0.0),
            high=0.5 + 0.5 * np.maximum(signs, 0.0),
        )

    def gap(self, log: DesignLog, confidence: float) -> Interval:
        """Return the difference of the two accuracies, with the interval that gates use."""
        interval = interval_of_draws(self.view(log), confidence, self.unit)

        def difference(mean: float) -> float:
            return (2.0 * mean - 1.0) * log.size / self.items

        low = difference(interval.low)
        high = difference(interval.high)
        return replace(interval, estimate=difference(interval.estimate), low=max(low, -1.0), high=min(high, 1.0))


def gap_claims(bank: ItemBank, gain: float, confidence: float) -> tuple[GapClaim, ...]:
    """Return the claims that accuracy in the fullest format exceeds that in each smaller one by `gain`.

    Raises:
        ConfigError: The bank is not administered in formats, or some items lack a format.
    """
    full = fullest(bank)
    formats = [form for form in bank.report.get("formats", ()) if form != full]
    if not formats:
        raise ConfigError(f'the bank {bank.name!r} is not asked in formats: set formats = "all"')
    names, codes, counts = np.unique(np.asarray(bank.categories, dtype=object), return_inverse=True, return_counts=True)
    if len(set(counts.tolist())) > 1:
        format_counts = ", ".join(f"{count} as {name}" for name, count in zip(names, counts, strict=True))
        raise ConfigError(
            f"the items of the bank {bank.name!r} have different formats ({format_counts}), so accuracies are "
            "not comparable: list formats that all items have"
        )
    size = len(bank)
    items = int(counts[0])
    code_of = {str(name): n for n, name in enumerate(names)}
    out = []
    for form in formats:
        signs = np.where(codes == code_of[full], 1.0, np.where(codes == code_of[form], -1.0, 0.0))
        total = size / 2.0 + gain * items / 2.0
        unit = max(0.1 * items / size, 1e-3) / 2.0
        out.append(GapClaim(total, confidence, unit, signs=signs, codes=codes, items=items, form=form))
    return tuple(out)
