"""Backtests in formats: each subject is left out once, and every contender gives it as many pairs of item and format.

Two protocols rank the subjects. *Together*: raw means of all subjects on the pairs that the left-out one was given, one
coefficient per left-out subject, as the code of the M3-IRT paper does. The others' answers chose those pairs, so this
flatters contenders that use them. *Alone*: each subject is judged by its own interview, and there is one coefficient.
Two truths, both over the items that are not known to be of low quality: the mean over all formats, which is that
paper's, and the mean in the fullest format. gamma is the share of calls spent on low-quality items; uniform draws spend
their share of the bank.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.calibration.multimodal import PAPER, MultimodalFit, Training, fit_multimodal
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.extensions.papers.subsets import evolved, item_total
from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.multimodal import CumulativeInformation, Form, Modalities
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview
from pytest_adaptive_eval.items.responses import FormatResponses
from pytest_adaptive_eval.ties import first_largest, tie_ranks
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Largest number of clusters: k-means of more is slow, and many would have one member.
CLUSTERS = 350


def anchors(points: Array, count: int, seed: int) -> tuple[Ints, Array]:
    """Return columns near the centres of clusters, and their weights, which sum to 1.

    As in tinyBenchmarks (Polo et al. 2024), `points` are the parameters of an item response model. A column stands for
    its share of its cluster.

    Args:
        points: Shape (n, d).
    """
    label = clusters(points, min(count, CLUSTERS), seed).label
    sizes = np.bincount(label)
    centre = np.array([points[label == k].mean(axis=0) for k in range(len(sizes))])
    distance = ((points - centre[label]) ** 2).sum(axis=1)
    distance = tie_ranks(distance, float(np.square(points).sum(axis=1).max()))
    order = np.argsort(distance, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)  # number of nearer members of the cluster
    for k in range(len(sizes)):
        members = order[label[order] == k]
        rank[members] = np.arange(len(members))
    chosen = np.lexsort((distance, rank))[:count]
    asked = np.bincount(label[chosen], minlength=len(sizes))
    weight = (sizes / np.maximum(asked, 1))[label[chosen]]
    return chosen.astype(np.int64), np.asarray(weight / weight.sum())


@dataclass(slots=True)
class FormatInterviewResult:
    """An interview at one budget.

    Args:
        pairs: Shape (calls,).
        every, fullest: Estimates of the mean over all formats, and in the fullest, from the subject's own answers; NaN
            for none.
    """

    pairs: Ints
    every: float
    fullest: float


#: Iterations of a fit with a pair for an item, at most; on MathVista it settles after 720.
PAIR_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class FitEnd:
    """End of a fit.

    Args:
        bound: Upper bound q of the parts.
        at_edge: Whether that is the smallest or the largest q that was tried.
    """

    settled: bool
    bound: float | None = None
    at_edge: bool = False

    @classmethod
    def of(cls, fit: Any) -> FitEnd:
        """Return the end of a fit, in formats or not."""
        if not isinstance(fit, MultimodalFit):
            return cls(fit.converged)
        bound = fit.items.bound
        return cls(fit.converged, bound, bound in (min(fit.tried), max(fit.tried)))


@dataclass(eq=False)
class Fold:
    """One subject left out, and fits to the others, each made once.

    Args:
        scores: Shape (S, n, F). Scores of all subjects that are fitted or interviewed.
        target: Row of the subject left out.
        budgets: Calls, by the text of the setting.
        kin: Rows of subjects of its family, which are left out of the fits too.
        limit: Largest number of iterations of each fit, or of steps for one q; their own when omitted.
    """

    scores: Array
    modalities: Modalities
    target: int
    budgets: Mapping[str, int]
    seed: int = 0
    kin: Sequence[int] = ()
    limit: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    ends: dict[str, FitEnd] = field(default_factory=dict)

    def __post_init__(self) -> None:
        train = np.delete(self.scores, [self.target, *self.kin], axis=0)
        # items that nobody else answered cannot be fitted, and are not administered
        self.items = np.flatnonzero(~np.isnan(train).all(axis=(0, 2)))
        self.train = train[:, self.items]
        #: Scores of the subject left out, by pair.
        self.target_scores = self.scores[self.target][self.items].ravel()
        #: Scores of the other subjects, by pair.
        self.train_pairs = self.train.reshape(len(self.train), -1)
        #: Pairs that some of the others answered: a model with a pair for an item can be fitted to these.
        self.answered_pairs = np.flatnonzero(~np.isnan(self.train_pairs).all(axis=0))
        self.formats = self.scores.shape[2]
        self._fits: dict[str, Any] = {}

    def multimodal_fit(self, form: Form, *, likelihood: bool = False) -> Any:
        """Return the fit of items in formats to the other subjects; `likelihood` for the paper's."""
        if likelihood:
            name, training = f"{form}-likelihood", PAPER
        else:
            name, training = form, Training()
        if self.limit is not None:
            training = replace(training, steps=self.limit)
        return self._once(
            name,
            lambda: fit_multimodal(
                self.train, modalities=self.modalities, form=form, training=training, seed=self.seed
            ),
        )

    def quality(self) -> Any:
        """Return the quality of the items by the responses of the other subjects."""
        return self._once("quality", lambda: item_quality(self.train, self.modalities, seed=self.seed))

    def pair_fit(self, model: str) -> Any:
        """Return a fit of a model with a pair for an item to the other subjects."""
        limit = PAIR_LIMIT if self.limit is None else self.limit
        return self._once(model, lambda: fit_map(self.train_pairs[:, self.answered_pairs], model=model, limit=limit))

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._fits:
            start = time.process_time()
            fit = self._fits[name] = make()
            self.seconds[name] = time.process_time() - start
            if hasattr(fit, "converged"):
                self.ends[name] = FitEnd.of(fit)
        return self._fits[name]

    def means(self, order: Callable[[int], Ints]) -> dict[str, FormatInterviewResult]:
        """Return mean scores over pairs that are chosen before the interview."""
        results = {}
        for name, budget in self.budgets.items():
            pairs = order(min(budget, self.target_scores.size))
            scores = self.target_scores[pairs]
            results[name] = FormatInterviewResult(pairs, mean_score(scores), mean_score(scores[self.in_fullest(pairs)]))
        return results

    def in_fullest(self, pairs: Ints) -> Bools:
        """Return whether each pair is in the fullest format."""
        return np.asarray(pairs % self.formats == self.modalities.fullest)

    def pairs_of_all(self, pairs: Ints) -> Ints:
        """Return the same pairs among all items, including items that nobody answered."""
        return np.asarray(self.items[pairs // self.formats] * self.formats + pairs % self.formats)


def mean_score(scores: Array, weights: Array | None = None) -> float:
    """Return the mean of the scores that are not missing; NaN if there are none."""
    scored = ~np.isnan(scores)
    if not scored.any():
        return float("nan")
    return float(np.average(scores[scored], weights=None if weights is None else weights[scored]))


@dataclass(frozen=True, slots=True)
class FormatContender:
    """A way to choose pairs.

    Args:
        name: Value of ``--policy``.
        interview: Takes a fold and returns a result for each budget.
        drawn: Whether it draws at random, and is repeated.
        uniform: Whether it draws all pairs alike: the reference for calls spent on low-quality items.
        tested: Whether it is tested against each contender that is not, the comparators.
    """

    name: str
    summary: str
    interview: Callable[[Fold], dict[str, FormatInterviewResult]]
    drawn: bool = False
    uniform: bool = False
    tested: bool = False


Results = dict[str, FormatInterviewResult]

#: An adaptive interview estimates anew after so many answers, or after this part of the answers so far if larger.
STEP, PART = 4, 25


def _in_formats(form: Form, *, adaptive: bool, whole: bool, worth: bool, likelihood: bool) -> Callable[[Fold], Results]:
    """Return the function that interviews a left-out subject by the M2 or M3 fit to the other subjects."""

    def interview(fold: Fold) -> Results:
        fit = fold.multimodal_fit(form, likelihood=likelihood)
        rated = np.ones(len(fold.items), dtype=bool)  # items over which accuracies are estimated
        if worth:
            rated = fold.quality().value >= np.median(fold.quality().value)
        results = {}
        for name, budget in fold.budgets.items():
            if worth:
                weights = fold.quality().worth(-(-budget // fold.formats))
            else:
                weights = None
            session = FormatInterview(fit.items, fit.population, whole=whole, adaptive=adaptive, worth=weights)
            _administer(session, fold.target_scores, budget)
            p = fit.items.probability(session.abilities.theta)[0, rated]
            results[name] = FormatInterviewResult(
                session.pairs, float(p.mean()), float(p[:, fold.modalities.fullest].mean())
            )
        return results

    return interview


def _administer(session: FormatInterview, scores: Array, budget: int) -> None:
    while (remaining := min(budget, scores.size) - session.calls) > 0:
        batch: list[int] = []
        while len(batch) < min(remaining, max(STEP, session.calls // PART)):
            pairs = session.ask(remaining - len(batch)).tolist()
            if not pairs:
                break
            batch += pairs
        if not batch:
            return
        session.tell(scores[batch])


def _by_pair_model(model: str) -> Callable[[Fold], Results]:
    """Return an interview that takes a pair for an item: most information, D-optimal in more dimensions."""

    def interview(fold: Fold) -> Results:
        fit = fold.pair_fit(model)
        A, d, scores = fit.discrimination, fit.intercept, fold.target_scores[fold.answered_pairs]
        estimator, D = MAP(), A.shape[1]
        state, estimated = estimator.prior(1, D), 0
        information = CumulativeInformation.start(np.eye(D))
        order: list[int] = []
        remaining = np.ones(len(d), dtype=bool)
        sizes = {name: min(budget, len(d)) for name, budget in fold.budgets.items()}
        results: Results = {}
        for size in sorted(set(sizes.values())):
            while len(order) < size:
                w = irt.weight(irt.probability(state.theta, A, d))[0]
                for _ in range(min(max(STEP, estimated // PART), size - len(order))):
                    best = int(first_largest(np.where(remaining, information.gain(w, A), -1.0)))
                    remaining[best] = False
                    information.add(w[[best]], A[[best]])
                    order.append(best)
                estimated = len(order)
                state = estimator.estimate(scores[None, order], A[None, order], d[None, order], None, state)
            p = irt.probability(state.theta, A, d)[0]
            result = FormatInterviewResult(
                fold.answered_pairs[order], float(p.mean()), float(p[fold.in_fullest(fold.answered_pairs)].mean())
            )
            results |= {name: result for name, budget in sizes.items() if budget == size}
        return results

    return interview


def _random(fold: Fold) -> Results:
    rng = np.random.default_rng([fold.seed, fold.target])
    return fold.means(lambda budget: rng.choice(fold.target_scores.size, budget, replace=False))


def _item_total(fold: Fold) -> Results:
    order = tie_ranks(-item_total(fold.train_pairs)).argsort(kind="stable")
    return fold.means(lambda budget: order[:budget])


def _anchors(fold: Fold) -> Results:
    fit = fold.pair_fit("mirt")
    points = np.c_[fit.discrimination, fit.intercept]
    results = {}
    for name, budget in fold.budgets.items():
        chosen, weight = anchors(points, min(budget, len(points)), fold.seed)
        pairs = fold.answered_pairs[chosen]
        fullest, scores = fold.in_fullest(pairs), fold.target_scores[pairs]
        results[name] = FormatInterviewResult(
            pairs, mean_score(scores, weight), mean_score(scores[fullest], weight[fullest])
        )
    return results


def _evolved(fold: Fold) -> Results:
    rng = np.random.default_rng([fold.seed, fold.target, 1])
    return fold.means(lambda budget: evolved(fold.train_pairs, budget, rng))


def _fitted(name: str, summary: str, **settings: bool) -> Iterator[FormatContender]:
    """Yield a contender of M2 and one of M3, each as it is and with the filter of items."""
    settings = {"adaptive": True, "whole": True, "likelihood": False} | settings
    forms: tuple[tuple[Form, str], ...] = (("m2", "Fisher, Eq. 9"), ("m3", "D-optimal, Eq. 11"))
    for form, rule in forms:
        for suffix, filtered in (("", ""), ("+worth", ", filtered")):
            interview = _in_formats(form, worth=bool(suffix), **settings)
            text = f"{form.upper()}, {rule}{summary}{filtered}"
            yield FormatContender(f"{form}{name}{suffix}", text, interview, tested=True)


_CONTENDERS = (
    FormatContender("random", "uniform draws of pairs, mean score", _random, drawn=True, uniform=True),
    FormatContender("irt", "2PL, a pair for an item, most information", _by_pair_model("2pl")),
    FormatContender("mirt", "MIRT, a pair for an item, D-optimal", _by_pair_model("mirt")),
    FormatContender("anchors", "near centres of clusters of MIRT items (tinyBenchmarks)", _anchors),
    FormatContender("flasheval", "evolutionary search of pairs (FlashEval)", _evolved),
    FormatContender("item-total", "pairs that correlate most with the subjects' means", _item_total),
    *_fitted("", ", whole items"),
    *_fitted("-likelihood", ", fitted as in the paper", likelihood=True),
    *_fitted("-static", ", one form for all", adaptive=False),
    *_fitted("-pairs", ", single pairs, one form", adaptive=False, whole=False),
)

#: Contenders by name.
FORMAT_CONTENDERS: Mapping[str, FormatContender] = {contender.name: contender for contender in _CONTENDERS}

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
        if uniform:
            expected = float(self.by_target(uniform[0], budget, "gamma").mean())
        else:
            expected = 0.0
        if expected:
            row["gamma_of_random"] = row["gamma"] / expected
        else:
            row["gamma_of_random"] = float("nan")
        return {key: None if value != value else value for key, value in row.items()}

    def _tests(self) -> Iterator[dict[str, Any]]:
        names = list(dict.fromkeys(name for name, _ in self.rows))
        proposed = [name for name in names if FORMAT_CONTENDERS[name].tested]
        comparators = [name for name in names if not FORMAT_CONTENDERS[name].tested]
        budgets = dict.fromkeys(budget for _, budget in self.rows)
        for budget, name, other, quantity in product(budgets, proposed, comparators, _COMPARED):
            values = [self.by_target(contender, budget, quantity) for contender in (name, other)]
            if np.isnan(values).all():
                test = None
            else:
                test = signed_rank(*values, greater=quantity != "gamma")
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


def with_low_quality(responses: FormatResponses, low: Bools, share: float) -> tuple[FormatResponses, Bools]:
    """Return the responses in random order, with so few items of low quality that these are a share of all.

    Raises:
        ResponsesError: The items of low quality are fewer than that share.
    """
    order = np.random.default_rng(0).permutation(len(low))
    low = low[order]
    count = round((~low).sum() * share / (1.0 - share))
    if count > low.sum():
        raise ResponsesError(
            f"{responses.source}: {low.sum()} of {len(low)} items are of low quality, and a share of {share:g} needs "
            f"{count}: give more of them, or a smaller share"
        )
    kept = ~low | (np.cumsum(low) <= count)
    return responses.at(order[kept]), low[kept]


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
