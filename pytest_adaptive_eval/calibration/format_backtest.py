"""Backtests in formats: each subject is left out once, and every contender asks it as many pairs of item and format.

Two protocols rank the subjects.  *Together*: raw means of all of them on the pairs
that the left-out one was asked, one coefficient a left-out subject, as the code of
the M3-IRT paper does; the others chose those pairs, so that it flatters whoever
looked at their answers.  *Alone*: each subject is judged by its own interview, and
there is one coefficient.  Two truths, both over the items that are not known to be
of low quality: the mean over all formats, which is that paper's, and the mean in
the fullest format.  gamma is the share of calls spent on low-quality items; what
uniform draws spend on them is their share of the bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.calibration.format_contenders import DEFAULT, FORMAT_CONTENDERS, Fold
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.items.responses import FormatResponses

__all__ = ["FormatBacktest", "Separation", "format_backtest", "separation", "signed_rank"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Subjects below which there is no ranking to speak of.
FEWEST = 4
#: Bins that a distribution is drawn in.
BINS = 12


@dataclass(frozen=True, slots=True)
class Separation:
    """How one quantity differs between original and low-quality items.

    Parameters
    ----------
    original, low : float
        Means.
    u, p : float
        Mann-Whitney, two-sided.
    wasserstein : float
        Distance of the two distributions.
    auc : float
        Chance that an original item has the larger value, ties half.
    edges : tuple of float
        Of BINS bins of equal width over all values.
    counts : tuple of two tuples of int
        Original and low-quality items in each bin.
    """

    original: float
    low: float
    u: float
    p: float
    wasserstein: float
    auc: float
    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], tuple[int, ...]]


def separation(values: ArrayLike, low: Bools) -> Separation:
    """Compare a quantity (n,) between items that are low-quality and those that are not."""
    from scipy.stats import mannwhitneyu, wasserstein_distance

    all_ = np.asarray(values, dtype=np.float64)
    original, bad = all_[~low], all_[low]
    test = mannwhitneyu(original, bad)
    edges = np.histogram_bin_edges(all_, BINS)
    counts = [np.histogram(values, edges)[0].tolist() for values in (original, bad)]
    return Separation(
        float(original.mean()),
        float(bad.mean()),
        float(test.statistic),
        float(test.pvalue),
        float(wasserstein_distance(original, bad)),
        float(test.statistic) / (len(original) * len(bad)),
        tuple(edges.tolist()),
        (tuple(counts[0]), tuple(counts[1])),
    )


def signed_rank(mine: ArrayLike, theirs: ArrayLike, *, greater: bool = True) -> tuple[float, float] | None:
    """Wilcoxon's signed-rank test, one-sided: W and p of mine being greater, or less; None where all are equal."""
    from scipy.stats import wilcoxon

    x, y = np.asarray(mine, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    known = ~np.isnan(x) & ~np.isnan(y)
    if (x[known] == y[known]).all():
        return None
    found = wilcoxon(x[known], y[known], alternative="greater" if greater else "less")
    return float(found.statistic), float(found.pvalue)


@dataclass(slots=True)
class FormatBacktest:
    """What contenders did, by (contender, budget): a row a left-out subject and repeat.

    A row holds ``target``, ``repeat``, ``calls``, ``together_all``, ``together_fullest``, ``gamma`` (NaN where no item
    is known to be of low quality), and the subject's own estimates ``all`` and ``fullest``.

    Parameters
    ----------
    truths : mapping of str to array, shape (S,)
        ``all`` and ``fullest``.
    pairs : int
        In the whole bank.
    low : float
        Share of items known to be of low quality.
    """

    truths: Mapping[str, Array]
    pairs: int
    low: float
    rows: dict[tuple[str, str], list[dict[str, float]]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def merge(self, other: FormatBacktest) -> None:
        """Take in other left-out subjects."""
        for key, rows in other.rows.items():
            self.rows.setdefault(key, []).extend(rows)
        for name, seconds in other.seconds.items():
            self.seconds.setdefault(name, []).extend(seconds)

    def by_target(self, contender: str, budget: str, what: str) -> Array:
        """Means over repeats, one a left-out subject."""
        rows = self.rows[contender, budget]
        targets = sorted({int(row["target"]) for row in rows})
        return np.array([np.mean([row[what] for row in rows if row["target"] == target]) for target in targets])

    def alone(self, contender: str, budget: str, truth: str) -> float:
        """Rank correlation of the subjects' own estimates with the truth, the mean over repeats."""
        rows, found = self.rows[contender, budget], []
        for repeat in sorted({row["repeat"] for row in rows}):
            mine = [row for row in rows if row["repeat"] == repeat]
            told = np.array([row[truth] for row in mine])
            known = ~np.isnan(told)
            targets = np.array([int(row["target"]) for row in mine])[known]
            found.append(rank_correlation(told[known], self.truths[truth][targets]) if len(targets) > 1 else np.nan)
        return float(np.mean(found))

    def to_json(self) -> dict[str, Any]:
        """The table as data; None where there is no number."""
        table = []
        chance = {b: float(self.by_target(n, b, "gamma").mean()) for n, b in self.rows if n == "random"}
        for name, budget in self.rows:
            cell: dict[str, Any] = {"policy": name, "budget": budget, "calls": self.rows[name, budget][0]["calls"]}
            for what in ("together_all", "together_fullest", "gamma"):
                values = self.by_target(name, budget, what)
                cell |= {what: float(values.mean()), f"{what}_sd": float(values.std())}
            cell |= {f"alone_{truth}": self.alone(name, budget, truth) for truth in self.truths}
            cell["gamma_of_random"] = cell["gamma"] / chance[budget] if chance.get(budget) else float("nan")
            table.append({key: None if value != value else value for key, value in cell.items()})
        return {
            "subjects": len(self.truths["all"]),
            "left_out": len({row["target"] for rows in self.rows.values() for row in rows}),
            "pairs": self.pairs,
            "low_quality": self.low,
            "truths_agree": rank_correlation(self.truths["all"], self.truths["fullest"]),
            "rows": table,
            "tests": list(self._tests()),
            "seconds": {name: {"mean": float(np.mean(s)), "most": float(max(s))} for name, s in self.seconds.items()},
        }

    def _tests(self) -> Iterator[dict[str, Any]]:
        """The default, or the first of ours, against each of the others."""
        names = list(dict.fromkeys(name for name, _ in self.rows))
        ours = [name for name in names if name.startswith(("m2", "m3"))]
        if not ours:
            return
        mine = DEFAULT if DEFAULT in ours else ours[0]
        for budget in dict.fromkeys(budget for _, budget in self.rows):
            for other in names:
                if other in ours:
                    continue
                for what in ("together_all", "together_fullest", "gamma"):
                    values = [self.by_target(name, budget, what) for name in (mine, other)]
                    found = None if np.isnan(values).all() else signed_rank(*values, greater=what != "gamma")
                    if found is not None:
                        yield {
                            "policy": mine,
                            "against": other,
                            "budget": budget,
                            "of": what,
                            "w": found[0],
                            "p": found[1],
                        }


def format_backtest(
    responses: FormatResponses,
    low: Bools,
    contenders: Sequence[str],
    budgets: Sequence[str],
    targets: Iterable[int],
    *,
    repeats: int = 10,
    seed: int = 0,
) -> FormatBacktest:
    """Leave some subjects out, one at a time, and interview each by every contender.

    Parameters
    ----------
    responses : FormatResponses
    low : array of bool, shape (n,)
        Which items are known to be of low quality; no contender is told.
    contenders : sequence of str
        Of `FORMAT_CONTENDERS`.
    budgets : sequence of str
        Calls, or shares of all pairs of an item and a format.
    targets : iterable of int
    repeats : int
        Of contenders that draw.
    seed : int
        Of draws, fits, and the order of items: where two are alike the first is asked, and the low-quality ones of a
        file may stand together.

    Raises
    ------
    ResponsesError
        Fewer than four subjects, or nothing but low-quality items.
    """
    if len(responses.subjects) < FEWEST:
        raise ResponsesError(
            f"{responses.source}: {len(responses.subjects)} subjects; a ranking takes {FEWEST} or more, better twenty"
        )
    if low.all():
        raise ResponsesError(
            f"{responses.source}: all items are marked as of low quality: there is no truth to rank by"
        )
    order = np.random.default_rng(seed).permutation(len(low))
    scores, low = responses.scores[:, order], low[order]
    clean, fullest = scores[:, ~low], responses.modalities.fullest
    formats = scores.shape[2]
    n = scores[0].size
    if (mute := np.isnan(clean[:, :, fullest]).all(axis=1)).any():
        raise ResponsesError(
            f"{responses.source}: the subject {responses.subjects[int(mute.argmax())]!r} has no answer in the format "
            f"{responses.modalities.formats[fullest]}; leave it out"
        )
    truths = {"all": np.nanmean(clean, axis=(1, 2)), "fullest": np.nanmean(clean[:, :, fullest], axis=1)}
    sizes = {budget: resolve_budget(budget, n) for budget in budgets}
    result = FormatBacktest(truths, n, float(low.mean()))
    flat = scores.reshape(len(scores), -1)
    for target in targets:
        fold = Fold(scores, responses.modalities, target, sizes, seed)
        for name in contenders:
            contender = FORMAT_CONTENDERS[name]
            for repeat in range(repeats if contender.drawn else 1):
                fold.seed = seed + repeat
                for budget, asked in contender.interview(fold).items():
                    pairs = fold.pairs_of_all(asked.pairs)
                    means = _means(flat[:, pairs])
                    row = {"target": float(target), "repeat": float(repeat), "calls": len(pairs)}
                    row |= {f"together_{truth}": rank_correlation(means, value) for truth, value in truths.items()}
                    row["gamma"] = float(low[pairs // formats].mean()) if low.any() else float("nan")
                    row |= {"all": asked.every, "fullest": asked.fullest}
                    result.rows.setdefault((name, budget), []).append(row)
            fold.seed = seed
        for what, seconds in fold.seconds.items():
            result.seconds.setdefault(what, []).append(seconds)
    return result


def _means(scores: Array) -> Array:
    """Of each subject, over what it has answered; one half where that is nothing."""
    count = (~np.isnan(scores)).sum(axis=1)
    return np.where(count > 0, np.nansum(scores, axis=1) / np.maximum(count, 1), 0.5)
