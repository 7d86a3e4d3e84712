"""AutoJudger's experiments on recorded responses: its paper's Table 1, its ablations, and what they are compared with.

Responses come without texts and images, so residual factors of the calibration subjects' responses are the embeddings,
and random vectors are a control that knows nothing. The interviewer is the one by code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.parameters import read_parameters
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import FixedForm
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS, AutoJudgerMaker, Contender, PolicyMaker
from pytest_adaptive_eval.inference.clusters import clusters, residual_factors, response_factors
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.interviewer.closeness import difficulty_distance, semantic_distance
from pytest_adaptive_eval.interviewer.deterministic import CLUSTERS
from pytest_adaptive_eval.interviewer.embeddings import FactorsEmbedder
from pytest_adaptive_eval.irt.estimation import MAP, WIDE
from pytest_adaptive_eval.irt.profile import estimate_profile
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints

#: Shares of the bank after which subjects are ranked, in percent.
SHARES = (1, 2, 3, 4, 5)
#: Number of first questions, about which no interviewer decides.
FIRST = 10
#: Dimensions of the vectors of the control, as many as CLIP ViT-B/32 has.
CONTROL = 512


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Args:
        contender: Model of the bank, policy and what ranks. The model ``released`` has published difficulties.
        points: Embeddings of the items, see `embeddings`.
        per_budget: Whether each budget has questions of its own.
        of_weakest: Whether all subjects get the questions of the weakest one.
        published: The paper's ranking accuracy at 5 % on AI2D, MMMU, MMT-Bench and SEED-Bench.
    """

    contender: Contender
    points: str = "residual"
    per_budget: bool = False
    of_weakest: bool = False
    published: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the contender."""
        return self.contender.name


#: Beginnings of the file names of the benchmarks in `Row.published`.
BENCHMARKS = ("AI2D", "MMMU", "MMT", "SEED")


def _classical(name: str, *published: str, per_budget: bool = False) -> Row:
    """Return a row of a policy of ``backtest``."""
    contender = CONTENDERS[name]
    if contender.model == "bank":
        contender = replace(contender, model="2pl", summary=f"2PL; the policy {name}")
    return Row(contender, per_budget=per_budget, published=published)


def _judger(
    name: str,
    summary: str,
    *published: str,
    model: str = "1pl",
    estimate: Literal["projection", "mean", "ability"] = "ability",
    points: str = "residual",
    **settings: Any,
) -> Row:
    """Return a row of AutoJudger with other settings, a bank of another model, or other embeddings."""
    return Row(Contender(name, model, AutoJudgerMaker(settings), estimate, summary), points, published=published)


def _one_form(train: Array, embeddings: Array | None, count: int, seed: int) -> Policy:  # noqa: ARG001
    """Return uniform draws that are the same for all subjects, as the paper's are."""
    return Policy(FixedForm(tuple(np.random.default_rng(seed).permutation(train.shape[1]).tolist())), 0.0)


_ONE_FORM = Contender("one-form", "none", _one_form, "mean", "uniform draws, the same for all (Random)")
_RELEASED = replace(
    CONTENDERS["nearest-difficulty"],
    name="released",
    model="released",
    summary="the same, by published difficulties (IRT)",
)
_SIMPLEST = _judger("simplest", "the questions of the weakest subject for all (Table 8)")

