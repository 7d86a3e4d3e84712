"""How alike evaluations order subjects: correlations over the subjects that two of them have in common.

Both coefficients are told with an interval by Fisher's z = atanh(r), whose error
is about normal: 1 / sqrt(n - 3) for Pearson's r of n subjects (Fisher 1915), and
sqrt((1 + r^2 / 2) / (n - 3)) for Spearman's (Bonett and Wright 2000).  That takes
the subjects as drawn independently from a population whose values, or for
Spearman's some rising function of them, are jointly normal.  Checkpoints of one
training run are not: among them the interval says less than it seems to.

A coefficient of 1 has z at infinity and would be certain whatever n is, and few
subjects are often in the same order by chance.  None is therefore taken to be
nearer to 1 than half a step, where a step is the least that Spearman's
coefficient can fall: 12 / (n^3 - n).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.records.repetitions import area, population
from pytest_adaptive_eval.records.run_record import InterviewRecord

__all__ = ["CONFIDENCE", "LEAST", "Correlation", "Measure", "correlate", "measures", "table"]

Array = NDArray[np.float64]

#: Subjects below which Fisher's z has no error.
LEAST = 4
#: Of each one-sided bound: 95 % two-sided.
CONFIDENCE = 0.975
#: Digits of a value that count; what is the same but for rounding has the same rank.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity of several subjects.

    Parameters
    ----------
    name : str
        Of the evaluation, or of a column of reference scores.
    metric : {"auc", "accuracy", "last level", "reference"}
    values : mapping of str to float
        By the subject's name.
    elsewhere : int
        Subjects left out because they were asked on another bank, other levels, or in another way.
    """

    name: str
    metric: str
    values: Mapping[str, float]
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class Correlation:
    """Of two quantities over the subjects that have both.

    Parameters
    ----------
    subjects : int
    spearman, pearson : Interval or None
        None where there is none.
    why : str
        Why there is none; empty where there is one.
    """

    subjects: int
    spearman: Interval | None = None
    pearson: Interval | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "subjects": self.subjects,
            "spearman": self.spearman.to_json() if self.spearman else None,
            "pearson": self.pearson.to_json() if self.pearson else None,
            "why": self.why,
        }


def correlate(first: Mapping[str, float], second: Mapping[str, float], confidence: float = CONFIDENCE) -> Correlation:
    """Rank and linear correlation of two quantities.

    Parameters
    ----------
    first, second : mapping of str to float
        Finite values by subject.
    confidence : float
        Of each one-sided bound.
    """
    common = [subject for subject in first if subject in second]
    n = len(common)
    if n < LEAST:
        return Correlation(n, why=f"it takes {LEAST} subjects in common")
    x, y = (np.array([float(f"{one[s]:.{_DIGITS}g}") for s in common]) for one in (first, second))
    for values, which in ((x, "first"), (y, "second")):
        if values.min() == values.max():
            return Correlation(n, why=f"the {which} is the same for all of them")
    rho, r = rank_correlation(x, y), _moment(x, y)
    return Correlation(
        n,
        spearman=_interval(rho, n, 0.5, confidence, "Bonett-Wright"),
        pearson=_interval(r, n, 0.0, confidence, "Fisher z"),
    )


def _moment(x: Array, y: Array) -> float:
    """Pearson's coefficient of values that are not constant."""
    x, y = (values / abs(values).max() for values in (x, y))  # no square overflows
    x, y = x - x.mean(), y - y.mean()
    r = float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))
    return min(max(r, -1.0), 1.0)


def _interval(r: float, n: int, growth: float, confidence: float, method: str) -> Interval:
    most = 1.0 - 6.0 / (n**3 - n)
    taken = min(max(r, -most), most)
    half = NormalDist().inv_cdf(confidence) * math.sqrt((1.0 + growth * taken * taken) / (n - 3))
    low, high = (math.tanh(math.atanh(taken) + side * half) for side in (-1.0, 1.0))
    return Interval(r, min(low, r), max(high, r), confidence, method)


def measures(interviews: Iterable[InterviewRecord]) -> list[Measure]:
    """What evaluations measured, from the newest interview of each subject, with the last level after each area.

    The area of a climb, else the accuracy: by the draws, or the bank's projection
    where there is none.  An evaluation whose bank or levels changed counts as it
    was asked in the newest interview.

    Parameters
    ----------
    interviews : iterable of InterviewRecord
        Oldest first; void ones and those that measured neither are left out.
    """
    found: dict[str, dict[tuple[str, str], dict[str, InterviewRecord]]] = {}
    newest: dict[str, tuple[str, str]] = {}
    for interview in interviews:
        if interview.error or not interview.stop or _value(interview) is None:
            continue
        key = ("auc" if interview.levels else "accuracy", population(interview))
        newest[interview.name] = key
        subjects = found.setdefault(interview.name, {}).setdefault(key, {})
        subjects[str(interview.subject.get("name", ""))] = interview
    out = []
    for name, key in newest.items():
        asked = found[name][key]
        elsewhere = len({subject for subjects in found[name].values() for subject in subjects} - set(asked))
        values = {subject: value for subject, one in asked.items() if (value := _value(one)) is not None}
        out.append(Measure(name, key[0], values, elsewhere))
        if key[0] == "auc":
            last = {subject: float(one.levels["last_level"]) for subject, one in asked.items() if one.levels}
            out.append(Measure(name, "last level", last))
    return out


def _value(interview: InterviewRecord) -> float | None:
    if interview.levels:
        found = area(interview)
        return found.estimate if found else None
    told = interview.accuracy or interview.accuracy_conformal or interview.accuracy_model or {}
    value: float | None = told.get("estimate")
    return value


def table(measured: Sequence[Measure]) -> dict[tuple[int, int], Correlation]:
    """Correlations of all pairs, and of each area with its own last level alone, by their places."""
    pairs: dict[tuple[int, int], Correlation] = {}
    for j, second in enumerate(measured):
        for i, first in enumerate(measured[:j]):
            last = "last level" in (first.metric, second.metric)
            if not last or (first.name, first.metric) == (second.name, "auc"):
                pairs[i, j] = correlate(first.values, second.values)
    return pairs
