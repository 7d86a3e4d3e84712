"""Backtests of policies: ranking and estimation of subjects with known responses to every item."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.calibration.families import effective_weights
from pytest_adaptive_eval.calibration.prediction import FEWEST_FAMILIES, Designs, choose_designs
from pytest_adaptive_eval.calibration.recipe import PartFits, Recipe
from pytest_adaptive_eval.calibration.replay import conformal_tables, replay_each
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.extensions.backtests.contenders import Contender
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.conformal import (
    Conformal,
    combined,
    conformal_scale,
    subjects_needed,
    uniform_half_width,
)
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation, ranking_accuracy
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.types import Array, Bools, Ints

CONFIDENCE = 0.975  #: Of each one-sided bound: 95 % intervals.
#: Smaller half-widths count as 0: of subjects that are right on everything, or were given every item.
NO_WIDTH = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Positions of calibration subjects and of interviewed subjects."""

    train: Ints
    test: Ints


def splits(responses: Responses, count: int, *, test: int, seed: int) -> Iterator[Split]:
    """Yield random splits that keep families whole.

    Args:
        test: Largest number of subjects to interview; a family that does not fit in is left to calibrate.

    Raises:
        ResponsesError: Fewer than two subjects would calibrate, or be interviewed.
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
    for _ in range(count):
        order = rng.permutation(len(families))
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
class BacktestCell:
    """Results of one contender at one budget, a value per split or per test subject.

    Args:
        ranking, correlation, error: Ranking accuracy in percent, Spearman's rho, mean absolute error of the accuracy.
        truth: Accuracy of every test subject of every split.
        intervals: By method, in step with `truth`.
        uniform: Half-width of the normal interval from as many uniform draws at the true accuracy, in step with
            `truth`.
    """

    ranking: list[float] = field(default_factory=list)
    correlation: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    intervals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    uniform: list[float] = field(default_factory=list)

    def extend(self, other: BacktestCell) -> None:
        """Append the values of another part."""
        for name in ("ranking", "correlation", "error", "truth", "uniform"):
            getattr(self, name).extend(getattr(other, name))
        for method, pairs in other.intervals.items():
            self.intervals.setdefault(method, []).extend(pairs)

    def covers(self, method: str) -> Bools:
        """Return whether each interval contains the truth, in step with `truth`."""
        low, high = np.array(self.intervals[method]).T
        truth = np.array(self.truth)
        return np.asarray((low <= truth + 1e-12) & (truth <= high + 1e-12))

    def width(self, method: str) -> float:
        """Return the mean half-width over that of as many uniform draws, where that is not 0."""
        low, high = np.array(self.intervals[method]).T
        uniform = np.array(self.uniform)
        wide = uniform > NO_WIDTH
        if wide.any():
            return float(((high - low)[wide] / 2 / uniform[wide]).mean())
        return float("nan")

    def interval_json(self, method: str) -> dict[str, float | None]:
        """Return the share of intervals that contain the truth, and `width`."""
        coverage = float(self.covers(method).mean())
        return {"coverage": _rounded(coverage), "width": _rounded(self.width(method))}


@dataclass(slots=True)
class Backtest:
    """Cells by (contender, budget), with the numbers of items, and the confidence of each one-sided bound."""

    items: int
    budgets: dict[str, int]
    cells: dict[tuple[str, str], BacktestCell]
    splits: int = 0
    confidence: float = CONFIDENCE

    def merge(self, other: Backtest) -> None:
        """Add the splits of another part."""
        for key, cell in other.cells.items():
            self.cells.setdefault(key, BacktestCell()).extend(cell)
        self.splits += other.splits

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values, rounded to six digits; None for a missing number."""
        rows = []
        for (name, budget), cell in self.cells.items():
            mean, error = _mean(cell.ranking)
            rows.append(
                {
                    "policy": name,
                    "budget": budget,
                    "items": self.budgets[budget],
                    "ranking_accuracy": _rounded(mean),
                    "ranking_accuracy_se": _rounded(error),
                    "ranking_accuracy_spread": _rounded(_spread(cell.ranking)),
                    "spearman": _rounded(_mean(cell.correlation)[0]),
                    "mean_absolute_error": _rounded(_mean(cell.error)[0]),
                    "intervals": {method: cell.interval_json(method) for method in cell.intervals},
                }
            )
        return {
            "items": self.items,
            "splits": self.splits,
            "confidence": self.confidence,
            "rows": rows,
            "smallest_budget": self.smallest(),
        }

    def smallest(self) -> dict[str, dict[str, str | None]]:
        """Return the smallest tried budget at which each contender's mean ranking accuracy reaches 85 and 90 %."""
        smallest: dict[str, dict[str, str | None]] = {}
        for name in dict.fromkeys(name for name, _ in self.cells):
            by_size = sorted((b for n, b in self.cells if n == name), key=self.budgets.__getitem__)
            smallest[name] = {
                f"{target}": next((b for b in by_size if _mean(self.cells[name, b].ranking)[0] >= target), None)
                for target in (85, 90)
            }
        return smallest


