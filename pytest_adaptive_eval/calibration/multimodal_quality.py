"""Low-quality items of a bank in formats, by responses alone.

An item with a wrong image or question is answered as often with fewer modalities. With two dozen subjects, however, the
share right of one item in one format has an error of a tenth, and among thousands of items many shortcuts look genuine
by chance. Therefore items are pooled: latent classes of items, each with a share right for every subject in every
format (Lazarsfeld & Henry 1968; by EM), separate the response patterns of genuine items, shortcuts and broken items.
The gain of an item from all modalities together is that of its classes. Several numbers of classes and starts are
averaged, because no single solution is the right one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.irt.multimodal import Modalities
from pytest_adaptive_eval.ties import TIE
from pytest_adaptive_eval.types import Array, Bools

#: Numbers of latent classes, over which quality is averaged.
CLASSES = (8, 12, 16, 20)
#: Least number of items per class: with fewer, an item would determine its own class.
MEMBERS = 8
#: Relative change of the log-likelihood at which EM ends, and its largest number of iterations.
TOLERANCE, LIMIT = 3e-5, 200
#: Least gain of a genuine item, as a share of the wrong answers in the fullest format.  An item that nearly all get
#: right may gain little; one that many get wrong in the fullest format may have a wrong key, unless it gains much.
LEAST = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class ItemQuality:
    """Gain of every item from all modalities together.

    Args:
        gain: Shape (n,). Share right in the fullest format less that in the best other one, averaged over the item's
            latent classes; not above 0 for a shortcut or a broken item.
        raw: Shape (n,). The same by the item's own responses.
        right: Shape (n,). Share right in the fullest format.
        member: Shape (n, C). Membership in the classes of all solutions; it sums to 1 over the classes of one solution.
    """

    gain: Array
    raw: Array
    right: Array
    member: Array

    @property
    def value(self) -> Array:
        """Rating ``gain - LEAST (1 - right)``, shape (n,), higher for better items."""
        return np.asarray(self.gain - LEAST * (1.0 - self.right))

    @property
    def genuine(self) -> Bools:
        """Whether each item has a `value` of at least 0, shape (n,)."""
        return np.asarray(self.value >= 0)

    def pooled(self, values: Array) -> Array:
        """Return a quantity of items (n,), averaged over each item's classes as `gain` is."""
        size = self.member.sum(axis=0)
        means = (self.member.T @ values) / np.maximum(size, 1e-12)
        return np.asarray(self.member @ means / self.member.sum(axis=1))

    def worth(self, needed: int = 0) -> Array:
        """Return 1 for genuine items, or for the `needed` best if fewer are genuine, and 0 for others; shape (n,)."""
        least = np.sort(self.value)[::-1][min(max(needed, 1), len(self.value)) - 1]
        return np.asarray(self.value >= min(0.0, (1.0 + TIE) * float(least)), dtype=np.float64)


def item_quality(scores: Array, modalities: Modalities | None = None, *, starts: int = 8, seed: int = 0) -> ItemQuality:
    """Rate items by the responses (S, n, F) of subjects in formats, NaN where missing.

    Each number of classes has several random starts.
    """
    modalities = modalities or Modalities()
    array = np.asarray(scores, dtype=np.float64)
    subjects, n, formats = array.shape
    full = modalities.fullest
    flat = array.transpose(1, 0, 2).reshape(n, -1)
    right = np.nan_to_num(flat)
    wrong = np.nan_to_num(1.0 - flat)
    gain = np.zeros(n)
    members = list[Array]()
    for classes in CLASSES:
        for start in range(starts):
            rng = np.random.default_rng([seed, classes, start])
            member, share = _classes(right, wrong, min(classes, max(1, n // MEMBERS)), rng)
            by_format = share.reshape(-1, subjects, formats).mean(axis=1)
            gain += member @ _gain(by_format, full)
            members.append(member)
    observed = ~np.isnan(array)
    overall = np.nansum(array, axis=(0, 1)) / observed.sum(axis=(0, 1))
    raw = (np.nansum(array, axis=0) + overall) / (observed.sum(axis=0) + 1.0)
    return ItemQuality(gain / len(members), _gain(raw, full), raw[:, full], np.concatenate(members, axis=1))


def _gain(shares: Array, full: int) -> Array:
    """Return the fullest format's share right less the best other one's, from shares by format (m, F)."""
    return np.asarray(shares[:, full] - np.delete(shares, full, axis=1).max(axis=1))


def _classes(right: Array, wrong: Array, classes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return membership (n, C) and share right of each class in every column (C, S F), by EM."""
    mean = (right.sum(axis=0) + 0.5) / (right.sum(axis=0) + wrong.sum(axis=0) + 1.0)
    member = rng.dirichlet(np.full(classes, 0.5), len(right))
    last = -np.inf
    share = np.tile(mean, (classes, 1))
    for step in range(LIMIT):
        ones = member.T @ right
        share = (ones + 2.0 * mean) / (ones + member.T @ wrong + 2.0)
        size = member.sum(axis=0) + 1.0
        likelihood = right @ np.log(share).T + wrong @ np.log1p(-share).T
        joint = likelihood + np.log(size / size.sum())
        top = joint.max(axis=1, keepdims=True)
        member = np.exp(joint - top)
        total = member.sum(axis=1, keepdims=True)
        member /= total
        fit = float((top + np.log(total)).sum())
        if step > 10 and fit - last < TOLERANCE * abs(fit):
            break
        last = fit
    return member, share
