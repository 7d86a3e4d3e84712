"""Backtests in formats: each subject is left out once, and every contender gives it as many pairs of item and format.

Two protocols rank the subjects. *Together*: raw means of all subjects on the pairs that the left-out one was given, one
coefficient per left-out subject, as the code of the M3-IRT paper does. The others' answers chose those pairs, so this
flatters contenders that use them. *Alone*: each subject is judged by its own interview, and there is one coefficient.
Two truths, both over the items that are not known to be of low quality: the mean over all formats, which is that
paper's, and the mean in the fullest format. gamma is the share of calls spent on low-quality items; uniform draws spend
their share of the bank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.extensions.backtests.format_contender import FitEnd, Fold, FormatContender
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.items.responses import FormatResponses
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.types import Array, Bools

#: Contenders by name.
FORMAT_CONTENDERS: Mapping[str, FormatContender] = registered(None, "adaptive_eval.format_contenders", FormatContender)

#: Least number of subjects for a ranking.
FEWEST = 4
#: Quantities that are averaged over left-out subjects and tested; of the last, less is better.
_COMPARED = ("together_all", "together_fullest", "gamma")


def signed_rank(values: ArrayLike, others: ArrayLike, *, greater: bool = True) -> tuple[float, float] | None:
    """Return W and p of the one-sided signed-rank test that `values` are greater, or less; None if all are equal."""
    from scipy.stats import wilcoxon

    x, y = np.asarray(values, dtype=np.float64), np.asarray(others, dtype=np.float64)
    paired = ~np.isnan(x) & ~np.isnan(y)
    if (x[paired] == y[paired]).all():
        return None
    test = wilcoxon(x[paired], y[paired], alternative="greater" if greater else "less")
    return float(test.statistic), float(test.pvalue)


@dataclass(slots=True)
class FormatBacktest:
    """Results by (contender, budget), a row per left-out subject and repeat.

    A row holds ``target``, ``repeat``, ``calls``, ``together_all``, ``together_fullest``, ``gamma`` (NaN where no item
    is known to be of low quality), and the subject's own estimates ``all`` and ``fullest``.

    Args:
        truths: Shape (S,). ``all`` and ``fullest``.
        pairs: Pairs in the whole bank.
        low: Share of items known to be of low quality.
    """

    truths: Mapping[str, Array]
    pairs: int
    low: float
    rows: dict[tuple[str, str], list[dict[str, float]]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    ends: dict[str, list[FitEnd]] = field(default_factory=dict)

    def merge(self, other: FormatBacktest) -> None:
        """Add other left-out subjects."""
        for key, rows in other.rows.items():
            self.rows.setdefault(key, []).extend(rows)
        for name, seconds in other.seconds.items():
            self.seconds.setdefault(name, []).extend(seconds)
        for name, ends in other.ends.items():
            self.ends.setdefault(name, []).extend(ends)

    def by_target(self, contender: str, budget: str, quantity: str) -> Array:
        """Return means over repeats, one per left-out subject."""
        rows = self.rows[contender, budget]
        targets = sorted({int(row["target"]) for row in rows})
        return np.array([np.mean([row[quantity] for row in rows if row["target"] == target]) for target in targets])

    def alone(self, contender: str, budget: str, truth: str) -> float:
        """Return the rank correlation of the subjects' own estimates with the truth, the mean over repeats."""
        rows, correlations = self.rows[contender, budget], []
        for repeat in sorted({row["repeat"] for row in rows}):
            repeat_rows = [row for row in rows if row["repeat"] == repeat and not np.isnan(row[truth])]
            estimates = np.array([row[truth] for row in repeat_rows])
            truths = self.truths[truth][[int(row["target"]) for row in repeat_rows]]
            correlations.append(rank_correlation(estimates, truths) if len(repeat_rows) > 1 else np.nan)
        return float(np.mean(correlations))

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values; None for a missing number."""
        return {
            "subjects": len(self.truths["all"]),
            "left_out": len({row["target"] for rows in self.rows.values() for row in rows}),
            "pairs": self.pairs,
            "low_quality": self.low,
            "truths_agree": rank_correlation(self.truths["all"], self.truths["fullest"]),
            "rows": [self._row(name, budget) for name, budget in self.rows],
            "tests": list(self._tests()),
            "fits": {name: _fits(ends) for name, ends in self.ends.items()},
            "seconds": {name: {"mean": float(np.mean(s)), "most": float(max(s))} for name, s in self.seconds.items()},
        }

    def _row(self, name: str, budget: str) -> dict[str, Any]:
        row: dict[str, Any] = {"policy": name, "budget": budget, "calls": self.rows[name, budget][0]["calls"]}
        for quantity in _COMPARED:
            values = self.by_target(name, budget, quantity)
            row |= {quantity: float(values.mean()), f"{quantity}_sd": float(values.std())}
        row |= {f"alone_{truth}": self.alone(name, budget, truth) for truth in self.truths}
        uniform = [n for n, b in self.rows if b == budget and FORMAT_CONTENDERS[n].uniform]
        expected = float(self.by_target(uniform[0], budget, "gamma").mean()) if uniform else 0.0
        row["gamma_of_random"] = row["gamma"] / expected if expected else float("nan")
        return {key: None if value != value else value for key, value in row.items()}

    def _tests(self) -> Iterator[dict[str, Any]]:
        names = list(dict.fromkeys(name for name, _ in self.rows))
        proposed = [name for name in names if FORMAT_CONTENDERS[name].tested]
        comparators = [name for name in names if not FORMAT_CONTENDERS[name].tested]
        budgets = dict.fromkeys(budget for _, budget in self.rows)
        for budget, name, other, quantity in product(budgets, proposed, comparators, _COMPARED):
            values = [self.by_target(contender, budget, quantity) for contender in (name, other)]
            test = None if np.isnan(values).all() else signed_rank(*values, greater=quantity != "gamma")
            if test is not None:
                yield {"policy": name, "against": other, "budget": budget, "of": quantity, "w": test[0], "p": test[1]}


def _fits(ends: Sequence[FitEnd]) -> dict[str, Any]:
    bounds = Counter(f"{end.bound:g}" for end in ends if end.bound is not None)
    return {
        "fits": len(ends),
        "unsettled": sum(not end.settled for end in ends),
        "q": dict(sorted(bounds.items(), key=lambda pair: float(pair[0]))),
        "at_edge": sum(end.at_edge for end in ends),
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
    limit: int | None = None,
) -> FormatBacktest:
    """Leave some subjects out, one at a time, and interview each by every contender.

    Args:
        low: Shape (n,). Whether each item is known to be of low quality; contenders do not see this.
        budgets: Calls, or shares of all pairs of an item and a format.
        repeats: Repeats of contenders that draw.
        seed: Seed of draws, fits, and the order of items: the first of two equal items is administered, and a file may
            list low-quality items together.
        limit: See `Fold`.

    Raises:
        ResponsesError: Fewer than four subjects, or nothing but low-quality items.
    """
    if len(responses.subjects) < FEWEST:
        raise ResponsesError(
            f"{responses.source}: {len(responses.subjects)} subjects; a ranking takes {FEWEST} or more, better twenty"
        )
    order = np.random.default_rng(seed).permutation(len(low))
    scores, low = responses.scores[:, order], low[order]
    n = scores[0].size
    truths = _truths(responses, scores[:, ~low])
    sizes = {budget: resolve_budget(budget, n) for budget in budgets}
    result = FormatBacktest(truths, n, float(low.mean()))
    for target in targets:
        fold = Fold(scores, responses.modalities, target, sizes, seed, _relatives(responses, target), limit)
        for name in contenders:
            for repeat in range(repeats if FORMAT_CONTENDERS[name].drawn else 1):
                fold.seed = seed + repeat
                for budget, row in _interview_rows(fold, FORMAT_CONTENDERS[name], truths, low):
                    result.rows.setdefault((name, budget), []).append({**row, "repeat": float(repeat)})
            fold.seed = seed
        for name, seconds in fold.seconds.items():
            result.seconds.setdefault(name, []).append(seconds)
        for name, end in fold.ends.items():
            result.ends.setdefault(name, []).append(end)
    return result


def _truths(responses: FormatResponses, clean: Array) -> dict[str, Array]:
    """Return each subject's mean score, over all formats and in the fullest one.

    Args:
        clean: Shape (S, m, F). Scores of the items that are not of low quality, NaN where missing.
    """
    if not clean.shape[1]:
        raise ResponsesError(
            f"{responses.source}: all items are marked as of low quality, which leaves no truth to rank by"
        )
    in_fullest = clean[:, :, responses.modalities.fullest]
    if (unanswered := np.isnan(in_fullest).all(axis=1)).any():
        raise ResponsesError(
            f"{responses.source}: the subject {responses.subjects[int(unanswered.argmax())]!r} has no answer in the "
            f"format {responses.modalities.formats[responses.modalities.fullest]}; leave it out"
        )
    return {"all": np.nanmean(clean, axis=(1, 2)), "fullest": np.nanmean(in_fullest, axis=1)}


def _relatives(responses: FormatResponses, target: int) -> list[int]:
    """Return the other subjects of the target's family, which are left out of the fits with it."""
    families = responses.families
    relatives = [s for s, name in enumerate(families) if name == families[target] and s != target]
    if len(families) - len(relatives) < FEWEST:
        raise ResponsesError(
            f"{responses.source}: without the family of {responses.subjects[target]!r} too few subjects are left "
            "to fit: give subjects of more families"
        )
    return relatives


def _interview_rows(
    fold: Fold, contender: FormatContender, truths: Mapping[str, Array], low: Bools
) -> Iterator[tuple[str, dict[str, float]]]:
    """Interview the left-out subject; yield each budget and its row."""
    pair_scores = fold.scores.reshape(len(fold.scores), -1)
    for budget, interview in contender.interview(fold).items():
        pairs = fold.pairs_of_all(interview.pairs)
        scores = pair_scores[:, pairs]
        count = (~np.isnan(scores)).sum(axis=1)
        means = np.where(count > 0, np.nansum(scores, axis=1) / np.maximum(count, 1), 0.5)
        yield (
            budget,
            {
                "target": float(fold.target),
                "calls": len(pairs),
                **{f"together_{truth}": rank_correlation(means, values) for truth, values in truths.items()},
                "gamma": float(low[pairs // fold.formats].mean()) if low.any() else float("nan"),
                "all": interview.every,
                "fullest": interview.fullest,
            },
        )
