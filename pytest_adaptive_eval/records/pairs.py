"""All pairs of the subjects of an evaluation: differences of accuracy whose intervals hold together.

Each of P pairs has a two-sided interval at the error rate alpha / P (Bonferroni), so the probability that any of them
misses is at most alpha, for any dependence between pairs.

Two subjects that answered the same uniform draws are compared answer by answer: the interval is that of the mean of
(1 + score - other's score) / 2, which lies in [0, 1] like a score. If an interview stopped at its verdict, the interval
is that of bets, which holds for any such stop. Other pairs have the difference of two intervals, each at a quarter of
the pair's error rate per bound: it may be wide, and needs no independence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np

from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import mean_of_draws
from pytest_adaptive_eval.records.comparison import compare
from pytest_adaptive_eval.records.parts import Pair
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.ties import tie_ranks

CONFIDENCE = 0.95  #: Of all two-sided intervals together.


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """A subject's draws, with a name that no other subject of the group has."""

    name: str
    record: EvaluationRecord
    log: DesignLog
    estimate: float

    def interval(self, confidence: float) -> Interval:
        """Return the accuracy with bounds of this confidence."""
        return interval_of_draws(self.log, confidence)


def all_pairs(evaluations: Iterable[EvaluationRecord], confidence: float = CONFIDENCE) -> list[Pair]:
    """Return the pairs of subjects of each evaluation, the best subjects first.

    Results of one test with one seed, and interviews side by side, are results of one evaluation. Ladders, void
    interviews and interviews whose items were not drawn at random have no part.
    """
    groups: dict[tuple[str, int | None], list[EvaluationRecord]] = {}
    for record in filter(_takes_part, evaluations):
        groups.setdefault((record.group or record.nodeid, record.policy.seed), []).append(record)
    names = _names(list(groups))
    record_pairs = []
    for key, records in groups.items():
        for pair in combinations(_subjects(records), 2):
            record_pairs.append((names[key], *pair))
    reasons = [_refusal(first.record, second.record) for _, first, second in record_pairs]
    bound = 1.0 - (1.0 - confidence) / (2 * max(reasons.count(""), 1))
    alone = cache(lambda subject: subject.interval((1.0 + bound) / 2))  # a subject has many pairs
    pairs = []
    for (name, first, second), reason in zip(record_pairs, reasons, strict=True):
        interval: Interval | None = None
        if reason:
            shared = 0
        else:
            shared = _shared(first.log, second.log)
        if shared:
            interval = _paired(first, second, shared, bound)
        elif not reason:
            interval = _subtracted(alone(first), alone(second), bound)
        pairs.append(Pair(name, (first.name, second.name), interval, shared, reason))
    return pairs


def _refusal(first: EvaluationRecord, second: EvaluationRecord) -> str:
    """Return why two interviews do not compare; those side by side do, whatever their prompts."""
    if first.group:
        return ""
    return compare(first, second).refused


def _takes_part(record: EvaluationRecord) -> bool:
    return not record.levels and not record.void and bool(record.scored)


def _names(keys: Sequence[tuple[str, int | None]]) -> dict[tuple[str, int | None], str]:
    """Return the name of each evaluation: the end of its node id if that is unique, else all of it and the seed."""
    ends = []
    for nodeid, _ in keys:
        ends.append(nodeid.rpartition("::")[2].partition("[")[0])
    whole = [f"{nodeid}, seed {seed}" for nodeid, seed in keys]
    return {key: end if ends.count(end) == 1 else name for key, end, name in zip(keys, ends, whole, strict=True)}


def _subjects(records: Sequence[EvaluationRecord]) -> list[_Subject]:
    """Return the subjects of an evaluation whose items were drawn at random, the best first."""
    index: dict[str, int] = {}
    subjects: list[_Subject] = []
    for record in records:
        for administration in record.administrations:
            index.setdefault(administration.item, len(index))
        log = record.draws(index)
        if np.isnan(log.propensities).any():
            continue
        name = record.variant or record.subject.name or "unnamed"
        taken = [subject.name for subject in subjects]
        names = (name, record.name, *(f"{name} ({n})" for n in range(2, len(records) + 2)))
        unique = next(candidate for candidate in names if candidate not in taken)
        subjects.append(_Subject(unique, record, log, mean_of_draws(log)))
    ranks = tie_ranks([-subject.estimate for subject in subjects])
    return [subjects[n] for n in sorted(range(len(subjects)), key=lambda n: ranks[n])]


def _shared(first: DesignLog, second: DesignLog) -> int:
    """Return how many uniform draws two subjects have in common, from the first on; 0 if they differ before an end."""
    n = min(len(first), len(second))
    same = first.take_all == second.take_all and first.uniform and second.uniform
    if same and np.array_equal(first.items[:n], second.items[:n]):
        return n
    return 0


def _paired(first: _Subject, second: _Subject, shared: int, confidence: float) -> Interval:
    """Return the difference by the answers to the same draws."""
    log = first.log[:shared]
    other = second.log[:shared]
    scores = np.full(int(max(log.items)) + 1, np.nan)
    scores[other.items] = other.scores
    baseline = Baseline(second.name, scores, other)
    view = PairedClaim(0.0, baseline=baseline).view(log)
    planned = log.fixed and other.fixed
    view = replace(view, noise=(log.noise + other.noise) / 4.0, horizon=shared * planned, fixed=planned)
    half = interval_of_draws(view, confidence)
    estimate, low, high = (2.0 * value - 1.0 for value in (half.estimate, half.low, half.high))
    return Interval(estimate, low, high, confidence, f"{half.method}, paired")


def _subtracted(first: Interval, second: Interval, confidence: float) -> Interval:
    """Return the difference of two quantities that may depend on each other."""
    change = first.estimate - second.estimate
    return Interval(change, first.low - second.high, first.high - second.low, confidence, f"{first.method}, each alone")