#: Rows by name.
ROWS: Mapping[str, Row] = {
    row.name: row
    for row in (
        _classical("random"),
        Row(_ONE_FORM, published=("93.82±3.71", "81.47±6.28", "85.88±6.14", "92.65±4.74")),
        _classical("cluster", "93.53±3.80", "78.97±11.62", "87.79±3.71", "92.50±3.58", per_budget=True),
        _classical("stratified", "93.97±3.08", "84.26±6.22", "84.12±6.61", "90.88±3.82"),
        _classical("nearest-difficulty"),
        Row(_RELEASED, published=("89.71±0.00", "82.35±0.00", "88.24±0.00", "91.91±0.00")),
        _classical("estimate"),
        _classical("maximum-information"),
        _classical("variance"),
        _judger(
            "autojudger",
            "Rasch; the best of the 5 farthest questions, by code (AutoJudger)",
            *("94.85±0.00", "87.94±0.71", "92.06±1.41", "90.74±0.71"),
        ),
        _classical("autojudger-paper"),
        _classical("a2-judger"),
        _judger("without-agent", "w/o agent (Table 2)", "92.28", "82.87", "86.62", "91.10", agent=False),
        _judger("without-memory", "w/o memory (Table 2)", "94.12", "89.71", "89.71", "91.18", memory=False),
        _judger(
            "without-difficulty",
            "w/o difficulty (Table 11)",
            *("94.85", "86.76", "89.71", "88.97"),
            model="none",
            estimate="mean",
            difficulty="none",
        ),
        _judger(
            "optimal-difficulty",
            "candidates of the nearest difficulty (Table 9)",
            *("95.59", "83.09"),
            retrieval="nearest-difficulty",
        ),
        _judger("random-retrieval", "candidates drawn (Table 9)", "91.18", "83.82", retrieval="random"),
        _judger("7-candidates", "7 candidates (Table 10)", "94.85", "83.82", "92.65", "92.65", candidates=7),
        _judger("10-candidates", "10 candidates (Table 10)", "91.91", "85.29", "91.18", "88.97", candidates=10),
        _judger("first-by-difficulty", "first questions evenly by difficulty", first="difficulty"),
        _judger("first-at-random", "first questions drawn", first="random"),
        _judger("without-first", "no first questions", first="none"),
        _judger("projected", "ranks by projected accuracy", estimate="projection"),
        _judger("2pl", "2PL (Table 13)", "", "84.56", "91.18", model="2pl", estimate="projection"),
        _judger("3pl", "3PL (Table 13)", "", "86.03", "91.91", model="3pl", estimate="projection"),
        _judger("control", "random vectors as embeddings", points="control"),
        _judger("2pl-control", "2PL, the same", model="2pl", estimate="projection", points="control"),
        _judger("plain", "factors of responses as embeddings", points="plain"),
        _judger("2pl-plain", "2PL, the same", model="2pl", estimate="projection", points="plain"),
        _judger("parameters", "parameters of items as embeddings", points="parameters"),
        _judger("2pl-parameters", "2PL, the same", model="2pl", estimate="projection", points="parameters"),
        replace(_SIMPLEST, of_weakest=True),
    )
}
#: Rows of the paper that recorded responses do not allow, and why.
ABSENT = {
    "without-visual": "responses have no pictures, and the interviewer by code looks at none",
    "annotated": "responses have no annotated difficulties",
}


class Banks:
    """Banks of one split by model, each calibrated once.

    Args:
        train: Shape (S, n). Scores of the calibration subjects.
        categories: Categories of the items; empty if they have none.
        released: File with published difficulties.
    """

    def __init__(
        self, items: Sequence[str], train: Array, categories: Sequence[str] = (), released: Path | None = None
    ) -> None:
        self.train = train
        self.categories = tuple(categories)
        self._items = tuple(items)
        self._released = released
        self._banks: dict[str, ItemBank] = {}

    def __getitem__(self, model: str) -> ItemBank:
        """Return the bank of a model, of ``none``, or of the ``released`` difficulties."""
        if model not in self._banks:
            self._banks[model] = replace(self._bank(model), categories=self.categories)
        return self._banks[model]

    def _bank(self, model: str) -> ItemBank:
        if model == "none":
            zeros = np.zeros(len(self._items))
            return ItemBank("study", self._items, (), zeros, zeros, calibrated=False)
        if model == "released":
            assert self._released is not None, "rows of released difficulties are left out without a file of them"
            return read_parameters(self._released, self._items).bank("study", self._items)
        return Recipe(model)(self.train).bank("study", self._items)

    def set(self, model: str, bank: ItemBank) -> None:
        """Add a bank that is not calibrated on the responses."""
        self._banks[model] = bank


def random_points(count: int, seed: int) -> Array:
    """Return unit vectors that know nothing of the items."""
    vectors = np.random.default_rng(seed).normal(size=(count, CONTROL))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def embeddings(row: Row, banks: Banks, seed: int) -> NDArray[Any]:
    """Return the embeddings of the items by which a row places them."""
    bank = banks[row.contender.model]
    if row.points == "control":
        return random_points(len(bank), seed)
    if row.points == "parameters":
        return FactorsEmbedder().embed(bank)
    if row.points == "plain":
        factors = response_factors(banks.train)
        return np.asarray(factors / np.maximum(np.linalg.norm(factors, axis=1, keepdims=True), 1e-9))
    return residual_factors(banks.train)


def interviews(
    row: Row, banks: Banks, points: NDArray[Any], test: Array, seed: int, budgets: Sequence[int]
) -> Iterator[Session]:
    """Yield the interviews of all subjects with each budget, or with the largest one for all budgets.

    Args:
        test: Shape (S, n). Scores of the subjects that are interviewed.
    """
    bank = banks[row.contender.model]
    for count in budgets if row.per_budget else budgets[-1:]:
        policy = _policy(row.contender.policy, banks.train, points, count, seed)
        if row.of_weakest:
            weakest = int(np.nanmean(test, axis=1).argmin())
            order = replay(bank, policy, test[[weakest]], seed=seed).answers[0][0]
            policy = replace(policy, selector=FixedForm(tuple(order.tolist())))
        yield replay(bank, policy, test, seed=[1000 * seed + s for s in range(len(test))])


def _policy(maker: Policy | PolicyMaker, train: Array, points: NDArray[Any], count: int, seed: int) -> Policy:
    if isinstance(maker, Policy):
        return replace(maker, budget=count)
    if isinstance(maker, AutoJudgerMaker):
        placed = points
    else:
        placed = None
    return replace(maker(train, placed, count, seed), budget=count)


