"""Backtests: how well a policy would have ranked and estimated subjects whose every answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engines import Engine, Recipe
from pytest_adaptive_eval.calibration.replay import conformal_tables, replay
from pytest_adaptive_eval.calibration.subsets import evolved, item_total
from pytest_adaptive_eval.cat.selection import Selector
from pytest_adaptive_eval.cat.selectors import (
    FixedForm,
    Information,
    MaximumInformation,
    NearestDifficulty,
    Random,
    Spread,
    Stratified,
    Variance,
)
from pytest_adaptive_eval.cat.session import POLICIES, Policy, Session
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inference.clusters import clusters, response_factors
from pytest_adaptive_eval.inference.conformal import Conformal, combined, conformal_scale, subjects_needed
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation, ranking_accuracy
from pytest_adaptive_eval.inference.sampling import hull, with_missing_bounded
from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.irt.estimation import PseudoItems
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import counted

__all__ = [
    "CONTENDERS",
    "Backtest",
    "Cell",
    "Contender",
    "Maker",
    "Split",
    "backtest",
    "conformal_possible",
    "splits",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Makes a policy from the scores (S, n) of the calibration subjects, embeddings (n, E) of the items or None, the budget
#: in items, and a seed.
Maker = Callable[[Array, Array | None, int, int], Policy]

#: A half-width below is none: of subjects that are right on everything, or asked everything.
NO_WIDTH = 1e-5


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to interview and to estimate.

    Parameters
    ----------
    name : str
    model : str
        Of the bank, with `dimensions`; ``none`` needs no bank.
    policy : Policy or Maker
        A maker makes one for every split and budget.
    estimate : {"projection", "mean", "ability"}
        What subjects are ranked by.
    says : str
        In one line, for tables and help.
    """

    name: str
    model: Literal["none", "bank", "1pl", "2pl", "3pl", "mirt"]
    policy: Policy | Maker
    estimate: Literal["projection", "mean", "ability"]
    says: str


def _selector(selector: Selector, floor: float = 0.0) -> Policy:
    return Policy(selector, floor)