def _rounded(value: float) -> float | None:
    if math.isnan(value):
        return None
    return round(value, 6)


def _mean(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error without NaN; NaN where there is nothing."""
    array = np.asarray(values, dtype=np.float64)
    array = array[~np.isnan(array)]
    if not len(array):
        return float("nan"), float("nan")
    if len(array) > 1:
        error = float(array.std(ddof=1) / math.sqrt(len(array)))
    else:
        error = float("nan")
    return float(array.mean()), error


def _spread(values: Sequence[float]) -> float:
    """Return 1.96 standard deviations over splits, as papers give them; NaN for fewer than two."""
    array = np.asarray(values, dtype=np.float64)
    array = array[~np.isnan(array)]
    if len(array) > 1:
        return 1.96 * float(array.std(ddof=1))
    return float("nan")


def _policy(contender: Contender, train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:
    """Return a contender's policy for a budget."""
    maker = contender.policy
    if isinstance(maker, Policy):
        policy = maker
    else:
        policy = maker(train, embeddings, count, seed)
    return replace(policy, budget=count)


def backtest(
    responses: Responses,
    split: Split,
    contenders: Sequence[Contender],
    budgets: Sequence[str | int],
    *,
    recipe: Recipe,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    intervals: bool = False,
    categories: Sequence[str] = (),
    embeddings: Array | None = None,
) -> Backtest:
    """Interview the test subjects of one split by every contender.

    Args:
        recipe: Recipe of the banks of contenders on ``bank``; the others use its engine.
        confidence: Confidence of each one-sided bound.
        intervals: Whether to make them, which replays the calibration subjects' interviews. Conformal ones are left out
            where the calibration subjects are too few for `confidence`.
        embeddings: Shape (n, E). For makers of policies; response patterns of the train subjects where there are none.
    """
    scores = responses.scores[split.test]
    train = responses.scores[split.train]
    calibrating = replace(responses.of(split.train), weights=None)
    calibrating = replace(calibrating, weights=effective_weights(calibrating))
    seeds = []
    for s in split.test:
        seeds.append(seed + zlib.crc32(responses.subjects[s].encode()))
    truth = np.nanmean(scores, axis=1)
    n = scores.shape[1]
    counts = {str(budget): resolve_budget(budget, n) for budget in budgets}
    banks = _Banks(calibrating, list(counts.values()), seed, tuple(categories))
    result = Backtest(n, counts, {}, 1, confidence)
    some_assisted = any(isinstance(c.policy, Policy) and c.policy.assisted for c in contenders)
    for contender in contenders:
        fit = _bank_recipe(contender, recipe)
        assisted = fit == recipe and some_assisted
        bank = banks.of_all(fit, assisted)
        policies = []
        for count in counts.values():
            policies.append(_policy(contender, train, embeddings, count, seed))
        tables: Sequence[Conformal | None] = [None] * len(policies)
        if intervals and contender.estimate == "projection" and conformal_possible(calibrating, confidence):
            again = partial(banks.of_part, fit, assisted)
            tables = conformal_tables(calibrating, again, policies, bank=bank, seed=seed)
        sessions = replay_each(bank, policies, scores, seed=seeds, designed=intervals)
        for label, session, table in zip(counts, sessions, tables, strict=True):
            result.cells[contender.name, label] = evaluate(session, contender, truth, confidence, intervals, table)
    return result


class _Banks:
    """Banks of one split by recipe, each calibrated once."""

    def __init__(self, calibrating: Responses, counts: Sequence[int], seed: int, categories: tuple[str, ...]) -> None:
        self._calibrating = calibrating
        self._counts = counts
        self._seed = seed
        self._categories = categories
        self._fits: dict[Recipe, PartFits] = {}
        self._designs: dict[Recipe, Designs | None] = {}
        self._banks: dict[Recipe | None, ItemBank] = {}

    def of_all(self, recipe: Recipe | None, assisted: bool) -> ItemBank:
        """Return the bank of all calibration subjects; without a recipe, one without parameters."""
        if recipe not in self._banks:
            self._banks[recipe] = self.of_part(recipe, assisted, self._calibrating)
        return self._banks[recipe]

    def of_part(self, recipe: Recipe | None, assisted: bool, data: Responses) -> ItemBank:
        """Return a bank calibrated on some of the calibration subjects, with the designs that all of them choose."""
        if recipe is None:
            zeros = np.zeros(len(data.items))
            return ItemBank("backtest", data.items, (), zeros, zeros, calibrated=False, categories=self._categories)
        fits = self._fits.setdefault(recipe, PartFits(recipe))
        if recipe not in self._designs:
            few = len(set(self._calibrating.families)) < FEWEST_FAMILIES
            chosen = None
            if assisted and not few:
                chosen = choose_designs(self._calibrating, fits, self._counts, seed=self._seed)
            self._designs[recipe] = chosen
        designs = self._designs[recipe]
        fitted = fits(data)
        if designs is None:
            bank = fitted.bank("bank", data.items)
        else:
            bank = designs.bank(fitted, data, max(self._counts))
        return replace(bank, categories=self._categories)


def conformal_possible(train: Responses, confidence: float = CONFIDENCE) -> bool:
    """Return whether families are enough for conformal intervals with this confidence of each one-sided bound."""
    return len(set(train.families)) >= subjects_needed(confidence)


def _bank_recipe(contender: Contender, recipe: Recipe) -> Recipe | None:
    """Return the recipe of a contender's bank: the given one, or with the contender's model; None for no bank."""
    if contender.model == "none":
        return None
    if contender.model == "bank":
        return recipe
    return recipe.with_model(contender.model)


def evaluate(
    session: Session, contender: Contender, truth: Array, confidence: float, intervals: bool, table: Conformal | None
) -> BacktestCell:
    """Compare estimates and intervals of ended interviews with the truth."""
    n = len(session.bank)
    asked = session.stopped_at
    scores = session.answers[1]
    scored = (~np.isnan(scores)).sum(axis=1)
    mean = np.where(scored > 0, np.nansum(scores, axis=1) / np.maximum(scored, 1), 0.5)
    if session.bank.calibrated:
        accuracy, error = session.projection()
    else:
        accuracy, error = mean, np.zeros(len(mean))
    rated = {"projection": accuracy, "mean": mean, "ability": session.estimate.theta[:, 0]}[contender.estimate]
    estimated_accuracy = mean if contender.estimate == "mean" else accuracy
    count = np.asarray(asked)
    variance = np.maximum(truth * (1.0 - truth), 1e-12) / count * np.maximum(1.0 - count / n, 1e-12)
    cell = BacktestCell(
        [ranking_accuracy(rated, truth) if np.ptp(truth) > 0 else float("nan")],
        [rank_correlation(rated, truth)],
        [float(np.abs(estimated_accuracy - truth).mean())],
        truth.tolist(),
        uniform=(NormalDist().inv_cdf(confidence) * np.sqrt(variance)).tolist(),
    )
    z = NormalDist().inv_cdf(confidence)
    if session.bank.calibrated and contender.estimate == "projection":
        cell.intervals["model-based"] = list(zip(accuracy - z * error, accuracy + z * error, strict=True))
    scale = conformal_scale(accuracy, error, asked, n)
    by_method = _valid_intervals(session, table, accuracy, scale, confidence, design=intervals)
    cell.intervals |= {method: [(i.low, i.high) for i in bounds] for method, bounds in by_method.items()}
    return cell


def _valid_intervals(
    session: Session, table: Conformal | None, accuracy: Array, scale: Array, confidence: float, *, design: bool
) -> dict[str, list[Interval]]:
    """Return each subject's interval by method, for the methods whose assumptions the session meets."""
    intervals: dict[str, list[Interval]] = {}
    if design and not session.policy.design_based and np.isfinite(session.log().propensities).all():
        intervals["design-based"] = [interval_of_draws(session.log(s), confidence) for s in range(len(accuracy))]
    if table is None or table.families < subjects_needed(confidence):
        return intervals
    centres = list(zip(accuracy.tolist(), scale.tolist(), strict=True))
    asked = session.stopped_at
    n = len(session.bank)
    furthest = uniform_half_width(accuracy, asked, n, confidence).tolist()
    intervals["conformal"] = [table.interval(*c, confidence, f) for c, f in zip(centres, furthest, strict=True)]
    if "design-based" not in intervals:
        return intervals
    half = (1.0 + confidence) / 2.0  # both methods at half the error each
    if table.families < subjects_needed(half):
        return {**intervals, "combined": intervals["design-based"]}
    furthest = uniform_half_width(accuracy, asked, n, half).tolist()
    return {**intervals, "combined": _combined(session, table, centres, furthest, half)}


def _combined(
    session: Session, table: Conformal, centres: Sequence[tuple[float, float]], furthest: Sequence[float], half: float
) -> list[Interval]:
    """Return the intervals of both methods together, each with the confidence `half`."""
    both = []
    for s, (centre, width) in enumerate(centres):
        by_design = interval_of_draws(session.log(s), half)
        # None where they contradict each other; the design-based one then holds alone
        both.append(combined(by_design, table.interval(centre, width, half, furthest[s])) or by_design)
    return both
