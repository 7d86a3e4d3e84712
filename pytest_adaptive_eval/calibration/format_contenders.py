"""What a backtest in formats compares: ways to choose pairs of an item and a format, and to rank subjects by them.

Each is handed a `Fold`, one subject left out of the fits, and gives for each
budget the pairs that it asked that subject, a call each, and what it makes of the
answers.  Pair ``item * F + format``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.multimodal import fit_multimodal
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality
from pytest_adaptive_eval.calibration.subsets import anchors, evolved, item_total
from pytest_adaptive_eval.calibration.variational import fit_map
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.multimodal import Form, Information, Modalities
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview

__all__ = ["DEFAULT", "FORMAT_CONTENDERS", "Asked", "Fold", "FormatContender"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The one that is compared with every other.
DEFAULT = "m3-adaptive"
#: An adaptive interview estimates anew after so many answers, and after this share of those it has.
STEP, PART = 4, 25


@dataclass(slots=True)
class Asked:
    """An interview at one budget.

    Parameters
    ----------
    pairs : array of int, shape (calls,)
    every, fullest : float
        Estimates of the mean over all formats, and in the fullest, from the subject's own answers; NaN for none.
    """

    pairs: Ints
    every: float
    fullest: float


@dataclass(eq=False)
class Fold:
    """One subject left out, and fits to the others, each made once.

    Parameters
    ----------
    scores : array, shape (S, n, F)
        Of everybody.
    modalities : Modalities
    target : int
        Who is left out.
    budgets : mapping of str to int
        Calls, by what the user calls them.
    seed : int
    """

    scores: Array
    modalities: Modalities
    target: int
    budgets: Mapping[str, int]
    seed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        train = np.delete(self.scores, self.target, axis=0)
        # items that nobody else answered cannot be fitted, and are not asked
        self.places = np.flatnonzero(~np.isnan(train).all(axis=(0, 2)))
        self.train = train[:, self.places]
        self.own = self.scores[self.target][self.places].ravel()
        self.flat = self.train.reshape(len(self.train), -1)
        #: Pairs that some of the others answered: what a model with a pair for an item can be fitted to.
        self.known = np.flatnonzero(~np.isnan(self.flat).all(axis=0))
        self.formats = self.scores.shape[2]
        self._fits: dict[str, Any] = {}

    def fit(self, name: str) -> Any:
        """A fit to the other subjects: ``m2``, ``m3``, ``quality``, ``2pl`` or ``mirt``."""
        if name not in self._fits:
            start = time.process_time()
            if name in ("m2", "m3"):
                form: Form = "m2" if name == "m2" else "m3"
                self._fits[name] = fit_multimodal(self.train, modalities=self.modalities, form=form, seed=self.seed)
            elif name == "quality":
                self._fits[name] = item_quality(self.train, self.modalities, seed=self.seed)
            else:
                self._fits[name] = fit_map(self.flat[:, self.known], model=name, limit=100)  # type: ignore[arg-type]
            self.seconds[name] = time.process_time() - start
        return self._fits[name]

    def means(self, order: Callable[[int], Ints]) -> dict[str, Asked]:
        """Raw means over pairs that are chosen before the interview."""
        out = {}
        for name, budget in self.budgets.items():
            pairs = order(min(budget, self.own.size))
            out[name] = Asked(pairs, _mean(self.own[pairs]), _mean(self.own[pairs[self.fullest(pairs)]]))
        return out

    def fullest(self, pairs: Ints) -> NDArray[np.bool_]:
        """Which pairs are in the fullest format."""
        return np.asarray(pairs % self.formats == self.modalities.fullest)

    def pairs_of_all(self, pairs: Ints) -> Ints:
        """The same pairs among all items, those that nobody answered included."""
        return np.asarray(self.places[pairs // self.formats] * self.formats + pairs % self.formats)


def _mean(values: Array, weights: Array | None = None) -> float:
    some = ~np.isnan(values)
    if not some.any():
        return float("nan")
    return float(np.average(values[some], weights=None if weights is None else weights[some]))


@dataclass(frozen=True, slots=True)
class FormatContender:
    """A way to choose pairs.

    Parameters
    ----------
    name : str
    says : str
        In one line, for tables and help.
    interview : callable
        Takes a fold and gives an `Asked` for each budget.
    drawn : bool
        Whether chance has a part in it, so that it is to be repeated.
    """

    name: str
    says: str
    interview: Callable[[Fold], dict[str, Asked]]
    drawn: bool = False


def _ours(form: str, *, adaptive: bool, whole: bool) -> Callable[[Fold], dict[str, Asked]]:
    def interview(fold: Fold) -> dict[str, Asked]:
        fit, quality = fold.fit(form), fold.fit("quality")
        better = quality.value >= np.median(quality.value)
        out = {}
        for name, budget in fold.budgets.items():
            worth = quality.worth(-(-budget // fold.formats))
            talk = FormatInterview(fit.items, fit.population, whole=whole, adaptive=adaptive, worth=worth)
            while (left := min(budget, fold.own.size) - talk.calls) > 0:
                asked: list[int] = []
                while len(asked) < min(left, max(STEP, talk.calls // PART)) and (
                    some := talk.ask(left - len(asked)).tolist()
                ):
                    asked += some
                if not asked:
                    break
                talk.tell(fold.own[asked])
            p = fit.items.probability(talk.abilities.theta)[0, better]
            out[name] = Asked(talk.pairs, float(p.mean()), float(p[:, fold.modalities.fullest].mean()))
        return out

    return interview


def _plain(model: str) -> Callable[[Fold], dict[str, Asked]]:
    """A pair taken for an item: most information, D-optimal in more dimensions."""

    def interview(fold: Fold) -> dict[str, Asked]:
        fit = fold.fit(model)
        A, d, own = fit.discrimination, fit.intercept, fold.own[fold.known]
        estimator, D = MAP(), A.shape[1]
        state, told = estimator.prior(1, D), 0
        information = Information.start(np.eye(D))
        pairs: list[int] = []
        left = np.ones(len(d), dtype=bool)
        sizes = {name: min(budget, len(d)) for name, budget in fold.budgets.items()}
        out: dict[str, Asked] = {}
        for limit in sorted(set(sizes.values())):
            while len(pairs) < limit:
                w = irt.weight(irt.probability(state.theta, A, d))[0]
                for _ in range(min(max(STEP, told // PART), limit - len(pairs))):
                    best = int(np.where(left, information.gain(w, A), -1.0).argmax())
                    left[best] = False
                    information.add(w[[best]], A[[best]])
                    pairs.append(best)
                told = len(pairs)
                state = estimator.estimate(own[None, pairs], A[None, pairs], d[None, pairs], None, state)
            p = irt.probability(state.theta, A, d)[0]
            asked = Asked(fold.known[pairs], float(p.mean()), float(p[fold.fullest(fold.known)].mean()))
            out |= {name: asked for name, size in sizes.items() if size == limit}
        return out

    return interview


def _random(fold: Fold) -> dict[str, Asked]:
    rng = np.random.default_rng([fold.seed, fold.target])
    return fold.means(lambda budget: rng.choice(fold.own.size, budget, replace=False))


def _item_total(fold: Fold) -> dict[str, Asked]:
    value = item_total(fold.flat)
    return fold.means(lambda budget: np.argsort(-value, kind="stable")[:budget])


def _anchors(fold: Fold) -> dict[str, Asked]:
    fit = fold.fit("mirt")
    points = np.c_[fit.discrimination, fit.intercept]
    out = {}
    for name, budget in fold.budgets.items():
        chosen, weight = anchors(points, min(budget, len(points)), fold.seed)
        pairs = fold.known[chosen]
        full = fold.fullest(pairs)
        own = fold.own[pairs]
        out[name] = Asked(pairs, _mean(own, weight), _mean(own[full], weight[full]))
    return out


def _evolved(fold: Fold) -> dict[str, Asked]:
    rng = np.random.default_rng([fold.seed, fold.target, 1])
    return fold.means(lambda budget: evolved(fold.flat, budget, rng))


#: Everything a backtest in formats can compare, by name.
FORMAT_CONTENDERS: Mapping[str, FormatContender] = MappingProxyType(
    {
        contender.name: contender
        for contender in (
            FormatContender("random", "uniform draws of pairs, mean score", _random, drawn=True),
            FormatContender("irt", "2PL, a pair for an item, most information", _plain("2pl")),
            FormatContender("mirt", "MIRT, a pair for an item, D-optimal", _plain("mirt")),
            FormatContender("anchors", "near centres of clusters of MIRT items (tinyBenchmarks)", _anchors),
            FormatContender("flasheval", "evolutionary search of pairs (FlashEval)", _evolved),
            FormatContender("item-total", "pairs that correlate most with the subjects' means", _item_total),
            FormatContender(
                "m2-static", "M2, items in all formats, one form for all", _ours("m2", adaptive=False, whole=True)
            ),
            FormatContender("m2-adaptive", "M2, items in all formats", _ours("m2", adaptive=True, whole=True)),
            FormatContender(
                "m3-static", "M3, items in all formats, one form for all", _ours("m3", adaptive=False, whole=True)
            ),
            FormatContender("m3-adaptive", "M3, items in all formats", _ours("m3", adaptive=True, whole=True)),
            FormatContender("m2-pairs", "M2, single pairs, one form for all", _ours("m2", adaptive=False, whole=False)),
            FormatContender("m3-pairs", "M3, single pairs, one form for all", _ours("m3", adaptive=False, whole=False)),
        )
    }
)