def ratings(session: Session, row: Row, count: int) -> Array:
    """Return what ranks the subjects after `count` questions, shape (S,)."""
    asked, answers = session.answers
    items = asked[:, :count]
    scores = answers[:, :count]
    if row.contender.estimate == "mean":
        return np.asarray(np.nanmean(scores, axis=1))
    theta = session.trace[:, count - 1]
    if row.contender.estimate == "ability":
        return np.asarray(theta[:, 0])
    p = session.bank.probability(theta)
    predicted = np.take_along_axis(p, items, axis=1)
    np.put_along_axis(p, items, np.where(np.isnan(scores), predicted, scores), axis=1)
    return np.asarray(p.mean(axis=1))


def measured(name: str, banks: Banks, test: Array, seed: int) -> dict[str, Any]:
    """Return the results of one row on one split, as JSON values.

    Args:
        test: Shape (S, n). Scores of the subjects that are interviewed.

    Returns:
        Ranking accuracies by share of the bank: ``half`` counts ties as half, ``autojudger`` as its authors do, ``top``
        is of the better half of the subjects. ``distance`` is the mean distance of two questions, and ``gap`` that of
        difficulty and ability in logits past the first questions, on a Rasch bank. ``profile`` and ``whole`` are mean
        absolute errors of the accuracy in a category, see `profile_errors`.
    """
    row = ROWS[name]
    truth = np.nanmean(test, axis=1)
    points = embeddings(row, banks, seed)
    budgets = [resolve_budget(f"{share}%", test.shape[1]) for share in SHARES]
    sessions = list(interviews(row, banks, points, test, seed, budgets))
    rated = []
    for place, count in enumerate(budgets):
        rated.append(ratings(sessions[min(place, len(sessions) - 1)], row, count))
    session = sessions[-1]
    top = truth >= np.median(truth)
    results: dict[str, Any] = {
        "half": [ranking_accuracy(values, truth) for values in rated],
        "autojudger": [ranking_accuracy(values, truth, ties="autojudger") for values in rated],
        "top": [ranking_accuracy(values[top], truth[top], ties="autojudger") for values in rated],
        "scores": rated[-1].tolist(),
        "truth": truth.tolist(),
        "distance": float(np.mean([semantic_distance(points[items]) for items in session.answers[0]])),
        "profile": profile_errors(banks, session, test),
    }
    if row.contender.model == "1pl" and session.asked > FIRST:
        difficulty = session.bank.difficulty[session.answers[0]]
        abilities = session.trace[:, FIRST - 1 : -1, 0]
        results["gap"] = difficulty_distance(difficulty[:, FIRST:], abilities)
        results["widened"] = session.account.get("widened", 0)
    return results


def profile_errors(banks: Banks, session: Session, test: Array) -> list[float]:
    """Return the mean absolute errors of a subject's accuracy in a category, by two estimates from its answers.

    The first estimate has abilities by category (`irt.profile`), the second one ability. Both are on the Rasch bank.
    Categories are the bank's, or else the clusters of residual factors that an interviewer without texts balances.

    Args:
        test: Shape (S, n). Scores of the subjects that are interviewed.
    """
    bank = banks["1pl"]
    if banks.categories:
        _, codes = np.unique(banks.categories, return_inverse=True)
    else:
        codes = clusters(residual_factors(banks.train), CLUSTERS, 0).label
    membership = np.eye(codes.max() + 1)[codes]
    slopes = bank.discrimination[:, 0]
    intercepts = bank.intercept
    errors = np.empty((len(test), 2))
    for s, (items, scores) in enumerate(zip(*session.answers, strict=True)):
        profile = estimate_profile(scores, slopes[items], intercepts[items], None, membership[items])
        estimator = MAP(general_sd=WIDE)
        estimate = estimator.estimate(
            scores[None], bank.discrimination[None, items], intercepts[None, items], None, estimator.prior(1, 1)
        )
        truth = _by_category(test[s], codes)
        for column, theta in enumerate((profile.ability[codes], np.full(len(codes), estimate.theta[0, 0]))):
            predicted = 1.0 / (1.0 + np.exp(-(slopes * theta + intercepts)))
            predicted[items] = np.where(np.isnan(scores), predicted[items], scores)
            predicted[np.isnan(test[s])] = np.nan
            errors[s, column] = np.nanmean(np.abs(_by_category(predicted, codes) - truth))
    return [float(error) for error in errors.mean(axis=0)]


def _by_category(scores: Array, codes: Ints) -> Array:
    """Return the mean of the scores in each category, NaN where none is there."""
    scored = ~np.isnan(scores)
    counts = np.bincount(codes[scored], minlength=codes.max() + 1)
    sums = np.bincount(codes[scored], scores[scored], minlength=codes.max() + 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