def _clusters(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    """A form of the items nearest to the centres of `count` clusters (k-means)."""
    points = response_factors(train) if embeddings is None else embeddings
    chosen = clusters(points, count, seed).items
    rest = np.setdiff1d(np.arange(len(points)), chosen)[: count - len(chosen)]
    return Policy(FixedForm((*chosen.tolist(), *rest.tolist())), 0.0)


def _item_total(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    """A form of the items that correlate most with the subjects' means."""
    return Policy(FixedForm(tuple(np.argsort(-item_total(train), kind="stable")[:count].tolist())), 0.0)


def _evolved(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    """A form by FlashEval's evolutionary search."""
    return Policy(FixedForm(tuple(evolved(train, count, np.random.default_rng(seed)).tolist())), 0.0)


#: Everything a backtest can compare, by name.
CONTENDERS: Mapping[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender(
            "estimate", "bank", POLICIES["estimate"], "projection", "the policy estimate, on the model of --model"
        ),
        Contender(
            "decide",
            "bank",
            replace(POLICIES["decide"], batch=1),
            "projection",
            "the policy decide, one by one, on the same model",
        ),
        Contender("random", "none", _selector(Random()), "mean", "uniform draws, mean score"),
        Contender(
            "random-projected",
            "bank",
            _selector(Random()),
            "projection",
            "uniform draws, projected by the model of --model",
        ),
        Contender("stratified", "none", _selector(Stratified()), "mean", "equal numbers a category, mean score"),
        Contender("cluster", "none", _clusters, "mean", "an item a cluster of response patterns, mean score"),
        Contender("item-total", "none", _item_total, "mean", "items that go with the total, mean score"),
        Contender("flasheval", "none", _evolved, "mean", "evolutionary search (FlashEval), mean score"),
        Contender(
            "nearest-difficulty",
            "1pl",
            Policy(NearestDifficulty(), 0.0, estimator=PseudoItems()),
            "ability",
            "Rasch, difficulty nearest to ability (as in AutoJudger)",
        ),
        Contender("maximum-information", "2pl", _selector(MaximumInformation()), "projection", "2PL, most information"),
        Contender("d-optimal", "mirt", _selector(MaximumInformation()), "projection", "MIRT, D-optimal"),
        Contender(
            "information", "2pl", _selector(Information(), 0.25), "projection", "2PL, drawn by information, floor .25"
        ),
        Contender("spread", "2pl", _selector(Spread(), 0.5), "projection", "2PL, drawn by predicted spread, floor .5"),
        Contender(
            "variance", "mirt", _selector(Variance()), "projection", "MIRT, what most lowers the projection's variance"
        ),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Who calibrates and who is interviewed, by position."""

    train: Ints
    test: Ints


def splits(
    responses: Responses, count: int, *, test: int, seed: int, strata: Sequence[float] | None = None
) -> Iterator[Split]:
    """Random splits that keep families whole.

    Parameters
    ----------
    responses : Responses
    count : int
    test : int
        Subjects to interview, at most; a family that does not fit in is left to calibrate.
    seed : int
    strata : sequence of float, length S, optional
        Such as model sizes: every fifth of them gives its share of test subjects.  NaN is a stratum of its own.

    Raises
    ------
    ResponsesError
        Fewer than two subjects would calibrate, or be interviewed.
    """
    families, codes = np.unique(list(responses.families), return_inverse=True)
    if len(codes) < 4:
        raise ResponsesError(
            f"{counted(len(codes), 'subject')} cannot be split: four are needed, two to calibrate and two to interview"
        )
    if not 2 <= test <= len(codes) - 2:
        raise ResponsesError(
            f"{counted(len(codes), 'subject')} cannot give {test} to interview, two or more, and leave two or more to "
            "calibrate: choose another number of test subjects"
        )
    rng = np.random.default_rng(seed)
    level = np.zeros(len(families), dtype=np.int64)
    if strata is not None:
        size = np.asarray(strata, dtype=np.float64)
        known = ~np.isnan(size)
        members = np.bincount(codes[known], minlength=len(families))
        some = members > 0
        mean = np.bincount(codes[known], size[known], len(families))[some] / members[some]
        level[~some] = 5
        if some.any():
            level[some] = np.searchsorted(np.quantile(mean, [0.2, 0.4, 0.6, 0.8]), mean)
    for _ in range(count):
        order = rng.permutation(len(families))
        if strata is not None:  # the fifths take turns
            turn = np.empty(len(order))
            for one in np.unique(level):
                mine = level[order] == one
                turn[mine] = (np.arange(mine.sum()) + rng.random()) / mine.sum()
            order = order[np.argsort(turn, kind="stable")]
        chosen: list[int] = []
        for family in order:
            members = np.flatnonzero(codes == family)
            if len(chosen) + len(members) <= test:
                chosen += members.tolist()
        if len(chosen) < 2:
            raise ResponsesError(
                f"the {len(codes)} subjects are of {len(families)} families, which stay together and are too large for "
                f"{test} to interview: choose a larger number of test subjects"
            )
        mask = np.zeros(len(codes), dtype=bool)
        mask[chosen] = True
        yield Split(np.flatnonzero(~mask), np.flatnonzero(mask))


@dataclass(slots=True)
class Cell:
    """What one contender at one budget did, a value a split, and a value a test subject.

    Parameters
    ----------
    ranking, correlation, error : list of float
        Ranking accuracy in percent, Spearman's rho, mean absolute error of the accuracy.
    truth : list of float
        Accuracy of every test subject of every split.
    intervals : mapping of str to list of (low, high)
        By method, in step with `truth`.
    uniform : list of float
        Half-width of the normal interval from as many uniform draws at the true accuracy, in step with `truth`.
    """

    ranking: list[float] = field(default_factory=list)
    correlation: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    intervals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    uniform: list[float] = field(default_factory=list)

    def extend(self, other: Cell) -> None:
        """Take in another part."""
        for name in ("ranking", "correlation", "error", "truth", "uniform"):
            getattr(self, name).extend(getattr(other, name))
        for method, pairs in other.intervals.items():
            self.intervals.setdefault(method, []).extend(pairs)

    def coverage(self, method: str, where: Bools | None = None) -> float:
        """Share of intervals that hold the truth."""
        low, high = np.array(self.intervals[method]).T
        truth = np.array(self.truth)
        inside = (low <= truth + 1e-12) & (truth <= high + 1e-12)
        return float(inside[where if where is not None else slice(None)].mean())

    def width(self, method: str) -> float:
        """Mean half-width over that of as many uniform draws, where that is not 0."""
        low, high = np.array(self.intervals[method]).T
        uniform = np.array(self.uniform)
        some = uniform > NO_WIDTH
        return float(((high - low)[some] / 2 / uniform[some]).mean()) if some.any() else float("nan")

    def fifths(self, method: str) -> list[float]:
        """Coverage in each fifth of the subjects by accuracy."""
        truth = np.array(self.truth)
        fifth = np.searchsorted(np.quantile(truth, [0.2, 0.4, 0.6, 0.8]), truth, side="right")
        return [self.coverage(method, fifth == f) for f in range(5) if (fifth == f).any()]


@dataclass(slots=True)
class Backtest:
    """Cells by (contender, budget), with the numbers of items, and the confidence of each one-sided bound."""

    items: int
    budgets: dict[str, int]
    cells: dict[tuple[str, str], Cell]
    splits: int = 0
    confidence: float = 0.975

    def merge(self, other: Backtest) -> None:
        """Take in the splits of another part."""
        for key, cell in other.cells.items():
            self.cells.setdefault(key, Cell()).extend(cell)
        self.splits += other.splits

    def to_json(self) -> dict[str, Any]:
        """The table as data, rounded to six digits; None where there is no number."""
        rows = []
        for (name, budget), cell in self.cells.items():
            mean, error = _mean(cell.ranking)
            rows.append(
                {
                    "policy": name,
                    "budget": budget,
                    "items": self.budgets[budget],
                    "ranking_accuracy": mean,
                    "ranking_accuracy_se": error,
                    "spearman": _mean(cell.correlation)[0],
                    "mean_absolute_error": _mean(cell.error)[0],
                    "intervals": {
                        method: {"coverage": _plain(cell.coverage(method)), "width": _plain(cell.width(method))}
                        for method in cell.intervals
                    },
                }
            )
        plain = [{k: _plain(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
        return {
            "items": self.items,
            "splits": self.splits,
            "confidence": self.confidence,
            "rows": plain,
            "smallest_budget": self.smallest(),
        }

    def smallest(self, targets: Sequence[float] = (85.0, 90.0)) -> dict[str, dict[str, str | None]]:
        """The smallest budget tried at which each contender's mean ranking accuracy reaches each target."""
        out: dict[str, dict[str, str | None]] = {}
        for name in dict.fromkeys(name for name, _ in self.cells):
            by_size = sorted((b for n, b in self.cells if n == name), key=self.budgets.__getitem__)
            out[name] = {
                f"{target:g}": next((b for b in by_size if _mean(self.cells[name, b].ranking)[0] >= target), None)
                for target in targets
            }
        return out


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def _mean(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error; NaN where there is nothing."""
    array = np.array(list(values), dtype=np.float64)
    array = array[~np.isnan(array)]
    if not len(array):
        return float("nan"), float("nan")
    error = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else float("nan")
    return float(array.mean()), error


def backtest(
    responses: Responses,
    split: Split,
    contenders: Sequence[Contender],
    budgets: Sequence[str | int],
    *,
    recipe: Recipe,
    seed: int = 0,
    confidence: float = 0.975,
    intervals: bool = False,
    bank: ItemBank | None = None,
    categories: Sequence[str] = (),
    embeddings: Array | None = None,
) -> Backtest:
    """Interview the test subjects of one split by every contender.

    Parameters
    ----------
    responses : Responses
    split : Split
    contenders : sequence of Contender
    budgets : sequence of str or int
        As in settings.
    recipe : Recipe
        Of the banks of contenders on ``bank``; the others take its engine.
    seed : int
    confidence : float
        Of each one-sided bound.
    intervals : bool
        Whether to make them, which replays the calibration subjects' interviews.
        Conformal ones are left out where the calibration subjects are too few for `confidence`.
    bank : ItemBank, optional
        In place of calibrating on the train subjects, for all contenders, with
        the conformal tables that it has.
    categories : sequence of str, length n, optional
    embeddings : array, shape (n, E), optional
        For makers of policies; response patterns of the train subjects where there are none.
    """
    scores = responses.scores[split.test]
    truth = np.nanmean(scores, axis=1)
    n = scores.shape[1]
    counts = {str(budget): resolve_budget(budget, n) for budget in budgets}
    learn = responses.scores[split.train]

    def made(by: Recipe | None, data: Array) -> ItemBank:
        if bank is not None:
            return replace(bank, categories=tuple(categories) or bank.categories)
        if by is None:
            zeros = np.zeros(n)
            return ItemBank("backtest", responses.items, (), zeros, zeros, calibrated=False, categories=categories)
        return replace(by.finished(data).bank("backtest", responses.items), categories=tuple(categories))

    out = Backtest(n, counts, {}, 1, confidence)
    banks: dict[Recipe | None, ItemBank] = {}
    for contender in contenders:
        by = _recipe(contender.model, recipe)
        if by not in banks:
            banks[by] = made(by, learn)
        here, made_by = banks[by], contender.policy
        policies = [
            replace(made_by if isinstance(made_by, Policy) else made_by(learn, embeddings, count, seed), budget=count)
            for count in counts.values()
        ]
        tables: Sequence[Conformal | None] = [None] * len(policies)
        if intervals and here.calibrated and contender.estimate == "projection":
            if bank is not None:
                tables = [bank.conformal.get(policy.key(bank)) for policy in policies]
            elif conformal_possible(train := responses.of(split.train), confidence):
                tables = conformal_tables(train, partial(made, by), policies, bank=here, seed=seed)
        for label, policy, table in zip(counts, policies, tables, strict=True):
            session = replay(here, policy, scores, seed=[seed + int(s) for s in split.test])
            out.cells[contender.name, label] = _judge(session, contender, truth, confidence, intervals, table)
    return out


def conformal_possible(train: Responses, confidence: float) -> bool:
    """Whether families are enough for conformal intervals with this confidence of each one-sided bound."""
    return len(set(train.families)) >= subjects_needed(confidence)


def _recipe(model: str, recipe: Recipe) -> Recipe | None:
    """What makes a contender's bank: the recipe itself, or with its engine where that fits the model."""
    if model == "none":
        return None
    if model in ("bank", recipe.model):
        return recipe
    engine: Engine = "map" if model == "mirt" else recipe.engine
    return replace(recipe, model=model, dimensions=None, engine=engine)  # type: ignore[arg-type]


def _judge(
    session: Session, contender: Contender, truth: Array, confidence: float, intervals: bool, table: Conformal | None
) -> Cell:
    """What ended interviews say about the truth."""
    n, asked = len(session.bank), session.stopped_at
    answers = session.answers[1]
    scored = (~np.isnan(answers)).sum(axis=1)
    mean = np.where(scored > 0, np.nansum(answers, axis=1) / np.maximum(scored, 1), 0.5)
    accuracy, error = session.projection() if session.bank.calibrated else (mean, np.zeros(len(mean)))
    score = {"projection": accuracy, "mean": mean, "ability": session.estimate.theta[:, 0]}[contender.estimate]
    shown = mean if contender.estimate == "mean" else accuracy
    spread = np.maximum(truth * (1.0 - truth), 1e-12) / asked * np.maximum(1.0 - asked / n, 1e-12)
    cell = Cell(
        [ranking_accuracy(score, truth) if np.ptp(truth) > 0 else float("nan")],
        [rank_correlation(score, truth)],
        [float(np.abs(shown - truth).mean())],
        truth.tolist(),
        uniform=(student_quantile(math.inf, confidence) * np.sqrt(spread)).tolist(),
    )
    if session.bank.calibrated and contender.estimate == "projection":
        half = student_quantile(math.inf, confidence) * error
        cell.intervals["model-based"] = list(zip(accuracy - half, accuracy + half, strict=True))
    by_method: dict[str, list[Interval]] = {}
    if intervals and not session.policy.design_based and np.isfinite(session.log().propensities).all():
        by_method["design-based"] = [_design(session, s, confidence) for s in range(len(truth))]
    if table is not None and table.families < subjects_needed(confidence):
        table = None
    if table is not None:
        scale = conformal_scale(accuracy, error, asked, n)
        both = zip(accuracy.tolist(), scale.tolist(), strict=True)
        by_method["conformal"] = [table.interval(a, s, confidence) for a, s in both]
    if len(by_method) == 2 and table is not None:
        by_method["combined"] = _combined(session, table, accuracy, scale, confidence)
    for method, found in by_method.items():
        cell.intervals[method] = [(i.low, i.high) for i in found]
    return cell


def _design(session: Session, subject: int, confidence: float) -> Interval:
    """The design-based interval as gates have it."""
    return hull(*with_missing_bounded(session.log(subject), confidence))


def _combined(session: Session, table: Conformal, accuracy: Array, scale: Array, confidence: float) -> list[Interval]:
    """Both methods at half the error each; the design alone where they contradict each other."""
    half = (1.0 + confidence) / 2.0
    if table.families < subjects_needed(half):
        return [_design(session, s, confidence) for s in range(len(accuracy))]
    out = []
    for s in range(len(accuracy)):
        design = _design(session, s, half)
        both = combined(design, table.interval(float(accuracy[s]), float(scale[s]), half))
        out.append(both or design)
    return out
